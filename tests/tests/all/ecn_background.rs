//! ECN-based and background schemes in whole simulated worlds, compared with their closed forms.

use narrows_record::{QueueRow, StateRow, TraceRow, read};
use narrows_tests::{Dumbbell, Measured, measured};
use serde_json::{Value, json};

/// A run, measured, with its samples.
struct Run {
    measured: Measured,
    queues: Vec<QueueRow>,
    states: Vec<StateRow>,
    traces: Vec<TraceRow>,
}

fn run(cell: &Value) -> Run {
    let (measured, record) = measured(cell);
    Run {
        measured,
        queues: read::read_queues(record.queues.expect("queues are sampled"))
            .expect("queues can be read"),
        states: read::read_states(record.states.expect("states are sampled"))
            .expect("states can be read"),
        traces: record.traces.map_or_else(Vec::new, |bytes| {
            read::read_traces(bytes).expect("traces can be read")
        }),
    }
}

impl Run {
    fn get(&self, flow: &str, metric: &str) -> f64 {
        self.measured.get(flow, metric)
    }

    /// Packets that waited at the bottleneck from second `from`.
    fn backlog(&self, from: f64) -> Vec<f64> {
        let from = (from * 1e9) as u64;
        let rows = self.queues.iter().filter(|row| row.time_ns >= from);
        rows.map(|row| f64::from(row.backlog_packets)).collect()
    }

    /// Windows of `flow` in packets of 1448 bytes from second `from`.
    fn windows(&self, flow: u16, from: f64) -> Vec<f64> {
        let from = (from * 1e9) as u64;
        let rows = self.states.iter();
        let rows = rows.filter(|row| row.flow == flow && row.time_ns >= from);
        rows.filter_map(|row| row.cwnd_bytes.map(|bytes| bytes as f64 / 1448.0))
            .collect()
    }

    /// A value that the scheme of `flow` shows, from second `from`.
    fn shown(&self, flow: u16, name: &str, from: f64) -> Vec<f64> {
        let from = (from * 1e9) as u64;
        let rows = self.traces.iter();
        let rows = rows.filter(|row| row.flow == flow && row.name == name && row.time_ns >= from);
        rows.map(|row| row.value).collect()
    }
}

fn mean(values: &[f64]) -> f64 {
    assert!(!values.is_empty());
    values.iter().sum::<f64>() / values.len() as f64
}

fn largest(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::NEG_INFINITY, f64::max)
}

fn smallest(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::INFINITY, f64::min)
}

/// `dumbbell` with another queue at the bottleneck.
fn with_queue(dumbbell: &Dumbbell, queue: Value) -> Value {
    let mut cell = dumbbell.json();
    cell["network"]["forward"][0]["queue"] = queue;
    cell
}

/// A queue that marks every packet that finds `k` waiting ones: RED as configured in switches by Alizadeh et al.
/// (DCTCP, SIGCOMM 2010, section 3.1), with both thresholds at `k` and the instantaneous length.
fn step(k: u64) -> Value {
    json!({"kind": "red", "packets": 1000, "min_threshold": k - 1, "max_threshold": k,
        "weight": 1.0, "gentle": false})
}

