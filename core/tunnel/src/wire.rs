//! Datagrams of the tunnel as bytes, in network byte order.
//!
//! ```text
//! kind:8 session:24 id:64 sent_ns:64 body... tag:64
//!
//! hello      kind=1  version:8 zero:56 nonce:128 zero:128            session=0
//! welcome    kind=2  version:8 zero:56 nonce:128 nonce:128           session=0   (the dialer's, the listener's)
//! confirm    kind=3  the same
//! accept     kind=4  the same
//! packet     kind=5  an IP packet
//! clock      kind=6  echo_sent:64 echo_arrived:64 largest:32 zero... (any length: also used to try sizes)
//! bye        kind=7
//! challenge  kind=8  cookie:128
//! response   kind=9  cookie:128
//! ```
//!
//! The sender increments `id` for every datagram, and never repeats one. `sent_ns` is a reading of the sender's clock.
//! A clock message returns the send and arrival times of the latest datagram from the other end, which yields four
//! stamps, and the size of the largest datagram that has arrived. All messages of the handshake have the same length,
//! and a challenge is shorter than the datagram that causes it, so an end cannot be abused to amplify traffic towards a
//! third party. Hello and welcome are the same in all versions, so that each end can report the version of the other.

use crate::keys::{Key, TAG};
use narrows_units::Time;

/// Version of the protocol; ends of different versions do not communicate.
pub const VERSION: u8 = 2;
/// Bytes before the body.
pub const HEADER: usize = 20;
/// Bytes around the body.
pub const OVERHEAD: usize = HEADER + TAG;
/// Largest id (as in the transport): incrementing it cannot overflow.
pub const MAX_ID: u64 = (1 << 62) - 1;
/// Bytes of the body of messages of the handshake.
pub const HANDSHAKE: usize = 40;
/// Bytes of the body of a clock message that is not padded.
pub const CLOCK: usize = 20;
/// Bytes of the body of challenge and response.
const COOKIE: usize = 16;

const KIND_HELLO: u8 = 1;
const KIND_WELCOME: u8 = 2;
const KIND_CONFIRM: u8 = 3;
const KIND_ACCEPT: u8 = 4;
const KIND_PACKET: u8 = 5;
const KIND_CLOCK: u8 = 6;
const KIND_BYE: u8 = 7;
const KIND_CHALLENGE: u8 = 8;
const KIND_RESPONSE: u8 = 9;

/// A number that is never used twice, or a cookie.
pub type Nonce = [u8; 16];

/// First bytes of every datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Low bits of the session number; 0 in the handshake.
    pub session: u32,
    /// Number of the datagram.
    pub id: u64,
    /// When it was sent, by the sender's clock.
    pub sent: Time,
}

/// Kind of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body<'a> {
    /// The dialer calls.
    Hello {
        /// Its protocol version.
        version: u8,
        /// Its nonce.
        dialer: Nonce,
    },
    /// The listener answers.
    Welcome {
        /// Its protocol version.
        version: u8,
        /// The nonce of the hello.
        dialer: Nonce,
        /// The listener's nonce.
        listener: Nonce,
    },
    /// The dialer has received the welcome with these nonces.
    Confirm {
        /// The nonce of the hello.
        dialer: Nonce,
        /// The nonce of the welcome.
        listener: Nonce,
    },
    /// The listener has opened the session of these nonces.
    Accept {
        /// The nonce of the hello.
        dialer: Nonce,
        /// The nonce of the welcome.
        listener: Nonce,
    },
    /// An IP packet, as it was.
    Packet(&'a [u8]),
    /// Stamps.
    Clock(ClockBody),
    /// The sender ends the session.
    Bye,
    /// The listener asks the receiver to return this from its address.
    Challenge(Nonce),
    /// The dialer returns it.
    Response(Nonce),
}

/// Body of a clock message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClockBody {
    /// The times of the latest datagram from the other end: sent by the other end's clock, and
    /// arrived by this end's.
    pub echo: Option<(Time, Time)>,
    /// Size in bytes of the largest datagram that has arrived, including the tunnel's header and tag but not those of
    /// UDP and IP.
    pub largest: u32,
}

/// Reason why bytes are not a datagram of the tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// They are truncated.
    #[error("the datagram is too short")]
    Short,
    /// The first byte is not a known kind.
    #[error("the datagram has the unknown kind {0}")]
    Kind(u8),
    /// A field has an invalid value.
    #[error("the datagram contradicts itself")]
    Inconsistent,
}

