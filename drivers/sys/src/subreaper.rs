//! The end of whole families of processes: a process adopts the orphans among its descendants (`PR_SET_CHILD_SUBREAPER`),
//! finds all of them, and takes note of how each has ended.

use super::check;
use std::fs;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Lets the kernel kill `command` when the calling thread ends, and lets it have all signals,
/// whichever are blocked here.
pub fn set_parent_death_signal(command: &mut Command) {
    let parent = std::process::id();
    // SAFETY: the closure only makes system calls; the set is initialised before it is used.
    unsafe {
        command.pre_exec(move || {
            let mut none: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&raw mut none);
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut());
            super::process::die_with_parent();
            if libc::getppid() as u32 != parent {
                return Err(io::Error::from_raw_os_error(libc::ESRCH));
            }
            Ok(())
        });
    }
}

/// Orphans among the descendants of this process become its children, so that none can escape.
pub fn become_subreaper() {
    // SAFETY: PR_SET_CHILD_SUBREAPER takes one integer.
    unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1 as libc::c_ulong, 0, 0, 0) };
}

/// How a child has ended, as a shell tells it: the exit code, or 128 and the signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExitedChild {
    /// Number of the process.
    pub pid: u32,
    /// Exit code.
    pub code: i32,
}

/// Takes note of one child that has ended: `Ok(None)` when all still run, an error when there are
/// no children.
///
/// # Errors
/// `ECHILD` when there are no children at all.
pub fn reap() -> io::Result<Option<ExitedChild>> {
    let mut status = 0;
    // SAFETY: `status` is writable.
    let pid = check(unsafe { libc::waitpid(-1, &raw mut status, libc::WNOHANG) })?;
    if pid == 0 {
        return Ok(None);
    }
    let code = if libc::WIFSIGNALED(status) {
        128 + libc::WTERMSIG(status)
    } else {
        libc::WEXITSTATUS(status)
    };
    Ok(Some(ExitedChild {
        pid: pid as u32,
        code,
    }))
}

/// Sends a signal to a process.
pub fn send_signal(pid: u32, signal: i32) {
    // SAFETY: no memory is involved.
    unsafe { libc::kill(pid as libc::pid_t, signal) };
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
