//! FAST: an equation for the window whose only equilibrium has alpha packets of the flow in the queue.
//!
//! Provenance: C. Jin, D. X. Wei and S. H. Low, "FAST TCP: Motivation, Architecture, Algorithms, Performance", INFOCOM
//! 2004; D. X. Wei et al., IEEE/ACM ToN 14(6), 2006. Every other round trip w <- min(2w, (1 - gamma) w + gamma
//! (baseRTT/avgRTT w + alpha)); in the round trips in between the window is constant, so that measurements belong to a
//! single window. avgRTT is an average over about a third of a window.
//!
//! Deviations: the papers leave slow start and the reaction to losses open; here slow start (Reno's, paced at two
//! windows per round trip) ends when more than alpha packets are queued, and a loss halves the window. The authors
//! chose alpha by rate: 8 up to 10 Mbit/s, 20 up to 100, 200 above. `alpha: 0` selects this, with the window over
//! avgRTT as the rate; the default is 20 at every rate, because flows on different sides of a bound do not share
//! fairly: a flow above it keeps 2.5 or ten times as many packets queued, which keeps it above (as measured at NCSU at
//! that time; laboratory `ncsu`). The pacing rate is 1.2 windows per round trip, so that the window rather than the
//! pacing is the limit (Linux `net/ipv4/tcp_input.c`).
//!
//! Every flow keeps alpha packets queued, so that N flows need a buffer of N alpha packets; with less they lose packets
//! all the time. Rates are alpha / queueing delay: equal for equal alpha, whatever the RTT. A flow that joins mistakes
//! the standing queue for part of the path and gets more than its fair share; a path that becomes longer looks like a
//! permanent queue.

use crate::parts::{LossBased, CongestionEvent, RttRounds, WindowRules, CongestionWindow};
use crate::{AckEvent, Allowance, Fields, Scheme};
use narrows_units::{Bytes, Params, Rate, Span, params};

/// Registry entry.
pub const SCHEME: Scheme = Scheme {
    name: "fast",
    summary: "Steers the window to where alpha packets of each flow are queued",
    source: "Jin, Wei and Low 2004; Wei et al. 2006",
    params: FastParams::PARAMS,
    build: |params, setup| Ok(LossBased::boxed(CongestionWindow::new(&setup), Fast::new(params))),
    loss_based: false,
    ..super::reno::SCHEME
};

params! {
    /// Parameters.
    struct FastParams {
        /// Packets that the flow keeps queued; 0: by its rate, 8 up to 10 Mbit/s, 20 up to 100, 200 above.
        alpha: Packets(0.0..=1e6) = 20, "Wei et al. 2006: 20 for 10 to 100 Mbit/s";
        /// Fraction of the distance to the equation's window per step.
        gamma: Ratio(0.01..=1.0) = 0.5, "Jin, Wei and Low 2004";
    }
}

/// Pacing rate in windows per round trip, in slow start and after it.
const SLOW_START_GAIN: f64 = 2.0;
const GAIN: f64 = 1.2;

/// Packets kept queued up to the given rates in bit/s.
const BY_RATE: [(f64, f64); 3] = [(10e6, 8.0), (100e6, 20.0), (f64::INFINITY, 200.0)];

/// The gain of the average RTT is 3/w per acknowledgement, at most a quarter.
const AVERAGE_PACKETS: f64 = 3.0;
const MAX_AVERAGE_GAIN: f64 = 0.25;

#[derive(Clone)]
struct Fast {
    params: FastParams,
    rtt: RttRounds,
    /// Average RTT in seconds.
    average: Option<f64>,
    /// True if the window is set at the end of the current round, false if at the end of the next.
    due: bool,
}

impl Fast {
    fn new(params: &Params) -> Self {
        Fast {
            params: FastParams::read(params),
            rtt: RttRounds::default(),
            average: None,
            due: false,
        }
    }

    fn average_in(&mut self, rtt: Span, window: f64) {
        let rtt = rtt.secs();
        let share = (AVERAGE_PACKETS / window).min(MAX_AVERAGE_GAIN);
        self.average = Some(match self.average {
            None => rtt,
            Some(average) => average + share * (rtt - average),
        });
    }

    /// Base RTT over average RTT; 1 before the first sample.
    fn ratio(&self) -> f64 {
        match self.average {
            Some(average) if average > 0.0 => (self.rtt.base().secs() / average).min(1.0),
            _ => 1.0,
        }
    }

