//! CUBIC as in the Linux kernel, in integers and clock ticks.
//!
//! Provenance: Linux net/ipv4/tcp_cubic.c (6.x, 7.x), with its HyStart (2008). Deviations: acknowledgements and
//! recovery are those of the transport, the initial value of the cube root comes from a formula instead of a table
//! (within 0.2 %, as in Linux), and the time since the last packet counts as idle even if acknowledgements arrived in
//! between.
//!
//! It differs from RFC 9438 (scheme `cubic`) in that it reduces the window, not the data in flight; looks ahead by the
//! minimum RTT; recomputes the curve at most once per clock tick, and not while the window has been constant for less
//! than 1/32 s; adds one packet to Reno's estimate per 15/8 windows for ever; grows by at least 5 % per round trip
//! until the first loss, and again after a timeout, which resets all state; never grows by more than one packet per two
//! acknowledged; and starts a new curve when a loss turns out to be spurious. Rounding raises the target one packet
//! above the curve. HyStart leaves slow start at once, on a train of acknowledgements or on a rise of the RTT.

use crate::parts::{
    ReductionCause, LossBased, CongestionEvent, HyStart, HyStartDetect, WindowRules, CongestionWindow,
    rough_cube_root,
};
use crate::{AckEvent, CongestionControl, Fields, LossCause, LossEvent, Scheme, Setup};
use narrows_units::{ParamError, Params, Span, Time, choice, params};

/// Registry entry.
pub const SCHEME: Scheme = Scheme {
    name: "cubic-linux",
    summary: "CUBIC with the whole numbers, shortcuts and HyStart of the Linux kernel",
    source: "Linux net/ipv4/tcp_cubic.c",
    params: CubicLinuxParams::PARAMS,
    build,
    ..super::reno::SCHEME
};

choice! {
    /// Detectors that may end slow start before a loss.
    enum HyStartChoice { Both = "both", Train = "train", Delay = "delay", Off = "off" }
}

params! {
    /// Parameters.
    struct CubicLinuxParams {
        /// Fraction of the window kept after a loss, in 1/1024.
        beta: Count(51.0..=972.0) = 717, "Linux net/ipv4/tcp_cubic.c: of 1024";
        /// Aggressiveness: C in packets/s^3 times 102.4.
        bic_scale: Count(1.0..=10_000.0) = 41, "Linux net/ipv4/tcp_cubic.c: C = 410/1024";
        /// Release bandwidth faster to new flows (fast convergence).
        fast_convergence: Flag = true, "Linux net/ipv4/tcp_cubic.c";
        /// Grow at least as Reno would.
        tcp_friendliness: Flag = true, "Linux net/ipv4/tcp_cubic.c";
        /// Initial slow-start threshold; 0: infinite.
        initial_ssthresh: Packets(0.0..=1e6) = 0, "Linux net/ipv4/tcp_cubic.c (0: infinite)";
        /// Detectors that may end slow start before a loss.
        hystart: HyStartChoice = "both", "Linux net/ipv4/tcp_cubic.c: hystart_detect 3";
        /// Minimum window at which HyStart is active.
        hystart_low_window: Packets(0.0..=1e6) = 16, "Linux net/ipv4/tcp_cubic.c";
        /// Whether the sender is paced: trains may be twice as long.
        paced: Flag = false, "Linux: only with fq or when asked for";
        /// Clock ticks per second.
        hz: Count(100.0..=1000.0) = 250, "Linux CONFIG_HZ of many distributions (others 1000)";
    }
}

/// Fractions of windows are in 1024ths.
const SCALE: u64 = 1024;
/// Times on the curve are in 1/1024 s.
const CURVE_SHIFT: u32 = 10;
/// Until the first loss, at most this many packets acknowledged per packet of growth.
const UNKNOWN_COUNT: u64 = 20;
/// A train of acknowledgements may be delayed by this, or by four bursts at the pacing rate.
const ACK_DELAY: Span = Span::from_ms(1);
const BURSTS: u64 = 4 * 65_536;
/// No RTT samples for this long after the start of a curve.
const QUIET: Span = Span::from_ms(1000);

fn build(params: &Params, setup: Setup) -> Result<Box<dyn CongestionControl>, ParamError> {
    let mut window = CongestionWindow::new(&setup);
    let rules = rules(params, setup.now);
    if rules.params.initial_ssthresh > 0.0 {
        window.set_threshold(rules.params.initial_ssthresh);
    }
    Ok(LossBased::boxed(window, rules))
}

