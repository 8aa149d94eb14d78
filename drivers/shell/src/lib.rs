//! Runs any program behind an emulated path, without set-up and without root.
//!
//! ```text
//!  agent, outside              agent's emulator thread             guard + program
//!  relay thread  <- sockets ->  gateway <= wire = path = wire =>   eth0, nothing else
//! ```
//!
//! One process holds everything except the program: its threads are in the namespaces that they use. When it dies, the
//! sockets, wires and namespaces disappear with it, and the guard ends the program. See `docs/guide/shell.md` for the
//! program's view.
#![forbid(unsafe_code)]

mod addresses;
mod connections;
mod counts;
mod hooks;
mod live;
mod network;
mod packet;
mod plan;
mod record;
mod relay;
mod report;
mod stopwatch;
pub mod subreaper;

pub use plan::{ShellOptions, ShellPlan};
pub use subreaper::{block_signals, subreaper_main};

use addresses::{OUTSIDE, Prefix};
use connections::MAX_CONNECTIONS;
use counts::Meter;
use hooks::{Gate, Shared, ShellHooks, ShellResult};
use narrows_cell::{Context, RunError};
use narrows_cell::{RecordFolder, element_names};
use narrows_emulator::{
    Control, Core, CoreConfig, Emulator, Forwarding, Handle, Pool, Writer, frame,
};
use narrows_net::Network;
use narrows_netns::host_info;
use narrows_record::{Log, PacketLog};
use narrows_sys::netns::NetNs;
use narrows_sys::poll::{Epoll, Events, Signals, Waker};
use narrows_sys::privileges::{self, Need};
use narrows_sys::userns::{self, NamespaceEntry};
use narrows_sys::{clock, cpu, process, socket};
use narrows_units::{Span, Time};
use network::{Enclosing, MTU, ShellNetwork};
use relay::{GatewaySockets, Relay, Resolvers, host_names};
use std::collections::HashMap;
use std::ffi::OsString;
use std::fs;
use std::net::SocketAddrV4;
use std::os::fd::{AsFd, AsRawFd};
use std::process::Command;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread::ScopedJoinHandle;
use std::time::Duration;
use stopwatch::Stopwatch;

/// Largest frame on the wires.
const MAX_FRAME: usize = frame::ETHERNET + MTU as usize;
/// Initial capacity in frames.
const FRAMES: usize = 4096;
/// Variable that identifies the shell in which a program runs.
const SHELL_VARIABLE: &str = "NARROWS_SHELL";
/// Variable with the address of the machine outside.
const OUTSIDE_VARIABLE: &str = "NARROWS_OUTSIDE";
/// Services that resolve names without the network, bypassing the path.
const BYPASSES: [&str; 3] = [
    "/run/nscd/socket",
    "/var/run/nscd/socket",
    "/run/systemd/resolve/io.systemd.Resolve",
];
/// Time between checks of the emulator, and between updates of the live line.
const TICK: Duration = Duration::from_millis(200);

