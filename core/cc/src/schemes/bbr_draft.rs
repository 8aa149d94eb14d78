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
//!
//! | parameter | default | source |
//! |---|---|---|
//! | startup_gain | 2.77 | draft-ietf-ccwg-bbr: StartupPacingGain |
//! | loss_threshold | 0.02 | draft-ietf-ccwg-bbr: LossThresh |
//! | beta | 0.7 | draft-ietf-ccwg-bbr: Beta |
//! | headroom | 0.15 | draft-ietf-ccwg-bbr: Headroom |
//! | probe_rtt_interval | 5 s | draft-ietf-ccwg-bbr: ProbeRTTInterval |
//! | min_rtt_window | 10 s | draft-ietf-ccwg-bbr: MinRTTFilterLen |

use crate::parts::bbr::{Machine, BbrProfile};
use crate::{CongestionControl, EcnUse, Recovery, Scheme, Setup};
use narrows_units::{Kind, ParamError, ParamSpec, Params};

/// Registry line.
pub const SCHEME: Scheme = Scheme {
    name: "bbr-draft",
    summary: "BBR version 3 as specified by the IETF's working group on congestion control",
    source: "draft-ietf-ccwg-bbr (3 August 2026)",
    recovery: Recovery::Direct,
    ecn: EcnUse::None,
    transport: &[],
    profiles: &[],
    params: &[
        ParamSpec::new("startup_gain", Kind::Number, "Gain of the rate in STARTUP.")
            .default("2.77")
            .range(1.25, 10.0)
            .source("draft-ietf-ccwg-bbr: StartupPacingGain"),
        ParamSpec::new("loss_threshold", Kind::Ratio, "Share of losses that tells a probe that too much is in flight.")
            .default("0.02")
            .range(0.001, 0.5)
            .source("draft-ietf-ccwg-bbr: LossThresh"),
        ParamSpec::new("beta", Kind::Ratio, "Share of the short-term bounds kept at least in a round with losses.")
            .default("0.7")
            .range(0.1, 1.0)
            .source("draft-ietf-ccwg-bbr: Beta"),
        ParamSpec::new("headroom", Kind::Ratio, "Share of the long-term bound left free while cruising.")
            .default("0.15")
            .range(0.0, 0.9)
            .source("draft-ietf-ccwg-bbr: Headroom"),
        ParamSpec::new("probe_rtt_interval", Kind::Span, "Time without a lower RTT after which PROBE_RTT comes.")
            .default("5000000000")
            .range(1e8, 1e12)
            .source("draft-ietf-ccwg-bbr: ProbeRTTInterval"),
        ParamSpec::new("min_rtt_window", Kind::Span, "Time for which the smallest RTT counts.")
            .default("10000000000")
            .range(1e8, 1e12)
            .source("draft-ietf-ccwg-bbr: MinRTTFilterLen"),
    ],
    build,
};

fn build(params: &Params, setup: Setup) -> Result<Box<dyn CongestionControl>, ParamError> {
    Ok(Box::new(Machine::new(BbrProfile::DRAFT.with(params), setup)))
}
