//! Round trips counted in packets, not in time.

use narrows_units::Bytes;

/// A round lasts until a packet sent after its beginning is acknowledged.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rounds {
    /// Value of the delivered counter when the round began.
    mark: u64,
    count: u64,
}

impl Rounds {
    /// An acknowledgement of a packet before which `prior_delivered` had been delivered; `delivered` including it.
    /// Returns whether a round begins.
    #[inline]
    pub fn update(&mut self, prior_delivered: Bytes, delivered: Bytes) -> bool {
        if prior_delivered.get() < self.mark {
            return false;
        }
        self.mark = delivered.get();
        self.count += 1;
        true
    }

    /// Begins a round here without counting it: it ends when a packet sent from now on is acknowledged.
    #[inline]
    pub fn restart(&mut self, delivered: Bytes) {
        self.mark = delivered.get();
    }

    /// Rounds so far.
    #[inline]
    pub fn count(&self) -> u64 {
        self.count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_ends_with_a_packet_sent_after_it_began() {
        let at = Bytes::new;
        let mut rounds = Rounds::default();
        assert!(rounds.update(at(0), at(1)));
        assert!(!rounds.update(at(0), at(2)));
        assert!(rounds.update(at(1), at(3)));
        assert!(!rounds.update(at(2), at(4)));
        rounds.restart(at(9));
        assert!(!rounds.update(at(8), at(10)));
        assert!(rounds.update(at(9), at(11)));
        assert_eq!(rounds.count(), 3);
    }
}
