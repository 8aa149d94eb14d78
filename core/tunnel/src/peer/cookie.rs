//! Cookies: tokens that an end sends to an address and expects back from it, without keeping state.
//!
//! ```text
//! cookie   issued_ns:64 tag:64
//! ```
//!
//! The tag covers the time and purpose of the cookie, the address and the session, with a key that only the issuer has.
//! A peer that returns it receives datagrams at that address, or did so recently. (The stateless tokens of RFC 9000,
//! section 8.1.2, are made like this.)

use super::types::PeerConfig;
use crate::keys::Key;
use crate::wire::Nonce;
use narrows_units::{Span, Time};
use std::net::{IpAddr, SocketAddr};

/// Purpose of a cookie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// Opening a session. Each session that is opened invalidates all cookies issued before it.
    TunnelSession(u64),
    /// Following the dialer to another address.
    Path,
}

/// Bytes covered by the tag: purpose, count, when, what for, address and port.
const CONTENT: usize = 1 + 8 + 8 + 16 + 16 + 2;

/// Issues and verifies cookies.
#[derive(Clone, Debug)]
pub(super) struct Cookies(Key);

impl Cookies {
    pub(super) fn new(config: &PeerConfig) -> Cookies {
        Cookies(Key::of_cookies(&config.secret, config.salt))
    }

    /// A cookie for an address; `about` is the associated nonce.
    pub(super) fn issue(
        &self,
        purpose: Purpose,
        now: Time,
        to: SocketAddr,
        about: &Nonce,
    ) -> Nonce {
        let mut content = [0; CONTENT];
        let (kind, count) = match purpose {
            Purpose::TunnelSession(count) => (0, count),
            Purpose::Path => (1, 0),
        };
        content[0] = kind;
        content[1..9].copy_from_slice(&count.to_be_bytes());
        content[9..17].copy_from_slice(&now.ns().to_be_bytes());
        content[17..33].copy_from_slice(about);
        let ip = match to.ip() {
            IpAddr::V4(ip) => ip.to_ipv6_mapped(),
            IpAddr::V6(ip) => ip,
        };
        content[33..49].copy_from_slice(&ip.octets());
        content[49..].copy_from_slice(&to.port().to_be_bytes());
        let mut cookie = [0; 16];
        cookie[..8].copy_from_slice(&now.ns().to_be_bytes());
        cookie[8..].copy_from_slice(&self.0.tag(&content));
        cookie
    }

    /// When a cookie was issued, if it was issued to that address no longer than `life` ago.
    pub(super) fn issued(
        &self,
        purpose: Purpose,
        now: Time,
        life: Span,
        from: SocketAddr,
        about: &Nonce,
        cookie: &Nonce,
    ) -> Option<Time> {
        let (mut word, mut tag) = ([0; 8], [0; 8]);
        word.copy_from_slice(&cookie[..8]);
        tag.copy_from_slice(&cookie[8..]);
        let issued = Time::from_ns(u64::from_be_bytes(word));
        let ours = self.issue(purpose, issued, from, about);
        // One comparison of 64 bits, as for tags of datagrams.
        let same = u64::from_be_bytes(tag) == u64::from_be_bytes(*ours.last_chunk()?);
        (same && now.since(issued) <= life).then_some(issued)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Role;
    use super::*;
    use crate::keys::Secret;

    fn cookies(salt: u64) -> Cookies {
        Cookies::new(&PeerConfig {
            role: Role::Listener,
            secret: Secret::new([1; 32]),
            salt,
            clock_gap: Span::from_ms(100),
            silence: Span::from_ms(1_000),
            interface_mtu: 1500,
        })
    }

    #[test]
    fn a_cookie_is_good_for_one_purpose_address_and_time() {
        let (ours, address) = (cookies(1), |text: &str| text.parse::<SocketAddr>().unwrap());
        let (at, life, about) = (Time::from_ns(5_000_000), Span::from_ms(10), [3; 16]);
        let home = address("192.0.2.1:7000");
        let opens = Purpose::TunnelSession(4);
        let cookie = ours.issue(opens, at, home, &about);
        let check = |cookies: &Cookies, purpose, now, from, about: &Nonce, cookie: &Nonce| {
            cookies.issued(purpose, now, life, from, about, cookie)
        };
        // Also with a stamp that is slightly too early.
        for now in [at, at + life, Time::ZERO] {
            assert_eq!(check(&ours, opens, now, home, &about, &cookie), Some(at));
        }
        let late = at + life + Span::from_ns(1);
        assert_eq!(check(&ours, opens, late, home, &about, &cookie), None);
        for purpose in [Purpose::TunnelSession(5), Purpose::Path] {
            assert_eq!(check(&ours, purpose, at, home, &about, &cookie), None);
        }
        for other in ["192.0.2.1:7001", "192.0.2.2:7000", "[2001:db8::1]:7000"] {
            assert_eq!(
                check(&ours, opens, at, address(other), &about, &cookie),
                None
            );
        }
        assert_eq!(check(&ours, opens, at, home, &[4; 16], &cookie), None);
        assert_eq!(
            check(&cookies(2), opens, at, home, &about, &cookie),
            None,
            "another process"
        );
        for byte in 0..cookie.len() {
            let mut changed = cookie;
            changed[byte] ^= 1;
            assert_eq!(check(&ours, opens, at, home, &about, &changed), None);
        }
    }
}
