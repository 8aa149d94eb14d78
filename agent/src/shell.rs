//! `shell`: a program behind an emulated path, and its guard.

use crate::events::{self, Failure};
use crate::run::read_file;
use narrows_cell::RunError;
use narrows_cell::load_files;
use narrows_shell::{self as shell, ShellPlan};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

#[derive(clap::Args)]
pub(crate) struct ShellArguments {
    /// The plan, a JSON document of format narrows/shell/1.
    #[arg(long)]
    plan: PathBuf,
    /// Folder of the files that the plan names (default: `files` next to the plan).
    #[arg(long)]
    files: Option<PathBuf>,
    /// Remove the plan's folder when it has been read.
    #[arg(long)]
    consume: bool,
    /// The program and its arguments.
    #[arg(last = true, required = true)]
    command: Vec<OsString>,
}

#[derive(clap::Args)]
pub(crate) struct GuardArguments {
    /// Number of the inherited pipe that ends with the agent.
    pipe: i32,
    /// The program and its arguments.
    #[arg(last = true, required = true)]
    command: Vec<OsString>,
}

/// Runs a program behind a path and returns its exit code.
pub(crate) fn run(arguments: &ShellArguments) -> ExitCode {
    finish(read(arguments).and_then(|plan| {
        let signals = shell::block_signals()?;
        Ok(shell::run(&plan, &arguments.command, &signals)?)
    }))
}

/// Runs the program itself.
pub(crate) fn guard(arguments: &GuardArguments) -> ExitCode {
    finish(shell::subreaper_main(arguments.pipe, &arguments.command).map_err(Failure::from))
}

fn finish(result: Result<i32, Failure>) -> ExitCode {
    events::finish("narrows shell", result.map(|code| code as u8))
}

fn read(arguments: &ShellArguments) -> Result<ShellPlan, Failure> {
    let folder = arguments.plan.parent().unwrap_or(Path::new(""));
    let files = arguments.files.clone().unwrap_or(folder.join("files"));
    let plan = read_file("plan", &arguments.plan).and_then(|text| {
        let load =
            |json: &_| load_files(json, &files).map_err(|error| RunError::Input(error.to_string()));
        ShellPlan::parse(&text, load).map_err(Failure::from)
    });
    if arguments.consume {
        // It is not needed any more.
        let _ = fs::remove_dir_all(folder);
    }
    plan
}
