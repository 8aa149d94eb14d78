//! User namespaces: one in which the user stays the same, and children that start in prepared namespaces.

use super::netns::NetNs;
use super::write_after_fork::write_file;
use super::{privileges, unshare};
use rustix::fs::OFlags;
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::mount::{
    MountFlags, MountPropagationFlags, UnmountFlags, mount, mount_bind, mount_change, unmount,
};
use rustix::process::{getegid, geteuid};
use rustix::thread::UnshareFlags;
use std::ffi::{CStr, CString};
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};

/// Folder in which files are prepared for being mounted over others: any existing one.
const WORKSHOP: &CStr = c"/tmp";

/// Moves this process into a user namespace in which it has all capabilities and its user and
/// group keep their numbers. The process must have a single thread.
///
/// # Errors
/// The kernel's error.
pub fn enter_user_namespace() -> io::Result<()> {
    let (uid, gid) = user();
    unshare(UnshareFlags::NEWUSER)?;
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", format!("{uid} {uid} 1"))?;
    fs::write("/proc/self/gid_map", format!("{gid} {gid} 1"))
}

/// Numbers of the effective user and group.
pub fn user() -> (u32, u32) {
    (geteuid().as_raw(), getegid().as_raw())
}

/// A small file that replaces another one.
#[derive(Debug)]
struct Cover {
    content: Vec<u8>,
    source: CString,
    target: CString,
}

/// The namespaces and capabilities with which a child starts.
#[derive(Debug)]
pub struct NamespaceEntry {
    netns: NetNs,
    covers: Vec<Cover>,
    ambient: bool,
}

impl NamespaceEntry {
    /// Enters `netns`; with `ambient`, the child and all its descendants keep the capabilities of this process's user
    /// namespace that network set-up needs.
    ///
    /// # Errors
    /// No descriptor is available.
    pub fn new(netns: &NetNs, ambient: bool) -> io::Result<Self> {
        Ok(NamespaceEntry {
            netns: netns.try_clone()?,
            covers: Vec::new(),
            ambient,
        })
    }

    /// Replaces the file `target` by `content` for the child, if it exists.
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
    /// The kernel's error, including the steps after the fork.
    pub fn spawn(self, mut command: Command, pipe: BorrowedFd) -> io::Result<Child> {
        let pipe = pipe.as_raw_fd();
        // SAFETY: the closure runs in the child between fork and exec. It makes system calls on
        // values captured before, such as the pipe, which is still open there, and does not allocate.
        unsafe {
            command.pre_exec(move || {
                self.enter()?;
                fcntl_setfd(BorrowedFd::borrow_raw(pipe), FdFlags::empty())?;
                Ok(())
            });
        }
        command.spawn()
    }

    fn enter(&self) -> io::Result<()> {
        self.netns.enter()?;
        if !self.covers.is_empty() {
            self.mount_covers()?;
        }
        if self.ambient {
            privileges::keep_over_exec()?;
        }
        Ok(())
    }

    /// Mounts the covers in a new mount namespace of the child. Their content is in an unnamed file system in memory,
    /// so that no files can be left over.
    fn mount_covers(&self) -> io::Result<()> {
        unshare(UnshareFlags::NEWNS)?;
        let detached = MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC;
        mount_change(c"/", detached)?;
        let safe = MountFlags::NOSUID | MountFlags::NODEV;
        mount(c"narrows", WORKSHOP, c"tmpfs", safe, c"mode=0755,size=4m")?;
        for cover in &self.covers {
            let flags = OFlags::WRONLY | OFlags::CREATE;
            write_file(&cover.source, flags, &cover.content)?;
            // A file that does not exist needs no cover.
            let _ = mount_bind(cover.source.as_c_str(), cover.target.as_c_str());
        }
        Ok(unmount(WORKSHOP, UnmountFlags::DETACH)?)
    }
}
