//! Programs whose agent is killed, and signals that reach a program.

use super::{SINK, SOURCE, Trial, blameless, is_there, program};
use crate::common::{
    Folder, can_emulate, cell, descendants, emulate, eventually, is_alive, my_turn, signal,
};
use serde_json::json;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Rounds of the test of random kills; `make check` asks for more.
const KILLS: &str = "NARROWS_KILLS";
const FEW_KILLS: u64 = 6;

#[test]
fn no_process_survives_kills_at_random() {
    let _turn = my_turn();
    if !can_emulate() {
        return;
    }
    let rounds = std::env::var(KILLS).map_or(FEW_KILLS, |text| text.parse().unwrap());
    // A daemon: its parent has ended, it has its own session and ignores all signals that can be ignored.
    let daemon = format!(
        "import os, signal, time\nif os.fork() == 0:\n os.setsid()\n if os.fork(): os._exit(0)\n \
         for number in (1, 2, 15): signal.signal(number, signal.SIG_IGN)\n while True: time.sleep(9)\n{SOURCE}"
    );
    // The golden ratio spreads delays and victims evenly, and identically in each run of the test.
    let spread = |round: u64, maximum: u64| round.wrapping_mul(0x9E37_79B9_7F4A_7C15) % maximum;
    for round in 0..rounds {
        let folder = Folder::new("random");
        let mark = format!("mark-{}-random-{round}", std::process::id());
        let mut cell = cell(&["test:plain"], 20_000);
        cell["flows"][0]["program"] = program(SINK, &daemon, &mark);
        let mut agent = emulate(&folder, &cell)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        eventually("the program runs", || is_there(&mark));
        std::thread::sleep(Duration::from_millis(spread(round, 601)));
        let all = descendants(agent.id());
        let victims: Vec<u32> = match round % 4 {
            0 => vec![agent.id()],
            // All our processes, at once.
            1 => std::iter::once(agent.id())
                .chain(all.iter().copied().filter(|&pid| !has_mark(pid, &mark)))
                .collect(),
            // Any process, the agent's or the program's.
            _ => all
                .get(spread(round + 1, all.len().max(1) as u64) as usize)
                .copied()
                .into_iter()
                .collect(),
        };
        // Some may have ended with the previous ones.
        let listed = victims.iter().map(u32::to_string);
        let mut kill = Command::new("kill");
        let _ = kill
            .arg("-KILL")
            .args(listed)
            .stderr(Stdio::null())
            .status();
        std::thread::sleep(Duration::from_millis(30));
        if agent.try_wait().unwrap().is_none() {
            signal(agent.id(), "-TERM");
        }
        agent.wait().unwrap();
        eventually("the program is gone", || !is_there(&mark));
        eventually("its helpers are gone", || {
            !all.iter().any(|&pid| is_alive(pid))
        });
    }
}

/// True if a process has `mark` in its command line.
fn has_mark(pid: u32, mark: &str) -> bool {
    let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&line).contains(mark)
}

#[test]
fn nothing_of_a_program_survives_an_agent_that_is_killed() {
    let _turn = my_turn();
    if !can_emulate() {
        return;
    }
    for round in 0..4 {
        let folder = Folder::new("killed");
        let mark = format!("mark-{}-killed-{round}", std::process::id());
        let mut cell = cell(&["test:plain"], 20_000);
        let child =
            format!("import os, signal\nif os.fork() == 0: os.setsid(); signal.pause()\n{SOURCE}");
        cell["flows"][0]["program"] = program(SINK, &child, &mark);
        let mut agent = emulate(&folder, &cell).spawn().unwrap();
        eventually("the program runs", || is_there(&mark));
        std::thread::sleep(std::time::Duration::from_millis(150 * round));
        signal(agent.id(), if round == 3 { "-TERM" } else { "-KILL" });
        agent.wait().unwrap();
        eventually("the program is gone", || !is_there(&mark));
    }
}

#[test]
fn placeholders_input_and_variables_reach_the_program() {
    let _turn = my_turn();
    if !can_emulate() {
        return;
    }
    let connector = "
import os, socket, sys
peer = socket.create_connection((sys.argv[1], int(sys.argv[2])))
open(os.environ['OUT'] + '/seen', 'w').write(' '.join([os.environ['WHAT'], os.getcwd(), sys.argv[3]]))
print('started', flush=True)
while True: peer.sendall(sys.stdin.buffer.read(1 << 16))
";
    let trial = Trial::run("words", SINK, connector, |cell| {
        let program = &mut cell["flows"][0]["program"];
        program["connector"]["env"] = json!({"OUT": "{log}", "WHAT": "{variant} {duration}"});
        program["connector"]["stdin"] = "endless".into();
        program["listener"]["ready"] = json!({"line": "here I am"});
        let listener = SINK.replace(
            "peer = server",
            "print('now here I am', flush=True)\npeer = server",
        );
        program["listener"]["command"][2] = listener.into();
    });
    let record = trial.record();
    blameless(&record);
    let logs = trial.folder.path().join("out/logs");
    let seen = std::fs::read_to_string(logs.join("flow-1-connector/seen")).unwrap();
    assert!(seen.starts_with("plain 2 "), "{seen}");
    assert!(
        seen.ends_with(&trial.mark) && seen.contains("/logs/flow-1-connector "),
        "{seen}"
    );
    let said = std::fs::read_to_string(logs.join("flow-1-connector.out")).unwrap();
    assert_eq!(said, "started\n");
    assert!(!Path::new(&logs).join("flow-1-connector.err").exists());
}
