//! The encoder's target: RFC 8298, section 4.1.3, in the repository's form.

use super::ScreamSettings;
use super::meter::Meter;
use narrows_units::{Span, Time};

/// RFC 8298: RATE_ADJUST_INTERVAL.
const INTERVAL: Span = Span::from_ms(200);
/// The rate before congestion is noted at most this often.
const NOTE_APART: Span = Span::from_ms(2000);
/// Sender queue above which the target no longer rises, in bits.
const QUEUE_BITS: f64 = 12_000.0;
/// Sender queue above which fast start is disabled, in seconds.
const QUEUE_TIME: f64 = 0.1;
const SMALL_BPS: f64 = 50e3;

/// State of the rest of the sender.
#[derive(Clone, Copy, Debug)]
pub(super) struct RateControlState {
    pub(super) now: Time,
    /// Bits queued in the sender.
    pub(super) queue_bits: f64,
    pub(super) fast: bool,
    pub(super) trend: f64,
}

#[derive(Clone, Debug)]
pub(super) struct RateControl {
    target: f64,
    scale: f64,
    /// Targets before the last congestions, newest last.
    before: [f64; 3],
    noted: Option<Time>,
    was_fast: bool,
    /// Time of the last adjustment; `None` before the first report.
    adjusted: Option<Time>,
    queue_average: f64,
    pub(super) sent: Meter,
    pub(super) acked: Meter,
    pub(super) coded: Meter,
}

impl RateControl {
    pub(super) fn new(now: Time, settings: &ScreamSettings) -> Self {
        RateControl {
            target: settings.start_bps,
            scale: 1.0,
            before: [0.0; 3],
            noted: None,
            was_fast: true,
            adjusted: None,
            queue_average: 0.0,
            sent: Meter::new(now),
            acked: Meter::new(now),
            coded: Meter::new(now),
        }
    }

    /// The target in bit/s.
    pub(super) fn target(&self) -> f64 {
        self.target
    }

    /// Target of the encoder in bit/s: corrected for encoders that produce too much or too little.
    pub(super) fn told(&self) -> f64 {
        self.target * self.scale
    }

    /// The larger of sent and acknowledged rate in bit/s.
    pub(super) fn bps(&self) -> f64 {
        self.sent.bps().max(self.acked.bps())
    }

    pub(super) fn meter(&mut self, now: Time) {
        self.sent.update(now);
        self.acked.update(now);
        self.coded.update(now);
    }

    /// Handles a report. Before the first one nothing is known about the path: data waiting for the small first window
    /// does not count against the target.
    pub(super) fn reported(&mut self, now: Time) {
        self.adjusted.get_or_insert(now);
    }

    /// Handles a loss event.
    pub(super) fn loss(&mut self, now: Time, settings: &ScreamSettings) {
        self.note(now);
        self.target = (settings.params.beta_rate * self.target).max(settings.min_bps);
    }

    /// The window was reduced by the fraction `share` because of its delay.
    pub(super) fn fallen(&mut self, share: f64, settings: &ScreamSettings) {
        if self.bps() < 100e3 {
            self.target = (self.target * (1.0 - share)).max(settings.min_bps);
        }
    }

    fn note(&mut self, now: Time) {
        if self.noted.is_none_or(|noted| now - noted > NOTE_APART) {
            self.noted = Some(now);
            self.before.rotate_left(1);
            self.before[2] = self.target;
        }
    }

    /// Approaches 0.2 near the rate of the last congestion, 1 far from it.
    fn near(&self) -> f64 {
        let highest = self.before.iter().copied().fold(0.0, f64::max);
        if highest <= 0.0 {
            return 1.0;
        }
        (4.0 * (self.target - highest) / highest).powi(2).clamp(0.2, 1.0)
    }

    /// A frame was encoded.
    pub(super) fn frame(&mut self, state: &RateControlState, settings: &ScreamSettings) {
        self.queue_average += 0.5 * (state.queue_bits - self.queue_average);
        if self.adjusted.is_none_or(|then| state.now - then < INTERVAL) {
            return;
        }
        self.adjusted = Some(state.now);
        let bps = self.bps();
        if bps <= 0.0 {
            return;
        }
        let most = INTERVAL.secs() * settings.ramp_up.min(self.target / 2.0);
        let may_rise = self.target <= 1.5 * bps;
        if state.fast && state.queue_bits < QUEUE_TIME * bps {
            self.was_fast = true;
            self.target += if may_rise { most * self.near() } else { 0.0 };
        } else {
            if std::mem::replace(&mut self.was_fast, false) {
                self.note(state.now);
            }
            self.target += self.increment(state, bps, most, may_rise, settings);
        }
        self.target = self.target.clamp(settings.min_bps, settings.max_bps);
        let coded = self.coded.bps();
        if coded > 0.0 {
            self.scale += 0.05 * (self.target / coded - self.scale);
            self.scale = self.scale.clamp(0.8, 1.25);
        }
    }

    fn increment(&self, state: &RateControlState, bps: f64, most: f64, may_rise: bool, settings: &ScreamSettings) -> f64 {
        let more = 1.0 + 0.05 * (SMALL_BPS / self.target).min(1.0);
        let queue = settings.params.queue_factor * self.queue_average;
        let change = more * bps * (1.0 - settings.params.guard * state.trend) - queue - self.target;
        if change > 0.0 {
            if state.queue_bits > QUEUE_BITS || !may_rise {
                return 0.0;
            }
            return (change * self.near()).min(most);
        }
        // An encoder far off its target says nothing about the network.
        let coded = self.coded.bps();
        if coded < 0.8 * self.target || coded > 2.0 * self.target {
            0.0
        } else {
            change
        }
    }
}
