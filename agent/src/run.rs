//! `simulate`, `emulate` and `side-record`.

use crate::CellArguments;
use crate::events::{self, Failure, Progress, TERMINATE};
use narrows_cell::{Cell, load_files};
use narrows_live::LiveError;
use narrows_live::sys::poll::Signals;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The cell, and the folder of the files that it names.
fn read_cell(arguments: &CellArguments) -> Result<(Cell, PathBuf), Failure> {
    let path = arguments.cell.display();
    let text = fs::read_to_string(&arguments.cell)
        .map_err(|error| Failure::input(format!("the cell {path} cannot be read: {error}")))?;
    // Without the option, the files lie beside the cell.
    let beside = arguments
        .cell
        .parent()
        .unwrap_or(Path::new(""))
        .join("files");
    let folder = arguments.files.clone().unwrap_or(beside);
    // Endpoints read it too, wherever they work.
    let folder = std::path::absolute(&folder)
        .map_err(|error| Failure::input(format!("{}: {error}", folder.display())))?;
    let cell = Cell::parse_with(&text, |json| load_files(json, &folder))
        .map_err(|error| Failure::input(format!("{path}: {error}")))?;
    Ok((cell, folder))
}

pub(crate) fn emulate(arguments: &CellArguments, signals: &Signals) -> Result<(), Failure> {
    let (cell, files) = read_cell(arguments)?;
    let mut progress = Progress::new();
    let mut around = narrows_live::Surroundings {
        signals,
        watch_stdin: arguments.watch_stdin,
        files: &files,
        progress: &mut |time, of| progress.report(time, of),
    };
    let run = narrows_live::emulate(&cell, &arguments.out, &mut around)?;
    events::done(&run);
    Ok(())
}

pub(crate) fn simulate(arguments: &CellArguments, signals: &Signals) -> Result<(), Failure> {
    let (cell, _) = read_cell(arguments)?;
    let mut watch = End::watch(arguments, signals);
    let mut progress = Progress::new();
    let result = narrows_sim::run(&cell, &arguments.out, &mut |time| {
        progress.report(time.ns(), cell.duration.ns());
        watch.goes_on()
    });
    match (result, watch.signal) {
        (Ok(run), _) => {
            events::done(&run);
            Ok(())
        }
        (Err(narrows_sim::SimError::Interrupted), Some(signal)) => {
            Err(Failure::interrupted(signal))
        }
        (Err(error), _) => Err(error.into()),
    }
}

#[derive(clap::Args)]
pub(crate) struct PairArguments {
    #[command(flatten)]
    cell: CellArguments,
    /// Folder that the side of host 0 has left.
    #[arg(long)]
    host0: PathBuf,
    /// Folder that the side of host 1 has left.
    #[arg(long)]
    host1: PathBuf,
}

pub(crate) fn side_record(arguments: &PairArguments, signals: &Signals) -> Result<(), Failure> {
    let (cell, _) = read_cell(&arguments.cell)?;
    let mut watch = End::watch(&arguments.cell, signals);
    let mut progress = Progress::new();
    let result = narrows_live::side_record(
        &cell,
        [&arguments.host0, &arguments.host1],
        &arguments.cell.out,
        &mut |time, of| {
            progress.report(time, of);
            watch.goes_on()
        },
    );
    match (result, watch.signal) {
        (Ok(run), _) => {
            events::done(&run);
            Ok(())
        }
        (Err(LiveError::Interrupted(_)), Some(signal)) => Err(Failure::interrupted(signal)),
        (Err(error), _) => Err(error.into()),
    }
}

/// Tells work that never waits whether somebody wants it to end.
struct End<'a> {
    signals: &'a Signals,
    orphaned: Arc<AtomicBool>,
    /// What ended it.
    signal: Option<i32>,
}

impl<'a> End<'a> {
    fn watch(arguments: &CellArguments, signals: &'a Signals) -> Self {
        let orphaned = Arc::new(AtomicBool::new(false));
        if arguments.watch_stdin {
            let orphaned = orphaned.clone();
            std::thread::spawn(move || {
                let mut buffer = [0; 256];
                while matches!(std::io::stdin().read(&mut buffer), Ok(1..)) {}
                orphaned.store(true, Ordering::Release);
            });
        }
        End {
            signals,
            orphaned,
            signal: None,
        }
    }

    fn goes_on(&mut self) -> bool {
        let orphaned = self.orphaned.load(Ordering::Acquire);
        self.signal = self.signals.next().or(orphaned.then_some(TERMINATE));
        self.signal.is_none()
    }
}
