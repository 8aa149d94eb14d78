//! Veno: Reno that distinguishes random losses from congestion by Vegas' estimate of the backlog.
//!
//! Provenance: C. P. Fu and S. C. Liew, "TCP Veno: TCP Enhancement for Transmission over Wireless Access Networks",
//! IEEE JSAC 21(2), 2003. The backlog is N = W (RTT - baseRTT) / RTT packets. With N below the threshold the window
//! grows like Reno's, otherwise by one packet every other round trip. A loss with N below the threshold counts as
//! random: four fifths of the window are kept, otherwise half.
//!
//! Deviations: RTT is the smallest of at least three samples of the last complete round trip, so that N is the value
//! before the loss (Linux `net/ipv4/tcp_veno.c` takes the latest sample instead; the paper smooths). Until N was
//! measured for the first time, after a congestion mark and after a timeout the reduction is Reno's.
//!
//! On paths that lose packets at random without queues, the average window is sqrt(4.5/p) packets, 1.7 times Reno's. In
//! a full queue it behaves like Reno, at half its growth. A queue that has just drained when the loss is found makes
//! congestion look random; a path that becomes longer makes everything look like congestion, since the base RTT never
//! expires.

use crate::parts::{ReductionCause, LossBased, CongestionEvent, RttRounds, WindowRules, CongestionWindow};
use crate::{AckEvent, Fields, Scheme};
use narrows_units::{Params, params};

/// Registry entry.
pub const SCHEME: Scheme = Scheme {
    name: "veno",
    summary: "Reno that keeps more of its window when a loss looks random",
    source: "Fu and Liew 2003",
    params: VenoParams::PARAMS,
    build: |params, setup| Ok(LossBased::boxed(CongestionWindow::new(&setup), Veno::new(params))),
    ..super::reno::SCHEME
};

params! {
    /// Parameters.
    struct VenoParams {
        /// Backlog in packets from which a loss counts as congestion.
        threshold: Number(0.0..=10_000.0, "packets") = 3, "Fu and Liew 2003; Linux tcp_veno";
        /// Fraction of the window kept after a random loss.
        random_kept: Ratio(0.05..=0.95) = 0.8, "Fu and Liew 2003; Linux tcp_veno";
    }
}

#[derive(Clone)]
struct Veno {
    params: VenoParams,
    rtt: RttRounds,
    /// Packets queued, as last estimated.
    backlog: Option<f64>,
}

impl Veno {
    fn new(params: &Params) -> Self {
        Veno {
            params: VenoParams::read(params),
            rtt: RttRounds::default(),
            backlog: None,
        }
    }
}

impl WindowRules for Veno {
    fn observe(&mut self, ack: &AckEvent<'_>, window: &mut CongestionWindow) {
        if let Some(rtt) = self.rtt.on_ack(ack).and_then(|round| round.smallest()) {
            self.backlog = Some(self.rtt.backlog(window.packets(), rtt));
        }
    }

    fn congestion_avoidance(&mut self, window: &mut CongestionWindow, _: &AckEvent<'_>, bytes: u64) {
        let crowded = self.backlog.is_some_and(|backlog| backlog >= self.params.threshold);
        let rounds = if crowded { 2 } else { 1 };
        window.additive_increase(bytes, rounds * window.cwnd().get());
    }

    fn ssthresh(&mut self, window: &CongestionWindow, congestion: &CongestionEvent) -> f64 {
        let quiet = self.backlog.is_some_and(|backlog| backlog < self.params.threshold);
        let kept = if quiet && congestion.cause == ReductionCause::Loss { self.params.random_kept } else { 0.5 };
        window.packets() * kept
    }

    fn trace(&self, fields: &mut Fields) {
        if let Some(backlog) = self.backlog {
            fields.values.push(("backlog_packets", backlog));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parts::play_round;
    use crate::testing::setup;
    use narrows_units::{Span, Time};

    /// Rules with a window of 50 packets, a base RTT of 100 ms, and then a round at `rtt_ms`.
    fn measured(rtt_ms: u64) -> (Veno, CongestionWindow) {
        let mut window = CongestionWindow::new(&setup());
        let mut veno = Veno::new(&Params::resolve(SCHEME.params, []).unwrap());
        window.exit_slow_start();
        play_round(&mut veno, &mut window, Span::from_ms(100), 3);
        window.set_packets(50.0);
        window.exit_slow_start();
        play_round(&mut veno, &mut window, Span::from_ms(rtt_ms), 5);
        window.set_packets(50.0);
        (veno, window)
    }

    fn kept(rtt_ms: u64, cause: ReductionCause) -> f64 {
        let (mut veno, window) = measured(rtt_ms);
        let congestion = CongestionEvent { now: Time::ZERO, cause, in_flight: 50.0 };
        veno.ssthresh(&window, &congestion)
    }

    #[test]
    fn a_loss_with_a_short_queue_is_random() {
        // 50 packets, base 100 ms (Fu and Liew 2003): at 104 ms 1.92 are queued, at 110 ms 4.55.
        assert!((measured(104).0.backlog.unwrap() - 1.923).abs() < 0.001);
        assert!((measured(110).0.backlog.unwrap() - 4.545).abs() < 0.001);
        assert_eq!(kept(104, ReductionCause::Loss), 40.0);
        assert_eq!(kept(110, ReductionCause::Loss), 25.0);
    }

    #[test]
    fn marks_and_timeouts_are_never_random() {
        assert_eq!(kept(104, ReductionCause::Mark), 25.0);
        assert_eq!(kept(104, ReductionCause::Timeout), 25.0);
    }

    #[test]
    fn nothing_measured_is_not_random() {
        let window = CongestionWindow::new(&setup());
        let mut veno = Veno::new(&Params::resolve(SCHEME.params, []).unwrap());
        let congestion = CongestionEvent { now: Time::ZERO, cause: ReductionCause::Loss, in_flight: 10.0 };
        assert_eq!(veno.ssthresh(&window, &congestion), 5.0);
    }

    #[test]
    fn growth_halves_when_packets_wait() {
        for (rtt_ms, growth) in [(104, 4.0), (110, 2.0)] {
            let (mut veno, mut window) = measured(rtt_ms);
            let ack = AckEvent::new(Time::ZERO);
            // The counter begins at zero.
            window.reduce(50 * crate::testing::MSS);
            let mut acked = 0.0;
            // Four windows' worth, plus the effect of the window's growth.
            while acked < 4.0 * 50.0 + 10.0 {
                veno.congestion_avoidance(&mut window, &ack, crate::testing::MSS);
                acked += 1.0;
            }
            assert_eq!(window.packets(), 50.0 + growth, "{rtt_ms} ms");
        }
    }
}
