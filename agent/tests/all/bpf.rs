//! Congestion controls that the agent loads into the kernel: loaded while a run needs them, and unloaded afterwards,
//! however it ends. If this user may not load any, the refusal is tested.

use crate::common::{
    Folder, MS, can_load, cell, emulate, eventually, failure, is_alive, last_event, my_turn,
    run_to_end, signal, wait, wait_for,
};
use narrows_cell::{keep_file, open_record, sha256};
use narrows_record::read::read_states;
use narrows_record::{FlowSummary, Record, Severity};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// Number of parallel runs that do not overload a machine with two processors: each needs about a fifth of one.
const BESIDE_EACH_OTHER: usize = 4;

fn agent() -> Command {
    Command::new(env!("CARGO_BIN_EXE_narrows-agent"))
}

/// The congestion controls of Narrows that are loaded in the kernel.
fn loaded() -> Vec<String> {
    let path = "/proc/sys/net/ipv4/tcp_available_congestion_control";
    let all = std::fs::read_to_string(path).unwrap();
    let ours = all.split_ascii_whitespace();
    ours.filter(|name| name.starts_with("nw_"))
        .map(str::to_owned)
        .collect()
}

fn finish(folder: &Folder, output: &Output) -> Record {
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(last_event(output)["event"], "done");
    let record = open_record(&folder.path().join("out")).unwrap();
    assert!(
        record.run.checks.iter().all(|check| check.ok),
        "{:?}",
        record.run.checks
    );
    record
}

fn run(folder: &Folder, cell: &Value) -> Record {
    let output = run_to_end(&mut emulate(folder, cell));
    finish(folder, &output)
}

fn goodput(flow: &FlowSummary) -> u64 {
    flow.receiver.goodput_bytes.unwrap()
}

/// Compiles C as described in docs/guide/kernel-schemes.md.
fn compile(folder: &Folder, name: &str, source: &str) -> PathBuf {
    let file = folder.path().join(format!("{name}.bpf.c"));
    let object = folder.path().join(format!("{name}.bpf.o"));
    std::fs::write(&file, source).unwrap();
    let clang = std::env::var("CLANG").unwrap_or_else(|_| "clang".to_owned());
    let done = run_to_end(
        Command::new(clang)
            .args(["-O2", "-g", "-Wall", "-Werror", "-target", "bpf", "-c"])
            .arg(&file)
            .arg("-o")
            .arg(&object),
    );
    assert!(
        done.status.success(),
        "{}",
        String::from_utf8_lossy(&done.stderr)
    );
    object
}

/// The example of the guide.
fn example() -> String {
    let page = include_str!("../../../docs/guide/kernel-schemes.md");
    let (_, code) = page.split_once("```c\n").expect("a C program in the guide");
    code.split_once("```").expect("its end").0.to_owned()
}

/// Makes the flow of `cell` use the object in `path`, which is copied to where the agent looks for it.
fn use_object(folder: &Folder, cell: &mut Value, path: &Path) {
    let content = std::fs::read(path).unwrap();
    let files = folder.path().join("files");
    cell["flows"][0]["object"] = keep_file(&files, "my.bpf.o", &content).unwrap();
}

#[test]
fn every_program_loads_carries_data_and_is_gone_afterwards() {
    let _turn = my_turn();
    if !can_load() {
        return;
    }
    // No check here depends on the processor time of a run, so several run in parallel.
    for programs in narrows_bpf::ALL.chunks(BESIDE_EACH_OTHER) {
        std::thread::scope(|scope| {
            for program in programs {
                scope.spawn(|| loads_carries_data_and_is_gone(program));
            }
        });
    }
}

