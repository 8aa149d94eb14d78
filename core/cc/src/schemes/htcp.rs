//! H-TCP: growth rises with the time since the last loss; the reduction exactly empties the queue.
//!
//! Provenance: D. Leith, R. Shorten, "H-TCP: TCP for high-speed and long-distance networks", PFLDnet 2004, and
//! draft-leith-tcp-htcp, with unspecified points as in Linux net/ipv4/tcp_htcp.c: scaling with the RTT, smoothing of
//! the throughput, decay of the largest RTT. Deviations: real numbers instead of Linux's integers and clock ticks
//! (`whole_factor` rounds the growth factor down as Linux does); growth is recomputed at every acknowledgement (Linux:
//! when the window has grown) and at most that of slow start (Linux: a packet per acknowledgement); the fraction kept
//! is at most 0.8 (Linux: 102/128).
//!
//! One second after a loss growth begins to rise, by about ten packets per round trip for each second, in proportion to
//! the RTT, which makes shares nearly independent of it. After a loss RTTmin/RTTmax is kept, between 0.5 and 0.8, or
//! half if the throughput has changed by more than a fifth since the previous loss. With a buffer between 0.25 and 1
//! bandwidth-delay product the link stays busy; a deeper buffer retains a standing queue. The first loss always halves.

use crate::parts::{LossBased, CongestionEvent, WindowRules, CongestionWindow};
use crate::{AckEvent, Fields, CaState, Scheme};
use narrows_units::{Params, Span, Time, params};

/// Registry entry.
pub const SCHEME: Scheme = Scheme {
    name: "htcp",
    summary: "Growth rises with the time since the last loss; a loss empties the queue (H-TCP)",
    source: "Leith, Shorten, PFLDnet 2004; Linux net/ipv4/tcp_htcp.c",
    params: HtcpParams::PARAMS,
    build: |params, setup| Ok(LossBased::boxed(CongestionWindow::new(&setup), rules(params, setup.now))),
    ..super::reno::SCHEME
};

params! {
    /// Parameters.
    struct HtcpParams {
        /// Growth in proportion to the smallest RTT.
        rtt_scaling: Flag = true, "Linux net/ipv4/tcp_htcp.c";
        /// Halve if the throughput has changed by more than a fifth since the previous loss.
        bandwidth_switch: Flag = true, "Linux net/ipv4/tcp_htcp.c";
        /// RTT samples further than this above the maximum do not raise it.
        max_rtt_step: Span(0.0..=1e12) = "20 ms", "Linux net/ipv4/tcp_htcp.c";
        /// Round the growth factor down.
        whole_factor: Flag = false, "Linux net/ipv4/tcp_htcp.c has it on";
    }
}

/// Seconds after a loss before growth rises.
const LOW_SPEED: f64 = 1.0;
/// RTT in seconds to which growth is scaled, and the bounds of the scaling.
const REFERENCE_RTT: f64 = 0.1;
const SCALE: (f64, f64) = (0.1, 2.0);
/// Minimum and maximum fraction kept.
const BETA: (f64, f64) = (0.5, 0.8);
/// Windows on paths with a smaller RTT are halved: the ratio of RTTs is unreliable there.
const SMALL_RTT: Span = Span::from_ms(10);
/// Fraction of the distance between maximum and minimum RTT left after a loss (as a ratio).
const DECAY: (u64, u64) = (19, 20);

fn rules(params: &Params, now: Time) -> Htcp {
    Htcp {
        params: HtcpParams::read(params),
        epoch: now,
        beta: BETA.0,
        alpha: 1.0,
        min_rtt: None,
        max_rtt: Span::ZERO,
        adaptive: false,
        throughput: Throughput { since: now, ..Throughput::default() },
    }
}

/// The throughput of the epoch, measured once per round trip, in packets per second.
#[derive(Clone, Copy, Debug, Default)]
struct Throughput {
    /// Packets acknowledged since `since`.
    packets: f64,
    since: Time,
    smoothed: f64,
    largest: f64,
    /// The maximum of the previous epoch.
    before: f64,
}

