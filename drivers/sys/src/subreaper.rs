//! Ends process trees: a process adopts the orphans among its descendants (`PR_SET_CHILD_SUBREAPER`), finds all of
//! them, and collects how each has ended.

use super::process::end_with;
use rustix::process::{
    Pid, Signal, WaitOptions, getpid, kill_process, kill_process_group, set_child_subreaper, wait,
};
use std::fs;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Makes the kernel kill `command` when the calling thread ends, and unblocks all signals for it.
pub fn set_parent_death_signal(command: &mut Command) {
    let parent = getpid();
    // SAFETY: the closure only makes system calls; the set is initialised before it is used.
    unsafe {
        command.pre_exec(move || {
            let mut none: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&raw mut none);
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut());
            end_with(parent)
        });
    }
}

/// Makes orphans among the descendants of this process its children, so that none can escape.
pub fn become_subreaper() {
    // The kernel accepts any number here.
    let _ = set_child_subreaper(Some(getpid()));
}

/// The end of a child, as reported by a shell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExitedChild {
    /// Number of the process.
    pub pid: u32,
    /// Exit code, or 128 plus the number of the signal that ended it.
    pub code: i32,
    /// The signal that ended it.
    pub signal: Option<i32>,
}

/// Collects one child that has ended: `Ok(None)` if all still run, an error without children.
///
/// # Errors
/// `ECHILD` without any children.
pub fn reap() -> io::Result<Option<ExitedChild>> {
    let Some((pid, status)) = wait(WaitOptions::NOHANG)? else {
        return Ok(None);
    };
    let signal = status.terminating_signal();
    let by_signal = signal.map(|signal| 128 + signal);
    Ok(Some(ExitedChild {
        pid: pid.as_raw_nonzero().get() as u32,
        code: by_signal.or(status.exit_status()).unwrap_or(0),
        signal,
    }))
}

/// Sends a signal to a process.
pub fn send_signal(pid: u32, signal: i32) {
    if let (Some(pid), Some(signal)) = (Pid::from_raw(pid as i32), Signal::from_named_raw(signal)) {
        let _ = kill_process(pid, signal);
    }
}

/// Sends a signal to all processes of a group.
pub fn signal_group(group: u32, signal: i32) {
    if let (Some(group), Some(signal)) =
        (Pid::from_raw(group as i32), Signal::from_named_raw(signal))
    {
        let _ = kill_process_group(group, signal);
    }
}

/// All descendants of this process, nearest first.
pub fn descendants() -> Vec<u32> {
    let mut found = children("self");
    let mut next = 0;
    while let Some(pid) = found.get(next) {
        let more = children(&pid.to_string());
        found.extend(more);
        next += 1;
    }
    found
}

fn children(process: &str) -> Vec<u32> {
    let mut found = Vec::new();
    let Ok(tasks) = fs::read_dir(format!("/proc/{process}/task")) else {
        return found;
    };
    for task in tasks.flatten() {
        let text = fs::read_to_string(task.path().join("children")).unwrap_or_default();
        found.extend(
            text.split_ascii_whitespace()
                .filter_map(|word| word.parse::<u32>().ok()),
        );
    }
    found
}
