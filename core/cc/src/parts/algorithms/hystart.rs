//! HyStart (S. Ha, I. Rhee, "Hybrid slow start for high-bandwidth and long-distance networks", PFLDnet 2008) as in
//! Linux net/ipv4/tcp_cubic.c: slow start ends at once when closely spaced acknowledgements have continued for long
//! enough (the train fills the path), or when the RTT has risen.

use crate::AckEvent;
use narrows_units::{Span, Time};

/// Acknowledgements further apart than this do not form a train.
const TRAIN_GAP: Span = Span::from_ms(2);
/// Bounds of the rise of the RTT that ends slow start; in between, an eighth of the minimum RTT.
const RISE: (Span, Span) = (Span::from_ms(4), Span::from_ms(16));
/// Samples of a round before its minimum RTT counts.
const SAMPLES: u32 = 8;

/// Inputs of HyStart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detect {
    /// Trains and delay.
    Both,
    /// The length of a train of acknowledgements.
    Train,
    /// The rise of the RTT.
    Delay,
}

/// The state of HyStart during slow start.
#[derive(Clone, Debug)]
pub struct HyStart {
    detect: Detect,
    /// Minimum window, in packets, at which it is active.
    low_window: f64,
    /// A paced sender spreads a window over up to half an RTT: its trains may be twice as long.
    paced: bool,
    round_start: Time,
    /// Last acknowledgement of the train.
    train_end: Time,
    round_min: Span,
    samples: u32,
}

impl HyStart {
    /// State for a connection born at `now`.
    pub fn new(detect: Detect, low_window: u64, paced: bool, now: Time) -> Self {
        HyStart {
            detect,
            low_window: low_window as f64,
            paced,
            round_start: now,
            train_end: now,
            round_min: Span::MAX,
            samples: 0,
        }
    }

    /// Begins a round.
    pub fn restart(&mut self, now: Time) {
        self.round_start = now;
        self.train_end = now;
        self.round_min = Span::MAX;
        self.samples = 0;
    }

    /// True if slow start should end with `ack`, whose RTT is `rtt`: `min_rtt` is the minimum so far, `ack_delay` the
    /// maximum delay of acknowledgements by aggregation at the peer and the host, and `window` in packets.
    pub fn ends(
        &mut self,
        ack: &AckEvent<'_>,
        rtt: Span,
        min_rtt: Span,
        ack_delay: Span,
        window: f64,
    ) -> bool {
        if ack.round_start {
            self.restart(ack.now);
        }
        if window < self.low_window {
            return false;
        }
        let by_train =
            self.detect != Detect::Delay && self.train_is_long(ack.now, min_rtt + ack_delay);
        let by_delay = self.detect != Detect::Train && self.delay_has_risen(rtt, min_rtt);
        by_train || by_delay
    }

    fn train_is_long(&mut self, now: Time, mut threshold: Span) -> bool {
        if now.since(self.train_end) > TRAIN_GAP {
            return false;
        }
        self.train_end = now;
        if !self.paced {
            threshold = threshold.scale(1, 2);
        }
        now.since(self.round_start) > threshold
    }

    fn delay_has_risen(&mut self, rtt: Span, min_rtt: Span) -> bool {
        self.round_min = self.round_min.min(rtt);
        if self.samples < SAMPLES {
            self.samples += 1;
            return false;
        }
        self.round_min > min_rtt + min_rtt.scale(1, 8).clamp(RISE.0, RISE.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ends(hystart: &mut HyStart, now_us: u64, rtt: Span, min_rtt: Span, window: f64) -> bool {
        let mut ack = AckEvent::new(Time::from_ns(now_us * 1000));
        ack.round_start = now_us == 0;
        hystart.ends(&ack, rtt, min_rtt, Span::from_ms(1), window)
    }

    #[test]
    fn the_rtt_may_rise_by_an_eighth_within_bounds() {
        // Smallest RTT 10/40/100/200 ms: +4, +5, +12.5, +16 ms.
        for (base_ms, rise_us) in [(10, 4_000), (40, 5_000), (100, 12_500), (200, 16_000)] {
            for (extra_us, ended) in [(0, false), (1, true)] {
                let mut hystart = HyStart::new(Detect::Delay, 16, false, Time::ZERO);
                let base = Span::from_ms(base_ms);
                let rtt = base + Span::from_us(rise_us + extra_us);
                let answers: Vec<bool> = (0..10)
                    .map(|index| ends(&mut hystart, index * 100, rtt, base, 100.0))
                    .collect();
                // Eight samples are collected before the ninth decides.
                assert_eq!(answers[..8], [false; 8]);
                assert_eq!(
                    answers[8..],
                    [ended; 2],
                    "{base_ms} ms + {rise_us} us + {extra_us}"
                );
            }
        }
    }

    /// When a train of acknowledgements `gap_us` apart ends slow start, in us after its first.
    fn train(gap_us: u64, paced: bool) -> Option<u64> {
        let mut hystart = HyStart::new(Detect::Train, 16, paced, Time::ZERO);
        let base = Span::from_ms(40);
        (0..100_000 / gap_us)
            .map(|index| index * gap_us)
            .find(|&now_us| ends(&mut hystart, now_us, base, base, 100.0))
    }

    #[test]
    fn a_train_of_half_the_rtt_ends_slow_start() {
        // (40 + 1)/2 ms without pacing, 41 ms with it.
        assert_eq!(train(500, false), Some(21_000));
        assert_eq!(train(500, true), Some(41_500));
        assert_eq!(train(2_000, false), Some(22_000));
        // One wider gap breaks it for the rest of the round.
        assert_eq!(train(2_001, false), None);
    }

    #[test]
    fn small_windows_are_left_alone() {
        let mut hystart = HyStart::new(Detect::Both, 16, false, Time::ZERO);
        let base = Span::from_ms(40);
        for index in 0..100 {
            assert!(!ends(&mut hystart, index * 1000, base * 2, base, 15.0));
        }
    }
}
