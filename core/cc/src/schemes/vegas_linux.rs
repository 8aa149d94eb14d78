//! Vegas as in the Linux kernel: compares the queueing delay with the base RTT, not with the RTT.
//!
//! Provenance: the rules of Linux `net/ipv4/tcp_vegas.c` (6.x), in whole packets: once per round trip diff = W (RTT -
//! baseRTT) / baseRTT, where RTT is the smallest of at least three samples. Below alpha the window grows by one packet,
//! above beta it shrinks by one. Slow start doubles every round trip and ends when diff exceeds gamma, with min(W, W
//! baseRTT/RTT + 1). The base RTT is measured anew after every idle period. With fewer than three samples in a round,
//! and during a timeout recovery, Reno's rules apply.
//!
//! Deviations: the window grows only while the flow is window-limited (the kernel module lets it grow regardless); a
//! few reordered packets do not stop the measurement, as the kernel's Disorder state does.
//!
//! It leaves less in the queue than `vegas` does, because the divisor is smaller: with a queueing delay of a quarter of
//! the base RTT it shrinks where the paper's rule is in equilibrium. Otherwise the remarks on `vegas` apply.

use crate::parts::{LossBased, CongestionEvent, RttRounds, WindowRules, CongestionWindow};
use crate::{AckEvent, CaState, Fields, Scheme};
use narrows_units::{Params, Span, Time, params};

/// Registry entry.
pub const SCHEME: Scheme = Scheme {
    name: "vegas-linux",
    summary: "Vegas with the kernel's rules, in whole packets",
    source: "Linux net/ipv4/tcp_vegas.c",
    params: VegasLinuxParams::PARAMS,
    build: |params, setup| Ok(LossBased::boxed(CongestionWindow::new(&setup), VegasLinux::new(params))),
    ..super::reno::SCHEME
};

params! {
    /// Parameters.
    struct VegasLinuxParams {
        /// Backlog below which the window grows.
        alpha: Packets(0.0..=10_000.0) = 2, "Linux tcp_vegas";
        /// Backlog above which the window shrinks.
        beta: Packets(0.0..=10_000.0) = 4, "Linux tcp_vegas";
        /// Backlog that ends slow start.
        gamma: Packets(0.0..=10_000.0) = 1, "Linux tcp_vegas";
    }
}

#[derive(Clone)]
struct VegasLinux {
    params: VegasLinuxParams,
    rtt: RttRounds,
    /// True if the round ended by this acknowledgement had too few samples.
    unmeasured: bool,
    /// Packets queued, as last estimated.
    diff: f64,
}

impl VegasLinux {
    fn new(params: &Params) -> Self {
        VegasLinux {
            params: VegasLinuxParams::read(params),
            rtt: RttRounds::default(),
            unmeasured: false,
            diff: 0.0,
        }
    }

    /// True if Reno's rules apply to this acknowledgement.
    fn is_reno(&self, ack: &AckEvent<'_>) -> bool {
        self.unmeasured || ack.phase != CaState::Open
    }
}

impl WindowRules for VegasLinux {
    fn observe(&mut self, ack: &AckEvent<'_>, window: &mut CongestionWindow) {
        self.unmeasured = false;
        let Some(round) = self.rtt.on_ack(ack) else { return };
        let Some(rtt) = round.smallest() else {
            self.unmeasured = true;
            return;
        };
        let base = self.rtt.base().ns().max(1) as f64;
        let cwnd = window.packets().floor();
        self.diff = (cwnd * (rtt.ns() as f64 - base) / base).floor();
        if window.in_slow_start() {
            if self.diff > self.params.gamma {
                let fitting = (cwnd * base / rtt.ns().max(1) as f64).floor() + 1.0;
                window.set_packets(cwnd.min(fitting).max(2.0));
                window.exit_slow_start();
            }
        } else if self.diff > self.params.beta {
            window.set_packets((cwnd - 1.0).max(2.0));
            window.exit_slow_start();
        } else if self.diff < self.params.alpha && ack.cwnd_limited {
            window.add(1.0);
        }
    }

    fn congestion_avoidance(&mut self, window: &mut CongestionWindow, ack: &AckEvent<'_>, bytes: u64) {
        if self.is_reno(ack) {
            window.additive_increase(bytes, window.cwnd().get());
        }
    }

