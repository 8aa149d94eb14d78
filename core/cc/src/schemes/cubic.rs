//! CUBIC: the window is a cubic function of the time since the last loss.
//!
//! Provenance: RFC 9438 (August 2023), with HyStart++ (RFC 9406) in the initial slow start and fast
//! convergence on. Deviations: slow start after a timeout has no limit per acknowledgement (as in
//! Linux), and the reduction is spread over the recovery round by Proportional Rate Reduction
//! (RFC 6937).

use crate::parts::{HyStartPp, HyStartStep, CongestionWindow, cube_root};
use crate::{
    AckEvent, Allowance, CongestionControl, EcnEvent, Fields, HeardSends, LossCause, LossEvent, Scheme, Setup,
    SpuriousLossEvent,
};
use narrows_units::{Bytes, ParamError, Params, Span, Time, params};

/// Registry entry.
pub const SCHEME: Scheme = Scheme {
    name: "cubic",
    summary: "Window grows as a cubic of the time since the last loss, independent of the RTT",
    source: "RFC 9438, RFC 9406",
    params: CubicParams::PARAMS,
    build,
    ..super::reno::SCHEME
};

params! {
    /// Parameters.
    struct CubicParams {
        /// Aggressiveness C in packets/s^3.
        c: Number(0.001..=100.0, "packets/s^3") = 0.4, "RFC 9438, section 5";
        /// Fraction of the data in flight kept after a loss.
        beta: Ratio(0.05..=0.95) = 0.7, "RFC 9438, section 4.6";
        /// Release bandwidth faster to new flows (fast convergence).
        fast_convergence: Flag = true, "RFC 9438, section 4.7";
        /// HyStart++ in the initial slow start.
        hystart: Flag = true, "RFC 9406";
    }
}

/// Maximum growth per round trip (RFC 9438, section 4.4).
const MAX_GROWTH: f64 = 1.5;

fn build(params: &Params, setup: Setup) -> Result<Box<dyn CongestionControl>, ParamError> {
    let params = CubicParams::read(params);
    Ok(Box::new(Cubic {
        mss: setup.mss.get() as f64,
        alpha: 3.0 * (1.0 - params.beta) / (1.0 + params.beta),
        hystart: params.hystart.then(|| HyStartPp::new(setup.mss.get(), false)),
        window: CongestionWindow::new(&setup),
        curve: CubicCurve::default(),
        prior: None,
        params,
    }))
}

/// Everything that describes the current curve; saved whole for an undo. Windows in packets.
#[derive(Clone, Copy, Debug, Default)]
struct CubicCurve {
    /// Window just before the last reduction (after fast convergence).
    w_max: f64,
    /// Window just before the last reduction.
    cwnd_prior: f64,
    /// Window of Reno with the same average.
    w_est: f64,
    /// Time from the start of the epoch until the curve is back at `w_max`, in seconds.
    k: f64,
    /// Start of the congestion avoidance epoch, shifted by time in which the flow was not window-limited.
    epoch: Option<Time>,
    /// Time of the last acknowledgement, to measure that time.
    seen: Time,
    /// True after a timeout: the next epoch begins at its own plateau.
    forget_w_max: bool,
}

struct Cubic {
    params: CubicParams,
    mss: f64,
    alpha: f64,
    hystart: Option<HyStartPp>,
    window: CongestionWindow,
    curve: CubicCurve,
    prior: Option<CubicCurve>,
}

impl Cubic {
    fn begin_epoch(&mut self, now: Time) {
        let cwnd = self.window.packets();
        let curve = &mut self.curve;
        curve.epoch = Some(now);
        curve.seen = now;
        curve.w_est = cwnd;
        if curve.w_max > cwnd && !curve.forget_w_max {
            curve.k = cube_root((curve.w_max - cwnd) / self.params.c);
        } else {
            curve.k = 0.0;
            curve.w_max = cwnd;
        }
        curve.forget_w_max = false;
    }

    /// The curve at `t` seconds after the start of the epoch.
    fn curve_at(&self, t: f64) -> f64 {
        let d = t - self.curve.k;
        self.params.c * d * d * d + self.curve.w_max
    }

    fn avoidance(&mut self, now: Time, bytes: u64, smoothed_rtt: Span) {
        if self.curve.epoch.is_none() {
            self.begin_epoch(now);
        }
        self.curve.seen = now;
        let acked = bytes as f64 / self.mss;
        let cwnd = self.window.packets();
        let t = now.since(self.curve.epoch.unwrap_or(now)).secs();
        // Once Reno's estimate has reached the old window it grows like Reno (section 4.3).
        let alpha = if self.curve.w_est >= self.curve.cwnd_prior { 1.0 } else { self.alpha };
        self.curve.w_est += alpha * acked / cwnd;
        if self.curve_at(t) < self.curve.w_est {
            self.window.set_packets(self.curve.w_est.max(cwnd));
        } else {
            let target = self.curve_at(t + smoothed_rtt.secs()).clamp(cwnd, MAX_GROWTH * cwnd);
            self.window.set_packets(cwnd + acked * (target - cwnd) / cwnd);
        }
    }

