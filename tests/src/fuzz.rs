//! What fuzzers call besides the trials of `narrows_net::testing::fuzz`: each function takes any
//! bytes and panics when the code under test breaks its promise. Ordinary tests call them too.

use bytes::Bytes;
use narrows_cell::Cell;
use narrows_net::testing::{Dice, TestPacket, example_files};
use narrows_record::Steps;
use narrows_record::read::{read_bins, read_delays, read_queues, read_states};
use narrows_transport::{Body, wire};
use serde_json::{Value, json};

/// A refusal is a sentence that fits into a line.
fn check_sentence(text: &str) {
    assert!(!text.is_empty() && !text.contains('\n'), "{text:?}");
}

/// A cell with something of everything.
fn rich_cell() -> Value {
    let bottleneck = |name: &str| {
        json!({"name": name, "kind": "bottleneck", "rate": {"kind": "square", "low": 1_000_000,
               "high": 9_000_000, "period": 300_000_000, "duty": 0.5},
               "queue": {"kind": "droptail", "bytes": 30_000, "packets": null}, "overhead": 38, "atm": false})
    };
    json!({
        "format": "narrows/cell/1", "id": "fuzz", "scheme": "reno", "run": 1, "where": "simulate",
        "seed": 1, "duration_ns": 10_000_000_000_u64, "record": "packets", "bin_ns": 100_000_000,
        "sample_ns": 10_000_000,
        "network": {"kind": "graph",
            "hosts": [{"name": "a", "settings": {}}, {"name": "b"}], "routers": ["r"],
            "links": [
                {"name": "a-r", "from": "a", "to": "r", "elements": [
                    {"name": "a-r.gate", "kind": "gate", "open": true}, bottleneck("a-r.1"),
                    {"name": "a-r.2", "kind": "jitter", "law": "truncated", "spread": 5_000_000}]},
                {"name": "r-b", "from": "r", "to": "b", "elements": [
                    {"name": "r-b.0", "kind": "bottleneck",
                     "rate": {"kind": "trace", "file": {"name": "x.csv", "sha256": "rates"}},
                     "queue": {"kind": "unlimited"}},
                    {"name": "r-b.1", "kind": "gilbert", "p": 0.1, "r": 0.5}]},
                {"name": "b-a", "from": "b", "to": "a", "elements": [
                    {"name": "b-a.0", "kind": "delaysteps",
                     "steps": [[0, 20_000_000], [1_000_000_000, 40_000_000]]},
                    {"name": "b-a.1", "kind": "losslist", "packets": [3, 5, 9]}]}],
            "routes": [{"from": "a", "to": "b", "links": ["a-r", "r-b"]},
                       {"from": "b", "to": "a", "links": ["b-a"]}]},
        "timeline": [
            {"at_ns": 2_000_000_000_u64, "element": "a-r.gate", "set": {"open": false}},
            {"at_ns": 3_000_000_000_u64, "element": "a-r.1",
             "set": {"rate": {"kind": "constant", "rate": 600_000}, "queue": {"bytes": 9_000}}}],
        "flows": [{"flow": 1, "scheme": "reno", "params": {}, "from": "a", "to": "b",
                   "direction": "forward", "start_ns": 0, "stop_ns": 9_000_000_000_u64,
                   "extra_rtt_ns": 0, "traffic": {"kind": "bulk"}, "connections": 1, "dscp": 0,
                   "background": false}],
        "transport": {}
    })
}

/// Puts something else in the place of one value somewhere inside `json`.
fn damage(json: &mut Value, dice: &mut Dice) {
    let children = match &*json {
        Value::Array(list) => list.len(),
        Value::Object(object) => object.len(),
        _ => 0,
    };
    // Deeper in three of four cases.
    if children > 0 && dice.percent(75) {
        let index = dice.below(children as u64) as usize;
        let child = match json {
            Value::Array(list) => list.get_mut(index),
            Value::Object(object) => object.values_mut().nth(index),
            _ => None,
        };
        if let Some(child) = child {
            damage(child, dice);
        }
        return;
    }
    let number = dice.below(1 << 16);
    *json = match dice.below(12) {
        0 => Value::Null,
        1 => json!(u64::MAX),
        2 => json!(0),
        3 => json!(-1),
        4 => json!(number),
        5 => json!(number << 40),
        6 => json!(1e308),
        7 => json!(0.5),
        8 => json!([]),
        9 => json!({}),
        10 => json!(["a", "b", "a-r", "constant", "delay"][number as usize % 5]),
        _ => json!([[0, number], [number, 0]]),
    };
}

/// The text of a cell: refused in one sentence, or a network that can be built. Odd bytes at the
/// start mean the text itself, even ones changes of a cell with something of everything.
///
/// # Panics
/// When neither is the case.
pub fn cells(data: &[u8]) {
    let Some((first, rest)) = data.split_first() else {
        return;
    };
    let text = if first % 2 == 1 {
        String::from_utf8_lossy(rest).into_owned()
    } else {
        let mut cell = rich_cell();
        let mut dice = Dice::bytes(rest);
        for _ in 0..=(first / 2 % 4) {
            damage(&mut cell, &mut dice);
        }
        cell.to_string()
    };
    match Cell::parse_with(&text, |_| Ok(example_files())) {
        Err(error) => check_sentence(&error.to_string()),
        Ok(cell) => match cell.network::<TestPacket>() {
            Err(error) => check_sentence(&error.to_string()),
            Ok(network) => {
                // Figures of the record that are taken from any network.
                for stage in network.stages() {
                    if let Some(server) = stage.element.server() {
                        let _ = server.capacity(narrows_units::Time::ZERO, cell.duration);
                        let _ = server.rate(cell.duration);
                    }
                    let _ = stage.element.propagation();
                }
            }
        },
    }
}

/// A datagram of our transport: refused, or what is read can be written and read again.
///
/// # Panics
/// When neither is the case.
pub fn messages(data: &[u8]) {
    let mut body = Body::default();
    let header = match wire::decode(data, &mut body) {
        Err(error) => return check_sentence(&error.to_string()),
        Ok(header) => header,
    };
    let mut written = Vec::new();
    wire::encode(1, &header, &body, &mut written);
    let mut again = Body::default();
    let read = wire::decode(&written, &mut again).expect("what was written can be read");
    assert_eq!((read, again), (header, body));
}

/// Files of records and traces: refused in one sentence or read. The last bytes change a good file.
///
/// # Panics
/// When neither is the case.
pub fn records(data: &[u8]) {
    let any = Bytes::copy_from_slice(data);
    let say = |result: Result<usize, narrows_record::RecordError>| {
        if let Err(error) = result {
            check_sentence(&error.to_string());
        }
    };
    say(read_bins(any.clone()).map(|rows| rows.len()));
    say(read_delays(any.clone()).map(|rows| rows.len()));
    say(read_queues(any.clone()).map(|rows| rows.len()));
    say(read_states(any).map(|rows| rows.len()));
    let steps = Steps {
        value: "rate_bps",
        times_ns: (0..100).collect(),
        values: (0..100).map(|value| value * 1_000).collect(),
    };
    let mut file = steps.write(Vec::new()).expect("memory takes everything");
    for change in data.chunks_exact(3) {
        let at = usize::from(u16::from_be_bytes([change[0], change[1]])) % file.len();
        file[at] ^= change[2];
    }
    say(Steps::read(file.into()).map(|steps| steps.values.len()));
}