#[derive(Clone)]
struct Htcp {
    params: HtcpParams,
    /// When the last congestion event began, or ended if that is known.
    epoch: Time,
    /// Fraction kept at the last reduction.
    beta: f64,
    /// Growth per round trip in packets, as last computed.
    alpha: f64,
    min_rtt: Option<Span>,
    max_rtt: Span,
    /// True if the next reduction may follow the RTTs.
    adaptive: bool,
    throughput: Throughput,
}

impl Htcp {
    /// Growth per round trip `delta` seconds after the last congestion event.
    fn growth(&self, delta: f64) -> f64 {
        let over = delta - LOW_SPEED;
        let mut factor = 1.0;
        if over > 0.0 {
            factor = 1.0 + 10.0 * over + 0.25 * over * over;
        }
        if self.params.whole_factor {
            factor = factor.floor();
        }
        if self.params.rtt_scaling && let Some(min_rtt) = self.min_rtt {
            factor *= (min_rtt.secs() / REFERENCE_RTT).clamp(SCALE.0, SCALE.1);
            if self.params.whole_factor {
                factor = factor.floor();
            }
        }
        2.0 * (1.0 - self.beta) * factor.max(1.0)
    }

    fn measure_rtt(&mut self, rtt: Span, open: bool) {
        let min_rtt = self.min_rtt.map_or(rtt, |least| least.min(rtt));
        self.min_rtt = Some(min_rtt);
        if open {
            self.max_rtt = self.max_rtt.max(min_rtt);
            if rtt > self.max_rtt && rtt <= self.max_rtt + self.params.max_rtt_step {
                self.max_rtt = rtt;
            }
        }
    }

    fn measure_throughput(&mut self, now: Time, packets: f64, window: f64, open: bool) {
        let throughput = &mut self.throughput;
        if !open {
            throughput.packets = 0.0;
            throughput.since = now;
            return;
        }
        throughput.packets += packets;
        let elapsed = now.since(throughput.since);
        let Some(min_rtt) = self.min_rtt.filter(|rtt| elapsed >= *rtt && !elapsed.is_zero()) else {
            return;
        };
        if throughput.packets < window - self.alpha.max(1.0) {
            return;
        }
        let current = throughput.packets / elapsed.secs();
        // The first rounds of an epoch still carry the reduction.
        if now.since(self.epoch) < min_rtt * 4 {
            throughput.smoothed = current;
            throughput.largest = current;
        } else {
            throughput.smoothed = 0.75 * throughput.smoothed + 0.25 * current;
            throughput.largest = throughput.largest.max(throughput.smoothed);
        }
        throughput.packets = 0.0;
        throughput.since = now;
    }

    /// The fraction to keep now.
    fn backoff(&mut self) -> f64 {
        if self.params.bandwidth_switch {
            let (now, before) = (self.throughput.largest, self.throughput.before);
            self.throughput.before = now;
            if (now - before).abs() > 0.2 * before {
                self.adaptive = false;
                return BETA.0;
            }
        }
        let Some(min_rtt) = self.min_rtt.filter(|rtt| self.adaptive && *rtt > SMALL_RTT) else {
            self.adaptive = true;
            return BETA.0;
        };
        (min_rtt.secs() / self.max_rtt.max(min_rtt).secs()).clamp(BETA.0, BETA.1)
    }
}

impl WindowRules for Htcp {
    fn observe(&mut self, ack: &AckEvent<'_>, window: &mut CongestionWindow) {
        let open = ack.phase == CaState::Open;
        if let Some(rtt) = ack.latest_rtt {
            self.measure_rtt(rtt, open);
        }
        if self.params.bandwidth_switch {
            let packets = ack.bytes.get() as f64 / window.mss();
            self.measure_throughput(ack.now, packets, window.packets(), open);
        }
    }

