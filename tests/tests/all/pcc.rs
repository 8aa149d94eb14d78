//! PCC Allegro, Vivace and PCC-Expr in simulated worlds: tolerated loss, differences of the variants, rate floors, and
//! shares of two flows. Results of one flow on single paths are in the table of single flows.
//!
//! Every number is computed over several seeds: these schemes decide by comparing noisy measurements, so that one run
//! shows little.

use narrows_record::series;
use narrows_tests::{Dumbbell, measured};
use play::{Play, mean};

#[path = "pcc/play.rs"]
mod play;

// Random loss.

#[test]
fn an_allegro_flow_that_is_fast_bears_loss_below_the_cliff() {
    // At 50 Mbit/s and more an interval has at least 250 packets, so that its loss ratio is known to 1.2 %. The sigmoid
    // reduces the utility by 2 % at 1 %, and by 27 % at 4 %, where its slope begins to amplify noise.
    for (loss, minimum, median) in [
        (0.01, 98.0, 99.0),
        (0.02, 95.0, 98.0),
        (0.03, 90.0, 95.0),
        (0.04, 55.0, 88.0),
    ] {
        let play = Play {
            params: &[("initial_rate", "25000000")],
            ..Play::new("pcc-allegro", "")
        };
        let seen = play.wide().with_loss(loss).many(8).mbps();
        assert!(seen[0] > minimum && seen[1] > median, "{loss}: {seen:?}");
    }
}

#[test]
fn an_allegro_flow_that_starts_under_loss_is_fast_or_slow() {
    let play = Play::new("pcc-allegro", "").wide();
    let seen = play.with_loss(0.01).many(2).mbps();
    assert!(seen[0] > 98.0, "{seen:?}");
    for (loss, bounds) in [(0.02, 40.0..90.0), (0.04, 40.0..50.0)] {
        let seen = play.with_loss(loss).many(4);
        let between = seen.0.iter().any(|seen| bounds.contains(&seen.mbps));
        assert!(!between, "{loss}: {seen:?}");
    }
}

#[test]
#[ignore = "32 runs at 100 Mbit/s, of which another test makes ten: make nightly"]
fn an_allegro_flow_that_starts_under_loss_may_stay_slow_for_long() {
    // With 1 % all starts reach the rate of the link.
    let play = Play::new("pcc-allegro", "").wide();
    let seen = play.with_loss(0.01).many(8).mbps();
    assert!(seen[0] > 98.0, "{seen:?}");
    // With 2 % the start ends early when 2 of 20 packets are lost at 4 Mbit/s (6 %), 2 of 40 at 8 (19 % where none was
    // before) or 4 of 80 at 16 (8 %), together every fourth time: of 16 it is 1 to 8 with 98 %. After that the rate
    // does a random walk in steps of a few percent, which does not lead far in 30 s: there are no results in between.
    let seen = play.with_loss(0.02).many(16);
    let fast = seen.0.iter().filter(|seen| seen.mbps > 90.0).count();
    let slow = seen.0.iter().filter(|seen| seen.mbps < 40.0).count();
    assert!(
        (8..=15).contains(&fast) && fast + slow >= 15,
        "{fast} {slow}: {seen:?}"
    );
    // With 4 % most end this way, and the others are near the cliff.
    let seen = play.with_loss(0.04).many(8).mbps();
    assert!(
        seen[0] < 10.0 && seen[1] < 40.0 && seen[2] > 50.0,
        "{seen:?}"
    );
}

#[test]
fn vivace_bears_loss_as_long_as_its_gradient_stands_out_from_the_noise() {
    // Probes are 5 % up and down. At 100 Mbit/s that is worth 10 (0.57 - c L), and an interval of 350 packets knows the
    // loss ratio to 0.75 % at 2 %, which makes a noise of 140 c x 0.0075. In the shipped form c is 1 below 3 %: 5.5
    // compares with 1. Beyond 3 %, and in the paper's form everywhere, c is 11.35: 1.2 against 16 at 4 %, although its
    // gradient still points up, to 5 %. So the rate wanders, and decreases with time.
    for (params, bear, medians) in [
        (
            &[][..],
            &[0.01, 0.02][..],
            [(0.04, 25.0..85.0), (0.06, 8.0..35.0), (0.1, 2.0..15.0)],
        ),
        (
            &[("utility", "paper")],
            &[0.01],
            [(0.04, 20.0..85.0), (0.06, 8.0..40.0), (0.1, 2.0..15.0)],
        ),
    ] {
        let play = Play {
            params,
            ..Play::new("vivace", "")
        }
        .wide();
        for &loss in bear {
            let seen = play.with_loss(loss).many(8).mbps();
            assert!(seen[0] > 90.0, "{params:?} {loss}: {seen:?}");
        }
        for (loss, range) in medians {
            let seen = play.with_loss(loss).many(8).mbps();
            assert!(range.contains(&seen[1]), "{params:?} {loss}: {seen:?}");
        }
    }
}

