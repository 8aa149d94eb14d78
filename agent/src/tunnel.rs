//! `tunnel` and `tunnel-join`: one end of a measuring tunnel, and the joined logs of two ends.

use crate::events::{self, Failure};
use crate::run::read_file;
use narrows_realpath::peer::CommandReader;
use narrows_realpath::tunnel::{self, TunnelContext, TunnelPlan};
use narrows_sys::poll::Signals;
use serde_json::{Value, json};
use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

#[derive(clap::Args)]
pub(crate) struct TunnelArguments {
    /// The plan, a JSON document of format narrows/tunnel/1; '-' reads it from the first line of
    /// standard input. It contains the secret, so protect it from other readers.
    #[arg(long)]
    plan: PathBuf,
    /// Stop when standard input ends.
    #[arg(long)]
    watch_stdin: bool,
}

#[derive(clap::Args)]
pub(crate) struct JoinArguments {
    /// Folder of the end whose clock is used.
    reference: PathBuf,
    /// Folder of the other end.
    other: PathBuf,
    /// Use truncated logs up to the truncation.
    #[arg(long)]
    lenient: bool,
}

/// Runs one end.
pub(crate) fn run(arguments: &TunnelArguments, signals: &Signals) -> Result<(), Failure> {
    let stdin = io::stdin();
    let mut commands = CommandReader::from(stdin.as_fd())?;
    let plan = TunnelPlan::parse(&read_plan(&arguments.plan, &mut commands)?)?;
    let mut context = TunnelContext {
        signals,
        parent: arguments.watch_stdin.then(|| stdin.as_fd()),
        notify: &mut events::line,
    };
    let document = tunnel::run(&plan, &mut context)?;
    events::line(&json!({"event": "done", "tunnel": document}));
    Ok(())
}

/// Joins the logs of two ends.
pub(crate) fn join(arguments: &JoinArguments) -> Result<Value, Failure> {
    let JoinArguments {
        reference,
        other,
        lenient,
    } = arguments;
    Ok(tunnel::join(reference, other, *lenient)?)
}

/// The text of a plan; '-' is the first line of the commands.
pub(crate) fn read_plan(path: &Path, commands: &mut CommandReader) -> Result<String, Failure> {
    if path == Path::new("-") {
        return Ok(commands.first_line()?);
    }
    read_file("plan", path)
}
