//! Tracks the ids seen so far: no datagram is accepted twice.
//!
//! A bitmap over the newest ids slides with the largest id (RFC 6479 describes such a window for IPsec). Real paths
//! reorder; an id older than the window cannot be distinguished from a replay and is rejected.

/// Width of the window in ids: at 100 000 packets per second, two thirds of a second of reordering.
const WIDTH: u64 = 1 << 16;
const WORDS: u64 = WIDTH / 64;

/// Result of checking an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplayVerdict {
    /// Not seen before; it is noted now.
    New,
    /// Seen before.
    Again,
    /// Too old to be remembered.
    TooOld,
}

/// The ids that one end has seen from the other in one session.
#[derive(Clone, Debug)]
pub struct ReplayWindow {
    /// One bit per id, at its position modulo the width.
    bits: Box<[u64]>,
    /// The id after the largest one; 0 before the first.
    next: u64,
}

impl Default for ReplayWindow {
    fn default() -> Self {
        ReplayWindow {
            bits: vec![0; WORDS as usize].into(),
            next: 0,
        }
    }
}

impl ReplayWindow {
    /// Records an id (below 2^64 - 1) and returns whether it is new. Call it for authentic datagrams only, or a
    /// stranger could shift the window.
    #[inline]
    pub fn check_and_mark(&mut self, id: u64) -> ReplayVerdict {
        if id >= self.next {
            self.clear_up_to(id);
            self.next = id + 1;
        } else if self.next - id > WIDTH {
            return ReplayVerdict::TooOld;
        }
        let (word, bit) = ((id / 64 % WORDS) as usize, 1 << (id % 64));
        if self.bits[word] & bit != 0 {
            return ReplayVerdict::Again;
        }
        self.bits[word] |= bit;
        ReplayVerdict::New
    }

    /// True if no id was recorded.
    pub fn is_empty(&self) -> bool {
        self.next == 0
    }

    /// True if `id` is larger than all recorded ids.
    #[inline]
    pub fn is_newest(&self, id: u64) -> bool {
        id >= self.next
    }

    /// Clears the positions from `next` to `id`, which referred to ids one width earlier.
    #[inline]
    fn clear_up_to(&mut self, id: u64) {
        if id - self.next >= WIDTH {
            self.bits.fill(0);
            return;
        }
        let mut at = self.next;
        while at <= id {
            let word = (at / 64 % WORDS) as usize;
            if at.is_multiple_of(64) && id - at >= 63 {
                self.bits[word] = 0;
                at += 64;
            } else {
                self.bits[word] &= !(1 << (at % 64));
                at += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[test]
    fn the_edge_of_the_window_is_exact() {
        let mut window = ReplayWindow::default();
        assert_eq!(window.check_and_mark(10 * WIDTH), ReplayVerdict::New);
        assert_eq!(window.check_and_mark(9 * WIDTH), ReplayVerdict::TooOld);
        assert_eq!(window.check_and_mark(9 * WIDTH + 1), ReplayVerdict::New);
        assert_eq!(window.check_and_mark(9 * WIDTH + 1), ReplayVerdict::Again);
        assert_eq!(window.check_and_mark(u64::MAX - 1), ReplayVerdict::New);
        assert_eq!(window.check_and_mark(u64::MAX - 1), ReplayVerdict::Again);
    }

    /// Steps of all sizes, including backwards and across the whole window.
    fn step() -> impl Strategy<Value = i64> {
        prop_oneof![
            4 => -3i64..6,
            2 => -200i64..400,
            1 => -2 * WIDTH as i64..2 * WIDTH as i64,
        ]
    }

    proptest! {
        #[test]
        fn it_agrees_with_a_set_of_all_ids(steps in prop::collection::vec(step(), 1..300)) {
            let (mut window, mut all) = (ReplayWindow::default(), BTreeSet::new());
            let mut id = 5u64;
            for step in steps {
                id = id.saturating_add_signed(step);
                let largest = all.last().copied().unwrap_or(0);
                let expected = if largest >= id && largest - id >= WIDTH {
                    ReplayVerdict::TooOld
                } else if all.insert(id) {
                    ReplayVerdict::New
                } else {
                    ReplayVerdict::Again
                };
                prop_assert_eq!(window.is_newest(id), all.range(id + 1..).next().is_none() && expected == ReplayVerdict::New);
                prop_assert_eq!(window.check_and_mark(id), expected);
            }
        }
    }
}
