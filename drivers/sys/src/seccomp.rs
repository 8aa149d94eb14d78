//! System calls that a process or thread of a run never needs, rejected by the kernel (seccomp(2)): a process
//! compromised by a packet or a peer can start no program, see no other process and change neither kernel nor
//! namespaces.

use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, TargetArch};
use std::collections::BTreeMap;
use std::io;

/// Calls that start other programs.
const STARTING: [libc::c_long; 2] = [libc::SYS_execve, libc::SYS_execveat];

/// Calls that are rejected with "operation not permitted". All others stay allowed, since libraries choose among many
/// equivalent calls.
const REFUSED: [libc::c_long; 35] = [
    // Other processes.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    // The kernel, its programs and modules.
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_io_uring_setup,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_reboot,
    libc::SYS_syslog,
    libc::SYS_personality,
    // Namespaces and file systems.
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_chroot,
    libc::SYS_pivot_root,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_open_tree,
    libc::SYS_move_mount,
    libc::SYS_fsopen,
    libc::SYS_mount_setattr,
    libc::SYS_open_by_handle_at,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    // Keys and clocks of the machine.
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    libc::SYS_clock_settime,
    libc::SYS_settimeofday,
];

/// Permanently rejects these calls, and those that start programs, for the calling thread and for those that it starts
/// later. Does nothing if the kernel has no such filters.
///
/// # Errors
/// The kernel's error, except for missing support.
pub(super) fn refuse_in_thread() -> io::Result<()> {
    Filter::new(STARTING.iter().chain(&REFUSED))?.apply()
}

/// A filter that is prepared before `fork` and applied after it.
#[derive(Clone, Debug)]
pub(super) struct Filter(BpfProgram);

impl Filter {
    /// The filter of a program that may start other programs.
    ///
    /// # Errors
    /// The filter cannot be compiled.
    pub(super) fn of_program() -> io::Result<Filter> {
        Filter::new(REFUSED.iter())
    }

    /// Rejects `calls`; an empty filter where filters are not supported for the architecture.
    fn new<'a>(calls: impl Iterator<Item = &'a libc::c_long>) -> io::Result<Filter> {
        let Ok(arch) = TargetArch::try_from(std::env::consts::ARCH) else {
            return Ok(Filter(BpfProgram::new()));
        };
        let filter = SeccompFilter::new(
            calls
                .map(|&call| (call, Vec::new()))
                .collect::<BTreeMap<_, _>>(),
            SeccompAction::Allow,
            SeccompAction::Errno(libc::EPERM as u32),
            arch,
        );
        let program = filter.and_then(TryInto::try_into);
        program.map(Filter).map_err(io::Error::other)
    }

    /// Applies it to the calling thread. Allocates only if the kernel refuses it.
    pub(super) fn apply(&self) -> io::Result<()> {
        if self.0.is_empty() {
            return Ok(());
        }
        match seccompiler::apply_filter(&self.0) {
            Ok(()) => Ok(()),
            Err(seccompiler::Error::Seccomp(error) | seccompiler::Error::Prctl(error))
                if matches!(error.raw_os_error(), Some(libc::EINVAL | libc::ENOSYS)) =>
            {
                Ok(())
            }
            Err(error) => Err(io::Error::other(error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_thread_starts_no_program_and_enters_no_namespace() {
        // Filters are per thread, so the other tests keep their calls.
        let said = std::thread::spawn(|| {
            refuse_in_thread().unwrap();
            let program = Command::new("/bin/true").status().unwrap_err();
            // SAFETY: unshare only takes a number.
            let left = unsafe { libc::unshare(libc::CLONE_FS) };
            let namespace = io::Error::last_os_error();
            (program.raw_os_error(), left, namespace.raw_os_error())
        });
        assert_eq!(
            said.join().unwrap(),
            (Some(libc::EPERM), -1, Some(libc::EPERM))
        );
        assert!(
            Command::new("/bin/true").status().unwrap().success(),
            "another thread"
        );
    }
}
