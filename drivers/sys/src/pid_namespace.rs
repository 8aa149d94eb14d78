//! A PID namespace for a program: when its first process ends for any reason, the kernel ends all others, including
//! background processes.

use super::process::die_with_parent;
use super::{check, unshare};
use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_change};
use rustix::process::{Pid, WaitOptions, getpid, waitpid};
use rustix::thread::UnshareFlags;
use std::io;

/// Exit code of a successful trial.
const WORKED: i32 = 0;

/// Continues as the first process of a new PID namespace, with a matching `/proc`. The calling process only waits for
/// that one and ends with the same status; if it is killed, the kernel kills the whole namespace. It must have a single
/// thread.
///
/// # Errors
/// The kernel does not allow it, and then nothing has changed: some containers do not allow mounting `/proc`.
pub fn become_first_process() -> io::Result<()> {
    // A process that has created a namespace cannot start others once the first process in it has ended, so another
    // process makes the trial.
    try_it()?;
    unshare(UnshareFlags::NEWPID)?;
    match fork()? {
        None => {
            die_with_parent();
            show_own_processes()
        }
        Some(first) => wait_for(first),
    }
}

/// Does the same in a process that ends immediately.
fn try_it() -> io::Result<()> {
    let Some(trial) = fork()? else {
        let code = unshare(UnshareFlags::NEWPID)
            .and_then(|()| fork())
            .and_then(|first| match first {
                None => show_own_processes().map(|()| WORKED),
                Some(first) => exit_code(first),
            });
        exit(code.unwrap_or(1));
    };
    match exit_code(trial)? {
        WORKED => Ok(()),
        _ => Err(io::ErrorKind::PermissionDenied.into()),
    }
}

/// A mount namespace whose `/proc` is that of the calling process's PID namespace.
fn show_own_processes() -> io::Result<()> {
    unshare(UnshareFlags::NEWNS)?;
    let detached = MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC;
    mount_change(c"/", detached)?;
    let safe = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    mount(c"proc", c"/proc", c"proc", safe, None)?;
    if getpid() == Pid::INIT {
        Ok(())
    } else {
        Err(io::ErrorKind::PermissionDenied.into())
    }
}

/// Parent and child continue after this; it returns `None` in the child.
fn fork() -> io::Result<Option<Pid>> {
    // SAFETY: there is one thread, so no state is inconsistent in the child, which uses its memory like the parent.
    let pid = check(unsafe { libc::fork() })?;
    Ok(Pid::from_raw(pid))
}

/// The exit code of a child, once it has ended.
fn exit_code(child: Pid) -> io::Result<i32> {
    loop {
        match waitpid(Some(child), WaitOptions::empty()) {
            Ok(Some((_, status))) => {
                let by_signal = status.terminating_signal().map(|signal| 128 + signal);
                return Ok(status.exit_status().or(by_signal).unwrap_or(1));
            }
            Ok(None) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Ends with the status of the child, and keeps no descriptor open while waiting.
fn wait_for(child: Pid) -> ! {
    // SAFETY: no code in this process uses a descriptor any more.
    unsafe { libc::close_range(3, libc::c_uint::MAX, 0) };
    exit(exit_code(child).unwrap_or(1))
}

/// Ends this process without cleanup, which the other process does.
fn exit(code: i32) -> ! {
    // SAFETY: no further code runs.
    unsafe { libc::_exit(code) }
}
