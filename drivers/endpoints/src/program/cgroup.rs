//! A control group (version 2) that limits the memory of a program and all its descendants, if the system lets this
//! user create one.

use narrows_sys::clock;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The kernel's tables that contain the group of this process.
const MOUNTS: &str = "/proc/self/mountinfo";
const GROUPS: &str = "/proc/self/cgroup";
/// Beginning of the names of our groups.
const PREFIX: &str = "narrows-";
/// Age after which an empty group counts as left by a killed process.
const FORGOTTEN: Duration = Duration::from_mins(1);

/// A group with a memory limit; its folder is removed on drop.
#[derive(Debug)]
pub(super) struct Group {
    folder: PathBuf,
}

impl Group {
    /// A group for the end of a flow; `None` if the memory controller has not been delegated to this user.
    pub(super) fn with_memory(bytes: u64, name: &str) -> Option<Group> {
        let own = own_folder(
            &fs::read_to_string(MOUNTS).ok()?,
            &fs::read_to_string(GROUPS).ok()?,
        )?;
        // A group with processes cannot have children with controllers; then try a sibling.
        let parents = [Some(own.as_path()), own.parent()];
        parents.into_iter().flatten().find_map(|parent| {
            let group = Group::below(parent, bytes, name).ok()?;
            group.lets_us_in(&own).then_some(group)
        })
    }

    /// Creates the folder of a group with its limit.
    fn below(parent: &Path, bytes: u64, name: &str) -> io::Result<Group> {
        let control = parent.join("cgroup.subtree_control");
        let has_memory = |text: &str| text.split_ascii_whitespace().any(|word| word == "memory");
        if !has_memory(&fs::read_to_string(&control)?) {
            fs::write(&control, "+memory")?;
        }
        let group = Group::empty(parent, name)?;
        fs::write(group.folder.join("memory.max"), bytes.to_string())?;
        // Without swap, and killed as a whole; older kernels support neither.
        let _ = fs::write(group.folder.join("memory.swap.max"), "0");
        let _ = fs::write(group.folder.join("memory.oom.group"), "1");
        Ok(group)
    }

    /// Creates the folder of a group, and removes those that killed processes have left.
    fn empty(parent: &Path, name: &str) -> io::Result<Group> {
        sweep(parent, FORGOTTEN);
        // Not the process ID, which is 1 in a new PID namespace.
        let folder = parent.join(format!("{PREFIX}{}-{name}", clock::mono_ns()));
        fs::create_dir(&folder)?;
        Ok(Group { folder })
    }

    /// True if our processes may move into it, and back.
    fn lets_us_in(&self, own: &Path) -> bool {
        let moved = fs::write(self.folder.join("cgroup.procs"), "0");
        moved.is_ok() && fs::write(own.join("cgroup.procs"), "0").is_ok()
    }

    /// The file by which a process moves into the group.
    pub(super) fn entrance(&self) -> io::Result<OwnedFd> {
        let file: File = OpenOptions::new()
            .write(true)
            .open(self.folder.join("cgroup.procs"))?;
        Ok(file.into())
    }

    /// True if the kernel has killed a process in it because of its limit.
    pub(super) fn has_killed(&self) -> bool {
        let events = fs::read_to_string(self.folder.join("memory.events")).unwrap_or_default();
        kills(&events) > 0
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.folder);
    }
}

/// Removes our groups of at least this age without processes; the kernel refuses to remove others.
fn sweep(parent: &Path, age: Duration) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let made = entry.metadata().and_then(|about| about.modified());
        let is_old = || made.is_ok_and(|time| time.elapsed().is_ok_and(|passed| passed >= age));
        if entry.file_name().to_string_lossy().starts_with(PREFIX) && is_old() {
            let _ = fs::remove_dir(entry.path());
        }
    }
}

/// Number of processes that were killed, from `memory.events`.
fn kills(events: &str) -> u64 {
    let count = |line: &str| line.strip_prefix("oom_kill ")?.trim().parse().ok();
    events.lines().find_map(count).unwrap_or(0)
}

