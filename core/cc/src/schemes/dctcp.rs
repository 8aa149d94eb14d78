//! DCTCP: the window is reduced by half the fraction of marked packets.
//!
//! Provenance: RFC 8257 (October 2017); the optional integer arithmetic is that of Linux net/ipv4/tcp_dctcp.c.
//! Deviations: growth counts bytes without the limit on slow start, and reductions are spread over the round by
//! Proportional Rate Reduction, both as in Linux. The receiver reports the number of marked packets, so the estimate is
//! exact however acknowledgements are delayed (RFC 8257, section 3.2, requires an acknowledgement at each change of
//! marking, which the receiver sends as well).
//!
//! Designed for queues that mark every packet beyond a threshold of K packets: `red` with the instantaneous queue
//! length and equal thresholds (`scenarios/aqm/dctcp-step.yaml`). There it keeps the queue between K + N and an
//! amplitude below, for N flows; K must be above a seventh of the bandwidth-delay product or the link idles. A loss
//! still halves the window, a timeout restarts from one packet. Packets carry ECT(0), for which the scheme enables
//! `transport: {ecn: true}`. In a queue that drops or marks rarely it dominates Reno and CUBIC: do not mix them.
//!
//! Pitfall: the integers of Linux (`arithmetic: linux`) represent alpha in 1/1024. Below 16/1024 the whole value is
//! subtracted in each round, so with few marks alpha stays near zero: 10 % of marks leave it at 6/1024 if it started
//! there, not at 102/1024.

use crate::parts::{ReductionCause, LossBased, CongestionEvent, WindowRules, CongestionWindow};
use crate::{AckEvent, Fields, Scheme};
use narrows_units::{Params, choice, params};

/// Registry entry.
pub const SCHEME: Scheme = Scheme {
    name: "dctcp",
    summary: "Reduces the window by half the share of marked packets",
    source: "RFC 8257",
    transport: &[("ecn", "true")],
    params: DctcpParams::PARAMS,
    build: |params, setup| Ok(LossBased::boxed(CongestionWindow::new(&setup), Dctcp::new(params))),
    ..super::reno::SCHEME
};

choice! {
    /// Arithmetic of alpha.
    enum Arithmetic { Real = "real", Linux = "linux" }
}

params! {
    /// Parameters.
    struct DctcpParams {
        /// Weight of the newest round in alpha (linux: always 1/16).
        g: Ratio(0.0001..=1.0) = 0.0625, "RFC 8257, section 4.2";
        /// Alpha before the first round.
        initial_alpha: Ratio = 1, "RFC 8257, section 3.3";
        /// Arithmetic of alpha: exact, or in integer units of 1/1024 as in Linux, with whole packets.
        arithmetic: Arithmetic = "real", "RFC 8257; linux: Linux net/ipv4/tcp_dctcp.c";
    }
}

/// The smoothed fraction of marked packets.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Alpha {
    /// With its gain.
    Real { share: f64, g: f64 },
    /// In 1/1024, as Linux has it.
    Linux(u64),
}

/// One in Linux's unit.
const ONE: u64 = 1024;
/// Linux's gain is 1/2 to the power of this.
const SHIFT: u32 = 4;

impl Alpha {
    /// Adds a round in which `marked` of `acked` bytes were marked.
    fn update(&mut self, acked: u64, marked: u64) {
        match self {
            Alpha::Real { share, g } => {
                let fraction = if acked == 0 { 0.0 } else { marked as f64 / acked as f64 };
                *share += *g * (fraction - *share);
            }
            Alpha::Linux(units) => {
                // A value too small to be shifted is removed completely.
                let fade = *units >> SHIFT;
                *units -= if fade == 0 { *units } else { fade };
                *units = (*units + (marked * (ONE >> SHIFT)) / acked.max(1)).min(ONE);
            }
        }
    }

    fn share(self) -> f64 {
        match self {
            Alpha::Real { share, .. } => share,
            Alpha::Linux(units) => units as f64 / ONE as f64,
        }
    }

    /// Window after marks, from `packets`.
    fn reduced(self, packets: f64) -> f64 {
        match self {
            Alpha::Real { share, .. } => packets * (1.0 - share / 2.0),
            Alpha::Linux(units) => {
                let whole = packets as u64;
                (whole - (whole * units) / (2 * ONE)) as f64
            }
        }
    }
}

#[derive(Clone)]
struct Dctcp {
    alpha: Alpha,
    /// Bytes acknowledged in the current round, and marked ones among them.
    acked: u64,
    marked: u64,
}

impl Dctcp {
    fn new(params: &Params) -> Self {
        let params = DctcpParams::read(params);
        let share = params.initial_alpha;
        let alpha = match params.arithmetic {
            Arithmetic::Linux => Alpha::Linux((share * ONE as f64) as u64),
            Arithmetic::Real => Alpha::Real { share, g: params.g },
        };
        Dctcp { alpha, acked: 0, marked: 0 }
    }
}

impl WindowRules for Dctcp {
    fn observe(&mut self, ack: &AckEvent<'_>, _: &mut CongestionWindow) {
        // Once per window of data, even if nothing was marked (RFC 8257, section 3.3).
        if ack.round_start && self.acked > 0 {
            self.alpha.update(self.acked, self.marked);
            (self.acked, self.marked) = (0, 0);
        }
        self.acked += ack.bytes.get();
        self.marked += ack.ce_bytes.get();
    }

