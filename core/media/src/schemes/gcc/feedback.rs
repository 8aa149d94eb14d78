//! Feedback of the receiver: arrival times of all packets, missing packets, and requests for a key frame.
//!
//! ```text
//! arrivals  kind=1:8 zero:8 count:16 base:64 sent_ns:64 reference_ns:64 then per packet ticks:16
//! missing   kind=2:8 zero:8 count:16 base:64 then per packet above_base:16
//! key       kind=3:8
//! ```
//!
//! Arrivals use the numbers of all messages; missing packets use the sequence numbers of the media. A tick is 250 us,
//! counted from the previous packet that arrived (for the first one from `reference`); the most negative value means
//! that the packet has not arrived. `sent` is when the message was written, by the same clock.

use narrows_transport::wire::{Reader, WireError};
use narrows_units::{Span, Time};
use std::collections::VecDeque;

/// Packets in one message: with these it fits into the minimum path MTU of 576 bytes.
pub(super) const MAX_PACKETS: usize = 240;
/// Length of a request for a key frame: RTCP's picture loss indication.
pub(super) const KEY_LENGTH: u16 = 12;
const TICK: i64 = 250_000;
const MISSING: i16 = i16::MIN;
/// Maximum number of remembered arrivals.
const REMEMBERED: usize = 2048;
/// A packet this far above all others restarts the numbering.
const FAR: u64 = 8192;

/// A message of the receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GccMessage<'a> {
    Arrivals { base: u64, sent: Time, reference: Time, ticks: &'a [u8] },
    Missing { base: u64, above: &'a [u8] },
    Key,
}

impl GccMessage<'_> {
    pub(super) fn read(bytes: &[u8]) -> Result<GccMessage<'_>, WireError> {
        let mut reader = Reader(bytes);
        let kind = reader.u8()?;
        if kind == 3 {
            return Ok(GccMessage::Key);
        }
        reader.u8()?;
        let length = 2 * usize::from(reader.u16()?);
        let base = reader.u64()?;
        match kind {
            1 => Ok(GccMessage::Arrivals {
                base,
                sent: Time::from_ns(reader.u64()?),
                reference: Time::from_ns(reader.u64()?),
                ticks: reader.0.get(..length).ok_or(WireError::Short)?,
            }),
            2 => Ok(GccMessage::Missing { base, above: reader.0.get(..length).ok_or(WireError::Short)? }),
            kind => Err(WireError::Kind(kind)),
        }
    }
}

/// The packets of a message of arrivals: number and time in ns.
pub(super) fn arrivals(base: u64, reference: Time, ticks: &[u8]) -> impl Iterator<Item = (u64, Option<u64>)> {
    let mut at = reference.ns();
    let pairs = ticks.chunks_exact(2).map(|pair| i16::from_be_bytes([pair[0], pair[1]]));
    (0u64..).zip(pairs).map(move |(index, ticks)| {
        if ticks != MISSING {
            at = at.wrapping_add_signed(i64::from(ticks) * TICK);
        }
        (base.wrapping_add(index), (ticks != MISSING).then_some(at))
    })
}

/// The packets of a message of missing ones.
pub(super) fn missing(base: u64, above: &[u8]) -> impl Iterator<Item = u64> {
    let pairs = above.chunks_exact(2).map(|pair| u16::from_be_bytes([pair[0], pair[1]]));
    pairs.map(move |above| base.wrapping_add(u64::from(above)))
}

/// Writes a request for missing packets: as many of `numbers` (ascending) as fit; returns how many.
pub(super) fn write_missing(numbers: impl Iterator<Item = u64>, out: &mut Vec<u8>) -> usize {
    let (mut base, mut count) = (None, 0u16);
    out.extend([2, 0, 0, 0]);
    for number in numbers.take(MAX_PACKETS) {
        let base = *base.get_or_insert_with(|| {
            out.extend(number.to_be_bytes());
            number
        });
        let Ok(above) = u16::try_from(number - base) else { break };
        out.extend(above.to_be_bytes());
        count += 1;
    }
    if count == 0 {
        out.clear();
    } else {
        out[2..4].copy_from_slice(&count.to_be_bytes());
    }
    usize::from(count)
}

/// Arrival times of packets, and how many of them have been reported.
#[derive(Clone, Debug, Default)]
pub(super) struct ArrivalReport {
    /// From `first` on.
    times: VecDeque<Option<Time>>,
    first: u64,
    /// The next message begins here.
    next: u64,
}

impl ArrivalReport {
    /// One above the highest number.
    pub(super) fn end(&self) -> u64 {
        self.first + self.times.len() as u64
    }

    /// True if there is something to report.
    #[inline]
    pub(super) fn is_pending(&self) -> bool {
        self.next < self.end()
    }

    /// A packet arrived. Returns whether it is new.
    pub(super) fn note(&mut self, now: Time, number: u64) -> bool {
        if self.times.is_empty() || number >= self.end() + FAR {
            self.times.clear();
            (self.first, self.next) = (number, number);
        } else if number < self.first {
            return false;
        }
        let index = (number - self.first) as usize;
        if index >= self.times.len() {
            self.times.resize(index + 1, None);
        }
        let new = self.times[index].is_none();
        if new {
            self.times[index] = Some(now);
            // A late packet is reported together with all later ones.
            self.next = self.next.min(number);
        }
        let surplus = self.times.len().saturating_sub(REMEMBERED);
        self.times.drain(..surplus);
        self.first += surplus as u64;
        self.next = self.next.max(self.first);
        new
    }

