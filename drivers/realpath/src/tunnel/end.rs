//! The life cycle of one end: socket, host, session, closing, `tunnel.json`. Its [`EndObserver`] handles everything
//! else: a program inside or the endpoints of a run.

use super::clock::TunnelClock;
use super::engine::{Engine, EngineBuffers, EngineCounters};
use super::logs::{self, Logs};
use super::meter::FlowMeter;
use super::plan::TunnelPlan;
use super::program_flows::ProgramFlows;
use super::report::{self, EndStart};
use super::unfinished_files::unfinished;
use narrows_cell::{Cell, addressing};
use narrows_cell::{Context, RunError};
use narrows_netns::{HostDefaults, HostPlan, Hosts};
use narrows_record::Histogram;
use narrows_sys::batched_udp::bind_for_groups;
use narrows_sys::netns::Privilege;
use narrows_sys::poll::{Epoll, Events};
use narrows_sys::ring::{RxRing, TxPort};
use narrows_sys::{clock as machine, cpu};
use narrows_tunnel::clock::{ClockConfig, Clocks, Fit};
use narrows_tunnel::{Peer, PeerConfig, PeerState, Role};
use narrows_units::{Span, Time};
use serde_json::{Value, json};
use std::fs::{self, File};
use std::io::{self, Read};
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::time::Duration;

/// Memory of the ring in which frames wait for the engine. A host whose wire is full is not slowed down, so if this
/// machine is the bottleneck, all packets that a TCP connection has in flight wait here: half of [`TCP_BUFFER`], with
/// the room between the packets.
const RING: usize = 64 << 20;
/// Minimum ring in bytes, if memory is short.
const MIN_RING: usize = 4 << 20;
/// Requested size of the socket's buffers: the same packets may wait there instead.
const SOCKET_BUFFER: i32 = 64 << 20;
/// Maximum size of a TCP buffer inside: 1 Gbit/s over half a second.
const TCP_BUFFER: u64 = 64 << 20;
/// Time between two calls of the observer.
const TICK_NS: u64 = 50_000_000;
/// Time between two events about the clocks.
const CLOCK_EVENT_NS: u64 = 1_000_000_000;
/// Block length for comparing clocks during the run, longer than afterwards because packets wait meanwhile.
const CLOCK_BLOCK: Span = Span::from_ms(10_000);
/// Time for closing and for packets in flight.
const LINGER_NS: u64 = 300_000_000;

const SOCKET: u64 = 0;
const INSIDE: u64 = 1;
/// First key of the observer.
pub(crate) const OBSERVER_KEYS: u64 = 2;

/// Observes an end during its life, on the thread that moves its packets.
pub(crate) trait EndObserver {
    /// Registers descriptors that wake the end, under keys from [`OBSERVER_KEYS`].
    fn register(&mut self, epoll: &Epoll) -> Result<(), RunError>;

    /// The descriptor of `key` is ready. [`EndObserver::poll`] follows immediately.
    fn ready(&mut self, key: u64);

    /// The session is open; called once.
    fn opened(
        &mut self,
        peer: Option<SocketAddr>,
        hosts: &Hosts,
        epoll: &Epoll,
    ) -> Result<(), RunError>;

    /// Called several times per second. Returns the reason if the end has to be closed now.
    fn poll(&mut self, view: &EndView) -> Result<Option<&'static str>, RunError>;

    /// Called once per second with the relation of the clocks.
    fn notify(&mut self, event: Value);
}

/// The part of an end that its observer may see.
pub(crate) struct EndView<'a>(&'a Engine);

impl EndView<'_> {
    /// The current relation of the clocks, if known.
    pub(crate) fn fit(&self) -> Option<Fit> {
        self.0.clocks.fit()
    }

    /// The counts of flows, if the run is watched, and the time by the clock of this end.
    pub(crate) fn meter(&self) -> Option<(FlowMeter, Time)> {
        let meter = self.0.meter.clone()?;
        Some((meter, self.0.clock.now()))
    }
}

