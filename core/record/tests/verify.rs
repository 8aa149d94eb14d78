//! The verifier passes correct records and names what is wrong with tampered ones.
//!
//! Correct records come from the reference calculator, which knows nothing of the simulator or the
//! verifier. Each tampering is as careful as its author could be: where counters would give it
//! away at once, they are adjusted too, unless the counters are the point.
#![forbid(unsafe_code)]

mod reference;

use narrows_record::verify::{Report, verify};
use narrows_record::{Direction, ElementCounters, Fate, HostSettings, PacketRow};
use proptest::prelude::*;
use reference::{Draft, Plan};
use serde_json::json;

fn draft() -> Draft {
    Plan::default().draft()
}

fn failed(report: &Report) -> Vec<&'static str> {
    report
        .findings
        .iter()
        .filter(|f| !f.ok)
        .map(|f| f.name)
        .collect()
}

fn skipped(report: &Report) -> Vec<&'static str> {
    report
        .findings
        .iter()
        .filter(|f| f.skipped)
        .map(|f| f.name)
        .collect()
}

/// Expects exactly these checks to fail.
fn expect(draft: &Draft, names: &[&str]) {
    let report = verify(&draft.record());
    assert_eq!(failed(&report), names, "{:#?}", report.findings);
    assert!(!report.ok());
}

fn element<'a>(draft: &'a mut Draft, name: &str) -> &'a mut ElementCounters {
    draft
        .run
        .elements
        .iter_mut()
        .find(|e| e.name == name)
        .unwrap()
}

/// Rows of data packets with the given fate, from the middle of the run on.
fn pick(draft: &Draft, fate: Fate) -> impl Iterator<Item = usize> + use<> {
    let rows: Vec<usize> = (draft.rows.len() / 2..draft.rows.len())
        .filter(|&i| draft.rows[i].fate == fate && draft.rows[i].direction == Direction::Forward)
        .collect();
    rows.into_iter()
}

fn renumber(draft: &mut Draft) {
    for (uid, row) in (1..).zip(&mut draft.rows) {
        row.uid = uid;
    }
}

/// Lets the counters of elements and endpoints tell the same story as the rows.
fn recount(draft: &mut Draft) {
    for direction in [Direction::Forward, Direction::Backward] {
        let rows: Vec<&PacketRow> = draft
            .rows
            .iter()
            .filter(|r| r.direction == direction)
            .collect();
        let bytes = |rows: &[&PacketRow]| rows.iter().map(|r| u64::from(r.size_bytes)).sum::<u64>();
        let mut coming = (rows.len() as u64, bytes(&rows));
        for counters in draft
            .run
            .elements
            .iter_mut()
            .filter(|e| e.direction == direction)
        {
            let at = |fate| -> Vec<&PacketRow> {
                let here = |r: &&&PacketRow| r.element.as_deref() == Some(&counters.name);
                rows.iter()
                    .filter(here)
                    .filter(|r| r.fate == fate)
                    .copied()
                    .collect()
            };
            let (dropped, held) = (at(Fate::Dropped), at(Fate::InFlight));
            (counters.in_packets, counters.in_bytes) = coming;
            counters.dropped_packets = dropped.len() as u64;
            counters.dropped_bytes = bytes(&dropped);
            counters.held_packets = held.len() as u64;
            counters.held_bytes = bytes(&held);
            counters.out_packets = coming.0 - counters.dropped_packets - counters.held_packets;
            counters.out_bytes = coming.1 - counters.dropped_bytes - counters.held_bytes;
            coming = (counters.out_packets, counters.out_bytes);
        }
    }
    for flow in &mut draft.run.flows {
        let mine = |r: &&PacketRow| r.flow == flow.flow && r.direction == Direction::Forward;
        let sent: Vec<&PacketRow> = draft.rows.iter().filter(mine).collect();
        let bytes = |rows: &[&PacketRow]| rows.iter().map(|r| u64::from(r.size_bytes)).sum();
        let received: Vec<&PacketRow> = sent
            .iter()
            .filter(|r| r.fate == Fate::Delivered)
            .copied()
            .collect();
        flow.sender.sent_packets = Some(sent.len() as u64);
        flow.sender.sent_bytes = Some(bytes(&sent));
        flow.receiver.received_packets = Some(received.len() as u64);
        flow.receiver.received_bytes = Some(bytes(&received));
    }
}

