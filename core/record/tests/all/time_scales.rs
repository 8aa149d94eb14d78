//! Fairness and steadiness over windows of time, and reports of applications, computed by hand.

use crate::reference::{Draft, Plan};
use narrows_record::metrics::measure;
use narrows_record::{Direction, Fate, Offered, PacketRow, TransferRow};
use serde_json::Value;

const MS: u64 = 1_000_000;

/// Two flows whose packets (flow, time of sending) arrive 20 ms later, over `seconds`.
fn draft(seconds: u64, packets: impl Iterator<Item = (u16, u64)>) -> Draft {
    let mut draft = Plan {
        extra_rtt_ns: vec![0, 0],
        duration_ns: 200 * MS,
        ..Plan::default()
    }
    .draft();
    let end = seconds * 1000 * MS;
    draft.run.cell["duration_ns"] = end.into();
    for flow in draft.run.cell["flows"].as_array_mut().unwrap() {
        flow["stop_ns"] = end.into();
    }
    let mut rows: Vec<PacketRow> = packets
        .map(|(flow, sent)| PacketRow {
            flow,
            direction: Direction::Forward,
            uid: 0,
            size_bytes: 1000,
            sent_ns: sent,
            arrived_ns: Some(sent + 20 * MS),
            late_ns: Some(0),
            fate: Fate::Delivered,
            element: None,
            reason: None,
            copy_of: None,
        })
        .collect();
    rows.sort_by_key(|row| row.sent_ns);
    (1..).zip(&mut rows).for_each(|(uid, row)| row.uid = uid);
    draft.rows = rows;
    draft
}

fn metric(result: &Value, flow: &str, name: &str) -> Option<f64> {
    let rows = result["flows"].as_array().unwrap();
    let row = rows.iter().find(|row| row["flow"] == flow).unwrap();
    let value = &row["metrics"][name];
    assert_eq!(value.is_null(), result["absent"][flow][name].is_string());
    value.as_f64()
}

/// If per-second logs of two flows are joined by their stamps, a phase difference of half a second
/// makes every window look as if one of them sent nothing. Windows of a common clock do not have
/// this problem.
#[test]
fn equal_flows_out_of_phase_are_fair() {
    // Each sends a packet every 10 ms, the second from half a second on.
    let steady = (0..2050).flat_map(|n| [(1, n * 10 * MS), (2, n * 10 * MS + 500 * MS)]);
    let mut d = draft(21, steady.filter(|(_, sent)| *sent < 20_500 * MS));
    d.run.cell["flows"][1]["start_ns"] = (500 * MS).into();
    for flow in d.run.cell["flows"].as_array_mut().unwrap() {
        flow["stop_ns"] = (20_500 * MS).into();
    }
    let result = measure(&d.record()).unwrap();
    let fair = metric(&result, "all", "jain_1s").unwrap();
    assert!(fair > 0.999, "{fair}");
    // The same in alternating bursts of half a second.
    let bursts = (0..1000).flat_map(|n| {
        let start = n / 50 * 1000 * MS + n % 50 * 10 * MS;
        [(1, start), (2, start + 500 * MS)]
    });
    let result = measure(&draft(20, bursts).record()).unwrap();
    let fair = metric(&result, "all", "jain_1s").unwrap();
    assert!(fair > 0.99, "{fair}");
    assert!(metric(&result, "all", "jain_10s").unwrap() > 0.999);
}

#[test]
fn windows_by_hand() {
    // Flow 1 sends 3 packets in the first second and 1 in the second; flow 2 the reverse. The last
    // half second is not a window.
    let sent = [
        (1, 0),
        (1, 10),
        (1, 20),
        (2, 30),
        (1, 1000),
        (2, 1010),
        (2, 1020),
        (2, 1030),
        (1, 2100),
    ];
    let mut d = draft(3, sent.into_iter().map(|(flow, ms)| (flow, ms * MS)));
    for flow in d.run.cell["flows"].as_array_mut().unwrap() {
        flow["stop_ns"] = (2_500 * MS).into();
    }
    let result = measure(&d.record()).unwrap();
    let close = |name, wanted: f64| {
        let found = metric(&result, "all", name).unwrap();
        assert!((found - wanted).abs() < 1e-12, "{name}: {found}");
    };
    close("jain_1s", 16.0 / 20.0);
    close("cov_1s", 0.0);
    let own = metric(&result, "1", "cov_1s").unwrap();
    assert!((own - 0.5).abs() < 1e-12, "{own}");
    assert_eq!(metric(&result, "all", "jain_5s"), None);
    assert_eq!(metric(&result, "1", "jain_1s"), None);
    // Bins of 100 ms have the same result.
    let bins = measure(&d.record_of_bins(100 * MS)).unwrap();
    assert_eq!(
        metric(&bins, "all", "jain_1s"),
        metric(&result, "all", "jain_1s")
    );
}

