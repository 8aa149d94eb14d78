//! The objective of rule tables: senders that come and go share a link whose rate the table does not know.
//!
//! For each link the score is log2(share of the link's capacity while any sender is active) less log2(mean round trip by the
//! minimum one): proportional fairness of throughput and delay with equal weights, as Remy's objective with delta 1
//! (Winstein and Balakrishnan 2013, section 3.3), over all senders together.
//!
//! Queues are unlimited: a table that sends more than the link carries pays with delay, where a short queue would hide
//! the surplus behind losses that the objective doesn't see.

use crate::error::RecipeError;
use crate::model_file;
use narrows_cc::parts::exp_log;
use narrows_cc::parts::model_file::Model;
use narrows_cc::parts::rule_table::{RuleTable, Signals};
use narrows_cell::Cell;
use narrows_record::metrics;
use narrows_sim::parallel;
use narrows_sim::{Decision, Limits, run_to_record, run_to_record_deciding};
use narrows_units::Stream;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Packets of 1250 bytes: 10 000 bits.
const PACKET_SIZE: u32 = 1_250;
const PACKET_BITS: f64 = 10_000.0;
/// Least share of a link that counts, and the score of a table that has less.
const MIN_SHARE: f64 = 1e-6;
/// Points kept of each rule and network for the quantiles.
const MAX_POINTS: u64 = 1_000;
/// A table whose queue exceeds the packets that the link carries in this many ms is given up: its score could only
/// fall, and a flood of packets takes a hundred times as long to simulate as a table that is worth it.
const MAX_QUEUE_MS: f64 = 5_000.0;
/// Memory of a simulation for each packet in the network, as its limits count it.
const PACKET_MEMORY: f64 = 400.0;

/// Networks of an objective that differ in the rate of their link.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Objective {
    /// Number of links.
    pub links: usize,
    /// Rates of the slowest and the fastest link in packets per ms; the others lie between at equal ratios.
    pub packets_per_ms: [f64; 2],
    /// Propagation delay of each direction in ms.
    #[serde(default = "default_one_way_ms")]
    pub one_way_ms: f64,
    /// Duration in seconds.
    pub seconds: f64,
    /// Senders on each link.
    pub senders: usize,
    /// Mean duration of a sender's activity, and of the pauses between, in seconds (exponential).
    pub active_s: f64,
    /// See `active_s`.
    pub pause_s: f64,
}

/// That of Remy's tables.
fn default_one_way_ms() -> f64 {
    75.0
}

impl Objective {
    pub(crate) fn check(&self) -> Result<(), RecipeError> {
        let [slowest, fastest] = self.packets_per_ms;
        let numbers = [
            ("links", self.links as f64, 1.0, 1_000.0),
            ("packets_per_ms[0]", slowest, 1e-3, 1e3),
            ("packets_per_ms[1]", fastest, slowest, 1e3),
            ("one_way_ms", self.one_way_ms, 0.1, 10_000.0),
            ("seconds", self.seconds, 1.0, 3_600.0),
            ("senders", self.senders as f64, 1.0, 100.0),
            ("active_s", self.active_s, 0.01, 1e6),
            ("pause_s", self.pause_s, 0.01, 1e6),
        ];
        match numbers
            .iter()
            .find(|(_, value, min, max)| !(min..=max).contains(&value))
        {
            Some((name, value, min, max)) => Err(RecipeError(format!(
                "objective: {name} is {value}; use {min} to {max}"
            ))),
            None => Ok(()),
        }
    }

    /// Its networks, the slowest link first: it costs least. Each has its own times at which senders come and go, drawn
    /// with `seed`.
    pub(crate) fn networks(&self, seed: u64) -> impl Iterator<Item = Network> {
        let [slowest, fastest] = self.packets_per_ms;
        let steps = (self.links - 1).max(1) as f64;
        (0..self.links).map(move |index| {
            let rate = slowest * exp_log::powf(fastest / slowest, index as f64 / steps);
            Network::new(self, rate, index, seed)
        })
    }
}

