//! CUBIC of 2008, as in its paper and in experiments of that period.
//!
//! Provenance: S. Ha, I. Rhee, L. Xu, "CUBIC: a new TCP-friendly high-speed TCP variant", ACM SIGOPS
//! Operating Systems Review, July 2008, and draft-rhee-tcpm-cubic-02; earlier rules of Linux 2.6.19 to
//! 2.6.24 ("CUBIC 2.0") by parameters. Deviations: the reduction is spread over the recovery round by
//! Proportional Rate Reduction (RFC 6937), and the window is a real number.
//!
//! It differs from RFC 9438 (scheme `cubic`) in that 0.8 of the window is kept (0.7 since Linux 2.6.25), that Reno's
//! estimate is the closed form W_max beta + 3 (1-beta)/(1+beta) t/RTT, that the look-ahead is the minimum RTT, that
//! growth is bounded by half a packet per packet acknowledged instead of by a target, and that it has no HyStart: the
//! first slow start ends with a loss unless `initial_ssthresh` ends it (Linux 2.6.19: 100). `max_increment: 16` bounds
//! growth towards and beyond the plateau to 16 packets per 100 ms, as CUBIC 2.0 did.

use crate::parts::{ReductionCause, LossBased, CongestionEvent, WindowRules, CongestionWindow, cube_root};
use crate::{AckEvent, CongestionControl, Fields, Scheme, Setup};
use narrows_units::{ParamError, Params, Span, Time, params};

/// Registry entry.
pub const SCHEME: Scheme = Scheme {
    name: "cubic2008",
    summary: "CUBIC with the constants and rules of its paper of 2008",
    source: "Ha, Rhee, Xu, SIGOPS OSR 2008; draft-rhee-tcpm-cubic-02",
    params: Cubic2008Params::PARAMS,
    build,
    ..super::reno::SCHEME
};

params! {
    /// Parameters.
    struct Cubic2008Params {
        /// Aggressiveness C in packets/s^3.
        c: Number(0.001..=100.0) = 0.4, "Ha, Rhee, Xu 2008";
        /// Fraction of the window kept after a loss.
        beta: Ratio(0.05..=0.95) = 0.8, "Ha, Rhee, Xu 2008: 0.2 removed";
        /// Release bandwidth faster to new flows (fast convergence).
        fast_convergence: Flag = true, "Ha, Rhee, Xu 2008";
        /// Grow at least as Reno would.
        tcp_friendliness: Flag = true, "Ha, Rhee, Xu 2008";
        /// Initial slow-start threshold; 0: infinite.
        initial_ssthresh: Packets(0.0..=1e6) = 0, "none in the paper; Linux 2.6.19: 100";
        /// Maximum growth in packets per 100 ms; 0: no bound.
        max_increment: Packets(0.0..=1e6) = 0, "none in the paper; Linux 2.6.19: 16 per 100 ms";
        /// Minimum growth per round trip, as a fraction of the window, while no loss is known.
        initial_growth: Ratio = 0.05, "Linux since 2.6.25: a twentieth; Linux 2.6.19: 0.02";
    }
}

/// Growth at or beyond the target: a packet per this many windows.
const MIN_GROWTH_WINDOWS: f64 = 100.0;
/// At most half a packet of growth per packet acknowledged.
const MAX_GROWTH: f64 = 0.5;

fn build(params: &Params, setup: Setup) -> Result<Box<dyn CongestionControl>, ParamError> {
    let mut window = CongestionWindow::new(&setup);
    let rules = rules(params);
    if rules.params.initial_ssthresh > 0.0 {
        window.set_threshold(rules.params.initial_ssthresh);
    }
    Ok(LossBased::boxed(window, rules))
}

fn rules(params: &Params) -> Cubic2008 {
    Cubic2008 {
        params: Cubic2008Params::read(params),
        w_max: 0.0,
        origin: 0.0,
        k: 0.0,
        epoch: None,
        reno: 0.0,
        min_rtt: None,
    }
}

#[derive(Clone)]
struct Cubic2008 {
    params: Cubic2008Params,
    /// Window before the last reduction (after fast convergence); 0 if none.
    w_max: f64,
    /// Plateau of the curve, and seconds to it from the start of the epoch.
    origin: f64,
    k: f64,
    /// Start of the epoch, shifted by idle time.
    epoch: Option<Time>,
    /// The window at the start of the epoch, from which Reno's estimate runs.
    reno: f64,
    min_rtt: Option<Span>,
}