    fn congestion_avoidance(&mut self, window: &mut CongestionWindow, _: &AckEvent<'_>, bytes: u64) {
        window.additive_increase(bytes, window.cwnd().get());
    }

    fn ssthresh(&mut self, window: &CongestionWindow, congestion: &CongestionEvent) -> f64 {
        match congestion.cause {
            ReductionCause::Mark => self.alpha.reduced(window.packets()),
            // As Reno, not by alpha (RFC 8257, section 3.5).
            ReductionCause::Loss | ReductionCause::Timeout => congestion.in_flight / 2.0,
        }
    }

    fn trace(&self, fields: &mut Fields) {
        fields.values.push(("alpha_ratio", self.alpha.share()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{MSS, Script, setup};
    use crate::{EcnEvent, LossCause};
    use narrows_units::Bytes;

    /// Alpha in 1/1024 after each of some rounds with the same fraction of marks in percent.
    fn linux(start: u64, percent: u64, rounds: usize) -> Vec<u64> {
        let mut alpha = Alpha::Linux(start);
        (0..rounds)
            .map(|_| {
                alpha.update(100, percent);
                (alpha.share() * 1024.0) as u64
            })
            .collect()
    }

    fn script(given: &[(&str, &str)]) -> Script {
        let given = given.iter().map(|(name, text)| {
            let spec = SCHEME.params.iter().find(|spec| spec.name == *name).unwrap();
            ((*name).to_owned(), spec.parse(text).unwrap())
        });
        let params = Params::resolve(SCHEME.params, given).unwrap();
        Script::new((SCHEME.build)(&params, setup()).unwrap())
    }

    /// A mark that opens an epoch.
    fn mark(script: &mut Script) {
        let in_flight = script.cwnd_packets() as u64 * MSS;
        script.scheme.on_ecn(&EcnEvent::new(script.now, Bytes::new(in_flight)));
    }

    fn alpha(script: &Script) -> f64 {
        script.fields().values[0].1
    }

    // Linux net/ipv4/tcp_dctcp.c: alpha after rounds without marks, and with nothing but marks.
    #[test]
    fn the_integers_of_linux() {
        assert_eq!(linux(1024, 0, 8), [960, 900, 844, 792, 743, 697, 654, 614]);
        assert_eq!(linux(0, 100, 6), [64, 124, 181, 234, 284, 331]);
    }

    // The same source: small fractions of marks are lost from below, and nearly reached from above.
    #[test]
    fn the_integers_of_linux_stick_near_nothing() {
        assert_eq!(*linux(0, 10, 200).last().unwrap(), 6);
        let above = *linux(1024, 10, 200).last().unwrap();
        assert!((96..=111).contains(&above), "{above}");
    }

    #[test]
    fn the_window_is_cut_by_half_of_alpha() {
        for (units, left) in [(1024, 50.0), (512, 75.0), (102, 96.0)] {
            assert_eq!(Alpha::Linux(units).reduced(100.0), left, "alpha {units}/1024");
        }
        for (share, left) in [(1.0, 50.0), (0.5, 75.0), (0.1, 95.0)] {
            assert_eq!(Alpha::Real { share, g: 0.0625 }.reduced(100.0), left, "alpha {share}");
        }
    }

    // RFC 8257, section 3.3: alpha = (1 - g) alpha + g M, once per window, also without marks.
    #[test]
    fn alpha_fades_by_a_sixteenth_per_round() {
        let mut s = script(&[]);
        for round in 0..10 {
            s.ack_round();
            let expected = (15.0f64 / 16.0).powi(round);
            assert!((alpha(&s) - expected).abs() < 1e-12, "round {round}: {}", alpha(&s));
        }
    }

    #[test]
    fn exact_alpha_settles_at_the_share_of_marks() {
        for share in [0.02, 0.1, 0.5] {
            let mut alpha = Alpha::Real { share: 1.0, g: 0.0625 };
            for _ in 0..300 {
                alpha.update(1000, (share * 1000.0) as u64);
            }
            assert!((alpha.share() - share).abs() < 1e-6);
        }
    }

    #[test]
    fn the_first_mark_halves_and_later_ones_hardly_reduce() {
        let mut s = script(&[]);
        s.ack_round();
        mark(&mut s);
        assert_eq!(s.cwnd_packets(), 10.0);
        // 41 rounds without marks leave alpha at (15/16)^41 = 7.1 %.
        for _ in 0..41 {
            s.ack_round();
        }
        let before = s.cwnd_packets();
        mark(&mut s);
        let cut = 1.0 - s.cwnd_packets() / before;
        assert!((cut - 0.0355).abs() < 0.0001, "{cut}");
    }

    #[test]
    fn a_loss_halves_whatever_alpha_is() {
        let mut s = script(&[("initial_alpha", "0.01")]);
        s.ack_round();
        s.lose(LossCause::Reordering, 20);
        assert_eq!(s.cwnd_packets(), 10.0);
        s.lose(LossCause::Timeout, 10);
        assert_eq!(s.cwnd_packets(), 1.0);
    }

    #[test]
    fn two_packets_are_left_with_either_arithmetic() {
        for arithmetic in ["real", "linux"] {
            let mut s = script(&[("arithmetic", arithmetic)]);
            for _ in 0..6 {
                mark(&mut s);
            }
            assert_eq!(s.cwnd_packets(), 2.0);
        }
    }
}
