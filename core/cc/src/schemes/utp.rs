//! uTP as in libutp: LEDBAT with a larger gain, 13 minutes of base delay and its own loss rule.
//!
//! Provenance: libutp (BitTorrent), utp_internal.cpp of its public repository, whose numbers differ from RFC 6817 and
//! BEP 29. Deviations: the correction for clock drift needs delays of both directions and is omitted, as is the penalty
//! for a peer whose clock runs slow; packets have the transport's size; the limit of four retransmissions per
//! acknowledgement and the end of a connection after four timeouts are omitted; a window below one packet sends one
//! packet at a time, where libutp waits for a timeout; before any round trip is known the transport's timeout is 1 s,
//! not 3 s; a spurious timeout is not undone, as in libutp, but the transport then does not retransmit data still in
//! flight.
//!
//! The window moves by 3000 bytes per round trip times the distance from the target of 100 ms, about twice as fast as
//! Reno; slow start adds only a packet per round trip, so the gain dominates there too. Only one delay per
//! acknowledgement counts, that of its newest packet, and the minimum of three is used, capped at the round trip. It
//! grows only if the window was full within the last second. Each loss halves, at most every 100 ms; a timeout reduces
//! the window to one packet. While nothing is sent the window shrinks by a third after 1, 3, 7 ... s.
//!
//! Acknowledgements report only 30 packets beyond the first gap. In a larger window a hole stalls the sender for a
//! round trip, further losses are detected one hole per round trip, and a single overflow may halve the window twice,
//! if the second hole is found more than 100 ms after the first: 50 Mbit/s fall to 20, not to 38. Retransmissions do
//! not wait for room in the window. libutp acknowledges once per drained socket, which is once per packet unless the
//! host is delayed.
//!
//! Pitfalls: as LEDBAT (the latecomer takes more; buffers below 100 ms end in losses). The send buffer of 1 MiB limits
//! the window. The scheme's transport settings are those of libutp: RFC 6298 with at least 1 s, three duplicates, no
//! time threshold and no tail-loss probe, a limit of 30 packets, immediate retransmissions.

use crate::parts::BaseDelays;
use crate::{
    AckEvent, Allowance, CongestionControl, EcnUse, Fields, LossCause, LossEvent, Profile, Recovery,
    Scheme, SendEvent, Setup,
};
use narrows_units::{Bytes, ParamError, Params, Span, Time, params};
use std::collections::VecDeque;

/// Registry entry.
pub const SCHEME: Scheme = Scheme {
    name: "utp",
    summary: "uTP as in libutp: LEDBAT with 3000 bytes per round trip and its own loss rule",
    source: "libutp (BitTorrent), utp_internal.cpp",
    recovery: Recovery::Direct,
    ecn: EcnUse::None,
    loss_based: true,
    transport: &[
        ("rto_rule", "rfc6298"),
        ("min_rto", "1000000000"),
        ("tail_loss_probe", "false"),
        ("rack", "false"),
        ("max_packet_threshold", "3"),
        ("sack_reach", "30"),
        ("repair_at_once", "true"),
        ("ack_every", "1"),
    ],
    profiles: &[Profile {
        name: "pantheon",
        doc: "As in the Pantheon reports (LEDBAT, libutp b3465b9): datagrams of at most 1402 bytes.",
        params: &[],
        transport: &[("packet_size", "1430")],
    }],
    params: UtpParams::PARAMS,
    build,
};

params! {
    /// Parameters.
    struct UtpParams {
        /// Queueing delay to hold.
        target: Span(1e6..=1e10) = "100 ms", "libutp: CCONTROL_TARGET";
        /// Growth per round trip far below the target.
        gain: Bytes(1.0..=1e9) = "3000 B", "libutp: MAX_CWND_INCREASE_BYTES_PER_RTT";
        /// Minutes over which the minimum delay is the path's base delay.
        base_history: Count(1.0..=1000.0) = 13, "libutp: DELAY_BASE_HISTORY, minutes";
        /// Delays whose minimum counts.
        filter: Count(1.0..=1000.0) = 3, "libutp: CUR_DELAY_SIZE";
        /// Send buffer, which is the maximum window.
        buffer: Bytes(1000.0..=1e12) = "1 MiB", "libutp: opt_sndbuf";
    }
}

