//! The endpoint processes of a run: started, monitored and stopped by handle. Emulated runs have all of them, a peer of
//! a run between two hosts those on its host.

use crate::bpf::Programs;
use crate::{AgentCommand, Channel, EndpointMessage, EndpointOutcome, Received, Role};
use narrows_cell::{Cell, Flow, SchemeRef};
use narrows_cell::{Context, RunError};
use narrows_netns::host_info;
use narrows_record::{Process as ProcessRecord, StateRow};
use narrows_sys::cpu;
use narrows_sys::netns::NetNs;
use narrows_sys::poll::{Epoll, Events, Signals};
use narrows_sys::process::{Process, Spawn, describe};
use std::fs::File;
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, AsRawFd};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Key of the signals among the awaited events.
pub const SIGNALS: u64 = 0;
/// Key of the first endpoint among the awaited events; smaller keys are for others.
pub const FIRST_ENDPOINT: u64 = 16;
/// Maximum time for all endpoints (and wires) to become ready.
pub const READY_LIMIT: Duration = Duration::from_secs(20);
/// Maximum time after the end of the run within which endpoints report.
pub const REPORT_LIMIT: Duration = Duration::from_secs(10);
/// Minimum time from the announcement to the start, so that all endpoints have received it.
pub const HEAD_START_NS: u64 = 30_000_000;
/// Niceness of the session of a run, if it may be set.
pub const PRIORITY: i32 = -11;
/// Time within which an endpoint that has reported ends.
const EXIT_LIMIT: Duration = Duration::from_secs(2);
/// Time to end a program with all its descendants.
const DISMISSAL_LIMIT: Duration = Duration::from_secs(25);

/// Assigns the last processors to the packet mover, one for each of its threads while at least one is left for the
/// endpoints (and the agent itself). A single processor is shared.
pub fn share_cpus(threads: usize) -> Result<(Vec<usize>, Vec<usize>), RunError> {
    let mut all = cpu::allowed_cpus().could_not("read the allowed processors")?;
    if all.len() == 1 {
        return Ok((all.clone(), all));
    }
    let movers = all.split_off(all.len() - threads.clamp(1, all.len() - 1));
    Ok((movers, all))
}

/// The endpoints' processors as a bit mask, unless they are the packet mover's as well; those above 64 are not needed.
pub fn mask(endpoints: &[usize], mover: &[usize]) -> u64 {
    let apart = endpoints.iter().filter(|cpu| !mover.contains(cpu));
    apart
        .filter(|&&cpu| cpu < 64)
        .fold(0, |mask, &cpu| mask | (1 << cpu))
}

/// Rejects kernel schemes that do not exist, before the run.
pub fn check_kernel_schemes<'a>(flows: impl IntoIterator<Item = &'a Flow>) -> Result<(), RunError> {
    let offered = host_info::congestion_controls();
    for flow in flows {
        if let SchemeRef::Kernel(name) = &flow.scheme
            && !offered.contains(name)
        {
            return Err(RunError::Unavailable(format!(
                "flow {}: this kernel has no congestion control '{name}'; it offers {}",
                flow.flow,
                offered.join(", ")
            )));
        }
    }
    Ok(())
}

/// An endpoint process from the agent's view.
pub struct EndpointProcess {
    /// Number of its flow.
    pub flow: u16,
    /// The end of the flow at which it is.
    pub role: Role,
    /// Duration of its flow.
    pub active_ns: u64,
    /// True once it is prepared.
    pub ready: bool,
    /// The latest state of a sender in a live run.
    pub state: Option<StateRow>,
    /// Its report, once it has arrived.
    pub outcome: Option<EndpointOutcome>,
    /// The reason for which it will not deliver an outcome.
    failed: Option<String>,
    process: Process,
    channel: Channel,
    listening: bool,
    log: PathBuf,
    /// True if it runs a program, which ends with it.
    tends: bool,
}

/// One endpoint to be started.
#[derive(Clone, Copy)]
pub struct EndpointSpec<'a> {
    /// Its flow.
    pub flow: &'a Flow,
    /// The end of the flow at which it is.
    pub role: Role,
    /// Its namespace; `None` is that of the agent.
    pub netns: Option<&'a NetNs>,
    /// Unsent bytes to keep in the send buffer of a connection.
    pub unsent: u32,
}

