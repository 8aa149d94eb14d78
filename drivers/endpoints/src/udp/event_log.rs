//! Logs of the events of schemes, for fixtures.

use narrows_cc::testing::event_log::LoggedScheme;
use narrows_cc::{Build, CongestionControl, Scheme, Setup};
use narrows_units::{ParamError, Params};
use std::fs::File;
use std::io::LineWriter;
use std::path::Path;
use std::sync::OnceLock;
use std::{env, process};

/// The constructor of the scheme: a process runs one end of one flow.
static BUILD: OnceLock<Build> = OnceLock::new();

/// `scheme`, which logs its events to the folder NARROWS_EVENTS if that is set; the file is named by the process.
pub(super) fn log_events(scheme: &Scheme) -> Scheme {
    BUILD.get_or_init(|| scheme.build);
    Scheme {
        build: build_logged,
        ..*scheme
    }
}

fn build_logged(params: &Params, setup: Setup) -> Result<Box<dyn CongestionControl>, ParamError> {
    let build = BUILD.get().expect("log_events was called");
    let Some(folder) = env::var_os("NARROWS_EVENTS") else {
        return build(params, setup);
    };
    let scheme = build(params, setup.clone())?;
    let path = Path::new(&folder).join(format!("{}.jsonl", process::id()));
    let file = File::create(path).expect("the log of events is created");
    // Endpoints end by a signal: nothing may wait in a buffer.
    Ok(Box::new(LoggedScheme::new(
        scheme,
        &setup,
        LineWriter::new(file),
    )))
}
