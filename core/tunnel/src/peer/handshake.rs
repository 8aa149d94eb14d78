//! The handshake that opens a session: hello, welcome, confirm, accept.

use super::cookie::Purpose;
use super::{DatagramRefusal, OutgoingDatagram, Peer, ReceivedDatagram, Role};
use crate::keys::{Key, Secret, Sender};
use crate::replay_window::ReplayWindow;
use crate::wire::{self, Body, Nonce, VERSION};
use narrows_units::{Span, Stream, Time};
use std::net::SocketAddr;

/// Longest time in which a dialer returns the cookie of a welcome. Round trips are shorter, and a datagram held back by
/// an attacker soon becomes worthless.
const LIFE: Span = Span::from_ms(10_000);
/// Answers that may wait to be sent. More calls than that in one turn are a flood.
const WAITING: usize = 16;

/// State shared by two ends after a handshake.
#[derive(Clone, Debug)]
pub(super) struct TunnelSession {
    pub(super) number: u32,
    dialer: Nonce,
    pub(super) listener: Nonce,
    pub(super) send: Key,
    receive: Key,
    pub(super) window: ReplayWindow,
}

impl TunnelSession {
    fn new(secret: &Secret, us: Sender, dialer: Nonce, listener: Nonce) -> TunnelSession {
        let send = Key::of_session(secret, us, &dialer, &listener);
        let receive = Key::of_session(secret, us.other(), &dialer, &listener);
        // A number computed by both ends; it only distinguishes sessions.
        let both = Key::of_session(secret, Sender::Dialer, &dialer, &listener);
        let number = u64::from_be_bytes(both.tag(b"number")) as u32 & 0x00ff_ffff;
        TunnelSession {
            number: number.max(1),
            dialer,
            listener,
            send,
            receive,
            window: ReplayWindow::default(),
        }
    }

    #[inline]
    pub(super) fn vouches_for(&self, bytes: &[u8]) -> bool {
        self.receive.is_authentic(bytes)
    }
}

/// Answers to calls, before there is a session.
#[derive(Clone, Debug)]
pub(super) struct HandshakeAnswers {
    waiting: Vec<(SocketAddr, Body<'static>)>,
    /// Calls of this turn, including those displaced.
    count: u64,
    chance: Stream,
}

impl HandshakeAnswers {
    pub(super) fn new(salt: u64) -> HandshakeAnswers {
        HandshakeAnswers {
            waiting: Vec::with_capacity(WAITING),
            count: 0,
            chance: Stream::new(salt, "answers"),
        }
    }

    /// If there are more than can wait, each has the same chance: a flood of calls delays an honest one, and does not
    /// shut it out.
    fn add(&mut self, to: SocketAddr, body: Body<'static>) {
        self.count += 1;
        if self.waiting.len() < WAITING {
            self.waiting.push((to, body));
            return;
        }
        let place = self.chance.below(self.count) as usize;
        if let Some(waiting) = self.waiting.get_mut(place) {
            *waiting = (to, body);
        }
    }

    pub(super) fn next(&mut self) -> Option<(SocketAddr, Body<'static>)> {
        let next = self.waiting.pop();
        if next.is_none() {
            self.count = 0;
        }
        next
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
}

impl Peer {
    #[cold]
    pub(super) fn shake_hands(
        &mut self,
        now: Time,
        from: SocketAddr,
        bytes: &[u8],
    ) -> ReceivedDatagram<'static> {
        if !self.handshake_receive.is_authentic(bytes) {
            return ReceivedDatagram::Refused(DatagramRefusal::Forged);
        }
        let Ok((_, body)) = wire::decode(bytes) else {
            return ReceivedDatagram::Refused(DatagramRefusal::Malformed);
        };
        let shaken = match (self.config.role, body) {
            (Role::Listener, Body::Hello { version, dialer }) => {
                self.greet(now, from, version, dialer)
            }
            (Role::Listener, Body::Confirm { dialer, listener }) => {
                self.confirm(now, from, dialer, listener)
            }
            (
                Role::Dialer(to),
                Body::Welcome {
                    version,
                    dialer,
                    listener,
                },
            ) => self.welcomed(to, version, dialer, listener),
            (Role::Dialer(_), Body::Accept { dialer, listener }) => {
                self.accepted(now, dialer, listener)
            }
            _ => Err(DatagramRefusal::Malformed),
        };
        match shaken {
            Ok(()) => ReceivedDatagram::Control,
            Err(refusal) => ReceivedDatagram::Refused(refusal),
        }
    }

