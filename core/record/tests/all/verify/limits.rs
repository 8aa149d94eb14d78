//! Values just beyond the verifier's tolerances, and counters that are wrong without contradicting each other.

use crate::reference::{Draft, Plan};
use crate::verify::{draft, element, expect, failed, pick, recount};
use narrows_record::verify::verify;
use narrows_record::{Direction, Fate};
use serde_json::json;

fn breaks_rate(draft: &Draft) -> bool {
    failed(&verify(&draft.record())).contains(&"rate")
}

fn early(draft: &mut Draft, row: usize, ns: u64) {
    let arrival = &mut draft.rows[row].arrived_ns;
    *arrival = arrival.map(|time| time - ns);
}

/// Rows of `count` consecutive packets that all waited for each other and were delivered.
fn busy(draft: &Draft, count: usize) -> Vec<usize> {
    let data: Vec<usize> = (0..draft.rows.len())
        .filter(|&row| draft.rows[row].direction == Direction::Forward)
        .collect();
    let waited = |row: &usize| {
        let row = &draft.rows[*row];
        // More than 20 ms of propagation and 1 ms of serialisation.
        let delay = row.arrived_ns.map_or(0, |at| at - row.sent_ns);
        row.size_bytes == 1500 && delay > 21_000_100
    };
    let mut windows = data.windows(count);
    let found = windows.find(|rows| rows.iter().all(waited));
    found.expect("a busy period").to_vec()
}

#[test]
fn a_packet_may_be_early_by_its_rounding_only() {
    let sound = draft();
    // It found the server idle: only its serialisation of 1 ms limits it.
    let alone = pick(&sound, Fate::Delivered)
        .find(|&row| {
            let row = &sound.rows[row];
            row.arrived_ns == Some(row.sent_ns + 21_000_000) && row.size_bytes == 1500
        })
        .unwrap();
    let by = |ns| {
        let mut d = sound.clone();
        early(&mut d, alone, ns);
        breaks_rate(&d)
    };
    // One packet is allowed for rounding, and one because the earlier departures are computed, not measured.
    assert!(!by(2) && by(3));
}

#[test]
fn a_busy_period_may_be_early_by_its_rounding_only() {
    let mut d = draft();
    // Each packet is early by no more than the tolerance per packet, but all together by more than the tolerance of the
    // period.
    for (index, row) in (0..).zip(busy(&d, 6)) {
        early(&mut d, row, index);
    }
    assert!(breaks_rate(&d));
}

#[test]
fn windows_of_time_forgive_a_nanosecond_per_packet() {
    // With jitter before the bottleneck, the earliest start of service is not known.
    let mut sound = draft();
    sound.run.cell["network"]["forward"][0]["kind"] = "jitter".into();
    element(&mut sound, "forward.0").kind = "jitter".into();
    let by = |ns: u64| {
        let mut d = sound.clone();
        for (index, row) in (0..).zip(busy(&d, 12)) {
            early(&mut d, row, index * ns);
        }
        breaks_rate(&d)
    };
    assert!(!by(1) && by(4));
}

/// A record of bins in which `packets` packets of one bin arrive in the previous one.
fn crowded(plan: &Plan, packets: usize, lateness_ns: u64) -> bool {
    let mut d = plan.draft();
    if let Some(lateness) = &mut d.run.lateness {
        lateness.max_ns = lateness_ns;
    }
    let bin = |row: &usize| d.rows[*row].arrived_ns.map(|time| time / 100_000_000);
    let later: Vec<usize> = pick(&d, Fate::Delivered)
        .filter(|row| bin(row) == Some(16) && d.rows[*row].size_bytes == 1500)
        .collect();
    for &row in &later[..packets] {
        d.rows[row].arrived_ns = Some(1_599_000_000);
    }
    failed(&verify(&d.record_of_bins(100_000_000))).contains(&"rate")
}

#[test]
fn bins_forgive_one_packet_and_the_lateness() {
    // Always busy: each bin of 100 ms is full with 150,000 bytes.
    let plan = Plan {
        load: 2.0,
        loss: 0.0,
        ..Plan::default()
    };
    // 60,000 and 75,000 bytes, where the largest packet has 65,535.
    assert!(!crowded(&plan, 40, 0) && crowded(&plan, 50, 0));
    // 10 ms more are 15,000 bytes more.
    let late = Plan { late: true, ..plan };
    assert!(!crowded(&late, 50, 10_000_000) && crowded(&late, 60, 10_000_000));
}

#[test]
fn a_server_of_unknown_rate_may_carry_one_packet_more_than_its_capacity() {
    let mut d = draft();
    d.run.cell["network"]["forward"][1]["rate"] =
        json!({"kind": "trace", "file": {"name": "x", "sha256": "x"}});
    let carried = element(&mut d, "forward.1").out_bytes;
    element(&mut d, "forward.1").capacity_bytes = Some(carried - 65_535);
    assert!(!breaks_rate(&d));
    element(&mut d, "forward.1").capacity_bytes = Some(carried - 65_536);
    assert!(breaks_rate(&d));
}

