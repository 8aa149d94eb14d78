//! Every entry of every registry through all trials.

use super::fuzz::{bottleneck_trial, link_trial, setup};
use super::play::{network, play, script};
use super::*;
use crate::{links, queues, rates};
use narrows_units::Time;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

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
                let copies = link_trial(entry, std::slice::from_ref(set))
                    .run(&mut Dice::random(seed, 2_000));
                assert_eq!(copies > 0, entry.name == "duplicate");
            }
        }
    }
}

#[test]
fn every_parameter_of_an_element_may_change_while_packets_are_inside() {
    for entry in links::ALL {
        // All sets one after the other, and back to the first.
        let mut sets = examples(entry);
        sets.push(sets[0].clone());
        link_trial(entry, &sets).run(&mut Dice::random(1, 2_000));
        // Each in turn, so that order is demanded where no set in the trial gives it up.
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

/// The element `name` of a registry as JSON.
fn described(kind: &str, set: &Map<String, Value>) -> Value {
    let mut json = set.clone();
    json.insert("kind".to_owned(), json!(kind));
    Value::Object(json)
}

/// Plays the same script by a punctual and by late drivers.
fn check_twins(what: &str, forward: &Value, timeline: &Value) {
    let script = script(3, 1_000);
    let end = Time::from_ns(5_000_000_000);
    let punctual = play(&mut network(forward, timeline).unwrap(), &script, None, end);
    assert!(punctual.left.len() + punctual.drops.len() > 100, "{what}");
    for seed in 0..3 {
        let mut late = network(forward, timeline).unwrap();
        let played = play(&mut late, &script, Some(&mut Dice::random(seed, 0)), end);
        assert!(played == punctual, "{what}: a late driver changes outcomes");
    }
}

/// The element is changed to the next set of its examples in the middle; what that set does not
/// mention is absent again.
fn timeline(sets: &[Map<String, Value>], index: usize, wrap: &dyn Fn(Value) -> Value) -> Value {
    let mut next: Map<String, Value> = sets[index]
        .keys()
        .map(|key| (key.clone(), Value::Null))
        .collect();
    next.extend(sets[(index + 1) % sets.len()].clone());
    json!([{"at_ns": 400_000_123, "element": "forward.0", "set": wrap(Value::Object(next))}])
}

#[test]
fn lateness_of_the_driver_does_not_enter_any_element() {
    for entry in links::ALL {
        let sets = examples(entry);
        for (index, set) in sets.iter().enumerate() {
            let forward = json!([described(entry.name, set),
                {"kind": "bottleneck", "rate": {"kind": "constant", "rate": 10_000_000},
                 "queue": {"kind": "droptail", "bytes": 60_000}}]);
            let timeline = timeline(&sets, index, &|set| set);
            check_twins(entry.name, &forward, &timeline);
        }
    }
}

#[test]
fn lateness_of_the_driver_does_not_enter_any_queue_or_rate() {
    let bottleneck = |rate: Value, queue: Value| json!([{"kind": "bottleneck", "rate": rate, "queue": queue}, {"kind": "delay", "delay": 3_000_000}]);
    for entry in queues::ALL {
        let sets = examples(entry);
        for (index, set) in sets.iter().enumerate() {
            let rate = json!({"kind": "constant", "rate": 10_000_000});
            let timeline = timeline(&sets, index, &|set| json!({"queue": set}));
            check_twins(
                entry.name,
                &bottleneck(rate, described(entry.name, set)),
                &timeline,
            );
        }
    }
    for entry in rates::ALL {
        let sets = examples(entry);
        for (index, set) in sets.iter().enumerate() {
            let queue = json!({"kind": "droptail", "bytes": 60_000});
            let wrap =
                |set: Value| json!({"rate": described(entry.name, set.as_object().unwrap())});
            let timeline = timeline(&sets, index, &wrap);
            check_twins(
                entry.name,
                &bottleneck(described(entry.name, set), queue),
                &timeline,
            );
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
    assert!(queue("droptial", json!({})).starts_with("unknown queue 'droptial'; known: droptail,"));
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
