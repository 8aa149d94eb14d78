//! Wire format of messages: the payload of UDP datagrams, in network byte order.
//!
//! ```text
//! data  kind=1:8 flags:8 flow:16 floor_distance:32 number:64 offset:64 [ack_interval_us:32 if bit 1 of flags] payload...
//! ack   kind=2:8 ranges:8 arrivals:8 flags:8 delay_ns:32 largest:64 largest_arrived:64
//!       received:64 marked:64 [cumulative:64 if bit 0 of flags] then per range gap:32 length:32, then per arrival below:32 before_ns:32
//! media kind=3:8 flags:8 flow:16 content:16 zero:16 number:64 content... padding...
//! ```
//!
//! Bit 0 of the flags of data marks a retransmission. Bit 0 of the flags of a media message marks feedback; the scheme
//! defines the content.
//!
//! A range is encoded as its distance from the end of the range above it (the first one from `largest`) and its length;
//! an arrival as the distance of its number below `largest` and the time by which it arrived before `largest` (negative
//! if later, two's complement).

use crate::{Ack, Arrival, Body, Data, Header, Media, Range};
use narrows_units::{Span, Time};

/// IPv4 and UDP headers.
pub const IP_UDP: u32 = 28;
/// Header of a data packet, without the interval of acknowledgements.
pub const DATA_HEADER: u32 = 24;
/// Size of the interval of acknowledgements in a data packet that has one.
pub const ACK_INTERVAL: u32 = 4;
/// Header of a message of a real-time scheme.
pub const MEDIA_HEADER: u32 = 16;
/// Largest packet number and stream position, as in QUIC (RFC 9000, section 16): arithmetic on values from a peer
/// cannot overflow.
pub const MAX_NUMBER: u64 = (1 << 62) - 1;
const ACK_HEADER: u32 = 40;
const REPEATED: u8 = 1;
const WITH_INTERVAL: u8 = 2;
const KIND_DATA: u8 = 1;
const KIND_ACK: u8 = 2;
const KIND_MEDIA: u8 = 3;

/// Reason why bytes are not a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// The datagram is truncated.
    #[error("the datagram is too short")]
    Short,
    /// The first byte is not a known kind of message.
    #[error("the datagram has the unknown kind {0}")]
    Kind(u8),
    /// Ranges, arrivals or lengths are inconsistent with the header.
    #[error("the message contradicts itself")]
    Inconsistent,
}

/// Bytes of the header of a data packet: the offset of its payload.
#[inline]
pub fn data_header(data: &Data) -> u32 {
    DATA_HEADER
        + if data.ack_interval.is_some() {
            ACK_INTERVAL
        } else {
            0
        }
}

/// IP size of a message.
#[inline]
pub fn size(header: &Header, body: &Body) -> u32 {
    match header {
        Header::Data(data) => IP_UDP + data_header(data) + u32::from(data.length),
        Header::Ack(ack) => {
            let lists = body.ranges.len() + body.arrivals.len();
            IP_UDP + ACK_HEADER + 8 * (lists + usize::from(ack.cumulative.is_some())) as u32
        }
        Header::Media(media) => IP_UDP + MEDIA_HEADER + u32::from(media.length),
    }
}

/// True if a datagram is an acknowledgement or other feedback, by its first bytes alone.
#[inline]
pub fn is_ack(bytes: &[u8]) -> bool {
    match bytes {
        [KIND_ACK, ..] => true,
        [KIND_MEDIA, flags, ..] => flags & 1 != 0,
        _ => false,
    }
}

/// Writes a message of flow `flow` into `out` (cleared first). The payload of data is zeros.
pub fn encode(flow: u16, header: &Header, body: &Body, out: &mut Vec<u8>) {
    out.clear();
    match header {
        Header::Data(data) => {
            let repeated = if data.retransmission { REPEATED } else { 0 };
            let told = if data.ack_interval.is_some() {
                WITH_INTERVAL
            } else {
                0
            };
            out.extend([KIND_DATA, repeated | told]);
            out.extend(flow.to_be_bytes());
            let floor = u32::try_from(data.number - data.least_unacked.min(data.number));
            out.extend(floor.unwrap_or(u32::MAX).to_be_bytes());
            out.extend(data.number.to_be_bytes());
            out.extend(data.offset.to_be_bytes());
            if let Some(interval) = data.ack_interval {
                let us = u32::try_from(interval.ns() / 1000).unwrap_or(u32::MAX);
                out.extend(us.to_be_bytes());
            }
            out.resize(out.len() + usize::from(data.length), 0);
        }
        Header::Ack(ack) => {
            out.extend([
                KIND_ACK,
                body.ranges.len() as u8,
                body.arrivals.len() as u8,
                u8::from(ack.cumulative.is_some()),
            ]);
            out.extend(
                u32::try_from(ack.delay.ns())
                    .unwrap_or(u32::MAX)
                    .to_be_bytes(),
            );
            for field in [
                ack.largest,
                ack.largest_arrived.ns(),
                ack.received,
                ack.marked,
            ] {
                out.extend(field.to_be_bytes());
            }
            if let Some(cumulative) = ack.cumulative {
                out.extend(cumulative.to_be_bytes());
            }
            let mut above = ack.largest;
            for range in &body.ranges {
                out.extend(((above - range.last) as u32).to_be_bytes());
                out.extend(((range.last - range.first) as u32).to_be_bytes());
                above = range.first;
            }
            for arrival in &body.arrivals {
                out.extend((ack.largest.wrapping_sub(arrival.number) as u32).to_be_bytes());
                let before = ack.largest_arrived.ns().wrapping_sub(arrival.at.ns()) as i64;
                let before = before.clamp(i64::from(i32::MIN), i64::from(i32::MAX)) as i32;
                out.extend(before.to_be_bytes());
            }
        }
        Header::Media(media) => {
            let length = usize::from(media.length);
            let content = &body.bytes[..body.bytes.len().min(length)];
            out.extend([KIND_MEDIA, u8::from(media.feedback)]);
            out.extend(flow.to_be_bytes());
            out.extend((content.len() as u16).to_be_bytes());
            out.extend([0, 0]);
            out.extend(media.number.to_be_bytes());
            out.extend(content);
            out.resize(MEDIA_HEADER as usize + length, 0);
        }
    }
}

