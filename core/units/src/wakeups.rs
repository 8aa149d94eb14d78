//! The earliest of many wake-ups.

use crate::Time;

/// A tournament tree over a fixed number of parts: the earliest wake-up is at the root, and
/// changing one costs one comparison per level. On ties the part with the lower number wins.
#[derive(Clone, Debug)]
pub struct Wakeups {
    /// Number of leaves, a power of two.
    leaves: usize,
    times: Vec<Time>,
    /// `winner[n]`: the part that wins below inner node `n`; the root is node 1.
    winner: Vec<u32>,
}

impl Wakeups {
    /// A tree of `parts` parts, none of which wants anything.
    pub fn new(parts: usize) -> Self {
        let leaves = parts.next_power_of_two().max(2);
        let mut winner = vec![0; leaves];
        for node in (1..leaves).rev() {
            let left = 2 * node;
            winner[node] = if left >= leaves {
                (left - leaves) as u32
            } else {
                winner[left]
            };
        }
        Wakeups {
            leaves,
            times: vec![Time::FAR; leaves],
            winner,
        }
    }

    /// Part `part` wants to act at `time`.
    #[inline]
    pub fn set(&mut self, part: usize, time: Time) {
        if self.times[part] == time {
            return;
        }
        self.times[part] = time;
        // The parent of leaf `part`.
        let mut node = (part + self.leaves) >> 1;
        while node >= 1 {
            let (left, right) = (2 * node, 2 * node + 1);
            let (a, b) = if left >= self.leaves {
                ((left - self.leaves) as u32, (right - self.leaves) as u32)
            } else {
                (self.winner[left], self.winner[right])
            };
            // The left subtree holds the lower numbers.
            let b_wins = self.times[b as usize] < self.times[a as usize];
            self.winner[node] = if b_wins { b } else { a };
            node /= 2;
        }
    }

    /// The earliest wake-up and its part.
    #[inline]
    pub fn earliest(&self) -> (Time, usize) {
        let part = self.winner[1] as usize;
        (self.times[part], part)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Stream;

    #[test]
    fn agrees_with_a_search() {
        let mut stream = Stream::new(3, "wakeups");
        for parts in [1, 2, 3, 7, 8, 33] {
            let mut tree = Wakeups::new(parts);
            let mut times = vec![Time::FAR; parts];
            for _ in 0..2000 {
                let part = stream.below(parts as u64) as usize;
                let time = Time::from_ns(stream.below(50));
                tree.set(part, time);
                times[part] = time;
                let best = times
                    .iter()
                    .enumerate()
                    .map(|(part, time)| (*time, part))
                    .min();
                assert_eq!(Some(tree.earliest()), best);
            }
        }
    }
}
