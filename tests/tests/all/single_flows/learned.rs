//! Schemes that follow published models.

use super::{TWO_STARTS, on, row};
use narrows_tests::comparison::{Cases, Expected, Row, Table, is};
use narrows_tests::single_flow::Measure::{Mean, P95, Rate, Window};
use narrows_tests::single_flow::Setup;

/// One table for each model, so that the others can be compared without it.
pub(crate) fn tables() -> Vec<Table> {
    vec![
        ("tao-100x", tao()),
        ("indigo-1-32", indigo_1_32()),
        ("indigo-1-128", indigo_1_128()),
        ("indigo-2-256", indigo_2_256()),
    ]
}

/// Parts of a millisecond, in which all of Indigo's clocks count: the window ends at 175, 180 or 185 packets by them.
const PHASES: Cases = Cases::Starts(&[
    0.0, 0.1e-3, 0.2e-3, 0.3e-3, 0.4e-3, 0.5e-3, 0.6e-3, 0.7e-3, 0.8e-3,
]);

const STAYS: &str = "windows move by ten packets and stay where the networks like them first: the shares are one of few, and \
    a start by a second, a round trip by 0.3 ms or packets by 58 bytes later decide which. The expected ones are among \
    them.";

/// 20 s, the second half of which is measured.
fn alone(
    scheme: &'static str,
    model: &'static str,
    (mbps, rtt_ms): (f64, f64),
    expected: &[Expected],
) -> Row {
    let setup = Setup {
        model: Some(model),
        seconds: 20.0,
        part: (10.0, 20.0),
        ..Setup::new(scheme)
    };
    row(model, on(&setup, mbps, rtt_ms), expected)
}

/// Two flows for 30 s, the second 3 to 5 s after the first.
fn two(
    scheme: &'static str,
    model: &'static str,
    (mbps, rtt_ms): (f64, f64),
    expected: &[Expected],
) -> Row {
    let setup = Setup {
        model: Some(model),
        starts: vec![0.0, 3.0],
        ..Setup::new(scheme)
    };
    Row {
        cases: TWO_STARTS,
        ..row(model, on(&setup, mbps, rtt_ms), expected)
    }
}

fn tao() -> Vec<Row> {
    let alone = |path, expected: &[Expected]| alone("remy", "tao-100x", path, expected);
    vec![
        alone(
            (12.0, 40.0),
            &[is(Rate(0), "11.6"), is(Mean, "1.5"), is(P95, "4")],
        ),
        alone(
            (50.0, 40.0),
            &[is(Rate(0), "48.0"), is(Mean, "22"), is(P95, "53")],
        ),
        alone(
            (2.0, 200.0),
            &[is(Rate(0), "2.0"), is(Mean, "52"), is(P95, "52")],
        ),
        alone(
            (12.0, 150.0),
            &[is(Rate(0), "10.8"), is(Mean, "4.4"), is(P95, "14")],
        ),
        alone(
            (30.0, 150.0),
            &[is(Rate(0), "30.0"), is(Mean, "38"), is(P95, "77")],
        ),
        alone(
            (100.0, 150.0),
            &[is(Rate(0), "80.7"), is(Mean, "4"), is(P95, "11")],
        ),
        two(
            "remy",
            "tao-100x",
            (30.0, 150.0),
            &[is(Rate(0), "14.7"), is(Rate(1), "14.8")],
        ),
    ]
}

fn indigo_1_32() -> Vec<Row> {
    let alone = |path, expected: &[Expected]| alone("indigo", "indigo-1-32", path, expected);
    vec![
        alone(
            (12.0, 40.0),
            &[
                is(Rate(0), "12.0"),
                is(Mean, "4"),
                is(P95, "4"),
                is(Window, "45"),
            ],
        ),
        Row {
            cases: PHASES,
            ..alone(
                (50.0, 40.0),
                &[is(Rate(0), "50.0"), is(Mean, "3.7"), is(Window, "185")],
            )
        },
        alone(
            (2.0, 200.0),
            &[is(Rate(0), "2.0"), is(Mean, "34"), is(Window, "40")],
        ),
        alone(
            (100.0, 100.0),
            &[is(Rate(0), "100"), is(Mean, "2.5"), is(Window, "845")],
        ),
        two(
            "indigo",
            "indigo-1-32",
            (24.0, 40.0),
            &[is(Rate(0), "4.5").but(2.5, 4.0, STAYS), is(Rate(1), "19.5")],
        ),
    ]
}

fn indigo_1_128() -> Vec<Row> {
    let alone = |path, expected: &[Expected]| alone("indigo", "indigo-1-128", path, expected);
    vec![
        alone(
            (12.0, 40.0),
            &[is(Rate(0), "12.0"), is(Mean, "4"), is(Window, "45")],
        ),
        alone((50.0, 40.0), &[is(Rate(0), "50.0"), is(Mean, "4.1")]),
        alone(
            (2.0, 200.0),
            &[is(Rate(0), "1.53"), is(Mean, "15"), is(P95, "60")],
        ),
        alone((100.0, 100.0), &[is(Rate(0), "100"), is(Mean, "1.9")]),
        two(
            "indigo",
            "indigo-1-128",
            (24.0, 40.0),
            &[
                is(Rate(0), "13.3").but(14.7, 17.0, STAYS),
                is(Rate(1), "10.7").but(7.0, 9.5, STAYS),
            ],
        ),
    ]
}

fn indigo_2_256() -> Vec<Row> {
    let alone = |path, expected: &[Expected]| alone("indigo", "indigo-2-256", path, expected);
    vec![
        alone(
            (12.0, 40.0),
            &[is(Rate(0), "12.0"), is(Mean, "9"), is(Window, "50")],
        ),
        alone((50.0, 40.0), &[is(Rate(0), "50.0"), is(Mean, "5.5")]),
        alone(
            (2.0, 200.0),
            &[is(Rate(0), "2.0"), is(Mean, "37"), is(P95, "64")],
        ),
        alone((100.0, 100.0), &[is(Rate(0), "100"), is(Mean, "3.8")]),
        two(
            "indigo",
            "indigo-2-256",
            (24.0, 40.0),
            &[
                is(Rate(0), "12.0").but(9.0, 10.7, STAYS),
                is(Rate(1), "12.0").but(13.3, 15.0, STAYS),
            ],
        ),
    ]
}
