//! User namespaces: one in which the user stays the same, and children that start in prepared namespaces.

use super::netns::NetNs;
use super::{check, check_len, privileges};
use std::ffi::{CStr, CString};
use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};

/// Where files are prepared for being mounted over others: any folder that is there.
const WORKSHOP: &CStr = c"/tmp";

/// Moves this process into a user namespace in which it has all capabilities and its user and
/// group keep their numbers. The process must have a single thread.
///
/// # Errors
/// What the kernel said.
pub fn enter_user_namespace() -> io::Result<()> {
    // SAFETY: these calls cannot fail and touch no memory.
    let (uid, gid) = unsafe { (libc::geteuid(), libc::getegid()) };
    // SAFETY: unshare takes flags only.
    check(unsafe { libc::unshare(libc::CLONE_NEWUSER) })?;
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", format!("{uid} {uid} 1"))?;
    fs::write("/proc/self/gid_map", format!("{gid} {gid} 1"))
}

/// Numbers of the effective user and group.
pub fn user() -> (u32, u32) {
    // SAFETY: these calls cannot fail and touch no memory.
    unsafe { (libc::geteuid(), libc::getegid()) }
}

/// A small file that is shown in place of another one.
#[derive(Debug)]
struct Cover {
    content: Vec<u8>,
    source: CString,
    target: CString,
}

/// Where and how a child starts.
#[derive(Debug)]
pub struct NamespaceEntry {
    netns: OwnedFd,
    covers: Vec<Cover>,
    ambient: bool,
}

impl NamespaceEntry {
    /// Into `netns`; with `ambient`, the child and everything it starts keep the capabilities of
    /// this process's user namespace that network set-up needs.
    ///
    /// # Errors
    /// No descriptor is left.
    pub fn new(netns: &NetNs, ambient: bool) -> io::Result<Self> {
        Ok(NamespaceEntry {
            netns: netns.as_fd().try_clone_to_owned()?,
            covers: Vec::new(),
            ambient,
        })
    }

    /// Shows `content` to the child in place of the file `target`, if there is such a file.
    pub fn cover(&mut self, target: &str, content: Vec<u8>) {
        let source = format!("/tmp/{}", self.covers.len());
        if let (Ok(source), Ok(target)) = (CString::new(source), CString::new(target)) {
            self.covers.push(Cover {
                content,
                source,
                target,
            });
        }
    }

    /// Starts `command`, which inherits `pipe` under the same number.
    ///
    /// # Errors
    /// What the kernel said, also about the steps after the fork.
    pub fn spawn(self, mut command: Command, pipe: BorrowedFd) -> io::Result<Child> {
        let pipe = pipe.as_raw_fd();
        // SAFETY: the closure runs in the child between fork and exec. It makes system calls on
        // values captured before and does not allocate.
        unsafe {
            command.pre_exec(move || {
                self.enter()?;
                check(libc::fcntl(pipe, libc::F_SETFD, 0))?;
                Ok(())
            });
        }
        command.spawn()
    }

    fn enter(&self) -> io::Result<()> {
        // SAFETY: the descriptor is open and refers to a network namespace.
        check(unsafe { libc::setns(self.netns.as_raw_fd(), libc::CLONE_NEWNET) })?;
        if !self.covers.is_empty() {
            self.mount_covers()?;
        }
        if self.ambient {
            privileges::keep_over_exec()?;
        }
        Ok(())
    }

    /// Mounts the covers in a mount namespace of the child's own. Their content lives in a file
    /// system in memory without a name, so that nothing of it can be left over.
    fn mount_covers(&self) -> io::Result<()> {
        let none = std::ptr::null();
        let private = libc::MS_REC | libc::MS_SLAVE;
        let safe = libc::MS_NOSUID | libc::MS_NODEV;
        // SAFETY: all strings end in NUL and outlive the calls; unused pointers may be null.
        unsafe {
            check(libc::unshare(libc::CLONE_NEWNS))?;
            check(libc::mount(none, c"/".as_ptr(), none, private, none.cast()))?;
            check(libc::mount(
                c"narrows".as_ptr(),
                WORKSHOP.as_ptr(),
                c"tmpfs".as_ptr(),
                safe,
                c"mode=0755,size=4m".as_ptr().cast(),
            ))?;
            for cover in &self.covers {
                write_new(&cover.source, &cover.content)?;
                // A file that is not there needs no cover.
                libc::mount(
                    cover.source.as_ptr(),
                    cover.target.as_ptr(),
                    none,
                    libc::MS_BIND,
                    none.cast(),
                );
            }
            check(libc::umount2(WORKSHOP.as_ptr(), libc::MNT_DETACH))?;
        }
        Ok(())
    }
}

/// Writes a new file that everybody may read, with plain system calls.
fn write_new(path: &CStr, content: &[u8]) -> io::Result<()> {
    let flags = libc::O_WRONLY | libc::O_CREAT | libc::O_CLOEXEC;
    // SAFETY: `path` ends in NUL, `content` is valid for its length, and the descriptor is closed
    // exactly once.
    unsafe {
        let fd = check(libc::open(path.as_ptr(), flags, 0o644))?;
        let written = check_len(libc::write(fd, content.as_ptr().cast(), content.len()));
        libc::fchmod(fd, 0o644);
        libc::close(fd);
        if written? == content.len() {
            Ok(())
        } else {
            Err(io::Error::from_raw_os_error(libc::ENOSPC))
        }
    }
}
