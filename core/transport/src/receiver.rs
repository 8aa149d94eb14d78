//! The receiving end of a bulk flow: reassembly and (delayed) acknowledgements.

use crate::sack_limit::SackLimit;
use crate::{Ack, Arrival, Body, Config, Data, Endpoint, Header, Outgoing, Range, RangeSet, wire};
use narrows_units::{Ecn, Span, Time};

/// Longest interval of acknowledgements that a sender may request (RFC 5681, section 4.2).
const MAX_ACK_INTERVAL: Span = Span::from_ms(500);

/// Counters of a receiver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReceiverCounters {
    /// Data packets that arrived, and their IP sizes.
    pub received_packets: u64,
    /// See `received_packets`.
    pub received_bytes: u64,
    /// Packets whose number had already arrived: duplicates made by the network.
    pub duplicate_packets: u64,
    /// Packets with a CE mark.
    pub marked_packets: u64,
    /// New payload bytes: the data passed to the application.
    pub goodput_bytes: u64,
}

impl ReceiverCounters {
    /// A data packet of `size` bytes arrived.
    #[inline]
    pub fn on_packet(&mut self, size: u32, ecn: Ecn) {
        self.received_packets += 1;
        self.received_bytes += u64::from(size);
        self.marked_packets += u64::from(ecn == Ecn::Ce);
    }
}

/// Receives data and acknowledges it.
///
/// An acknowledgement is sent for every n-th packet (RFC 5681, section 4.2), at the latest after the
/// configured delay, and at once while data is missing or out of order, when a mark appears or
/// ends (RFC 8257, section 3.2), and for the first packets.
///
/// If data packets carry an interval, acknowledgements are "tame" (T. Li et al., "TACK: Improving Wireless Transport
/// Performance by Taming Acknowledgments", SIGCOMM 2020): one is sent when n packets have arrived and the interval
/// since the last one has passed, which yields a frequency of min(rate/n, 1/interval), and at once when a gap opens.
#[derive(Debug)]
pub struct Receiver {
    config: Config,
    /// Acknowledgements left that do not wait for a second packet (Linux: quick).
    quick_acks_left: u64,
    sack_limit: SackLimit,
    /// The packet that last advanced `rcv_nxt`.
    last_in_order: Option<Arrival>,
    /// Packet numbers received that may still have to be reported to the sender.
    received_numbers: RangeSet,
    /// Stream bytes received out of order, above `rcv_nxt`.
    out_of_order: RangeSet,
    /// RCV.NXT (RFC 9293): every stream byte below this has arrived.
    rcv_nxt: u64,
    largest: Option<Arrival>,
    /// Arrivals since the last acknowledgement.
    arrivals: Vec<Arrival>,
    /// Packets that arrived since the last acknowledgement.
    unacked_packets: u32,
    last_was_marked: bool,
    ack_now: bool,
    /// When an acknowledgement is due at the latest.
    delayed_ack_timer: Time,
    /// When something was last acknowledged.
    last_ack_at: Time,
    counters: ReceiverCounters,
}

impl Receiver {
    /// A receiver without data.
    pub fn new(config: &Config) -> Self {
        Receiver {
            config: config.clone(),
            quick_acks_left: config.quick_acks,
            sack_limit: SackLimit::new(config.sack_reach, config.mss()),
            last_in_order: None,
            received_numbers: RangeSet::default(),
            out_of_order: RangeSet::default(),
            rcv_nxt: 0,
            largest: None,
            arrivals: Vec::new(),
            unacked_packets: 0,
            last_was_marked: false,
            ack_now: false,
            delayed_ack_timer: Time::FAR,
            last_ack_at: Time::ZERO,
            counters: ReceiverCounters::default(),
        }
    }

    /// Counters so far.
    pub fn counters(&self) -> &ReceiverCounters {
        &self.counters
    }

    /// Every byte of the stream below this has arrived.
    #[inline]
    pub fn rcv_nxt(&self) -> u64 {
        self.rcv_nxt
    }

    /// Everything that has arrived is being acknowledged.
    #[inline]
    fn on_ack_sent(&mut self, now: Time) {
        self.ack_now = false;
        self.quick_acks_left = self.quick_acks_left.saturating_sub(1);
        self.unacked_packets = 0;
        self.delayed_ack_timer = Time::FAR;
        self.last_ack_at = now;
    }