#[test]
fn correct_records_pass_and_nothing_is_skipped() {
    let plans = [
        Plan::default(),
        Plan {
            queue_bytes: None,
            queue_packets: Some(12),
            ..Plan::default()
        },
        Plan {
            queue_packets: Some(15),
            load: 2.0,
            ..Plan::default()
        },
        Plan {
            rate_bps: 999_999_937,
            duration_ns: 200_000_000,
            load: 1.2,
            ..Plan::default()
        },
        Plan {
            rate_bps: 7_777_777,
            loss: 0.2,
            ..Plan::default()
        },
        Plan {
            extra_rtt_ns: vec![0, 10_000_001, 33],
            ..Plan::default()
        },
        Plan {
            late: true,
            ..Plan::default()
        },
        Plan {
            before_ns: 0,
            after_ns: 0,
            back_ns: 0,
            loss: 0.0,
            ..Plan::default()
        },
    ];
    for plan in plans {
        let report = verify(&plan.draft().record());
        assert!(
            report.ok() && skipped(&report).is_empty(),
            "{plan:?} {:#?}",
            report.findings
        );
    }
}

/// The draft as if a tunnel between two hosts had logged it, with what its ends have counted.
fn tunnelled() -> Draft {
    let mut draft = draft();
    draft.run.plane = "hosts".into();
    let count = |direction, arrived: bool| {
        let own = draft.rows.iter().filter(|row| row.direction == direction);
        own.filter(|row| !arrived || row.fate == Fate::Delivered)
            .count()
    };
    let ways = [Direction::Forward, Direction::Backward];
    let hosts = [0, 1].map(|host| {
        let sent = json!({"packets": count(ways[host], false) + 3});
        let arrived = json!({"packets": count(ways[1 - host], true) + 2});
        let tunnel = json!({"sent": sent, "arrived": arrived});
        HostSettings {
            other: std::iter::once(("tunnel".to_owned(), tunnel)).collect(),
            ..HostSettings::default()
        }
    });
    draft.run.hosts = hosts.into();
    let way = json!({"left_out_sent": 3, "left_out_arrived": 1, "unknown": 1, "again": 0, "contradicting": 0});
    let told = json!({"forward": way, "backward": way});
    draft.run.other.insert("tunnel".to_owned(), told);
    draft
}

#[test]
fn a_record_that_lacks_packets_of_its_tunnel_is_found() {
    let report = verify(&tunnelled().record());
    assert!(report.ok(), "{:#?}", report.findings);
    assert_eq!(skipped(&report), ["lateness"], "nobody released packets");
    for (host, what) in [(0, "sent"), (0, "arrived"), (1, "sent"), (1, "arrived")] {
        let mut lacking = tunnelled();
        let tunnel = lacking.run.hosts[host].other.get_mut("tunnel").unwrap();
        let counted = tunnel[what]["packets"].as_u64().unwrap();
        tunnel[what]["packets"] = (counted + 1).into();
        expect(&lacking, &["tunnel"]);
    }
    // The clocks of two hosts are not quite one: a flow may start by that much too early, and no more.
    let mut early = tunnelled();
    early.run.clock.error_ns = 500_000;
    early.run.cell["flows"][0]["start_ns"] = (early.frames[0].captured_ns + 400_000).into();
    let report = verify(&early.record());
    assert!(report.ok(), "{:#?}", report.findings);
    early.run.plane = "emulate".into();
    assert!(failed(&verify(&early.record())).contains(&"frames"));
    let mut silent = tunnelled();
    silent.run.other.remove("tunnel");
    expect(&silent, &["tunnel"]);
    // And bins tell as much.
    let bins = verify(&tunnelled().record_of_bins(100_000_000));
    assert!(bins.ok(), "{:#?}", bins.findings);
}

#[test]
fn recounting_a_correct_record_changes_nothing() {
    let mut recounted = draft();
    recount(&mut recounted);
    assert_eq!(recounted.run, draft().run);
}

