//! Namespaces: a private corner of the kernel's network for the run, which vanishes with the
//! processes in it.

use super::check;
use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

/// A network namespace, held by a file descriptor. It has no name anywhere, so that it disappears
/// when the last process or descriptor that uses it is gone, however that happens.
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
        // SAFETY: unshare takes flags only.
        check(unsafe { libc::unshare(libc::CLONE_NEWNET) })?;
        let there = NetNs::current();
        here.enter()?;
        there
    }

    /// Moves the calling thread, and only that, into a new namespace.
    pub fn enter_new() -> io::Result<NetNs> {
        // SAFETY: unshare takes flags only.
        check(unsafe { libc::unshare(libc::CLONE_NEWNET) })?;
        NetNs::current()
    }

    /// Moves the calling thread into this namespace. Callable between `fork` and `exec`.
    pub fn enter(&self) -> io::Result<()> {
        // SAFETY: the descriptor is open and refers to a network namespace.
        check(unsafe { libc::setns(self.0.as_raw_fd(), libc::CLONE_NEWNET) })?;
        Ok(())
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

/// How the private network was obtained.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Privilege {
    /// The process may create network namespaces as it is.
    Root,
    /// It became root of a user namespace of its own first.
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

/// Moves this process into a network namespace of its own, through a user namespace where that is
/// needed.
///
/// Prepared first and executed later, so that the second step can also happen between `fork` and
/// `exec`, where memory must not be allocated.
#[derive(Debug)]
pub struct PrivateNetwork {
    uid_map: String,
    gid_map: String,
}

impl PrivateNetwork {
    /// Notes who we are, which cannot be asked any more inside the new namespace.
    pub fn prepare() -> Self {
        // SAFETY: these calls cannot fail and touch no memory.
        let (uid, gid) = unsafe { (libc::geteuid(), libc::getegid()) };
        // Root inside, ourselves outside: files that the run writes belong to the user.
        PrivateNetwork {
            uid_map: format!("0 {uid} 1"),
            gid_map: format!("0 {gid} 1"),
        }
    }

    /// Enters the new namespaces. A user namespace can only be entered while the process has a
    /// single thread.
    pub fn enter(&self) -> io::Result<Privilege> {
        // SAFETY: unshare takes flags only.
        if unsafe { libc::unshare(libc::CLONE_NEWNET) } == 0 {
            return Ok(Privilege::Root);
        }
        // SAFETY: as above.
        check(unsafe { libc::unshare(libc::CLONE_NEWUSER | libc::CLONE_NEWNET) })?;
        write_file(c"/proc/self/setgroups", b"deny")?;
        write_file(c"/proc/self/uid_map", self.uid_map.as_bytes())?;
        write_file(c"/proc/self/gid_map", self.gid_map.as_bytes())?;
        Ok(Privilege::UserNamespace)
    }
}

/// Writes a file with plain system calls: no allocation, so it may run after `fork`.
fn write_file(path: &CStr, bytes: &[u8]) -> io::Result<()> {
    // SAFETY: `path` ends in NUL, `bytes` is valid for its length, and the descriptor is closed
    // exactly once.
    unsafe {
        let fd = check(libc::open(path.as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC))?;
        let written = libc::write(fd, bytes.as_ptr().cast(), bytes.len());
        let error = io::Error::last_os_error();
        libc::close(fd);
        if usize::try_from(written) == Ok(bytes.len()) {
            Ok(())
        } else {
            Err(error)
        }
    }
}

/// Whether the effective user is root.
pub fn is_root() -> bool {
    // SAFETY: the call cannot fail.
    unsafe { libc::geteuid() == 0 }
}

/// Reads a kernel setting (`net.ipv4.tcp_rmem`) as seen from the calling thread's namespace, with
/// blanks normalised.
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