    fn ssthresh(&mut self, window: &CongestionWindow, _: &CongestionEvent) -> f64 {
        (window.packets() / 2.0).floor()
    }

    fn on_idle_end(&mut self, _: Time, _: Span) {
        self.rtt.forget();
    }

    fn trace(&self, fields: &mut Fields) {
        fields.values.push(("backlog_packets", self.diff));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parts::play_round;
    use crate::testing::{Script, setup};

    fn rules() -> VegasLinux {
        VegasLinux::new(&Params::resolve(SCHEME.params, []).unwrap())
    }

    fn measured(packets: f64) -> (VegasLinux, CongestionWindow) {
        let mut window = CongestionWindow::new(&setup());
        window.exit_slow_start();
        let mut vegas = rules();
        play_round(&mut vegas, &mut window, Span::from_ms(100), 3);
        window.set_packets(packets);
        window.exit_slow_start();
        (vegas, window)
    }

    #[test]
    fn the_divisor_is_the_base_rtt() {
        // 20 packets, base 100 ms (Linux tcp_vegas.c): 125 ms is a diff of 5, 105 ms of 1, 112 ms of 2.
        for (rtt_ms, diff, after) in [(125, 5.0, 19.0), (105, 1.0, 21.0), (112, 2.0, 20.0)] {
            let (mut vegas, mut window) = measured(20.0);
            play_round(&mut vegas, &mut window, Span::from_ms(rtt_ms), 5);
            assert_eq!((vegas.diff, window.packets()), (diff, after), "{rtt_ms} ms");
            assert!(!window.in_slow_start());
        }
    }

    #[test]
    fn slow_start_ends_at_what_the_path_holds() {
        // 32 packets, 110 ms instead of 100 ms (Linux tcp_vegas.c): diff 3, and 30 packets are kept.
        let (mut vegas, mut window) = (rules(), CongestionWindow::new(&setup()));
        play_round(&mut vegas, &mut window, Span::from_ms(100), 3);
        assert!(window.in_slow_start());
        window.set_packets(27.0);
        // Five acknowledgements of slow start before the round is evaluated.
        play_round(&mut vegas, &mut window, Span::from_ms(110), 6);
        assert_eq!((vegas.diff, window.packets()), (3.0, 30.0));
        assert!(!window.in_slow_start());
    }

    #[test]
    fn slow_start_doubles_every_round_and_shrinking_does_not_restart_it() {
        let mut script = Script::new((SCHEME.build)(&Params::resolve(SCHEME.params, []).unwrap(), setup()).unwrap());
        for expected in [10.0, 20.0, 40.0, 80.0] {
            assert_eq!(script.cwnd_packets(), expected);
            script.ack_round();
        }
        let (mut vegas, mut window) = measured(20.0);
        for _ in 0..5 {
            play_round(&mut vegas, &mut window, Span::from_ms(150), 5);
            assert!(!window.in_slow_start());
        }
        assert_eq!(window.packets(), 15.0);
    }

    #[test]
    fn an_unmeasured_round_is_one_acknowledgement_of_reno() {
        let (mut vegas, mut window) = measured(2.0);
        // Each acknowledges one packet of two: growing by one takes two rounds.
        play_round(&mut vegas, &mut window, Span::from_ms(100), 2);
        assert_eq!(window.packets(), 2.0);
        play_round(&mut vegas, &mut window, Span::from_ms(100), 2);
        assert_eq!(window.packets(), 3.0);
    }

    #[test]
    fn an_idle_period_forgets_the_path() {
        let (mut vegas, mut window) = measured(20.0);
        vegas.on_idle_end(Time::ZERO, Span::from_ms(500));
        play_round(&mut vegas, &mut window, Span::from_ms(300), 5);
        assert_eq!((vegas.diff, window.packets()), (0.0, 21.0));
    }

    #[test]
    fn reno_repairs_a_timeout() {
        let (mut vegas, mut window) = measured(20.0);
        let mut ack = AckEvent::new(Time::ZERO);
        ack.phase = CaState::Loss;
        ack.latest_rtt = Some(Span::from_ms(300));
        vegas.observe(&ack, &mut window);
        vegas.congestion_avoidance(&mut window, &ack, 20_000);
        assert_eq!(window.packets(), 21.0);
    }
}
