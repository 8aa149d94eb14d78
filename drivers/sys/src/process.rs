//! Processes that cannot outlive us: started into a namespace, watched by a descriptor, killed by
//! the kernel when their parent dies.

use super::netns::{NetNs, PrivateNetwork};
use super::poll::{Epoll, Events};
use super::{check, cpu};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

/// How to start a child.
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
    /// Where standard output and standard error go.
    pub log: File,
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
    /// The kernel kills the child when the calling *thread* ends, so the calling thread must be
    /// one that lives as long as the agent.
    pub fn spawn(spawn: Spawn) -> io::Result<Process> {
        // The link keeps working when the file is replaced or deleted meanwhile.
        let mut command = Command::new("/proc/self/exe");
        command.args(spawn.arguments).stdin(Stdio::null());
        command.stderr(spawn.log.try_clone()?).stdout(spawn.log);
        let parent = std::process::id();
        let netns = spawn
            .netns
            .map(|netns| netns.as_fd().try_clone_to_owned())
            .transpose()?;
        let cpus = spawn.cpus.to_vec();
        let inherit = spawn.inherit.map(|fd| fd.as_raw_fd());
        // SAFETY: the closure runs in the child between fork and exec. It makes system calls on
        // values captured before and does not allocate.
        unsafe {
            command.pre_exec(move || {
                check(libc::prctl(
                    libc::PR_SET_PDEATHSIG,
                    libc::SIGKILL as libc::c_ulong,
                    0,
                    0,
                    0,
                ))?;
                // The parent may have died before the line above took effect.
                if libc::getppid() as u32 != parent {
                    return Err(io::Error::from_raw_os_error(libc::ESRCH));
                }
                // A session of its own: Ctrl-C reaches the agent, which stops the children itself,
                // and the scheduler does not count the endpoint as a part of somebody else's work.
                check(libc::setsid())?;
                if let Some(netns) = &netns {
                    check(libc::setns(netns.as_raw_fd(), libc::CLONE_NEWNET))?;
                }
                if !cpus.is_empty() {
                    cpu::pin_to(&cpus)?;
                }
                if let Some(fd) = inherit {
                    check(libc::fcntl(fd, libc::F_SETFD, 0))?;
                }
                Ok(())
            });
        }
        let mut child = command.spawn()?;
        match open_pid(child.id()) {
            Ok(pidfd) => Ok(Process {
                child,
                pidfd,
                status: None,
            }),
            Err(error) => {
                let _ = child.kill();
                let _ = child.wait();
                Err(error)
            }
        }
    }

    /// Process number.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// How it ended, once it has.
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

    /// Ends it at once, if it still runs, and waits until it is gone.
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

fn open_pid(pid: u32) -> io::Result<OwnedFd> {
    // SAFETY: a successful call returns a new descriptor that nobody else owns.
    unsafe {
        let fd = libc::syscall(libc::SYS_pidfd_open, pid as libc::pid_t, 0);
        Ok(OwnedFd::from_raw_fd(check(fd as libc::c_int)?))
    }
}

/// Makes the kernel kill this process when its parent (thread) ends.
pub fn die_with_parent() {
    // SAFETY: PR_SET_PDEATHSIG takes one integer.
    unsafe {
        libc::prctl(
            libc::PR_SET_PDEATHSIG,
            libc::SIGKILL as libc::c_ulong,
            0,
            0,
            0,
        )
    };
}

/// Takes over a descriptor that was inherited under the number `fd`.
pub fn inherited(fd: i32) -> io::Result<OwnedFd> {
    // SAFETY: fcntl fails on descriptors that are not open; standard streams are refused, and the
    // caller is the only user of the inherited number.
    unsafe {
        if fd <= libc::STDERR_FILENO {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        check(libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC))?;
        Ok(OwnedFd::from_raw_fd(fd))
    }
}

/// Lets `command` start inside a private network of its own (for tests, which have threads and
/// therefore cannot enter a user namespace themselves).
pub fn start_in_private_network(command: &mut Command) {
    let network = PrivateNetwork::prepare();
    // SAFETY: `enter` only makes system calls and does not allocate.
    unsafe { command.pre_exec(move || network.enter().map(drop)) };
}

/// A pipe: what is read and what is written. Both ends are closed on `exec`.
///
/// # Errors
/// No descriptor is left.
pub fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let (reader, writer) = io::pipe()?;
    Ok((reader.into(), writer.into()))
}

/// Lets this process open as many descriptors as it may at most.
pub fn raise_file_limit() {
    // SAFETY: `limit` is valid for reading and writing.
    unsafe {
        let mut limit: libc::rlimit = std::mem::zeroed();
        if libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) == 0 {
            limit.rlim_cur = limit.rlim_max;
            libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit);
        }
    }
}

/// Whether a stream is a terminal, and how wide that is.
pub fn terminal_width(fd: BorrowedFd) -> Option<u16> {
    // SAFETY: a zeroed winsize is valid and writable.
    unsafe {
        let mut size: libc::winsize = std::mem::zeroed();
        let answer = libc::ioctl(fd.as_raw_fd(), libc::TIOCGWINSZ, &raw mut size);
        (answer == 0).then_some(if size.ws_col == 0 { 80 } else { size.ws_col })
    }
}
