//! To which address a listener sends: it follows the dialer, and nobody else.
//!
//! ```text
//!   listener                                                    dialer
//!   <-- newest datagram, from another address N than the present one, O
//!   challenge(cookie for N) --> N          <-- answer(the same), from N: the dialer is there
//!   challenge(cookie for O) --> O          <-- answer(the same), from O: it is still there, too
//! ```
//!
//! An authentic datagram from N proves that the dialer has sent it, and nothing about N: it may be a copy by
//! somebody faster than the path. Both addresses are asked (RFC 9000, sections 9.3 and 9.3.3), and the present one
//! is used meanwhile. If O answers, it is kept, whatever N says: who forwards questions and answers would else get
//! in between. If only N answers, the listener moves there. An answer counts where it comes from, also when
//! somebody has sent a copy before it.

use super::cookie::Purpose;
use super::{OutgoingDatagram, Peer};
use crate::mtu::MtuSearch;
use crate::wire::{Body, Nonce};
use narrows_units::{Span, Time};
use std::net::SocketAddr;

/// Time between two questions to an address: one per datagram would be a gift to who sends copies.
const ASK_GAP: Span = Span::from_ms(20);
/// Time to wait for an answer from a new address. Longer round trips are not followed, but called again.
const PATIENCE: Span = Span::from_ms(1_000);
/// The present address has at least so long to answer after the new one has: five questions, of which or of whose
/// answers all get lost once in 3 million times at 2.5 % loss each way.
const GRACE: Span = Span::from_ms(100);

/// The dialer seems to be elsewhere.
#[derive(Clone, Copy, Debug)]
pub(super) struct AddressChange {
    since: Time,
    /// A new address that is to be asked, and whether the present one is.
    ask_new: Option<SocketAddr>,
    ask_present: bool,
    /// The new address has answered: the listener moves there at this time unless the present one does, too.
    answered: Option<(SocketAddr, Time)>,
}

impl AddressChange {
    /// When something is to be done.
    pub(super) fn wakeup(&self, next_ask: Time) -> Time {
        if self.ask_new.is_some() || self.ask_present {
            return Time::ZERO;
        }
        match self.answered {
            Some((_, at)) => at.min(next_ask),
            None => self.since + PATIENCE,
        }
    }
}

impl Peer {
    /// The newest datagram came from another address than the present one.
    #[cold]
    pub(super) fn appeared_at(&mut self, now: Time, from: SocketAddr) {
        let attempt = self.attempt.get_or_insert(AddressChange {
            since: now,
            ask_new: None,
            ask_present: false,
            answered: None,
        });
        if now >= self.next_ask && !self.ended {
            self.next_ask = now + ASK_GAP;
            attempt.ask_new = Some(from);
            attempt.ask_present = true;
        }
    }

    /// An answer has come. Returns whether it says anything.
    #[cold]
    pub(super) fn answered_from(&mut self, now: Time, from: SocketAddr, answer: &Nonce) -> bool {
        let (Some(attempt), Some(session)) = (&mut self.attempt, &self.session) else {
            return false;
        };
        let about = &session.listener;
        let issued = self
            .cookies
            .issued(Purpose::Path, now, PATIENCE, from, about, answer);
        let Some(issued) = issued.filter(|&issued| issued >= attempt.since) else {
            return false;
        };
        let trip = now.since(issued);
        if self.to == Some(from) {
            self.stay();
            self.note_round_trip(trip);
        } else if attempt.answered.is_none() {
            // The present address takes about as long to answer as it has, whoever else is faster.
            let trip = self.round_trip.max(trip).min(PATIENCE);
            attempt.answered = Some((from, now + trip * 2 + GRACE));
        }
        true
    }

    /// Who sends copies of clock messages makes round trips seem shorter and not longer, so the longest one counts
    /// for some seconds.
    pub(super) fn note_round_trip(&mut self, trip: Span) {
        let less = self.round_trip.saturating_sub(trip);
        self.round_trip = trip.max(self.round_trip.saturating_sub(less.scale(1, 16)));
    }

    fn stay(&mut self) {
        self.attempt = None;
        self.counts.moves_refused += 1;
    }

    /// Writes a question that is due, and moves if it is time.
    pub(super) fn ask(&mut self, now: Time, out: &mut Vec<u8>) -> Option<OutgoingDatagram> {
        let attempt = self.attempt.as_mut()?;
        if self.ended {
            self.attempt = None;
            return None;
        }
        match attempt.answered {
            Some((address, at)) if now >= at => {
                self.move_to(address);
                return None;
            }
            Some(_) if now >= self.next_ask => {
                self.next_ask = now + ASK_GAP;
                attempt.ask_present = true;
            }
            None if now.since(attempt.since) >= PATIENCE => {
                self.stay();
                return None;
            }
            _ => {}
        }
        let address = match attempt.ask_new.take() {
            Some(address) => address,
            None if std::mem::take(&mut attempt.ask_present) => self.to?,
            None => return None,
        };
        let about = self.session.as_ref()?.listener;
        let cookie = self.cookies.issue(Purpose::Path, now, address, &about);
        self.write(now, address, &Body::Challenge(cookie), 0, out)
    }

    fn move_to(&mut self, to: SocketAddr) {
        self.attempt = None;
        self.counts.moves += 1;
        self.to = Some(to);
        self.search = Some(MtuSearch::new(to.ip(), self.config.interface_mtu));
    }
}
