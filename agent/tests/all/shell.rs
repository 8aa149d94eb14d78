//! The agent's `shell` alone: exit codes, plans, and cleanup after kills. Real programs behind real
//! paths are tested from Python.

use crate::common::{
    Folder, can_emulate, descendants, eventually, is_alive, my_turn, run_to_end, signal, wait,
};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

fn plan() -> Value {
    let delay = |name: &str| json!({"name": name, "kind": "delay", "delay": 5_000_000});
    json!({"format": "narrows/shell/1", "seed": 1,
        "network": {"kind": "dumbbell",
            "forward": [delay("forward.0")], "backward": [delay("backward.0")]}})
}

/// `narrows-agent shell` with `plan` in a separate folder.
fn shell(folder: &Folder, plan: &Value, program: &[&str]) -> (Command, PathBuf) {
    let place = folder.path().join("plan");
    std::fs::create_dir_all(&place).unwrap();
    let file = place.join("plan.json");
    std::fs::write(&file, plan.to_string()).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_narrows-agent"));
    command
        .arg("shell")
        .arg("--plan")
        .arg(file)
        .arg("--consume");
    command.arg("--").args(program).stdin(Stdio::null());
    (command, place)
}

fn output(folder: &Folder, plan: &Value, program: &[&str]) -> (Output, PathBuf) {
    let (mut command, place) = shell(folder, plan, program);
    (run_to_end(&mut command), place)
}

#[test]
fn the_exit_code_is_the_programs_and_the_plan_is_consumed() {
    let _turn = my_turn();
    if !can_emulate() {
        return;
    }
    let folder = Folder::new("shell-exit");
    let (done, place) = output(&folder, &plan(), &["sh", "-c", "echo out; exit 9"]);
    assert_eq!(done.status.code(), Some(9), "{done:?}");
    assert_eq!(done.stdout, b"out\n");
    let told = String::from_utf8_lossy(&done.stderr);
    assert!(told.starts_with("narrows shell: "), "{told}");
    assert!(!place.exists());
    let (done, _) = output(&folder, &plan(), &["no-such-program"]);
    assert_eq!(done.status.code(), Some(127), "{done:?}");
    let (done, _) = output(&folder, &plan(), &["sh", "-c", "kill -KILL $$"]);
    assert_eq!(done.status.code(), Some(137), "{done:?}");
}

#[test]
fn plans_that_make_no_sense_are_refused() {
    let _turn = my_turn();
    let folder = Folder::new("shell-plans");
    type Change = fn(&mut Value);
    let cases: [(Change, i32, &str); 6] = [
        (
            |plan| plan["format"] = json!("narrows/cell/1"),
            3,
            "narrows/shell/1",
        ),
        (
            |plan| plan["network"]["kind"] = json!("graph"),
            3,
            "single path",
        ),
        (|plan| plan["sample_ns"] = json!(0), 3, "sample_ns"),
        (
            |plan| plan["network"]["forward"][0]["kind"] = json!("nosuch"),
            3,
            "nosuch",
        ),
        (
            |plan| plan["timeline"] = json!([{"at_ns": 1, "element": "x", "set": {"delay": 1}}]),
            3,
            "'x'",
        ),
        (|plan| plan["congestion"] = json!("nosuch"), 4, "nosuch"),
    ];
    for (change, code, word) in cases {
        let mut plan = plan();
        change(&mut plan);
        let (done, place) = output(&folder, &plan, &["true"]);
        let told = String::from_utf8_lossy(&done.stderr);
        assert_eq!(done.status.code(), Some(code), "{told}");
        assert!(told.contains(word) && told.lines().count() == 1, "{told}");
        assert!(!place.exists());
    }
}

#[test]
fn a_killed_agent_leaves_no_process() {
    let _turn = my_turn();
    if !can_emulate() {
        return;
    }
    let folder = Folder::new("shell-killed");
    let program = ["sh", "-c", "sleep 1000 & setsid sleep 1001 & wait"];
    let (mut command, _) = shell(&folder, &plan(), &program);
    let mut agent = command.spawn().unwrap();
    let mut family = Vec::new();
    eventually("guard, program and its children run", || {
        family = descendants(agent.id());
        family.len() >= 4
    });
    signal(agent.id(), "-KILL");
    wait(&mut agent);
    eventually("all are gone", || !family.iter().any(|&pid| is_alive(pid)));
}
