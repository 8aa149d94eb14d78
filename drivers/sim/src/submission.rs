//! The program of a scheme in a separate crate, by which `narrows lab contest` simulates it: with the arguments and
//! output lines of `narrows-agent`.
//!
//! ```text
//! own-scheme in-place-of exp simulate --cell cell.json --out record --files files
//! {"event":"progress","time_ns":100000000,"of_ns":20000000000}
//! {"event":"done"}
//! ```

use crate::{SimError, run};
use narrows_cc::Scheme;
use narrows_cell::{Cell, SchemeRef, load_files};
use narrows_units::Params;
use serde_json::{Value, json};
use std::fs;
use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

/// Time between progress lines.
const TICK: Duration = Duration::from_millis(200);
/// Exit codes: an internal failure, and a cell that cannot run.
const FAILURE: u8 = 1;
const BAD_CELL: u8 = 3;

/// Simulates the cell that the `words` after the program's name request, with `scheme` in place of the one that they
/// name. `None` if they request something else, so that a program may have other uses.
pub fn submission(scheme: &'static Scheme, words: &[String]) -> Option<ExitCode> {
    let [first, placeholder, second, options @ ..] = words else {
        return None;
    };
    if first != "in-place-of" || second != "simulate" {
        return None;
    }
    Some(match simulate(scheme, placeholder, options) {
        Ok(()) => {
            say(&json!({"event": "done"}));
            ExitCode::SUCCESS
        }
        Err((code, kind, message)) => {
            say(&json!({"event": "error", "kind": kind, "message": message}));
            ExitCode::from(code)
        }
    })
}

type Refusal = (u8, &'static str, String);

fn simulate(scheme: &'static Scheme, placeholder: &str, words: &[String]) -> Result<(), Refusal> {
    let input = |message: String| (BAD_CELL, "input", message);
    let option = |name: &str| {
        let at = words.iter().position(|word| word == name);
        let value = at.and_then(|at| words.get(at + 1)).map(PathBuf::from);
        value.ok_or_else(|| input(format!("{name} is missing")))
    };
    let (path, out, files) = (option("--cell")?, option("--out")?, option("--files")?);
    if words.iter().any(|word| word == "--watch-stdin") {
        end_with_input();
    }
    let text = fs::read_to_string(&path);
    let text = text.map_err(|error| input(format!("{}: {error}", path.display())))?;
    let cell = Cell::parse_with(&text, |json| load_files(json, &files));
    let mut cell = cell.map_err(|error| input(error.to_string()))?;
    for flow in cell
        .flows
        .iter_mut()
        .filter(|flow| flow.name == placeholder)
    {
        let params =
            Params::resolve(scheme.params, []).map_err(|error| input(error.to_string()))?;
        scheme.name.clone_into(&mut flow.name);
        flow.scheme = SchemeRef::Native(scheme, params);
    }
    let of = cell.duration.ns();
    let mut told: Option<Instant> = None;
    let done = run(&cell, &out, &mut |time| {
        if told.is_none_or(|at| at.elapsed() >= TICK) {
            told = Some(Instant::now());
            say(&json!({"event": "progress", "time_ns": time.ns(), "of_ns": of}));
        }
        true
    });
    done.map(drop).map_err(|error| match error {
        SimError::Cell(error) => input(error.to_string()),
        error => (FAILURE, "io", error.to_string()),
    })
}

/// Ends the program when standard input ends, because the record is not needed any more.
fn end_with_input() {
    thread::spawn(|| {
        let mut buffer = [0; 256];
        while matches!(std::io::stdin().read(&mut buffer), Ok(1..)) {}
        std::process::exit(i32::from(FAILURE));
    });
}

fn say(event: &Value) {
    let mut out = std::io::stdout().lock();
    // The reader may have ended, which is not a reason to fail.
    let _ = writeln!(out, "{event}").and_then(|()| out.flush());
}
