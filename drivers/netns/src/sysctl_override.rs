//! Settings of the machine that are changed temporarily and restored.
//!
//! Some settings belong to the whole machine and to no namespace, such as the largest buffer of a socket. They are
//! raised here, never lowered, and restored at the end. A journal lists the changes and is written *before* them: if
//! this process is killed, the next run finds it and restores the settings first. The journal is locked while the
//! override is in force, so that two runs do not undo each other's changes. It is in a place that a restart of the
//! machine clears, as the restart also resets the settings.

use narrows_cell::RunError;
use narrows_sys::netns::{read_sysctl, write_sysctl};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// Default path of the journal.
pub const JOURNAL: &str = "/run/narrows/settings.json";

/// One setting that was changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// Name, such as `net.core.rmem_max`.
    pub name: String,
    /// Its value before, in the unit of the setting.
    pub before: u64,
    /// Its value while the override is in force, in the same unit.
    pub now: u64,
}

/// Access to the settings: the kernel's files, or a test's.
pub trait SysctlAccess {
    /// The value of a setting, as text.
    fn read(&self, name: &str) -> std::io::Result<String>;
    /// Changes a setting.
    fn write(&self, name: &str, value: &str) -> std::io::Result<()>;
}

/// The settings of this machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct MachineSysctls;

impl SysctlAccess for MachineSysctls {
    fn read(&self, name: &str) -> std::io::Result<String> {
        read_sysctl(name)
    }

    fn write(&self, name: &str, value: &str) -> std::io::Result<()> {
        write_sysctl(name, value)
    }
}

/// Overridden settings. Dropping this restores them.
pub struct SysctlOverride<S: SysctlAccess> {
    settings: S,
    journal: File,
    path: PathBuf,
    changes: Vec<Change>,
    recovered: Vec<Change>,
}

/// Settings that a killed process has not restored: the content of its journal, if it is not locked. Empty if there are
/// none.
pub fn abandoned(path: &Path) -> Vec<Change> {
    let Ok(mut journal) = File::open(path) else {
        return Vec::new();
    };
    match journal.try_lock_shared() {
        Ok(()) => read_journal(&mut journal),
        Err(_) => Vec::new(),
    }
}

impl<S: SysctlAccess> SysctlOverride<S> {
    /// Raises each setting to at least the given value. Settings that a killed process has not restored are restored
    /// first.
    ///
    /// # Errors
    ///
    /// Missing privileges, another holder, or a setting that cannot be read or changed; then all settings are restored.
    pub fn raise(
        settings: S,
        minimum: &BTreeMap<String, u64>,
        path: &Path,
    ) -> Result<SysctlOverride<S>, RunError> {
        let mut journal = open_journal(path)?;
        let recovered = undo(&settings, &read_journal(&mut journal));
        let changes = plan(&settings, minimum).inspect_err(|_| forget(&journal, path))?;
        write_journal(&mut journal, &changes, path)?;
        let mut raised = SysctlOverride {
            settings,
            journal,
            path: path.to_owned(),
            changes: Vec::new(),
            recovered,
        };
        for change in changes {
            let value = change.now.to_string();
            // Dropping the changes made so far restores them.
            raised
                .settings
                .write(&change.name, &value)
                .map_err(|error| {
                    RunError::Unavailable(format!(
                        "{} cannot be set to {value}: {error}",
                        change.name
                    ))
                })?;
            raised.changes.push(change);
        }
        Ok(raised)
    }

    /// Changes that were made, in the order of names.
    pub fn changes(&self) -> &[Change] {
        &self.changes
    }

    /// Changes of a killed process that were undone.
    pub fn recovered(&self) -> &[Change] {
        &self.recovered
    }

    /// Restores all settings and returns the restored ones, without settings that another process has changed in the
    /// meantime.
    pub fn release(mut self) -> Vec<Change> {
        self.put_back()
    }

    fn put_back(&mut self) -> Vec<Change> {
        let undone = undo(&self.settings, &std::mem::take(&mut self.changes));
        forget(&self.journal, &self.path);
        undone
    }
}

impl<S: SysctlAccess> Drop for SysctlOverride<S> {
    fn drop(&mut self) {
        self.put_back();
    }
}

fn plan(
    settings: &impl SysctlAccess,
    minimum: &BTreeMap<String, u64>,
) -> Result<Vec<Change>, RunError> {
    let mut changes = Vec::new();
    for (name, &minimum) in minimum {
        check_name(name)?;
        let text = settings
            .read(name)
            .map_err(|error| RunError::Unavailable(format!("{name} cannot be read: {error}")))?;
        let before: u64 = text.parse().map_err(|_| {
            RunError::Input(format!(
                "{name} is \"{text}\", which is not a number; omit it"
            ))
        })?;
        if before < minimum {
            changes.push(Change {
                name: name.clone(),
                before,
                now: minimum,
            });
        }
    }
    Ok(changes)
}