/// The session that a datagram claims to belong to, and whether it is part of the handshake. Nothing has been verified
/// at this point.
#[inline]
pub fn claim(bytes: &[u8]) -> Result<(u32, bool), WireError> {
    if bytes.len() < OVERHEAD {
        return Err(WireError::Short);
    }
    let word = u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    let kind = bytes[0];
    if !(KIND_HELLO..=KIND_RESPONSE).contains(&kind) {
        return Err(WireError::Kind(kind));
    }
    Ok((word & 0x00ff_ffff, kind <= KIND_ACCEPT))
}

/// Reads a datagram whose tag has been verified.
///
/// # Errors
/// If the bytes are not a datagram. Arbitrary bytes are safe.
#[inline]
pub fn decode(bytes: &[u8]) -> Result<(Header, Body<'_>), WireError> {
    let (session, _) = claim(bytes)?;
    let id = word(bytes, 4);
    let sent = Time::from_ns(word(bytes, 12));
    if id > MAX_ID {
        return Err(WireError::Inconsistent);
    }
    let body = &bytes[HEADER..bytes.len() - TAG];
    let header = Header { session, id, sent };
    let body = match bytes[0] {
        KIND_PACKET => Body::Packet(body),
        KIND_CLOCK => {
            if body.len() < CLOCK {
                return Err(WireError::Short);
            }
            let (sent, arrived) = (word(body, 0), word(body, 8));
            let largest = u32::from_be_bytes([body[16], body[17], body[18], body[19]]);
            // Clocks count from the start of a machine and never read zero.
            let echo = (sent != 0 || arrived != 0)
                .then_some((Time::from_ns(sent), Time::from_ns(arrived)));
            Body::Clock(ClockBody { echo, largest })
        }
        KIND_BYE => Body::Bye,
        kind @ (KIND_CHALLENGE | KIND_RESPONSE) => {
            if body.len() < COOKIE {
                return Err(WireError::Short);
            }
            if kind == KIND_CHALLENGE {
                Body::Challenge(nonce(body, 0))
            } else {
                Body::Response(nonce(body, 0))
            }
        }
        kind => {
            if body.len() < HANDSHAKE {
                return Err(WireError::Short);
            }
            let (version, dialer, listener) = (body[0], nonce(body, 8), nonce(body, 24));
            match kind {
                KIND_HELLO => Body::Hello { version, dialer },
                KIND_CONFIRM => Body::Confirm { dialer, listener },
                KIND_ACCEPT => Body::Accept { dialer, listener },
                _ => Body::Welcome {
                    version,
                    dialer,
                    listener,
                },
            }
        }
    };
    Ok((header, body))
}

/// Writes a datagram into `out` (cleared first). A clock message is made at least `size` bytes long; `size` is ignored
/// for the others.
pub fn encode(header: Header, body: &Body<'_>, size: usize, key: &Key, out: &mut Vec<u8>) {
    out.clear();
    out.resize(HEADER, 0);
    let kind = match body {
        Body::Hello { version, dialer } => {
            put_handshake(out, KIND_HELLO, *version, dialer, &[0; 16])
        }
        Body::Welcome {
            version,
            dialer,
            listener,
        } => put_handshake(out, KIND_WELCOME, *version, dialer, listener),
        Body::Confirm { dialer, listener } => {
            put_handshake(out, KIND_CONFIRM, VERSION, dialer, listener)
        }
        Body::Accept { dialer, listener } => {
            put_handshake(out, KIND_ACCEPT, VERSION, dialer, listener)
        }
        Body::Packet(packet) => {
            out.extend_from_slice(packet);
            KIND_PACKET
        }
        Body::Clock(clock) => {
            let (sent, arrived) = clock.echo.unwrap_or_default();
            out.extend(sent.ns().to_be_bytes());
            out.extend(arrived.ns().to_be_bytes());
            out.extend(clock.largest.to_be_bytes());
            out.resize(out.len().max(size.saturating_sub(TAG)), 0);
            KIND_CLOCK
        }
        Body::Bye => KIND_BYE,
        Body::Challenge(cookie) => {
            out.extend(cookie);
            KIND_CHALLENGE
        }
        Body::Response(cookie) => {
            out.extend(cookie);
            KIND_RESPONSE
        }
    };
    write_header(&mut out[..HEADER], kind, header);
    let tag = key.tag(out);
    out.extend(tag);
}

/// Appends the body common to all handshake messages; returns the kind.
fn put_handshake(out: &mut Vec<u8>, kind: u8, version: u8, dialer: &Nonce, listener: &Nonce) -> u8 {
    out.extend([version, 0, 0, 0, 0, 0, 0, 0]);
    out.extend(dialer);
    out.extend(listener);
    kind
}

