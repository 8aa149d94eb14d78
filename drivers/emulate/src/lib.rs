//! One emulated run, from the cell to the finished record.
//!
//! ```text
//! agent (private namespace) -- emulator thread, pinned to the last CPU; several with many CPUs
//!   |                       \- writer thread, runs when nothing else does
//!   +-- endpoints: two processes per flow, in the hosts' namespaces, on the other CPUs
//! ```
//!
//! The agent itself only waits: for endpoints to be ready, for signals, for the end. When it dies
//! for any reason, the kernel ends the endpoints, and the namespaces and wires disappear with the
//! last process.
#![forbid(unsafe_code)]

mod describe;
mod live;
mod orders;
mod sizing;
mod supervision;
mod testbed;

use describe::{describe, describe_hosts};
pub use live::{ElementSample, FlowSample, LiveEvent, LiveSample};
use narrows_cell::{Cell, Context, RunError, versions};
use narrows_emulator::Report;
use narrows_netns::host_info;
use narrows_record::RunDocument;
use narrows_sys::clock;
use narrows_sys::poll::Signals;
use orders::Orders;
use serde_json::json;
use std::borrow::Cow;
use std::path::Path;
use std::thread::ScopedJoinHandle;
use supervision::{SupervisedRun, Supervision};
use testbed::{EmulatorThread, Testbed};

/// The surroundings of a run.
pub struct RunContext<'a> {
    /// The signals that stop a run, already blocked in this process.
    pub signals: &'a Signals,
    /// True if the end of standard input means that the parent has ended.
    pub watch_stdin: bool,
    /// Folder of the files that the cell names, for the endpoints.
    pub files: &'a Path,
    /// Maximum number of threads of the emulator; by default half of the processors are left to the
    /// endpoints.
    pub emulator_threads: Option<usize>,
    /// Called with the progress of the run: elapsed time and length, in ns.
    pub progress: &'a mut dyn FnMut(u64, u64),
    /// Called with readings of the run while it is under way, if they are wanted.
    pub live: Option<&'a mut dyn FnMut(&LiveEvent)>,
    /// True if lines of standard input are orders that change the run; needs `live` and `watch_stdin`.
    pub takes_orders: bool,
}

/// Runs `cell` and writes its record to `out`.
///
/// Must be called while this process has a single thread, because it enters namespaces.
///
/// # Errors
/// Anything that prevents the record from being written. A bad run is not an error: its record says
/// so.
pub fn emulate(cell: &Cell, out: &Path, context: &mut RunContext) -> Result<RunDocument, RunError> {
    let testbed = Testbed::build(cell, out, context.emulator_threads, context.live.is_some())?;
    let ran = run(&testbed, context);
    finish(testbed, ran)
}

/// Runs the cell to its end.
///
/// # Errors
/// Anything that aborts the run.
fn run(testbed: &Testbed, context: &mut RunContext) -> Result<(Report, SupervisedRun), RunError> {
    std::thread::scope(|scope| {
        let running = testbed.start_threads(scope)?;
        let ended = || running.iter().any(ScopedJoinHandle::is_finished);
        let mut supervision = Supervision {
            testbed,
            context,
            orders: Orders::default(),
        };
        let supervised = supervision.run(&ended);
        if supervised.is_err() {
            testbed.control.stop();
        }
        let report = join(running);
        // The first error explains later ones.
        let supervised = supervised.map_err(|error| match (&report, error) {
            (Err(cause), RunError::Internal(_)) => RunError::Internal(cause.to_string()),
            (_, error) => error,
        })?;
        Ok((report?, supervised))
    })
}

/// Ends the processes of the run and completes its record.
///
/// # Errors
/// The error of a run that was aborted, or a record that cannot be written.
fn finish(
    mut testbed: Testbed,
    ran: Result<(Report, SupervisedRun), RunError>,
) -> Result<RunDocument, RunError> {
    let (report, mut supervised) = match (ran, testbed.writer.take()) {
        (Ok(ran), writer) => {
            if let Some(writer) = writer {
                writer.finish(&testbed.folder)?;
            }
            ran
        }
        // The error of the disk is why the run was aborted.
        (Err(error), Some(writer)) if writer.has_failed() => {
            return Err(writer.finish(&testbed.folder).err().unwrap_or(error));
        }
        (Err(error), _) => return Err(error),
    };
    if let Some(changed) = supervised.changed.take() {
        testbed.cell = Cow::Owned(changed);
    }
    let processes = supervised.supervisor.stop();
    if testbed.programs.as_mut().is_some_and(|it| !it.finish()) {
        return Err(RunError::Internal(
            "the program that holds the BPF congestion controls ended during the run".to_owned(),
        ));
    }
    let mut run = RunDocument::new(testbed.cell.json.clone(), "emulate", versions());
    describe_hosts(&mut run, &testbed.hosts);
    run.other
        .insert("privilege".to_owned(), json!(testbed.privilege.name()));
    run.started_at = Some(host_info::wall_clock(supervised.start_ns));
    run.ended_at = Some(host_info::wall_clock(clock::real_ns()));
    let after = testbed.hosts.counters();
    let after = after.could_not("read the wires' counters")?;
    describe(&mut run, &testbed, &after, report, supervised, processes)?;
    testbed.folder.complete(&mut run)?;
    Ok(run)
}

/// Waits for the threads of the emulator, and merges their reports.
fn join(threads: Vec<EmulatorThread>) -> Result<Report, RunError> {
    let crashed = || RunError::Internal("the emulator's thread has crashed".to_owned());
    let reports: Vec<_> = threads.into_iter().map(ScopedJoinHandle::join).collect();
    let mut joined: Option<Report> = None;
    for report in reports {
        let report = report.map_err(|_| crashed())??;
        match &mut joined {
            None => joined = Some(report),
            Some(joined) => joined.join(report),
        }
    }
    joined.ok_or_else(crashed)
}
