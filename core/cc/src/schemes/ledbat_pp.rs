//! LEDBAT++: LEDBAT on round trips, with multiplicative decrease and regular slowdowns that reveal the path's base
//! delay.
//!
//! Provenance: draft-irtf-iccrg-ledbat-plus-plus-06 (January 2026). Deviations: losses and timeouts reduce as in RFC
//! 5681, to which the draft refers, with the reduction spread by Proportional Rate Reduction (RFC 6937); the decrease
//! above the target, which the draft gives per round trip, is taken once at the beginning of each; a loss that ends the
//! first slow start also schedules the first slowdown.
//!
//! The gain is 1 / F with F = ceil(2 target / base RTT), at most 16: on short paths it grows slower than Reno. Slow
//! start adds 1 / F packets per packet and ends at three quarters of the target the first time. Above the target each
//! round trip reduces the window by the window times the excess, at most half. Two round trips after the first slow
//! start, and then for a tenth of the time, the window falls to two packets for two round trips and returns by slow
//! start. All flows thus see the empty path at some time, which removes the latecomer's advantage of `ledbat`.
//!
//! Pitfalls: the round trip includes queues on the return path. The slowdowns cost up to a tenth of the time. Buffers
//! below the target end in losses. A deeper standing queue of other flows keeps the window at two packets.

use crate::parts::{CurrentDelays, BaseDelays};
use crate::{
    AckEvent, Allowance, CongestionControl, EcnEvent, Fields, LossCause, LossEvent,
    Scheme, Setup, SpuriousLossEvent,
};
use narrows_units::{Bytes, Params, Span, Time, params};

/// Registry entry.
pub const SCHEME: Scheme = Scheme {
    name: "ledbat++",
    summary: "Background transport on round trips: holds 60 ms, with regular slowdowns",
    source: "draft-irtf-iccrg-ledbat-plus-plus-06",
    params: LedbatPpParams::PARAMS,
    build: |params, setup| Ok(Box::new(LedbatPp::new(params, &setup))),
    ..super::reno::SCHEME
};

params! {
    /// Parameters.
    struct LedbatPpParams {
        /// Queueing delay to hold.
        target: Span(1e6..=1e10) = "60 ms", "draft-06, section 4.2";
        /// Strength of the decrease above the target.
        constant: Number(0.01..=100.0) = 1, "draft-06, section 4.2";
        /// Minutes over which the minimum RTT is the path's base RTT.
        base_history: Count(1.0..=1000.0) = 10, "draft-06 and RFC 6817, section 2.5: minutes";
        /// Round trips whose minimum counts.
        filter: Count(1.0..=1000.0) = 4, "draft-06 and RFC 6817, section 2.5";
        /// Reduce the window to two packets regularly.
        slowdowns: Flag = true, "draft-06, section 4.4";
    }
}

const MINUTE: Span = Span::from_ms(60_000);
/// F is at most this (section 4.1).
const MAX_DIVISOR: u64 = 16;
/// Fraction of the target at which the first slow start ends (section 4.3).
const SLOW_START_SHARE: f64 = 0.75;
/// Smallest window in packets, also that of a slowdown.
const MIN_WINDOW: f64 = 2.0;
/// Round trips before the first slowdown, and round trips of a slowdown at the floor.
const SLOWDOWN_ROUNDS: u64 = 2;
/// The next slowdown begins after this many times the length of the last one.
const PAUSE: u64 = 9;

/// State of the regular slowdowns.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Slowdown {
    /// The first slow start is in progress, or slowdowns are disabled.
    Never,
    /// The next one begins at this time.
    Planned(Time),
    /// At the floor until the second time.
    Frozen(Time, Time),
    /// On the way back.
    Ramp(Time),
}

/// Windows in bytes, delays in ns.
struct LedbatPp {
    params: LedbatPpParams,
    mss: f64,
    target: u64,
    window: f64,
    threshold: f64,
    /// The first slow start.
    initial: bool,
    slowdown: Slowdown,
    base: BaseDelays,
    current: CurrentDelays,
    queueing: f64,
    /// Window and threshold before the last reduction.
    prior: Option<(f64, f64)>,
}

