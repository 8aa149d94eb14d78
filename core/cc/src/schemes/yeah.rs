//! YeAH: Scalable while queues are short, Reno otherwise, and an early reduction that removes the queue from the
//! window.
//!
//! Provenance: A. Baiocchi, A. P. Castellani and F. Vacirca, "YeAH-TCP: Yet Another Highspeed TCP", PFLDnet 2007;
//! constants and order of the rules as in Linux `net/ipv4/tcp_yeah.c`. Once per round trip the backlog Q = W (RTT -
//! base)/RTT is estimated. Fast mode (Scalable: one packet per hundred acknowledged) while Q is at most alpha and the
//! queueing delay at most base/phi; slow mode (Reno) otherwise, in which Q is subtracted from the window whenever it
//! exceeds alpha, but not below the window of a Reno flow. A loss in fast mode subtracts Q, at least an eighth and at
//! most half of the window; after rho rounds in slow mode, half.
//!
//! Deviations: the backlog is a real number, not a whole one.
//!
//! Alone, the queue stays below about 80 packets if the path holds more than phi alpha = 640 of them. On smaller paths
//! the delay limit is reached first: it stays in slow mode, the virtual Reno flow grows with it and prevents
//! reductions, and it fills the buffer like Reno. In competition with Reno it stays in slow mode and is fair after rho
//! round trips; jitter above an eighth of the base RTT has the same effect. When slow start overshoots a long path, its
//! backlog has not been measured yet: the first losses remove an eighth each.

use crate::parts::{LossBased, CongestionEvent, RttRounds, WindowRules, CongestionWindow};
use crate::{AckEvent, Fields, Scheme};
use narrows_units::{Params, Span, params};

/// Registry entry.
pub const SCHEME: Scheme = Scheme {
    name: "yeah",
    summary: "Scalable while queues are short, Reno otherwise, with early reductions of the queue",
    source: "Baiocchi, Castellani and Vacirca 2007",
    params: YeahParams::PARAMS,
    build: |params, setup| Ok(LossBased::boxed(CongestionWindow::new(&setup), Yeah::new(params))),
    ..super::reno::SCHEME
};

params! {
    /// Parameters.
    struct YeahParams {
        /// Backlog in packets above which it is reduced.
        alpha: Number(1.0..=1e6, "packets") = 80, "Linux tcp_yeah";
        /// Divisor of the backlog that is removed.
        gamma: Number(1.0..=1000.0) = 1, "Linux tcp_yeah";
        /// Maximum fraction removed by an early reduction.
        epsilon: Ratio(0.01..=0.95) = 0.5, "Linux tcp_yeah";
        /// Minimum fraction removed by a loss.
        delta: Ratio(0.01..=0.5) = 0.125, "Linux tcp_yeah";
        /// Base RTT over the queueing delay that ends fast mode.
        phi: Number(0.1..=10_000.0) = 8, "Linux tcp_yeah";
        /// Rounds in slow mode after which a loss halves.
        rho: Count(1.0..=1e6, "round trips") = 16, "Linux tcp_yeah";
        /// Rounds in fast mode after which the Reno flow is forgotten.
        zeta: Count(1.0..=1e6, "round trips") = 50, "Linux tcp_yeah";
    }
}

/// Maximum number of acknowledged packets per packet of growth in fast mode (Scalable TCP).
const SCALABLE: f64 = 100.0;

/// Minimum windows, in packets.
const MIN_WINDOW: f64 = 2.0;

#[derive(Clone)]
struct Yeah {
    params: YeahParams,
    rtt: RttRounds,
    /// Packets queued, as last estimated.
    backlog: f64,
    /// Rounds in slow mode in a row; zero in fast mode.
    slow_rounds: u64,
    /// Rounds in fast mode.
    fast_rounds: u64,
    /// The estimated window of a competing Reno flow.
    reno_window: f64,
}

impl Yeah {
    fn new(params: &Params) -> Self {
        Yeah {
            params: YeahParams::read(params),
            rtt: RttRounds::default(),
            backlog: 0.0,
            slow_rounds: 0,
            fast_rounds: 0,
            reno_window: MIN_WINDOW,
        }
    }

    fn judge(&mut self, window: &mut CongestionWindow, rtt: Span) {
        self.backlog = self.rtt.backlog(window.packets(), rtt);
        let base = self.rtt.base().ns() as f64;
        let late = rtt.ns() as f64 - base > base / self.params.phi;
        if self.backlog <= self.params.alpha && !late {
            self.fast_rounds += 1;
            if self.fast_rounds > self.params.zeta {
                self.reno_window = MIN_WINDOW;
                self.fast_rounds = 0;
            }
            self.slow_rounds = 0;
            return;
        }
        if self.backlog > self.params.alpha && window.packets() > self.reno_window {
            let most = window.packets() * self.params.epsilon;
            let less = window.packets() - (self.backlog / self.params.gamma).min(most);
            window.set_packets(less.max(self.reno_window));
            window.exit_slow_start();
        }
        self.reno_window = if self.reno_window <= MIN_WINDOW {
            (window.packets() / 2.0).max(MIN_WINDOW)
        } else {
            self.reno_window + 1.0
        };
        self.slow_rounds += 1;
    }
}

impl WindowRules for Yeah {
    fn observe(&mut self, ack: &AckEvent<'_>, window: &mut CongestionWindow) {
        if let Some(rtt) = self.rtt.on_ack(ack).and_then(|round| round.smallest()) {
            self.judge(window, rtt);
        }
    }