#[test]
fn what_cannot_be_decided_is_skipped_with_the_reason() {
    let unlimited = Plan {
        queue_bytes: None,
        ..Plan::default()
    }
    .draft();
    let report = verify(&unlimited.record());
    assert_eq!(skipped(&report), ["queue_limit", "queue_drops"]);
    assert!(report.ok());

    let mut wobbly = draft();
    wobbly.run.cell["network"]["forward"][2]["kind"] = "jitter".into();
    element(&mut wobbly, "forward.2").kind = "jitter".into();
    let report = verify(&wobbly.record());
    assert!(report.ok(), "{:#?}", report.findings);
    let undecided = ["rate", "queue_limit", "queue_drops", "queue_samples"];
    assert_eq!(skipped(&report), undecided);
    let rate = report.findings.iter().find(|f| f.name == "rate").unwrap();
    assert_eq!(rate.detail, "the delay of forward.2 (jitter) is not fixed.");
    let kept: Vec<_> = report.checks().into_iter().filter(|c| c.skipped).collect();
    assert!(kept.iter().map(|c| &c.name).eq(undecided));
    // Jitter keeps the order unless it is asked not to.
    wobbly.run.cell["network"]["forward"][2]["reorder"] = true.into();
    let report = verify(&wobbly.record());
    let order = report.findings.iter().find(|f| f.name == "order").unwrap();
    assert!(
        order
            .detail
            .ends_with("forward.2 (jitter) may change the order of packets."),
        "{}",
        order.detail
    );
}

#[test]
fn records_of_bins_are_checked_as_far_as_they_go() {
    let sound = draft();
    let report = verify(&sound.record_of_bins(100_000_000));
    assert!(report.ok(), "{:#?}", report.findings);
    let packets_only = [
        "uids",
        "fates",
        "lateness",
        "order",
        "queue_limit",
        "queue_drops",
    ];
    assert!(
        packets_only
            .iter()
            .all(|name| skipped(&report).contains(name))
    );

    let mut hidden = draft();
    element(&mut hidden, "forward.1").dropped_packets -= 1;
    let report = verify(&hidden.record_of_bins(100_000_000));
    assert_eq!(failed(&report), ["conservation"]);

    let mut early = draft();
    let row = pick(&early, Fate::Delivered).next().unwrap();
    early.rows[row].arrived_ns = Some(early.rows[row].sent_ns + 19_000_000);
    assert_eq!(
        failed(&verify(&early.record_of_bins(100_000_000))),
        ["propagation"]
    );

    let mut fast = draft();
    let rows: Vec<usize> = pick(&fast, Fate::Delivered).take(500).collect();
    for row in rows {
        // 0.7 MB at one instant, late enough for everybody.
        fast.rows[row].arrived_ns = Some(1_999_000_000);
    }
    assert!(failed(&verify(&fast.record_of_bins(100_000_000))).contains(&"rate"));
}

#[test]
fn a_packet_invented() {
    let mut d = draft();
    let row = pick(&d, Fate::Delivered).nth(5).unwrap();
    let mut copy = d.rows[row].clone();
    copy.sent_ns += 1;
    d.rows.insert(row + 1, copy);
    renumber(&mut d);
    // Careless: everybody counted one packet less.
    let report = verify(&d.record());
    assert!(failed(&report).contains(&"conservation") && failed(&report).contains(&"endpoints"));
    // Careful: but two packets cannot leave the bottleneck at once.
    recount(&mut d);
    let report = verify(&d.record());
    assert!(failed(&report).contains(&"rate"), "{:#?}", report.findings);
}

#[test]
fn a_packet_removed() {
    let mut d = draft();
    let row = pick(&d, Fate::Delivered).next().unwrap();
    d.rows.remove(row);
    let report = verify(&d.record());
    assert_eq!(failed(&report)[..3], ["uids", "conservation", "endpoints"]);
    let uids = report.findings.iter().find(|f| f.name == "uids").unwrap();
    assert_eq!(
        uids.detail,
        format!(
            "packet {} is in row {}, where {} belongs.",
            row + 2,
            row + 1,
            row + 1
        )
    );
    // Renumbered and recounted, the queue samples still remember it.
    renumber(&mut d);
    recount(&mut d);
    let report = verify(&d.record());
    assert!(
        failed(&report).contains(&"queue_samples"),
        "{:#?}",
        report.findings
    );
}

