//! Scores of finished models: throughput and delay of one flow on each of many paths, and the objective of rule tables.

use crate::error::RecipeError;
use crate::objective::{self, Network, Objective};
use crate::paths::Path;
use crate::trained_scheme::Subject;
use narrows_cc::parts::model_file::Model;
use narrows_cc::parts::rule_table::RuleTable;
use narrows_sim::parallel;
use narrows_sim::{Limits, summarise};
use serde::Serialize;

/// IP size of packets in bytes of schemes that imitation does not train.
const OTHER_PACKET_SIZE: u32 = 1_500;

/// Measurements of a flow on a path.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Score {
    /// In bit/s.
    pub throughput_bps: f64,
    /// 95th percentile of the one-way delay in ns.
    pub delay_p95_ns: f64,
    /// Share of packets lost.
    pub loss: f64,
}

impl Score {
    /// Throughput (Mbit/s) by the 95th percentile of the one-way delay (ms); 0 for a flow that delivers nothing.
    pub fn power(&self) -> f64 {
        if self.delay_p95_ns > 0.0 {
            self.throughput_bps / self.delay_p95_ns
        } else {
            0.0
        }
    }
}

/// A path of a score, with its conditions.
#[derive(Clone, Debug, PartialEq)]
pub struct Trial {
    /// The path.
    pub path: Path,
    /// Hosts react as late as a virtual machine.
    pub late_hosts: bool,
    /// Length in seconds.
    pub seconds: f64,
    /// Seed.
    pub seed: u64,
}

/// The scores of the model in `content` for `scheme` in each of `trials`, on `threads` threads.
///
/// # Errors
/// An unknown scheme, a path out of bounds, a model of another kind.
pub fn score(
    scheme: &str,
    content: &[u8],
    trials: &[Trial],
    threads: usize,
) -> Result<Vec<Score>, RecipeError> {
    let known = Subject::find(scheme).map(|subject| subject.packet_size);
    let size = known.unwrap_or(OTHER_PACKET_SIZE);
    for (number, trial) in trials.iter().enumerate() {
        if let Some(problem) = trial.path.problem() {
            return Err(RecipeError(format!("paths[{number}]: {problem}")));
        }
    }
    let scores = parallel::map(threads, trials, |trial| {
        let Trial {
            path,
            late_hosts,
            seconds,
            seed,
        } = trial;
        let cell = path.cell((scheme, size), *late_hosts, *seed, *seconds, content);
        let summary =
            summarise(&cell, &Limits::UNLIMITED).map_err(|error| RecipeError(error.to_string()))?;
        let metrics = &summary.measured["flows"][0]["metrics"];
        let metric = |name: &str| metrics[name].as_f64().unwrap_or(0.0);
        Ok(Score {
            throughput_bps: metric("throughput_bps"),
            delay_p95_ns: metric("delay_p95_ns"),
            loss: metric("loss_ratio"),
        })
    });
    scores.into_iter().collect()
}

/// The objective of a rule table on a link.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct LinkScore {
    /// Rate of the link.
    pub packets_per_ms: f64,
    /// log2 of the share of the link, less log2 of the mean round trip by the minimum one.
    pub score_log2: f64,
}

/// The score of the rule table in `content` on each link of `objective`, the slowest first, on `threads` threads. `seed`
/// determines when senders come and go.
///
/// # Errors
/// An objective out of bounds, a model of another kind.
pub fn score_rules(
    content: &[u8],
    objective: &Objective,
    seed: u64,
    threads: usize,
) -> Result<Vec<LinkScore>, RecipeError> {
    objective.check()?;
    let table = Model::parse(content).and_then(|model| {
        model.expect_kind("remy")?;
        RuleTable::new(&model)
    });
    table.map_err(RecipeError)?;
    let networks: Vec<Network> = objective.networks(seed).collect();
    let scores = objective::scores(content, &networks, threads);
    let links = networks.iter().zip(scores);
    Ok(links
        .map(|(network, score_log2)| LinkScore {
            packets_per_ms: network.packets_per_ms,
            score_log2,
        })
        .collect())
}
