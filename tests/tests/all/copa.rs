//! Copa in simulated worlds: queue, losses and competition. Results of flows on simple paths are in `single_flows`.

use narrows_record::{Record, StateRow, read};
use narrows_tests::part::{BITS, Part, delays};
use narrows_tests::single_flow::profile;
use narrows_tests::{Dumbbell, measured};
use serde_json::{Value, json};

/// A path with an infinite buffer.
fn infinite(scheme: &'static str, mbps: f64, rtt_ms: f64, seconds: f64) -> Value {
    let mut cell = Dumbbell {
        mbps,
        rtt_ms,
        seconds,
        schemes: vec![scheme],
        ..Dumbbell::default()
    }
    .json();
    cell["network"]["forward"][0]["queue"] = json!({"kind": "unlimited"});
    cell
}

/// Sets parameters of all flows.
fn with(mut cell: Value, params: &Value) -> Value {
    for flow in cell["flows"].as_array_mut().expect("flows") {
        flow["params"] = params.clone();
    }
    cell
}

fn record(cell: &Value) -> Record {
    measured(cell).1
}

fn states(record: &Record) -> Vec<StateRow> {
    read::read_states(record.states.clone().expect("states")).expect("the states can be read")
}

/// Whether `found` is within a tenth of a published value that was rounded to `digit`.
fn close(found: f64, published: f64, digit: f64) -> bool {
    (found - published).abs() <= 0.1 * published + digit / 2.0
}

#[test]
fn the_queue_touches_empty_in_every_cycle() {
    for (delta, mbps, rtt_ms) in [(0.5, 12.0, 40.0), (0.5, 2.0, 200.0), (0.1, 12.0, 40.0)] {
        let record = record(&with(
            infinite("copa", mbps, rtt_ms, 40.0),
            &json!({"delta": delta}),
        ));
        let points = delays(&record, 1);
        let own = rtt_ms / 2.0 + BITS / mbps / 1e3;
        // The paper: a period of about five round trips, between an empty queue and 2.5/delta packets.
        let cycle_s = 5.0 * (rtt_ms + 2.5 / delta * BITS / mbps / 1e3) / 1e3;
        let (mut highest, mut lowest) = (Vec::new(), Vec::new());
        let mut from_s = 10.0;
        while from_s + cycle_s < 40.0 {
            let inside = points.time_s.iter().zip(&points.delay_ms);
            let inside = inside.filter(|(time, _)| (from_s..from_s + cycle_s).contains(*time));
            let waits: Vec<f64> = inside.map(|(_, delay)| delay - own).collect();
            highest.push(waits.iter().copied().fold(0.0, f64::max));
            lowest.push(waits.iter().copied().fold(f64::INFINITY, f64::min));
            from_s += cycle_s;
        }
        let top = highest.iter().copied().fold(0.0, f64::max);
        for (low, high) in lowest.iter().zip(&highest) {
            assert!(*low < 0.1 * top, "delta {delta}: {low} of {high} ms");
        }
        // Its window covers four round trips of a cycle of five: occasionally it mistakes itself for a competitor,
        // which immediately leads to an empty queue.
        let late = states(&record)
            .into_iter()
            .filter(|row| row.time_ns > 10_000_000_000);
        let modes: Vec<String> = late.filter_map(|row| row.mode).collect();
        let wrong = modes.iter().filter(|mode| *mode != "default").count();
        let share = wrong as f64 / modes.len() as f64;
        assert!(share < 0.02, "delta {delta}: {share}");
    }
}

#[test]
fn about_one_packet_per_delta_waits_on_average() {
    // Between empty and 2.5/delta in straight lines: 1.25/delta, which the steps of single packets make a little more.
    for (delta, mbps, rtt_ms) in [
        (0.5, 12.0, 40.0),
        (0.5, 50.0, 40.0),
        (0.2, 12.0, 40.0),
        (0.1, 12.0, 40.0),
    ] {
        let record = record(&with(
            infinite("copa", mbps, rtt_ms, 30.0),
            &json!({"delta": delta}),
        ));
        let found = Part::new(&record, 1, (mbps, rtt_ms), (15.0, 30.0));
        assert_eq!(found.least_ms.round(), 0.0);
        let packets = found.mean_ms * mbps * 1e3 / BITS;
        assert!(
            (1.0..1.5).contains(&(packets * delta)),
            "delta {delta}: {packets}"
        );
    }
}

