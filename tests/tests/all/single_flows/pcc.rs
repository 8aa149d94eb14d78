//! PCC: Allegro, Vivace and PCC-Expr.

use super::on;
use narrows_tests::comparison::{Cases, Expected, Row, is};
use narrows_tests::single_flow::Measure::{Carried, Dropped, Mean, P95};
use narrows_tests::single_flow::Setup;
use serde_json::{Value, json};

/// A scheme on the paths of the table: medians of seven seeds.
struct Scheme {
    name: &'static str,
    setup: Setup,
}

impl Scheme {
    fn new(
        name: &'static str,
        scheme: &'static str,
        profile: &'static str,
        params: Value,
    ) -> Scheme {
        let setup = Setup {
            profile,
            params,
            packet_size: Some(1500),
            ..Setup::new(scheme)
        };
        Scheme { name, setup }
    }

    fn row(&self, setup: Setup, expected: &[Expected]) -> Row {
        Row {
            cases: Cases::Seeds(7),
            ..super::row(self.name, setup, expected)
        }
    }

    /// 12 Mbit/s and 40 ms.
    fn buffer(&self, packets: u64, expected: &[Expected]) -> Row {
        let setup = Setup {
            buffer: Some(packets),
            ..self.setup.clone()
        };
        self.row(setup, expected)
    }

    /// The same with an infinite buffer.
    fn endless(&self, expected: &[Expected]) -> Row {
        self.row(self.setup.clone(), expected)
    }

    /// 50 Mbit/s, 40 ms, 400 packets.
    fn fast(&self, expected: &[Expected]) -> Row {
        let setup = Setup {
            buffer: Some(400),
            ..on(&self.setup, 50.0, 40.0)
        };
        self.row(setup, expected)
    }

    /// 12 Mbit/s, 40 ms, 100 packets.
    fn lossy(&self, loss: f64, expected: &[Expected]) -> Row {
        let setup = Setup {
            buffer: Some(100),
            loss,
            ..self.setup.clone()
        };
        self.row(setup, expected)
    }

    /// 2 Mbit/s, 200 ms.
    fn slow(&self, buffer: Option<u64>, expected: &[Expected]) -> Row {
        let setup = Setup {
            buffer,
            ..on(&self.setup, 2.0, 200.0)
        };
        self.row(setup, expected)
    }
}

const EXCURSIONS: &str = "a few excursions into the queue are the whole mean: probes of 1 % whose utilities differ by less than the \
    noise of the RTT start them. 24 seeds go from 0.6 to 19.6 ms at 100 packets, and to 4.7 (p95 18.5) at 20.";

const START: &str =
    "it is the overshoot of the start, 8 % of the first 3 s; one interval more doubles it.";

const PAYLOAD: &str = "the scheme's rates count payload, 1448 of 1500 bytes: on 12.43 Mbit/s, which carry 12 of payload, it is 8.7 \
    with 100 packets, and 3 or 5 with 20.";

const WALK: &str = "an interval of 60 packets knows the loss to 4 %: probes are judged by chance, and the rate walks at random \
    above its floor. 24 seeds go from 1.3 to 9.5, whatever the weight of latency.";

const PACKETS: &str = "waits come in whole packets.";

const OVERSHOOT: &str = "above the link its utility falls with the rate, so that the loss is overshoot of results that come 140 ms late, in \
    steps that grow from 5 to 17 %; which cycle a run falls into is chance: 3.2 to 8.6 over 60 s.";

const CYCLE: &str = "no decision is chance here, and all seeds fall into one cycle that depends on how steps of 5 % meet the link: the \
    mean is 24 ms at 11.4 Mbit/s, 38 at 11.6, 12 at 11.8, 2.7 at 12.0 and 33 at 12.2. The expected values lie within these.";

const FAST_CYCLE: &str = "the same cycle: the mean is 16 ms at 46 Mbit/s, 5.6 at 48, 4.7 at 51.9 and 9.4 at 53. What makes its tail here has not \
    been found.";

const TO_THE_END: &str =
    "losses move a run between these cycles, and an excursion goes to the end of the buffer.";

const FLOOR: &str = "the floor of 2.1 Mbit/s counts payload: 2.18 on the link, and steps of half a megabit come on top.";

const LATTICE: &str = "rates are the smallest one, 1.3 Mbit/s, and steps of 0.5 above it, and by how much those exceed a link of \
    2 decides: a smallest rate of 1.1 gives 12 and 49 ms, 1.2 gives 23 and 79, and 1.4 gives 74 and 183.";

const SHORTER: &str = "it is the time of two packets on the link or less: with packets of 1400 bytes, as the program has them, it \
    is 0.5.";

const CHANCE: &str =
    "seeds differ by more than that: the expected value lies between the least and the greatest.";

const SLIP: &str = "by a slip the program takes the round-trip time of the newest interval for that of the one it \
    judges; the table has that of the interval itself (rtt_of own, below), and a newer time tells of queues earlier.";