impl LedbatPp {
    fn new(params: &Params, setup: &Setup) -> Self {
        let params = LedbatPpParams::read(params);
        let mss = setup.mss.get() as f64;
        LedbatPp {
            mss,
            target: params.target.ns().max(1),
            window: MIN_WINDOW * mss,
            threshold: f64::INFINITY,
            initial: true,
            slowdown: Slowdown::Never,
            base: BaseDelays::new(params.base_history as usize, MINUTE),
            current: CurrentDelays::new(params.filter as usize),
            params,
            queueing: 0.0,
            prior: None,
        }
    }

    /// F, by which growth is divided.
    fn divisor(&self) -> u64 {
        let base = self.base.min().unwrap_or(0).max(0) as u64;
        if base == 0 {
            return MAX_DIVISOR;
        }
        (2 * self.target).div_ceil(base).min(MAX_DIVISOR)
    }

    fn in_slow_start(&self) -> bool {
        self.window < self.threshold
    }

    /// The first slow start is over: slowdowns begin two round trips later.
    fn leave_initial(&mut self, now: Time, rtt: Span) {
        if self.initial && self.params.slowdowns {
            self.slowdown = Slowdown::Planned(now + rtt * SLOWDOWN_ROUNDS);
        }
        self.initial = false;
    }

    /// Advances the slowdowns; returns whether the window is frozen.
    fn slow_down(&mut self, now: Time, rtt: Span) -> bool {
        match self.slowdown {
            Slowdown::Planned(at) if now >= at => {
                self.threshold = self.window;
                self.window = MIN_WINDOW * self.mss;
                self.slowdown = Slowdown::Frozen(now, now + rtt * SLOWDOWN_ROUNDS);
            }
            Slowdown::Frozen(begun, until) if now >= until => self.slowdown = Slowdown::Ramp(begun),
            Slowdown::Ramp(begun) if !self.in_slow_start() => {
                self.slowdown = Slowdown::Planned(now + now.since(begun) * PAUSE);
            }
            _ => {}
        }
        matches!(self.slowdown, Slowdown::Frozen(..))
    }

    fn grow(&mut self, ack: &AckEvent<'_>) {
        let gain = 1.0 / self.divisor() as f64;
        let acked = ack.bytes.get() as f64;
        let excess = self.queueing / self.target as f64 - 1.0;
        if self.in_slow_start() {
            if self.initial && self.queueing > SLOW_START_SHARE * self.target as f64 {
                self.threshold = self.window;
                self.leave_initial(ack.now, ack.smoothed_rtt);
            } else if ack.cwnd_limited {
                self.window = (self.window + gain * acked).min(self.threshold);
            }
        } else if excess > 0.0 {
            if ack.round_start {
                let change = gain * self.mss - self.params.constant * self.window * excess;
                self.window += change.max(-self.window / 2.0);
                // Otherwise the rest would be below the threshold, which is slow start.
                self.threshold = self.threshold.min(self.window);
            }
        } else if ack.cwnd_limited {
            self.window += gain * acked * self.mss / self.window;
        }
        self.window = self.window.max(MIN_WINDOW * self.mss);
    }

    fn remember(&mut self, now: Time, rtt: Span) {
        self.prior = Some((self.window, self.threshold));
        self.leave_initial(now, rtt);
    }

    fn reduce(&mut self) {
        let floor = MIN_WINDOW * self.mss;
        if let Slowdown::Frozen(..) = self.slowdown {
            // Already at the floor: return to a smaller window.
            self.threshold = (self.threshold / 2.0).max(floor);
        } else {
            self.window = (self.window / 2.0).max(floor);
            self.threshold = self.window;
        }
    }
}

impl CongestionControl for LedbatPp {
    fn on_ack(&mut self, ack: &AckEvent<'_>) {
        if let Some(rtt) = ack.latest_rtt {
            let rtt = rtt.ns() as i64;
            self.base.update(ack.now, rtt);
            self.current.push(ack.now, rtt);
            let current = self.current.min(ack.now, Span::MAX).unwrap_or(rtt);
            self.queueing = (current - self.base.min().unwrap_or(current)) as f64;
        }
        if ack.in_recovery || self.slow_down(ack.now, ack.smoothed_rtt) {
            return;
        }
        self.grow(ack);
    }

