//! SCReAM and GCC in simulated worlds: what losses, probes and targets make of one flow. What flows come to on simple
//! paths is in `single_flows`.

use narrows_tests::{Dumbbell, Measured};
use serde_json::{Value, json};

/// One flow of a scheme with `params` over a path with a queue of two seconds, which no flow here
/// fills.
fn run(scheme: &'static str, params: Value, mbps: f64, rtt_ms: f64, loss: f64) -> Measured {
    let mut cell = Dumbbell {
        mbps,
        rtt_ms,
        buffer_bdp: 2000.0 / rtt_ms,
        loss,
        schemes: vec![scheme],
        seconds: 60.0,
        ..Dumbbell::default()
    }
    .json();
    cell["flows"][0]["params"] = params;
    narrows_tests::measure(&cell)
}

const MBPS: f64 = 1e6;

#[test]
fn gcc_bears_five_percent_of_loss_and_not_twenty() {
    let target = |start_rate: u32, loss: f64| {
        let params = json!({
            "resolution": "vga", "max_rate": 1_700_000, "start_rate": start_rate, "probing": false
        });
        run("gcc", params, 12.0, 40.0, loss).get("1", "media_target_bps") / MBPS
    };
    let (held, slow, fallen) = (
        target(1_700_000, 0.05),
        target(300_000, 0.05),
        target(300_000, 0.2),
    );
    println!("gcc with loss: {held} {slow} {fallen}");
    // At 1.7 Mbit/s a second has 190 packets. By the binomial law 20 of them and more (above 10 %) are lost in one second of
    // 700, which costs a twentieth: in a minute hardly ever once, and not twice. The calibration held 1.42 Mbit/s.
    assert!(held >= 1.7 * 0.95 * 0.95, "{held}");
    // From 300 kbit/s two or three packets per frame make 60 to 90 per second: at most 2 % of them are lost in one second
    // of six, and above 10 % in one of 30 to 70. So the rate grows by a step of 8 % every six seconds or so and falls
    // by 6 % now and then: 54 s are nine steps, which double it.
    assert!((0.3..0.75).contains(&slow), "{slow}");
    // 20 % of loss cost a tenth every second: from 350 kbit/s after two seconds it is 24 s to 30 kbit/s, with a mean over
    // the minute of 80 kbit/s.
    assert!(fallen < 0.12, "{fallen}");
}

#[test]
fn gcc_with_probes_is_at_its_limit_within_a_second() {
    let done = run(
        "gcc",
        json!({"resolution": "vga", "max_rate": 1_700_000}),
        12.0,
        40.0,
        0.0,
    );
    assert!(done.get("1", "media_target_bps") > 1.65 * MBPS);
    assert!(done.get("1", "frame_loss_ratio") == 0.0);
}

#[test]
fn scream_holds_its_queue_near_the_target() {
    for (mbps, rtt_ms) in [(2.0, 40.0), (5.0, 100.0)] {
        let done = run("scream", json!({}), mbps, rtt_ms, 0.0);
        let p95 = done.get("1", "queueing_delay_p95_ns") / 1e6;
        let throughput = done.get("1", "throughput_bps") / MBPS;
        println!("scream {mbps} Mbit/s: {throughput}, {p95} ms");
        assert!(throughput > 0.5 * mbps, "{throughput}");
        // The target is 100 ms; the window moves within a round trip, in which the encoder may add a frame.
        assert!(p95 < 150.0, "{p95}");
        assert_eq!(done.get("1", "loss_ratio"), 0.0);
    }
}