pub(crate) fn allegro() -> Vec<Row> {
    let run = Scheme::new(
        "pcc-allegro, pantheon",
        "pcc-allegro",
        "pantheon",
        json!({}),
    );
    let own = Scheme::new(
        "pcc-allegro, pantheon, rtt_of own",
        "pcc-allegro",
        "pantheon",
        json!({"rtt_of": "own"}),
    );
    let paper = Scheme::new("pcc-allegro", "pcc-allegro", "", json!({}));
    vec![
        run.buffer(
            100,
            &[
                is(Carried, "11.7"),
                is(Mean, "3").but(0.61, 0.83, SLIP),
                is(P95, "19").but(3.1, 3.8, SLIP),
                is(Dropped, "0.1"),
            ],
        ),
        run.buffer(
            20,
            &[
                is(Carried, "11.8"),
                is(Mean, "6").but(0.6, 0.74, SLIP),
                is(P95, "19").but(3.3, 3.8, SLIP),
                is(Dropped, "0.5").but(0.38, 0.39, EXCURSIONS),
            ],
        ),
        run.fast(&[
            is(Carried, "49.1"),
            is(Mean, "9").but(0.56, 0.62, SLIP),
            is(P95, "48").but(2.4, 3.2, SLIP),
            is(Dropped, "0"),
        ]),
        run.lossy(
            0.01,
            &[
                is(Carried, "11.7"),
                is(Mean, "0.5").but(0.18, 1.4, CHANCE),
                is(P95, "3").but(1.2, 9.2, CHANCE),
            ],
        ),
        run.lossy(0.1, &[is(Carried, "2.6").but(1.0, 4.9, CHANCE)]),
        run.endless(&[
            is(Carried, "11.7"),
            is(Mean, "8").but(0.61, 0.74, SLIP),
            is(P95, "30").but(3.1, 3.7, SLIP),
        ]),
        run.slow(None, &[is(Mean, "2.5e3")]),
        own.buffer(
            100,
            &[
                is(Carried, "11.7"),
                is(Mean, "3").but(0.71, 4.1, CHANCE),
                is(P95, "19").but(3.5, 19.0, EXCURSIONS),
                is(Dropped, "0.1"),
            ],
        ),
        own.buffer(
            20,
            &[
                is(Carried, "11.8"),
                is(Mean, "6").but(0.89, 3.2, EXCURSIONS),
                is(P95, "19").but(3.7, 20.0, CHANCE),
                is(Dropped, "0.5").but(0.38, 0.5, CHANCE),
            ],
        ),
        own.fast(&[
            is(Carried, "49.1"),
            is(Mean, "9").but(0.87, 10.0, CHANCE),
            is(P95, "48").but(3.5, 40.0, EXCURSIONS),
            is(Dropped, "0"),
        ]),
        own.lossy(
            0.01,
            &[
                is(Carried, "11.7"),
                is(Mean, "0.5").but(0.87, 13.0, EXCURSIONS),
                is(P95, "3").but(4.7, 79.0, EXCURSIONS),
            ],
        ),
        own.lossy(0.1, &[is(Carried, "2.6").but(1.0, 4.9, CHANCE)]),
        own.endless(&[
            is(Carried, "11.7"),
            is(Mean, "8").but(0.71, 4.6, EXCURSIONS),
            is(P95, "30").but(3.5, 26.0, EXCURSIONS),
        ]),
        own.slow(None, &[is(Mean, "2.5e3")]),
        paper.buffer(
            100,
            &[
                is(Carried, "12.0"),
                is(Mean, "79"),
                is(P95, "99"),
                is(Dropped, "8.7").but(9.7, 11.0, PAYLOAD),
            ],
        ),
        paper.buffer(
            20,
            &[
                is(Carried, "12.0"),
                is(Mean, "13"),
                is(P95, "19"),
                is(Dropped, "5.0").but(2.4, 3.0, PAYLOAD),
            ],
        ),
        paper.fast(&[
            is(Carried, "50.0"),
            is(Mean, "83"),
            is(P95, "96"),
            is(Dropped, "8.4"),
        ]),
        paper.lossy(0.01, &[is(Carried, "12.0"), is(Mean, "80"), is(P95, "99")]),
        paper.lossy(0.1, &[is(Carried, "4.4").but(1.0, 4.9, CHANCE)]),
    ]
}

