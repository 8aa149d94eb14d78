//! All trials of one entry, with every set of its example parameters.

use super::fuzz::setup;
use super::{Dice, TestPacket, Trial, check_changing_queue, check_queue, examples, strands};
use crate::{
    BOTTLENECK_PARAMS, Bottleneck, Change, Element, ElementSetup, Entry, LinkEffects, PacketOrder,
    Queue, RateServer, queues,
};
use narrows_units::{ParamError, Params, Time};
use serde_json::{Map, Value, json};

/// Builds an element from a set of parameters.
type BuildElement<'a> = dyn Fn(&Map<String, Value>) -> Box<dyn Element<TestPacket>> + 'a;

/// The parameters that an example names.
fn read(entry: &Entry, set: &Map<String, Value>) -> Params {
    Params::from_json(entry.params, set)
        .unwrap_or_else(|error| panic!("{} {set:?}: {error}", entry.name))
}

/// The entry that `build` makes from an example.
fn built<T: ?Sized>(
    entry: &Entry,
    set: &Map<String, Value>,
    build: impl Fn(&Params, &ElementSetup) -> Result<Box<T>, ParamError>,
) -> Box<T> {
    build(&read(entry, set), &setup())
        .unwrap_or_else(|error| panic!("{} {set:?}: {error}", entry.name))
}

/// Runs all trials of queues on the entry of a crate elsewhere.
///
/// # Panics
/// When the queue breaks the contract of [`Queue`].
pub fn check_queue_entry(
    entry: &Entry,
    build: impl Fn(&Params, &ElementSetup) -> Result<Box<dyn Queue<TestPacket>>, ParamError>,
) {
    check_queue_sets(entry, |set| built(entry, set, &build));
}

/// Runs all trials of queues on an entry that is built from sets of parameters.
///
/// # Panics
/// When the queue breaks the contract of [`Queue`].
pub fn check_queue_sets(
    entry: &Entry,
    build: impl Fn(&Map<String, Value>) -> Box<dyn Queue<TestPacket>>,
) {
    let sets = examples(entry);
    let changes: Vec<_> = sets.iter().map(|set| read(entry, set)).collect();
    for (seed, set) in (0..).zip(&sets) {
        check_queue(build(set), seed, 3_000);
        check_changing_queue(build(set), &changes, &mut Dice::random(seed, 3_000));
    }
}

/// Runs all trials of link elements on the entry of a crate elsewhere.
///
/// # Panics
/// When the element breaks the contract of [`Element`], or has effects that it does not declare.
pub fn check_link_entry(
    entry: &Entry,
    effects: LinkEffects,
    build: impl Fn(&Params, &ElementSetup) -> Result<Box<dyn Element<TestPacket>>, ParamError>,
) {
    check_link_sets(entry, effects, |set| built(entry, set, &build));
}

/// A trial of an element with the first of `sets`, then changed to the others. It requires the order that the element
/// guarantees with all of them.
pub(super) fn trial(
    entry: &Entry,
    effects: LinkEffects,
    build: &BuildElement<'_>,
    sets: &[Map<String, Value>],
) -> Trial {
    let reorder = |set: &Map<String, Value>| set.get("reorder") == Some(&json!(true));
    Trial {
        element: build(&sets[0]),
        changes: sets[1..]
            .iter()
            .map(|set| Change::Params(read(entry, set)))
            .collect(),
        order: if sets.iter().any(reorder) {
            PacketOrder::Free
        } else {
            effects.order
        },
        strands: false,
    }
}

/// Runs all trials of link elements on an entry that is built from sets of parameters.
///
/// # Panics
/// When the element breaks the contract of [`Element`], or has effects that it does not declare.
pub fn check_link_sets(
    entry: &Entry,
    effects: LinkEffects,
    build: impl Fn(&Map<String, Value>) -> Box<dyn Element<TestPacket>>,
) {
    let build: &BuildElement<'_> = &build;
    let mut sets = examples(entry);
    for (seed, set) in (0..).zip(&sets) {
        for seed in [seed, seed + 100] {
            let (copies, reasons) = trial(entry, effects, build, std::slice::from_ref(set))
                .run(&mut Dice::random(seed, 2_000));
            assert_eq!(copies > 0, effects.copies, "{}: copies", entry.name);
            let declared = |reason: &&str| {
                effects.drops.iter().any(|known| known.0 == *reason)
                    || (*reason == "line_full" && set.contains_key("limit"))
            };
            let undeclared: Vec<_> = reasons.iter().filter(|one| !declared(one)).collect();
            assert!(
                undeclared.is_empty(),
                "{}: drops for {undeclared:?}, which its EFFECTS do not declare",
                entry.name
            );
        }
    }
    // All sets one after another, and back to the first.
    sets.push(sets[0].clone());
    trial(entry, effects, build, &sets).run(&mut Dice::random(1, 2_000));
    // Each in turn, so that order is required unless a set in the trial gives it up.
    for set in &sets[1..] {
        let pair = [sets[0].clone(), set.clone(), sets[0].clone()];
        trial(entry, effects, build, &pair).run(&mut Dice::random(2, 500));
    }
}

/// Runs all trials of rates on the entry of a crate elsewhere.
///
/// # Panics
/// When the server breaks the contract of [`RateServer`].
pub fn check_rate_entry(
    entry: &Entry,
    build: impl Fn(&Params, &ElementSetup) -> Result<Box<dyn RateServer>, ParamError>,
) {
    check_rate_sets(entry, |set| built(entry, set, &build));
    let sets = examples(entry);
    let droptail = json!({"bytes": 60_000});
    let droptail = droptail.as_object().expect("an object");
    let own = Params::resolve(BOTTLENECK_PARAMS, []).expect("all have defaults");
    for (seed, set) in (0..).zip(&sets) {
        let queue = queues::build("droptail", droptail, &setup()).expect("a limit is given");
        let element = Bottleneck::new(queue, built(entry, set, &build), &own);
        let others = sets.iter().map(|set| built(entry, set, &build));
        Trial {
            element: Box::new(element),
            changes: others.map(Change::Rate).collect(),
            order: PacketOrder::All,
            strands: sets.iter().any(strands),
        }
        .run(&mut Dice::random(seed, 1_000));
    }
}

/// Checks that the capacity that a rate reports is what its server carries while it is busy: utilization divides by it.
///
/// # Panics
/// When they differ.
pub fn check_rate_sets(entry: &Entry, build: impl Fn(&Map<String, Value>) -> Box<dyn RateServer>) {
    for set in examples(entry).iter().filter(|set| !strands(set)) {
        let mut server = build(set);
        let (mut at, mut carried) = (Time::ZERO, 0);
        let mut times = Vec::new();
        for _ in 0..3_000 {
            if server.is_slotted() {
                at = server.next_slot(at);
            }
            let left = server.serve(at, 1_500);
            assert!(left >= at, "{}: time goes back", entry.name);
            at = left;
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
        // One opportunity more or less at the end, of the largest size in the examples; all opportunities at one
        // instant in the largest trace have fewer bytes than that.
        assert!(
            whole.abs_diff(carried) <= 20_000,
            "{} {set:?}: its capacity is {whole} bytes, and it carried {carried}",
            entry.name
        );
        // Before any service, it predicts the same.
        assert_eq!(build(set).capacity(Time::ZERO, at).get(), whole);
        // Parts add up, except for the byte that each loses by rounding.
        let middle = times[1_234];
        let parts = capacity(Time::ZERO, middle) + capacity(middle, at);
        assert!(whole - parts <= 1, "{} {set:?}", entry.name);
    }
}
