//! The receiver of datagrams and its report, in the terms of iperf.
//!
//! Jitter is the interarrival jitter of RFC 3550, section 6.4.1 and appendix A.8: the change of the
//! transit time from packet to packet, smoothed with a gain of 1/16, over the packets in the order
//! of their arrival. Lost are the sequence numbers below the highest one that have not arrived. A
//! datagram is out of order if its number lies below the highest one seen (RFC 4737, section 3.3:
//! a smaller number than expected), and a duplicate if its number has arrived before.
//!
//! Deviation: only the last 65536 numbers are remembered. Later arrivals count as out of order and cannot be
//! distinguished from duplicates.

use crate::IP_UDP;
use narrows_transport::wire::MEDIA_HEADER;
use narrows_transport::{Body, Endpoint, Header, Outgoing};
use narrows_units::{Ecn, Time};

/// Size of the window of remembered numbers.
const WINDOW: u64 = 1 << 16;

/// Counters of the receiver of datagrams.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct DatagramReport {
    /// Datagrams that arrived, with duplicates, and their IP bytes.
    pub arrived: u64,
    /// See `arrived`.
    pub arrived_bytes: u64,
    /// Datagrams that arrived, without duplicates.
    pub received: u64,
    /// Their IP bytes.
    pub received_bytes: u64,
    /// Numbers up to the highest that arrived.
    pub total: u64,
    /// Numbers among them that did not arrive.
    pub lost: u64,
    /// Datagrams that arrived after one with a higher number.
    pub out_of_order: u64,
    /// Datagrams that had arrived before.
    pub duplicates: u64,
    /// Smoothed interarrival jitter in ns.
    pub jitter_ns: f64,
}

/// Receives and classifies datagrams.
#[derive(Clone, Debug)]
pub struct DatagramSink {
    report: DatagramReport,
    /// One bit per number of the window below `report.total`, by number modulo the window.
    seen: Vec<u64>,
    /// Transit time of the last arrival; a difference of two clocks, hence signed.
    transit: Option<i64>,
}

impl Default for DatagramSink {
    fn default() -> Self {
        DatagramSink {
            report: DatagramReport::default(),
            seen: vec![0; (WINDOW / 64) as usize],
            transit: None,
        }
    }
}

impl DatagramSink {
    /// Datagram `number` of `size` bytes at the IP layer, sent at `sent`, arrived.
    #[inline]
    fn arrive(&mut self, now: Time, number: u64, sent: Time, size: u32) {
        let report = &mut self.report;
        report.arrived += 1;
        report.arrived_bytes += u64::from(size);
        let bit = |number: u64| ((number % WINDOW / 64) as usize, 1u64 << (number % 64));
        if number >= report.total {
            // Skipped numbers have not been seen; of a long gap only the window matters.
            for skipped in report.total.max((number + 1).saturating_sub(WINDOW))..number {
                let (word, mask) = bit(skipped);
                self.seen[word] &= !mask;
            }
            report.total = number + 1;
        } else {
            let (word, mask) = bit(number);
            let remembered = number + WINDOW >= report.total;
            if remembered && self.seen[word] & mask != 0 {
                report.duplicates += 1;
                return;
            }
            report.out_of_order += 1;
        }
        let (word, mask) = bit(number);
        if number + WINDOW >= report.total {
            self.seen[word] |= mask;
        }
        report.received += 1;
        report.received_bytes += u64::from(size);

        let transit = now.ns() as i64 - sent.ns() as i64;
        if let Some(last) = self.transit {
            let change = transit.abs_diff(last) as f64;
            report.jitter_ns += (change - report.jitter_ns) / 16.0;
        }
        self.transit = Some(transit);
    }

    /// The report so far.
    pub fn report(&self) -> DatagramReport {
        DatagramReport {
            lost: self.report.total.saturating_sub(self.report.received),
            ..self.report
        }
    }
}

impl Endpoint for DatagramSink {
    #[inline]
    fn receive(&mut self, now: Time, _: Ecn, header: &Header, body: &Body) {
        if let (Header::Media(datagram), Some(sent)) = (header, body.bytes.first_chunk()) {
            let sent = Time::from_ns(u64::from_be_bytes(*sent));
            let size = IP_UDP + MEDIA_HEADER + u32::from(datagram.length);
            self.arrive(now, datagram.number, sent, size);
        }
    }

    fn transmit(&mut self, _: Time, _: &mut Body) -> Option<Outgoing> {
        None
    }

    fn next_wakeup(&self) -> Time {
        Time::FAR
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_units::Stream;
    use std::collections::BTreeSet;

    fn arrive(sink: &mut DatagramSink, sequence: u64, sent_ms: u64, at_ms: u64) {
        let sent = Time::from_ns(sent_ms * 1_000_000);
        sink.arrive(Time::from_ns(at_ms * 1_000_000), sequence, sent, 1500);
    }

    #[test]
    fn jitter_is_that_of_rfc_3550() {
        // Sent every 20 ms; transit times 50, 66, 58, 58, 90 ms: |D| = 16, 8, 0, 32 ms.
        // J = 0, 1, 1 + 7/16 = 1.4375, 1.4375 * 15/16 = 1.34765625, + 30.65234375/16 = 3.263427734375.
        let mut sink = DatagramSink::default();
        let wanted = [0.0, 1.0, 1.4375, 1.347_656_25, 3.263_427_734_375];
        for (index, (transit, jitter)) in [50, 66, 58, 58, 90].into_iter().zip(wanted).enumerate() {
            let sent = 20 * index as u64;
            arrive(&mut sink, index as u64, sent, sent + transit);
            assert!((sink.report().jitter_ns / 1e6 - jitter).abs() < 1e-9);
        }
    }

    #[test]
    fn losses_duplicates_and_reordering_are_counted_apart() {
        let mut sink = DatagramSink::default();
        for sequence in [0, 1, 4, 3, 3, 9, 9, 2] {
            arrive(&mut sink, sequence, 0, 1);
        }
        let report = sink.report();
        // 5, 6, 7, 8 are missing; 3 and 2 came late; 3 and 9 came twice.
        assert_eq!((report.received, report.total, report.lost), (6, 10, 4));
        assert_eq!((report.out_of_order, report.duplicates), (2, 2));
        assert_eq!(report.received_bytes, 9000);
    }

    #[test]
    fn agrees_with_a_set_and_survives_long_gaps() {
        let mut sink = DatagramSink::default();
        let mut stream = Stream::new(5, "sink");
        let (mut seen, mut highest, mut duplicates, mut late) = (BTreeSet::new(), 0, 0, 0);
        let mut base = 0;
        for step in 0..200_000u64 {
            base += 1 + if step % 50_000 == 0 {
                200_000
            } else {
                stream.below(3)
            };
            let sequence = base - stream.below(100.min(base));
            arrive(&mut sink, sequence, 0, 1);
            if seen.insert(sequence) {
                late += u64::from(sequence < highest);
            } else {
                duplicates += 1;
            }
            highest = highest.max(sequence);
        }
        let report = sink.report();
        assert_eq!(report.received, seen.len() as u64);
        assert_eq!(report.total, highest + 1);
        assert_eq!((report.out_of_order, report.duplicates), (late, duplicates));
    }
}