fn loads_carries_data_and_is_gone(program: &narrows_bpf::Program) {
    let scheme = format!("bpf:{}", program.name);
    let folder = Folder::new(&format!("program-{}", program.name));
    let own = narrows_bpf::object(program).unwrap().name().to_owned();
    let before = loaded();
    let mut child = emulate(&folder, &cell(&[&scheme], 1500)).spawn().unwrap();
    let mut name = String::new();
    eventually(&format!("{own} is registered"), || {
        assert!(child.try_wait().unwrap().is_none(), "{scheme} ended early");
        let mut new = loaded().into_iter().filter(|it| !before.contains(it));
        // Possibly with a number appended, if another process uses the program at the same time.
        let number = |rest: &str| rest.is_empty() || rest.starts_with('_');
        name = new
            .find(|it| it.strip_prefix(own.as_str()).is_some_and(number))
            .unwrap_or_default();
        !name.is_empty()
    });
    let record = finish(&folder, &crate::common::finish(child));
    eventually(&format!("{name} is gone"), || !loaded().contains(&name));
    let flow = &record.run.flows[0];
    // A tenth of the path's capacity: background schemes may start slowly.
    let minimum = 20_000_000 / 8 * 3 / 2 / 10;
    assert!(goodput(flow) > minimum, "{scheme}: {} bytes", goodput(flow));
    let identity = &flow.fingerprint;
    assert_eq!(
        (identity.kind.as_str(), identity.name.as_str()),
        ("bpf", program.name)
    );
    assert_eq!(identity.read_back.as_deref(), Some(name.as_str()));
    assert!(identity.kernel.is_some());
    let bpf = identity.bpf.as_ref().unwrap();
    assert_eq!(
        bpf.sha256,
        sha256(narrows_bpf::object(program).unwrap().bytes())
    );
    assert_eq!(bpf.kernel_name, name);
    assert!(
        bpf.tags.len() >= 3 && bpf.tags.values().all(|tag| tag.len() == 16),
        "{bpf:?}"
    );
    for spec in program.params() {
        let default = spec.default_value().map(|value| value.to_json());
        let held = identity.params.get(spec.name);
        let (held, default) = (held.unwrap().as_f64(), default.unwrap().as_f64());
        // Fixed point has 16 bits behind the point.
        if let (Some(held), Some(default)) = (held, default) {
            assert!(
                (held - default).abs() <= 1.0 / 65_536.0,
                "{scheme} {}",
                spec.name
            );
        }
    }
}

#[test]
fn a_killed_agent_leaves_nothing_in_the_kernel() {
    let _turn = my_turn();
    if !can_load() {
        return;
    }
    let folder = Folder::new("killed");
    let scheme = format!("bpf:{}", narrows_bpf::ALL[0].name);
    let before = loaded();
    let mut child = emulate(&folder, &cell(&[&scheme], 60_000)).spawn().unwrap();
    // Two endpoints and the loader.
    let helpers = wait_for(&mut child, 3);
    let new = loaded().into_iter().find(|it| !before.contains(it));
    let name = new.expect("the run has registered its program");
    signal(child.id(), "-KILL");
    wait(&mut child);
    eventually("its helpers are gone", || {
        helpers.iter().all(|pid| !is_alive(*pid))
    });
    eventually("the kernel has forgotten it", || !loaded().contains(&name));
}

#[test]
fn two_agents_use_one_program_at_the_same_time() {
    let _turn = my_turn();
    if !can_load() {
        return;
    }
    let scheme = format!("bpf:{}", narrows_bpf::ALL[0].name);
    let folders = [Folder::new("one"), Folder::new("two")];
    let before = loaded();
    let children = folders
        .each_ref()
        .map(|folder| emulate(folder, &cell(&[&scheme], 3000)).spawn().unwrap());
    eventually("both are registered", || loaded().len() >= before.len() + 2);
    let mut names = Vec::new();
    for (folder, child) in folders.iter().zip(children) {
        let record = finish(folder, &crate::common::finish(child));
        let identity = &record.run.flows[0].fingerprint;
        let bpf = identity.bpf.clone().unwrap();
        assert_eq!(
            identity.read_back.as_deref(),
            Some(bpf.kernel_name.as_str())
        );
        names.push(bpf.kernel_name);
    }
    assert_ne!(names[0], names[1]);
    eventually("both are gone", || {
        names.iter().all(|name| !loaded().contains(name))
    });
}

/// `beta` of exp is the share of the window that is kept after a loss: with a buffer of a tenth of the path's BDP, a
/// flow that keeps a tenth of its window needs many round trips to fill the path again, and one that keeps nine tenths
/// does not. The path is the same and both flows start identically.
#[test]
fn parameters_change_what_a_program_does() {
    let _turn = my_turn();
    if !can_load() {
        return;
    }
    let sent = |beta: f64| {
        let folder = Folder::new(&format!("beta-{beta}"));
        let mut cell = cell(&["bpf:exp"], 6000);
        cell["flows"][0]["params"] = json!({"beta": beta});
        cell["network"]["forward"][0]["queue"]["bytes"] = json!(15_000);
        for (direction, place) in [("forward", 1), ("backward", 0)] {
            cell["network"][direction][place]["delay"] = json!(40 * MS);
        }
        let record = run(&folder, &cell);
        let identity = &record.run.flows[0].fingerprint;
        let held = identity.params["beta"].as_f64().unwrap();
        assert!((held - beta).abs() < 1.0 / 65_536.0);
        let constant = identity.bpf.as_ref().unwrap().constants["param_beta"];
        assert_eq!(constant, (beta * 65_536.0).round() as u64);
        goodput(&record.run.flows[0])
    };
    // Disturbances by the machine affect both alike.
    let (little, much) = std::thread::scope(|scope| {
        let little = scope.spawn(|| sent(0.1));
        let much = sent(0.9);
        (little.join().unwrap(), much)
    });
    assert!(
        much as f64 > 1.5 * little as f64,
        "{little} and {much} bytes"
    );
}

