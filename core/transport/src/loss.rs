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
    /// Packets that may overtake before one is taken to be lost, until reordering is seen.
    packet_threshold: u64,
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
    pub(crate) fn new(packet_threshold: u64) -> Self {
        LossDetector {
            packet_threshold,
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
        if !self.reordering_seen && (in_recovery || overtaken >= self.packet_threshold) {
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
        let mut detector = LossDetector::new(3);
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
    fn a_packet_overtaken_is_lost_after_rtt_and_window() {
        let mut detector = LossDetector::new(3);
        let ms = |ms: u64| Time::from_ns(ms * 1_000_000);
        detector.on_newest(2, SRTT);
        assert_eq!(detector.deadline(1, ms(0), Span::from_ms(10)), Some(ms(60)));
        assert_eq!(detector.deadline(2, ms(5), Span::from_ms(10)), None);
    }
}
