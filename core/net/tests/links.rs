//! Each link element against its law: exact where it is exact, by statistics where it is random.
//! Tolerances are five standard errors, which chance exceeds once in two million; seeds are fixed.

use narrows_net::testing::TestPacket;
use narrows_net::{Change, Element, Outcomes, Setup, links};
use narrows_units::{Span, Time};
use proptest::prelude::*;
use serde_json::{Value, json};

const MS: u64 = 1_000_000;

fn setup() -> Setup {
    let mut setup = Setup::new(11, "forward.0");
    let delays = b"time_s,delay_ms\n0,20\n0.1,5\n0.3,0\n";
    setup.files.insert("00", delays.to_vec());
    setup
}

fn element(name: &str, params: &Value) -> Box<dyn Element<TestPacket>> {
    links::build(name, params.as_object().unwrap(), &setup()).unwrap()
}

fn packet(uid: u64, size: u32) -> TestPacket {
    TestPacket {
        uid,
        size,
        ..TestPacket::default()
    }
}

/// What left (ns, packet), and what was dropped (ns, number).
#[derive(Default)]
struct Out {
    left: Vec<(u64, TestPacket)>,
    drops: Vec<(u64, u64)>,
    copies: Vec<u64>,
}

impl Out {
    fn times(&self) -> Vec<(u64, u64)> {
        self.left
            .iter()
            .map(|(at, packet)| (*at, packet.uid))
            .collect()
    }
}

fn play(
    element: &mut dyn Element<TestPacket>,
    script: impl IntoIterator<Item = (u64, TestPacket)>,
) -> Out {
    let mut out = Out::default();
    let mut outcomes = Outcomes::new();
    let mut until =
        |element: &mut dyn Element<TestPacket>, outcomes: &mut Outcomes<_>, at: Time| {
            while element.next_wakeup() <= at && element.next_wakeup() < Time::FAR {
                let now = element.next_wakeup();
                let left = element.pop(now, outcomes);
                out.left.extend(left.map(|packet| (now.ns(), packet)));
            }
        };
    for (at, packet) in script {
        let at = Time::from_ns(at);
        until(element, &mut outcomes, at);
        element.push(at, packet, &mut outcomes);
    }
    until(element, &mut outcomes, Time::FAR);
    out.drops = outcomes
        .drops
        .iter()
        .map(|drop| (drop.at.ns(), drop.packet.uid))
        .collect();
    out.copies = outcomes.copies.iter().map(|copy| copy.packet.uid).collect();
    out
}

/// `count` packets of 1000 bytes, `gap` ns apart, numbered from 1.
fn stream(count: u64, gap: u64) -> impl Iterator<Item = (u64, TestPacket)> {
    (0..count).map(move |index| (index * gap, packet(index + 1, 1000)))
}

/// The delays (in units of 5 ms) that `count` packets get that are too far apart to meet.
fn delays(params: &Value, count: u64) -> Vec<f64> {
    let out = play(
        &mut *element("jitter", params),
        stream(count, 10_000_000 * MS),
    );
    assert_eq!(out.left.len() as u64, count);
    out.left
        .iter()
        .map(|(at, packet)| (at - (packet.uid - 1) * 10_000_000 * MS) as f64 / 5e6)
        .collect()
}

fn mean(values: impl ExactSizeIterator<Item = f64>) -> f64 {
    let count = values.len() as f64;
    values.sum::<f64>() / count
}

fn assert_near(what: &str, found: f64, wanted: f64, deviation: f64, count: f64) {
    let error = 5.0 * deviation / count.sqrt();
    assert!(
        (found - wanted).abs() <= error,
        "{what}: {found} is not {wanted} +- {error}"
    );
}

const MANY: u64 = 40_000;

