//! An external program as one end of a flow: started in its host, monitored, and ended with all its descendants.
//!
//! The listener starts as soon as the endpoint is prepared and is ready before the run begins; the connector starts
//! with the flow or, if its manifest contains a sign of readiness, before the run as well, and is signalled to begin.
//! The sender of the data is stopped when the flow stops, the other side at the end of the run, so that data in flight
//! can arrive. This process adopts the orphans of the program (`PR_SET_CHILD_SUBREAPER`), so that none can remain, and
//! ends the program when the agent has ended.

mod cgroup;
mod file_system;
mod files;
mod frames;
mod output;
mod placeholders;
mod process;
mod ready;
mod refusals;
mod root;

use super::{AgentCommand, Channel, EndpointMessage, EndpointTask, Received, cpu, gone};
use cgroup::Group;
use file_system::FileSystem;
use narrows_cell::{
    Context, EndpointOutcome, Program, ProgramReport, Readiness, Role, RunError, Side, SidePlan,
    StandardInput,
};
use narrows_sys::poll::{Epoll, Events, Signals, punctual};
use narrows_sys::{clock, pid_namespace, subreaper};
use placeholders::Placeholders;
use process::Started;
use std::collections::BTreeMap;
use std::fs;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Time between checks of whether the listener is ready.
const LOOK: u64 = 10_000_000;
/// Time after which a program has mapped its libraries.
const SETTLED_NS: u64 = 200_000_000;
/// Keys of the awaited events.
const AGENT: u64 = 0;
const CHILDREN: u64 = 1;

/// Runs one end of a flow with a process of `program`.
///
/// # Errors
/// [`RunError::Program`] before the run if the program cannot take part.
pub(super) fn run(
    task: &EndpointTask,
    program: &Program,
    logs: &Path,
    channel: &mut Channel,
) -> Result<EndpointOutcome, RunError> {
    if task.addresses.is_some() {
        return Err(RunError::Input(format!(
            "flow {}: programs need private hosts, which require a tunnel",
            task.flow.flow
        )));
    }
    // With a PID namespace, no process of the program outlives this one, even if that is killed.
    let contained = pid_namespace::become_first_process().is_ok();
    subreaper::become_subreaper();
    let mut runner = Runner::new(task, program, logs, channel)?;
    runner.check_containment(contained)?;
    let kept_by = if contained { "namespace" } else { "subreaper" };
    kept_by.clone_into(&mut runner.report.kept_by);
    let played = runner.play(channel);
    if let Err(error) = played {
        runner.end_now();
        return Err(error);
    }
    // Work before the run, and hashing from here on, did not limit the flow.
    let (run_ns, wait_ns) = read_times();
    let (run_before, wait_before) = runner.used_before;
    Ok(EndpointOutcome {
        run_ns: run_ns.saturating_sub(run_before),
        wait_ns: wait_ns.saturating_sub(wait_before),
        ..runner.outcome()
    })
}

/// Time that this process was on a processor, and waited for one.
fn read_times() -> (u64, u64) {
    cpu::run_and_wait_ns(std::process::id()).unwrap_or_default()
}

/// The process of one side, and its state.
struct Runner<'a> {
    task: &'a EndpointTask<'a>,
    program: &'a Program,
    side: Side,
    plan: &'a SidePlan,
    words: Placeholders,
    /// The file of the program.
    path: PathBuf,
    /// Folder of its files, and its default working folder.
    folder: PathBuf,
    /// Files for its output, without their extension.
    logs: PathBuf,
    epoll: Epoll,
    signals: Signals,
    started: Option<Started>,
    report: ProgramReport,
    /// Start of the run by `CLOCK_MONOTONIC`.
    zero_ns: Option<u64>,
    /// The value of `used` at that time.
    used_before: (u64, u64),
    /// Limits the memory of all its processes, if possible.
    group: Option<Group>,
    /// The flow whose listener serves this one.
    leader: u16,
}

