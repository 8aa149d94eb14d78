//! One emulated run, from the cell to the finished record.
//!
//! ```text
//! agent (private namespace) -- emulator thread, pinned to the last CPU; several with many CPUs
//!   |                       \- writer thread, runs when nothing else does
//!   +-- endpoints: two processes per flow, in the hosts' namespaces, on the other CPUs
//! ```
//!
//! The agent itself only waits: for endpoints to be ready, for signals, for the end. When it dies
//! for any reason, the kernel ends the endpoints, and the namespaces and wires disappear with the
//! last process.
#![forbid(unsafe_code)]

mod describe;
mod sizing;

use describe::{WireCounts, describe, describe_hosts};
use narrows_cell::Role;
use narrows_cell::{Cell, RecordFolder, RecordKind, element_names, versions};
use narrows_cell::{Context, RunError};
use narrows_emulator::{Control, Core, Emulator, Pool, Report, Wires, Writer, split};
use narrows_endpoints::bpf::Programs;
use narrows_endpoints::supervisor::{
    EndpointSetup, EndpointSpec, HEAD_START_NS, PRIORITY, READY_LIMIT, REPORT_LIMIT, SIGNALS,
    Supervisor, check_kernel_schemes, mask, share_cpus,
};
use narrows_net::Network;
use narrows_netns::host_info;
use narrows_netns::{Host, HostDefaults, HostPlan, Hosts, enter_private_network};
use narrows_record::RunDocument;
use narrows_sys::cpu::{self, CpuTicks};
use narrows_sys::poll::{Epoll, Signals};
use narrows_sys::privileges::{self, Need};
use narrows_sys::ring::{RxRing, TxPort};
use narrows_sys::{clock, ring};
use narrows_units::Span;
use serde_json::json;
use sizing::Sizing;
use std::io;
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::thread::ScopedJoinHandle;
use std::time::{Duration, Instant};

/// Time between progress reports.
const TICK: Duration = Duration::from_millis(200);

/// Key of standard input among the awaited events, the only one in addition to those of the
/// supervisor.
const STDIN: u64 = 1;

/// The surroundings of a run.
pub struct RunContext<'a> {
    /// The signals that stop a run, already blocked in this process.
    pub signals: &'a Signals,
    /// True if the end of standard input means that the parent has ended.
    pub watch_stdin: bool,
    /// Folder of the files that the cell names, for the endpoints.
    pub files: &'a Path,
    /// Maximum number of threads of the emulator; by default half of the processors are left to the
    /// endpoints.
    pub emulator_threads: Option<usize>,
    /// Called with the progress of the run: elapsed time and length, in ns.
    pub progress: &'a mut dyn FnMut(u64, u64),
}