/// Reader of a message: the bytes still to be read.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a>(pub &'a [u8]);

impl Reader<'_> {
    /// Takes bytes from the front.
    ///
    /// # Errors
    /// [`WireError::Short`] when there are not as many left; so with the numbers below.
    pub fn take<const N: usize>(&mut self) -> Result<[u8; N], WireError> {
        let (head, rest) = self.0.split_first_chunk::<N>().ok_or(WireError::Short)?;
        self.0 = rest;
        Ok(*head)
    }

    /// Takes a number of one byte.
    ///
    /// # Errors
    /// See [`Reader::take`].
    pub fn u8(&mut self) -> Result<u8, WireError> {
        Ok(self.take::<1>()?[0])
    }

    /// Takes a number of two bytes, in network byte order.
    ///
    /// # Errors
    /// See [`Reader::take`].
    pub fn u16(&mut self) -> Result<u16, WireError> {
        Ok(u16::from_be_bytes(self.take()?))
    }

    /// Takes a number of four bytes, in network byte order.
    ///
    /// # Errors
    /// See [`Reader::take`].
    pub fn u32(&mut self) -> Result<u32, WireError> {
        Ok(u32::from_be_bytes(self.take()?))
    }

    /// Takes a number of eight bytes, in network byte order.
    ///
    /// # Errors
    /// See [`Reader::take`].
    pub fn u64(&mut self) -> Result<u64, WireError> {
        Ok(u64::from_be_bytes(self.take()?))
    }
}

/// Reads a message; its variable parts go to `body` (cleared first).
///
/// # Errors
/// If the bytes are not a message. Arbitrary bytes are safe.
pub fn decode(bytes: &[u8], body: &mut Body) -> Result<Header, WireError> {
    body.clear();
    let mut reader = Reader(bytes);
    match reader.u8()? {
        KIND_DATA => {
            let flags = reader.u8()?;
            reader.take::<2>()?;
            let below = reader.u32()?;
            let number = reader.u64()?;
            let offset = reader.u64()?;
            let ack_interval = if flags & WITH_INTERVAL != 0 {
                Some(Span::from_us(u64::from(reader.u32()?)))
            } else {
                None
            };
            let length = u16::try_from(reader.0.len()).map_err(|_| WireError::Inconsistent)?;
            if number > MAX_NUMBER || offset > MAX_NUMBER {
                return Err(WireError::Inconsistent);
            }
            let floor = number.saturating_sub(u64::from(below));
            Ok(Header::Data(Data {
                number,
                offset,
                least_unacked: floor,
                length,
                retransmission: flags & REPEATED != 0,
                ack_interval,
            }))
        }
        KIND_ACK => decode_ack(reader, body),
        KIND_MEDIA => {
            let feedback = reader.u8()? & 1 != 0;
            reader.take::<2>()?;
            let content = usize::from(reader.u16()?);
            reader.take::<2>()?;
            let number = reader.u64()?;
            let length = u16::try_from(reader.0.len()).map_err(|_| WireError::Inconsistent)?;
            let content = reader.0.get(..content).ok_or(WireError::Inconsistent)?;
            if number > MAX_NUMBER {
                return Err(WireError::Inconsistent);
            }
            body.bytes.extend_from_slice(content);
            Ok(Header::Media(Media {
                number,
                length,
                feedback,
            }))
        }
        kind => Err(WireError::Kind(kind)),
    }
}