    /// Packets to keep queued with a window of `bytes`.
    fn alpha(&self, bytes: f64) -> f64 {
        if self.params.alpha > 0.0 {
            return self.params.alpha;
        }
        let bps = self.average.map_or(0.0, |average| bytes * 8.0 / average);
        let tier = BY_RATE.iter().find(|(most, _)| bps <= *most);
        tier.map_or(BY_RATE[0].1, |(_, alpha)| *alpha)
    }

    fn next(&self, window: f64, alpha: f64) -> f64 {
        let wanted = self.ratio() * window + alpha;
        (2.0 * window).min((1.0 - self.params.gamma) * window + self.params.gamma * wanted)
    }
}

impl WindowRules for Fast {
    fn observe(&mut self, ack: &AckEvent<'_>, window: &mut CongestionWindow) {
        if let Some(rtt) = ack.latest_rtt {
            self.average_in(rtt, window.packets());
        }
        let ended = self.rtt.on_ack(ack).is_some();
        if ack.in_recovery {
            return;
        }
        let alpha = self.alpha(window.cwnd().get() as f64);
        if window.in_slow_start() {
            if window.packets() * (1.0 - self.ratio()) > alpha {
                window.exit_slow_start();
                self.due = true;
            }
            return;
        }
        if !ended {
            return;
        }
        self.due = !self.due;
        if !self.due {
            let next = self.next(window.packets(), alpha).max(2.0);
            if next < window.packets() || ack.cwnd_limited {
                window.set_packets(next);
                window.exit_slow_start();
            }
        }
    }