/// Names become paths, so they must be plain names.
fn check_name(name: &str) -> Result<(), RunError> {
    let fine = name.split('.').all(|part| {
        !part.is_empty()
            && part
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
    });
    if fine {
        Ok(())
    } else {
        Err(RunError::Input(format!(
            "\"{name}\" is not the name of a kernel setting; write it as net.core.rmem_max"
        )))
    }
}

/// Restores settings that still have the value that was set here.
fn undo(settings: &impl SysctlAccess, changes: &[Change]) -> Vec<Change> {
    let ours = |change: &&Change| {
        check_name(&change.name).is_ok()
            && settings
                .read(&change.name)
                .is_ok_and(|text| text == change.now.to_string())
    };
    let back = |change: &&Change| {
        settings
            .write(&change.name, &change.before.to_string())
            .is_ok()
    };
    changes.iter().filter(ours).filter(back).cloned().collect()
}

fn open_journal(path: &Path) -> Result<File, RunError> {
    let wrong = |what: &str, error: &dyn std::fmt::Display| {
        RunError::Unavailable(format!(
            "{what} {}: {error}; settings of the machine can only be changed by root",
            path.display()
        ))
    };
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(|error| wrong("no folder for", &error))?;
    }
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    loop {
        let journal = options
            .open(path)
            .map_err(|error| wrong("could not open", &error))?;
        match journal.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(RunError::Unavailable(format!(
                    "another run holds the settings of this machine ({} is locked); wait for its end",
                    path.display()
                )));
            }
            Err(TryLockError::Error(error)) => return Err(wrong("could not lock", &error)),
        }
        // The previous holder may have removed the file after it was opened here; then the lock is on a file that
        // others cannot find.
        if path.exists() && same_file(&journal, path) {
            return Ok(journal);
        }
    }
}

fn same_file(journal: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let identity = |data: fs::Metadata| (data.dev(), data.ino());
    match (journal.metadata(), fs::metadata(path)) {
        (Ok(raised), Ok(found)) => identity(raised) == identity(found),
        _ => false,
    }
}

/// Changes in the journal; an incomplete journal means that nothing was changed yet.
fn read_journal(journal: &mut File) -> Vec<Change> {
    let mut text = String::new();
    let read = journal
        .seek(SeekFrom::Start(0))
        .and_then(|_| journal.read_to_string(&mut text));
    match read {
        Ok(_) => serde_json::from_str(&text).unwrap_or_default(),
        Err(_) => Vec::new(),
    }
}

/// Clears the journal; if the file cannot be removed, an empty one means the same.
fn forget(journal: &File, path: &Path) {
    let _ = journal.set_len(0);
    let _ = fs::remove_file(path);
}

