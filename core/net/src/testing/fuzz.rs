//! Entry points for fuzzers: each function runs a trial on arbitrary bytes and panics if a contract
//! is violated. Ordinary tests call them with random bytes.

use super::check_entries::trial;
use super::{Dice, Trial, check_changing_queue, example_files, examples, strands};
use crate::{
    BOTTLENECK_PARAMS, Bottleneck, Change, ElementSetup, Entry, PacketOrder, links, queues, rates,
};
use narrows_units::{Params, Span, Time, Value};
use serde_json::Map;

/// An element that is given to [`Trial`] with the files of the examples.
pub fn setup() -> ElementSetup {
    ElementSetup {
        seed: 5,
        name: "forward.0".to_owned(),
        files: example_files(),
        ..ElementSetup::default()
    }
}

/// A trial of the link element `entry` with the first of `sets`, then changed to the others. The
/// trial requires the order that the element guarantees with all of them.
pub fn link_trial(entry: &Entry, sets: &[Map<String, serde_json::Value>]) -> Trial {
    let effects = links::effects(entry.name).expect("a registered element");
    let build = |set: &_| links::build(entry.name, set, &setup()).expect("an example can be built");
    trial(entry, effects, &build, sets)
}

/// A trial of a bottleneck with the first of `queue_sets` and of `rate_sets`, then changed to the
/// others.
pub fn bottleneck_trial(
    queue: &Entry,
    queue_sets: &[Map<String, serde_json::Value>],
    rate: &Entry,
    rate_sets: &[Map<String, serde_json::Value>],
) -> Trial {
    let own = Params::resolve(BOTTLENECK_PARAMS, []).expect("all have defaults");
    let server = |set| rates::build(rate.name, set, &setup()).expect("an example can be built");
    let built = queues::build(queue.name, &queue_sets[0], &setup());
    let queue_changes = queue_sets[1..]
        .iter()
        .map(|set| Change::Queue(queues::params(queue.name, set).expect("an example is valid")));
    let rate_changes = rate_sets[1..].iter().map(|set| Change::Rate(server(set)));
    let own_changes = [("overhead", Value::Integer(38)), ("atm", Value::Flag(true))];
    let own_changes = own_changes.map(|(name, value)| {
        let given = [(name.to_owned(), value)];
        Change::Params(Params::resolve(BOTTLENECK_PARAMS, given).expect("a parameter of it"))
    });
    Trial {
        element: Box::new(Bottleneck::new(
            built.expect("an example can be built"),
            server(&rate_sets[0]),
            &own,
        )),
        changes: queue_changes
            .chain(rate_changes)
            .chain(own_changes)
            .collect(),
        order: PacketOrder::Free,
        strands: rate_sets.iter().any(strands),
    }
}

/// A few of the sets, at least one.
fn some_sets(entry: &Entry, dice: &mut Dice) -> Vec<Map<String, serde_json::Value>> {
    let all = examples(entry);
    let count = 1 + dice.below(4);
    (0..count).map(|_| dice.pick(&all).clone()).collect()
}

/// Operations on a link element or a bottleneck.
///
/// # Panics
/// When it breaks its contract.
pub fn elements(data: &[u8]) {
    let mut dice = Dice::bytes(data);
    let kind = dice.below(links::ALL.len() as u64 + 20) as usize;
    let trial = if let Some(entry) = links::ALL.get(kind) {
        link_trial(entry, &some_sets(entry, &mut dice))
    } else {
        let (queue, rate) = (dice.pick(queues::ALL), dice.pick(rates::ALL));
        let sets = (some_sets(queue, &mut dice), some_sets(rate, &mut dice));
        bottleneck_trial(queue, &sets.0, rate, &sets.1)
    };
    trial.run(&mut dice);
}

/// Operations on a queue.
///
/// # Panics
/// When it breaks its contract.
pub fn queue_operations(data: &[u8]) {
    let mut dice = Dice::bytes(data);
    let entry = dice.pick(queues::ALL);
    let sets = some_sets(entry, &mut dice);
    let queue = queues::build(entry.name, &sets[0], &setup()).expect("an example can be built");
    let changes: Vec<Params> = sets[1..]
        .iter()
        .map(|set| queues::params(entry.name, set).expect("an example is valid"))
        .collect();
    check_changing_queue(queue, &changes, &mut dice);
}

/// A file that may be a trace: it is rejected with one sentence, or it can be used.
///
/// # Panics
/// When neither is the case.
pub fn traces(data: &[u8]) {
    let mut setup = setup();
    setup.files.insert("fuzz", data.to_vec());
    let file = serde_json::json!({"file": {"name": "fuzz.trace", "sha256": "fuzz"}});
    let params = file.as_object().expect("an object").clone();
    let sentence = |text: String| assert!(!text.is_empty() && !text.contains('\n'), "{text:?}");
    match rates::build("trace", &params, &setup) {
        Err(error) => sentence(error.to_string()),
        Ok(mut server) => {
            let mut at = Time::ZERO;
            for _ in 0..20 {
                if server.is_slotted() {
                    at = server.next_slot(at);
                }
                if at == Time::FAR {
                    break;
                }
                let left = server.serve(at, 1_500);
                assert!(left >= at, "time never goes back");
                at = left;
            }
            let second = Time::ZERO + Span::from_secs(1.0);
            let (once, twice) = (
                server.capacity(Time::ZERO, second),
                server.capacity(Time::ZERO, second + Span::from_secs(1.0)),
            );
            assert!(once <= twice, "capacity grows");
        }
    }
    for name in ["delaytrace", "jittertrace"] {
        if let Err(error) = links::build::<super::TestPacket>(name, &params, &setup) {
            sentence(error.to_string());
        }
    }
}
