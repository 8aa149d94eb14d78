//! A program in a separate file system: a folder is its root, read-only, and nothing else of the machine can be seen or
//! changed from there.
//!
//! ```text
//! /                 an empty file system in memory, read-only
//! /usr, /lib, ...   the entries of the folder, read-only; links as links
//! /proc             the processes of the program alone, read-only
//! /dev              null, zero, full, random, urandom, and shm in memory
//! /tmp              in memory
//! /run/narrows      a folder of the record, the only one of the machine that can be written to
//! ```
//!
//! The program has no capabilities, cannot gain any, and is not root of the machine. System calls that mount, enter
//! namespaces or look into other processes are refused to it.

use super::privileges;
use super::seccomp::Filter;
use super::{check, unshare};
use rustix::fs::{FileType, Mode, OFlags, chmod, mkdir, open, symlink};
use rustix::io::Errno;
use rustix::mount::{
    MountFlags, MountPropagationFlags, UnmountFlags, mount, mount_bind, mount_change,
    mount_remount, unmount,
};
use rustix::process::{chdir, fchdir, pivot_root, umask};
use rustix::thread::UnshareFlags;
use std::ffi::{CStr, CString};
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

/// Where the folder of the record is, as seen from inside.
pub const WORK: &str = "/run/narrows";
/// Where files in memory are, as seen from inside.
pub const SCRATCH: &str = "/tmp";
/// Entries of a root that are replaced.
pub const REPLACED: [&str; 5] = ["dev", "proc", "run", "sys", "tmp"];

/// Folder on which the new root is built: any existing one.
const STAGE: &CStr = c"/tmp";
/// Size of `/tmp` and `/dev/shm` inside.
const IN_MEMORY: &CStr = c"mode=1777,size=256m";
/// Devices that have no effect outside of the program that uses them: source and target.
const DEVICES: [(&CStr, &CStr); 5] = [
    (c"/dev/null", c"/tmp/dev/null"),
    (c"/dev/zero", c"/tmp/dev/zero"),
    (c"/dev/full", c"/tmp/dev/full"),
    (c"/dev/random", c"/tmp/dev/random"),
    (c"/dev/urandom", c"/tmp/dev/urandom"),
];
/// Names of open files: link and content.
const STREAMS: [(&CStr, &CStr); 4] = [
    (c"/tmp/dev/fd", c"/proc/self/fd"),
    (c"/tmp/dev/stdin", c"/proc/self/fd/0"),
    (c"/tmp/dev/stdout", c"/proc/self/fd/1"),
    (c"/tmp/dev/stderr", c"/proc/self/fd/2"),
];
/// Own folders, in order, and what they need.
const FOLDERS: [&CStr; 7] = [
    c"/tmp/dev",
    c"/tmp/dev/shm",
    c"/tmp/proc",
    c"/tmp/sys",
    c"/tmp/tmp",
    c"/tmp/run",
    c"/tmp/run/narrows",
];
const FOLDER_MODE: Mode = Mode::from_raw_mode(0o755);
const FILE_MODE: Mode = Mode::from_raw_mode(0o644);
const SAFE: MountFlags = MountFlags::NOSUID.union(MountFlags::NODEV);

/// The kind of an entry of the root.
#[derive(Debug)]
enum Kind {
    Folder,
    File,
    /// With its content.
    Link(CString),
}

/// An entry of the root.
#[derive(Debug)]
struct Entry {
    /// Its path relative to the folder.
    source: CString,
    target: CString,
    kind: Kind,
}

/// A prepared root, which a child enters between `fork` and `exec`.
#[derive(Debug)]
pub struct IsolatedRoot {
    root: CString,
    work: CString,
    folder: CString,
    entries: Vec<Entry>,
    becomes_nobody: bool,
    filter: Filter,
}

impl IsolatedRoot {
    /// Prepares the folder `root`, with `work` as [`WORK`], and the working folder `folder`, as seen from inside.
    ///
    /// # Errors
    /// A folder cannot be read, or a name has no representation.
    pub fn new(root: &Path, work: &Path, folder: &Path) -> io::Result<IsolatedRoot> {
        let mut entries = Vec::new();
        for entry in fs::read_dir(root)? {
            entries.extend(Entry::new(&entry?)?);
        }
        Ok(IsolatedRoot {
            root: text(root)?,
            work: text(work)?,
            folder: text(folder)?,
            entries,
            becomes_nobody: privileges::owner_of_nothing().is_some(),
            filter: Filter::of_program()?,
        })
    }

