//! Illinois: additive increase and multiplicative decrease with factors that depend on the queueing delay.
//!
//! Provenance: S. Liu, T. Basar and R. Srikant, "TCP-Illinois: A loss- and delay-based congestion control algorithm for
//! high-speed networks", VALUETOOLS 2006; constants as in Linux `net/ipv4/tcp_illinois.c`. Once per round trip, from
//! the mean queueing delay da and the maximum so far dm: the increase alpha falls from 10 packets per round trip (da
//! below 1 % of dm) along a hyperbola to 0.3 (da = dm); the decrease beta rises from an eighth (da up to 10 % of dm) to
//! a half (from 80 % on). Below 15 packets both are Reno's, and after a timeout until the next round is measured.
//!
//! Deviations: samples taken during a recovery do not count towards a round's mean; a round trip above the lowest delay
//! restarts the count of five good ones (the kernel continues counting).
//!
//! Growth is fast while the queue is empty and slow near the loss, so that the window over time is concave. It depends
//! on a varying queue: with one that is always empty it is AIMD(10, 1/8), an average window of 8.66/sqrt(p) packets;
//! with one that is always full AIMD(0.3, 1/2). The maximum delay never expires: after a single spike all others look
//! small, and alpha stays at its maximum. Flows that join a standing queue mistake it for part of the path, see short
//! queues, and get more than the existing flows.

use crate::parts::{ReductionCause, LossBased, CongestionEvent, RttRounds, WindowRules, CongestionWindow};
use crate::{AckEvent, Fields, Scheme};
use narrows_units::{ParamError, Params, params};

/// Registry entry.
pub const SCHEME: Scheme = Scheme {
    name: "illinois",
    summary: "Grows fast and keeps much while queues are short, like Reno or less when they are long",
    source: "Liu, Basar and Srikant 2006",
    params: IllinoisParams::PARAMS,
    build: |params, setup| Ok(LossBased::boxed(CongestionWindow::new(&setup), Illinois::new(params)?)),
    ..super::reno::SCHEME
};

params! {
    /// Parameters.
    struct IllinoisParams {
        /// Maximum growth in packets per round trip.
        alpha_max: Number(0.01..=1000.0, "packets") = 10, "Linux tcp_illinois";
        /// Minimum growth in packets per round trip.
        alpha_min: Number(0.01..=1000.0, "packets") = 0.3, "Linux tcp_illinois";
        /// Fraction removed by a loss while queues are short.
        beta_min: Ratio(0.01..=0.95) = 0.125, "Linux tcp_illinois";
        /// Fraction removed by a loss while queues are long.
        beta_max: Ratio(0.01..=0.95) = 0.5, "Linux tcp_illinois";
        /// Smaller windows follow Reno.
        window_threshold: Packets(0.0..=1e6) = 15, "Linux tcp_illinois";
        /// Good round trips before alpha returns to its maximum.
        theta: Count(1.0..=1e6, "round trips") = 5, "Linux tcp_illinois";
    }
}

/// Delays, as fractions of the maximum, at which alpha leaves its maximum, and beta its minimum and reaches its
/// maximum.
const D1: f64 = 0.01;
const D2: f64 = 0.1;
const D3: f64 = 0.8;

#[derive(Clone)]
struct Illinois {
    params: IllinoisParams,
    rtt: RttRounds,
    /// Growth per round trip in packets, fraction removed by a loss.
    alpha: f64,
    beta: f64,
    /// The delay has been above the lowest step; rounds below it since.
    above: bool,
    good_rounds: u64,
}

impl Illinois {
    fn new(params: &Params) -> Result<Self, ParamError> {
        let params = IllinoisParams::read(params);
        let IllinoisParams { alpha_min, alpha_max, beta_min, beta_max, .. } = params;
        if alpha_min > alpha_max || beta_min > beta_max {
            return Err(ParamError::Conflict(format!(
                "alpha_min {alpha_min} and beta_min {beta_min} must not be larger than alpha_max {alpha_max} and beta_max {beta_max}"
            )));
        }
        Ok(Illinois {
            params,
            rtt: RttRounds::default(),
            alpha: alpha_max,
            beta: beta_max,
            above: false,
            good_rounds: 0,
        })
    }

