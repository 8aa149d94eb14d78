//! Round-trip time and retransmission timeout (RFC 6298), with Linux's variance rule as a choice.

use narrows_units::{Span, choice};

choice! {
    /// Rule that derives the timeout from RTT samples.
    pub enum RtoRule {
        /// Linux: RTO = SRTT + a variance term that is never below the minimum, follows increases at once, decays once
        /// per round trip, and reacts less to falling RTTs. On a 10 ms path this results in 210 ms, not 200 ms.
        Linux = "linux",
        /// RFC 6298: RTO = max(SRTT + 4 RTTVAR, minimum), RTTVAR smoothed with gain 1/4.
        Rfc6298 = "rfc6298",
    }
}

/// The RTT of a connection.
#[derive(Clone, Debug)]
pub struct RttEstimator {
    rule: RtoRule,
    min_rto: Span,
    max_rto: Span,
    latest: Span,
    min: Span,
    /// Smoothed RTT in 1/8 ns, to keep what integer division would lose.
    srtt_eighths: u64,
    /// RFC 6298: RTTVAR. Linux: 4 x mean deviation (mdev_us). Both in ns.
    rttvar_ns: u64,
    /// Linux: largest deviation of the current round (mdev_max_us), and the variance term in force (rttvar_us).
    mdev_max_ns: u64,
    rttvar_term_ns: u64,
    samples: u64,
    /// Sum of all samples.
    sum: Span,
    /// The timeout without back-off. It is read for each packet, and changes only with samples.
    rto: Span,
}

impl RttEstimator {
    /// Initial RTO before any sample (RFC 6298, section 2.1).
    pub const INITIAL_RTO: Span = Span::from_ms(1000);

    /// An estimator without samples.
    pub const fn new(rule: RtoRule, min_rto: Span, max_rto: Span) -> Self {
        RttEstimator {
            rule,
            min_rto,
            max_rto,
            latest: Span::ZERO,
            min: Span::MAX,
            srtt_eighths: 0,
            rttvar_ns: 0,
            mdev_max_ns: 0,
            rttvar_term_ns: 0,
            samples: 0,
            sum: Span::ZERO,
            rto: Self::INITIAL_RTO,
        }
    }

    /// Takes a sample; `round_start` is true if a round trip has begun since the last one.
    pub fn sample(&mut self, rtt: Span, round_start: bool) {
        self.latest = rtt;
        self.min = self.min.min(rtt);
        self.samples += 1;
        self.sum += rtt;
        match self.rule {
            RtoRule::Rfc6298 => self.sample_rfc(rtt.ns()),
            RtoRule::Linux => self.sample_linux(rtt.ns(), round_start),
        }
        self.rto = self.rto_now();
    }

    fn sample_rfc(&mut self, rtt: u64) {
        if self.samples == 1 {
            self.srtt_eighths = rtt * 8;
            self.rttvar_ns = rtt / 2;
            return;
        }
        // RTTVAR first, with the old SRTT (RFC 6298, section 2.3).
        let error = (self.srtt_eighths / 8).abs_diff(rtt);
        self.rttvar_ns = (3 * self.rttvar_ns + error) / 4;
        self.srtt_eighths = self.srtt_eighths - self.srtt_eighths / 8 + rtt;
    }

    fn sample_linux(&mut self, rtt: u64, round_start: bool) {
        let floor = self.min_rto.ns();
        if self.samples == 1 {
            self.srtt_eighths = rtt * 8;
            self.rttvar_ns = rtt * 2;
            self.rttvar_term_ns = self.rttvar_ns.max(floor);
            self.mdev_max_ns = self.rttvar_term_ns;
            return;
        }
        let srtt = self.srtt_eighths / 8;
        self.srtt_eighths = self.srtt_eighths - srtt + rtt;
        let quarter = (self.rttvar_ns / 4) as i64;
        let change = if rtt < srtt {
            // A falling RTT raises the deviation by an eighth of the gain.
            let change = (srtt - rtt) as i64 - quarter;
            if change > 0 { change / 8 } else { change }
        } else {
            (rtt - srtt) as i64 - quarter
        };
        self.rttvar_ns = self.rttvar_ns.saturating_add_signed(change);
        if self.rttvar_ns > self.mdev_max_ns {
            self.mdev_max_ns = self.rttvar_ns;
            self.rttvar_term_ns = self.rttvar_term_ns.max(self.mdev_max_ns);
        }
        if round_start {
            if self.mdev_max_ns < self.rttvar_term_ns {
                self.rttvar_term_ns -= (self.rttvar_term_ns - self.mdev_max_ns) / 4;
            }
            self.mdev_max_ns = floor;
        }
    }

    /// Number and sum of all samples.
    #[inline]
    pub const fn totals(&self) -> (u64, Span) {
        (self.samples, self.sum)
    }

    /// True if a sample has been taken.
    #[inline]
    pub const fn is_known(&self) -> bool {
        self.samples > 0
    }

    /// The last sample.
    #[inline]
    pub const fn latest(&self) -> Span {
        self.latest
    }

    /// The smallest sample; [`Span::MAX`] before any.
    #[inline]
    pub const fn min(&self) -> Span {
        self.min
    }

    /// The smoothed RTT; zero before any sample.
    #[inline]
    pub const fn smoothed(&self) -> Span {
        Span::from_ns(self.srtt_eighths / 8)
    }

    /// The retransmission timeout without back-off.
    #[inline]
    pub const fn rto(&self) -> Span {
        self.rto
    }

