//! Congestion controls that are loaded into the kernel of a side.

use crate::common::{Folder, MS, can_load, my_turn};
use crate::side::{Side, cell, travelled};
use serde_json::{Value, json};

#[test]
fn a_congestion_control_is_loaded_where_the_data_come_from() {
    let _turn = my_turn();
    if !can_load() {
        return;
    }
    let folder = Folder::new("side-bpf");
    let mut cell = cell(&["bpf:htcp"], 500);
    cell["flows"][0]["traffic"] = json!({"kind": "transfer", "bytes": 500_000});
    let mut zero = Side::here(&folder, 0, &cell, &json!({"bind": "127.0.0.1:0"}));
    let to = json!({"dial": zero.address()});
    let mut one = Side::start(&travelled(&folder), &folder, 1, &cell, &to);
    for side in [&mut zero, &mut one] {
        side.until("open");
        side.until("prepared");
    }
    one.order(&json!({"order": "start", "in_ns": 200 * MS}));
    let start = one.until("starting");
    zero.order(&json!({"order": "start", "at_ns": start["at_ns"]}));
    for side in [&mut zero, &mut one] {
        side.end_well();
    }
    let document = zero.json("side.json");
    let sender = &document["ends"][0];
    let name = &sender["loaded"]["identity"]["kernel_name"];
    assert!(name.as_str().unwrap().starts_with("nw_"), "{sender}");
    assert_eq!(&sender["outcome"]["read_back"], name);
    assert_eq!(document["missed_calls"], json!({}));
    let receiver = one.json("side.json")["ends"][0].clone();
    assert_eq!(receiver["outcome"]["problem"], Value::Null, "{receiver}");
    assert_eq!(receiver["outcome"]["ended"].as_array().unwrap().len(), 1);
    assert!(receiver.get("loaded").is_none());
}
