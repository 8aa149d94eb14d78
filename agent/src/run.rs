//! `simulate`, `emulate` and `side-record`.

use crate::CellArguments;
use crate::events::{self, Failure, Progress};
use crate::watchdog;
use narrows_cell::{Cell, load_files};
use narrows_sys::poll::Signals;
use std::fs;
use std::path::{Path, PathBuf};

/// The text of the file that holds `what`, a plan or a cell.
pub(crate) fn read_file(what: &str, path: &Path) -> Result<String, Failure> {
    fs::read_to_string(path).map_err(|error| {
        Failure::input(format!(
            "the {what} {} cannot be read: {error}",
            path.display()
        ))
    })
}

/// The cell, and the folder of the files that it names.
fn read_cell(arguments: &CellArguments) -> Result<(Cell, PathBuf), Failure> {
    let text = read_file("cell", &arguments.cell)?;
    // Without the option, the files are next to the cell.
    let beside = arguments
        .cell
        .parent()
        .unwrap_or(Path::new(""))
        .join("files");
    let folder = arguments.files.clone().unwrap_or(beside);
    // Endpoints, which may have another working folder, read it as well.
    let folder = std::path::absolute(&folder)
        .map_err(|error| Failure::input(format!("{}: {error}", folder.display())))?;
    let cell = Cell::parse_with(&text, |json| load_files(json, &folder))
        .map_err(|error| Failure::input(format!("{}: {error}", arguments.cell.display())))?;
    Ok((cell, folder))
}

#[derive(clap::Args)]
pub(crate) struct EmulateArguments {
    #[command(flatten)]
    cell: CellArguments,
    /// Maximum number of threads of the emulator (default: half the number of processors, at least one); never more
    /// than the independent parts of the network, such as its two directions.
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=64))]
    emulator_threads: Option<u16>,
    /// Print readings of flows and queues during the run.
    #[arg(long)]
    live: bool,
    /// Take orders that change the run from standard input, as lines of JSON.
    #[arg(long, requires = "live", requires = "watch_stdin")]
    interactive: bool,
}

pub(crate) fn emulate(arguments: &EmulateArguments, signals: &Signals) -> Result<(), Failure> {
    let emulator_threads = arguments.emulator_threads.map(usize::from);
    let (is_live, takes_orders) = (arguments.live, arguments.interactive);
    let arguments = &arguments.cell;
    let (cell, files) = read_cell(arguments)?;
    let mut progress = Progress::default();
    let mut show = |event: &narrows_emulate::LiveEvent| {
        if let Ok(event) = serde_json::to_value(event) {
            events::line(&event);
        }
    };
    let mut context = narrows_emulate::RunContext {
        signals,
        watch_stdin: arguments.watch_stdin,
        files: &files,
        emulator_threads,
        progress: &mut |time, of| progress.report(time, of),
        live: if is_live { Some(&mut show) } else { None },
        takes_orders,
    };
    let run = narrows_emulate::emulate(&cell, &arguments.out, &mut context)?;
    events::done(&run);
    Ok(())
}

pub(crate) fn simulate(arguments: &CellArguments, signals: &Signals) -> Result<(), Failure> {
    let (cell, _) = read_cell(arguments)?;
    if let Some(why) = cell.unbounded() {
        return Err(Failure::input(why));
    }
    let run = watchdog::over(arguments, signals, || {
        let mut progress = Progress::default();
        narrows_sim::run(&cell, &arguments.out, &mut |time| {
            progress.report(time.ns(), cell.duration.ns());
            true
        })
    })?;
    events::done(&run);
    Ok(())
}

#[derive(clap::Args)]
pub(crate) struct PairArguments {
    #[command(flatten)]
    cell: CellArguments,
    /// Folder of the side of host 0.
    #[arg(long)]
    host0: PathBuf,
    /// Folder of the side of host 1.
    #[arg(long)]
    host1: PathBuf,
}

pub(crate) fn side_record(arguments: &PairArguments, signals: &Signals) -> Result<(), Failure> {
    let (cell, _) = read_cell(&arguments.cell)?;
    let folders = [arguments.host0.as_path(), arguments.host1.as_path()];
    let run = watchdog::over(&arguments.cell, signals, || {
        let mut progress = Progress::default();
        narrows_realpath::side_record(&cell, folders, &arguments.cell.out, &mut |time, of| {
            progress.report(time, of);
            true
        })
    })?;
    events::done(&run);
    Ok(())
}
