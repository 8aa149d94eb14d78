//! A run that several threads share.

use super::*;
use crate::report::Report;
use crate::split;
use narrows_cell::judgement::EmulatorEffort;
use narrows_record::PacketRow;
use narrows_units::{Span, Stream};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// Both directions draw random numbers, copy, drop and change.
fn lively(record: &str) -> Cell {
    let mut json = cell(record).json;
    json["duration_ns"] = (2_000 * MS).into();
    json["flows"][0]["stop_ns"] = (2_000 * MS).into();
    let direction = |name: &str| {
        let jitter = json!({"name": format!("{name}.3"), "kind": "jitter", "law": "uniform", "spread": 3 * MS});
        json!([
            {"name": format!("{name}.0"), "kind": "loss", "ratio": 0.05},
            {"name": format!("{name}.1"), "kind": "bottleneck",
             "rate": {"kind": "poisson", "rate": 12_000_000}, "queue": {"kind": "droptail", "bytes": 9000}},
            {"name": format!("{name}.2"), "kind": "duplicate", "ratio": 0.05},
            jitter,
            {"name": format!("{name}.4"), "kind": "delay", "delay": 10 * MS},
        ])
    };
    for name in ["forward", "backward"] {
        json["network"][name] = direction(name);
    }
    let change =
        |ms: u64, name: &str| json!({"at_ns": ms * MS, "element": name, "set": {"delay": 4 * MS}});
    json["timeline"] = json!([change(700, "backward.4"), change(900, "forward.4")]);
    Cell::parse(&json.to_string()).unwrap()
}

/// Frames of both hosts, with their stamps.
fn frames() -> Vec<(u16, Time, Vec<u8>)> {
    let mut stream = Stream::new(11, "frames");
    let mut now = Time::ZERO;
    let mut one = |_| {
        now += Span::from_us(stream.below(900));
        match stream.below(3) {
            0 => (RECEIVER, now, back(60)),
            _ => (SENDER, now, data(1500)),
        }
    };
    (0..4_000).map(&mut one).collect()
}

/// Drives a core of the hosts that are `mine` to the end, late by up to 3 ms, drawn from `seed`.
fn drive(core: &mut Core, mine: impl Fn(u16) -> bool, seed: u64) {
    let mut stream = Stream::new(seed, "lateness");
    let end = at(2_000_000);
    let (mut now, frames) = (Time::ZERO, frames());
    let mut frames = frames.iter().filter(|(host, ..)| mine(*host)).peekable();
    while now < end {
        now = (now + Span::from_us(stream.below(3_000))).min(end);
        while let Some((host, stamp, frame)) = frames.next_if(|(_, stamp, _)| *stamp <= now) {
            core.arrive(*host, *stamp, frame);
        }
        core.advance(now);
        while let Some(port) = core.pending(0) {
            release(core, port, now);
        }
    }
}

fn reported(core: Core) -> Report {
    Report::new(
        core,
        Vec::new(),
        vec![0; 2],
        EmulatorEffort::default(),
        Time::FAR,
        true,
    )
}

/// The model's results for each packet, without its number and lateness.
fn model(rows: &[PacketRow]) -> Vec<String> {
    let one = |row: &PacketRow| {
        let model = row.arrived_ns.map(|ns| ns as i64 - row.late_ns.unwrap());
        let copy = row.copy_of.is_some();
        let (fate, element, reason) = (row.fate, &row.element, &row.reason);
        format!(
            "{:?} {:?} {model:?} {copy} {fate:?} {element:?} {reason:?}",
            row.direction, row.sent_ns
        )
    };
    let mut all: Vec<String> = rows.iter().map(one).collect();
    all.sort_unstable();
    all
}

