//! `simulate` and `emulate`.

use crate::CellArguments;
use crate::events::{self, Failure, Progress, TERMINATE};
use narrows_cell::{Cell, load_files};
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
    let orphaned = Arc::new(AtomicBool::new(false));
    if arguments.watch_stdin {
        let orphaned = orphaned.clone();
        // A simulation never waits, so a thread does.
        std::thread::spawn(move || {
            let mut buffer = [0; 256];
            while matches!(std::io::stdin().read(&mut buffer), Ok(1..)) {}
            orphaned.store(true, Ordering::Release);
        });
    }
    let mut progress = Progress::new();
    let mut stopped_by = None;
    let result = narrows_sim::run(&cell, &arguments.out, &mut |time| {
        progress.report(time.ns(), cell.duration.ns());
        stopped_by = signals
            .next()
            .or(orphaned.load(Ordering::Acquire).then_some(TERMINATE));
        stopped_by.is_none()
    });
    match (result, stopped_by) {
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
