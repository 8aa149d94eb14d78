//! The kernel's view of connections: samples of their state, and totals at their ends.

use super::super::clock::SampleTimes;
use super::super::{EndpointOutcome, StateSample, TcpLimits};
use narrows_record::{ReceiverCounters, SenderCounters, StateRow};
use narrows_sys::socket;
use narrows_sys::tcp_info::{BUFFER, TcpInfo};
use narrows_units::{Span, Time};
use std::os::fd::BorrowedFd;

/// The kernel's "no threshold yet" (TCP_INFINITE_SSTHRESH).
const NO_SSTHRESH: u32 = 0x7fff_ffff;

/// Sums over connections that have ended.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Totals {
    delivered: u64,
    retransmitted_bytes: u64,
    sent_packets: u64,
    retransmitted_packets: u64,
    timeouts: u64,
    spurious: u64,
    received_packets: u64,
    received_bytes: u64,
    limits: TcpLimits,
}

impl Totals {
    /// Adds the kernel's counters of a connection, just before it is closed.
    pub(super) fn add(&mut self, fd: BorrowedFd) {
        let mut buffer = [0; BUFFER];
        let Ok(bytes) = socket::tcp_info(fd, &mut buffer) else {
            return;
        };
        let info = TcpInfo::new(bytes);
        self.delivered += info.bytes_acked().unwrap_or(0);
        self.retransmitted_bytes += info.bytes_retrans().unwrap_or(0);
        self.sent_packets += u64::from(info.data_segs_out().unwrap_or(0));
        self.retransmitted_packets += u64::from(info.total_retrans().unwrap_or(0));
        self.timeouts += u64::from(info.total_rto().unwrap_or(0));
        self.spurious += u64::from(info.dsack_dups().unwrap_or(0));
        self.received_packets += u64::from(info.data_segs_in().unwrap_or(0));
        self.received_bytes += info.bytes_received().unwrap_or(0);
        self.limits.busy_us += info.busy_time_us().unwrap_or(0);
        self.limits.rwnd_us += info.rwnd_limited_us().unwrap_or(0);
        self.limits.sndbuf_us += info.sndbuf_limited_us().unwrap_or(0);
    }

    /// The counters of the end that sends the data.
    pub(super) fn sender(&self, outcome: &mut EndpointOutcome) {
        outcome.sender = SenderCounters {
            sent_packets: Some(self.sent_packets),
            // The kernel counts payload, and headers vary with the options.
            sent_bytes: None,
            retransmitted_packets: Some(self.retransmitted_packets),
            retransmitted_bytes: Some(self.retransmitted_bytes),
            timeouts: Some(self.timeouts),
            tail_probes: None,
            spurious_losses: Some(self.spurious),
        };
        outcome.limits.busy_us = self.limits.busy_us;
        outcome.limits.rwnd_us = self.limits.rwnd_us;
        outcome.limits.sndbuf_us = self.limits.sndbuf_us;
    }

    /// The counters of the end that receives the data.
    pub(super) fn receiver(&self, outcome: &mut EndpointOutcome) {
        outcome.receiver = ReceiverCounters {
            received_packets: Some(self.received_packets),
            received_bytes: None,
            // Data that arrived after the last read are delivered as well.
            goodput_bytes: Some(self.received_bytes),
            ..ReceiverCounters::default()
        };
    }
}

/// Takes samples of the state of a flow's connections at regular times.
///
/// As long as a flow has had one connection, a sample is that connection's state. With several, it is their sum
/// (windows, bytes, rates), the mean of their round-trip times and the minimum of their minima; thresholds and modes
/// have no sum and are omitted. Bytes delivered and retransmitted include those of connections that have ended.
pub(super) struct Sampler {
    pub(super) times: SampleTimes,
    buffer: [u8; BUFFER],
    details: [u8; 64],
}

impl Sampler {
    pub(super) fn new(start: Time, distance: Span) -> Self {
        Sampler {
            times: SampleTimes::new(start, distance),
            buffer: [0; BUFFER],
            details: [0; 64],
        }
    }

    /// Samples the connections: descriptors, and whether each should have data to send. `single` if
    /// the flow has never had another.
    pub(super) fn sample<'a>(
        &mut self,
        now: Time,
        single: bool,
        past: &Totals,
        connections: impl Iterator<Item = (BorrowedFd<'a>, bool)>,
        outcome: &mut EndpointOutcome,
    ) {
        let mut sum = Sum::default();
        for (fd, greedy) in connections {
            let Ok(bytes) = socket::tcp_info(fd, &mut self.buffer) else {
                continue;
            };
            let info = TcpInfo::new(bytes);
            if greedy {
                outcome.limits.samples += 1;
                outcome.limits.starved += u64::from(info.notsent_bytes() == Some(0));
            }
            let row = state(now, &info);
            if !single {
                sum.add(&row);
                continue;
            }
            outcome.states.push(StateSample::from(row));
            if let Some(marked) = info.delivered_ce().filter(|&packets| packets > 0) {
                // Marks reported by acknowledgements: with classic ECN more than the queue marked.
                let name = "marked_packets".to_owned();
                outcome.traces.push((now.ns(), name, f64::from(marked)));
            }
            if let Ok(details) = socket::congestion_info(fd, &mut self.details) {
                bbr_details(now, details, &mut outcome.traces);
            }
        }
        if !single {
            outcome
                .states
                .push(StateSample::from(sum.finish(now, past)));
        }
    }
}

