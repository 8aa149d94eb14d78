//! Every metric on nearly empty records: a value computed by hand, or a reason.

use crate::reference::{Draft, Plan, packet};
use narrows_record::metrics::{measure, metrics};
use narrows_record::{ReceiverCounters, SenderCounters};
use serde_json::json;

const MS: u64 = 1_000_000;
const SECOND: u64 = 1000 * MS;

/// A run of ten seconds over 12 Mbit/s and 20 ms with packets of 1000 bytes: flow, sent (ns), arrived (ns) or dropped.
fn draft(flows: usize, packets: impl IntoIterator<Item = (u16, u64, Option<u64>)>) -> Draft {
    let plan = Plan {
        before_ns: 5 * MS,
        after_ns: 15 * MS,
        extra_rtt_ns: vec![0; flows],
        duration_ns: 10 * SECOND,
        ..Plan::default()
    };
    let mut draft = plan.draft();
    draft.states.clear();
    draft.transfers.clear();
    draft.frames.clear();
    let mut packets: Vec<(u16, u64, Option<u64>)> = packets.into_iter().collect();
    packets.sort_by_key(|&(_, sent, _)| sent);
    let row = |(uid, (flow, sent_ns, arrived_ns))| packet(flow, uid, sent_ns, arrived_ns);
    draft.rows = (1..).zip(packets).map(row).collect();
    for element in &mut draft.run.elements {
        (element.in_packets, element.dropped_packets) = (0, 0);
    }
    for flow in &mut draft.run.flows {
        flow.sender = SenderCounters::default();
        flow.receiver = ReceiverCounters::default();
    }
    draft
}

/// Values of one flow, or of all together, in the order of the registry; all other metrics have a reason.
type Expected<'a> = (&'a str, &'a [(&'a str, f64)]);

