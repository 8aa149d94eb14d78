//! Files that are written between `fork` and `exec`.

use rustix::fs::{Mode, OFlags, fchmod};
use rustix::io::Errno;
use std::ffi::CStr;
use std::io;

/// Writes a file with plain system calls: nothing is allocated, so it may be done after `fork`. A new one is readable
/// for all users.
pub(super) fn write_file(path: &CStr, flags: OFlags, content: &[u8]) -> io::Result<()> {
    let mode = Mode::from_raw_mode(0o644);
    let file = rustix::fs::open(path, flags | OFlags::CLOEXEC, mode)?;
    if flags.contains(OFlags::CREATE) {
        // Independent of the umask of this process.
        fchmod(&file, mode)?;
    }
    if rustix::io::write(&file, content)? == content.len() {
        Ok(())
    } else {
        Err(Errno::NOSPC.into())
    }
}
