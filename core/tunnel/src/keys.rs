//! Keys: a secret that both ends know, and what is derived from it.
//!
//! The tag of a datagram is `SipHash-2-4` (Aumasson and Bernstein, "SipHash: a fast short-input PRF",
//! 2012) of all its other bytes: a keyed pseudo-random function with a key of 128 bits and a tag of
//! 64. It is made for being computed for every packet, and a nonce cannot be used twice, because
//! it needs none. Contents are not encrypted: what a laboratory sends is no secret.
//!
//! Keys are SHA-256 of the secret, a label and the nonces of the session. Each direction has its
//! own, so that nothing can be sent back to where it came from.

use sha2::{Digest, Sha256};
use siphasher::sip::SipHasher24;
use std::fmt;

/// Bytes of a tag.
pub const TAG: usize = 8;

/// The shared secret of a tunnel's ends: 256 random bits.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret([u8; 32]);

/// Why text is not a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the secret of a tunnel is 64 hexadecimal digits; make one with 32 bytes of /dev/urandom")]
pub struct BadSecret;

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Secrets do not belong into messages.
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
    /// When the text is anything else.
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

/// Who sends: the two directions of a tunnel have different keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sender {
    /// The end that calls.
    Dialer,
    /// The end that waits for the call.
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
    /// For the messages of the handshake, which agree on the nonces.
    pub fn of_handshake(secret: &Secret, sender: Sender) -> Key {
        Key::derive(secret, "handshake", sender, &[])
    }

    /// For all others. Both ends contribute a nonce that they have never used before, so what was
    /// recorded in another session is worth nothing in this one.
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

    /// For what one process gives out to have it back.
    pub(crate) fn of_cookies(secret: &Secret, salt: u64) -> Key {
        Key::derive(secret, "cookie", Sender::Listener, &salt.to_be_bytes())
    }

    fn derive(secret: &Secret, label: &str, sender: Sender, context: &[u8]) -> Key {
        let mut hash = Sha256::new();
        // All parts but the last have a fixed length or an end that is told apart by the byte
        // behind it, so that no two inputs are the same bytes.
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

    /// True if `bytes` end in the tag of what stands before it.
    #[inline]
    pub fn is_authentic(&self, bytes: &[u8]) -> bool {
        let Some((content, tag)) = bytes.split_last_chunk::<TAG>() else {
            return false;
        };
        // One comparison of 64 bits: it takes the same time wherever the difference is.
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
