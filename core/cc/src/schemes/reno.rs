//! Reno: additive increase, multiplicative decrease.
//!
//! Provenance: RFC 5681 (2009) with byte counting (RFC 3465) and the initial window of RFC 6928. Losses are detected
//! and repaired by the transport (selective acknowledgements), so this corresponds to SACK-TCP in the literature.
//! Deviations: slow start has no limit per acknowledgement (as in Linux; RFC 3465 suggests two packets), and the
//! reduction is spread over the recovery round by Proportional Rate Reduction (RFC 6937).

use crate::parts::{ReductionCause, LossBased, CongestionEvent, WindowRules, CongestionWindow};
use crate::{AckEvent, EcnUse, Recovery, Scheme};
use narrows_units::params;

/// Registry entry.
pub const SCHEME: Scheme = Scheme {
    name: "reno",
    summary: "One packet more per round trip, half the window after a loss (SACK-TCP)",
    source: "RFC 5681, RFC 3465, RFC 6928",
    recovery: Recovery::Proportional,
    ecn: EcnUse::Classic,
    loss_based: true,
    transport: &[],
    profiles: &[],
    params: Reno::PARAMS,
    build: |params, setup| Ok(LossBased::boxed(CongestionWindow::new(&setup), Reno::read(params))),
};

params! {
    /// Reno has no state except its parameters.
    struct Reno {
        /// Fraction of the data in flight kept after a loss.
        beta: Ratio(0.05..=0.95) = 0.5, "RFC 5681, equation 4";
        /// Fraction kept after a congestion mark.
        ecn_beta: Ratio(0.05..=0.95) = 0.5, "RFC 3168, section 6.1.2; 0.8 is RFC 8511";
    }
}

impl WindowRules for Reno {
    fn congestion_avoidance(&mut self, window: &mut CongestionWindow, _: &AckEvent<'_>, bytes: u64) {
        window.additive_increase(bytes, window.cwnd().get());
    }

    fn ssthresh(&mut self, _: &CongestionWindow, congestion: &CongestionEvent) -> f64 {
        let kept = if congestion.cause == ReductionCause::Mark { self.ecn_beta } else { self.beta };
        congestion.in_flight * kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{MSS, Script, setup};
    use crate::{LossCause, SpuriousLossEvent};
    use narrows_units::{Bytes, Params, Time};

    fn script() -> Script {
        Script::new((SCHEME.build)(&Params::resolve(SCHEME.params, []).unwrap(), setup()).unwrap())
    }

    #[test]
    fn slow_start_doubles_each_round() {
        let mut s = script();
        let mut windows = vec![];
        for _ in 0..4 {
            windows.push(s.cwnd_packets());
            s.ack_round();
        }
        assert_eq!(windows, [10.0, 20.0, 40.0, 80.0]);
    }

    #[test]
    fn one_loss_halves_the_data_in_flight() {
        let mut s = script();
        s.ack_round();
        assert_eq!(s.cwnd_packets(), 20.0);
        s.lose(LossCause::Reordering, 20);
        assert_eq!(s.cwnd_packets(), 10.0);
        // A second loss of the same epoch changes nothing.
        s.lose_again(LossCause::Reordering, 10);
        assert_eq!(s.cwnd_packets(), 10.0);
    }

    #[test]
    fn a_timeout_restarts_from_one_packet() {
        let mut s = script();
        s.lose(LossCause::Timeout, 21);
        assert_eq!(s.cwnd_packets(), 1.0);
        assert_eq!(s.fields().ssthresh, Some(Bytes::new(21 * MSS / 2)));
        // If the same data times out again the threshold is unchanged (RFC 5681, section 3.1).
        s.lose_again(LossCause::Timeout, 1);
        assert_eq!(s.fields().ssthresh, Some(Bytes::new(21 * MSS / 2)));
    }

    #[test]
    fn avoidance_adds_one_packet_per_round_however_acks_are_thinned() {
        for packets_per_ack in [1, 2, 10] {
            let mut s = script();
            s.ack_round();
            s.lose(LossCause::Reordering, 40);
            let start = s.cwnd_packets();
            for _ in 0..10 {
                s.ack_round_by(packets_per_ack);
            }
            assert_eq!(s.cwnd_packets(), start + 10.0, "{packets_per_ack} packets per ack");
        }
    }

    #[test]
    fn a_spurious_loss_is_undone() {
        let mut s = script();
        s.ack_round();
        s.lose(LossCause::Reordering, 20);
        s.scheme.on_spurious_loss(&SpuriousLossEvent::new(Time::ZERO, LossCause::Reordering));
        assert_eq!(s.cwnd_packets(), 20.0);
        assert_eq!(s.fields().ssthresh, None);
    }

    #[test]
    fn an_application_that_sends_little_does_not_grow_the_window() {
        let mut s = script();
        s.cwnd_limited = false;
        s.ack_round();
        assert_eq!(s.cwnd_packets(), 10.0);
    }
}
