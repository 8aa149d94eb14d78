//! Westwood+: after a loss the window is set to the measured capacity of the path, instead of being halved.
//!
//! Provenance: L. A. Grieco and S. Mascolo, "Performance evaluation and comparison of Westwood+, New Reno, and Vegas
//! TCP congestion control", ACM CCR 34(2), 2004; filter as in Linux `net/ipv4/tcp_westwood.c`. The bytes delivered in
//! max(RTT, 50 ms) are one sample of the bandwidth; samples pass through two filters in series, each with gain 1/8. A
//! loss sets threshold and window to bandwidth times minimum RTT. Growth is Reno's.
//!
//! Deviations: bytes delivered are counted by the transport (selective acknowledgements), so duplicate acknowledgements
//! need no special rules. Before the first sample of bandwidth a loss halves the window. Linux halves the window during
//! the recovery and sets the measured value afterwards (`repair: half`).
//!
//! A random loss with an empty queue leaves the window nearly unchanged, one with a full queue removes the queue from
//! it: the buffer drains, the link stays busy. Aggregated acknowledgements inflate the bandwidth estimate, and an
//! outdated minimum RTT after a path change distorts the window (a timeout resets it). The filters are slow to follow
//! slow start: at its end on a long path the estimate is a twentieth of the bandwidth, which determines the window.

use crate::parts::{ReductionCause, LossBased, CongestionEvent, WindowRules, CongestionWindow};
use crate::{AckEvent, Fields, Scheme};
use narrows_units::{Params, Span, Time, choice, params};

/// Registry entry.
pub const SCHEME: Scheme = Scheme {
    name: "westwood",
    summary: "Westwood+: a loss sets the window to measured bandwidth times smallest RTT",
    source: "Grieco and Mascolo 2004",
    params: WestwoodParams::PARAMS,
    build: |params, setup| Ok(LossBased::boxed(CongestionWindow::new(&setup), Westwood::new(params))),
    loss_based: false,
    ..super::reno::SCHEME
};

choice! {
    /// Window during a recovery.
    enum Repair { Estimate = "estimate", Half = "half" }
}

params! {
    /// Parameters.
    struct WestwoodParams {
        /// Window during a recovery: the measured value at once, or half until the end.
        repair: Repair = "estimate", "Grieco and Mascolo 2004; half: Linux tcp_westwood";
        /// Shortest time over which bandwidth is measured.
        interval: Span(0.0..=1e10) = "50 ms", "Linux tcp_westwood";
    }
}

/// Minimum window after a loss, in packets.
const MIN_WINDOW: f64 = 2.0;

#[derive(Clone)]
struct Westwood {
    params: WestwoodParams,
    /// Start of the current sample, and the bytes delivered since.
    began: Option<Time>,
    gathered: u64,
    latest_rtt: Span,
    min_rtt: Span,
    /// Bytes per second after one filter and after two.
    once: f64,
    twice: f64,
    /// The window is halved; the measured value is set when the recovery ends.
    due: bool,
}

impl Westwood {
    fn new(params: &Params) -> Self {
        Westwood {
            params: WestwoodParams::read(params),
            began: None,
            gathered: 0,
            latest_rtt: Span::ZERO,
            min_rtt: Span::MAX,
            once: 0.0,
            twice: 0.0,
            due: false,
        }
    }

    fn filter(&mut self, sample: f64) {
        if self.once == 0.0 {
            self.once = sample;
            self.twice = sample;
        } else {
            self.once = 0.875 * self.once + 0.125 * sample;
            self.twice = 0.875 * self.twice + 0.125 * self.once;
        }
    }

    /// Packets that the path carries without queues, in packets.
    fn estimate(&self, window: &CongestionWindow) -> Option<f64> {
        (self.twice > 0.0 && self.min_rtt != Span::MAX)
            .then(|| (self.twice * self.min_rtt.secs() / window.mss()).floor().max(MIN_WINDOW))
    }
}

impl WindowRules for Westwood {
    fn observe(&mut self, ack: &AckEvent<'_>, _: &mut CongestionWindow) {
        if let Some(rtt) = ack.latest_rtt {
            self.latest_rtt = rtt;
            self.min_rtt = self.min_rtt.min(rtt);
        }
        let Some(began) = self.began else {
            // The first arrivals were sent before the measurement began.
            self.began = Some(ack.now);
            return;
        };
        self.gathered += ack.bytes.get();
        let passed = ack.now.since(began);
        if passed > self.params.interval.max(self.latest_rtt) {
            self.filter(self.gathered as f64 / passed.secs());
            self.began = Some(ack.now);
            self.gathered = 0;
        }
    }

    fn congestion_avoidance(&mut self, window: &mut CongestionWindow, _: &AckEvent<'_>, bytes: u64) {
        window.additive_increase(bytes, window.cwnd().get());
    }

