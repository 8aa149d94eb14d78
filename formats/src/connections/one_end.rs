//! Evaluates one end of a connection: bytes by time, round-trip times, bytes in flight, repeated data.

use super::capture_side::{Side, find_side};
use super::ranges::Ranges;
use super::stream::{Frame, Newest, Unwrapped, base, frames, headers, segment_bytes};
use super::{ACK, Connection, SYN, TCP, View};
use crate::pcapng::Packet;
use std::collections::VecDeque;

/// Round-trip times of acknowledgements that end within a frame are used if fewer than one in this many end with a
/// frame.
const EXACT_SHARE: usize = 10;
/// Data that arrive after later data within this time are out of order and not repeated (as capture analysers assume).
const MIN_REORDERING_NS: i64 = 3_000_000;

/// One connection, seen from one end; times in ns since 1970, sizes those of IP packets on the wire.
#[derive(Clone, Debug, Default)]
pub struct OneEnd {
    /// Number of the end that sends the data.
    pub data_from: usize,
    /// Where the capture was taken; `None` if that cannot be determined (UDP).
    pub side: Option<Side>,
    /// Round-trip time from the capture to the receiver of the data, if known.
    pub to_receiver_ns: Option<i64>,
    /// Round-trip time from the capture to the sender of the data, if known.
    pub to_sender_ns: Option<i64>,
    /// Times at which the sums below change.
    pub time_ns: Vec<i64>,
    /// Bytes sent up to each time.
    pub sent_bytes: Vec<f64>,
    /// Bytes that had arrived by each time: acknowledged bytes or, at a receiver, captured bytes.
    pub arrived_bytes: Vec<f64>,
    /// Times of samples, one at each acknowledgement of new data; empty at a receiver.
    pub sample_ns: Vec<i64>,
    /// Round-trip time, NaN if the acknowledgement does not yield one.
    pub rtt_ns: Vec<f64>,
    /// Bytes in flight.
    pub inflight_bytes: Vec<f64>,
    /// Bytes acknowledged.
    pub delivered_bytes: Vec<f64>,
    /// Bytes sent again.
    pub retransmitted_bytes: Vec<f64>,
    /// Packets with data.
    pub sent_packets: u64,
    /// Packets among them that repeat data.
    pub retransmitted_packets: u64,
    /// Bytes of packets that repeat data.
    pub repeated_bytes: u64,
    /// Bytes of payload that arrived, each counted once.
    pub goodput_bytes: u64,
    /// Bytes of payload that were acknowledged but not captured when they were sent.
    pub missed_bytes: u64,
    /// Frames that contain several packets.
    pub large_frames: u64,
    /// True if no acknowledgement was captured, so that sent data count as arrived.
    pub unanswered: bool,
}

/// Evaluates one end of a connection; `None` if it carried no data.
pub fn one_end(view: &View, connection: &Connection) -> Option<OneEnd> {
    if connection.protocol != TCP {
        return datagrams(view, connection);
    }
    let mut from = connection.data_from();
    if connection.payload == [0, 0] {
        from = sender_by_acks(view, connection)?;
    }
    let (side, distances) = find_side(view, connection, from);
    let mut stream = Stream::new(view, connection, from, side == Side::Receiver);
    for &place in &connection.packets {
        stream.packet(place);
    }
    let mut end = stream.finish();
    end.data_from = from;
    end.side = Some(side);
    end.to_receiver_ns = distances.receiver_ns;
    end.to_sender_ns = distances.sender_ns;
    Some(end)
}

fn datagrams(view: &View, connection: &Connection) -> Option<OneEnd> {
    let from = connection.data_from();
    let mut end = OneEnd {
        data_from: from,
        unanswered: true,
        ..OneEnd::default()
    };
    let mut sum = 0_u64;
    for &place in &connection.packets {
        let packet = &view.packets[place as usize];
        if connection.sender(packet) == from && packet.payload > 0 {
            sum += u64::from(packet.size);
            end.sent_packets += 1;
            end.goodput_bytes += u64::from(packet.payload);
            end.time_ns.push(packet.time_ns);
            end.sent_bytes.push(sum as f64);
        }
    }
    end.arrived_bytes.clone_from(&end.sent_bytes);
    (sum > 0).then_some(end)
}