    fn on_loss(&mut self, loss: &LossEvent<'_>) {
        if loss.new_epoch {
            self.remember(loss.now, loss.smoothed_rtt);
        }
        match loss.cause {
            LossCause::Reordering if loss.new_epoch => self.reduce(),
            LossCause::Reordering => {}
            LossCause::Timeout | LossCause::Persistent => {
                if loss.new_epoch {
                    self.threshold = (self.window / 2.0).max(MIN_WINDOW * self.mss);
                }
                self.window = self.mss;
            }
        }
    }

    fn on_ecn(&mut self, ecn: &EcnEvent) {
        if ecn.new_epoch {
            // The event has no round trip; the base RTT is the minimum so far.
            let rtt = Span::from_ns(self.base.min().unwrap_or(0).max(0) as u64);
            self.remember(ecn.now, rtt);
            self.reduce();
        }
    }

    fn on_spurious_loss(&mut self, _: &SpuriousLossEvent) {
        if let Some((window, threshold)) = self.prior.take() {
            self.window = self.window.max(window);
            self.threshold = threshold;
        }
    }

    fn allowance(&self) -> Allowance {
        Allowance { cwnd: Some(Bytes::new(self.window as u64)), ..Allowance::default() }
    }

    fn trace(&self, fields: &mut Fields) {
        fields.ssthresh = self.threshold.is_finite().then(|| Bytes::new(self.threshold as u64));
        fields.mode = match self.slowdown {
            Slowdown::Frozen(..) | Slowdown::Ramp(_) => "slowdown",
            _ if self.in_slow_start() => "slow_start",
            _ => "avoidance",
        };
        fields.values.push(("queueing_delay_ms", self.queueing / 1e6));
        fields.values.push(("gain_divisor", self.divisor() as f64));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{MSS, setup};

    struct Path {
        scheme: LedbatPp,
        now: Time,
        base: u64,
    }

    impl Path {
        fn new(base_ms: u64) -> Self {
            let params = Params::resolve(SCHEME.params, []).unwrap();
            let scheme = LedbatPp::new(&params, &setup());
            Path { scheme, now: Time::ZERO + Span::from_ms(1000), base: base_ms }
        }

        /// In congestion avoidance with `packets` and the base known, no slowdown planned.
        fn avoiding(base_ms: u64, packets: f64) -> Self {
            let mut path = Path::new(base_ms);
            path.round(0);
            path.scheme.initial = false;
            path.scheme.window = packets * MSS as f64;
            path.scheme.threshold = path.scheme.window;
            path
        }

        fn packets(&self) -> f64 {
            self.scheme.window / MSS as f64
        }

        fn ack(&mut self, queue_ms: u64, round_start: bool) {
            let rtt = Span::from_ms(self.base + queue_ms);
            let mut ack = AckEvent::new(self.now);
            ack.bytes = Bytes::new(MSS);
            ack.latest_rtt = Some(rtt);
            ack.smoothed_rtt = rtt;
            ack.round_start = round_start;
            self.scheme.on_ack(&ack);
        }

        /// A window is acknowledged.
        fn round(&mut self, queue_ms: u64) {
            let window = self.packets() as u64;
            for index in 0..window {
                self.now += Span::from_ns((self.base + queue_ms) * 1_000_000 / window);
                self.ack(queue_ms, index == 0);
            }
        }

        /// Fills the filter with samples of `queue_ms` without any effect on the window.
        fn filter(&mut self, queue_ms: u64) {
            let (window, threshold) = (self.scheme.window, self.scheme.threshold);
            for _ in 0..4 {
                self.ack(queue_ms, false);
            }
            (self.scheme.window, self.scheme.threshold) = (window, threshold);
        }
    }

    // draft-irtf-iccrg-ledbat-plus-plus-06, section 4.1: GAIN = 1 / min(16, ceil(2 TARGET / base)).
    #[test]
    fn short_paths_grow_slower() {
        for (base_ms, divisor) in [(1, 16), (10, 12), (40, 3), (100, 2), (120, 1), (300, 1)] {
            let mut path = Path::new(base_ms);
            path.ack(0, true);
            assert_eq!(path.scheme.divisor(), divisor, "{base_ms} ms");
        }
    }

    // Section 4.2: 1/3 - 100 (90 / 60 - 1), which is within half of the window; beyond, half.
    #[test]
    fn above_the_target_the_excess_goes_once_per_round() {
        for (queue_ms, left) in [(90, 50.0 + 1.0 / 3.0), (150, 50.0), (63, 95.0 + 1.0 / 3.0)] {
            let mut path = Path::avoiding(40, 100.0);
            path.filter(queue_ms);
            path.round(queue_ms);
            assert!((path.packets() - left).abs() < 1e-6, "{queue_ms} ms: {}", path.packets());
        }
    }

    #[test]
    fn at_the_target_a_round_adds_one_over_f() {
        for (base_ms, growth) in [(10, 1.0 / 12.0), (40, 1.0 / 3.0), (150, 1.0)] {
            let mut path = Path::avoiding(base_ms, 100.0);
            path.filter(60);
            path.round(60);
            let grown = path.packets() - 100.0;
            assert!((grown - growth).abs() < 0.01, "{base_ms} ms: {grown}");
        }
    }

    #[test]
    fn slow_start_is_divided_too_and_ends_at_three_quarters_of_the_target() {
        let mut path = Path::new(40);
        for _ in 0..12 {
            let before = path.packets();
            path.round(0);
            assert!((path.packets() - before - before.floor() / 3.0).abs() < 1e-6);
        }
        assert!(path.scheme.initial);
        let mut path = Path::new(40);
        path.round(0);
        path.round(46);
        path.round(46);
        path.round(46);
        assert!(!path.scheme.initial && !path.scheme.in_slow_start());
        assert!(matches!(path.scheme.slowdown, Slowdown::Planned(_)));
    }

    #[test]
    fn a_tenth_of_the_time_is_slowed_down() {
        let mut path = Path::avoiding(40, 60.0);
        path.scheme.slowdown = Slowdown::Planned(path.now);
        let (mut slow, mut all, mut times) = (0.0, 0.0, 0);
        let mut was = false;
        let start = path.now;
        while path.now.since(start) < Span::from_ms(120_000) {
            let before = path.now;
            path.round(20);
            let span = path.now.since(before).secs();
            let mut fields = Fields::default();
            path.scheme.trace(&mut fields);
            let is = fields.mode == "slowdown";
            times += u32::from(is && !was);
            was = is;
            if is {
                slow += span;
            }
            all += span;
        }
        assert!(times >= 5, "{times}");
        let share = slow / all;
        // The tenth of a cycle at the end may be another one; rounds are counted as whole.
        assert!((0.07..=0.12).contains(&share), "{share}");
    }

    #[test]
    fn a_slowdown_holds_two_packets_for_two_rounds_and_comes_back() {
        let mut path = Path::avoiding(40, 60.0);
        path.scheme.slowdown = Slowdown::Planned(path.now);
        path.now += Span::from_ms(1);
        path.ack(0, true);
        let begun = path.now;
        assert_eq!(path.packets(), 2.0);
        while path.now.since(begun) < Span::from_ms(79) {
            path.now += Span::from_ms(10);
            path.ack(0, false);
            if path.now.since(begun) < Span::from_ms(80) {
                assert_eq!(path.packets(), 2.0);
            }
        }
        while path.packets() < 59.9 {
            path.round(0);
        }
        path.round(0);
        let Slowdown::Planned(next) = path.scheme.slowdown else { panic!("another one is planned") };
        assert!(next.since(begun) > Span::from_ms(9 * 80));
    }

    #[test]
    fn a_loss_halves_and_a_timeout_restarts() {
        let mut path = Path::avoiding(40, 60.0);
        path.scheme.on_loss(&LossEvent::new(path.now, LossCause::Reordering, Bytes::new(MSS)));
        assert_eq!(path.packets(), 30.0);
        path.scheme.on_spurious_loss(&SpuriousLossEvent::new(path.now, LossCause::Reordering));
        assert_eq!(path.packets(), 60.0);
        path.scheme.on_loss(&LossEvent::new(path.now, LossCause::Timeout, Bytes::new(MSS)));
        assert_eq!((path.packets(), path.scheme.threshold), (1.0, 30.0 * MSS as f64));
    }
}
