//! Proportional Rate Reduction (RFC 6937, with the slow-start reduction bound used only while
//! recovery makes progress, as in Linux): the window comes down to the scheme's target over one
//! round trip instead of at once, one packet out for every packet or two delivered.

/// State of one recovery epoch; all amounts in bytes.
#[derive(Clone, Debug)]
pub(crate) struct Reduction {
    /// Window before the reduction.
    prior: u64,
    /// Window after it.
    target: u64,
    delivered: u64,
    sent: u64,
    mss: u64,
    cwnd: u64,
}

impl Reduction {
    /// Begins a reduction from `prior` to `target` with `in_flight` bytes in flight.
    pub(crate) fn new(prior: u64, target: u64, in_flight: u64, mss: u64) -> Self {
        Reduction {
            prior: prior.max(1),
            target,
            delivered: 0,
            sent: 0,
            mss,
            cwnd: in_flight,
        }
    }

    /// The window in force.
    #[inline]
    pub(crate) fn cwnd(&self) -> u64 {
        self.cwnd
    }

    /// The scheme's window has come down further.
    #[inline]
    pub(crate) fn lower(&mut self, target: u64) {
        self.target = self.target.min(target);
    }

    /// `bytes` were sent.
    #[inline]
    pub(crate) fn on_sent(&mut self, bytes: u64) {
        self.sent += bytes;
    }

    /// `acked` bytes were delivered; `in_flight` are left. `progress`: the first missing byte has
    /// moved and nothing more was lost, so that growth is safe.
    #[inline]
    pub(crate) fn on_ack(&mut self, acked: u64, in_flight: u64, progress: bool) {
        self.delivered += acked;
        let allowed = if in_flight > self.target {
            // ceil(target * delivered / prior) - sent, in whole packets.
            let share = u128::from(self.target) * u128::from(self.delivered);
            let whole = u128::from(self.prior) * u128::from(self.mss);
            (share.div_ceil(whole) as u64 * self.mss).saturating_sub(self.sent)
        } else {
            let bound = self.delivered.saturating_sub(self.sent).max(acked);
            (bound + if progress { self.mss } else { 0 }).min(self.target - in_flight)
        };
        // The first packet of a recovery always goes out at once: the fast retransmission.
        let least = if self.sent == 0 { self.mss } else { 0 };
        self.cwnd = in_flight + allowed.max(least);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Packets sent in all after each of `acks` deliveries, window 20 packets of 1000 bytes.
    fn schedule(target: u64, acks: usize) -> Vec<u64> {
        let mut prr = Reduction::new(20_000, target * 1000, 19_000, 1000);
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
        let mut prr = Reduction::new(20_000, 10_000, 5_000, 1000);
        prr.on_sent(1000);
        prr.on_ack(1000, 5_000, false);
        assert_eq!(prr.cwnd(), 6_000);
        prr.on_sent(1000);
        prr.on_ack(1000, 5_000, true);
        assert_eq!(prr.cwnd(), 7_000);
    }
}
