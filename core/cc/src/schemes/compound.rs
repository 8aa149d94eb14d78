//! Compound TCP: a Reno window plus a window that grows fast while no queue exists and yields when one builds up.
//!
//! Provenance: K. Tan, J. Song, Q. Zhang and M. Sridharan, "A Compound TCP Approach for High-speed and Long Distance
//! Networks", INFOCOM 2006; draft-sridharan-tcpm-ctcp-02 (2008). The window is cwnd + dwnd. cwnd is Reno's (one packet
//! per round trip of the whole window). Once per round trip, with diff = win (1 - baseRTT/RTT): below gamma dwnd grows
//! by max(alpha win^0.75 - 1, 0), from gamma on it shrinks by diff. A loss leaves win (1 - beta), half of cwnd being
//! Reno's; a timeout resets dwnd. gamma follows, from loss to loss, three quarters of the backlog that cwnd alone would
//! have.
//!
//! Deviations: the exponent k = 0.75 is not a parameter. Growth of dwnd is spread over the acknowledgements of the
//! round trip that follows, instead of a jump at its beginning. dwnd stays at zero in slow start and while win is below
//! `low_window`. The weight of the newest backlog in gamma is a half, as in the published ports to Linux (the draft has
//! a larger one). The RTT of a round is the smallest of at least three samples.
//!
//! Without queues the average window is 0.2553/p^0.8 packets. With a queue dwnd vanishes and Reno remains, so it is no
//! more aggressive than Reno, fills the buffer as Reno does, and like Reno loses against flows that do not yield.

use crate::parts::{ReductionCause, LossBased, CongestionEvent, RttRounds, WindowRules, CongestionWindow};
use crate::{AckEvent, Fields, Scheme};
use narrows_units::{ParamError, Params, Span, params};

/// Registry entry.
pub const SCHEME: Scheme = Scheme {
    name: "compound",
    summary: "Reno plus a part that uses idle capacity fast and gives way to queues",
    source: "Tan et al. 2006; draft-sridharan-tcpm-ctcp-02",
    params: CompoundParams::PARAMS,
    build: |params, setup| Ok(LossBased::boxed(CongestionWindow::new(&setup), Compound::new(params)?)),
    ..super::reno::SCHEME
};

params! {
    /// Parameters.
    struct CompoundParams {
        /// Growth of the delay part: alpha win^0.75 per round trip.
        alpha: Number(0.001..=10.0) = 0.125, "Tan et al. 2006";
        /// Fraction of the whole window removed by a loss.
        beta: Ratio(0.05..=0.95) = 0.5, "Tan et al. 2006";
        /// Backlog in packets from which the delay part shrinks.
        gamma: Number(1.0..=10_000.0, "packets") = 30, "Tan et al. 2006";
        /// Minimum of gamma in packets.
        gamma_low: Number(0.0..=10_000.0, "packets") = 5, "draft-sridharan-tcpm-ctcp-02";
        /// Let gamma follow the backlog that Reno would have.
        tune_gamma: Flag = true, "draft-sridharan-tcpm-ctcp-02";
        /// Smaller windows have no delay part.
        low_window: Packets(0.0..=1e6) = 38, "draft-sridharan-tcpm-ctcp-02";
    }
}

/// Weight of the newest backlog in gamma, and the fraction of it that gamma aims at.
const WEIGHT: f64 = 0.5;
const SHARE: f64 = 0.75;

#[derive(Clone)]
struct Compound {
    params: CompoundParams,
    gamma: f64,
    rtt: RttRounds,
    /// The RTT of the last measured round.
    last_rtt: Option<Span>,
    /// The delay part of the window in packets.
    dwnd: f64,
    /// Packets queued, as last estimated, and whether they are few enough for the delay part to grow.
    backlog: f64,
    quiet: bool,
}

