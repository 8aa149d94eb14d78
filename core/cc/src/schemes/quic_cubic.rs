//! CUBIC as in early QUIC: two connections' worth of aggressiveness, paced, with QUIC's recovery.
//!
//! Provenance: Chromium's QUIC of May 2017 (google/proto-quic, commit 77961f1: net/quic/core/congestion_control, about
//! Chromium M60), which the Pantheon reports ran as "QUIC Cubic". Deviations: the transport is this one, without QUIC's
//! packets, streams and web page; a packet of the window has the transport's payload, where Chromium counts 1460 bytes
//! for packets of 1350; HyStart decides on the ninth RTT of a round, not the eighth; one tail-loss probe, not two;
//! RACK's time threshold instead of early retransmit; an RTT that a coarse clock shows as zero disables pacing, where
//! Chromium, whose clock counts microseconds, would continue with its initial value of 100 ms.
//!
//! The window emulates N = 2 connections: a loss leaves (N - 1 + 0.7)/N = 0.85 of it, and Reno's window grows by 3 N^2
//! (1 - beta)/(1 + beta) = 0.973 packets per round trip. Both complement the curve of CUBIC, which is recomputed for
//! each packet acknowledged, but only every 30 ms while the window is constant, and never exceeds the window by more
//! than half of the bytes acknowledged. Slow start ends by HyStart on a rise of the delay (`algorithms/hystart.rs`),
//! never on trains. A timeout reduces the window to two packets. The flow is paced at 2 windows per smoothed RTT in
//! slow start and at 1.25 after it, with bursts of ten packets after a pause.
//!
//! Its transport settings: an initial window of 32 packets, an acknowledgement for every second packet or after 25 ms,
//! timeouts by RFC 6298 of at least 200 ms. Losses are detected as by the transport's default, with a packet threshold
//! of three and by time; retransmissions have new numbers and are treated alike, as in QUIC. The profile `pantheon` has
//! packets of 1350 bytes of UDP. Pitfalls: more aggressive than today's QUIC (beta 0.7, one connection), and against
//! one `cubic` flow it takes more than its fair share; the maximum window is 2000 packets.

use crate::parts::{HyStart, HyStartDetect, CongestionWindow, cube_root};
use crate::{
    AckEvent, Allowance, CongestionControl, EcnUse, Fields, LossCause, LossEvent, Profile, Recovery, Scheme,
    SendEvent, Setup,
};
use narrows_units::{Bytes, Params, Rate, Span, Time, params};

/// Registry entry.
pub const SCHEME: Scheme = Scheme {
    name: "quic-cubic",
    summary: "CUBIC of early QUIC: emulates two connections, paced, HyStart by delay",
    source: "google/proto-quic 77961f1",
    recovery: Recovery::Proportional,
    ecn: EcnUse::None,
    loss_based: true,
    transport: &[
        ("initial_window", "32"),
        ("max_ack_delay", "25000000"),
        ("quick_acks", "0"),
        ("max_packet_threshold", "3"),
        ("rto_rule", "rfc6298"),
        ("min_rto", "200000000"),
        ("timer_granularity", "0"),
    ],
    profiles: &[Profile {
        name: "pantheon",
        doc: "As in the Pantheon reports: datagrams of 1350 bytes.",
        params: &[],
        transport: &[("packet_size", "1378")],
    }],
    params: QuicCubicParams::PARAMS,
    build: |params, setup| Ok(Box::new(QuicCubic::new(params, setup))),
};

params! {
    /// Parameters.
    struct QuicCubicParams {
        /// Connections emulated by a flow.
        connections: Count(1.0..=64.0) = 2, "proto-quic 77961f1: kDefaultNumConnections";
        /// Maximum window.
        max_window: Packets(2.0..=1e6) = 2000, "proto-quic 77961f1: kDefaultMaxCongestionWindowPackets";
        /// HyStart by delay in slow start.
        hystart: Flag = true, "proto-quic 77961f1: HybridSlowStart";
    }
}

/// Fraction of the window that one connection keeps after a loss.
const BETA: f64 = 0.7;
/// Fraction of the window to which a loss below the last plateau lowers the next one.
const BETA_LAST_MAX: f64 = 0.85;
/// C = 410/1024 packets/s^3, with times in 1/1024 s: the cube is divided by 2^40.
const SCALE: f64 = 410.0 / (1u64 << 40) as f64;
/// Minimum time between recomputations while the window is constant.
const INTERVAL: Span = Span::from_ms(30);
/// Minimum window in packets, also after a timeout.
const MIN_WINDOW: f64 = 2.0;
/// Minimum window at which HyStart is active.
const LOW_WINDOW: u64 = 16;
/// Windows per smoothed RTT, in slow start and after it.
const PACING: (f64, f64) = (2.0, 1.25);
/// Packets that may leave at once after a pause.
const BURST: u64 = 10;
/// Initial RTT for pacing.
const FIRST_RTT: Span = Span::from_ms(100);

