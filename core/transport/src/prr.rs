//! Proportional Rate Reduction (RFC 6937, with the slow-start reduction bound used only while recovery makes progress,
//! as in Linux): the window comes down to the scheme's target over one round trip instead of at once, one packet sent
//! for every packet or two delivered.

/// State of one recovery epoch, with the names of RFC 6937; all amounts in bytes.
#[expect(clippy::struct_field_names, reason = "the names of RFC 6937")]
#[derive(Clone, Debug)]
pub(crate) struct Prr {
    /// Window before the reduction.
    prior_cwnd: u64,
    /// Window after it.
    ssthresh: u64,
    prr_delivered: u64,
    prr_out: u64,
    mss: u64,
    cwnd: u64,
}

impl Prr {
    /// Begins a reduction from `prior` to `target` bytes with `in_flight` bytes in flight.
    pub(crate) fn new(prior: u64, target: u64, in_flight: u64, mss: u64) -> Self {
        Prr {
            prior_cwnd: prior.max(1),
            ssthresh: target,
            prr_delivered: 0,
            prr_out: 0,
            mss,
            cwnd: in_flight,
        }
    }

    /// The window in force.
    #[inline]
    pub(crate) fn cwnd(&self) -> u64 {
        self.cwnd
    }

    /// The scheme has reduced its window further.
    #[inline]
    pub(crate) fn lower_ssthresh(&mut self, target: u64) {
        self.ssthresh = self.ssthresh.min(target);
    }

    /// `bytes` were sent.
    #[inline]
    pub(crate) fn on_sent(&mut self, bytes: u64) {
        self.prr_out += bytes;
    }

    /// `acked` bytes were delivered; `in_flight` are left. `progress`: the first missing byte has moved and nothing
    /// more was lost, so growth is safe.
    #[inline]
    pub(crate) fn on_ack(&mut self, acked: u64, in_flight: u64, progress: bool) {
        self.prr_delivered += acked;
        let allowed = if in_flight > self.ssthresh {
            // ceil(target * delivered / prior) - sent, in whole packets.
            let share = u128::from(self.ssthresh) * u128::from(self.prr_delivered);
            let whole = u128::from(self.prior_cwnd) * u128::from(self.mss);
            (share.div_ceil(whole) as u64 * self.mss).saturating_sub(self.prr_out)
        } else {
            let bound = self.prr_delivered.saturating_sub(self.prr_out).max(acked);
            (bound + if progress { self.mss } else { 0 }).min(self.ssthresh - in_flight)
        };
        // The first packet of a recovery always goes out at once: the fast retransmission.
        let least = if self.prr_out == 0 { self.mss } else { 0 };
        self.cwnd = in_flight + allowed.max(least);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Total packets sent after each of `acks` deliveries, window 20 packets of 1000 bytes.
    fn schedule(target: u64, acks: usize) -> Vec<u64> {
        let mut prr = Prr::new(20_000, target * 1000, 19_000, 1000);
        let mut in_flight = 19_000;
        let mut sent = 0;
        (0..acks)
            .map(|_| {
                in_flight -= 1000;
                prr.on_ack(1000, in_flight, false);
                while in_flight + 1000 <= prr.cwnd() {
                    in_flight += 1000;
                    sent += 1;
                    prr.on_sent(1000);
                }
                sent
            })
            .collect()
    }

    #[test]
    fn halving_sends_on_every_other_delivery() {
        assert_eq!(schedule(10, 6), [1, 1, 2, 2, 3, 3]);
    }

    #[test]
    fn seventy_percent() {
        assert_eq!(schedule(14, 6), [1, 2, 3, 3, 4, 5]);
    }

    #[test]
    fn after_a_burst_loss_the_window_opens_again_slowly() {
        let mut prr = Prr::new(20_000, 10_000, 5_000, 1000);
        prr.on_sent(1000);
        prr.on_ack(1000, 5_000, false);
        assert_eq!(prr.cwnd(), 6_000);
        prr.on_sent(1000);
        prr.on_ack(1000, 5_000, true);
        assert_eq!(prr.cwnd(), 7_000);
    }
}