#[test]
fn dctcp_holds_a_step_queue_where_the_fluid_model_says() {
    // N = 2 flows, C RTT = 100 packets, K = 20: W* = 60, Qmax = K + N = 22, amplitude A = sqrt(2 N (C RTT + K)) / 2 =
    // 10.95, alpha = sqrt(2 / W*) = 0.183 (Alizadeh et al., equations 4 to 10). The model reduces at once; real senders
    // spend a round on it without growing, so that one of D + 1 rounds is marked: alpha (alpha W* / 2 + 1) = 1 yields
    // 0.167.
    let dumbbell = Dumbbell {
        mbps: 120.0,
        rtt_ms: 10.0,
        schemes: vec!["dctcp"; 2],
        seconds: 20.0,
        ..Dumbbell::default()
    };
    let mut cell = with_queue(&dumbbell, step(20));
    cell["sample_ns"] = json!(1_000_000);
    cell["transport"] = json!({"ack_every": 1});
    let run = run(&cell);
    let backlog = run.backlog(5.0);
    assert_eq!(largest(&backlog), 22.0);
    // Nearly all cycles are the same; the twentieth part below allows for odd ones.
    let mut sorted = backlog.clone();
    sorted.sort_by(f64::total_cmp);
    let amplitude = 22.0 - sorted[sorted.len() / 20];
    assert!((amplitude - 10.95).abs() <= 1.5, "{amplitude}");
    let alpha = mean(&run.shown(1, "alpha_ratio", 5.0));
    assert!((0.14..=0.19).contains(&alpha), "{alpha}");
    let window = mean(&run.windows(1, 5.0));
    // W* less half of the sawtooth of D = A / N packets.
    assert!((window - (60.0 - 10.95 / 4.0)).abs() < 2.0, "{window}");
    assert!(run.get("all", "jain_index") > 0.999);
    assert!(smallest(&backlog) > 0.0, "the link idled");
    assert_eq!(run.get("all", "loss_ratio"), 0.0);
}

#[test]
fn dctcp_needs_a_seventh_of_the_bdp_before_marks() {
    // RFC 8257, section 4.4 (after Alizadeh et al., section 3.4): K > C RTT / 7 keeps one flow's link busy. C RTT =
    // 100: 20 is enough, and with 3 the queue runs empty in each cycle. 2 % of 20 s are allowed for the start: alpha
    // begins at 1 and decays over tens of rounds, in which marks halve the window.
    let utilization = |k| {
        let dumbbell = Dumbbell {
            mbps: 120.0,
            rtt_ms: 10.0,
            schemes: vec!["dctcp"],
            seconds: 20.0,
            ..Dumbbell::default()
        };
        run(&with_queue(&dumbbell, step(k))).get("all", "utilization_ratio")
    };
    let (enough, little) = (utilization(20), utilization(3));
    assert!(enough > 0.98, "{enough}");
    assert!(little < enough - 0.01, "{little} against {enough}");
}

#[test]
fn dctcp_starves_those_who_reduce_by_a_fixed_share() {
    // A shared step queue: CUBIC reacts to each episode of marks with 30 %, DCTCP with alpha / 2 of a few per cent, and
    // obtains the larger share (RFC 8257, section 5: not on paths shared with others).
    let dumbbell = Dumbbell {
        mbps: 120.0,
        rtt_ms: 10.0,
        schemes: vec!["dctcp", "cubic"],
        seconds: 20.0,
        ..Dumbbell::default()
    };
    let mut cell = with_queue(&dumbbell, step(20));
    cell["transport"] = json!({"ecn": true});
    let run = run(&cell);
    let (dctcp, cubic) = (
        run.get("1", "throughput_bps"),
        run.get("2", "throughput_bps"),
    );
    assert!(dctcp > 2.0 * cubic, "{dctcp} against {cubic}");
}