#[test]
fn uniform_jitter_is_uniform() {
    let found = delays(&json!({"law": "uniform"}), MANY);
    assert!(found.iter().all(|delay| (0.0..1.0).contains(delay)));
    let n = MANY as f64;
    assert_near(
        "mean",
        mean(found.iter().copied()),
        0.5,
        (1.0f64 / 12.0).sqrt(),
        n,
    );
    // The square of a uniform number has the mean 1/3 and the variance 4/45.
    assert_near(
        "mean square",
        mean(found.iter().map(|x| x * x)),
        1.0 / 3.0,
        (4.0f64 / 45.0).sqrt(),
        n,
    );
}

#[test]
fn jitter_of_rfc_8868_is_a_folded_normal_law_cut_at_three_deviations() {
    let found = delays(&json!({}), MANY);
    assert!(found.iter().all(|delay| *delay <= 3.0));
    let n = MANY as f64;
    // With phi and Phi of the normal law and c = 3: the mean is 2 (phi(0) - phi(c)) / (2 Phi(c) - 1) and
    // the mean square is 1 - 2 c phi(c) / (2 Phi(c) - 1).
    let (phi_0, phi_3, inside) = (0.398_942_28, 0.004_431_848, 0.997_300_2);
    let (first, second) = (2.0 * (phi_0 - phi_3) / inside, 1.0 - 6.0 * phi_3 / inside);
    assert_near(
        "mean",
        mean(found.iter().copied()),
        first,
        (second - first * first).sqrt(),
        n,
    );
    // The fourth moment is below 3, that of the uncut law.
    assert_near(
        "mean square",
        mean(found.iter().map(|x| x * x)),
        second,
        (3.0 - second * second).sqrt(),
        n,
    );
}

#[test]
fn normal_jitter_is_normal() {
    let found = delays(&json!({"law": "normal", "mean": 30_000_000}), MANY);
    let n = MANY as f64;
    assert_near("mean", mean(found.iter().copied()), 6.0, 1.0, n);
    assert_near(
        "variance",
        mean(found.iter().map(|x| (x - 6.0).powi(2))),
        1.0,
        2f64.sqrt(),
        n,
    );
    let above = found.iter().filter(|x| **x > 7.0).count() as f64 / n;
    let law: f64 = 0.158_655_25;
    assert_near(
        "one deviation above",
        above,
        law,
        (law * (1.0 - law)).sqrt(),
        n,
    );
    // Without a mean it is three deviations, and what would lie below zero is drawn again.
    let found = delays(&json!({"law": "normal"}), MANY);
    let shift = 0.004_431_848 / 0.998_650_1;
    assert_near("mean", mean(found.iter().copied()), 3.0 + shift, 1.0, n);
}

#[test]
fn pareto_jitter_has_its_tail() {
    let shape = 2.5;
    let found = delays(&json!({"law": "pareto", "shape": shape}), MANY);
    let n = MANY as f64;
    for x in [0.1f64, 0.5, 1.0, 3.0, 9.0] {
        let above = found.iter().filter(|delay| **delay > x).count() as f64 / n;
        let law = (1.0 + x).powf(-shape);
        assert_near(
            &format!("beyond {x}"),
            above,
            law,
            (law * (1.0 - law)).sqrt(),
            n,
        );
    }
    assert!(found.iter().all(|delay| *delay * 5e6 <= 3.6e12));
}

#[test]
fn jitter_keeps_order_and_its_bound() {
    // A packet every 100 us, so that most of them would overtake others.
    for law in ["truncated", "uniform", "normal", "pareto"] {
        let out = play(
            &mut *element("jitter", &json!({"law": law})),
            stream(MANY, 100_000),
        );
        assert!(
            out.left
                .windows(2)
                .all(|pair| pair[0].1.uid < pair[1].1.uid)
        );
        if law == "truncated" {
            // Who waits for a predecessor waits for one that came earlier and kept to the bound.
            let late = out
                .left
                .iter()
                .map(|(at, packet)| at - (packet.uid - 1) * 100_000);
            assert!(late.max().unwrap() <= 15 * MS);
        }
        let free = json!({"law": law, "reorder": true});
        let out = play(&mut *element("jitter", &free), stream(MANY, 100_000));
        let overtaken = out
            .left
            .windows(2)
            .filter(|pair| pair[0].1.uid > pair[1].1.uid)
            .count();
        assert!(overtaken > 1_000, "{law}: {overtaken}");
    }
}