#[test]
fn loss_of_a_percent_costs_allegro_less_than_five() {
    for profile in ["", "pantheon"] {
        let play = Play::new("pcc-allegro", profile);
        let (clean, lossy) = (play.many(8).mbps(), play.with_loss(0.01).many(8).mbps());
        assert!(
            lossy[0] > 0.95 * clean[1],
            "{profile}: {lossy:?} of {clean:?}"
        );
    }
}

#[test]
fn ten_percent_of_loss_is_too_much_for_all() {
    // The rate goes down, but among the decisions are many wrong ones, since an interval of 60 packets knows the loss
    // ratio to 4 %: single flows wander up again. In the second minute the median is low, for Vivace as in the Pantheon
    // near its floor of 1.3 x 1400/1348 Mbit/s. PCC-Expr as in the Pantheon starts at 11.2 and wanders between that and
    // 2.1.
    for (scheme, profile, range) in [
        ("pcc-allegro", "", 0.4..2.5),
        ("pcc-allegro", "pantheon", 0.5..3.0),
        ("vivace", "pantheon", 1.3..4.5),
        ("vivace", "published", 1.3..4.5),
        ("vivace", "", 0.05..4.5),
        ("pcc-expr", "pantheon", 4.0..9.0),
    ] {
        let play = Play {
            seconds: 120.0,
            ..Play::new(scheme, profile).with_loss(0.1)
        };
        let seen = play.many(8).mbps();
        assert!(range.contains(&seen[1]), "{scheme} {profile}: {seen:?}");
    }
}

// Variants of one scheme.

#[test]
fn the_slip_of_allegro_makes_its_queue_shorter() {
    // The round-trip time of a newer interval shows a queue earlier.
    let own = Play {
        params: &[("rtt_of", "own")],
        ..Play::new("pcc-allegro", "pantheon")
    };
    let slip = Play::new("pcc-allegro", "pantheon");
    let (own, slip) = (own.many(9).queueing_ms(), slip.many(9).queueing_ms());
    assert!(
        slip[2] < own[1] && slip[1] < 0.6 * own[1],
        "{slip:?} {own:?}"
    );
}

#[test]
fn vivace_of_the_default_is_the_shipped_one_where_links_are_fast() {
    for (mbps, buffer, near, wait) in [(12.0, 100, 11.6, 0.7), (50.0, 400, 47.5, 0.2)] {
        for profile in ["", "pantheon", "published"] {
            let play = Play {
                mbps,
                buffer,
                ..Play::new("vivace", profile)
            };
            let seen = play.many(5);
            let [minimum, _, maximum] = seen.mbps();
            // Alternating probes of 5 %: the mean is at most 5 % below the link, with hardly a queue. The other weight
            // of latency has nearly the same effect, since the minimum slope that counts outweighs the rate in both.
            assert!(
                minimum > 0.98 * near && maximum < 1.02 * near,
                "{profile} {mbps}: {seen:?}"
            );
            let [_, median, _] = seen.queueing_ms();
            assert!((0.02..wait).contains(&median), "{profile} {mbps}: {seen:?}");
        }
    }
}

#[test]
fn steps_of_half_a_megabit_make_vivace_swing_on_slow_links() {
    // From the floor, 1.35 Mbit/s on the wire, a step leads to 1.87: the queue is the longest where that is just below
    // the link, so that the next one leads far beyond it, and where it is above the link the rate stays at the floor.
    let at = |profile, mbps| {
        Play {
            mbps,
            rtt_ms: 200.0,
            buffer: 1000,
            ..Play::new("vivace", profile)
        }
        .many(5)
    };
    let program = [1.7, 1.9, 2.2].map(|mbps| at("pantheon", mbps).queueing_ms()[1]);
    assert!(
        program[0] < 10.0 && program[1] > 40.0 && program[2] < 20.0,
        "{program:?}"
    );
}

#[test]
fn expr_falls_into_a_cycle_that_depends_on_the_link() {
    // Five seeds agree, since no decision is random, but a link a few percent faster or slower meets the steps
    // elsewhere: mostly growing steps lead far beyond the link, and then the queue is twice or half as long.
    let at = |mbps| {
        Play {
            mbps,
            ..Play::new("pcc-expr", "pantheon")
        }
        .many(5)
    };
    for (mbps, wait) in [(11.0, 17.0..27.0), (12.0, 35.0..55.0), (14.0, 15.0..25.0)] {
        let seen = at(mbps);
        let [minimum, median, maximum] = seen.queueing_ms();
        assert!(
            wait.contains(&minimum) && wait.contains(&maximum),
            "{mbps}: {seen:?}"
        );
        assert!(maximum - minimum < 0.2 * median, "{mbps}: {seen:?}");
        let [minimum, _, maximum] = seen.mbps();
        assert!(
            minimum > 0.88 * mbps && maximum < 0.97 * mbps,
            "{mbps}: {seen:?}"
        );
    }
}

