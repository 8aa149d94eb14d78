//! Acknowledgement aggregation: bytes acknowledged at once in excess of the bandwidth.

use super::MaxFilter;
use narrows_units::Time;

/// Packets after which an epoch always ends (Linux net/ipv4/tcp_bbr.c).
const EPOCH_PACKETS: f64 = 1_048_576.0;

/// Method of tracking recent maxima.
#[derive(Clone, Copy, Debug)]
pub enum Memory {
    /// Two slots; every so many rounds the older one is emptied and filled again (Linux).
    Slots {
        /// Maxima of the current and the last span of rounds.
        slots: [f64; 2],
        /// The slot in use.
        current: usize,
        /// Rounds for which it has been in use.
        rounds: u64,
    },
    /// A sliding window over rounds (draft-ietf-ccwg-bbr).
    Window(MaxFilter),
}

impl Memory {
    /// Two empty slots.
    pub fn slots() -> Self {
        Memory::Slots {
            slots: [0.0; 2],
            current: 0,
            rounds: 0,
        }
    }
}

/// With receivers and links that aggregate acknowledgements, the path seems idle between them. The excess of the bytes
/// acknowledged over those that the bandwidth would deliver since an epoch began is the amount that a sender must have
/// in flight in addition to one bandwidth-delay product.
#[derive(Clone, Copy, Debug)]
pub struct Aggregation {
    epoch: Time,
    /// Bytes acknowledged in the epoch.
    acked: f64,
    memory: Memory,
}

impl Aggregation {
    /// A new estimator that begins at `now`.
    pub fn new(now: Time, memory: Memory) -> Self {
        Aggregation {
            epoch: now,
            acked: 0.0,
            memory,
        }
    }

    /// Begins a new epoch: later acknowledgements are independent of earlier ones.
    pub fn restart(&mut self, now: Time) {
        self.epoch = now;
        self.acked = 0.0;
    }

    /// `acked` bytes are acknowledged at `now` in round `round` (which begins now if `round_start`),
    /// the model's bandwidth being `bandwidth`. Maxima live for `window` rounds; none exceeds `limit`
    /// bytes.
    #[allow(clippy::too_many_arguments)] // Each is a different quantity of the same acknowledgement.
    pub fn update(
        &mut self,
        now: Time,
        acked: f64,
        mss: f64,
        bandwidth: f64,
        limit: f64,
        (round, round_start): (u64, bool),
        window: u64,
    ) {
        let mut expected = bandwidth * now.since(self.epoch).secs();
        if self.acked <= expected || self.acked + acked >= EPOCH_PACKETS * mss {
            self.restart(now);
            expected = 0.0;
        }
        self.acked += acked;
        let extra = (self.acked - expected).min(limit);
        match &mut self.memory {
            Memory::Slots {
                slots,
                current,
                rounds,
            } => {
                if round_start {
                    *rounds += 1;
                    if *rounds >= window {
                        *rounds = 0;
                        *current = 1 - *current;
                        slots[*current] = 0.0;
                    }
                }
                slots[*current] = slots[*current].max(extra);
            }
            Memory::Window(filter) => {
                filter.set_window(window);
                filter.update(round, extra);
            }
        }
    }

    /// The largest excess in memory, in bytes.
    #[inline]
    pub fn extra(&self) -> f64 {
        match &self.memory {
            Memory::Slots { slots, .. } => slots[0].max(slots[1]),
            Memory::Window(filter) => filter.max(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 20 packets of 1000 bytes per 100 ms, in bursts of `burst` packets, for 12 rounds.
    fn bursts(burst: u64, memory: Memory) -> f64 {
        let mut aggregation = Aggregation::new(Time::ZERO, memory);
        let bandwidth = 200_000.0;
        for index in 1..=(240 / burst) {
            let now = Time::from_ns(index * burst * 5_000_000);
            let round = index * burst / 20;
            let start = index * burst % 20 < burst;
            aggregation.update(
                now,
                burst as f64 * 1000.0,
                1000.0,
                bandwidth,
                1e6,
                (round, start),
                5,
            );
        }
        aggregation.extra()
    }

    #[test]
    fn the_excess_is_what_comes_at_once() {
        for memory in [Memory::slots(), Memory::Window(MaxFilter::new(5))] {
            // Evenly spaced acknowledgements match the bandwidth except for the current packet.
            assert_eq!(bursts(1, memory), 1000.0);
            assert_eq!(bursts(10, memory), 10_000.0);
        }
    }

    #[test]
    fn slots_forget_after_two_spans() {
        let mut aggregation = Aggregation::new(Time::ZERO, Memory::slots());
        let mut at = |ms: u64, acked: f64, start: bool| {
            let now = Time::from_ns(ms * 1_000_000);
            aggregation.update(now, acked, 1000.0, 1e6, 1e9, (0, start), 5);
            aggregation.extra()
        };
        assert_eq!(at(1, 50_000.0, false), 50_000.0);
        // Ten rounds later both slots have been emptied once.
        for round in 1..=9 {
            assert_eq!(at(round * 1000, 1000.0, true), 50_000.0, "round {round}");
        }
        assert_eq!(at(10_000, 1000.0, true), 1000.0);
    }

    #[test]
    fn the_excess_is_limited() {
        let mut aggregation = Aggregation::new(Time::ZERO, Memory::slots());
        let now = Time::from_ns(1);
        aggregation.update(now, 9e6, 1000.0, 1.0, 20_000.0, (0, false), 5);
        assert_eq!(aggregation.extra(), 20_000.0);
    }
}
