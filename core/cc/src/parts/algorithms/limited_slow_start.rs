//! Limited slow start (RFC 3742): beyond a window of `max_ssthresh` packets, slow start adds at most
//! half of that many packets per round trip, so that a large window is not overshot by its own size.

use crate::parts::CongestionWindow;

/// The rule with its one parameter.
#[derive(Clone, Copy, Debug)]
pub struct LimitedSlowStart {
    /// Packets; 0 disables the limit.
    max_ssthresh: f64,
}

impl LimitedSlowStart {
    /// The rule for windows beyond `max_ssthresh` packets; 0 disables it.
    pub fn new(max_ssthresh: u64) -> Self {
        LimitedSlowStart {
            max_ssthresh: max_ssthresh as f64,
        }
    }

    /// Grows by `bytes` acknowledged; returns the bytes left for congestion avoidance.
    pub fn grow(&self, window: &mut CongestionWindow, bytes: u64) -> u64 {
        let packets = window.packets();
        if self.max_ssthresh == 0.0 || packets <= self.max_ssthresh {
            return window.slow_start(bytes);
        }
        // RFC 3742, section 2: K = int(cwnd / (0.5 max_ssthresh)); each packet acknowledged adds 1/K.
        let k = (packets / (0.5 * self.max_ssthresh)).floor();
        let left = window.slow_start((bytes as f64 / k) as u64);
        (left as f64 * k) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{MSS, setup};

    fn rounds(max_ssthresh: u64, rounds: usize) -> Vec<f64> {
        let rule = LimitedSlowStart::new(max_ssthresh);
        let mut window = CongestionWindow::new(&setup());
        let round = |_| {
            let packets = window.packets();
            for _ in 0..packets as u64 {
                rule.grow(&mut window, MSS);
            }
            packets
        };
        (0..rounds).map(round).collect()
    }

    #[test]
    fn beyond_the_limit_a_round_adds_half_of_it() {
        let windows = rounds(100, 70);
        assert_eq!(windows[..4], [10.0, 20.0, 40.0, 80.0]);
        // From 80: 20 packets in steps of one up to the limit, the rest at 1/2.
        assert_eq!(windows[4], 80.0 + 21.0 + 29.5);
        for pair in windows[5..].windows(2) {
            // cwnd/K with K rounded down gives half of the limit or a little more, and whole bytes per
            // acknowledgement (1000/K, K up to 60) up to 6 % less.
            let added = pair[1] - pair[0];
            assert!((47.0..76.0).contains(&added), "{pair:?}");
        }
        // RFC 3742, section 3: (3000 - 100)/50 = 58 round trips after the four up to the limit; rounding K down removes
        // some of them and whole bytes add some.
        let reached = windows.iter().position(|&window| window >= 3000.0);
        assert!(
            reached.is_some_and(|round| (56..=66).contains(&round)),
            "{reached:?}"
        );
    }

    #[test]
    fn without_a_limit_it_doubles() {
        assert_eq!(rounds(0, 6), [10.0, 20.0, 40.0, 80.0, 160.0, 320.0]);
    }

    #[test]
    fn what_the_threshold_leaves_over_is_returned() {
        let mut window = CongestionWindow::new(&setup());
        window.set_packets(400.0);
        window.set_threshold(400.5);
        // K = 8: four packets acknowledged yield half a packet of growth.
        assert_eq!(
            LimitedSlowStart::new(100).grow(&mut window, 6 * MSS),
            2 * MSS
        );
        assert_eq!(window.packets(), 400.5);
    }
}
