//! Monitor intervals: sequences of packets sent at one rate, and their fate. The PCC family decides by comparing such
//! intervals.

use crate::{AckedPacket, LossCause, LossEvent, LostPacket, SendEvent};
use narrows_units::{Span, Time, choice};
use std::collections::VecDeque;

choice! {
    /// When the account of an interval is closed. Intervals are closed in the order of their beginning.
    pub enum Closing {
        /// When the fate of each packet is known: delivered, or declared lost by the transport, which allows for
        /// reordering.
        Settled = "settled",
        /// When the last packet or one sent later has been acknowledged; packets missing then count as lost.
        Reported = "reported",
        /// When a packet of a later interval has been acknowledged; packets missing then count as lost.
        Overtaken = "overtaken",
    }
}

/// Fate of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MonitoredFate {
    Unknown,
    Delivered,
    Lost,
}

#[derive(Clone, Copy, Debug)]
struct MonitoredPacket {
    sent: Time,
    rtt: Span,
    bytes: u32,
    fate: MonitoredFate,
}

/// An interval in progress or under evaluation.
#[derive(Clone, Debug, Default)]
struct Interval {
    id: u64,
    rate: f64,
    begun: Time,
    last_sent: Time,
    /// Number of its first packet.
    first: u64,
    packets: u64,
    settled: u64,
    /// Sum in seconds and number of the round-trip times.
    rtts: (f64, u64),
    app_limited: bool,
    over: bool,
}

impl Interval {
    fn mean_rtt(&self) -> Option<f64> {
        (self.rtts.1 > 0).then(|| self.rtts.0 / self.rtts.1 as f64)
    }

    /// Number of the packet after its last.
    fn end(&self) -> u64 {
        self.first + self.packets
    }
}

/// Result of an interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct IntervalReport {
    /// Its number, counted from 0.
    pub id: u64,
    /// Its initial rate, in the unit of the scheme.
    pub rate: f64,
    /// Packets sent, including retransmissions.
    pub packets: u64,
    /// Payload bytes sent.
    pub bytes: u64,
    /// Packets lost.
    pub lost: u64,
    /// Payload bytes lost.
    pub lost_bytes: u64,
    /// From its beginning, when the last packet of the previous interval was sent, to its last packet.
    pub elapsed: Span,
    /// From its first packet to its last.
    pub first_to_last: Span,
    /// Mean round-trip time in seconds; `None` if nothing was delivered.
    pub rtt: Option<f64>,
    /// Mean round-trip time so far of the interval acknowledged when this one was closed.
    pub rtt_of_newest: Option<f64>,
    /// Slope of the round-trip time over the sending time, by least squares: seconds per second.
    pub slope: f64,
    /// Difference between the mean round-trip times of the second and the first half of the delivered packets, relative
    /// to the mean of both.
    pub rise: f64,
    /// True if the sender was application-limited meanwhile, so that the interval says nothing about the path.
    pub app_limited: bool,
}

/// Accounts for all intervals that are not closed.
#[derive(Clone, Debug)]
pub struct Monitors {
    closing: Closing,
    intervals: VecDeque<Interval>,
    /// The packets of all intervals, by number from `base` on.
    packets: VecDeque<MonitoredPacket>,
    base: u64,
    /// The newest acknowledged packet.
    heard: Option<u64>,
    next_id: u64,
}

impl Monitors {
    /// Without intervals.
    pub fn new(closing: Closing) -> Self {
        Monitors {
            closing,
            intervals: VecDeque::with_capacity(16),
            packets: VecDeque::with_capacity(1024),
            base: 0,
            heard: None,
            next_id: 0,
        }
    }

    /// Number of the next interval.
    #[inline]
    pub fn next_id(&self) -> u64 {
        self.next_id
    }

    /// Intervals that are not closed, including the current one.
    #[inline]
    pub fn open(&self) -> usize {
        self.intervals.len()
    }

    /// True if an interval is being sent.
    #[inline]
    pub fn is_sending(&self) -> bool {
        self.intervals.back().is_some_and(|last| !last.over)
    }

    /// Packets sent in the newest interval, and whether it was application-limited.
    #[inline]
    pub fn newest(&self) -> (u64, bool) {
        self.intervals
            .back()
            .map_or((0, false), |last| (last.packets, last.app_limited))
    }

    /// Ends the current interval; without packets it is discarded.
    pub fn end(&mut self) {
        if self.intervals.back().is_some_and(|last| last.packets == 0) {
            self.intervals.pop_back();
        } else if let Some(last) = self.intervals.back_mut() {
            last.over = true;
        }
    }

    /// Ends the current interval and begins one at `rate`; returns its number.
    pub fn begin(&mut self, now: Time, rate: f64) -> u64 {
        self.end();
        let id = self.next_id;
        self.next_id += 1;
        self.intervals.push_back(Interval {
            id,
            rate,
            begun: now,
            last_sent: now,
            first: self.base + self.packets.len() as u64,
            ..Interval::default()
        });
        id
    }