#[test]
fn a_packet_twice() {
    let mut d = draft();
    let row = pick(&d, Fate::Delivered).next().unwrap();
    d.rows.insert(row + 1, d.rows[row].clone());
    let report = verify(&d.record());
    let uids = report.findings.iter().find(|f| f.name == "uids").unwrap();
    let (first, second) = (row + 1, row + 2);
    assert_eq!(
        uids.detail,
        format!("packet {first} is there twice, in rows {first} and {second}.")
    );
}

#[test]
fn a_packet_early() {
    let mut d = draft();
    let row = pick(&d, Fate::Delivered).next().unwrap();
    d.rows[row].arrived_ns = Some(d.rows[row].sent_ns + 19_999_999);
    assert!(failed(&verify(&d.record())).contains(&"propagation"));
    // An acknowledgement, whose path has nothing but delay, one nanosecond early.
    let mut d = draft();
    let ack = d
        .rows
        .iter()
        .position(|r| r.direction == Direction::Backward)
        .unwrap();
    d.rows[ack].arrived_ns = d.rows[ack].arrived_ns.map(|t| t - 1);
    expect(&d, &["propagation"]);
    // A packet that waited, one microsecond early: it breaks the rate before anything else.
    let mut d = draft();
    let row = pick(&d, Fate::Delivered).next().unwrap();
    d.rows[row].arrived_ns = d.rows[row].arrived_ns.map(|t| t - 1000);
    assert!(failed(&verify(&d.record())).contains(&"rate"));
}

#[test]
fn over_the_rate_by_little() {
    // Everything that leaves is squeezed by one part in a thousand.
    let mut d = draft();
    let begin = d.rows[d.rows.len() / 2].arrived_ns.unwrap_or(1_000_000_000);
    for row in &mut d.rows {
        if row.direction == Direction::Forward
            && let Some(t) = row.arrived_ns.filter(|&t| t > begin)
        {
            row.arrived_ns = Some(t - (t - begin) / 1000);
        }
    }
    assert!(failed(&verify(&d.record())).contains(&"rate"));
}

#[test]
fn a_faster_link_than_the_cell_says() {
    let mut d = draft();
    d.run.cell["network"]["forward"][1]["rate"]["rate"] = 11_990_000.into();
    let report = verify(&d.record());
    assert!(failed(&report).contains(&"rate"), "{:#?}", report.findings);
}

#[test]
fn over_the_queue() {
    let mut d = draft();
    d.run.cell["network"]["forward"][1]["queue"]["bytes"] = 28_000.into();
    let report = verify(&d.record());
    assert!(
        failed(&report).contains(&"queue_limit"),
        "{:#?}",
        report.findings
    );
    assert!(failed(&report).contains(&"queue_samples"));
    // And by packets.
    let mut d = Plan {
        queue_packets: Some(15),
        queue_bytes: None,
        ..Plan::default()
    }
    .draft();
    d.run.cell["network"]["forward"][1]["queue"]["packets"] = 14.into();
    assert!(failed(&verify(&d.record())).contains(&"queue_limit"));
}

#[test]
fn a_smaller_queue_than_the_cell_says() {
    let mut d = draft();
    d.run.cell["network"]["forward"][1]["queue"]["bytes"] = 40_000.into();
    expect(&d, &["queue_drops"]);
}