/// The curve; windows in packets, times in 1/1024 s.
#[derive(Clone, Copy, Debug, Default)]
struct QuicCubicCurve {
    epoch: Option<Time>,
    last_max: f64,
    origin: f64,
    to_origin: f64,
    /// Reno's window, and packets acknowledged but not yet credited to it.
    reno: f64,
    acked: f64,
    /// Window, time and result of the last computation.
    last_window: f64,
    last_update: Option<Time>,
    last_target: f64,
}

struct QuicCubic {
    beta: f64,
    alpha: f64,
    max_window: f64,
    window: CongestionWindow,
    curve: QuicCubicCurve,
    hystart: Option<HyStart>,
    /// Time over which a window is paced; `None` if the RTT is below the clock's granularity, which disables pacing.
    spread: Option<Span>,
    /// After a pause the first packets may leave together.
    burst: bool,
}

impl QuicCubicCurve {
    /// The window after one more packet has been acknowledged (whole packets).
    fn after_ack(&mut self, now: Time, window: f64, min_rtt: Span, alpha: f64) -> f64 {
        self.acked += 1.0;
        let recent = self.last_update.is_some_and(|at| now.since(at) <= INTERVAL);
        if self.last_window == window && recent {
            return self.last_target.max(self.reno);
        }
        self.last_window = window;
        self.last_update = Some(now);
        let epoch = *self.epoch.get_or_insert_with(|| {
            self.acked = 1.0;
            self.reno = window;
            self.origin = self.last_max.max(window);
            self.to_origin = cube_root((self.origin - window) / SCALE).floor();
            now
        });
        let elapsed = ((now.since(epoch) + min_rtt).ns() as f64 * 1024.0 / 1e9).floor();
        let offset = elapsed - self.to_origin;
        let delta = (offset.abs() * offset * offset * SCALE).floor();
        let curve = if offset < 0.0 { self.origin - delta } else { self.origin + delta };
        let target = curve.min(window + (self.acked / 2.0).floor());
        while self.acked >= self.reno / alpha {
            self.acked -= self.reno / alpha;
            self.reno += 1.0;
        }
        self.last_target = target;
        target.max(self.reno)
    }

    /// A loss at `window`: where the next plateau is.
    fn lose(&mut self, window: f64) {
        self.last_max = if window < self.last_max { BETA_LAST_MAX * window } else { window };
        self.epoch = None;
    }
}

impl QuicCubic {
    fn new(params: &Params, setup: Setup) -> Self {
        let QuicCubicParams { connections, max_window, hystart } = QuicCubicParams::read(params);
        let n = connections as f64;
        let beta = (n - 1.0 + BETA) / n;
        let mut window = CongestionWindow::new(&setup);
        window.set_packets(window.packets().min(max_window));
        QuicCubic {
            beta,
            alpha: 3.0 * n * n * (1.0 - beta) / (1.0 + beta),
            max_window,
            window,
            curve: QuicCubicCurve::default(),
            hystart: hystart.then(|| HyStart::new(HyStartDetect::Delay, LOW_WINDOW, true, setup.now)),
            spread: Some(FIRST_RTT),
            burst: false,
        }
    }

    fn watch_delay(&mut self, ack: &AckEvent<'_>) {
        let (Some(hystart), Some(rtt)) = (&mut self.hystart, ack.latest_rtt) else {
            return;
        };
        if hystart.ends(ack, rtt, ack.min_rtt, Span::ZERO, self.window.packets()) {
            self.window.exit_slow_start();
        }
    }

    fn reduced(&self) -> u64 {
        let packets = (self.window.packets().floor() * self.beta + 1e-9).floor();
        (packets * self.window.mss()).round() as u64
    }
}

impl CongestionControl for QuicCubic {
    fn on_ack(&mut self, ack: &AckEvent<'_>) {
        self.burst = false;
        // Once an RTT is known, zero is a valid one: it is below the granularity of the clock.
        if ack.latest_rtt.is_some() || !ack.smoothed_rtt.is_zero() {
            self.spread = (!ack.smoothed_rtt.is_zero()).then_some(ack.smoothed_rtt);
        }
        if self.window.in_slow_start() {
            self.watch_delay(ack);
        }
        if ack.in_recovery {
            return;
        }
        if !ack.cwnd_limited {
            self.curve.epoch = None;
            return;
        }
        let mss = self.window.mss() as u64;
        for _ in 0..ack.bytes.get().div_ceil(mss) {
            let packets = self.window.packets();
            if packets >= self.max_window {
                return;
            }
            if self.window.in_slow_start() {
                self.window.set_packets((packets + 1.0).min(self.max_window));
            } else {
                let next = self.curve.after_ack(ack.now, packets.floor(), ack.min_rtt, self.alpha);
                self.window.set_packets(next.clamp(MIN_WINDOW, self.max_window));
            }
        }
    }