/// The folder of the group of this process, from the text of both tables.
fn own_folder(mounts: &str, groups: &str) -> Option<PathBuf> {
    let path = groups.lines().find_map(|line| line.strip_prefix("0::"))?;
    let place = |line: &str| {
        let (first, second) = line.split_once(" - ")?;
        let mut words = first.split(' ').skip(3);
        let (root, point) = (words.next()?, words.next()?);
        let inside = Path::new(path).strip_prefix(root).ok()?;
        second
            .starts_with("cgroup2 ")
            .then(|| Path::new(point).join(inside))
    };
    mounts.lines().find_map(place)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_group_of_a_process_is_found() {
        let mounts = "24 1 0:21 / /proc rw - proc proc rw\n\
                      30 24 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw\n";
        assert_eq!(
            own_folder(mounts, "4:memory:/x\n0::/user.slice/a.scope\n"),
            Some("/sys/fs/cgroup/user.slice/a.scope".into())
        );
        assert_eq!(own_folder(mounts, "0::/\n"), Some("/sys/fs/cgroup/".into()));
        assert_eq!(own_folder(mounts, "4:memory:/x\n"), None);
        assert_eq!(
            own_folder("24 1 0:21 / /proc rw - proc proc rw\n", "0::/\n"),
            None
        );
    }

    #[test]
    fn killed_processes_are_counted() {
        assert_eq!(
            kills("low 0\nmax 7\noom 2\noom_kill 2\noom_group_kill 1\n"),
            2
        );
        assert_eq!(kills("low 0\n"), 0);
    }

    /// With the kernel's tree, if groups can be created; this does not need the memory controller.
    #[test]
    fn processes_enter_a_real_group_and_what_is_left_is_removed() {
        let tables = (fs::read_to_string(MOUNTS), fs::read_to_string(GROUPS));
        let (Ok(mounts), Ok(groups)) = tables else {
            return;
        };
        let Some(own) = own_folder(&mounts, &groups) else {
            return;
        };
        let Ok(group) = Group::empty(&own, "test") else {
            return;
        };
        let folder = group.folder.clone();
        if !group.lets_us_in(&own) {
            return;
        }
        let procs = || fs::read_to_string(folder.join("cgroup.procs")).unwrap();
        assert_eq!(procs(), "", "we are back where we were");
        let mut command = std::process::Command::new("sleep");
        command.arg("100");
        narrows_sys::limits::join(&mut command, group.entrance().unwrap());
        let mut child = command.spawn().unwrap();
        assert_eq!(procs(), format!("{}\n", child.id()));
        // It is not removed while it has a process.
        sweep(&own, Duration::ZERO);
        assert!(folder.is_dir());
        assert!(!group.has_killed());
        child.kill().unwrap();
        child.wait().unwrap();
        std::mem::forget(group);
        sweep(&own, Duration::ZERO);
        assert!(!folder.exists(), "what a killed process has left");
        let second = Group::empty(&own, "test").unwrap();
        let folder = second.folder.clone();
        sweep(&own, FORGOTTEN);
        assert!(folder.is_dir());
        drop(second);
        assert!(!folder.exists());
    }

    #[test]
    fn without_the_controller_there_is_no_group() {
        let folder = std::env::temp_dir().join(format!("cgroup-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        assert!(Group::below(&folder, 1 << 20, "x").is_err());
        fs::write(folder.join("cgroup.subtree_control"), "cpu memory").unwrap();
        let group = Group::below(&folder, 1 << 20, "x").unwrap();
        let limit = fs::read_to_string(group.folder.join("memory.max")).unwrap();
        assert_eq!(limit, "1048576");
        assert!(!group.has_killed());
        fs::write(group.folder.join("memory.events"), "oom_kill 1\n").unwrap();
        assert!(group.has_killed());
        fs::remove_dir_all(folder).unwrap();
    }
}
