//! The schemes of datagram transports with separate loss recovery: early QUIC's CUBIC, and FillP with reduced
//! acknowledgements as in TACK.

use narrows_record::{BinRow, Direction, read};
use narrows_tests::{Dumbbell, Measured, measure, measured};
use serde_json::{Value, json};

/// Payload of a full packet of 1500 bytes.
const PAYLOAD: f64 = 1448.0;

/// A path without queues, 10 Gbit/s and 100 ms, on which every n-th packet is lost.
fn lossy(every: u64, seconds: f64) -> Value {
    let mut cell = Dumbbell {
        mbps: 10_000.0,
        rtt_ms: 100.0,
        schemes: vec!["quic-cubic"],
        seconds,
        record: "bins",
        ..Dumbbell::default()
    }
    .json();
    let forward = cell["network"]["forward"].as_array_mut().expect("elements");
    forward.push(json!({"name": "forward.2", "kind": "periodicloss", "every": every}));
    cell
}

/// Mean window in packets over the second half of a cell.
fn window(cell: &Value) -> f64 {
    let (_, record) = measured(cell);
    let states = read::read_states(record.states.expect("states")).expect("readable states");
    let late = &states[states.len() / 2..];
    late.iter().filter_map(|row| row.cwnd_bytes).sum::<u64>() as f64 / late.len() as f64 / PAYLOAD
}

#[test]
fn two_connections_respond_to_loss_as_calculated() {
    // AIMD(0.973, 0.15) with a round trip of repair at the lower window: the growth of two Reno flows.
    let (a, b, every) = (0.973, 0.15, 1_000.0);
    let (square, linear) = (b * (2.0 - b) / (2.0 * a), 1.0f64 - b);
    let largest = ((linear * linear + 4.0 * square * every).sqrt() - linear) / (2.0 * square);
    let law = every / (b * largest / a + 1.0);
    let found = window(&lossy(1_000, 100.0));
    assert!((found / law - 1.0).abs() < 0.02, "{found} for {law}");
    // The cubic: a cycle of T = N RTT/W is the time of the curve to its plateau, K = (0.15 W_max/0.4)^(1/3), with W =
    // (1 - 0.15/4) W_max. In whole packets the curve is on its plateau from 1.36 s before K to 1.36 s after, and a loss
    // anywhere there repeats the cycle.
    let found = window(&lossy(100_000, 150.0));
    let cycle = 100_000.0 * 0.1 / found;
    let plateau = (0.15 * found / 0.9625 / 0.4004).cbrt();
    assert!(
        (cycle - plateau).abs() < 1.36 + 0.1,
        "{cycle} s for {plateau} s"
    );
}

fn path(schemes: Vec<&'static str>, mbps: f64, buffer_bdp: f64, seconds: f64) -> Dumbbell {
    Dumbbell {
        mbps,
        buffer_bdp,
        schemes,
        seconds,
        record: "bins",
        ..Dumbbell::default()
    }
}

#[test]
fn the_loss_of_15_percent_needs_little_buffer() {
    // b/(1 - b) = 0.176 of the bandwidth-delay product keeps the link busy; with 0.1 the window after a loss is 0.85 x 1.1
    // of it, and the growth back to 1 takes less than half of a cycle: over 0.97 with the start.
    for (buffer, minimum) in [(0.1, 0.96), (0.25, 0.99), (1.0, 0.99)] {
        let run = path(vec!["quic-cubic"], 20.0, buffer, 60.0).measure();
        let used = run.get("all", "utilization_ratio");
        assert!(used > minimum, "{buffer} BDP: {used}");
    }
}

#[test]
fn it_takes_the_share_of_two_connections() {
    let share = |schemes: [&'static str; 2]| {
        let run = path(schemes.to_vec(), 24.0, 1.0, 120.0).measure();
        let of = |flow| run.get(flow, "throughput_bps");
        of("1") / (of("1") + of("2"))
    };
    // Equivalent to two and a half or three connections, as it also loses less of its window when both lose.
    let beside_one = share(["quic-cubic", "cubic"]);
    assert!((0.6..0.85).contains(&beside_one), "{beside_one}");
    let beside_itself = share(["quic-cubic", "quic-cubic"]);
    assert!((0.45..0.55).contains(&beside_itself), "{beside_itself}");
}