    /// Schedules the next acknowledgement if the sender has set an interval; `gap` if a gap has opened.
    #[inline]
    fn plan_tack(&mut self, now: Time, interval: Span, gap: bool) {
        let interval = interval.min(MAX_ACK_INTERVAL);
        if self.unacked_packets == 1 {
            // The last packets before a pause must not wait for others.
            self.delayed_ack_timer = now + self.config.max_ack_delay.max(interval);
        }
        if self.unacked_packets >= self.config.ack_every {
            self.delayed_ack_timer = self.delayed_ack_timer.min(self.last_ack_at + interval);
        }
        self.ack_now |= gap || self.quick_acks_left > 0;
    }

    /// A cumulative acknowledgement.
    fn cumulative_ack(&mut self, now: Time, largest: Arrival, body: &Body) -> Outgoing {
        self.arrivals.clear();
        self.on_ack_sent(now);
        let echoed = self.last_in_order.unwrap_or(largest);
        let ack = Ack {
            largest: echoed.number,
            delay: now.since(echoed.at),
            largest_arrived: echoed.at,
            received: self.counters.received_packets,
            marked: self.counters.marked_packets,
            cumulative: Some(self.rcv_nxt),
        };
        Outgoing::new(Header::Ack(ack), body)
    }

    /// Notes a packet and its arrival time for the next acknowledgement.
    #[inline]
    fn record_arrival(&mut self, arrival: Arrival) {
        let mut other = arrival;
        if self
            .largest
            .is_none_or(|largest| arrival.number > largest.number)
        {
            // The previous largest becomes an ordinary arrival of this acknowledgement.
            let previous = self.largest.replace(arrival);
            match previous {
                Some(previous) if self.unacked_packets > 0 => other = previous,
                _ => return,
            }
        }
        if self.arrivals.len() < Body::MAX_ARRIVALS {
            self.arrivals.push(other);
        }
    }

    /// True if a packet is next both by number and in the stream, with nothing missing, as most are.
    #[inline]
    fn is_next(&self, data: &Data) -> bool {
        let next = |largest: Arrival| data.number == largest.number + 1;
        let extends = |top: &Range| data.number == top.last + 1;
        self.largest.is_some_and(next)
            && self.received_numbers.ranges().last().is_some_and(extends)
            && data.number >= data.least_unacked
            && data.offset == self.rcv_nxt
            && data.length > 0
            && data.ack_interval.is_none()
            && self.out_of_order.is_empty()
            && self.sack_limit.is_empty()
            && self.config.reliable
    }

    /// The fast path of [`Receiver::on_data`] for the next packet.
    #[inline]
    fn on_next(&mut self, now: Time, marked: bool, data: &Data) {
        let arrival = Arrival {
            number: data.number,
            at: now,
        };
        self.received_numbers.remove_below(data.least_unacked);
        self.received_numbers
            .insert(data.number, data.number, |_, _| {});
        self.record_arrival(arrival);
        self.last_in_order = Some(arrival);
        self.counters.goodput_bytes += u64::from(data.length);
        self.rcv_nxt += u64::from(data.length);
        self.unacked_packets += 1;
        if self.unacked_packets == 1 {
            self.delayed_ack_timer = now + self.config.max_ack_delay;
        }
        self.ack_now |= self.unacked_packets >= self.config.ack_every
            || self.quick_acks_left > 0
            || marked != self.last_was_marked;
        self.last_was_marked = marked;
    }

    #[inline]
    fn on_data(&mut self, now: Time, ecn: Ecn, data: &Data) {
        let size = wire::IP_UDP + wire::data_header(data) + u32::from(data.length);
        self.counters.on_packet(size, ecn);
        let marked = ecn == Ecn::Ce;
        if self.is_next(data) {
            self.on_next(now, marked, data);
        } else {
            self.on_any_data(now, marked, data);
        }
    }

