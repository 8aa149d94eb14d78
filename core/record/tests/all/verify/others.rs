//! Counters, samples, frames and transfers changed, and files that cannot be read.

use crate::reference::{Draft, Plan};
use crate::verify::{draft, element, expect, failed, pick, recount};
use narrows_record::Fate;
use narrows_record::verify::verify;
use proptest::prelude::*;

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
    // A packet vanishes in a delay: no element has to give a reason, but the queue in front of it
    // and the sender have counted it, and it is counted as held.
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
    // A number is missing or repeated: the same frame arrived twice.
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
    // A frame that never arrived may have any size, and may have been discarded.
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
    // A transfer that never completed may have any size.
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

    /// If any single time is moved back by more than a rounding error, a check fails.
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
