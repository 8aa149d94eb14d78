//! The earliest of many wake-ups.

use crate::Time;

/// Up to this many parts are simply looked through.
const MAX_LINEAR: usize = 6;

/// A tournament tree over a number of parts: the earliest wake-up is at the root, and
/// changing one costs one comparison per level. On ties the part with the lower number wins.
#[derive(Clone, Debug)]
pub struct Wakeups {
    /// Number of leaves, a power of two; 0 when there are so few parts that looking at all of them
    /// is faster than any tree.
    leaves: usize,
    times: Vec<Time>,
    /// `winner[n]`: the part that wins below inner node `n`; the root is node 1.
    winner: Vec<u32>,
    /// The earliest, while there is no tree.
    best: (Time, usize),
}

impl Wakeups {
    /// A tree of `parts` parts, none of which wants anything.
    pub fn new(parts: usize) -> Self {
        if parts <= MAX_LINEAR {
            return Wakeups {
                leaves: 0,
                times: vec![Time::FAR; MAX_LINEAR],
                winner: Vec::new(),
                best: (Time::FAR, 0),
            };
        }
        let leaves = parts.next_power_of_two();
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
            best: (Time::FAR, 0),
        }
    }

    /// Makes room for at least `parts` parts; the new ones want nothing.
    pub fn grow(&mut self, parts: usize) {
        if parts <= self.times.len() {
            return;
        }
        let mut larger = Wakeups::new(parts.max(2 * self.times.len()));
        for (part, time) in self.times.iter().enumerate() {
            larger.set(part, *time);
        }
        *self = larger;
    }

    /// Part `part` wants to act at `time`.
    #[inline]
    pub fn set(&mut self, part: usize, time: Time) {
        if self.times[part] != time {
            self.change(part, time);
        }
    }

    fn change(&mut self, part: usize, time: Time) {
        self.times[part] = time;
        if self.leaves == 0 {
            if (time, part) < self.best {
                self.best = (time, part);
            } else if part == self.best.1 {
                self.best = self.look_through();
            }
            return;
        }
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
            let before = self.winner[node];
            let winner = if b_wins { b } else { a };
            self.winner[node] = winner;
            // Somebody else wins here as before: further up nothing can change.
            if winner == before && winner != part as u32 {
                return;
            }
            node /= 2;
        }
    }

    /// Part `part` wants to act at `time`, which counts only if it is earlier than what is known, or
    /// if that is not after `now`. Timers that are put off again and again (retransmission, delayed
    /// acknowledgements) then cost nothing: whoever drives the part finds, when it comes to its turn
    /// too early, that it wants to act later, and [sets](Wakeups::set) that.
    #[inline]
    pub fn bring_forward(&mut self, part: usize, time: Time, now: Time) {
        let known = self.times[part];
        if time < known || known <= now {
            self.set(part, time);
        }
    }

    /// Looks at as many as there can be, so that the loop is unrolled: parts that are not there want nothing.
    #[inline]
    fn look_through(&self) -> (Time, usize) {
        let times: &[Time; MAX_LINEAR] = self.times.first_chunk().expect("there is room for all");
        let mut best = (Time::FAR, 0);
        for (part, &time) in times.iter().enumerate() {
            let earlier = time < best.0;
            best.0 = if earlier { time } else { best.0 };
            best.1 = if earlier { part } else { best.1 };
        }
        best
    }

    /// The earliest wake-up and its part.
    #[inline]
    pub fn earliest(&self) -> (Time, usize) {
        if self.leaves == 0 {
            return self.best;
        }
        let part = self.winner[1] as usize;
        (self.times[part], part)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Stream;

    #[test]
    fn growing_keeps_what_was_set() {
        let mut tree = Wakeups::new(2);
        let mut times = vec![Time::FAR; 2];
        let mut stream = Stream::new(4, "wakeups");
        for parts in [2, 3, 5, 40] {
            tree.grow(parts);
            times.resize(parts, Time::FAR);
            for _ in 0..100 {
                let part = stream.below(parts as u64) as usize;
                let time = Time::from_ns(stream.below(50));
                tree.set(part, time);
                times[part] = time;
                let best = times.iter().enumerate().map(|(part, time)| (*time, part));
                assert_eq!(Some(tree.earliest()), best.min());
            }
        }
    }

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
