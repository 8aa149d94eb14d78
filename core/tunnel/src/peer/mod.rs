//! One end of a tunnel: the handshake, and the authentication of later datagrams.
//!
//! ```text
//!   dialer                                                            listener
//!   hello(dialer's nonce)            -- key of the secret -->
//!                                    <-- key of the secret --   welcome(both nonces)
//!   confirm(both nonces)             -- key of the secret -->   now the session is open here
//!   and here                         <-- key of the secret --   accept(both nonces)
//!   clock, packets                   <-- keys of the session --> clock, packets
//! ```
//!
//! A hello can be a copy of an old one. Therefore the listener keeps no state for it: its nonce is a cookie that only
//! reaches the caller's address and is valid for some seconds, until a session opens. Returning it opens a session and
//! closes the previous one. The dialer is open when it learns that the listener is, and repeats its call until then. It
//! always sends to its configured address, and calls again when it has received nothing for some time. It may be behind
//! an address translator that changes its mapping: the listener follows it (`path`).
//!
//! Every arrival is counted, and a rejected datagram changes nothing but a counter.

mod cookie;
mod counts;
mod handshake;
mod path;
#[cfg(test)]
mod tests;
mod types;

use crate::keys::Key;
use crate::mtu::MtuSearch;
use crate::replay_window::ReplayVerdict;
use crate::wire::{self, Body, ClockBody, Header, MAX_ID, Nonce, VERSION};
use cookie::Cookies;
pub use counts::{DatagramRefusal, PeerCounts};
use handshake::{HandshakeAnswers, TunnelSession};
use narrows_units::{Span, Time};
use path::AddressChange;
use std::net::SocketAddr;
pub use types::{ClockExchange, OutgoingDatagram, PeerConfig, PeerState, ReceivedDatagram, Role};

/// Time between two hellos.
const HELLO_GAP: Span = Span::from_ms(250);
/// Time between clock messages while sizes are tried, and between farewells.
const SEARCH_GAP: Span = Span::from_ms(10);

/// Number of times the end of a session is announced, as such messages are not answered: with three, one in a million
/// is missed at 1 % loss.
const FAREWELLS: u8 = 3;
/// Pending challenges to this end's address. A listener sends two at a time.
const ASKED: usize = 4;

/// One end of a tunnel.
#[derive(Clone, Debug)]
pub struct Peer {
    config: PeerConfig,
    handshake_send: Key,
    handshake_receive: Key,
    nonces: u64,
    next_id: u64,
    session: Option<TunnelSession>,
    cookies: Cookies,
    answers: HandshakeAnswers,
    /// For a dialer: its nonce while it calls.
    calling: Option<Nonce>,
    next_hello: Time,
    /// Where to send.
    to: Option<SocketAddr>,
    /// For a listener: the dialer seems to have moved.
    attempt: Option<AddressChange>,
    next_ask: Time,
    /// For a dialer: the challenges to return from its present address.
    asked: Vec<Nonce>,
    /// The longest recent round trip.
    round_trip: Span,
    next_clock: Time,
    last_heard: Time,
    /// The newest datagram: when it was sent and when it arrived.
    echo: Option<(Time, Time)>,
    /// Largest datagram that has arrived.
    largest: u32,
    search: Option<MtuSearch>,
    /// Farewells still to be sent.
    farewells: u8,
    ended: bool,
    incompatible: Option<u8>,
    counts: PeerCounts,
}

impl Peer {
    /// An end without a session.
    pub fn new(config: PeerConfig, now: Time) -> Self {
        let us = config.role.sender();
        let mut peer = Peer {
            handshake_send: Key::of_handshake(&config.secret, us),
            handshake_receive: Key::of_handshake(&config.secret, us.other()),
            cookies: Cookies::new(&config),
            answers: HandshakeAnswers::new(config.salt),
            config,
            nonces: 0,
            next_id: 0,
            session: None,
            calling: None,
            next_hello: now,
            to: None,
            attempt: None,
            next_ask: now,
            asked: Vec::with_capacity(ASKED),
            round_trip: Span::ZERO,
            next_clock: now,
            last_heard: now,
            echo: None,
            largest: 0,
            search: None,
            farewells: 0,
            ended: false,
            incompatible: None,
            counts: PeerCounts::default(),
        };
        if let Role::Dialer(to) = peer.config.role {
            peer.to = Some(to);
            peer.calling = Some(peer.fresh_nonce());
        }
        peer
    }

    /// Its state.
    pub fn state(&self) -> PeerState {
        match (&self.session, self.incompatible) {
            _ if self.ended => PeerState::Ended,
            (Some(_), _) => PeerState::Open,
            (None, Some(version)) => PeerState::Incompatible(version),
            (None, None) => PeerState::Waiting,
        }
    }

    /// Counters of what arrived and what was refused.
    pub fn counts(&self) -> &PeerCounts {
        &self.counts
    }

    /// Destination of datagrams, once it is known.
    pub fn to(&self) -> Option<SocketAddr> {
        self.to
    }

