//! Metrics compared with values computed by hand, and packets with bins.

use crate::reference::{Draft, Plan};
use narrows_record::metrics::{measure, metrics, registry};
use narrows_record::{
    Direction, Fate, PacketRow, ReceiverCounters, SenderCounters, StateRow, series,
};
use proptest::prelude::*;
use serde_json::Value;

const MS: u64 = 1_000_000;

/// A draft with the given packets (flow, size, sent in ms, arrived in ms or fate) on a path of
/// 12 Mbit/s with 20 ms of propagation.
fn draft(flows: usize, packets: &[(u16, u32, u64, Result<u64, Fate>)]) -> Draft {
    let plan = Plan {
        before_ns: 5 * MS,
        after_ns: 15 * MS,
        extra_rtt_ns: vec![0; flows],
        duration_ns: 1000 * MS,
        ..Plan::default()
    };
    let mut draft = plan.draft();
    draft.states.clear();
    draft.rows = (1..)
        .zip(packets)
        .map(|(uid, &(flow, size, sent, end))| PacketRow {
            copy_of: None,
            flow,
            direction: Direction::Forward,
            uid,
            size_bytes: size,
            sent_ns: sent * MS,
            arrived_ns: end.ok().map(|ms| ms * MS),
            late_ns: end.ok().map(|_| 0),
            fate: end.err().unwrap_or(Fate::Delivered),
            element: end.err().map(|_| "forward.1".into()),
            reason: end
                .err()
                .filter(|&f| f == Fate::Dropped)
                .map(|_| "queue_full".into()),
        })
        .collect();
    for flow in &mut draft.run.flows {
        flow.sender = SenderCounters::default();
        flow.receiver = ReceiverCounters::default();
    }
    draft
}

fn metric(result: &Value, flow: &str, name: &str) -> Option<f64> {
    let row = result["flows"]
        .as_array()
        .unwrap()
        .iter()
        .find(|row| row["flow"] == flow);
    let value = &row.unwrap()["metrics"][name];
    assert_eq!(
        value.is_null(),
        result["absent"][flow][name].is_string(),
        "{flow} {name}"
    );
    value.as_f64()
}

fn close(a: Option<f64>, b: f64) {
    let a = a.expect("a value");
    assert!((a - b).abs() <= 1e-9 * b.abs().max(1e-9), "{a} is not {b}");
}