    fn rto_now(&self) -> Span {
        let rto = match self.rule {
            RtoRule::Rfc6298 => {
                (self.smoothed() + Span::from_ns(4 * self.rttvar_ns)).max(self.min_rto)
            }
            RtoRule::Linux => self.smoothed() + Span::from_ns(self.rttvar_term_ns),
        };
        rto.min(self.max_rto)
    }

    /// The timeout after `rto_backoff` expiries in a row.
    #[inline]
    pub fn backed_off(&self, rto_backoff: u32) -> Span {
        (self.rto() * (1u64 << rto_backoff.min(16))).min(self.max_rto)
    }

    /// Time until a tail-loss probe (RFC 8985, section 7.2): two round trips and the `slack` of a timer, or, when a
    /// single packet is in flight, the longest time for which the peer may hold back an acknowledgement. Linux uses its
    /// minimum variance term for that time, and if the timeout would expire first the probe replaces it
    /// (tcp_schedule_loss_probe); with the other rule no probe is sent then.
    #[inline]
    pub fn probe_timeout(&self, single: bool, max_ack_delay: Span, slack: Span) -> Option<Span> {
        let rto = self.rto();
        if !self.is_known() {
            return None;
        }
        let linux = self.rule == RtoRule::Linux;
        let hold = match single {
            false => slack,
            true if linux => max_ack_delay.max(self.min_rto),
            true => max_ack_delay,
        };
        let probe = self.smoothed() * 2 + hold;
        (linux || probe < rto).then_some(probe.min(rto))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(rule: RtoRule, min_ms: u64, samples: &[u64]) -> Vec<f64> {
        let mut rtt = RttEstimator::new(rule, Span::from_ms(min_ms), Span::from_ms(120_000));
        samples
            .iter()
            .map(|ms| {
                rtt.sample(Span::from_ms(*ms), true);
                rtt.rto().ns() as f64 / 1e6
            })
            .collect()
    }

    fn close(got: &[f64], want: &[f64]) {
        assert_eq!(got.len(), want.len());
        for (got, want) in got.iter().zip(want) {
            assert!((got - want).abs() < 0.06, "{got:?} against {want:?}");
        }
    }

    #[test]
    fn rfc_6298_series() {
        close(
            &series(RtoRule::Rfc6298, 0, &[100, 200, 100, 100]),
            &[300.0, 362.5, 310.9, 270.5],
        );
        close(&series(RtoRule::Rfc6298, 1000, &[10; 20])[19..], &[1000.0]);
        close(
            &series(RtoRule::Rfc6298, 1000, &[500, 500, 500]),
            &[1500.0, 1250.0, 1062.5],
        );
    }

    #[test]
    fn linux_series() {
        close(
            &series(RtoRule::Linux, 200, &[100, 200, 100, 100, 100, 100]),
            &[300.0, 362.5, 348.4, 337.7, 329.5, 323.1],
        );
        close(&series(RtoRule::Linux, 200, &[10; 40])[39..], &[210.0]);
        close(
            &series(RtoRule::Linux, 200, &[500; 6]),
            &[1500.0, 1500.0, 1390.6, 1273.4, 1159.2, 1053.7],
        );
    }

    // RFC 6298, section 2.3: SRTT and RTTVAR themselves, for 100, 200, 100, 100 ms.
    #[test]
    fn rfc_6298_smoothing() {
        let mut rtt = RttEstimator::new(RtoRule::Rfc6298, Span::ZERO, Span::from_ms(120_000));
        let series = [
            (100, 100.0, 50.0),
            (200, 112.5, 62.5),
            (100, 110.94, 50.0),
            (100, 109.57, 40.23),
        ];
        for (ms, smoothed, deviation) in series {
            rtt.sample(Span::from_ms(ms), true);
            let got = (rtt.smoothed().ns() as f64 / 1e6, rtt.rttvar_ns as f64 / 1e6);
            assert!((got.0 - smoothed).abs() < 0.005, "{got:?}");
            assert!((got.1 - deviation).abs() < 0.005, "{got:?}");
        }
    }

    #[test]
    fn a_constant_rtt_ends_at_itself_and_the_least_variance() {
        close(&series(RtoRule::Linux, 200, &[500; 60])[59..], &[700.0]);
        close(&series(RtoRule::Rfc6298, 1000, &[500; 60])[59..], &[1000.0]);
    }

    // RFC 8985, section 7.2; Linux, tcp_schedule_loss_probe.
    #[test]
    fn a_probe_waits_two_round_trips_and_for_a_delayed_acknowledgement() {
        let (hold, slack) = (Span::from_ms(40), Span::from_ms(6));
        for (rule, min_ms, one) in [(RtoRule::Linux, 200, 250), (RtoRule::Rfc6298, 1000, 140)] {
            let mut rtt = RttEstimator::new(rule, Span::from_ms(min_ms), Span::from_ms(120_000));
            assert_eq!(rtt.probe_timeout(false, hold, slack), None);
            for _ in 0..60 {
                rtt.sample(Span::from_ms(50), true);
            }
            let probe = |single| rtt.probe_timeout(single, hold, slack);
            assert_eq!(probe(false), Some(Span::from_ms(106)));
            // In Linux the probe replaces the timeout then.
            assert_eq!(probe(true), Some(Span::from_ms(one)));
        }
    }

    #[test]
    fn before_any_sample_and_with_back_off() {
        let mut rtt = RttEstimator::new(RtoRule::Linux, Span::from_ms(200), Span::from_ms(120_000));
        assert_eq!(rtt.rto(), Span::from_ms(1000));
        assert_eq!(rtt.backed_off(2), Span::from_ms(4000));
        rtt.sample(Span::from_ms(10), true);
        assert_eq!(rtt.backed_off(40), Span::from_ms(120_000));
    }
}
