//! Reused storage for the contents of packets in flight, so that the packets themselves stay small.
//!
//! Thousands of messages are in flight at a time, and each is written and read once, a round trip apart: their cost is
//! memory traffic. Data and acknowledgements without gaps are packed into half a cache line and one cache line; other
//! messages are stored unpacked.

use narrows_transport::{Ack, Arrival, Body, Data, Header, Range};
use narrows_units::{Span, Time};
use std::collections::BTreeMap;

/// Bits of a slot with its index among those of its kind; the kind is above them.
const PLACE: u32 = 30;
const DATA: u32 = 0;
const ACK: u32 = 1;
const ANY: u32 = 2;

/// The body of data.
static EMPTY: Body = Body {
    ranges: Vec::new(),
    arrivals: Vec::new(),
    bytes: Vec::new(),
};

/// A message with a body of any length.
#[derive(Debug)]
struct Message {
    header: Header,
    body: Body,
}

impl Default for Message {
    fn default() -> Self {
        Message {
            header: Header::Data(Data::default()),
            body: Body::default(),
        }
    }
}

/// Messages of one kind. The slot that was freed last is used first: it is still in the cache. Slots are never
/// deallocated, so that buffers inside keep their capacity.
#[derive(Debug)]
struct Places<T> {
    all: Vec<T>,
    free: Vec<u32>,
}

impl<T> Default for Places<T> {
    fn default() -> Self {
        Places {
            all: Vec::new(),
            free: Vec::new(),
        }
    }
}

impl<T: Default> Places<T> {
    /// A free slot, whose content is to be overwritten member by member: copying a freshly built message would read it
    /// in larger pieces than it was written in, which stalls the processor.
    #[inline]
    fn take(&mut self) -> (u32, &mut T) {
        let place = self.free.pop().unwrap_or_else(|| self.add());
        (place, &mut self.all[place as usize])
    }

    #[cold]
    fn add(&mut self) -> u32 {
        assert!(self.all.len() < 1 << PLACE, "too many packets in flight");
        self.all.push(T::default());
        (self.all.len() - 1) as u32
    }
}

/// Slots that are filled when a packet enters the network and freed when it leaves it.
#[derive(Debug, Default)]
pub(crate) struct Payloads {
    data: Places<PackedData>,
    acks: Places<PackedAck>,
    others: Places<Message>,
    /// By slot: packets that carry the message, beyond the first.
    shares: BTreeMap<u32, u32>,
    /// The body of a packed acknowledgement while it is read.
    body: Body,
}

impl Payloads {
    /// Stores a message, taking the content of `body`, if it has any, in exchange for an old buffer.
    #[inline]
    pub(crate) fn put(&mut self, header: &Header, body: &mut Body) -> u32 {
        match header {
            Header::Data(data) => {
                if let Some(ack_interval) = PackedData::interval(data) {
                    let (place, packed) = self.data.take();
                    packed.store(data, ack_interval);
                    return place | DATA << PLACE;
                }
            }
            Header::Ack(ack) => {
                if let Some(small) = PackedAck::small_part(ack, body) {
                    let (place, packed) = self.acks.take();
                    packed.store(ack, small);
                    return place | ACK << PLACE;
                }
            }
            Header::Media(_) => {}
        }
        self.put_any(header, body)
    }

    fn put_any(&mut self, header: &Header, body: &mut Body) -> u32 {
        let (place, message) = self.others.take();
        message.header = *header;
        match header {
            Header::Data(_) => message.body.clear(),
            Header::Ack(_) | Header::Media(_) => std::mem::swap(&mut message.body, body),
        }
        place | ANY << PLACE
    }

    /// Calls `show` with the message.
    #[inline]
    pub(crate) fn read(&mut self, slot: u32, show: impl FnOnce(&Header, &Body)) {
        let place = place_of(slot);
        match slot >> PLACE {
            DATA => {
                let data = self.data.all[place].unpacked();
                show(&Header::Data(data), &EMPTY);
            }
            ACK => {
                let ack = self.acks.all[place].unpacked(&mut self.body);
                show(&Header::Ack(ack), &self.body);
            }
            _ => {
                let Message { header, body } = &self.others.all[place];
                show(header, body);
            }
        }
    }

    /// One more packet carries the message.
    pub(crate) fn share(&mut self, slot: u32) {
        *self.shares.entry(slot).or_default() += 1;
    }

    /// One packet that carried the message has ended.
    #[inline]
    pub(crate) fn free(&mut self, slot: u32) {
        if !self.shares.is_empty() && self.is_carried_on(slot) {
            return;
        }
        let free = match slot >> PLACE {
            DATA => &mut self.data.free,
            ACK => &mut self.acks.free,
            _ => &mut self.others.free,
        };
        free.push(place_of(slot) as u32);
    }

    /// Removes a share of the message, if it has any.
    #[cold]
    fn is_carried_on(&mut self, slot: u32) -> bool {
        let Some(shares) = self.shares.get_mut(&slot) else {
            return false;
        };
        *shares -= 1;
        if *shares == 0 {
            self.shares.remove(&slot);
        }
        true
    }
}

