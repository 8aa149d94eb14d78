//! BBR, version 3, as published: version 1 with bounds learned from losses, and fewer probes.
//!
//! Provenance: google/bbr, branch v3, net/ipv4/tcp_bbr.c (2023). Where the two differ, this scheme follows the code and
//! `bbr-draft` the Internet-Draft; `algorithms/bbr/profile.rs` lists both side by side. Deviations: amounts are counted
//! in bytes and real numbers where the code rounds to packets and 1/256; packets leave one by one at the pacing rate
//! and in bursts only after a delay; the share of marked data that ends a probe is that of the current and the last
//! round, not of the exact interval of a rate sample; losses repaired by a tail-loss probe are treated like others; no
//! load balancing by flow labels (PLB).
//!
//! Like version 1 it sends at the measured bandwidth. New are a long-term bound of the data in flight, lowered when a
//! probe loses more than 2 %, and short-term bounds of bandwidth and data in flight that follow the delivery rate in
//! rounds with losses. PROBE_BW cycles through down (0.906 of the bandwidth, until the queue is empty), cruise (with 15
//! % headroom), refill (one round) and up (1.25, until the bandwidth stops growing or too much is lost); it probes
//! every 2 to 3 s, or as often as a Reno flow would lose a packet if that is sooner. PROBE_RTT begins after 5 s, with
//! half a bandwidth-delay product in flight. Marks count on paths with an RTT of at most 5 ms, where a shallow
//! threshold is assumed: on longer paths marks have no effect, so do not enable ECN with classic queues. Pitfalls:
//! random loss above 2 % keeps the long-term bound low; short-term bounds halve the rate within a few lossy rounds of
//! cruise.

use crate::parts::bbr::{BbrParams, BbrProfile, Machine};
use crate::{EcnUse, Scheme};

/// Registry entry.
pub const SCHEME: Scheme = Scheme {
    name: "bbr3",
    summary: "BBR with bounds learned from losses and fewer probes (version 3, published code)",
    source: "google/bbr, branch v3",
    ecn: EcnUse::Classic,
    params: BbrParams::PARAMS,
    build: |params, setup| Ok(Box::new(Machine::new(BbrProfile::code(params), setup))),
    ..super::bbr1::SCHEME
};
