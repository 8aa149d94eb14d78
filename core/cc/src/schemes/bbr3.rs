//! BBR, version 3, as published: version 1 with bounds learned from losses, and fewer probes.
//!
//! Provenance: google/bbr, branch v3, net/ipv4/tcp_bbr.c (2023). Where it differs from the Internet-Draft, this
//! scheme does what the code does and `bbr-draft` what the draft says; `parts/bbr/profile.rs` has both side by
//! side. Deviations: amounts are counted in bytes and real numbers where the code rounds to packets and 1/256;
//! packets leave one by one at the pacing rate and in bursts only after a delay; the share of marked data that
//! ends a probe is that of the current and the last round, not of the exact interval of a rate sample; losses
//! repaired by a tail-loss probe are treated like others; no load balancing by flow labels (PLB).
//!
//! Like version 1 it sends at the bandwidth that it measures. New are a long-term bound of the data in flight,
//! lowered when a probe loses more than 2 %, and short-term bounds of bandwidth and data in flight that follow
//! what is delivered in rounds with losses. PROBE_BW cycles through down (0.906 of the bandwidth, until the
//! queue is gone), cruise (with 15 % headroom), refill (one round) and up (1.25, until the bandwidth stops
//! growing or too much is lost); it probes every 2 to 3 s, or as often as a Reno flow would lose a packet if
//! that is sooner. PROBE_RTT comes after 5 s, with half a bandwidth-delay product in flight. Marks count on paths with
//! an RTT of at most 5 ms, where they are expected from a shallow threshold: beyond that the flow's packets are
//! marked without effect, so do not switch ECN on for classic queues. Pitfalls: random loss above 2 % keeps the
//! long-term bound low; short-term bounds halve the rate within a few lossy rounds of cruise.
//!
//! | parameter | default | source |
//! |---|---|---|
//! | startup_gain | 710/256 | google/bbr v3, net/ipv4/tcp_bbr.c: bbr_startup_pacing_gain |
//! | loss_threshold | 5/256 | google/bbr v3, net/ipv4/tcp_bbr.c: bbr_loss_thresh |
//! | beta | 180/256 | google/bbr v3, net/ipv4/tcp_bbr.c: 1 - bbr_beta |
//! | headroom | 38/256 | google/bbr v3, net/ipv4/tcp_bbr.c: bbr_inflight_headroom |
//! | probe_rtt_interval | 5 s | google/bbr v3, net/ipv4/tcp_bbr.c: bbr_probe_rtt_win_ms |
//! | min_rtt_window | 10 s | google/bbr v3, net/ipv4/tcp_bbr.c: bbr_min_rtt_win_sec |

use crate::parts::bbr::{Machine, BbrProfile};
use crate::{CongestionControl, EcnUse, Recovery, Scheme, Setup};
use narrows_units::{Kind, ParamError, ParamSpec, Params};

/// Registry line.
pub const SCHEME: Scheme = Scheme {
    name: "bbr3",
    summary: "BBR with bounds learned from losses and fewer probes (version 3, published code)",
    source: "google/bbr, branch v3",
    recovery: Recovery::Direct,
    ecn: EcnUse::Classic,
    transport: &[],
    profiles: &[],
    params: &[
        ParamSpec::new("startup_gain", Kind::Number, "Gain of the rate in STARTUP.")
            .default("2.7734375")
            .range(1.25, 10.0)
            .source("google/bbr v3, net/ipv4/tcp_bbr.c: bbr_startup_pacing_gain"),
        ParamSpec::new("loss_threshold", Kind::Ratio, "Share of losses that tells a probe that too much is in flight.")
            .default("0.01953125")
            .range(0.001, 0.5)
            .source("google/bbr v3, net/ipv4/tcp_bbr.c: bbr_loss_thresh"),
        ParamSpec::new("beta", Kind::Ratio, "Share of the short-term bounds kept at least in a round with losses.")
            .default("0.703125")
            .range(0.1, 1.0)
            .source("google/bbr v3, net/ipv4/tcp_bbr.c: 1 - bbr_beta"),
        ParamSpec::new("headroom", Kind::Ratio, "Share of the long-term bound left free while cruising.")
            .default("0.1484375")
            .range(0.0, 0.9)
            .source("google/bbr v3, net/ipv4/tcp_bbr.c: bbr_inflight_headroom"),
        ParamSpec::new("probe_rtt_interval", Kind::Span, "Time without a lower RTT after which PROBE_RTT comes.")
            .default("5000000000")
            .range(1e8, 1e12)
            .source("google/bbr v3, net/ipv4/tcp_bbr.c: bbr_probe_rtt_win_ms"),
        ParamSpec::new("min_rtt_window", Kind::Span, "Time for which the smallest RTT counts.")
            .default("10000000000")
            .range(1e8, 1e12)
            .source("google/bbr v3, net/ipv4/tcp_bbr.c: bbr_min_rtt_win_sec"),
    ],
    build,
};

fn build(params: &Params, setup: Setup) -> Result<Box<dyn CongestionControl>, ParamError> {
    Ok(Box::new(Machine::new(BbrProfile::CODE.with(params), setup)))
}