fn decode_ack(mut reader: Reader<'_>, body: &mut Body) -> Result<Header, WireError> {
    let (ranges, arrivals) = (usize::from(reader.u8()?), usize::from(reader.u8()?));
    let has_cumulative = reader.u8()? & 1 != 0;
    let delay = Span::from_ns(u64::from(reader.u32()?));
    let largest = reader.u64()?;
    let largest_arrived = Time::from_ns(reader.u64()?);
    let (received, marked) = (reader.u64()?, reader.u64()?);
    if largest > MAX_NUMBER {
        return Err(WireError::Inconsistent);
    }
    if ranges > Body::MAX_RANGES || arrivals > Body::MAX_ARRIVALS {
        return Err(WireError::Inconsistent);
    }
    let cumulative = if has_cumulative {
        Some(reader.u64()?)
    } else {
        None
    };
    let mut above = largest;
    for index in 0..ranges {
        let (gap, length) = (u64::from(reader.u32()?), u64::from(reader.u32()?));
        // Ranges are separated by at least one missing number; the first one ends at `largest`.
        let valid = if index == 0 { gap == 0 } else { gap >= 2 };
        let last = above
            .checked_sub(gap)
            .filter(|_| valid)
            .ok_or(WireError::Inconsistent)?;
        let first = last.checked_sub(length).ok_or(WireError::Inconsistent)?;
        body.ranges.push(Range { first, last });
        above = first;
    }
    for _ in 0..arrivals {
        let below = u64::from(reader.u32()?);
        let before = reader.u32()? as i32;
        let number = largest.checked_sub(below).ok_or(WireError::Inconsistent)?;
        let at = Time::from_ns(largest_arrived.ns().wrapping_sub(i64::from(before) as u64));
        body.arrivals.push(Arrival { number, at });
    }
    Ok(Header::Ack(Ack {
        largest,
        delay,
        largest_arrived,
        received,
        marked,
        cumulative,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ack_strategy() -> impl Strategy<Value = (Header, Body)> {
        let lengths = prop::collection::vec((2u64..1000, 0u64..1000), 0..Body::MAX_RANGES);
        let arrivals = prop::collection::vec((0u64..1000, -1_000_000i64..1_000_000), 0..16);
        (
            lengths,
            arrivals,
            any::<u32>(),
            any::<u64>(),
            any::<u64>(),
            any::<Option<u64>>(),
        )
            .prop_map(|(lengths, arrivals, delay, received, marked, cumulative)| {
                let largest = 10_000_000;
                let mut body = Body::default();
                let mut above = largest;
                for (index, (gap, length)) in lengths.into_iter().enumerate() {
                    let last = above - if index == 0 { 0 } else { gap };
                    body.ranges.push(Range {
                        first: last - length,
                        last,
                    });
                    above = last - length;
                }
                let arrived = 1_000_000_000u64;
                body.arrivals
                    .extend(arrivals.into_iter().map(|(below, before)| Arrival {
                        number: largest - below,
                        at: Time::from_ns(arrived.wrapping_add_signed(-before)),
                    }));
                let ack = Ack {
                    largest,
                    delay: Span::from_ns(u64::from(delay)),
                    largest_arrived: Time::from_ns(arrived),
                    received,
                    marked,
                    cumulative,
                };
                (Header::Ack(ack), body)
            })
    }

    proptest! {
        #[test]
        fn acknowledgements_survive_the_wire((header, body) in ack_strategy()) {
            let mut bytes = Vec::new();
            encode(3, &header, &body, &mut bytes);
            prop_assert_eq!(bytes.len() as u32 + IP_UDP, size(&header, &body));
            let mut back = Body::default();
            prop_assert_eq!(decode(&bytes, &mut back), Ok(header));
            prop_assert_eq!(back, body);
        }

        #[test]
        fn data_survives_the_wire(number: u32, offset: u32, below in 0u64..100, length in 0u16..1448, retransmission: bool, interval: Option<u32>) {
            let number = u64::from(number) + 100;
            let ack_interval = interval.map(|us| Span::from_us(u64::from(us)));
            let data = Data { number, offset: u64::from(offset), least_unacked: number - below, length, retransmission, ack_interval };
            let mut bytes = Vec::new();
            encode(3, &Header::Data(data), &Body::default(), &mut bytes);
            prop_assert_eq!(bytes.len() as u32 + IP_UDP, size(&Header::Data(data), &Body::default()));
            prop_assert_eq!(decode(&bytes, &mut Body::default()), Ok(Header::Data(data)));
        }

        #[test]
        fn media_survives_the_wire(number in 0..=MAX_NUMBER, bytes in prop::collection::vec(any::<u8>(), 0..60), padding in 0u16..1400, feedback: bool) {
            let media = Header::Media(Media { number, length: bytes.len() as u16 + padding, feedback });
            let body = Body { bytes, ..Body::default() };
            let mut wire = Vec::new();
            encode(3, &media, &body, &mut wire);
            prop_assert_eq!(wire.len() as u32 + IP_UDP, size(&media, &body));
            prop_assert_eq!(is_ack(&wire), feedback);
            let mut back = Body::default();
            prop_assert_eq!(decode(&wire, &mut back), Ok(media));
            prop_assert_eq!(back, body);
        }

        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), kind in 0u8..4) {
            let mut bytes = bytes;
            if let Some(first) = bytes.first_mut() {
                *first = kind;
            }
            let mut body = Body::default();
            if let Ok(Header::Ack(ack)) = decode(&bytes, &mut body) {
                for range in &body.ranges {
                    prop_assert!(range.first <= range.last && range.last <= ack.largest);
                }
            }
        }
    }
}