    fn remember(&mut self) {
        self.prior = Some(self.curve);
        let cwnd = self.window.packets();
        self.curve.w_max = if self.params.fast_convergence && cwnd < self.curve.w_max {
            cwnd * (1.0 + self.params.beta) / 2.0
        } else {
            cwnd
        };
        self.curve.cwnd_prior = cwnd;
        self.curve.epoch = None;
        // HyStart++ is for the initial slow start only.
        self.hystart = None;
    }

    fn target(&self, in_flight: Bytes) -> u64 {
        (in_flight.get() as f64 * self.params.beta).round() as u64
    }
}

impl CongestionControl for Cubic {
    fn on_ack(&mut self, ack: &AckEvent<'_>) {
        if ack.in_recovery || !ack.may_grow {
            return;
        }
        if !ack.cwnd_limited {
            // Time in which the flow was not window-limited does not count (section 5.8).
            if let Some(epoch) = &mut self.curve.epoch {
                *epoch += ack.now.since(self.curve.seen);
                self.curve.seen = ack.now;
            }
            return;
        }
        let mut bytes = ack.bytes.get();
        if self.window.in_slow_start() {
            match &mut self.hystart {
                None => bytes = self.window.slow_start(bytes),
                Some(hystart) => {
                    let step = hystart.on_ack(bytes, ack.latest_rtt, ack.round_start);
                    let (HyStartStep::Grow(growth) | HyStartStep::Exit(growth)) = step;
                    bytes = self.window.slow_start(growth);
                    if let HyStartStep::Exit(_) = step {
                        self.window.exit_slow_start();
                        self.curve.cwnd_prior = self.window.packets();
                        self.hystart = None;
                    }
                }
            }
        }
        if bytes > 0 && !self.window.in_slow_start() {
            self.avoidance(ack.now, bytes, ack.smoothed_rtt);
        }
    }

    fn on_loss(&mut self, loss: &LossEvent<'_>) {
        match loss.cause {
            LossCause::Reordering if loss.new_epoch => {
                self.remember();
                self.window.reduce(self.target(loss.in_flight));
            }
            LossCause::Reordering => {}
            LossCause::Timeout if loss.new_epoch => {
                self.remember();
                self.curve.forget_w_max = true;
                self.window.restart(self.target(loss.in_flight));
            }
            LossCause::Timeout | LossCause::Persistent => self.window.restart_again(),
        }
    }

    fn on_ecn(&mut self, ecn: &EcnEvent) {
        if ecn.new_epoch {
            self.remember();
            self.window.reduce(self.target(ecn.in_flight));
        }
    }

    fn on_spurious_loss(&mut self, _: &SpuriousLossEvent) {
        if let Some(prior) = self.prior.take() {
            self.curve = prior;
            self.window.undo();
        }
    }

    fn heard_sends(&self) -> HeardSends {
        HeardSends::AfterIdle
    }

    fn allowance(&self) -> Allowance {
        Allowance { cwnd: Some(self.window.cwnd()), ..Allowance::default() }
    }

    fn trace(&self, fields: &mut Fields) {
        fields.ssthresh = self.window.ssthresh();
        fields.mode = if !self.window.in_slow_start() {
            "avoidance"
        } else if self.hystart.as_ref().is_some_and(HyStartPp::is_conservative) {
            "conservative_slow_start"
        } else {
            "slow_start"
        };
        fields.values.push(("w_max_packets", self.curve.w_max));
        fields.values.push(("w_est_packets", self.curve.w_est));
        fields.values.push(("k_s", self.curve.k));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{MSS, Script, setup};

    fn cubic(extra: &[(&str, &str)]) -> Cubic {
        let given = extra.iter().map(|(name, text)| {
            let spec = SCHEME.params.iter().find(|spec| spec.name == *name).unwrap();
            ((*name).to_owned(), spec.parse(text).unwrap())
        });
        let params = Params::resolve(SCHEME.params, given).unwrap();
        let params = CubicParams::read(&params);
        Cubic {
            mss: MSS as f64,
            alpha: 3.0 * (1.0 - params.beta) / (1.0 + params.beta),
            params,
            hystart: None,
            window: CongestionWindow::new(&setup()),
            curve: CubicCurve::default(),
            prior: None,
        }
    }

    /// A scheme that has just reduced from `w_max` packets.
    fn after_loss_at(w_max: f64, beta: &str) -> Cubic {
        let mut cubic = cubic(&[("beta", beta)]);
        cubic.window.set_packets(w_max);
        let in_flight = Bytes::new((w_max * MSS as f64) as u64);
        let mut loss = LossEvent::new(Time::ZERO, LossCause::Reordering, Bytes::new(MSS));
        loss.in_flight = in_flight;
        cubic.on_loss(&loss);
        cubic.begin_epoch(Time::ZERO);
        cubic
    }

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() < 0.001
    }

