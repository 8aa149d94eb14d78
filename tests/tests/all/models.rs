//! Model-based schemes with the published models: scores and rules.
//!
//! The project ships no models: see `narrows_tests::models` for where they are searched. (The same code is tested with
//! models made by hand in `narrows-cc`, always.)
//!
//! The expected numbers were computed with an independent program from the published weights and rules, in double
//! precision. Results of flows are in `single_flows`.

use narrows_cc::parts::Lstm;
use narrows_cc::parts::model_file::Model;
use narrows_cc::parts::neural_policy::{ACTIONS, window_after};
use narrows_cc::parts::rule_table::RuleTable;
use narrows_cc::testing::{MSS, setup};
use narrows_cc::{AckEvent, AckedPacket, CongestionControl, Fields, schemes};
use narrows_tests::models::content;
use narrows_units::{FileRef, Params, Span, Time, Value as Param};

/// Scores of all actions and the one that they make best.
type Scores = ([f64; 5], usize);

/// A network that receives its last action.
struct Player {
    network: Lstm,
    action: usize,
}

impl Player {
    fn new(content: &[u8], features: usize) -> Player {
        let model = Model::parse(content).unwrap();
        Player {
            network: Lstm::new(&model, features + ACTIONS, ACTIONS).unwrap(),
            action: ACTIONS - 1,
        }
    }

    /// The window after a decision.
    fn decide(&mut self, features: &[f64], window: f64) -> f64 {
        let last = |index| if index == self.action { 1.0 } else { 0.0 };
        let inputs = features.iter().map(|feature| *feature as f32);
        let inputs: Vec<f32> = inputs.chain((0..ACTIONS).map(last)).collect();
        let scores = self.network.step(&inputs);
        self.action =
            (0..ACTIONS).fold(0, |best, k| if scores[k] > scores[best] { k } else { best });
        window_after(self.action, window)
    }
}

fn check_scores(name: &str, policy: &mut Player, features: &[f64], (wanted, action): Scores) {
    policy.decide(features, 100.0);
    for (score, wanted) in policy.network.scores().iter().zip(wanted) {
        // The sources have four decimals.
        assert!(
            (f64::from(*score) - wanted).abs() < 1e-3,
            "{name} {features:?}: {:?}",
            policy.network.scores()
        );
    }
    assert_eq!(policy.action, action, "{name} {features:?}");
}

/// Delay (ms), delivery and sending rate (Mbit/s), window (packets) of eight decisions.
const INDIGO: [[f64; 4]; 8] = [
    [0.0, 1.0, 1.0, 10.0],
    [0.0, 5.0, 5.0, 20.0],
    [0.0, 10.0, 10.0, 40.0],
    [0.0, 20.0, 20.0, 80.0],
    [5.0, 40.0, 42.0, 160.0],
    [50.0, 48.0, 60.0, 320.0],
    [100.0, 48.0, 50.0, 320.0],
    [100.0, 48.0, 48.0, 160.0],
];

fn indigo_features([delay, delivery, sending, window]: [f64; 4]) -> [f64; 4] {
    [
        delay / 200.0,
        delivery / 200.0,
        sending / 200.0,
        window / 5000.0,
    ]
}

