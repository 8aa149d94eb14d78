//! Every entry of every registry, with every set of example parameters, as a path that packets can be
//! played through.

use super::examples;
use crate::{Entry, links, queues, rates};
use narrows_units::ParamSpec;
use serde_json::{Map, Value, json};

/// One path to play packets through.
#[derive(Clone, Debug)]
pub struct Case {
    /// Its claim.
    pub name: String,
    /// The elements of the path, named `forward.0` and so on as in cells.
    pub forward: Value,
    /// A change of the entry under test, at [`CHANGE_NS`].
    pub timeline: Value,
}

/// When the change of a case is made.
pub const CHANGE_NS: u64 = 400_000_123;

/// All cases: each link element before a bottleneck, each queue behind a constant rate, each rate with a drop-tail
/// queue; each is changed to the next set of examples halfway.
pub fn cases() -> Vec<Case> {
    let constant = json!({"kind": "constant", "rate": 10_000_000});
    let droptail = json!({"kind": "droptail", "bytes": 60_000});
    let bottleneck = |rate: &Value, queue: &Value| json!({"name": "forward.0", "kind": "bottleneck", "rate": rate, "queue": queue});
    let delay = json!({"name": "forward.1", "kind": "delay", "delay": 3_000_000});
    let mut cases = Vec::new();
    for entry in links::ALL {
        let mut behind = bottleneck(&constant, &droptail);
        behind["name"] = json!("forward.1");
        add(&mut cases, entry, |set| {
            let mut tried = describe_entry(entry, set);
            tried["name"] = json!("forward.0");
            (json!([tried, behind]), Value::Object(set.clone()))
        });
    }
    for entry in queues::ALL {
        add(&mut cases, entry, |set| {
            let queue = describe_entry(entry, set);
            let change = json!({"queue": set});
            (json!([bottleneck(&constant, &queue), delay]), change)
        });
    }
    for entry in rates::ALL {
        add(&mut cases, entry, |set| {
            let rate = describe_entry(entry, set);
            let change = json!({"rate": rate});
            (json!([bottleneck(&rate, &droptail), delay]), change)
        });
    }
    cases
}

/// The cases of one entry; `describe` turns a set of parameters into a path, and into the values that a timeline sets
/// for it.
fn add(
    cases: &mut Vec<Case>,
    entry: &Entry,
    describe: impl Fn(&Map<String, Value>) -> (Value, Value),
) {
    let sets = examples(entry);
    for (index, set) in sets.iter().enumerate() {
        // Parameters that the next set does not mention return to their defaults, or are absent.
        let default = |key: &String| {
            let spec = entry.params.iter().find(|spec| spec.name == key);
            let value = spec.and_then(ParamSpec::default_value);
            value.map_or(Value::Null, |value| value.to_json())
        };
        let mut next: Map<String, Value> =
            set.keys().map(|key| (key.clone(), default(key))).collect();
        next.extend(sets[(index + 1) % sets.len()].clone());
        let change = describe(&next).1;
        cases.push(Case {
            name: format!("{} {}", entry.name, json!(set)),
            forward: describe(set).0,
            timeline: json!([{"at_ns": CHANGE_NS, "element": "forward.0", "set": change}]),
        });
    }
}

/// An entry with its parameters, as JSON.
fn describe_entry(entry: &Entry, set: &Map<String, Value>) -> Value {
    let mut json = set.clone();
    json.insert("kind".to_owned(), json!(entry.name));
    Value::Object(json)
}
