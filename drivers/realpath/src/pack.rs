//! A folder as a stream, in the `ustar` format of POSIX.1-2017 (pax, "ustar Interchange Format"): how what a peer has
//! written gets from another host to this one. The other host needs no program for it but this one, and files
//! of root come along where the agent runs as root.

use narrows_cell::RunError;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

const BLOCK: usize = 512;
/// Largest size that fits into eleven octal digits.
const MAX_OCTAL: u64 = 0o777_7777_7777;
/// What a peer or an end of a tunnel leaves in its folder, finished or not. Nothing else is ever removed.
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
/// A file cannot be read or has become shorter meanwhile, or nobody takes the stream. It is then incomplete: its two
/// empty blocks at the end are missing.
pub fn pack(folder: &Path, out: &mut impl Write) -> Result<(), RunError> {
    if !folder.is_dir() {
        return Err(RunError::Input(format!(
            "{} is no folder; name one that a side has written",
            folder.display()
        )));
    }
    pack_below(folder, "", out)?;
    out.write_all(&[0; 2 * BLOCK])
        .and_then(|()| out.flush())
        .map_err(|error| gone(&error))
}

/// Removes a folder that a peer has written.
///
/// # Errors
/// Something else is in it, or it cannot be removed.
pub fn remove(folder: &Path) -> Result<(), RunError> {
    for name in names(folder)? {
        if !OURS.contains(&name.trim_end_matches(UNFINISHED)) {
            return Err(RunError::Input(format!(
                "{} is not removed, because no side has written what is in it ('{name}')",
                folder.display()
            )));
        }
    }
    fs::remove_dir_all(folder).map_err(|error| broken(folder, &error))
}

fn pack_below(folder: &Path, prefix: &str, out: &mut impl Write) -> Result<(), RunError> {
    for name in names(folder)? {
        let (path, name) = (folder.join(&name), format!("{prefix}{name}"));
        let about = path
            .symlink_metadata()
            .map_err(|error| broken(&path, &error))?;
        if about.is_dir() {
            let name = format!("{name}/");
            let head = head(&name, Kind::Folder, 0, about.mtime())?;
            out.write_all(&head).map_err(|error| gone(&error))?;
            pack_below(&path, &name, out)?;
        } else if about.is_file() {
            pack_file(&path, &name, out)?;
        }
    }
    Ok(())
}

fn pack_file(path: &Path, name: &str, out: &mut impl Write) -> Result<(), RunError> {
    let failed = |error: io::Error| broken(path, &error);
    let mut file = File::open(path).map_err(failed)?;
    let about = file.metadata().map_err(failed)?;
    let size = about.len();
    let head = head(name, Kind::File, size, about.mtime())?;
    out.write_all(&head).map_err(|error| gone(&error))?;
    let mut left = size;
    let mut buffer = vec![0; 256 * 1024];
    while left > 0 {
        let room = left.min(buffer.len() as u64) as usize;
        let length = file.read(&mut buffer[..room]).map_err(failed)?;
        if length == 0 {
            return Err(failed(io::ErrorKind::UnexpectedEof.into()));
        }
        out.write_all(&buffer[..length])
            .map_err(|error| gone(&error))?;
        left -= length as u64;
    }
    let padding = (size as usize).next_multiple_of(BLOCK) - size as usize;
    out.write_all(&[0; BLOCK][..padding])
        .map_err(|error| gone(&error))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    File,
    Folder,
}

/// The block before a file.
fn head(name: &str, kind: Kind, size: u64, seconds: i64) -> Result<[u8; BLOCK], RunError> {
    let mut block = [0; BLOCK];
    let mut put =
        |from: usize, bytes: &[u8]| block[from..from + bytes.len()].copy_from_slice(bytes);
    let octal = |value: u64, digits: usize| format!("{value:0digits$o}").into_bytes();
    if name.len() > 100 {
        return Err(RunError::Input(format!(
            "the name '{name}' is too long for the stream, in which names have up to 100 bytes"
        )));
    }
    put(0, name.as_bytes());
    put(
        100,
        if kind == Kind::File {
            b"0000644"
        } else {
            b"0000755"
        },
    );
    put(108, b"0000000");
    put(116, b"0000000");
    if size <= MAX_OCTAL {
        put(124, &octal(size, 11));
    } else {
        // As GNU tar does it, and others after it: the first bit, then the number.
        put(124, &[0x80, 0, 0, 0]);
        put(128, &size.to_be_bytes());
    }
    put(136, &octal(seconds.clamp(0, MAX_OCTAL as i64) as u64, 11));
    put(148, b"        ");
    put(156, if kind == Kind::File { b"0" } else { b"5" });
    put(257, b"ustar\x0000");
    let sum: u64 = block.iter().map(|&byte| u64::from(byte)).sum();
    block[148..154].copy_from_slice(&octal(sum, 6));
    block[154] = 0;
    Ok(block)
}

/// Names of what is in a folder, in order.
fn names(folder: &Path) -> Result<Vec<String>, RunError> {
    let failed = |error: io::Error| broken(folder, &error);
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed)? {
        let name = entry.map_err(failed)?.file_name();
        let name = name.into_string().map_err(|name| {
            let name = PathBuf::from(name);
            broken(&folder.join(name), &io::ErrorKind::InvalidData.into())
        })?;
        names.push(name);
    }
    names.sort();
    Ok(names)
}

fn broken(path: &Path, error: &io::Error) -> RunError {
    RunError::Io(format!("{}: {error}", path.display()))
}

fn gone(error: &io::Error) -> RunError {
    RunError::Io(format!(
        "the stream of files is not taken any more: {error}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Folder {
            let path =
                std::env::temp_dir().join(format!("narrows-pack-{name}-{}", std::process::id()));
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
        pack(&folder.0, &mut stream).unwrap();
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
    fn large_files_have_their_size() {
        let block = head("sent.ntl", Kind::File, 1 << 34, 0).unwrap();
        assert_eq!(block[124], 0x80);
        let size: [u8; 8] = block[128..136].try_into().unwrap();
        assert_eq!(u64::from_be_bytes(size), 1 << 34);
        let octal = head("sent.ntl", Kind::File, MAX_OCTAL, 0).unwrap();
        assert_eq!(number(&octal[124..136]), MAX_OCTAL);
        assert!(head(&"x".repeat(101), Kind::File, 0, 0).is_err());
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
        assert!(pack(&folder.0, &mut Vec::new()).is_err());
    }
}