    /// Sets growth and decrease from the mean and the maximum queueing delay, in any unit.
    fn update(&mut self, delay: f64, largest: f64) {
        let first = D1 * largest;
        if delay > first {
            self.above = true;
            self.good_rounds = 0;
            let (delay, largest) = (delay - first, largest - first);
            let slope = (self.params.alpha_max - self.params.alpha_min) / self.params.alpha_min;
            self.alpha = largest * self.params.alpha_max / (largest + delay * slope);
        } else if !self.above {
            self.alpha = self.params.alpha_max;
        } else {
            self.good_rounds += 1;
            if self.good_rounds >= self.params.theta {
                self.good_rounds = 0;
                self.above = false;
                self.alpha = self.params.alpha_max;
            }
        }
        let (second, third) = (D2 * largest, D3 * largest);
        self.beta = if delay <= second {
            self.params.beta_min
        } else if delay >= third {
            self.params.beta_max
        } else {
            self.params.beta_min + (self.params.beta_max - self.params.beta_min) * (delay - second) / (third - second)
        };
    }

    fn like_reno(&mut self) {
        self.alpha = 1.0;
        self.beta = 0.5;
    }
}

impl WindowRules for Illinois {
    fn observe(&mut self, ack: &AckEvent<'_>, window: &mut CongestionWindow) {
        let Some(round) = self.rtt.on_ack(ack) else {
            return;
        };
        if window.packets() < self.params.window_threshold {
            self.like_reno();
        } else if let Some(mean) = round.mean() {
            let base = self.rtt.base();
            let delay = mean.saturating_sub(base).ns() as f64;
            let largest = self.rtt.largest().saturating_sub(base).ns() as f64;
            self.update(delay, largest);
        }
    }

    fn congestion_avoidance(&mut self, window: &mut CongestionWindow, _: &AckEvent<'_>, bytes: u64) {
        window.add(self.alpha * bytes as f64 / window.cwnd().get() as f64);
    }

    fn ssthresh(&mut self, window: &CongestionWindow, congestion: &CongestionEvent) -> f64 {
        let kept = window.packets() * (1.0 - self.beta);
        if congestion.cause == ReductionCause::Timeout {
            self.like_reno();
            self.above = false;
            self.good_rounds = 0;
        }
        kept
    }

