//! Keys: a secret shared by both ends, and the keys derived from it.
//!
//! The tag of a datagram is `SipHash-2-4` (Aumasson and Bernstein, "SipHash: a fast short-input PRF",
//! 2012) of all its other bytes: a keyed pseudo-random function with a key of 128 bits and a tag of
//! 64. It is cheap enough for every packet, and a nonce cannot be reused, because it needs none. Contents are not
//!     encrypted: the traffic of a laboratory is not secret.
//!
//! Keys are SHA-256 of the secret, a label and the nonces of the session. Each direction has a separate key, so that a
//! datagram cannot be reflected to its sender.

use sha2::{Digest, Sha256};
use siphasher::sip::SipHasher24;
use std::fmt;

/// Bytes of a tag.
pub const TAG: usize = 8;

/// The shared secret of a tunnel's ends: 256 random bits.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret([u8; 32]);

/// Reason why a text is not a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the secret of a tunnel is 64 hexadecimal digits; make one with 32 bytes of /dev/urandom")]
pub struct BadSecret;

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Secrets must not appear in messages.
        f.write_str("Secret")
    }
}

impl Secret {
    /// The secret with these bytes.
    pub const fn new(bytes: [u8; 32]) -> Self {
        Secret(bytes)
    }

    /// Reads 64 hexadecimal digits; blanks around them are ignored.
    ///
    /// # Errors
    /// If the text has any other form.
    pub fn parse(text: &str) -> Result<Self, BadSecret> {
        let digits = text.trim().as_bytes();
        if digits.len() != 64 {
            return Err(BadSecret);
        }
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            let digit = |character: u8| (character as char).to_digit(16).ok_or(BadSecret);
            *byte = ((digit(pair[0])? << 4) | digit(pair[1])?) as u8;
        }
        Ok(Secret(bytes))
    }
}

/// The sending end: the two directions of a tunnel have different keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sender {
    /// The end that calls.
    Dialer,
    /// The end that listens.
    Listener,
}

impl Sender {
    /// The other one.
    pub const fn other(self) -> Self {
        match self {
            Sender::Dialer => Sender::Listener,
            Sender::Listener => Sender::Dialer,
        }
    }
}

/// The key of one direction.
#[derive(Clone)]
pub struct Key(SipHasher24);

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key")
    }
}

impl Key {
    /// The key of handshake messages, which exchange the nonces.
    pub fn of_handshake(secret: &Secret, sender: Sender) -> Key {
        Key::derive(secret, "handshake", sender, &[])
    }

    /// The key of all other messages. Both ends contribute a fresh nonce, so datagrams recorded in another session are
    /// invalid in this one.
    pub fn of_session(
        secret: &Secret,
        sender: Sender,
        dialer: &[u8; 16],
        listener: &[u8; 16],
    ) -> Key {
        let mut nonces = [0; 32];
        nonces[..16].copy_from_slice(dialer);
        nonces[16..].copy_from_slice(listener);
        Key::derive(secret, "session", sender, &nonces)
    }

    /// The key of tokens that a process issues and verifies itself.
    pub(crate) fn of_cookies(secret: &Secret, salt: u64) -> Key {
        Key::derive(secret, "cookie", Sender::Listener, &salt.to_be_bytes())
    }

    fn derive(secret: &Secret, label: &str, sender: Sender, context: &[u8]) -> Key {
        let mut hash = Sha256::new();
        // All parts but the last have a fixed length or an unambiguous terminator, so that no two inputs produce the
        // same bytes.
        hash.update(b"narrows tunnel 1 ");
        hash.update(label.as_bytes());
        hash.update([0, sender as u8]);
        hash.update(secret.0);
        hash.update(context);
        let mut key = [0; 16];
        key.copy_from_slice(&hash.finalize()[..16]);
        Key(SipHasher24::new_with_key(&key))
    }

    /// The tag of `bytes`.
    #[inline]
    pub fn tag(&self, bytes: &[u8]) -> [u8; TAG] {
        self.0.hash(bytes).to_be_bytes()
    }

    /// True if `bytes` end in the tag of the preceding bytes.
    #[inline]
    pub fn is_authentic(&self, bytes: &[u8]) -> bool {
        let Some((content, tag)) = bytes.split_last_chunk::<TAG>() else {
            return false;
        };
        // One comparison of 64 bits: it takes constant time.
        u64::from_be_bytes(self.tag(content)) == u64::from_be_bytes(*tag)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_those_of_the_published_example() {
        // Aumasson and Bernstein 2012, appendix A: key 00..0f, message 00..0e.
        let key: Vec<u8> = (0..16).collect();
        let message: Vec<u8> = (0..15).collect();
        let hasher = SipHasher24::new_with_key(key.as_slice().try_into().unwrap());
        let tag = Key(hasher).tag(&message);
        assert_eq!(u64::from_be_bytes(tag), 0xa129_ca61_49be_45e5);
    }

    #[test]
    fn every_key_is_another() {
        let (a, b) = (Secret::new([1; 32]), Secret::new([2; 32]));
        let (x, y) = ([3; 16], [4; 16]);
        let tags: Vec<_> = [
            Key::of_handshake(&a, Sender::Dialer),
            Key::of_handshake(&a, Sender::Listener),
            Key::of_handshake(&b, Sender::Dialer),
            Key::of_session(&a, Sender::Dialer, &x, &y),
            Key::of_session(&a, Sender::Listener, &x, &y),
            Key::of_session(&a, Sender::Dialer, &y, &x),
            Key::of_session(&b, Sender::Dialer, &x, &y),
            Key::of_cookies(&a, 1),
            Key::of_cookies(&a, 2),
            Key::of_cookies(&b, 1),
        ]
        .iter()
        .map(|key| key.tag(b"the same bytes"))
        .collect();
        for (index, tag) in tags.iter().enumerate() {
            assert!(!tags[..index].contains(tag), "key {index}");
        }
    }

    #[test]
    fn secrets_are_read_and_never_shown() {
        let secret = Secret::parse(&format!(" {}\n", "0f".repeat(32))).unwrap();
        assert_eq!(secret, Secret::new([15; 32]));
        assert_eq!(format!("{secret:?}"), "Secret");
        for bad in [
            "",
            "0f",
            &"0g".repeat(32),
            &"0f".repeat(33),
            &"é".repeat(32),
        ] {
            assert_eq!(Secret::parse(bad), Err(BadSecret), "{bad}");
        }
    }
}
