//! Counts of the packets of flows at one end of a tunnel, for those who watch a run.
//!
//! Each packet belongs to the interval in which it was sent, by the clock of the end that sent it. All datagrams carry
//! this time, so both ends agree on the interval of each packet, whatever the offset of their clocks and the delay of
//! the path. The packets that one end has sent before an interval, less those of them that the other one has received,
//! are those that the path has lost.
//!
//! The queueing delay of a packet is its one-way delay above the smallest so far, for which the offset of the clocks
//! does not matter, but their drift does.

use narrows_tunnel::clock::Fit;
use narrows_units::Time;

/// Length of an interval.
const INTERVAL_NS: u64 = 500_000_000;
/// Largest drift that is believed, in 10^-9: estimates from a few seconds may be far off.
const MOST_PPB: f64 = 100_000.0;
const NS_PER_S: f64 = 1e9;

/// Packets of a flow that this end has sent.
#[derive(Clone, Copy, Debug, Default)]
struct SentPackets {
    packets: u64,
    /// Those of earlier intervals than the present one.
    before: u64,
}

/// Packets of a flow that have arrived at this end.
#[derive(Clone, Copy, Debug, Default)]
struct ArrivedPackets {
    packets: u64,
    bytes: u64,
    queueing_ns: u64,
    /// Those that were sent in the latest interval, and in the one before.
    recent: [u64; 2],
}

/// The smallest delay so far, with the offset of the clocks, and when it was seen.
#[derive(Clone, Copy, Debug)]
struct SmallestDelay {
    delay_ns: i64,
    at: Time,
}

/// The counts of one end.
#[derive(Clone, Debug)]
pub(crate) struct FlowMeter {
    /// By number of the flow.
    sent: Vec<SentPackets>,
    /// By number of the flow.
    arrived: Vec<ArrivedPackets>,
    /// Present interval of this end's clock.
    interval: u64,
    /// Latest interval of the other end's clock.
    interval_there: u64,
    smallest: Option<SmallestDelay>,
    /// Drift of the other end's clock in 10^-9.
    drift_ppb: f64,
}

/// Counts of a flow whose data this end sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SentCount {
    /// Packets sent before this interval.
    pub(crate) interval: u64,
    /// Their number.
    pub(crate) before: u64,
}

/// Counts of a flow whose data arrive at this end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ArrivedCount {
    /// Packets since the start.
    pub(crate) packets: u64,
    /// Their IP bytes.
    pub(crate) bytes: u64,
    /// Sum of their delays above the smallest.
    pub(crate) queueing_ns: u64,
    /// Later packets sent before this interval are not expected.
    pub(crate) interval: u64,
    /// Packets that were sent before it.
    pub(crate) before: u64,
}

fn interval_of(time: Time) -> u64 {
    time.ns() / INTERVAL_NS
}

impl FlowMeter {
    /// A meter for flows with numbers up to `last`.
    pub(super) fn new(last: u16) -> Self {
        let flows = usize::from(last) + 1;
        FlowMeter {
            sent: vec![SentPackets::default(); flows],
            arrived: vec![ArrivedPackets::default(); flows],
            interval: 0,
            interval_there: 0,
            smallest: None,
            drift_ppb: 0.0,
        }
    }

    /// A packet of a flow is sent.
    #[inline]
    pub(super) fn send(&mut self, flow: u16, sent: Time) {
        let interval = interval_of(sent);
        if interval != self.interval {
            self.interval = interval;
            for flow in &mut self.sent {
                flow.before = flow.packets;
            }
        }
        if let Some(counts) = self.sent.get_mut(usize::from(flow)) {
            counts.packets += 1;
        }
    }

    /// A datagram that was sent at `sent`, by the other clock, arrives. Returns its delay above the smallest in ns.
    #[inline]
    pub(super) fn look(&mut self, sent: Time, arrived: Time) -> u64 {
        self.go_on(interval_of(sent));
        let delay_ns = arrived.ns().wrapping_sub(sent.ns()) as i64;
        let Some(SmallestDelay {
            delay_ns: least,
            at,
        }) = self.smallest
        else {
            self.smallest = Some(SmallestDelay {
                delay_ns,
                at: arrived,
            });
            return 0;
        };
        // A clock that is faster there makes delays seem to shrink.
        let passed = arrived.ns().wrapping_sub(at.ns()) as i64;
        let shrunk = passed as f64 * self.drift_ppb / NS_PER_S;
        let above = delay_ns.wrapping_sub(least).saturating_add(shrunk as i64);
        if above < 0 {
            self.smallest = Some(SmallestDelay {
                delay_ns,
                at: arrived,
            });
        }
        u64::try_from(above).unwrap_or(0)
    }

    /// A packet of a flow arrives, with `bytes` and a delay above the smallest.
    #[inline]
    pub(super) fn arrive(&mut self, flow: u16, bytes: u64, sent: Time, queueing_ns: u64) {
        let Some(counts) = self.arrived.get_mut(usize::from(flow)) else {
            return;
        };
        counts.packets += 1;
        counts.bytes += bytes;
        counts.queueing_ns = counts.queueing_ns.saturating_add(queueing_ns);
        let ago = self.interval_there.saturating_sub(interval_of(sent));
        if let Some(recent) = usize::try_from(ago)
            .ok()
            .and_then(|ago| counts.recent.get_mut(ago))
        {
            *recent += 1;
        }
    }

    /// The other end's clock has reached an interval.
    fn go_on(&mut self, interval: u64) {
        let steps = interval.saturating_sub(self.interval_there);
        if steps == 0 {
            return;
        }
        self.interval_there = interval;
        for counts in &mut self.arrived {
            let previous = if steps == 1 { counts.recent[0] } else { 0 };
            counts.recent = [0, previous];
        }
    }

