//! The tunnel's one-way delays compared with a known path: both ends on this machine, an emulated path between them
//! that records every packet, and the clock of one end shifted.
//!
//! ```text
//!   dialer -- emulated path -- gateway -- loopback -- listener (clock: +2.5 s, +50 ppm)
//! ```
//!
//! Three measurements of each datagram are compared: the tunnel's result from its logs, the delay by the oscillator
//! that both ends actually share, and the emulator's record of its path.

use crate::common::tunnel::{AGENT, End, Logs, Shift};
use crate::common::{Folder, can_emulate, my_turn};
use bytes::Bytes;
use narrows_record::read::PacketReader;
use narrows_record::{Chunk, Direction, Fate};
use narrows_tunnel::clock::{ClockConfig, Fit};
use narrows_tunnel::log::TunnelLogRow;
use narrows_tunnel::merge::clocks;
use narrows_units::Time;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;

/// IP packets of this size are hello and welcome, which are not in the logs.
const HANDSHAKE: u32 = 96;
/// Every bottleneck here.
const RATE_BPS: u64 = 20_000_000;

/// One packet in the emulator's record, in ns since its start.
#[derive(Clone, Copy, Debug)]
struct Seen {
    size: u32,
    sent: u64,
    /// When it should have left the path and when it has.
    arrival: Option<(u64, u64)>,
}

/// One datagram in all three measurements.
#[derive(Clone, Copy, Debug)]
struct Journey {
    size: u32,
    /// By the tunnel, in ns.
    measured: i64,
    /// By the oscillator.
    truth: i64,
    /// By the emulator: its model, and including its own lateness.
    model: i64,
    path: i64,
}

/// Everything about one run.
struct Run {
    fit: Fit,
    /// Shift of the listener's clock.
    shift: Shift,
    there: Vec<Journey>,
    back: Vec<Journey>,
    /// Readings of the dialer's clock at departures and arrivals.
    moments: Vec<Time>,
    /// One in a hundred packets left the emulator later than this.
    late_p99_ns: i64,
}

fn delay(name: &str, ms: u64) -> Value {
    json!({"name": name, "kind": "delay", "delay": ms * 1_000_000})
}

fn bottleneck(name: &str) -> Value {
    json!({"name": name, "kind": "bottleneck", "rate": {"kind": "constant", "rate": RATE_BPS},
           "queue": {"kind": "droptail", "bytes": 100_000, "packets": null}})
}

fn loss(name: &str, share: f64) -> Value {
    json!({"name": name, "kind": "loss", "ratio": share})
}

/// Sends `bytes` through a tunnel over a path.
fn run(name: &str, forward: &Value, backward: &Value, shift: &Value, bytes: usize) -> Run {
    let folder = Folder::new(name);
    let end = json!({"bind": "127.0.0.1:0", "clock": shift});
    let mut listener = End::start(&folder, "listener", &format!("receive {bytes}"), &end);
    let port = listener.address().rsplit(':').next().unwrap().to_owned();
    // Packets forwarded by the gateway have another source port, like those of an address translator.
    let (record, summary) = (folder.path().join("record"), folder.path().join("summary"));
    let plan = json!({"format": "narrows/shell/1", "seed": 1, "quiet": true, "log": record,
        "summary": summary,
        "network": {"kind": "dumbbell", "forward": forward, "backward": backward}});
    let file = folder.path().join("shell.json");
    std::fs::write(&file, plan.to_string()).unwrap();
    let shell = [AGENT, "shell", "--plan", file.to_str().unwrap(), "--"].map(str::to_owned);
    let to = json!({"dial": format!("198.18.0.1:{port}")});
    let mut dialer = End::start_behind(&shell, &folder, "dialer", &format!("send {bytes}"), &to);
    let (there, here) = (dialer.end(), listener.end());
    let log = std::fs::read_to_string(dialer.folder.join("program.log")).unwrap();
    assert_eq!(there["program"]["exit_code"], 0, "{log}");
    assert_eq!(there["lost_here"], json!({"ring": 0, "socket": 0}));
    let summary: Value = serde_json::from_slice(&std::fs::read(summary).unwrap()).unwrap();
    let (ours, theirs) = (Logs::read(&dialer.folder), Logs::read(&listener.folder));
    let fit = clocks(&ours.arrived, &theirs.arrived, ClockConfig::default())
        .fit()
        .unwrap();
    let [up, down] = seen(&record.join("packets.parquet"));
    let shift = Shift::from_document(&here);
    let times = ours.sent.iter().map(|row| row.sent);
    Run {
        there: there_journeys(&fit, shift, &ours, &theirs, &up),
        back: back_journeys(&fit, shift, &ours, &down),
        moments: times
            .chain(ours.arrived.iter().map(|row| row.arrived))
            .collect(),
        fit,
        shift,
        late_p99_ns: summary["lateness"]["p99_ns"].as_i64().unwrap(),
    }
}

