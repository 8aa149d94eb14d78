//! BBR, version 3, as specified by the IETF.
//!
//! Provenance: draft-ietf-ccwg-bbr, text of 3 August 2026, "BBR Congestion Control" (CCWG, work in progress). Where the
//! draft contradicts itself, docs/decisions/0018-contradictions-in-the-bbr-draft.md documents the choices. Deviations:
//! selective acknowledgements are required; the first pacing rate also has the margin of one percent; the bandwidth
//! filter keeps two cycles and drops none before the next has a sample.
//!
//! The same machine as `bbr3`, with the draft's constants and rules: DRAIN sends at half the bandwidth and ends after
//! three rounds at the latest, down sends at 0.90, growth is evaluated once per round, a window cut for losses is
//! restored when the recovery ends, aggregation is remembered for ten rounds, and a flow returns to its probe when the
//! losses that ended it turn out to be spurious. `algorithms/bbr/profile.rs` lists all differences side by side. The
//! draft specifies no reaction to marks, so its packets are not ECN-capable. Pitfalls: as with `bbr3`.

use crate::parts::bbr::{BbrParams, BbrProfile, Machine};
use crate::Scheme;
use narrows_units::ParamSpec;

/// Registry entry.
pub const SCHEME: Scheme = Scheme {
    name: "bbr-draft",
    summary: "BBR version 3 as specified by the IETF's working group on congestion control",
    source: "draft-ietf-ccwg-bbr (3 August 2026)",
    params: &PARAMS,
    build: |params, setup| Ok(Box::new(Machine::new(BbrProfile::draft(params), setup))),
    ..super::bbr1::SCHEME
};

const PARAMS: [ParamSpec; 6] = ParamSpec::with_defaults(BbrParams::PARAMS, &[
    ("startup_gain", "2.77", "draft-ietf-ccwg-bbr: StartupPacingGain"),
    ("loss_threshold", "0.02", "draft-ietf-ccwg-bbr: LossThresh"),
    ("beta", "0.7", "draft-ietf-ccwg-bbr: Beta"),
    ("headroom", "0.15", "draft-ietf-ccwg-bbr: Headroom"),
    ("probe_rtt_interval", "5 s", "draft-ietf-ccwg-bbr: ProbeRTTInterval"),
    ("min_rtt_window", "10 s", "draft-ietf-ccwg-bbr: MinRTTFilterLen"),
]);