/// Runs `cell` and writes its record to `out`.
///
/// Must be called while this process has a single thread, because it enters namespaces.
///
/// # Errors
/// Anything that prevents the record from being written. A bad run is not an error: its record says
/// so.
pub fn emulate(cell: &Cell, out: &Path, context: &mut RunContext) -> Result<RunDocument, RunError> {
    let network: Network<narrows_emulator::Handle> = cell.network()?;
    let mut plans = HostPlan::from_cell(cell, network.hosts());
    plans.extend(HostPlan::for_programs(cell, &plans));
    let mtu = plans.iter().filter_map(|plan| plan.mtu).max();
    let sizing = Sizing::new(cell, &network, mtu);
    let elements = element_names(&network);
    check_kernel_schemes(&cell.flows)?;
    // Before entering namespaces: privileges held here do not apply inside.
    let mut programs = Programs::load_for(cell, |_| true)?;
    let folder = RecordFolder::create(out)?;
    cpu::prefer_session(PRIORITY);
    let privilege = enter_private_network()?;
    let cpus = cpu::allowed_cpus().could_not("read the allowed processors")?;
    let maximum = context.emulator_threads.unwrap_or(cpus.len() / 2);
    let thread_of = split(cell, &network, maximum);
    let threads = thread_of.iter().max().map_or(1, |last| last + 1);
    let (emulator_cpus, endpoint_cpus) = share_cpus(threads)?;
    let common = HostDefaults {
        mtu: sizing.mtu,
        buffer: sizing.tcp_buffer,
        verify_checksums: sizing.damage,
        receive_cpus: mask(&endpoint_cpus, &emulator_cpus),
    };
    let mut hosts = Hosts::build(&plans, common)?;
    let before = hosts.counters().could_not("read the wires' counters")?;
    let writer = match cell.record {
        RecordKind::Packets => Some(Writer::start(&folder, threads)?),
        RecordKind::Bins => None,
    };
    let control = Control::new(plans.len(), threads).could_not("prepare the emulator")?;
    let mut parts = Vec::new();
    let uids = Arc::new(AtomicU64::new(0));
    for thread in 0..threads {
        let mut network: Network<narrows_emulator::Handle> = cell.network()?;
        network.keep(|host| thread_of[usize::from(host)] == thread);
        let wires = open_wires(&hosts, &sizing, |host| thread_of[host] == thread)?;
        parts.push((network, wires));
    }

    let ran = std::thread::scope(|scope| {
        let (writer, control, sizing) = (writer.as_ref(), &control, &sizing);
        let memory = (host_info::available_bytes() / 2) as usize / threads;
        let start = |(thread, (network, wires)): (usize, (Network<_>, Wires))| {
            let (elements, cpus, uids) = (&elements, &emulator_cpus, uids.clone());
            let emulate = move || -> Result<Report, RunError> {
                let cpu = cpus[thread % cpus.len()];
                let pinned = cpu::pin_to(&[cpu]);
                pinned.could_not("pin the emulator to a processor")?;
                let pool = Pool::new(sizing.frames, sizing.largest_frame(), memory);
                let mut core = Core::new(cell, network, pool);
                if threads > 1 {
                    core.number_with(uids);
                }
                Writer::prepare(&mut core.log, elements);
                let duration = Span::from_ns(cell.duration.ns());
                let mut emulator = Emulator::new(core, wires, writer, control);
                if threads > 1 {
                    emulator = emulator.beside_others(thread);
                }
                // Its packet sockets are open; frames of any content arrive through them.
                privileges::keep_in_thread(Need::Nothing)
                    .could_not("give up rights of the emulator")?;
                emulator.run(duration).could_not("emulate the network")
            };
            let thread = std::thread::Builder::new().name("emulator".to_owned());
            let thread = thread.spawn_scoped(scope, emulate);
            thread.could_not("start a thread")
        };
        let started: Result<Vec<_>, RunError> = parts.into_iter().enumerate().map(start).collect();
        let running = started.inspect_err(|_| control.stop())?;
        let mut supervision = Supervision {
            cell,
            programs: programs.as_ref(),
            sizing,
            hosts: &hosts,
            folder: &folder,
            control,
            writer,
            context,
        };
        let ended = || running.iter().any(ScopedJoinHandle::is_finished);
        let supervised = supervision.run(&endpoint_cpus, &ended);
        if supervised.is_err() {
            control.stop();
        }
        let report = join(running);
        // The first error explains later ones.
        let supervised = supervised.map_err(|error| match (&report, error) {
            (Err(cause), RunError::Internal(_)) => RunError::Internal(cause.to_string()),
            (_, error) => error,
        })?;
        Ok::<_, RunError>((report?, supervised))
    });
    let (report, mut supervised) = match (ran, writer) {
        (Ok(ran), writer) => {
            if let Some(writer) = writer {
                writer.finish(&folder)?;
            }
            ran
        }
        // The error of the disk is why the run was aborted.
        (Err(error), Some(writer)) if writer.has_failed() => {
            return Err(writer.finish(&folder).err().unwrap_or(error));
        }
        (Err(error), _) => return Err(error),
    };

    let processes = supervised.supervisor.stop();
    if programs.as_mut().is_some_and(|it| !it.finish()) {
        return Err(RunError::Internal(
            "the program that holds the BPF congestion controls ended during the run".to_owned(),
        ));
    }
    let after = hosts.counters().could_not("read the wires' counters")?;
    let mut run = RunDocument::new(cell.json.clone(), "emulate", versions());
    describe_hosts(&mut run, &hosts);
    run.other
        .insert("privilege".to_owned(), json!(privilege.name()));
    run.started_at = Some(host_info::wall_clock(supervised.start_ns));
    run.ended_at = Some(host_info::wall_clock(clock::real_ns()));
    describe(
        &mut run,
        cell,
        programs.as_ref(),
        &sizing,
        threads,
        report,
        supervised,
        processes,
        &WireCounts {
            hosts: &hosts,
            before,
            after,
        },
        &folder,
    )?;
    folder.complete(&mut run)?;
    Ok(run)
}

