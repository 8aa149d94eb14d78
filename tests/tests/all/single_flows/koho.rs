//! Koho.

use super::{on, row};
use narrows_tests::comparison::{Row, is};
use narrows_tests::single_flow::Measure::{Mean, P95, Rate};
use narrows_tests::single_flow::Setup;

const SIZE: &str = "packets have 1416 bytes in the profile and 1500 in the table, and the clocks' milliseconds do not \
    divide their time on the link: with 1500 the value fits.";

pub(crate) fn rows() -> Vec<Row> {
    // As in the table: packets of 1500 bytes.
    let koho = |scheme, profile| Setup {
        profile,
        packet_size: Some(1500),
        ..Setup::new(scheme)
    };
    let mut rows = Vec::new();
    for (name, setup) in [
        ("koho", koho("koho", "")),
        ("koho, pantheon, 1500 bytes", koho("koho", "pantheon")),
    ] {
        rows.extend([
            row(
                name,
                on(&setup, 12.0, 40.0),
                &[is(Rate(0), "11.8"), is(Mean, "10"), is(P95, "21")],
            ),
            // 100 packets in 40 ms: no packet waits.
            row(
                name,
                on(&setup, 50.0, 40.0),
                &[is(Rate(0), "29.8"), is(Mean, "0.0"), is(P95, "0.0")],
            ),
            row(
                name,
                on(&setup, 2.0, 200.0),
                &[is(Rate(0), "1.97"), is(Mean, "53"), is(P95, "106")],
            ),
        ]);
    }
    for (name, setup) in [
        ("koho-calibrated", koho("koho-calibrated", "")),
        (
            "koho-calibrated, pantheon, 1500 bytes",
            koho("koho-calibrated", "pantheon"),
        ),
    ] {
        rows.extend([
            row(
                name,
                on(&setup, 12.0, 40.0),
                &[is(Rate(0), "12.0"), is(Mean, "5.5"), is(P95, "11")],
            ),
            row(
                name,
                on(&setup, 50.0, 40.0),
                &[is(Rate(0), "49.9"), is(Mean, "5.4"), is(P95, "10")],
            ),
            row(
                name,
                on(&setup, 2.0, 200.0),
                &[is(Rate(0), "1.96"), is(Mean, "9"), is(P95, "28")],
            ),
        ]);
    }
    let name = "koho-calibrated, pantheon";
    let setup = Setup {
        packet_size: None,
        ..koho("koho-calibrated", "pantheon")
    };
    rows.extend([
        row(
            name,
            on(&setup, 12.0, 40.0),
            &[
                is(Rate(0), "12.0"),
                is(Mean, "5.5").but(4.2, 5.4, SIZE),
                is(P95, "11").but(8.0, 10.0, SIZE),
            ],
        ),
        row(
            name,
            on(&setup, 50.0, 40.0),
            &[is(Rate(0), "49.9"), is(Mean, "5.4"), is(P95, "10")],
        ),
        row(
            name,
            on(&setup, 2.0, 200.0),
            &[
                is(Rate(0), "1.96"),
                is(Mean, "9").but(4.5, 6.5, SIZE),
                is(P95, "28").but(13.0, 18.0, SIZE),
            ],
        ),
    ]);
    rows
}