    fn congestion_avoidance(&mut self, window: &mut CongestionWindow, ack: &AckEvent<'_>, bytes: u64) {
        self.alpha = self.growth(ack.now.since(self.epoch).secs());
        // Never faster than slow start: after a long silence alpha may exceed the window.
        let share = (self.alpha / window.packets()).min(1.0);
        window.add(share * bytes as f64 / window.mss());
    }

    fn ssthresh(&mut self, window: &CongestionWindow, congestion: &CongestionEvent) -> f64 {
        self.beta = self.backoff();
        if let Some(min_rtt) = self.min_rtt
            && self.max_rtt > min_rtt
        {
            self.max_rtt = min_rtt + self.max_rtt.saturating_sub(min_rtt).scale(DECAY.0, DECAY.1);
        }
        self.epoch = congestion.now;
        window.packets() * self.beta
    }

    fn on_recovery_exit(&mut self, _: &mut CongestionWindow, now: Time) {
        self.epoch = now;
    }

    fn trace(&self, fields: &mut Fields) {
        fields.values.push(("alpha_packets", self.alpha));
        fields.values.push(("beta", self.beta));
        fields.values.push(("max_rtt_ms", self.max_rtt.secs() * 1e3));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Script, setup};
    use crate::{LossCause, Setup, SpuriousLossEvent};

    fn htcp(beta: f64, rtt_ms: u64, whole: bool) -> Htcp {
        let mut htcp = rules(&Params::resolve(SCHEME.params, []).unwrap(), Time::ZERO);
        htcp.beta = beta;
        htcp.params.whole_factor = whole;
        htcp.min_rtt = Some(Span::from_ms(rtt_ms));
        htcp
    }

    fn script(window: u64, rules: Htcp) -> Script {
        let setup = Setup { initial_window: window, ..setup() };
        Script::new(LossBased::boxed(CongestionWindow::new(&setup), rules))
    }

    #[test]
    fn growth_rises_with_the_time_since_the_last_loss() {
        for (delta, alpha) in
            [(0.5, 1.0), (1.0, 1.0), (1.5, 6.0625), (2.0, 11.25), (3.0, 22.0), (5.0, 45.0), (10.0, 111.25)]
        {
            assert!((htcp(0.5, 100, false).growth(delta) - alpha).abs() < 1e-9, "{delta}");
            let gentle = htcp(0.8, 100, false).growth(delta);
            assert!((gentle - 0.4 * alpha).abs() < 1e-9, "{delta}: {gentle}");
        }
    }

    #[test]
    fn growth_scales_with_the_rtt() {
        // Linux net/ipv4/tcp_htcp.c computes with integers.
        assert_eq!(htcp(0.5, 100, true).growth(2.0), 11.0);
        assert_eq!(htcp(0.5, 10, true).growth(2.0), 1.0);
        assert_eq!(htcp(0.5, 400, true).growth(3.0), 44.0);
        // With real numbers the same except for rounding; never below one packet at beta 0.5.
        assert_eq!(htcp(0.5, 400, false).growth(3.0), 44.0);
        assert!((htcp(0.5, 10, false).growth(2.0) - 1.125).abs() < 1e-9);
        assert_eq!(htcp(0.5, 1, false).growth(1.5), 1.0);
    }

    #[test]
    fn the_window_gained_is_the_integral() {
        // (2 (1 - beta)/R) (1 + x + 5 x^2 + x^3/12) with x = 2, R = 0.1, beta = 0.5.
        let mut s = script(20_000, htcp(0.5, 100, false));
        s.lose(LossCause::Reordering, 20_000);
        let start = s.cwnd_packets();
        assert_eq!(start, 10_000.0);
        for _ in 0..30 {
            s.ack_round();
        }
        let gained = s.cwnd_packets() - start;
        // Each acknowledgement counts 1/w of the current window, which grows by up to 0.2 % per round.
        assert!((gained / 236.7 - 1.0).abs() < 0.01, "{gained}");
    }