fn rules(params: &Params, now: Time) -> CubicLinux {
    let params = CubicLinuxParams::read(params);
    let (beta, c) = (params.beta, params.bic_scale * 10);
    let detect = match params.hystart {
        HyStartChoice::Both => Some(HyStartDetect::Both),
        HyStartChoice::Train => Some(HyStartDetect::Train),
        HyStartChoice::Delay => Some(HyStartDetect::Delay),
        HyStartChoice::Off => None,
    };
    let low_window = params.hystart_low_window as u64;
    CubicLinux {
        c,
        cube_factor: (1 << (CURVE_SHIFT + 3 * CURVE_SHIFT)) / c,
        reno_scale: 8 * (SCALE + beta) / 3 / (SCALE - beta),
        hystart: detect.map(|detect| HyStart::new(detect, low_window, params.paced, now)),
        state: CubicLinuxState::default(),
        params,
    }
}

/// State reset by a timeout. Windows in packets, times in clock ticks.
#[derive(Clone, Copy, Debug, Default)]
struct CubicLinuxState {
    /// Packets acknowledged per packet of growth.
    count: u64,
    last_max: u64,
    /// Window and tick of the last computation.
    last_window: u64,
    last_tick: u64,
    /// Plateau of the curve, and the time to it in 1/1024 s.
    origin: u64,
    k: u64,
    epoch: Option<u64>,
    /// Packets acknowledged but not yet credited to Reno's estimate, and the estimate.
    acked: u64,
    reno: u64,
    min_rtt: Option<Span>,
    /// HyStart has ended slow start.
    found: bool,
}

#[derive(Clone)]
struct CubicLinux {
    params: CubicLinuxParams,
    /// C in 1/1024 packets/s^3.
    c: u64,
    /// 2^40/C.
    cube_factor: u64,
    /// Reno's estimate grows by a packet per window times this over 8.
    reno_scale: u64,
    hystart: Option<HyStart>,
    state: CubicLinuxState,
}

impl CubicLinux {
    fn tick(&self, now: Time) -> u64 {
        (u128::from(now.ns()) * u128::from(self.params.hz) / 1_000_000_000) as u64
    }

    fn ticks(&self, span: Span) -> u64 {
        // Rounded up, as the kernel converts.
        (u128::from(span.ns()) * u128::from(self.params.hz)).div_ceil(1_000_000_000) as u64
    }

    /// The curve `t` (in 1/1024 s) after the start of the epoch.
    fn curve(&self, t: u64) -> u64 {
        let distance = u128::from(t.abs_diff(self.state.k));
        let cube = u128::from(self.c) * distance * distance * distance;
        let delta = (cube >> (CURVE_SHIFT + 3 * CURVE_SHIFT)).min(u128::from(u32::MAX)) as u64;
        if t < self.state.k {
            self.state.origin.saturating_sub(delta)
        } else {
            self.state.origin + delta
        }
    }

    fn begin_epoch(&mut self, tick: u64, window: u64, acked: u64) {
        let state = &mut self.state;
        state.epoch = Some(tick);
        state.acked = acked;
        state.reno = window;
        if state.last_max <= window {
            (state.k, state.origin) = (0, window);
        } else {
            state.k = rough_cube_root(self.cube_factor * (state.last_max - window));
            state.origin = state.last_max;
        }
    }

    /// Computes the number of acknowledged packets per packet of growth.
    fn update(&mut self, tick: u64, window: u64, acked: u64) {
        self.state.acked += acked;
        let since = tick - self.state.last_tick;
        if self.state.last_window == window && since <= self.params.hz / 32 {
            return;
        }
        if self.state.epoch.is_none() || since > 0 {
            self.state.last_window = window;
            self.state.last_tick = tick;
            if self.state.epoch.is_none() {
                self.begin_epoch(tick, window, acked);
            }
            let ahead = self.ticks(self.state.min_rtt.unwrap_or(Span::ZERO));
            let elapsed = tick.saturating_sub(self.state.epoch.unwrap_or(tick)) + ahead;
            let target = self.curve((elapsed << CURVE_SHIFT) / self.params.hz);
            let state = &mut self.state;
            state.count = if target > window { window / (target - window) } else { 100 * window };
            if state.last_max == 0 {
                state.count = state.count.min(UNKNOWN_COUNT);
            }
        }
        let state = &mut self.state;
        if self.params.tcp_friendliness {
            let per_packet = ((window * self.reno_scale) >> 3).max(1);
            state.reno += state.acked.saturating_sub(1) / per_packet;
            // Credits more than one packet, as long as any remains.
            state.acked -= state.acked.saturating_sub(1) / per_packet * per_packet;
            if state.reno > window {
                state.count = state.count.min(window / (state.reno - window));
            }
        }
        state.count = state.count.max(2);
    }

