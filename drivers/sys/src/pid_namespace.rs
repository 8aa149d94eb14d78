//! A PID namespace for a program: when its first process ends, however that happens, the kernel ends all others, those
//! that have moved into the background as well.

use super::process::die_with_parent;
use super::{check, unshare};
use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_change};
use rustix::process::{Pid, WaitOptions, getpid, waitpid};
use rustix::thread::UnshareFlags;
use std::io;

/// Exit code of a trial that worked.
const WORKED: i32 = 0;

/// Goes on as the first process of a PID namespace of its own, with a `/proc` that shows it. The process that called
/// only waits for that one and ends as it does; if it is killed, the kernel kills the whole namespace. It must have a
/// single thread.
///
/// # Errors
/// The kernel does not allow it, and then nothing has changed: not in every container may `/proc` be mounted.
pub fn become_first_process() -> io::Result<()> {
    // A process that has made a namespace cannot start others any more once the first in it has ended, so whether
    // it works is tried by another one.
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

/// Does the same in a process that ends at once.
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

/// Both go on behind this: in the child it is `None`.
fn fork() -> io::Result<Option<Pid>> {
    // SAFETY: there is one thread, so nothing is half done in the child, which uses its memory as the parent does.
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

/// Ends as the child does, and holds nothing open meanwhile.
fn wait_for(child: Pid) -> ! {
    // SAFETY: nothing in this process uses a descriptor any more.
    unsafe { libc::close_range(3, libc::c_uint::MAX, 0) };
    exit(exit_code(child).unwrap_or(1))
}

/// Ends this process without whatever the other one still has to do.
fn exit(code: i32) -> ! {
    // SAFETY: nothing is left to be done.
    unsafe { libc::_exit(code) }
}
