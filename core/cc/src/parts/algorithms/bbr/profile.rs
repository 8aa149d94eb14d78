//! The differences between the published code of BBR version 3 and the Internet-Draft, side by side.

use narrows_units::{Params, Span, params};

/// Rule for the largest burst.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantum {
    /// Bytes that the rate delivers in 2^-10 s, plus an allowance for short paths: 64 KiB, halved for each 2^9 us of
    /// the RTT (google/bbr, v3: bbr_tso_segs_generic).
    Linux,
    /// Bytes that the rate delivers in 1 ms, between two packets and 64 KiB (draft, SetSendQuantum).
    Draft,
}

params! {
    /// Configurable constants, with those of the code as defaults.
    #[derive(Copy)]
    pub struct BbrParams {
        /// Gain of the rate in STARTUP.
        startup_gain: Number(1.25..=10.0) = 2.7734375, "google/bbr v3, net/ipv4/tcp_bbr.c: bbr_startup_pacing_gain";
        /// Loss ratio above which a probe has too much in flight.
        loss_threshold: Ratio(0.001..=0.5) = 0.01953125, "google/bbr v3, net/ipv4/tcp_bbr.c: bbr_loss_thresh";
        /// Minimum fraction of the short-term bounds kept in a round with losses.
        beta: Ratio(0.1..=1.0) = 0.703125, "google/bbr v3, net/ipv4/tcp_bbr.c: 1 - bbr_beta";
        /// Fraction of the long-term bound left free while cruising.
        headroom: Ratio(0.0..=0.9) = 0.1484375, "google/bbr v3, net/ipv4/tcp_bbr.c: bbr_inflight_headroom";
        /// Time without a lower RTT after which PROBE_RTT begins.
        probe_rtt_interval: Span(1e8..=1e12) = "5 s", "google/bbr v3, net/ipv4/tcp_bbr.c: bbr_probe_rtt_win_ms";
        /// Time for which the minimum RTT is valid.
        min_rtt_window: Span(1e8..=1e12) = "10 s", "google/bbr v3, net/ipv4/tcp_bbr.c: bbr_min_rtt_win_sec";
    }
}

/// Constants and choices of one description of BBR version 3.
#[derive(Clone, Copy, Debug)]
pub struct BbrProfile {
    /// The configurable constants.
    pub params: BbrParams,
    /// Gain of the rate in DRAIN.
    pub drain_gain: f64,
    /// Rounds after which DRAIN ends even if the queue is not empty.
    pub drain_rounds: Option<u64>,
    /// Gain of the rate in PROBE_BW down.
    pub down_gain: f64,
    /// Gain of the window in PROBE_RTT, before the bound of half a bandwidth-delay product.
    pub probe_rtt_cwnd_gain: f64,
    /// True if growth of the bandwidth is checked at every acknowledgement, false if once per round.
    pub growth_at_any_ack: bool,
    /// True if the data in flight is evaluated at the next packet's departure, false if now.
    pub at_departure: bool,
    /// True if losses in STARTUP are counted by acknowledgements that report losses, false if by ranges of packets.
    pub count_loss_acks: bool,
    /// True if delivered packets, and not only lost ones, can show that a probe put too much in flight.
    pub judge_delivered: bool,
    /// True if the window at the beginning of a fast recovery is restored at its end, like after a
    /// timeout.
    pub restore_after_recovery: bool,
    /// True if a flow returns to its probe when the losses that ended it were spurious.
    pub resume_probe: bool,
    /// True if the bandwidth-delay product that bounds a reduction has room for bursts.
    pub target_with_budget: bool,
    /// True if a sample delayed by the receiver may replace an old minimum of the RTT.
    pub take_delayed_rtt: bool,
    /// Rounds for which aggregation is remembered: two slots of this length, or a window of it.
    pub aggregation_rounds: u64,
    /// Two slots (true) or a sliding window.
    pub aggregation_slots: bool,
    /// The allowance for aggregation is at most the amount that the bandwidth delivers in this time.
    pub aggregation_limit: Span,
    /// In STARTUP the window grows at least until it reaches this many initial windows (`Some`), or until one initial
    /// window has been delivered.
    pub startup_windows: Option<u64>,
    /// True if entering cruise or DRAIN, and timeouts, reset the short-term bounds as in the code.
    pub tidy_bounds: bool,
    /// Rule for bursts.
    pub quantum: Quantum,
    /// True if marks count on short paths.
    pub ecn: bool,
}

impl BbrProfile {
    /// google/bbr, branch v3, net/ipv4/tcp_bbr.c (2023).
    pub fn code(params: &Params) -> Self {
        BbrProfile {
            params: BbrParams::read(params),
            drain_gain: 88.0 / 256.0,
            drain_rounds: None,
            down_gain: 232.0 / 256.0,
            probe_rtt_cwnd_gain: 1.0,
            growth_at_any_ack: true,
            at_departure: true,
            count_loss_acks: true,
            judge_delivered: true,
            restore_after_recovery: false,
            resume_probe: false,
            target_with_budget: true,
            take_delayed_rtt: false,
            aggregation_rounds: 5,
            aggregation_slots: true,
            aggregation_limit: Span::from_ms(100),
            startup_windows: Some(2),
            tidy_bounds: true,
            quantum: Quantum::Linux,
            ecn: true,
        }
    }

    /// draft-ietf-ccwg-bbr, text of August 2026.
    pub fn draft(params: &Params) -> Self {
        BbrProfile {
            params: BbrParams::read(params),
            drain_gain: 0.5,
            drain_rounds: Some(3),
            down_gain: 0.90,
            probe_rtt_cwnd_gain: 0.5,
            growth_at_any_ack: false,
            at_departure: false,
            count_loss_acks: false,
            judge_delivered: false,
            restore_after_recovery: true,
            resume_probe: true,
            target_with_budget: false,
            take_delayed_rtt: true,
            aggregation_rounds: 10,
            aggregation_slots: false,
            aggregation_limit: Span::MAX,
            startup_windows: None,
            tidy_bounds: false,
            quantum: Quantum::Draft,
            ecn: false,
        }
    }
}