/// Number of slots of the base delay's history.
const MINUTE: Span = Span::from_ms(60_000);
/// Minimum window in bytes (libutp: MIN_WINDOW_SIZE).
const MIN_WINDOW: f64 = 10.0;
/// Minimum time between two reductions by losses (libutp: MAX_WINDOW_DECAY).
const DECAY_INTERVAL: Span = Span::from_ms(100);
/// Time within which the window must have been full for it to grow.
const FULL_WITHIN: Span = Span::from_ms(1000);
/// Slow start ends at this fraction of the target.
const SLOW_START_SHARE: f64 = 0.9;
/// The first timeout of an idle connection (libutp's minimum); each later one is twice as long.
const IDLE_TIMEOUT: Span = Span::from_ms(1000);

fn build(params: &Params, setup: Setup) -> Result<Box<dyn CongestionControl>, ParamError> {
    let params = UtpParams::read(params);
    let mss = setup.mss.get() as f64;
    // The buffer holds at least a packet.
    let buffer = (params.buffer.get() as f64).max(mss);
    Ok(Box::new(Utp {
        mss,
        target: params.target.ns() as f64,
        gain: params.gain.get() as f64,
        buffer,
        window: mss,
        slow_start: true,
        threshold: buffer,
        base: BaseDelays::new(params.base_history as usize, MINUTE),
        delays: std::iter::repeat_n(0, params.filter as usize).collect(),
        queueing: 0.0,
        full_at: setup.now,
        halved_at: None,
    }))
}

/// Windows in bytes, delays in ns.
struct Utp {
    mss: f64,
    target: f64,
    gain: f64,
    buffer: f64,
    window: f64,
    slow_start: bool,
    threshold: f64,
    base: BaseDelays,
    /// The last delays above the base of their time.
    delays: VecDeque<i64>,
    queueing: f64,
    full_at: Time,
    halved_at: Option<Time>,
}

impl Utp {
    /// Adds the delay of the newest packet; returns whether it was known.
    fn sample(&mut self, ack: &AckEvent<'_>) -> bool {
        let mut newest = ack.packets.iter().rev();
        let Some((sent, arrived)) = newest.find_map(|packet| Some((packet.sent, packet.arrived?)))
        else {
            return false;
        };
        // A difference between both clocks, with an arbitrary offset.
        let delay = arrived.ns().wrapping_sub(sent.ns()) as i64;
        self.base.update(ack.now, delay);
        self.delays.pop_front();
        self.delays.push_back(delay.saturating_sub(self.base.min().unwrap_or(delay)));
        let smallest = self.delays.iter().copied().min().unwrap_or(0);
        let rtts = ack.packets.iter().map(|packet| ack.now.since(packet.sent).ns());
        let rtt = rtts.min().unwrap_or(u64::MAX);
        self.queueing = (smallest as f64).min(rtt as f64);
        true
    }

    fn control(&mut self, now: Time, acked: f64) {
        let share = acked.min(self.window) / acked.max(self.window);
        let mut growth = self.gain * share * (self.target - self.queueing) / self.target;
        if growth > 0.0 && now.since(self.full_at) > FULL_WITHIN {
            growth = 0.0;
        }
        let by_delay = self.window + growth;
        if self.slow_start {
            let by_start = self.window + share * self.mss;
            if by_start > self.threshold {
                self.slow_start = false;
            } else if self.queueing > SLOW_START_SHARE * self.target {
                self.slow_start = false;
                self.threshold = self.window;
            } else {
                self.window = by_start.max(by_delay);
            }
        } else {
            self.window = by_delay;
        }
        self.window = self.window.max(MIN_WINDOW).min(self.buffer);
    }
}

impl CongestionControl for Utp {
    fn on_ack(&mut self, ack: &AckEvent<'_>) {
        if ack.cwnd_limited {
            self.full_at = ack.now;
        }
        if self.sample(ack) {
            self.control(ack.now, ack.bytes.get() as f64);
        }
    }