#[test]
fn background_takes_part_but_does_not_count() {
    let sent = (0..100).flat_map(|n| [(1, n * 10 * MS), (2, n * 10 * MS + 1)]);
    let mut d = draft(1, sent);
    d.run.cell["flows"][1]["background"] = true.into();
    let result = measure(&d.record()).unwrap();
    let rows = result["flows"].as_array().unwrap();
    assert_eq!(rows[1]["background"], true);
    assert!(rows[0]["background"].is_null() && rows[2]["background"].is_null());
    assert_eq!(
        metric(&result, "all", "throughput_bps"),
        metric(&result, "1", "throughput_bps")
    );
    assert_eq!(metric(&result, "all", "jain_index"), None);
    // It still uses the bottleneck: 200 packets of 1000 bytes from 20 to 1010 ms.
    let utilization = metric(&result, "all", "utilization_ratio").unwrap();
    let wanted = 200.0 * 8000.0 * 1e9 / f64::from(990_000_001) / 12e6;
    assert!(
        (utilization - wanted).abs() < 1e-9,
        "{utilization} {wanted}"
    );
}

#[test]
fn copies_were_not_sent_and_have_no_delay_of_their_own() {
    let mut d = draft(1, (0..10).map(|n| (1, n * 10 * MS)));
    let mut copy = d.rows[9].clone();
    copy.uid = 11;
    copy.sent_ns += 19 * MS;
    copy.copy_of = Some(10);
    d.rows.push(copy);
    let result = measure(&d.record()).unwrap();
    assert_eq!(
        metric(&result, "1", "delay_mean_ns"),
        Some(20.0 * MS as f64)
    );
    let pantheon = metric(&result, "1", "loss_pantheon_ratio").unwrap();
    assert!((pantheon + 0.1).abs() < 1e-12, "{pantheon}");
}

#[test]
fn applications_by_hand() {
    let mut d = draft(1, (0..10).map(|n| (1, n * 10 * MS)));
    let row = |transfer: u32, ms: Option<u64>| TransferRow {
        flow: 1,
        connection: 0,
        transfer,
        bytes: 100,
        started_ns: 10,
        ended_ns: ms.map(|ms| 10 + ms * MS),
    };
    d.transfers = vec![
        row(0, Some(30)),
        row(1, Some(10)),
        row(2, None),
        row(3, Some(50)),
    ];
    d.run.flows[0].offered = Some(Offered {
        bytes: 1000,
        mean_bps: 8000.0,
    });
    let sink = &mut d.run.flows[1].receiver;
    sink.received_packets = Some(80);
    sink.duplicate_datagrams = Some(5);
    sink.lost_datagrams = Some(25);
    sink.out_of_order_datagrams = Some(15);
    sink.jitter_ns = Some(7);
    let result = measure(&d.record()).unwrap();
    for flow in ["1", "all"] {
        assert_eq!(metric(&result, flow, "completion_p50_ns"), Some(30e6));
        assert_eq!(metric(&result, flow, "completion_p95_ns"), Some(50e6));
        assert_eq!(metric(&result, flow, "completion_mean_ns"), Some(30e6));
        assert_eq!(metric(&result, flow, "transfers"), Some(3.0));
        assert_eq!(metric(&result, flow, "transfers_incomplete"), Some(1.0));
        assert_eq!(metric(&result, flow, "offered_bps"), Some(8000.0));
    }
    for flow in ["2", "all"] {
        assert_eq!(metric(&result, flow, "datagram_loss_ratio"), Some(0.25));
        assert_eq!(metric(&result, flow, "out_of_order_ratio"), Some(0.2));
        assert_eq!(metric(&result, flow, "transfers").is_none(), flow == "2");
    }
    assert_eq!(metric(&result, "2", "jitter_ns"), Some(7.0));
    assert_eq!(metric(&result, "1", "jitter_ns"), None);
    // Drops of the bottleneck, from its counters.
    let c = &mut d.run.elements[1];
    (c.in_packets, c.dropped_packets) = (50, 10);
    let result = measure(&d.record()).unwrap();
    assert_eq!(metric(&result, "all", "bottleneck_drop_ratio"), Some(0.2));
}
