//! Runs all trials on every entry of every registry.

use narrows_net::testing::fuzz::{self, bottleneck_trial, link_trial, setup};
use narrows_net::testing::play::{network, play, script};
use narrows_net::testing::{
    Dice, TestPacket, cases, check_changing_queue, check_queue, examples, strands,
};
use narrows_net::{links, queues, rates};
use narrows_units::Time;
use proptest::prelude::*;
use serde_json::{Value, json};

#[test]
fn every_registered_queue_conforms() {
    for entry in queues::ALL {
        let sets = examples(entry);
        let params = |set| queues::params(entry.name, set).unwrap();
        let changes: Vec<_> = sets.iter().map(params).collect();
        for (seed, set) in sets.iter().enumerate() {
            let build = || queues::build(entry.name, set, &setup()).unwrap();
            check_queue(build(), seed as u64, 3_000);
            check_changing_queue(build(), &changes, &mut Dice::random(seed as u64, 3_000));
        }
    }
}

#[test]
fn every_registered_element_conforms() {
    for entry in links::ALL {
        let sets = examples(entry);
        for (seed, set) in (0..).zip(&sets) {
            for seed in [seed, seed + 100] {
                let (copies, reasons) = link_trial(entry, std::slice::from_ref(set))
                    .run(&mut Dice::random(seed, 2_000));
                let effects = links::effects(entry.name).unwrap();
                assert_eq!(copies > 0, effects.copies, "{}", entry.name);
                let declared = |reason: &&str| {
                    effects.drops.iter().any(|known| known.0 == *reason)
                        || (*reason == "line_full" && set.contains_key("limit"))
                };
                let undeclared: Vec<_> = reasons.iter().filter(|one| !declared(one)).collect();
                assert!(undeclared.is_empty(), "{}: {undeclared:?}", entry.name);
            }
        }
    }
}

#[test]
fn every_parameter_of_an_element_may_change_while_packets_are_inside() {
    for entry in links::ALL {
        // All sets one after another, and back to the first.
        let mut sets = examples(entry);
        sets.push(sets[0].clone());
        link_trial(entry, &sets).run(&mut Dice::random(1, 2_000));
        // Each in turn, so that order is required unless a set in the trial gives it up.
        for set in &sets[1..] {
            let pair = [sets[0].clone(), set.clone(), sets[0].clone()];
            link_trial(entry, &pair).run(&mut Dice::random(2, 500));
        }
    }
}

#[test]
fn every_bottleneck_conforms() {
    for queue in queues::ALL {
        for rate in rates::ALL {
            let (queue_sets, rate_sets) = (examples(queue), examples(rate));
            for (seed, set) in (0..).zip(&rate_sets) {
                let set = std::slice::from_ref(set);
                bottleneck_trial(queue, &queue_sets[..1], rate, set)
                    .run(&mut Dice::random(seed, 1_000));
            }
            bottleneck_trial(queue, &queue_sets, rate, &rate_sets).run(&mut Dice::random(9, 2_000));
        }
    }
}

/// Utilization divides by the capacity that servers report.
#[test]
fn capacity_is_what_a_busy_server_carries() {
    for entry in rates::ALL {
        for set in examples(entry).iter().filter(|set| !strands(set)) {
            let mut server = rates::build(entry.name, set, &setup()).unwrap();
            let (mut at, mut carried) = (Time::ZERO, 0);
            let mut times = Vec::new();
            for _ in 0..3_000 {
                if server.is_slotted() {
                    at = server.next_slot(at);
                }
                at = server.serve(at, 1_500);
                carried += 1_500;
                while server.has_room()
                    && let Some(end) = server.join(1_500)
                {
                    at = end;
                    carried += 1_500;
                }
                times.push(at);
            }
            let capacity = |from, to| server.capacity(from, to).get();
            let whole = capacity(Time::ZERO, at);
            // One opportunity more or less at the end, of the largest size in the examples; all
            // opportunities at one instant in the largest trace have fewer bytes than that.
            assert!(
                whole.abs_diff(carried) <= 20_000,
                "{} {set:?}: {whole} {carried}",
                entry.name
            );
            // Before any service, it predicts the same.
            let fresh = rates::build(entry.name, set, &setup()).unwrap();
            assert_eq!(fresh.capacity(Time::ZERO, at).get(), whole);
            // Parts add up, except for the byte that each loses by rounding.
            let middle = times[1_234];
            let parts = capacity(Time::ZERO, middle) + capacity(middle, at);
            assert!(whole - parts <= 1, "{} {set:?}", entry.name);
        }
    }
}

