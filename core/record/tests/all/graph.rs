//! The verifier on a network of several links: a star whose arms have gates and delays, with a
//! stepped bottleneck, copies and damage on the path to the common receiver.
//!
//! The record is computed from closed formulas, in order of entering the bottleneck.

use crate::reference::Draft;
use narrows_record::metrics::measure;
use narrows_record::verify::{VerifierReport, verify};
use narrows_record::{
    Direction, ElementCounters, Fate, Fingerprint, FlowSummary, PacketRow, ReceiverCounters,
    RunDocument, SenderCounters, Versions, series,
};
use serde_json::{Value, json};

const MS: u64 = 1_000_000;
const END: u64 = 1000 * MS;
const SIZE: u32 = 1000;
/// Rates of the bottleneck: start time and bit/s.
const STEPS: [(u64, u64); 3] = [(0, 8_000_000), (500 * MS, 2_000_000), (700 * MS, 8_000_000)];
const CLOSED: std::ops::Range<u64> = 300 * MS..400 * MS;
const ROOM: usize = 20;

/// Elements in the order of links; the bottleneck is number 3.
const ELEMENTS: [(&str, &str, &str); 7] = [
    ("a-r", "a-r.gate", "gate"),
    ("a-r", "a-r.1", "delay"),
    ("c-r", "c-r.0", "delay"),
    ("r-b", "r-b.0", "bottleneck"),
    ("r-b", "r-b.1", "duplicate"),
    ("r-b", "r-b.2", "corrupt"),
    ("r-b", "r-b.3", "delay"),
];

fn cell() -> Value {
    let steps: Vec<_> = STEPS.iter().map(|&(at, bps)| json!([at, bps])).collect();
    let flow = |flow: u16, from: &str| {
        json!({"flow": flow, "scheme": "reference", "from": from, "to": "b", "start_ns": 0,
               "stop_ns": END, "direction": "forward"})
    };
    json!({
        "format": "narrows/cell/1", "id": "star-r1", "scheme": "reference", "run": 1,
        "where": "simulate", "seed": 1, "duration_ns": END, "record": "packets",
        "bin_ns": 100 * MS, "sample_ns": 10 * MS, "transport": {},
        "network": {"kind": "graph", "hosts": [{"name": "a"}, {"name": "b"}, {"name": "c"}],
            "routers": ["r"],
            "links": [
                {"name": "a-r", "from": "a", "to": "r", "elements": [
                    {"name": "a-r.gate", "kind": "gate", "open": true},
                    {"kind": "delay", "delay": 3 * MS}]},
                {"name": "c-r", "from": "c", "to": "r", "elements": [
                    {"kind": "delay", "delay": 5 * MS}]},
                {"name": "r-b", "from": "r", "to": "b", "elements": [
                    {"kind": "bottleneck", "rate": {"kind": "steps", "steps": steps},
                     "queue": {"kind": "droptail", "packets": ROOM, "bytes": null}},
                    {"kind": "duplicate", "ratio": 0.1},
                    {"kind": "corrupt", "ratio": 0.1},
                    {"kind": "delay", "delay": 7 * MS}]}],
            "routes": [{"from": "a", "to": "b", "links": ["a-r", "r-b"]},
                       {"from": "c", "to": "b", "links": ["c-r", "r-b"]}]},
        "timeline": [{"at_ns": CLOSED.start, "element": "a-r.gate", "set": {"open": false}},
                     {"at_ns": CLOSED.end, "element": "a-r.gate", "set": {"open": true}}],
        "flows": [flow(1, "a"), flow(2, "c")]
    })
}

/// Bits times 10^9 that the bottleneck can carry until `time`.
fn work(time: u64) -> u128 {
    let ends = STEPS[1..].iter().map(|step| step.0).chain([u64::MAX]);
    let pieces = STEPS.iter().zip(ends);
    pieces
        .map(|(&(from, bps), to)| u128::from(time.clamp(from, to) - from) * u128::from(bps))
        .sum()
}