/// Expects that the counters of `whose` do not add up, for packets and for bins.
fn unconserved(d: &Draft, whose: &str) {
    expect(d, &["conservation"]);
    let bins = verify(&d.record_of_bins(100_000_000));
    assert_eq!(failed(&bins), ["conservation"], "{whose}");
}

#[test]
fn counters_that_agree_with_each_other_and_not_with_the_packets() {
    let names = [
        "forward.0",
        "forward.1",
        "forward.2",
        "forward.3",
        "backward.0",
    ];
    for name in names {
        let mut d = draft();
        let counters = element(&mut d, name);
        counters.in_packets += 1;
        counters.in_bytes += 1500;
        counters.out_packets += 1;
        counters.out_bytes += 1500;
        unconserved(&d, name);
        let mut d = draft();
        let counters = element(&mut d, name);
        counters.out_bytes -= 1500;
        counters.out_packets -= 1;
        counters.held_bytes += 1500;
        counters.held_packets += 1;
        unconserved(&d, name);
        let mut d = draft();
        let counters = element(&mut d, name);
        counters.in_bytes += 1500;
        counters.in_packets += 1;
        counters.held_bytes += 1500;
        counters.held_packets += 1;
        unconserved(&d, name);
        let mut d = draft();
        let counters = element(&mut d, name);
        counters.copied_packets += 1;
        counters.copied_bytes += 1500;
        counters.out_packets += 1;
        counters.out_bytes += 1500;
        expect(&d, &["conservation"]);
    }
    // All elements of a path count a packet that was never sent.
    let mut d = draft();
    for name in &names[..4] {
        let counters = element(&mut d, name);
        counters.in_packets += 1;
        counters.out_packets += 1;
    }
    unconserved(&d, "a whole way");
}

#[test]
fn counters_that_contradict_each_other_where_packets_do_not_tell_all() {
    // Which of two elements made a copy is not recorded: they may have counted more than the packets imply.
    let mut sound = Plan {
        loss: 0.0,
        ..Plan::default()
    }
    .draft();
    for (index, name) in [(0, "forward.0"), (3, "forward.3")] {
        sound.run.cell["network"]["forward"][index]["kind"] = "duplicate".into();
        element(&mut sound, name).kind = "duplicate".into();
    }
    let row = pick(&sound, Fate::Delivered).next().unwrap();
    sound.rows[row].copy_of = Some(1);
    let conservation = |d: &Draft| !failed(&verify(&d.record())).contains(&"conservation");
    assert!(conservation(&sound));
    let mut d = sound.clone();
    element(&mut d, "forward.3").in_packets += 1;
    assert!(!conservation(&d));
    let mut d = sound;
    element(&mut d, "forward.3").out_bytes += 1;
    assert!(!conservation(&d));
}

#[test]
fn drops_that_nobody_made() {
    // Counted by an element without a corresponding packet.
    for name in ["forward.0", "forward.1", "forward.2", "forward.3"] {
        let mut d = draft();
        let counters = element(&mut d, name);
        counters.dropped_packets += 1;
        counters.dropped_bytes += 1500;
        counters.out_packets -= 1;
        counters.out_bytes -= 1500;
        unconserved(&d, name);
    }
    // Instead of holding a packet.
    let mut d = draft();
    let counters = element(&mut d, "forward.2");
    counters.dropped_packets += 1;
    counters.dropped_bytes += 1500;
    counters.held_packets -= 1;
    counters.held_bytes -= 1500;
    unconserved(&d, "forward.2");
    // Claimed by a packet, in every way that is impossible; the counters are made to agree.
    let told = |element: Option<&str>, reason: Option<&str>| {
        let mut d = draft();
        let row = pick(&d, Fate::Delivered).next().unwrap();
        let packet = &mut d.rows[row];
        packet.fate = Fate::Dropped;
        packet.arrived_ns = None;
        packet.late_ns = None;
        packet.element = element.map(str::to_owned);
        packet.reason = reason.map(str::to_owned);
        recount(&mut d);
        let report = verify(&d.record());
        let fates = report.findings.iter().find(|f| f.name == "fates").unwrap();
        assert!(!fates.ok, "{element:?} {reason:?}");
        fates.detail.clone()
    };
    let nobody = "was dropped, but no element is named.";
    assert!(told(None, Some("queue_full")).ends_with(nobody));
    assert!(told(None, None).ends_with(nobody));
    assert!(told(Some("forward.1"), None).ends_with("was dropped without a reason."));
    let other = "was dropped by an element that does not drop packets for this reason.";
    for (element, reason) in [
        ("forward.0", "queue_full"),
        ("forward.1", "random_loss"),
        ("forward.2", "line_full"),
        ("forward.3", "queue_full"),
    ] {
        assert!(
            told(Some(element), Some(reason)).ends_with(other),
            "{element}"
        );
    }
}