#[test]
fn two_flows_by_hand() {
    use Fate::{Dropped, InFlight};
    let mut draft = draft(
        2,
        &[
            (1, 1500, 0, Ok(21)),
            (1, 1500, 10, Ok(32)),
            (2, 1000, 15, Ok(40)),
            (1, 1500, 20, Err(Dropped)),
            (1, 500, 30, Ok(61)),
            (2, 1000, 35, Ok(140)),
            (1, 1500, 990, Err(InFlight)),
        ],
    );
    draft.run.flows[0].sender.sent_packets = Some(5);
    draft.run.flows[0].sender.retransmitted_packets = Some(1);
    draft.run.flows[1].sender.sent_bytes = Some(2000);
    draft.run.flows[1].sender.retransmitted_bytes = Some(500);
    draft.run.flows[0].receiver.goodput_bytes = Some(3000);
    for (time, rtt) in [(10, 40), (20, 50), (30, 60)] {
        let rtt_ns = Some(rtt * MS);
        draft.states.push(StateRow {
            flow: 1,
            time_ns: time * MS,
            rtt_ns,
            ..StateRow::default()
        });
    }
    let m = measure(&draft.record()).unwrap();
    // Flow 1: 3500 bytes in 61 - 21 = 40 ms; flow 2: 2000 bytes in 100 ms; all: 119 ms.
    close(metric(&m, "1", "throughput_bps"), 28_000.0 / 0.040);
    close(metric(&m, "2", "throughput_bps"), 16_000.0 / 0.100);
    close(metric(&m, "all", "throughput_bps"), 44_000.0 / 0.119);
    assert_eq!(m["span_ns"], 119 * MS);
    close(metric(&m, "1", "goodput_bps"), 24_000.0 / 0.040);
    assert_eq!(metric(&m, "2", "goodput_bps"), None);
    assert_eq!(metric(&m, "all", "goodput_bps"), None);
    // Delays of flow 1: 21, 22, 31 ms; of flow 2: 25, 105 ms.
    close(metric(&m, "1", "delay_mean_ns"), 74e6 / 3.0);
    close(metric(&m, "1", "delay_p50_ns"), 22e6);
    close(metric(&m, "1", "delay_p95_ns"), 31e6);
    close(metric(&m, "2", "delay_p50_ns"), 25e6);
    close(metric(&m, "all", "delay_p50_ns"), 25e6);
    close(metric(&m, "all", "delay_p99_ns"), 105e6);
    close(metric(&m, "all", "delay_max_ns"), 105e6);
    close(metric(&m, "all", "delay_mean_ns"), 204e6 / 5.0);
    close(metric(&m, "1", "queueing_delay_p50_ns"), 2e6);
    close(metric(&m, "all", "queueing_delay_mean_ns"), 104e6 / 5.0);
    // One of four judged packets; 3500 of 6500 bytes sent.
    close(metric(&m, "1", "loss_ratio"), 0.25);
    close(
        metric(&m, "1", "loss_pantheon_ratio"),
        1.0 - 3500.0 / 6500.0,
    );
    close(metric(&m, "2", "loss_ratio"), 0.0);
    close(metric(&m, "all", "loss_ratio"), 1.0 / 6.0);
    close(
        metric(&m, "all", "utilization_ratio"),
        44_000.0 / 0.119 / 12e6,
    );
    // Both run for the whole second: 3500 and 2000 bytes.
    close(
        metric(&m, "all", "jain_index"),
        5500.0f64.powi(2) / (2.0 * (3500.0f64.powi(2) + 4e6)),
    );
    assert_eq!(metric(&m, "1", "jain_index"), None);
    close(metric(&m, "1", "retransmitted_ratio"), 0.2);
    close(metric(&m, "2", "retransmitted_ratio"), 0.25);
    assert_eq!(
        metric(&m, "all", "retransmitted_ratio"),
        None,
        "packets and bytes do not add up"
    );
    close(metric(&m, "1", "rtt_mean_ns"), 50e6);
    close(metric(&m, "1", "rtt_p95_ns"), 60e6);
    assert_eq!(metric(&m, "2", "rtt_p95_ns"), None);
    close(metric(&m, "all", "rtt_mean_ns"), 50e6);
}

#[test]
fn silent_flows_have_reasons_instead_of_numbers() {
    let draft = draft(
        3,
        &[
            (2, 1500, 1, Ok(30)),
            (3, 1500, 2, Err(Fate::Dropped)),
            (3, 1500, 3, Err(Fate::InFlight)),
        ],
    );
    let m = measure(&draft.record()).unwrap();
    let reason = |flow: &str, name: &str| m["absent"][flow][name].as_str().unwrap().to_owned();
    assert_eq!(
        reason("1", "throughput_bps"),
        "no packet of the flow arrived"
    );
    assert_eq!(
        reason("1", "loss_ratio"),
        "no packet of the flow was dropped or delivered"
    );
    assert_eq!(
        reason("1", "loss_pantheon_ratio"),
        "no packet of the flow was sent"
    );
    assert!(reason("2", "throughput_bps").starts_with("only one packet of the flow arrived"));
    close(metric(&m, "2", "delay_p95_ns"), 29e6);
    close(metric(&m, "2", "loss_ratio"), 0.0);
    close(metric(&m, "3", "loss_ratio"), 1.0);
    close(metric(&m, "3", "loss_pantheon_ratio"), 1.0);
    assert_eq!(reason("3", "delay_p50_ns"), "no packet of the flow arrived");
    assert_eq!(m["span_ns"], Value::Null);
    // One of three flows has all the throughput.
    close(metric(&m, "all", "jain_index"), 1.0 / 3.0);
}

#[test]
fn jain_counts_only_the_time_that_all_flows_share() {
    let mut draft = draft(
        2,
        &[
            (1, 1500, 0, Ok(30)),
            (1, 1000, 500, Ok(600)),
            (2, 1000, 500, Ok(601)),
            (1, 900, 900, Ok(950)),
        ],
    );
    draft.run.cell["flows"][1]["start_ns"] = (400 * MS).into();
    draft.run.cell["flows"][0]["stop_ns"] = (900 * MS).into();
    let m = measure(&draft.record()).unwrap();
    close(metric(&m, "all", "jain_index"), 1.0);
    draft.run.cell["flows"][1]["start_ns"] = (900 * MS).into();
    let m = measure(&draft.record()).unwrap();
    assert_eq!(
        m["absent"]["all"]["jain_index"],
        "the flows never run all at the same time"
    );
}

