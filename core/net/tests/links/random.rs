//! Random elements compared with their laws. Tolerances are five standard errors, which are exceeded by chance once in
//! two million cases; seeds are fixed.

use super::{MS, element, play, stream};
use serde_json::{Value, json};

/// The delays (in units of 5 ms) of `count` packets that are too far apart to interact.
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
    // The fourth moment is below 3, that of the untruncated law.
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
    // The default mean is three deviations, and draws below zero are repeated.
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
            // A packet that waits for a predecessor waits for one that arrived earlier and kept to the bound.
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
            // Released before it: all earlier ones, and exactly three later ones that were not held back.
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
