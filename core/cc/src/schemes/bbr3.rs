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

use crate::parts::bbr::{Machine, BbrProfile};
use crate::{EcnUse, Recovery, Scheme};
use narrows_units::{Params, params};

/// Registry line.
pub const SCHEME: Scheme = Scheme {
    name: "bbr3",
    summary: "BBR with bounds learned from losses and fewer probes (version 3, published code)",
    source: "google/bbr, branch v3",
    recovery: Recovery::Direct,
    ecn: EcnUse::Classic,
    transport: &[],
    profiles: &[],
    params: Bbr3Params::PARAMS,
    build: |params, setup| Ok(Box::new(Machine::new(profile(params), setup))),
};

params! {
    /// Parameters.
    struct Bbr3Params {
        /// Gain of the rate in STARTUP.
        startup_gain: Number(1.25..=10.0) = 2.7734375, "google/bbr v3, net/ipv4/tcp_bbr.c: bbr_startup_pacing_gain";
        /// Share of losses that tells a probe that too much is in flight.
        loss_threshold: Ratio(0.001..=0.5) = 0.01953125, "google/bbr v3, net/ipv4/tcp_bbr.c: bbr_loss_thresh";
        /// Share of the short-term bounds kept at least in a round with losses.
        beta: Ratio(0.1..=1.0) = 0.703125, "google/bbr v3, net/ipv4/tcp_bbr.c: 1 - bbr_beta";
        /// Share of the long-term bound left free while cruising.
        headroom: Ratio(0.0..=0.9) = 0.1484375, "google/bbr v3, net/ipv4/tcp_bbr.c: bbr_inflight_headroom";
        /// Time without a lower RTT after which PROBE_RTT comes.
        probe_rtt_interval: Span(1e8..=1e12) = "5 s", "google/bbr v3, net/ipv4/tcp_bbr.c: bbr_probe_rtt_win_ms";
        /// Time for which the smallest RTT counts.
        min_rtt_window: Span(1e8..=1e12) = "10 s", "google/bbr v3, net/ipv4/tcp_bbr.c: bbr_min_rtt_win_sec";
    }
}

fn profile(params: &Params) -> BbrProfile {
    let params = Bbr3Params::read(params);
    BbrProfile {
        startup_gain: params.startup_gain,
        loss_threshold: params.loss_threshold,
        beta: params.beta,
        headroom: params.headroom,
        probe_rtt_interval: params.probe_rtt_interval,
        min_rtt_window: params.min_rtt_window,
        ..BbrProfile::CODE
    }
}
