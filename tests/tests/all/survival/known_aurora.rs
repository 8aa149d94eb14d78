//! Known defects of Aurora with the model of the tests.

use super::kit::Defect;
use super::known::SAME;

/// As [`super::known::KNOWN`].
pub(super) const AURORA: &[Defect] = &[
    (
        "aurora",
        "a blackout of 10 s",
        "rate afterwards",
        3.5e4..4.5e4,
        "its rate falls while nothing is acknowledged, and rises by at most 2.5 % per half round trip",
    ),
    (
        "aurora",
        "a blackout of acknowledgements",
        "rate afterwards",
        3.5e4..5e4,
        SAME,
    ),
    (
        "aurora",
        "a blackout of both directions",
        "rate afterwards",
        3.5e4..5e4,
        SAME,
    ),
    (
        "aurora",
        "two blackouts",
        "rate afterwards",
        3.5e4..5e4,
        SAME,
    ),
    (
        "aurora",
        "a blackout with 5 % loss",
        "rate afterwards",
        3e4..5e4,
        SAME,
    ),
    (
        "aurora",
        "on and off with a blackout",
        "rate at once",
        8e4..1.2e5,
        SAME,
    ),
    (
        "aurora",
        "on and off with a blackout",
        "rate afterwards",
        8e4..1.2e5,
        SAME,
    ),
    (
        "aurora",
        "reordering on 100 kbit/s",
        "share lost",
        0.48..0.55,
        "its rate falls by at most 2.5 % per half round trip, which the queue has made seconds long",
    ),
    (
        "aurora",
        "reordering on 100 kbit/s",
        "links sent",
        3.0..3.5,
        SAME,
    ),
    ("aurora", "10 kbit/s", "share lost", 0.8..0.9, SAME),
    ("aurora", "10 kbit/s", "links sent", 7.5..9.5, SAME),
    (
        "aurora",
        "a clock of 1 ms on a path of 0.5 ms",
        "rate",
        1.1e6..1.3e6,
        "one packet is in flight at a time, so that the flow is idle when a step ends, and no decision is made",
    ),
];
