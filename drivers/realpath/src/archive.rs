//! The folder of one end of a run as a tar stream (`ustar`), which transfers the results of another host. That host
//! needs no other program for it, and files owned by root are included if the agent runs as root.

use narrows_cell::{Context, RunError};
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use tar::{Builder, EntryType, Header};

/// All files that one end of a run or of a tunnel leaves in its folder, finished or not. Other files are never removed.
const OURS: &[&str] = &[
    "sent.ntl",
    "arrived.ntl",
    "tunnel.json",
    "side.json",
    "program.log",
    "logs",
    "files",
];
/// Ending of files that are being written.
const UNFINISHED: &str = ".part";

/// Writes everything in `folder` to `out`: regular files and folders, in the order of their names.
///
/// # Errors
/// A file cannot be read or has become shorter, a name is too long for the format, or the stream cannot be written. The
/// stream is then incomplete: its two empty blocks at the end are missing.
pub fn write(folder: &Path, out: &mut impl Write) -> Result<(), RunError> {
    if !folder.is_dir() {
        return Err(RunError::Input(format!(
            "{} is not a folder; name one that a side has written",
            folder.display()
        )));
    }
    let mut archive = Builder::new(out);
    if let Err(error) = append_folder(&mut archive, folder, "") {
        // Dropping it would write the blocks that mark the stream as complete.
        std::mem::forget(archive);
        return Err(error);
    }
    let written = archive.into_inner().and_then(Write::flush);
    written.at(folder)
}

/// Removes a folder that one end of a run has written.
///
/// # Errors
/// It contains other files, or it cannot be removed.
pub fn remove(folder: &Path) -> Result<(), RunError> {
    for name in names(folder)? {
        if !OURS.contains(&name.trim_end_matches(UNFINISHED)) {
            return Err(RunError::Input(format!(
                "{} is not removed, because it contains a file that no side has written ('{name}')",
                folder.display()
            )));
        }
    }
    fs::remove_dir_all(folder).at(folder)
}

fn append_folder(
    archive: &mut Builder<impl Write>,
    folder: &Path,
    prefix: &str,
) -> Result<(), RunError> {
    for name in names(folder)? {
        let (path, name) = (folder.join(&name), format!("{prefix}{name}"));
        let metadata = path.symlink_metadata().at(&path)?;
        if metadata.is_dir() {
            let name = format!("{name}/");
            let header = header(&name, EntryType::Directory, 0, metadata.mtime());
            archive.append(&header.at(&path)?, io::empty()).at(&path)?;
            append_folder(archive, &path, &name)?;
        } else if metadata.is_file() {
            append_file(archive, &path, &name).at(&path)?;
        }
    }
    Ok(())
}

fn append_file(archive: &mut Builder<impl Write>, path: &Path, name: &str) -> io::Result<()> {
    let file = File::open(path)?;
    let metadata = file.metadata()?;
    let left = metadata.len();
    let header = header(name, EntryType::Regular, left, metadata.mtime())?;
    archive.append(&header, ExactRead { file, left })
}

/// The header of an entry, with root as the owner.
fn header(name: &str, kind: EntryType, size: u64, modified_s: i64) -> io::Result<Header> {
    let mut header = Header::new_ustar();
    header.set_path(name)?;
    header.set_entry_type(kind);
    header.set_mode(if kind.is_dir() { 0o755 } else { 0o644 });
    header.set_uid(0);
    header.set_gid(0);
    header.set_size(size);
    header.set_mtime(u64::try_from(modified_s).unwrap_or(0));
    header.set_cksum();
    Ok(header)
}

/// Reads as many bytes as the header of a file promises: a growing log is truncated there.
struct ExactRead {
    file: File,
    /// Remaining bytes.
    left: u64,
}

impl Read for ExactRead {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let room = self.left.min(buffer.len() as u64) as usize;
        let length = self.file.read(&mut buffer[..room])?;
        if length == 0 && room > 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.left -= length as u64;
        Ok(length)
    }
}

