//! One end of a measuring tunnel on this machine: a host in a namespace, whose only wire leads
//! through UDP to the host at the other end.
//!
//! ```text
//!   this machine's network             the agent's namespace              the host
//!   UDP socket  <------------------->  (engine)  wire0 ================ eth0 10.77.0.1 or .2
//! ```
//!
//! The socket is opened in the machine's own network before the agent moves into a namespace of its own,
//! so nothing of the machine's network is changed, and everything vanishes with the process. The
//! host's wire is the same as in emulation. The listener's host is 10.77.0.1, the dialer's 10.77.0.2.
//!
//! The end writes two logs ([`narrows_tunnel::log`]) and `tunnel.json` into its folder. [`join`]
//! makes one table out of the folders of both ends.

mod clock;
mod engine;
mod join;
mod logs;
mod plan;
mod report;

use crate::error::{Context, LiveError};
use crate::hosts::{Common, HostPlan, Hosts, enter_private_network};
use crate::sys::carriage::Carriage;
use crate::sys::poll::{Epoll, Events, Signals};
use crate::sys::process::{Process, Spawn, describe};
use crate::sys::ring::{RxRing, TxPort};
use crate::sys::{clock as machine, cpu, inside};
use clock::TunnelClock;
use engine::{Engine, Parts};
pub use join::join;
use logs::Logs;
use narrows_tunnel::clock::{Clocks, Config as ClockConfig};
use narrows_tunnel::{Config, Peer, Role, State};
use narrows_units::{Span, Time};
pub use plan::{Plan, Shift};
use serde_json::{Value, json};
use std::fs::{self, File};
use std::io::Read;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::Duration;

/// Frames that may wait for the engine: 80 ms at 1.2 Gbit/s.
const RING: usize = 8 * 1024;
/// Wanted for the socket's buffers: as much as the ring.
const SOCKET_BUFFER: i32 = 16 << 20;
/// Most bytes of one TCP buffer inside: a gigabit per second over half a second.
const TCP_BUFFER: u64 = 64 << 20;
/// How often the surroundings are looked at.
const TICK_NS: u64 = 50_000_000;
/// How often the state of the clocks is told.
const TELL_NS: u64 = 1_000_000_000;
/// Time for a farewell and what is still on its way.
const LINGER_NS: u64 = 300_000_000;

/// Time that the program's guard has to end it.
const GUARD: Duration = Duration::from_secs(2);

const SOCKET: u64 = 0;
const INSIDE: u64 = 1;
const SIGNALS: u64 = 2;
const PARENT: u64 = 3;
const COMMAND: u64 = 4;

/// What surrounds an end.
pub struct Around<'a> {
    /// Signals that stop it.
    pub signals: &'a Signals,
    /// A descriptor whose end stops it, too.
    pub parent: Option<BorrowedFd<'a>>,
    /// Hears what happens, as JSON documents with a member `event`.
    pub tell: &'a mut dyn FnMut(&Value),
}