    fn on_any_data(&mut self, now: Time, marked: bool, data: &Data) {
        let mut new = false;
        let arrival = Arrival {
            number: data.number,
            at: now,
        };
        self.received_numbers.remove_below(data.least_unacked);
        let hidden = self.config.reliable && self.sack_limit.hides(self.rcv_nxt, data.offset);
        if hidden {
            new = self.sack_limit.hold(arrival, data.offset);
        } else if data.number >= data.least_unacked {
            self.received_numbers
                .insert(data.number, data.number, |_, _| new = true);
        }
        if !new {
            self.counters.duplicate_packets += 1;
            self.ack_now = true;
            return;
        }
        let in_order = self
            .largest
            .is_none_or(|largest| data.number == largest.number + 1);
        let gap = !in_order
            && self
                .largest
                .is_some_and(|largest| data.number > largest.number);
        if !hidden {
            self.record_arrival(arrival);
        }

        let before = self.rcv_nxt;
        let incomplete = !self.out_of_order.is_empty();
        if !self.config.reliable {
            // Gaps are never filled: all new data counts, and the stream ends at the last byte received.
            self.counters.goodput_bytes += u64::from(data.length);
            self.rcv_nxt = self.rcv_nxt.max(data.offset + u64::from(data.length));
        } else if data.length > 0 && data.offset + u64::from(data.length) > self.rcv_nxt {
            let goodput = &mut self.counters.goodput_bytes;
            let first = data.offset.max(self.rcv_nxt);
            let last = data.offset + u64::from(data.length) - 1;
            if first == self.rcv_nxt && self.out_of_order.is_empty() {
                *goodput += last + 1 - first;
                self.rcv_nxt = last + 1;
            } else {
                self.out_of_order
                    .insert(first, last, |first, last| *goodput += last + 1 - first);
                self.rcv_nxt = self.out_of_order.first_missing(self.rcv_nxt);
                self.out_of_order.remove_below(self.rcv_nxt);
            }
        }

        self.unacked_packets += 1;
        // Data that had already arrived is retransmitted because an acknowledgement was lost or a timeout was spurious
        // (RFC 9293, section 3.10.7.4; Linux, tcp_enter_quickack_mode).
        if data.length > 0 && data.offset + u64::from(data.length) <= before {
            self.ack_now |= !self.config.sack;
            self.quick_acks_left = self.config.quick_acks;
        }
        let gap_closed =
            self.config.acks_closing_of_gaps() && incomplete && self.out_of_order.is_empty();
        if self.rcv_nxt > before {
            self.last_in_order = Some(arrival);
            let numbers = &mut self.received_numbers;
            let mut newer = self.largest;
            self.sack_limit.release(self.rcv_nxt, |held| {
                numbers.insert(held.number, held.number, |_, _| {});
                newer = newer
                    .filter(|newer| newer.number > held.number)
                    .or(Some(held));
            });
            if let Some(newer) = newer
                && self.largest != Some(newer)
            {
                self.record_arrival(newer);
            }
        }

        if let Some(interval) = data.ack_interval {
            self.last_was_marked = marked;
            self.plan_tack(now, interval, gap);
            return;
        }
        if self.unacked_packets == 1 {
            self.delayed_ack_timer = now + self.config.max_ack_delay;
        }
        self.ack_now |= self.unacked_packets >= self.config.ack_every
            || self.quick_acks_left > 0
            || gap_closed
            || !in_order
            || !self.out_of_order.is_empty()
            || marked != self.last_was_marked;
        self.last_was_marked = marked;
    }
}

impl Endpoint for Receiver {
    #[inline]
    fn receive(&mut self, now: Time, ecn: Ecn, header: &Header, _: &Body) {
        if let Header::Data(data) = header {
            self.on_data(now, ecn, data);
        }
    }

    #[inline]
    fn transmit(&mut self, now: Time, body: &mut Body) -> Option<Outgoing> {
        if !self.ack_now && self.delayed_ack_timer > now {
            return None;
        }
        let Some(largest) = self.largest else {
            // All arrivals lie beyond the limit.
            self.on_ack_sent(now);
            return None;
        };
        body.clear();
        if !self.config.sack {
            return Some(self.cumulative_ack(now, largest, body));
        }
        body.ranges.extend(
            self.received_numbers
                .ranges()
                .iter()
                .rev()
                .take(Body::MAX_RANGES),
        );
        if body.ranges.is_empty() {
            // Only duplicates of forgotten packets arrived: acknowledge the largest again.
            body.ranges.push(Range {
                first: largest.number,
                last: largest.number,
            });
        }
        std::mem::swap(&mut body.arrivals, &mut self.arrivals);
        self.on_ack_sent(now);
        let ack = Ack {
            largest: largest.number,
            delay: now.since(largest.at),
            largest_arrived: largest.at,
            received: self.counters.received_packets,
            marked: self.counters.marked_packets,
            cumulative: None,
        };
        Some(Outgoing::new(Header::Ack(ack), body))
    }

    #[inline]
    fn next_wakeup(&self) -> Time {
        if self.ack_now {
            Time::ZERO
        } else {
            self.delayed_ack_timer
        }
    }
}

#[cfg(test)]
mod tests;