/// The packets of the tunnel that have entered the path, by direction, without those of the handshake.
fn seen(file: &Path) -> [Vec<Seen>; 2] {
    let mut reader = PacketReader::open(Bytes::from(std::fs::read(file).unwrap())).unwrap();
    let mut chunk = Chunk::with_room(Vec::new());
    let mut lists = [Vec::new(), Vec::new()];
    while reader.next(&mut chunk).unwrap() {
        for row in 0..chunk.flow.len() {
            assert_eq!(
                chunk.flow[row], 1,
                "the dialer speaks to the listener alone"
            );
            let arrived = chunk.arrived_ns[row];
            let late = u64::try_from(chunk.late_ns[row]).unwrap();
            let list = &mut lists[usize::from(chunk.direction[row] == Direction::Backward)];
            list.push(Seen {
                size: chunk.size_bytes[row],
                sent: chunk.sent_ns[row],
                arrival: (chunk.fate[row] == Fate::Delivered).then(|| (arrived - late, arrived)),
            });
        }
    }
    lists.map(|list| {
        let first = list.iter().position(|seen| seen.size != HANDSHAKE).unwrap();
        list[first..].to_vec()
    })
}

fn ns(time: Time) -> i64 {
    time.ns() as i64
}

/// The dialer's datagrams enter the path in the order in which it has sent them.
fn there_journeys(
    fit: &Fit,
    shift: Shift,
    ours: &Logs,
    theirs: &Logs,
    up: &[Seen],
) -> Vec<Journey> {
    assert_eq!(
        ours.sent.len(),
        up.len(),
        "every datagram has entered the path"
    );
    let arrivals: BTreeMap<u64, &TunnelLogRow> =
        theirs.arrived.iter().map(|row| (row.id, row)).collect();
    let journey = |(sent, seen): (&TunnelLogRow, &Seen)| {
        assert_eq!(sent.size, seen.size);
        let arrival = arrivals.get(&sent.id)?;
        let (due, left) = seen.arrival.expect("what has arrived was delivered");
        Some(Journey {
            size: sent.size,
            measured: fit.forward_delay_ns(sent.sent, arrival.arrived),
            truth: shift.raw_ns(ns(arrival.arrived)) - ns(sent.sent),
            model: (due - seen.sent) as i64,
            path: (left - seen.sent) as i64,
        })
    };
    ours.sent.iter().zip(up).filter_map(journey).collect()
}

/// Packets that the path has delivered reach the dialer in that order. Farewells, which are in no log of arrivals, come
/// last.
fn back_journeys(fit: &Fit, shift: Shift, ours: &Logs, down: &[Seen]) -> Vec<Journey> {
    let delivered = down.iter().filter_map(|seen| Some((seen, seen.arrival?)));
    let journey = |(arrived, (seen, (due, left))): (&TunnelLogRow, (&Seen, (u64, u64)))| {
        assert_eq!(arrived.size, seen.size);
        Journey {
            size: arrived.size,
            measured: fit.reverse_delay_ns(arrived.sent, arrived.arrived),
            truth: ns(arrived.arrived) - shift.raw_ns(ns(arrived.sent)),
            model: (due - seen.sent) as i64,
            path: (left - seen.sent) as i64,
        }
    };
    let journeys: Vec<Journey> = ours.arrived.iter().zip(delivered).map(journey).collect();
    assert_eq!(journeys.len(), ours.arrived.len());
    journeys
}

/// The 99th percentile of magnitudes.
fn p99(values: impl Iterator<Item = i64>) -> i64 {
    let mut values: Vec<i64> = values.map(i64::abs).collect();
    values.sort_unstable();
    values[(values.len() * 99).div_ceil(100) - 1]
}

