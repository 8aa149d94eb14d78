//! One end of a tunnel: the handshake, and whom to believe afterwards.
//!
//! ```text
//!   dialer                                                            listener
//!   hello(dialer's nonce)            -- key of the secret -->
//!                                    <-- key of the secret --   welcome(both nonces)
//!   clock, packets                   -- key of the session -->  now the session is open here, too
//!                                    <-- key of the session --  clock, packets
//! ```
//!
//! A hello can be a copy of an old one. Therefore it changes nothing at the listener but to
//! prepare a session with a nonce never used before; only what is authentic in that new session opens
//! it and closes the one before. The listener sends to where the newest authentic datagram came
//! from, so the dialer may be behind an address translator that changes its mind. The dialer always
//! sends to the address that it was given, and calls again when it has heard nothing for some time.
//!
//! Whatever arrives is counted, and everything that is not believed changes nothing but a counter.

mod counts;
mod handshake;
#[cfg(test)]
mod tests;
mod types;

use crate::keys::Key;
use crate::size::Search;
use crate::window::Seen;
use crate::wire::{self, Body, ClockBody, Header, LARGEST_ID, Nonce, VERSION};
pub use counts::{Counts, Refusal};
use handshake::Session;
use narrows_units::{Span, Time};
use std::net::SocketAddr;
pub use types::{Config, Exchange, Outgoing, Received, Role, State};

/// Time between two hellos.
const HELLO_GAP: Span = Span::from_ms(250);
/// Time between clock messages while sizes are tried, and between farewells.
const SEARCH_GAP: Span = Span::from_ms(10);

/// How often the end of a session is told, as long as nobody answers such a message: with three,
/// one in a million is missed at 1 % loss.
const FAREWELLS: u8 = 3;

/// One end of a tunnel.
#[derive(Clone, Debug)]
pub struct Peer {
    config: Config,
    handshake_send: Key,
    handshake_receive: Key,
    nonces: u64,
    next_id: u64,
    session: Option<Session>,
    /// Of a listener: prepared for who has said hello.
    pending: Option<Session>,
    /// Of a listener: where a welcome is due, with our version if the caller's is another one.
    answer: Option<(SocketAddr, Nonce, Nonce)>,
    /// Of a dialer: its nonce while it calls.
    calling: Option<Nonce>,
    next_hello: Time,
    /// Where to send.
    to: Option<SocketAddr>,
    next_clock: Time,
    last_heard: Time,
    /// The newest datagram: when it was sent and when it arrived.
    echo: Option<(Time, Time)>,
    /// Largest datagram that has arrived.
    largest: u32,
    search: Option<Search>,
    /// Farewells that are still to be sent.
    farewells: u8,
    ended: bool,
    incompatible: Option<u8>,
    counts: Counts,
}

impl Peer {
    /// An end that does not know the other one yet.
    pub fn new(config: Config, now: Time) -> Self {
        let us = config.role.sender();
        let mut peer = Peer {
            handshake_send: Key::of_handshake(&config.secret, us),
            handshake_receive: Key::of_handshake(&config.secret, us.other()),
            config,
            nonces: 0,
            next_id: 0,
            session: None,
            pending: None,
            answer: None,
            calling: None,
            next_hello: now,
            to: None,
            next_clock: now,
            last_heard: now,
            echo: None,
            largest: 0,
            search: None,
            farewells: 0,
            ended: false,
            incompatible: None,
            counts: Counts::default(),
        };
        if let Role::Dialer(to) = peer.config.role {
            peer.to = Some(to);
            peer.calling = Some(peer.fresh_nonce());
        }
        peer
    }

    /// How far it has come.
    pub fn state(&self) -> State {
        match (&self.session, self.incompatible) {
            _ if self.ended => State::Ended,
            (Some(_), _) => State::Open,
            (None, Some(version)) => State::Incompatible(version),
            (None, None) => State::Waiting,
        }
    }

    /// What has arrived and what was refused.
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Where datagrams go, once that is known.
    pub fn to(&self) -> Option<SocketAddr> {
        self.to
    }

    /// When the other end was last heard.
    pub fn last_heard(&self) -> Time {
        self.last_heard
    }

    /// The search for the path's largest size, once there is a session.
    pub fn search(&self) -> Option<&Search> {
        self.search.as_ref()
    }

    /// Ends the session; [`Peer::transmit`] tells the other end.
    pub fn close(&mut self) {
        if self.session.is_some() && !self.ended {
            self.farewells = FAREWELLS;
            self.next_clock = Time::ZERO;
        }
        self.ended = true;
        self.calling = None;
    }

    /// Makes a datagram of `buffer`, which holds an IP packet behind [`wire::HEADER`] bytes and
    /// before [`TAG`](crate::keys::TAG) bytes; returns where to send it and its number. `None`: there is no session.
    ///
    /// # Panics
    /// When the buffer is shorter than that.
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