/// The combined state of several connections.
#[derive(Default)]
struct Sum {
    row: StateRow,
    connections: u64,
    srtt_ns: u64,
    with_rtt: u64,
}

impl Sum {
    fn add(&mut self, one: &StateRow) {
        let add = |sum: &mut Option<u64>, value: Option<u64>| {
            if let Some(value) = value {
                *sum = Some(sum.unwrap_or(0).saturating_add(value));
            }
        };
        self.connections += 1;
        let row = &mut self.row;
        add(&mut row.cwnd_bytes, one.cwnd_bytes);
        add(&mut row.pacing_bps, one.pacing_bps);
        add(&mut row.inflight_bytes, one.inflight_bytes);
        add(&mut row.delivered_bytes, one.delivered_bytes);
        add(&mut row.delivery_rate_bps, one.delivery_rate_bps);
        add(&mut row.retransmitted_bytes, one.retransmitted_bytes);
        if let Some(srtt) = one.srtt_ns {
            self.srtt_ns += srtt;
            self.with_rtt += 1;
        }
        row.min_rtt_ns = [row.min_rtt_ns, one.min_rtt_ns].into_iter().flatten().min();
    }

    fn finish(mut self, now: Time, past: &Totals) -> StateRow {
        self.row.time_ns = now.ns();
        self.row.srtt_ns = self.srtt_ns.checked_div(self.with_rtt);
        let delivered = self.row.delivered_bytes.unwrap_or(0) + past.delivered;
        self.row.delivered_bytes = Some(delivered);
        let again = self.row.retransmitted_bytes.unwrap_or(0) + past.retransmitted_bytes;
        self.row.retransmitted_bytes = Some(again);
        if self.connections == 0 {
            self.row.inflight_bytes = Some(0);
        }
        self.row
    }
}

/// The kernel counts windows in segments, and times in microseconds.
fn state(now: Time, info: &TcpInfo) -> StateRow {
    let mss = u64::from(info.snd_mss().unwrap_or(0));
    let bytes = |segments: u32| u64::from(segments) * mss;
    let known = |rate: u64| (rate != u64::MAX).then(|| rate.saturating_mul(8));
    let srtt = info
        .rtt_us()
        .filter(|&us| us > 0)
        .map(|us| u64::from(us) * 1000);
    // The kernel only reports the smoothed round-trip time, and the number of packets that are currently lost, not the
    // total.
    StateRow {
        time_ns: now.ns(),
        cwnd_bytes: info.snd_cwnd().map(bytes),
        ssthresh_bytes: info.snd_ssthresh().filter(|&n| n < NO_SSTHRESH).map(bytes),
        pacing_bps: info.pacing_rate().and_then(known),
        srtt_ns: srtt,
        min_rtt_ns: info
            .min_rtt_us()
            .filter(|&us| us != u32::MAX)
            .map(|us| u64::from(us) * 1000),
        inflight_bytes: info.in_flight().map(bytes),
        delivered_bytes: info.bytes_acked(),
        delivery_rate_bps: info.delivery_rate().and_then(known),
        retransmitted_bytes: info.bytes_retrans(),
        mode: info.recovery_state().map(str::to_owned),
        ..StateRow::default()
    }
}

/// BBR's own view (struct tcp_bbr_info, include/uapi/linux/inet_diag.h): bandwidth in bytes/s in
/// two halves, minimum RTT in us, pacing and window gain in units of 1/256.
fn bbr_details(now: Time, details: &[u8], traces: &mut Vec<(u64, String, f64)>) {
    const LENGTH: usize = 20;
    if details.len() != LENGTH {
        return;
    }
    let word = |index: usize| {
        let bytes = details[index * 4..index * 4 + 4]
            .try_into()
            .unwrap_or_default();
        f64::from(u32::from_ne_bytes(bytes))
    };
    let bandwidth = (word(0) + word(1) * 4_294_967_296.0) * 8.0;
    let mut push = |name: &str, value: f64| traces.push((now.ns(), name.to_owned(), value));
    push("bandwidth_bps", bandwidth);
    push("pacing_gain", word(3) / 256.0);
    push("cwnd_gain", word(4) / 256.0);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_connections_are_summed() {
        let one = |cwnd, srtt: Option<u64>, min| StateRow {
            cwnd_bytes: Some(cwnd),
            srtt_ns: srtt,
            min_rtt_ns: Some(min),
            delivered_bytes: Some(100),
            mode: Some("open".into()),
            ..StateRow::default()
        };
        let mut sum = Sum::default();
        sum.add(&one(1000, Some(20), 10));
        sum.add(&one(3000, Some(40), 5));
        sum.add(&one(2000, None, 7));
        let past = Totals {
            delivered: 1,
            ..Totals::default()
        };
        let row = sum.finish(Time::from_ns(9), &past);
        assert_eq!(row.cwnd_bytes, Some(6000));
        assert_eq!((row.srtt_ns, row.min_rtt_ns), (Some(30), Some(5)));
        assert_eq!((row.delivered_bytes, row.mode), (Some(301), None));
        let nothing = Sum::default().finish(Time::from_ns(9), &past);
        assert_eq!(nothing.cwnd_bytes, None);
        assert_eq!(nothing.inflight_bytes, Some(0));
    }
}