/// The end whose data are acknowledged, where none were captured.
pub(super) fn sender_by_acks(view: &View, connection: &Connection) -> Option<usize> {
    let mut first = [None; 2];
    let mut span = [0_u32; 2];
    for &place in &connection.packets {
        let packet = &view.packets[place as usize];
        if packet.flags & (ACK | SYN) == ACK {
            let from = 1 - connection.sender(packet);
            let first = *first[from].get_or_insert(packet.acknowledgement);
            span[from] = span[from].max(packet.acknowledgement.wrapping_sub(first));
        }
    }
    let from = usize::from(span[1] > span[0]);
    // More than SYN and FIN.
    (span[from] > 2).then_some(from)
}

/// A frame that is not yet acknowledged as a whole.
#[derive(Clone, Copy, Debug)]
struct Pending {
    begin: i64,
    end: i64,
    /// When it was first sent, and last sent.
    first_ns: i64,
    last_ns: i64,
    /// Time stamps of both.
    first_stamp: u32,
    last_stamp: u32,
    again: bool,
    /// Bytes on the wire, and the number of them that have arrived.
    wire: i64,
    arrived: i64,
}

struct Stream<'a> {
    view: &'a View,
    connection: &'a Connection,
    from: usize,
    at_receiver: bool,
    segment: i64,
    headers: i64,
    numbers: Unwrapped,
    acks: Unwrapped,
    seen: Ranges,
    /// All bytes of the capture, including later ones: an acknowledgement may be captured before the data.
    captured: Ranges,
    /// Ascending.
    pending: VecDeque<Pending>,
    top: i64,
    newest: Option<Newest>,
    reordering_ns: i64,
    ack: i64,
    begin: i64,
    acked: bool,
    sent: i64,
    arrived: i64,
    repeated: i64,
    exact: Vec<bool>,
    end: OneEnd,
}

impl<'a> Stream<'a> {
    fn new(view: &'a View, connection: &'a Connection, from: usize, at_receiver: bool) -> Self {
        let base = base(view, connection, from);
        let frames = frames(view, connection, from, base);
        let segment = segment_bytes(connection, from, &frames);
        let maximum = frames.iter().map(|frame| frame.headers).max();
        let mut captured = Ranges::default();
        for frame in &frames {
            captured.insert(frame.begin, frame.end);
        }
        // Data sent before the capture began are not part of it.
        let opened = connection.initial[from].is_some();
        let first = frames.first().filter(|_| !opened).map(|frame| frame.begin);
        let begin = first.unwrap_or(i64::from(base));
        Stream {
            view,
            connection,
            from,
            at_receiver,
            segment,
            headers: i64::from(maximum.unwrap_or(52)),
            numbers: Unwrapped::near(base),
            acks: Unwrapped::near(base),
            seen: Ranges::default(),
            captured,
            pending: VecDeque::new(),
            top: i64::MIN,
            newest: None,
            reordering_ns: reordering(view, connection),
            ack: begin,
            begin,
            acked: false,
            sent: 0,
            arrived: 0,
            repeated: 0,
            exact: Vec::new(),
            end: OneEnd::default(),
        }
    }

    fn packet(&mut self, place: u32) {
        let packet = &self.view.packets[place as usize];
        if packet.flags & SYN != 0 {
            return;
        }
        if self.connection.sender(packet) == self.from {
            if packet.payload > 0 {
                self.data(packet);
            }
        } else if packet.flags & ACK != 0 && !packet.later_fragment {
            let ack = self.acks.next(packet.acknowledgement);
            self.acknowledgement(packet.time_ns, ack, packet.echo);
        }
    }