/// Runs `command` behind the path of `plan` and returns its exit code, as shells report it.
///
/// Must be called while this process has a single thread; `signals` come from [`block_signals`].
///
/// # Errors
/// Anything that prevents the program from being started, or the record from being written.
pub fn run(plan: &ShellPlan, command: &[OsString], signals: &Signals) -> Result<i32, RunError> {
    let network: Network<Handle> = plan.network()?;
    let elements = element_names(&network);
    check_congestion(plan)?;
    let folder = match &plan.options.log {
        Some(log) => Some(RecordFolder::create(log)?),
        None => None,
    };
    let environment = ShellEnvironment::find();
    let mut enclosing = environment.enclosing()?;
    let rootless = !privileges::is_capable();
    let mut alone = None;
    if rootless {
        userns::enter_user_namespace()
            .map_err(|error| RunError::Unavailable(narrows_netns::explain_refusal(&error)))?;
        // No longer an owner of the enclosing namespace.
        if enclosing.take().is_some() {
            alone = Some("this program lacks the capabilities of the enclosing shell".to_owned());
        }
    }
    let user_is_root = userns::user().0 == 0;
    narrows_sys::subreaper::become_subreaper();
    let writer = match &folder {
        Some(folder) => Some(Writer::start(folder, 1)?),
        None => None,
    };
    let shared = Shared {
        control: Control::new(2, 1).could_not("prepare the emulator")?,
        meters: [Meter::default(), Meter::default()],
    };
    let session = ShellSession {
        plan,
        shared: &shared,
        environment: &environment,
    };
    let before = cpu::ticks();
    let ran = std::thread::scope(|scope| {
        let (send_built, receive_built) = channel();
        let (pending, to_relay) = channel();
        let (commands, to_emulator) = channel();
        let relay_waker = Arc::new(Waker::new().could_not("prepare the relay")?);
        let gate = Gate {
            pending,
            relay: relay_waker.clone(),
            commands: to_emulator,
            datagrams: HashMap::new(),
        };
        let writer = writer.as_ref();
        let (shared, enclosing) = (&shared, enclosing.as_ref());
        let emulate = move || emulate(plan, network, gate, writer, shared, enclosing, &send_built);
        let emulator = std::thread::Builder::new()
            .name("emulator".to_owned())
            .spawn_scoped(scope, emulate)
            .could_not("start a thread")?;
        let result = receive_built
            .recv()
            .map_err(|_| RunError::Internal("the emulator's thread has crashed".to_owned()))
            .and_then(|built| built)
            .and_then(|built| {
                let why = built.no_forwarding.clone().or(alone.clone());
                if let Some(why) = why {
                    eprintln!(
                        "narrows shell: packets cannot be forwarded through the enclosing shell ({why}); \
                         connections are relayed instead, so ping shows this path only"
                    );
                }
                if let Some(gateway) = built.gateway {
                    let relay = Relay {
                        sockets: GatewaySockets::start(gateway).could_not("start a thread")?,
                        pending: to_relay,
                        waker: relay_waker.clone(),
                        commands,
                        shared,
                        resolvers: Resolvers::parse(&session.environment.resolv_conf),
                        congestion: plan.options.congestion.clone(),
                        enclosed: session.environment.prefix.is_some(),
                    };
                    std::thread::Builder::new()
                        .name("relay".to_owned())
                        .spawn_scoped(scope, move || {
                            if let Err(error) = relay.run() {
                                eprintln!("narrows shell: connections are no longer relayed: {error}");
                            }
                        })
                        .could_not("start a thread")?;
                }
                let code = session.program(
                    command,
                    &built.inside,
                    built.prefix,
                    !user_is_root,
                    signals,
                    &emulator,
                )?;
                Ok((code, built.inside))
            });
        subreaper::end_all(false);
        shared.control.stop();
        relay_waker.wake();
        let finished = emulator
            .join()
            .map_err(|_| RunError::Internal("the emulator's thread has crashed".to_owned()))?;
        // The emulator may have had packets for the program until now, which could not be sent without its namespace.
        let (code, _inside) = result?;
        Ok::<_, RunError>((code, finished?))
    });
    let (code, mut finished) = ran?;
    let packets = match (writer, &folder) {
        (Some(writer), Some(folder)) => Some(writer.finish(folder)?),
        _ => None,
    };
    let summary = report::ShellSummary::new(&finished, &elements, &before);
    if !plan.options.quiet {
        eprint!("{}", summary.text());
    }
    if let Some(file) = &plan.options.summary {
        summary.write(file, code)?;
    }
    if let (Some(folder), Some(_)) = (folder, packets) {
        record::complete(folder, plan, command, &mut finished, &summary, code)?;
    }
    Ok(code)
}

/// Surroundings of the process at its start.
struct ShellEnvironment {
    /// The addresses of the enclosing shell.
    prefix: Option<Prefix>,
    resolv_conf: String,
    hosts: String,
}

impl ShellEnvironment {
    fn find() -> ShellEnvironment {
        let prefix = std::env::var(SHELL_VARIABLE)
            .ok()
            .and_then(|text| text.parse::<Prefix>().ok());
        // The variable may have been inherited by a process elsewhere.
        let is_here = |prefix: &Prefix| {
            let address = SocketAddrV4::new(prefix.inside(), 0);
            socket::udp_any().is_ok_and(|fd| socket::bind(fd.as_fd(), address).is_ok())
        };
        ShellEnvironment {
            prefix: prefix.filter(is_here),
            resolv_conf: fs::read_to_string("/etc/resolv.conf").unwrap_or_default(),
            hosts: fs::read_to_string("/etc/hosts").unwrap_or_default(),
        }
    }

    fn enclosing(&self) -> Result<Option<Enclosing>, RunError> {
        let Some(prefix) = self.prefix else {
            return Ok(None);
        };
        let netns = NetNs::current().could_not("open the network namespace")?;
        Ok(Some(Enclosing { netns, prefix }))
    }
}

/// Namespaces that the emulator's thread has built, for the main thread.
struct BuiltNetwork {
    inside: NetNs,
    gateway: Option<NetNs>,
    prefix: Prefix,
    no_forwarding: Option<String>,
}

