//! Events of an emulated run, played again: a scheme decides the same, bit for bit, in all places where it runs.
//!
//! `tests/events/indigo-emulated.jsonl` is the beginning of a run of Indigo beside CUBIC over 5 Mbit/s, 30 ms, 20 packets
//! and random losses of 0.5 %, with real sockets; docs/testing.md says how to record such a file.

use crate::decisions::cell;
use narrows_cc::schemes;
use narrows_cc::testing::event_log::EventLog;
use narrows_cc::testing::setup;
use narrows_cc::{CongestionControl, Setup};
use narrows_gym::{Course, Policies};
use narrows_units::{FileRef, Files, Params, Value};
use serde_json::json;

const LOG: &str = include_str!("../../events/indigo-emulated.jsonl");
const MODEL: &[u8] = include_bytes!("../../events/indigo.safetensors");

fn model() -> (FileRef, Files) {
    let file = FileRef {
        name: "indigo.safetensors".into(),
        sha256: "indigo".into(),
    };
    let mut files = Files::default();
    files.insert(&file.sha256, MODEL.to_vec());
    (file, files)
}

fn indigo(log: &EventLog) -> Box<dyn CongestionControl> {
    let scheme = schemes::find("indigo").unwrap();
    let (file, files) = model();
    let given = [("model".to_owned(), Value::File(file))];
    let params = Params::resolve(scheme.params, given).unwrap();
    let setup = log.setup(Setup { files, ..setup() });
    (scheme.build)(&params, setup).unwrap()
}

fn policy() -> Policies {
    let (file, files) = model();
    let mut cell = cell(&["indigo"], false, "constant", 0.0);
    cell["flows"][0]["params"]["model"] = json!({"name": file.name, "sha256": file.sha256});
    Policies::new(Course { cell, files }, 0, 1).unwrap()
}

#[test]
fn a_scheme_decides_as_it_did_in_the_emulated_run() {
    let log: EventLog = LOG.parse().unwrap();
    log.play(&mut *indigo(&log), |_| ()).unwrap();
}

#[test]
fn its_policy_outside_of_the_scheme_decides_the_same() {
    let log: EventLog = LOG.parse().unwrap();
    let mut scheme = indigo(&log);
    assert!(scheme.decide_outside());
    let (mut policy, mut decisions) = (policy(), 0);
    log.play(&mut *scheme, |scheme| {
        if let Some(observation) = scheme.observation() {
            let mut action = [f32::NAN];
            policy.act(observation, &mut action);
            scheme.take_action(&action);
            decisions += 1;
        }
    })
    .unwrap();
    assert!(decisions > 60, "{decisions}");
}

#[test]
fn another_policy_does_not() {
    let log: EventLog = LOG.parse().unwrap();
    let mut scheme = indigo(&log);
    assert!(scheme.decide_outside());
    let why = log.play(&mut *scheme, |scheme| scheme.take_action(&[2.0]));
    assert!(why.unwrap_err().contains("in the log"));
}

#[test]
fn schemes_without_a_model_or_decisions_have_no_policy() {
    let refused = |scheme: &str, params: serde_json::Value| {
        let mut cell = cell(&["indigo"], false, "constant", 0.0);
        cell["flows"][0]["scheme"] = json!(scheme);
        cell["flows"][0]["params"] = params;
        let files = Files::default();
        let error = Policies::new(Course { cell, files }, 0, 1).err().unwrap();
        error.to_string()
    };
    assert!(refused("cubic", json!({})).contains("cubic makes no decisions"));
    let outside = json!({"observation": "indigo", "step": "time", "action": "window-factor"});
    assert!(refused("policy", outside).contains("has no model"));
}