    fn congestion_avoidance(&mut self, window: &mut CongestionWindow, _: &AckEvent<'_>, bytes: u64) {
        let cwnd = window.cwnd().get();
        let per_packet = if self.slow_rounds == 0 {
            cwnd.min((SCALABLE * window.mss()) as u64)
        } else {
            cwnd
        };
        window.additive_increase(bytes, per_packet);
    }

    fn ssthresh(&mut self, window: &CongestionWindow, _: &CongestionEvent) -> f64 {
        let cwnd = window.packets();
        let half = (cwnd / 2.0).max(MIN_WINDOW);
        let drop = if self.slow_rounds < self.params.rho {
            self.backlog.min(half).max(cwnd * self.params.delta)
        } else {
            half
        };
        self.fast_rounds = 0;
        self.reno_window = (self.reno_window / 2.0).max(MIN_WINDOW);
        cwnd - drop
    }

    fn trace(&self, fields: &mut Fields) {
        fields.values.push(("backlog_packets", self.backlog));
        fields.values.push(("reno_window_packets", self.reno_window));
        fields.values.push(("slow_rounds", self.slow_rounds as f64));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parts::{ReductionCause, play_round};
    use crate::testing::{MSS, setup};
    use narrows_units::Time;

    /// Rules with a base RTT of 100 ms, and a window in avoidance.
    fn measured(packets: f64) -> (Yeah, CongestionWindow) {
        let mut window = CongestionWindow::new(&setup());
        let mut yeah = Yeah::new(&Params::resolve(SCHEME.params, []).unwrap());
        window.exit_slow_start();
        play_round(&mut yeah, &mut window, Span::from_ms(100), 3);
        window.set_packets(packets);
        window.exit_slow_start();
        // Without the acknowledgements counted so far.
        window.reduce((packets * MSS as f64) as u64);
        (yeah, window)
    }

    fn after_loss(yeah: &mut Yeah, packets: f64) -> f64 {
        let mut window = CongestionWindow::new(&setup());
        window.set_packets(packets);
        let congestion = CongestionEvent { now: Time::ZERO, cause: ReductionCause::Loss, in_flight: packets };
        yeah.ssthresh(&window, &congestion)
    }

    #[test]
    fn a_long_queue_is_taken_out_of_the_window() {
        // 500 packets, 125 ms instead of 100 ms (Linux tcp_yeah.c): 100 are queued, and 400 remain.
        let (mut yeah, mut window) = measured(500.0);
        play_round(&mut yeah, &mut window, Span::from_ms(125), 5);
        assert_eq!((yeah.backlog, window.packets()), (100.0, 400.0));
        assert_eq!((yeah.slow_rounds, yeah.reno_window), (1, 200.0));
        assert!(!window.in_slow_start());
        // Not below the window of the Reno flow, and never more than half.
        let (mut yeah, mut window) = measured(500.0);
        yeah.reno_window = 450.0;
        play_round(&mut yeah, &mut window, Span::from_ms(125), 5);
        assert_eq!((window.packets(), yeah.reno_window), (450.0, 451.0));
        let (mut yeah, mut window) = measured(500.0);
        play_round(&mut yeah, &mut window, Span::from_ms(400), 5);
        assert_eq!(window.packets(), 250.0);
    }

    #[test]
    fn a_loss_takes_the_backlog_within_limits() {
        // 400 packets (Linux tcp_yeah.c): a backlog of 30 is less than an eighth, 120 is between.
        for (backlog, slow_rounds, after) in
            [(30.0, 0, 350.0), (120.0, 0, 280.0), (120.0, 20, 200.0), (300.0, 15, 200.0)]
        {
            let (mut yeah, _) = measured(400.0);
            (yeah.backlog, yeah.slow_rounds) = (backlog, slow_rounds);
            yeah.reno_window = 100.0;
            assert_eq!(after_loss(&mut yeah, 400.0), after, "{backlog}, {slow_rounds}");
            assert_eq!((yeah.reno_window, yeah.fast_rounds), (50.0, 0));
        }
    }

    #[test]
    fn a_late_queue_is_slow_mode_without_a_reduction() {
        // 20 % above the base is more than an eighth; 40 packets are queued, which is less than 80.
        let (mut yeah, mut window) = measured(240.0);
        play_round(&mut yeah, &mut window, Span::from_ms(120), 5);
        assert_eq!((window.packets(), yeah.slow_rounds), (240.0, 1));
        play_round(&mut yeah, &mut window, Span::from_ms(112), 5);
        assert_eq!(yeah.slow_rounds, 0);
    }

    #[test]
    fn growth_is_scalable_in_fast_mode_and_renos_in_slow_mode() {
        for (slow_rounds, grown) in [(0, 4.0), (1, 1.0)] {
            let (mut yeah, mut window) = measured(400.0);
            yeah.slow_rounds = slow_rounds;
            let ack = AckEvent::new(Time::ZERO);
            for _ in 0..400 {
                yeah.congestion_avoidance(&mut window, &ack, MSS);
            }
            assert_eq!(window.packets(), 400.0 + grown);
        }
    }

    #[test]
    fn long_peace_forgets_the_reno_flow() {
        let (mut yeah, mut window) = measured(200.0);
        yeah.reno_window = 150.0;
        // One round was played already.
        for _ in 0..49 {
            play_round(&mut yeah, &mut window, Span::from_ms(100), 3);
            assert_eq!(yeah.reno_window, 150.0);
        }
        play_round(&mut yeah, &mut window, Span::from_ms(100), 3);
        assert_eq!((yeah.reno_window, yeah.fast_rounds), (2.0, 0));
    }
}