    fn on_loss(&mut self, loss: &LossEvent<'_>) {
        match loss.cause {
            LossCause::Reordering if loss.new_epoch => {
                self.curve.lose(self.window.packets());
                self.window.reduce(self.reduced());
            }
            LossCause::Reordering => {}
            LossCause::Timeout | LossCause::Persistent => {
                if loss.new_epoch {
                    let half = (self.window.packets() / 2.0).floor() * self.window.mss();
                    self.window.restart(half as u64);
                }
                self.curve = QuicCubicCurve::default();
                if let Some(hystart) = &mut self.hystart {
                    hystart.restart(loss.now);
                }
                self.window.set_packets(MIN_WINDOW);
            }
        }
    }

    fn on_send(&mut self, send: &SendEvent) {
        self.burst |= send.idle.is_some();
    }

    fn allowance(&self) -> Allowance {
        let gain = if self.window.in_slow_start() { PACING.0 } else { PACING.1 };
        let bytes = (self.window.cwnd().get() as f64 * gain) as u64;
        let pacing = |over| Rate::of(Bytes::new(bytes), over).max(Rate::from_bps(1));
        Allowance {
            cwnd: Some(self.window.cwnd()),
            pacing: self.spread.map(pacing),
            quantum: self.burst.then(|| Bytes::new(BURST * self.window.mss() as u64)),
            ..Allowance::default()
        }
    }

