//! Flows of one scheme on a path with one bottleneck, and their results in a part of the run.

use crate::models::{self, content};
use crate::{Dumbbell, recorded_with};
use narrows_cc::testing::example_files;
use narrows_record::log::NOT_ARRIVED;
use narrows_record::{Chunk, Direction, Record, StateRow, metrics, read};
use serde_json::{Value, json};

/// Payload bytes of a full packet of 1500 bytes.
const PAYLOAD: f64 = 1448.0;

/// IP and UDP headers.
const HEADERS: f64 = 28.0;

/// Pacing rate of GCC in targets.
const PACING: f64 = 2.5;

/// Flows of one scheme, and their path.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The scheme.
    pub scheme: &'static str,
    /// Its profile; empty for its defaults.
    pub profile: &'static str,
    /// Parameters in addition to those of the profile, in base units.
    pub params: Value,
    /// Size of its packets with all headers, overriding the profile.
    pub packet_size: Option<u32>,
    /// The published model it follows.
    pub model: Option<&'static str>,
    /// Rate of the bottleneck in Mbit/s.
    pub mbps: f64,
    /// Round trip in ms, split evenly.
    pub rtt_ms: f64,
    /// Buffer in packets; `None` for an infinite one.
    pub buffer: Option<u64>,
    /// Share of the packets that are lost at random behind the bottleneck.
    pub loss: f64,
    /// When each flow starts, in seconds.
    pub starts: Vec<f64>,
    /// Length of the run in seconds.
    pub seconds: f64,
    /// Measured part of the run: from and to, in seconds.
    pub part: (f64, f64),
    /// Seed.
    pub seed: u64,
}

impl Setup {
    /// One flow over 12 Mbit/s and 40 ms with an infinite buffer, for 30 s.
    pub fn new(scheme: &'static str) -> Setup {
        Setup {
            scheme,
            profile: "",
            params: json!({}),
            packet_size: None,
            model: None,
            mbps: 12.0,
            rtt_ms: 40.0,
            buffer: None,
            loss: 0.0,
            starts: vec![0.0],
            seconds: 30.0,
            part: (15.0, 30.0),
            seed: 1,
        }
    }

    /// The cell as JSON.
    ///
    /// # Panics
    /// When the scheme has no such profile.
    pub fn json(&self) -> Value {
        let mut cell = Dumbbell {
            mbps: self.mbps,
            rtt_ms: self.rtt_ms,
            loss: self.loss,
            schemes: vec![self.scheme; self.starts.len()],
            seconds: self.seconds,
            seed: self.seed,
            ..Dumbbell::default()
        }
        .json();
        cell["network"]["forward"][0]["queue"] = match self.buffer {
            Some(packets) => json!({"kind": "droptail", "packets": packets}),
            None => json!({"kind": "unlimited"}),
        };
        let profile = profile(self.scheme, self.profile);
        let flows = cell["flows"].as_array_mut().expect("flows");
        for (flow, start) in flows.iter_mut().zip(&self.starts) {
            flow["start_ns"] = json!((start * 1e9) as u64);
            flow["params"] = profile["params"].clone();
            flow["transport"] = profile["transport"].clone();
            if let Some(bytes) = self.packet_size {
                flow["transport"]["packet_size"] = json!(bytes);
            }
            for (name, value) in self.params.as_object().expect("parameters") {
                flow["params"][name] = value.clone();
            }
            if self.model.is_some() {
                flow["params"]["model"] = models::reference();
            }
        }
        cell
    }

    /// Simulates it.
    ///
    /// # Panics
    /// When it cannot run, or its model is not installed.
    pub fn see(&self) -> Seen {
        let files = match self.model {
            None => example_files(),
            Some(model) => models::files(&content(model).expect("the model is installed")),
        };
        Seen::new(self, &recorded_with(&self.json(), files))
    }
}

/// A profile of a scheme; an empty one by the empty name.
///
/// # Panics
/// When there is no such profile.
pub fn profile(scheme: &str, name: &str) -> Value {
    if name.is_empty() {
        return json!({"params": {}, "transport": {}});
    }
    let registry = narrows_cell::registry();
    let named = |all: &Value, name: &str| {
        let mut all = all.as_array().expect("a list").iter();
        all.find(|one| one["name"] == name)
            .cloned()
            .unwrap_or_else(|| panic!("{scheme} {name}: there is no such"))
    };
    named(&named(&registry["schemes"], scheme)["profiles"], name)
}

/// One packet that arrived.
struct Arrival {
    delay_ms: f64,
    bytes: f64,
}

/// Outcome of the flows.
pub struct Seen {
    setup: Setup,
    metrics: Value,
    /// Arrivals of each flow, in the measured part.
    arrivals: Vec<Vec<Arrival>>,
    /// States of the first flow, in the whole run.
    states: Vec<StateRow>,
    /// Queueing delays in ms of the first flow's packets in the part, sorted.
    waits: Vec<f64>,
}

