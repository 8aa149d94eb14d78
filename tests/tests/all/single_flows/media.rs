//! GCC and SCReAM.

use super::{on, row};
use narrows_tests::comparison::{Cases, Expected, Row, is};
use narrows_tests::single_flow::Measure::{Dropped, Mean, Media, P95, Target};
use narrows_tests::single_flow::Setup;
use serde_json::json;

const PACING: &str = "the pacer of Chromium passes a frame of 33 ms in two fifths of its time, and it waits at the bottleneck: \
    where it takes two thirds (the row without repetitions and noise) the value fits.";

pub(crate) fn rows() -> Vec<Row> {
    let with = |name, setup: Setup, expected: &[Expected]| Row {
        cases: Cases::Seeds(5),
        ..row(name, setup, expected)
    };
    let gcc = |params| Setup {
        params,
        seconds: 60.0,
        part: (30.0, 60.0),
        ..Setup::new("gcc")
    };
    // The camera of the Pantheon, reports every 100 ms, no probes.
    let name = "gcc, camera of 1.7 Mbit/s";
    let camera = gcc(json!({"resolution": "vga", "max_rate": 1_700_000, "probing": false}));
    let mut rows = vec![
        with(
            name,
            on(&camera, 12.0, 40.0),
            &[is(Target, "1.7"), is(Mean, "0")],
        ),
        with(
            name,
            on(&camera, 1.0, 40.0),
            &[
                is(Media, "0.95"),
                is(Target, "0.92"),
                is(Mean, "9").but(11.0, 15.0, PACING),
                is(P95, "24").but(27.0, 35.0, PACING),
                is(Dropped, "0"),
            ],
        ),
        with(
            name,
            on(&camera, 0.5, 100.0),
            &[
                is(Media, "0.48"),
                is(Mean, "8").but(10.0, 20.0, PACING),
                is(P95, "26").but(35.0, 80.0, PACING),
            ],
        ),
    ];
    // Those of the table have no retransmissions, key frames or encoder noise.
    let name = "gcc, rules of its rate alone";
    let rules = gcc(json!({
        "resolution": "vga", "max_rate": 1_700_000, "probing": false, "nack": false, "key_size": 0.0, "noise": 0.0,
        "pacing_factor": 1.5, "start_rate": 300_000
    }));
    let lossy = |loss, start_rate: u32| {
        let mut setup = Setup {
            loss,
            ..rules.clone()
        };
        setup.params["start_rate"] = json!(start_rate);
        setup
    };
    rows.extend([
        with(
            name,
            on(&rules, 12.0, 40.0),
            &[is(Media, "1.7"), is(Mean, "0")],
        ),
        with(
            name,
            on(&rules, 1.0, 40.0),
            &[
                is(Media, "0.95"),
                is(Mean, "9"),
                is(P95, "24"),
                is(Dropped, "0"),
            ],
        ),
        with(
            name,
            on(&rules, 0.5, 100.0),
            &[is(Media, "0.48"), is(Mean, "8"), is(P95, "26")],
        ),
        // Constant from the start.
        with(name, lossy(0.05, 1_700_000), &[is(Media, "1.42")]),
        with(name, lossy(0.2, 300_000), &[is(Media, "0.03")]),
    ]);
    let scream = Setup {
        profile: "pantheon",
        seconds: 60.0,
        part: (30.0, 60.0),
        ..Setup::new("scream")
    };
    for (mbps, rtt_ms) in [(12.0, 40.0), (50.0, 40.0), (2.0, 200.0), (0.5, 100.0)] {
        rows.push(with(
            "scream, pantheon",
            on(&scream, mbps, rtt_ms),
            &[is(Media, "0.20")],
        ));
    }
    rows
}