#[test]
fn indigo_scores() {
    let tables: [(&str, [Scores; 8]); 3] = [
        (
            "indigo-1-32",
            [
                ([-1.3303, -0.1862, -0.4402, 2.1987, -0.0749], 3),
                ([-1.7588, -0.8721, -0.9979, 0.7417, 2.6530], 4),
                ([-2.7112, -0.3294, -0.2028, 0.2627, 3.1907], 4),
                ([-1.5894, -0.0388, -0.5196, -0.1453, 2.4551], 4),
                ([-1.3500, -0.1352, -0.6375, 0.5172, 1.5347], 4),
                ([-0.7520, -1.0415, -0.7159, 2.3386, -0.2852], 3),
                ([-0.4417, -0.4720, -0.3822, 2.1471, -1.5413], 3),
                ([2.4104, 1.2684, -0.1055, 1.1569, -5.6279], 0),
            ],
        ),
        (
            "indigo-1-128",
            [
                ([-0.4847, -1.5800, -0.6646, 1.4339, 0.6567], 3),
                ([-3.6015, -1.8396, -0.4022, 1.8476, 3.1260], 4),
                ([-1.4171, -1.9134, -1.0180, 0.7316, 2.0938], 4),
                ([0.5984, -0.9372, -0.8805, -0.4528, 0.7257], 4),
                ([0.2476, -0.3408, -0.4427, -0.2316, 0.4627], 4),
                ([4.0823, 1.7250, -0.6987, -1.4743, -3.0311], 0),
                ([4.3819, 1.3672, -1.5289, -1.2643, -3.3391], 0),
                ([2.3647, 0.4335, -1.4629, -0.6568, -1.3477], 0),
            ],
        ),
        (
            "indigo-2-256",
            [
                ([-1.4256, -0.5380, -0.3715, 2.2419, 0.4315], 3),
                ([-2.9617, -1.8379, -0.9997, 1.5222, 4.4152], 4),
                ([-2.9740, -2.3174, -1.4611, 0.6648, 5.5579], 4),
                ([-1.9214, -1.5114, -1.1270, -0.2934, 3.4180], 4),
                ([-2.4627, -1.9046, -1.7735, 0.5883, 4.2409], 4),
                ([-1.1124, -1.3568, -2.1296, 0.9329, 1.8809], 4),
                ([2.0426, -0.2973, -2.9569, 0.4543, -2.8582], 0),
                ([-0.5259, -0.9054, -2.1707, 1.5328, -0.0711], 3),
            ],
        ),
    ];
    for (name, wanted) in tables {
        let Some(content) = content(name) else {
            continue;
        };
        let mut policy = Player::new(&content, 4);
        for (inputs, scores) in INDIGO.into_iter().zip(wanted) {
            check_scores(name, &mut policy, &indigo_features(inputs), scores);
        }
    }
}

#[test]
fn indigo_scores_without_calibration() {
    let tables: [(&str, Scores, Scores); 2] = [
        (
            "indigo-1-32-no-calib",
            ([-2.1159, -0.4843, -0.6067, 2.2058, 0.3365], 3),
            ([0.0914, -0.3175, -1.4051, -0.3694, 1.1755], 4),
        ),
        (
            "indigo-2-256-no-calib",
            ([-1.0387, -1.2445, -0.2116, 2.3962, -0.1570], 3),
            ([0.5002, -1.6198, -0.1420, -0.0487, 0.1205], 0),
        ),
    ];
    for (name, first, last) in tables {
        let Some(content) = content(name) else {
            continue;
        };
        let mut policy = Player::new(&content, 4);
        check_scores(name, &mut policy, &indigo_features(INDIGO[0]), first);
        for inputs in &INDIGO[1..7] {
            policy.decide(&indigo_features(*inputs), 100.0);
        }
        check_scores(name, &mut policy, &indigo_features(INDIGO[7]), last);
    }
}

#[test]
fn muses_scores() {
    let Some(content) = content("muses") else {
        return;
    };
    let mut policy = Player::new(&content, 6);
    // Round trip and delay (ms, the smallest round trip is 30 ms), sending and delivery rate (Mbit/s), loss, window.
    let steps: [([f64; 6], Scores); 6] = [
        (
            [30.0, 0.0, 1.0, 1.0, 0.0, 10.0],
            ([-0.7978, 0.0038, -0.1066, 2.3496, -0.1685], 3),
        ),
        (
            [30.0, 0.0, 5.0, 5.0, 0.0, 20.0],
            ([-0.5928, -0.5388, 0.0221, 1.9380, 2.5323], 4),
        ),
        (
            [31.0, 1.0, 20.0, 20.0, 0.0, 80.0],
            ([-1.1128, 0.0139, 0.2808, 1.4808, 3.0494], 4),
        ),
        (
            [35.0, 5.0, 80.0, 78.0, 0.0, 160.0],
            ([-0.8680, 0.1253, 0.2316, 1.1821, 2.7855], 4),
        ),
        (
            [60.0, 30.0, 300.0, 200.0, 0.0, 640.0],
            ([0.3290, 0.2306, -0.1736, 0.5571, 1.2594], 4),
        ),
        (
            [90.0, 60.0, 300.0, 200.0, 0.1, 640.0],
            ([2.1739, 0.4698, -0.7479, -0.4211, -1.1188], 0),
        ),
    ];
    for ([rtt, delay, sending, delivery, loss, window], scores) in steps {
        let features = [
            rtt / 300.0,
            delay / 30.0,
            sending / 1000.0,
            delivery / 1000.0,
            loss,
            window / 12_500.0,
        ];
        check_scores("muses", &mut policy, &features, scores);
    }
}

