//! The earliest of many wake-ups.

use crate::Time;

/// Up to this many parts a linear scan is used.
const MAX_LINEAR: usize = 6;

/// A part, and when it wants to act; by time, and on ties by part.
type Wakeup = (Time, u32);

/// A tournament tree over a number of parts: the earliest wake-up is at the root, and
/// changing one costs one comparison per level. On ties the part with the lower number wins.
#[derive(Clone, Debug)]
pub struct Wakeups {
    /// Number of leaves, a power of two; 0 if there are so few parts that a linear scan is faster than any tree.
    leaves: usize,
    /// The leaves follow the inner nodes. Node `n` holds the earlier of nodes `2 n` and `2 n + 1`; the root is node 1.
    nodes: Vec<Wakeup>,
    /// The earliest wake-up, if no tree is used.
    best: Wakeup,
}

impl Wakeups {
    /// A tree of `parts` parts, none of which has a wake-up.
    pub fn new(parts: usize) -> Self {
        let leaves = if parts <= MAX_LINEAR {
            0
        } else {
            parts.next_power_of_two()
        };
        let places = leaves.max(MAX_LINEAR) as u32;
        let mut nodes = vec![(Time::FAR, 0); leaves];
        nodes.extend((0..places).map(|part| (Time::FAR, part)));
        for node in (1..leaves).rev() {
            nodes[node] = nodes[2 * node];
        }
        Wakeups {
            leaves,
            nodes,
            best: (Time::FAR, 0),
        }
    }

    /// Makes room for at least `parts` parts; the new parts have no wake-up.
    pub fn grow(&mut self, parts: usize) {
        let known = self.nodes.len() - self.leaves;
        if parts <= known {
            return;
        }
        let mut larger = Wakeups::new(parts.max(2 * known));
        for (part, (time, _)) in self.nodes[self.leaves..].iter().enumerate() {
            larger.set(part, *time);
        }
        *self = larger;
    }

    /// Part `part` wants to act at `time`.
    #[inline]
    pub fn set(&mut self, part: usize, time: Time) {
        if self.nodes[self.leaves + part].0 != time {
            self.change(part, time);
        }
    }

    fn change(&mut self, part: usize, time: Time) {
        let mut node = self.leaves + part;
        let mut winner = (time, part as u32);
        self.nodes[node] = winner;
        if self.leaves == 0 {
            if winner < self.best {
                self.best = winner;
            } else if winner.1 == self.best.1 {
                self.best = self.look_through();
            }
            return;
        }
        while node > 1 {
            // Branch-free: which of the two is earlier is unpredictable.
            let other = self.nodes[node ^ 1];
            let is_earlier = other.0 < winner.0 || (other.0 == winner.0 && other.1 < winner.1);
            winner.0 = if is_earlier { other.0 } else { winner.0 };
            winner.1 = if is_earlier { other.1 } else { winner.1 };
            node /= 2;
            // Nothing can change further up.
            if self.nodes[node] == winner {
                return;
            }
            self.nodes[node] = winner;
        }
    }

    /// Part `part` wants to act at `time`, which is noted only if it is earlier than the known wake-up, or if that is
    /// not after `now`. Timers that are postponed repeatedly (retransmission, delayed acknowledgements) then cost
    /// nothing: a driver that calls the part too early learns the later time and [sets](Wakeups::set) it.
    #[inline]
    pub fn bring_forward(&mut self, part: usize, time: Time, now: Time) {
        let known = self.nodes[self.leaves + part].0;
        if time < known || known <= now {
            self.set(part, time);
        }
    }

    /// Scans the maximum number of parts, so that the loop is unrolled: unused entries have no wake-up.
    #[inline]
    fn look_through(&self) -> Wakeup {
        let all: &[Wakeup; MAX_LINEAR] = self.nodes.first_chunk().expect("there is room for all");
        let mut best = (Time::FAR, 0);
        for &(time, part) in all {
            let earlier = time < best.0;
            best.0 = if earlier { time } else { best.0 };
            best.1 = if earlier { part } else { best.1 };
        }
        best
    }

    /// The earliest wake-up and its part.
    #[inline]
    pub fn earliest(&self) -> (Time, usize) {
        let (time, part) = if self.leaves == 0 {
            self.best
        } else {
            self.nodes[1]
        };
        (time, part as usize)
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
