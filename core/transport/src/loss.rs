//! Loss detection by packet and time threshold (RFC 8985, RACK).
//!
//! Packet numbers are never reused, so the order of numbers is the order of transmission, and a
//! retransmission is judged like any other packet.

use narrows_units::{Span, Time};

/// Recoveries without spurious loss after which the reordering window shrinks again (RFC 8985).
const PERSISTENCE: u32 = 16;

/// State of the detector.
#[derive(Clone, Debug)]
pub(crate) struct LossDetector {
    /// Packets that may overtake before one is taken to be lost: now, at first, and at most.
    threshold: u64,
    least: u64,
    most: u64,
    reordering_seen: bool,
    /// The reordering window in quarters of the smallest RTT.
    window_quarters: u64,
    /// Recoveries left until the window goes back to a quarter.
    persistence: u32,
    /// Newest packet known to be delivered, and the RTT it had.
    newest: Option<u64>,
    rtt: Span,
}

impl LossDetector {
    /// A detector whose threshold of packets begins at `least` and rises to `most`.
    pub(crate) fn new(least: u64, most: u64) -> Self {
        LossDetector {
            threshold: least,
            least,
            most: most.max(least),
            reordering_seen: false,
            window_quarters: 1,
            persistence: 0,
            newest: None,
            rtt: Span::ZERO,
        }
    }

    /// Number of the newest packet known to be delivered.
    #[inline]
    pub(crate) fn newest(&self) -> Option<u64> {
        self.newest
    }

    /// Packet `number` is the newest that was delivered, with this RTT.
    #[inline]
    pub(crate) fn on_newest(&mut self, number: u64, rtt: Span) {
        self.newest = Some(number);
        self.rtt = rtt;
    }

    /// A packet arrived later than one that was sent after it: from now on time decides alone.
    pub(crate) fn on_reordering(&mut self) {
        self.reordering_seen = true;
    }

    /// Data that had been sent once only arrived when data up to `distance` packets further had: that many may
    /// overtake from now on (Linux, tcp_check_sack_reordering).
    pub(crate) fn on_overtaken(&mut self, distance: u64) {
        self.threshold = self.threshold.max(distance.min(self.most));
    }

    /// Without selective acknowledgements: packets overtake by `distance`, as far as one can tell.
    pub(crate) fn on_distance(&mut self, distance: u64) {
        self.threshold = distance.min(self.most);
    }

    /// A timeout in which `arrived` packets have overtaken and none was taken to be lost: the threshold was too high
    /// (Linux, tcp_enter_loss).
    pub(crate) fn on_missed_loss(&mut self, arrived: u64) {
        if arrived >= self.least {
            self.threshold = self.threshold.min(self.least);
        }
    }

    /// How many packets may overtake before one is taken to be lost.
    #[inline]
    pub(crate) fn threshold(&self) -> u64 {
        self.threshold
    }

    /// Whether the path reorders so much that what arrives counts as progress in whatever order it does (Linux,
    /// tcp_may_raise_cwnd).
    #[inline]
    pub(crate) fn reorders(&self) -> bool {
        self.threshold > self.least
    }

    /// A packet that had been declared lost arrived after all: wait longer from now on. Called at
    /// most once per round trip.
    pub(crate) fn on_spurious(&mut self) {
        self.window_quarters += 1;
        self.persistence = PERSISTENCE;
    }

    /// A recovery has ended.
    pub(crate) fn on_recovery_exit(&mut self) {
        if self.persistence > 0 {
            self.persistence -= 1;
            if self.persistence == 0 {
                self.window_quarters = 1;
            }
        }
    }

    /// How long a packet may be late: not at all while no reordering has been seen and either a
    /// recovery is running or `overtaken` packets, at least the threshold, arrived before it.
    pub(crate) fn window(
        &self,
        min_rtt: Span,
        smoothed_rtt: Span,
        in_recovery: bool,
        overtaken: u64,
    ) -> Span {
        if !self.reordering_seen && (in_recovery || overtaken >= self.threshold) {
            return Span::ZERO;
        }
        min_rtt.scale(self.window_quarters, 4).min(smoothed_rtt)
    }

