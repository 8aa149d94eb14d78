//! Measured parts of runs, links by name, loss events, convergence and binned completion times,
//! computed by hand and compared with counts of the reference calculator.

use crate::reference::{Dice, Draft, Plan, packet};
use narrows_record::completions::Completions;
use narrows_record::metrics::measure;
use narrows_record::{Cell, Direction, Fate, Measure, PacketRow, RowFile, StateRow, TransferRow};
use serde_json::{Value, json};

const MS: u64 = 1_000_000;
const SECOND: u64 = 1000 * MS;

fn plan(flows: usize) -> Plan {
    Plan {
        extra_rtt_ns: vec![0; flows],
        duration_ns: 200 * MS,
        ..Plan::default()
    }
}

/// A run of `seconds` with these packets; each takes 20 ms, or is dropped at the bottleneck.
fn draft(flows: usize, seconds: u64, packets: impl Iterator<Item = (u16, u64, bool)>) -> Draft {
    let mut draft = plan(flows).draft();
    let end = seconds * SECOND;
    draft.run.cell["duration_ns"] = end.into();
    for flow in draft.run.cell["flows"].as_array_mut().unwrap() {
        flow["stop_ns"] = end.into();
    }
    draft.states.clear();
    draft.rows = packets
        .map(|(flow, sent_ns, dropped)| {
            packet(flow, 0, sent_ns, (!dropped).then_some(sent_ns + 20 * MS))
        })
        .collect();
    draft.rows.sort_by_key(|row| row.sent_ns);
    number(&mut draft.rows);
    draft
}

fn number(rows: &mut [PacketRow]) {
    (1..).zip(rows).for_each(|(uid, row)| row.uid = uid);
}

fn metric(result: &Value, flow: &str, name: &str) -> Option<f64> {
    let rows = result["flows"].as_array().unwrap();
    let row = rows.iter().find(|row| row["flow"] == flow).unwrap();
    let value = &row["metrics"][name];
    assert_eq!(value.is_null(), result["absent"][flow][name].is_string());
    value.as_f64()
}

fn reason<'a>(result: &'a Value, flow: &str, name: &str) -> &'a str {
    result["absent"][flow][name].as_str().expect("a reason")
}

fn close(a: Option<f64>, b: f64) {
    let a = a.expect("a value");
    // Sums of a few thousand terms in another order.
    assert!((a - b).abs() <= 1e-9 * b.abs().max(1e-9), "{a} is not {b}");
}

/// Traffic in the other direction has another bottleneck, if any, so that its variation does not
/// count for the link.
#[test]
fn steadiness_of_all_is_that_of_their_bottleneck() {
    let steady = (0..1000).map(|n| (1, n * 10 * MS, false));
    let bursts = (0..1000).map(|n| {
        (
            2,
            n / 100 * SECOND + n / 100 % 2 * 900 * MS + n % 100 * MS,
            false,
        )
    });
    let mut d = draft(2, 10, steady.chain(bursts));
    let together = measure(&d.record()).unwrap();
    assert!(metric(&together, "all", "cov_1s").unwrap() > 0.05);
    for row in d.rows.iter_mut().filter(|row| row.flow == 2) {
        row.direction = Direction::Backward;
    }
    d.run.cell["flows"][1]["direction"] = "backward".into();
    d.run.cell["flows"][1]["background"] = true.into();
    let apart = measure(&d.record()).unwrap();
    assert_eq!(
        metric(&apart, "all", "cov_1s"),
        metric(&apart, "1", "cov_1s")
    );
    assert!(metric(&apart, "all", "cov_1s").unwrap() < 0.01);
    // The same without a bottleneck.
    d.run.cell["network"]["forward"][1] = json!({"kind": "loss", "ratio": 0.0});
    let apart = measure(&d.record()).unwrap();
    assert_eq!(
        metric(&apart, "all", "cov_1s"),
        metric(&apart, "1", "cov_1s")
    );
}

