//! A control group (version 2) that bounds the memory of a program together with everything that it starts, where the
//! system lets this user make one.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// Where this process is, by the kernel's tables.
const MOUNTS: &str = "/proc/self/mountinfo";
const GROUPS: &str = "/proc/self/cgroup";

/// A group with a limit of memory; its folder goes when this is dropped.
#[derive(Debug)]
pub(super) struct Group {
    folder: PathBuf,
}

impl Group {
    /// A group for the end of a flow; none where the memory controller has not been delegated to us.
    pub(super) fn with_memory(bytes: u64, name: &str) -> Option<Group> {
        let own = own_folder(
            &fs::read_to_string(MOUNTS).ok()?,
            &fs::read_to_string(GROUPS).ok()?,
        )?;
        // A group with processes in it cannot have groups with controllers below it; then one beside it may do.
        let parents = [Some(own.as_path()), own.parent()];
        parents.into_iter().flatten().find_map(|parent| {
            let group = Group::below(parent, bytes, name).ok()?;
            group.lets_us_in(&own).then_some(group)
        })
    }

    /// Makes the folder of a group with its limit.
    fn below(parent: &Path, bytes: u64, name: &str) -> io::Result<Group> {
        let control = parent.join("cgroup.subtree_control");
        let has_memory = |text: &str| text.split_ascii_whitespace().any(|word| word == "memory");
        if !has_memory(&fs::read_to_string(&control)?) {
            fs::write(&control, "+memory")?;
        }
        let folder = parent.join(format!("narrows-{}-{name}", std::process::id()));
        fs::create_dir(&folder)?;
        let group = Group { folder };
        fs::write(group.folder.join("memory.max"), bytes.to_string())?;
        // Without swap, and all at once; older kernels have neither.
        let _ = fs::write(group.folder.join("memory.swap.max"), "0");
        let _ = fs::write(group.folder.join("memory.oom.group"), "1");
        Ok(group)
    }

    /// True if processes of ours may move in, and back to where they were.
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

    /// True if the kernel has killed something in it for its limit.
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

/// How many processes were killed, by `memory.events`.
fn kills(events: &str) -> u64 {
    let count = |line: &str| line.strip_prefix("oom_kill ")?.trim().parse().ok();
    events.lines().find_map(count).unwrap_or(0)
}

/// The folder of the group in which this process is, by the text of both tables.
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
