//! The long-term sampler: whether a token-bucket policer limits the flow, and at which rate.

use narrows_units::{Span, Time};

/// Minimum number of rounds in an interval; the maximum is four times as many.
const MIN_ROUNDS: u64 = 4;
/// Loss ratio at which an interval counts: 50/256.
const LOSS: f64 = 50.0 / 256.0;
/// Two intervals agree if their rates differ by less than this fraction ...
const AGREE: f64 = 1.0 / 8.0;
/// ... or by less than this, in bytes per second (4 kbit/s).
const AGREE_RATE: f64 = 500.0;
/// Rounds for which a rate is used before the path is probed again.
const USE_ROUNDS: u64 = 48;

/// Connection totals at an acknowledgement, in bytes.
#[derive(Clone, Copy, Debug, Default)]
pub struct PolicerTally {
    /// Now.
    pub now: Time,
    /// Delivered so far.
    pub delivered: u64,
    /// Found lost so far.
    pub lost: u64,
}

/// A policer drops all traffic in excess of its rate once its bucket is empty. It is detected by two consecutive
/// intervals, each between losses and with a high loss rate, that delivered at the same rate; their mean rate is then
/// used instead of the maximum for a while (Linux net/ipv4/tcp_bbr.c).
#[derive(Clone, Copy, Debug, Default)]
pub struct PolicerDetector {
    sampling: bool,
    /// When the interval began, and the totals then.
    start: PolicerTally,
    /// Rounds of the interval, or of the use of the rate.
    rounds: u64,
    /// Rate of the last interval, or the rate in use.
    bandwidth: f64,
    used: bool,
}

impl PolicerDetector {
    /// The policer's rate in bytes per second, if one has been detected.
    #[inline]
    pub fn rate(&self) -> Option<f64> {
        self.used.then_some(self.bandwidth)
    }

    /// Resets everything.
    pub fn reset(&mut self, tally: PolicerTally) {
        *self = PolicerDetector::default();
        self.begin(tally);
    }

    fn begin(&mut self, tally: PolicerTally) {
        self.start = tally;
        self.rounds = 0;
    }

    /// A round begins while a rate is in use (in PROBE_BW): returns whether its time is over and it is dropped.
    #[inline]
    pub fn used_long_enough(&mut self, tally: PolicerTally) -> bool {
        if !self.used {
            return false;
        }
        self.rounds += 1;
        let enough = self.rounds >= USE_ROUNDS;
        if enough {
            self.reset(tally);
        }
        enough
    }

    /// An acknowledgement (or a timeout) while no rate is in use; `loss` if it found losses.
    pub fn sample(
        &mut self,
        tally: PolicerTally,
        round_start: bool,
        loss: bool,
        app_limited: bool,
    ) {
        if self.used {
            return;
        }
        if !self.sampling {
            // The first loss shows that the bucket is empty: from here on the rate is the policer's.
            if !loss {
                return;
            }
            self.begin(tally);
            self.sampling = true;
        }
        if app_limited {
            self.reset(tally);
            return;
        }
        self.rounds += u64::from(round_start);
        if self.rounds < MIN_ROUNDS {
            return;
        }
        if self.rounds > 4 * MIN_ROUNDS {
            self.reset(tally);
            return;
        }
        // An interval ends with a loss, when the bucket is empty again.
        if !loss {
            return;
        }
        let lost = tally.lost.saturating_sub(self.start.lost) as f64;
        let delivered = tally.delivered.saturating_sub(self.start.delivered) as f64;
        let span = tally.now.since(self.start.now);
        if delivered <= 0.0 || lost < LOSS * delivered || span < Span::from_ms(1) {
            return;
        }
        self.end(delivered / span.secs(), tally);
    }

    fn end(&mut self, bandwidth: f64, tally: PolicerTally) {
        if self.bandwidth > 0.0 {
            let difference = (bandwidth - self.bandwidth).abs();
            if difference <= AGREE * self.bandwidth || difference <= AGREE_RATE {
                self.bandwidth = f64::midpoint(bandwidth, self.bandwidth);
                self.used = true;
                self.rounds = 0;
                return;
            }
        }
        self.bandwidth = bandwidth;
        self.begin(tally);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rounds of 100 ms with 100 kB delivered and `lost` bytes lost in each.
    struct Path {
        policer: PolicerDetector,
        tally: PolicerTally,
    }

    impl Path {
        fn new() -> Self {
            Path {
                policer: PolicerDetector::default(),
                tally: PolicerTally::default(),
            }
        }

        fn round(&mut self, delivered: u64, lost: u64) {
            self.tally.now += Span::from_ms(100);
            self.tally.delivered += delivered;
            self.tally.lost += lost;
            self.policer.sample(self.tally, true, lost > 0, false);
        }
    }

    #[test]
    fn two_lossy_intervals_at_the_same_rate_betray_a_policer() {
        let mut path = Path::new();
        for round in 0..8 {
            assert_eq!(path.policer.rate(), None, "round {round}");
            path.round(100_000, 25_000);
        }
        let rate = path.policer.rate().expect("a policer");
        // Two intervals of four rounds (the first without the round in which it began): 1 MB/s.
        assert!((rate - 1e6).abs() < 1.0, "{rate}");
        // It is used for 48 rounds.
        for round in 1..48 {
            assert!(!path.policer.used_long_enough(path.tally), "round {round}");
        }
        assert!(path.policer.used_long_enough(path.tally));
        assert_eq!(path.policer.rate(), None);
    }

    #[test]
    fn losses_below_a_fifth_are_no_policer() {
        let mut path = Path::new();
        for _ in 0..40 {
            path.round(100_000, 19_000);
        }
        assert_eq!(path.policer.rate(), None);
    }

    #[test]
    fn rates_that_differ_by_more_than_an_eighth_are_no_policer() {
        let mut path = Path::new();
        for interval in 0..10 {
            let delivered = if interval % 2 == 0 { 100_000 } else { 120_000 };
            for _ in 0..4 {
                path.round(delivered, 30_000);
            }
        }
        assert_eq!(path.policer.rate(), None);
    }

    #[test]
    fn an_application_limit_starts_again() {
        let mut path = Path::new();
        for _ in 0..6 {
            path.round(100_000, 25_000);
        }
        path.policer.sample(path.tally, false, false, true);
        for _ in 0..4 {
            path.round(100_000, 25_000);
            assert_eq!(path.policer.rate(), None);
        }
    }
}