    fn trace(&self, fields: &mut Fields) {
        fields.ssthresh = self.window.ssthresh();
        fields.mode = if self.window.in_slow_start() { "slow_start" } else { "avoidance" };
        fields.values.push(("w_max_packets", self.curve.last_max));
        fields.values.push(("w_est_packets", self.curve.reno));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{MSS, Script, setup};

    fn scheme() -> QuicCubic {
        QuicCubic::new(&Params::resolve(SCHEME.params, []).unwrap(), setup())
    }

    fn at(packets: f64) -> QuicCubic {
        let mut scheme = scheme();
        scheme.window.set_packets(packets);
        scheme
    }

    fn lose(scheme: &mut QuicCubic, cause: LossCause) {
        let mut loss = LossEvent::new(Time::ZERO, cause, Bytes::new(MSS));
        loss.in_flight = scheme.window.cwnd();
        scheme.on_loss(&loss);
    }

    #[test]
    fn two_connections_keep_85_percent() {
        let mut scheme = at(100.0);
        lose(&mut scheme, LossCause::Reordering);
        assert_eq!(scheme.window.packets(), 85.0);
        // 3 x 4 x 0.15/1.85.
        assert!((scheme.alpha - 0.973).abs() < 0.0001);
        // Below the last plateau of 100: the next one is at 0.85 of the window.
        lose(&mut scheme, LossCause::Reordering);
        assert_eq!((scheme.window.packets(), scheme.curve.last_max), (72.0, 0.85 * 85.0));
    }

    #[test]
    fn the_curve_is_that_of_cubic() {
        // W_max 100, from 85: K = (15/0.4004)^(1/3) = 3.346 s.
        let mut scheme = at(100.0);
        lose(&mut scheme, LossCause::Reordering);
        let mut curve = scheme.curve;
        curve.after_ack(Time::ZERO, 85.0, Span::ZERO, 1e-9);
        assert!((curve.to_origin / 1024.0 - 3.346).abs() < 0.002);
        // C (t - K)^3 + 100 in whole packets, within the bounds of Reno and half of the bytes acknowledged.
        for (s, expected) in [(1u64, 94.0), (2, 99.0), (3, 100.0), (6, 107.0), (8, 140.0)] {
            curve.acked = 1000.0;
            let now = Time::from_ns(s * 1_000_000_000);
            let target = curve.after_ack(now, 86.0 + s as f64, Span::ZERO, 1e-9);
            let law = 0.4004 * (s as f64 - 3.346f64).powi(3) + 100.0;
            assert!((target - law).abs() <= 1.0, "{s} s: {target} for {law}");
            assert!((target - expected).abs() <= 1.0, "{s} s: {target}");
        }
    }

    #[test]
    fn the_window_is_never_more_than_half_of_what_was_acknowledged_ahead() {
        let mut curve = QuicCubicCurve { last_max: 100.0, ..QuicCubicCurve::default() };
        curve.after_ack(Time::ZERO, 50.0, Span::ZERO, 1e-9);
        curve.acked = 9.0;
        let target = curve.after_ack(Time::from_ns(60_000_000_000), 50.0, Span::ZERO, 1e-9);
        assert_eq!(target, 55.0);
    }

    #[test]
    fn beside_the_curve_it_grows_like_two_reno_flows() {
        // W_max 20, RTT 10 ms: the curve is far slower than Reno.
        let mut scheme = at(20.0);
        lose(&mut scheme, LossCause::Reordering);
        let mut script = Script::new(Box::new(scheme));
        script.rtt = Span::from_ms(10);
        script.ack_round();
        let start = script.cwnd_packets();
        for _ in 0..40 {
            script.ack_round();
        }
        // 0.973 packets per round trip; the last 30 ms, three round trips, may not be computed yet.
        let growth = script.cwnd_packets() - start;
        assert!((35.9..=38.9).contains(&growth), "{growth}");
    }

    #[test]
    fn a_round_trip_too_short_for_the_clock_is_not_spread_over_the_first_guess() {
        let mut scheme = at(32.0);
        // 2 x 32 packets per 100 ms, as long as no round trip is known.
        let first = Rate::of(Bytes::new(64 * MSS), FIRST_RTT);
        assert_eq!(scheme.allowance().pacing, Some(first));
        let mut ack = AckEvent::new(Time::ZERO);
        scheme.on_ack(&ack);
        assert_eq!(scheme.allowance().pacing, Some(first));
        ack.latest_rtt = Some(Span::ZERO);
        scheme.on_ack(&ack);
        assert_eq!(scheme.allowance().pacing, None);
        (ack.latest_rtt, ack.smoothed_rtt) = (Some(Span::from_ms(1)), Span::from_ms(1));
        scheme.on_ack(&ack);
        let known = Rate::of(Bytes::new(64 * MSS), Span::from_ms(1));
        assert_eq!(scheme.allowance().pacing, Some(known));
    }

    #[test]
    fn slow_start_doubles_and_ends_on_a_rise_of_the_delay() {
        let mut script = Script::new(Box::new(scheme()));
        for expected in [20.0, 40.0, 80.0] {
            script.ack_round();
            assert_eq!(script.cwnd_packets(), expected);
        }
        // The script's smallest RTT is that of the round, so delay cannot rise there: by hand.
        let mut scheme = at(64.0);
        for index in 0..20 {
            let mut ack = AckEvent::new(Time::from_ns(index * 1_000_000));
            ack.round_start = index == 0;
            ack.bytes = Bytes::new(MSS);
            (ack.latest_rtt, ack.min_rtt) = (Some(Span::from_us(45_001)), Span::from_ms(40));
            scheme.on_ack(&ack);
        }
        // The ninth sample above 40 + 5 ms ends it, before its own growth.
        assert_eq!(scheme.window.ssthresh(), Some(Bytes::new(72 * MSS)));
    }

    #[test]
    fn a_timeout_leaves_two_packets_and_half_the_threshold() {
        let mut scheme = at(100.0);
        lose(&mut scheme, LossCause::Timeout);
        assert_eq!(scheme.window.packets(), 2.0);
        assert_eq!(scheme.window.ssthresh(), Some(Bytes::new(50 * MSS)));
    }

    #[test]
    fn the_window_ends_at_2000_packets() {
        let mut script = Script::new(Box::new(scheme()));
        for _ in 0..12 {
            script.ack_round();
        }
        assert_eq!(script.cwnd_packets(), 2000.0);
    }

    #[test]
    fn the_pace_is_two_windows_per_round_trip_and_then_one_and_a_quarter() {
        let mut scheme = at(100.0);
        scheme.spread = Some(Span::from_ms(100));
        let pacing = |scheme: &QuicCubic| scheme.allowance().pacing.unwrap().bps();
        assert_eq!(pacing(&scheme), 2 * 100 * MSS * 8 * 10);
        scheme.window.exit_slow_start();
        assert_eq!(pacing(&scheme), 125 * MSS * 8 * 10);
        // Ten packets at once after a pause, until the next acknowledgement.
        assert_eq!(scheme.allowance().quantum, None);
        let mut send = SendEvent::new(Time::ZERO, 0, Bytes::new(MSS));
        send.idle = Some(Span::ZERO);
        scheme.on_send(&send);
        assert_eq!(scheme.allowance().quantum, Some(Bytes::new(10 * MSS)));
        scheme.on_ack(&AckEvent::new(Time::ZERO));
        assert_eq!(scheme.allowance().quantum, None);
    }
}