/// A network's window on a path whose state follows immediately from the window: one decision after the other, the mean
/// of the last 100 of 400.
fn on_a_pipe(policy: &mut Player, mbps: f64, rtt_ms: f64) -> f64 {
    let bdp = mbps * rtt_ms / 12.0;
    let (mut window, mut sum) = (10.0f64, 0.0);
    for step in 0..400 {
        let delay = (window - bdp).max(0.0) * 12.0 / mbps;
        let rate = (window * 12.0 / rtt_ms).min(mbps);
        window = policy
            .decide(&indigo_features([delay, rate, rate, window]), window)
            .max(2.0);
        if step >= 300 {
            sum += window / 100.0;
        }
    }
    sum
}

#[test]
fn indigo_finds_the_window_of_a_pipe() {
    for (name, wanted) in [
        ("indigo-1-32", [185.0, 710.0, 46.0, 10.0]),
        ("indigo-1-128", [185.0, 697.0, 40.0, 10.0]),
        ("indigo-2-256", [190.0, 700.0, 50.0, 10.0]),
    ] {
        let Some(content) = content(name) else {
            continue;
        };
        let paths = [(50.0, 40.0), (100.0, 80.0), (12.0, 40.0), (5.0, 20.0)];
        for ((mbps, rtt_ms), wanted) in paths.into_iter().zip(wanted) {
            let mut policy = Player::new(&content, 4);
            let window = on_a_pipe(&mut policy, mbps, rtt_ms);
            // The published means are in whole packets.
            assert!(
                (window - wanted).abs() < 1.0,
                "{name} {mbps} {rtt_ms}: {window} {wanted}"
            );
        }
    }
}

#[test]
fn tao_rules() {
    let Some(content) = content("tao-100x") else {
        return;
    };
    let mut table = RuleTable::new(&Model::parse(&content).unwrap()).unwrap();
    assert_eq!(table.count(), 91);
    let range = |pick: fn(narrows_cc::parts::rule_table::RuleAction) -> f64| {
        let values: Vec<f64> = table.actions().map(pick).collect();
        let minimum = values.iter().copied().fold(f64::INFINITY, f64::min);
        (minimum, values.iter().copied().fold(0.0, f64::max))
    };
    assert_eq!(range(|rule| rule.increment), (3.0, 256.0));
    assert_eq!(range(|rule| rule.multiple), (0.0098, 1.0));
    let (minimum, maximum) = range(|rule| rule.spacing_ms);
    assert!(
        (minimum - 0.045).abs() < 1e-9 && (maximum - 27.58).abs() < 0.005,
        "{minimum} {maximum}"
    );
    // A steady stream: the spacing of packets (ms), the ratio of the round trip to the minimum, and the rule.
    for (spacing, ratio, increment, multiple, spacing_ms) in [
        (1.0, 1.0, 159.0, 0.45, 0.9105),
        (1.0, 1.1, 124.0, 0.07, 1.1234),
        (1.0, 1.3, 91.0, 0.79, 1.7898),
        (1.0, 2.0, 119.0, 0.48, 2.5696),
        (0.1, 1.0, 165.0, 0.92, 0.1112),
        (0.05, 1.0, 173.0, 0.98, 0.045),
        (0.5, 1.0, 231.0, 0.92, 0.2787),
        (2.0, 1.0, 67.0, 0.64, 1.877),
        (3.0, 2.0, 33.0, 0.06, 4.7964),
    ] {
        let action = table.action(&[spacing, spacing, ratio, spacing]);
        let found = (action.increment, action.multiple, action.spacing_ms);
        // Decimals as in the source.
        assert_eq!(found.0, increment, "{spacing} {ratio}");
        assert!(
            (found.1 - multiple).abs() < 1e-9 && (found.2 - spacing_ms).abs() < 1e-9,
            "{found:?}"
        );
    }
}

#[test]
fn tables_of_2013_have_rules_for_no_point_and_are_tables_all_the_same() {
    for (name, count) in [
        ("remy-delta0.1", 162),
        ("remy-delta1", 190),
        ("remy-delta10", 197),
    ] {
        let Some(content) = content(name) else {
            continue;
        };
        let table = RuleTable::new(&Model::parse(&content).unwrap()).unwrap();
        assert_eq!(table.count(), count, "{name}");
    }
}

