//! Simulated worlds: invariants of the simulator as a whole.

use narrows_record::{Record, Verdict};
use narrows_tests::Dumbbell;
use serde_json::json;
use std::fs;

fn files(dumbbell: &Dumbbell) -> Vec<(String, Vec<u8>)> {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("cell");
    dumbbell.simulate(&out);
    let mut files: Vec<(String, Vec<u8>)> = fs::read_dir(&out)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_file())
        .map(|path| {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            (name, fs::read(&path).unwrap())
        })
        .collect();
    files.sort();
    files
}

#[test]
fn the_same_cell_gives_the_same_bytes() {
    for record in ["packets", "bins"] {
        let cell = Dumbbell {
            loss: 0.01,
            schemes: vec!["cubic", "reno"],
            interval_s: 1.0,
            seconds: 5.0,
            record,
            ..Dumbbell::default()
        };
        let first = files(&cell);
        assert!(
            first.len() >= 4,
            "{:?}",
            first.iter().map(|file| &file.0).collect::<Vec<_>>()
        );
        assert!(first == files(&cell), "two runs of the same cell differ");
        let other = Dumbbell { seed: 2, ..cell };
        assert!(first != files(&other), "the seed has no effect");
    }
}

#[test]
fn reno_fills_a_link_with_one_bdp_of_buffer() {
    // B >= b / (1 - b) BDP suffices for full utilization: 1 for Reno. One packet in twenty windows of slack for the
    // initial slow start.
    let run = Dumbbell {
        seconds: 60.0,
        ..Dumbbell::default()
    }
    .measure();
    assert!(run.get("all", "utilization_ratio") > 0.99, "{}", run.json);
    // The queue is full just before each loss: 40 ms at one BDP.
    let p95 = run.get("1", "queueing_delay_p95_ns") / 1e6;
    assert!((30.0..=41.5).contains(&p95), "{p95}");
}

#[test]
fn reno_obeys_the_square_root_law() {
    // W = sqrt(3 / (2 p)) with one packet more per round trip; delayed acknowledgements do not
    // matter because bytes are counted. Without queueing: rate = W / RTT. At p = 0.001 the
    // variance of the window leaves about 5 % over 300 s; timeouts lower it a little.
    for (loss, tolerance) in [(0.001, 0.08), (0.01, 0.12)] {
        let run = Dumbbell {
            mbps: 1000.0,
            rtt_ms: 50.0,
            loss,
            seconds: 300.0,
            record: "bins",
            ..Dumbbell::default()
        }
        .measure();
        let window = (1.5f64 / loss).sqrt();
        let expected = window * 1448.0 * 8.0 / 0.05;
        let goodput = run.get("1", "goodput_bps");
        assert!(
            (goodput / expected - 1.0).abs() < tolerance,
            "{loss}: {goodput} not {expected}"
        );
    }
}

#[test]
fn a_binned_record_measures_the_same() {
    let packets = Dumbbell {
        schemes: vec!["cubic", "cubic"],
        interval_s: 3.0,
        seconds: 20.0,
        ..Dumbbell::default()
    };
    let bins = Dumbbell {
        record: "bins",
        ..packets.clone()
    };
    let (packets, bins) = (packets.measure(), bins.measure());
    for flow in ["1", "2", "all"] {
        for metric in [
            "throughput_bps",
            "goodput_bps",
            "loss_ratio",
            "delay_mean_ns",
            "delay_p95_ns",
            "delay_max_ns",
        ] {
            let (a, b) = (packets.get(flow, metric), bins.get(flow, metric));
            // Histogram buckets are 1/512 wide.
            assert!(
                (a / b - 1.0).abs() <= 1.0 / 512.0 || a == b,
                "{flow} {metric}: {a} {b}"
            );
        }
    }
}

