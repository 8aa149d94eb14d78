//! BBR, version 3, as the IETF specifies it.
//!
//! Provenance: draft-ietf-ccwg-bbr, text of 3 August 2026, "BBR Congestion Control" (CCWG, work in progress).
//! Where the draft contradicts itself, docs/decisions/0018-contradictions-in-the-bbr-draft.md says what was chosen
//! and why. Deviations: selective acknowledgements are taken for granted; the first pacing rate has the margin
//! of one percent, too; the bandwidth filter keeps two cycles and forgets none before the next has a sample.
//!
//! The same machine as `bbr3`, with the draft's constants and rules: DRAIN sends at half the bandwidth and ends
//! after three rounds at the latest, down sends at 0.90, growth is judged once per round, a window cut for losses
//! is restored when the recovery ends, aggregation is remembered for ten rounds, and a flow goes back to its probe when
//! the losses that ended it turn out to be none. `parts/bbr/profile.rs` has all differences side by side. The
//! draft specifies no reaction to marks, so its packets are not ECN-capable. Pitfalls: as with `bbr3`.

use crate::parts::bbr::{Machine, BbrProfile};
use crate::{EcnUse, Recovery, Scheme};
use narrows_units::{Params, params};

/// Registry line.
pub const SCHEME: Scheme = Scheme {
    name: "bbr-draft",
    summary: "BBR version 3 as specified by the IETF's working group on congestion control",
    source: "draft-ietf-ccwg-bbr (3 August 2026)",
    recovery: Recovery::Direct,
    ecn: EcnUse::None,
    transport: &[],
    profiles: &[],
    params: BbrDraftParams::PARAMS,
    build: |params, setup| Ok(Box::new(Machine::new(profile(params), setup))),
};

params! {
    /// Parameters.
    struct BbrDraftParams {
        /// Gain of the rate in STARTUP.
        startup_gain: Number(1.25..=10.0) = 2.77, "draft-ietf-ccwg-bbr: StartupPacingGain";
        /// Share of losses that tells a probe that too much is in flight.
        loss_threshold: Ratio(0.001..=0.5) = 0.02, "draft-ietf-ccwg-bbr: LossThresh";
        /// Share of the short-term bounds kept at least in a round with losses.
        beta: Ratio(0.1..=1.0) = 0.7, "draft-ietf-ccwg-bbr: Beta";
        /// Share of the long-term bound left free while cruising.
        headroom: Ratio(0.0..=0.9) = 0.15, "draft-ietf-ccwg-bbr: Headroom";
        /// Time without a lower RTT after which PROBE_RTT comes.
        probe_rtt_interval: Span(1e8..=1e12) = "5 s", "draft-ietf-ccwg-bbr: ProbeRTTInterval";
        /// Time for which the smallest RTT counts.
        min_rtt_window: Span(1e8..=1e12) = "10 s", "draft-ietf-ccwg-bbr: MinRTTFilterLen";
    }
}

fn profile(params: &Params) -> BbrProfile {
    let params = BbrDraftParams::read(params);
    BbrProfile {
        startup_gain: params.startup_gain,
        loss_threshold: params.loss_threshold,
        beta: params.beta,
        headroom: params.headroom,
        probe_rtt_interval: params.probe_rtt_interval,
        min_rtt_window: params.min_rtt_window,
        ..BbrProfile::DRAFT
    }
}