    /// Takes over an estimate of the drift of the other clock at a local time.
    pub(super) fn correct(&mut self, fit: &Fit, now: Time) {
        self.drift_ppb = fit.drift_ppb(now).clamp(-MOST_PPB, MOST_PPB);
    }

    /// The packets of a flow sent so far, at a time of this end's clock.
    pub(crate) fn sent(&self, flow: u16, now: Time) -> Option<SentCount> {
        let counts = self.sent.get(usize::from(flow))?;
        let interval = interval_of(now).max(self.interval);
        let is_later = interval > self.interval;
        Some(SentCount {
            interval,
            before: if is_later {
                counts.packets
            } else {
                counts.before
            },
        })
    }

    /// The packets of a flow that have arrived so far.
    pub(crate) fn arrived(&self, flow: u16) -> Option<ArrivedCount> {
        let counts = self.arrived.get(usize::from(flow))?;
        Some(ArrivedCount {
            packets: counts.packets,
            bytes: counts.bytes,
            queueing_ns: counts.queueing_ns,
            interval: self.interval_there.saturating_sub(1),
            before: counts.packets - counts.recent.iter().sum::<u64>(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MS: u64 = 1_000_000;

    fn at(ms: u64) -> Time {
        Time::from_ns(ms * MS)
    }

    /// One packet of 1,000 B over a path, the far clock 7 s ahead.
    fn pass(meters: &mut [FlowMeter; 2], flow: u16, sent: Time, delay_ms: u64) {
        meters[0].send(flow, sent);
        receive(&mut meters[1], flow, sent, delay_ms);
    }

    fn receive(meter: &mut FlowMeter, flow: u16, sent: Time, delay_ms: u64) {
        let arrived = Time::from_ns(sent.ns() + (7_000 + delay_ms) * MS);
        let above = meter.look(sent, arrived);
        meter.arrive(flow, 1_000, sent, above);
    }

    #[test]
    fn delays_are_those_above_the_smallest_whatever_the_offset_of_the_clocks() {
        let mut meters = [FlowMeter::new(2), FlowMeter::new(2)];
        for (sent, delay) in [(100, 20), (110, 25), (120, 22), (130, 10), (140, 13)] {
            pass(&mut meters, 1, at(sent), delay);
        }
        let count = meters[1].arrived(1).unwrap();
        assert_eq!((count.packets, count.bytes), (5, 5_000));
        // By hand: 0 + 5 + 2 + 0 + 3 ms.
        assert_eq!(count.queueing_ns, 10 * MS);
        assert_eq!(meters[1].arrived(2).unwrap().packets, 0);
        assert_eq!(meters[1].arrived(3), None);
    }

    #[test]
    fn a_clock_that_is_faster_there_makes_no_queue() {
        let mut meter = FlowMeter::new(1);
        meter.drift_ppb = 50_000.0;
        // 50 ppm over 10 s are 500 us: the delay seems to shrink, and a packet that shrinks less has queued.
        meter.look(at(1_000), at(1_020));
        let sent = Time::from_ns(11_000 * MS + 500_000);
        assert_eq!(meter.look(sent, at(11_020)), 0);
        assert_eq!(meter.look(sent, at(11_023)), 3 * MS + 150);
    }

    #[test]
    fn only_settled_intervals_are_compared() {
        let mut meters = [FlowMeter::new(1), FlowMeter::new(1)];
        for sent in [100, 300, 600] {
            pass(&mut meters, 1, at(sent), 10);
        }
        // One is lost in the second interval.
        meters[0].send(1, at(700));
        assert_eq!(
            meters[0].sent(1, at(800)).unwrap(),
            SentCount {
                interval: 1,
                before: 2
            }
        );
        assert_eq!(
            meters[0].sent(1, at(1_100)).unwrap(),
            SentCount {
                interval: 2,
                before: 4
            }
        );
        let before = |meters: &[FlowMeter; 2]| {
            let count = meters[1].arrived(1).unwrap();
            (count.interval, count.before)
        };
        assert_eq!(before(&meters), (0, 0));
        pass(&mut meters, 1, at(1_600), 10);
        // The third interval began with 4 packets sent, of which 3 have arrived.
        assert_eq!(before(&meters), (2, 3));
    }

    proptest! {
        /// However packets are delayed or lost, the counts of both ends differ by the lost packets of an interval.
        #[test]
        fn both_ends_agree_on_the_interval_of_each_packet(
            packets in prop::collection::vec((1_u64..400, 0_u64..400, any::<bool>()), 1..200),
        ) {
            let mut meters = [FlowMeter::new(1), FlowMeter::new(1)];
            let mut arrivals = Vec::new();
            let mut sent = 0;
            let mut boundaries = vec![(0, 0_u64)];
            let mut survivors = Vec::new();
            for (gap, delay, is_lost) in packets {
                sent += gap;
                meters[0].send(1, at(sent));
                let count = meters[0].sent(1, at(sent)).unwrap();
                if boundaries.last().unwrap().0 != count.interval {
                    boundaries.push((count.interval, count.before));
                }
                if !is_lost {
                    arrivals.push((sent + delay, sent, delay));
                    survivors.push(sent);
                }
            }
            arrivals.sort_unstable();
            for (_, sent, delay) in arrivals {
                receive(&mut meters[1], 1, at(sent), delay);
            }
            let count = meters[1].arrived(1).unwrap();
            let end = count.interval * INTERVAL_NS / MS;
            let expected = survivors.iter().filter(|&&sent| sent < end).count() as u64;
            prop_assert_eq!(count.before, expected);
            if let Some((_, before)) = boundaries.iter().find(|boundary| boundary.0 == count.interval) {
                prop_assert!(*before >= count.before);
            }
        }
    }
}