fn write_journal(journal: &mut File, changes: &[Change], path: &Path) -> Result<(), RunError> {
    let text = serde_json::to_string(changes)
        .map_err(|error| RunError::Internal(format!("the journal cannot be written: {error}")))?;
    let written = journal
        .set_len(0)
        .and_then(|()| journal.seek(SeekFrom::Start(0)))
        .and_then(|_| journal.write_all(text.as_bytes()));
    written.map_err(|error| RunError::Io(format!("{} cannot be written: {error}", path.display())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;
    use std::rc::Rc;

    /// Settings in memory; a name can be made to refuse changes.
    #[derive(Clone, Default)]
    struct Pretended {
        values: Rc<RefCell<BTreeMap<String, String>>>,
        refuses: &'static str,
    }

    impl Pretended {
        fn with(values: &[(&str, &str)]) -> Self {
            let values = values
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
            Pretended {
                values: Rc::new(RefCell::new(values.collect())),
                refuses: "",
            }
        }

        fn value(&self, name: &str) -> String {
            self.values.borrow()[name].clone()
        }
    }

    impl SysctlAccess for Pretended {
        fn read(&self, name: &str) -> std::io::Result<String> {
            self.values
                .borrow()
                .get(name)
                .cloned()
                .ok_or(std::io::ErrorKind::NotFound.into())
        }

        fn write(&self, name: &str, value: &str) -> std::io::Result<()> {
            if name == self.refuses {
                return Err(std::io::ErrorKind::PermissionDenied.into());
            }
            self.values
                .borrow_mut()
                .insert(name.to_owned(), value.to_owned());
            Ok(())
        }
    }

    fn journal(name: &str) -> PathBuf {
        let folder =
            std::env::temp_dir().join(format!("narrows-held-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        folder.join("settings.json")
    }

    fn values_of(values: &[(&str, u64)]) -> BTreeMap<String, u64> {
        values
            .iter()
            .map(|(name, value)| ((*name).to_owned(), *value))
            .collect()
    }

    #[test]
    fn settings_are_raised_never_lowered_and_put_back() {
        let path = journal("raised");
        let machine = Pretended::with(&[("a.small", "100"), ("b.large", "900")]);
        let wanted = values_of(&[("a.small", 500), ("b.large", 500)]);
        let raised = SysctlOverride::raise(machine.clone(), &wanted, &path).unwrap();
        assert_eq!(machine.value("a.small"), "500");
        assert_eq!(machine.value("b.large"), "900");
        let changed = [Change {
            name: "a.small".to_owned(),
            before: 100,
            now: 500,
        }];
        assert_eq!(raised.changes(), changed);
        assert!(
            abandoned(&path).is_empty(),
            "held settings do not count as abandoned"
        );
        assert_eq!(raised.release(), changed);
        assert_eq!(machine.value("a.small"), "100");
        assert!(!path.exists());
        fs::remove_dir_all(path.parent().unwrap()).unwrap();
    }

    #[test]
    fn there_is_one_holder_at_a_time() {
        let path = journal("one");
        let machine = Pretended::with(&[("a.small", "100")]);
        let wanted = values_of(&[("a.small", 500)]);
        let raised = SysctlOverride::raise(machine.clone(), &wanted, &path).unwrap();
        let second = SysctlOverride::raise(machine.clone(), &wanted, &path);
        let told = second.err().unwrap().to_string();
        assert!(told.contains("another run holds"), "{told}");
        drop(raised);
        assert_eq!(machine.value("a.small"), "100", "dropping puts back");
        drop(SysctlOverride::raise(machine, &wanted, &path).unwrap());
        fs::remove_dir_all(path.parent().unwrap()).unwrap();
    }

    #[test]
    fn what_a_killed_holder_left_is_put_back_first() {
        let path = journal("killed");
        let machine = Pretended::with(&[("a.small", "100"), ("b.other", "7")]);
        let raised =
            SysctlOverride::raise(machine.clone(), &values_of(&[("a.small", 500)]), &path).unwrap();
        // A killed process runs no destructors, but its locks are released.
        let text = fs::read_to_string(&path).unwrap();
        drop(raised);
        fs::write(&path, text).unwrap();
        machine.write("a.small", "500").unwrap();
        assert_eq!(abandoned(&path).len(), 1);

        let raised =
            SysctlOverride::raise(machine.clone(), &values_of(&[("b.other", 8)]), &path).unwrap();
        assert_eq!(machine.value("a.small"), "100");
        assert_eq!(raised.recovered().len(), 1);
        assert_eq!(raised.changes().len(), 1);
        drop(raised);
        assert_eq!(machine.value("b.other"), "7");
        fs::remove_dir_all(path.parent().unwrap()).unwrap();
    }

    #[test]
    fn what_somebody_else_has_changed_meanwhile_is_theirs() {
        let path = journal("theirs");
        let machine = Pretended::with(&[("a.small", "100")]);
        let raised =
            SysctlOverride::raise(machine.clone(), &values_of(&[("a.small", 500)]), &path).unwrap();
        machine.write("a.small", "600").unwrap();
        assert!(raised.release().is_empty());
        assert_eq!(machine.value("a.small"), "600");
        fs::remove_dir_all(path.parent().unwrap()).unwrap();
    }

    #[test]
    fn a_refusal_leaves_nothing_changed() {
        let path = journal("refusal");
        let mut machine = Pretended::with(&[("a.small", "100"), ("b.stubborn", "1")]);
        machine.refuses = "b.stubborn";
        let wanted = values_of(&[("a.small", 500), ("b.stubborn", 2)]);
        let refused = SysctlOverride::raise(machine.clone(), &wanted, &path)
            .err()
            .unwrap();
        assert!(
            refused.to_string().contains("b.stubborn cannot be set"),
            "{refused}"
        );
        assert_eq!(machine.value("a.small"), "100");
        for name in ["", "a..b", "../../etc/passwd", "a/b", "a.small\n"] {
            let refused = SysctlOverride::raise(machine.clone(), &values_of(&[(name, 1)]), &path)
                .err()
                .unwrap();
            assert!(matches!(refused, RunError::Input(_)), "{name:?}: {refused}");
        }
        let missing = SysctlOverride::raise(machine, &values_of(&[("no.such", 1)]), &path)
            .err()
            .unwrap();
        assert!(
            missing.to_string().contains("no.such cannot be read"),
            "{missing}"
        );
        let _ = fs::remove_dir_all(path.parent().unwrap());
    }

    #[test]
    fn a_journal_cut_short_means_that_nothing_was_changed() {
        let path = journal("cut");
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, "[{\"name\":\"a.small\",\"befo").unwrap();
        let machine = Pretended::with(&[("a.small", "100")]);
        let raised =
            SysctlOverride::raise(machine.clone(), &values_of(&[("a.small", 500)]), &path).unwrap();
        assert!(raised.recovered().is_empty());
        drop(raised);
        assert_eq!(machine.value("a.small"), "100");
        fs::remove_dir_all(path.parent().unwrap()).unwrap();
    }
}
