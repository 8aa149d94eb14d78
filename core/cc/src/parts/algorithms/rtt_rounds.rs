//! RTTs for delay-based schemes: the minimum and maximum RTT, and the RTT samples of each round trip.

use crate::{AckEvent, CaState};
use narrows_units::Span;

/// Minimum number of samples for a round's minimum RTT (Linux `net/ipv4/tcp_vegas.c`): one or two may all have been
/// delayed by the receiver.
const MIN_SAMPLES: u32 = 3;

/// The RTT samples of one round trip.
#[derive(Clone, Copy, Debug)]
pub struct RttRound {
    min: Span,
    sum_ns: u64,
    samples: u32,
}

impl RttRound {
    const EMPTY: RttRound = RttRound {
        min: Span::MAX,
        sum_ns: 0,
        samples: 0,
    };

    /// The minimum RTT, if the round has at least three samples.
    #[inline]
    pub fn smallest(&self) -> Option<Span> {
        (self.samples >= MIN_SAMPLES).then_some(self.min)
    }

    /// The mean RTT, if the round has samples.
    #[inline]
    pub fn mean(&self) -> Option<Span> {
        let count = u64::from(self.samples);
        (count > 0).then(|| Span::from_ns(self.sum_ns / count))
    }
}

/// Collects RTT samples by round trip. During recoveries, and until a whole round has passed after them, only the
/// extremes of the connection are updated: the samples do not reflect the window then.
#[derive(Clone, Debug)]
pub struct RttRounds {
    base: Span,
    largest: Span,
    round: RttRound,
    /// True if the current round was measured from its beginning.
    whole: bool,
}

impl Default for RttRounds {
    /// Without samples.
    fn default() -> Self {
        RttRounds {
            base: Span::MAX,
            largest: Span::ZERO,
            round: RttRound::EMPTY,
            whole: true,
        }
    }
}

impl RttRounds {
    /// Adds the sample of `ack`; returns a round trip when it ends, if it was measured from its beginning. The
    /// acknowledgement that ends a round belongs to it.
    #[inline]
    pub fn on_ack(&mut self, ack: &AckEvent<'_>) -> Option<RttRound> {
        if let Some(rtt) = ack.latest_rtt {
            self.base = self.base.min(rtt);
            self.largest = self.largest.max(rtt);
        }
        if ack.in_recovery || ack.phase != CaState::Open {
            self.round = RttRound::EMPTY;
            self.whole = false;
            return None;
        }
        if let Some(rtt) = ack.latest_rtt {
            self.round.min = self.round.min.min(rtt);
            self.round.sum_ns = self.round.sum_ns.saturating_add(rtt.ns());
            self.round.samples += 1;
        }
        if !ack.round_start {
            return None;
        }
        let ended = self.whole.then_some(self.round);
        self.round = RttRound::EMPTY;
        self.whole = true;
        ended
    }

    /// The samples of the current round trip.
    #[inline]
    pub fn so_far(&self) -> RttRound {
        self.round
    }

    /// The minimum RTT; the largest span before the first sample.
    #[inline]
    pub fn base(&self) -> Span {
        self.base
    }

    /// The maximum RTT; zero before the first sample.
    #[inline]
    pub fn largest(&self) -> Span {
        self.largest
    }

    /// Resets the minimum and maximum RTT, starting with the next sample.
    pub fn forget(&mut self) {
        *self = RttRounds::default();
    }

    /// Packets of `window` queued when the RTT is `rtt`, as estimated by Vegas: the difference of the expected and
    /// actual rates, times the base RTT.
    #[inline]
    pub fn backlog(&self, window: f64, rtt: Span) -> f64 {
        if rtt <= self.base {
            return 0.0;
        }
        window * (rtt.saturating_sub(self.base).ns() as f64 / rtt.ns() as f64)
    }
}

/// For unit tests: one round trip of `samples` acknowledgements of one packet each, all with `rtt`, passed to `rules`
/// as by `LossBased`.
#[cfg(test)]
pub(crate) fn play_round<R: crate::parts::WindowRules>(
    rules: &mut R,
    window: &mut crate::parts::CongestionWindow,
    rtt: Span,
    samples: u32,
) {
    for index in 0..samples {
        let mut ack = AckEvent::new(narrows_units::Time::ZERO);
        ack.latest_rtt = Some(rtt);
        ack.smoothed_rtt = rtt;
        ack.bytes = narrows_units::Bytes::new(crate::testing::MSS);
        ack.round_start = index + 1 == samples;
        rules.observe(&ack, window);
        let mut bytes = crate::testing::MSS;
        if window.in_slow_start() {
            bytes = rules.slow_start(window, &ack, bytes);
        }
        if bytes > 0 && !window.in_slow_start() {
            rules.congestion_avoidance(window, &ack, bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_units::Time;

    fn ack(rtt_ms: u64, round_start: bool) -> AckEvent<'static> {
        let mut ack = AckEvent::new(Time::ZERO);
        ack.latest_rtt = Some(Span::from_ms(rtt_ms));
        ack.round_start = round_start;
        ack
    }

    #[test]
    fn a_round_has_a_minimum_from_three_samples_on() {
        let mut rounds = RttRounds::default();
        rounds.on_ack(&ack(120, false));
        let round = rounds.on_ack(&ack(110, true)).unwrap();
        assert_eq!(round.smallest(), None);
        assert_eq!(round.mean(), Some(Span::from_ms(115)));
        rounds.on_ack(&ack(130, false));
        rounds.on_ack(&ack(125, false));
        let round = rounds.on_ack(&ack(140, true)).unwrap();
        assert_eq!(round.smallest(), Some(Span::from_ms(125)));
        assert_eq!(rounds.base(), Span::from_ms(110));
        assert_eq!(rounds.largest(), Span::from_ms(140));
    }

    #[test]
    fn a_round_without_samples_has_neither_minimum_nor_mean() {
        let mut rounds = RttRounds::default();
        let mut silent = ack(0, true);
        silent.latest_rtt = None;
        let round = rounds.on_ack(&silent).unwrap();
        assert_eq!((round.smallest(), round.mean()), (None, None));
    }

    #[test]
    fn rounds_disturbed_by_a_recovery_do_not_count() {
        let mut rounds = RttRounds::default();
        rounds.on_ack(&ack(100, false));
        let mut repairing = ack(90, false);
        repairing.phase = CaState::Recovery;
        repairing.in_recovery = true;
        assert!(rounds.on_ack(&repairing).is_none());
        // The rest of the round in which the recovery ended.
        rounds.on_ack(&ack(100, false));
        assert!(rounds.on_ack(&ack(100, true)).is_none());
        for _ in 0..3 {
            rounds.on_ack(&ack(100, false));
        }
        let round = rounds.on_ack(&ack(105, true)).unwrap();
        assert_eq!(round.smallest(), Some(Span::from_ms(100)));
        // The base RTT was learned during the recovery nevertheless.
        assert_eq!(rounds.base(), Span::from_ms(90));
    }

    #[test]
    fn the_backlog_is_the_share_of_the_rtt_spent_in_queues() {
        let mut rounds = RttRounds::default();
        rounds.on_ack(&ack(100, false));
        // 20 packets, 125 ms instead of 100 ms: a fifth of them is queued (Brakmo and Peterson 1995).
        assert_eq!(rounds.backlog(20.0, Span::from_ms(125)), 4.0);
        assert_eq!(rounds.backlog(20.0, Span::from_ms(100)), 0.0);
        assert_eq!(RttRounds::default().backlog(20.0, Span::from_ms(100)), 0.0);
    }
}