/// Turns a buffer that holds an IP packet between space for the header and the tag into a datagram, without copying the
/// packet.
///
/// # Panics
/// If the buffer is shorter than header and tag.
#[inline]
pub fn seal_packet(header: Header, key: &Key, buffer: &mut [u8]) {
    write_header(&mut buffer[..HEADER], KIND_PACKET, header);
    let (content, room) = buffer.split_at_mut(buffer.len() - TAG);
    room.copy_from_slice(&key.tag(content));
}

#[inline]
fn write_header(out: &mut [u8], kind: u8, header: Header) {
    let first = (u32::from(kind) << 24) | (header.session & 0x00ff_ffff);
    out[..4].copy_from_slice(&first.to_be_bytes());
    out[4..12].copy_from_slice(&header.id.to_be_bytes());
    out[12..20].copy_from_slice(&header.sent.ns().to_be_bytes());
}

/// The caller has checked the length.
#[inline]
fn word(bytes: &[u8], at: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[at..at + 8]);
    u64::from_be_bytes(word)
}

/// The caller has checked the length.
fn nonce(bytes: &[u8], at: usize) -> Nonce {
    let mut nonce = [0; 16];
    nonce.copy_from_slice(&bytes[at..at + 16]);
    nonce
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::{Secret, Sender};
    use proptest::prelude::*;

    fn key() -> Key {
        Key::of_handshake(&Secret::new([7; 32]), Sender::Dialer)
    }

    fn round_trip(header: Header, body: &Body<'_>, size: usize) -> Result<usize, TestCaseError> {
        let mut bytes = Vec::new();
        encode(header, body, size, &key(), &mut bytes);
        prop_assert!(key().is_authentic(&bytes));
        prop_assert_eq!(decode(&bytes), Ok((header, *body)));
        Ok(bytes.len())
    }

    proptest! {
        #[test]
        fn datagrams_survive_the_wire(
            session in 0u32..1 << 24,
            id in 0..=MAX_ID,
            sent: u64,
            packet in prop::collection::vec(any::<u8>(), 0..100),
            (dialer, listener) in any::<(Nonce, Nonce)>(),
            echo in prop::option::of((1u64.., any::<u64>())),
            largest: u32,
            size in 0usize..300,
            version: u8,
        ) {
            let header = Header { session, id, sent: Time::from_ns(sent) };
            let echo = echo.map(|(a, b)| (Time::from_ns(a), Time::from_ns(b)));
            let hello = round_trip(header, &Body::Hello { version, dialer }, size)?;
            let welcome = round_trip(header, &Body::Welcome { version, dialer, listener }, size)?;
            let confirm = round_trip(header, &Body::Confirm { dialer, listener }, size)?;
            let accept = round_trip(header, &Body::Accept { dialer, listener }, size)?;
            prop_assert_eq!([hello, confirm, accept], [welcome; 3]);
            let challenge = round_trip(header, &Body::Challenge(dialer), size)?;
            prop_assert_eq!(challenge, round_trip(header, &Body::Response(dialer), size)?);
            let clock = round_trip(header, &Body::Clock(ClockBody { echo, largest }), size)?;
            prop_assert_eq!(clock, size.max(OVERHEAD + CLOCK));
            round_trip(header, &Body::Bye, size)?;
            let length = round_trip(header, &Body::Packet(&packet), size)?;
            prop_assert_eq!(length, packet.len() + OVERHEAD);
            // The same bytes without copying.
            let (mut copied, mut sealed) = (Vec::new(), vec![0xff; length]);
            encode(header, &Body::Packet(&packet), 0, &key(), &mut copied);
            sealed[HEADER..length - TAG].copy_from_slice(&packet);
            seal_packet(header, &key(), &mut sealed);
            prop_assert_eq!(copied, sealed);
        }

        #[test]
        fn any_bytes_are_read_or_refused(kind in 0u8..12, mut bytes in prop::collection::vec(any::<u8>(), 0..120)) {
            if let Some(first) = bytes.first_mut() {
                *first = kind;
            }
            if let Ok((header, _)) = decode(&bytes) {
                prop_assert!(header.id <= MAX_ID && bytes.len() >= OVERHEAD);
            }
        }

        #[test]
        fn a_changed_byte_is_noticed(
            packet in prop::collection::vec(any::<u8>(), 0..60),
            place: prop::sample::Index,
            change in 1u8..,
        ) {
            let header = Header { session: 1, id: 2, sent: Time::from_ns(3) };
            let mut bytes = Vec::new();
            encode(header, &Body::Packet(&packet), 0, &key(), &mut bytes);
            let at = place.index(bytes.len());
            bytes[at] ^= change;
            prop_assert!(!key().is_authentic(&bytes));
            bytes[at] ^= change;
            bytes.pop();
            prop_assert!(!key().is_authentic(&bytes));
        }
    }
}