impl Run {
    /// Invariants on every path: the stated bound contains the truth at all times, no datagram was faster than the
    /// path, and no delay is negative.
    fn check(&self, least_there_ms: i64, least_back_ms: i64) {
        assert_eq!((self.fit.lines(), self.fit.jumps()), (1, 0));
        for &moment in &self.moments {
            let truth = self.shift.offset_ns(ns(moment));
            let error = (self.fit.offset_ns(moment) - truth).unsigned_abs();
            // Two nanoseconds of rounding.
            let bound = self.fit.error(moment).ns() + 2;
            assert!(error <= bound, "off by {error} ns, stated {bound}");
        }
        for (journeys, least_ms) in [(&self.there, least_there_ms), (&self.back, least_back_ms)] {
            assert!(journeys.len() > 100, "{}", journeys.len());
            // The path is the configured one: its minimum delay is that of an empty queue.
            let excess = journeys.iter().map(|journey| {
                let transmission = u64::from(journey.size) * 8 * 1_000_000_000 / RATE_BPS;
                journey.model - least_ms * 1_000_000 - transmission as i64
            });
            // Rounding up to whole ns.
            assert!((0..=2).contains(&excess.min().unwrap()));
            // The kernel corrects the emulator's clock, but not the tunnel's: by at most 500 ppm. Conversions of stamps
            // use the shortest of eight readings, precise to some microseconds.
            let slack = |path: i64| 20_000 + path / 2_000;
            for journey in journeys {
                // Nothing leaves the emulator before it is due.
                let least = journey.model - slack(journey.model);
                assert!(journey.truth >= least, "{journey:?}");
                // The precision of stamps that the estimate assumes.
                assert!(journey.measured >= -1_002, "{journey:?}");
            }
            // Recorded departures of a batch lie evenly between its first and the return of its system call, so that
            // those of a batch that was interrupted are recorded too late.
            let early = journeys
                .iter()
                .filter(|journey| journey.truth < journey.path - slack(journey.path));
            let early = early.count();
            assert!(
                early <= journeys.len() / 10,
                "{early} of {}",
                journeys.len()
            );
        }
    }

    /// The 99th percentile of the errors of delays of one direction, if the truth is moved by `moved_ns`.
    fn wrong_by(journeys: &[Journey], moved_ns: i64) -> i64 {
        p99(journeys
            .iter()
            .map(|journey| journey.measured - journey.truth - moved_ns))
    }

    fn tell(&self, name: &str) {
        for (way, journeys) in [("there", &self.there), ("back", &self.back)] {
            let added = journeys.iter().map(|journey| journey.truth - journey.path);
            let apart = journeys
                .iter()
                .map(|journey| journey.measured - journey.path);
            eprintln!(
                "{name} {way}: {} datagrams, delays wrong by {} us (p99), this machine adds {} us, together {} us; \
                 emulator late by {} us",
                journeys.len(),
                Run::wrong_by(journeys, 0) / 1000,
                p99(added) / 1000,
                p99(apart) / 1000,
                self.late_p99_ns / 1000,
            );
        }
    }
}

#[test]
fn one_way_delays_are_those_of_the_path_although_a_clock_is_seconds_off_and_drifts() {
    let _turn = my_turn();
    if !can_emulate() {
        return;
    }
    // TCP fills the queue, and losses empty it from time to time.
    let forward = json!([
        bottleneck("forward.0"),
        delay("forward.1", 10),
        loss("forward.2", 0.003)
    ]);
    let backward = json!([bottleneck("backward.0"), delay("backward.1", 10)]);
    let shift = json!({"offset_ns": 2_500_000_000i64, "drift_ppb": 50_000});
    let run = run("tunnel-symmetric", &forward, &backward, &shift, 6_000_000);
    run.tell("symmetric");
    run.check(10, 10);
    // During these seconds the drift alone separates the clocks by more than twice this.
    let allowed = 100_000 + run.late_p99_ns;
    for journeys in [&run.there, &run.back] {
        let wrong = Run::wrong_by(journeys, 0);
        assert!(wrong <= allowed, "{wrong} of {allowed}");
    }
    // Asymmetry could hide half of the minimum round trip.
    let middle = run.moments[run.moments.len() / 2];
    assert!(run.fit.error(middle).ns() >= 10_000_000);
}

#[test]
fn asymmetry_is_what_no_clock_can_tell_and_lies_within_the_bound() {
    let _turn = my_turn();
    if !can_emulate() {
        return;
    }
    let forward = json!([delay("forward.0", 4), bottleneck("forward.1")]);
    let backward = json!([
        loss("backward.0", 0.01),
        bottleneck("backward.1"),
        delay("backward.2", 12)
    ]);
    let shift = json!({"offset_ns": -700_000_000i64, "drift_ppb": -30_000});
    let run = run("tunnel-asymmetric", &forward, &backward, &shift, 3_000_000);
    run.tell("asymmetric");
    run.check(4, 12);
    // Half of the asymmetry is interpreted as offset: 4 ms too much forward and too little backward.
    let allowed = 100_000 + run.late_p99_ns;
    for (journeys, moved_ns) in [(&run.there, 4_000_000), (&run.back, -4_000_000)] {
        let wrong = Run::wrong_by(journeys, moved_ns);
        assert!(wrong <= allowed, "{wrong} of {allowed}");
    }
    for &moment in &run.moments {
        assert!(run.fit.error(moment).ns() >= 8_000_000);
    }
}
