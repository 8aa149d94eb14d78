//! Servers that move packets at single instants, like the slots of a radio link: the common part of
//! traces of delivery opportunities and Poisson links.
//!
//! An opportunity moves a fixed number of bytes. Several small packets may share one and a packet
//! may need several; capacity not used at that instant is lost.

use crate::RateServer;
use narrows_units::{Bytes, Rate, Span, Time};

/// The instants at which packets can be moved.
pub(crate) trait Opportunities: Send {
    /// The first opportunity at or after `at` that has not been taken; [`Time::FAR`] if none is
    /// left. Earlier ones are discarded.
    fn peek(&mut self, at: Time) -> Time;
    /// Takes the opportunity that `peek` has just returned.
    fn take(&mut self);
    /// Number of opportunities from `from` until just before `to`, taken or not.
    fn count(&self, from: Time, to: Time) -> u64;
    /// The rate at `at` in opportunities per second, for plots.
    fn frequency(&self, at: Time) -> f64;
}

/// Serves packets by opportunities of `size` bytes.
pub(crate) struct ByOpportunity<O> {
    source: O,
    size: u32,
    /// Remaining bytes of the opportunities taken at `at`, for packets served at the same instant.
    left: u32,
    at: Time,
    /// Bytes of the packet in service that were moved at the instant at which it began.
    first: u32,
}

impl<O: Opportunities> ByOpportunity<O> {
    pub(crate) fn new(source: O, size: u32) -> Self {
        ByOpportunity {
            source,
            size,
            left: 0,
            at: Time::ZERO,
            first: 0,
        }
    }
}

impl<O: Opportunities> RateServer for ByOpportunity<O> {
    fn serve(&mut self, now: Time, bytes: u32) -> Time {
        if self.at < now {
            self.left = 0;
        }
        let mut wanted = bytes;
        let mut end = now;
        self.first = 0;
        loop {
            let got = wanted.min(self.left);
            self.left -= got;
            wanted -= got;
            if end == now {
                self.first += got;
            }
            if wanted == 0 {
                return end;
            }
            self.at = self.source.peek(end);
            if self.at == Time::FAR {
                return Time::FAR;
            }
            self.source.take();
            self.left = self.size;
            end = self.at;
        }
    }

    fn rest(&mut self) {}

    fn is_slotted(&self) -> bool {
        true
    }

    fn next_slot(&mut self, now: Time) -> Time {
        if self.left > 0 && self.at == now {
            now
        } else {
            self.source.peek(now)
        }
    }

    fn served(&self, began: Time, now: Time) -> Bytes {
        let later = self.capacity(began + Span::from_ns(1), now);
        Bytes::new(later.get().saturating_add(u64::from(self.first)))
    }

    fn capacity(&self, from: Time, to: Time) -> Bytes {
        let count = self.source.count(from, to);
        Bytes::new(count.saturating_mul(u64::from(self.size)))
    }

    fn rate(&self, now: Time) -> Rate {
        Rate::from_bps((self.source.frequency(now) * f64::from(self.size) * 8.0).round() as u64)
    }
}
