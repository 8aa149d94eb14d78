//! Paths to train on, and the laws from which they are drawn.

use crate::error::RecipeError;
use crate::model_file;
use narrows_cc::parts::exp_log;
use narrows_cell::Cell;
use narrows_units::Stream;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// A bottleneck between two delays.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Path {
    /// Rate of the bottleneck in bit/s.
    pub rate_bps: f64,
    /// Propagation delay of each direction in ms.
    pub one_way_ms: f64,
    /// Delivery opportunities are a Poisson process, as on cellular links, in both directions.
    #[serde(default)]
    pub poisson: bool,
    /// Length of the bottleneck's queue in packets; unlimited if absent.
    #[serde(default)]
    pub queue_packets: Option<u64>,
    /// A single packet may wait, in both directions; `queue_packets` is not used then.
    #[serde(default)]
    pub one_packet_queue: bool,
    /// Acknowledgements arrive in bunches.
    #[serde(default)]
    pub ack_bunches: Option<AckBunches>,
    /// Ratio of packets lost at random.
    #[serde(default)]
    pub loss: f64,
    /// Share of the rate that a constant stream of datagrams takes.
    #[serde(default)]
    pub cross_share: f64,
    /// Its best window in packets, where it was published; calculated if absent.
    #[serde(default)]
    pub best_window: Option<f64>,
}

/// Times at which acknowledgements may pass.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AckBunches {
    /// Opportunities of 1500 bytes at each time.
    pub packets: u64,
    /// Time from one bunch to the next in ms.
    pub every_ms: f64,
}

impl Path {
    /// Product of the rate that cross traffic leaves and the minimum round trip, in packets of `size` bytes.
    pub fn bdp(&self, size: u32) -> f64 {
        self.rate_bps * (1.0 - self.cross_share) * 2.0 * self.one_way_ms * 1e-3
            / 8.0
            / f64::from(size)
    }

    /// The reason why it can't be used, if there is one.
    pub(crate) fn problem(&self) -> Option<String> {
        let bunches = self.ack_bunches.as_ref();
        let bunches = bunches.map_or((1.0, 1.0), |it| (it.packets as f64, it.every_ms));
        let checks = [
            ("rate_bps", self.rate_bps, 1e4, 1e11),
            ("one_way_ms", self.one_way_ms, 0.1, 10_000.0),
            ("loss", self.loss, 0.0, 0.9),
            ("cross_share", self.cross_share, 0.0, 0.95),
            ("best_window", self.best_window.unwrap_or(2.0), 1.0, 1e6),
            (
                "queue_packets",
                self.queue_packets.unwrap_or(1) as f64,
                1.0,
                1e9,
            ),
            ("ack_bunches.packets", bunches.0, 1.0, 1e6),
            ("ack_bunches.every_ms", bunches.1, 0.01, 10_000.0),
        ];
        let bad = checks
            .iter()
            .find(|(_, value, min, max)| !(min..=max).contains(&value));
        bad.map(|(name, value, min, max)| format!("{name} is {value}; use {min} to {max}"))
    }

    /// The cell of a flow of `scheme` with packets of `size` bytes over this path, for `seconds`, with the model in
    /// `content`.
    pub(crate) fn cell(
        &self,
        (scheme, size): (&str, u32),
        late_hosts: bool,
        seed: u64,
        seconds: f64,
        content: &[u8],
    ) -> Cell {
        let json = self.to_json((scheme, size), late_hosts, seed, seconds);
        model_file::parse_cell(&json, content)
    }

    /// That cell as JSON.
    pub(crate) fn to_json(
        &self,
        (scheme, size): (&str, u32),
        late_hosts: bool,
        seed: u64,
        seconds: f64,
    ) -> Value {
        let ns = |seconds: f64| (seconds * 1e9) as u64;
        let kind = if self.poisson { "poisson" } else { "constant" };
        let rate = json!({"kind": kind, "rate": self.rate_bps as u64});
        let unlimited = json!({"kind": "unlimited"});
        let queue = self.queue_packets.map_or(
            unlimited.clone(),
            |packets| json!({"kind": "droptail", "packets": packets}),
        );
        let one_packet = json!({"kind": "onepacket"});
        let queue = if self.one_packet_queue {
            one_packet.clone()
        } else {
            queue
        };
        let delay = ns(self.one_way_ms * 1e-3);
        let mut forward =
            vec![json!({"name": BOTTLENECK, "kind": "bottleneck", "rate": rate, "queue": queue})];
        if self.loss > 0.0 {
            forward.push(json!({"name": "forward.1", "kind": "loss", "ratio": self.loss}));
        }
        forward.push(json!({"name": "forward.2", "kind": "delay", "delay": delay}));
        let mut backward = vec![json!({"name": "backward.0", "kind": "delay", "delay": delay})];
        if self.poisson {
            backward.push(json!({"name": "backward.1", "kind": "bottleneck", "rate": rate, "queue": unlimited}));
        } else if self.one_packet_queue {
            backward.push(json!({"name": "backward.1", "kind": "bottleneck", "rate": rate, "queue": one_packet}));
        }
        if let Some(bunches) = &self.ack_bunches {
            backward.push(
                json!({"name": "backward.2", "kind": "ackaggregation", "packets": bunches.packets,
                "time": ns(bunches.every_ms * 1e-3), "bytes": 1500}),
            );
        }
        let mut network = json!({"kind": "dumbbell", "forward": forward, "backward": backward});
        if late_hosts {
            network["hosts"] = ["sender", "receiver"]
                .map(|name| json!({"name": name, "settings": {"noise": "linux-vm"}}))
                .into();
        }
        let model = json!({"model": model_file::reference()});
        let mut flows = vec![
            json!({"flow": 1, "scheme": scheme, "params": model, "start_ns": 0,
            "stop_ns": ns(seconds), "direction": "forward"}),
        ];
        if self.cross_share > 0.0 {
            let rate = (self.rate_bps * self.cross_share) as u64;
            flows.push(json!({"flow": 2, "scheme": "udp", "params": {}, "start_ns": 0, "stop_ns": ns(seconds),
                "direction": "forward", "traffic": {"kind": "cbr", "rate": rate}}));
        }
        json!({
            "format": "narrows/cell/1", "id": "learn", "scheme": scheme, "run": 1, "where": "simulate",
            "seed": seed, "duration_ns": ns(seconds), "record": "bins", "bin_ns": 100_000_000,
            // Samples are not used.
            "sample_ns": 10_000_000_000u64, "network": network,
            "flows": flows,
            "transport": {"packet_size": size},
        })
    }
}