#[test]
fn jitter_can_leave_room_for_transmission() {
    // 1000 bytes take 80 us at 100 Mbit/s.
    let params = json!({"rate": 100_000_000});
    let out = play(&mut *element("jitter", &params), stream(MANY, 100_000));
    assert!(
        out.left
            .windows(2)
            .all(|pair| pair[1].0 - pair[0].0 >= 80_000)
    );
}

#[test]
fn loss_of_the_gilbert_elliott_channel_comes_in_bursts() {
    let (p, r, n) = (0.02, 0.25, 400_000);
    let out = play(
        &mut *element("gilbert", &json!({"p": p, "r": r})),
        stream(n, 1_000),
    );
    // The state is a chain with the correlation 1 - p - r from step to step, which widens the error
    // of its share by sqrt((2 - p - r) / (p + r)).
    let bad: f64 = p / (p + r);
    let widened = (bad * (1.0 - bad) * (2.0 - p - r) / (p + r)).sqrt();
    assert_near(
        "lost",
        out.drops.len() as f64 / n as f64,
        bad,
        widened,
        n as f64,
    );
    let mut bursts = vec![0u32];
    let mut last = 0;
    for (_, uid) in &out.drops {
        if *uid == last + 1 {
            *bursts.last_mut().unwrap() += 1;
        } else {
            bursts.push(1);
        }
        last = *uid;
    }
    // Geometric lengths: mean 1/r, variance (1 - r) / r^2.
    let bursts = &bursts[1..];
    let count = bursts.len() as f64;
    let length = mean(bursts.iter().map(|length| f64::from(*length)));
    assert_near("burst", length, 1.0 / r, (1.0 - r).sqrt() / r, count);
    let single = bursts.iter().filter(|length| **length == 1).count() as f64 / count;
    assert_near("bursts of one", single, r, (r * (1.0 - r)).sqrt(), count);
    // Elliott's channel loses some in both states.
    let params = json!({"p": p, "r": r, "good": 0.01, "bad": 0.4});
    let out = play(&mut *element("gilbert", &params), stream(n, 1_000));
    let law = 0.01 * (1.0 - bad) + 0.4 * bad;
    assert_near(
        "lost",
        out.drops.len() as f64 / n as f64,
        law,
        widened,
        n as f64,
    );
}

#[test]
fn copies_and_damage_have_their_ratio() {
    let n = 100_000;
    let deviation = (0.05f64 * 0.95).sqrt();
    let out = play(
        &mut *element("duplicate", &json!({"ratio": 0.05})),
        stream(n, 1_000),
    );
    assert_eq!(out.left.len() as u64, n);
    assert_near(
        "copies",
        out.copies.len() as f64 / n as f64,
        0.05,
        deviation,
        n as f64,
    );
    let out = play(
        &mut *element("corrupt", &json!({"ratio": 0.05})),
        stream(n, 1_000),
    );
    let damaged = out.left.iter().filter(|(_, packet)| packet.corrupt).count();
    assert_near(
        "damaged",
        damaged as f64 / n as f64,
        0.05,
        deviation,
        n as f64,
    );
}

