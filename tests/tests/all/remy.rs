//! Remy's tables in the acceptance experiments of their authors: senders that are on and off.
//!
//! Senders share a link with an infinite queue and a round trip of 150 ms. Each is on and off for exponentially
//! distributed times, and restarts each time: here each on time is a separate flow. The figures are those of Remy's
//! tests (github.com/keithw/remy, `tests`), of a simulator in which a packet per millisecond is 10 Mbit/s. Its
//! normalised throughput is the received traffic of a sender divided by its equal share of the time in which it is on;
//! for all senders together, the received traffic divided by the capacity of the link while any sender was on.
//!
//! Skipped without the models (`narrows_tests::models`).

use narrows_record::metrics::RecordTraffic;
use narrows_tests::models::{self, content};
use narrows_tests::{Dumbbell, recorded_with};
use narrows_units::Stream;
use serde_json::{Value, json};

/// IP bytes of a packet: 10 Mbit/s are one per millisecond.
const PACKET: f64 = 1250.0;

/// On times of senders, in seconds.
struct Comings {
    /// Start and end; in the order of the starts.
    times: Vec<(f64, f64)>,
    /// Total time during which any sender was on.
    any: f64,
}

impl Comings {
    fn new(senders: usize, mean: f64, seconds: f64, seed: u64) -> Comings {
        let mut times = Vec::new();
        for sender in 0..senders {
            let mut stream = Stream::new(seed, &format!("comings/{sender}"));
            let mut now = stream.exponential(mean);
            while now < seconds {
                let end = (now + stream.exponential(mean)).min(seconds);
                times.push((now, end));
                now = end + stream.exponential(mean);
            }
        }
        times.sort_by(|one, other| one.0.total_cmp(&other.0));
        let (mut any, mut until) = (0.0, 0.0f64);
        for &(from, to) in &times {
            any += (to - from.max(until)).max(0.0);
            until = until.max(to);
        }
        Comings { times, any }
    }
}

/// Results of the senders.
#[derive(Clone, Copy, Debug, Default)]
struct Got {
    /// Received traffic divided by the capacity of the link while any sender was on.
    share: f64,
    /// Mean round trip in ms.
    rtt_ms: f64,
}

/// Senders that share a link: rate in Mbit/s, mean on and off times, and duration in seconds.
#[derive(Clone, Copy)]
struct Experiment {
    mbps: f64,
    senders: usize,
    mean: f64,
    seconds: f64,
}

fn run(model: &[u8], experiment: Experiment, seed: u64) -> Got {
    let Experiment {
        mbps,
        senders,
        mean,
        seconds,
    } = experiment;
    let comings = Comings::new(senders, mean, seconds, seed);
    let mut cell = Dumbbell {
        mbps,
        rtt_ms: 150.0,
        seconds,
        schemes: vec!["remy"; comings.times.len()],
        record: "bins",
        ..Dumbbell::default()
    }
    .json();
    cell["sample_ns"] = json!(1_000_000_000);
    cell["network"]["forward"][0]["queue"] = json!({"kind": "unlimited"});
    cell["transport"] = json!({"packet_size": PACKET as u64});
    let ns = |seconds: f64| (seconds * 1e9) as u64;
    let flows = cell["flows"].as_array_mut().expect("flows");
    for (flow, (from, to)) in flows.iter_mut().zip(&comings.times) {
        let params: Value = json!({"model": models::reference(),
            "first_window": "rule", "slack": 0});
        flow["params"] = params;
        flow["start_ns"] = json!(ns(*from));
        flow["stop_ns"] = json!(ns(*to));
    }
    let record = recorded_with(&cell, models::files(model));
    let traffic = RecordTraffic::gather(&record).expect("a record that can be read");
    let (mut packets, mut delay_ns) = (0.0, 0.0);
    for flow in &traffic.flows {
        let arrived = flow.arrived_packets as f64;
        packets += arrived;
        delay_ns += arrived * flow.delays.mean().unwrap_or(0.0);
    }
    Got {
        share: packets * PACKET * 8.0 / (comings.any * mbps * 1e6),
        // The return path is empty.
        rtt_ms: delay_ns / packets / 1e6 + 75.0,
    }
}

/// The mean over several random sequences of on and off times.
fn runs(model: &[u8], experiment: Experiment) -> Got {
    let all: Vec<Got> = (1..=STREAMS)
        .map(|seed| run(model, experiment, seed))
        .collect();
    let mean = |pick: fn(&Got) -> f64| all.iter().map(pick).sum::<f64>() / all.len() as f64;
    println!("{:.2} Mbit/s: {all:.3?}", experiment.mbps);
    Got {
        share: mean(|got| got.share),
        rtt_ms: mean(|got| got.rtt_ms),
    }
}

/// Single sequences differ by up to a tenth if times are long, or if a link is so fast that only the longest times fill
/// it. The standard error of the mean of five is two percent and less; their tolerance is five.
const STREAMS: u64 = 5;

#[test]
fn the_hundredfold_table_does_on_each_link_as_its_authors_say() {
    let Some(model) = content("tao-100x") else {
        return;
    };
    for (mbps, throughput, rtt_ms, seconds) in [
        (2.21, 1.8, 346.0, 300.0),
        (9.93, 6.0, 165.0, 300.0),
        (29.41, 18.0, 174.0, 200.0),
        (185.04, 91.1, 157.0, 100.0),
        (300.25, 133.1, 152.0, 200.0),
        (401.4, 146.0, 151.0, 200.0),
        (801.5, 156.0, 150.0, 200.0),
    ] {
        let experiment = Experiment {
            mbps,
            senders: 2,
            mean: 1.0,
            seconds,
        };
        let got = runs(&model, experiment);
        // One's share, if the other is on half of the time, is 0.75 of the link.
        let found = got.share * 0.75 * mbps;
        println!(
            "{mbps}: {found:.1} ({throughput}), {:.1} ms ({rtt_ms})",
            got.rtt_ms
        );
        // The tolerance of Remy's tests.
        assert!(
            (found / throughput - 1.0).abs() < 0.05,
            "{mbps} Mbit/s: {found}"
        );
        assert!(
            (got.rtt_ms / rtt_ms - 1.0).abs() < 0.05,
            "{mbps} Mbit/s: {got:?}"
        );
    }
}

#[test]
fn the_tables_of_2013_do_as_their_authors_say() {
    for (name, share, delay) in [
        ("remy-delta10", 0.65, 1.0),
        ("remy-delta1", 0.81, 1.02),
        ("remy-delta0.1", 0.9, 1.11),
    ] {
        let Some(model) = content(name) else { continue };
        let experiment = Experiment {
            mbps: 15.0,
            senders: 8,
            mean: 10.0,
            seconds: 400.0,
        };
        let got = runs(&model, experiment);
        let found = got.rtt_ms / 150.0;
        println!("{name}: {:.3} ({share}), {found:.3} ({delay})", got.share);
        // The tolerance of Remy's tests.
        assert!((got.share / share - 1.0).abs() < 0.05, "{name}: {got:?}");
        assert!((found / delay - 1.0).abs() < 0.05, "{name}: {got:?}");
    }
}