/// Name of the bottleneck in a cell.
pub(crate) const BOTTLENECK: &str = "forward.0";

/// Minimum and maximum of a quantity drawn with equal density of its logarithm.
pub(crate) type Range = [f64; 2];

/// A property that a share of the paths has.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Share {
    /// The share of paths, 0 to 1.
    pub share: f64,
    /// The range of the property.
    pub range: Range,
}

/// The law from which paths are drawn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PathLaw {
    /// Rate of constant bottlenecks in bit/s.
    pub rate_bps: Range,
    /// Propagation delay of each direction in ms.
    pub one_way_ms: Range,
    /// Poisson bottlenecks, and their rates in bit/s.
    #[serde(default)]
    pub poisson: Option<Share>,
    /// Limited queues, and their lengths in bandwidth-delay products; at least 10 packets.
    #[serde(default)]
    pub queue_bdp: Option<Share>,
    /// Limited queues, and their lengths in packets.
    #[serde(default)]
    pub queue_packets: Option<Share>,
    /// Random loss, and its ratio.
    #[serde(default)]
    pub loss: Option<Share>,
    /// Cross traffic, and its share of the rate; none if absent.
    #[serde(default)]
    pub cross: Option<Share>,
}

impl PathLaw {
    /// # Errors
    /// Ranges that are empty or out of bounds.
    pub(crate) fn check(&self) -> Result<(), RecipeError> {
        let mut ranges = vec![
            ("rate_bps".to_owned(), self.rate_bps, 1e4, 1e11),
            ("one_way_ms".to_owned(), self.one_way_ms, 0.1, 10_000.0),
        ];
        for (name, property, min, max) in [
            ("poisson", &self.poisson, 1e4, 1e11),
            ("queue_bdp", &self.queue_bdp, 0.001, 1_000.0),
            ("queue_packets", &self.queue_packets, 1.0, 1e9),
            ("loss", &self.loss, 1e-6, 0.9),
            ("cross", &self.cross, 1e-3, 0.95),
        ] {
            let Some(Share { share, range }) = property else {
                continue;
            };
            if !(0.0..=1.0).contains(share) {
                return Err(RecipeError(format!(
                    "law: {name}.share is {share}; use 0 to 1"
                )));
            }
            ranges.push((format!("{name}.range"), *range, min, max));
        }
        for (name, [low, high], min, max) in ranges {
            if !(min <= low && low <= high && high <= max) {
                return Err(RecipeError(format!(
                    "law: {name} is [{low}, {high}]; use a lower and an upper bound within {min} to {max}"
                )));
            }
        }
        Ok(())
    }

    /// Draws a path for packets of `size` bytes.
    pub fn draw(&self, stream: &mut Stream, size: u32) -> Path {
        let poisson = draw_from(stream, self.poisson.as_ref());
        let rates = poisson.unwrap_or(self.rate_bps);
        let mut path = Path {
            rate_bps: log_uniform(stream, rates),
            one_way_ms: log_uniform(stream, self.one_way_ms),
            poisson: poisson.is_some(),
            queue_packets: None,
            one_packet_queue: false,
            ack_bunches: None,
            loss: 0.0,
            cross_share: 0.0,
            best_window: None,
        };
        if let Some(range) = draw_from(stream, self.cross.as_ref()) {
            path.cross_share = log_uniform(stream, range);
        }
        if let Some(range) = draw_from(stream, self.queue_bdp.as_ref()) {
            let packets = path.bdp(size) * log_uniform(stream, range);
            path.queue_packets = Some(packets.max(10.0) as u64);
        }
        if let Some(range) = draw_from(stream, self.queue_packets.as_ref()) {
            path.queue_packets = Some(log_uniform(stream, range) as u64);
        }
        if let Some(range) = draw_from(stream, self.loss.as_ref()) {
            path.loss = log_uniform(stream, range);
        }
        path
    }
}

/// The range of a property if the path that is drawn has it; a property that no path has takes no random number.
fn draw_from(stream: &mut Stream, property: Option<&Share>) -> Option<Range> {
    let property = property?;
    stream.chance(property.share).then_some(property.range)
}

/// A number from `range` with equal density of its logarithm.
pub(crate) fn log_uniform(stream: &mut Stream, [low, high]: Range) -> f64 {
    low * exp_log::exp(stream.uniform() * exp_log::ln(high / low))
}