/// Names of the entries of a folder, in order.
fn names(folder: &Path) -> Result<Vec<String>, RunError> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).at(folder)? {
        let name = entry.at(folder)?.file_name();
        match name.into_string() {
            Ok(name) => names.push(name),
            Err(name) => Err(io::ErrorKind::InvalidData.into()).at(&folder.join(name))?,
        }
    }
    names.sort();
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    const BLOCK: usize = 512;

    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Folder {
            let path =
                std::env::temp_dir().join(format!("narrows-archive-{name}-{}", std::process::id()));
            let _ = fs::remove_dir_all(&path);
            fs::create_dir_all(path.join("logs")).unwrap();
            Folder(path)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    /// The number that is written in octal digits.
    fn number(bytes: &[u8]) -> u64 {
        let digits = bytes.iter().take_while(|&&byte| byte != 0 && byte != b' ');
        digits.fold(0, |sum, &digit| sum * 8 + u64::from(digit - b'0'))
    }

    #[test]
    fn a_stream_has_names_sizes_sums_and_contents() {
        let folder = Folder::new("stream");
        fs::write(folder.0.join("sent.ntl"), vec![7; 1000]).unwrap();
        fs::write(folder.0.join("logs/flow-1-sender.log"), "").unwrap();
        fs::write(folder.0.join("side.json"), vec![b'x'; BLOCK]).unwrap();
        let mut stream = Vec::new();
        write(&folder.0, &mut stream).unwrap();
        assert!(stream.len().is_multiple_of(BLOCK));
        let mut found = Vec::new();
        let mut at = 0;
        while stream[at] != 0 {
            let head = &stream[at..at + BLOCK];
            let sum: u64 = head.iter().map(|&byte| u64::from(byte)).sum();
            let field: u64 = head[148..156].iter().map(|&byte| u64::from(byte)).sum();
            assert_eq!(number(&head[148..156]), sum - field + 8 * u64::from(b' '));
            let name: Vec<u8> = head[..100]
                .iter()
                .copied()
                .take_while(|&it| it != 0)
                .collect();
            let size = number(&head[124..136]) as usize;
            let content = &stream[at + BLOCK..][..size];
            assert!(content.iter().all(|&byte| byte == 7 || byte == b'x'));
            found.push((String::from_utf8(name).unwrap(), head[156], size));
            at += BLOCK + size.next_multiple_of(BLOCK);
        }
        let expected = [
            ("logs/", b'5', 0),
            ("logs/flow-1-sender.log", b'0', 0),
            ("sent.ntl", b'0', 1000),
            ("side.json", b'0', BLOCK),
        ];
        assert_eq!(
            found,
            expected.map(|(name, kind, size)| (name.to_owned(), kind, size))
        );
        assert_eq!(stream[at..], [0; 2 * BLOCK]);
    }

    #[test]
    fn large_files_have_their_size_and_long_names_are_refused() {
        // Eleven octal digits; larger numbers in the form of GNU tar: the first bit, then the number.
        for size in [0o777_7777_7777, 1 << 34] {
            let header = header("sent.ntl", EntryType::Regular, size, 0).unwrap();
            assert_eq!(header.size().unwrap(), size);
        }
        assert!(header(&"x".repeat(101), EntryType::Regular, 0, 0).is_err());
    }

    #[test]
    fn a_stream_that_lacks_something_has_no_end() {
        let folder = Folder::new("cut");
        fs::write(folder.0.join("sent.ntl"), "x").unwrap();
        fs::write(folder.0.join("x".repeat(101)), "x").unwrap();
        let mut stream = Vec::new();
        assert!(write(&folder.0, &mut stream).is_err());
        // The folder for logs, the first file and its content.
        assert_eq!(stream.len(), 3 * BLOCK);
        let path = folder.0.join("sent.ntl");
        let file = File::open(path).unwrap();
        let read = io::copy(&mut ExactRead { file, left: 2 }, &mut io::sink());
        assert_eq!(read.unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }

    #[test]
    fn only_what_a_side_has_written_is_removed() {
        let folder = Folder::new("removed");
        fs::write(folder.0.join("sent.ntl.part"), "x").unwrap();
        fs::write(folder.0.join("precious"), "x").unwrap();
        let refused = remove(&folder.0).unwrap_err().to_string();
        assert!(refused.contains("'precious'") && folder.0.join("precious").exists());
        fs::remove_file(folder.0.join("precious")).unwrap();
        remove(&folder.0).unwrap();
        assert!(!folder.0.exists());
        assert!(write(&folder.0, &mut Vec::new()).is_err());
    }
}
