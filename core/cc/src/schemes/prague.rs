//! Prague: marks of the L4S service control the window, in fractions of a packet, with paced packets.
//!
//! Provenance: the requirements of RFC 9331 (January 2023, sections 4 and 5) and the rules of the public TCP Prague
//! tree, L4STeam net/ipv4/tcp_prague.c (branch of 2024, its window mode). Deviations: the tree's second mode, which
//! below four packets controls a rate and shrinks packets, is omitted, so the minimum window is two packets; detection
//! of RFC 3168 queues, off by default in the tree, is omitted; the window applies its fraction at once, not by one
//! packet per acknowledgement.
//!
//! Packets carry ECT(1), for which the scheme enables `transport: {ecn: true}`; it is designed for `dualpi2`
//! (`scenarios/aqm/prague-dualpi2.yaml`). Alpha is the smoothed fraction of marks; once per round trip, or per 25 ms if
//! that is longer, marks reduce the window by alpha / 2, and each unmarked packet always adds its part of one packet
//! per round trip. This settles at about W = 2 / p (up to a third above, as a cut waits for the first mark after a
//! round) and a queue of about 1 ms. The very first mark halves the window; alpha begins at zero. Flows with round
//! trips below 25 ms grow (RTT / 25 ms)^2 as fast, so that all get equal rates, after they have been out of slow start
//! for `rtt_transition` rounds. A loss halves the window, a timeout restarts from one packet.
//!
//! Pitfalls. In a queue that marks by RFC 3168 (RED, CoDel, PIE) Prague starves Reno and CUBIC, because a mark has
//! little effect. Bursts of more than a quarter of a millisecond alone exceed the queue's threshold: do not disable
//! pacing. With `transport: {ecn: false}` it grows and halves as Reno.

use crate::{
    AckEvent, Allowance, CongestionControl, EcnEvent, EcnUse, Fields, LossCause, LossEvent,
    Recovery, Scheme, Setup, SpuriousLossEvent,
};
use narrows_units::{Bytes, Params, Rate, Span, Time, params};

/// Registry entry.
pub const SCHEME: Scheme = Scheme {
    name: "prague",
    summary: "Scalable control for L4S queues: half the share of marks off the window, paced",
    source: "RFC 9331; TCP Prague (L4STeam, Linux net/ipv4/tcp_prague.c)",
    recovery: Recovery::Direct,
    ecn: EcnUse::Scalable,
    loss_based: true,
    transport: &[("ecn", "true")],
    profiles: &[],
    params: PragueParams::PARAMS,
    build: |params, setup| Ok(Box::new(Prague::new(params, &setup))),
};

params! {
    /// Parameters.
    struct PragueParams {
        /// Weight of the newest round in alpha.
        g: Ratio(0.0001..=1.0) = 0.0625, "TCP Prague: PRAGUE_SHIFT_G";
        /// Round trip whose growth shorter ones emulate; 0: none.
        rtt_target: Span(0.0..=1e9) = "25 ms", "TCP Prague: prague_rtt_target; 0 turns it off";
        /// Rounds after slow start until this applies.
        rtt_transition: Count(0.0..=1e6) = 4, "TCP Prague: prague_rtt_transition";
    }
}

/// Round trips above this are never scaled (TCP Prague: MAX_SCALED_RTT).
const MAX_SCALED_RTT: Span = Span::from_ms(100);
/// Smallest window in packets (TCP Prague: MIN_CWND_RTT).
const MIN_WINDOW: f64 = 2.0;
/// A burst lasts at most 1/4096 s at the rate (TCP Prague: prague_burst_shift).
const BURSTS_PER_SECOND: u64 = 4096;

/// State restored by an undo.
#[derive(Clone, Copy, Debug)]
struct Prior {
    window: f64,
    threshold: f64,
}

/// Windows in packets.
struct Prague {
    params: PragueParams,
    mss: u64,
    ecn: bool,
    /// Zero: no scaling.
    target: Span,
    window: f64,
    threshold: f64,
    alpha: f64,
    saw_mark: bool,
    /// Between the first loss of an epoch and its end nothing grows.
    in_loss: bool,
    /// Rounds outside slow start.
    rounds: u64,
    /// Bytes acknowledged and marked since alpha was last updated, and when that was.
    acked: u64,
    marked: u64,
    updated: Time,
    /// Last reduction by marks.
    cut: Option<Time>,
    srtt: Span,
    in_flight: u64,
    prior: Option<Prior>,
}