#[test]
fn simulated_records_are_ok_and_verified() {
    for (loss, record) in [(0.0, "packets"), (0.05, "packets"), (0.01, "bins")] {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("cell");
        let dumbbell = Dumbbell {
            loss,
            record,
            schemes: vec!["cubic", "reno", "cubic"],
            interval_s: 2.0,
            extra_rtt_ms: vec![0.0, 13.0, 50.0],
            seconds: 10.0,
            ..Dumbbell::default()
        };
        let run = dumbbell.simulate(&out);
        assert_eq!(
            run.verdict,
            Verdict::Ok,
            "{:?} {:?}",
            run.reasons,
            run.checks
        );
        assert!(!run.checks.is_empty());
        let _: Record = narrows_cell::open_record(&out).unwrap();
    }
}

#[test]
fn adding_a_flow_reshuffles_no_other_chance() {
    // The lossy link decides by its own stream: the fate of its n-th packet does not depend on other users of random
    // numbers.
    let one = Dumbbell {
        loss: 0.01,
        seconds: 5.0,
        ..Dumbbell::default()
    };
    let flow = |run: &narrows_tests::Measured| run.get("1", "delay_p95_ns");
    let alone = one.measure();
    let late = Dumbbell {
        schemes: vec!["reno", "cubic"],
        interval_s: 4.999_999,
        ..one
    }
    .measure();
    assert_eq!(flow(&alone), flow(&late));
}

#[test]
fn a_limited_window_gives_itself_per_round_trip_and_then_the_rate_and_its_queue() {
    // 12 Mbit/s and 40 ms hold 40 packets of 1500 bytes. Below that the rate is W / RTT, the RTT with a packet's own ms
    // on the link; above it the link is full and W less the path's 41 wait or are being served. Acknowledgements of two
    // packets make the queue vary by a packet.
    for (packets, mbps, waiting) in [(20u64, 20.0 * 12.0 / 41.0, 1.0), (60, 12.0, 20.0)] {
        let mut cell = Dumbbell {
            buffer_bdp: 4.0,
            ..Dumbbell::default()
        }
        .json();
        cell["transport"] = serde_json::json!({"window": packets * 1448});
        let run = narrows_tests::measure(&cell);
        let rate = run.get("1", "throughput_bps") / 1e6;
        assert!(
            (rate / mbps - 1.0).abs() < 0.03,
            "{packets}: {rate} not {mbps}"
        );
        let delay = run.get("1", "queueing_delay_p50_ns") / 1e6;
        assert!(
            (delay - waiting).abs() <= 1.5,
            "{packets}: {delay} not {waiting}"
        );
        assert_eq!(run.get("1", "loss_ratio"), 0.0);
    }
}

#[test]
fn a_copy_carries_its_own_data_though_its_original_is_lost_at_the_same_instant() {
    let mut json = Dumbbell {
        schemes: vec!["reno", "reno", "reno"],
        seconds: 3.0,
        ..Dumbbell::default()
    }
    .json();
    let forward = json["network"]["forward"].as_array_mut().unwrap();
    forward.push(json!({"name": "forward.2", "kind": "duplicate", "ratio": 0.3}));
    forward.push(json!({"name": "forward.3", "kind": "loss", "ratio": 0.3}));
    // Enough time for others to reuse a slot that was freed too early.
    forward.push(json!({"name": "forward.4", "kind": "delay", "delay": 30_000_000}));
    // Small packets among the large ones, and datagrams that come in order, if they are not confused.
    let traffic = [
        json!({"kind": "bulk"}),
        json!({"kind": "arrivals", "size": 400, "load": 1_000_000}),
        json!({"kind": "cbr", "rate": 2_000_000}),
    ];
    for (flow, traffic) in json["flows"]
        .as_array_mut()
        .unwrap()
        .iter_mut()
        .zip(traffic)
    {
        flow["traffic"] = traffic;
    }
    json["flows"][2]["scheme"] = "udp".into();
    let run = narrows_tests::measure(&json).run;
    let failed: Vec<_> = run.checks.iter().filter(|check| !check.ok).collect();
    assert!(failed.is_empty(), "{failed:?}");
    assert_eq!(run.flows[2].receiver.out_of_order_datagrams, Some(0));
}