    /// A packet was sent, in the current interval. Packets outside intervals are not tracked.
    pub fn sent(&mut self, send: &SendEvent) {
        let Some(current) = self.intervals.back_mut().filter(|last| !last.over) else {
            return;
        };
        if self.packets.is_empty() {
            self.base = send.number;
        }
        if current.packets == 0 {
            current.first = send.number;
        }
        current.packets += 1;
        current.last_sent = send.now;
        current.app_limited |= send.app_limited;
        self.packets.push_back(MonitoredPacket {
            sent: send.now,
            rtt: Span::ZERO,
            bytes: send.bytes.get() as u32,
            fate: MonitoredFate::Unknown,
        });
    }

    /// The packet with number `number` and its interval, if they are still tracked.
    fn find(&mut self, number: u64) -> Option<(&mut MonitoredPacket, &mut Interval)> {
        let packet = self
            .packets
            .get_mut(number.checked_sub(self.base)? as usize)?;
        let after = self
            .intervals
            .partition_point(|interval| interval.first <= number);
        let interval = self.intervals.get_mut(after.checked_sub(1)?)?;
        (number < interval.end()).then_some((packet, interval))
    }

    /// Packets were delivered.
    pub fn acked(&mut self, now: Time, packets: &[AckedPacket]) {
        for acked in packets {
            if let Some((packet, interval)) = self.find(acked.number) {
                interval.settled += u64::from(packet.fate == MonitoredFate::Unknown);
                packet.fate = MonitoredFate::Delivered;
                packet.rtt = now.since(acked.sent);
                interval.rtts.0 += packet.rtt.secs();
                interval.rtts.1 += 1;
            }
            self.heard = self.heard.max(Some(acked.number));
        }
    }

    /// Packets are declared lost.
    pub fn lost(&mut self, packets: &[LostPacket]) {
        for lost in packets {
            if let Some((packet, interval)) = self.find(lost.number)
                && packet.fate == MonitoredFate::Unknown
            {
                packet.fate = MonitoredFate::Lost;
                interval.settled += 1;
            }
        }
    }

    /// Handles a loss. After a timeout all intervals are discarded, and the result is true.
    pub fn on_loss(&mut self, loss: &LossEvent<'_>) -> bool {
        let timeout = loss.cause != LossCause::Reordering;
        if timeout {
            self.clear();
        } else {
            self.lost(loss.lost);
        }
        timeout
    }

    /// Discards all intervals.
    pub fn clear(&mut self) {
        self.base += self.packets.len() as u64;
        self.packets.clear();
        self.intervals.clear();
    }

    /// Removes and returns the oldest interval, if its account is closed.
    pub fn report(&mut self) -> Option<IntervalReport> {
        let oldest = self.intervals.front().filter(|oldest| oldest.over)?;
        let end = oldest.end();
        let closed = match self.closing {
            Closing::Settled => oldest.settled == oldest.packets,
            Closing::Reported => self.heard.is_some_and(|heard| heard + 1 >= end),
            Closing::Overtaken => self.heard.is_some_and(|heard| heard >= end),
        };
        if !closed {
            return None;
        }
        let newest = self
            .heard
            .and_then(|heard| Some(self.find(heard)?.1.mean_rtt()));
        let interval = self.intervals.pop_front()?;
        let mut report = self.measure(&interval);
        report.rtt_of_newest = newest.flatten().or(report.rtt);
        self.base = end;
        self.packets.drain(..interval.packets as usize);
        Some(report)
    }

    /// Sums up the packets of the oldest interval.
    fn measure(&self, interval: &Interval) -> IntervalReport {
        let packets = || self.packets.iter().take(interval.packets as usize);
        let half = interval.rtts.1 / 2;
        let (mut bytes, mut lost, mut lost_bytes) = (0, 0, 0);
        // Relative to the first packet: small numbers keep their digits when squared.
        let mut first: Option<(Time, f64)> = None;
        let (mut count, mut times, mut rtts, mut squares, mut products) =
            (0u64, 0.0, 0.0, 0.0, 0.0);
        let (mut early, mut late) = (0.0, 0.0);
        for packet in packets() {
            bytes += u64::from(packet.bytes);
            if packet.fate != MonitoredFate::Delivered {
                lost += 1;
                lost_bytes += u64::from(packet.bytes);
                continue;
            }
            let rtt = packet.rtt.secs();
            let (start, least) = *first.get_or_insert((packet.sent, rtt));
            let (time, above) = (packet.sent.since(start).secs(), rtt - least);
            times += time;
            rtts += above;
            squares += time * time;
            products += time * above;
            if count < half {
                early += rtt;
            } else {
                late += rtt;
            }
            count += 1;
        }
        let n = count as f64;
        let spread = n * squares - times * times;
        let slope = if spread > 0.0 {
            (n * products - times * rtts) / spread
        } else {
            0.0
        };
        let rise = if count > 1 && early + late > 0.0 {
            // With an odd number, the middle packet belongs to neither half.
            let (first, second) = (early / half as f64, late / (count - half) as f64);
            2.0 * (second - first) / (first + second)
        } else {
            0.0
        };
        let sent = packets()
            .next()
            .map_or(interval.begun, |packet| packet.sent);
        IntervalReport {
            id: interval.id,
            rate: interval.rate,
            packets: interval.packets,
            bytes,
            lost,
            lost_bytes,
            elapsed: interval.last_sent.since(interval.begun),
            first_to_last: interval.last_sent.since(sent),
            rtt: interval.mean_rtt(),
            rtt_of_newest: None,
            slope,
            rise,
            app_limited: interval.app_limited,
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