impl<'a> Runner<'a> {
    fn new(
        task: &'a EndpointTask<'a>,
        program: &'a Program,
        logs: &Path,
        channel: &Channel,
    ) -> Result<Self, RunError> {
        let side = program.side_at(task.role);
        let plan = program.plan(side);
        let name = format!("flow-{}-{}", task.flow.flow, side.name());
        let folder = logs.join(&name);
        fs::create_dir_all(&folder).at(&folder)?;
        let epoll = Epoll::new().could_not("wait for events")?;
        let signals = Signals::block(&[libc::SIGCHLD]).could_not("block signals")?;
        epoll
            .add(channel.as_fd(), AGENT)
            .could_not("wait for the agent")?;
        epoll
            .add(signals.as_fd(), CHILDREN)
            .could_not("wait for signals")?;
        Ok(Runner {
            task,
            program,
            side,
            plan,
            words: Placeholders::new(task, program, &FileSystem::new(program, &folder).log()),
            path: PathBuf::new(),
            logs: logs.join(name),
            folder,
            epoll,
            signals,
            started: None,
            report: ProgramReport::default(),
            zero_ns: None,
            used_before: (0, 0),
            group: None,
            leader: task.cell.leader(task.flow.flow).unwrap_or(task.flow.flow),
        })
    }

    /// The end of the flow that this is, at the beginning of a sentence.
    fn who(&self) -> String {
        let flow = self.task.flow;
        format!(
            "flow {} ({}): the {}",
            flow.flow,
            flow.name,
            self.side.name()
        )
    }

    fn play(&mut self, channel: &mut Channel) -> Result<(), RunError> {
        if self.is_served_by_another() {
            return self.stand_by(channel);
        }
        self.prepare()?;
        if self.starts_ahead() {
            self.start()?;
            self.until_ready(channel)?;
        }
        channel
            .send(&EndpointMessage::Ready)
            .could_not("report to the agent")?;
        self.until_start(channel)?;
        if self.side == Side::Connector {
            self.until(self.at(self.task.flow.start.ns()), channel)?;
            match &mut self.started {
                Some(started) => started.begin(),
                None => self.start()?,
            }
        }
        let stop = self.at(self.end_ns());
        self.until(stop.min(clock::mono_ns() + SETTLED_NS), channel)?;
        self.look_at_libraries();
        self.until(stop, channel)?;
        self.stop(channel)?;
        // No file is read or hashed while others are still being measured.
        self.until(self.at(self.task.cell.duration.ns()), channel)
    }

    /// True if it is started before the run: a connector only if its manifest contains a sign of readiness.
    fn starts_ahead(&self) -> bool {
        self.side == Side::Listener || self.plan.ready.is_some()
    }

    /// True for a listener that is replaced by that of another flow.
    fn is_served_by_another(&self) -> bool {
        self.side == Side::Listener && self.leader != self.task.flow.flow
    }

    /// Waits until the end of the run.
    fn stand_by(&mut self, channel: &mut Channel) -> Result<(), RunError> {
        channel
            .send(&EndpointMessage::Ready)
            .could_not("report to the agent")?;
        self.until_start(channel)?;
        self.until(self.at(self.task.cell.duration.ns()), channel)
    }

    /// When this side has to end. A listener that serves several flows continues to the end.
    fn end_ns(&self) -> u64 {
        match self.side {
            Side::Listener if self.program.shared => self.task.cell.duration.ns(),
            _ => self.task.end().ns(),
        }
    }

    /// A time of the run by `CLOCK_MONOTONIC`.
    fn at(&self, time_ns: u64) -> u64 {
        self.zero_ns.unwrap_or_default() + time_ns
    }