/// A driver that is late by random amounts has the same results as one that is never late.
#[test]
fn lateness_of_the_driver_does_not_enter_the_model() {
    let script = script(3, 1_000);
    let end = Time::from_ns(5_000_000_000);
    for case in cases() {
        let network = || network(&case.forward, &case.timeline).unwrap();
        let punctual = play(&mut network(), &script, None, end);
        let seen = punctual.left.len() + punctual.drops.len() + punctual.held.len();
        assert_eq!(seen, 1_000 + punctual.copies.len(), "{}", case.name);
        for seed in 0..3 {
            let dice = &mut Dice::random(seed, 0);
            let late = play(&mut network(), &script, Some(dice), end);
            assert!(late == punctual, "{}: lateness changes outcomes", case.name);
        }
    }
}

#[test]
fn entries_are_complete() {
    for entry in [queues::ALL, links::ALL, rates::ALL].concat() {
        assert!(!entry.summary.is_empty());
        for spec in entry.params {
            assert!(!spec.doc.is_empty(), "{}.{}", entry.name, spec.name);
        }
        for name in entry.shorthand {
            let known = entry.params.iter().any(|spec| spec.name == *name);
            assert!(known, "{}", entry.name);
        }
    }
}

#[test]
fn builders_refuse_in_one_sentence() {
    let queue = |name: &str, params: Value| {
        let params = params.as_object().unwrap().clone();
        queues::build::<TestPacket>(name, &params, &setup())
            .err()
            .expect("must be refused")
            .to_string()
    };
    let unknown = queue("droptial", json!({}));
    assert!(unknown.starts_with("unknown queue 'droptial'; known: "));
    assert!(unknown.contains("droptail,"));
    assert!(queue("droptail", json!({})).contains("a limit is missing"));
    assert!(queue("droptail", json!({"bytes": 0})).contains("must be between 1"));
    assert!(queue("unlimited", json!({"bytes": 1})).contains("allowed: none"));
    let rate = |name: &str, params: Value| {
        let params = params.as_object().unwrap().clone();
        rates::build(name, &params, &setup())
            .err()
            .expect("must be refused")
            .to_string()
    };
    let mut files = setup();
    files.files.insert("falling", b"5\n4\n".to_vec());
    let falling = json!({"file": {"name": "a.trace", "sha256": "falling"}});
    let error = rates::build("trace", falling.as_object().unwrap(), &files)
        .err()
        .unwrap();
    assert_eq!(
        error.to_string(),
        "trace: the trace 'a.trace': line 2: the time 4 ms comes before 5 ms of the line above"
    );
    files.files.insert("slots", b"4\n5\n".to_vec());
    let slots = json!({"file": {"name": "a.trace", "sha256": "slots"}});
    let error = rates::build("poissontrace", slots.as_object().unwrap(), &files).err();
    let says = "it contains opportunities to send, but rates over time are required";
    assert!(error.unwrap().to_string().ends_with(says));
    let unknown = json!({"file": {"name": "b.trace", "sha256": "missing"}});
    assert!(rate("trace", unknown).contains("'b.trace' is not at hand"));
    let wave = json!({"low": 5, "high": 4, "period": 1_000_000});
    assert!(rate("square", wave).contains("must not be above the high rate"));
    let steps = json!({"steps": [[0, 5], [10, 6]], "period": 10});
    assert!(rate("steps", steps).contains("do not fit into the period"));
    let link = |name: &str, params: Value| {
        let params = params.as_object().unwrap().clone();
        links::build::<TestPacket>(name, &params, &setup())
            .err()
            .expect("must be refused")
            .to_string()
    };
    let always = json!({"start": 0, "length": 5, "period": 5});
    assert!(link("outage", always).contains("longer than its length"));
    assert!(
        link("drift", json!({"delay": 5, "amplitude": 6})).contains("must not be above the delay")
    );
    assert!(link("jitter", json!({"most": 1_000})).contains("must not be below the spread"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn any_bytes_are_operations_on_elements(data in prop::collection::vec(any::<u8>(), 0..1500)) {
        fuzz::elements(&data);
    }

    #[test]
    fn any_bytes_are_operations_on_queues(data in prop::collection::vec(any::<u8>(), 0..1500)) {
        fuzz::queue_operations(&data);
    }

    #[test]
    fn any_bytes_are_a_trace_or_refused(data in prop::collection::vec(any::<u8>(), 0..200)) {
        fuzz::traces(&data);
    }

    #[test]
    fn near_traces_are_used_or_refused(data in "(time_ns,rate_bps\n|time_s,rate_mbps\n|time_s,delay_ms\n)?([0-9]{1,3}(,[0-9]{1,4}(\\.[0-9])?)?\n){0,12}") {
        fuzz::traces(data.as_bytes());
    }
}
