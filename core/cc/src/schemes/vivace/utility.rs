//! Vivace's utility and its inputs.

use super::{UtilityForm, VivaceParams};
use crate::parts::gradient::{Counted, LOSS_COEFFICIENT, even_hundredths, loss_weight, worth};
use crate::parts::monitor_interval::IntervalReport;

impl VivaceParams {
    /// The utility of a rate in Mibit/s, a loss ratio and a slope.
    pub(super) fn utility_of(&self, rate: f64, loss: f64, slope: f64) -> f64 {
        let (weight, slope) = match self.utility {
            UtilityForm::Paper => (LOSS_COEFFICIENT, slope.max(0.0)),
            UtilityForm::Shipped => (loss_weight(loss), even_hundredths(slope)),
        };
        worth(rate, weight, loss) - self.latency_coefficient * rate * slope
    }
}

/// Result of an interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct VivaceResult {
    /// Target rate in Mbit/s.
    pub(super) rate: f64,
    /// Measured rate in Mibit/s.
    pub(super) sent: f64,
    pub(super) packets: u64,
    pub(super) lost: u64,
    pub(super) slope: f64,
}

impl VivaceResult {
    pub(super) fn new(report: &IntervalReport, counted: Counted) -> Self {
        // With a coarse clock an interval may have zero duration.
        let seconds = report.elapsed.secs();
        let bytes = counted.bytes(report.bytes, report.packets);
        let sent = if seconds > 0.0 { bytes * 8.0 / seconds } else { report.rate * 1e6 };
        VivaceResult {
            rate: report.rate,
            sent: sent / 1_048_576.0,
            packets: report.packets,
            lost: report.lost,
            slope: report.slope,
        }
    }

    pub(super) fn loss(&self) -> f64 {
        self.lost as f64 / self.packets as f64
    }
}
