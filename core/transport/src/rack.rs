//! Loss detection by packet and time threshold (RFC 8985, RACK).
//!
//! Packet numbers are never reused, so the order of numbers is the order of transmission, and a retransmission is
//! treated like any other packet.

use narrows_units::{Span, Time};

/// Recoveries without spurious loss after which the reordering window shrinks again (RFC 8985).
const REO_WND_PERSIST: u32 = 16;

/// Loss detection by time (RFC 8985) and by packet threshold.
#[derive(Clone, Debug)]
pub(crate) struct Rack {
    /// Packet threshold (Linux: reordering): current, minimum and maximum.
    reordering: u64,
    min_reordering: u64,
    max_reordering: u64,
    reordering_seen: bool,
    /// RACK.reo_wnd_mult: the reordering window in quarters of the smallest RTT.
    reo_wnd_mult: u64,
    /// RACK.reo_wnd_persist: recoveries left until the window goes back to a quarter.
    reo_wnd_persist: u32,
    /// Newest packet known to be delivered (RFC 8985: RACK.xmit_ts).
    newest_delivered: Option<u64>,
    /// RTT of the most recently delivered packet, whether the newest or a late one (RFC 8985: RACK.rtt).
    latest_rtt: Span,
}

impl Rack {
    /// A detector whose packet threshold starts at `min_reordering` and rises to at most `max_reordering`.
    pub(crate) fn new(least: u64, most: u64) -> Self {
        Rack {
            reordering: least,
            min_reordering: least,
            max_reordering: most.max(least),
            reordering_seen: false,
            reo_wnd_mult: 1,
            reo_wnd_persist: 0,
            newest_delivered: None,
            latest_rtt: Span::ZERO,
        }
    }

    /// Number of the newest packet known to be delivered.
    #[inline]
    pub(crate) fn newest_delivered(&self) -> Option<u64> {
        self.newest_delivered
    }

    /// Packet `number` was delivered after this RTT: the newest of those reported by an acknowledgement.
    #[inline]
    pub(crate) fn on_delivered(&mut self, number: u64, rtt: Span) {
        self.newest_delivered = self.newest_delivered.max(Some(number));
        self.latest_rtt = rtt;
    }

    /// A packet arrived later than one sent after it: from now on only time decides.
    pub(crate) fn on_reordering(&mut self) {
        self.reordering_seen = true;
    }

    /// Data that was never retransmitted arrived after data up to `distance` packets ahead of it: the threshold becomes
    /// at least that (Linux, tcp_check_sack_reordering).
    pub(crate) fn raise_reordering(&mut self, distance: u64) {
        self.reordering = self.reordering.max(distance.min(self.max_reordering));
    }

    /// Without selective acknowledgements: packets appear to be reordered by `distance`.
    pub(crate) fn set_reordering(&mut self, distance: u64) {
        self.reordering = distance.min(self.max_reordering);
    }

    /// A timeout although `arrived` later packets have arrived and none was declared lost: the threshold was too high
    /// (Linux, tcp_enter_loss).
    pub(crate) fn on_missed_loss(&mut self, arrived: u64) {
        if arrived >= self.min_reordering {
            self.reordering = self.reordering.min(self.min_reordering);
        }
    }

    /// The packet threshold (RFC 6675: DupThresh).
    #[inline]
    pub(crate) fn dup_thresh(&self) -> u64 {
        self.reordering
    }

    /// True if the path reorders so much that deliveries in any order count as progress (Linux, tcp_may_raise_cwnd).
    #[inline]
    pub(crate) fn reorders(&self) -> bool {
        self.reordering > self.min_reordering
    }

    /// A packet declared lost arrived after all: widens the reordering window. Called at most once per round trip.
    pub(crate) fn on_spurious(&mut self) {
        self.reo_wnd_mult += 1;
        self.reo_wnd_persist = REO_WND_PERSIST;
    }

    /// A recovery has ended.
    pub(crate) fn on_recovery_exit(&mut self) {
        if self.reo_wnd_persist > 0 {
            self.reo_wnd_persist -= 1;
            if self.reo_wnd_persist == 0 {
                self.reo_wnd_mult = 1;
            }
        }
    }