    /// A datagram has arrived.
    #[inline]
    pub fn receive<'a>(
        &mut self,
        arrived: Time,
        from: SocketAddr,
        bytes: &'a [u8],
    ) -> Received<'a> {
        let received = self.judge(arrived, from, bytes);
        match received {
            Received::Refused(refusal) => self.counts.refuse(refusal),
            Received::Packet { packet, .. } => {
                self.counts.packets += 1;
                self.counts.bytes += packet.len() as u64;
            }
            Received::Clock { .. } | Received::Control => self.counts.messages += 1,
        }
        received
    }

    fn judge<'a>(&mut self, arrived: Time, from: SocketAddr, bytes: &'a [u8]) -> Received<'a> {
        let Ok((number, is_handshake)) = wire::claim(bytes) else {
            return Received::Refused(Refusal::Malformed);
        };
        if is_handshake {
            return self.shake_hands(arrived, from, bytes);
        }
        if let Err(refusal) = self.admit(arrived, number, bytes) {
            return Received::Refused(refusal);
        }
        let Ok((header, body)) = wire::decode(bytes) else {
            return Received::Refused(Refusal::Malformed);
        };
        let Some(session) = &mut self.session else {
            return Received::Refused(Refusal::UnknownSession);
        };
        let is_newest = session.window.is_newest(header.id);
        match session.window.note(header.id) {
            Seen::New => {}
            Seen::Again => return Received::Refused(Refusal::Replayed),
            Seen::TooOld => return Received::Refused(Refusal::TooOld),
        }
        self.last_heard = arrived;
        self.largest = self.largest.max(bytes.len() as u32);
        if is_newest {
            self.echo = Some((header.sent, arrived));
            if self.config.role == Role::Listener && self.to != Some(from) {
                self.move_to(from);
            }
        }
        let Header { id, sent, .. } = header;
        match body {
            Body::Packet(packet) => Received::Packet { id, sent, packet },
            Body::Clock(clock) => {
                if let Some(search) = &mut self.search {
                    search.confirm(clock.largest);
                }
                let exchange = clock.echo.map(|(ours, arrived_there)| Exchange {
                    sent: ours,
                    arrived_there,
                    sent_there: sent,
                    arrived,
                });
                // What we are said to have sent cannot lie ahead of us.
                if exchange.is_some_and(|exchange| exchange.sent > arrived) {
                    return Received::Refused(Refusal::Implausible);
                }
                Received::Clock { id, sent, exchange }
            }
            Body::Bye => {
                self.ended = true;
                self.farewells = 0;
                Received::Control
            }
            // Handshakes were dealt with above.
            Body::Hello { .. } | Body::Welcome { .. } => Received::Control,
        }
    }

    /// Whether a datagram is authentic in a session; one that is prepared opens with it.
    fn admit(&mut self, now: Time, number: u32, bytes: &[u8]) -> Result<(), Refusal> {
        if self
            .session
            .as_ref()
            .is_some_and(|session| session.vouches_for(number, bytes))
        {
            return Ok(());
        }
        if self
            .pending
            .as_ref()
            .is_some_and(|pending| pending.vouches_for(number, bytes))
        {
            let pending = self.pending.take();
            self.open(now, pending);
            return Ok(());
        }
        let is_known = |session: &Option<Session>| {
            session
                .as_ref()
                .is_some_and(|session| session.number == number)
        };
        if is_known(&self.session) || is_known(&self.pending) {
            Err(Refusal::Forged)
        } else {
            Err(Refusal::UnknownSession)
        }
    }

    fn open(&mut self, now: Time, session: Option<Session>) {
        self.session = session;
        self.ended = false;
        self.incompatible = None;
        self.echo = None;
        self.largest = 0;
        self.last_heard = now;
        self.next_clock = now;
        self.counts.sessions += 1;
        self.search = self
            .to
            .map(|to| Search::new(to.ip(), self.config.interface_mtu));
    }

    fn move_to(&mut self, to: SocketAddr) {
        self.counts.moves += u64::from(self.to.is_some());
        self.to = Some(to);
        self.search = Some(Search::new(to.ip(), self.config.interface_mtu));
    }

    /// Writes the next datagram that is due by itself into `out`, if any. Call it until there is
    /// none, after each [`Peer::receive`] and at [`Peer::next_wakeup`].
    pub fn transmit(&mut self, now: Time, out: &mut Vec<u8>) -> Option<Outgoing> {
        if let Some((to, dialer, listener)) = self.answer.take() {
            let body = Body::Welcome {
                version: VERSION,
                dialer,
                listener,
            };
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
        if now < self.next_clock || (self.ended && self.farewells == 0) {
            return None;
        }
        if self.ended {
            self.farewells -= 1;
            self.next_clock = now + SEARCH_GAP;
            return self.write(now, to, &Body::Bye, 0, out);
        }
        let size = self.search.as_mut().and_then(Search::next_size);
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

    /// When [`Peer::transmit`] should be called next, if nothing arrives before.
    pub fn next_wakeup(&self) -> Time {
        if self.answer.is_some() {
            return Time::ZERO;
        }
        if self.calling.is_some() {
            return self.next_hello;
        }
        match (&self.session, self.to) {
            (Some(_), Some(_)) if self.ended && self.farewells == 0 => Time::FAR,
            (Some(_), Some(_)) => self.next_clock,
            _ => Time::FAR,
        }
    }

    fn call_again_after_silence(&mut self, now: Time) {
        let is_dialer = matches!(self.config.role, Role::Dialer(_));
        let silent = now.since(self.last_heard) > self.config.silence;
        if is_dialer && self.session.is_some() && silent && !self.ended {
            self.session = None;
            self.search = None;
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
    ) -> Option<Outgoing> {
        let number = self.session.as_ref()?.number;
        let header = self.header(number, now);
        let session = self.session.as_ref()?;
        wire::encode(header, body, size, &session.send, out);
        Some(Outgoing {
            to,
            id: header.id,
            in_session: true,
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

/// Ids never come to their end: at a billion per second they last for a century.
#[inline]
fn following(id: u64) -> u64 {
    debug_assert!(id < LARGEST_ID);
    id + 1
}
