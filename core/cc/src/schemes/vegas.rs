//! Vegas: keeps a few of its packets in the queue, by comparing its actual rate with the expected rate without
//! queueing.
//!
//! Provenance: L. Brakmo and L. Peterson, "TCP Vegas: End to End Congestion Avoidance on a Global Internet", IEEE JSAC
//! 13(8), 1995; thresholds as in Linux `net/ipv4/tcp_vegas.c`. Once per round trip the backlog W (1 - baseRTT/RTT) is
//! compared with alpha and beta: below alpha the window grows by one packet, above beta it shrinks by one. Slow start
//! doubles only every other round trip, is constant in between, and ends when the packets sent meanwhile had a backlog
//! of more than gamma.
//!
//! Deviations: the RTT of a round is the smallest of at least three samples, so that delayed acknowledgements do not
//! look like queues (with fewer, the window grows by one packet, as Reno's would); slow start ends with the window that
//! the path holds without queueing plus one packet, as in Linux (the paper keeps the window, which then shrinks by one
//! packet per round trip; `drain: false`); losses are detected and repaired by the transport instead of the paper's
//! fine-grained timer, and halve the window.
//!
//! Alone, or among other Vegas flows, it causes short queues and no losses. Loss-based flows fill the queue that it
//! tries to keep empty, and starve it. A flow that joins others mistakes their backlog for part of the path's base
//! delay and gets more than they do; a path that becomes longer looks like a permanent queue. Windows below about six
//! packets yield too few samples when the receiver delays its acknowledgements.

use crate::parts::{LossBased, CongestionEvent, RttRounds, WindowRules, CongestionWindow};
use crate::{AckEvent, Fields, Scheme};
use narrows_units::{ParamError, Params, params};

/// Registry entry.
pub const SCHEME: Scheme = Scheme {
    name: "vegas",
    summary: "Keeps two to four of its packets queued, estimated from the RTT",
    source: "Brakmo and Peterson 1995",
    params: VegasParams::PARAMS,
    build: |params, setup| Ok(LossBased::boxed(CongestionWindow::new(&setup), Vegas::new(params)?)),
    ..super::reno::SCHEME
};

params! {
    /// Parameters.
    struct VegasParams {
        /// Backlog in packets below which the window grows.
        alpha: Number(0.0..=10_000.0, "packets") = 2, "Linux tcp_vegas; the paper uses 1 and 2";
        /// Backlog in packets above which the window shrinks.
        beta: Number(0.0..=10_000.0, "packets") = 4, "Linux tcp_vegas; the paper uses 3 and 4";
        /// Backlog in packets that ends slow start.
        gamma: Number(0.0..=10_000.0, "packet") = 1, "Brakmo and Peterson 1995";
        /// Remove the backlog from the window when slow start ends.
        drain: Flag = true, "Linux tcp_vegas; the paper: false";
    }
}

/// Phase of slow start within its two round trips.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pace {
    /// Every acknowledgement makes the window grow.
    Growing,
    /// The window is constant, so that a flight of its size is in transit.
    Still,
    /// The first acknowledgements of that flight show whether it was queued.
    Judging,
}

#[derive(Clone)]
struct Vegas {
    params: VegasParams,
    rtt: RttRounds,
    pace: Pace,
    /// Packets queued, as last estimated.
    backlog: f64,
}

impl Vegas {
    fn new(params: &Params) -> Result<Self, ParamError> {
        let params = VegasParams::read(params);
        let VegasParams { alpha, beta, .. } = params;
        if alpha > beta {
            return Err(ParamError::Conflict(format!(
                "alpha {alpha} must not be larger than beta {beta}: the window would never rest"
            )));
        }
        Ok(Vegas {
            params,
            rtt: RttRounds::default(),
            pace: Pace::Judging,
            backlog: 0.0,
        })
    }

    /// True if the flight of the constant round was queued; measured with its first packets, since a flight during
    /// which the window grew queues behind its own bursts.
    fn judge_slow_start(&mut self, window: &mut CongestionWindow) {
        let Some(rtt) = self.rtt.so_far().smallest() else {
            return;
        };
        self.backlog = self.rtt.backlog(window.packets(), rtt);
        self.pace = Pace::Growing;
        if self.backlog > self.params.gamma {
            if self.params.drain {
                let fitting = window.packets() - self.backlog + 1.0;
                window.set_packets(window.packets().min(fitting).max(2.0));
            }
            window.exit_slow_start();
        }
    }
}

impl WindowRules for Vegas {
    fn observe(&mut self, ack: &AckEvent<'_>, window: &mut CongestionWindow) {
        let ended = self.rtt.on_ack(ack);
        if window.in_slow_start() {
            if ended.is_some() {
                self.pace = match self.pace {
                    Pace::Growing => Pace::Still,
                    Pace::Still => Pace::Judging,
                    // Too few samples in the whole round: no reason to stop.
                    Pace::Judging => Pace::Growing,
                };
            }
            if self.pace == Pace::Judging {
                self.judge_slow_start(window);
            }
            return;
        }
        let Some(round) = ended else { return };
        let Some(rtt) = round.smallest() else {
            // The queue is unknown.
            if ack.cwnd_limited {
                window.add(1.0);
            }
            return;
        };
        self.backlog = self.rtt.backlog(window.packets(), rtt);
        if self.backlog < self.params.alpha && ack.cwnd_limited {
            window.add(1.0);
        } else if self.backlog > self.params.beta {
            window.set_packets((window.packets() - 1.0).max(2.0));
            window.exit_slow_start();
        }
    }

    fn slow_start(&mut self, window: &mut CongestionWindow, _: &AckEvent<'_>, bytes: u64) -> u64 {
        if self.pace == Pace::Growing {
            window.slow_start(bytes)
        } else {
            0
        }
    }