/// A link and the times at which its senders are active.
#[derive(Clone, Debug)]
pub(crate) struct Network {
    pub(crate) packets_per_ms: f64,
    one_way_ns: u64,
    seconds: f64,
    /// Beginning and end of each activity in seconds.
    times: Vec<(f64, f64)>,
    /// Time in seconds during which any sender is active.
    active_s: f64,
    seed: u64,
}

/// Uses of a rule.
#[derive(Clone, Debug, Default)]
pub(crate) struct Use {
    pub(crate) count: u64,
    points: Vec<Signals>,
}

/// The uses of a rule in all networks.
#[derive(Clone, Debug, Default)]
pub(crate) struct Uses {
    /// Sum of its shares of the decisions of each network: what a network decides does not depend on its rate.
    pub(crate) weight: f64,
    /// Indices of the networks that use it.
    pub(crate) networks: Vec<usize>,
    /// Signals and their weights.
    points: Vec<(Signals, f64)>,
}

impl Uses {
    /// The uses of each of `rules` rules, from those of each network.
    pub(crate) fn merge(rules: usize, each: Vec<Vec<Use>>) -> Vec<Uses> {
        let mut merged = vec![Uses::default(); rules];
        for (network, uses) in each.into_iter().enumerate() {
            let total: u64 = uses.iter().map(|used| used.count).sum();
            for (sum, used) in merged.iter_mut().zip(uses) {
                if used.count == 0 {
                    continue;
                }
                let weight = used.count as f64 / total as f64;
                let each = weight / used.points.len() as f64;
                sum.weight += weight;
                sum.networks.push(network);
                sum.points
                    .extend(used.points.into_iter().map(|point| (point, each)));
            }
        }
        merged
    }

    /// The median of a signal: half of the weight lies below.
    pub(crate) fn median(&self, signal: usize) -> Option<f64> {
        let mut values: Vec<(f64, f64)> = self
            .points
            .iter()
            .map(|(point, weight)| (point[signal], *weight))
            .collect();
        values.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut below = 0.0;
        values
            .into_iter()
            .find(|(_, weight)| {
                below += weight;
                below >= self.weight / 2.0
            })
            .map(|(value, _)| value)
    }
}

/// The score of each of `networks` with the table `model`, on `threads` threads.
pub(crate) fn scores(model: &[u8], networks: &[Network], threads: usize) -> Vec<f64> {
    parallel::map(threads, networks, |network| network.score(model))
}

/// The uses of each of `rules` rules of the table `model` in each of `networks`, on `threads` threads.
pub(crate) fn uses(model: &[u8], rules: usize, networks: &[Network], threads: usize) -> Vec<Uses> {
    let each = parallel::map(threads, networks, |network| network.uses(model, rules));
    Uses::merge(rules, each)
}

impl Network {
    fn new(objective: &Objective, packets_per_ms: f64, index: usize, seed: u64) -> Self {
        let exponential =
            |stream: &mut Stream, mean: f64| -mean * exp_log::ln(1.0 - stream.uniform());
        let seconds = objective.seconds;
        let mut times: Vec<(f64, f64)> = Vec::new();
        for sender in 0..objective.senders {
            let mut stream = Stream::new(seed, &format!("learn/link/{index}/sender/{sender}"));
            let mut now = exponential(&mut stream, objective.pause_s);
            while now < seconds {
                let end = (now + exponential(&mut stream, objective.active_s)).min(seconds);
                times.push((now, end));
                now = end + exponential(&mut stream, objective.pause_s);
            }
        }
        if times.is_empty() {
            times.push((0.0, seconds));
        }
        times.sort_by(|a, b| a.0.total_cmp(&b.0));
        let (mut active_s, mut until) = (0.0, 0.0f64);
        for &(from, to) in &times {
            active_s += (to - until.max(from)).max(0.0);
            until = until.max(to);
        }
        Network {
            packets_per_ms,
            one_way_ns: (objective.one_way_ms * 1e6) as u64,
            seconds,
            times,
            active_s,
            seed,
        }
    }

