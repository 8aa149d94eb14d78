//! Hosts, wires and threads of one run.

use super::sizing::Sizing;
use narrows_cell::{Cell, Context, RecordFolder, RecordKind, RunError, element_names};
use narrows_emulator::{
    Control, Core, Emulator, Gauges, Handle, Hooks, LiveHooks, Pool, Report, Wires, Writer, split,
};
use narrows_endpoints::bpf::Programs;
use narrows_endpoints::supervisor::{PRIORITY, check_kernel_schemes, mask, share_cpus};
use narrows_net::Network;
use narrows_netns::host_info;
use narrows_netns::{Host, HostDefaults, HostPlan, Hosts, WireCounters, enter_private_network};
use narrows_sys::cpu;
use narrows_sys::netns::Privilege;
use narrows_sys::privileges::{self, Need};
use narrows_sys::ring::{self, RxRing, TxPort};
use narrows_units::Span;
use std::borrow::Cow;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::thread::{Scope, ScopedJoinHandle};

/// The share of one thread of the emulator.
type ThreadPart = (Network<Handle>, Wires);
pub(super) type EmulatorThread<'scope> = ScopedJoinHandle<'scope, Result<Report, RunError>>;

pub(super) struct Testbed<'a> {
    /// The cell; after changes during the run, the one with these changes.
    pub(super) cell: Cow<'a, Cell>,
    pub(super) sizing: Sizing,
    pub(super) programs: Option<Programs>,
    pub(super) folder: RecordFolder,
    pub(super) hosts: Hosts,
    /// Counters of the wires before the run.
    pub(super) before: Vec<WireCounters>,
    pub(super) control: Control,
    /// Encodes the packets, if each is kept.
    pub(super) writer: Option<Writer>,
    pub(super) endpoint_cpus: Vec<usize>,
    /// Number of threads of the emulator.
    pub(super) threads: usize,
    emulator_cpus: Vec<usize>,
    pub(super) privilege: Privilege,
    pub(super) elements: Vec<String>,
    /// By host of the network: the thread of the emulator that takes its frames.
    thread_of: Vec<usize>,
    /// Readings during the run, if they are wanted.
    pub(super) gauges: Option<Gauges>,
}

impl<'a> Testbed<'a> {
    /// Builds everything that the run of `cell` needs, and the folder of its record at `out`; a live run has gauges.
    ///
    /// # Errors
    /// Anything that is not available here, and errors of the kernel.
    pub(super) fn build(
        cell: &'a Cell,
        out: &Path,
        threads: Option<usize>,
        is_live: bool,
    ) -> Result<Self, RunError> {
        let network: Network<Handle> = cell.network()?;
        let mut plans = HostPlan::from_cell(cell, network.hosts());
        plans.extend(HostPlan::for_programs(cell, &plans));
        let mtu = plans.iter().filter_map(|plan| plan.mtu).max();
        let sizing = Sizing::new(cell, &network, mtu);
        check_kernel_schemes(&cell.flows)?;
        // Before entering namespaces: privileges held here do not apply inside.
        let programs = Programs::load_for(cell, |_| true)?;
        let folder = RecordFolder::create(out)?;
        cpu::prefer_session(PRIORITY);
        let privilege = enter_private_network()?;
        let cpus = cpu::allowed_cpus().could_not("read the allowed processors")?;
        let thread_of = split(cell, &network, threads.unwrap_or(cpus.len() / 2));
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
        let elements = element_names(&network);
        Ok(Testbed {
            cell: Cow::Borrowed(cell),
            gauges: is_live.then(|| Gauges::new(cell, elements.len(), threads)),
            elements,
            sizing,
            programs,
            folder,
            hosts,
            before,
            control,
            writer,
            endpoint_cpus,
            threads,
            emulator_cpus,
            privilege,
            thread_of,
        })
    }

    /// The network of one thread of the emulator, for `cell`, which has the same network as that of the run.
    pub(super) fn network_of(
        &self,
        cell: &Cell,
        thread: usize,
    ) -> Result<Network<Handle>, RunError> {
        let mut network: Network<Handle> = cell.network()?;
        network.keep(|host| self.thread_of[usize::from(host)] == thread);
        Ok(network)
    }

    /// The thread of the emulator that takes the frames of a host.
    pub(super) fn thread_of(&self, host: u16) -> usize {
        self.thread_of[usize::from(host)]
    }

    /// The network and the wires of one thread of the emulator.
    fn part(&self, thread: usize) -> Result<ThreadPart, RunError> {
        let network = self.network_of(&self.cell, thread)?;
        let wires = open_wires(&self.hosts, &self.sizing, |host| {
            self.thread_of[host] == thread
        })?;
        Ok((network, wires))
    }

    /// Starts the threads of the emulator, which wait for the start of the run.
    pub(super) fn start_threads<'scope>(
        &'scope self,
        scope: &'scope Scope<'scope, '_>,
    ) -> Result<Vec<EmulatorThread<'scope>>, RunError> {
        let parts: Result<Vec<_>, _> = (0..self.threads).map(|thread| self.part(thread)).collect();
        let memory = (host_info::available_bytes() / 2) as usize / self.threads;
        let uids = Arc::new(AtomicU64::new(0));
        let start = |(thread, part)| {
            let uids = uids.clone();
            let emulate = move || self.emulate(thread, part, uids, memory);
            let builder = std::thread::Builder::new().name("emulator".to_owned());
            builder
                .spawn_scoped(scope, emulate)
                .could_not("start a thread")
        };
        let started: Result<Vec<_>, RunError> = parts?.into_iter().enumerate().map(start).collect();
        started.inspect_err(|_| self.control.stop())
    }

    /// One thread of the emulator.
    fn emulate(
        &self,
        thread: usize,
        (network, wires): ThreadPart,
        uids: Arc<AtomicU64>,
        memory: usize,
    ) -> Result<Report, RunError> {
        let cpu = self.emulator_cpus[thread % self.emulator_cpus.len()];
        cpu::pin_to(&[cpu]).could_not("pin the emulator to a processor")?;
        let pool = Pool::new(self.sizing.frames, self.sizing.largest_frame(), memory);
        match &self.gauges {
            None => self.emulate_with(thread, Core::new(&self.cell, network, pool), wires, uids),
            Some(gauges) => {
                let frames = self.sizing.frames;
                let hooks = LiveHooks::new(gauges, thread, &self.cell, &network, frames);
                let core = Core::for_cell(&self.cell, network, pool, hooks);
                self.emulate_with(thread, core, wires, uids)
            }
        }
    }

    /// One thread with any hooks.
    fn emulate_with<H: Hooks>(
        &self,
        thread: usize,
        mut core: Core<H>,
        wires: Wires,
        uids: Arc<AtomicU64>,
    ) -> Result<Report, RunError> {
        if self.threads > 1 {
            core.number_with(uids);
        }
        Writer::prepare(&mut core.log, &self.elements);
        let mut emulator = Emulator::new(core, wires, self.writer.as_ref(), &self.control);
        if self.threads > 1 {
            emulator = emulator.beside_others(thread);
        }
        // Its packet sockets are open; frames of any content arrive through them.
        privileges::keep_in_thread(Need::Nothing).could_not("give up rights of the emulator")?;
        let duration = Span::from_ns(self.cell.duration.ns());
        let report = emulator.run(duration);
        report
            .map(Report::without_hooks)
            .could_not("emulate the network")
    }
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
