//! BIC: a binary search for the window of the last loss, then a slow search beyond it.
//!
//! Provenance: L. Xu, K. Harfoush, I. Rhee, "Binary increase congestion control for fast long-distance networks",
//! INFOCOM 2004, with the constants of Linux net/ipv4/tcp_bic.c (the paper has a maximum step of 32 packets and keeps
//! 0.875). Windows are whole packets, as in Linux. Deviations: growth is computed with fractions where Linux uses
//! integer division; the curve is evaluated at every acknowledgement (Linux: at most 32 times per second while the
//! window is constant); the division by the ratio of packets to acknowledgements, which doubles Linux's growth since it
//! counts packets, is omitted unless `ack_ratio` is set.
//!
//! Per round trip: a quarter of the way to the last maximum, at most 16 packets and at least 0.2; the mirror image
//! beyond it. Before the first loss and after a timeout growth is at least 5 % per round trip. Flows with shorter RTTs
//! get much more than their fair share.

use crate::parts::{ReductionCause, LossBased, CongestionEvent, WindowRules, CongestionWindow};
use crate::{AckEvent, Fields, CaState, Scheme};
use narrows_units::{Params, params};

/// Registry entry.
pub const SCHEME: Scheme = Scheme {
    name: "bic",
    summary: "Binary search for the window of the last loss, then a slow search beyond it",
    source: "Xu, Harfoush, Rhee, INFOCOM 2004; Linux net/ipv4/tcp_bic.c",
    params: BicParams::PARAMS,
    build: |params, setup| Ok(LossBased::boxed(CongestionWindow::new(&setup), rules(params))),
    ..super::reno::SCHEME
};

params! {
    /// Parameters.
    struct BicParams {
        /// Fraction of the window kept after a loss.
        beta: Ratio(0.05..=0.95) = 0.7998046875, "Linux net/ipv4/tcp_bic.c: 819/1024; the paper has 0.875";
        /// Maximum growth per round trip.
        max_increment: Packets(1.0..=1000.0) = 16, "Linux net/ipv4/tcp_bic.c; the paper has 32";
        /// Up to this window Reno's rules apply.
        low_window: Packets(0.0..=1e6) = 14, "Linux net/ipv4/tcp_bic.c";
        /// Round trips over which the last four packets to the maximum are spread.
        smooth_part: Count(1.0..=1000.0) = 20, "Linux net/ipv4/tcp_bic.c";
        /// Release bandwidth faster to new flows (fast convergence).
        fast_convergence: Flag = true, "Linux net/ipv4/tcp_bic.c";
        /// Multiply growth by the packets per acknowledgement, although packets are counted.
        ack_ratio: Flag = false, "Linux net/ipv4/tcp_bic.c has it on";
    }
}

/// The search goes a quarter of the way per round trip.
const PARTS: f64 = 4.0;
/// Growth before the first loss: a window in this many round trips.
const UNKNOWN: f64 = 20.0;

fn rules(params: &Params) -> Bic {
    let params = BicParams::read(params);
    Bic {
        smallest: PARTS / params.smooth_part as f64,
        ratio: params.ack_ratio.then_some(2.0),
        params,
        last_max: 0.0,
    }
}

#[derive(Clone)]
struct Bic {
    params: BicParams,
    /// Growth per round trip next to the maximum.
    smallest: f64,
    /// Packets per acknowledgement, smoothed, if growth is to be multiplied by it.
    ratio: Option<f64>,
    /// Window before the last reduction, in packets; 0 if unknown.
    last_max: f64,
}

impl Bic {
    /// Growth per round trip at `window` packets.
    fn increment(&self, window: f64) -> f64 {
        if window <= self.params.low_window {
            return 1.0;
        }
        let increment = if window < self.last_max {
            // The quarter is an integer in Linux, so the last packets begin below eight.
            let step = ((self.last_max - window) / PARTS).floor();
            if step <= 1.0 { self.smallest } else { step.min(self.params.max_increment) }
        } else {
            let beyond = window - self.last_max;
            if beyond < PARTS {
                self.smallest
            } else {
                (beyond / (PARTS - 1.0)).min(self.params.max_increment)
            }
        };
        if self.last_max == 0.0 { increment.max(window / UNKNOWN) } else { increment }
    }
}

impl WindowRules for Bic {
    fn observe(&mut self, ack: &AckEvent<'_>, _: &mut CongestionWindow) {
        if let Some(ratio) = &mut self.ratio
            && ack.phase == CaState::Open
        {
            *ratio += (ack.packets.len() as f64 - *ratio) / 16.0;
        }
    }

    fn congestion_avoidance(&mut self, window: &mut CongestionWindow, _: &AckEvent<'_>, bytes: u64) {
        let packets = window.packets().floor();
        let increment = self.increment(packets) * self.ratio.unwrap_or(1.0).max(0.1);
        // At most one packet per packet acknowledged.
        let per_packet = window.mss() * (packets / increment).max(1.0);
        window.additive_increase(bytes, per_packet as u64);
    }

