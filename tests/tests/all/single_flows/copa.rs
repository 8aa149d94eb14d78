//! Copa.

use super::{TWO_STARTS, on, row};
use narrows_tests::comparison::{Cases, Expected, Row, is};
use narrows_tests::single_flow::Measure::{Mean, P95, Rate};
use narrows_tests::single_flow::Setup;
use serde_json::{Value, json};

/// Slow start overshoots on a large product, and then the window oscillates with velocities of hundreds, by amounts
/// that depend on single packets. Therefore the value is a mean over round trips that differ by a hundredth.
const LARGE: Cases = Cases::RoundTrips(&[98.0, 99.0, 100.0, 101.0, 102.0]);

const SWINGS: &str = "the window swings with velocities of hundreds after slow start, and how far depends on single \
    packets: round trips by 1 ms apart, other packet sizes, one packet more in flight or a constant delta give 77 to \
    100 here. 55 is below all of them; 60 s later nothing is left of it in either.";

const CHAOS: &str = "the window swings with velocities of hundreds after slow start, and how far depends on single \
    packets: round trips 1 ms apart give 1.7 to 12.8 ms, with 3 to 49 ms at the 95th percentile. Delta 0.1 at 101 ms \
    comes to all three expected values (89.7 Mbit/s; 6.2 and 25 ms).";

const SIDES: &str = "flows that swing together take each other for competitors now and then, and who gains by it \
    depends on the start of the second: either has 8 to 15.";

const SIZE: &str =
    "packets have 1468 bytes in the profile and 1500 in the table: with 1500 the value fits.";

/// Two flows on 24 Mbit/s; the second starts 3 to 5 s later.
fn two(name: &'static str, setup: &Setup, expected: &[Expected]) -> Row {
    let setup = Setup {
        starts: vec![0.0, 3.0],
        ..on(setup, 24.0, 40.0)
    };
    Row {
        cases: TWO_STARTS,
        ..row(name, setup, expected)
    }
}

fn large(name: &'static str, setup: &Setup, expected: &[Expected]) -> Row {
    Row {
        cases: LARGE,
        ..row(name, on(setup, 100.0, 100.0), expected)
    }
}

fn half() -> Vec<Row> {
    let mut rows = Vec::new();
    for (name, profile, params) in [
        ("copa, delta 0.5", "", json!({"delta": 0.5})),
        (
            "copa, pantheon-2018, 1500 bytes",
            "pantheon-2018",
            json!({}),
        ),
    ] {
        let setup = setup(profile, params);
        let late = Setup {
            seconds: 120.0,
            part: (60.0, 120.0),
            ..on(&setup, 100.0, 100.0)
        };
        rows.extend([
            row(
                name,
                on(&setup, 12.0, 40.0),
                &[is(Rate(0), "12.0"), is(Mean, "2.8"), is(P95, "6")],
            ),
            row(
                name,
                on(&setup, 50.0, 40.0),
                &[is(Rate(0), "49.9"), is(Mean, "0.65"), is(P95, "1.3")],
            ),
            row(
                name,
                on(&setup, 2.0, 200.0),
                &[is(Rate(0), "1.99"), is(Mean, "17"), is(P95, "34")],
            ),
            large(name, &setup, &[is(Rate(0), "55").but(77.0, 100.0, SWINGS)]),
            row(name, late, &[is(Rate(0), "100.0"), is(Mean, "0.4")]),
            two(
                name,
                &setup,
                &[
                    is(Rate(0), "14.2").but(8.0, 15.0, SIDES),
                    is(Rate(1), "8.4").but(8.0, 15.0, SIDES),
                ],
            ),
        ]);
    }
    rows
}

fn tenth() -> Vec<Row> {
    let mut rows = Vec::new();
    for (name, profile, params) in [
        ("copa, delta 0.1", "", json!({"delta": 0.1})),
        ("copa, pantheon, 1500 bytes", "pantheon", json!({})),
    ] {
        let setup = setup(profile, params);
        rows.extend([
            row(
                name,
                on(&setup, 12.0, 40.0),
                &[is(Rate(0), "11.6"), is(Mean, "13"), is(P95, "30")],
            ),
            row(
                name,
                on(&setup, 50.0, 40.0),
                &[is(Rate(0), "35"), is(Mean, "6"), is(P95, "23")],
            ),
            row(
                name,
                on(&setup, 2.0, 200.0),
                &[is(Rate(0), "1.92"), is(Mean, "67"), is(P95, "160")],
            ),
            large(
                name,
                &setup,
                &[
                    is(Rate(0), "90"),
                    is(Mean, "6").but(2.0, 9.0, CHAOS),
                    is(P95, "25").but(6.0, 35.0, CHAOS),
                ],
            ),
            two(name, &setup, &[is(Rate(0), "11.7"), is(Rate(1), "11.4")]),
        ]);
    }
    rows
}

/// As in the table: packets of 1500 bytes. Its simulations sent a packet with the acknowledgement that made room for
/// it, not an interval later like the program.
fn setup(profile: &'static str, mut params: Value) -> Setup {
    params["spacing"] = json!("even");
    params["halving"] = json!("paper");
    Setup {
        profile,
        params,
        packet_size: Some(1500),
        ..Setup::new("copa")
    }
}

pub(crate) fn rows() -> Vec<Row> {
    let mut rows = half();
    rows.extend(tenth());
    let name = "copa, pantheon-2018";
    let setup = Setup {
        packet_size: None,
        ..setup("pantheon-2018", json!({}))
    };
    rows.extend([
        row(
            name,
            on(&setup, 12.0, 40.0),
            &[is(Rate(0), "12.0"), is(Mean, "2.8"), is(P95, "6")],
        ),
        row(
            name,
            on(&setup, 50.0, 40.0),
            &[is(Rate(0), "49.9"), is(Mean, "0.65"), is(P95, "1.3")],
        ),
        row(
            name,
            on(&setup, 2.0, 200.0),
            &[
                is(Rate(0), "1.99"),
                is(Mean, "17").but(20.0, 26.0, SIZE),
                is(P95, "34").but(60.0, 68.0, SIZE),
            ],
        ),
    ]);
    rows
}