/// The metrics of the part equal those computed by hand from the calculator's rows.
#[test]
fn only_the_measured_part_counts() {
    let (from, to) = (500 * MS, 1500 * MS);
    let mut d = Plan::default().draft();
    d.run.cell["measure"] = json!({"from_ns": from, "to_ns": to});
    let within = |time: &u64| (from..to).contains(time);
    let mut checked = Vec::new();
    for record in [d.record(), d.record_of_bins(100 * MS)] {
        let m = measure(&record).unwrap();
        for flow in [1, 2] {
            let label = flow.to_string();
            let rows = || {
                d.rows
                    .iter()
                    .filter(|r| r.flow == flow && r.direction == Direction::Forward)
            };
            let arrived = || rows().filter(|r| r.arrived_ns.as_ref().is_some_and(within));
            let times = || arrived().map(|r| r.arrived_ns.unwrap());
            let bytes: u64 = arrived().map(|r| u64::from(r.size_bytes)).sum();
            let span = times().max().unwrap() - times().min().unwrap();
            close(
                metric(&m, &label, "throughput_bps"),
                bytes as f64 * 8e9 / span as f64,
            );
            let delays = arrived().map(|r| r.arrived_ns.unwrap() - r.sent_ns);
            let mean = delays.clone().sum::<u64>() as f64 / delays.count() as f64;
            close(metric(&m, &label, "delay_mean_ns"), mean);
            let lost = rows()
                .filter(|r| r.fate == Fate::Dropped && within(&r.sent_ns))
                .count();
            let count = arrived().count();
            close(
                metric(&m, &label, "loss_ratio"),
                lost as f64 / (lost + count) as f64,
            );
            assert!(reason(&m, &label, "retransmitted_ratio").contains("only a part is measured"));
            checked.push(bytes);
        }
        assert_eq!(metric(&m, "all", "offered_bps"), None);
        let both: u64 = checked[checked.len() - 2..].iter().sum();
        let ratio = metric(&m, "all", "throughput_ratio").unwrap();
        let minimum = *checked[checked.len() - 2..].iter().min().unwrap() as f64;
        close(Some(ratio), minimum / (both as f64 - minimum));
    }
    // A part without any event.
    d.run.cell["measure"] = json!({"from_ns": 10 * SECOND});
    let m = measure(&d.record()).unwrap();
    assert_eq!(
        reason(&m, "1", "throughput_bps"),
        "no packet of the flow arrived"
    );
}

#[test]
fn goodput_of_a_part_is_what_was_acknowledged_in_it() {
    let mut d = draft(1, 4, (0..4000).map(|n| (1, n * MS, false)));
    d.states = (0..=40)
        .map(|n| StateRow {
            flow: 1,
            time_ns: n * 100 * MS,
            delivered_bytes: Some(n * n * 1000),
            ..StateRow::default()
        })
        .collect();
    d.run.cell["measure"] = json!({"from_ns": 950 * MS, "to_ns": 3000 * MS});
    let m = measure(&d.record()).unwrap();
    // Samples from 1.0 to 2.9 s: 841 kB less 100 kB in 1.9 s.
    close(metric(&m, "1", "goodput_bps"), 741_000.0 * 8.0 / 1.9);
}