/// The first time in ns by which `wanted` can be carried, rounded down.
fn done(wanted: u128) -> u64 {
    let (mut low, mut high) = (0, 10 * END);
    while low < high {
        let middle = (low + high).div_ceil(2);
        if work(middle) <= wanted {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    low
}

struct Mover {
    flow: u16,
    sent: u64,
    enter: u64,
    /// When it left the bottleneck; `None` if it never did.
    left: Option<u64>,
    dropped: Option<(usize, &'static str)>,
}

fn movers() -> Vec<Mover> {
    let send = |flow: u16, count: u64, every: u64, offset: u64, delay: u64| {
        (0..count).map(move |n| Mover {
            flow,
            sent: n * every + offset,
            enter: n * every + offset + delay,
            left: None,
            dropped: None,
        })
    };
    let mut movers: Vec<Mover> = send(1, 760, 1_300_000, 7, 3 * MS)
        .chain(send(2, 580, 1_700_000, 400_333, 5 * MS))
        .collect();
    movers.sort_by_key(|m| m.enter);
    let (mut left, mut base, mut bits) = (0, 0, 0_u128);
    let mut starts: Vec<u64> = Vec::new();
    for m in &mut movers {
        if m.flow == 1 && CLOSED.contains(&m.sent) {
            m.dropped = Some((0, "link_cut"));
            continue;
        }
        starts.retain(|&start| start > m.enter);
        if starts.len() >= ROOM {
            m.dropped = Some((3, "queue_full"));
            continue;
        }
        if m.enter >= left {
            (base, bits) = (m.enter, 0);
        }
        let start = m.enter.max(left);
        if start > m.enter {
            starts.push(start);
        }
        bits += u128::from(SIZE) * 8;
        left = done(work(base) + bits * 1_000_000_000);
        m.left = Some(left);
    }
    movers.sort_by_key(|m| m.sent);
    movers
}

/// The indices, among all elements, of the elements on the path of a flow.
fn way(flow: u16) -> &'static [usize] {
    if flow == 1 {
        &[0, 1, 3, 4, 5, 6]
    } else {
        &[2, 3, 4, 5, 6]
    }
}

/// Applies the elements that a packet meets after it leaves the bottleneck at `left`.
fn finish(row: &mut PacketRow, left: u64, damaged: bool) {
    if left + 7 * MS <= END {
        row.fate = Fate::Delivered;
        row.arrived_ns = Some(left + 7 * MS);
        row.late_ns = Some(0);
        row.reason = damaged.then(|| "corrupted".into());
    } else {
        row.element = Some("r-b.3".into());
    }
}

fn draft() -> Draft {
    let mut rows: Vec<PacketRow> = Vec::new();
    // Copies remember the time and flow of their original until uids are known.
    let mut copies: Vec<(u64, usize, bool)> = Vec::new();
    for (index, m) in movers().into_iter().enumerate() {
        let mut row = PacketRow {
            flow: m.flow,
            direction: Direction::Forward,
            uid: 0,
            size_bytes: SIZE,
            sent_ns: m.sent,
            arrived_ns: None,
            late_ns: None,
            fate: Fate::InFlight,
            element: None,
            reason: None,
            copy_of: None,
        };
        match (m.dropped, m.left) {
            (Some((element, reason)), _) => {
                row.fate = Fate::Dropped;
                row.element = Some(ELEMENTS[element].1.into());
                row.reason = Some(reason.into());
            }
            (None, Some(left)) if left <= END => {
                finish(&mut row, left, index % 17 == 5);
                if index % 10 == 3 {
                    copies.push((left, index, index % 4 == 1));
                }
            }
            _ if m.enter <= END => row.element = Some("r-b.0".into()),
            _ if m.flow == 1 => row.element = Some("a-r.1".into()),
            _ => row.element = Some("c-r.0".into()),
        }
        rows.push(row);
    }
    let mut all: Vec<(u64, usize, Option<usize>, PacketRow)> = Vec::new();
    for (index, row) in rows.iter().enumerate() {
        all.push((row.sent_ns, index, None, row.clone()));
    }
    for (left, original, damaged) in copies {
        let mut row = rows[original].clone();
        row.sent_ns = left;
        (row.arrived_ns, row.late_ns, row.element, row.reason) = (None, None, None, None);
        row.fate = Fate::InFlight;
        finish(&mut row, left, damaged);
        all.push((left, usize::MAX, Some(original), row));
    }
    all.sort_by_key(|entry| (entry.0, entry.1));
    let mut uids = vec![0; rows.len()];
    for (uid, entry) in (1..).zip(&mut all) {
        entry.3.uid = uid;
        if entry.2.is_none() {
            uids[entry.1] = uid;
        }
    }
    let rows = all.into_iter().map(|(_, _, original, mut row)| {
        row.copy_of = original.map(|index| uids[index]);
        row
    });
    let versions = Versions {
        narrows: "0.1.0".into(),
        ..Versions::default()
    };
    let mut draft = Draft {
        run: RunDocument::new(cell(), "simulate", versions),
        rows: rows.collect(),
        states: Vec::new(),
        queues: Vec::new(),
        transfers: Vec::new(),
        frames: Vec::new(),
        traces: Vec::new(),
    };
    recount(&mut draft);
    draft
}

/// Makes the counters of elements and endpoints agree with the rows.
fn recount(draft: &mut Draft) {
    let size = u64::from(SIZE);
    let mut all: Vec<ElementCounters> = Vec::new();
    for (index, (link, name, kind)) in ELEMENTS.iter().enumerate() {
        let mut counters =
            json!({"name": name, "kind": kind, "link": link, "direction": "forward"});
        for what in ["in", "out", "dropped", "marked", "held"] {
            counters[format!("{what}_packets")] = 0.into();
            counters[format!("{what}_bytes")] = 0.into();
        }
        let mut c: ElementCounters = serde_json::from_value(counters).unwrap();
        for row in &draft.rows {
            let way = way(row.flow);
            let Some(place) = way.iter().position(|&at| at == index) else {
                continue;
            };
            let begin = if row.copy_of.is_some() {
                way.iter().position(|&at| at == 4).unwrap() + 1
            } else {
                0
            };
            let stop = row
                .element
                .as_ref()
                .and_then(|name| way.iter().position(|&at| ELEMENTS[at].1 == name));
            if row.copy_of.is_some() && place + 1 == begin {
                c.copied_packets += 1;
                c.out_packets += 1;
            }
            if place < begin || stop.is_some_and(|stop| place > stop) {
                continue;
            }
            c.in_packets += 1;
            match row.fate {
                Fate::Dropped if stop == Some(place) => c.dropped_packets += 1,
                Fate::InFlight if stop == Some(place) => c.held_packets += 1,
                _ => c.out_packets += 1,
            }
        }
        c.in_bytes = c.in_packets * size;
        c.out_bytes = c.out_packets * size;
        c.dropped_bytes = c.dropped_packets * size;
        c.held_bytes = c.held_packets * size;
        c.copied_bytes = c.copied_packets * size;
        all.push(c);
    }
    draft.run.elements = all;
    let summaries = [1, 2].map(|flow| {
        let mine = || draft.rows.iter().filter(move |r| r.flow == flow);
        let sent = mine().filter(|r| r.copy_of.is_none()).count() as u64;
        let sound = |r: &&PacketRow| r.fate == Fate::Delivered && r.reason.is_none();
        let received = mine().filter(sound).count() as u64;
        FlowSummary {
            flow,
            scheme: "reference".into(),
            fingerprint: Fingerprint {
                kind: "native".into(),
                ..Fingerprint::default()
            },
            sender: SenderCounters {
                sent_packets: Some(sent),
                sent_bytes: Some(sent * size),
                ..SenderCounters::default()
            },
            receiver: ReceiverCounters {
                received_packets: Some(received),
                received_bytes: Some(received * size),
                goodput_bytes: Some(received * size),
                ..ReceiverCounters::default()
            },
            ..FlowSummary::default()
        }
    });
    draft.run.flows = summaries.into();
}

fn failed(report: &VerifierReport) -> Vec<&'static str> {
    let failed = report.findings.iter().filter(|f| !f.ok);
    failed.map(|f| f.name).collect()
}

fn expect(draft: &Draft, names: &[&str]) {
    let report = verify(&draft.record());
    assert_eq!(failed(&report), names, "{:#?}", report.findings);
}

fn find(draft: &Draft, wanted: impl Fn(&PacketRow) -> bool) -> usize {
    draft.rows.iter().position(wanted).unwrap()
}

#[test]
fn a_correct_record_passes_and_what_can_be_checked_is() {
    let draft = draft();
    let report = verify(&draft.record());
    assert_eq!(failed(&report), [""; 0], "{:#?}", report.findings);
    let skipped: Vec<_> = report.findings.iter().filter(|f| f.skipped).collect();
    let names: Vec<_> = skipped.iter().map(|f| f.name).collect();
    assert_eq!(names, ["queue_samples", "random_loss", "states"]);
    let has = |fate, reason: &str| {
        let fits = |r: &&PacketRow| r.fate == fate && r.reason.as_deref() == Some(reason);
        draft.rows.iter().filter(fits).count()
    };
    // The record contains the events that the checks are about.
    assert!(has(Fate::Dropped, "link_cut") > 50 && has(Fate::Dropped, "queue_full") > 100);
    assert!(has(Fate::Delivered, "corrupted") > 20);
    assert!(draft.rows.iter().filter(|r| r.copy_of.is_some()).count() > 50);
}

#[test]
fn a_copy_without_an_original() {
    let mut d = draft();
    let copy = find(&d, |r| r.copy_of.is_some() && r.fate == Fate::Delivered);
    d.rows[copy].copy_of = None;
    let report = verify(&d.record());
    assert!(
        failed(&report).contains(&"conservation"),
        "{:#?}",
        report.findings
    );
    // Even if all elements count it as sent: no packet gets there so fast.
    recount(&mut d);
    let report = verify(&d.record());
    assert!(
        failed(&report).contains(&"propagation"),
        "{:#?}",
        report.findings
    );
    let mut d = draft();
    d.rows[copy].copy_of = Some(d.rows.len() as u64);
    expect(&d, &["copies"]);
    d.rows[copy].copy_of = Some(d.rows[copy].uid);
    expect(&d, &["copies"]);
    let mut d = draft();
    let original = d.rows[copy].copy_of.unwrap() as usize - 1;
    d.rows[copy].sent_ns = d.rows[original].sent_ns - 1;
    assert!(failed(&verify(&d.record())).contains(&"copies"));
}

#[test]
fn a_damaged_packet_counted_as_received() {
    let mut d = draft();
    let receiver = &mut d.run.flows[0].receiver;
    receiver.received_packets = receiver.received_packets.map(|n| n + 1);
    expect(&d, &["endpoints"]);
    let mut d = draft();
    let receiver = &mut d.run.flows[0].receiver;
    receiver.goodput_bytes = receiver.goodput_bytes.map(|n| n + 1);
    expect(&d, &["endpoints"]);
    // Damage where no element damages packets.
    let mut d = draft();
    d.run.cell["network"]["links"][2]["elements"][2]["kind"] = "loss".into();
    d.run.elements[5].kind = "loss".into();
    let report = verify(&d.record());
    assert!(failed(&report).contains(&"fates"), "{:#?}", report.findings);
}

#[test]
fn a_packet_on_a_wrong_route() {
    // It stayed in an arm of the star that its flow does not use.
    let mut d = draft();
    let row = find(&d, |r| r.flow == 1 && r.element.as_deref() == Some("r-b.0"));
    d.rows[row].element = Some("c-r.0".into());
    recount(&mut d);
    assert!(failed(&verify(&d.record())).contains(&"fates"));
    // It arrived, but its arm counted one packet less than its flow sent.
    let mut d = draft();
    let row = find(&d, |r| r.flow == 1 && r.fate == Fate::Delivered);
    d.rows[row].flow = 2;
    let report = verify(&d.record());
    assert!(
        failed(&report).contains(&"conservation"),
        "{:#?}",
        report.findings
    );
}

#[test]
fn a_packet_through_a_closed_gate() {
    let mut d = draft();
    let reason = |r: &PacketRow, word: &str| r.reason.as_deref() == Some(word);
    // The queue had room for it: the next of its flow that was dropped.
    let row = find(&d, |r| reason(r, "link_cut"));
    d.rows[row].element = Some("r-b.0".into());
    d.rows[row].reason = Some("queue_full".into());
    recount(&mut d);
    assert!(failed(&verify(&d.record())).contains(&"cuts"));
    // And a drop by a gate that was open.
    let mut d = draft();
    let row = find(&d, |r| r.flow == 1 && reason(r, "queue_full"));
    d.rows[row].element = Some("a-r.gate".into());
    d.rows[row].reason = Some("link_cut".into());
    recount(&mut d);
    expect(&d, &["cuts"]);
}

#[test]
fn faster_than_a_step_of_the_rate() {
    let mut d = draft();
    let slow = &mut d.run.cell["network"]["links"][2]["elements"][0]["rate"]["steps"][1][1];
    *slow = 1_990_000.into();
    let report = verify(&d.record());
    assert!(failed(&report).contains(&"rate"), "{:#?}", report.findings);
    // A step slightly later than the packets imply: for 2 ms the capacity was lower.
    let mut d = draft();
    d.run.cell["network"]["links"][2]["elements"][0]["rate"]["steps"][2][0] = (702 * MS).into();
    assert!(failed(&verify(&d.record())).contains(&"rate"));
    // As a change by the timeline the same steps are the same record.
    let mut d = draft();
    let rate = |bps: u64| json!({"kind": "constant", "rate": bps});
    d.run.cell["network"]["links"][2]["elements"][0]["rate"] = rate(STEPS[0].1);
    let timeline = d.run.cell["timeline"].as_array_mut().unwrap();
    for (at, bps) in &STEPS[1..] {
        timeline.push(json!({"at_ns": at, "element": "r-b.0", "set": {"rate": rate(*bps)}}));
    }
    expect(&d, &[]);
}

#[test]
fn several_bottlenecks_are_checked_by_windows_of_time() {
    // A second bottleneck in front, so fast that no packet waits at it.
    let mut d = draft();
    let first = &mut d.run.cell["network"]["links"][1]["elements"][0];
    *first = json!({"kind": "bottleneck", "rate": {"kind": "trace", "file": {}}, "queue": {"kind": "unlimited"}});
    d.run.elements[2].kind = "bottleneck".into();
    d.run.elements[2].capacity_bytes = Some(1_000_000);
    let report = verify(&d.record());
    assert_eq!(failed(&report), [""; 0], "{:#?}", report.findings);
    let rate = report.findings.iter().find(|f| f.name == "rate").unwrap();
    assert!(
        rate.detail.contains("of 1000000 possible bytes"),
        "{}",
        rate.detail
    );
    assert!(
        rate.detail.contains("r-b.0 by windows of time"),
        "{}",
        rate.detail
    );
    d.run.elements[2].capacity_bytes = Some(100_000);
    assert!(failed(&verify(&d.record())).contains(&"rate"));
    d.run.elements[2].capacity_bytes = Some(1_000_000);
    d.run.cell["network"]["links"][2]["elements"][0]["rate"]["steps"][0][1] = 7_990_000.into();
    assert!(failed(&verify(&d.record())).contains(&"rate"));
}

#[test]
fn metrics_follow_routes_and_steps() {
    let draft = draft();
    let result = measure(&draft.record()).unwrap();
    let metric = |flow: usize, name: &str| result["flows"][flow]["metrics"][name].as_f64();
    // The path of flow 1 takes 10 ms, that of flow 2 12 ms; the queue is full most of the time.
    let delay = |flow| {
        metric(flow, "delay_mean_ns").unwrap() - metric(flow, "queueing_delay_mean_ns").unwrap()
    };
    assert!((delay(0) - 10e6).abs() < 1.0 && (delay(1) - 12e6).abs() < 1.0);
    let arrivals: Vec<u64> = draft.rows.iter().filter_map(|r| r.arrived_ns).collect();
    let (first, last) = (
        *arrivals.iter().min().unwrap(),
        *arrivals.iter().max().unwrap(),
    );
    let capacity = (work(last) - work(first)) as f64 / 1e9;
    let bits = arrivals.len() as f64 * f64::from(SIZE) * 8.0;
    let utilization = metric(2, "utilization_ratio").unwrap();
    assert!(
        (utilization - bits / capacity).abs() < 1e-9,
        "{utilization}"
    );
    let series = series::throughput(&draft.record(), 100 * MS).unwrap();
    let capacity = series.capacity_bps.unwrap();
    assert!((capacity[4] - 8e6).abs() < 1.0 && (capacity[5] - 2e6).abs() < 1.0);
}