impl Prague {
    fn new(params: &Params, setup: &Setup) -> Self {
        let params = PragueParams::read(params);
        Prague {
            mss: setup.mss.get(),
            ecn: setup.ecn,
            target: if setup.ecn { params.rtt_target } else { Span::ZERO },
            params,
            window: setup.initial_window as f64,
            threshold: f64::INFINITY,
            alpha: 0.0,
            saw_mark: false,
            in_loss: false,
            rounds: 0,
            acked: 0,
            marked: 0,
            updated: setup.now,
            cut: None,
            srtt: Span::ZERO,
            in_flight: 0,
            prior: None,
        }
    }

    fn in_slow_start(&self) -> bool {
        self.window < self.threshold
    }

    /// True if short round trips now emulate long ones.
    fn is_scaled(&self) -> bool {
        !self.target.is_zero() && !self.in_slow_start() && self.rounds >= self.params.rtt_transition
    }

    /// Growth per round trip in packets.
    fn increase(&self) -> f64 {
        let short = self.srtt < self.target && self.srtt <= MAX_SCALED_RTT;
        if !self.is_scaled() || !short || self.srtt.is_zero() {
            return 1.0;
        }
        let share = self.srtt.secs() / self.target.secs();
        share * share
    }

    fn reduce(&mut self, window: f64) {
        self.window = window.max(MIN_WINDOW);
        self.threshold = self.window;
    }

    fn remember(&mut self) {
        self.prior = Some(Prior { window: self.window, threshold: self.threshold });
    }

    fn grow(&mut self, mut packets: f64) {
        if self.in_slow_start() {
            let growth = packets.min(self.threshold - self.window);
            self.window += growth;
            packets -= growth;
        }
        if packets > 0.0 && !self.in_slow_start() {
            self.window += packets * self.increase() / self.window;
        }
    }

    fn update_alpha(&mut self, now: Time) {
        let early = self.is_scaled() && now.since(self.updated) < self.target;
        if early || self.acked == 0 {
            return;
        }
        if self.saw_mark {
            let share = self.marked as f64 / self.acked as f64;
            self.alpha += self.params.g * (share - self.alpha);
            self.updated = now;
        }
        (self.acked, self.marked) = (0, 0);
        self.rounds += u64::from(!self.in_slow_start());
    }

    fn rate(&self) -> Option<Rate> {
        if self.srtt.is_zero() || !self.ecn {
            return None;
        }
        let bytes = ((self.window * self.mss as f64) as u64).max(self.in_flight);
        let double = if self.window < self.threshold / 2.0 { 2 } else { 1 };
        Some(Rate::of(Bytes::new(bytes * double), self.srtt))
    }
}

impl CongestionControl for Prague {
    fn on_ack(&mut self, ack: &AckEvent<'_>) {
        self.srtt = ack.smoothed_rtt;
        self.in_flight = ack.in_flight.get();
        self.acked += ack.bytes.get();
        self.marked += ack.ce_bytes.get();
        if ack.cwnd_limited && !self.in_loss {
            // Also in rounds with reductions by marks (the tree's notes: unsaturated marking).
            let clean = ack.bytes.saturating_sub(ack.ce_bytes).get();
            self.grow(clean as f64 / self.mss as f64);
        }
        if ack.round_start {
            self.update_alpha(ack.now);
        }
    }

    fn on_loss(&mut self, loss: &LossEvent<'_>) {
        match loss.cause {
            // A loss after marks of the same epoch counts as well: marks reduced only by alpha / 2.
            LossCause::Reordering if self.in_loss => {}
            LossCause::Reordering => {
                self.remember();
                self.reduce(self.window / 2.0);
                self.in_loss = true;
            }
            LossCause::Timeout | LossCause::Persistent => {
                if loss.new_epoch {
                    self.remember();
                    self.threshold = (self.window / 2.0).max(MIN_WINDOW);
                }
                self.window = 1.0;
                self.in_loss = false;
            }
        }
    }

    fn on_ecn(&mut self, ecn: &EcnEvent) {
        if !self.saw_mark {
            // A queue marks packets: alpha is meaningful from here on.
            self.saw_mark = true;
            self.updated = ecn.now;
            self.reduce(self.window / 2.0);
        }
        let early = self.is_scaled() && self.cut.is_some_and(|cut| ecn.now.since(cut) < self.target);
        if ecn.new_epoch && !early {
            self.cut = Some(ecn.now);
            self.reduce(self.window * (1.0 - self.alpha / 2.0));
        }
    }

