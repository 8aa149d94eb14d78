//! `side` and `pack`: this host's part of a run between two hosts, and its files as a stream.

use crate::events::{self, Failure};
use crate::tunnel::read_plan;
use narrows_realpath::archive;
use narrows_realpath::peer::{self, CommandReader, PeerContext, PeerPlan};
use narrows_sys::poll::Signals;
use std::io::{self, BufWriter};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(clap::Args)]
pub(crate) struct SideArguments {
    /// The plan, a JSON document of format narrows/side/1; '-' reads it from the first line of standard input. Commands
    /// follow there, one per line. It contains the secret of the tunnel, so protect it from other readers.
    #[arg(long)]
    plan: PathBuf,
}

#[derive(clap::Args)]
pub(crate) struct PackArguments {
    /// A folder that `side` or `tunnel` has written.
    folder: PathBuf,
    /// Remove it afterwards.
    #[arg(long)]
    remove: bool,
}

/// Runs one side.
pub(crate) fn run(arguments: &SideArguments, signals: &Signals) -> Result<(), Failure> {
    let mut commands = CommandReader::from(io::stdin().as_fd())?;
    let plan = PeerPlan::parse(&read_plan(&arguments.plan, &mut commands)?)?;
    let mut context = PeerContext {
        signals,
        commands,
        notify: &mut events::line,
    };
    Ok(peer::run(&plan, &mut context)?)
}

/// Writes a folder to standard output.
pub(crate) fn pack(arguments: &PackArguments) -> ExitCode {
    let mut out = BufWriter::with_capacity(1 << 20, io::stdout().lock());
    let packed = archive::write(&arguments.folder, &mut out);
    let done = packed.and_then(|()| {
        if arguments.remove {
            archive::remove(&arguments.folder)
        } else {
            Ok(())
        }
    });
    events::finish("narrows-agent", done.map(|()| 0).map_err(Failure::from))
}