/// An end whose socket is open, in the machine's network.
pub(crate) struct BoundEnd {
    plan: TunnelPlan,
    socket: UdpSocket,
    local: SocketAddr,
}

impl BoundEnd {
    /// Opens the socket.
    ///
    /// # Errors
    /// The kernel does not provide this address or interface.
    pub(crate) fn open(plan: &TunnelPlan) -> Result<Self, RunError> {
        let socket = bind_for_groups(plan.bind(), plan.interface.as_deref(), SOCKET_BUFFER);
        let socket = socket.map_err(|error| {
            RunError::Unavailable(format!(
                "no UDP socket can be bound to {}: {error}; choose another address, port or interface",
                plan.binding()
            ))
        })?;
        let local = socket.local_addr();
        let local = local.could_not("read the address of a socket")?;
        Ok(BoundEnd {
            plan: plan.clone(),
            socket,
            local,
        })
    }

    /// Builds the host and starts the logs. The process has entered a private network, by `privilege`; `receive_cpus`
    /// is a member of [`HostDefaults`].
    ///
    /// # Errors
    /// One sentence for people.
    pub(crate) fn build(
        self,
        host: &HostPlan,
        receive_cpus: u64,
        privilege: Privilege,
    ) -> Result<TunnelEnd, RunError> {
        let plan = self.plan;
        let common = HostDefaults {
            mtu: plan.inner_mtu(),
            buffer: TCP_BUFFER,
            // Damage on the path is found by the tunnel's own tag.
            verify_checksums: false,
            receive_cpus,
        };
        let hosts = Hosts::build_one(host, plan.host(), 2, common)?;
        let outer = hosts.hosts[0].outer;
        let ring = open_ring(outer, plan.inner_mtu() as usize + 64)?;
        let port = TxPort::open(outer).could_not("send on the host's wire")?;
        // Steps that can fail come first, so that they leave nothing behind.
        let clock = TunnelClock::new(plan.clock)?;
        let peer = Peer::new(config(&plan)?, clock.now());
        fs::create_dir_all(&plan.folder).at(&plan.folder)?;
        let start = EndStart {
            local: self.local,
            privilege: privilege.name(),
            real_ns: machine::real_ns(),
            raw_ns: clock.start_raw_ns(),
        };
        report::begin(&plan, &start)?;
        let logs = Logs::start(&plan.folder)?;
        let engine = Engine {
            peer,
            clock,
            clocks: Clocks::new(ClockConfig {
                block: CLOCK_BLOCK,
                ..ClockConfig::default()
            }),
            socket: self.socket,
            ring,
            port,
            logs,
            counters: EngineCounters::default(),
            waited: Histogram::new(),
            programs: ProgramFlows::default(),
            meter: None,
            buffers: EngineBuffers::new(),
            ethernet: addressing::ethernet(1 - plan.host(), plan.host()),
            outer_headers: if plan.bind().is_ipv6() { 48 } else { 28 },
        };
        Ok(TunnelEnd {
            engine,
            hosts,
            start,
            opened: None,
            reason: "stopped",
            plan,
        })
    }
}

/// The largest ring for which there is memory.
fn open_ring(wire: u32, largest: usize) -> Result<RxRing, RunError> {
    let mut bytes = RING;
    loop {
        match RxRing::open(wire, bytes / RxRing::slot_of(largest), largest) {
            Err(error) if error.raw_os_error() == Some(libc::ENOMEM) && bytes > MIN_RING => {
                bytes /= 2;
            }
            ring => return ring.could_not("open a ring on the host's wire"),
        }
    }
}

fn config(plan: &TunnelPlan) -> Result<PeerConfig, RunError> {
    let mut salt = [0; 8];
    File::open("/dev/urandom")
        .and_then(|mut file| file.read_exact(&mut salt))
        .could_not("read /dev/urandom")?;
    Ok(PeerConfig {
        role: plan.dial.map_or(Role::Listener, Role::Dialer),
        secret: plan.secret.clone(),
        salt: u64::from_be_bytes(salt),
        clock_gap: Span::from_ns(plan.clock_gap_ns),
        silence: Span::from_ns(plan.silence_ns),
        interface_mtu: plan.outer_mtu,
    })
}

