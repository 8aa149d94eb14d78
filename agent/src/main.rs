//! `narrows-agent`: the one binary that runs cells on any host.
//!
//! Standard output carries JSON lines for the program that started it, standard error text for
//! people. The exit codes are those of the whole project.
#![forbid(unsafe_code)]

mod bpf;
mod doctor;
mod events;
mod host;
mod run;
mod shell;
mod side;
mod tunnel;
mod watchdog;

use clap::{Parser, Subcommand};
use events::Failure;
use narrows_sys::poll::Signals;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

/// Version of this command line and of the lines that it prints.
const PROTOCOL: u32 = 1;

#[derive(Parser)]
#[command(
    name = "narrows-agent",
    version,
    about = "Runs cells: one scheme on one path, once."
)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run a cell in virtual time.
    Simulate(CellArguments),
    /// Run a cell in real time, between new network namespaces.
    Emulate(run::EmulateArguments),
    /// Print everything that scenarios may name, as JSON.
    Registry,
    /// Print what this machine can do, as JSON.
    Doctor,
    /// Print all facts that affect runs between this host and another, as JSON.
    Host(host::HostArguments),
    /// Print the synchronisation of this host's clock, as JSON.
    Clock,
    /// Examine the path to another host, together with the same command there; commands are read from standard input,
    /// after a line with the shared secret (32 hexadecimal digits).
    Probe,
    /// Raise settings of the machine until standard input ends, then restore them.
    Settings(host::SettingsArguments),
    /// Load BPF congestion controls briefly and print whether that works, as JSON.
    Bpf(bpf::BpfArguments),
    /// Print the version, as JSON.
    Version,
    /// Run one end of a measuring tunnel between two hosts.
    Tunnel(tunnel::TunnelArguments),
    /// Join the logs of both ends of a tunnel and print the fates of the packets, as JSON.
    TunnelJoin(tunnel::JoinArguments),
    /// Run this host's side of a run between two hosts; commands are read from standard input.
    Side(side::SideArguments),
    /// Write the files of a side to standard output, as a tar stream.
    Pack(side::PackArguments),
    /// Make the record of a run between two hosts from the folders of its two sides.
    SideRecord(run::PairArguments),
    /// Run a program behind an emulated path.
    Shell(shell::ShellArguments),
    /// Guard such a program (started by `shell`).
    #[command(hide = true)]
    ShellGuard(shell::GuardArguments),
    /// One end of one flow (started by `emulate`).
    #[command(hide = true)]
    Endpoint {
        /// Number of the inherited descriptor that leads to the agent.
        channel: i32,
    },
}

#[derive(clap::Args)]
struct CellArguments {
    /// The cell, a JSON document of format narrows/cell/1.
    #[arg(long)]
    cell: PathBuf,
    /// Folder of the record; it must not exist.
    #[arg(long)]
    out: PathBuf,
    /// Folder of the files that the cell names (default: `files` next to the cell).
    #[arg(long)]
    files: Option<PathBuf>,
    /// Stop and clean up when standard input ends.
    #[arg(long)]
    watch_stdin: bool,
    /// Maximum memory of the run, in bytes (default: three quarters of the machine's).
    #[arg(long)]
    memory: Option<u64>,
    /// Number of such runs that share the machine's memory, unless --memory is set.
    #[arg(long, default_value_t = 1)]
    beside: u64,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let result = match arguments.command {
        Command::Registry => print(&narrows_cell::registry()),
        Command::Version => print(&host::versions(PROTOCOL)),
        Command::Bpf(arguments) => print(&bpf::examine(&arguments)),
        Command::Doctor => print(&doctor::examine()),
        Command::Host(arguments) => {
            host::examine(PROTOCOL, &arguments).and_then(|document| print(&document))
        }
        Command::Clock => print(&narrows_realpath::timekeeping::examine()),
        Command::Probe => host::probe(),
        Command::Settings(arguments) => with_signals(|signals| host::settings(&arguments, signals)),
        Command::Shell(arguments) => return shell::run(&arguments),
        Command::ShellGuard(arguments) => return shell::guard(&arguments),
        Command::Endpoint { channel } => {
            return match narrows_endpoints::endpoint_main(channel) {
                Ok(()) => ExitCode::SUCCESS,
                Err(error) => {
                    eprintln!("{error}");
                    ExitCode::FAILURE
                }
            };
        }
        Command::Tunnel(arguments) => with_signals(|signals| tunnel::run(&arguments, signals)),
        Command::TunnelJoin(arguments) => {
            tunnel::join(&arguments).and_then(|document| print(&document))
        }
        Command::Side(arguments) => with_signals(|signals| side::run(&arguments, signals)),
        Command::Pack(arguments) => return side::pack(&arguments),
        Command::SideRecord(arguments) => {
            with_signals(|signals| run::side_record(&arguments, signals))
        }
        Command::Simulate(cell) => with_signals(|signals| run::simulate(&cell, signals)),
        Command::Emulate(cell) => with_signals(|signals| run::emulate(&cell, signals)),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            events::error(&failure);
            ExitCode::from(failure.exit_code())
        }
    }
}

/// Blocks the signals that stop a run, before any thread starts, so that they are read as data.
fn with_signals(run: impl FnOnce(&Signals) -> Result<(), Failure>) -> Result<(), Failure> {
    let signals = Signals::block(&events::STOPPING)
        .map_err(|error| Failure::internal(format!("signals cannot be blocked: {error}")))?;
    run(&signals)
}

fn print(document: &serde_json::Value) -> Result<(), Failure> {
    let mut out = std::io::stdout();
    writeln!(out, "{document:#}")
        .and_then(|()| out.flush())
        .map_err(|error| Failure::io(error.to_string()))
}
