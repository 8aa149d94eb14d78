//! The files of the server: their sizes and popularity.

use narrows_units::{Distribution, Zipf};
use std::collections::VecDeque;

const BODY: Distribution = Distribution::Lognormal {
    mu: 9.357,
    sigma: 1.318,
};
const TAIL: Distribution = Distribution::Pareto {
    scale: 133_000.0,
    shape: 1.1,
};
/// Where the body ends and the tail begins.
const CUT: f64 = 133_000.0;
/// Groups of sizes, equally likely to be requested, in which popularity is matched to the distribution of request
/// sizes.
const GROUPS: usize = 16;
/// The distribution of request sizes.
const REQUESTS: Distribution = Distribution::Pareto {
    scale: 1000.0,
    shape: 1.0,
};

/// The set of files, in ascending order of their sizes.
#[derive(Clone, Debug)]
pub(super) struct WebFiles {
    /// Size of each file in bytes.
    pub(super) sizes: Vec<u64>,
    /// Requests to each file in one block of requests: Zipf's law in integers.
    pub(super) requests: Vec<u32>,
}

/// The size that a fraction `p` of the files does not exceed, if a fraction `tail` is in the tail.
pub(super) fn size(p: f64, tail: f64) -> f64 {
    let body = 1.0 - tail;
    if p < body {
        BODY.quantile(p / body * BODY.cdf(CUT))
    } else {
        TAIL.quantile((p - body) / tail)
    }
}

/// The fraction of files of at most `x` bytes.
#[cfg(test)]
pub(super) fn cdf(x: f64, tail: f64) -> f64 {
    let below = BODY.cdf(x.min(CUT)) / BODY.cdf(CUT);
    (1.0 - tail) * below + tail * TAIL.cdf(x)
}

impl WebFiles {
    pub(super) fn new(count: usize, tail: f64) -> Self {
        let sizes: Vec<u64> = (0..count)
            .map(|index| size((index as f64 + 0.5) / count as f64, tail).round() as u64)
            .collect();
        let requests = matched(&sizes);
        WebFiles { sizes, requests }
    }

    /// Mean size of the requested files.
    pub(super) fn mean_request(&self) -> f64 {
        let weighted: f64 = self
            .sizes
            .iter()
            .zip(&self.requests)
            .map(|(&size, &times)| size as f64 * f64::from(times))
            .sum();
        let total: f64 = self.requests.iter().copied().map(f64::from).sum();
        weighted / total
    }
}

/// Assigns each file a popularity rank so that the request sizes follow their distribution as closely as whole files
/// allow. The least popular file is requested once per block, rank r n/r times.
///
/// The sizes are divided into groups of equal probability. Ranks are assigned from the most popular one on, each to the
/// group with the largest deficit, where the minimum that the group's other files will receive counts as assigned. A
/// rank that exceeds the share of a whole group goes into the third one, and half of the excess is taken from the
/// groups on either side, so that the error lies on both sides of the distribution. Within a group, smaller files are
/// more popular.
fn matched(sizes: &[u64]) -> Vec<u32> {
    let count = sizes.len();
    let zipf = Zipf::new(count, 1.0);
    let least = zipf.share(count);
    let mut groups: Vec<VecDeque<usize>> = vec![VecDeque::new(); GROUPS + 1];
    for (index, &size) in sizes.iter().enumerate() {
        let share = REQUESTS.cdf(size as f64);
        // Group 0: files outside the support of the request distribution.
        let group = if share > 0.0 {
            1 + ((share * GROUPS as f64) as usize).min(GROUPS - 1)
        } else {
            0
        };
        groups[group].push_back(index);
    }
    // The deficit of each group if all its files get the minimum.
    let mut lacking: Vec<f64> = groups
        .iter()
        .enumerate()
        .map(|(group, files)| {
            let share = if group == 0 { 0.0 } else { 1.0 / GROUPS as f64 };
            share - files.len() as f64 * least
        })
        .collect();
    let mut requests = vec![0; count];
    for rank in 1..=count {
        let share = zipf.share(rank);
        let open = (0..=GROUPS).filter(|&group| !groups[group].is_empty());
        let Some(group) = (if share > 1.0 / GROUPS as f64 && !groups[3].is_empty() {
            Some(3)
        } else {
            open.max_by(|&a, &b| lacking[a].total_cmp(&lacking[b]))
        }) else {
            break;
        };
        lacking[group] -= share - least;
        if lacking[group] < 0.0 && (2..GROUPS).contains(&group) {
            let too_much = std::mem::take(&mut lacking[group]) / 2.0;
            lacking[group - 1] += too_much;
            lacking[group + 1] += too_much;
        }
        if let Some(index) = groups[group].pop_front() {
            requests[index] = ((count as f64 / rank as f64).round() as u32).max(1);
        }
    }
    requests
}