    fn ssthresh(&mut self, window: &CongestionWindow, congestion: &CongestionEvent) -> f64 {
        let packets = window.packets().floor();
        self.last_max = if congestion.cause == ReductionCause::Timeout {
            0.0
        } else if self.params.fast_convergence && packets < self.last_max {
            (packets * (1.0 + self.params.beta) / 2.0).floor()
        } else {
            packets
        };
        (packets * if packets <= self.params.low_window { 0.5 } else { self.params.beta }).floor()
    }

    fn trace(&self, fields: &mut Fields) {
        fields.values.push(("last_max_packets", self.last_max));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Setup;
    use crate::LossCause;
    use crate::parts::LossBased;
    use crate::testing::{MSS, Script, setup, windows};

    fn bic() -> Bic {
        rules(&Params::resolve(SCHEME.params, []).unwrap())
    }

    fn script(window: u64, rules: Bic) -> Script {
        let setup = Setup { initial_window: window, ..setup() };
        Script::new(LossBased::boxed(CongestionWindow::new(&setup), rules))
    }

    /// The increments are those of Linux net/ipv4/tcp_bic.c with one packet per acknowledgement.
    #[test]
    fn increments_around_the_last_maximum() {
        let bic = Bic { last_max: 1000.0, ..bic() };
        for (window, increment) in [
            (10.0, 1.0),
            (14.0, 1.0),
            (800.0, 16.0),
            (960.0, 10.0),
            (996.0, 0.2),
            (1002.0, 0.2),
            (1020.0, 20.0 / 3.0),
            (1048.0, 16.0),
            (2000.0, 16.0),
        ] {
            assert_eq!(bic.increment(window), increment, "{window}");
        }
        // No maximum is known: at least a twentieth per round trip.
        let fresh = Bic { last_max: 0.0, ..bic };
        assert_eq!(fresh.increment(1000.0), 50.0);
        assert_eq!(fresh.increment(30.0), 10.0);
    }

    #[test]
    fn reductions_and_fast_convergence() {
        let mut s = script(1000, bic());
        s.lose(LossCause::Reordering, 1000);
        assert_eq!(s.cwnd_packets(), 799.0);
        let last_max = |s: &Script| s.fields().values[0].1;
        assert_eq!(last_max(&s), 1000.0);
        let mut s = script(900, Bic { last_max: 1000.0, ..bic() });
        s.lose(LossCause::Reordering, 900);
        assert_eq!(last_max(&s), 809.0);
        // Small windows are halved.
        let mut s = script(14, bic());
        s.lose(LossCause::Reordering, 14);
        assert_eq!(s.cwnd_packets(), 7.0);
    }

    #[test]
    fn a_timeout_forgets_the_maximum() {
        let mut s = script(1000, bic());
        s.lose(LossCause::Timeout, 1000);
        assert_eq!(s.cwnd_packets(), 1.0);
        assert_eq!(s.fields().values[0].1, 0.0);
    }

    #[test]
    fn a_round_grows_by_the_increment() {
        let mut s = script(1000, bic());
        s.lose(LossCause::Reordering, 1000);
        let rounds = windows(&mut s, 9);
        // 799 packets and 16 at a time until 64 below the maximum, within the carried-over remainder.
        for pair in rounds.windows(2) {
            let growth = pair[1] - pair[0];
            assert!((15.0..=17.0).contains(&growth), "{rounds:?}");
        }
    }

    #[test]
    fn the_search_slows_down_at_the_maximum_and_speeds_up_beyond() {
        let mut s = script(200, bic());
        s.lose(LossCause::Reordering, 200);
        let mut near = 0;
        let mut last = 0.0;
        for _ in 0..120 {
            let window = s.cwnd_packets();
            near += u64::from((193.0..204.0).contains(&window));
            s.ack_round();
            last = s.cwnd_packets() - window;
        }
        // From 7 below to 4 above at 0.2 packets per round trip.
        assert!((50..=60).contains(&near), "{near}");
        assert!(last >= 15.0, "{last}");
    }

    #[test]
    fn the_ratio_of_acknowledgements_multiplies_growth_if_asked() {
        let growth = |ratio| {
            let mut bic = Bic { last_max: 1000.0, ratio, ..bic() };
            let mut window = CongestionWindow::new(&Setup { initial_window: 800, ..setup() });
            for _ in 0..800 {
                bic.congestion_avoidance(&mut window, &AckEvent::new(narrows_units::Time::ZERO), MSS);
            }
            window.packets() - 800.0
        };
        assert!((15.0..=16.0).contains(&growth(None)), "{}", growth(None));
        assert!((30.0..=32.0).contains(&growth(Some(2.0))), "{}", growth(Some(2.0)));
    }
}