#[test]
fn a_link_by_name_carries_what_its_counters_say() {
    let plan = Plan {
        loss: 0.05,
        ..Plan::default()
    };
    let mut d = plan.draft();
    d.run.cell["measure"] = json!({"links": ["forward.1"]});
    let m = measure(&d.record()).unwrap();
    let link = &m["links"][0];
    assert_eq!(link["link"], "forward.1");
    let value = |name: &str| link["metrics"][name].as_f64();
    let counters = d
        .run
        .elements
        .iter()
        .find(|c| c.name == "forward.1")
        .unwrap();
    // Packets leave the bottleneck 17 ms before they arrive; lost packets are only known to reach
    // it 3 ms after they were sent.
    let passed: Vec<(u64, u64)> = d
        .rows
        .iter()
        .filter(|r| r.direction == Direction::Forward)
        .filter_map(|r| {
            let behind = r.element.as_deref() == Some("forward.3")
                || r.element.as_deref() == Some("forward.2");
            let at = match r.arrived_ns {
                Some(at) => at - plan.after_ns,
                None if behind => r.sent_ns + plan.before_ns,
                None => return None,
            };
            Some((at, u64::from(r.size_bytes)))
        })
        .collect();
    let bytes: u64 = passed.iter().map(|p| p.1).sum();
    assert_eq!(
        bytes, counters.out_bytes,
        "the account of this test is right"
    );
    let times = || passed.iter().map(|p| p.0);
    let span = (times().max().unwrap() - times().min().unwrap()) as f64;
    close(value("throughput_bps"), bytes as f64 * 8e9 / span);
    close(value("utilization_ratio"), bytes as f64 * 8e9 / span / 12e6);
    let drops = counters.dropped_packets as f64 / counters.in_packets as f64;
    close(value("bottleneck_drop_ratio"), drops);
    assert!(link["metrics"].get("delay_p95_ns").is_none());
    let second = |index: u64| {
        let within = passed.iter().filter(|p| p.0 / SECOND == index);
        within.map(|p| p.1).sum::<u64>() as f64
    };
    // Two windows of a second: |a - b| / (a + b).
    let cov = (second(0) - second(1)).abs() / (second(0) + second(1));
    close(value("cov_1s"), cov);
    // For the whole run, single packets agree with the counters.
    d.run.cell["measure"] = json!({"to_ns": 1000 * SECOND, "links": ["forward.1"]});
    let again = measure(&d.record()).unwrap();
    close(
        again["links"][0]["metrics"]["bottleneck_drop_ratio"].as_f64(),
        drops,
    );
    close(metric(&again, "all", "bottleneck_drop_ratio"), drops);
    // Acknowledgements are carried as well.
    d.run.cell["measure"] = json!({"links": ["backward.0"]});
    let m = measure(&d.record()).unwrap();
    let acks = d.rows.iter().filter(|r| r.direction == Direction::Backward);
    let acks = acks
        .filter(|r| r.fate == Fate::Delivered)
        .map(|r| (r.arrived_ns.unwrap(), r.size_bytes));
    let (first, last) = (
        acks.clone().map(|a| a.0).min().unwrap(),
        acks.clone().map(|a| a.0).max().unwrap(),
    );
    let bytes = acks.map(|a| f64::from(a.1)).sum::<f64>();
    close(
        m["links"][0]["metrics"]["throughput_bps"].as_f64(),
        bytes * 8e9 / (last - first) as f64,
    );
    assert!(
        m["links"][0]["absent"]["utilization_ratio"].is_string(),
        "it is not a bottleneck"
    );
    d.run.cell["measure"] = json!({"links": ["nowhere"]});
    assert!(
        measure(&d.record())
            .unwrap_err()
            .to_string()
            .contains("nowhere")
    );
}

#[test]
fn losses_within_a_round_trip_are_one_event() {
    // The round trip without queues: 3 + 17 ms forward and 20 ms backward.
    let lost = [(1, 0), (1, 30), (1, 41), (1, 81), (1, 200), (2, 210)];
    let sent = lost.into_iter().map(|(flow, ms)| (flow, ms * MS, true));
    let mut d = draft(2, 1, sent);
    let m = measure(&d.record()).unwrap();
    // 0 and 30; 41 and 81; 200.
    assert_eq!(metric(&m, "1", "loss_events"), Some(3.0));
    assert_eq!(metric(&m, "2", "loss_events"), Some(1.0));
    assert_eq!(metric(&m, "all", "loss_events"), Some(4.0));
    assert_eq!(metric(&m, "1", "loss_synchronisation"), Some(1.0));
    close(metric(&m, "2", "loss_synchronisation"), 1.0 / 3.0);
    close(
        metric(&m, "all", "loss_synchronisation"),
        (0.5 + 0.5 + 1.0) / 3.0,
    );
    // A sender with a longer round trip reacts later, and extends the congestion event for all
    // flows.
    d.states = vec![StateRow {
        flow: 1,
        time_ns: 0,
        rtt_ns: Some(205 * MS),
        ..StateRow::default()
    }];
    let m = measure(&d.record()).unwrap();
    assert_eq!(metric(&m, "1", "loss_events"), Some(1.0));
    assert_eq!(
        metric(&m, "all", "loss_synchronisation"),
        Some(0.5),
        "210 is beyond 205"
    );
    d.states[0].rtt_ns = Some(210 * MS);
    let m = measure(&d.record()).unwrap();
    assert_eq!(metric(&m, "all", "loss_synchronisation"), Some(1.0));
    let bins = measure(&d.record_of_bins(100 * MS)).unwrap();
    assert!(reason(&bins, "all", "loss_events").contains("bins"));
    // Only one flow is not background.
    d.run.cell["flows"][1]["background"] = true.into();
    let m = measure(&d.record()).unwrap();
    assert_eq!(
        reason(&m, "all", "loss_synchronisation"),
        "there is only one flow"
    );
    assert!(reason(&m, "2", "loss_synchronisation").contains("not under test"));
}

