//! One peer of a run between two hosts: one end of a tunnel, and behind it the ends of the flows that are on this
//! host.
//!
//! ```text
//!   whoever started it          the agent here                                the agent there
//!   plan, commands  ------------> peer --- tunnel (thread, last processor) ~~~~ the same
//!   events        <------------  |         |
//!                                |       eth0 10.77.0.1 or .2
//!                                +------ endpoints: one process per flow, in the namespace
//! ```
//!
//! The first line of standard input is the plan ([`PeerPlan`]); commands follow, one per line: `start`, `stop`. The end
//! of the input stops the peer, so that nothing remains when a connection breaks. On standard output it reports its
//! progress: `ready` (can be called), `open` (the tunnel), `prepared` (all endpoints), `starting`, `progress`, `done`,
//! and `clock` once a second. If the plan has `"live": true`, `counts` of flows come twice a second ([`live`]), and the
//! command `reschedule` gives a flow other times. A peer whose other end becomes silent or leaves before the end of the run fails, so that
//! a peer that commands can no longer reach ends as well.
//!
//! Both peers start at the same time: one is commanded to start after a delay and reports the corresponding reading of
//! its clock, which the other converts with its tunnel's relation of the clocks.
//!
//! Without a tunnel (`"tunnel": null`) the endpoints work in the machine's own network, between the addresses of the
//! machines, and only their reports are known. Each peer is then commanded to start at a time of its real-time clock.
//!
//! The folder then has the logs of the tunnel ([`tunnel`](crate::tunnel)), those of the endpoints in `logs/`, and
//! `side.json` (format `narrows/side-end/1`) with the reports of the endpoints and a description of this machine.

mod clock_reading;
mod commands;
mod live;
mod plan;
mod report;
mod tunnel_thread;
mod watch;

use crate::timekeeping;
use crate::tunnel::{BoundEnd, TunnelClock, TunnelEnd};
pub(crate) use clock_reading::ClockReading;
pub use commands::CommandReader;
use live::PeerReadings;
use narrows_cell::Role;
use narrows_cell::{Cell, Flow};
use narrows_cell::{Context, RunError};
use narrows_endpoints::bpf::{self, Programs};
use narrows_endpoints::host_at;
use narrows_endpoints::supervisor::{
    EndpointSetup, EndpointSpec, PRIORITY, Supervisor, check_kernel_schemes, mask, share_cpus,
};
use narrows_netns::{HostPlan, enter_private_network};
use narrows_sys::cpu;
use narrows_sys::netns::{NetNs, is_root};
use narrows_sys::poll::{Epoll, Signals};
use plan::PeerPath;
pub use plan::PeerPlan;
use serde_json::{Value, json};
use std::fs;
use std::net::{Ipv4Addr, UdpSocket};
use std::path::PathBuf;
use tunnel_thread::TunnelThread;
use watch::PeerRun;

/// Unsent data to keep in the send buffer of a connection: the amount that 1 Gbit/s carries in 8 ms, because the rate
/// of a real path is not known, and a sender may have to wait that long for a processor.
const UNSENT: u32 = 1 << 20;

/// Context of a peer: its signals, its commands, and the receiver of its events.
pub struct PeerContext<'a> {
    /// Signals that stop it.
    pub signals: &'a Signals,
    /// Commands after its plan.
    pub commands: CommandReader,
    /// Receives events, JSON documents with a member `event`.
    pub notify: &'a mut dyn FnMut(&Value),
}

/// Runs one peer of a run. Must be called while this process has a single thread, because it enters namespaces.
///
/// # Errors
/// One sentence for people. A rejected plan leaves no files; otherwise the folder contains the logs so far.
pub fn run(plan: &PeerPlan, context: &mut PeerContext) -> Result<(), RunError> {
    let mut directory = PeerDirectory::make(plan)?;
    let (cell, host) = plan.cell(&directory.files())?;
    let own: Vec<(&Flow, Role)> = ends(&cell, plan.host).collect();
    let sends = |flow: &Flow| host_at(flow, Role::Sender) == plan.host;
    let sent = cell.flows.iter().filter(|flow| sends(flow));
    check_kernel_schemes(sent.clone())?;
    sent.clone().try_for_each(bpf::check_loader)?;
    // Before entering namespaces: time services may not be reachable from inside.
    let timekeeping = timekeeping::examine();
    // Also before: privileges held here do not apply inside.
    let programs = Programs::load_for(&cell, sends)?;
    let network = PeerNetwork::open(plan, &host, &cell)?;
    let epoll = Epoll::new().could_not("wait for events")?;
    let specs = own.iter().map(|&(flow, role)| EndpointSpec {
        flow,
        role,
        netns: network.netns(),
        unsent: UNSENT,
    });
    let logs = std::path::absolute(directory.logs()).could_not("find the folder of the logs")?;
    let endpoint_setup = EndpointSetup {
        cell: &cell,
        programs: programs.as_ref(),
        files: &directory.files(),
        cpus: &network.cpus,
        logs: &logs,
        addresses: network.addresses,
        is_live: plan.is_live,
    };
    directory.keep = true;
    let supervisor = Supervisor::start(specs, endpoint_setup, &epoll)?;
    let mut setup = report::PeerSetup {
        host: plan.host,
        privilege: network.privilege,
        tunnel: network.end.is_some(),
        settings: network.settings(&host),
        timekeeping,
        cpus: json!({"tunnel": network.mover, "endpoints": network.cpus}),
        programs,
    };
    (context.notify)(&network.ready_event(plan.host));
    let clock = network.clock();
    let tunnel = match network.end {
        Some(end) => Some(TunnelThread::start(end, network.mover)?),
        None => None,
    };
    let mut watch = PeerRun::new(&cell, clock, epoll, supervisor, tunnel, context)?;
    watch.readings = plan.is_live.then(|| PeerReadings::new(&cell, plan.host));
    let result = watch.run(|| directory.remove_files())?;
    report::write(&mut setup, result, &cell, &plan.folder)?;
    (context.notify)(&json!({"event": "done"}));
    Ok(())
}

