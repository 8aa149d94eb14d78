//! Programs whose agent is killed, and what reaches a program.

use super::{SINK, SOURCE, Trial, blameless, is_there, program};
use crate::common::{Folder, can_emulate, cell, emulate, eventually, my_turn, signal};
use serde_json::json;
use std::path::Path;

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