    fn data(&mut self, packet: &Packet) {
        let begin = self.numbers.next(packet.sequence);
        let end = begin + i64::from(packet.payload);
        let headers = i64::from(headers(packet));
        let wire = self.wire(end - begin, headers);
        let is_probe = packet.payload == 1 && end == self.top;
        let known = self.seen.insert(begin, end);
        if end - begin > self.segment {
            self.end.large_frames += 1;
        }
        let packets = ((end - begin + self.segment - 1) / self.segment) as u64;
        self.end.sent_packets += packets;
        self.sent += wire;
        let again = !is_probe && (known > 0 || self.is_late_repeat(packet, begin, end));
        if again {
            self.end.retransmitted_packets += packets;
            self.repeated += wire;
        }
        if self.at_receiver {
            self.arrived += wire;
        } else {
            self.remember(packet, (begin, end), headers, again);
        }
        if end > self.top {
            self.top = end;
            self.newest = Some(Newest {
                end,
                time_ns: packet.time_ns,
                stamp: packet.stamp,
                ip_id: packet.ip_id,
            });
        }
        self.note(packet.time_ns);
    }

    /// True for data below the newest that were never captured here, and are too late to be merely out of order. At the
    /// sender all data are captured when they are first sent.
    fn is_late_repeat(&self, packet: &Packet, begin: i64, end: i64) -> bool {
        let frame = Frame {
            begin,
            end,
            time_ns: packet.time_ns,
            stamp: packet.stamp,
            headers: 0,
            ip_id: packet.ip_id,
        };
        self.at_receiver
            && self
                .newest
                .is_some_and(|newest| newest.is_repeated_by(&frame, self.reordering_ns))
    }

    /// Keeps a frame until it is acknowledged, or marks those that it repeats.
    fn remember(&mut self, packet: &Packet, (begin, end): (i64, i64), headers: i64, again: bool) {
        if again {
            let from = self.pending.partition_point(|frame| frame.end <= begin);
            for frame in self
                .pending
                .range_mut(from..)
                .take_while(|frame| frame.begin < end)
            {
                frame.again = true;
                frame.last_ns = packet.time_ns;
                frame.last_stamp = packet.stamp;
            }
        }
        let begin = if again { begin.max(self.top) } else { begin };
        if begin >= end {
            return;
        }
        if end <= self.ack {
            self.arrived += if again {
                0
            } else {
                self.wire(end - begin, headers)
            };
            return;
        }
        let frame = Pending {
            begin,
            end,
            first_ns: packet.time_ns,
            last_ns: packet.time_ns,
            first_stamp: packet.stamp,
            last_stamp: packet.stamp,
            again,
            wire: self.wire(end - begin, headers),
            arrived: 0,
        };
        let place = if begin >= self.top {
            self.pending.len()
        } else {
            self.pending.partition_point(|other| other.begin < begin)
        };
        self.pending.insert(place, frame);
    }

    fn wire(&self, payload: i64, headers: i64) -> i64 {
        payload + headers * ((payload + self.segment - 1) / self.segment)
    }

