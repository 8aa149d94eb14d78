//! The departure time of the next packet, and the data in flight then.

use narrows_units::{Bytes, Rate, Span, Time};

/// The earliest departure time of the next packet of a paced sender. The data in flight is evaluated at that time, when
/// some of it will have been delivered.
#[derive(Clone, Copy, Debug, Default)]
pub struct Departures {
    next: Time,
}

impl Departures {
    /// `bytes` are sent at `now` at `rate`.
    #[inline]
    pub fn sent(&mut self, now: Time, bytes: Bytes, rate: Rate) {
        self.next = self.next.max(now) + rate.time_for(bytes);
    }

    /// Time until the next departure.
    #[inline]
    pub fn wait(&self, now: Time) -> Span {
        self.next.since(now)
    }

    /// Bytes of `in_flight` that will be in flight at the next departure, if the path delivers
    /// `bandwidth` until then.
    #[inline]
    pub fn in_flight_then(&self, now: Time, in_flight: f64, bandwidth: f64) -> f64 {
        (in_flight - bandwidth * self.wait(now).secs()).max(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_delivered_until_the_next_departure_is_not_in_flight_then() {
        let at = Time::from_ns(5_000_000);
        let mut departures = Departures::default();
        // 1000 bytes at 1 byte/us: the next one leaves 1 ms later.
        departures.sent(at, Bytes::new(1000), Rate::from_bps(8_000_000));
        assert_eq!(departures.wait(at), Span::from_ms(1));
        assert_eq!(departures.in_flight_then(at, 5000.0, 2e6), 3000.0);
        assert_eq!(departures.in_flight_then(at, 1500.0, 2e6), 0.0);
    }
}