    /// Finds the program, its version and the words of its command.
    fn prepare(&mut self) -> Result<(), RunError> {
        let refused = |text: String| RunError::Program(format!("{} {text}", self.who()));
        let command = self.words.fill_all(&self.plan.command);
        let of_root = self.program.root.iter().flat_map(|root| &root.env);
        let of_plan = self.plan.env.iter();
        let of_plan = of_plan.map(|(name, value)| (name.clone(), self.words.fill(value)));
        let env: BTreeMap<String, String> = of_root
            .map(|(name, value)| (name.clone(), value.clone()))
            .chain(of_plan)
            .collect();
        let env: Vec<(String, String)> = env.into_iter().collect();
        let place = self.file_system();
        let folder = self.plan.folder.as_ref().map_or_else(
            || place.log(),
            |folder| PathBuf::from(self.words.fill(folder)),
        );
        if !place.has_folder(&folder) {
            return Err(refused(format!(
                "cannot be started: its working folder {} does not exist",
                folder.display()
            )));
        }
        let path = place.find(&command[0], &env).ok_or_else(|| {
            let root = self.program.root.as_ref();
            let below = root.map_or_else(String::new, |root| format!(" below {}", root.folder));
            refused(format!(
                "cannot be started: there is no program {}{below}",
                command[0]
            ))
        })?;
        self.lend_folder().at(&self.folder)?;
        if self.task.role == Role::Sender && !self.program.version.is_empty() {
            let words = self.words.fill_all(&self.program.version);
            let version = process::version(&words, &env, &folder, self.file_system());
            self.report.version = version;
        }
        self.path = path;
        self.report.folder = folder.display().to_string();
        self.report.command = command;
        self.report.env = env.into_iter().collect();
        Ok(())
    }

    fn start(&mut self) -> Result<(), RunError> {
        let wanted = match &self.plan.ready {
            Some(Readiness::Line(text)) => Some(text.clone()),
            _ => None,
        };
        if let Some(bytes) = self.program.limits.memory_bytes {
            let name = format!("{}-{}", self.task.flow.flow, self.side.name());
            self.group = Group::with_memory(bytes, &name);
            let by = if self.group.is_some() {
                "cgroup"
            } else {
                "rlimit"
            };
            self.report.memory_by = Some(by.to_owned());
        }
        let started = Started::new(
            &self.path,
            &self.report,
            if self.side == Side::Connector && self.starts_ahead() {
                StandardInput::Open
            } else {
                self.plan.stdin
            },
            self.program.limits,
            wanted,
            self.group.as_ref(),
            self.file_system(),
        );
        let started = started.map_err(|error| {
            let path = self.path.display();
            RunError::Program(format!("{} cannot be started: {path}: {error}", self.who()))
        })?;
        self.started = Some(started);
        Ok(())
    }

    /// Waits until `time` by `CLOCK_MONOTONIC`, or until a message of the agent arrives, or a child ends.
    fn wait(&mut self, time: u64, channel: &mut Channel) -> Result<Option<AgentCommand>, RunError> {
        let mut events = Events::default();
        let left = Duration::from_nanos(time.saturating_sub(clock::mono_ns()));
        self.epoll
            .wait(&mut events, Some(punctual(left)))
            .could_not("wait for events")?;
        while self.signals.next().is_some() {}
        if let Some(started) = &mut self.started {
            started.reap();
        }
        match channel.receive().could_not("hear from the agent")? {
            Received::Document(command) => Ok(Some(command)),
            Received::Nothing => Ok(None),
            Received::End => Err(gone()),
        }
    }

    fn until(&mut self, time: u64, channel: &mut Channel) -> Result<(), RunError> {
        while clock::mono_ns() < time {
            self.wait(time.min(self.deadline()), channel)?;
            self.end_if_it_overran();
        }
        Ok(())
    }

    /// When the program reaches its limit of time, by `CLOCK_MONOTONIC`.
    fn deadline(&self) -> u64 {
        let running = self.started.as_ref().filter(|one| !one.has_ended());
        match (running, self.program.limits.time_ns) {
            (Some(started), Some(limit)) if !self.report.overran => {
                started.at_ns.saturating_add(limit)
            }
            _ => u64::MAX,
        }
    }

