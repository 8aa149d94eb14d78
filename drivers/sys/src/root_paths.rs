//! Files below a folder that is the root of a program: absolute paths, and links on the way to them, start at that
//! folder and never leave it.

use rustix::fs::{Mode, OFlags, ResolveFlags, open, openat2};
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Component, Path, PathBuf};

/// Opens `path` below `root` as a place only: nothing is read, and no device is touched.
fn look_up(root: &Path, path: &Path) -> io::Result<OwnedFd> {
    let folder = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let root = open(root, folder, Mode::empty())?;
    let within = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
    let place = OFlags::PATH | OFlags::CLOEXEC;
    Ok(openat2(&root, path, place, Mode::empty(), within)?)
}

/// The path below `root` that `path` leads to without any links, and its place in this process's file system.
///
/// # Errors
/// It does not exist.
pub fn resolve(root: &Path, path: &Path) -> io::Result<Resolved> {
    let place = look_up(root, path)?;
    let outside = fs::read_link(format!("/proc/self/fd/{}", place.as_raw_fd()))?;
    let root = fs::canonicalize(root)?;
    let below = outside
        .strip_prefix(&root)
        .map_err(|_| io::Error::from(io::ErrorKind::NotFound))?;
    Ok(Resolved {
        inside: Path::new("/").join(below),
        outside,
    })
}

/// Where a path below a root leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolved {
    /// The path as seen from the root.
    pub inside: PathBuf,
    /// The path as seen by this process; no part of it is a link.
    pub outside: PathBuf,
}

/// True if `path` is absolute and has no `..`.
pub fn is_plain(path: &Path) -> bool {
    path.is_absolute() && !path.components().any(|part| part == Component::ParentDir)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn no_link_leads_out_of_the_root() {
        let root = std::env::temp_dir().join(format!("inside-{}", std::process::id()));
        fs::create_dir_all(root.join("usr/bin")).unwrap();
        fs::write(root.join("usr/bin/x"), "").unwrap();
        symlink("usr/bin", root.join("bin")).unwrap();
        symlink("/usr/bin/x", root.join("absolute")).unwrap();
        symlink("../../../../../etc/passwd", root.join("climbs")).unwrap();
        symlink("/proc/self/root/etc/passwd", root.join("magic")).unwrap();
        let inside = |path: &str| resolve(&root, Path::new(path)).map(|found| found.inside);
        assert_eq!(inside("/bin/x").unwrap(), Path::new("/usr/bin/x"));
        assert_eq!(inside("/absolute").unwrap(), Path::new("/usr/bin/x"));
        assert_eq!(
            inside("/../../bin/../bin/x").unwrap(),
            Path::new("/usr/bin/x")
        );
        for path in ["/climbs", "/magic", "/etc/passwd", "/../etc/passwd"] {
            assert!(inside(path).is_err(), "{path}");
        }
        let real = fs::canonicalize(&root).unwrap().join("usr/bin/x");
        assert_eq!(resolve(&root, Path::new("/bin/x")).unwrap().outside, real);
        fs::remove_dir_all(root).unwrap();
        assert!(is_plain(Path::new("/bin/x")));
        assert!(!is_plain(Path::new("bin/x")) && !is_plain(Path::new("/bin/../x")));
    }
}