    /// Packets that its link carries in its duration: the cost of its simulation.
    pub(crate) fn packets(&self) -> f64 {
        self.packets_per_ms * 1e3 * self.seconds
    }

    /// log2 of the share of the link, less log2 of the mean round trip by the minimum one.
    pub(crate) fn score(&self, model: &[u8]) -> f64 {
        let longest_ms = MAX_QUEUE_MS + self.one_way_ns as f64 * 2e-6;
        let limits = Limits {
            memory: (self.packets_per_ms * longest_ms * PACKET_MEMORY) as u64 + 1_000_000,
            ..Limits::UNLIMITED
        };
        let Ok(record) = run_to_record(&self.cell(model), &limits) else {
            return exp_log::ln(MIN_SHARE) / std::f64::consts::LN_2;
        };
        let bytes: u64 = record
            .run
            .flows
            .iter()
            .filter_map(|flow| flow.receiver.received_bytes)
            .sum();
        let capacity = self.active_s * self.packets_per_ms * 1e3 * PACKET_BITS;
        let share = bytes as f64 * 8.0 / capacity;
        let measured = metrics::measure(&record).unwrap_or_default();
        let rows = measured["flows"].as_array().map_or(&[][..], Vec::as_slice);
        let all = rows.iter().find(|row| row["flow"] == "all");
        let delay = all.and_then(|row| row["metrics"]["delay_mean_ns"].as_f64());
        let one_way = self.one_way_ns as f64;
        let rtt = delay.unwrap_or(one_way) + one_way;
        let ratio = share.max(MIN_SHARE) * 2.0 * one_way / rtt;
        // Above 1 by the packets in the queue when the last sender stops.
        (exp_log::ln(ratio) / std::f64::consts::LN_2).min(0.0)
    }

    /// The uses of each of `rules` rules.
    fn uses(&self, model: &[u8], rules: usize) -> Vec<Use> {
        let table = Model::parse(model).and_then(|model| RuleTable::new(&model));
        let mut table = table.expect("a table of the trainer");
        let actions: Vec<_> = table.actions().collect();
        let mut uses = vec![Use::default(); rules];
        let kept = (self.packets() as u64 / MAX_POINTS).max(1);
        let mut decide = |_: Decision, observation: &[f32], action: &mut Vec<f32>| {
            let point: Signals = std::array::from_fn(|k| f64::from(observation[k]));
            let index = table.index(&point);
            let rule = actions[index];
            action.extend([
                rule.multiple as f32,
                rule.increment as f32,
                rule.spacing_ms as f32,
            ]);
            let used = &mut uses[index];
            if used.count % kept == 0 && (used.points.len() as u64) < MAX_POINTS {
                used.points.push(point);
            }
            used.count += 1;
        };
        // A cell that can't run has no uses.
        let _ = run_to_record_deciding(&self.cell(model), &Limits::UNLIMITED, &mut decide);
        uses
    }