/// Runs one end until its program has ended, the other end has, or it is stopped; returns the
/// content of `tunnel.json`.
///
/// # Errors
/// With a sentence for people. The folder then holds what there is of the logs.
pub fn run(plan: &Plan, around: &mut Around) -> Result<Value, LiveError> {
    if plan.folder.exists() {
        return Err(LiveError::Input(format!(
            "{} exists already; name a new folder for the logs",
            plan.folder.display()
        )));
    }
    let carriage = Carriage::bind(plan.bind, plan.interface.as_deref(), SOCKET_BUFFER);
    let carriage = carriage.map_err(|error| {
        LiveError::Unavailable(format!(
            "no UDP socket can be bound to {}: {error}; choose another address, port or interface",
            plan.binding()
        ))
    })?;
    let local = carriage.local().could_not("read the address of a socket")?;
    let privilege = enter_private_network()?;
    let mut hosts = build_host(plan)?;
    let host = &hosts.hosts[0];
    let ring = RxRing::open(host.outer, RING, plan.inner_mtu as usize + 64)
        .could_not("open a ring on the host's wire")?;
    let port = TxPort::open(host.outer).could_not("send on the host's wire")?;
    fs::create_dir_all(&plan.folder)
        .map_err(|error| LiveError::Io(format!("{}: {error}", plan.folder.display())))?;
    cpu::precise_timers();
    let logs = Logs::start(&plan.folder)?;
    let clock = TunnelClock::new(plan.clock);
    let started = clock.now();
    let engine = Engine::new(Parts {
        peer: Peer::new(config(plan)?, started),
        clock,
        clocks: Clocks::new(ClockConfig::default()),
        carriage,
        ring,
        port,
        logs,
        host: plan.host(),
        over_ipv6: plan.bind.is_ipv6(),
    });
    (around.tell)(&json!({
        "event": "ready", "address": local.to_string(), "inner_mtu": plan.inner_mtu,
        "inside": crate::hosts::address(plan.host()).to_string(),
    }));
    let started_real = machine::real_ns();
    let mut end = End {
        plan,
        engine,
        program: None,
        started,
        opened: None,
        reason: "stopped",
    };
    end.live(&hosts, around)?;
    let outcome = report::Facts {
        local,
        privilege: privilege.name(),
        started_real_ns: started_real,
        ended_real_ns: machine::real_ns(),
        sysctls: hosts.hosts[0].sysctls.clone(),
        wire: hosts
            .counters()
            .ok()
            .and_then(|counters| counters.first().copied()),
    };
    end.finish(&outcome)
}

fn build_host(plan: &Plan) -> Result<Hosts, LiveError> {
    let common = Common {
        mtu: plan.inner_mtu,
        buffer: TCP_BUFFER,
        // Damage on the path is found by the tunnel's own tag.
        verify_checksums: false,
        receive_cpus: 0,
    };
    Hosts::build_one(&HostPlan::named("inside"), plan.host(), 2, common)
}

fn config(plan: &Plan) -> Result<Config, LiveError> {
    let mut salt = [0; 8];
    File::open("/dev/urandom")
        .and_then(|mut file| file.read_exact(&mut salt))
        .could_not("read /dev/urandom")?;
    Ok(Config {
        role: plan.dial.map_or(Role::Listener, Role::Dialer),
        secret: plan.secret.clone(),
        salt: u64::from_be_bytes(salt),
        clock_gap: Span::from_ns(plan.clock_gap_ns),
        silence: Span::from_ns(plan.silence_ns),
        interface_mtu: plan.outer_mtu,
    })
}

/// The program inside, and the pipe whose end tells it that we are gone.
struct Program {
    process: Process,
    pipe: OwnedFd,
}

struct End<'a> {
    plan: &'a Plan,
    engine: Engine,
    program: Option<Program>,
    started: Time,
    opened: Option<Time>,
    reason: &'static str,
}