#[test]
fn planned_losses_are_exact() {
    let dropped = |name, params: Value| {
        let out = play(&mut *element(name, &params), stream(20, 1_000));
        out.drops.iter().map(|(_, uid)| *uid).collect::<Vec<_>>()
    };
    assert_eq!(dropped("periodicloss", json!({"every": 6})), [6, 12, 18]);
    assert_eq!(
        dropped("periodicloss", json!({"every": 6, "offset": 1})),
        [7, 13, 19]
    );
    assert_eq!(
        dropped("losslist", json!({"packets": [9, 2, 3, 40, 2]})),
        [2, 3, 9]
    );
    assert_eq!(
        dropped("gate", json!({"open": false})),
        (1..=20).collect::<Vec<_>>()
    );
    assert!(dropped("gate", json!({})).is_empty());
    let out = play(
        &mut *element("mtu", &json!({"bytes": 1280})),
        [(0, packet(1, 1280)), (0, packet(2, 1281))],
    );
    assert_eq!((out.times(), out.drops), (vec![(0, 1)], vec![(0, 2)]));
}

#[test]
fn outages_drop_or_hold() {
    let times = |params: Value| {
        let script = (0..12).map(|ms| (ms * MS, packet(ms, 1000)));
        let out = play(&mut *element("outage", &params), script);
        let dropped: Vec<u64> = out.drops.iter().map(|(_, uid)| *uid).collect();
        (
            out.left.iter().map(|(at, _)| at / MS).collect::<Vec<_>>(),
            dropped,
        )
    };
    let once = json!({"start": 2 * MS, "length": 3 * MS});
    assert_eq!(
        times(once),
        (vec![0, 1, 5, 6, 7, 8, 9, 10, 11], vec![2, 3, 4])
    );
    let again = json!({"start": 2 * MS, "length": 3 * MS, "period": 5 * MS, "mode": "hold"});
    assert_eq!(
        times(again),
        (vec![0, 1, 5, 5, 5, 5, 6, 10, 10, 10, 10, 11], vec![])
    );
}

#[test]
fn held_back_packets_are_overtaken_by_as_many_as_asked() {
    let n = 50_000;
    let params = json!({"ratio": 0.1, "gap": 3, "delay": 1_000 * MS});
    let out = play(&mut *element("reorder", &params), stream(n, 1_000));
    assert_eq!(out.left.len() as u64, n);
    let mut held = 0;
    let mut highest = 0;
    for (index, (_, packet)) in out.left.iter().enumerate().take(49_000) {
        if packet.uid < highest {
            held += 1;
            // Before it went: all earlier ones, and exactly three later ones that were not held
            // back themselves.
            let before = &out.left[..index];
            let over = before
                .iter()
                .rev()
                .take(40)
                .filter(|(_, other)| other.uid > packet.uid)
                .count();
            assert_eq!(over, 3, "packet {}", packet.uid);
        }
        highest = highest.max(packet.uid);
    }
    assert_near("held back", f64::from(held) / 49_000.0, 0.1, 0.3, 49_000.0);
    // Without a gap the delay alone counts.
    let out = play(
        &mut *element("reorder", &json!({"ratio": 1, "delay": 7 * MS})),
        stream(3, 5),
    );
    assert_eq!(
        out.times(),
        [(7 * MS, 1), (7 * MS + 5, 2), (7 * MS + 10, 3)]
    );
}