#[test]
fn flows_with_different_parameters_have_programs_of_their_own() {
    let _turn = my_turn();
    if !can_load() {
        return;
    }
    let folder = Folder::new("several");
    let mut cell = cell(&["bpf:exp", "bpf:exp", "bpf:exp", "linux:reno"], 2000);
    cell["flows"][1]["params"] = json!({"beta": 0.5});
    let record = run(&folder, &cell);
    let name = |index: usize| {
        record.run.flows[index]
            .fingerprint
            .read_back
            .clone()
            .unwrap()
    };
    assert_eq!(name(0), name(2));
    assert_ne!(name(0), name(1));
    assert!(name(0).starts_with("nw_exp") && name(1).starts_with("nw_exp"));
    assert_eq!(name(3), "reno");
    assert_eq!(record.run.flows[0].fingerprint.params["beta"], 0.75);
    assert_eq!(record.run.flows[1].fingerprint.params["beta"], 0.5);
}

#[test]
fn the_example_of_the_guide_runs_as_a_users_own_program() {
    let _turn = my_turn();
    if !can_load() {
        return;
    }
    let folder = Folder::new("own");
    let object = compile(&folder, "my_cc", &example());
    let name = narrows_bpf::Object::parse(&std::fs::read(&object).unwrap()).unwrap();
    let mut cell = cell(&[&format!("bpf:{}", name.name())], 2000);
    use_object(&folder, &mut cell, &object);
    let record = run(&folder, &cell);
    let flow = &record.run.flows[0];
    assert_eq!(flow.fingerprint.read_back.as_deref(), Some(name.name()));
    let bpf = flow.fingerprint.bpf.as_ref().unwrap();
    assert_eq!(bpf.sha256, sha256(name.bytes()));
    // Half of the path's capacity.
    assert!(goodput(flow) > 20_000_000 / 8, "{} bytes", goodput(flow));
    // Sampled from TCP_INFO: after losses it keeps four fifths of its window, in whole packets.
    let states = read_states(record.states.clone().unwrap()).unwrap();
    let cwnd: Vec<u64> = states.iter().filter_map(|row| row.cwnd_bytes).collect();
    assert!(cwnd.len() > 50, "{} samples", cwnd.len());
    assert!(
        states.iter().any(|row| row.ssthresh_bytes.is_some()),
        "it has seen a loss"
    );
}

/// A program that counts each reduction as missed.
#[test]
fn calls_that_a_program_counts_as_missed_are_a_reason() {
    let _turn = my_turn();
    if !can_load() {
        return;
    }
    let folder = Folder::new("missed");
    let kept = "\tu32 kept = ";
    let counting = format!("\t__sync_fetch_and_add(&missed, 1);\n{kept}");
    let source = example()
        .replace(
            "/* Asked after",
            "u32 missed SEC(\".bss.missed\");\n\n/* Asked after",
        )
        .replace(kept, &counting);
    let object = compile(&folder, "my_cc", &source);
    let mut cell = cell(&["bpf:my_cc"], 2000);
    use_object(&folder, &mut cell, &object);
    let record = run(&folder, &cell);
    let reason = record
        .run
        .reasons
        .iter()
        .find(|it| it.code == "missed_calls");
    let reason = reason.expect("losses on a path with a short buffer");
    assert_eq!(reason.severity, Severity::Degraded);
    assert!(reason.text.contains("my.bpf.o"), "{}", reason.text);
}

#[test]
fn a_program_in_a_plain_section_is_not_left_behind() {
    let _turn = my_turn();
    if !can_load() {
        return;
    }
    let folder = Folder::new("plain");
    let source = example().replace(".struct_ops.link", ".struct_ops");
    let object = compile(&folder, "plain", &source);
    let name = narrows_bpf::Object::parse(&std::fs::read(&object).unwrap()).unwrap();
    let named = format!("plain.o={}", object.display());
    let answer = run_to_end(agent().arg("bpf").arg("--object").arg(named));
    let answer: Value = serde_json::from_slice(&answer.stdout).unwrap();
    assert_eq!(answer["results"][0]["ok"], true, "{answer}");
    let all = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control");
    assert!(!all.unwrap().contains(name.name()));
}