#[test]
fn losses_and_short_buffers_cost_little() {
    let flow = |delta: f64, loss: f64, packets: Option<u64>| {
        let mut cell = Dumbbell {
            loss,
            schemes: vec!["copa"],
            ..Dumbbell::default()
        }
        .json();
        cell["network"]["forward"][0]["queue"] = match packets {
            Some(packets) => json!({"kind": "droptail", "packets": packets}),
            None => json!({"kind": "unlimited"}),
        };
        let (run, record) = measured(&with(cell, &json!({"delta": delta})));
        let part = Part::new(&record, 1, (12.0, 40.0), (15.0, 30.0));
        (part.mbps, 100.0 * run.get("1", "loss_ratio"))
    };
    // In a simulation of the published rules 1 % of random losses leave 11.8 of 12 Mbit/s. That rate counts sent data;
    // lost packets do not arrive here.
    let (mbps, _) = flow(0.5, 0.01, None);
    assert!(close(mbps / 0.99, 11.8, 0.1), "{mbps}");
    // A queue of 20 packets holds the five of delta 0.5, and not the 25 of delta 0.1: 5 % are lost there, and 11.8 Mbit/s carried.
    let (mbps, lost) = flow(0.5, 0.0, Some(20));
    assert!(close(mbps, 12.0, 0.1) && lost < 0.5, "{mbps} {lost}");
    // Starts within a second, and a constant delta, change the loss by half a percent at most: it rounds to 5 %.
    let (mbps, lost) = flow(0.1, 0.0, Some(20));
    assert!(
        close(mbps, 11.8, 0.1) && (4.5..5.5).contains(&lost),
        "{mbps} {lost}"
    );
}

/// Copa for 60 s, with a Cubic flow from 10 to 40 s, with a buffer of two products.
fn beside_cubic(mode: &str) -> Record {
    let mut cell = Dumbbell {
        mbps: 24.0,
        buffer_bdp: 2.0,
        schemes: vec!["copa", "cubic"],
        interval_s: 10.0,
        seconds: 60.0,
        ..Dumbbell::default()
    }
    .json();
    cell["flows"][0]["params"] = json!({"mode": mode});
    cell["flows"][1]["stop_ns"] = 40_000_000_000_u64.into();
    record(&cell)
}

#[test]
fn beside_cubic_it_competes_and_alone_it_does_not() {
    let record = beside_cubic("auto");
    let states = states(&record);
    let share = |from_s: u64, to_s: u64| {
        let rows = states.iter().filter(|row| row.flow == 1);
        let rows = rows
            .filter(|row| (from_s * 1_000_000_000..to_s * 1_000_000_000).contains(&row.time_ns));
        let modes: Vec<&str> = rows.filter_map(|row| row.mode.as_deref()).collect();
        modes.iter().filter(|mode| **mode == "competitive").count() as f64 / modes.len() as f64
    };
    // Alone; four round trips suffice to detect the start and the end of the other flow; Cubic's queue is occasionally
    // empty for a moment.
    assert!(share(5, 10) < 0.01, "{}", share(5, 10));
    assert!(share(12, 40) > 0.8, "{}", share(12, 40));
    assert!(share(45, 60) < 0.01, "{}", share(45, 60));
    let rate = |record: &Record| Part::new(record, 1, (24.0, 40.0), (15.0, 40.0)).mbps;
    let (auto, constant) = (rate(&record), rate(&beside_cubic("constant")));
    // A constant delta of 0.5 keeps two packets in a queue of many.
    assert!(
        auto > 3.0 * constant && auto > 4.0,
        "{auto} against {constant}"
    );
}

/// The share of the last 40 of 60 s in which it mistakes itself for a competitor, and the mean queue in packets times
/// delta.
fn alone(mbps: f64, rtt_ms: f64, params: &Value) -> (f64, f64) {
    let record = record(&with(infinite("copa", mbps, rtt_ms, 60.0), params));
    let late = states(&record)
        .into_iter()
        .filter(|row| row.time_ns > 20_000_000_000);
    let modes: Vec<String> = late.filter_map(|row| row.mode).collect();
    let wrong = modes.iter().filter(|mode| *mode == "competitive").count();
    let part = Part::new(&record, 1, (mbps, rtt_ms), (20.0, 60.0));
    let delta = params["delta"].as_f64().expect("a delta");
    (
        wrong as f64 / modes.len() as f64,
        part.mean_ms * mbps * 1e3 / BITS * delta,
    )
}