/// The emulator's thread: builds the namespaces, passes them to the main thread, and runs until the end.
fn emulate(
    plan: &ShellPlan,
    network: Network<Handle>,
    gate: Gate,
    writer: Option<&Writer>,
    shared: &Shared,
    enclosing: Option<&Enclosing>,
    send_built: &Sender<Result<BuiltNetwork, RunError>>,
) -> Result<ShellResult, RunError> {
    let gone = || RunError::Internal("the main thread does not wait for the emulator".to_owned());
    let ground = match ShellNetwork::build(enclosing) {
        Ok(ground) => ground,
        Err(error) => {
            let _ = send_built.send(Err(refusal(&error)));
            return Err(gone());
        }
    };
    let forwards = ground.gateway.is_none();
    let built = BuiltNetwork {
        inside: ground.inside,
        gateway: ground.gateway,
        prefix: ground.prefix,
        no_forwarding: ground.no_forwarding,
    };
    send_built.send(Ok(built)).map_err(|_| gone())?;
    let elements = element_names(&network);
    let mut log = Log::Packets(PacketLog::new(elements.clone()));
    if writer.is_some() {
        Writer::prepare(&mut log, &elements);
    }
    let config = CoreConfig {
        flows: vec![None; MAX_CONNECTIONS + 1],
        log,
        sample: writer.map_or(Span::ZERO, |_| plan.sample()),
        end: Time::FAR,
        forwarding: Forwarding::Across,
        unknown_rates: (Span::ZERO, Vec::new()),
        replaced_rates: plan.replaced_rates(),
    };
    let maximum = (host_info::available_bytes() / 2) as usize;
    let pool = Pool::new(FRAMES, MAX_FRAME, maximum);
    let gate = (!forwards).then_some(gate);
    let hooks = ShellHooks::new(gate, writer.is_some(), &shared.meters);
    let core = Core::with(network, config, pool, hooks);
    let emulator = Emulator::new(core, ground.wires, writer, &shared.control);
    // Its packet sockets are open; the program sends it frames of any content.
    privileges::keep_in_thread(Need::Nothing).could_not("give up rights of the emulator")?;
    let start_real_ns = clock::real_ns();
    let report = emulator.run_now(Stopwatch::start());
    report
        .and_then(|report| ShellResult::from_report(report, start_real_ns))
        .could_not("emulate the path")
}

fn refusal(error: &std::io::Error) -> RunError {
    match error.kind() {
        std::io::ErrorKind::PermissionDenied => RunError::Unavailable(format!(
            "no path can be emulated here: {error}; run as root, or in a container that allows user \
             and network namespaces"
        )),
        _ => RunError::Unavailable(format!("no path can be emulated here: {error}")),
    }
}

fn check_congestion(plan: &ShellPlan) -> Result<(), RunError> {
    let offered = host_info::congestion_controls();
    match &plan.options.congestion {
        Some(name) if !offered.contains(name) => Err(RunError::Unavailable(format!(
            "this kernel has no congestion control '{name}'; it offers {}",
            offered.join(", ")
        ))),
        _ => Ok(()),
    }
}

/// Context of the main thread while the program runs.
struct ShellSession<'a> {
    plan: &'a ShellPlan,
    shared: &'a Shared,
    environment: &'a ShellEnvironment,
}

impl ShellSession<'_> {
    /// Runs the program to its end.
    fn program(
        &self,
        command: &[OsString],
        netns: &NetNs,
        prefix: Prefix,
        ambient: bool,
        signals: &Signals,
        emulator: &ScopedJoinHandle<Result<ShellResult, RunError>>,
    ) -> Result<i32, RunError> {
        let (reader, _writer) = std::io::pipe().could_not("make a pipe")?;
        let mut entrance = NamespaceEntry::new(netns, ambient).could_not("prepare the program")?;
        // Nested shells find these files as required.
        if self.environment.prefix.is_none() {
            let environment = self.environment;
            entrance.cover("/etc/hosts", host_names(&environment.hosts).into_bytes());
            let names = Resolvers::rewrite(&environment.resolv_conf);
            entrance.cover("/etc/resolv.conf", names.into_bytes());
            for bypass in BYPASSES {
                entrance.cover(bypass, Vec::new());
            }
        }
        let mut reaper = Command::new("/proc/self/exe");
        reaper
            .arg("shell-guard")
            .arg(reader.as_raw_fd().to_string())
            .arg("--")
            .args(command)
            .env(SHELL_VARIABLE, prefix.to_string())
            .env(OUTSIDE_VARIABLE, OUTSIDE.to_string());
        let child = entrance
            .spawn(reaper, reader.as_fd())
            .could_not("start the program")?;
        drop(reader);
        process::raise_file_limit();
        self.watch(child.id(), signals, emulator)
    }

    /// Forwards signals, shows the live line, and waits for the guard to end.
    fn watch(
        &self,
        reaper: u32,
        signals: &Signals,
        emulator: &ScopedJoinHandle<Result<ShellResult, RunError>>,
    ) -> Result<i32, RunError> {
        let epoll = Epoll::new().could_not("wait for events")?;
        epoll
            .add(signals.as_fd(), 0)
            .could_not("wait for signals")?;
        let mut events = Events::default();
        let mut live = live::LiveLine::new(&self.plan.options);
        loop {
            epoll
                .wait(&mut events, Some(TICK))
                .could_not("wait for events")?;
            while let Some((signal, sent)) = signals.next_with_origin() {
                if subreaper::FORWARDED.contains(&signal) && sent {
                    narrows_sys::subreaper::send_signal(reaper, signal);
                }
            }
            // An error would mean that the guard does not exist any more.
            while let Some(ended) =
                narrows_sys::subreaper::reap().could_not("wait for the program")?
            {
                if ended.pid == reaper {
                    live.clear();
                    return Ok(ended.code);
                }
            }
            live.show(&self.shared.meters);
            if emulator.is_finished() {
                live.clear();
                // Its error is reported when it is joined.
                return Ok(1);
            }
        }
    }
}
