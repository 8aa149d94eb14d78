//! FillP-Sheep (approximation): BBR with TACK's reduced acknowledgements.
//!
//! Approximation. FillP-Sheep was published as a closed binary; this scheme follows its repository's description and is
//! not the original.
//!
//! Provenance: README of the FillP repository in the Pantheon collection (2023): "TACK" and BBR with all its limits; T.
//! Li et al., "TACK: Improving Wireless Transport Performance by Taming Acknowledgments", SIGCOMM 2020; the scheme
//! `bbr1`. Deviations: unknown, since the original's gains, start-up and tolerated loss ratio are hidden in the
//! binaries. BBR is exactly `bbr1`. The delivery rate is measured at the sender, not reported by the receiver.
//!
//! The profile `pantheon` has payloads of 1300 bytes.

use super::bbr1::{Bbr1, Bbr1Params, Probing};
use crate::{CongestionControl, Scheme, Setup};
use narrows_units::{ParamError, Params, params};

/// Registry entry.
pub const SCHEME: Scheme = Scheme {
    name: "fillp-sheep",
    summary: "Approximation of FillP-Sheep: BBR with its window, TACK acknowledgements",
    source: "README of FillP; Li et al. 2020 (TACK); Linux net/ipv4/tcp_bbr.c",
    params: FillpSheepParams::PARAMS,
    build,
    ..super::fillp::SCHEME
};

params! {
    /// Parameters.
    struct FillpSheepParams {
        /// Gain of rate and window in STARTUP.
        startup_gain: Number(1.25..=10.0) = 2.88671875, "Linux tcp_bbr.c: bbr_high_gain (FillP's is unknown)";
        /// Maximum bandwidth-delay products in flight in PROBE_BW.
        cwnd_gain: Number(1.0..=10.0) = 2, "Linux tcp_bbr.c: bbr_cwnd_gain (FillP's is unknown)";
        /// Time after which the minimum RTT is probed again.
        min_rtt_window: Span(1e8..=1e12) = "10 s", "Linux tcp_bbr.c: bbr_min_rtt_win_sec (FillP's is unknown)";
        /// Minimum time in PROBE_RTT with four packets in flight.
        probe_rtt_time: Span(0.0..=1e10) = "200 ms", "Linux tcp_bbr.c: bbr_probe_rtt_mode_ms (FillP's is unknown)";
    }
}

fn build(params: &Params, setup: Setup) -> Result<Box<dyn CongestionControl>, ParamError> {
    let FillpSheepParams { startup_gain, cwnd_gain, min_rtt_window, probe_rtt_time } = FillpSheepParams::read(params);
    let params = Bbr1Params {
        startup_gain,
        probe_gain: Probing::LINUX_GAIN,
        cwnd_gain,
        min_rtt_window,
        probe_rtt_time,
        policer: true,
        aggregation: true,
    };
    let probing = Probing::linux(params.probe_gain);
    Ok(Box::new(Bbr1::new(params, setup, probing)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Script, setup};

    #[test]
    fn it_has_the_window_of_bbr() {
        let sheep = super::build(&Params::resolve(SCHEME.params, []).unwrap(), setup()).unwrap();
        let bbr1 = crate::schemes::find("bbr1").unwrap();
        let bbr = (bbr1.build)(&Params::resolve(bbr1.params, []).unwrap(), setup()).unwrap();
        let (mut sheep, mut bbr) = (Script::new(sheep), Script::new(bbr));
        for _ in 0..20 {
            sheep.ack_round();
            bbr.ack_round();
            assert_eq!(sheep.scheme.allowance(), bbr.scheme.allowance());
        }
    }
}
