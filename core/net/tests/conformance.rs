//! Runs all trials on every entry of every registry.

use narrows_net::testing::fuzz::{self, bottleneck_trial, setup};
use narrows_net::testing::play::{network, play, script};
use narrows_net::testing::{
    Dice, TestPacket, cases, check_link_sets, check_queue_sets, check_rate_sets, examples,
};
use narrows_net::{links, queues, rates};
use narrows_units::Time;
use proptest::prelude::*;
use serde_json::{Value, json};

/// Whether an entry is tested: all are, or the one that NARROWS_ENTRY named when this was compiled.
fn is_chosen(name: &str) -> bool {
    option_env!("NARROWS_ENTRY").is_none_or(|only| only == name)
}

#[test]
fn every_registered_queue_conforms() {
    for entry in queues::ALL.iter().filter(|it| is_chosen(it.name)) {
        check_queue_sets(entry, |set| {
            queues::build(entry.name, set, &setup()).unwrap()
        });
    }
}

/// Also with every parameter changed while packets are inside.
#[test]
fn every_registered_element_conforms() {
    for entry in links::ALL.iter().filter(|it| is_chosen(it.name)) {
        let effects = links::effects(entry.name).unwrap();
        check_link_sets(entry, effects, |set| {
            links::build(entry.name, set, &setup()).unwrap()
        });
    }
}

#[test]
fn every_bottleneck_conforms() {
    for queue in queues::ALL {
        for rate in rates::ALL {
            if !(is_chosen(queue.name) || is_chosen(rate.name)) {
                continue;
            }
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

#[test]
fn capacity_is_what_a_busy_server_carries() {
    for entry in rates::ALL.iter().filter(|it| is_chosen(it.name)) {
        check_rate_sets(entry, |set| {
            rates::build(entry.name, set, &setup()).unwrap()
        });
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