/// Acknowledgements per second from second 5 to the end.
fn acknowledgements(scheme: &'static str, mbps: f64, rtt_ms: f64) -> f64 {
    let cell = Dumbbell {
        mbps,
        rtt_ms,
        buffer_bdp: 4.0,
        schemes: vec![scheme],
        seconds: 10.0,
        record: "bins",
        ..Dumbbell::default()
    };
    let (_, record) = measured(&cell.json());
    let bins = read::read_bins(record.bins.expect("bins")).expect("readable bins");
    let late = |row: &&BinRow| row.direction == Direction::Backward && row.bin_ns >= 5_000_000_000;
    bins.iter()
        .filter(late)
        .map(|row| row.sent_packets)
        .sum::<u64>() as f64
        / 5.0
}

#[test]
fn tame_acknowledgements_are_few_at_high_rates() {
    for scheme in ["fillp", "fillp-sheep"] {
        // Four per round trip of 100 ms, at any rate.
        let count = acknowledgements(scheme, 100.0, 100.0);
        assert!((count - 40.0).abs() <= 1.0, "{scheme}: {count} per second");
        // 83.3 packets per second, every second one: fewer than four per round trip of 20 ms and 12 ms on the link. And
        // one for each gap that a probe of fillp leaves.
        let count = acknowledgements(scheme, 1.0, 20.0);
        let maximum = if scheme == "fillp" { 45.0 } else { 42.0 };
        assert!(
            (40.0..=maximum).contains(&count),
            "{scheme}: {count} per second"
        );
    }
    // As for all other schemes: one for two packets, of 8333.
    let count = acknowledgements("bbr1", 100.0, 100.0);
    assert!(count > 4000.0, "{count} per second");
}

/// A link whose rate steps between 4 and 12 Mbit/s every two seconds, with a deep buffer.
fn varying(scheme: &'static str) -> Measured {
    let mut cell = path(vec![scheme], 8.0, 40.0, 60.0).json();
    cell["network"]["forward"][0]["rate"] = json!({"kind": "square", "low": 4_000_000,
        "high": 12_000_000, "period": 4_000_000_000_u64, "duty": 0.5});
    measure(&cell)
}

#[test]
fn fillp_fills_the_path_and_more_and_its_sheep_less() {
    // A buffer of one bandwidth-delay product. The program of 2018 was measured to send 11.84 Mbit/s, to lose 7.8 %,
    // and to have a mean queue of 20.5 ms: within a third, since only the order of gains was fitted to that.
    let filled = |scheme| {
        let mut cell = path(vec![scheme], 12.0, 40.0, 30.0).json();
        cell["network"]["forward"][0]["queue"] = json!({"kind": "droptail", "bytes": 60_000});
        measure(&cell)
    };
    let (fillp, sheep) = (filled("fillp"), filled("fillp-sheep"));
    for (metric, seen) in [
        ("throughput_bps", 11.84e6),
        ("loss_ratio", 0.078),
        ("queueing_delay_mean_ns", 20.5e6),
    ] {
        let found = fillp.get("1", metric);
        assert!(
            (found / seen - 1.0).abs() < 0.34,
            "{metric}: {found}, not {seen}"
        );
    }
    assert!(sheep.get("1", "loss_ratio") < 0.01);
    // Where the rate falls to a third, 2.25 products of the old rate leave at the new one: within 230 ms, and those of
    // two more rounds, which grow before it is noticed.
    let fallen = varying("fillp");
    assert!(fallen.get("1", "throughput_bps") > 0.96 * 8e6);
    assert!(fallen.get("1", "queueing_delay_p95_ns") < 350e6);
    assert_eq!(fallen.get("1", "loss_ratio"), 0.0);
    // Two flows, each with 2.25 (or 2) products of its estimate of the path: at most as many in total, 40 ms each.
    for (scheme, products) in [("fillp", 2.25), ("fillp-sheep", 2.0)] {
        let two = path(vec![scheme; 2], 12.0, 40.0, 60.0).measure();
        assert!(two.get("all", "throughput_bps") > 0.96 * 12e6);
        assert!(two.get("all", "queueing_delay_p95_ns") < products * 40e6);
    }
}