/// One end, ready to be opened.
pub(crate) struct TunnelEnd {
    plan: TunnelPlan,
    engine: Engine,
    hosts: Hosts,
    start: EndStart,
    opened: Option<Time>,
    reason: &'static str,
}

impl TunnelEnd {
    /// The host behind this end.
    pub(crate) fn host(&self) -> &narrows_netns::Host {
        &self.hosts.hosts[0]
    }

    /// Prepares the addresses of programs, one per end of their flows.
    ///
    /// # Errors
    /// The kernel's error.
    pub(crate) fn add_programs(&mut self, cell: &Cell, host: u16) -> io::Result<()> {
        for (flow, _) in cell.programs() {
            if let Some([sender, receiver]) = cell.own_hosts(flow.flow) {
                let (own, other) = if flow.from == host {
                    (sender, receiver)
                } else {
                    (receiver, sender)
                };
                self.hosts.add_own_address(own, other)?;
            }
        }
        self.engine.programs = ProgramFlows::new(cell);
        Ok(())
    }

    /// Counts the packets of flows from now on.
    pub(crate) fn count_flows(&mut self, cell: &Cell) {
        let last = cell.flows.iter().map(|flow| flow.flow).max();
        self.engine.meter = last.map(FlowMeter::new);
    }

    /// The clock of this end.
    pub(crate) fn clock(&self) -> TunnelClock {
        self.engine.clock
    }

    /// The event of an end that is ready to be called.
    pub(crate) fn ready_event(&self) -> Value {
        json!({
            "event": "ready", "address": self.start.local.to_string(), "inner_mtu": self.plan.inner_mtu(),
            "inside": addressing::address(self.plan.host()).to_string(),
        })
    }

    /// Moves packets until the observer, the other end or a failure ends it, and closes the session.
    ///
    /// # Errors
    /// The other end has not called or answered, or the system has failed. The folder then contains the logs so far.
    pub(crate) fn live(&mut self, observer: &mut impl EndObserver) -> Result<(), RunError> {
        cpu::precise_timers();
        let epoll = Epoll::new().could_not("wait for events")?;
        epoll
            .add(self.engine.socket.as_fd(), SOCKET)
            .could_not("wait for events")?;
        epoll
            .add(self.engine.ring.as_fd(), INSIDE)
            .could_not("wait for events")?;
        observer.register(&epoll)?;
        let mut events = Events::default();
        // By the machine's clock: a shift of the tunnel's clock must not affect waiting times.
        let started = machine::raw_ns();
        let (mut next_tick, mut next_clock_event) = (started, started);
        loop {
            let busy = self.engine.turn().could_not("receive from the path")?;
            let now = machine::raw_ns();
            if now >= next_tick {
                next_tick = now + TICK_NS;
                let wish = match observer.poll(&EndView(&self.engine))? {
                    None => self.end_reason(now - started)?,
                    wish => wish,
                };
                if let Some(reason) = wish {
                    self.reason = reason;
                    break;
                }
                if self.opened.is_none() && self.engine.peer.state() == PeerState::Open {
                    self.opened = Some(self.engine.clock.now());
                    observer.opened(self.engine.peer_address(), &self.hosts, &epoll)?;
                }
            }
            if now >= next_clock_event && self.opened.is_some() {
                next_clock_event = now + CLOCK_EVENT_NS;
                let event = report::clock_event(&mut self.engine);
                observer.notify(event);
                self.engine.logs.flush();
            }
            if !busy {
                let wakeup = self.engine.peer.next_wakeup();
                let own = wakeup.since(self.engine.clock.now()).ns();
                let timeout = Duration::from_nanos(own.min(next_tick.saturating_sub(now)));
                epoll
                    .wait(&mut events, Some(timeout))
                    .could_not("wait for events")?;
                for key in events.keys().filter(|&key| key >= OBSERVER_KEYS) {
                    observer.ready(key);
                    next_tick = 0;
                }
            }
        }
        self.farewell()
    }