    /// When a datagram of the other end last arrived.
    pub fn last_heard(&self) -> Time {
        self.last_heard
    }

    /// The search for the path's largest datagram size, once a session exists.
    pub fn search(&self) -> Option<&MtuSearch> {
        self.search.as_ref()
    }

    /// Ends the session; [`Peer::transmit`] announces that to the other end.
    pub fn close(&mut self) {
        if self.session.is_some() && !self.ended {
            self.farewells = FAREWELLS;
            self.next_clock = Time::ZERO;
        }
        self.ended = true;
        self.calling = None;
    }

    /// Turns `buffer`, which holds an IP packet between [`wire::HEADER`] and [`TAG`](crate::keys::TAG) bytes, into a
    /// datagram; returns its destination and number, or `None` without a session.
    ///
    /// # Panics
    /// If the buffer is shorter than that.
    #[inline]
    pub fn seal(&mut self, now: Time, buffer: &mut [u8]) -> Option<(SocketAddr, u64)> {
        if self.ended {
            return None;
        }
        let (session, to) = (self.session.as_ref()?, self.to?);
        let id = self.next_id;
        let header = Header {
            session: session.number,
            id,
            sent: now,
        };
        wire::seal_packet(header, &session.send, buffer);
        self.next_id = following(id);
        Some((to, id))
    }