impl Compound {
    fn new(params: &Params) -> Result<Self, ParamError> {
        let params = CompoundParams::read(params);
        let (gamma, gamma_low) = (params.gamma, params.gamma_low);
        if gamma_low > gamma {
            return Err(ParamError::Conflict(format!(
                "gamma_low {gamma_low} must not be larger than gamma {gamma}, where the tuning begins"
            )));
        }
        Ok(Compound {
            params,
            gamma,
            rtt: RttRounds::default(),
            last_rtt: None,
            dwnd: 0.0,
            backlog: 0.0,
            quiet: false,
        })
    }

    /// Growth of the delay part per round trip. The power 0.75 is computed with square roots, which yield the same bits
    /// on every machine.
    fn growth(&self, window: f64) -> f64 {
        let root = window.sqrt();
        (self.params.alpha * root * root.sqrt() - 1.0).max(0.0)
    }

    fn tune(&mut self, reno: f64) {
        let Some(rtt) = self.last_rtt else { return };
        let wanted = SHARE * self.rtt.backlog(reno, rtt);
        self.gamma = ((1.0 - WEIGHT) * self.gamma + WEIGHT * wanted)
            .clamp(self.params.gamma_low, self.params.gamma);
    }
}

impl WindowRules for Compound {
    fn observe(&mut self, ack: &AckEvent<'_>, window: &mut CongestionWindow) {
        let Some(rtt) = self.rtt.on_ack(ack).and_then(|round| round.smallest()) else {
            return;
        };
        self.last_rtt = Some(rtt);
        let win = window.packets();
        self.backlog = self.rtt.backlog(win, rtt);
        if window.in_slow_start() {
            return;
        }
        self.quiet = self.backlog < self.gamma;
        if !self.quiet && self.dwnd > 0.0 {
            let less = self.dwnd.min(self.backlog);
            self.dwnd -= less;
            window.add(-less);
            window.exit_slow_start();
        }
    }

    fn congestion_avoidance(&mut self, window: &mut CongestionWindow, _: &AckEvent<'_>, bytes: u64) {
        let win = window.packets();
        if self.quiet && win >= self.params.low_window {
            let more = self.growth(win) * bytes as f64 / window.cwnd().get() as f64;
            self.dwnd += more;
            window.add(more);
        }
        window.additive_increase(bytes, window.cwnd().get());
    }

    fn ssthresh(&mut self, window: &CongestionWindow, congestion: &CongestionEvent) -> f64 {
        let win = window.packets();
        let reno = (win - self.dwnd).max(0.0);
        let left = win * (1.0 - self.params.beta);
        if congestion.cause == ReductionCause::Timeout {
            self.dwnd = 0.0;
            return left;
        }
        if self.params.tune_gamma {
            self.tune(reno);
        }
        self.dwnd = (left - reno / 2.0).max(0.0);
        left.max(reno / 2.0)
    }