    /// A hello may be a copy of an old one. No state is kept for it: all that a session needs is in the cookie sent to
    /// the caller as the listener's nonce.
    fn greet(
        &mut self,
        now: Time,
        from: SocketAddr,
        version: u8,
        dialer: Nonce,
    ) -> Result<(), DatagramRefusal> {
        let welcome = |listener| Body::Welcome {
            version: VERSION,
            dialer,
            listener,
        };
        if version != VERSION {
            self.incompatible = Some(version);
            // It learns our version from the answer.
            self.answers.add(from, welcome([0; 16]));
            return Err(DatagramRefusal::Incompatible);
        }
        if self.is_answered_again(from, dialer)? {
            return Ok(());
        }
        let purpose = Purpose::TunnelSession(self.counts.sessions);
        let listener = self.cookies.issue(purpose, now, from, &dialer);
        self.answers.add(from, welcome(listener));
        Ok(())
    }

    /// The peer has the secret, has seen our fresh nonce and is at the address to which we sent it: this opens a
    /// session.
    fn confirm(
        &mut self,
        now: Time,
        from: SocketAddr,
        dialer: Nonce,
        listener: Nonce,
    ) -> Result<(), DatagramRefusal> {
        if self.is_answered_again(from, dialer)? {
            return Ok(());
        }
        let purpose = Purpose::TunnelSession(self.counts.sessions);
        self.cookies
            .issued(purpose, now, LIFE, from, &dialer, &listener)
            .ok_or(DatagramRefusal::Replayed)?;
        let session = TunnelSession::new(&self.config.secret, Sender::Listener, dialer, listener);
        self.counts.moves += u64::from(self.to.is_some_and(|to| to != from));
        self.to = Some(from);
        self.open(now, session);
        self.answers.add(from, Body::Accept { dialer, listener });
        Ok(())
    }

    /// The call that opened the present session is repeated. Until something arrives in the session, the dialer may not
    /// know of it. After that the call is stale.
    fn is_answered_again(
        &mut self,
        from: SocketAddr,
        dialer: Nonce,
    ) -> Result<bool, DatagramRefusal> {
        let Some(session) = self
            .session
            .as_ref()
            .filter(|session| session.dialer == dialer)
        else {
            return Ok(false);
        };
        if self.ended || !session.window.is_empty() {
            return Err(DatagramRefusal::Replayed);
        }
        let listener = session.listener;
        self.answers.add(from, Body::Accept { dialer, listener });
        Ok(true)
    }

    fn welcomed(
        &mut self,
        to: SocketAddr,
        version: u8,
        dialer: Nonce,
        listener: Nonce,
    ) -> Result<(), DatagramRefusal> {
        // A welcome to another call is stale.
        if self.calling != Some(dialer) {
            return Err(DatagramRefusal::Replayed);
        }
        if version != VERSION {
            self.incompatible = Some(version);
            return Err(DatagramRefusal::Incompatible);
        }
        self.answers.add(to, Body::Confirm { dialer, listener });
        Ok(())
    }

    /// The listener has opened the session.
    fn accepted(
        &mut self,
        now: Time,
        dialer: Nonce,
        listener: Nonce,
    ) -> Result<(), DatagramRefusal> {
        if self.calling != Some(dialer) {
            return Err(DatagramRefusal::Replayed);
        }
        self.calling = None;
        let session = TunnelSession::new(&self.config.secret, Sender::Dialer, dialer, listener);
        self.open(now, session);
        Ok(())
    }

    pub(super) fn write_handshake(
        &mut self,
        now: Time,
        to: SocketAddr,
        body: &Body<'_>,
        out: &mut Vec<u8>,
    ) -> OutgoingDatagram {
        let header = self.header(0, now);
        wire::encode(header, body, 0, &self.handshake_send, out);
        OutgoingDatagram {
            to,
            id: header.id,
            in_session: false,
        }
    }

    /// For a dialer; those of a listener are cookies.
    pub(super) fn fresh_nonce(&mut self) -> Nonce {
        self.nonces += 1;
        let mut nonce = [0; 16];
        nonce[..8].copy_from_slice(&self.config.salt.to_be_bytes());
        nonce[8..].copy_from_slice(&self.nonces.to_be_bytes());
        nonce
    }
}