    fn on_loss(&mut self, loss: &LossEvent<'_>) {
        match loss.cause {
            LossCause::Reordering => {
                if self.halved_at.is_some_and(|at| loss.now.since(at) < DECAY_INTERVAL) {
                    return;
                }
                self.halved_at = Some(loss.now);
                self.window = (self.window / 2.0).max(MIN_WINDOW);
                self.slow_start = false;
                self.threshold = self.window;
            }
            LossCause::Timeout | LossCause::Persistent => {
                self.window = self.mss;
                self.slow_start = true;
            }
        }
    }

    fn on_send(&mut self, send: &SendEvent) {
        // The effect of the timeouts of an idle connection meanwhile.
        let (mut idle, mut timeout) = (send.idle.unwrap_or(Span::ZERO), IDLE_TIMEOUT);
        while idle >= timeout && self.window > self.mss {
            self.window = (self.window * 2.0 / 3.0).max(self.mss);
            idle = idle.saturating_sub(timeout);
            timeout = timeout * 2;
        }
    }

    fn allowance(&self) -> Allowance {
        Allowance { cwnd: Some(Bytes::new(self.window as u64)), ..Allowance::default() }
    }

    fn trace(&self, fields: &mut Fields) {
        fields.ssthresh = Some(Bytes::new(self.threshold as u64));
        fields.mode = if self.slow_start { "slow_start" } else { "avoidance" };
        fields.values.push(("queueing_delay_ms", self.queueing / 1e6));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::AckedPacket;
    use crate::testing::{MSS, setup};

    struct Peer {
        scheme: Box<dyn CongestionControl>,
        now: Time,
        full: bool,
        rtt: Span,
    }

    impl Peer {
        fn new() -> Self {
            let params = Params::resolve(SCHEME.params, []).unwrap();
            let scheme = super::build(&params, setup()).unwrap();
            Peer { scheme, now: Time::ZERO + Span::from_ms(1000), full: true, rtt: Span::from_ms(500) }
        }

        fn window(&self) -> u64 {
            self.scheme.allowance().cwnd.unwrap().get()
        }

        /// Acknowledges `bytes` that were queued for `queue_ms` on a path of 20 ms.
        fn ack(&mut self, bytes: u64, queue_ms: u64) {
            self.now += Span::from_ms(10);
            let sent = self.now - self.rtt;
            let packets = [AckedPacket {
                number: 1,
                bytes: MSS as u32,
                sent,
                arrived: Some(sent + Span::from_ms(20 + queue_ms)),
            }];
            let mut ack = AckEvent::new(self.now);
            ack.packets = &packets;
            ack.bytes = Bytes::new(bytes);
            ack.cwnd_limited = self.full;
            self.scheme.on_ack(&ack);
        }

        fn lose(&mut self, cause: LossCause) {
            self.scheme.on_loss(&LossEvent::new(self.now, cause, Bytes::new(MSS)));
        }

        /// Out of slow start with a window of `bytes` and a known base delay.
        fn grown(bytes: u64) -> Self {
            let mut peer = Peer::new();
            peer.ack(1, 0);
            while peer.window() < 2 * bytes {
                let window = peer.window();
                peer.ack(window, 0);
            }
            peer.lose(LossCause::Reordering);
            // Exactly to it, by a fraction of a window.
            while peer.window() < bytes {
                let missing = bytes - peer.window();
                let window = peer.window();
                peer.ack((missing * window / 3000).clamp(1, window), 0);
            }
            peer
        }
    }

    // libutp, apply_ccontrol: a window of 100 kB, fully acknowledged.
    #[test]
    fn a_round_trip_is_worth_3000_bytes_times_the_distance_from_the_target() {
        for (queue_ms, change) in [(0, 3000.0), (50, 1500.0), (100, 0.0), (200, -3000.0)] {
            let mut peer = Peer::grown(100_000);
            // Two of the three delays, with almost nothing acknowledged.
            peer.ack(1, queue_ms);
            peer.ack(1, queue_ms);
            let before = peer.window();
            peer.ack(before, queue_ms);
            let moved = peer.window() as f64 - before as f64;
            assert!((moved - change).abs() <= 1.0, "{queue_ms} ms: {moved}");
        }
    }

    // A packet of 1400 bytes of a window of 100 kB: 3000 x 0.014 = 42 bytes times the distance.
    #[test]
    fn a_packet_is_worth_its_part_of_that() {
        for (queue_ms, change) in [(0, 42.0), (50, 21.0), (100, 0.0), (150, -21.0), (400, -126.0)] {
            let mut peer = Peer::grown(100_000);
            peer.ack(1, queue_ms);
            peer.ack(1, queue_ms);
            let before = peer.window();
            let share = 100_000.0 / before as f64;
            assert!((0.98..1.02).contains(&share), "{before}");
            peer.ack(1400, queue_ms);
            let moved = peer.window() as f64 - before as f64;
            // Windows are shown in whole bytes.
            assert!((moved - share * change).abs() <= 1.0, "{queue_ms} ms: {moved}");
        }
    }

    #[test]
    fn a_delay_is_never_longer_than_the_round_trip() {
        let mut peer = Peer::grown(100_000);
        peer.rtt = Span::from_ms(50);
        for _ in 0..3 {
            peer.ack(1, 200);
        }
        let before = peer.window();
        peer.ack(before, 200);
        assert!((1499..=1501).contains(&(peer.window() - before)));
    }

    #[test]
    fn losses_halve_at_most_every_100_ms() {
        let mut peer = Peer::grown(100_000);
        peer.now += Span::from_ms(1000);
        let window = peer.window();
        peer.lose(LossCause::Reordering);
        peer.now += Span::from_ms(99);
        peer.lose(LossCause::Reordering);
        assert_eq!(peer.window(), window / 2);
        peer.now += Span::from_ms(1);
        peer.lose(LossCause::Reordering);
        assert_eq!(peer.window(), window / 4);
    }

    #[test]
    fn a_timeout_leaves_one_packet_and_slow_start_adds_one_per_round() {
        let mut peer = Peer::grown(100_000);
        peer.lose(LossCause::Timeout);
        assert_eq!(peer.window(), MSS);
        // 85 ms of queue: 3000 bytes times 15 % is less than a packet, which slow start adds.
        for _ in 0..3 {
            peer.ack(1, 85);
        }
        let before = peer.window();
        peer.ack(before, 85);
        assert_eq!(peer.window() - before, MSS);
        // Beyond 90 % of the target it ends.
        for _ in 0..3 {
            peer.ack(1, 95);
        }
        let before = peer.window();
        peer.ack(before, 95);
        assert!((149..=151).contains(&(peer.window() - before)));
    }

    #[test]
    fn a_window_that_was_not_full_for_a_second_does_not_grow() {
        let mut peer = Peer::grown(100_000);
        peer.full = false;
        peer.now += Span::from_ms(1001);
        let before = peer.window();
        peer.ack(before, 0);
        assert_eq!(peer.window(), before);
        for _ in 0..3 {
            peer.ack(1, 200);
        }
        peer.ack(before, 200);
        assert!(peer.window() < before);
    }

    #[test]
    fn an_idle_window_shrinks_by_a_third_per_timeout() {
        let mut peer = Peer::grown(90_000);
        let window = peer.window() as f64;
        let mut send = SendEvent::new(peer.now, 1, Bytes::new(MSS));
        send.idle = Some(Span::from_ms(999));
        peer.scheme.on_send(&send);
        assert_eq!(peer.window() as f64, window);
        // Timeouts after 1 s and 3 s; the next would be due after 7 s.
        send.idle = Some(Span::from_ms(6_900));
        peer.scheme.on_send(&send);
        assert!((peer.window() as f64 - window * 4.0 / 9.0).abs() <= 1.0);
    }

    #[test]
    fn the_send_buffer_is_the_largest_window() {
        let mut peer = Peer::grown(500_000);
        for _ in 0..400 {
            let window = peer.window();
            peer.ack(window, 0);
        }
        assert_eq!(peer.window(), 1 << 20);
    }
}