    fn acknowledgement(&mut self, time_ns: i64, ack: i64, echo: u32) {
        if !self.acked {
            self.acked = true;
            // The first one may acknowledge data sent before the capture began.
            if self.end.sent_packets == 0 && self.connection.initial[self.from].is_none() {
                self.ack = self.ack.max(ack);
                self.begin = self.begin.max(ack);
                return;
            }
        }
        if ack <= self.ack {
            return;
        }
        // Sequence numbers of FIN count as one byte each.
        let missed = ack - self.ack - self.captured.covered(self.ack, ack);
        if missed > 1 {
            self.end.missed_bytes += missed as u64;
            let wire = self.wire(missed, self.headers);
            self.sent += wire;
            self.arrived += wire;
        }
        let (mut newest, mut told): (Option<Pending>, Option<Pending>) = (None, None);
        let mut again = false;
        while let Some(frame) = self.pending.pop_front_if(|frame| frame.end <= ack) {
            self.arrived += frame.wire - frame.arrived;
            again |= frame.again;
            if frame.again && frame.first_stamp != frame.last_stamp && echo == frame.last_stamp {
                told = Some(frame);
            }
            if newest.is_none_or(|newest| newest.end <= frame.end) {
                newest = Some(frame);
            }
        }
        if let Some(frame) = self.pending.front_mut().filter(|frame| frame.begin < ack) {
            let arrived = frame.wire * (ack - frame.begin) / (frame.end - frame.begin);
            self.arrived += arrived - frame.arrived;
            frame.arrived = arrived;
        }
        self.ack = ack;
        if self.at_receiver {
            return;
        }
        // Karn's algorithm; the time stamp may show which of several transmissions was acknowledged (RFC 7323).
        let sent = if again {
            told.filter(|_| echo != 0).map(|frame| frame.last_ns)
        } else {
            newest.map(|frame| frame.first_ns)
        };
        let rtt = sent.map(|sent| (time_ns - sent) as f64);
        let end = &mut self.end;
        end.sample_ns.push(time_ns);
        end.rtt_ns
            .push(rtt.filter(|&rtt| rtt >= 0.0).unwrap_or(f64::NAN));
        end.inflight_bytes
            .push(self.top.saturating_sub(ack).max(0) as f64);
        end.delivered_bytes.push((ack - self.begin) as f64);
        end.retransmitted_bytes.push(self.repeated as f64);
        self.exact
            .push(told.is_some() || newest.is_some_and(|frame| frame.end == ack));
        self.note(time_ns);
    }

    fn note(&mut self, time_ns: i64) {
        let end = &mut self.end;
        if end.time_ns.last() == Some(&time_ns) {
            end.sent_bytes.pop();
            end.arrived_bytes.pop();
        } else {
            end.time_ns.push(time_ns);
        }
        end.sent_bytes.push(self.sent as f64);
        end.arrived_bytes.push(self.arrived as f64);
    }

    fn finish(mut self) -> OneEnd {
        self.end.repeated_bytes = self.repeated as u64;
        let rtts = self.end.rtt_ns.iter().filter(|rtt| rtt.is_finite()).count();
        let told = self.end.rtt_ns.iter().zip(&self.exact);
        let exact = told
            .filter(|(rtt, exact)| rtt.is_finite() && **exact)
            .count();
        if exact * EXACT_SHARE >= rtts {
            // An acknowledgement that ends within a frame was caused by data later than the previous frame.
            for (rtt, exact) in self.end.rtt_ns.iter_mut().zip(&self.exact) {
                if !exact {
                    *rtt = f64::NAN;
                }
            }
        }
        self.end.goodput_bytes = if self.at_receiver {
            self.seen.length() as u64 + self.end.missed_bytes
        } else {
            (self.ack - self.begin).max(0) as u64
        };
        if !self.at_receiver && !self.acked {
            self.end.unanswered = true;
            self.end.arrived_bytes.clone_from(&self.end.sent_bytes);
            self.end.goodput_bytes = self.seen.length() as u64;
        }
        self.end
    }
}

/// Maximum delay of data that are merely out of order: a round-trip time, as measured by the handshake.
pub(super) fn reordering(view: &View, connection: &Connection) -> i64 {
    let mut asked = None;
    for &place in connection.packets.iter().take(8) {
        let packet = &view.packets[place as usize];
        match (asked, packet.flags & SYN != 0) {
            (None, true) => asked = Some(packet.time_ns),
            (Some(at), false) => return (packet.time_ns - at).max(MIN_REORDERING_NS),
            _ => {}
        }
    }
    MIN_REORDERING_NS
}
