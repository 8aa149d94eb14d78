//! The delay-based rate: multiplicative or additive increase, and 0.85 of the arrival rate after overuse.

use super::capacity::Capacity;
use super::trend::Usage;
use narrows_units::{Span, Time};

/// Factor of the arrival rate after overuse.
const BETA: f64 = 0.85;
/// Logarithm of the growth of 8 % per second.
const LN_GROWTH: f64 = 0.076_961_041_136_128_3;
const MIN_GROWTH: f64 = 1e3;
const MIN_SLOPE: f64 = 4e3;
/// Bound of the rate: this multiple of the arrival rate, plus this many bit/s.
const HEAD_ROOM: (f64, f64) = (1.5, 10e3);
/// Time that the detector takes, added to the round trip.
const DETECTION: f64 = 0.1;
const FRAMES: f64 = 30.0;
const PACKET_BITS: f64 = 1200.0 * 8.0;
/// A decrease follows the last change by at least a round trip, within these bounds.
const APART: (Span, Span) = (Span::from_ms(10), Span::from_ms(200));

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AimdState {
    Hold,
    Increase,
}

#[derive(Clone, Debug)]
pub(super) struct Aimd {
    bps: f64,
    min_bps: f64,
    max_bps: f64,
    state: AimdState,
    capacity: Capacity,
    /// When the rate was changed last, or began to grow.
    changed: Option<Time>,
}

/// 1.08 to the power of `seconds` (at most 1), by the series of the exponential: the same on every machine.
pub(super) fn growth(seconds: f64) -> f64 {
    let x = LN_GROWTH * seconds.clamp(0.0, 1.0);
    // The next term is below 1e-13.
    1.0 + x * (1.0 + x / 2.0 * (1.0 + x / 3.0 * (1.0 + x / 4.0 * (1.0 + x / 5.0 * (1.0 + x / 6.0 * (1.0 + x / 7.0))))))
}

/// Growth near the capacity in bit/s per second: about a packet per response time.
pub(super) fn slope(bps: f64, rtt: Span) -> f64 {
    let frame = bps / FRAMES;
    let packet = frame / (frame / PACKET_BITS).ceil().max(1.0);
    let response = 2.0 * (rtt.secs() + DETECTION);
    (packet / response).max(MIN_SLOPE)
}

impl Aimd {
    pub(super) fn new(start_bps: f64, min_bps: f64, max_bps: f64) -> Self {
        Aimd {
            bps: start_bps,
            min_bps,
            max_bps,
            state: AimdState::Hold,
            capacity: Capacity::new(),
            changed: None,
        }
    }

    /// In bit/s.
    pub(super) fn bps(&self) -> f64 {
        self.bps
    }

    /// Sets the rate to `bps`, the result of a probe.
    pub(super) fn set(&mut self, now: Time, bps: f64) {
        self.bps = bps.clamp(self.min_bps, self.max_bps);
        self.changed = Some(now);
    }

    /// Handles a report.
    pub(super) fn update(&mut self, now: Time, usage: Usage, acked: Option<f64>, rtt: Span) {
        match usage {
            Usage::Over => self.overuse(now, acked, rtt),
            // The queue drains: the rate is left unchanged.
            Usage::Under => self.state = AimdState::Hold,
            Usage::Normal => {
                if self.state == AimdState::Hold {
                    self.state = AimdState::Increase;
                    self.changed = Some(now);
                }
                self.increase(now, acked, rtt);
            }
        }
    }

    fn overuse(&mut self, now: Time, acked: Option<f64>, rtt: Span) {
        let apart = rtt.max(APART.0).min(APART.1);
        // After any change, including growth: its effect is not visible before a round trip has passed.
        let due = self.changed.is_none_or(|then| now - then >= apart);
        match acked {
            Some(acked) if due || acked < 0.5 * self.bps => self.decrease(now, acked),
            None if due => self.set(now, self.bps / 2.0),
            _ => {}
        }
    }

    fn decrease(&mut self, now: Time, acked: f64) {
        let mut bps = BETA * acked;
        if bps > self.bps
            && let Some(capacity) = self.capacity.bps()
        {
            bps = BETA * capacity;
        }
        self.capacity.overused(acked);
        self.bps = bps.min(self.bps).max(self.min_bps);
        self.changed = Some(now);
        self.state = AimdState::Hold;
    }

