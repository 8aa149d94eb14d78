//! The minimum RTT over the last seconds.

use narrows_units::{Span, Time};

/// Minimum with a timestamp: a smaller sample replaces it, and once it is older than the window any sample does, even a
/// larger one.
#[derive(Clone, Copy, Debug)]
pub struct MinRtt {
    window: Span,
    min: Option<Span>,
    stamp: Time,
}

impl MinRtt {
    /// A filter without samples; its window starts at `now`.
    pub fn new(window: Span, now: Time) -> Self {
        MinRtt {
            window,
            min: None,
            stamp: now,
        }
    }

    /// The minimum; `None` before any sample.
    #[inline]
    pub fn get(&self) -> Option<Span> {
        self.min
    }

    /// When it was taken or confirmed.
    #[inline]
    pub fn stamp(&self) -> Time {
        self.stamp
    }

    /// True if it is older than the window.
    #[inline]
    pub fn expired(&self, now: Time) -> bool {
        now > self.stamp + self.window
    }

    /// Offers a sample; one delayed by the receiver cannot replace an old minimum. Returns whether it was taken.
    #[inline]
    pub fn offer(&mut self, now: Time, rtt: Span, delayed: bool) -> bool {
        let lower = self.min.is_none_or(|min| rtt < min);
        let taken = lower || (self.expired(now) && !delayed);
        if taken {
            self.min = Some(rtt);
            self.stamp = now;
        }
        taken
    }

    /// Adopts the minimum of a filter with a shorter window, if it is lower or this one is expired.
    #[inline]
    pub fn adopt(&mut self, now: Time, shorter: &MinRtt) {
        let lower = (shorter.min).is_some_and(|min| self.min.is_none_or(|own| min <= own));
        if lower || self.expired(now) {
            self.min = shorter.min;
            self.stamp = shorter.stamp;
        }
    }

    /// Renews the minimum, which was just measured with an empty queue.
    #[inline]
    pub fn confirm(&mut self, now: Time) {
        self.stamp = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_old_minimum_gives_way_to_any_sample_but_a_delayed_one() {
        let at = |s: u64| Time::from_ns(s * 1_000_000_000);
        let ms = Span::from_ms;
        let mut rtt = MinRtt::new(Span::from_ms(10_000), at(0));
        assert!(rtt.offer(at(1), ms(40), false));
        // An equal sample does not renew the minimum: it is probed again in due time.
        assert!(!rtt.offer(at(5), ms(40), false));
        assert!(!rtt.offer(at(11), ms(50), false));
        assert!(!rtt.expired(at(11)));
        assert!(!rtt.offer(at(12), ms(90), true));
        assert!(rtt.offer(at(12), ms(50), false));
        assert_eq!(rtt.get(), Some(ms(50)));
    }
}