#[test]
fn packets_out_of_order() {
    let mut d = draft();
    let rows: Vec<usize> = pick(&d, Fate::Delivered).take(2).collect();
    let first = d.rows[rows[0]].arrived_ns;
    d.rows[rows[0]].arrived_ns = d.rows[rows[1]].arrived_ns;
    d.rows[rows[1]].arrived_ns = first;
    assert!(failed(&verify(&d.record())).contains(&"order"));
    // Acknowledgements, where nothing but the order is wrong.
    let mut d = draft();
    let acks: Vec<usize> = (0..d.rows.len())
        .filter(|&i| d.rows[i].direction == Direction::Backward)
        .take(2)
        .collect();
    d.rows[acks[0]].arrived_ns = d.rows[acks[1]].arrived_ns.map(|t| t + 10);
    assert!(failed(&verify(&d.record())).contains(&"order"));
    assert!(failed(&verify(&d.record())).contains(&"stay"));
}

#[test]
fn a_packet_late() {
    let mut d = draft();
    let ack = d
        .rows
        .iter()
        .position(|r| r.direction == Direction::Backward)
        .unwrap();
    d.rows[ack].arrived_ns = d.rows[ack].arrived_ns.map(|t| t + 1);
    expect(&d, &["stay"]);
    // Data: the bottleneck would have idled with a packet to serve.
    let mut d = draft();
    let row = pick(&d, Fate::Delivered).next().unwrap();
    d.rows[row].arrived_ns = d.rows[row].arrived_ns.map(|t| t + 2);
    assert!(failed(&verify(&d.record())).contains(&"stay"));
}

#[test]
fn a_drop_invented() {
    let mut d = draft();
    let calm = pick(&d, Fate::Delivered).find(|&i| {
        let r = &d.rows[i];
        r.arrived_ns.unwrap() - r.sent_ns < 23_000_000
    });
    let row = &mut d.rows[calm.unwrap()];
    row.fate = Fate::Dropped;
    row.arrived_ns = None;
    row.late_ns = None;
    row.element = Some("forward.1".into());
    row.reason = Some("queue_full".into());
    assert!(failed(&verify(&d.record())).contains(&"conservation"));
    recount(&mut d);
    assert!(failed(&verify(&d.record())).contains(&"queue_drops"));
}

#[test]
fn a_drop_hidden() {
    let mut d = draft();
    let row = pick(&d, Fate::Dropped)
        .find(|&i| d.rows[i].reason.as_deref() == Some("queue_full"))
        .unwrap();
    d.rows[row].fate = Fate::Delivered;
    d.rows[row].element = None;
    d.rows[row].reason = None;
    // It arrives right behind its predecessor.
    let before = d.rows[..row]
        .iter()
        .filter_map(|r| r.arrived_ns.filter(|_| r.direction == Direction::Forward))
        .max();
    d.rows[row].arrived_ns = before.map(|t| t + 1_000_000);
    d.rows[row].late_ns = Some(0);
    assert!(failed(&verify(&d.record())).contains(&"conservation"));
    recount(&mut d);
    assert!(failed(&verify(&d.record())).contains(&"queue_limit"));
}

#[test]
fn a_drop_blamed_on_another() {
    let mut d = draft();
    let row = pick(&d, Fate::Dropped).next().unwrap();
    d.rows[row].element = Some("forward.0".into());
    recount(&mut d);
    assert!(failed(&verify(&d.record())).contains(&"fates"));
    d.rows[row].element = Some("nobody".into());
    assert!(failed(&verify(&d.record())).contains(&"fates"));
}

#[test]
fn counters_changed() {
    for name in [
        "forward.0",
        "forward.1",
        "forward.2",
        "forward.3",
        "backward.0",
    ] {
        let mut d = draft();
        element(&mut d, name).in_packets += 1;
        expect(&d, &["conservation"]);
        let mut d = draft();
        element(&mut d, name).out_bytes -= 1;
        expect(&d, &["conservation"]);
        let mut d = draft();
        element(&mut d, name).held_packets += 1;
        expect(&d, &["conservation"]);
    }
    let mut d = draft();
    d.run.elements.swap(0, 1);
    expect(&d, &["conservation"]);
    let mut d = draft();
    d.run.elements.remove(2);
    expect(&d, &["conservation"]);
    let mut d = draft();
    d.run.flows[1].sender.sent_packets = d.run.flows[1].sender.sent_packets.map(|n| n - 1);
    expect(&d, &["endpoints"]);
    let mut d = draft();
    d.run.flows[0].receiver.received_bytes = Some(1);
    expect(&d, &["endpoints"]);
    let mut d = draft();
    d.run.flows[0].receiver.goodput_bytes = Some(u64::MAX);
    expect(&d, &["endpoints"]);
    let mut d = draft();
    d.run.flows.remove(0);
    expect(&d, &["endpoints"]);
}