    fn congestion_avoidance(&mut self, _: &mut CongestionWindow, _: &AckEvent<'_>, _: u64) {}

    fn ssthresh(&mut self, window: &CongestionWindow, _: &CongestionEvent) -> f64 {
        self.pace = Pace::Growing;
        window.packets() / 2.0
    }

    fn trace(&self, fields: &mut Fields) {
        fields.values.push(("backlog_packets", self.backlog));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parts::play_round;
    use crate::testing::{Script, setup};
    use crate::{LossCause, CaState};
    use narrows_units::{Span, Time};

    fn params(given: &[(&str, &str)]) -> Params {
        let given = given.iter().map(|(name, text)| {
            let spec = SCHEME.params.iter().find(|spec| spec.name == *name).unwrap();
            ((*name).to_owned(), spec.parse(text).unwrap())
        });
        Params::resolve(SCHEME.params, given).unwrap()
    }

    /// Rules with a base RTT of 100 ms, and a window of `packets` in avoidance.
    fn measured(packets: f64) -> (Vegas, CongestionWindow) {
        let mut window = CongestionWindow::new(&setup());
        window.exit_slow_start();
        let mut vegas = Vegas::new(&params(&[])).unwrap();
        play_round(&mut vegas, &mut window, Span::from_ms(100), 3);
        window.set_packets(packets);
        window.exit_slow_start();
        (vegas, window)
    }

    #[test]
    fn the_window_follows_the_backlog() {
        // 20 packets, base 100 ms (Brakmo and Peterson 1995, section 3): at 125 ms 4 packets are queued, at 105 ms one,
        // at 130 ms 4.6.
        for (rtt_ms, backlog, after) in [
            (125, 4.0, 20.0),
            (105, 20.0 * 5.0 / 105.0, 21.0),
            (112, 20.0 * 12.0 / 112.0, 20.0),
            (130, 20.0 * 30.0 / 130.0, 19.0),
        ] {
            let (mut vegas, mut window) = measured(20.0);
            play_round(&mut vegas, &mut window, Span::from_ms(rtt_ms), 5);
            assert!((vegas.backlog - backlog).abs() < 1e-12, "{rtt_ms} ms: {}", vegas.backlog);
            assert_eq!(window.packets(), after, "{rtt_ms} ms");
            assert!(!window.in_slow_start());
        }
    }

    #[test]
    fn slow_start_doubles_every_other_round() {
        let mut script = Script::new((SCHEME.build)(&params(&[]), setup()).unwrap());
        let mut windows = vec![];
        for _ in 0..8 {
            script.ack_round();
            windows.push(script.cwnd_packets());
        }
        // From the second doubling on, the acknowledgement that ends the previous round and the first two samples of
        // the growing round only measure.
        assert_eq!(windows, [20.0, 20.0, 37.0, 37.0, 71.0, 71.0, 139.0, 139.0]);
    }

    /// Slow start after a constant round with `packets`, whose flight is then acknowledged.
    fn stood_still(packets: f64, drain: &str, rtt_ms: u64) -> CongestionWindow {
        let mut window = CongestionWindow::new(&setup());
        let mut vegas = Vegas::new(&params(&[("drain", drain)])).unwrap();
        vegas.pace = Pace::Growing;
        play_round(&mut vegas, &mut window, Span::from_ms(100), 3);
        assert!(vegas.pace == Pace::Still && window.in_slow_start());
        window.set_packets(packets);
        play_round(&mut vegas, &mut window, Span::from_ms(100), 5);
        assert_eq!(window.packets(), packets);
        let mut ack = AckEvent::new(Time::ZERO);
        ack.latest_rtt = Some(Span::from_ms(rtt_ms));
        for _ in 0..3 {
            vegas.observe(&ack, &mut window);
        }
        assert_eq!(vegas.pace, Pace::Growing);
        window
    }

    #[test]
    fn slow_start_ends_with_what_the_path_holds() {
        let window = stood_still(32.0, "true", 110);
        assert!(!window.in_slow_start());
        assert!((window.packets() - (32.0 * 100.0 / 110.0 + 1.0)).abs() < 1e-12);
        let window = stood_still(32.0, "false", 110);
        assert_eq!((window.in_slow_start(), window.packets()), (false, 32.0));
        // 32 x 3/103 = 0.93 packets are not more than gamma.
        assert!(stood_still(32.0, "true", 103).in_slow_start());
    }

    #[test]
    fn fewer_than_three_samples_say_nothing() {
        let (mut vegas, mut window) = measured(20.0);
        play_round(&mut vegas, &mut window, Span::from_ms(200), 2);
        assert_eq!(window.packets(), 21.0);
    }

    #[test]
    fn a_recovery_is_not_measured() {
        let (mut vegas, mut window) = measured(20.0);
        for round_start in [false, false, true] {
            let mut ack = AckEvent::new(Time::ZERO);
            ack.latest_rtt = Some(Span::from_ms(200));
            ack.round_start = round_start;
            ack.phase = CaState::Recovery;
            ack.in_recovery = true;
            vegas.observe(&ack, &mut window);
        }
        assert_eq!(window.packets(), 20.0);
    }

    #[test]
    fn a_loss_halves_the_window() {
        let mut script = Script::new((SCHEME.build)(&params(&[]), setup()).unwrap());
        script.lose(LossCause::Reordering, 10);
        assert_eq!(script.cwnd_packets(), 5.0);
    }

    #[test]
    fn thresholds_in_the_wrong_order_are_refused() {
        let params = params(&[("alpha", "5")]);
        let error = (SCHEME.build)(&params, setup()).err().unwrap();
        assert!(error.to_string().contains("alpha 5"), "{error}");
    }
}