impl Cubic2008 {
    fn begin_epoch(&mut self, now: Time, window: f64) {
        self.epoch = Some(now);
        self.reno = window;
        if window < self.w_max {
            self.k = cube_root((self.w_max - window) / self.params.c);
            self.origin = self.w_max;
        } else {
            self.k = 0.0;
            self.origin = window;
        }
    }

    /// The curve at `t` seconds after the start of the epoch.
    fn curve(&self, t: f64) -> f64 {
        let d = t - self.k;
        self.params.c * d * d * d + self.origin
    }

    /// Reno's window with the same average, at `t` seconds and an RTT of `rtt` seconds.
    fn friendly(&self, t: f64, rtt: f64) -> f64 {
        self.reno + 3.0 * (1.0 - self.params.beta) / (1.0 + self.params.beta) * t / rtt
    }

    /// Packets of growth per packet acknowledged.
    fn growth(&self, now: Time, window: f64, rtt: Span) -> f64 {
        let t = now.since(self.epoch.unwrap_or(now)).secs();
        let ahead = self.min_rtt.unwrap_or(rtt).secs();
        let distance = self.curve(t + ahead) - window;
        let mut growth = if distance > 0.0 { distance / window } else { 1.0 / (MIN_GROWTH_WINDOWS * window) };
        let max_rate = self.params.max_increment * 10.0;
        if max_rate > 0.0 {
            growth = growth.min(max_rate * rtt.secs() / window);
        }
        if self.w_max == 0.0 {
            growth = growth.max(self.params.initial_growth);
        }
        if self.params.tcp_friendliness && !rtt.is_zero() {
            growth = growth.max((self.friendly(t, rtt.secs()) - window) / window);
        }
        growth.min(MAX_GROWTH)
    }
}

impl WindowRules for Cubic2008 {
    fn observe(&mut self, ack: &AckEvent<'_>, _: &mut CongestionWindow) {
        if let Some(rtt) = ack.latest_rtt {
            self.min_rtt = Some(self.min_rtt.map_or(rtt, |least| least.min(rtt)));
        }
    }

    fn congestion_avoidance(&mut self, window: &mut CongestionWindow, ack: &AckEvent<'_>, bytes: u64) {
        let packets = window.packets();
        if self.epoch.is_none() {
            self.begin_epoch(ack.now, packets);
        }
        let growth = self.growth(ack.now, packets, ack.smoothed_rtt);
        window.add(growth * bytes as f64 / window.mss());
    }

    fn ssthresh(&mut self, window: &CongestionWindow, congestion: &CongestionEvent) -> f64 {
        let packets = window.packets();
        self.epoch = None;
        self.w_max = if congestion.cause == ReductionCause::Timeout {
            // All state is reset, including the minimum RTT.
            self.min_rtt = None;
            0.0
        } else if self.params.fast_convergence && packets < self.w_max {
            packets * (1.0 + self.params.beta) / 2.0
        } else {
            packets
        };
        packets * self.params.beta
    }

    fn on_idle_end(&mut self, now: Time, idle: Span) {
        self.epoch = self.epoch.map(|epoch| (epoch + idle).min(now));
    }

