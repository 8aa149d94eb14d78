//! Delivery-rate samples (draft-cheng-iccrg-delivery-rate-estimation).

use crate::sent_packets::SentPacket;
use narrows_cc::RateSample;
use narrows_units::{Bytes, Rate, Span, Time};

/// Connection state of the estimator.
#[derive(Clone, Debug, Default)]
pub(crate) struct RateEstimator {
    /// Bytes delivered so far, and when the last of them was.
    pub(crate) delivered: u64,
    pub(crate) delivered_at: Time,
    /// Send time of the packet most recently found delivered: the start of the flight.
    pub(crate) first_sent_at: Time,
    /// Bytes found lost so far.
    pub(crate) lost: u64,
    /// Value of `delivered` up to which samples count as application-limited; 0 for none.
    app_limited_until: u64,
}

impl RateEstimator {
    /// True if packets sent now are limited by the application.
    #[inline]
    pub(crate) fn is_app_limited(&self) -> bool {
        self.app_limited_until > 0
    }

    /// Marks the connection as application-limited: the window is open but there is nothing to send.
    #[inline]
    pub(crate) fn set_app_limited(&mut self, in_flight: u64) {
        self.app_limited_until = (self.delivered + in_flight).max(1);
    }

    /// `bytes` in flight were lost: the application-limited phase ends that much earlier. (Linux and the draft wait for
    /// as many other bytes, which after a blackout takes as long as the retransmissions.)
    #[inline]
    pub(crate) fn on_lost(&mut self, bytes: u64) {
        self.lost += bytes;
        if self.app_limited_until > 0 {
            self.app_limited_until = self.app_limited_until.saturating_sub(bytes).max(1);
        }
    }

    /// A packet is about to be sent; `idle` if nothing is in flight.
    #[inline]
    pub(crate) fn on_send(&mut self, now: Time, idle: bool) {
        if idle {
            self.first_sent_at = now;
            self.delivered_at = now;
        }
    }

    /// `bytes` were found delivered at `now`.
    #[inline]
    pub(crate) fn on_delivered(&mut self, now: Time, bytes: u64) {
        self.delivered += bytes;
        self.delivered_at = now;
        if self.app_limited_until > 0 && self.delivered > self.app_limited_until {
            self.app_limited_until = 0;
        }
    }

    /// The sample for `newest`, the most recently sent of the packets just delivered. `None` when the interval is
    /// shorter than the minimum RTT, which is impossible for a real interval.
    #[inline]
    pub(crate) fn sample(&mut self, newest: &SentPacket, min_rtt: Span) -> Option<RateSample> {
        self.first_sent_at = newest.sent_at;
        let send_elapsed = newest.sent_at.since(newest.first_sent_at);
        let ack_elapsed = self.delivered_at.since(newest.delivered_at);
        let interval = send_elapsed.max(ack_elapsed);
        if interval.is_zero() || interval < min_rtt {
            return None;
        }
        let delivered = Bytes::new(self.delivered - newest.delivered);
        Some(RateSample {
            rate: Rate::of(delivered, interval),
            delivered,
            interval,
            app_limited: newest.app_limited,
            prior_delivered: Bytes::new(newest.delivered),
            in_flight_at_send: Bytes::new(newest.in_flight),
            lost: Bytes::new(self.lost - newest.lost_before),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sent_packets::PacketState;

    fn ms(ms: u64) -> Time {
        Time::from_ns(ms * 1_000_000)
    }

    fn sent(at: u64, first_sent_at: u64, delivered_at: u64, delivered: u64) -> SentPacket {
        SentPacket {
            offset: 0,
            sent_at: ms(at),
            delivered,
            delivered_at: ms(delivered_at),
            first_sent_at: ms(first_sent_at),
            length_bytes: 1000,
            state: PacketState::Acked,
            retransmission: false,
            app_limited: false,
            lost_in_epoch: 0,
            in_flight: 1000,
            lost_before: 0,
        }
    }

    fn rate(send_ms: u64, ack_ms: u64) -> u64 {
        let mut estimator = RateEstimator {
            delivered_at: ms(100),
            ..Default::default()
        };
        estimator.delivered = 10_000;
        let newest = sent(50 + send_ms, 50, 100 - ack_ms, 0);
        estimator
            .sample(&newest, Span::from_ms(1))
            .unwrap()
            .rate
            .bps()
            / 8000
    }

    #[test]
    fn the_longer_interval_rules() {
        assert_eq!(rate(8, 10), 1000);
        // Acknowledgements were compressed: the send rate is the correct one.
        assert_eq!(rate(8, 2), 1250);
    }

    #[test]
    fn one_packet_per_round_trip() {
        let mut estimator = RateEstimator::default();
        estimator.on_send(ms(0), true);
        estimator.set_app_limited(0);
        let mut packet = sent(0, 0, 0, 0);
        packet.app_limited = estimator.is_app_limited();
        estimator.on_delivered(ms(40), 1000);
        let sample = estimator.sample(&packet, Span::from_ms(40)).unwrap();
        assert_eq!(sample.rate.bps(), 25 * 8000);
        assert!(sample.app_limited);
        assert!(!estimator.is_app_limited());
    }

    // draft-cheng-iccrg-delivery-rate-estimation, section 3.4: the mark stays until the data then in flight has been
    // delivered.
    #[test]
    fn the_application_limits_until_its_flight_is_delivered() {
        let mut estimator = RateEstimator::default();
        estimator.on_send(ms(0), true);
        estimator.set_app_limited(3000);
        for (at, limited) in [(40, true), (41, true), (42, true), (43, false)] {
            estimator.on_delivered(ms(at), 1000);
            assert_eq!(estimator.is_app_limited(), limited, "{at} ms");
        }
    }

    #[test]
    fn what_is_lost_of_that_flight_is_not_waited_for() {
        let mut estimator = RateEstimator::default();
        estimator.on_send(ms(0), true);
        estimator.set_app_limited(3000);
        estimator.on_lost(2000);
        for (at, limited) in [(40, true), (41, false)] {
            estimator.on_delivered(ms(at), 1000);
            assert_eq!(estimator.is_app_limited(), limited, "{at} ms");
        }
        // More than that: until the next arrival.
        estimator.set_app_limited(3000);
        estimator.on_lost(10_000);
        assert!(estimator.is_app_limited());
        estimator.on_delivered(ms(42), 1000);
        assert!(!estimator.is_app_limited());
    }

    #[test]
    fn too_short_an_interval_gives_no_sample() {
        let mut estimator = RateEstimator {
            delivered_at: ms(100),
            ..Default::default()
        };
        estimator.delivered = 10_000;
        assert_eq!(
            estimator.sample(&sent(55, 50, 98, 0), Span::from_ms(40)),
            None
        );
    }
}
