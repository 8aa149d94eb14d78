//! An attacker on the path who does not know the secret, but has recorded hellos of callers who do.

use super::path::{Path, socket};
use crate::common::tunnel::SECRET;
use narrows_tunnel::keys::{Key, Secret, Sender};
use narrows_tunnel::wire::{Body, ClockBody, Header, MAX_ID, VERSION, encode};
use narrows_units::{Stream, Time};
use std::net::UdpSocket;

/// The attacker and its material.
pub(crate) struct Attacker {
    chance: Stream,
    /// Not on the path.
    stranger: UdpSocket,
    wrong: Secret,
    right: Secret,
    /// Random bytes, of which pieces are sent.
    noise: Vec<u8>,
    round: u64,
    pub(crate) sent: u64,
}

impl Attacker {
    pub(crate) fn new() -> Attacker {
        let mut chance = Stream::new(7, "attacker");
        let noise = (0..1 << 13).flat_map(|_| chance.bits().to_le_bytes());
        Attacker {
            noise: noise.collect(),
            chance,
            stranger: socket(),
            wrong: Secret::new([9; 32]),
            right: Secret::parse(SECRET).unwrap(),
            round: 0,
            sent: 0,
        }
    }

    fn noise(&mut self, maximum: u64) -> Vec<u8> {
        let (length, from) = (
            self.chance.below(maximum) as usize,
            self.chance.below(1 << 15) as usize,
        );
        self.noise[from..from + length].to_vec()
    }

    /// One attack of each kind, to both ends.
    pub(crate) fn attack(&mut self, path: &Path) {
        self.round += 1;
        for to_listener in [true, false] {
            let noise = self.noise(1400);
            self.send(path, to_listener, &noise);
            let index = self.chance.below(1 << 40);
            let Some((went_to_listener, copy)) = path.copy(index) else {
                continue;
            };
            // Replays in the original direction, and reflections.
            path.send(went_to_listener, &copy);
            path.send(!went_to_listener, &copy);
            self.sent += 2;
            // Modified copies: one byte changed, truncated, and extended.
            let mut changed = copy.clone();
            let at = self.chance.below(changed.len() as u64) as usize;
            changed[at] ^= 1 + self.chance.below(255) as u8;
            self.send(path, to_listener, &changed);
            self.send(path, to_listener, &copy[..at]);
            let mut longer = copy.clone();
            longer.extend(self.noise(300));
            self.send(path, to_listener, &longer);
            self.forge(path, to_listener, &copy);
            if self.round.is_multiple_of(64) {
                self.rarely(path, to_listener, &longer);
            }
        }
    }

    /// All kinds of messages with keys from another secret, in the session of the copy.
    fn forge(&mut self, path: &Path, to_listener: bool, copy: &[u8]) {
        let sender = if to_listener {
            Sender::Dialer
        } else {
            Sender::Listener
        };
        let (dialer, listener) = ([1; 16], [2; 16]);
        let key = Key::of_session(&self.wrong, sender, &dialer, &listener);
        let session = u32::from_be_bytes([0, copy[1], copy[2], copy[3]]);
        let header = Header {
            session,
            id: self.chance.below(MAX_ID),
            sent: Time::from_ns(self.chance.below(1 << 62)),
        };
        let echo = Some((Time::from_ns(1), Time::from_ns(u64::MAX)));
        let clock = ClockBody {
            echo,
            largest: u32::MAX,
        };
        let mut bytes = Vec::new();
        for body in [Body::Packet(&copy[20..]), Body::Clock(clock), Body::Bye] {
            encode(header, &body, 0, &key, &mut bytes);
            self.send(path, to_listener, &bytes);
        }
        let key = Key::of_handshake(&self.wrong, sender);
        let header = Header {
            session: 0,
            ..header
        };
        let version = VERSION;
        for body in [
            Body::Hello { version, dialer },
            Body::Welcome {
                version,
                dialer,
                listener,
            },
        ] {
            encode(header, &body, 0, &key, &mut bytes);
            self.send(path, to_listener, &bytes);
        }
    }

    /// Oversized datagrams; and authentic but false messages: callers who have the secret and never continue, of this
    /// version and another, and unrequested answers.
    fn rarely(&mut self, path: &Path, to_listener: bool, start: &[u8]) {
        for size in [9_300, 20_000, 65_507] {
            let mut large = start.to_vec();
            large.resize(size, 0x5a);
            self.send(path, to_listener, &large);
        }
        let mut nonce = [0xee; 16];
        nonce[..8].copy_from_slice(&self.round.to_be_bytes());
        let header = Header {
            session: 0,
            id: 0,
            sent: Time::ZERO,
        };
        let mut bytes = Vec::new();
        for version in [VERSION, 9] {
            let (dialer, listener) = (nonce, nonce);
            let hello = Body::Hello { version, dialer };
            let welcome = Body::Welcome {
                version,
                dialer,
                listener,
            };
            for (sender, body) in [(Sender::Dialer, hello), (Sender::Listener, welcome)] {
                let key = Key::of_handshake(&self.right, sender);
                encode(header, &body, 0, &key, &mut bytes);
                self.send(path, to_listener, &bytes);
            }
        }
    }

    fn send(&mut self, path: &Path, to_listener: bool, bytes: &[u8]) {
        let target = if to_listener {
            Some(path.listener)
        } else {
            path.dialer()
        };
        if let Some(target) = target {
            let _ = self.stranger.send_to(bytes, target);
            self.sent += 1;
        }
    }
}