/// A path for background flows: 12 Mbit/s (a packet per ms), 40 ms, with room for `queue_ms` of queue.
fn background(schemes: &[&'static str], queue_ms: f64, seconds: f64) -> Dumbbell {
    Dumbbell {
        buffer_bdp: queue_ms / 40.0,
        schemes: schemes.to_vec(),
        seconds,
        ..Dumbbell::default()
    }
}

/// Throughput of `flow` in Mbit/s from second `from` on, from acknowledged bytes.
fn late_rate(run: &Run, flow: u16, from: f64) -> f64 {
    let from = (from * 1e9) as u64;
    let rows = run.states.iter();
    let rows = rows.filter(|row| row.flow == flow && row.time_ns >= from);
    let delivered: Vec<(u64, u64)> = rows
        .filter_map(|row| Some((row.time_ns, row.delivered_bytes?)))
        .collect();
    let (first, last) = (delivered[0], delivered[delivered.len() - 1]);
    (last.1 - first.1) as f64 * 8e3 / (last.0 - first.0) as f64
}

#[test]
fn ledbat_alone_holds_its_target_and_fills_the_link() {
    // 100 ms of queue are 100 packets. The approach is exponential with 100 ms / (1 packet per round trip of 40 to 140
    // ms), about 12 s, so that after 60 s less than a packet is missing. The sawtooth of whole packets and the filter
    // (the minimum of four) leave a few.
    let run = run(&background(&["ledbat"], 200.0, 90.0).json());
    let backlog = run.backlog(60.0);
    let queue = mean(&backlog);
    assert!((queue - 100.0).abs() < 3.0, "{queue}");
    let rate = late_rate(&run, 1, 10.0);
    assert!(rate > 0.999 * 12.0 * 1448.0 / 1500.0, "{rate}");
    assert_eq!(run.get("all", "loss_ratio"), 0.0);
}

#[test]
fn ledbat_yields_to_reno_in_a_deep_buffer() {
    // Reno keeps 120 to 240 ms of queue: above the target nearly always, so LEDBAT falls to its two packets of 280 in
    // total.
    let run = run(&background(&["ledbat", "reno"], 240.0, 90.0).json());
    let (ledbat, reno) = (late_rate(&run, 1, 30.0), late_rate(&run, 2, 30.0));
    assert!(ledbat < 0.05 * reno, "{ledbat} against {reno}");
    assert!(ledbat + reno > 11.5, "{ledbat} and {reno}");
}

#[test]
fn a_late_ledbat_flow_takes_the_queue_of_the_first_for_the_path() {
    // The second one measures a base of 140 ms and adds 100 ms; the first one measures 200 ms of queue and falls to its
    // minimum window.
    let late = Dumbbell {
        interval_s: 60.0,
        ..background(&["ledbat", "ledbat"], 400.0, 180.0)
    };
    let run = run(&late.json());
    let (first, second) = (late_rate(&run, 1, 150.0), late_rate(&run, 2, 150.0));
    assert!(second > 4.0 * first, "{first} and {second}");
}

/// DualPI2 of RFC 9332, with changes.
fn dualpi2(changes: &Value) -> Value {
    let mut queue = json!({"kind": "dualpi2"});
    for (name, value) in changes.as_object().expect("an object") {
        queue[name] = value.clone();
    }
    queue
}

#[test]
fn prague_settles_at_two_over_p() {
    // With its native step out of reach, the low-latency queue is marked at k p' alone, at regular intervals. Growth of
    // 1 - p and a cut of p W / 2 per round trip balance at W0 = 2 (1 - p) / p. A cut comes with the first mark after a
    // round, which is up to one mark later: (W / W0)^2 is between 1 and 3/2 for regular marks, W / W0 at most (1 +
    // sqrt(3)) / 2 = 1.37 for random ones.
    let dumbbell = Dumbbell {
        mbps: 40.0,
        rtt_ms: 40.0,
        schemes: vec!["prague"],
        seconds: 60.0,
        ..Dumbbell::default()
    };
    let queue = dualpi2(&json!({"step": 1_000_000_000u64}));
    let run = run(&with_queue(&dumbbell, queue));
    let share = mean(&run.shown(1, "alpha_ratio", 20.0));
    let window = mean(&run.shown(1, "window_packets", 20.0));
    let ratio = window / (2.0 * (1.0 - share) / share);
    assert!((1.0..=1.4).contains(&ratio), "{window} at {share}: {ratio}");
    // The sender's estimate equals the queue's marks; the start has a few marks more.
    let bottleneck = &run.measured.run.elements[0];
    let marked = bottleneck.marked_packets as f64 / bottleneck.out_packets as f64;
    assert!((share / marked - 1.0).abs() < 0.05, "{share} and {marked}");
}

#[test]
fn prague_keeps_a_low_queue_beside_classic_flows_at_an_equal_rate() {
    // RFC 9332, section 2.1: k = 2 equalises rates for equal round trips. Prague behaves as if its round trip were 25
    // ms, which classic flows have with 10 ms of path and 15 ms of queue; Reno's 1.22 / p' packets and Prague's 1 to
    // 1.37 / p' (above) differ by up to a fifth, and CUBIC is as Reno there.
    for (classic, mbps) in [
        ("reno", 100.0),
        ("cubic", 100.0),
        ("reno", 40.0),
        ("cubic", 40.0),
    ] {
        let mut schemes = vec!["prague"; 4];
        schemes.extend([classic; 4]);
        let dumbbell = Dumbbell {
            mbps,
            rtt_ms: 10.0,
            schemes,
            interval_s: 0.1,
            seconds: 60.0,
            ..Dumbbell::default()
        };
        let run = run(&with_queue(&dumbbell, dualpi2(&json!({}))));
        let rate = |flows: std::ops::Range<u16>| -> f64 {
            flows.map(|flow| late_rate(&run, flow, 20.0)).sum()
        };
        let ratio = rate(1..5) / rate(5..9);
        assert!(
            (0.8..=1.25).contains(&ratio),
            "{classic}, {mbps} Mbit/s: {ratio}"
        );
        assert!(run.get("all", "utilization_ratio") > 0.99);
        // Marks begin at 1 ms; a packet's serialisation time is added (0.12 and 0.3 ms).
        let low = run.get("1", "queueing_delay_p95_ns") / 1e6;
        assert!(low < 1.35, "{low} ms");
        let target = run.get("5", "queueing_delay_p50_ns") / 1e6;
        assert!((target - 15.0).abs() < 2.0, "{target} ms");
    }
}

#[test]
fn utp_holds_the_same_target_and_gets_there_sooner() {
    // 3000 bytes per round trip are two packets: twice the gain of LEDBAT.
    let run = run(&background(&["utp"], 200.0, 90.0).json());
    let queue = mean(&run.backlog(60.0));
    assert!((queue - 100.0).abs() < 5.0, "{queue}");
    assert_eq!(run.get("all", "loss_ratio"), 0.0);
    let slower = self::run(&background(&["ledbat"], 200.0, 90.0).json());
    let early = |run: &Run| {
        let rows = run.queues.iter().filter(|row| row.time_ns < 10_000_000_000);
        mean(
            &rows
                .map(|row| f64::from(row.backlog_packets))
                .collect::<Vec<_>>(),
        )
    };
    assert!(early(&run) > early(&slower) + 5.0);
}

#[test]
fn ledbat_pp_holds_its_target_but_for_a_tenth_of_the_time() {
    let run = run(&background(&["ledbat++"], 200.0, 120.0).json());
    let rows: Vec<&StateRow> = run
        .states
        .iter()
        .filter(|row| row.time_ns >= 20_000_000_000)
        .collect();
    let slow = rows
        .iter()
        .filter(|row| row.mode.as_deref() == Some("slowdown"))
        .count();
    let share = slow as f64 / rows.len() as f64;
    // A tenth by construction: 1 of 1 + 9; the cycle that the end cuts may add one slowdown of 1 s.
    assert!((0.05..=0.11).contains(&share), "{share}");
    // In between the queue swings around 60 packets: up by 1/3 per round trip, down by the excess.
    let mut backlog = run.backlog(20.0);
    backlog.sort_by(f64::total_cmp);
    let median = backlog[backlog.len() / 2];
    assert!((median - 60.0).abs() < 10.0, "{median}");
    assert_eq!(run.get("all", "loss_ratio"), 0.0);
    // The cost of two packets: at most the tenth, part of which the queue of 60 ms bridges.
    let rate = late_rate(&run, 1, 20.0) / (12.0 * 1448.0 / 1500.0);
    assert!((0.9..1.0).contains(&rate), "{rate}");
}

#[test]
fn slowdowns_take_the_latecomers_advantage_away() {
    // The same as for LEDBAT above: the slowdowns of the newcomer and of the first one show the path to both.
    let late = Dumbbell {
        interval_s: 60.0,
        ..background(&["ledbat++", "ledbat++"], 400.0, 240.0)
    };
    let run = run(&late.json());
    let (first, second) = (late_rate(&run, 1, 150.0), late_rate(&run, 2, 150.0));
    let ratio = first.max(second) / first.min(second);
    assert!(ratio < 1.5, "{first} and {second}");
    // And all of them still yield.
    let run = self::run(&background(&["ledbat++", "reno"], 240.0, 90.0).json());
    let (background, reno) = (late_rate(&run, 1, 30.0), late_rate(&run, 2, 30.0));
    assert!(background < 0.05 * reno, "{background} against {reno}");
}
