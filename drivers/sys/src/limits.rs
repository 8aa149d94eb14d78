//! Resource limits of a program, set between `fork` and `exec`.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Limits of one process and of those that it starts; they apply to each process separately.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Private memory in bytes (`RLIMIT_DATA`).
    pub memory: Option<u64>,
    /// Processor time in seconds (`RLIMIT_CPU`).
    pub cpu_seconds: Option<u64>,
    /// Bytes of each file that it writes (`RLIMIT_FSIZE`).
    pub file_size: Option<u64>,
}

/// Starts `command` with these limits. It leaves no core dump when it crashes.
pub fn limit(command: &mut Command, limits: Limits) {
    let wanted = [
        (Resource::Core, Some(0)),
        (Resource::Data, limits.memory),
        (Resource::Cpu, limits.cpu_seconds),
        (Resource::Fsize, limits.file_size),
    ];
    // SAFETY: the closure only makes system calls on values captured before.
    unsafe {
        command.pre_exec(move || {
            for (resource, value) in wanted {
                if let Some(value) = value {
                    set(resource, value)?;
                }
            }
            Ok(())
        });
    }
}

/// Starts `command` in the control group whose file `cgroup.procs` is open as `group`.
pub fn join(command: &mut Command, group: OwnedFd) {
    // SAFETY: the closure only writes to a descriptor that it owns.
    unsafe {
        command.pre_exec(move || {
            // The writing process.
            rustix::io::write(&group, b"0")?;
            Ok(())
        });
    }
}

/// Lowers a limit; a lower one is unchanged.
fn set(resource: Resource, value: u64) -> io::Result<()> {
    let old = getrlimit(resource).maximum;
    let value = Some(old.map_or(value, |old| old.min(value)));
    Ok(setrlimit(
        resource,
        Rlimit {
            current: value,
            maximum: value,
        },
    )?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_has_the_limits() {
        let mut command = Command::new("sh");
        command.args(["-c", "ulimit -c; ulimit -t; ulimit -d; ulimit -f"]);
        let limits = Limits {
            memory: Some(512 << 20),
            cpu_seconds: Some(7),
            file_size: Some(512 << 10),
        };
        limit(&mut command, limits);
        let output = command.output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let words: Vec<&str> = text.split_whitespace().collect();
        assert_eq!(words[..3], ["0", "7", "524288"], "{text}");
        // Blocks of 512 or 1024 bytes, depending on the shell.
        assert!(["512", "1024"].contains(&words[3]), "{text}");
    }
}
