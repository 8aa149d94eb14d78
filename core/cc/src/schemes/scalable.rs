//! Scalable TCP: a hundredth of a packet more per packet acknowledged, an eighth less after a loss.
//!
//! Provenance: T. Kelly, "Scalable TCP: improving performance in highspeed wide area networks", CCR
//! 2003, with the form for small windows of Linux net/ipv4/tcp_scalable.c: below 100 packets the window
//! grows by one packet per round trip, and an eighth is removed at every size. The paper instead keeps
//! Reno's rules up to a legacy window of 16 packets, which `legacy_window: 16` selects. Deviations: the
//! reduction is spread over the recovery round by Proportional Rate Reduction (RFC 6937).
//!
//! The time from a loss back to the old window is 13.4 round trips for any window, and the average window at a loss
//! ratio p is 0.0749/p. Two flows that lose at the same moments keep the ratio of their windows for ever: unfairness
//! does not go away under drop-tail queues.

use crate::parts::{LossBased, CongestionEvent, WindowRules, CongestionWindow};
use crate::{AckEvent, Scheme};
use narrows_units::params;

/// Registry entry.
pub const SCHEME: Scheme = Scheme {
    name: "scalable",
    summary: "Growth and reduction in proportion to the window: recovery takes the same time at any size",
    source: "Kelly, CCR 2003; Linux net/ipv4/tcp_scalable.c",
    params: Scalable::PARAMS,
    build: |params, setup| Ok(LossBased::boxed(CongestionWindow::new(&setup), Scalable::read(params))),
    ..super::reno::SCHEME
};

params! {
    /// Parameters.
    struct Scalable {
        /// Packets of growth per packet acknowledged.
        gain: Ratio(0.0001..=0.5) = 0.01, "Kelly 2003";
        /// Fraction of the window kept after a loss.
        beta: Ratio(0.05..=0.95) = 0.875, "Kelly 2003";
        /// Up to this window Reno's rules apply, above it those of the paper; 0: at least one packet per round trip,
        /// and one reduction for all windows.
        legacy_window: Packets(0.0..=1e6) = 0, "Linux net/ipv4/tcp_scalable.c; Kelly 2003 has 16";
    }
}

impl WindowRules for Scalable {
    fn congestion_avoidance(&mut self, window: &mut CongestionWindow, _: &AckEvent<'_>, bytes: u64) {
        let cwnd = window.cwnd().get();
        let legacy = self.legacy_window > 0.0;
        let scaled = (window.mss() / self.gain).round() as u64;
        let per_packet = if legacy && window.packets() <= self.legacy_window {
            cwnd
        } else if legacy {
            scaled
        } else {
            scaled.min(cwnd)
        };
        window.additive_increase(bytes, per_packet);
    }

    fn ssthresh(&mut self, window: &CongestionWindow, _: &CongestionEvent) -> f64 {
        let packets = window.packets();
        packets * if packets <= self.legacy_window { 0.5 } else { self.beta }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Script, setup, windows};
    use crate::{LossCause, Setup};
    use narrows_units::Params;

    /// A script whose window is `window` packets, in congestion avoidance without a reduction before.
    fn script(window: u64, legacy_window: &str) -> Script {
        let spec = SCHEME.params.iter().find(|spec| spec.name == "legacy_window").unwrap();
        let given = [("legacy_window".to_owned(), spec.parse(legacy_window).unwrap())];
        let params = Params::resolve(SCHEME.params, given).unwrap();
        let setup = Setup { initial_window: window, ..setup() };
        Script::new((SCHEME.build)(&params, setup).unwrap())
    }

    #[test]
    fn an_eighth_is_removed_and_comes_back_after_fourteen_rounds() {
        let mut s = script(1000, "0");
        s.lose(LossCause::Reordering, 1000);
        let windows = windows(&mut s, 15);
        assert_eq!(windows[0], 875.0);
        assert!(windows[13] < 1000.0 && windows[14] >= 1000.0, "{windows:?}");
    }

    #[test]
    fn small_windows_grow_by_one_packet_and_larger_ones_by_a_hundredth() {
        // (window before the loss, after it, growth in the next round)
        for (before, after, growth) in [(80, 70.0, 1.0), (160, 140.0, 1.0), (232, 203.0, 2.0)] {
            let mut s = script(before, "0");
            s.lose(LossCause::Reordering, before);
            assert_eq!(windows(&mut s, 2), [after, after + growth], "{before}");
        }
        // Two packets per round trip from 200 on.
        let mut s = script(229, "0");
        s.lose(LossCause::Reordering, 229);
        let rounds = windows(&mut s, 5);
        assert!(rounds.windows(2).all(|pair| pair[1] - pair[0] == 2.0), "{rounds:?}");
    }

    #[test]
    fn the_paper_keeps_reno_up_to_its_legacy_window() {
        let mut s = script(16, "16");
        s.lose(LossCause::Reordering, 16);
        assert_eq!(windows(&mut s, 3), [8.0, 9.0, 10.0]);
        // Above it, the hundredth applies even if it is less than one packet per round trip.
        let mut s = script(80, "16");
        s.lose(LossCause::Reordering, 80);
        assert_eq!(windows(&mut s, 3), [70.0, 70.0, 71.0]);
    }

    #[test]
    fn flows_that_lose_together_keep_their_ratio() {
        let mut flows = [script(4000, "0"), script(500, "0")];
        let ratio = |flows: &[Script; 2]| flows[0].cwnd_packets() / flows[1].cwnd_packets();
        for _ in 0..20 {
            for flow in &mut flows {
                let window = flow.cwnd_packets() as u64;
                flow.lose(LossCause::Reordering, window);
                for _ in 0..13 {
                    flow.ack_round();
                }
            }
        }
        // Growth is in whole packets, and windows drift by less than a packet per epoch.
        assert!((ratio(&flows) / 8.0 - 1.0).abs() < 0.05, "{}", ratio(&flows));
    }
}