    fn ssthresh(&mut self, window: &CongestionWindow, congestion: &CongestionEvent) -> f64 {
        let half = window.packets() / 2.0;
        let estimate = self.estimate(window);
        self.due = self.params.repair == Repair::Half && congestion.cause != ReductionCause::Timeout;
        if congestion.cause == ReductionCause::Timeout {
            self.min_rtt = Span::MAX;
        }
        if self.due { half } else { estimate.unwrap_or(half) }
    }

    fn on_recovery_exit(&mut self, window: &mut CongestionWindow, _: Time) {
        if std::mem::take(&mut self.due)
            && let Some(estimate) = self.estimate(window)
        {
            window.set_packets(estimate);
            window.exit_slow_start();
        }
    }

    fn trace(&self, fields: &mut Fields) {
        fields.values.push(("bandwidth_bps", self.twice * 8.0));
        if self.min_rtt != Span::MAX {
            fields.values.push(("min_rtt_s", self.min_rtt.secs()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{MSS, setup};
    use narrows_units::Bytes;

    fn westwood(repair: &str) -> Westwood {
        let given = ("repair".to_owned(), SCHEME.params[0].parse(repair).unwrap());
        Westwood::new(&Params::resolve(SCHEME.params, [given]).unwrap())
    }

    fn congestion(cause: ReductionCause) -> CongestionEvent {
        CongestionEvent { now: Time::ZERO, cause, in_flight: 40.0 }
    }

    #[test]
    fn the_window_after_a_loss_is_bandwidth_times_rtt() {
        // 1.25 MB/s and 100 ms are 86 packets of 1448 bytes (Linux tcp_westwood.c).
        let mut setup = setup();
        setup.mss = Bytes::new(1448);
        let mut window = CongestionWindow::new(&setup);
        window.set_packets(200.0);
        let mut rules = westwood("estimate");
        rules.filter(1.25e6);
        rules.min_rtt = Span::from_ms(100);
        assert_eq!(rules.ssthresh(&window, &congestion(ReductionCause::Loss)), 86.0);
        assert_eq!(rules.ssthresh(&window, &congestion(ReductionCause::Mark)), 86.0);
    }

    #[test]
    fn samples_pass_two_filters() {
        let mut rules = westwood("estimate");
        rules.filter(800.0);
        assert_eq!((rules.once, rules.twice), (800.0, 800.0));
        rules.filter(1600.0);
        assert_eq!((rules.once, rules.twice), (900.0, 812.5));
    }

    #[test]
    fn a_sample_lasts_a_round_trip_or_fifty_milliseconds() {
        for (rtt_ms, samples) in [(10, 19), (200, 4)] {
            let mut rules = westwood("estimate");
            let mut window = CongestionWindow::new(&setup());
            let mut taken = 0;
            for ms in 0..1000 {
                let mut ack = AckEvent::new(Time::ZERO + Span::from_ms(ms));
                ack.latest_rtt = Some(Span::from_ms(rtt_ms));
                ack.bytes = Bytes::new(MSS);
                rules.observe(&ack, &mut window);
                taken += u32::from(rules.gathered == 0 && ms > 0);
                if rules.twice > 0.0 {
                    // One packet per millisecond.
                    assert!((rules.twice - 1e6).abs() < 1e-3, "{}", rules.twice);
                }
            }
            // 999 ms, each sample being the first acknowledgement after the time is over.
            assert_eq!(taken, samples, "{rtt_ms} ms");
        }
    }

    #[test]
    fn a_timeout_learns_the_rtt_anew() {
        let window = CongestionWindow::new(&setup());
        let mut rules = westwood("estimate");
        rules.filter(1e6);
        rules.min_rtt = Span::from_ms(30);
        assert_eq!(rules.ssthresh(&window, &congestion(ReductionCause::Timeout)), 30.0);
        assert_eq!(rules.estimate(&window), None);
    }

    #[test]
    fn the_kernel_halves_until_the_repair_ends() {
        let mut window = CongestionWindow::new(&setup());
        window.set_packets(40.0);
        let mut rules = westwood("half");
        rules.filter(1e6);
        rules.min_rtt = Span::from_ms(30);
        assert_eq!(rules.ssthresh(&window, &congestion(ReductionCause::Loss)), 20.0);
        window.reduce(20 * MSS);
        rules.on_recovery_exit(&mut window, Time::ZERO);
        assert_eq!((window.packets(), window.in_slow_start()), (30.0, false));
        // Only once, and not after a timeout.
        window.set_packets(33.0);
        rules.on_recovery_exit(&mut window, Time::ZERO);
        assert_eq!(window.packets(), 33.0);
    }

    #[test]
    fn without_a_sample_a_loss_halves() {
        let mut window = CongestionWindow::new(&setup());
        window.set_packets(40.0);
        assert_eq!(westwood("estimate").ssthresh(&window, &congestion(ReductionCause::Loss)), 20.0);
    }
}