#[test]
fn a_size_changed() {
    let mut d = draft();
    let row = pick(&d, Fate::Delivered)
        .find(|&i| d.rows[i].size_bytes == 1500)
        .unwrap();
    d.rows[row].size_bytes = 1400;
    assert!(failed(&verify(&d.record())).contains(&"conservation"));
    // Larger and recounted: it would have taken longer to leave.
    d.rows[row].size_bytes = 1600;
    recount(&mut d);
    assert!(failed(&verify(&d.record())).contains(&"rate"));
    d.rows[row].size_bytes = 0;
    recount(&mut d);
    assert!(failed(&verify(&d.record())).contains(&"fates"));
}

#[test]
fn fates_changed() {
    let mut d = draft();
    let row = pick(&d, Fate::Delivered).next().unwrap();
    d.rows[row].fate = Fate::InFlight;
    assert_eq!(failed(&verify(&d.record()))[..2], ["fates", "conservation"]);
    let mut d = draft();
    let row = pick(&d, Fate::InFlight).next().unwrap();
    d.rows[row].fate = Fate::Dropped;
    assert!(failed(&verify(&d.record())).contains(&"fates"));
    // A packet vanishes in a delay: nobody has to say why, but the queue in front of it and the
    // sender remember, and it is counted as held.
    let mut d = draft();
    let row = pick(&d, Fate::Delivered).next().unwrap();
    d.rows[row].fate = Fate::InFlight;
    d.rows[row].arrived_ns = None;
    d.rows[row].late_ns = None;
    d.rows[row].element = Some("forward.2".into());
    assert_eq!(
        failed(&verify(&d.record())),
        ["conservation", "endpoints", "stay"]
    );
    recount(&mut d);
    expect(&d, &["stay"]);
}

#[test]
fn queue_samples_changed() {
    let mut d = draft();
    let busy = d.queues.iter().position(|q| q.backlog_packets > 3).unwrap();
    d.queues[busy].backlog_bytes -= 1;
    expect(&d, &["queue_samples"]);
    let mut d = draft();
    d.queues[busy].backlog_packets += 1;
    expect(&d, &["queue_samples"]);
    let mut d = draft();
    d.queues[busy].backlog_bytes = 30_001;
    expect(&d, &["queue_samples"]);
    let mut d = draft();
    d.queues[busy].element = "forward.9".into();
    expect(&d, &["queue_samples"]);
    let mut d = draft();
    d.queues.swap(busy, busy + 1);
    expect(&d, &["queue_samples"]);
}

#[test]
fn states_changed() {
    let mut d = draft();
    let last = d.states.len() - 1;
    d.states[last].delivered_bytes = Some(1);
    expect(&d, &["states"]);
    let mut d = draft();
    d.states.swap(2, last);
    expect(&d, &["states"]);
    let mut d = draft();
    d.states[last].flow = 9;
    expect(&d, &["states"]);
}

#[test]
fn frames_changed() {
    let dropped = |d: &Draft| d.frames.iter().position(|f| f.arrived_ns.is_none());
    let mut d = draft();
    let last = d.frames.len() - 1;
    d.frames[last].flow = 9;
    expect(&d, &["frames"]);
    // A number is left out, or comes again: the same frame arrived twice.
    let mut d = draft();
    d.frames.remove(1);
    expect(&d, &["frames"]);
    let mut d = draft();
    d.frames.insert(1, d.frames[1]);
    expect(&d, &["frames"]);
    let mut d = draft();
    d.frames[9].arrived_ns = Some(d.frames[9].captured_ns - 1);
    expect(&d, &["frames"]);
    let mut d = draft();
    d.frames[9].captured_ns = d.frames[8].captured_ns - 1;
    expect(&d, &["frames"]);
    let mut d = draft();
    d.frames[0].bytes = u32::MAX;
    expect(&d, &["frames"]);
    // What never arrived may be as large as it likes, and may have been thrown away.
    let mut d = draft();
    let lost = dropped(&d).unwrap();
    d.frames[lost].bytes = u32::MAX;
    d.frames[lost].discarded = true;
    assert!(verify(&d.record()).ok());
    let mut d = draft();
    d.frames[0].discarded = true;
    expect(&d, &["frames"]);
}