    /// One flow for each time of activity, over a link without a limit of its queue.
    fn cell(&self, content: &[u8]) -> Cell {
        let ns = |seconds: f64| (seconds * 1e9) as u64;
        let flow = |(index, (from, to)): (usize, &(f64, f64))| {
            // A flow lasts at least a microsecond.
            json!({"flow": index + 1, "scheme": "remy", "direction": "forward", "start_ns": ns(*from),
                "stop_ns": ns(*to).max(ns(*from) + 1_000).min(ns(self.seconds)),
                "params": {"model": model_file::reference(), "first_window": "rule", "slack": 0}})
        };
        let flows: Vec<Value> = self.times.iter().enumerate().map(flow).collect();
        let rate = (self.packets_per_ms * 1e3 * PACKET_BITS) as u64;
        let delay = |name: &str| json!({"name": name, "kind": "delay", "delay": self.one_way_ns});
        let json = json!({
            "format": "narrows/cell/1", "id": "learn", "scheme": "remy", "run": 1, "where": "simulate",
            "seed": self.seed, "duration_ns": ns(self.seconds), "record": "bins", "bin_ns": 1_000_000_000u64,
            "sample_ns": 10_000_000_000u64,
            "network": {"kind": "dumbbell", "backward": [delay("backward.0")], "forward": [
                {"name": "forward.0", "kind": "bottleneck", "rate": {"kind": "constant", "rate": rate},
                    "queue": {"kind": "unlimited"}}, delay("forward.1")]},
            "flows": flows, "transport": {"packet_size": PACKET_SIZE},
        });
        model_file::parse_cell(&json, content)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::{END, Rule, State, encode};
    use narrows_cc::parts::rule_table::SIGNALS;

    fn objective() -> Objective {
        Objective {
            links: 2,
            packets_per_ms: [0.5, 2.0],
            one_way_ms: 20.0,
            seconds: 5.0,
            senders: 1,
            active_s: 1000.0,
            pause_s: 0.01,
        }
    }

    fn table(increment: i32, multiple: f64, spacing_ms: f64) -> Vec<u8> {
        let rule = Rule {
            lower: [0.0; SIGNALS],
            upper: [END; SIGNALS],
            increment,
            multiple,
            spacing_ms,
            state: State::Pending,
        };
        encode(&[rule], &[])
    }

    #[test]
    fn scores_of_constant_windows_are_those_of_the_closed_form() {
        // 0.5 packets per ms, 40 ms and the 2 ms that a packet takes; the sender is active for almost all of the 5 s.
        let slowest = objective().networks(1).next().unwrap();
        for window in [10, 20, 40] {
            let rtt_ms = (f64::from(window) / 0.5).max(42.0);
            let share = f64::from(window) / rtt_ms / 0.5;
            let wanted = (share * 40.0 / rtt_ms).log2();
            let score = slowest.score(&table(window, 0.0, 0.01));
            assert!((score - wanted).abs() < 0.03, "{window}: {score} {wanted}");
        }
    }

    #[test]
    fn a_table_that_floods_its_link_is_given_up() {
        let slowest = objective().networks(1).next().unwrap();
        let floor = MIN_SHARE.log2();
        assert!((slowest.score(&table(256, 1.0, 1.0 / 150.0)) - floor).abs() < 1e-9);
    }

    #[test]
    fn a_use_weighs_as_much_on_a_slow_link_as_on_a_fast_one() {
        let used = |count: u64, value: f64| Use {
            count,
            points: vec![[value; SIGNALS]],
        };
        // Rule 0 has all decisions of the slow network and a tenth of those of the fast one.
        let each = vec![
            vec![used(10, 1.0), Use::default()],
            vec![used(100, 3.0), used(900, 5.0)],
        ];
        let merged = Uses::merge(2, each);
        assert!((merged[0].weight - 1.1).abs() < 1e-12);
        assert_eq!(
            (&*merged[0].networks, &*merged[1].networks),
            (&[0, 1][..], &[1][..])
        );
        assert_eq!(
            (merged[0].median(0), merged[1].median(2)),
            (Some(1.0), Some(5.0))
        );
        assert_eq!(Uses::default().median(0), None);
    }

    #[test]
    fn senders_come_and_go_at_other_times_on_each_link_and_with_each_seed() {
        let mut objective = objective();
        (objective.active_s, objective.pause_s) = (0.5, 0.5);
        let times = |seed: u64| -> Vec<Vec<(f64, f64)>> {
            let networks = objective.networks(seed);
            networks.map(|network| network.times).collect()
        };
        assert_eq!(times(1), times(1));
        assert_ne!(times(1)[0], times(1)[1]);
        assert_ne!(times(1)[0], times(2)[0]);
    }
}
