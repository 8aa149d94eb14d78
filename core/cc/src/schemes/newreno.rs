//! NewReno: Reno's window over a transport without selective acknowledgements.
//!
//! Provenance: RFC 6582 (April 2012) for the recovery, which is the transport's, RFC 5681 for the window. Deviations:
//! the window is reduced by Proportional Rate Reduction (RFC 6937) where RFC 6582 inflates it with each duplicate and
//! deflates it again, as in Linux; the retransmission timer restarts with every partial acknowledgement (the
//! "slow-but-steady" variant), not only with the first; growth counts bytes (RFC 3465), without a limit in slow start.
//!
//! It is the scheme `reno` with the transport setting `sack: false`, unless the scenario overrides it. Three duplicates
//! open a recovery and repair the first gap; each partial acknowledgement repairs the next. So one loss is repaired per
//! round trip, and many losses in one window cost many round trips or a timeout: compare with `reno` on the same path.

use super::reno;
use crate::Scheme;

/// Registry entry.
pub const SCHEME: Scheme = Scheme {
    name: "newreno",
    summary: "Reno without selective acknowledgements: one loss is repaired per round trip",
    source: "RFC 6582, RFC 5681, RFC 3465, RFC 6928",
    transport: &[("sack", "false")],
    ..reno::SCHEME
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LossCause;
    use narrows_units::Params;
    use crate::testing::{Script, setup, windows};
    #[test]
    fn the_window_is_renos_and_the_transport_has_no_sack() {
        let params = Params::resolve(SCHEME.params, []).unwrap();
        let mut s = Script::new((SCHEME.build)(&params, setup()).unwrap());
        assert_eq!(windows(&mut s, 3), [10.0, 20.0, 40.0]);
        s.lose(LossCause::Reordering, 80);
        // Holes found by partial acknowledgements belong to the same epoch.
        s.lose_again(LossCause::Reordering, 40);
        assert_eq!(windows(&mut s, 2), [40.0, 41.0]);
        assert_eq!(SCHEME.transport, [("sack", "false")]);
    }
}