    fn on_spurious_loss(&mut self, _: &SpuriousLossEvent) {
        self.in_loss = false;
        if let Some(prior) = self.prior.take() {
            self.window = self.window.max(prior.window);
            self.threshold = prior.threshold;
        }
    }

    fn on_recovery_exit(&mut self, _: Time) {
        self.in_loss = false;
    }

    fn allowance(&self) -> Allowance {
        // A fraction of a packet allows a whole one; pacing preserves the average.
        let cwnd = Bytes::new(self.window.ceil() as u64 * self.mss);
        let pacing = self.rate();
        let quantum = pacing.map(|rate| {
            let packets = rate.bps() / 8 / BURSTS_PER_SECOND / self.mss;
            Bytes::new(packets.max(1) * self.mss)
        });
        Allowance { cwnd: Some(cwnd), pacing, quantum, ..Allowance::default() }
    }

    fn trace(&self, fields: &mut Fields) {
        fields.ssthresh = self.threshold.is_finite().then(|| {
            Bytes::new((self.threshold * self.mss as f64) as u64)
        });
        fields.mode = if self.in_slow_start() { "slow_start" } else { "avoidance" };
        fields.values.push(("alpha_ratio", self.alpha));
        fields.values.push(("window_packets", self.window));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{MSS, setup};

    /// Rounds of acknowledgements, one per packet, of which every `every`-th is marked.
    struct Path {
        prague: Prague,
        now: Time,
        rtt: Span,
        every: u64,
        packets: u64,
        /// End of the epoch that marks have opened.
        epoch: u64,
    }

    impl Path {
        fn new(rtt_ms: u64, window: f64, alpha: f64) -> Self {
            let params = Params::resolve(SCHEME.params, []).unwrap();
            let mut prague = Prague::new(&params, &setup());
            prague.window = window;
            prague.threshold = window;
            prague.alpha = alpha;
            prague.saw_mark = true;
            prague.rounds = 4;
            let rtt = Span::from_ms(rtt_ms);
            let now = Time::ZERO + Span::from_ms(1000);
            Path { prague, now, rtt, every: u64::MAX, packets: 0, epoch: 0 }
        }

        fn round(&mut self) {
            let window = self.prague.window.ceil() as u64;
            for index in 0..window {
                self.now += Span::from_ns(self.rtt.ns() / window);
                self.packets += 1;
                let marked = self.packets.is_multiple_of(self.every);
                if marked {
                    let mut ecn = EcnEvent::new(self.now, Bytes::new(window * MSS));
                    ecn.new_epoch = self.packets > self.epoch;
                    if ecn.new_epoch {
                        self.epoch = self.packets + window;
                    }
                    self.prague.on_ecn(&ecn);
                }
                let mut ack = AckEvent::new(self.now);
                ack.bytes = Bytes::new(MSS);
                ack.ce_bytes = Bytes::new(if marked { MSS } else { 0 });
                ack.smoothed_rtt = self.rtt;
                ack.in_flight = Bytes::new((window - 1) * MSS);
                ack.round_start = index == 0;
                self.prague.on_ack(&ack);
            }
        }
    }

    // TCP Prague, prague_enter_cwr: the window is reduced by the fraction alpha / 2.
    #[test]
    fn marks_take_half_of_alpha_once_per_epoch() {
        let mut path = Path::new(50, 100.0, 0.1);
        path.prague.on_ecn(&EcnEvent::new(path.now, Bytes::new(100 * MSS)));
        assert_eq!(path.prague.window, 95.0);
        let mut again = EcnEvent::new(path.now, Bytes::new(100 * MSS));
        again.new_epoch = false;
        path.prague.on_ecn(&again);
        assert_eq!(path.prague.window, 95.0);
    }

    // TCP Prague, prague_rate_scaled_ai_ack_increase: (10 ms / 25 ms)^2.
    #[test]
    fn short_round_trips_grow_as_much_per_second_as_long_ones() {
        let mut short = Path::new(10, 100.0, 0.0);
        assert!((short.prague.increase() - 1.0).abs() < 1e-12, "no round trip is known yet");
        short.round();
        let before = short.prague.window;
        short.round();
        let growth = short.prague.window - before;
        assert!((growth - 0.16).abs() < 0.002, "{growth}");
        // Per second and round trip: packets / s^2.
        let mut long = Path::new(25, 100.0, 0.0);
        long.round();
        let before = long.prague.window;
        long.round();
        let long = (long.prague.window - before) / (0.025 * 0.025);
        assert!((growth / (0.010 * 0.010) / long - 1.0).abs() < 0.03);
    }

    // RFC 9332, section 2.1 and TCP Prague: W = 2 / p, or two marks per round.
    #[test]
    fn the_window_settles_at_about_two_over_p() {
        for (every, rtt_ms) in [(50, 50), (20, 50), (200, 100)] {
            let mut path = Path::new(rtt_ms, 30.0, 0.2);
            path.every = every;
            for _ in 0..1000 {
                path.round();
            }
            let mut sum = 0.0;
            for _ in 0..200 {
                path.round();
                sum += path.prague.window;
            }
            // Only packets without marks add: W0 = 2 (1 - p) / p with a reduction in each round. With regular marks, W
            // p of them per round, more than a round passes until the next mark counts: (W / W0)^2 = ceil(2 W / W0) /
            // 2, which holds for W / W0 = 1 and for the root of 3/2. Windows at the ends of rounds see a part of the
            // sawtooth, of one packet.
            let (p, window) = (1.0 / every as f64, sum / 200.0);
            let ratio = window / (2.0 * (1.0 - p) / p);
            assert!((0.97..=1.26).contains(&ratio), "{window} at {p}: {ratio}");
        }
    }

    #[test]
    fn short_round_trips_are_cut_once_per_target() {
        let mut path = Path::new(10, 100.0, 0.1);
        path.prague.srtt = path.rtt;
        let mut cuts = 0;
        for _ in 0..100 {
            let before = path.prague.window;
            path.prague.on_ecn(&EcnEvent::new(path.now, Bytes::new(100 * MSS)));
            cuts += u32::from(path.prague.window < before);
            path.now += Span::from_ms(10);
        }
        // A second with round trips of 10 ms: every third of them is the first after 25 ms.
        assert_eq!(cuts, 34);
    }

    #[test]
    fn the_first_mark_halves_and_ends_slow_start() {
        let params = Params::resolve(SCHEME.params, []).unwrap();
        let mut prague = Prague::new(&params, &setup());
        assert!(prague.in_slow_start());
        prague.on_ecn(&EcnEvent::new(Time::ZERO, Bytes::new(10 * MSS)));
        assert_eq!((prague.window, prague.alpha), (5.0, 0.0));
        assert!(!prague.in_slow_start());
    }

    #[test]
    fn a_loss_halves_once_even_among_marks() {
        let mut path = Path::new(50, 100.0, 0.1);
        path.prague.on_ecn(&EcnEvent::new(path.now, Bytes::new(100 * MSS)));
        let mut loss = LossEvent::new(path.now, LossCause::Reordering, Bytes::new(MSS));
        loss.new_epoch = false;
        path.prague.on_loss(&loss);
        path.prague.on_loss(&loss);
        assert_eq!(path.prague.window, 47.5);
        path.prague.on_recovery_exit(path.now);
        path.prague.on_spurious_loss(&SpuriousLossEvent::new(path.now, LossCause::Reordering));
        assert_eq!(path.prague.window, 95.0);
        path.prague.on_loss(&LossEvent::new(path.now, LossCause::Timeout, Bytes::new(MSS)));
        assert_eq!((path.prague.window, path.prague.threshold), (1.0, 47.5));
    }

    #[test]
    fn pacing_is_one_window_per_round_trip_in_bursts_of_a_quarter_millisecond() {
        let mut path = Path::new(20, 100.0, 0.0);
        path.prague.srtt = path.rtt;
        let allowance = path.prague.allowance();
        // 100 packets of 1000 bytes in 20 ms: 40 Mbit/s, of which 1/4096 s is 1.2 packets.
        assert_eq!(allowance.pacing, Some(Rate::from_bps(40_000_000)));
        assert_eq!(allowance.quantum, Some(Bytes::new(MSS)));
        path.prague.window = 1000.0;
        assert_eq!(path.prague.allowance().quantum, Some(Bytes::new(12 * MSS)));
        path.prague.threshold = 3000.0;
        assert_eq!(path.prague.allowance().pacing, Some(Rate::from_bps(800_000_000)));
    }
}