/// The ends of flows at the host with this index.
fn ends(cell: &Cell, host: u16) -> impl Iterator<Item = (&Flow, Role)> {
    let ends = |flow| [(flow, Role::Receiver), (flow, Role::Sender)];
    let all = cell.flows.iter().flat_map(ends);
    all.filter(move |&(flow, role)| host_at(flow, role) == host)
}

/// The network in which the endpoints work.
struct PeerNetwork {
    /// The end of the tunnel with the namespace behind it, if there is one.
    end: Option<TunnelEnd>,
    /// Addresses of the machines, if there is no tunnel.
    addresses: Option<[Ipv4Addr; 2]>,
    privilege: &'static str,
    /// Processors of the tunnel.
    mover: Vec<usize>,
    /// Processors of the endpoints.
    cpus: Vec<usize>,
}

impl PeerNetwork {
    fn open(plan: &PeerPlan, host: &HostPlan, cell: &Cell) -> Result<PeerNetwork, RunError> {
        match &plan.path {
            PeerPath::Tunnel(tunnel) => {
                let bound = BoundEnd::open(tunnel)?;
                cpu::prefer_session(PRIORITY);
                let privilege = enter_private_network()?;
                let (mover, cpus) = share_cpus(1)?;
                let mut end = bound.build(host, mask(&cpus, &mover), privilege)?;
                end.add_programs(cell, plan.host)
                    .could_not("set the addresses of the ends of programs")?;
                if plan.is_live {
                    end.count_flows(cell);
                }
                Ok(PeerNetwork {
                    end: Some(end),
                    addresses: None,
                    privilege: privilege.name(),
                    mover,
                    cpus,
                })
            }
            PeerPath::Direct(addresses) => {
                let own = addresses[usize::from(plan.host)];
                UdpSocket::bind((own, 0)).map_err(|error| {
                    RunError::Unavailable(format!(
                        "{own} is not an address of this machine ({error}); name the one at which the other reaches it"
                    ))
                })?;
                cpu::prefer_session(PRIORITY);
                Ok(PeerNetwork {
                    end: None,
                    addresses: Some(*addresses),
                    privilege: if is_root() { "root" } else { "user" },
                    mover: Vec::new(),
                    cpus: cpu::allowed_cpus().could_not("read the allowed processors")?,
                })
            }
        }
    }

    fn netns(&self) -> Option<&NetNs> {
        self.end.as_ref().map(|end| &end.host().netns)
    }

    /// The clock by which times are reported.
    fn clock(&self) -> TunnelClock {
        let own = || TunnelClock::plain();
        self.end.as_ref().map_or_else(own, TunnelEnd::clock)
    }

    /// Settings of the kernel in the endpoints' network, as read back.
    fn settings(&self, plan: &HostPlan) -> Value {
        match &self.end {
            Some(end) => json!({"mtu": end.host().mtu, "sysctls": end.host().sysctls}),
            None => json!({"sysctls": plan.read_back()}),
        }
    }

    /// The event of a peer that is ready to be called.
    fn ready_event(&self, host: u16) -> Value {
        match (&self.end, &self.addresses) {
            (Some(end), _) => end.ready_event(),
            (None, addresses) => {
                let inside = addresses.map(|addresses| addresses[usize::from(host)]);
                json!({"event": "ready", "address": null, "inner_mtu": null, "inside": inside})
            }
        }
    }
}

/// The folder of a peer. It is removed on drop unless it has to be kept.
struct PeerDirectory {
    path: PathBuf,
    keep: bool,
}

impl PeerDirectory {
    fn make(plan: &PeerPlan) -> Result<PeerDirectory, RunError> {
        let directory = PeerDirectory {
            path: plan.folder.clone(),
            keep: false,
        };
        for path in [directory.files(), directory.logs()] {
            fs::create_dir_all(&path).at(&path)?;
        }
        for (name, content) in &plan.files {
            let path = directory.files().join(name);
            fs::write(&path, content).at(&path)?;
        }
        Ok(directory)
    }

    /// Folder of the files that the cell names, until all endpoints have read them.
    fn files(&self) -> PathBuf {
        self.path.join("files")
    }

    fn logs(&self) -> PathBuf {
        self.path.join("logs")
    }

    fn remove_files(&self) {
        // Leftovers do no harm.
        let _ = fs::remove_dir_all(self.files());
    }
}

impl Drop for PeerDirectory {
    fn drop(&mut self) {
        self.remove_files();
        if !self.keep {
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}