/// Each metric has either the value listed here or a reason, the same from packets and from bins where bins suffice.
fn expect(draft: &Draft, expected: &[Expected<'_>]) {
    for (record, of_bins) in [
        (draft.record(), false),
        (draft.record_of_bins(100 * MS), true),
    ] {
        let measured = measure(&record).unwrap();
        for (flow, values) in expected {
            let rows = measured["flows"].as_array().unwrap();
            let row = rows.iter().find(|row| row["flow"] == *flow).unwrap();
            for metric in metrics() {
                let at = format!("{} of {flow}, bins: {of_bins}", metric.name);
                let known = values.iter().find(|(name, _)| *name == metric.name);
                // Records of bins do not contain the times of single drops.
                let known = known.filter(|_| !(of_bins && metric.name.starts_with("loss_events")));
                let known = known.filter(|_| !(of_bins && metric.name.starts_with("loss_sync")));
                let value = &row["metrics"][metric.name];
                let reason = &measured["absent"][*flow][metric.name];
                if let Some((_, number)) = known {
                    let value = value.as_f64().unwrap_or_else(|| panic!("{at}: {reason}"));
                    // Sums of a thousand terms in another order.
                    assert!(
                        (value - number).abs() <= 1e-9 * number.abs(),
                        "{at}: {value}, not {number}"
                    );
                    assert!(reason.is_null(), "{at}: {reason}");
                    continue;
                }
                assert!(value.is_null(), "{at}: {value}");
                let reason = reason.as_str().unwrap_or_else(|| panic!("{at}: no reason"));
                assert!(
                    !reason.is_empty() && !reason.ends_with('.'),
                    "{at}: {reason}"
                );
            }
        }
    }
}

/// The reason for which a metric has no value.
fn reason(draft: &Draft, flow: &str, name: &str) -> String {
    let measured = measure(&draft.record()).unwrap();
    let reason = measured["absent"][flow][name].as_str();
    reason
        .unwrap_or_else(|| panic!("{name} has a value"))
        .to_owned()
}

/// Packets of a flow, one every `every_ms` until 9.9 s, each with a delay of 20 ms.
fn steady(flow: u16, every_ms: usize) -> impl Iterator<Item = (u16, u64, Option<u64>)> {
    let times = (0..9_900).step_by(every_ms);
    times.map(move |ms| (flow, ms * MS, Some((ms + 20) * MS)))
}

const NEVER_FAIR: [(&str, f64); 2] = [("converged_1s", 0.0), ("converged_10s", 0.0)];

#[test]
fn nothing_was_sent() {
    let silent = draft(2, []);
    expect(&silent, &[("1", &[]), ("2", &[]), ("all", &NEVER_FAIR)]);
    assert_eq!(
        reason(&silent, "all", "utilization_ratio"),
        "no packet arrived"
    );
    assert_eq!(
        reason(&silent, "all", "convergence_1s_ns"),
        "the flows did not converge in the 10 s that were examined"
    );
    assert_eq!(
        reason(&silent, "all", "jain_20s"),
        "the time during which all flows run has no window of 20 s"
    );
}

#[test]
fn one_packet_has_a_delay_and_no_throughput() {
    let one = draft(2, [(1, 0, Some(25 * MS))]);
    // 5 ms more than propagation. Windows of a second: one packet in one of ten, whose standard deviation is three times
    // the mean; of five seconds: one of two.
    let own = [
        ("delay_mean_ns", 25e6),
        ("delay_p50_ns", 25e6),
        ("delay_p95_ns", 25e6),
        ("delay_p99_ns", 25e6),
        ("delay_max_ns", 25e6),
        ("queueing_delay_mean_ns", 5e6),
        ("queueing_delay_p50_ns", 5e6),
        ("queueing_delay_p95_ns", 5e6),
        ("queueing_delay_p99_ns", 5e6),
        ("loss_ratio", 0.0),
        ("loss_pantheon_ratio", 0.0),
        ("loss_events", 0.0),
        ("cov_1s", 3.0),
        ("cov_5s", 1.0),
    ];
    // Windows in which nothing arrived do not count for fairness.
    let shared = [
        ("jain_index", 0.5),
        ("throughput_ratio", 0.0),
        ("jain_1s", 0.5),
        ("jain_5s", 0.5),
        ("jain_10s", 0.5),
    ];
    let all = [&own[..], &shared[..], &NEVER_FAIR[..]].concat();
    // 25 ms and no loss are optimal.
    let scores = [("qoo_latency_ratio", 1.0), ("qoo_loss_ratio", 1.0)];
    let first = [&own[..], &scores].concat();
    expect(&one, &[("1", &first), ("2", &[]), ("all", &all)]);
    assert_eq!(
        reason(&one, "all", "throughput_bps"),
        "only one packet arrived, so there is no span of time"
    );
}

#[test]
fn everything_was_dropped() {
    let mut lost = draft(2, (0..100).map(|n| (1 + (n % 2) as u16, n * 10 * MS, None)));
    let bottleneck = lost
        .run
        .elements
        .iter_mut()
        .find(|element| element.name == "forward.1")
        .unwrap();
    (bottleneck.in_packets, bottleneck.dropped_packets) = (100, 100);
    // A flow loses a packet every 20 ms for a second, and all losses within the round trip of 40 ms after the first are
    // one event: 0, 60 ... 960 ms. With two flows, each has separate events.
    let own = [
        ("loss_ratio", 1.0),
        ("loss_pantheon_ratio", 1.0),
        ("loss_events", 17.0),
        ("loss_synchronisation", 1.0),
    ];
    let mut all = [&own[..], &NEVER_FAIR[..], &[("bottleneck_drop_ratio", 1.0)]].concat();
    all[2].1 = 34.0;
    // One unacceptable condition is enough.
    let each = [&own[..], &[("qoo_loss_ratio", 0.0), ("qoo_ratio", 0.0)]].concat();
    expect(&lost, &[("1", &each), ("2", &each), ("all", &all)]);
    assert_eq!(reason(&lost, "all", "delay_p95_ns"), "no packet arrived");
}

/// Values of a single flow that sends a packet of 1000 bytes every `every_ms`.
fn alone(packets: f64, every_ms: f64) -> Vec<(&'static str, f64)> {
    let mut values: Vec<(&str, f64)> = vec![(
        "throughput_bps",
        packets * 8_000.0 / ((packets - 1.0) * every_ms / 1e3),
    )];
    values.extend(
        ["mean", "p50", "p95", "p99", "max"].map(|which| match which {
            "mean" => ("delay_mean_ns", 20e6),
            "p50" => ("delay_p50_ns", 20e6),
            "p95" => ("delay_p95_ns", 20e6),
            "p99" => ("delay_p99_ns", 20e6),
            _ => ("delay_max_ns", 20e6),
        }),
    );
    values.extend([
        ("queueing_delay_mean_ns", 0.0),
        ("queueing_delay_p50_ns", 0.0),
        ("queueing_delay_p95_ns", 0.0),
        ("queueing_delay_p99_ns", 0.0),
        ("loss_ratio", 0.0),
        ("loss_pantheon_ratio", 0.0),
        ("loss_events", 0.0),
        // Less than 4 Mbit/s.
        ("qoo_ratio", 0.0),
        ("qoo_latency_ratio", 1.0),
        ("qoo_loss_ratio", 1.0),
        ("qoo_throughput_ratio", 0.0),
    ]);
    values
}

/// Coefficients of variation of packets per window.
fn cov(counts: &[f64]) -> f64 {
    let mean = counts.iter().sum::<f64>() / counts.len() as f64;
    let squares = counts
        .iter()
        .map(|count| (count - mean).powi(2))
        .sum::<f64>();
    (squares / counts.len() as f64).sqrt() / mean
}

#[test]
fn flows_that_never_share_fairly() {
    // 990 and 99 packets. The first second has 98 arrivals and the last one 92, of the other 10 and 9.
    let never = draft(2, steady(1, 10).chain(steady(2, 100)));
    let mut fast = alone(990.0, 10.0);
    let mut seconds = [100.0; 10];
    (seconds[0], seconds[9]) = (98.0, 92.0);
    fast.extend([("cov_1s", cov(&seconds)), ("cov_5s", cov(&[498.0, 492.0]))]);
    let mut slow = alone(99.0, 100.0);
    let mut tens = [10.0; 10];
    tens[9] = 9.0;
    slow.extend([("cov_1s", cov(&tens)), ("cov_5s", cov(&[50.0, 49.0]))]);
    expect(&never, &[("1", &fast), ("2", &slow)]);

    let measured = measure(&never.record()).unwrap();
    let row = &measured["flows"].as_array().unwrap()[2]["metrics"];
    let value = |name: &str| row[name].as_f64().unwrap_or_else(|| panic!("{name}"));
    let jain = 1089f64.powi(2) / (2.0 * (990f64.powi(2) + 99f64.powi(2)));
    assert!((value("jain_index") - jain).abs() < 1e-12);
    assert!((value("jain_10s") - jain).abs() < 1e-12);
    assert!((value("throughput_ratio") - 0.1).abs() < 1e-12);
    assert_eq!((value("converged_1s"), value("converged_10s")), (0.0, 0.0));
    assert_eq!(
        reason(&never, "all", "convergence_10s_ns"),
        "the flows did not converge in the 10 s that were examined"
    );
}

#[test]
fn a_silent_flow_beside_another() {
    let half = draft(2, steady(1, 10));
    expect(&half, &[("2", &[])]);
    let measured = measure(&half.record()).unwrap();
    let row = &measured["flows"].as_array().unwrap()[2]["metrics"];
    for (name, value) in [
        ("jain_index", 0.5),
        ("jain_1s", 0.5),
        ("jain_10s", 0.5),
        ("throughput_ratio", 0.0),
        ("converged_1s", 0.0),
        ("loss_ratio", 0.0),
    ] {
        assert_eq!(row[name].as_f64(), Some(value), "{name}");
    }
}

#[test]
fn nothing_happens_in_the_part_that_is_measured() {
    let early = |flow| steady(flow, 10).take(400);
    let mut empty = draft(2, early(1).chain(early(2)));
    empty.run.cell["measure"] = json!({"from_ns": 5 * SECOND, "to_ns": 9 * SECOND});
    let none: &[(&str, f64)] = &[];
    expect(&empty, &[("1", none), ("2", none)]);
    assert_eq!(
        reason(&empty, "1", "throughput_bps"),
        "no packet of the flow arrived"
    );
    assert_eq!(
        reason(&empty, "all", "jain_index"),
        "no packet arrived while all flows ran"
    );
    assert!(reason(&empty, "all", "jain_10s").ends_with("no window of 10 s"));
}
