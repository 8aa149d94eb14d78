//! Packets in flight.

use super::report::ScreamReport;
use narrows_units::{Span, Time};
use std::collections::VecDeque;

/// A packet sent this long before one that has arrived is lost.
const REORDERING: Span = Span::from_ms(20);

#[derive(Clone, Copy, Debug)]
struct ScreamSentPacket {
    size: u32,
    at: Time,
    /// Acknowledged or lost.
    settled: bool,
}

/// Changes by a report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ReportOutcome {
    /// Bytes of packets up to the highest one that were not counted before, including lost ones.
    pub(super) newly: u64,
    /// Bytes and packets newly arrived.
    pub(super) acked: u64,
    pub(super) acked_packets: u64,
    /// Packets lost.
    pub(super) lost: u64,
    /// When the highest packet was sent.
    pub(super) sent_at: Time,
}

#[derive(Clone, Debug, Default)]
pub(super) struct InFlight {
    packets: VecDeque<ScreamSentPacket>,
    /// Number of the first packet of `packets`.
    first: u64,
    /// All packets below have been counted as acknowledged.
    counted: u64,
    bytes: u64,
}

impl InFlight {
    /// The number of the next packet.
    pub(super) fn next(&self) -> u64 {
        self.first + self.packets.len() as u64
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn sent(&mut self, at: Time, size: u32) {
        self.bytes += u64::from(size);
        self.packets.push_back(ScreamSentPacket { size, at, settled: false });
    }

    /// Processes a report; `None` if it refers to packets that were never sent, or are no longer tracked.
    pub(super) fn report(&mut self, report: &ScreamReport) -> Option<ReportOutcome> {
        if report.highest < self.first || report.highest >= self.next() {
            return None;
        }
        let index = (report.highest - self.first) as usize;
        let newest = self.packets[index].at;
        let mut outcome = ReportOutcome { sent_at: newest, ..ReportOutcome::default() };
        for (packet, number) in self.packets.iter_mut().take(index + 1).zip(self.first..) {
            if number >= self.counted {
                outcome.newly += u64::from(packet.size);
            }
            if packet.settled {
                continue;
            }
            if report.has(number) {
                outcome.acked += u64::from(packet.size);
                outcome.acked_packets += 1;
            } else if newest - packet.at > REORDERING {
                outcome.lost += 1;
            } else {
                continue;
            }
            packet.settled = true;
            self.bytes -= u64::from(packet.size);
        }
        self.counted = self.counted.max(report.highest + 1);
        // The last packet stays: reports about it may be repeated.
        while self.packets.len() > 1 && self.packets[0].settled {
            self.packets.pop_front();
            self.first += 1;
        }
        Some(outcome)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_are_acknowledged_lost_or_still_awaited() {
        let mut flight = InFlight::default();
        for ms in 0..40 {
            flight.sent(Time::from_ns(ms * 1_000_000), 100);
        }
        let report = |highest, vector| ScreamReport { highest, vector, arrived: Time::ZERO };
        // 30 has arrived, and 29 and 28; 27 has not, and 0 to 9 were sent more than 20 ms before.
        let outcome = flight.report(&report(30, 0b11)).unwrap();
        assert_eq!((outcome.newly, outcome.acked, outcome.lost), (3100, 300, 10));
        assert_eq!(flight.bytes(), 4000 - 1300);
        // A later report includes the late ones: each counts once.
        let outcome = flight.report(&report(31, (1 << 21) - 1)).unwrap();
        assert_eq!((outcome.newly, outcome.acked, outcome.lost), (100, 1900, 0));
        assert_eq!(flight.bytes(), 800);
        assert_eq!(flight.report(&report(40, 0)), None, "never sent");
        assert_eq!(flight.report(&report(3, 0)), None, "settled long since");
    }
}
