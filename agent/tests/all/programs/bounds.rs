//! Limits of programs: their time and memory, their processes, and the flows that one listener serves.

use super::{SINK, SOURCE, Trial, blameless, described, reason};
use crate::common::{can_emulate, my_turn};
use narrows_record::Severity;

#[test]
fn programs_that_run_for_too_long_or_take_too_much_memory_are_ended() {
    let _turn = my_turn();
    if !can_emulate() {
        return;
    }
    let record = Trial::run("long", SINK, SOURCE, |cell| {
        cell["flows"][0]["program"]["limits"]["time_ns"] = 700_000_000.into();
    })
    .record();
    let (severity, text) = reason(&record, "program_overran");
    assert_eq!(severity, Severity::Invalid);
    assert!(
        text.ends_with("was killed after 0.700 s, its limit of time."),
        "{text}"
    );
    let crashed = record.run.reasons.iter();
    assert!(!crashed.into_iter().any(|one| one.code == "program_crashed"));
    // A program within its limits is not affected, and the record says what enforced them.
    let record = Trial::run("within", SINK, SOURCE, |cell| {
        let limits = &mut cell["flows"][0]["program"]["limits"];
        limits["time_ns"] = 60_000_000_000_u64.into();
        limits["memory_bytes"] = 500_000_000.into();
    })
    .record();
    blameless(&record);
    let by = described(&record)["connector"]["memory_by"]
        .as_str()
        .unwrap();
    assert!(["cgroup", "rlimit"].contains(&by), "{by}");
    let greedy = format!("data = bytes(600_000_000)\n{SOURCE}");
    let record = Trial::run("greedy", SINK, &greedy, |cell| {
        cell["flows"][0]["program"]["limits"]["memory_bytes"] = 300_000_000.into();
    })
    .record();
    let known = ["program_memory", "program_exited"];
    let told = record
        .run
        .reasons
        .iter()
        .find(|one| known.contains(&&*one.code));
    let text = &told
        .unwrap_or_else(|| panic!("{:?}", record.run.reasons))
        .text;
    assert!(
        text.contains("memory") || text.contains("MemoryError"),
        "{text}"
    );
}

#[test]
fn one_listener_serves_several_flows() {
    let _turn = my_turn();
    if !can_emulate() {
        return;
    }
    let server = "
import socket, sys, threading
server = socket.create_server(('', int(sys.argv[1])))
def serve(peer):
    while peer.recv(1 << 16): pass
while True: threading.Thread(target=serve, args=(server.accept()[0],), daemon=True).start()
";
    let trial = Trial::run("shared", server, SOURCE, |cell| {
        let program = &mut cell["flows"][0]["program"];
        program["shared"] = true.into();
        let mut second = cell["flows"][0].clone();
        second["flow"] = 2.into();
        second["start_ns"] = 300_000_000.into();
        cell["flows"].as_array_mut().unwrap().push(second);
    });
    let record = trial.record();
    blameless(&record);
    let names: Vec<&str> = record.run.hosts.iter().map(|host| &*host.name).collect();
    assert_eq!(
        names[2..],
        ["flow-1-sender", "flow-1-receiver", "flow-2-sender"]
    );
    let of = |flow: usize| &record.run.flows[flow].other["program"];
    assert_eq!(
        (&of(0)["listener_of"], &of(1)["listener_of"]),
        (&1.into(), &1.into())
    );
    assert!(of(0)["listener"].is_object() && of(1)["listener"].is_null());
    for flow in 0..2 {
        let traffic = &of(flow)["traffic"];
        assert!(
            traffic["sender"]["payload_bytes"].as_u64().unwrap() > 50_000,
            "{traffic}"
        );
        assert!(
            traffic["receiver"]["packets"].as_u64().unwrap() > 20,
            "{traffic}"
        );
        assert_eq!(traffic["conversations"][0]["receiver_port"], 20_001);
        assert_eq!(traffic["stray"], 0);
    }
}

#[test]
fn readiness_may_be_a_port_of_either_protocol() {
    let _turn = my_turn();
    if !can_emulate() {
        return;
    }
    let udp = "
import socket, sys, time
peer = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
peer.bind(('', int(sys.argv[1])))
while True: peer.recv(2000)
";
    let flood = "
import socket, sys, time
peer = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
while True:
    peer.sendto(bytes(1000), (sys.argv[1], int(sys.argv[2])))
    time.sleep(0.01)
";
    let record = Trial::run("either", udp, flood, |cell| {
        cell["flows"][0]["program"]["listener"]["ready"] = serde_json::json!({"port": null});
    })
    .record();
    blameless(&record);
}