impl Seen {
    fn new(setup: &Setup, record: &Record) -> Seen {
        let part = [setup.part.0, setup.part.1].map(|seconds| (seconds * 1e9) as u64);
        let mut arrivals: Vec<Vec<Arrival>> = setup.starts.iter().map(|_| Vec::new()).collect();
        let packets = record.packets.clone().expect("packets");
        let mut reader = read::PacketReader::open(packets).expect("packets that can be read");
        let mut chunk = Chunk::default();
        while reader.next(&mut chunk).expect("packets that can be read") {
            for i in 0..chunk.len() {
                let (sent_ns, at_ns) = (chunk.sent_ns[i], chunk.arrived_ns[i]);
                let forward = chunk.direction[i] == Direction::Forward;
                if forward && at_ns != NOT_ARRIVED && (part[0]..part[1]).contains(&at_ns) {
                    arrivals[usize::from(chunk.flow[i]) - 1].push(Arrival {
                        delay_ms: (at_ns - sent_ns) as f64 / 1e6,
                        bytes: f64::from(chunk.size_bytes[i]),
                    });
                }
            }
        }
        let own = |bytes: f64| setup.rtt_ms / 2.0 + bytes * 8e-3 / setup.mbps;
        let first = arrivals[0].iter();
        let mut waits: Vec<f64> = first.map(|one| one.delay_ms - own(one.bytes)).collect();
        waits.sort_by(f64::total_cmp);
        let states = record.states.clone().expect("states");
        let states = read::read_states(states).expect("states that can be read");
        Seen {
            setup: setup.clone(),
            metrics: metrics::measure(record).expect("a record that can be measured"),
            arrivals,
            states: states.into_iter().filter(|row| row.flow == 1).collect(),
            waits,
        }
    }

    fn bits_per_packet_less(&self, flow: usize, less: f64) -> f64 {
        let bytes = self.arrivals[flow].iter().map(|one| one.bytes - less);
        bytes.sum::<f64>() * 8.0 / (self.setup.part.1 - self.setup.part.0) / 1e6
    }

    /// States of the part that is measured.
    fn late(&self) -> impl Iterator<Item = &StateRow> {
        let part = [self.setup.part.0, self.setup.part.1].map(|seconds| (seconds * 1e9) as u64);
        let rows = self.states.iter();
        rows.filter(move |row| (part[0]..=part[1]).contains(&row.time_ns))
    }

    fn metric(&self, flow: &str, metric: &str) -> f64 {
        let flows = self.metrics["flows"]
            .as_array()
            .map_or(&[][..], Vec::as_slice);
        let row = flows.iter().find(|row| row["flow"] == flow);
        row.and_then(|row| row["metrics"][metric].as_f64())
            .unwrap_or(f64::NAN)
    }
}

/// Quantities of a run. Rates are in Mbit/s and times in ms, of the part that is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// Bytes of IP that arrived, of one flow.
    Rate(usize),
    /// Rate behind the bottleneck, before random losses.
    Carried,
    /// Payload that the receiver reported.
    Payload,
    /// Rate of arrival without the headers of IP and UDP, before random losses.
    Media,
    /// Target of a media source.
    Target,
    /// Mean queueing delay of packets, without their serialisation time.
    Mean,
    /// 95th percentile of the same.
    P95,
    /// Mean round trip of packets.
    RttMean,
    /// 95th percentile of the same.
    RttP95,
    /// Share of packets that the bottleneck dropped in the whole run, in percent.
    Dropped,
    /// Window at the end, in packets.
    Window,
    /// Number of times that slow start restarts in the whole run.
    Restarts,
}

impl Measure {
    /// Its name in a table.
    pub fn name(self) -> String {
        match self {
            Measure::Rate(0) => "Mbit/s".into(),
            Measure::Rate(flow) => format!("Mbit/s of flow {}", flow + 1),
            Measure::Carried => "Mbit/s at the link".into(),
            Measure::Payload => "Mbit/s of payload".into(),
            Measure::Media => "Mbit/s of RTP".into(),
            Measure::Target => "target, Mbit/s".into(),
            Measure::Mean => "queue mean, ms".into(),
            Measure::P95 => "queue p95, ms".into(),
            Measure::RttMean => "RTT mean, ms".into(),
            Measure::RttP95 => "RTT p95, ms".into(),
            Measure::Dropped => "dropped, %".into(),
            Measure::Window => "window".into(),
            Measure::Restarts => "restarts".into(),
        }
    }

    /// Its value of a run.
    ///
    /// # Panics
    /// When there is nothing to measure.
    pub fn value(self, seen: &Seen) -> f64 {
        let setup = &seen.setup;
        let length_s = setup.part.1 - setup.part.0;
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        let p95 = |values: &[f64]| values[(values.len() as f64 * 0.95) as usize];
        // The return path has no queueing delay.
        let round = setup.rtt_ms + 12.0 / setup.mbps;
        match self {
            Measure::Rate(flow) => seen.bits_per_packet_less(flow, 0.0),
            Measure::Carried => seen.bits_per_packet_less(0, 0.0) / (1.0 - setup.loss),
            Measure::Media => seen.bits_per_packet_less(0, HEADERS) / (1.0 - setup.loss),
            Measure::Payload => {
                let mut rows = seen.late().filter_map(|row| row.delivered_bytes);
                let first = rows.next().expect("states");
                (rows.last().expect("states") - first) as f64 * 8.0 / length_s / 1e6
            }
            Measure::Target => {
                let rates = seen.late().filter_map(|row| row.pacing_bps);
                mean(
                    &rates
                        .map(|bps| bps as f64 / PACING / 1e6)
                        .collect::<Vec<_>>(),
                )
            }
            Measure::Mean => mean(&seen.waits),
            Measure::P95 => p95(&seen.waits),
            Measure::RttMean => mean(&seen.waits) + round,
            Measure::RttP95 => p95(&seen.waits) + round,
            Measure::Dropped => 100.0 * seen.metric("all", "bottleneck_drop_ratio"),
            Measure::Window => {
                let mut windows = seen.states.iter().filter_map(|row| row.cwnd_bytes);
                windows.next_back().expect("a window") as f64 / PAYLOAD
            }
            Measure::Restarts => {
                let slow = |row: &StateRow| row.mode.as_deref() == Some("slow_start");
                let pairs = seen.states.windows(2);
                pairs
                    .filter(|pair| slow(&pair[1]) && !slow(&pair[0]))
                    .count() as f64
            }
        }
    }
}
