//! A program inside, started when the tunnel opens; the tunnel ends with it.

use super::Around;
use super::end::{ATTENDANT, Attendant, View};
use super::plan::Plan;
use narrows_cell::{Context, RunError};
use narrows_netns::Hosts;
use narrows_sys::poll::Epoll;
use narrows_sys::process::{self, Process, Spawn, describe};
use serde_json::{Value, json};
use std::fs::File;
use std::io::Read;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::Duration;

/// Time that the program's guard has to end it.
const GUARD: Duration = Duration::from_secs(2);

const SIGNALS: u64 = ATTENDANT;
const PARENT: u64 = ATTENDANT + 1;
const COMMAND: u64 = ATTENDANT + 2;

/// The program inside, and the pipe whose end tells it that we are gone.
struct Program {
    process: Process,
    pipe: OwnedFd,
}

/// Stands by an end with a program.
pub(super) struct WithProgram<'a, 'b> {
    plan: &'a Plan,
    around: &'a mut Around<'b>,
    program: Option<Program>,
    parent_gone: bool,
}

impl<'a, 'b> WithProgram<'a, 'b> {
    pub(super) fn new(plan: &'a Plan, around: &'a mut Around<'b>) -> Self {
        WithProgram {
            plan,
            around,
            program: None,
            parent_gone: false,
        }
    }

    /// Ends the program if it still runs. Its exit code or the signal that ended it, or neither if nobody knows.
    pub(super) fn finish(self) -> Option<(Option<i32>, Option<i32>)> {
        let Program { mut process, pipe } = self.program?;
        // The guard now ends everything that the program has started.
        drop(pipe);
        let _ = process.wait_at_most(GUARD);
        let status = process.status();
        process.kill();
        Some(status.map(describe).unwrap_or_default())
    }

    /// Starts the program inside, under a guard that ends everything which it has started.
    fn start(&self, hosts: &Hosts) -> Result<Option<Program>, RunError> {
        if self.plan.command.is_empty() {
            return Ok(None);
        }
        let log = self.plan.folder.join("program.log");
        let log = File::create(&log)
            .map_err(|error| RunError::Io(format!("{}: {error}", log.display())))?;
        let (theirs, ours) = process::pipe().could_not("open a pipe")?;
        let mut arguments = vec![
            "shell-guard".to_owned(),
            theirs.as_raw_fd().to_string(),
            "--".to_owned(),
        ];
        arguments.extend(self.plan.command.iter().cloned());
        let process = Process::spawn(Spawn {
            arguments: &arguments,
            netns: Some(&hosts.hosts[0].netns),
            cpus: &[],
            inherit: Some(theirs.as_fd()),
            log,
        })
        .could_not("start the program")?;
        Ok(Some(Program {
            process,
            pipe: ours,
        }))
    }
}

impl Attendant for WithProgram<'_, '_> {
    fn watch(&mut self, epoll: &Epoll) -> Result<(), RunError> {
        epoll
            .add(self.around.signals.as_fd(), SIGNALS)
            .could_not("wait for signals")?;
        match self.around.parent {
            Some(parent) => epoll.add(parent, PARENT).could_not("wait for a pipe"),
            None => Ok(()),
        }
    }

    fn woken(&mut self, key: u64) {
        if key == PARENT {
            self.parent_gone = has_ended(self.around.parent);
        }
    }

    fn opened(
        &mut self,
        peer: Option<SocketAddr>,
        hosts: &Hosts,
        epoll: &Epoll,
    ) -> Result<(), RunError> {
        let peer = peer.map(|address| address.to_string());
        (self.around.tell)(&json!({"event": "open", "peer": peer}));
        self.program = self.start(hosts)?;
        match &self.program {
            Some(program) => epoll
                .add(program.process.as_fd(), COMMAND)
                .could_not("wait for the program"),
            None => Ok(()),
        }
    }

    fn attend(&mut self, _view: &View) -> Result<Option<&'static str>, RunError> {
        if self.parent_gone || self.around.signals.next().is_some() {
            return Ok(Some("stopped"));
        }
        let ended = self
            .program
            .as_mut()
            .is_some_and(|program| program.process.status().is_some());
        Ok(ended.then_some("program_ended"))
    }

    fn tell(&mut self, event: Value) {
        (self.around.tell)(&event);
    }
}

/// Whether a descriptor that is readable has come to its end; what else is written there is not
/// for us.
fn has_ended(fd: Option<BorrowedFd>) -> bool {
    let Some(fd) = fd else { return false };
    let mut buffer = [0; 256];
    let file = fd.try_clone_to_owned().map(File::from);
    file.is_ok_and(|mut file| matches!(file.read(&mut buffer), Ok(0) | Err(_)))
}