/// Remy with the 100x table, if installed, with acknowledgements of single packets.
struct Tao {
    remy: Box<dyn CongestionControl>,
    next: u64,
}

impl Tao {
    fn new(content: Vec<u8>) -> Tao {
        let file = FileRef {
            name: "tao-100x.safetensors".into(),
            sha256: "tao".into(),
        };
        let mut birth = setup();
        birth.files.insert("tao", content);
        let scheme = schemes::find("remy").unwrap();
        let given = [("model".to_owned(), Param::File(file))];
        let params = Params::resolve(scheme.params, given).unwrap();
        Tao {
            remy: (scheme.build)(&params, birth).unwrap(),
            next: 0,
        }
    }

    /// A packet sent at a time is acknowledged after a round trip, in ms: the window and the spacing in ms.
    fn ack(&mut self, sent: f64, rtt: f64) -> (f64, f64) {
        let at = |ms: f64| Time::ZERO + Span::from_ns((ms * 1e6).round() as u64);
        let packets = [AckedPacket {
            number: self.next,
            bytes: MSS as u32,
            sent: at(sent),
            arrived: Some(at(sent + rtt - 75.0)),
        }];
        self.next += 1;
        let mut ack = AckEvent::new(at(sent + rtt));
        ack.packets = &packets;
        self.remy.on_ack(&ack);
        let mut fields = Fields::default();
        self.remy.trace(&mut fields);
        let value = |wanted: &str| {
            let found = fields.values.iter().find(|(name, _)| *name == wanted);
            found.unwrap().1
        };
        (value("window_packets"), value("spacing_ms"))
    }
}

#[test]
fn tao_windows_and_spacings() {
    let Some(content) = content("tao-100x") else {
        return;
    };
    // A packet per ms is sent and received, and the round trip is 150 ms.
    let mut tao = Tao::new(content);
    let found = (0..12).map(|number| tao.ack(f64::from(number) + 1.0, 150.0));
    let (windows, spacings): (Vec<f64>, Vec<f64>) = found.unzip();
    let wanted = [
        60.0, 183.0, 191.0, 406.0, 604.0, 786.0, 954.0, 1108.0, 1250.0, 439.0, 261.0, 222.0,
    ];
    assert_eq!(windows, wanted);
    let mut wanted = vec![0.292, 0.1512, 0.1512];
    wanted.extend([0.2787; 6]);
    wanted.extend([3.7295; 3]);
    for (found, wanted) in spacings.iter().zip(wanted) {
        // Kept in whole nanoseconds.
        assert!((found - wanted).abs() < 1.5e-6, "{spacings:?}");
    }
}

#[test]
fn tao_holds_a_window_on_a_steady_stream() {
    let Some(content) = content("tao-100x") else {
        return;
    };
    // The spacing of packets (ms), the ratio of the round trip to the minimum, and b / (1 - m) of the rule.
    for (spacing, ratio, multiple, wanted) in [
        (1.0, 1.0, 0.45, 289.0),
        (1.0, 1.1, 0.07, 133.3),
        (1.0, 1.3, 0.79, 433.0),
        (1.0, 2.0, 0.48, 228.8),
        (0.1, 1.0, 0.92, 2062.5),
        (0.05, 1.0, 0.98, 8650.0),
        (0.5, 1.0, 0.92, 2887.5),
        (2.0, 1.0, 0.64, 186.0),
        (3.0, 2.0, 0.06, 35.1),
    ] {
        let mut tao = Tao::new(content.clone());
        tao.ack(1.0, 150.0);
        // The weight of the first packets in the slow average has decayed to e^-31.
        let mut window = 0.0;
        for number in 1..8_000 {
            window = tao.ack(1.0 + f64::from(number) * spacing, 150.0 * ratio).0;
        }
        // Windows are rounded down to whole packets, so they stop when a step is less than one: up to 1 / (1 - m) below
        // or above. The published figures are in tenths or, for one of them, in whole packets.
        assert!(
            (window - wanted).abs() <= 1.0 / (1.0 - multiple) + 0.5,
            "{spacing} {ratio}: {window}, {wanted}"
        );
    }
}
