//! HyStart++ (RFC 9406): leave slow start when the RTT begins to rise.
//!
//! Constants from RFC 9406, section 4.3.

use narrows_units::Span;

const MIN_RTT_THRESH: Span = Span::from_ms(4);
const MAX_RTT_THRESH: Span = Span::from_ms(16);
const MIN_RTT_DIVISOR: u64 = 8;
const N_RTT_SAMPLE: u32 = 8;
const CSS_GROWTH_DIVISOR: u64 = 4;
const CSS_ROUNDS: u32 = 5;

/// Treatment of the bytes of an acknowledgement in slow start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HyStartStep {
    /// Grow by this many bytes.
    Grow(u64),
    /// Grow by this many bytes, then end slow start.
    Exit(u64),
}

/// The state of HyStart++ during the initial slow start.
#[derive(Clone, Debug)]
pub struct HyStartPp {
    /// Growth limit per acknowledgement in bytes (L x SMSS; L = 8 without pacing).
    limit: u64,
    last_round_min: Span,
    round_min: Span,
    samples: u32,
    /// In conservative slow start: its baseline RTT and the rounds done.
    css: Option<(Span, u32)>,
}

impl HyStartPp {
    /// State for a sender with packets of `mss` bytes; `paced` senders have no growth limit.
    pub fn new(mss: u64, paced: bool) -> Self {
        HyStartPp {
            limit: if paced { u64::MAX } else { 8 * mss },
            last_round_min: Span::MAX,
            round_min: Span::MAX,
            samples: 0,
            css: None,
        }
    }

    /// True if conservative slow start is running.
    pub fn is_conservative(&self) -> bool {
        self.css.is_some()
    }

    /// Handles an acknowledgement of `bytes` with an RTT sample; `round_start` begins a round.
    pub fn on_ack(&mut self, bytes: u64, rtt: Option<Span>, round_start: bool) -> HyStartStep {
        let mut done = false;
        if round_start {
            self.last_round_min = self.round_min;
            self.round_min = Span::MAX;
            self.samples = 0;
            if let Some((_, rounds)) = &mut self.css {
                // The round in which conservative slow start began counts as one.
                *rounds += 1;
                done = *rounds >= CSS_ROUNDS;
            }
        }
        if let Some(rtt) = rtt {
            self.round_min = self.round_min.min(rtt);
            self.samples += 1;
        }
        let growth = bytes.min(self.limit);
        if let Some((baseline, _)) = self.css {
            if self.samples >= N_RTT_SAMPLE && self.round_min < baseline {
                self.css = None;
                return HyStartStep::Grow(growth);
            }
            let growth = growth / CSS_GROWTH_DIVISOR;
            return if done {
                HyStartStep::Exit(growth)
            } else {
                HyStartStep::Grow(growth)
            };
        }
        if self.samples >= N_RTT_SAMPLE && self.last_round_min != Span::MAX {
            let threshold = self
                .last_round_min
                .scale(1, MIN_RTT_DIVISOR)
                .clamp(MIN_RTT_THRESH, MAX_RTT_THRESH);
            if self.round_min >= self.last_round_min + threshold {
                self.css = Some((self.round_min, 0));
            }
        }
        HyStartStep::Grow(growth)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round(h: &mut HyStartPp, rtt_ms: u64, acks: u32) -> Vec<HyStartStep> {
        (0..acks)
            .map(|i| h.on_ack(1000, Some(Span::from_ms(rtt_ms)), i == 0))
            .collect()
    }

    #[test]
    fn thresholds_are_those_of_the_rfc() {
        // min RTT 10/40/100/200 ms: +4 (floor), +5, +12.5, +16 (ceiling).
        for (base, rise_us, enters) in [
            (10, 3_999, false),
            (10, 4_000, true),
            (40, 4_999, false),
            (40, 5_000, true),
            (100, 12_499, false),
            (100, 12_500, true),
            (200, 15_999, false),
            (200, 16_000, true),
        ] {
            let mut h = HyStartPp::new(1000, false);
            round(&mut h, base, 10);
            for i in 0..10 {
                h.on_ack(
                    1000,
                    Some(Span::from_ms(base) + Span::from_us(rise_us)),
                    i == 0,
                );
            }
            assert_eq!(h.is_conservative(), enters, "{base} ms + {rise_us} us");
        }
    }

    #[test]
    fn eight_samples_are_needed() {
        let mut h = HyStartPp::new(1000, false);
        round(&mut h, 40, 10);
        round(&mut h, 60, 7);
        assert!(!h.is_conservative());
        h.on_ack(1000, Some(Span::from_ms(60)), false);
        assert!(h.is_conservative());
    }

    #[test]
    fn conservative_slow_start_lasts_five_rounds_at_a_quarter() {
        let mut h = HyStartPp::new(1000, false);
        round(&mut h, 40, 10);
        round(&mut h, 60, 10);
        for rounds in 1..5 {
            let steps = round(&mut h, 60, 10);
            assert!(
                steps.iter().all(|s| *s == HyStartStep::Grow(250)),
                "round {rounds}: {steps:?}"
            );
        }
        assert_eq!(
            h.on_ack(1000, Some(Span::from_ms(60)), true),
            HyStartStep::Exit(250)
        );
    }

    #[test]
    fn a_false_alarm_resumes_slow_start() {
        let mut h = HyStartPp::new(1000, false);
        round(&mut h, 40, 10);
        round(&mut h, 60, 10);
        assert!(h.is_conservative());
        round(&mut h, 41, 8);
        assert!(!h.is_conservative());
    }

    #[test]
    fn growth_per_acknowledgement_is_bounded_without_pacing() {
        assert_eq!(
            HyStartPp::new(1000, false).on_ack(50_000, None, false),
            HyStartStep::Grow(8000)
        );
        assert_eq!(
            HyStartPp::new(1000, true).on_ack(50_000, None, false),
            HyStartStep::Grow(50_000)
        );
    }
}
