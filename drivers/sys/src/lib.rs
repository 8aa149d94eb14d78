//! The only unsafe code of the project (with the allocator beside it): thin, checked wrappers around features of the operating
//! system that the standard library does not offer.
//!
//! Everything exported here is safe to call. Wrappers return [`std::io::Error`]s of the system
//! unchanged; the layers above turn these into sentences.

pub mod batched_udp;
pub mod clock;
pub mod cpu;
pub mod ethtool;
pub mod isolated_root;
pub mod limits;
pub mod mmsg;
pub mod netlink;
pub mod netns;
pub mod pid_namespace;
pub mod poll;
pub mod privileges;
pub mod process;
pub mod ring;
pub mod root_paths;
mod seccomp;
pub mod socket;
pub mod subreaper;
pub mod tcp_info;
pub mod userns;
mod write_after_fork;

use rustix::thread::{UnshareFlags, unshare_unsafe};
use std::io;

/// Moves the calling thread into new namespaces. Callable between `fork` and `exec`.
fn unshare(namespaces: UnshareFlags) -> io::Result<()> {
    debug_assert!(!namespaces.intersects(UnshareFlags::FILES));
    // SAFETY: unsafe is only a table of descriptors that other threads do not share.
    Ok(unsafe { unshare_unsafe(namespaces) }?)
}

/// Turns the -1 of a system call into the corresponding error.
fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(result)
    }
}

/// The same for calls that return a length.
fn check_len(result: libc::ssize_t) -> io::Result<usize> {
    usize::try_from(result).map_err(|_| io::Error::last_os_error())
}