/// Arguments common to all endpoints.
#[derive(Clone, Copy)]
pub struct EndpointSetup<'a> {
    /// The cell that they run.
    pub cell: &'a Cell,
    /// The programs that were loaded into the kernel.
    pub programs: Option<&'a Programs>,
    /// Folder of the files that the cell names.
    pub files: &'a Path,
    /// Processors to work on.
    pub cpus: &'a [usize],
    /// Folder of their logs.
    pub logs: &'a Path,
    /// Addresses of the hosts, unless they are those of emulated hosts.
    pub addresses: Option<[Ipv4Addr; 2]>,
    /// True if senders report their states during the run.
    pub is_live: bool,
}

/// All endpoints of a run.
pub struct Supervisor {
    /// In the order in which they were started.
    pub endpoints: Vec<EndpointProcess>,
}

impl Supervisor {
    /// Starts the endpoints of all `specs` and sends them their tasks. `epoll` reports them under the keys from
    /// [`FIRST_ENDPOINT`].
    pub fn start<'a>(
        specs: impl IntoIterator<Item = EndpointSpec<'a>>,
        setup: EndpointSetup<'_>,
        epoll: &Epoll,
    ) -> Result<Self, RunError> {
        let text = setup.cell.json.to_string();
        let mut endpoints = Vec::new();
        for spec in specs {
            let endpoint = EndpointProcess::start(spec, setup, text.clone())?;
            epoll
                .add(
                    endpoint.channel.as_fd(),
                    FIRST_ENDPOINT + endpoints.len() as u64,
                )
                .could_not("watch an endpoint")?;
            endpoints.push(endpoint);
        }
        Ok(Supervisor { endpoints })
    }

    /// Announces the start of the run to all endpoints.
    pub fn announce(&mut self, real_ns: u64, mono_ns: u64) {
        for endpoint in &mut self.endpoints {
            // An endpoint that has ended is noticed by the end of its channel.
            let _ = endpoint
                .channel
                .send(&AgentCommand::Start { real_ns, mono_ns });
        }
    }

    /// Gives the flow with this number other times.
    pub fn reschedule(&mut self, flow: u16, start_ns: u64, stop_ns: u64) {
        let command = AgentCommand::Reschedule { start_ns, stop_ns };
        let ends = self.endpoints.iter_mut().filter(|end| end.flow == flow);
        for endpoint in ends {
            endpoint.active_ns = stop_ns.saturating_sub(start_ns);
            // An endpoint that has ended is noticed by the end of its channel.
            let _ = endpoint.channel.send(&command);
        }
    }

    /// Waits for events of `epoll` for at most `timeout` and reads the messages of endpoints; returns the keys of other
    /// sources.
    ///
    /// # Errors
    /// A signal and, before the start, anything that prevents an endpoint from taking part.
    pub fn wait(
        &mut self,
        epoll: &Epoll,
        signals: &Signals,
        timeout: Duration,
        started: bool,
    ) -> Result<Vec<u64>, RunError> {
        let mut events = Events::default();
        epoll
            .wait(&mut events, Some(timeout))
            .could_not("wait for events")?;
        let mut others = Vec::new();
        for key in events.keys() {
            if key == SIGNALS {
                if let Some(signal) = signals.next() {
                    return Err(RunError::Interrupted(signal));
                }
            } else if key < FIRST_ENDPOINT {
                others.push(key);
            } else {
                self.read(key, epoll, started)?;
            }
        }
        Ok(others)
    }

    /// Reads the messages of the endpoint with this key.
    ///
    /// # Errors
    /// Before the start, anything that prevents it from taking part.
    fn read(&mut self, key: u64, epoll: &Epoll, started: bool) -> Result<(), RunError> {
        let Some(endpoint) = self.endpoints.get_mut((key - FIRST_ENDPOINT) as usize) else {
            return Ok(());
        };
        loop {
            let news = match endpoint.channel.receive() {
                Ok(Received::Document(news)) => news,
                Ok(Received::Nothing) => return Ok(()),
                Ok(Received::End) | Err(_) => {
                    endpoint.listening = false;
                    let _ = epoll.remove(endpoint.channel.as_fd());
                    if !started && endpoint.failed.is_none() {
                        return Err(RunError::Internal(format!(
                            "the {} of flow {} ended before the run started{}",
                            endpoint.role.name(),
                            endpoint.flow,
                            endpoint.last_log_line()
                        )));
                    }
                    return Ok(());
                }
            };
            match news {
                EndpointMessage::Ready => endpoint.ready = true,
                EndpointMessage::State(state) => {
                    endpoint.state = Some(state.into_row(endpoint.flow));
                }
                EndpointMessage::Done(outcome) => endpoint.outcome = Some(*outcome),
                EndpointMessage::Failed {
                    message,
                    unavailable,
                    program,
                } if !started => {
                    return Err(if program {
                        RunError::Program(message)
                    } else if unavailable {
                        RunError::Unavailable(message)
                    } else {
                        RunError::Internal(message)
                    });
                }
                EndpointMessage::Failed { message, .. } => endpoint.failed = Some(message),
            }
        }
    }

    /// True if all endpoints are prepared.
    pub fn is_ready(&self) -> bool {
        self.endpoints.iter().all(|endpoint| endpoint.ready)
    }

    /// True if no further report is expected.
    pub fn is_done(&self) -> bool {
        self.endpoints.iter().all(|endpoint| !endpoint.listening)
    }

    /// Ends all running processes; returns how each process ended and, if that was unexpected, why.
    pub fn stop(&mut self) -> Vec<(ProcessRecord, Option<String>)> {
        self.endpoints
            .iter_mut()
            .map(EndpointProcess::stop)
            .collect()
    }
}