    /// Writes as many unreported arrivals as fit.
    pub(super) fn write(&mut self, now: Time, out: &mut Vec<u8>) {
        let from = (self.next - self.first) as usize;
        let list = self.times.range(from..).take(MAX_PACKETS);
        let reference = list.clone().flatten().next().copied().unwrap_or(now);
        out.extend([1, 0, 0, 0]);
        for field in [self.next, now.ns(), reference.ns()] {
            out.extend(field.to_be_bytes());
        }
        let (mut at, mut count) = (reference.ns(), 0u16);
        for time in list {
            let ticks = match time {
                None => MISSING,
                Some(time) => {
                    let distance = time.ns().wrapping_sub(at) as i64;
                    let ticks = (distance + distance.signum() * TICK / 2) / TICK;
                    let Ok(ticks @ -32_767..) = i16::try_from(ticks) else { break };
                    at = at.wrapping_add_signed(i64::from(ticks) * TICK);
                    ticks
                }
            };
            out.extend(ticks.to_be_bytes());
            count += 1;
        }
        out[2..4].copy_from_slice(&count.to_be_bytes());
        self.next += u64::from(count);
    }
}

/// Age of a packet's arrival when the message was written, for the round trip.
pub(super) fn held(sent: Time, arrived: u64) -> Span {
    sent - Time::from_ns(arrived)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn us(us: u64) -> Time {
        Time::from_ns(us * 1000)
    }

    fn read(bytes: &[u8]) -> Vec<(u64, Option<u64>)> {
        let Ok(GccMessage::Arrivals { base, reference, ticks, .. }) = GccMessage::read(bytes) else { panic!() };
        arrivals(base, reference, ticks).map(|(number, at)| (number, at.map(|at| at / 1000))).collect()
    }

    #[test]
    fn arrivals_are_told_to_a_quarter_of_a_millisecond_and_errors_do_not_add_up() {
        let mut list = ArrivalReport::default();
        for packet in 0..199u64 {
            if packet % 7 != 3 {
                assert!(list.note(us(1_000_000 + packet * 1130), 10 + packet));
            }
        }
        assert!(!list.note(us(5_000_000), 12), "a duplicate");
        let mut bytes = vec![];
        list.write(us(2_000_000), &mut bytes);
        assert!(!list.is_pending());
        let told = read(&bytes);
        assert_eq!(told.len(), 199);
        for (packet, (number, at)) in (0u64..).zip(told) {
            assert_eq!((number, at.is_none()), (10 + packet, packet % 7 == 3));
            assert!(at.is_none_or(|at| at.abs_diff(1_000_000 + packet * 1130) <= 125));
        }
    }

    #[test]
    fn late_packets_and_long_silences_are_told() {
        let mut list = ArrivalReport::default();
        list.note(us(1000), 0);
        list.note(us(2000), 2);
        let mut bytes = vec![];
        list.write(us(3000), &mut bytes);
        assert_eq!(read(&bytes), [(0, Some(1000)), (1, None), (2, Some(2000))]);
        list.note(us(4000), 1);
        // Sixty seconds do not fit into 16 bits of ticks.
        list.note(us(60_004_000), 3);
        bytes.clear();
        list.write(us(60_005_000), &mut bytes);
        assert_eq!(read(&bytes), [(1, Some(4000)), (2, Some(2000))]);
        assert!(list.is_pending());
        bytes.clear();
        list.write(us(60_005_000), &mut bytes);
        assert_eq!(read(&bytes), [(3, Some(60_004_000))]);
        assert!(!list.is_pending());
    }

    #[test]
    fn a_new_numbering_and_more_than_fits() {
        let mut list = ArrivalReport::default();
        list.note(us(0), 0);
        list.note(us(0), 1 << 50);
        assert_eq!((list.next, list.end()), (1 << 50, (1 << 50) + 1));
        list.note(us(0), (1 << 50) + 5000);
        assert_eq!(list.times.len(), REMEMBERED);
        let mut messages = 0;
        while list.is_pending() {
            let mut bytes = vec![];
            list.write(us(1), &mut bytes);
            assert!(bytes.len() <= 28 + 2 * MAX_PACKETS);
            messages += 1;
        }
        assert_eq!(messages, REMEMBERED.div_ceil(MAX_PACKETS));
    }

    #[test]
    fn missing_packets_are_told_by_distance() {
        let mut bytes = vec![];
        assert_eq!(write_missing([7, 9, 20, 100_000].into_iter(), &mut bytes), 3);
        let Ok(GccMessage::Missing { base, above }) = GccMessage::read(&bytes) else { panic!() };
        assert_eq!(missing(base, above).collect::<Vec<_>>(), [7, 9, 20]);
        bytes.clear();
        assert_eq!(write_missing(std::iter::empty(), &mut bytes), 0);
        assert!(bytes.is_empty());
    }
}