    fn trace(&self, fields: &mut Fields) {
        fields.values.push(("w_max_packets", self.w_max));
        fields.values.push(("k_s", self.k));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LossCause;
    use crate::testing::{Script, setup};

    fn rules_with(extra: &[(&str, &str)]) -> Cubic2008 {
        let given = extra.iter().map(|(name, text)| {
            let spec = SCHEME.params.iter().find(|spec| spec.name == *name).unwrap();
            ((*name).to_owned(), spec.parse(text).unwrap())
        });
        rules(&Params::resolve(SCHEME.params, given).unwrap())
    }

    /// Rules that have just reduced from `w_max` packets.
    fn after_loss_at(w_max: f64) -> Cubic2008 {
        let mut rules = rules_with(&[]);
        rules.w_max = w_max;
        rules.begin_epoch(Time::ZERO, w_max * rules.params.beta);
        rules
    }

    fn script(window: u64, rules: Cubic2008) -> Script {
        let setup = Setup { initial_window: window, ..setup() };
        Script::new(LossBased::boxed(CongestionWindow::new(&setup), rules))
    }

    #[test]
    fn the_curve_has_the_values_of_a_fifth_removed() {
        let rules = after_loss_at(100.0);
        assert!((rules.k - 3.6840).abs() < 1e-4, "{}", rules.k);
        for (t, window) in [(0.0, 80.0), (1.0, 92.266), (2.0, 98.090), (rules.k, 100.0)] {
            assert!((rules.curve(t) - window).abs() < 1e-3, "W({t}) = {}", rules.curve(t));
        }
    }

    #[test]
    fn reductions_and_fast_convergence() {
        let mut s = script(100, rules_with(&[]));
        s.lose(LossCause::Reordering, 100);
        assert_eq!((s.cwnd_packets(), s.fields().values[0].1), (80.0, 100.0));
        s.lose(LossCause::Reordering, 80);
        assert_eq!((s.cwnd_packets(), s.fields().values[0].1), (64.0, 72.0));
        s.lose(LossCause::Timeout, 64);
        assert_eq!((s.cwnd_packets(), s.fields().values[0].1), (1.0, 0.0));
    }

    #[test]
    fn the_window_follows_the_curve() {
        let mut rules = rules_with(&[]);
        rules.min_rtt = Some(Span::from_ms(100));
        let mut s = script(1000, rules);
        s.lose(LossCause::Reordering, 1000);
        for _ in 0..60 {
            s.ack_round();
        }
        let wanted = after_loss_at(1000.0).curve(s.now.secs());
        assert!((s.cwnd_packets() - wanted).abs() < 4.0, "{} {wanted}", s.cwnd_packets());
    }

    #[test]
    fn on_a_short_path_renos_closed_form_rules() {
        // RTT 10 ms, 20 packets: 3 * 0.2/1.8 = 1/3 of a packet per round trip.
        let mut s = script(20, rules_with(&[]));
        s.rtt = Span::from_ms(10);
        s.lose(LossCause::Reordering, 20);
        for _ in 0..12 {
            s.ack_round();
        }
        // The window trails the estimate by up to a round trip.
        let grown = s.cwnd_packets() - 16.0;
        assert!((3.5..=4.1).contains(&grown), "{grown}");
    }

    #[test]
    fn growth_is_bounded_on_request() {
        let mut free = rules_with(&[]);
        let mut bounded = rules_with(&[("max_increment", "16")]);
        for rules in [&mut free, &mut bounded] {
            rules.w_max = 2000.0;
            rules.begin_epoch(Time::ZERO, 1600.0);
        }
        let now = Time::from_ns(100_000_000);
        let rtt = Span::from_ms(200);
        // 2000 - 0.4 (10 - 0.3)^3 is 35 packets away from 1600; the bound is 32 per 200 ms.
        let (free, bounded) = (free.growth(now, 1600.0, rtt), bounded.growth(now, 1600.0, rtt));
        assert!((free * 1600.0 - 34.9).abs() < 0.1, "{}", free * 1600.0);
        assert!((bounded * 1600.0 - 32.0).abs() < 1e-9, "{}", bounded * 1600.0);
    }

    #[test]
    fn without_a_loss_to_remember_it_grows_by_a_share() {
        for (extra, share) in [("0.05", 0.05), ("0.02", 0.02)] {
            let mut rules = rules_with(&[("initial_growth", extra)]);
            rules.begin_epoch(Time::ZERO, 1000.0);
            assert_eq!(rules.growth(Time::ZERO, 1000.0, Span::from_ms(10)), share);
        }
    }

    #[test]
    fn the_first_slow_start_may_end_at_a_threshold() {
        let spec = SCHEME.params.iter().find(|spec| spec.name == "initial_ssthresh").unwrap();
        let given = [("initial_ssthresh".to_owned(), spec.parse("100").unwrap())];
        let params = Params::resolve(SCHEME.params, given).unwrap();
        let mut s = Script::new(build(&params, setup()).unwrap());
        for _ in 0..4 {
            s.ack_round();
        }
        // 10, 20, 40, 80, 100 and 60 acknowledgements' worth of 5 % of a window.
        assert!((100.0..106.0).contains(&s.cwnd_packets()), "{}", s.cwnd_packets());
    }

    #[test]
    fn idle_time_does_not_count() {
        let mut rules = after_loss_at(1000.0);
        let now = Time::from_ns(10_000_000_000);
        rules.on_idle_end(now, Span::from_ms(4_000));
        assert_eq!(rules.epoch, Some(Time::from_ns(4_000_000_000)));
    }
}
