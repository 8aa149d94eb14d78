//! Which ids have been seen: no datagram is taken twice.
//!
//! A bitmap over the newest ids slides along with the largest one (RFC 6479 describes such a
//! window for IPsec). Real paths reorder; what is older than the window cannot be told from a
//! replay and is refused.

/// Ids that are remembered: at 100 000 packets per second, two thirds of a second of reordering.
const WIDTH: u64 = 1 << 16;
const WORDS: u64 = WIDTH / 64;

/// What the window says about an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen {
    /// Not seen before; it is noted now.
    New,
    /// Seen before.
    Again,
    /// Too old to be remembered.
    TooOld,
}

/// The ids that one end has seen from the other in one session.
#[derive(Clone, Debug)]
pub struct Window {
    /// One bit per id, at its place modulo the width.
    bits: Box<[u64]>,
    /// The id after the largest one; 0 before the first.
    next: u64,
}

impl Default for Window {
    fn default() -> Self {
        Window {
            bits: vec![0; WORDS as usize].into(),
            next: 0,
        }
    }
}

impl Window {
    /// Notes an id (below 2^64 - 1) and says whether it is new. Call it for authentic datagrams
    /// only, or a stranger could push the window away.
    #[inline]
    pub fn note(&mut self, id: u64) -> Seen {
        if id >= self.next {
            self.clear_up_to(id);
            self.next = id + 1;
        } else if self.next - id > WIDTH {
            return Seen::TooOld;
        }
        let (word, bit) = ((id / 64 % WORDS) as usize, 1 << (id % 64));
        if self.bits[word] & bit != 0 {
            return Seen::Again;
        }
        self.bits[word] |= bit;
        Seen::New
    }

    /// Whether nothing was noted.
    pub fn is_empty(&self) -> bool {
        self.next == 0
    }

    /// Whether `id` is larger than all that were noted.
    #[inline]
    pub fn is_newest(&self, id: u64) -> bool {
        id >= self.next
    }

    /// Forgets what the places from `next` to `id` said about ids one width ago.
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
        let mut window = Window::default();
        assert_eq!(window.note(10 * WIDTH), Seen::New);
        assert_eq!(window.note(9 * WIDTH), Seen::TooOld);
        assert_eq!(window.note(9 * WIDTH + 1), Seen::New);
        assert_eq!(window.note(9 * WIDTH + 1), Seen::Again);
        assert_eq!(window.note(u64::MAX - 1), Seen::New);
        assert_eq!(window.note(u64::MAX - 1), Seen::Again);
    }

    /// Steps of all sizes, also back and over the whole window.
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
            let (mut window, mut all) = (Window::default(), BTreeSet::new());
            let mut id = 5u64;
            for step in steps {
                id = id.saturating_add_signed(step);
                let largest = all.last().copied().unwrap_or(0);
                let expected = if largest >= id && largest - id >= WIDTH {
                    Seen::TooOld
                } else if all.insert(id) {
                    Seen::New
                } else {
                    Seen::Again
                };
                prop_assert_eq!(window.is_newest(id), all.range(id + 1..).next().is_none() && expected == Seen::New);
                prop_assert_eq!(window.note(id), expected);
            }
        }
    }
}