    fn forget(&mut self, now: Time) {
        self.state = CubicLinuxState::default();
        if let Some(hystart) = &mut self.hystart {
            hystart.restart(now);
        }
    }
}

impl WindowRules for CubicLinux {
    fn observe(&mut self, ack: &AckEvent<'_>, window: &mut CongestionWindow) {
        let Some(rtt) = ack.latest_rtt else { return };
        let quiet = self.ticks(QUIET);
        if self.state.epoch.is_some_and(|epoch| self.tick(ack.now).saturating_sub(epoch) < quiet) {
            return;
        }
        let min_rtt = self.state.min_rtt.map_or(rtt, |least| least.min(rtt));
        self.state.min_rtt = Some(min_rtt);
        if self.state.found || !window.in_slow_start() {
            return;
        }
        let Some(hystart) = &mut self.hystart else { return };
        // Twice the window per round trip is the pacing rate in slow start.
        let rate = 2.0 * window.cwnd().get() as f64 / ack.smoothed_rtt.secs().max(1e-9);
        let ack_delay = ACK_DELAY.min(Span::from_secs(BURSTS as f64 / rate));
        if hystart.ends(ack, rtt, min_rtt, ack_delay, window.packets()) {
            self.state.found = true;
            window.exit_slow_start();
        }
    }

    fn congestion_avoidance(&mut self, window: &mut CongestionWindow, ack: &AckEvent<'_>, bytes: u64) {
        let mss = window.mss() as u64;
        self.update(self.tick(ack.now), window.packets() as u64, bytes.div_ceil(mss));
        window.additive_increase(bytes, self.state.count * mss);
    }

    fn ssthresh(&mut self, window: &CongestionWindow, congestion: &CongestionEvent) -> f64 {
        let packets = window.packets() as u64;
        self.state.epoch = None;
        self.state.last_max = if self.params.fast_convergence && packets < self.state.last_max {
            packets * (SCALE + self.params.beta) / (2 * SCALE)
        } else {
            packets
        };
        if congestion.cause == ReductionCause::Timeout {
            self.forget(congestion.now);
        }
        (packets * self.params.beta / SCALE) as f64
    }

    fn on_further_loss(&mut self, _: &mut CongestionWindow, loss: &LossEvent<'_>) {
        if loss.cause != LossCause::Reordering {
            self.forget(loss.now);
        }
    }

    /// The kernel restores the window and nothing else.
    fn undo(&mut self, _: Self) {}

    fn on_idle_end(&mut self, now: Time, idle: Span) {
        if let Some(epoch) = self.state.epoch {
            self.state.epoch = Some((epoch + self.ticks(idle)).min(self.tick(now)));
        }
    }