    fn trace(&self, fields: &mut Fields) {
        fields.values.push(("dwnd_packets", self.dwnd));
        fields.values.push(("backlog_packets", self.backlog));
        fields.values.push(("gamma_packets", self.gamma));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parts::play_round;
    use crate::testing::{MSS, setup};
    use narrows_units::Time;

    fn compound() -> Compound {
        Compound::new(&Params::resolve(SCHEME.params, []).unwrap()).unwrap()
    }

    /// Rules with a base RTT of 100 ms, and a window in avoidance.
    fn measured(packets: f64) -> (Compound, CongestionWindow) {
        let mut window = CongestionWindow::new(&setup());
        let mut rules = compound();
        window.exit_slow_start();
        play_round(&mut rules, &mut window, Span::from_ms(100), 3);
        window.set_packets(packets);
        window.exit_slow_start();
        (rules, window)
    }

    fn congestion(cause: ReductionCause) -> CongestionEvent {
        CongestionEvent { now: Time::ZERO, cause, in_flight: 0.0 }
    }

    #[test]
    fn the_delay_part_grows_with_the_power_of_three_quarters() {
        // alpha win^0.75 is 22.23 at 1000, 3.95 at 100, 1.99 at 40 and 1 at 16 (Tan et al. 2006).
        let rules = compound();
        for (window, growth) in [(1000.0, 21.23), (100.0, 2.95), (40.0, 0.99), (16.0, 0.0), (9.0, 0.0)] {
            assert!((rules.growth(window) - growth).abs() < 0.006, "{window}: {}", rules.growth(window));
        }
    }

    /// A window's worth of acknowledgements of one packet each.
    fn acknowledge(rules: &mut Compound, window: &mut CongestionWindow) {
        let ack = AckEvent::new(Time::ZERO);
        for _ in 0..window.packets() as u64 {
            rules.congestion_avoidance(window, &ack, MSS);
        }
    }

    #[test]
    fn a_round_without_a_queue_grows_and_one_with_a_queue_shrinks() {
        let (mut rules, mut window) = measured(1000.0);
        rules.quiet = true;
        acknowledge(&mut rules, &mut window);
        // 21.23 at 1000 packets, a little less since the window grows meanwhile and a little more since
        // so does the growth; together with Reno's packet alpha win^0.75.
        assert!((rules.dwnd - 21.1).abs() < 0.15, "{}", rules.dwnd);
        assert!((window.packets() - 1000.0 - rules.dwnd).abs() <= 1.0 + 1e-9);
        // 1000 packets, 105 ms: 47.6 are queued, more than the 30 of gamma.
        let (mut rules, mut window) = measured(1000.0);
        (rules.dwnd, rules.quiet) = (100.0, false);
        play_round(&mut rules, &mut window, Span::from_ms(105), 3);
        assert!((rules.dwnd - (100.0 - 1000.0 * 5.0 / 105.0)).abs() < 1e-9 && !rules.quiet);
        assert!((window.packets() - (1000.0 - 1000.0 * 5.0 / 105.0)).abs() < 1e-9);
        let kept = rules.dwnd;
        acknowledge(&mut rules, &mut window);
        assert_eq!(rules.dwnd, kept);
        play_round(&mut rules, &mut window, Span::from_ms(200), 3);
        assert_eq!(rules.dwnd, 0.0);
        assert!(!window.in_slow_start());
    }

    #[test]
    fn small_windows_are_renos() {
        let (mut rules, mut window) = measured(37.0);
        rules.quiet = true;
        let ack = AckEvent::new(Time::ZERO);
        for _ in 0..30 {
            rules.congestion_avoidance(&mut window, &ack, MSS);
        }
        assert_eq!((rules.dwnd, window.packets()), (0.0, 37.0));
    }

    #[test]
    fn a_loss_halves_the_whole() {
        let (mut rules, window) = measured(1000.0);
        rules.dwnd = 600.0;
        assert_eq!(rules.ssthresh(&window, &congestion(ReductionCause::Loss)), 500.0);
        // Reno's part is 400 / 2, the rest is the delay part.
        assert_eq!(rules.dwnd, 300.0);
        rules.dwnd = 600.0;
        assert_eq!(rules.ssthresh(&window, &congestion(ReductionCause::Timeout)), 500.0);
        assert_eq!(rules.dwnd, 0.0);
    }

    #[test]
    fn gamma_follows_what_reno_would_queue() {
        let (mut rules, window) = measured(1000.0);
        rules.dwnd = 800.0;
        rules.last_rtt = Some(Span::from_ms(110));
        rules.ssthresh(&window, &congestion(ReductionCause::Loss));
        // Reno's 200 packets would have 18.2 queued.
        let wanted = 0.5 * 30.0 + 0.5 * 0.75 * (200.0 * 10.0 / 110.0);
        assert!((rules.gamma - wanted).abs() < 1e-9, "{}", rules.gamma);
        for _ in 0..10 {
            rules.last_rtt = Some(Span::from_ms(100));
            rules.ssthresh(&window, &congestion(ReductionCause::Loss));
        }
        assert_eq!(rules.gamma, 5.0);
    }

    #[test]
    fn a_lower_bound_above_gamma_is_refused() {
        let given = [("gamma".to_owned(), SCHEME.params[2].parse("3").unwrap())];
        let params = Params::resolve(SCHEME.params, given).unwrap();
        assert!((SCHEME.build)(&params, setup()).err().unwrap().to_string().contains("gamma_low 5"));
    }
}