#[test]
fn convergence_is_the_middle_of_the_first_fair_window() {
    // Flow 2 obtains a fifth of flow 1's share for 12 s, and 95 % of it afterwards.
    let first = (0..4000).map(|n| (1, n * 10 * MS, false));
    let early = (0..240).map(|n| (2, n * 50 * MS, false));
    let late = (0..2660).map(|n| (2, 12 * SECOND + n * 10_526_315, false));
    let mut d = draft(2, 40, first.chain(early).chain(late));
    let m = measure(&d.record()).unwrap();
    close(metric(&m, "all", "convergence_1s_ns"), 12.5e9);
    assert_eq!(metric(&m, "all", "converged_1s"), Some(1.0));
    // From 10 to 20 s it has 800 packets for 1000, which is 11 % from the mean.
    close(metric(&m, "all", "convergence_10s_ns"), 25e9);
    assert_eq!(metric(&m, "1", "convergence_10s_ns"), None);
    // If a flow starts later, the time counts from there.
    d.run.cell["flows"][1]["start_ns"] = (4 * SECOND).into();
    let m = measure(&d.record()).unwrap();
    close(metric(&m, "all", "convergence_1s_ns"), 8.5e9);
    // Without convergence the time is absent, and the indicator is 0.
    d.rows
        .retain(|row| row.flow == 1 || row.sent_ns < 11 * SECOND);
    number(&mut d.rows);
    let m = measure(&d.record()).unwrap();
    assert_eq!(
        reason(&m, "all", "convergence_10s_ns"),
        "the flows did not converge in the 30 s that were examined"
    );
    assert_eq!(metric(&m, "all", "converged_10s"), Some(0.0));
    d.run.cell["measure"] = json!({"from_ns": 20 * SECOND});
    let m = measure(&d.record()).unwrap();
    assert!(reason(&m, "all", "converged_1s").contains("after the last start"));
}

#[test]
fn binned_completion_times_tell_what_transfers_do() {
    let mut dice = Dice(5);
    let mut d = draft(2, 20, (0..100).map(|n| (1, n * MS, false)));
    d.transfers = (0..3000)
        .map(|n| {
            let started_ns = n * 5 * MS;
            let took = (dice.uniform().powi(4) * 3e9) as u64;
            TransferRow {
                flow: 1 + (n % 2) as u16,
                connection: 0,
                transfer: (n / 2) as u32,
                bytes: 1000 + n,
                started_ns,
                ended_ns: (n % 10 > 0).then_some(started_ns + took),
            }
        })
        .collect();
    for part in [
        json!({}),
        json!({"from_ns": 3 * SECOND, "to_ns": 12 * SECOND}),
    ] {
        d.run.cell["transfers"] = "all".into();
        d.run.cell["measure"] = part;
        let exact = measure(&d.record()).unwrap();
        d.run.cell["transfers"] = "bins".into();
        let kept: Measure = Cell::parse(&d.run.cell).unwrap().measure;
        let mut file = RowFile::create(Vec::new()).unwrap();
        let mut completions = Completions::default();
        for row in &d.transfers {
            completions.add(row, &kept);
        }
        for row in completions.rows() {
            file.push(row).unwrap();
        }
        let mut record = d.record();
        record.transfers = None;
        record.completions = Some(file.finish().unwrap().into());
        let coarse = measure(&record).unwrap();
        for flow in ["1", "2", "all"] {
            for name in ["transfers", "transfers_incomplete", "completion_mean_ns"] {
                assert_eq!(
                    metric(&exact, flow, name),
                    metric(&coarse, flow, name),
                    "{flow} {name}"
                );
            }
            for name in ["completion_p50_ns", "completion_p95_ns"] {
                let (a, b) = (
                    metric(&exact, flow, name).unwrap(),
                    metric(&coarse, flow, name).unwrap(),
                );
                // The width of a bucket of the histogram.
                assert!((a - b).abs() <= a / 512.0 + 1.0, "{flow} {name}: {a} {b}");
            }
        }
    }
    d.run.cell["transfers"] = "none".into();
    d.transfers.clear();
    let m = measure(&d.record()).unwrap();
    assert!(reason(&m, "all", "transfers").contains("transfers: none"));
}