#[test]
fn floors_of_the_programs_flood_slow_links_and_ours_do_not() {
    // 2.1 Mbit/s and steps of half a megabit on a link of 2: most of the time the buffer is full (37 % lost in a
    // simulation of the rules).
    let slow = |profile| {
        Play {
            mbps: 2.0,
            rtt_ms: 200.0,
            ..Play::new("pcc-expr", profile)
        }
        .many(5)
    };
    let seen = slow("pantheon");
    let [minimum, _, maximum] = seen.dropped();
    assert!(
        minimum > 30.0 && maximum < 50.0 && seen.queueing_ms()[0] > 500.0,
        "{seen:?}"
    );
    let seen = slow("");
    assert!(seen.dropped()[2] < 10.0 && seen.mbps()[0] > 1.6, "{seen:?}");
    // 1.3 Mbit/s and probes of 1.8 on a link of 0.5: 62 % of 1.3 are in excess.
    let slower = |profile| {
        Play {
            mbps: 0.5,
            buffer: 50,
            ..Play::new("vivace", profile)
        }
        .many(5)
    };
    let seen = slower("pantheon");
    let [minimum, _, maximum] = seen.dropped();
    assert!(
        minimum > 50.0 && maximum < 75.0 && seen.queueing_ms()[0] > 1000.0,
        "{seen:?}"
    );
    let seen = slower("");
    // The starting phase has overshot once.
    let good = seen.dropped()[2] < 10.0 && seen.mbps()[0] > 0.35 && seen.queueing_ms()[2] < 100.0;
    assert!(good, "{seen:?}");
    // A link of 10 kbit/s, on which a packet takes more than a second: packets arrive all the time.
    for scheme in ["pcc-allegro", "vivace", "pcc-expr"] {
        let seen = Play {
            mbps: 0.01,
            buffer: 10,
            seconds: 120.0,
            ..Play::new(scheme, "")
        }
        .many(5);
        assert!(seen.mbps()[0] > 0.005, "{scheme}: {seen:?}");
    }
}

/// Throughput of two flows of `scheme`, the second 5 s later, over the second half of `seconds`.
fn pair(scheme: &'static str, mbps: f64, seconds: f64, seed: u64) -> [f64; 2] {
    let cell = Dumbbell {
        mbps,
        schemes: vec![scheme; 2],
        interval_s: 5.0,
        seconds,
        seed,
        record: "bins",
        ..Dumbbell::default()
    };
    let (_, record) = measured(&cell.json());
    let flows = series::throughput(&record, 1_000_000_000).expect("throughput");
    [1, 2].map(|flow| {
        let rates = flows.time_s.iter().zip(&flows.flows[&flow].1);
        let late: Vec<f64> = rates
            .filter(|(time, _)| **time >= seconds / 2.0)
            .map(|(_, rate)| *rate)
            .collect();
        mean(&late) / 1e6
    })
}

#[test]
fn two_flows_find_the_equilibrium_of_their_utilities() {
    for scheme in ["vivace", "pcc-expr"] {
        for mbps in [24.0, 100.0] {
            for seed in 1..=5 {
                let [first, second] = pair(scheme, mbps, 100.0, seed);
                let jain = (first + second).powi(2) / (2.0 * (first * first + second * second));
                let sum = first + second;
                // Equal shares are the only equilibrium; steps of 5 % and more keep both oscillating around it.
                let good = jain > 0.97 && sum > 0.85 * mbps && sum < 0.99 * mbps;
                assert!(good, "{scheme} {mbps}, seed {seed}: {first} {second}");
            }
        }
    }
}

#[test]
fn two_flows_of_allegro_find_theirs_slowly() {
    // Both rates change by the same factors, and only the small effect of each rate on the common loss ratio makes them
    // converge.
    let ratios = |seconds| {
        let mut ratios: Vec<f64> = (1..=5)
            .map(|seed| {
                let [first, second] = pair("pcc-allegro", 24.0, seconds, seed);
                assert!(first + second > 23.0, "{seconds}, {seed}: {first} {second}");
                first / second
            })
            .collect();
        ratios.sort_by(f64::total_cmp);
        ratios
    };
    let (early, late) = (ratios(100.0), ratios(400.0));
    assert!((1.3..4.0).contains(&early[2]), "{early:?}");
    assert!((0.8..1.3).contains(&late[2]) && late[4] < 2.2, "{late:?}");
}
