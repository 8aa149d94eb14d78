//! The congestion window: RFC 8298, section 4.1.2, in the repository's form.

use super::ScreamSettings;
use super::delay::Delay;
use narrows_units::{Span, Time};

/// Initial value of the largest packet, which is measured anew each second.
const MSS: f64 = 100.0;
const SECOND: Span = Span::from_ms(1000);
/// Length of the history of bytes in flight, in seconds.
const SECONDS: usize = 5;
/// The window is validated once more than this many bytes were in flight.
const VALIDATE_ABOVE: f64 = 5000.0;
/// RFC 8298: MAX_BYTES_IN_FLIGHT_HEAD_ROOM.
const HEAD_ROOM: f64 = 1.1;
/// RFC 8298: QDELAY_TREND_TH and QDELAY_TREND_LO.
const TREND: f64 = 0.2;
/// RFC 8298: T_RESUME_FAST_INCREASE.
const RESUME: Span = Span::from_ms(5000);
/// RTTs below this are too short for a window: the rate decides.
const SHORT_RTT: f64 = 0.01;
const SLOW_BPS: f64 = 100e3;

/// Events between two reports.
#[derive(Clone, Copy, Debug)]
pub(super) struct ScreamWindowStep {
    pub(super) now: Time,
    /// Bytes acknowledged, including lost ones.
    pub(super) newly: f64,
    pub(super) in_flight: f64,
    /// The larger of sent and acknowledged rate in bit/s.
    pub(super) bps: f64,
    /// Smoothed round-trip time in seconds.
    pub(super) rtt: f64,
    /// A loss event.
    pub(super) loss: bool,
}

/// The highest and mean amounts in flight of the last seconds.
#[derive(Clone, Debug, Default)]
struct BytesInFlight {
    since: Time,
    highest: [f64; SECONDS],
    mean: [f64; SECONDS],
    newest: usize,
    most: f64,
    sum: f64,
    count: u32,
}

impl BytesInFlight {
    fn note(&mut self, now: Time, in_flight: f64) {
        if now - self.since >= SECOND {
            self.highest[self.newest] = self.most;
            self.mean[self.newest] = self.sum / f64::from(self.count.max(1));
            self.newest = (self.newest + 1) % SECONDS;
            (self.most, self.sum, self.count, self.since) = (0.0, 0.0, 0, now);
        }
        self.most = self.most.max(in_flight);
        self.sum += in_flight;
        self.count += 1;
    }

    /// Between the highest and the mean, by the trend.
    fn most(&self, trend: f64) -> f64 {
        let largest = |list: &[f64]| list.iter().copied().fold(0.0, f64::max);
        let high = largest(&self.highest).max(self.most);
        let mean = largest(&self.mean).max(self.sum / f64::from(self.count.max(1)));
        high * (1.0 - trend) + mean * trend
    }
}

#[derive(Clone, Debug)]
pub(super) struct ScreamWindow {
    /// Bytes.
    cwnd: f64,
    mss: f64,
    least: f64,
    mss_since: Time,
    fast: bool,
    congested: Time,
    flight: BytesInFlight,
    reported: Time,
}

impl ScreamWindow {
    pub(super) fn new(now: Time, settings: &ScreamSettings) -> Self {
        let least = settings.min_cwnd.max(2.0 * MSS);
        ScreamWindow {
            cwnd: least,
            mss: MSS,
            least,
            mss_since: now,
            fast: true,
            congested: now,
            flight: BytesInFlight { since: now, ..BytesInFlight::default() },
            reported: now,
        }
    }

    pub(super) fn bytes(&self) -> f64 {
        self.cwnd
    }

    pub(super) fn mss(&self) -> f64 {
        self.mss
    }

    pub(super) fn is_fast(&self) -> bool {
        self.fast
    }

    /// A packet of `size` bytes is sent: the window holds at least two of the largest.
    pub(super) fn sent(&mut self, now: Time, size: f64, in_flight: f64, settings: &ScreamSettings) {
        if now - self.mss_since > SECOND {
            self.mss_since = now;
            self.mss = MSS;
            self.least = settings.min_cwnd.max(3.0 * MSS);
        }
        self.mss = self.mss.max(size);
        self.least = self.least.max(2.0 * self.mss);
        self.cwnd = self.cwnd.max(self.least);
        self.flight.note(now, in_flight);
    }

    /// Handles a report. Returns the fraction by which the window was reduced because of its delay (0 if it was not).
    pub(super) fn report(&mut self, step: &ScreamWindowStep, delay: &Delay, settings: &ScreamSettings) -> f64 {
        let span = (step.now - self.reported).secs();
        self.reported = step.now;
        let limited = if step.bps > SLOW_BPS {
            step.newly.min(1.25 * step.bps * span / 8.0)
        } else {
            step.newly.min(2.0 * self.mss)
        };
        let above = delay.queueing() > settings.target;
        if step.loss || above || delay.trend() > TREND {
            self.congested = step.now;
        }
        let mut fallen = 0.0;
        if step.loss {
            self.cwnd = (settings.params.beta_loss * self.cwnd).max(self.least);
            self.fast = false;
        } else if self.fast {
            if delay.trend() >= TREND {
                self.fast = false;
            } else if 1.5 * step.in_flight + step.newly > self.cwnd {
                self.cwnd += limited;
            }
        } else {
            let off = (settings.target - delay.queueing()) / settings.target;
            let change = self.change(off, limited, step, settings);
            if change < 0.0 {
                fallen = -change / self.cwnd;
            }
            self.cwnd += change;
            self.fast = step.now - self.congested >= RESUME;
        }
        self.validate(step, delay.trend());
        fallen
    }

    /// Change of the window for a distance `off` from the target delay (in targets), in bytes.
    pub(super) fn change(&self, off: f64, limited: f64, step: &ScreamWindowStep, settings: &ScreamSettings) -> f64 {
        if off > 0.0 {
            if 1.2 * step.in_flight + step.newly <= self.cwnd {
                return 0.0;
            }
            (settings.params.gain_up * off * limited * self.mss / self.cwnd).round()
        } else {
            let fall = (settings.params.gain_down * -off * step.newly * self.mss / self.cwnd).trunc();
            -fall.min(self.cwnd / 4.0)
        }
    }

    /// Keeps the window near the amount actually in flight.
    fn validate(&mut self, step: &ScreamWindowStep, trend: f64) {
        let most = HEAD_ROOM * self.flight.most(trend);
        if most > VALIDATE_ABOVE {
            self.cwnd = self.cwnd.min(most);
        }
        if step.rtt < SHORT_RTT && trend < 0.1 {
            self.cwnd = self.cwnd.max((step.bps * SHORT_RTT / 8.0).max(1.5 * most));
        }
        self.cwnd = self.cwnd.max(self.least);
    }

    /// The pacing interval while a queue exists in the network (in seconds); none otherwise.
    pub(super) fn pacing(&self, rtt: f64, delay: &Delay) -> f64 {
        if delay.average() <= 0.1 || rtt <= 0.0 {
            return 0.0;
        }
        let bps = 1.5 * (self.cwnd * 8.0 / rtt).max(5e3);
        self.mss * 8.0 / bps
    }

    #[cfg(test)]
    pub(super) fn set(&mut self, cwnd: f64, mss: f64) {
        (self.cwnd, self.mss) = (cwnd, mss);
    }
}