    /// Handles a datagram that arrived.
    #[inline]
    pub fn receive<'a>(
        &mut self,
        arrived: Time,
        from: SocketAddr,
        bytes: &'a [u8],
    ) -> ReceivedDatagram<'a> {
        let received = self.judge(arrived, from, bytes);
        match received {
            ReceivedDatagram::Refused(refusal) => self.counts.refuse(refusal),
            ReceivedDatagram::Packet { packet, .. } => {
                self.counts.packets += 1;
                self.counts.bytes += packet.len() as u64;
            }
            ReceivedDatagram::Clock { .. } | ReceivedDatagram::Control => self.counts.messages += 1,
        }
        received
    }

    fn judge<'a>(
        &mut self,
        arrived: Time,
        from: SocketAddr,
        bytes: &'a [u8],
    ) -> ReceivedDatagram<'a> {
        let Ok((number, is_handshake)) = wire::claim(bytes) else {
            return ReceivedDatagram::Refused(DatagramRefusal::Malformed);
        };
        if is_handshake {
            return self.shake_hands(arrived, from, bytes);
        }
        let Some(session) = self
            .session
            .as_mut()
            .filter(|session| session.number == number)
        else {
            return ReceivedDatagram::Refused(DatagramRefusal::UnknownSession);
        };
        if !session.vouches_for(bytes) {
            return ReceivedDatagram::Refused(DatagramRefusal::Forged);
        }
        let Ok((header, body)) = wire::decode(bytes) else {
            return ReceivedDatagram::Refused(DatagramRefusal::Malformed);
        };
        let is_newest = session.window.is_newest(header.id);
        match session.window.check_and_mark(header.id) {
            ReplayVerdict::New => {}
            ReplayVerdict::Again => return self.came_again(arrived, from, &body),
            ReplayVerdict::TooOld => return ReceivedDatagram::Refused(DatagramRefusal::TooOld),
        }
        self.last_heard = arrived;
        self.largest = self.largest.max(bytes.len() as u32);
        if is_newest {
            self.echo = Some((header.sent, arrived));
            if self.to != Some(from) && self.config.role == Role::Listener {
                self.appeared_at(arrived, from);
            }
        }
        let Header { id, sent, .. } = header;
        match body {
            Body::Packet(packet) => ReceivedDatagram::Packet { id, sent, packet },
            Body::Clock(clock) => self.compare_clocks(id, sent, arrived, &clock),
            Body::Bye => {
                self.ended = true;
                self.farewells = 0;
                ReceivedDatagram::Control
            }
            Body::Challenge(cookie) => {
                if self.config.role != Role::Listener && self.asked.len() < ASKED {
                    self.asked.push(cookie);
                }
                ReceivedDatagram::Control
            }
            Body::Response(cookie) => {
                self.answered_from(arrived, from, &cookie);
                ReceivedDatagram::Control
            }
            // Handshakes were handled above.
            Body::Hello { .. }
            | Body::Welcome { .. }
            | Body::Confirm { .. }
            | Body::Accept { .. } => ReceivedDatagram::Control,
        }
    }

    /// Either this or an earlier datagram is a copy. For a response its source address matters.
    #[cold]
    fn came_again(
        &mut self,
        arrived: Time,
        from: SocketAddr,
        body: &Body<'_>,
    ) -> ReceivedDatagram<'static> {
        match body {
            Body::Response(cookie) if self.answered_from(arrived, from, cookie) => {
                ReceivedDatagram::Control
            }
            _ => ReceivedDatagram::Refused(DatagramRefusal::Replayed),
        }
    }

    fn compare_clocks(
        &mut self,
        id: u64,
        sent: Time,
        arrived: Time,
        clock: &ClockBody,
    ) -> ReceivedDatagram<'static> {
        if let Some(search) = &mut self.search {
            search.confirm(clock.largest);
        }
        let exchange = clock.echo.map(|(ours, arrived_there)| ClockExchange {
            sent: ours,
            arrived_there,
            sent_there: sent,
            arrived,
        });
        // A returned stamp of this end cannot lie in the future.
        if exchange.is_some_and(|exchange| exchange.sent > arrived) {
            return ReceivedDatagram::Refused(DatagramRefusal::Implausible);
        }
        if let Some(exchange) = &exchange {
            let there = exchange.sent_there.since(exchange.arrived_there);
            let trip = arrived.since(exchange.sent).saturating_sub(there);
            self.note_round_trip(trip);
        }
        ReceivedDatagram::Clock { id, sent, exchange }
    }

    fn open(&mut self, now: Time, session: TunnelSession) {
        self.session = Some(session);
        self.attempt = None;
        self.asked.clear();
        self.ended = false;
        self.incompatible = None;
        self.echo = None;
        self.largest = 0;
        self.last_heard = now;
        self.next_clock = now;
        self.counts.sessions += 1;
        self.search = self
            .to
            .map(|to| MtuSearch::new(to.ip(), self.config.interface_mtu));
    }

    /// Writes the next due datagram of the protocol itself into `out`, if any. Call it until it returns `None`, after
    /// each [`Peer::receive`] and at [`Peer::next_wakeup`].
    pub fn transmit(&mut self, now: Time, out: &mut Vec<u8>) -> Option<OutgoingDatagram> {
        if let Some((to, body)) = self.answers.next() {
            return Some(self.write_handshake(now, to, &body, out));
        }
        self.call_again_after_silence(now);
        if let (Some(dialer), Some(to)) = (self.calling, self.to) {
            if now < self.next_hello {
                return None;
            }
            self.next_hello = now + HELLO_GAP;
            let version = VERSION;
            return Some(self.write_handshake(now, to, &Body::Hello { version, dialer }, out));
        }
        let to = self.to?;
        self.session.as_ref()?;
        if let Some(cookie) = self.asked.pop() {
            return self.write(now, to, &Body::Response(cookie), 0, out);
        }
        if let Some(question) = self.ask(now, out) {
            return Some(question);
        }
        if now < self.next_clock || (self.ended && self.farewells == 0) {
            return None;
        }
        if self.ended {
            self.farewells -= 1;
            self.next_clock = now + SEARCH_GAP;
            return self.write(now, to, &Body::Bye, 0, out);
        }
        let size = self.search.as_mut().and_then(MtuSearch::next_size);
        let gap = if size.is_some() {
            SEARCH_GAP
        } else {
            self.config.clock_gap
        };
        self.next_clock = now + gap;
        let body = Body::Clock(ClockBody {
            echo: self.echo,
            largest: self.largest,
        });
        self.write(now, to, &body, size.unwrap_or(0), out)
    }

    /// When [`Peer::transmit`] should be called next, unless something arrives earlier.
    pub fn next_wakeup(&self) -> Time {
        if !(self.answers.is_empty() && self.asked.is_empty()) {
            return Time::ZERO;
        }
        if self.calling.is_some() {
            return self.next_hello;
        }
        match (&self.session, self.to) {
            (Some(_), Some(_)) if self.ended && self.farewells == 0 => Time::FAR,
            (Some(_), Some(_)) => match &self.attempt {
                Some(attempt) => self.next_clock.min(attempt.wakeup(self.next_ask)),
                None => self.next_clock,
            },
            _ => Time::FAR,
        }
    }

    fn call_again_after_silence(&mut self, now: Time) {
        let is_dialer = matches!(self.config.role, Role::Dialer(_));
        let silent = now.since(self.last_heard) > self.config.silence;
        if is_dialer && self.session.is_some() && silent && !self.ended {
            self.session = None;
            self.search = None;
            self.asked.clear();
            self.calling = Some(self.fresh_nonce());
            self.next_hello = now;
        }
    }

    fn write(
        &mut self,
        now: Time,
        to: SocketAddr,
        body: &Body<'_>,
        size: usize,
        out: &mut Vec<u8>,
    ) -> Option<OutgoingDatagram> {
        let number = self.session.as_ref()?.number;
        let header = self.header(number, now);
        let session = self.session.as_ref()?;
        wire::encode(header, body, size, &session.send, out);
        Some(OutgoingDatagram {
            to,
            id: header.id,
            // Challenges validate the path and are not part of the measurement.
            in_session: !matches!(body, Body::Challenge(_) | Body::Response(_)),
        })
    }

    fn header(&mut self, session: u32, now: Time) -> Header {
        let id = self.next_id;
        self.next_id = following(id);
        Header {
            session,
            id,
            sent: now,
        }
    }
}

/// Ids are never exhausted: at a billion per second they last for a century.
#[inline]
fn following(id: u64) -> u64 {
    debug_assert!(id < MAX_ID);
    id + 1
}
