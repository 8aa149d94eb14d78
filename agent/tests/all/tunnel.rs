//! Both ends of a measuring tunnel on this machine, over the loopback.

use crate::common::tunnel::{AGENT, End, Shift, join, play};
use crate::common::{
    Folder, can_emulate, descendants, eventually, failure, is_alive, last_event, my_turn, signal,
};
use serde_json::{Value, json};
use std::net::UdpSocket;
use std::process::Command;

const BYTES: usize = 3_000_000;

#[test]
#[ignore = "a program for the other tests"]
fn inside() {
    play();
}

/// Both ends read the same oscillator, so the true relation of their clocks is the shift configured
/// in `shifted`, the document of the end that is not the reference.
fn the_bound_holds_the_truth(joined: &Value, shifted: &Value) {
    let shift = Shift::from_document(shifted);
    for place in ["start", "end"] {
        let clock = &joined["clock"][place];
        let truth = shift.offset_ns(clock["at_ns"].as_i64().unwrap());
        let error = (clock["offset_ns"].as_i64().unwrap() - truth).unsigned_abs();
        // Two nanoseconds of rounding.
        let bound = clock["error_ns"].as_u64().unwrap() + 2;
        assert!(error <= bound, "off by {error}: {joined:#}");
    }
}

#[test]
fn tcp_runs_through_and_both_logs_agree_although_strangers_shout() {
    let _turn = my_turn();
    if !can_emulate() {
        return;
    }
    let folder = Folder::new("tunnel-tcp");
    let shift = json!({"offset_ns": 2_500_000_000i64, "drift_ppb": 50_000});
    let mut listener = End::start(
        &folder,
        "listener",
        &format!("receive {BYTES}"),
        &json!({"bind": "127.0.0.1:0", "clock": shift}),
    );
    let address = listener.address();
    let stranger = UdpSocket::bind("127.0.0.1:0").unwrap();
    let shout = |count: usize| {
        for index in 0..count {
            // All kinds, sessions and sizes.
            let bytes: Vec<u8> = (0..index % 1400)
                .map(|at| (index * 31 + at * at) as u8)
                .collect();
            let _ = stranger.send_to(&bytes, &address);
        }
    };
    shout(500);
    let mut dialer = End::start(
        &folder,
        "dialer",
        &format!("send {BYTES}"),
        &json!({"dial": address}),
    );
    dialer.until("open").expect("the tunnel opens");
    shout(2_000);
    let (there, here) = (dialer.end(), listener.end());
    for (end, reason) in [(&there, "program_ended"), (&here, "other_end")] {
        assert_eq!(end["reason"], reason, "{end:#}");
        assert_eq!(end["sent"]["unsent"], 0, "{end:#}");
        assert_eq!(
            (&end["lost_here"]["ring"], &end["arrived"]["undelivered"]),
            (&json!(0), &json!(0))
        );
    }
    let log = std::fs::read_to_string(dialer.folder.join("program.log")).unwrap();
    assert_eq!(there["program"]["exit_code"], 0, "{log}");
    // The loopback carries at least Ethernet packets.
    assert_eq!(
        (&there["path_bytes"], &there["inner_mtu"]),
        (&json!(1500), &json!(1444))
    );
    let refused: u64 = here["arrived"]["refused"]
        .as_object()
        .unwrap()
        .values()
        .map(|count| count.as_u64().unwrap())
        .sum();
    assert!(refused > 100, "{here:#}");
    assert_eq!(here["arrived"]["sessions"], 1);

    let joined = join(&dialer.folder, &listener.folder);
    assert_eq!(joined["there"]["sent"], there["sent"]["packets"]);
    assert_eq!(joined["back"]["sent"], here["sent"]["packets"]);
    assert_eq!(joined["there"]["arrived"], here["arrived"]["packets"]);
    assert_eq!(joined["back"]["arrived"], there["arrived"]["packets"]);
    for direction in [&joined["there"], &joined["back"]] {
        assert_eq!(
            (
                &direction["unknown"],
                &direction["again"],
                &direction["contradicting"]
            ),
            (&json!(0), &json!(0), &json!(0))
        );
        let minimum = direction["delay_ns"]["min"].as_i64().unwrap();
        // Never negative, except for the microsecond precision of stamps.
        assert!(minimum >= -1_002, "{joined:#}");
    }
    let payload = joined["there"]["arrived_bytes"].as_u64().unwrap();
    assert!(payload > BYTES as u64);
    the_bound_holds_the_truth(&joined, &here);
    // With the reference exchanged all is the same, by the other clock.
    let turned = join(&listener.folder, &dialer.folder);
    assert_eq!(turned["back"]["arrived"], joined["there"]["arrived"]);
    assert_eq!(turned["there"]["lost"], joined["back"]["lost"]);
}