#[inline]
fn place_of(slot: u32) -> usize {
    (slot & ((1 << PLACE) - 1)) as usize
}

/// Data, in half a cache line. Members that are adjacent in [`Data`] are not adjacent here, so that they are copied one
/// by one.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
struct PackedData {
    number: u64,
    least_unacked: u64,
    offset: u64,
    /// Microseconds, or [`NO_INTERVAL`].
    ack_interval: u32,
    length: u16,
    retransmission: bool,
}

const NO_INTERVAL: u32 = u32::MAX;
const _: () = assert!(size_of::<PackedData>() == 32);

impl PackedData {
    /// The interval of data in the packed form; `None` if it does not fit.
    #[inline]
    fn interval(data: &Data) -> Option<u32> {
        let Some(interval) = data.ack_interval else {
            return Some(NO_INTERVAL);
        };
        let us = u32::try_from(interval.ns() / 1000).ok()?;
        (us != NO_INTERVAL && Span::from_us(u64::from(us)) == interval).then_some(us)
    }

    #[inline]
    fn store(&mut self, data: &Data, ack_interval: u32) {
        self.number = data.number;
        self.least_unacked = data.least_unacked;
        self.offset = data.offset;
        self.ack_interval = ack_interval;
        self.length = data.length;
        self.retransmission = data.retransmission;
    }

    #[inline]
    fn unpacked(&self) -> Data {
        Data {
            number: self.number,
            offset: self.offset,
            least_unacked: self.least_unacked,
            length: self.length,
            retransmission: self.retransmission,
            ack_interval: (self.ack_interval != NO_INTERVAL)
                .then(|| Span::from_us(u64::from(self.ack_interval))),
        }
    }
}

/// An acknowledgement of one range, with the arrival of at most one packet other than the largest, or of a stream
/// position; in a cache line.
#[derive(Clone, Copy, Debug, Default)]
struct PackedAck {
    largest: u64,
    largest_arrived: Time,
    received: u64,
    marked: u64,
    small: SmallPart,
}

/// The part that takes less room than in an acknowledgement and its body.
#[derive(Clone, Copy, Debug, Default)]
struct SmallPart {
    /// First number of the range, which ends with the largest; or the position.
    edge: u64,
    delay_ns: u32,
    /// Distance of the other packet from the largest, in numbers (zero if there is none) and in time.
    other_behind: u32,
    other_earlier_ns: u32,
    is_cumulative: bool,
}

const _: () = assert!(size_of::<PackedAck>() <= 64);

impl PackedAck {
    /// Packs an acknowledgement; `None` if it does not fit.
    #[inline]
    fn small_part(ack: &Ack, body: &Body) -> Option<SmallPart> {
        let edge = match (ack.cumulative, &body.ranges[..]) {
            (Some(position), []) => position,
            (None, [only]) if only.last == ack.largest => only.first,
            _ => return None,
        };
        let (other_behind, other_earlier) = match &body.arrivals[..] {
            [] => (0, 0),
            [other] if other.number < ack.largest => (
                ack.largest - other.number,
                ack.largest_arrived.ns().checked_sub(other.at.ns())?,
            ),
            _ => return None,
        };
        let is_packed = body.bytes.is_empty();
        is_packed.then_some(SmallPart {
            edge,
            delay_ns: u32::try_from(ack.delay.ns()).ok()?,
            other_behind: u32::try_from(other_behind).ok()?,
            other_earlier_ns: u32::try_from(other_earlier).ok()?,
            is_cumulative: ack.cumulative.is_some(),
        })
    }

    #[inline]
    fn store(&mut self, ack: &Ack, small: SmallPart) {
        self.largest = ack.largest;
        self.largest_arrived = ack.largest_arrived;
        self.received = ack.received;
        self.marked = ack.marked;
        self.small.edge = small.edge;
        self.small.delay_ns = small.delay_ns;
        self.small.other_behind = small.other_behind;
        self.small.other_earlier_ns = small.other_earlier_ns;
        self.small.is_cumulative = small.is_cumulative;
    }

    #[inline]
    fn unpacked(&self, body: &mut Body) -> Ack {
        let small = &self.small;
        body.clear();
        if !small.is_cumulative {
            body.ranges.push(Range {
                first: small.edge,
                last: self.largest,
            });
        }
        if small.other_behind > 0 {
            body.arrivals.push(Arrival {
                number: self.largest - u64::from(small.other_behind),
                at: Time::from_ns(self.largest_arrived.ns() - u64::from(small.other_earlier_ns)),
            });
        }
        Ack {
            largest: self.largest,
            delay: Span::from_ns(u64::from(small.delay_ns)),
            largest_arrived: self.largest_arrived,
            received: self.received,
            marked: self.marked,
            cumulative: small.is_cumulative.then_some(small.edge),
        }
    }
}

#[cfg(test)]
mod tests;
