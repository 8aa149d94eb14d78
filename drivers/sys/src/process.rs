//! Processes that cannot outlive this one: started in a namespace, monitored by a descriptor, killed by the kernel when
//! their parent dies.

use super::cpu;
use super::netns::{NetNs, PrivateNetwork};
use super::poll::{Epoll, Events};
use rustix::io::{Errno, FdFlags, fcntl_setfd};
use rustix::process::{
    Pid, PidfdFlags, Resource, Rlimit, Signal, getpid, getppid, getrlimit, pidfd_open,
    set_parent_process_death_signal, setrlimit, setsid,
};
use rustix::termios::tcgetwinsize;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

/// Settings for starting a child.
#[derive(Debug)]
pub struct Spawn<'a> {
    /// Arguments after the program's own name; the program is this one.
    pub arguments: &'a [String],
    /// Network namespace to run in.
    pub netns: Option<&'a NetNs>,
    /// CPUs to run on; empty means anywhere.
    pub cpus: &'a [usize],
    /// A descriptor that the child inherits under the same number.
    pub inherit: Option<BorrowedFd<'a>>,
    /// File for standard output and standard error.
    pub log: File,
    /// True if it detects the end of this process and cleans up, so that the kernel must not kill it.
    pub outlives: bool,
}

/// A running child, addressed by a descriptor and therefore never confused with a later process
/// of the same number.
#[derive(Debug)]
pub struct Process {
    child: Child,
    pidfd: OwnedFd,
    status: Option<ExitStatus>,
}

impl Process {
    /// Starts this program again with other arguments.
    ///
    /// Unless it may outlive this process, the kernel kills the child when the calling *thread* ends, so the calling
    /// thread must be one that lives as long as the agent.
    pub fn spawn(spawn: Spawn) -> io::Result<Process> {
        // The link keeps working when the file is replaced or deleted.
        let mut command = Command::new("/proc/self/exe");
        command.args(spawn.arguments).stdin(Stdio::null());
        command.stderr(spawn.log.try_clone()?).stdout(spawn.log);
        let parent = getpid();
        let netns = spawn.netns.map(NetNs::try_clone).transpose()?;
        let cpus = spawn.cpus.to_vec();
        let inherit = spawn.inherit.map(|fd| fd.as_raw_fd());
        let outlives = spawn.outlives;
        // SAFETY: the closure runs in the child between fork and exec. It makes system calls on
        // values captured before and does not allocate; the inherited descriptor is still open there.
        unsafe {
            command.pre_exec(move || {
                if !outlives {
                    end_with(parent)?;
                }
                // A new session: Ctrl-C reaches the agent, which stops the children itself, and the scheduler does not
                // group the endpoint with other work.
                setsid()?;
                if let Some(netns) = &netns {
                    netns.enter()?;
                }
                if !cpus.is_empty() {
                    cpu::pin_to(&cpus)?;
                }
                if let Some(fd) = inherit {
                    fcntl_setfd(BorrowedFd::borrow_raw(fd), FdFlags::empty())?;
                }
                Ok(())
            });
        }
        let mut child = command.spawn()?;
        match pidfd_open(Pid::from_child(&child), PidfdFlags::empty()) {
            Ok(pidfd) => Ok(Process {
                child,
                pidfd,
                status: None,
            }),
            Err(error) => {
                let _ = child.kill();
                let _ = child.wait();
                Err(error.into())
            }
        }
    }

    /// Process number.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Its exit status, once it has ended.
    pub fn status(&mut self) -> Option<ExitStatus> {
        if self.status.is_none() {
            self.status = self.child.try_wait().ok().flatten();
        }
        self.status
    }

    /// Waits until it has ended, but not longer than `limit`.
    pub fn wait_at_most(&mut self, limit: Duration) -> io::Result<()> {
        let epoll = Epoll::new()?;
        epoll.add(self.as_fd(), 0)?;
        epoll.wait(&mut Events::default(), Some(limit))
    }

    /// Kills it, if it still runs, and waits until it has ended.
    pub fn kill(&mut self) {
        if self.status().is_none() {
            let _ = self.child.kill();
            self.status = self.child.wait().ok();
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Readable when the process has ended.
impl AsFd for Process {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.pidfd.as_fd()
    }
}

/// Exit code or signal of a finished process.
pub fn describe(status: ExitStatus) -> (Option<i32>, Option<i32>) {
    (status.code(), status.signal())
}

/// Makes the kernel kill this process when its parent (thread) ends.
pub fn die_with_parent() {
    let _ = set_parent_process_death_signal(Some(Signal::KILL));
}

/// The same immediately after a fork by `parent`, which may have ended before it took effect.
pub(super) fn end_with(parent: Pid) -> io::Result<()> {
    die_with_parent();
    if getppid() == Some(parent) {
        Ok(())
    } else {
        Err(Errno::SRCH.into())
    }
}

/// Takes over a descriptor that was inherited under the number `fd`.
pub fn take_inherited(fd: i32) -> io::Result<OwnedFd> {
    if fd <= libc::STDERR_FILENO {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    // SAFETY: standard streams were refused, and the caller is the only user of the inherited number.
    let inherited = unsafe { BorrowedFd::borrow_raw(fd) };
    // Fails on numbers that are not open.
    fcntl_setfd(inherited, FdFlags::CLOEXEC)?;
    // SAFETY: as above.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Starts `command` inside a new private network (for tests, which have threads and therefore cannot enter a user
/// namespace themselves).
pub fn start_in_private_network(command: &mut Command) {
    let network = PrivateNetwork::prepare();
    // SAFETY: `enter` only makes system calls and does not allocate.
    unsafe { command.pre_exec(move || network.enter().map(drop)) };
}

/// Raises the limit of open descriptors of this process to its maximum.
pub fn raise_file_limit() {
    let maximum = getrlimit(Resource::Nofile).maximum;
    let limit = Rlimit {
        current: maximum,
        maximum,
    };
    let _ = setrlimit(Resource::Nofile, limit);
}

/// Columns of a terminal; `None` if the stream is not a terminal.
pub fn terminal_width(fd: BorrowedFd) -> Option<u16> {
    let columns = tcgetwinsize(fd).ok()?.ws_col;
    Some(if columns == 0 { 80 } else { columns })
}
