//! The rate of arrivals or departures, measured over consecutive windows of time.

use narrows_units::{Span, Time};

/// A rate in bit/s: that of the last complete window.
#[derive(Clone, Copy, Debug)]
pub struct RateMeter {
    window: Span,
    since: Time,
    bytes: u64,
    bps: f64,
}

impl RateMeter {
    /// A meter with windows of at least `window`, whose rate is `bps` until the first is complete.
    pub fn new(now: Time, window: Span, bps: f64) -> Self {
        RateMeter {
            window,
            since: now,
            bytes: 0,
            bps,
        }
    }

    /// Counts bytes.
    pub fn add(&mut self, bytes: u32) {
        self.bytes += u64::from(bytes);
    }

    /// Ends the window if it is long enough.
    pub fn update(&mut self, now: Time) {
        let span = now - self.since;
        if span >= self.window {
            self.bps = self.bytes as f64 * 8.0 / span.secs();
            (self.bytes, self.since) = (0, now);
        }
    }

    /// The rate in bit/s.
    pub fn bps(&self) -> f64 {
        self.bps
    }
}