    /// RACK.reo_wnd, the time by which a packet may be late: zero while no reordering has been seen and either a
    /// recovery is in progress or `overtaken` later packets, at least the threshold, have arrived.
    pub(crate) fn reordering_window(
        &self,
        min_rtt: Span,
        smoothed_rtt: Span,
        in_recovery: bool,
        overtaken: u64,
    ) -> Span {
        if !self.reordering_seen && (in_recovery || overtaken >= self.reordering) {
            return Span::ZERO;
        }
        min_rtt.scale(self.reo_wnd_mult, 4).min(smoothed_rtt)
    }

    /// When packet `number`, sent at `sent`, will be declared lost unless it is acknowledged: a time in the past means
    /// now, `None` that nothing sent after it was delivered.
    #[inline]
    pub(crate) fn deadline(&self, number: u64, sent: Time, window: Span) -> Option<Time> {
        (number < self.newest_delivered?).then(|| sent + self.latest_rtt + window)
    }

    /// True if a packet sent at `sent` has been in flight for longer than a round trip and the window.
    pub(crate) fn expired(&self, sent: Time, window: Span, now: Time) -> bool {
        sent + self.latest_rtt + window <= now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIN: Span = Span::from_ms(40);
    const SRTT: Span = Span::from_ms(50);

    #[test]
    fn the_window_grows_with_spurious_losses_up_to_the_smoothed_rtt() {
        let mut detector = Rack::new(3, 300);
        assert_eq!(
            detector.reordering_window(MIN, SRTT, false, 2),
            Span::from_ms(10)
        );
        assert_eq!(detector.reordering_window(MIN, SRTT, false, 3), Span::ZERO);
        assert_eq!(detector.reordering_window(MIN, SRTT, true, 1), Span::ZERO);
        detector.on_reordering();
        assert_eq!(
            detector.reordering_window(MIN, SRTT, true, 9),
            Span::from_ms(10)
        );
        for _ in 0..3 {
            detector.on_spurious();
        }
        assert_eq!(
            detector.reordering_window(MIN, SRTT, true, 0),
            Span::from_ms(40)
        );
        for _ in 0..2 {
            detector.on_spurious();
        }
        assert_eq!(detector.reordering_window(MIN, SRTT, true, 0), SRTT);
        for _ in 0..REO_WND_PERSIST {
            detector.on_recovery_exit();
        }
        assert_eq!(
            detector.reordering_window(MIN, SRTT, true, 0),
            Span::from_ms(10)
        );
    }

    #[test]
    fn the_threshold_follows_reordering_up_to_its_limit() {
        let mut detector = Rack::new(3, 10);
        assert!(!detector.reorders());
        for (distance, threshold) in [(2, 3), (7, 7), (5, 7), (11, 10)] {
            detector.raise_reordering(distance);
            assert_eq!(detector.dup_thresh(), threshold);
        }
        assert!(detector.reorders());
        assert_eq!(
            detector.reordering_window(MIN, SRTT, false, 9),
            Span::from_ms(10)
        );
        assert_eq!(detector.reordering_window(MIN, SRTT, false, 10), Span::ZERO);
        // Two later arrivals do not indicate that it is too high.
        detector.on_missed_loss(2);
        assert_eq!(detector.dup_thresh(), 10);
        detector.on_missed_loss(3);
        assert_eq!(detector.dup_thresh(), 3);
        let mut fixed = Rack::new(5, 3);
        fixed.raise_reordering(9);
        assert_eq!(fixed.dup_thresh(), 5);
    }

    #[test]
    fn more_duplicates_than_packets_set_the_threshold_until_a_timeout_lowers_it() {
        let mut detector = Rack::new(3, 10);
        for (distance, threshold) in [(7, 7), (20, 10), (2, 2)] {
            detector.set_reordering(distance);
            assert_eq!(detector.dup_thresh(), threshold);
        }
        detector.on_missed_loss(3);
        assert_eq!(detector.dup_thresh(), 2);
    }

    #[test]
    fn a_packet_overtaken_is_lost_after_rtt_and_window() {
        let mut detector = Rack::new(3, 300);
        let ms = |ms: u64| Time::from_ns(ms * 1_000_000);
        detector.on_delivered(2, SRTT);
        assert_eq!(detector.deadline(1, ms(0), Span::from_ms(10)), Some(ms(60)));
        assert_eq!(detector.deadline(2, ms(5), Span::from_ms(10)), None);
        // A late packet leaves the newest unchanged, but updates the RTT.
        detector.on_delivered(0, Span::from_ms(90));
        assert_eq!(
            detector.deadline(1, ms(0), Span::from_ms(10)),
            Some(ms(100))
        );
    }
}
