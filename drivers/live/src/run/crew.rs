//! The endpoint processes of a run: started, watched and stopped by handle.

use super::CREW;
use super::sizing::Sizing;
use crate::bpf::Programs;
use crate::endpoints::{Channel, News, Order, Outcome, Received, Role, host_at};
use crate::error::{Context, LiveError};
use crate::hosts::Hosts;
use crate::sys::poll::Epoll;
use crate::sys::process::{Process, Spawn, describe};
use narrows_cell::{Cell, RecordFolder};
use narrows_record::Process as ProcessRecord;
use std::fs::File;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// An endpoint that has reported has nothing left to do but to end.
const EXIT_LIMIT: Duration = Duration::from_secs(2);

/// One endpoint as the agent sees it.
pub(super) struct Member {
    pub(super) flow: u16,
    pub(super) role: Role,
    /// How long its flow lasts.
    pub(super) active_ns: u64,
    pub(super) ready: bool,
    pub(super) outcome: Option<Outcome>,
    /// Why it will not deliver an outcome.
    failed: Option<String>,
    process: Process,
    channel: Channel,
    listening: bool,
    log: PathBuf,
}

/// What endpoints need besides the cell.
#[derive(Clone, Copy)]
pub(super) struct Supplies<'a> {
    /// What was loaded into the kernel.
    pub(super) programs: Option<&'a Programs>,
    /// Folder of the files that the cell names.
    pub(super) files: &'a Path,
}

/// All endpoints of a run.
pub(super) struct Crew {
    pub(super) members: Vec<Member>,
}

impl Crew {
    /// Starts the endpoints of all flows and tells them what to prepare. `CREW` and what follows are
    /// the keys under which `epoll` reports them.
    pub(super) fn start(
        cell: &Cell,
        supplies: Supplies<'_>,
        sizing: &Sizing,
        hosts: &Hosts,
        cpus: &[usize],
        folder: &RecordFolder,
        epoll: &Epoll,
    ) -> Result<Self, LiveError> {
        let text = cell.json.to_string();
        let mut members = Vec::new();
        for flow in &cell.flows {
            for role in [Role::Receiver, Role::Sender] {
                let name = format!("flow-{}-{}.log", flow.flow, role.name());
                let log = folder.path().join("logs").join(name);
                let file = File::create(&log)
                    .map_err(|error| LiveError::Io(format!("{}: {error}", log.display())))?;
                let (mut channel, theirs) = Channel::pair().could_not("open a channel")?;
                let arguments = ["endpoint".to_owned(), {
                    use std::os::fd::AsRawFd;
                    theirs.as_raw_fd().to_string()
                }];
                let process = Process::spawn(Spawn {
                    arguments: &arguments,
                    netns: Some(&hosts.host(host_at(flow, role)).netns),
                    cpus,
                    inherit: Some(theirs.as_fd()),
                    log: file,
                })
                .could_not("start an endpoint")?;
                drop(theirs);
                let order = Order::Prepare {
                    cell: text.clone(),
                    files: supplies.files.to_owned(),
                    flow: flow.flow,
                    role,
                    unsent: sizing.unsent(cell, flow),
                    loaded: supplies
                        .programs
                        .and_then(|programs| programs.kernel_name(flow.flow))
                        .map(str::to_owned),
                };
                channel.send(&order).could_not("instruct an endpoint")?;
                epoll
                    .add(channel.as_fd(), CREW + members.len() as u64)
                    .could_not("watch an endpoint")?;
                members.push(Member {
                    flow: flow.flow,
                    role,
                    active_ns: flow.stop.min(cell.duration).since(flow.start).ns(),
                    ready: false,
                    outcome: None,
                    failed: None,
                    process,
                    channel,
                    listening: true,
                    log,
                });
            }
        }
        Ok(Crew { members })
    }

    /// Tells everybody when the run starts.
    pub(super) fn announce(&mut self, real_ns: u64, mono_ns: u64) {
        for member in &mut self.members {
            // Whoever is gone is noticed as the end of its channel.
            let _ = member.channel.send(&Order::Start { real_ns, mono_ns });
        }
    }

    /// Hears what an endpoint has to say.
    ///
    /// # Errors
    /// Before the start, whatever keeps it from taking part.
    pub(super) fn listen(
        &mut self,
        index: usize,
        epoll: &Epoll,
        started: bool,
    ) -> Result<(), LiveError> {
        let Some(member) = self.members.get_mut(index) else {
            return Ok(());
        };
        loop {
            let news = match member.channel.receive() {
                Ok(Received::Document(news)) => news,
                Ok(Received::Nothing) => return Ok(()),
                Ok(Received::End) | Err(_) => {
                    member.listening = false;
                    let _ = epoll.remove(member.channel.as_fd());
                    if !started && member.failed.is_none() {
                        return Err(LiveError::Internal(format!(
                            "the {} of flow {} ended before the run started{}",
                            member.role.name(),
                            member.flow,
                            member.last_words()
                        )));
                    }
                    return Ok(());
                }
            };
            match news {
                News::Ready => member.ready = true,
                News::Done(outcome) => member.outcome = Some(*outcome),
                News::Failed {
                    message,
                    unavailable,
                } if !started => {
                    return Err(if unavailable {
                        LiveError::Unavailable(message)
                    } else {
                        LiveError::Internal(message)
                    });
                }
                News::Failed { message, .. } => member.failed = Some(message),
            }
        }
    }

    /// Whether all endpoints are prepared.
    pub(super) fn is_ready(&self) -> bool {
        self.members.iter().all(|member| member.ready)
    }

    /// Whether nothing more is to be expected from anybody.
    pub(super) fn is_done(&self) -> bool {
        self.members.iter().all(|member| !member.listening)
    }

    /// Ends whoever still runs; returns how each process ended and, where that was not as it
    /// should be, why.
    pub(super) fn dismiss(&mut self) -> Vec<(ProcessRecord, Option<String>)> {
        self.members.iter_mut().map(Member::dismiss).collect()
    }
}

impl Member {
    fn dismiss(&mut self) -> (ProcessRecord, Option<String>) {
        let reported = self.outcome.is_some();
        let silent = self.listening && !reported;
        if !silent {
            // Waiting can only fail for want of descriptors, and then it is ended a bit early.
            let _ = self.process.wait_at_most(EXIT_LIMIT);
        }
        self.process.kill();
        let (exit, signal) = self.process.status().map_or((None, None), describe);
        let expected = reported && exit == Some(0);
        let failure = match (&self.failed, exit, signal) {
            _ if expected => None,
            (Some(message), ..) => Some(format!("failed: {message}")),
            _ if silent => Some("did not report in time and was stopped".to_owned()),
            (_, _, Some(signal)) => Some(format!("was ended by signal {signal} during the run")),
            (_, exit, _) => Some(format!(
                "ended without a report (exit code {}){}",
                exit.unwrap_or(-1),
                self.last_words()
            )),
        };
        let name = format!("flow {} {}", self.flow, self.role.name());
        (
            ProcessRecord {
                name,
                exit,
                signal,
                expected,
                run_ns: self.outcome.as_ref().map(|outcome| outcome.run_ns),
            },
            failure,
        )
    }

    /// The last line of its log, as a part of a sentence.
    fn last_words(&self) -> String {
        let text = std::fs::read_to_string(&self.log).unwrap_or_default();
        text.lines()
            .rfind(|line| !line.trim().is_empty())
            .map_or_else(String::new, |line| format!(" ({line})"))
    }
}