    /// A scheme with RTTs from `min` to `max` ms and the same throughput twice.
    fn settled(min: u64, max: u64) -> Htcp {
        let mut htcp = htcp(0.5, min, false);
        htcp.max_rtt = Span::from_ms(max);
        htcp.throughput.largest = 1000.0;
        htcp.throughput.before = 1000.0;
        htcp.adaptive = true;
        htcp
    }

    #[test]
    fn a_reduction_keeps_the_ratio_of_rtts() {
        for (min, max, beta) in [(100, 150, 2.0 / 3.0), (100, 101, 0.8), (100, 300, 0.5), (10, 12, 0.5)]
        {
            assert!((settled(min, max).backoff() - beta).abs() < 1e-9, "{min} {max}");
        }
        // The throughput has changed by more than a fifth: half, and half once more.
        let mut htcp = settled(100, 150);
        htcp.throughput.largest = 1201.0;
        assert_eq!(htcp.backoff(), 0.5);
        assert_eq!(htcp.backoff(), 0.5);
        assert!(htcp.backoff() > 0.6);
    }

    #[test]
    fn the_largest_rtt_rises_in_steps_and_decays() {
        let mut htcp = htcp(0.5, 100, false);
        htcp.measure_rtt(Span::from_ms(100), true);
        htcp.measure_rtt(Span::from_ms(130), true);
        assert_eq!(htcp.max_rtt, Span::from_ms(100));
        htcp.measure_rtt(Span::from_ms(120), true);
        htcp.measure_rtt(Span::from_ms(140), true);
        htcp.measure_rtt(Span::from_ms(150), false);
        assert_eq!(htcp.max_rtt, Span::from_ms(140));
        let mut s = script(100, htcp);
        s.lose(LossCause::Reordering, 100);
        // 100 + 0.95 * 40 ms.
        assert!((s.fields().values[2].1 - 138.0).abs() < 1e-6, "{:?}", s.fields());
    }

    #[test]
    fn time_counts_from_the_end_of_the_recovery() {
        let mut s = script(100, htcp(0.5, 100, false));
        s.lose(LossCause::Reordering, 100);
        s.now += Span::from_ms(5_000);
        let now = s.now;
        s.scheme.on_recovery_exit(now);
        s.ack_round();
        assert_eq!(s.fields().values[0], ("alpha_packets", 1.0));
    }

    #[test]
    fn a_spurious_loss_leaves_the_epoch_as_it_was() {
        let mut s = script(1000, htcp(0.5, 100, false));
        s.lose(LossCause::Reordering, 1000);
        s.now += Span::from_ms(3_000);
        s.lose(LossCause::Reordering, 500);
        let now = s.now;
        s.scheme.on_spurious_loss(&SpuriousLossEvent::new(now, LossCause::Reordering));
        s.ack_round();
        assert!(s.fields().values[0].1 >= 22.0, "{:?}", s.fields());
    }

    #[test]
    fn throughput_is_smoothed_after_the_first_rounds() {
        let mut htcp = htcp(0.5, 100, false);
        let round = |htcp: &mut Htcp, ms: u64, packets: f64| {
            let now = Time::ZERO + Span::from_ms(ms);
            htcp.measure_throughput(now, packets, 100.0, true);
            (htcp.throughput.smoothed, htcp.throughput.largest)
        };
        // Less than a window, or than a round trip, does not form a sample.
        assert_eq!(round(&mut htcp, 50, 100.0), (0.0, 0.0));
        assert_eq!(round(&mut htcp, 100, 0.0), (1000.0, 1000.0));
        assert_eq!(round(&mut htcp, 200, 50.0), (1000.0, 1000.0));
        assert_eq!(round(&mut htcp, 300, 50.0), (500.0, 500.0));
        assert_eq!(round(&mut htcp, 400, 100.0), (625.0, 625.0));
        assert_eq!(round(&mut htcp, 600, 100.0), (593.75, 625.0));
        // A recovery restarts the count.
        htcp.measure_throughput(Time::ZERO + Span::from_ms(700), 90.0, 100.0, false);
        assert_eq!(round(&mut htcp, 800, 50.0), (593.75, 625.0));
    }
}