#[test]
fn jitter_counts_as_queueing_from_the_smallest_possible_delay_on() {
    let mut draft = draft(1, &[(1, 1500, 0, Ok(30)), (1, 1500, 1, Ok(26))]);
    // Replaces the first delay of 5 ms: the remaining propagation is 15 ms.
    draft.run.cell["network"]["forward"][0] =
        serde_json::json!({"name": "wobble", "kind": "jitter", "spread": 50_000});
    let m = measure(&draft.record()).unwrap();
    close(metric(&m, "1", "queueing_delay_p95_ns"), 15e6);
    close(metric(&m, "all", "queueing_delay_mean_ns"), 12.5e6);
}

#[test]
fn elements_that_move_leave_queueing_delay_open_and_nothing_else() {
    let mut draft = draft(1, &[(1, 1500, 0, Ok(30)), (1, 1500, 1, Ok(31))]);
    draft.run.cell["network"]["forward"][0] =
        serde_json::json!({"name": "wobble", "kind": "drift", "delay": 5});
    let m = measure(&draft.record()).unwrap();
    let reason = m["absent"]["1"]["queueing_delay_p95_ns"].as_str().unwrap();
    assert!(
        reason.starts_with("the propagation delay of wobble (drift) is not fixed"),
        "{reason}"
    );
    close(metric(&m, "1", "delay_p95_ns"), 30e6);
}

#[test]
fn contradictions_are_errors() {
    let mut draft = draft(1, &[(1, 1500, 20, Ok(30))]);
    draft.rows[0].arrived_ns = Some(1);
    let error = measure(&draft.record()).unwrap_err().to_string();
    assert_eq!(error, "packets.parquet: packet 1 arrives before it is sent");
}

#[test]
fn the_registry_is_complete() {
    let json = registry();
    let names: Vec<&str> = metrics().map(|metric| metric.name).collect();
    let mut unique = names.clone();
    unique.sort_unstable();
    unique.dedup();
    assert_eq!(unique.len(), names.len());
    for (metric, json) in metrics().zip(json.as_array().unwrap()) {
        assert!(
            !metric.label.is_empty() && !metric.source.is_empty(),
            "{}",
            metric.name
        );
        assert!(metric.definition.ends_with('.') && !metric.definition.contains("  "));
        assert_eq!(json["name"], metric.name);
    }
}

#[test]
fn bins_and_packets_agree() {
    for extra in [vec![0, 0, 0], vec![0, 9_000_001, 40_000_000]] {
        let draft = Plan {
            extra_rtt_ns: extra,
            ..Plan::default()
        }
        .draft();
        let packets = measure(&draft.record()).unwrap();
        let bins = measure(&draft.record_of_bins(100 * MS)).unwrap();
        for row in packets["flows"].as_array().unwrap() {
            let flow = row["flow"].as_str().unwrap();
            for metric in metrics() {
                if ["loss_events", "loss_synchronisation"].contains(&metric.name) {
                    // Bins contain only the number of losses.
                    assert_eq!(metric_of(&bins, flow, metric.name), None);
                    continue;
                }
                let (a, b) = (
                    &row["metrics"][metric.name],
                    metric_of(&bins, flow, metric.name),
                );
                let (Some(a), Some(b)) = (a.as_f64(), b) else {
                    assert_eq!(a.is_null(), b.is_none());
                    continue;
                };
                // Percentiles come from buckets of 1/512; the queueing part is a difference, so
                // its error is relative to the whole delay.
                let tolerance = match metric.name {
                    name if name.contains("queueing_delay_p") => 100e6 / 512.0,
                    name if name.contains("_p") => a / 512.0,
                    _ => a.abs() * 1e-12,
                };
                assert!(
                    (a - b).abs() <= tolerance,
                    "{flow} {}: {a} and {b}",
                    metric.name
                );
            }
        }
    }
}

