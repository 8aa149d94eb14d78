//! The estimate: the minimum of the delay-based and the loss-based rate.

use super::acked::Acked;
use super::aimd::Aimd;
use super::groups::PacketGroups;
use super::loss::LossRate;
use super::trend::{Trend, Usage};
use super::GccSettings;
use narrows_units::{Span, Time};

/// After this silence (ms) the trend is reset.
const SILENCE: f64 = 2000.0;

/// Losses of one report, and its arrival time.
#[derive(Clone, Copy, Debug)]
pub(super) struct LossTally {
    pub(super) now: Time,
    pub(super) expected: u64,
    pub(super) lost: u64,
    pub(super) rtt: Span,
    /// Result of a probe in bit/s.
    pub(super) probe: Option<f64>,
}

#[derive(Clone, Debug)]
pub(super) struct Controller {
    groups: PacketGroups,
    trend: Trend,
    acked: Acked,
    delay: Aimd,
    loss: LossRate,
    newest: Option<f64>,
}

impl Controller {
    pub(super) fn new(settings: &GccSettings) -> Self {
        let (start, min, max) = (settings.start_bps, settings.min_bps, settings.max_bps);
        Controller {
            groups: PacketGroups::default(),
            trend: Trend::default(),
            acked: Acked::new(),
            delay: Aimd::new(start, min, max),
            loss: LossRate::new(start, min, max),
            newest: None,
        }
    }

    /// In bit/s.
    pub(super) fn target(&self) -> f64 {
        self.delay.bps().min(self.loss.bps())
    }

    /// The arrival rate, in bit/s.
    pub(super) fn acked_bps(&self) -> Option<f64> {
        self.acked.bps()
    }

    /// Modified trend and threshold in ms, and the loss ratio.
    pub(super) fn values(&self) -> (f64, f64, f64) {
        let (trend, threshold) = self.trend.values();
        (trend, threshold, self.loss.share())
    }

    pub(super) fn mode(&self) -> &'static str {
        match self.trend.usage() {
            Usage::Normal => "normal",
            Usage::Under => "underuse",
            Usage::Over => "overuse",
        }
    }

    /// Handles the report of a packet of `bytes` (with RTP's header), sent at `sent` ms, that arrived at `arrived` ms.
    pub(super) fn arrived(&mut self, sent: f64, arrived: f64, bytes: f64) {
        if self.newest.is_some_and(|newest| arrived - newest > SILENCE) {
            self.groups = PacketGroups::default();
            self.trend = Trend::default();
        }
        self.newest = Some(self.newest.map_or(arrived, |newest| newest.max(arrived)));
        self.acked.update(arrived, bytes);
        if let Some(deltas) = self.groups.push(sent, arrived) {
            self.trend.update(&deltas, arrived);
        }
    }

    /// Handles the end of a report.
    pub(super) fn reported(&mut self, tally: &LossTally) {
        match tally.probe {
            Some(bps) if self.trend.usage() != Usage::Over => {
                self.delay.set(tally.now, bps);
                self.loss.set(bps);
            }
            _ => self.delay.update(tally.now, self.trend.usage(), self.acked.bps(), tally.rtt),
        }
        let bps = self.delay.bps();
        self.loss.update(tally.now, tally.expected, tally.lost, tally.rtt, bps);
    }
}