#[test]
fn delays_follow_their_plan() {
    let at = |name, params: Value, times: &[u64]| {
        let script = (1..)
            .zip(times)
            .map(|(uid, ms)| (ms * MS, packet(uid, 1000)));
        let out = play(&mut *element(name, &params), script);
        out.left
            .iter()
            .map(|(at, packet)| (at / MS, packet.uid))
            .collect::<Vec<_>>()
    };
    let steps = json!({"steps": [[0, 20 * MS], [100 * MS, 5 * MS]]});
    // The third waits for the second, which is still under way.
    assert_eq!(
        at("delaysteps", steps, &[0, 99, 100, 120]),
        [(20, 1), (119, 2), (119, 3), (125, 4)]
    );
    let free =
        json!({"steps": [[0, 20 * MS], [100 * MS, 5 * MS]], "reorder": true, "period": 200 * MS});
    assert_eq!(
        at("delaysteps", free, &[0, 99, 100, 230]),
        [(20, 1), (105, 3), (119, 2), (250, 4)]
    );
    let trace = json!({"file": {"name": "delays.csv", "sha256": "00"}});
    for name in ["delaytrace", "jittertrace"] {
        let found = at(name, trace.clone(), &[0, 150, 299, 300, 400]);
        assert_eq!(found, [(20, 1), (155, 2), (304, 3), (320, 4), (405, 5)]);
    }
    let once = json!({"file": {"name": "delays.csv", "sha256": "00"}, "loop": false});
    assert_eq!(at("delaytrace", once, &[300]), [(305, 1)]);
    let drift = json!({"delay": 20 * MS, "slope": 0.01, "amplitude": 10 * MS, "period": 1000 * MS});
    // A quarter of a swing later: 20 + 2.5 + 10; three quarters: 20 + 7.5 - 10.
    assert_eq!(
        at("drift", drift, &[0, 250, 750]),
        [(20, 1), (282, 2), (767, 3)]
    );
    assert_eq!(
        element("delaytrace", &trace).propagation(),
        Span::from_ms(5)
    );
    assert_eq!(element("jittertrace", &trace).propagation(), Span::ZERO);
}

#[test]
fn a_policer_lets_a_burst_pass_and_then_its_rate() {
    // A byte per microsecond, two packets deep.
    let params = json!({"rate": 8_000_000, "burst": 3_000});
    let times = [0, 0, 0, 1_499, 1_500, 2_999, 3_000, 10_000, 10_000, 10_000];
    let script = || {
        (1..)
            .zip(times)
            .map(|(uid, us)| (us * 1_000, packet(uid, 1500)))
    };
    let out = play(&mut *element("policer", &params), script());
    let passed: Vec<u64> = out.left.iter().map(|(_, packet)| packet.uid).collect();
    assert_eq!(passed, [1, 2, 5, 7, 8, 9]);
    assert!(
        out.left
            .iter()
            .all(|(at, packet)| *at == times[packet.uid as usize - 1] * 1_000)
    );
    let remark = json!({"rate": 8_000_000, "burst": 3_000, "action": "remark", "dscp": 8});
    let out = play(&mut *element("policer", &remark), script());
    let marked: Vec<u64> = out
        .left
        .iter()
        .filter(|(_, packet)| packet.dscp == 8)
        .map(|(_, packet)| packet.uid)
        .collect();
    assert_eq!((out.left.len(), marked), (10, vec![3, 4, 6, 10]));
}

proptest! {
    /// The token bucket of RFC 2697 in exact fractions: at each arrival it holds
    /// min(burst, held + rate x time) and a packet passes if that is not less than its size.
    #[test]
    fn a_policer_is_a_token_bucket(
        rate in 1u64..1_000_000_000,
        burst in 1u64..30_000,
        arrivals in prop::collection::vec((0u64..5_000_000, 20u32..3_000), 1..100),
    ) {
        let (mut now, mut uid) = (0, 0);
        let script: Vec<_> = arrivals.iter().map(|(gap, size)| {
            now += gap;
            uid += 1;
            (now, packet(uid, *size))
        }).collect();
        let out = play(&mut *element("policer", &json!({"rate": rate, "burst": burst})), script.clone());
        let passed: Vec<u64> = out.left.iter().map(|(_, packet)| packet.uid).collect();
        // In units of 1 / (8 x 10^9) byte.
        let full = u128::from(burst) * 8_000_000_000;
        let (mut held, mut last) = (full, 0);
        let mut expected = Vec::new();
        for (at, packet) in &script {
            held = full.min(held + u128::from(at - last) * u128::from(rate));
            last = *at;
            let cost = u128::from(packet.size) * 8_000_000_000;
            if held >= cost {
                held -= cost;
                expected.push(packet.uid);
            }
        }
        prop_assert_eq!(passed, expected);
    }

    /// Pantheon's aggregation paths are traces: the element and a link with that trace agree.
    #[test]
    fn aggregation_is_what_a_trace_of_equal_lines_does(
        (packets, ms) in prop::sample::select(vec![(1u64, 100u64), (10, 200), (3, 7)]),
        arrivals in prop::collection::vec((prop_oneof![Just(0u64), 0u64..40_000_000], prop::sample::select(vec![40u32, 52, 1500, 4000])), 1..100),
    ) {
        let (mut now, mut uid) = (0, 0);
        let script: Vec<_> = arrivals.iter().map(|(gap, size)| {
            now += gap;
            uid += 1;
            (now, packet(uid, *size))
        }).collect();
        let grouped = play(&mut *element("ackaggregation", &json!({"packets": packets, "time": ms * MS})), script.clone());
        let mut setup = setup();
        let lines = format!("{ms}\n").repeat(packets as usize);
        setup.files.insert("11", lines.into_bytes());
        let file = json!({"file": {"name": "groups.trace", "sha256": "11"}});
        let mut traced = narrows_net::Bottleneck::new(
            narrows_net::queues::build("unlimited", &serde_json::Map::new(), &setup).unwrap(),
            narrows_net::rates::build("trace", file.as_object().unwrap(), &setup).unwrap(),
            &narrows_units::Params::resolve(narrows_net::BOTTLENECK_PARAMS, []).unwrap(),
        );
        prop_assert_eq!(grouped.times(), play(&mut traced, script).times());
    }
}

