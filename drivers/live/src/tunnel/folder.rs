//! One end of a tunnel as it is on disk.

use super::logs::{ARRIVED, SENT};
use super::report::{FILE, FORMAT};
use crate::error::LiveError;
use narrows_tunnel::log::{Row, Side, decode};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

/// Beyond this, addresses that lead nowhere are no accident of an address translator.
const MANY_MOVES: u64 = 10;

/// What an end has left in its folder.
pub(crate) struct EndFolder {
    folder: PathBuf,
    /// `tunnel.json`.
    pub(crate) document: Value,
    /// Everything it sent.
    pub(crate) sent: Vec<Row>,
    /// Everything that arrived.
    pub(crate) arrived: Vec<Row>,
    /// What the logs lack, in words without full stop.
    pub(crate) remarks: Vec<String>,
}

impl EndFolder {
    /// Reads a folder. With `lenient`, logs that end early are used as far as they go.
    ///
    /// # Errors
    /// [`LiveError::Input`] with the file and what is wrong with it.
    pub(crate) fn read(folder: &Path, lenient: bool) -> Result<EndFolder, LiveError> {
        let path = folder.join(FILE);
        let wrong = |message: &str| LiveError::Input(format!("{}: {message}", path.display()));
        let text = fs::read_to_string(&path).map_err(|error| {
            wrong(&format!(
                "{error}; it is the folder of an end of a tunnel that was closed in order"
            ))
        })?;
        let document: Value =
            serde_json::from_str(&text).map_err(|error| wrong(&error.to_string()))?;
        if document["format"] != FORMAT {
            return Err(wrong(&format!("'format' is not '{FORMAT}'")));
        }
        let mut remarks = Vec::new();
        let mut log = |name: &str, side| -> Result<Vec<Row>, LiveError> {
            let path = folder.join(name);
            let wrong = |message: &str| LiveError::Input(format!("{}: {message}", path.display()));
            let bytes = fs::read(&path).map_err(|error| wrong(&error.to_string()))?;
            let mut rows = Vec::new();
            if let Err(error) = decode(side, &bytes, &mut rows) {
                if !lenient {
                    return Err(wrong(&format!("{error}; --lenient uses what is before it")));
                }
                remarks.push(format!("{}: {error}", path.display()));
            }
            Ok(rows)
        };
        let (sent, arrived) = (log(SENT, Side::Sent)?, log(ARRIVED, Side::Arrived)?);
        Ok(EndFolder {
            folder: folder.to_owned(),
            document,
            sent,
            arrived,
            remarks,
        })
    }

    /// The end of no tunnel, of which nothing is known.
    pub(crate) fn absent(folder: &Path) -> EndFolder {
        EndFolder {
            folder: folder.to_owned(),
            document: Value::Null,
            sent: Vec::new(),
            arrived: Vec::new(),
            remarks: Vec::new(),
        }
    }

    /// Whether it called or was called.
    pub(crate) fn role(&self) -> &str {
        self.document["role"].as_str().unwrap_or("tunnel")
    }

    /// A number in `tunnel.json`; zero where it is not known.
    pub(crate) fn count(&self, pointer: &str) -> u64 {
        let number = self.document.pointer(pointer);
        number.and_then(Value::as_u64).unwrap_or(0)
    }

    /// The log of what it sent.
    pub(crate) fn sent_file(&self) -> PathBuf {
        self.folder.join(SENT)
    }

    /// What its counters say about the path, in words without full stop.
    pub(crate) fn doubt(&self) -> Option<String> {
        let refused = self.count("/arrived/moves_refused");
        (refused >= MANY_MOVES).then(|| {
            format!(
                "datagrams of the other end came to the {} {refused} times from an address at which it was not, or not \
                 alone; somebody on the path sends copies of them, or they take several ways",
                self.role()
            )
        })
    }

    /// Refuses two ends that cannot be those of one tunnel.
    ///
    /// # Errors
    /// [`LiveError::Input`] with both folders.
    pub(crate) fn check_pair(&self, other: &EndFolder) -> Result<(), LiveError> {
        if self.document["role"] == other.document["role"] {
            return Err(LiveError::Input(format!(
                "{} and {} are both of a {}; name the folders of the two ends of one tunnel",
                self.folder.display(),
                other.folder.display(),
                self.role(),
            )));
        }
        Ok(())
    }

    /// What to say when the clocks of two ends cannot be compared.
    pub(crate) fn nothing_arrived(&self, other: &EndFolder) -> LiveError {
        LiveError::Input(format!(
            "nothing has arrived at one of the ends ({}, {}), so their clocks cannot be compared",
            self.folder.display(),
            other.folder.display()
        ))
    }
}