#[test]
fn objects_that_the_kernel_refuses_are_explained() {
    let _turn = my_turn();
    if !can_load() {
        return;
    }
    let folder = Folder::new("refused");
    let refuse = |name: &str, changes: &[(&str, &str)]| {
        let mut source = example();
        for (from, to) in changes {
            assert!(source.contains(from), "the example has {from}");
            source = source.replacen(from, to, 1);
        }
        let object = compile(&folder, name, &source);
        let mut cell = cell(&["bpf:x"], 500);
        use_object(&folder, &mut cell, &object);
        failure(&run_to_end(&mut emulate(&folder, &cell)), 3, "input")
    };
    // Not a member that congestion controls may write.
    let message = refuse("write", &[("tp->snd_cwnd_cnt = 0", "tp->prior_cwnd = 0")]);
    assert!(
        message.contains("verifier rejects") && message.contains("no write support"),
        "{message}"
    );
    let message = refuse(
        "missing",
        &[
            ("	.undo_cwnd = (void *)undo_cwnd,\n", ""),
            (
                "SEC(\"struct_ops\") u32 undo_cwnd",
                "static __attribute__((unused)) u32 undo_cwnd",
            ),
        ],
    );
    assert!(message.contains("undo_cwnd"), "{message}");
    let message = refuse("license", &[("\"GPL\"", "\"MIT\"")]);
    assert!(
        message.contains("license of the object file is 'MIT'"),
        "{message}"
    );
}

#[test]
fn unknown_programs_parameters_and_files_are_refused() {
    let folder = Folder::new("unknown");
    let refuse = |change: fn(&mut Value)| {
        let mut cell = cell(&["bpf:exp"], 500);
        change(&mut cell["flows"][0]);
        failure(&run_to_end(&mut emulate(&folder, &cell)), 3, "input")
    };
    let message = refuse(|flow| flow["scheme"] = "bpf:nonsense".into());
    assert!(
        message.contains("'nonsense'") && message.contains("exp"),
        "{message}"
    );
    let message = refuse(|flow| flow["params"] = json!({"nonsense": 1}));
    assert!(message.contains("'nonsense'"), "{message}");
    let message = refuse(|flow| {
        flow["params"] = json!({"beta": 0.5});
        flow["object"] = json!({"name": "x.o", "sha256": "00"});
    });
    // The file is missing, which is reported first.
    assert!(message.contains("x.o"), "{message}");
}

/// As a user who may create network namespaces, but not load programs.
#[test]
fn without_rights_there_is_one_sentence_and_exit_code_4() {
    if !narrows_sys::netns::is_root() {
        return crate::common::skip("only root can take rights away");
    }
    let folder = Folder::new("rights");
    let full = emulate(&folder, &cell(&["bpf:exp"], 500));
    let output = run_to_end(
        Command::new("setpriv")
            .args([
                "--bounding-set",
                "-bpf,-perfmon,-sys_admin",
                "--inh-caps",
                "-all",
                "--",
            ])
            .arg(full.get_program())
            .args(full.get_args())
            .stdin(Stdio::null()),
    );
    let message = failure(&output, 4, "unavailable");
    assert!(
        message.contains("CAP_BPF") && message.contains("run as root"),
        "{message}"
    );
    assert_eq!(folder.names(), ["cell.json"]);
}

#[test]
fn simulation_refuses_programs_of_the_kernel() {
    let folder = Folder::new("simulate");
    emulate(&folder, &cell(&["bpf:exp"], 500));
    let output = run_to_end(
        agent()
            .arg("simulate")
            .arg("--cell")
            .arg(folder.path().join("cell.json"))
            .arg("--out")
            .arg(folder.path().join("out"))
            .stdin(Stdio::null()),
    );
    assert!(failure(&output, 3, "input").contains("cannot be simulated"));
}

#[test]
fn the_agent_itself_needs_no_libelf() {
    let bytes = std::fs::read(env!("CARGO_BIN_EXE_narrows-agent")).unwrap();
    let name = b"libelf.so";
    assert!(!bytes.windows(name.len()).any(|window| window == name));
    let bytes = std::fs::read(env!("CARGO_BIN_EXE_narrows-bpf")).unwrap();
    assert!(bytes.windows(name.len()).any(|window| window == name));
}
