//! The file system in which a program runs: that of the machine, or a folder as its root.

use narrows_cell::Program;
use narrows_sys::isolated_root::{IsolatedRoot, SCRATCH, WORK};
use narrows_sys::root_paths;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The search path of programs in a root, unless its archive or the manifest sets one.
const SEARCH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Where a program finds its files.
#[derive(Clone, Copy, Debug)]
pub(super) struct FileSystem<'a> {
    /// The folder that is its root; `None` for the file system of the machine.
    root: Option<&'a Path>,
    /// The folder of its files in the record.
    work: &'a Path,
}

impl<'a> FileSystem<'a> {
    pub(super) fn new(program: &'a Program, work: &'a Path) -> Self {
        FileSystem {
            root: program.root.as_ref().map(|root| Path::new(&*root.folder)),
            work,
        }
    }

    /// The file system of the machine.
    #[cfg(test)]
    pub(super) fn of_machine() -> Self {
        FileSystem {
            root: None,
            work: Path::new("/"),
        }
    }

    /// The path by which the program knows the folder of its files.
    pub(super) fn log(self) -> PathBuf {
        match self.root {
            Some(_) => PathBuf::from(WORK),
            None => self.work.to_owned(),
        }
    }

    /// A path that the program uses, as a path of this process without links inside the root.
    pub(super) fn outside(self, path: &Path) -> Option<PathBuf> {
        let Some(root) = self.root else {
            return Some(path.to_owned());
        };
        if let Ok(below) = path.strip_prefix(WORK) {
            let below = Path::new("/").join(below);
            return root_paths::resolve(self.work, &below)
                .ok()
                .map(|at| at.outside);
        }
        root_paths::resolve(root, path).ok().map(|at| at.outside)
    }

    /// The path of a file as the program sees it, without links.
    pub(super) fn real(self, path: &Path) -> PathBuf {
        let real = match self.root {
            Some(root) => root_paths::resolve(root, path).map(|at| at.inside),
            None => fs::canonicalize(path),
        };
        real.unwrap_or_else(|_| path.to_owned())
    }

    /// True if the program can use a folder as its working folder.
    pub(super) fn has_folder(self, folder: &Path) -> bool {
        if self.root.is_some() && folder.starts_with(SCRATCH) {
            return folder == Path::new(SCRATCH);
        }
        self.outside(folder).is_some_and(|path| path.is_dir())
    }

    /// The file of a program, as the program sees it: the path itself if it has a slash, else the first on `PATH`, which `env`
    /// may set.
    pub(super) fn find(self, name: &str, env: &[(String, String)]) -> Option<PathBuf> {
        if self.root.is_none() {
            return find(name, env);
        }
        let set = env.iter().rev().find(|(name, _)| name == "PATH");
        let search = set.map_or(SEARCH, |(_, value)| value);
        let candidates: Vec<PathBuf> = if name.contains('/') {
            vec![PathBuf::from(name)]
        } else {
            std::env::split_paths(search)
                .map(|folder| folder.join(name))
                .collect()
        };
        candidates.into_iter().find(|path| {
            let about = self.outside(path).and_then(|path| path.metadata().ok());
            root_paths::is_plain(path)
                && about
                    .is_some_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
        })
    }

    /// Makes `command` run with the root, in `folder`. Variables of the machine do not reach it.
    pub(super) fn contain(
        self,
        command: &mut Command,
        folder: &Path,
        env: &[(String, String)],
    ) -> io::Result<()> {
        let Some(root) = self.root else {
            command.current_dir(folder);
            command.envs(env.iter().map(|(name, value)| (name, value)));
            return Ok(());
        };
        command.env_clear();
        command.env("PATH", SEARCH).env("HOME", SCRATCH);
        command.envs(env.iter().map(|(name, value)| (name, value)));
        IsolatedRoot::new(root, self.work, folder)?.start_in(command);
        Ok(())
    }
}

/// Default search path of programs.
const USUAL_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// The file of a program: the path itself if it has a slash, else the first on `PATH`, which `env` may set.
fn find(name: &str, env: &[(String, String)]) -> Option<PathBuf> {
    if name.contains('/') {
        return Some(PathBuf::from(name)).filter(|path| is_program(path));
    }
    let set = env.iter().find(|(name, _)| name == "PATH");
    let path = set.map_or_else(
        || std::env::var_os("PATH").unwrap_or_else(|| USUAL_PATH.into()),
        |(_, value)| value.into(),
    );
    std::env::split_paths(&path)
        .map(|folder| folder.join(name))
        .find(|path| is_program(path))
}

fn is_program(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn programs_are_found_as_shells_find_them() {
        let shell = find("sh", &[]).unwrap();
        assert!(is_program(&shell));
        assert_eq!(find(&shell.display().to_string(), &[]), Some(shell));
        assert_eq!(find("sh", &[("PATH".into(), "/no/where".into())]), None);
        assert_eq!(find("no-such-program", &[]), None);
        assert_eq!(find("/etc/passwd", &[]), None, "it cannot be executed");
    }

    #[test]
    fn programs_are_found_below_their_root_alone() {
        let root = std::env::temp_dir().join(format!("root-{}", std::process::id()));
        fs::create_dir_all(root.join("usr/bin")).unwrap();
        fs::write(root.join("usr/bin/x"), "").unwrap();
        fs::set_permissions(root.join("usr/bin/x"), fs::Permissions::from_mode(0o755)).unwrap();
        symlink("usr/bin", root.join("bin")).unwrap();
        let at = FileSystem {
            root: Some(&root),
            work: &root,
        };
        assert_eq!(at.find("x", &[]), Some("/usr/bin/x".into()));
        assert_eq!(at.find("/bin/x", &[]), Some("/bin/x".into()));
        assert_eq!(at.real(Path::new("/bin/x")), Path::new("/usr/bin/x"));
        assert_eq!(at.find("sh", &[]), None);
        assert_eq!(at.find("/bin/sh", &[]), None);
        assert_eq!(at.find("usr/bin/x", &[]), None);
        assert_eq!(
            at.find("x", &[("PATH".into(), "/bin".into())]),
            Some("/bin/x".into())
        );
        assert!(at.has_folder(Path::new("/tmp")) && at.has_folder(Path::new(WORK)));
        assert!(at.has_folder(Path::new("/bin")) && !at.has_folder(Path::new("/etc")));
        assert!(!at.has_folder(Path::new("/tmp/x")));
        fs::remove_dir_all(root).unwrap();
    }
}