#[test]
fn failures_are_one_sentence() {
    let _turn = my_turn();
    if !can_emulate() {
        return;
    }
    let folder = Folder::new("tunnel-failures");
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let to = silent.local_addr().unwrap().to_string();
    let patience = 300_000_000u64;
    let dialer = End::start(
        &folder,
        "nobody",
        "wait",
        &json!({"dial": to, "patience_ns": patience}),
    );
    let dialer_folder = dialer.folder.clone();
    let message = failure(&dialer.output(), 4, "unavailable");
    assert!(
        message.contains(&to) && message.contains("firewalls"),
        "{message}"
    );
    assert!(!dialer_folder.exists(), "the same plan can be tried again");

    // The kernel reports destinations to which sending is not allowed.
    let broadcast = json!({"dial": "255.255.255.255:7000", "patience_ns": patience});
    let dialer = End::start(&folder, "refused", "wait", &broadcast);
    let message = failure(&dialer.output(), 4, "unavailable");
    assert!(
        message.contains("the kernel reported for those that were sent: Permission denied"),
        "{message}"
    );

    // Another secret.
    let mut listener = End::start(
        &folder,
        "listener",
        "wait",
        &json!({"bind": "127.0.0.1:0", "patience_ns": 3_000_000_000u64}),
    );
    let address = listener.address();
    let wrong = "f".repeat(64);
    let dialer = End::start(
        &folder,
        "wrong",
        "wait",
        &json!({"dial": address, "secret": wrong, "patience_ns": patience}),
    );
    failure(&dialer.output(), 4, "unavailable");
    let message = failure(&listener.output(), 4, "unavailable");
    assert!(
        message.contains("without this tunnel's secret"),
        "{message}"
    );

    let taken = json!({"bind": to});
    let message = failure(
        &End::start(&folder, "taken", "wait", &taken).output(),
        4,
        "unavailable",
    );
    assert!(message.contains(&to), "{message}");
    // A clock before its minimum or beyond all times, which must not affect waiting.
    let wild = [
        (i64::MIN, 1_000_000),
        (i64::MAX, 0),
        (0, i64::MIN),
        (-86_400_000_000_001, 0),
    ];
    for (index, (offset_ns, drift_ppb)) in wild.into_iter().enumerate() {
        let clock = json!({"offset_ns": offset_ns, "drift_ppb": drift_ppb});
        let end = json!({"bind": "127.0.0.1:0", "patience_ns": patience, "clock": clock});
        let end = End::start(&folder, &format!("wild{index}"), "wait", &end);
        let message = failure(&end.output(), 3, "input");
        assert!(message.contains("must be from -"), "{message}");
    }
    let existing = json!({"bind": "127.0.0.1:0", "folder": folder.path()});
    failure(
        &End::start(&folder, "existing", "wait", &existing).output(),
        3,
        "input",
    );
    let output = crate::common::run_to_end(
        Command::new(AGENT)
            .arg("tunnel-join")
            .args([folder.path(), folder.path()]),
    );
    assert!(failure(&output, 3, "input").contains("tunnel.json"));
    assert_eq!(last_event(&output)["event"], "error");
}

#[test]
fn a_killed_end_leaves_no_process_and_logs_that_can_be_read() {
    let _turn = my_turn();
    if !can_emulate() {
        return;
    }
    let folder = Folder::new("tunnel-killed");
    let silence = json!(1_000_000_000u64);
    let mut listener = End::start(
        &folder,
        "listener",
        "wait",
        &json!({"bind": "127.0.0.1:0", "silence_ns": silence}),
    );
    let address = listener.address();
    let mut dialer = End::start(
        &folder,
        "dialer",
        "wait",
        &json!({"dial": address, "silence_ns": silence}),
    );
    dialer.until("open").expect("the tunnel opens");
    let mut family = Vec::new();
    eventually("the guard and the program run", || {
        family = descendants(dialer.child.id());
        family.len() == 2
    });
    // Its logs are written every second, and slow flows do not fill a block in that time.
    let written = |name| std::fs::metadata(dialer.folder.join(name)).map_or(0, |file| file.len());
    eventually("the logs are written", || {
        written("sent.ntl.part") > 0 && written("arrived.ntl.part") > 0
    });
    signal(dialer.child.id(), "-KILL");
    eventually("all are gone", || family.iter().all(|&pid| !is_alive(pid)));
    // The other end notices the silence and ends regularly.
    let end = listener.end();
    assert_eq!(end["reason"], "silence");
    assert!(listener.folder.join("sent.ntl").exists());
    assert!(dialer.folder.join("sent.ntl.part").exists());
    assert!(!dialer.folder.join("tunnel.json").exists());
    // Its partial files are read on request.
    let folders = [&listener.folder, &dialer.folder];
    let refused = crate::common::run_to_end(Command::new(AGENT).arg("tunnel-join").args(folders));
    assert!(
        failure(&refused, 3, "input").contains("the agent was killed, or still runs; --lenient")
    );
    let lenient = Command::new(AGENT)
        .args(["tunnel-join", "--lenient"])
        .args(folders)
        .output()
        .unwrap();
    let joined: Value = serde_json::from_slice(&lenient.stdout).unwrap();
    assert!(
        joined["remarks"][0]
            .as_str()
            .unwrap()
            .contains("its agent was killed"),
        "{joined:#}"
    );
    assert!(!joined["clock"]["start"].is_null(), "{joined:#}");
}
