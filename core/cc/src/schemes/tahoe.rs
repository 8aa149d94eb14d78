//! Tahoe: every loss restarts from one packet.
//!
//! Provenance: V. Jacobson, "Congestion avoidance and control", SIGCOMM 1988, with fast retransmit as in
//! 4.3BSD Tahoe and the threshold of RFC 5681 (half of what is in flight, at least two packets).
//! Deviations: bytes acknowledged are counted (RFC 3465, without its limit in slow start), the initial
//! window is the transport's (RFC 6928), and no second fast retransmit follows within one window, as
//! later versions had it.
//!
//! It has no selective acknowledgements (`sack: false` unless the scenario overrides it) and no fast recovery: after
//! three duplicates everything from the gap on counts as lost and is retransmitted, except data covered by later
//! acknowledgements. Recovering a window W takes about log2(W/2) round trips of slow start and W/2 of linear growth.

use crate::parts::{ReductionCause, LossBased, CongestionEvent, WindowRules, CongestionWindow};
use crate::{AckEvent, EcnUse, Recovery, Scheme};
use narrows_units::params;

/// Registry entry.
pub const SCHEME: Scheme = Scheme {
    name: "tahoe",
    summary: "Slow start from one packet after every loss, no fast recovery, no selective acknowledgements",
    source: "Jacobson, SIGCOMM 1988; RFC 5681",
    recovery: Recovery::Restart,
    ecn: EcnUse::None,
    loss_based: true,
    transport: &[("sack", "false")],
    profiles: &[],
    params: Tahoe::PARAMS,
    build: |params, setup| Ok(LossBased::boxed(CongestionWindow::new(&setup), Tahoe::read(params))),
};

params! {
    /// Tahoe has no state except its parameters.
    struct Tahoe {
        /// Fraction of the data in flight at which slow start ends.
        beta: Ratio(0.05..=0.95) = 0.5, "Jacobson 1988";
    }
}

impl WindowRules for Tahoe {
    fn congestion_avoidance(&mut self, window: &mut CongestionWindow, _: &AckEvent<'_>, bytes: u64) {
        window.additive_increase(bytes, window.cwnd().get());
    }

    fn ssthresh(&mut self, _: &CongestionWindow, congestion: &CongestionEvent) -> f64 {
        congestion.in_flight * self.beta
    }

    fn restarts_slow_start(&self, _: ReductionCause) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{LossCause, Setup};
    use crate::testing::{MSS, Script, setup, windows};
    use narrows_units::{Bytes, Params};

    #[test]
    fn every_loss_starts_again_from_one_packet() {
        for cause in [LossCause::Reordering, LossCause::Timeout] {
            let setup = Setup { initial_window: 16, ..setup() };
            let params = Params::resolve(SCHEME.params, []).unwrap();
            let mut s = Script::new((SCHEME.build)(&params, setup).unwrap());
            s.lose(cause, 16);
            assert_eq!(s.fields().ssthresh, Some(Bytes::new(8 * MSS)));
            assert_eq!(windows(&mut s, 6), [1.0, 2.0, 4.0, 8.0, 9.0, 10.0]);
            // A further loss of the same epoch changes nothing.
            s.lose_again(LossCause::Reordering, 10);
            assert_eq!(s.cwnd_packets(), 11.0);
        }
    }
}
