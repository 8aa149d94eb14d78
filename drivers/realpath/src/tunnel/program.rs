//! A program inside, started when the tunnel opens; the tunnel ends with it.

use super::TunnelContext;
use super::end::{EndObserver, EndView, OBSERVER_KEYS};
use super::plan::TunnelPlan;
use narrows_cell::{Context, RunError};
use narrows_netns::Hosts;
use narrows_sys::poll::Epoll;
use narrows_sys::process::{Process, Spawn, describe};
use serde_json::{Value, json};
use std::fs::File;
use std::io::{self, PipeWriter, Read};
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::time::Duration;

/// Time that the program's guard has to end it.
const END_LIMIT: Duration = Duration::from_secs(2);

const SIGNALS: u64 = OBSERVER_KEYS;
const PARENT: u64 = OBSERVER_KEYS + 1;
const COMMAND: u64 = OBSERVER_KEYS + 2;

/// The program inside, and the pipe that closes when this process ends.
struct InnerProgram {
    process: Process,
    pipe: PipeWriter,
}

/// Observes an end with a program.
pub(super) struct ProgramObserver<'a, 'b> {
    plan: &'a TunnelPlan,
    context: &'a mut TunnelContext<'b>,
    program: Option<InnerProgram>,
    parent_gone: bool,
}

impl<'a, 'b> ProgramObserver<'a, 'b> {
    pub(super) fn new(plan: &'a TunnelPlan, context: &'a mut TunnelContext<'b>) -> Self {
        ProgramObserver {
            plan,
            context,
            program: None,
            parent_gone: false,
        }
    }

    /// Ends the program if it still runs. Returns its exit code or the signal that ended it, or neither if unknown.
    pub(super) fn finish(self) -> Option<(Option<i32>, Option<i32>)> {
        let InnerProgram { mut process, pipe } = self.program?;
        // The guard now ends all descendants of the program.
        drop(pipe);
        let _ = process.wait_at_most(END_LIMIT);
        let status = process.status();
        process.kill();
        Some(status.map(describe).unwrap_or_default())
    }

    /// Starts the program inside, under a guard that ends all its descendants.
    fn start(&self, hosts: &Hosts) -> Result<Option<InnerProgram>, RunError> {
        if self.plan.command.is_empty() {
            return Ok(None);
        }
        let log = self.plan.folder.join("program.log");
        let log = File::create(&log).at(&log)?;
        let (theirs, ours) = io::pipe().could_not("open a pipe")?;
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
            outlives: false,
        })
        .could_not("start the program")?;
        Ok(Some(InnerProgram {
            process,
            pipe: ours,
        }))
    }
}

impl EndObserver for ProgramObserver<'_, '_> {
    fn register(&mut self, epoll: &Epoll) -> Result<(), RunError> {
        epoll
            .add(self.context.signals.as_fd(), SIGNALS)
            .could_not("wait for signals")?;
        match self.context.parent {
            Some(parent) => epoll.add(parent, PARENT).could_not("wait for a pipe"),
            None => Ok(()),
        }
    }

    fn ready(&mut self, key: u64) {
        if key == PARENT {
            self.parent_gone = has_ended(self.context.parent);
        }
    }

    fn opened(
        &mut self,
        peer: Option<SocketAddr>,
        hosts: &Hosts,
        epoll: &Epoll,
    ) -> Result<(), RunError> {
        let peer = peer.map(|address| address.to_string());
        (self.context.notify)(&json!({"event": "open", "peer": peer}));
        self.program = self.start(hosts)?;
        match &self.program {
            Some(program) => epoll
                .add(program.process.as_fd(), COMMAND)
                .could_not("wait for the program"),
            None => Ok(()),
        }
    }

    fn poll(&mut self, _view: &EndView) -> Result<Option<&'static str>, RunError> {
        if self.parent_gone || self.context.signals.next().is_some() {
            return Ok(Some("stopped"));
        }
        let ended = self
            .program
            .as_mut()
            .is_some_and(|program| program.process.status().is_some());
        Ok(ended.then_some("program_ended"))
    }

    fn notify(&mut self, event: Value) {
        (self.context.notify)(&event);
    }
}

/// True if a readable descriptor is at its end; other input is ignored.
fn has_ended(fd: Option<BorrowedFd>) -> bool {
    let Some(fd) = fd else { return false };
    let mut buffer = [0; 256];
    let file = fd.try_clone_to_owned().map(File::from);
    file.is_ok_and(|mut file| matches!(file.read(&mut buffer), Ok(0) | Err(_)))
}