pub(crate) fn vivace() -> Vec<Row> {
    // The simulations of the expected values counted payload and started like the published source.
    let shipped = Scheme::new(
        "vivace, pantheon, begun as published",
        "vivace",
        "pantheon",
        json!({"header": 0, "start": "tolerant", "initial_rate": 800_000}),
    );
    let published = Scheme::new("vivace, published", "vivace", "published", json!({}));
    let loss_only = json!({"latency_coefficient": 0.0});
    let loss_only = Scheme::new(
        "vivace, pantheon, latency_coefficient 0",
        "vivace",
        "pantheon",
        loss_only,
    );
    vec![
        shipped.buffer(
            100,
            &[
                is(Carried, "11.6"),
                is(Mean, "0.5"),
                is(P95, "2.2"),
                is(Dropped, "0.4").but(0.77, 1.7, START),
            ],
        ),
        shipped.buffer(
            20,
            &[
                is(Carried, "11.6"),
                is(Mean, "0.5"),
                is(P95, "2.4"),
                is(Dropped, "2.5"),
            ],
        ),
        shipped.fast(&[
            is(Carried, "47.5"),
            is(Mean, "0.1"),
            is(P95, "0.6").but(0.39, 0.43, SHORTER),
            is(Dropped, "0.3").but(0.44, 0.46, START),
        ]),
        shipped.lossy(
            0.01,
            &[is(Carried, "11.6"), is(Mean, "0.5"), is(P95, "2.4")],
        ),
        shipped.lossy(0.1, &[is(Carried, "4.8").but(1.4, 1.8, WALK)]),
        shipped.endless(&[is(Carried, "11.6"), is(Mean, "0.5"), is(P95, "2.3")]),
        shipped.slow(
            None,
            &[
                is(Carried, "1.76"),
                is(Mean, "22").but(30.0, 45.0, LATTICE),
                is(P95, "64").but(95.0, 140.0, LATTICE),
            ],
        ),
        // Without a limit like the one above.
        published.buffer(100, &[is(Carried, "11.6"), is(Mean, "0.5"), is(P95, "2.4")]),
        published.buffer(
            20,
            &[
                is(Carried, "11.6"),
                is(Mean, "0.6").but(0.45, 0.5, PACKETS),
                is(P95, "2.4"),
            ],
        ),
        published.fast(&[
            is(Carried, "47.5"),
            is(Mean, "0.1"),
            is(P95, "0.6").but(0.39, 0.43, SHORTER),
        ]),
        published.lossy(
            0.01,
            &[is(Carried, "11.5"), is(Mean, "0.4"), is(P95, "2.1")],
        ),
        published.lossy(0.1, &[is(Carried, "1.2").but(1.4, 1.8, WALK)]),
        published.endless(&[is(Carried, "11.6"), is(Mean, "0.5"), is(P95, "2.3")]),
        published.slow(
            None,
            &[
                is(Carried, "1.76"),
                is(Mean, "22").but(30.0, 45.0, LATTICE),
                is(P95, "64").but(95.0, 140.0, LATTICE),
            ],
        ),
        loss_only.buffer(
            100,
            &[
                is(Carried, "12.0"),
                is(Mean, "86"),
                is(P95, "99"),
                is(Dropped, "9"),
            ],
        ),
        loss_only.buffer(
            20,
            &[
                is(Carried, "11.9"),
                is(Mean, "15"),
                is(P95, "19"),
                is(Dropped, "5"),
            ],
        ),
        loss_only.fast(&[
            is(Carried, "50.0"),
            is(Mean, "82"),
            is(P95, "96"),
            is(Dropped, "3").but(5.6, 8.4, OVERSHOOT),
        ]),
        loss_only.lossy(0.01, &[is(Carried, "12.0"), is(Mean, "77"), is(P95, "99")]),
        loss_only.lossy(0.1, &[is(Carried, "5.4").but(1.6, 9.8, CHANCE)]),
    ]
}

pub(crate) fn expr() -> Vec<Row> {
    let run = Scheme::new(
        "pcc-expr, pantheon, payload counted",
        "pcc-expr",
        "pantheon",
        json!({"header": 0}),
    );
    vec![
        run.buffer(
            100,
            &[
                is(Carried, "11.3"),
                is(Mean, "10").but(2.1, 2.4, CYCLE),
                is(P95, "32").but(7.3, 7.9, CYCLE),
                is(Dropped, "0"),
            ],
        ),
        run.buffer(
            20,
            &[
                is(Carried, "11.7"),
                is(Mean, "6").but(2.4, 2.7, CYCLE),
                is(P95, "18").but(7.5, 8.2, CYCLE),
                is(Dropped, "0.4").but(0.27, 0.28, CYCLE),
            ],
        ),
        run.fast(&[
            is(Carried, "48.9"),
            is(Mean, "5"),
            is(P95, "18").but(26.0, 29.0, FAST_CYCLE),
            is(Dropped, "0"),
        ]),
        run.lossy(
            0.01,
            &[
                is(Carried, "11.0"),
                is(Mean, "16").but(10.0, 41.0, CHANCE),
                is(P95, "40").but(43.0, 100.0, TO_THE_END),
            ],
        ),
        run.lossy(0.1, &[is(Carried, "5.6").but(4.7, 8.7, CHANCE)]),
        run.endless(&[
            is(Carried, "11.5"),
            is(Mean, "7").but(2.1, 2.3, CYCLE),
            is(P95, "20").but(7.2, 7.9, CYCLE),
        ]),
        run.slow(Some(100), &[is(Dropped, "37").but(42.0, 44.0, FLOOR)]),
    ]
}
