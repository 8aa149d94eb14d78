//! One flow on a path, and results of several seeds.

use narrows_record::series;
use narrows_tests::single_flow::profile;
use narrows_tests::{Dumbbell, measured};
use serde_json::{Value, json};

/// A path with one flow, and the set-up of its scheme.
#[derive(Clone, Copy)]
pub(crate) struct Play {
    pub(crate) scheme: &'static str,
    pub(crate) profile: &'static str,
    /// Parameters in addition to those of the profile.
    pub(crate) params: &'static [(&'static str, &'static str)],
    pub(crate) mbps: f64,
    pub(crate) rtt_ms: f64,
    /// Buffer in packets.
    pub(crate) buffer: u64,
    pub(crate) loss: f64,
    pub(crate) seconds: f64,
}

/// Results of a flow in the second half of its time, except for the loss.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen {
    /// Rate behind the bottleneck, in Mbit/s of IP bytes.
    pub(crate) mbps: f64,
    /// Waiting time in ms, mean over time.
    pub(crate) queueing_ms: f64,
    /// Dropped at the bottleneck over the whole run, in percent.
    pub(crate) dropped: f64,
}

impl Play {
    pub(crate) const fn new(scheme: &'static str, profile: &'static str) -> Play {
        Play {
            scheme,
            profile,
            params: &[],
            mbps: 12.0,
            rtt_ms: 40.0,
            buffer: 100,
            loss: 0.0,
            seconds: 30.0,
        }
    }

    /// 100 Mbit/s and a buffer of one bandwidth-delay product.
    pub(crate) const fn wide(self) -> Play {
        Play {
            mbps: 100.0,
            buffer: 333,
            ..self
        }
    }

    pub(crate) const fn with_loss(self, loss: f64) -> Play {
        Play { loss, ..self }
    }

    fn cell(&self, seed: u64) -> Value {
        let bdp = self.mbps * self.rtt_ms / 12.0;
        let mut cell = Dumbbell {
            mbps: self.mbps,
            rtt_ms: self.rtt_ms,
            buffer_bdp: self.buffer as f64 / bdp,
            loss: self.loss,
            schemes: vec![self.scheme],
            seconds: self.seconds,
            seed,
            record: "bins",
            ..Dumbbell::default()
        }
        .json();
        let profile = profile(self.scheme, self.profile);
        for flow in cell["flows"].as_array_mut().expect("flows") {
            flow["params"] = profile["params"].clone();
            flow["transport"] = profile["transport"].clone();
            for (name, value) in self.params {
                flow["params"][*name] = value
                    .parse::<u64>()
                    .map_or(json!(value), |number| json!(number));
            }
        }
        cell
    }

    fn see(&self, seed: u64) -> Seen {
        let (run, record) = measured(&self.cell(seed));
        let half = self.seconds / 2.0;
        let flows = series::throughput(&record, 1_000_000_000).expect("throughput");
        let rates = flows
            .time_s
            .iter()
            .zip(&flows.flows[&1].1)
            .filter(|(time, _)| **time >= half);
        let rates: Vec<f64> = rates.map(|(_, rate)| *rate).collect();
        let queue = &series::queues(&record).expect("queues")["forward.0"];
        let waits = queue
            .time_s
            .iter()
            .zip(&queue.backlog_bytes)
            .filter(|(time, _)| **time >= half);
        let waits: Vec<f64> = waits.map(|(_, bytes)| bytes * 8e-3 / self.mbps).collect();
        Seen {
            mbps: mean(&rates) / 1e6 / (1.0 - self.loss),
            queueing_ms: mean(&waits),
            dropped: 100.0 * run.get("all", "bottleneck_drop_ratio"),
        }
    }

    pub(crate) fn many(&self, seeds: u64) -> Many {
        Many((1..=seeds).map(|seed| self.see(seed)).collect())
    }
}

/// Results of several seeds.
#[derive(Debug)]
pub(crate) struct Many(pub(crate) Vec<Seen>);

impl Many {
    /// Smallest, median and largest value.
    fn spread(&self, value: impl Fn(&Seen) -> f64) -> [f64; 3] {
        let mut values: Vec<f64> = self.0.iter().map(value).collect();
        values.sort_by(f64::total_cmp);
        [
            values[0],
            values[values.len() / 2],
            values[values.len() - 1],
        ]
    }

    pub(crate) fn mbps(&self) -> [f64; 3] {
        self.spread(|seen| seen.mbps)
    }

    pub(crate) fn queueing_ms(&self) -> [f64; 3] {
        self.spread(|seen| seen.queueing_ms)
    }

    pub(crate) fn dropped(&self) -> [f64; 3] {
        self.spread(|seen| seen.dropped)
    }
}

pub(crate) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}
