//! Files that the parameters of a cell name, such as traces.

use crate::CellError;
use narrows_net::Files;
use narrows_record::{PARQUET_MAGIC, RecordError, StepSeries};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::fmt::Write;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Reads every file that `json` names (`{"name", "sha256"}` anywhere inside) from `folder`, where its name is the first
/// 16 digits of its SHA-256, a dash and its original name.
///
/// # Errors
/// A file that cannot be read or whose content has changed.
pub fn load_files(json: &Value, folder: &Path) -> Result<Files, CellError> {
    let mut files = Files::default();
    visit(json, &mut |name, sha256| {
        let path = folder.join(file_name(name, sha256));
        let content = read_regular(&path).map_err(|error| {
            CellError::Conflict(format!(
                "{}: the file cannot be read ({error})",
                path.display()
            ))
        })?;
        let found = self::sha256(&content);
        if found != sha256 {
            return Err(CellError::Conflict(format!(
                "{}: the file has changed since the cell was made (its SHA-256 is {found})",
                path.display()
            )));
        }
        let content = as_text(content)
            .map_err(|problem| CellError::Conflict(format!("{}: {problem}", path.display())))?;
        files.insert(sha256, content);
        Ok(())
    })?;
    Ok(files)
}

/// Reads a whole file of unknown type: anything other than a regular file (a pipe, a device) might block or never end,
/// and is rejected before it is opened.
///
/// # Errors
/// The system's error, or a file that is not regular.
pub fn read_regular(path: &Path) -> io::Result<Vec<u8>> {
    let irregular = || io::Error::other("it is not a regular file");
    if !std::fs::metadata(path)?.is_file() {
        return Err(irregular());
    }
    // It may have been replaced since, and some files of /proc are regular in name only: do not wait for either.
    let mut file = File::options()
        .read(true)
        .custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY)
        .open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(irregular());
    }
    let mut content = Vec::with_capacity(usize::try_from(metadata.len()).unwrap_or(0));
    match file.read_to_end(&mut content) {
        Ok(_) => Ok(content),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
            Err(io::Error::other("it does not end"))
        }
        Err(error) => Err(error),
    }
}

/// The SHA-256 of `content` in hexadecimal digits.
pub fn sha256(content: &[u8]) -> String {
    let mut hex = String::with_capacity(64);
    for byte in Sha256::digest(content) {
        // Writing to a string cannot fail.
        let _ = write!(hex, "{byte:02x}");
    }
    hex
}

/// The content of a file as the core reads it: traces in parquet files become text, other files are unchanged.
///
/// # Errors
/// A parquet file that is not a trace; the message is one sentence without the file's name.
pub fn as_text(content: Vec<u8>) -> Result<Vec<u8>, String> {
    if !content.starts_with(PARQUET_MAGIC) {
        return Ok(content);
    }
    match StepSeries::read(content.into()) {
        Ok(steps) => Ok(steps.to_csv().into_bytes()),
        Err(RecordError::Data { problem, .. }) => Err(problem),
        Err(error) => Err(error.to_string()),
    }
}

/// Writes a file to `folder` where [`load_files`] looks for it, and returns its reference for a cell.
///
/// # Errors
/// Errors of the file system.
pub fn keep_file(folder: &Path, name: &str, content: &[u8]) -> std::io::Result<Value> {
    let sha256 = self::sha256(content);
    std::fs::create_dir_all(folder)?;
    std::fs::write(folder.join(file_name(name, &sha256)), content)?;
    Ok(json!({"name": name, "sha256": sha256}))
}

/// Name of a file in the folder of files.
fn file_name(name: &str, sha256: &str) -> String {
    format!("{}-{name}", sha256.get(..16).unwrap_or(sha256))
}

fn visit(
    json: &Value,
    found: &mut dyn FnMut(&str, &str) -> Result<(), CellError>,
) -> Result<(), CellError> {
    match json {
        Value::Array(list) => list.iter().try_for_each(|item| visit(item, found)),
        Value::Object(object) => {
            let word = |key: &str| object.get(key).and_then(Value::as_str);
            match (word("name"), word("sha256")) {
                (Some(name), Some(sha256)) => found(name, sha256),
                _ => object.values().try_for_each(|item| visit(item, found)),
            }
        }
        _ => Ok(()),
    }
}