    fn end_if_it_overran(&mut self) {
        if clock::mono_ns() >= self.deadline()
            && let Some(started) = &self.started
        {
            self.report.overran = true;
            started.kill_all();
        }
    }

    fn has_ended(&self) -> bool {
        self.started.as_ref().is_some_and(Started::has_ended)
    }

    /// Waits for the start of the run.
    fn until_start(&mut self, channel: &mut Channel) -> Result<(), RunError> {
        loop {
            match self.wait(clock::mono_ns() + 1_000_000_000, channel)? {
                Some(AgentCommand::Start { mono_ns, .. }) => {
                    self.zero_ns = Some(mono_ns);
                    self.used_before = read_times();
                    return Ok(());
                }
                Some(AgentCommand::Prepare { .. } | AgentCommand::Reschedule { .. }) => {
                    return Err(RunError::Internal("the endpoint was prepared twice".into()));
                }
                None if self.has_ended() => return Err(self.ended_too_soon("was called")),
                None => {}
            }
        }
    }

    /// Records the files that the program has mapped.
    fn look_at_libraries(&mut self) {
        if let Some(started) = self.started.as_mut().filter(|one| !one.has_ended()) {
            started.note_libraries();
        }
    }

    /// Ends the program as specified by its manifest, and the processes that it leaves.
    fn stop(&mut self, channel: &mut Channel) -> Result<(), RunError> {
        self.look_at_libraries();
        let end = self.program.end;
        self.report.stopped = !self.has_ended();
        if self.report.stopped {
            if let Some(started) = &self.started {
                started.signal(end.signal);
            }
            let limit = clock::mono_ns() + end.grace_ns;
            while !self.has_ended() && clock::mono_ns() < limit {
                self.wait(limit, channel)?;
            }
            self.report.killed = !self.has_ended();
        }
        if let Some(started) = &mut self.started {
            self.report.left = started.end_all();
        }
        Ok(())
    }

    /// Kills all processes.
    fn end_now(&mut self) {
        if let Some(started) = &mut self.started {
            started.kill();
            started.end_all();
            started.keep_output(&self.logs, self.program.limits.output_bytes);
        }
        self.take_folder_back();
        let _ = fs::remove_dir(&self.folder);
    }

    /// The report, once everything has ended.
    fn outcome(mut self) -> EndpointOutcome {
        if self.is_served_by_another() {
            let _ = fs::remove_dir(&self.folder);
            return EndpointOutcome::default();
        }
        let mut report = std::mem::take(&mut self.report);
        let zero = self.zero_ns.unwrap_or_default();
        report.out_of_memory = self.group.as_ref().is_some_and(Group::has_killed);
        let mut mapped = Vec::new();
        if let Some(started) = &mut self.started {
            let output = started.keep_output(&self.logs, self.program.limits.output_bytes);
            report.printed = output.printed;
            report.kept = output.kept;
            report.last_line = output.last_line;
            let from_zero = |at: u64| at as i64 - zero as i64;
            report.started_ns = Some(from_zero(started.at_ns));
            if let Some(ended) = started.ended() {
                report.ended_ns = Some(from_zero(ended.at_ns));
                (report.exit, report.signal) = (ended.exit, ended.signal);
            }
            mapped.clone_from(&started.mapped);
        }
        let needed = self.words.fill_all(&self.program.files);
        report.files = files::identify(&self.path, &needed, &mapped, self.file_system());
        self.take_folder_back();
        let mut outcome = EndpointOutcome::default();
        if let Some(file) = &self.program.frames {
            frames::add(&mut outcome, &self.folder.join(file), zero);
        }
        // An empty folder is useless.
        let _ = fs::remove_dir(&self.folder);
        outcome.program = Some(Box::new(report));
        outcome
    }
}