#[test]
fn transfers_changed() {
    let mut d = draft();
    let last = d.transfers.len() - 1;
    d.transfers[last].flow = 9;
    expect(&d, &["transfers"]);
    let mut d = draft();
    d.transfers[9].ended_ns = Some(d.transfers[9].started_ns - 1);
    expect(&d, &["transfers"]);
    let mut d = draft();
    d.transfers[0].bytes = 1 << 40;
    expect(&d, &["transfers"]);
    // What was never complete may be as large as it likes.
    let mut d = draft();
    d.transfers[0].bytes = 1 << 40;
    d.transfers[0].ended_ns = None;
    assert!(verify(&d.record()).ok());
}

#[test]
fn lateness_changed() {
    let mut d = draft();
    let row = pick(&d, Fate::Delivered).next().unwrap();
    d.rows[row].late_ns = Some(5);
    d.rows[row].arrived_ns = d.rows[row].arrived_ns.map(|t| t + 5);
    expect(&d, &["lateness"]);
    let mut d = Plan {
        late: true,
        ..Plan::default()
    }
    .draft();
    let row = pick(&d, Fate::Delivered).next().unwrap();
    let late = d.rows[row].late_ns.unwrap();
    d.rows[row].arrived_ns = d.rows[row].arrived_ns.map(|t| t - late as u64 - 1);
    d.rows[row].late_ns = Some(-1);
    expect(&d, &["lateness"]);
}

#[test]
fn more_random_loss_than_asked_for() {
    let mut d = draft();
    d.run.cell["network"]["forward"][3]["ratio"] = 0.1.into();
    expect(&d, &["random_loss"]);
    d.run.cell["network"]["forward"][3]["ratio"] = 0.into();
    expect(&d, &["random_loss"]);
}

#[test]
fn a_file_that_cannot_be_read() {
    let mut record = draft().record();
    record.packets = Some(vec![1, 2, 3].into());
    let report = verify(&record);
    assert_eq!(failed(&report), ["files"]);
    assert!(
        report.findings[0]
            .detail
            .starts_with("packets.parquet: the file is damaged")
    );
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(150) })]

    #[test]
    fn correct_records_always_pass(
        seed: u64,
        rate_bps in 1_000_000u64..200_000_000,
        queue in 1500u64..200_000,
        packets in prop::option::of(1u64..60),
        load in 0.3f64..3.0,
        loss in 0.0f64..0.3,
        late: bool,
        extra in prop::collection::vec((0u64..1500).prop_map(|n| n * 20_000), 1..4),
        before_ns in 0u64..5_000_000,
    ) {
        let plan = Plan {
            seed, rate_bps, load, loss, late, before_ns,
            queue_bytes: Some(queue),
            queue_packets: packets,
            extra_rtt_ns: extra,
            duration_ns: 200_000_000,
            ..Plan::default()
        };
        let report = verify(&plan.draft().record());
        prop_assert!(report.ok(), "{plan:?} {:#?}", report.findings);
    }

    /// Whatever single time is moved back by more than a rounding error, some check notices.
    #[test]
    fn no_early_arrival_goes_unnoticed(seed in 0u64..50, place in 0.0f64..1.0, by in 2u64..50_000_000) {
        let mut d = Plan { seed, duration_ns: 300_000_000, ..Plan::default() }.draft();
        let rows: Vec<usize> =
            (0..d.rows.len()).filter(|&i| d.rows[i].fate == Fate::Delivered).collect();
        let row = rows[(rows.len() as f64 * place) as usize];
        d.rows[row].arrived_ns = d.rows[row].arrived_ns.map(|t| t.saturating_sub(by));
        prop_assert!(!verify(&d.record()).ok());
    }
}