    #[test]
    fn the_plateau_is_reached_after_k() {
        for (w_max, k) in [(10.0, 1.9574), (100.0, 4.2172), (1000.0, 9.0856)] {
            assert!(close(after_loss_at(w_max, "0.7").curve.k, k), "W_max {w_max}");
        }
        assert!(close(after_loss_at(100.0, "0.8").curve.k, 3.6840));
    }

    #[test]
    fn the_curve_has_the_published_values() {
        let cubic = after_loss_at(100.0, "0.7");
        for (t, w) in [(0.0, 70.0), (1.0, 86.681), (2.0, 95.640), (5.0, 100.192), (10.0, 177.354)] {
            assert!(close(cubic.curve_at(t), w), "W({t}) = {}", cubic.curve_at(t));
        }
        let cubic = after_loss_at(1000.0, "0.7");
        for (t, w) in [(0.0, 700.0), (1.0, 788.555), (2.0, 857.705), (5.0, 972.721), (10.0, 1000.306)]
        {
            assert!(close(cubic.curve_at(t), w), "W({t}) = {}", cubic.curve_at(t));
        }
        let cubic = after_loss_at(100.0, "0.8");
        assert!(close(cubic.curve_at(1.0), 92.266) && close(cubic.curve_at(2.0), 98.090));
    }

    #[test]
    fn fast_convergence_lowers_the_plateau() {
        let mut cubic = after_loss_at(100.0, "0.7");
        cubic.window.set_packets(90.0);
        let mut loss = LossEvent::new(Time::ZERO, LossCause::Reordering, Bytes::new(MSS));
        loss.in_flight = Bytes::new(90 * MSS);
        cubic.on_loss(&loss);
        assert!(close(cubic.curve.w_max, 76.5));
        assert_eq!(cubic.window.packets(), 63.0);
    }

    #[test]
    fn the_window_follows_the_curve_over_a_long_path() {
        // One acknowledgement per packet, RTT 100 ms, W_max 1000: the Reno estimate stays far
        // below, so after t seconds the window is the curve's within one round's growth.
        let mut script = Script::new(Box::new(after_loss_at(1000.0, "0.7")));
        script.rtt = Span::from_ms(100);
        for _ in 0..50 {
            script.ack_round();
        }
        let expected = after_loss_at(1000.0, "0.7").curve_at(script.now.secs());
        let grown = script.cwnd_packets();
        assert!((grown - expected).abs() < 4.0, "{grown} against {expected}");
    }

    #[test]
    fn on_a_short_path_reno_is_matched() {
        // RTT 10 ms, W_max 20: the curve is slower than Reno, which applies (section 4.3).
        let mut script = Script::new(Box::new(after_loss_at(20.0, "0.7")));
        script.rtt = Span::from_ms(10);
        script.ack_round();
        let start = script.cwnd_packets();
        for _ in 0..10 {
            script.ack_round();
        }
        // alpha = 0.529 packets per round trip until the old window is reached again.
        let growth = script.cwnd_packets() - start;
        assert!((growth - 5.294).abs() < 0.2, "{growth}");
    }

    #[test]
    fn after_a_timeout_the_plateau_is_forgotten() {
        let mut cubic = after_loss_at(100.0, "0.7");
        let mut loss = LossEvent::new(Time::ZERO, LossCause::Timeout, Bytes::new(MSS));
        loss.in_flight = Bytes::new(70 * MSS);
        cubic.on_loss(&loss);
        assert_eq!(cubic.window.packets(), 1.0);
        cubic.window.set_packets(49.0);
        cubic.begin_epoch(Time::ZERO);
        assert_eq!(cubic.curve.k, 0.0);
        assert_eq!(cubic.curve.w_max, 49.0);
    }

    #[test]
    fn idle_time_does_not_count() {
        let mut script = Script::new(Box::new(after_loss_at(1000.0, "0.7")));
        script.rtt = Span::from_ms(100);
        script.ack_round();
        let before = script.cwnd_packets();
        script.cwnd_limited = false;
        for _ in 0..100 {
            script.ack_round();
        }
        script.cwnd_limited = true;
        script.ack_round();
        // Ten idle seconds would have put the curve at its plateau of 1000.
        assert!(script.cwnd_packets() - before < 25.0, "{}", script.cwnd_packets());
    }

    #[test]
    fn a_spurious_loss_restores_the_curve() {
        let mut cubic = after_loss_at(100.0, "0.7");
        let (curve, cwnd) = (cubic.curve, cubic.window.cwnd());
        let mut loss = LossEvent::new(Time::ZERO, LossCause::Reordering, Bytes::new(MSS));
        loss.in_flight = cwnd;
        cubic.on_loss(&loss);
        cubic.on_spurious_loss(&SpuriousLossEvent::new(Time::ZERO, LossCause::Reordering));
        assert_eq!(cubic.window.cwnd(), cwnd);
        assert!(close(cubic.curve.w_max, curve.w_max) && close(cubic.curve.k, curve.k));
    }
}