    /// The reason if the end has to close by itself, after `lived_ns`.
    fn end_reason(&self, lived_ns: u64) -> Result<Option<&'static str>, RunError> {
        if self.engine.logs.has_failed() {
            return Ok(Some("logs_failed"));
        }
        match self.engine.peer.state() {
            PeerState::Ended => return Ok(Some("other_end")),
            PeerState::Incompatible(version) if self.opened.is_none() => {
                return Err(RunError::Unavailable(format!(
                    "the other end of the tunnel speaks version {version} of its protocol and this one {}; use the same \
                     version of Narrows on both hosts",
                    narrows_tunnel::wire::VERSION
                )));
            }
            _ => {}
        }
        let now = self.engine.clock.now();
        let silent = now.since(self.engine.peer.last_heard()).ns();
        if self.opened.is_none() {
            if lived_ns > self.plan.patience_ns {
                return Err(RunError::Unavailable(self.no_answer()));
            }
        } else if silent > self.plan.silence_ns.saturating_mul(2) {
            return Ok(Some("silence"));
        }
        Ok(None)
    }

    fn no_answer(&self) -> String {
        let seconds = self.plan.patience_ns as f64 / 1e9;
        let counts = self.engine.peer.counts();
        let refused = counts.all_refused();
        let hint = if counts.messages > 0 {
            format!(
                "{} messages with this tunnel's secret arrived, but later ones were lost; look for a firewall that passes datagrams of one direction only",
                counts.messages
            )
        } else if refused > 0 {
            format!("{refused} datagrams arrived without this tunnel's secret")
        } else if let Some(code) = self.engine.counters.refusal {
            format!(
                "no datagram arrived, and the kernel reported for those that were sent: {}; check the address, and the routes and firewalls of this host",
                io::Error::from_raw_os_error(code)
            )
        } else {
            "no datagram arrived; let this UDP port pass through the firewalls, or let the other side listen".to_owned()
        };
        match self.plan.dial {
            Some(to) => format!("no answer from {to} within {seconds} s; {hint}"),
            None => format!(
                "no call of {} arrived within {seconds} s; {hint}",
                self.plan.binding()
            ),
        }
    }

    /// Closes the session, and receives packets in flight for a short time.
    fn farewell(&mut self) -> Result<(), RunError> {
        self.engine.peer.close();
        let until = machine::raw_ns() + LINGER_NS;
        while machine::raw_ns() < until {
            if !self.engine.turn().could_not("receive from the path")? {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        Ok(())
    }

    /// Removes its files if it never opened, and the folder if it is empty then: the same plan may be tried again.
    pub(crate) fn withdraw(self) {
        if self.opened.is_some() {
            return;
        }
        let folder = self.plan.folder;
        for name in [report::FILE, logs::SENT, logs::ARRIVED] {
            let _ = fs::remove_file(unfinished(&folder, name));
        }
        let _ = fs::remove_dir(folder);
    }

    /// Closes the logs and writes `tunnel.json`; returns its content. Must be called by the thread that has moved the
    /// packets, whose processor time it reports. `program` is how a program inside has ended.
    ///
    /// # Errors
    /// A file cannot be written.
    pub(crate) fn finish(
        mut self,
        program: Option<(Option<i32>, Option<i32>)>,
    ) -> Result<Value, RunError> {
        let counters = self.hosts.counters().ok();
        // Counted as sent without a session, such as the last packets of a program that was ended.
        while self.engine.take_from_inside() {}
        let sysctls = self.host().sysctls.clone();
        let summary = report::EndSummary {
            start: self.start,
            ended_real_ns: machine::real_ns(),
            sysctls,
            wire: counters.and_then(|counters| counters.first().copied()),
        };
        let (reason, opened) = (self.reason, self.opened);
        report::write(&self.plan, self.engine, &summary, reason, opened, program)
    }
}
