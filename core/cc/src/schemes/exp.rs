//! exp: Reno with a steeper slow start and a smaller reduction, from a class exercise.
//!
//! Provenance: the GENI exercise "TCP congestion control" (GENI wiki, SampleAssignments/TcpAssignment, step 9), in
//! which students write a small kernel module. Its text states two changes to Reno: the window triples per round trip
//! in slow start (two additional packets per packet acknowledged), and three quarters of the window are kept after a
//! loss. Deviations: none from that text; unspecified points are chosen here: growth stops at the threshold and the
//! rest of an acknowledgement counts for congestion avoidance, the reduced window is a whole number of packets and at
//! least two, a timeout restarts from one packet with the same threshold, and a congestion mark counts as a loss.
//!
//! With a quarter removed per loss the average window at a loss ratio p is sqrt(3.5/p), 1.53 times that of Reno, and a
//! buffer of a third of the bandwidth-delay product keeps the link busy. Tripling overshoots the path by up to two
//! windows, so on long paths the first slow start may lose more packets at once than its speed has gained.

use crate::parts::{LossBased, CongestionEvent, WindowRules, CongestionWindow};
use crate::{AckEvent, Scheme};
use narrows_units::params;

/// Registry entry.
pub const SCHEME: Scheme = Scheme {
    name: "exp",
    summary: "Reno that triples in slow start and keeps three quarters after a loss (a class exercise)",
    source: "GENI wiki, SampleAssignments/TcpAssignment, step 9",
    params: Exp::PARAMS,
    build: |params, setup| Ok(LossBased::boxed(CongestionWindow::new(&setup), Exp::read(params))),
    loss_based: false,
    ..super::reno::SCHEME
};

params! {
    /// EXP has no state except its parameters.
    struct Exp {
        /// Factor per round trip in slow start.
        growth: Number(1.1..=4.0) = 3, "GENI exercise, step 9";
        /// Fraction of the window kept after a loss.
        beta: Ratio(0.05..=0.95) = 0.75, "GENI exercise, step 9";
    }
}

impl WindowRules for Exp {
    fn slow_start(&mut self, window: &mut CongestionWindow, _: &AckEvent<'_>, bytes: u64) -> u64 {
        let left = window.slow_start((bytes as f64 * (self.growth - 1.0)) as u64);
        (left as f64 / (self.growth - 1.0)) as u64
    }

    fn congestion_avoidance(&mut self, window: &mut CongestionWindow, _: &AckEvent<'_>, bytes: u64) {
        window.additive_increase(bytes, window.cwnd().get());
    }

    fn ssthresh(&mut self, window: &CongestionWindow, _: &CongestionEvent) -> f64 {
        (window.packets() * self.beta).floor()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Setup;
    use crate::LossCause;
    use crate::testing::{MSS, Script, setup, windows};
    use narrows_units::{Bytes, Params};

    fn script(initial_window: u64) -> Script {
        let setup = Setup { initial_window, ..setup() };
        Script::new((SCHEME.build)(&Params::resolve(SCHEME.params, []).unwrap(), setup).unwrap())
    }

    #[test]
    fn slow_start_triples_each_round() {
        assert_eq!(windows(&mut script(10), 4), [10.0, 30.0, 90.0, 270.0]);
    }

    #[test]
    fn three_quarters_are_kept_after_a_loss() {
        // (window, window kept in whole packets; never less than two)
        for (window, kept) in [(100, 75.0), (90, 67.0), (3, 2.0), (2, 2.0)] {
            let mut s = script(window);
            s.lose(LossCause::Reordering, window);
            assert_eq!(s.cwnd_packets(), kept, "{window}");
            assert_eq!(s.fields().ssthresh, Some(Bytes::new(kept as u64 * MSS)));
        }
    }

    #[test]
    fn a_timeout_restarts_up_to_the_same_threshold() {
        let mut s = script(40);
        s.lose(LossCause::Timeout, 40);
        assert_eq!(s.fields().ssthresh, Some(Bytes::new(30 * MSS)));
        assert_eq!(windows(&mut s, 6), [1.0, 3.0, 9.0, 27.0, 30.0, 31.0]);
    }
}
