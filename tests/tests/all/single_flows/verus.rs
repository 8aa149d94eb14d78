//! Verus.

use super::on;
use narrows_tests::comparison::{Cases, Expected, Row, is};
use narrows_tests::single_flow::Measure::{Dropped, Rate, Restarts, RttMean, RttP95};
use narrows_tests::single_flow::Setup;

pub(crate) fn rows() -> Vec<Row> {
    let mut rows = Vec::new();
    for (name, profile) in [("verus", ""), ("verus, pantheon, 1500 bytes", "pantheon")] {
        let setup = Setup {
            profile,
            packet_size: Some(1500),
            ..Setup::new("verus")
        };
        let row = |setup: Setup, expected: &[Expected]| Row {
            cases: if setup.loss > 0.0 {
                Cases::Seeds(7)
            } else {
                Cases::One
            },
            ..super::row(name, setup, expected)
        };
        let fast = Setup {
            buffer: Some(1000),
            ..on(&setup, 50.0, 40.0)
        };
        let short = Setup {
            buffer: Some(100),
            ..setup.clone()
        };
        let lossy = Setup {
            loss: 0.01,
            ..setup.clone()
        };
        rows.extend([
            row(
                short,
                &[
                    is(Rate(0), "10.7"),
                    is(RttMean, "97"),
                    is(RttP95, "140"),
                    is(Dropped, "20"),
                    is(Restarts, "17"),
                ],
            ),
            row(
                fast,
                &[
                    is(Rate(0), "50.0"),
                    is(RttMean, "211"),
                    is(RttP95, "253"),
                    is(Dropped, "2"),
                ],
            ),
            row(
                lossy,
                &[is(Rate(0), "10.3"), is(RttMean, "50"), is(RttP95, "65")],
            ),
            row(
                on(&setup, 12.0, 40.0),
                &[is(Rate(0), "12.0"), is(RttMean, "218"), is(RttP95, "250")],
            ),
            row(
                on(&setup, 2.0, 200.0),
                &[is(Rate(0), "2.0"), is(RttMean, "890"), is(RttP95, "1077")],
            ),
        ]);
    }
    rows
}
