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
mod sizing;
mod supervision;
mod testbed;

use narrows_cell::{Cell, RunError};
use narrows_record::RunDocument;
use narrows_sys::poll::Signals;
use std::path::Path;
use testbed::Testbed;

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
}

/// Runs `cell` and writes its record to `out`.
///
/// Must be called while this process has a single thread, because it enters namespaces.
///
/// # Errors
/// Anything that prevents the record from being written. A bad run is not an error: its record says
/// so.
pub fn emulate(cell: &Cell, out: &Path, context: &mut RunContext) -> Result<RunDocument, RunError> {
    let mut testbed = Testbed::build(cell, out, context.emulator_threads)?;
    let ran = testbed.run(context);
    testbed.finish(ran)
}
