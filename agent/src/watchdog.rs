//! Ends computations in real time at any point: on signals, the end of standard input, and a limit of memory.
//!
//! Simulated time may stand still while a program works, and a phase such as the verification of a large record has no
//! steps at all. Therefore a separate thread checks every [`LOOK`], and ends the whole process: it removes incomplete
//! files, reports the reason, and exits.

use crate::CellArguments;
use crate::events::{self, Failure, TERMINATE};
use narrows_cell::RecordFolder;
use narrows_sys::poll::Signals;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// Time between two checks: an unbounded flow takes some 100 MB within it.
const LOOK: Duration = Duration::from_millis(50);
/// Maximum time for which the last message may wait for a reader, or for a processor.
const PATIENCE: Duration = Duration::from_millis(500);
/// Number of attempts to remove a folder into which the work may still write.
const TRIES: u32 = 5;

/// Does `work`, which writes its record to the folder that the arguments name, unless something ends the process
/// before.
pub(crate) fn over<T, E: Into<Failure>>(
    arguments: &CellArguments,
    signals: &Signals,
    work: impl FnOnce() -> Result<T, E>,
) -> Result<T, Failure> {
    let orphaned = Arc::new(AtomicBool::new(false));
    if arguments.watch_stdin {
        let orphaned = orphaned.clone();
        thread::spawn(move || {
            let mut buffer = [0; 256];
            while matches!(std::io::stdin().read(&mut buffer), Ok(1..)) {}
            orphaned.store(true, Ordering::Release);
        });
    }
    let maximum = arguments.memory.or_else(|| share(arguments.beside));
    let partial = RecordFolder::partial(&arguments.out);
    // The work or the watchdog, whichever is first, decides the outcome.
    let over = AtomicBool::new(false);
    let look = || {
        let orphaned = orphaned.load(Ordering::Acquire);
        if let Some(signal) = signals.next().or(orphaned.then_some(TERMINATE)) {
            return Some(Failure::interrupted(signal));
        }
        let maximum = maximum?;
        (taken()? > maximum).then(|| {
            Failure::memory(format!(
                "the run needs more memory than the {} that are allowed: allow more with --memory, or reduce the data in flight, in queues or in the record (lower rates and delays, shorter queues, record: bins)",
                narrows_cell::in_words(maximum, "B")
            ))
        })
    };
    thread::scope(|scope| {
        let (done, end) = mpsc::channel::<()>();
        let (look, over, partial) = (&look, &over, &partial);
        scope.spawn(move || {
            while end.recv_timeout(LOOK) == Err(mpsc::RecvTimeoutError::Timeout) {
                let Some(failure) = look() else { continue };
                if !over.swap(true, Ordering::AcqRel) {
                    leave(partial, failure);
                }
            }
        });
        let result = work();
        if over.swap(true, Ordering::AcqRel) {
            // The process is being ended; the result of the work is not reported.
            loop {
                thread::park();
            }
        }
        drop(done);
        result.map_err(Into::into)
    })
}

/// Ends the process.
fn leave(partial: &Path, failure: Failure) -> ! {
    remove(partial);
    let code = failure.exit_code();
    let (said, heard) = mpsc::channel();
    // The work may hold the lock of standard output, because its reader has stopped.
    thread::spawn(move || {
        events::error(&failure);
        let _ = said.send(());
    });
    let _ = heard.recv_timeout(PATIENCE);
    std::process::exit(i32::from(code))
}

/// Removes a folder into which the work still writes.
fn remove(partial: &Path) {
    // Renamed first: the work may rename the folder to its final name at this time, and then that name must refer to a
    // complete record. So either all of it is removed, or nothing.
    let gone = partial.with_extension("gone");
    let _ = std::fs::remove_dir_all(&gone);
    for _ in 0..TRIES {
        if std::fs::rename(partial, &gone).is_ok() {
            let _ = std::fs::remove_dir_all(&gone);
        }
        if !partial.exists() && !gone.exists() {
            break;
        }
    }
}

/// The share of this machine's memory for one of `beside` runs, which together may take three quarters.
fn share(beside: u64) -> Option<u64> {
    Some(memory()? / 4 * 3 / beside.max(1))
}

/// The available memory: the machine's, or the limit of our control groups.
fn memory() -> Option<u64> {
    let machine = field("/proc/meminfo", "MemTotal:")?;
    let groups = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let mut limits = vec![PathBuf::from("/sys/fs/cgroup/memory/memory.limit_in_bytes")];
    if let Some(group) = groups.lines().find_map(|line| line.strip_prefix("0::/")) {
        let root = Path::new("/sys/fs/cgroup");
        let inside = root.join(group);
        let groups = inside
            .ancestors()
            .take_while(|place| place.starts_with(root));
        limits.extend(groups.map(|place| place.join("memory.max")));
    }
    // "max" is not a number, and means no limit.
    let limits = limits
        .iter()
        .filter_map(|path| std::fs::read_to_string(path).ok()?.trim().parse().ok());
    limits.chain([machine]).min()
}

/// The memory used by this process.
fn taken() -> Option<u64> {
    field("/proc/self/status", "VmRSS:")
}

/// A number of kilobytes in one of the kernel's tables, in bytes.
fn field(path: &str, name: &str) -> Option<u64> {
    let text = std::fs::read_to_string(path).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    let number: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(number * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_that_gets_its_name_while_it_is_removed_is_whole_or_gone() {
        let place = std::env::temp_dir().join(format!("narrows-watchdog-{}", std::process::id()));
        let (partial, out) = (place.join(".x-r1.partial"), place.join("x-r1"));
        let mut named = 0;
        for round in 0..60 {
            std::fs::create_dir_all(&partial).unwrap();
            for file in 0..8 {
                std::fs::write(partial.join(file.to_string()), "x").unwrap();
            }
            let done = thread::scope(|scope| {
                let naming = scope.spawn(|| {
                    thread::sleep(Duration::from_micros(round * 10));
                    std::fs::rename(&partial, &out).is_ok()
                });
                remove(&partial);
                naming.join().unwrap()
            });
            assert_eq!(out.exists(), done);
            if done {
                named += 1;
                assert_eq!(std::fs::read_dir(&out).unwrap().count(), 8);
                std::fs::remove_dir_all(&out).unwrap();
            }
            assert_eq!(std::fs::read_dir(&place).unwrap().count(), 0);
        }
        std::fs::remove_dir_all(&place).unwrap();
        assert!(named < 60, "it never came before");
    }

    #[test]
    fn the_machine_and_this_process_have_memory() {
        let (all, mine) = (memory().unwrap(), taken().unwrap());
        assert!(mine < all, "{mine} {all}");
        assert!(share(1).unwrap() < all);
        assert_eq!(share(2).unwrap(), all / 4 * 3 / 2);
        assert_eq!(share(0), share(1));
    }
}
