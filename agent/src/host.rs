//! Commands for `narrows hosts`, here and on other hosts: facts, the path between two hosts, settings.

use crate::doctor;
use crate::events::Failure;
use narrows_netns::host_info;
use narrows_netns::sysctl_override::{self, MachineSysctls, SysctlOverride};
use narrows_realpath::{path_probe, timekeeping};
use narrows_sys::poll::{Epoll, Events, Signals};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{BufRead, Write};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Format of the facts.
const FORMAT: &str = "narrows/host/1";
/// Settings that may change between two runs, and that affect them.
const SYSCTLS: &[&str] = &[
    "net.core.default_qdisc",
    "net.core.netdev_max_backlog",
    "net.core.rmem_default",
    "net.core.rmem_max",
    "net.core.wmem_default",
    "net.core.wmem_max",
    "net.ipv4.ip_forward",
    "net.ipv4.tcp_congestion_control",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_wmem",
    "net.ipv4.conf.all.rp_filter",
];

#[derive(clap::Args)]
pub(crate) struct HostArguments {
    /// Only facts that may change from run to run, which are available immediately.
    #[arg(long)]
    brief: bool,
}

#[derive(clap::Args)]
pub(crate) struct SettingsArguments {
    /// A setting and its minimum, such as net.core.rmem_max=16777216.
    #[arg(long = "least", value_parser = parse_least, value_name = "NAME=NUMBER")]
    least: Vec<(String, u64)>,
    /// Journal of the settings to be restored.
    #[arg(long, default_value = sysctl_override::JOURNAL)]
    journal: PathBuf,
    /// Also end after this many seconds without input on standard input: a controller that lost power or its network
    /// does not close the connection.
    #[arg(long, value_name = "SECONDS")]
    patience: Option<u64>,
}

fn parse_least(text: &str) -> Result<(String, u64), String> {
    let (name, value) = text
        .split_once('=')
        .ok_or("write NAME=NUMBER, such as net.core.rmem_max=16777216")?;
    let value = value
        .parse()
        .map_err(|_| format!("\"{value}\" is not a number of bytes or packets"))?;
    Ok((name.to_owned(), value))
}

/// The versions of this program and of its command line.
pub(crate) fn versions(protocol: u32) -> Value {
    let mut versions = json!(narrows_cell::versions());
    versions["protocol"] = protocol.into();
    versions
}

/// Facts about this host. For the complete facts the process leaves its network namespace, like `doctor`.
pub(crate) fn examine(protocol: u32, arguments: &HostArguments) -> Result<Value, Failure> {
    let shift_ns = path_probe::clock_shift()?;
    let tunnel = doctor::tunnel_device();
    let abandoned = sysctl_override::abandoned(sysctl_override::JOURNAL.as_ref());
    let mut clock = timekeeping::examine();
    clock["shift_ns"] = json!(shift_ns);
    let mut document = json!({
        "format": FORMAT,
        "versions": versions(protocol),
        "name": host_info::host_name(),
        "system": host_info::system(),
        "virtual": host_info::is_virtual(),
        "load": host_info::load(),
        "available_bytes": host_info::available_bytes(),
        "clock": clock,
        "tunnel_device": {"ok": tunnel.is_ok(), "why": tunnel.err()},
        "left_behind": abandoned,
    });
    let mut sysctls = host_info::sysctls(SYSCTLS);
    let mut found = if arguments.brief {
        json!({"kernel": host_info::kernel()})
    } else {
        doctor::examine()
    };
    if let Value::Object(more) = found["sysctls"].take() {
        sysctls.extend(more);
    }
    found["sysctls"] = Value::Object(sysctls);
    // Sentences for people at this machine.
    found["checks"].take();
    if let (Some(all), Value::Object(found)) = (document.as_object_mut(), found) {
        all.extend(found.into_iter().filter(|(_, value)| !value.is_null()));
    }
    Ok(document)
}

/// One end of an examination of the path between two hosts. The first line of standard input is the shared secret, 32
/// hexadecimal digits; commands follow.
pub(crate) fn probe() -> Result<(), Failure> {
    Ok(path_probe::serve(
        std::io::stdin().lock(),
        std::io::stdout(),
    )?)
}

/// Raises settings, reports them, and restores them when standard input ends or becomes silent, or on a signal to stop.
pub(crate) fn settings(arguments: &SettingsArguments, signals: &Signals) -> Result<(), Failure> {
    let least: BTreeMap<String, u64> = arguments.least.iter().cloned().collect();
    let raised = SysctlOverride::raise(MachineSysctls, &least, &arguments.journal)?;
    let told = line(&json!({"changed": raised.changes(), "recovered": raised.recovered()}));
    // A reader that has ended does not need the settings either.
    if told.is_ok() {
        wait_for_the_end(signals, arguments.patience.map(Duration::from_secs))
            .map_err(|error| Failure::internal(format!("could not wait for the end: {error}")))?;
    }
    let restored = raised.release();
    let _ = line(&json!({"restored": restored}));
    Ok(())
}

/// Waits until standard input ends or is silent for `patience`, or one of `signals` arrives.
fn wait_for_the_end(signals: &Signals, patience: Option<Duration>) -> std::io::Result<()> {
    const INPUT: u64 = 0;
    const SIGNAL: u64 = 1;
    let mut input = std::io::stdin().lock();
    let epoll = Epoll::new()?;
    epoll.add(signals.as_fd(), SIGNAL)?;
    // A file or /dev/null cannot be polled, and counts as ended.
    if epoll.add(input.as_fd(), INPUT).is_err() {
        return Ok(());
    }
    let mut events = Events::default();
    let mut heard = Instant::now();
    loop {
        let left = patience.map(|patience| patience.saturating_sub(heard.elapsed()));
        if left == Some(Duration::ZERO) {
            return Ok(());
        }
        epoll.wait(&mut events, left)?;
        for key in events.keys() {
            if key == SIGNAL || input.fill_buf()?.is_empty() {
                return Ok(());
            }
            let length = input.fill_buf()?.len();
            input.consume(length);
            heard = Instant::now();
        }
    }
}

fn line(document: &Value) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{document}").and_then(|()| out.flush())
}
