//! The address to which a listener sends: it follows only the dialer.
//!
//! ```text
//!   listener                                                    dialer
//!   <-- newest datagram, from another address N than the present one, O
//!   challenge(cookie for N) --> N          <-- answer(the same), from N: the dialer is at N
//!   challenge(cookie for O) --> O          <-- answer(the same), from O: it is still at O, too
//! ```
//!
//! An authentic datagram from N proves that the dialer sent it, but nothing about N: it may be a copy by an attacker
//! faster than the path. Both addresses are challenged (RFC 9000, sections 9.3 and 9.3.3), and the present one is used
//! meanwhile. If O answers, it is kept, whether N answers or not: otherwise an attacker who forwards challenges and
//! answers could insert himself. If only N answers, the listener moves to it. An answer is attributed to its source
//! address, even if a copy of it arrived earlier.

use super::cookie::Purpose;
use super::{OutgoingDatagram, Peer};
use crate::mtu::MtuSearch;
use crate::wire::{Body, Nonce};
use narrows_units::{Span, Time};
use std::net::SocketAddr;

/// Time between two challenges to an address: one per datagram would help an attacker who sends copies.
const ASK_GAP: Span = Span::from_ms(20);
/// Time to wait for an answer from a new address. With longer round trips the address is not followed; the dialer calls
/// again.
const PATIENCE: Span = Span::from_ms(1_000);
/// Minimum time that the present address has to answer after the new one has: five challenges, which all fail
/// (challenge or answer lost) once in 3 million times at 2.5 % loss each way.
const GRACE: Span = Span::from_ms(100);

/// The dialer seems to have moved.
#[derive(Clone, Copy, Debug)]
pub(super) struct AddressChange {
    since: Time,
    /// A new address that is to be challenged, and whether the present one is.
    ask_new: Option<SocketAddr>,
    ask_present: bool,
    /// The new address has answered: the listener moves to it at this time unless the present one answers, too.
    answered: Option<(SocketAddr, Time)>,
}

impl AddressChange {
    /// When the next action is due.
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

    /// Handles an answer. Returns whether it is relevant.
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
            // The present address takes about as long to answer as before, even if another is faster.
            let trip = self.round_trip.max(trip).min(PATIENCE);
            attempt.answered = Some((from, now + trip * 2 + GRACE));
        }
        true
    }

    /// Copied clock messages make round trips seem shorter, never longer, so the longest one is used for some seconds.
    pub(super) fn note_round_trip(&mut self, trip: Span) {
        let less = self.round_trip.saturating_sub(trip);
        self.round_trip = trip.max(self.round_trip.saturating_sub(less.scale(1, 16)));
    }

    fn stay(&mut self) {
        self.attempt = None;
        self.counts.moves_refused += 1;
    }

    /// Writes a due challenge, and moves if it is time.
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
