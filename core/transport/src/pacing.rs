//! Pacing with a bounded burst.

use narrows_units::{Bytes, Rate, Span, Time};

/// Spreads packets at a rate. A sender that was held up may catch up by one burst, not more.
#[derive(Clone, Debug)]
pub(crate) struct Pacer {
    /// When the next packet is due at the current rate.
    due: Time,
    burst: Span,
    min_burst: Bytes,
}

impl Pacer {
    /// A pacer whose bursts last `burst` at the rate, but never less than `min_burst` bytes.
    pub(crate) fn new(burst: Span, min_burst: Bytes) -> Self {
        Pacer {
            due: Time::ZERO,
            burst,
            min_burst,
        }
    }

    /// When the next packet may be sent.
    #[inline]
    pub(crate) fn due(&self) -> Time {
        self.due
    }

    /// `bytes` are sent at `now` while `rate` is in force; `quantum` is the scheme's own burst.
    #[inline]
    pub(crate) fn sent(&mut self, now: Time, bytes: Bytes, rate: Rate, quantum: Option<Bytes>) {
        // What may be sent at once: a burst, less the packet whose time is being used up.
        let burst = match quantum {
            Some(quantum) => rate.time_for(quantum),
            None => self.burst.max(rate.time_for(self.min_burst)),
        }
        .saturating_sub(rate.time_for(bytes));
        self.due = self.due.max(now - burst) + rate.time_for(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: Rate = Rate::from_bps(8_000_000); // 1 byte per microsecond

    fn send_all(pacer: &mut Pacer, now: Time) -> u32 {
        let mut count = 0;
        while pacer.due() <= now {
            pacer.sent(now, Bytes::new(1000), RATE, None);
            count += 1;
        }
        count
    }

    #[test]
    fn the_first_packets_are_one_burst_and_then_the_rate_holds() {
        let mut pacer = Pacer::new(Span::ZERO, Bytes::new(2000));
        let start = Time::from_ns(50_000_000);
        assert_eq!(send_all(&mut pacer, start), 2);
        let mut count = 0;
        for us in 1..=100_000u64 {
            count += send_all(&mut pacer, start + Span::from_us(us));
        }
        assert_eq!(count, 100);
    }

    #[test]
    fn a_pause_is_not_made_up_for() {
        let mut pacer = Pacer::new(Span::from_ms(5), Bytes::new(2000));
        send_all(&mut pacer, Time::from_ns(1_000_000_000));
        assert_eq!(send_all(&mut pacer, Time::from_ns(9_000_000_000)), 5);
    }
}
