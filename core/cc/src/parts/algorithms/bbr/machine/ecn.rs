//! The published code's reaction to marks, on paths so short that marks indicate shallow thresholds.

use super::{BbrMode, Machine};
use crate::AckEvent;
use narrows_units::{Bytes, Span};

/// Maximum minimum RTT at which marks count.
const MAX_RTT: Span = Span::from_ms(5);
/// Gain of the average fraction of marked data.
const ALPHA_GAIN: f64 = 1.0 / 16.0;
/// Share of the average by which the short-term bound is cut.
const FACTOR: f64 = 85.0 / 256.0;
/// Fraction of marked data above which too much is in flight.
const THRESHOLD: f64 = 0.5;
/// Consecutive rounds above it that end STARTUP.
const STARTUP_ROUNDS: u32 = 2;

/// Marked and delivered bytes of a round.
#[derive(Clone, Copy, Debug, Default)]
struct Marks {
    marked: u64,
    delivered: u64,
}

/// Marks and their average.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct BbrEcn {
    capable: bool,
    eligible: bool,
    alpha: f64,
    current: Marks,
    /// The previous round: a delivery-rate sample reaches back one round.
    last: Marks,
    startup_rounds: u32,
    in_round: bool,
    in_cycle: bool,
}

impl BbrEcn {
    pub(super) fn new(capable: bool) -> Self {
        BbrEcn {
            capable,
            // Starts high, to react at once to congestion from the beginning.
            alpha: 1.0,
            ..BbrEcn::default()
        }
    }

    fn take(&mut self, bytes: Bytes, marked: Bytes) {
        self.current.delivered += bytes.get();
        self.current.marked += marked.get();
        if self.eligible && marked > Bytes::ZERO {
            self.in_round = true;
            self.in_cycle = true;
        }
    }

    /// Ends a round; returns its fraction of marked data.
    fn end_round(&mut self) -> f64 {
        let Marks { marked, delivered } = self.current;
        if !self.eligible || delivered == 0 {
            return 0.0;
        }
        let share = marked as f64 / delivered as f64;
        self.alpha = (self.alpha + ALPHA_GAIN * (share - self.alpha)).min(1.0);
        self.last = self.current;
        self.current = Marks::default();
        share
    }

    /// Returns whether the round had marks, and clears that.
    pub(super) fn take_round(&mut self) -> bool {
        std::mem::take(&mut self.in_round)
    }

    /// The fraction of the short-term bound kept after a round with marks.
    pub(super) fn kept(&self) -> f64 {
        1.0 - self.alpha * FACTOR
    }

    /// True if the fraction of marked data in the last round trip exceeded the threshold.
    pub(super) fn too_high(&self) -> bool {
        let marked = self.current.marked + self.last.marked;
        let delivered = self.current.delivered + self.last.delivered;
        self.eligible && marked as f64 > THRESHOLD * delivered as f64
    }

    pub(super) fn marked_in_cycle(&self) -> bool {
        self.in_cycle
    }

    pub(super) fn reset_cycle(&mut self) {
        self.in_round = false;
        self.in_cycle = false;
    }
}

impl Machine {
    /// Share of the long-term bound by which it grows in the first round of a probe after marks.
    pub(super) const ECN_REPROBE: f64 = 0.5;

    pub(super) fn update_ecn(&mut self, ack: &AckEvent<'_>) {
        if !self.ecn.capable {
            return;
        }
        self.ecn.eligible |= self.min_rtt.get().is_some_and(|rtt| rtt <= MAX_RTT);
        if self.flow.round_start {
            let high = self.ecn.end_round() >= THRESHOLD;
            self.ecn.startup_rounds = if high { self.ecn.startup_rounds + 1 } else { 0 };
            if self.mode == BbrMode::Startup && self.ecn.startup_rounds >= STARTUP_ROUNDS {
                self.leave_startup();
            }
        }
        self.ecn.take(ack.bytes, ack.ce_bytes);
    }
}