#[test]
fn aggregation_can_count_packets() {
    let params = json!({"packets": 2, "time": 10 * MS, "bytes": 0});
    let out = play(&mut *element("ackaggregation", &params), stream(5, 5 * MS));
    // At 0, 5 and 10 ms came three, of which two go at 10 ms; the last of five finds no room at 20.
    let times: Vec<u64> = out.left.iter().map(|(at, _)| at / MS).collect();
    assert_eq!(times, [10, 10, 20, 20, 30]);
}

#[test]
fn decimation_keeps_every_nth_acknowledgement_of_each_connection() {
    let ack = |uid: u64, connection: u32| TestPacket {
        ack: true,
        connection,
        ..packet(uid, 52)
    };
    let script = [
        (0, ack(1, 1)),
        (MS, ack(2, 1)),
        (2 * MS, packet(3, 1500)), // data passes at once
        (3 * MS, ack(4, 2)),       // another connection
        (4 * MS, ack(5, 1)),       // the third of connection 1: goes on at once
        (5 * MS, ack(6, 1)),       // begins a new group and waits until 15 ms
        (9 * MS, ack(7, 1)),
    ];
    let params = json!({"keep": 3, "hold": 10 * MS});
    let out = play(&mut *element("ackdecimation", &params), script);
    assert_eq!(
        out.times(),
        [(2 * MS, 3), (4 * MS, 5), (13 * MS, 4), (15 * MS, 7)]
    );
    assert_eq!(out.drops, [(MS, 1), (4 * MS, 2), (9 * MS, 6)]);
}

#[test]
fn a_changed_policer_keeps_what_is_in_its_bucket() {
    let mut policer = element("policer", &json!({"rate": 8_000_000, "burst": 3_000}));
    let mut outcomes = Outcomes::new();
    policer.push(Time::ZERO, packet(1, 2_000), &mut outcomes);
    // 1000 bytes are left; with the new rate of two bytes per microsecond 500 us bring 1000 more.
    let params = json!({"rate": 16_000_000, "burst": 2_500});
    let params = links::params("policer", params.as_object().unwrap()).unwrap();
    policer
        .change(Time::ZERO, Change::Params(params), &mut outcomes)
        .unwrap();
    let at = Time::from_ns(500_000);
    policer.push(at, packet(2, 2_001), &mut outcomes);
    policer.push(at, packet(3, 2_000), &mut outcomes);
    assert_eq!(
        outcomes
            .drops
            .iter()
            .map(|drop| drop.packet.uid)
            .collect::<Vec<_>>(),
        [2]
    );
}
