//! Correct records, complete or partial, and records of tunnels.

use crate::reference::{Draft, Plan};
use crate::verify::{draft, element, expect, failed, pick, recount, skipped};
use narrows_record::verify::verify;
use narrows_record::{Direction, Fate, HostSettings};
use serde_json::json;

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

/// The draft as if a tunnel between two hosts had logged it, with the counters of both ends.
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
    assert_eq!(
        skipped(&report),
        ["lateness"],
        "no emulator released packets"
    );
    for (host, what) in [(0, "sent"), (0, "arrived"), (1, "sent"), (1, "arrived")] {
        let mut lacking = tunnelled();
        let tunnel = lacking.run.hosts[host].other.get_mut("tunnel").unwrap();
        let counted = tunnel[what]["packets"].as_u64().unwrap();
        tunnel[what]["packets"] = (counted + 1).into();
        expect(&lacking, &["tunnel"]);
    }
    // The clocks of two hosts differ slightly: a flow may start too early by that difference, but not by more.
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
    // The same holds for bins.
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
    // Jitter keeps the order unless configured otherwise.
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
        // 0.7 MB at one instant, after all other packets.
        fast.rows[row].arrived_ns = Some(1_999_000_000);
    }
    assert!(failed(&verify(&fast.record_of_bins(100_000_000))).contains(&"rate"));
}
