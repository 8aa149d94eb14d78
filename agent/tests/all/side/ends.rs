//! The ends of sides that are killed, stopped, or receive invalid commands.

use crate::common::{
    Folder, MS, can_emulate, descendants, eventually, failure, is_alive, my_turn, signal,
};
use crate::side::{Side, cell, pair, travelled};
use serde_json::json;
use std::net::UdpSocket;

#[test]
fn a_side_that_is_killed_leaves_nothing_and_the_other_notices() {
    let _turn = my_turn();
    if !can_emulate() {
        return;
    }
    let folder = Folder::new("side-killed");
    let cell = cell(&["reno", "<linux:reno"], 60_000);
    let (mut zero, one) = pair(&folder, &cell, &json!({"silence_ns": 500 * MS}));
    let family = descendants(one.child.id());
    assert_eq!(family.len(), 2, "one endpoint of each flow");
    zero.order(&json!({"order": "start", "in_ns": 100 * MS}));
    zero.until("progress");
    signal(one.child.id(), "-KILL");
    eventually("all are gone", || family.iter().all(|&pid| !is_alive(pid)));
    let message = failure(&zero.output(), 4, "unavailable");
    assert!(
        message.contains("no datagram of the other end has arrived"),
        "{message}"
    );
    // The written part of the logs can be read.
    assert!(one.folder.join("sent.ntl.part").exists() && !one.folder.join("side.json").exists());
    assert!(zero.folder.join("sent.ntl").exists() && !zero.folder.join("side.json").exists());
    assert_eq!(zero.json("tunnel.json")["reason"], "silence");
}

#[test]
fn the_end_of_the_input_ends_both_sides() {
    let _turn = my_turn();
    if !can_emulate() {
        return;
    }
    let folder = Folder::new("side-input");
    let cell = cell(&["cubic"], 60_000);
    let (mut zero, mut one) = pair(&folder, &cell, &json!({}));
    let family: Vec<u32> = [&zero, &one]
        .iter()
        .flat_map(|side| descendants(side.child.id()))
        .collect();
    one.order(&json!({"order": "start", "in_ns": 100 * MS}));
    one.until("starting");
    drop(zero.orders.take());
    failure(&zero.output(), 143, "interrupted");
    let message = failure(&one.output(), 4, "unavailable");
    assert!(
        message.contains("the other end has closed the tunnel"),
        "{message}"
    );
    assert!(family.len() == 2 && family.iter().all(|&pid| !is_alive(pid)));
    assert_eq!(zero.json("tunnel.json")["reason"], "stopped");
}

#[test]
fn orders_and_plans_that_make_no_sense_are_refused() {
    let _turn = my_turn();
    if !can_emulate() {
        return;
    }
    let folder = Folder::new("side-refused");
    let here = json!({"bind": "127.0.0.1:0"});
    let reno = cell(&["reno"], 1_000);
    for (order, says) in [
        (
            json!({"order": "start", "in_ns": 1}),
            "wait for 'prepared' and 'open'",
        ),
        (
            json!({"order": "start"}),
            "one of 'in_ns', 'at_ns' and 'real_ns'",
        ),
        (json!({"order": "sing"}), "sing"),
    ] {
        let mut side = Side::here(&folder, 0, &reno, &here);
        side.until("ready");
        side.order(&order);
        let message = failure(&side.output(), 3, "input");
        assert!(message.contains(says), "{message}");
        std::fs::remove_dir_all(&side.folder).unwrap();
    }
    // Rejected plans leave no files.
    let mut bad = reno.clone();
    bad["flows"][0]["scheme"] = "nonsense".into();
    let message = failure(&Side::here(&folder, 0, &bad, &here).output(), 3, "input");
    assert!(message.contains("'nonsense'"), "{message}");
    let kernel = cell(&["linux:no-such-scheme"], 1_000);
    let message = failure(
        &Side::here(&folder, 0, &kernel, &here).output(),
        4,
        "unavailable",
    );
    assert!(
        message.contains("no congestion control 'no-such-scheme'"),
        "{message}"
    );
    let taken = UdpSocket::bind("127.0.0.1:0").unwrap();
    let taken = json!({"bind": taken.local_addr().unwrap()});
    let message = failure(
        &Side::here(&folder, 0, &reno, &taken).output(),
        4,
        "unavailable",
    );
    assert!(message.contains("no UDP socket"), "{message}");
    let agent = travelled(&folder);
    let loaded = cell(&["bpf:htcp"], 1_000);
    let output = Side::start(&agent, &folder, 0, &loaded, &here).output();
    let message = failure(&output, 4, "unavailable");
    assert!(message.contains("let the other host send"), "{message}");
    std::fs::remove_dir_all(folder.path().join("travelled")).unwrap();
    assert_eq!(folder.names(), Vec::<String>::new());

    // A receiver needs no congestion control.
    let mut one = Side::here(&folder, 1, &kernel, &here);
    one.until("prepared");
}
