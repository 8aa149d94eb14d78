//! The subreaper: a small process between the shell's agent and the program, in the program's
//! namespaces. All descendants of the program stay below it, so that it can end them all: when the
//! program has ended, and when the agent dies for any reason.

use narrows_cell::{Context, RunError};
use narrows_sys::poll::{Epoll, Events, Signals};
use narrows_sys::process;
use narrows_sys::subreaper::{self, ExitedChild};
use std::ffi::OsString;
use std::io::ErrorKind;
use std::os::fd::AsFd;
use std::process::Command;
use std::time::{Duration, Instant};

/// Signals that are forwarded to the program if a process sends them to this one.
pub const FORWARDED: [i32; 6] = [
    libc::SIGHUP,
    libc::SIGINT,
    libc::SIGQUIT,
    libc::SIGTERM,
    libc::SIGUSR1,
    libc::SIGUSR2,
];
/// Time within which background processes may end by themselves.
const GRACE: Duration = Duration::from_millis(300);
/// Time within which the kernel ends killed processes; on a busy machine it may take a second.
const DEATH: Duration = Duration::from_secs(20);
/// The exit codes that shells use for programs that cannot be started.
const CANNOT_RUN: i32 = 126;
const NOT_FOUND: i32 = 127;

const SIGNALS: u64 = 0;
const AGENT: u64 = 1;

/// Blocks the forwarded signals, and the one about children, so that they can be read.
///
/// # Errors
/// No descriptor is available.
pub fn block_signals() -> Result<Signals, RunError> {
    let mut all = FORWARDED.to_vec();
    all.push(libc::SIGCHLD);
    Signals::block(&all).could_not("block signals")
}

/// Runs `command` to its end and returns its exit code, as shells report it. `pipe` is an inherited
/// descriptor that is closed at the other end when the agent dies.
///
/// # Errors
/// A step before the start of the program failed.
pub fn subreaper_main(pipe: i32, command: &[OsString]) -> Result<i32, RunError> {
    let pipe = process::take_inherited(pipe).could_not("take over a pipe")?;
    let signals = block_signals()?;
    subreaper::become_subreaper();
    let epoll = Epoll::new().could_not("wait for events")?;
    epoll
        .add(signals.as_fd(), SIGNALS)
        .could_not("wait for signals")?;
    epoll
        .add(pipe.as_fd(), AGENT)
        .could_not("wait for a pipe")?;
    let Some((name, arguments)) = command.split_first() else {
        return Err(RunError::Input("there is no program to run".to_owned()));
    };
    let mut program = Command::new(name);
    program.args(arguments);
    subreaper::set_parent_death_signal(&mut program);
    let program = match program.spawn() {
        Ok(child) => child.id(),
        Err(error) => {
            eprintln!("narrows shell: {} cannot be run: {error}", name.display());
            return Ok(match error.kind() {
                ErrorKind::NotFound => NOT_FOUND,
                _ => CANNOT_RUN,
            });
        }
    };
    let mut events = Events::default();
    loop {
        while let Some((signal, sent)) = signals.next_with_origin() {
            // Keys of the terminal have reached the program already.
            if FORWARDED.contains(&signal) && sent {
                subreaper::send_signal(program, signal);
            }
        }
        // An error would mean that the program does not exist any more.
        while let Some(ExitedChild { pid, code, .. }) =
            subreaper::reap().could_not("wait for the program")?
        {
            if pid == program {
                end_all(true);
                return Ok(code);
            }
        }
        epoll.wait(&mut events, None).could_not("wait for events")?;
        if events.keys().any(|key| key == AGENT) {
            // Nothing is ever written, so the agent has ended.
            end_all(false);
            return Ok(128 + libc::SIGKILL);
        }
    }
}

/// Ends all descendants of this process, `gently` at first. Processes that do not end even when
/// they are killed (they hang inside the kernel) are named and left behind, to avoid waiting for
/// ever.
pub(super) fn end_all(gently: bool) {
    let started = Instant::now();
    let mut asked = Vec::new();
    loop {
        loop {
            match subreaper::reap() {
                Ok(Some(_)) => {}
                Ok(None) => break,
                Err(_) => return,
            }
        }
        let patient = gently && started.elapsed() < GRACE;
        let left = subreaper::descendants();
        if started.elapsed() > DEATH {
            let pids: Vec<String> = left.iter().map(ToString::to_string).collect();
            eprintln!(
                "narrows shell: processes do not end although they were killed: {}",
                pids.join(", ")
            );
            return;
        }
        for pid in left {
            if !patient {
                subreaper::send_signal(pid, libc::SIGKILL);
            } else if !asked.contains(&pid) {
                asked.push(pid);
                subreaper::send_signal(pid, libc::SIGTERM);
            }
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}
