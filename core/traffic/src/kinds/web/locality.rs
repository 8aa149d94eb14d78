//! The sequence of requests: exact popularity, and temporal locality.

use super::files::WebFiles;
use narrows_units::{Distribution, Stream};
use std::collections::VecDeque;

/// Distance in the stack of recently used files at which the next request lies.
pub(super) const DISTANCE: Distribution = Distribution::Lognormal {
    mu: 1.5,
    sigma: 0.80,
};
/// Number of pending requests among which the next one is chosen.
const AHEAD: usize = 4096;
/// Turns after which a request is chosen unconditionally.
const PATIENCE: u64 = 2 * AHEAD as u64;

/// An endless sequence of requests, as indices of files.
#[derive(Clone, Debug)]
pub(super) struct Sequence {
    /// One block of requests: each file in proportion to its popularity. Reshuffled for each use.
    block: Vec<u32>,
    used: usize,
    /// Number of pending requests for each file, and their total.
    wanted: Vec<u32>,
    ahead: usize,
    /// The pending requests, oldest first, with the turn in which they were added; those chosen since are still in the
    /// list, as counted by `chosen`.
    order: VecDeque<(u32, u64)>,
    chosen: Vec<u32>,
    turn: u64,
    /// All files, the most recently used one first.
    stack: Vec<u32>,
    stream: Stream,
}

impl Sequence {
    pub(super) fn new(files: &WebFiles, mut stream: Stream) -> Self {
        let block: Vec<u32> = files
            .requests
            .iter()
            .zip(0u32..)
            .flat_map(|(&times, file)| std::iter::repeat_n(file, times as usize))
            .collect();
        let mut stack: Vec<u32> = (0..files.sizes.len() as u32).collect();
        shuffle(&mut stack, &mut stream);
        Sequence {
            used: block.len(),
            block,
            ahead: 0,
            wanted: vec![0; stack.len()],
            order: VecDeque::with_capacity(2 * AHEAD),
            chosen: vec![0; stack.len()],
            turn: 0,
            stack,
            stream,
        }
    }

    /// The file requested next.
    pub(super) fn next(&mut self) -> usize {
        self.turn += 1;
        while self.ahead < AHEAD {
            if self.used == self.block.len() {
                shuffle(&mut self.block, &mut self.stream);
                self.used = 0;
            }
            let file = self.block[self.used];
            self.used += 1;
            self.ahead += 1;
            self.wanted[file as usize] += 1;
            self.order.push_back((file, self.turn));
        }
        // Drawn unconditionally, so that the draws do not depend on which requests are overdue.
        let drawn = DISTANCE.sample(&mut self.stream) as usize;
        while let Some(&(oldest, _)) = self.order.front()
            && self.chosen[oldest as usize] > 0
        {
            self.chosen[oldest as usize] -= 1;
            self.order.pop_front();
        }
        let (oldest, since) = self.order[0];
        let depth = if self.turn - since > PATIENCE {
            let found = self.stack.iter().position(|&file| file == oldest);
            found.unwrap_or(0)
        } else {
            self.nearest(drawn)
        };
        let file = self.stack[depth] as usize;
        self.ahead -= 1;
        self.wanted[file] -= 1;
        self.chosen[file] += 1;
        self.stack[..=depth].rotate_right(1);
        file
    }

    /// The position in the stack closest to `depth` whose file is among the pending requests.
    fn nearest(&self, depth: usize) -> usize {
        let depth = depth.min(self.stack.len() - 1);
        let wanted = |place: usize| self.wanted[self.stack[place] as usize] > 0;
        for away in 0..self.stack.len() {
            if depth >= away && wanted(depth - away) {
                return depth - away;
            }
            if depth + away < self.stack.len() && wanted(depth + away) {
                return depth + away;
            }
        }
        depth
    }
}

/// Fisher-Yates shuffle.
fn shuffle(list: &mut [u32], stream: &mut Stream) {
    for last in (1..list.len()).rev() {
        list.swap(last, stream.below(last as u64 + 1) as usize);
    }
}