    /// When packet `number`, sent at `sent`, will be taken to be lost if nothing is heard of it:
    /// a time in the past means now, `None` means that nothing sent after it was delivered.
    #[inline]
    pub(crate) fn deadline(&self, number: u64, sent: Time, window: Span) -> Option<Time> {
        (number < self.newest?).then(|| sent + self.rtt + window)
    }

    /// Whether a packet sent at `sent` has been out for longer than a round trip and the window.
    pub(crate) fn expired(&self, sent: Time, window: Span, now: Time) -> bool {
        sent + self.rtt + window <= now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIN: Span = Span::from_ms(40);
    const SRTT: Span = Span::from_ms(50);

    #[test]
    fn the_window_grows_with_spurious_losses_up_to_the_smoothed_rtt() {
        let mut detector = LossDetector::new(3, 300);
        assert_eq!(detector.window(MIN, SRTT, false, 2), Span::from_ms(10));
        assert_eq!(detector.window(MIN, SRTT, false, 3), Span::ZERO);
        assert_eq!(detector.window(MIN, SRTT, true, 1), Span::ZERO);
        detector.on_reordering();
        assert_eq!(detector.window(MIN, SRTT, true, 9), Span::from_ms(10));
        for _ in 0..3 {
            detector.on_spurious();
        }
        assert_eq!(detector.window(MIN, SRTT, true, 0), Span::from_ms(40));
        for _ in 0..2 {
            detector.on_spurious();
        }
        assert_eq!(detector.window(MIN, SRTT, true, 0), SRTT);
        for _ in 0..PERSISTENCE {
            detector.on_recovery_exit();
        }
        assert_eq!(detector.window(MIN, SRTT, true, 0), Span::from_ms(10));
    }

    #[test]
    fn the_threshold_follows_reordering_up_to_its_limit() {
        let mut detector = LossDetector::new(3, 10);
        assert!(!detector.reorders());
        for (distance, threshold) in [(2, 3), (7, 7), (5, 7), (11, 10)] {
            detector.on_overtaken(distance);
            assert_eq!(detector.threshold(), threshold);
        }
        assert!(detector.reorders());
        assert_eq!(detector.window(MIN, SRTT, false, 9), Span::from_ms(10));
        assert_eq!(detector.window(MIN, SRTT, false, 10), Span::ZERO);
        // Two packets that have overtaken are no reason to think that it is too high.
        detector.on_missed_loss(2);
        assert_eq!(detector.threshold(), 10);
        detector.on_missed_loss(3);
        assert_eq!(detector.threshold(), 3);
        let mut fixed = LossDetector::new(5, 3);
        fixed.on_overtaken(9);
        assert_eq!(fixed.threshold(), 5);
    }

    #[test]
    fn more_duplicates_than_packets_set_the_threshold_until_a_timeout_lowers_it() {
        let mut detector = LossDetector::new(3, 10);
        for (distance, threshold) in [(7, 7), (20, 10), (2, 2)] {
            detector.on_distance(distance);
            assert_eq!(detector.threshold(), threshold);
        }
        detector.on_missed_loss(3);
        assert_eq!(detector.threshold(), 2);
    }

    #[test]
    fn a_packet_overtaken_is_lost_after_rtt_and_window() {
        let mut detector = LossDetector::new(3, 300);
        let ms = |ms: u64| Time::from_ns(ms * 1_000_000);
        detector.on_newest(2, SRTT);
        assert_eq!(detector.deadline(1, ms(0), Span::from_ms(10)), Some(ms(60)));
        assert_eq!(detector.deadline(2, ms(5), Span::from_ms(10)), None);
    }
}