/// Waits for the threads of the emulator, and merges their reports.
fn join(threads: Vec<ScopedJoinHandle<Result<Report, RunError>>>) -> Result<Report, RunError> {
    let crashed = || RunError::Internal("the emulator's thread has crashed".to_owned());
    let reports: Vec<_> = threads.into_iter().map(ScopedJoinHandle::join).collect();
    let mut joined: Option<Report> = None;
    for report in reports {
        let report = report.map_err(|_| crashed())??;
        match &mut joined {
            None => joined = Some(report),
            Some(joined) => joined.join(report),
        }
    }
    joined.ok_or_else(crashed)
}

/// The wires for a thread that takes the frames of the hosts that are `mine`.
fn open_wires(
    hosts: &Hosts,
    sizing: &Sizing,
    mine: impl Fn(usize) -> bool,
) -> Result<Wires, RunError> {
    let open = |(number, host): (usize, &Host)| -> io::Result<(Option<RxRing>, TxPort)> {
        let ring = || RxRing::open(host.outer, sizing.ring, sizing.largest_frame());
        let ring = mine(number).then(ring).transpose()?;
        Ok((ring, TxPort::open(host.outer)?))
    };
    let all: io::Result<Vec<_>> = hosts.hosts.iter().enumerate().map(open).collect();
    let split = |all: Vec<(Option<RxRing>, TxPort)>| {
        let (rings, ports): (Vec<_>, Vec<_>) = all.into_iter().unzip();
        let rings = (0..).zip(rings);
        let rings = rings
            .filter_map(|(host, ring)| Some((host, ring?)))
            .collect();
        Wires { rings, ports }
    };
    all.map(split).map_err(|error| {
        if ring::probe().is_err() {
            return RunError::Unavailable(format!(
                "packet sockets (AF_PACKET) cannot be used here ({error}); run as root or in a \
                 container with CAP_NET_RAW, or use the plane 'simulate'"
            ));
        }
        RunError::Internal(format!("could not open a packet ring: {error}"))
    })
}

/// The state of the main thread while the emulator runs.
struct Supervision<'a, 'b> {
    cell: &'a Cell,
    programs: Option<&'a Programs>,
    sizing: &'a Sizing,
    hosts: &'a Hosts,
    folder: &'a RecordFolder,
    control: &'a Control,
    writer: Option<&'a Writer>,
    context: &'a mut RunContext<'b>,
}

/// Results of the main thread after the run.
struct SupervisedRun {
    supervisor: Supervisor,
    start_ns: u64,
    clock_step_ns: i64,
    ticks: Vec<CpuTicks>,
}