    /// Starts `command`, whose path is as seen from inside, in it. The process that calls must be the first of a PID
    /// namespace, or in one, whose processes the program may see.
    pub fn start_in(self, command: &mut Command) {
        // SAFETY: the closure runs in the child between fork and exec. It makes system calls on values prepared before
        // and does not allocate.
        unsafe {
            command.pre_exec(move || {
                self.enter()?;
                // Nothing but the three streams is inherited.
                check(libc::close_range(
                    3,
                    libc::c_uint::MAX,
                    libc::CLOSE_RANGE_CLOEXEC as libc::c_int,
                ))?;
                privileges::drop_privileges(self.becomes_nobody)?;
                self.filter.apply()
            });
        }
    }

    fn enter(&self) -> io::Result<()> {
        unshare(UnshareFlags::NEWNS | UnshareFlags::NEWIPC | UnshareFlags::NEWUTS)?;
        let detached = MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC;
        mount_change(c"/", detached)?;
        // The stage may cover them.
        let (root, work) = (place(&self.root)?, place(&self.work)?);
        umask(Mode::empty());
        mount(c"narrows", STAGE, c"tmpfs", SAFE, c"mode=0755,size=1m")?;
        fchdir(&root)?;
        for entry in &self.entries {
            entry.add()?;
        }
        for folder in FOLDERS {
            mkdir(folder, FOLDER_MODE)?;
        }
        add_devices()?;
        mount(c"narrows", c"/tmp/tmp", c"tmpfs", SAFE, IN_MEMORY)?;
        let quiet = SAFE | MountFlags::NOEXEC;
        mount(c"proc", c"/tmp/proc", c"proc", quiet, c"hidepid=2")?;
        change(c"/tmp/proc", quiet | MountFlags::RDONLY)?;
        fchdir(&work)?;
        mount_bind(c".", c"/tmp/run/narrows")?;
        change(c"/tmp/run/narrows", SAFE)?;
        chdir(STAGE)?;
        pivot_root(c".", c".")?;
        // The old root is on top of the new one.
        unmount(c".", UnmountFlags::DETACH)?;
        chdir(c"/")?;
        change(c"/", SAFE | MountFlags::RDONLY)?;
        umask(Mode::from_raw_mode(0o022));
        Ok(chdir(self.folder.as_c_str())?)
    }
}

impl Entry {
    /// An entry of a root; `None` for those that are replaced, and for devices, sockets and pipes.
    fn new(entry: &fs::DirEntry) -> io::Result<Option<Entry>> {
        let name = entry.file_name();
        if REPLACED.iter().any(|&replaced| name == replaced) {
            return Ok(None);
        }
        let file_type = entry.file_type()?;
        let kind = if file_type.is_symlink() {
            Kind::Link(text(&fs::read_link(entry.path())?)?)
        } else if file_type.is_dir() {
            Kind::Folder
        } else if file_type.is_file() {
            Kind::File
        } else {
            return Ok(None);
        };
        Ok(Some(Entry {
            source: text(&Path::new(".").join(&name))?,
            target: text(&Path::new("/tmp").join(&name))?,
            kind,
        }))
    }

    /// Makes it part of the new root, read-only. The working folder is the source.
    fn add(&self) -> io::Result<()> {
        let target = self.target.as_c_str();
        match &self.kind {
            Kind::Link(content) => return Ok(symlink(content.as_c_str(), target)?),
            Kind::Folder => mkdir(target, FOLDER_MODE)?,
            Kind::File => make_file(target)?,
        }
        mount_bind(self.source.as_c_str(), target)?;
        change(target, SAFE | MountFlags::RDONLY)
    }
}

fn add_devices() -> io::Result<()> {
    for (source, target) in DEVICES {
        make_file(target)?;
        mount_bind(source, target)?;
        change(target, MountFlags::NOSUID | MountFlags::RDONLY)?;
    }
    for (link, content) in STREAMS {
        symlink(content, link)?;
    }
    mount(c"narrows", c"/tmp/dev/shm", c"tmpfs", SAFE, IN_MEMORY)?;
    Ok(chmod(c"/tmp/dev", FOLDER_MODE)?)
}

/// Changes the settings of a mount. In a user namespace, a mount stays `noexec` if its source is.
fn change(target: &CStr, flags: MountFlags) -> io::Result<()> {
    match mount_remount(target, MountFlags::BIND | flags, c"") {
        Err(Errno::PERM) => {
            let flags = MountFlags::BIND | flags | MountFlags::NOEXEC;
            Ok(mount_remount(target, flags, c"")?)
        }
        result => Ok(result?),
    }
}

fn make_file(path: &CStr) -> io::Result<()> {
    rustix::fs::mknodat(rustix::fs::CWD, path, FileType::RegularFile, FILE_MODE, 0)?;
    Ok(())
}

/// A folder as a place only.
fn place(path: &CStr) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(open(path, flags, Mode::empty())?)
}

/// A path for the kernel.
fn text(path: &Path) -> io::Result<CString> {
    CString::new(path.as_os_str().as_bytes()).map_err(io::Error::from)
}
