//! Hello and welcome: how two ends come to a session.

use super::{Outgoing, Peer, Received, Refusal, Role};
use crate::keys::{Key, Secret, Sender};
use crate::window::Window;
use crate::wire::{self, Body, Nonce, VERSION};
use narrows_units::Time;
use std::net::SocketAddr;

/// What two ends share after a handshake.
#[derive(Clone, Debug)]
pub(super) struct Session {
    pub(super) number: u32,
    dialer: Nonce,
    listener: Nonce,
    pub(super) send: Key,
    receive: Key,
    pub(super) window: Window,
}

impl Session {
    fn new(secret: &Secret, us: Sender, dialer: Nonce, listener: Nonce) -> Session {
        let send = Key::of_session(secret, us, &dialer, &listener);
        let receive = Key::of_session(secret, us.other(), &dialer, &listener);
        // Any number that both ends find; it only tells sessions apart.
        let both = Key::of_session(secret, Sender::Dialer, &dialer, &listener);
        let number = u64::from_be_bytes(both.tag(b"number")) as u32 & 0x00ff_ffff;
        Session {
            number: number.max(1),
            dialer,
            listener,
            send,
            receive,
            window: Window::default(),
        }
    }

    pub(super) fn vouches_for(&self, number: u32, bytes: &[u8]) -> bool {
        self.number == number && self.receive.is_authentic(bytes)
    }
}

impl Peer {
    pub(super) fn shake_hands(
        &mut self,
        now: Time,
        from: SocketAddr,
        bytes: &[u8],
    ) -> Received<'static> {
        if !self.handshake_receive.is_authentic(bytes) {
            return Received::Refused(Refusal::Forged);
        }
        match (self.config.role, wire::decode(bytes)) {
            (Role::Listener, Ok((_, Body::Hello { version, dialer }))) => {
                self.greet(from, version, dialer)
            }
            (
                Role::Dialer(_),
                Ok((
                    _,
                    Body::Welcome {
                        version,
                        dialer,
                        listener,
                    },
                )),
            ) => {
                // A welcome to another call is old.
                if self.calling != Some(dialer) {
                    return Received::Refused(Refusal::Replayed);
                }
                if version != VERSION {
                    self.incompatible = Some(version);
                    return Received::Refused(Refusal::Incompatible);
                }
                self.calling = None;
                let us = Sender::Dialer;
                let session = Session::new(&self.config.secret, us, dialer, listener);
                self.open(now, Some(session));
                Received::Control
            }
            _ => Received::Refused(Refusal::Malformed),
        }
    }

    fn greet(&mut self, from: SocketAddr, version: u8, dialer: Nonce) -> Received<'static> {
        if version != VERSION {
            self.incompatible = Some(version);
            // It learns our version from the answer.
            self.answer = Some((from, dialer, [0; 16]));
            return Received::Refused(Refusal::Incompatible);
        }
        if self
            .session
            .as_ref()
            .is_some_and(|session| session.dialer == dialer)
        {
            // The call that has led to this session, late or again.
            return Received::Refused(Refusal::Replayed);
        }
        // The same call again means that our answer was lost; another call needs another nonce.
        let listener = match &self.pending {
            Some(pending) if pending.dialer == dialer => pending.listener,
            _ => {
                let listener = self.fresh_nonce();
                let us = Sender::Listener;
                let session = Session::new(&self.config.secret, us, dialer, listener);
                self.pending = Some(session);
                listener
            }
        };
        self.answer = Some((from, dialer, listener));
        Received::Control
    }

    pub(super) fn write_handshake(
        &mut self,
        now: Time,
        to: SocketAddr,
        body: &Body<'_>,
        out: &mut Vec<u8>,
    ) -> Outgoing {
        let header = self.header(0, now);
        wire::encode(header, body, 0, &self.handshake_send, out);
        Outgoing {
            to,
            id: header.id,
            in_session: false,
        }
    }

    pub(super) fn fresh_nonce(&mut self) -> Nonce {
        self.nonces += 1;
        let mut nonce = [0; 16];
        nonce[..8].copy_from_slice(&self.config.salt.to_be_bytes());
        nonce[8..].copy_from_slice(&self.nonces.to_be_bytes());
        nonce
    }
}
