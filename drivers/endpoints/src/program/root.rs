//! Work before and after the run of a program with a root: the folder of its files in the record.

use super::Runner;
use super::file_system::FileSystem;
use narrows_cell::RunError;
use std::fs;
use std::io;
use std::os::unix::fs::chown;
use std::path::Path;

impl Runner<'_> {
    /// The file system of the program.
    pub(super) fn file_system(&self) -> FileSystem<'_> {
        FileSystem::new(self.program, &self.folder)
    }

    /// Lets the program write to the folder of its files, although it is another user.
    pub(super) fn lend_folder(&self) -> io::Result<()> {
        match narrows_sys::privileges::owner_of_nothing() {
            Some((user, group)) if self.program.root.is_some() => {
                chown(&self.folder, Some(user), Some(group))
            }
            _ => Ok(()),
        }
    }

    /// Takes the folder back, once all processes have ended, and removes from it what is neither a file nor a folder: a
    /// link that a program has made would lead readers of the record out of it.
    pub(super) fn take_folder_back(&self) {
        if self.program.root.is_some() {
            let _ = chown(&self.folder, Some(0), Some(0));
            remove_others(&self.folder, 0);
        }
    }

    /// Refuses to run a program in a root where its processes could see others.
    pub(super) fn check_containment(&self, contained: bool) -> Result<(), RunError> {
        if self.program.root.is_none() || contained {
            return Ok(());
        }
        Err(RunError::Unavailable(format!(
            "{} cannot run in its root: this machine allows no PID namespace with its own /proc",
            self.who()
        )))
    }
}

/// Folders are not followed deeper than this.
const DEEPEST: usize = 64;

fn remove_others(folder: &Path, depth: usize) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        match entry.file_type() {
            Ok(kind) if kind.is_dir() && depth < DEEPEST => remove_others(&entry.path(), depth + 1),
            Ok(kind) if kind.is_file() || kind.is_dir() => {}
            _ => {
                let _ = fs::remove_file(entry.path());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn links_that_a_program_has_left_are_removed() {
        let folder = std::env::temp_dir().join(format!("left-{}", std::process::id()));
        fs::create_dir_all(folder.join("a/b")).unwrap();
        fs::write(folder.join("a/report"), "1").unwrap();
        symlink("/etc/passwd", folder.join("a/b/report")).unwrap();
        symlink("/etc", folder.join("etc")).unwrap();
        remove_others(&folder, 0);
        assert!(folder.join("a/report").is_file() && folder.join("a/b").is_dir());
        assert!(folder.join("a/b/report").symlink_metadata().is_err());
        assert!(folder.join("etc").symlink_metadata().is_err());
        assert!(Path::new("/etc/passwd").exists());
        fs::remove_dir_all(folder).unwrap();
    }
}