impl End<'_> {
    fn live(&mut self, hosts: &Hosts, around: &mut Around) -> Result<(), LiveError> {
        let epoll = Epoll::new().could_not("wait for events")?;
        let add = |fd: BorrowedFd<'_>, key: u64| epoll.add(fd, key).could_not("wait for events");
        add(self.engine.carriage.as_fd(), SOCKET)?;
        add(self.engine.ring.as_fd(), INSIDE)?;
        add(around.signals.as_fd(), SIGNALS)?;
        if let Some(parent) = around.parent {
            add(parent, PARENT)?;
        }
        let mut events = Events::default();
        let (mut next_tick, mut next_tell) = (self.started, self.started);
        let mut parent_gone = false;
        loop {
            let busy = self.engine.turn().could_not("receive from the path")?;
            let now = self.engine.clock.now();
            if now >= next_tick {
                next_tick = now + Span::from_ns(TICK_NS);
                if parent_gone || self.should_end(now, around)? {
                    break;
                }
                if self.opened.is_none() && self.engine.peer.state() == State::Open {
                    self.opened = Some(now);
                    self.tell_open(around);
                    self.program = self.start(hosts)?;
                    if let Some(program) = &self.program {
                        add(program.process.as_fd(), COMMAND)?;
                    }
                }
            }
            if now >= next_tell && self.opened.is_some() {
                next_tell = now + Span::from_ns(TELL_NS);
                (around.tell)(&report::clock_event(&self.engine, now));
            }
            if !busy {
                let wakeup = self.engine.peer.next_wakeup().min(next_tick);
                let timeout = Duration::from_nanos(wakeup.since(self.engine.clock.now()).ns());
                epoll
                    .wait(&mut events, Some(timeout))
                    .could_not("wait for events")?;
                for key in events.keys() {
                    match key {
                        PARENT => parent_gone = has_ended(around.parent),
                        // Something is to be looked at without delay.
                        SIGNALS | COMMAND => next_tick = Time::ZERO,
                        _ => {}
                    }
                }
                if parent_gone {
                    next_tick = Time::ZERO;
                }
            }
        }
        self.farewell()
    }

    /// Whether it is time to end, and notes why.
    fn should_end(&mut self, now: Time, around: &mut Around) -> Result<bool, LiveError> {
        if around.signals.next().is_some() {
            return Ok(true);
        }
        if self.engine.logs.has_failed() {
            self.reason = "logs_failed";
            return Ok(true);
        }
        if let Some(program) = &mut self.program
            && program.process.status().is_some()
        {
            self.reason = "program_ended";
            return Ok(true);
        }
        match self.engine.peer.state() {
            State::Ended => {
                self.reason = "other_end";
                return Ok(true);
            }
            State::Incompatible(version) if self.opened.is_none() => {
                return Err(LiveError::Unavailable(format!(
                    "the other end of the tunnel speaks version {version} of its protocol and this one {}; use the same \
                     version of Narrows on both hosts",
                    narrows_tunnel::wire::VERSION
                )));
            }
            _ => {}
        }
        let silent = now.since(self.engine.peer.last_heard()).ns();
        if self.opened.is_none() {
            if now.since(self.started).ns() > self.plan.patience_ns {
                return Err(LiveError::Unavailable(self.nobody()));
            }
        } else if silent > self.plan.silence_ns.saturating_mul(2) {
            self.reason = "silence";
            return Ok(true);
        }
        Ok(false)
    }

    fn nobody(&self) -> String {
        let seconds = self.plan.patience_ns as f64 / 1e9;
        let refused = self.engine.peer.counts().all_refused();
        let hint = if refused > 0 {
            format!("{refused} datagrams came that do not have this tunnel's secret")
        } else {
            "no datagram came at all; let this UDP port pass through the firewalls, or let the other side listen".to_owned()
        };
        match self.plan.dial {
            Some(to) => format!("no answer from {to} within {seconds} s; {hint}"),
            None => format!(
                "nobody has called {} within {seconds} s; {hint}",
                self.plan.binding()
            ),
        }
    }

    fn tell_open(&self, around: &mut Around) {
        let peer = self
            .engine
            .peer_address()
            .map(|address| address.to_string());
        (around.tell)(&json!({"event": "open", "peer": peer}));
    }

    /// Starts the program inside, under a guard that ends everything which it has started.
    fn start(&self, hosts: &Hosts) -> Result<Option<Program>, LiveError> {
        if self.plan.command.is_empty() {
            return Ok(None);
        }
        let log = self.plan.folder.join("program.log");
        let log = File::create(&log)
            .map_err(|error| LiveError::Io(format!("{}: {error}", log.display())))?;
        let (theirs, ours) = inside::pipe().could_not("open a pipe")?;
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

    /// Says goodbye, and takes for a moment what is still on its way.
    fn farewell(&mut self) -> Result<(), LiveError> {
        self.engine.peer.close();
        let until = self.engine.clock.now() + Span::from_ns(LINGER_NS);
        while self.engine.clock.now() < until {
            if !self.engine.turn().could_not("receive from the path")? {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        Ok(())
    }

    fn finish(mut self, facts: &report::Facts) -> Result<Value, LiveError> {
        let ended = self.program.take().map(|program| {
            let Program { mut process, pipe } = program;
            // The guard now ends everything that the program has started.
            drop(pipe);
            let _ = process.wait_at_most(GUARD);
            let status = process.status();
            process.kill();
            status.map(describe).unwrap_or_default()
        });
        report::write(
            self.plan,
            self.engine,
            facts,
            self.reason,
            self.opened,
            ended,
        )
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