    fn increase(&mut self, now: Time, acked: Option<f64>, rtt: Span) {
        if let Some(acked) = acked {
            self.capacity.seen(acked);
        }
        let seconds = self.changed.map_or(0.0, |then| (now - then).secs());
        self.changed = Some(now);
        let more = if self.capacity.bps().is_some() {
            slope(self.bps, rtt) * seconds.min(1.0)
        } else {
            (self.bps * (growth(seconds) - 1.0)).max(MIN_GROWTH)
        };
        let most = acked.map_or(f64::INFINITY, |acked| HEAD_ROOM.0 * acked + HEAD_ROOM.1);
        let bps = (self.bps + more).min(most.max(self.bps));
        self.bps = bps.min(self.max_bps);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Time {
        Time::from_ns(ms * 1_000_000)
    }

    fn new(bps: f64) -> Aimd {
        Aimd::new(bps, 30e3, 10e6)
    }

    #[test]
    fn growth_far_from_the_capacity_is_8_percent_per_second() {
        assert!((growth(0.1) - 1.007_726).abs() < 1e-6);
        assert!((growth(1.0) - 1.08).abs() < 1e-12);
        assert!((growth(7.0) - 1.08).abs() < 1e-12, "at most a second at a time");
        let mut aimd = new(300e3);
        for step in 0..=1 {
            aimd.update(ms(1000 + 100 * step), Usage::Normal, Some(1e6), Span::from_ms(100));
        }
        // The first report only switches to growth, by the minimum step of 1 kbit/s.
        let grown = 301e3 * growth(0.1);
        assert!((aimd.bps() - grown).abs() < 1.0, "{}", aimd.bps());
        assert!((300e3 * growth(0.1) - 302_320.0).abs() < 5.0);
    }

    #[test]
    fn growth_near_the_capacity_is_a_packet_per_response() {
        // Frames of 1/30 s in packets of at most 1200 bytes, one per 2 (RTT + 100 ms).
        for (bps, rtt, expected) in [(300e3, 100, 12_500.0), (1e6, 50, 27_778.0), (1.7e6, 200, 15_741.0)] {
            assert!((slope(bps, Span::from_ms(rtt)) - expected).abs() < 0.5);
        }
        assert_eq!(slope(30e3, Span::from_ms(500)), 4e3);
    }

    #[test]
    fn overuse_keeps_085_of_what_arrives_once_per_round_trip() {
        let mut aimd = new(1.2e6);
        let rtt = Span::from_ms(100);
        aimd.update(ms(1000), Usage::Over, Some(1e6), rtt);
        assert_eq!(aimd.bps(), 850e3);
        aimd.update(ms(1050), Usage::Over, Some(0.9e6), rtt);
        assert_eq!(aimd.bps(), 850e3, "too soon");
        aimd.update(ms(1100), Usage::Over, Some(0.9e6), rtt);
        assert_eq!(aimd.bps(), 765e3);
        aimd.update(ms(1110), Usage::Over, Some(0.3e6), rtt);
        assert_eq!(aimd.bps(), 255e3, "less than half arrives: at once");
        // The arrival rate exceeds the rate: the capacity bounds it, and it never rises.
        aimd.update(ms(1500), Usage::Over, Some(2e6), rtt);
        assert!(aimd.bps() <= 255e3);
    }

    #[test]
    fn a_rate_that_has_just_grown_is_left_alone_for_a_round_trip() {
        let mut aimd = new(1e6);
        let rtt = Span::from_ms(150);
        for step in 0..2 {
            aimd.update(ms(1000 + 100 * step), Usage::Normal, Some(1e6), rtt);
        }
        let grown = aimd.bps();
        aimd.update(ms(1200), Usage::Over, Some(1e6), rtt);
        assert_eq!(aimd.bps(), grown);
        aimd.update(ms(1250), Usage::Over, Some(1e6), rtt);
        assert_eq!(aimd.bps(), 850e3);
    }

    #[test]
    fn overuse_before_anything_is_known_halves() {
        let mut aimd = new(300e3);
        aimd.update(ms(100), Usage::Over, None, Span::from_ms(200));
        assert_eq!(aimd.bps(), 150e3);
    }

    #[test]
    fn a_decrease_is_followed_by_a_pause_and_then_slow_growth() {
        let mut aimd = new(1e6);
        let rtt = Span::from_ms(100);
        aimd.update(ms(1000), Usage::Over, Some(0.9e6), rtt);
        aimd.update(ms(1100), Usage::Normal, Some(0.85e6), rtt);
        assert_eq!(aimd.bps(), 765e3, "a pause");
        for step in 2..=11 {
            aimd.update(ms(1000 + 100 * step), Usage::Normal, Some(0.88e6), rtt);
        }
        let grown = aimd.bps() - 765e3;
        let expected = slope(765e3, rtt);
        assert!((grown / expected - 1.0).abs() < 0.05, "{grown} in a second, {expected}");
    }

    #[test]
    fn it_never_grows_beyond_one_and_a_half_times_what_arrives() {
        let mut aimd = new(1e6);
        for step in 0..600 {
            aimd.update(ms(1000 + 100 * step), Usage::Normal, Some(1e6), Span::from_ms(100));
        }
        assert!((aimd.bps() - 1.51e6).abs() < 1.0, "{}", aimd.bps());
    }
}
