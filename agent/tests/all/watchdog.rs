//! Simulations that would take unlimited memory or time: refused, or ended in real time, without leftovers.

use crate::common::{Folder, MS, cell, eventually, failure, finish, is_alive, run_to_end, signal};
use serde_json::{Value, json};
use std::process::{Child, Command, Stdio};

/// `narrows-agent simulate` for `cell` with the record in `folder/out`.
fn simulate(folder: &Folder, cell: &Value) -> Command {
    let file = folder.path().join("cell.json");
    std::fs::write(&file, cell.to_string()).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_narrows-agent"));
    command.arg("simulate").arg("--cell").arg(file);
    command.arg("--out").arg(folder.path().join("out"));
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    command.stderr(Stdio::piped());
    command
}

/// A flow without a link.
fn endless(scheme: &str) -> Value {
    let mut cell = cell(&[scheme], 10_000);
    cell["network"]["forward"].as_array_mut().unwrap().remove(0);
    cell
}

/// A window of 8000 small packets and a round trip of a microsecond: a step of 100 ms, after which simulations check
/// their limits, is 800 million packets.
fn hardly_moving() -> Value {
    let mut cell = endless("reno");
    cell["record"] = "bins".into();
    cell["transport"] = json!({"window": 1_000_000, "packet_size": 128, "initial_window": 1000});
    cell["network"]["forward"][0]["delay"] = 500.into();
    cell["network"]["backward"][0]["delay"] = 500.into();
    cell
}

/// A link of 10 Tbit/s: slow start doubles the data in flight every 20 ms, up to a million times.
fn greedy() -> Value {
    let mut cell = cell(&["reno"], 10_000);
    cell["network"]["forward"][0]["rate"]["rate"] = 10_000_000_000_000u64.into();
    cell["network"]["forward"][0]["queue"] = json!({"kind": "unlimited"});
    cell["network"]["forward"][1]["delay"] = (10 * MS).into();
    cell["transport"] = json!({"initial_window": 1000});
    cell
}

fn wait_until_running(agent: &Child, folder: &Folder) {
    let partial = folder.path().join(".out.partial");
    eventually("the simulation has begun", || partial.exists());
    assert!(is_alive(agent.id()));
}

#[test]
fn flows_that_nothing_bounds_are_refused() {
    for scheme in ["reno", "bbr1", "copa", "pcc-allegro", "vegas"] {
        let folder = Folder::new(&format!("endless-{scheme}"));
        let output = run_to_end(&mut simulate(&folder, &endless(scheme)));
        let says = failure(&output, 3, "input");
        assert!(says.starts_with("nothing bounds flow 1"), "{says}");
        assert!(says.contains("add a link with a rate"), "{says}");
        assert_eq!(folder.names(), ["cell.json"]);
    }
}

#[test]
fn a_limit_of_memory_ends_a_run() {
    let folder = Folder::new("greedy");
    let mut command = simulate(&folder, &greedy());
    command.arg("--memory").arg("150000000");
    let says = failure(&run_to_end(&mut command), 1, "memory");
    assert!(says.contains("more memory than the 150 MB"), "{says}");
    assert_eq!(folder.names(), ["cell.json"]);
}

#[test]
fn signals_are_obeyed_although_simulated_time_hardly_moves() {
    for (name, code) in [("-INT", 130), ("-TERM", 143), ("-HUP", 143)] {
        let folder = Folder::new(&format!("moving{name}"));
        let agent = simulate(&folder, &hardly_moving()).spawn().unwrap();
        wait_until_running(&agent, &folder);
        signal(agent.id(), name);
        failure(&finish(agent), code, "interrupted");
        assert_eq!(folder.names(), ["cell.json"], "after {name}");
    }
}

#[test]
fn the_end_of_standard_input_ends_a_simulation() {
    let folder = Folder::new("orphan-simulation");
    let mut command = simulate(&folder, &hardly_moving());
    command.arg("--watch-stdin").stdin(Stdio::piped());
    let mut agent = command.spawn().unwrap();
    wait_until_running(&agent, &folder);
    drop(agent.stdin.take());
    failure(&finish(agent), 143, "interrupted");
    assert_eq!(folder.names(), ["cell.json"]);
}
