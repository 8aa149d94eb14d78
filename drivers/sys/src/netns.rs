//! Namespaces: a private part of the kernel's network for the run, which disappears with the
//! processes in it.

use super::unshare;
use super::write_after_fork::write_file;
use rustix::fs::OFlags;
use rustix::process::{getegid, geteuid};
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

/// A network namespace, held by a file descriptor. It has no name, so that it disappears with the
/// last process or descriptor that uses it.
#[derive(Debug)]
pub struct NetNs(File);

impl NetNs {
    /// The namespace of the calling thread.
    pub fn current() -> io::Result<NetNs> {
        File::open("/proc/thread-self/ns/net").map(NetNs)
    }

    /// A new namespace; the calling thread stays where it is.
    pub fn create() -> io::Result<NetNs> {
        let here = NetNs::current()?;
        let there = NetNs::enter_new();
        here.enter()?;
        there
    }

    /// Moves the calling thread, and only that, into a new namespace.
    pub fn enter_new() -> io::Result<NetNs> {
        unshare(UnshareFlags::NEWNET)?;
        NetNs::current()
    }

    /// Moves the calling thread into this namespace. Callable between `fork` and `exec`.
    pub fn enter(&self) -> io::Result<()> {
        let kind = LinkNameSpaceType::Network;
        Ok(move_into_link_name_space(self.as_fd(), Some(kind))?)
    }

    /// The same namespace by another descriptor.
    pub(super) fn try_clone(&self) -> io::Result<NetNs> {
        self.0.try_clone().map(NetNs)
    }

    /// Runs `work` with the calling thread inside this namespace, and returns.
    pub fn within<T>(&self, work: impl FnOnce() -> T) -> io::Result<T> {
        let here = NetNs::current()?;
        self.enter()?;
        let result = work();
        here.enter()?;
        Ok(result)
    }
}

impl AsFd for NetNs {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Privilege by which the private network was obtained.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Privilege {
    /// The process may create network namespaces already.
    Root,
    /// It first became root of a new user namespace.
    UserNamespace,
}

impl Privilege {
    /// As shown to people.
    pub const fn name(self) -> &'static str {
        match self {
            Privilege::Root => "root",
            Privilege::UserNamespace => "user namespace",
        }
    }
}

/// Moves this process into a new network namespace, through a user namespace if needed.
///
/// Prepared first and executed later, so that the second step can also happen between `fork` and
/// `exec`, where memory must not be allocated.
#[derive(Debug)]
pub struct PrivateNetwork {
    uid_map: String,
    gid_map: String,
}

impl PrivateNetwork {
    /// Records the user and group, which are not available inside the new namespace.
    pub fn prepare() -> Self {
        // Root inside, the user outside: files that the run writes belong to the user.
        PrivateNetwork {
            uid_map: format!("0 {} 1", geteuid().as_raw()),
            gid_map: format!("0 {} 1", getegid().as_raw()),
        }
    }

    /// Enters the new namespaces. A user namespace can only be entered while the process has a
    /// single thread.
    pub fn enter(&self) -> io::Result<Privilege> {
        if unshare(UnshareFlags::NEWNET).is_ok() {
            return Ok(Privilege::Root);
        }
        unshare(UnshareFlags::NEWUSER | UnshareFlags::NEWNET)?;
        for (path, text) in [
            (c"/proc/self/setgroups", "deny"),
            (c"/proc/self/uid_map", &self.uid_map),
            (c"/proc/self/gid_map", &self.gid_map),
        ] {
            write_file(path, OFlags::WRONLY, text.as_bytes())?;
        }
        Ok(Privilege::UserNamespace)
    }
}

/// True if the effective user is root.
pub fn is_root() -> bool {
    geteuid().is_root()
}

/// Reads a kernel setting (`net.ipv4.tcp_rmem`) as seen from the calling thread's namespace, with
/// white space normalised.
pub fn read_sysctl(name: &str) -> io::Result<String> {
    let text = std::fs::read_to_string(sysctl_path(name))?;
    Ok(text.split_ascii_whitespace().collect::<Vec<_>>().join(" "))
}

/// Writes a kernel setting in the calling thread's namespace.
pub fn write_sysctl(name: &str, value: &str) -> io::Result<()> {
    std::fs::write(sysctl_path(name), value)
}

fn sysctl_path(name: &str) -> String {
    format!("/proc/sys/{}", name.replace('.', "/"))
}