fn metric_of(result: &Value, flow: &str, name: &str) -> Option<f64> {
    let row = result["flows"]
        .as_array()
        .unwrap()
        .iter()
        .find(|row| row["flow"] == flow);
    row.unwrap()["metrics"][name].as_f64()
}

#[test]
fn series_hold_every_byte_and_every_extreme() {
    let draft = Plan::default().draft();
    let (packets, bins) = (draft.record(), draft.record_of_bins(100 * MS));
    let a = series::throughput(&packets, 500 * MS).unwrap();
    assert_eq!(
        a,
        series::throughput(&bins, 450 * MS).unwrap(),
        "rounded up to 500 ms"
    );
    assert_eq!(a.time_s, [0.0, 0.5, 1.0, 1.5]);
    assert_eq!(a.capacity_bps, Some(vec![12e6; 4]));
    let arrived: f64 = a
        .flows
        .values()
        .flat_map(|(_, arrived)| arrived)
        .sum::<f64>()
        * 0.5
        / 8.0;
    let data = || {
        draft
            .rows
            .iter()
            .filter(|r| r.direction == Direction::Forward)
    };
    let expected: u64 = data()
        .filter(|r| r.arrived_ns.is_some())
        .map(|r| u64::from(r.size_bytes))
        .sum();
    assert!((arrived - expected as f64).abs() < 1e-3);

    // An arrival exactly at the end of the run belongs to the last bin.
    let mut last = draft.clone();
    let row = last
        .rows
        .iter_mut()
        .rfind(|r| r.direction == Direction::Forward)
        .unwrap();
    row.arrived_ns = Some(2000 * MS);
    row.late_ns = Some(0);
    row.fate = Fate::Delivered;
    for record in [last.record(), last.record_of_bins(100 * MS)] {
        let series = series::throughput(&record, 500 * MS).unwrap();
        assert_eq!(series.time_s.len(), 4);
        assert!(
            series
                .flows
                .values()
                .all(|(_, arrived)| arrived.iter().all(|&bps| bps < 13e6))
        );
    }

    let points = series::delay_points(&packets, 100).unwrap().unwrap();
    let slowest = |flow: u16| {
        let delays = data()
            .filter(|r| r.flow == flow)
            .filter_map(|r| Some(r.arrived_ns? - r.sent_ns));
        delays.max().unwrap() as f64 / 1e6
    };
    for (flow, points) in points {
        assert!(points.time_s.len() <= 100 && points.time_s.len() > 80);
        assert!(points.time_s.is_sorted());
        let max = points.delay_ms.iter().copied().fold(0.0, f64::max);
        assert!((max - slowest(flow)).abs() < 1e-9);
    }
    assert!(series::delay_points(&bins, 100).unwrap().is_none());
    assert_eq!(
        series::queues(&packets).unwrap()["forward.1"].time_s.len(),
        draft.queues.len()
    );
    let states = series::states(&packets).unwrap();
    assert!(
        states[&1].columns[1].1.iter().all(|value| value.is_nan()),
        "no ssthresh"
    );
    assert!(series::throughput(&packets, 0).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(40) })]

    #[test]
    fn metrics_stay_within_their_bounds(seed: u64, load in 0.2f64..3.0, loss in 0.0f64..0.5) {
        let plan = Plan { seed, load, loss, duration_ns: 300 * MS, ..Plan::default() };
        let m = measure(&plan.draft().record()).unwrap();
        for row in m["flows"].as_array().unwrap() {
            let get = |name: &str| row["metrics"][name].as_f64();
            for name in ["loss_ratio", "loss_pantheon_ratio", "jain_index"] {
                if let Some(value) = get(name) {
                    prop_assert!((0.0..=1.0).contains(&value), "{name} = {value}");
                }
            }
            if let (Some(p50), Some(p95), Some(max)) =
                (get("delay_p50_ns"), get("delay_p95_ns"), get("delay_max_ns"))
            {
                prop_assert!(p50 <= p95 && p95 <= max);
                prop_assert!(p50 >= (plan.before_ns + plan.after_ns) as f64);
            }
            // The first packet's bits are counted: at most one packet more than the rate allows.
            if let (Some(u), Some(span)) = (get("utilization_ratio"), m["span_ns"].as_f64()) {
                prop_assert!((u - 1.0) * span * plan.rate_bps as f64 / 8e9 <= 1500.0 + 1e-6);
            }
        }
    }
}