/// A packet simulation of the reference's rules, written for this comparison alone, does the same: 45 to 100 % of the
/// time, and 14 to 95 times 1/delta packets. The queue's period is five round trips, which it has lengthened itself,
/// while its window covers four; every further round trip increases 1/delta by one, and no loss ever halves it.
#[test]
fn alone_on_a_small_product_it_takes_itself_for_a_competitor() {
    for (delta, mbps, rtt_ms) in [
        (0.5, 1.0, 20.0),
        (0.5, 1.0, 50.0),
        (0.5, 2.0, 20.0),
        (0.1, 6.0, 20.0),
        (0.1, 6.0, 30.0),
    ] {
        for strict in [false, true] {
            let (share, queue) = alone(mbps, rtt_ms, &json!({"delta": delta, "strict": strict}));
            let message = format!("{delta} {mbps} {rtt_ms} {strict}: {share} {queue}");
            assert!(share > 0.3 && (8.0..120.0).contains(&queue), "{message}");
        }
        // Not the constant, whose smallest window of two packets is the whole product of the first path.
        let (share, queue) = alone(mbps, rtt_ms, &json!({"delta": delta, "mode": "constant"}));
        assert!(
            share == 0.0 && queue < 2.6,
            "{delta} {mbps} {rtt_ms}: {queue}"
        );
    }
    // Products of more than four times 1/delta.
    for (delta, mbps, rtt_ms) in [(0.5, 2.0, 50.0), (0.5, 3.0, 40.0), (0.1, 24.0, 20.0)] {
        let (share, queue) = alone(mbps, rtt_ms, &json!({"delta": delta}));
        assert!(
            share < 0.05 && queue < 2.6,
            "{delta} {mbps} {rtt_ms}: {share} {queue}"
        );
    }
}

/// Paced at exactly one window per round trip, with room for one packet more, it never meets its window.
#[test]
fn the_program_of_early_2018_leaves_its_first_window() {
    let profile = profile("copa", "pantheon-2018-01-constant");
    for (mbps, rtt_ms) in [(12.0, 40.0), (30.0, 80.0), (50.0, 100.0), (100.0, 20.0)] {
        let mut cell = with(infinite("copa", mbps, rtt_ms, 60.0), &profile["params"]);
        cell["flows"][0]["transport"] = profile["transport"].clone();
        let part = Part::new(&record(&cell), 1, (mbps, rtt_ms), (20.0, 60.0));
        // A queue of one packet, seen through a smoothed RTT, is left and found again, and on the smallest product
        // the window swings between 5 and 65 packets around 40. That of the start would carry 7, 4, 3 and 14 Mbit/s.
        let minimum = if mbps * rtt_ms < 500.0 { 0.6 } else { 0.9 };
        assert!(part.mbps > minimum * mbps, "{mbps} {rtt_ms}: {}", part.mbps);
    }
}

/// The program of d0153f8 itself, between otherwise idle hosts: 10.86 Mbit/s, and 37.9 ms as the 95th percentile of the
/// queueing delay. The decisive rule is that the next packet of a full window waits a whole interval after the
/// acknowledgement (sent immediately, the results are 11.5 Mbit/s and 31 ms).
#[test]
fn as_pantheon_ran_it_it_swings_as_the_program_does() {
    let profile = profile("copa", "pantheon");
    let mut cell = with(infinite("copa", 12.0, 40.0, 30.0), &profile["params"]);
    cell["flows"][0]["transport"] = profile["transport"].clone();
    cell["network"]["forward"][0]["queue"] = json!({"kind": "droptail", "bytes": 60_000});
    let (run, _) = measured(&cell);
    let (mbps, p95_ms) = (
        run.get("1", "throughput_bps") / 1e6,
        run.get("1", "queueing_delay_p95_ns") / 1e6,
    );
    // Slightly different round trips and starts result in 10.7 to 10.9 Mbit/s and 37.5 to 38 ms; sending immediately is
    // outside.
    assert!((mbps / 10.86 - 1.0).abs() < 0.03, "{mbps}");
    assert!((p95_ms - 37.9).abs() < 2.0, "{p95_ms}");
}