impl EndpointProcess {
    fn start(spec: EndpointSpec, setup: EndpointSetup, cell: String) -> Result<Self, RunError> {
        let EndpointSpec { flow, role, .. } = spec;
        let name = format!("flow-{}-{}.log", flow.flow, role.name());
        let log = setup.logs.join(name);
        let file = File::create(&log).at(&log)?;
        // An endpoint with a program must be able to end it in any case.
        let tends = matches!(flow.scheme, SchemeRef::Program(_));
        let (mut channel, theirs) = Channel::pair().could_not("open a channel")?;
        let arguments = ["endpoint".to_owned(), theirs.as_raw_fd().to_string()];
        let process = Process::spawn(Spawn {
            arguments: &arguments,
            netns: spec.netns,
            cpus: setup.cpus,
            inherit: Some(theirs.as_fd()),
            log: file,
            outlives: tends,
        })
        .could_not("start an endpoint")?;
        drop(theirs);
        let command = AgentCommand::Prepare {
            cell,
            files: setup.files.to_owned(),
            flow: flow.flow,
            role,
            unsent: spec.unsent,
            loaded: setup
                .programs
                .and_then(|programs| programs.kernel_name(flow.flow))
                .map(str::to_owned),
            addresses: setup.addresses,
            is_live: setup.is_live,
            logs: setup.logs.to_owned(),
        };
        channel.send(&command).could_not("instruct an endpoint")?;
        Ok(EndpointProcess {
            flow: flow.flow,
            role,
            active_ns: flow.stop.min(setup.cell.duration).since(flow.start).ns(),
            ready: false,
            state: None,
            outcome: None,
            failed: None,
            process,
            channel,
            listening: true,
            log,
            tends,
        })
    }

    fn stop(&mut self) -> (ProcessRecord, Option<String>) {
        let reported = self.outcome.is_some();
        let silent = self.listening && !reported;
        if self.tends {
            self.dismiss();
        } else if !silent {
            // Waiting can only fail for lack of descriptors, and then it is ended slightly early.
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
                self.last_log_line()
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

    /// Asks endpoints with programs to end, and waits until they have ended these.
    fn dismiss(&mut self) {
        self.channel.close();
        let _ = self.process.wait_at_most(DISMISSAL_LIMIT);
    }

    /// The last line of its log, as a part of a sentence.
    fn last_log_line(&self) -> String {
        let text = std::fs::read_to_string(&self.log).unwrap_or_default();
        text.lines()
            .rfind(|line| !line.trim().is_empty())
            .map_or_else(String::new, |line| format!(" ({line})"))
    }
}

impl Drop for EndpointProcess {
    fn drop(&mut self) {
        // The run was aborted: the process would be killed next, and a program left behind.
        if self.tends && self.process.status().is_none() {
            self.dismiss();
        }
    }
}
