//! Chooses the most likely of the feasible drifts.
//!
//! With the correct drift removed, the minimum delay of a path is the same in most seconds: in all those in which its
//! queues were empty for a moment, and also in all those in which a sender maintained a standing queue. With any other
//! drift it seems to grow or shrink steadily. The drift is therefore chosen that minimises the residual: the sum of
//! ln(1 + distance / scale) over all seconds and both directions, where the distances of a second are those of its
//! smallest delay from the smallest and from the median of all seconds. The logarithm makes a second that is 10 ms off
//! cost little more than one that is 1 ms off. A sum of the distances themselves could not distinguish a queue that
//! grows in one direction from a slope in both.
//!
//! The candidates are the slopes between seconds that lie half a run apart, and those of lines through two points of an
//! envelope, which include the best one if queues are occasionally empty.

use super::envelope::Envelope;
use super::{Block, LimitKind, NS_PER_S};

/// Negligible distance in ns: the delay that interrupts and schedulers add to most stamps.
const SCALE_NS: f64 = 20_000.0;
/// Typical difference of two quartz oscillators, in 10^-9. It decides between drifts that explain everything else
/// equally well, such as when one queue grows during all of a run.
const USUAL_PPB: f64 = 20_000.0;
/// Weight of this prior, in seconds of data.
const PRIOR: f64 = 16.0;
/// Pairs of seconds tried in each direction.
const PAIRS: usize = 48;

/// The most likely drift between two limits, in 10^-9; `None` if there is no candidate.
pub(super) fn likeliest(blocks: &[Block], (least, most): (f64, f64)) -> Option<f64> {
    let mut candidates: Vec<f64> = Vec::new();
    for kind in LimitKind::BOTH {
        let slopes = corners(blocks, kind).into_iter().chain(pairs(blocks, kind));
        candidates.extend(slopes.map(|slope| slope * NS_PER_S * kind.sign()));
    }
    let mut levels = Vec::with_capacity(blocks.len());
    let feasible = candidates
        .into_iter()
        .filter(|slope| (least..=most).contains(slope));
    let costs = feasible.map(|slope| (cost(blocks, slope, &mut levels), slope));
    costs
        .min_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, slope)| slope)
}

fn slope(a: (i64, i64), b: (i64, i64)) -> f64 {
    (b.1 - a.1) as f64 / (b.0 - a.0) as f64
}

/// Slopes of the envelope of all blocks.
fn corners(blocks: &[Block], kind: LimitKind) -> Vec<f64> {
    let mut hull = Envelope::default();
    for (x, y) in blocks
        .iter()
        .flat_map(|block| block.envelopes[kind as usize].points())
    {
        hull.add(x, y);
    }
    let points: Vec<_> = hull.points().collect();
    points
        .windows(2)
        .map(|pair| slope(pair[0], pair[1]))
        .collect()
}

/// Slopes between the smallest delays of blocks that lie half of all blocks apart.
fn pairs(blocks: &[Block], kind: LimitKind) -> Vec<f64> {
    let lowest = |block: &Block| {
        block.envelopes[kind as usize]
            .points()
            .min_by_key(|point| point.1)
    };
    let lowest: Vec<(i64, i64)> = blocks.iter().filter_map(lowest).collect();
    let half = lowest.len().div_ceil(2);
    let step = lowest.len().div_ceil(2 * PAIRS).max(1);
    let starts = (0..lowest.len() - half).step_by(step);
    starts
        .map(|at| slope(lowest[at], lowest[at + half]))
        .collect()
}

/// Residual of a drift.
fn cost(blocks: &[Block], slope_ppb: f64, levels: &mut Vec<f64>) -> f64 {
    let mut cost = blocks.len() as f64 / PRIOR * (slope_ppb.abs() / USUAL_PPB).ln_1p();
    let mut base = None;
    for kind in LimitKind::BOTH {
        let slope = slope_ppb / NS_PER_S * kind.sign();
        levels.clear();
        for block in blocks {
            let level = |(x, y): (i64, i64)| {
                // Relative to the first time, so that products keep the significant digits.
                y as f64 - slope * (x - *base.get_or_insert(x)) as f64
            };
            let points = block.envelopes[kind as usize].points().map(level);
            levels.extend(points.reduce(f64::min));
        }
        let middle = levels.len() / 2;
        if middle == 0 {
            continue;
        }
        let (_, &mut median, _) = levels.select_nth_unstable_by(middle, f64::total_cmp);
        let least = levels.iter().copied().fold(f64::INFINITY, f64::min);
        for level in levels.iter() {
            cost += ((level - least) / SCALE_NS).ln_1p();
            cost += ((level - median).abs() / SCALE_NS).ln_1p();
        }
    }
    cost
}