    fn trace(&self, fields: &mut Fields) {
        fields.values.push(("alpha_packets", self.alpha));
        fields.values.push(("beta_ratio", self.beta));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parts::play_round;
    use crate::testing::{MSS, setup};
    use narrows_units::{Span, Time};

    fn illinois() -> Illinois {
        Illinois::new(&Params::resolve(SCHEME.params, []).unwrap()).unwrap()
    }

    #[test]
    fn growth_and_decrease_follow_the_delay() {
        // Largest queueing delay 100 (Liu, Basar and Srikant 2006; constants of Linux tcp_illinois.c).
        for (delay, alpha, beta) in [
            (0.0, 10.0, 0.125),
            (1.0, 10.0, 0.125),
            (2.0, 7.538, 0.125),
            (5.0, 4.336, 0.125),
            (10.0, 2.538, 0.125),
            (20.0, 1.388, 0.1786),
            (50.0, 0.588, 0.3393),
            (80.0, 0.373, 0.5),
            (100.0, 0.30, 0.5),
        ] {
            let mut rules = illinois();
            rules.update(delay, 100.0);
            assert!((rules.alpha - alpha).abs() < 0.0006, "{delay}: alpha {}", rules.alpha);
            assert!((rules.beta - beta).abs() < 0.0001, "{delay}: beta {}", rules.beta);
        }
    }

    #[test]
    fn the_kernels_integers_are_close() {
        // 962/128 at 2 ms of 100 ms, 38/128 at 100 ms (Linux tcp_illinois.c): rounding of its fixed point.
        for (delay, alpha) in [(2.0, 962.0 / 128.0), (100.0, 38.0 / 128.0)] {
            let mut rules = illinois();
            rules.update(delay, 100.0);
            assert!((rules.alpha / alpha - 1.0).abs() < 0.011, "{delay}: {}", rules.alpha);
        }
    }

    #[test]
    fn five_good_rounds_in_a_row_restore_the_growth() {
        let mut rules = illinois();
        rules.update(50.0, 100.0);
        let slow = rules.alpha;
        for _ in 0..4 {
            rules.update(0.5, 100.0);
            assert_eq!(rules.alpha, slow);
        }
        rules.update(2.0, 100.0);
        let slow = rules.alpha;
        for _ in 0..4 {
            rules.update(0.5, 100.0);
            assert_eq!(rules.alpha, slow);
        }
        rules.update(0.5, 100.0);
        assert_eq!(rules.alpha, 10.0);
    }

    #[test]
    fn rounds_are_judged_by_their_mean() {
        let mut window = CongestionWindow::new(&setup());
        window.set_packets(100.0);
        window.exit_slow_start();
        let mut rules = illinois();
        play_round(&mut rules, &mut window, Span::from_ms(200), 4);
        // Only this RTT is known: no queue.
        assert_eq!((rules.alpha, rules.beta), (10.0, 0.125));
        play_round(&mut rules, &mut window, Span::from_ms(100), 4);
        assert_eq!((rules.alpha, rules.beta), (10.0, 0.125));
        play_round(&mut rules, &mut window, Span::from_ms(150), 4);
        assert!((rules.alpha - 0.588).abs() < 0.001 && (rules.beta - 0.3393).abs() < 0.0001);
        window.set_packets(14.0);
        window.exit_slow_start();
        play_round(&mut rules, &mut window, Span::from_ms(150), 4);
        assert_eq!((rules.alpha, rules.beta), (1.0, 0.5));
    }

    /// The average window when every n-th packet is lost, at one RTT for all.
    fn average(rules: &mut Illinois, every: u64) -> f64 {
        let mut window = CongestionWindow::new(&setup());
        window.set_packets(100.0);
        window.exit_slow_start();
        let ack = AckEvent::new(Time::ZERO);
        let (mut time, mut packets) = (0.0, 0.0);
        for epoch in 0..60 {
            let congestion = CongestionEvent { now: Time::ZERO, cause: ReductionCause::Loss, in_flight: 0.0 };
            let kept = rules.ssthresh(&window, &congestion);
            window.set_packets(kept);
            window.exit_slow_start();
            for _ in 0..every {
                if epoch >= 30 {
                    // Time in round trips: a packet takes 1/W of one.
                    time += 1.0 / window.packets();
                    packets += 1.0;
                }
                rules.congestion_avoidance(&mut window, &ack, MSS);
            }
        }
        packets / time
    }

    #[test]
    fn the_bounds_are_those_of_aimd() {
        // AIMD(a, b): W = sqrt(a (2 - b) / (2 b p)). The sum over packets is the integral within b/W.
        for every in [1_000, 10_000, 100_000] {
            let root = (every as f64).sqrt();
            let mut empty = illinois();
            empty.update(0.0, 100.0);
            let measured = average(&mut empty, every) / root;
            assert!((measured / 75f64.sqrt() - 1.0).abs() < 0.02, "{every}: {measured}");
            let mut full = illinois();
            full.update(100.0, 100.0);
            let measured = average(&mut full, every) / root;
            assert!((measured / 0.45f64.sqrt() - 1.0).abs() < 0.02, "{every}: {measured}");
        }
    }

    #[test]
    fn a_timeout_is_renos() {
        let mut rules = illinois();
        rules.update(0.0, 100.0);
        let window = CongestionWindow::new(&setup());
        let congestion = CongestionEvent { now: Time::ZERO, cause: ReductionCause::Timeout, in_flight: 0.0 };
        assert_eq!(rules.ssthresh(&window, &congestion), 8.75);
        assert_eq!((rules.alpha, rules.beta), (1.0, 0.5));
    }
}