impl Supervision<'_, '_> {
    fn run(
        &mut self,
        cpus: &[usize],
        emulator_ended: &dyn Fn() -> bool,
    ) -> Result<SupervisedRun, RunError> {
        let epoll = Epoll::new().could_not("wait for events")?;
        epoll
            .add(self.context.signals.as_fd(), SIGNALS)
            .could_not("wait for signals")?;
        if self.context.watch_stdin {
            // A file or /dev/null as standard input never signals that the parent has ended.
            let _ = epoll.add(io::stdin().as_fd(), STDIN);
        }
        let flows = self.cell.flows.iter();
        let specs = flows.flat_map(|flow| [(flow, Role::Receiver), (flow, Role::Sender)]);
        let specs = specs.map(|(flow, role)| EndpointSpec {
            flow,
            role,
            netns: Some(&self.hosts.host(self.cell.host_at(flow, role)).netns),
            unsent: self.sizing.unsent(self.cell, flow),
        });
        let setup = EndpointSetup {
            cell: self.cell,
            programs: self.programs,
            files: self.context.files,
            cpus,
            logs: &std::path::absolute(self.folder.path().join("logs"))
                .could_not("find the folder of the record")?,
            addresses: None,
        };
        let mut supervisor = Supervisor::start(specs, setup, &epoll)?;
        let slowest = self
            .cell
            .programs()
            .map(|(_, program)| program.ready_limit());
        let limit = Instant::now() + READY_LIMIT + slowest.max().unwrap_or_default();
        let mut warmed: Option<Instant> = None;
        while !(supervisor.is_ready() && self.control.is_warm()) {
            if !self.control.is_warm() && warmed.is_none_or(|at| at.elapsed() > TICK / 2) {
                warmed = Some(Instant::now());
                for host in self.control.cold() {
                    self.hosts.warm_up(host).could_not("send through a wire")?;
                }
            }
            self.wait(&epoll, &mut supervisor, TICK / 10, false)?;
            if Instant::now() > limit || emulator_ended() {
                return Err(RunError::Internal(
                    "the hosts and endpoints did not become ready".into(),
                ));
            }
        }
        let offset = clock::real_minus_mono_ns();
        let mono_ns = clock::mono_ns() + HEAD_START_NS;
        let start_ns = (mono_ns as i64 + offset) as u64;
        let ticks = cpu::ticks();
        self.control.start(start_ns);
        supervisor.announce(start_ns, mono_ns);
        let length = self.cell.duration.ns();
        loop {
            // Checked before the clock is read: the emulator ends by itself just after the run.
            let ended = emulator_ended();
            let passed = clock::mono_ns().saturating_sub(mono_ns);
            if passed >= length {
                break;
            }
            if ended {
                return Err(RunError::Internal(
                    "the emulator ended before the run".to_owned(),
                ));
            }
            (self.context.progress)(passed, length);
            self.wait(
                &epoll,
                &mut supervisor,
                TICK.min(Duration::from_nanos(length - passed)),
                true,
            )?;
            if self.writer.is_some_and(Writer::has_failed) {
                // The emulator is stopped, and the writer's own error is what is reported.
                return Err(RunError::Io("the packets could not be written".to_owned()));
            }
        }
        (self.context.progress)(length, length);
        let ticks = cpu::ticks()
            .into_iter()
            .zip(ticks)
            .map(|(now, then)| now.since(then))
            .collect();
        let clock_step_ns = clock::real_minus_mono_ns() - offset;
        let limit = Instant::now() + REPORT_LIMIT;
        while !supervisor.is_done() && Instant::now() < limit {
            self.wait(&epoll, &mut supervisor, TICK, true)?;
        }
        Ok(SupervisedRun {
            supervisor,
            start_ns,
            clock_step_ns,
            ticks,
        })
    }

    /// Waits for events; a signal or the end of standard input ends the run.
    fn wait(
        &mut self,
        epoll: &Epoll,
        supervisor: &mut Supervisor,
        timeout: Duration,
        started: bool,
    ) -> Result<(), RunError> {
        for key in supervisor.wait(epoll, self.context.signals, timeout, started)? {
            debug_assert_eq!(key, STDIN, "nothing else was added");
            let mut buffer = [0; 256];
            let read = io::Read::read(&mut io::stdin(), &mut buffer);
            if matches!(read, Ok(0) | Err(_)) {
                return Err(RunError::Interrupted(libc::SIGTERM));
            }
        }
        Ok(())
    }
}