    fn trace(&self, fields: &mut Fields) {
        fields.values.push(("w_max_packets", self.state.last_max as f64));
        fields.values.push(("w_est_packets", self.state.reno as f64));
        fields.values.push(("k_s", self.state.k as f64 / SCALE as f64));
        fields.values.push(("packets_per_growth", self.state.count as f64));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SpuriousLossEvent;
    use crate::testing::{Script, setup};

    fn defaults() -> CubicLinux {
        rules(&Params::resolve(SCHEME.params, []).unwrap(), Time::ZERO)
    }

    fn script(window: u64, rules: CubicLinux) -> Script {
        let setup = Setup { initial_window: window, ..setup() };
        Script::new(LossBased::boxed(CongestionWindow::new(&setup), rules))
    }

    fn value(script: &Script, name: &str) -> f64 {
        script.fields().values.iter().find(|(key, _)| *key == name).unwrap().1
    }

    /// Numbers of Linux net/ipv4/tcp_cubic.c.
    #[test]
    fn constants_and_cube_roots_are_the_kernels() {
        let rules = defaults();
        assert_eq!(rules.reno_scale, 15);
        assert_eq!(rough_cube_root(rules.cube_factor * 30), 4316);
        assert_eq!(rough_cube_root(rules.cube_factor * 300), 9294);
    }

    #[test]
    fn the_target_is_a_packet_high_at_the_start() {
        let mut rules = defaults();
        rules.state.last_max = 100;
        rules.begin_epoch(0, 70, 0);
        assert_eq!((rules.state.k, rules.state.origin), (4316, 100));
        assert_eq!(rules.curve(0), 71);
        // RFC 9438's curve from 100 packets, within that packet: 86.681, 95.640, 100.192, 177.354.
        for (seconds, window) in [(1, 87), (2, 96), (5, 100), (10, 177)] {
            assert_eq!(rules.curve(seconds << CURVE_SHIFT), window, "{seconds} s");
        }
    }

    #[test]
    fn reductions_and_fast_convergence_in_whole_packets() {
        let mut s = script(100, defaults());
        s.lose(LossCause::Reordering, 100);
        assert_eq!((s.cwnd_packets(), value(&s, "w_max_packets")), (70.0, 100.0));
        let mut rules = defaults();
        rules.state.last_max = 100;
        let mut s = script(90, rules);
        s.lose(LossCause::Reordering, 90);
        assert_eq!((s.cwnd_packets(), value(&s, "w_max_packets")), (63.0, 76.0));
    }

    #[test]
    fn growth_is_bounded_on_both_sides() {
        // No maximum is known: a packet per at most 20 acknowledged.
        let mut rules = defaults();
        rules.update(1000, 400, 1);
        assert_eq!(rules.state.count, 20);
        // Far below the curve: a packet for every second one.
        let mut rules = defaults();
        rules.state.last_max = 1000;
        rules.update(1000, 10, 1);
        rules.update(1000 + 30 * 250, 10, 1);
        assert_eq!(rules.state.count, 2);
        // On the plateau: a packet for a hundred windows.
        let mut rules = defaults();
        rules.params.tcp_friendliness = false;
        rules.state.last_max = 100;
        rules.update(1000, 100, 1);
        assert_eq!(rules.state.count, 10_000);
    }

    #[test]
    fn the_curve_is_computed_once_per_tick_and_32_times_per_second() {
        let mut rules = defaults();
        rules.params.tcp_friendliness = false;
        rules.state.last_max = 1000;
        rules.update(1000, 700, 1);
        let first = rules.state.count;
        // Same window, 7 ticks (28 ms) later: not yet; 8 ticks: yes.
        rules.update(1007, 700, 1);
        assert_eq!(rules.state.count, first);
        rules.update(1008, 700, 1);
        assert!(rules.state.count < first, "{} {first}", rules.state.count);
        // Another window, same tick: not yet.
        let second = rules.state.count;
        rules.update(1008, 701, 1);
        assert_eq!((rules.state.count, rules.state.last_window), (second, 700));
    }

    #[test]
    fn renos_estimate_grows_by_a_packet_per_fifteen_eighths_of_a_window() {
        let mut rules = defaults();
        rules.state.last_max = 20;
        let mut tick = 1000;
        rules.update(tick, 14, 1);
        for _ in 0..260 {
            tick += 9;
            rules.update(tick, 14, 1);
        }
        // 14 * 15/8 = 26 packets per packet of growth: 261 packets yield ten and a remainder.
        assert_eq!((rules.state.reno, rules.state.acked), (24, 1));
    }

    #[test]
    fn a_timeout_forgets_everything() {
        let mut rules = defaults();
        rules.state.found = true;
        let mut s = script(100, rules);
        s.ack_round();
        s.lose(LossCause::Timeout, 100);
        assert_eq!((s.cwnd_packets(), value(&s, "w_max_packets")), (1.0, 0.0));
    }

    #[test]
    fn a_spurious_loss_starts_a_new_curve() {
        let mut s = script(100, defaults());
        s.lose(LossCause::Reordering, 100);
        let now = s.now;
        s.scheme.on_spurious_loss(&SpuriousLossEvent::new(now, LossCause::Reordering));
        assert_eq!((s.cwnd_packets(), value(&s, "w_max_packets")), (100.0, 100.0));
    }

    #[test]
    fn idle_time_moves_the_curve() {
        let mut rules = defaults();
        rules.state.last_max = 1000;
        rules.update(0, 700, 1);
        let now = Time::from_ns(10_000_000_000);
        rules.on_idle_end(now, Span::from_ms(4_000));
        assert_eq!(rules.state.epoch, Some(1000));
        rules.on_idle_end(now, Span::from_ms(60_000));
        assert_eq!(rules.state.epoch, Some(2500));
    }

    #[test]
    fn hystart_ends_slow_start_when_the_rtt_rises() {
        let mut s = script(10, defaults());
        for _ in 0..3 {
            s.ack_round();
        }
        // Rounds of 10, 20, 40 packets over 100 ms do not form trains (gaps above 2 ms); then the queue builds up.
        assert_eq!(s.fields().ssthresh, None);
        s.rtt = Span::from_ms(130);
        s.ack_round();
        // The ninth sample of the round is above 112.5 ms.
        assert_eq!(s.fields().ssthresh, Some(narrows_units::Bytes::new(88_000)));
    }
}