    fn congestion_avoidance(&mut self, _: &mut CongestionWindow, _: &AckEvent<'_>, _: u64) {}

    fn ssthresh(&mut self, window: &CongestionWindow, _: &CongestionEvent) -> f64 {
        window.packets() / 2.0
    }

    fn pace(&self, window: &CongestionWindow, allowance: &mut Allowance) {
        if let Some(average) = self.average {
            let gain = if window.in_slow_start() { SLOW_START_GAIN } else { GAIN };
            let bytes = Bytes::new((window.cwnd().get() as f64 * gain) as u64);
            let rate = Rate::of(bytes, Span::from_secs(average).max(Span::from_us(1)));
            allowance.pacing = Some(rate.max(Rate::from_bps(1)));
        }
    }

    fn trace(&self, fields: &mut Fields) {
        if let Some(average) = self.average {
            fields.values.push(("average_rtt_s", average));
            fields.values.push(("base_rtt_s", self.rtt.base().secs()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{MSS, Script, setup};
    use crate::{LossCause, CaState};
    use narrows_units::Time;

    fn fast(alpha: &str) -> Fast {
        let given = ("alpha".to_owned(), SCHEME.params[0].parse(alpha).unwrap());
        Fast::new(&Params::resolve(SCHEME.params, [given]).unwrap())
    }

    fn ack(rtt_s: f64, round_start: bool) -> AckEvent<'static> {
        let mut ack = AckEvent::new(Time::ZERO);
        ack.latest_rtt = Some(Span::from_secs(rtt_s));
        ack.round_start = round_start;
        ack
    }

    #[test]
    fn a_constant_queueing_delay_leads_to_alpha_packets() {
        // Base 50 ms, RTT 60 ms, alpha 50 (the equation of Jin, Wei and Low 2004).
        let mut rules = fast("50");
        rules.rtt.on_ack(&ack(0.050, false));
        rules.average = Some(0.060);
        let mut window = 100.0;
        for expected in [116.667, 131.944, 145.949, 158.787] {
            window = rules.next(window, 50.0);
            assert!((window - expected).abs() < 0.001, "{window} instead of {expected}");
        }
        for _ in 0..200 {
            window = rules.next(window, 50.0);
        }
        // alpha RTT / (RTT - base)
        assert!((window - 300.0).abs() < 0.001, "{window}");
    }

    #[test]
    fn one_flow_fills_a_link_and_queues_alpha() {
        // 1000 packets/s, base 50 ms, so the path holds 50; RTT = max(base, w/C).
        let mut rules = fast("50");
        rules.rtt.on_ack(&ack(0.050, false));
        let mut window: f64 = 20.0;
        for expected in [40.0, 65.0, 82.5, 91.25, 95.625] {
            rules.average = Some((window / 1000.0).max(0.050));
            window = rules.next(window, 50.0);
            assert!((window - expected).abs() < 1e-9, "{window} instead of {expected}");
        }
        for _ in 0..60 {
            rules.average = Some((window / 1000.0).max(0.050));
            window = rules.next(window, 50.0);
        }
        assert!((window - 100.0).abs() < 1e-6, "{window}");
    }

    #[test]
    fn alpha_is_chosen_by_rate_unless_it_is_given() {
        let mut rules = fast("0");
        assert_eq!(rules.alpha(1e9), 8.0, "nothing is known of the round trip");
        rules.average = Some(0.1);
        // A window over 100 ms; the bounds are inclusive.
        for (mbps, alpha) in [(1.0, 8.0), (10.0, 8.0), (10.1, 20.0), (100.0, 20.0), (100.1, 200.0), (1e4, 200.0)] {
            assert_eq!(rules.alpha(mbps * 1e6 * 0.1 / 8.0), alpha, "{mbps} Mbit/s");
        }
        rules.params.alpha = 50.0;
        assert_eq!(rules.alpha(1e9), 50.0);
    }

    #[test]
    fn the_window_is_set_every_other_round() {
        let mut window = CongestionWindow::new(&setup());
        window.set_packets(100.0);
        window.exit_slow_start();
        let mut rules = fast("50");
        let mut steps = vec![];
        for _ in 0..6 {
            let before = window.packets();
            for index in 0..4 {
                rules.observe(&ack(0.050, index == 3), &mut window);
            }
            steps.push(window.packets() - before);
        }
        // No queue: the window grows by gamma times alpha.
        assert_eq!(steps, [0.0, 25.0, 0.0, 25.0, 0.0, 25.0]);
    }

    #[test]
    fn the_average_moves_by_three_packets_of_a_window() {
        let mut rules = fast("50");
        rules.average_in(Span::from_ms(100), 300.0);
        assert_eq!(rules.average, Some(0.1));
        rules.average_in(Span::from_ms(200), 300.0);
        assert!((rules.average.unwrap() - 0.101).abs() < 1e-12);
        rules.average_in(Span::from_ms(200), 4.0);
        assert!((rules.average.unwrap() - (0.101 + 0.099 / 4.0)).abs() < 1e-12);
    }

    #[test]
    fn slow_start_ends_when_alpha_packets_wait() {
        let mut window = CongestionWindow::new(&setup());
        let mut rules = fast("20");
        rules.observe(&ack(0.100, false), &mut window);
        window.set_packets(100.0);
        rules.average = Some(0.120);
        rules.observe(&ack(0.120, false), &mut window);
        assert!(window.in_slow_start(), "17 packets wait");
        rules.average = Some(0.130);
        rules.observe(&ack(0.130, false), &mut window);
        assert!(!window.in_slow_start(), "23 packets wait");
        // The next round sets the window for the first time.
        rules.observe(&ack(0.130, true), &mut window);
        assert!(window.packets() < 100.0);
    }

    #[test]
    fn it_is_paced_a_little_faster_than_its_window() {
        let mut script = Script::new((SCHEME.build)(&Params::resolve(SCHEME.params, []).unwrap(), setup()).unwrap());
        assert_eq!(script.scheme.allowance().pacing, None);
        script.ack_round();
        let rate = |script: &Script| script.scheme.allowance().pacing.unwrap().bps() as f64;
        let window = |script: &Script| script.cwnd_packets() * MSS as f64 * 8.0;
        assert!((rate(&script) / (2.0 * window(&script) / 0.1) - 1.0).abs() < 1e-6);
        script.lose(LossCause::Reordering, 20);
        assert_eq!(script.cwnd_packets(), 10.0);
        assert!((rate(&script) / (1.2 * window(&script) / 0.1) - 1.0).abs() < 1e-6);
    }

    #[test]
    fn a_recovery_does_not_move_the_window() {
        let mut window = CongestionWindow::new(&setup());
        window.exit_slow_start();
        let mut rules = fast("50");
        for _ in 0..10 {
            let mut ack = ack(0.050, true);
            ack.phase = CaState::Recovery;
            ack.in_recovery = true;
            rules.observe(&ack, &mut window);
        }
        assert_eq!(window.packets(), 10.0);
    }
}