#[test]
fn two_threads_do_what_one_does() {
    for record in ["packets", "bins"] {
        let cell = lively(record);
        let pool = || Pool::new(4_096, 1514, 1 << 24);
        let mut one = core_of(&cell, pool());
        drive(&mut one, |_| true, 1);

        let last = Arc::new(AtomicU64::new(0));
        let mut parts = [SENDER, RECEIVER].map(|host| {
            let mut network = cell.network().unwrap();
            network.keep(|other| other == host);
            let mut core = Core::new(&cell, network, pool());
            core.number_with(last.clone());
            drive(&mut core, |other| other == host, 2 + u64::from(host));
            core
        });
        if record == "packets" {
            let [first, second] = parts.each_mut().map(rows);
            let single = rows(&mut one);
            let mut uids: Vec<u64> = first.iter().chain(&second).map(|row| row.uid).collect();
            uids.sort_unstable();
            assert!(uids.into_iter().eq(1..=single.len() as u64));
            assert_eq!(model(&[first, second].concat()), model(&single));
            let copies = single.iter().filter(|row| row.copy_of.is_some()).count();
            let dropped = single
                .iter()
                .filter(|row| row.fate == Fate::Dropped)
                .count();
            assert!(copies > 100 && dropped > 500, "{copies} {dropped}");
        } else {
            parts.iter_mut().chain([&mut one]).for_each(Core::finish);
        }
        let [forward, backward] = parts.map(reported);
        let one = reported(one);
        let late = [&forward, &backward].map(|part| part.latest.p99_ns);
        let (mut joined, other) = (forward, backward);
        joined.join(other);
        assert_eq!(joined.elements, one.elements);
        assert_eq!(joined.queues, one.queues);
        assert_eq!(joined.capacity, one.capacity);
        assert_eq!(
            (joined.delivered, joined.refused),
            (one.delivered, one.refused)
        );
        assert_eq!(joined.lateness.total(), one.lateness.total());
        assert_eq!(joined.latest.p99_ns, late[0].max(late[1]));
        if let (Log::Bins(joined), Log::Bins(one)) = (&joined.log, &one.log) {
            let sent = |log: &narrows_record::BinLog| -> Vec<_> {
                log.bins()
                    .map(|bin| (bin.flow, bin.bin_ns, bin.sent_packets))
                    .collect()
            };
            assert_eq!(sent(joined), sent(one));
        }
    }
}

#[test]
fn threads_get_hosts_that_share_nothing_and_as_many_flows_as_the_others() {
    let simple = cell("bins");
    let network = simple.network().unwrap();
    assert_eq!(split(&simple, &network, 1), [0, 0]);
    assert_eq!(split(&simple, &network, 2), [0, 1]);
    assert_eq!(split(&simple, &network, 64), [0, 1]);

    // Three pairs of hosts, each with a separate path; data from the first, acknowledgements from the second.
    let mut json = simple.json.clone();
    let names = ["a", "b", "c", "d", "e", "f"];
    let pairs = [
        ("a", "b"),
        ("c", "d"),
        ("e", "f"),
        ("b", "a"),
        ("d", "c"),
        ("f", "e"),
    ];
    let link = |(from, to): (&str, &str)| json!({"name": format!("{from}-{to}"), "from": from, "to": to, "elements": []});
    let route = |(from, to): (&str, &str)| json!({"from": from, "to": to, "links": [format!("{from}-{to}")]});
    json["network"] = json!({"kind": "graph", "hosts": names.map(|name| json!({"name": name})), "routers": [],
        "links": pairs.map(link), "routes": pairs.map(route)});
    let flow = |(flow, from, to): (u16, &str, &str)| {
        json!({"flow": flow, "scheme": "linux:reno", "from": from,
        "to": to, "start_ns": 0, "stop_ns": MS})
    };
    json["flows"] = [(1, "a", "b"), (2, "c", "d"), (3, "e", "f")]
        .map(flow)
        .into();
    let cell = Cell::parse(&json.to_string()).unwrap();
    let threads = split(&cell, &cell.network().unwrap(), 2);
    let load = |thread: usize| -> usize {
        let hosts = threads
            .iter()
            .enumerate()
            .filter(|(_, other)| **other == thread);
        hosts.map(|(host, _)| 2 - host % 2).sum()
    };
    assert_eq!(
        (load(0) + load(1), load(0).abs_diff(load(1))),
        (9, 1),
        "{threads:?}"
    );
}

#[test]
fn a_program_is_where_its_hosts_stand() {
    let program = json!({
        "name": "x", "variant": "y", "manifest": "", "data": "connector",
        "listener": {"command": ["x"], "ready": {"tcp": null}}, "connector": {"command": ["x"]},
        "end": {"when": "signal", "signal": 15, "grace_ns": 0},
        "limits": {"ready_ns": 0, "file_bytes": 0, "output_bytes": 0},
    });
    let mut json = cell("bins").json;
    json["flows"][0]["program"] = program;
    let cell = Cell::parse(&json.to_string()).unwrap();
    assert_eq!(split(&cell, &cell.network().unwrap(), 2), [0, 1, 0, 1]);
}
