//! Commands for `narrows hosts`, here and on other hosts: facts, the way between two hosts, settings.

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
/// Settings that somebody may change between two runs, and that bear on them.
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
    /// Only what may change from run to run, which is known at once.
    #[arg(long)]
    brief: bool,
}

#[derive(clap::Args)]
pub(crate) struct SettingsArguments {
    /// A setting and the least that it shall be, such as net.core.rmem_max=16777216.
    #[arg(long = "least", value_parser = parse_least, value_name = "NAME=NUMBER")]
    least: Vec<(String, u64)>,
    /// Where it is noted what is to be put back.
    #[arg(long, default_value = sysctl_override::JOURNAL)]
    journal: PathBuf,
    /// End also when nothing has come on standard input for so long, in seconds: whoever has lost its power or its
    /// network says no goodbye.
    #[arg(long, value_name = "SECONDS")]
    patience: Option<u64>,
}

fn parse_least(text: &str) -> Result<(String, u64), String> {
    let (name, value) = text
        .split_once('=')
        .ok_or("write NAME=NUMBER, such as net.core.rmem_max=16777216")?;
    let value = value
        .parse()
        .map_err(|_| format!("\"{value}\" is no number of bytes or packets"))?;
    Ok((name.to_owned(), value))
}

/// Facts about this host. For all of them the process leaves its network namespace, as `doctor` does.
pub(crate) fn examine(protocol: u32, arguments: &HostArguments) -> Result<Value, Failure> {
    let shift_ns = path_probe::clock_shift()?;
    let tunnel = doctor::tunnel_device();
    let abandoned = sysctl_override::abandoned(sysctl_override::JOURNAL.as_ref());
    let mut clock = timekeeping::examine();
    clock["shift_ns"] = json!(shift_ns);
    let mut document = json!({
        "format": FORMAT,
        "versions": {"narrows": narrows_cell::VERSION, "git": narrows_cell::GIT, "protocol": protocol},
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
    // Sentences for people who sit at this machine.
    found["checks"].take();
    if let (Some(all), Value::Object(found)) = (document.as_object_mut(), found) {
        all.extend(found.into_iter().filter(|(_, value)| !value.is_null()));
    }
    Ok(document)
}

/// One end of an examination of the way between two hosts. The first line of standard input is the secret that both
/// ends know, 32 hexadecimal digits; orders follow.
pub(crate) fn probe() -> Result<(), Failure> {
    Ok(path_probe::serve(
        std::io::stdin().lock(),
        std::io::stdout(),
    )?)
}

/// Raises settings, says which, and puts them back when standard input ends or falls silent, or we are told to stop.
pub(crate) fn settings(arguments: &SettingsArguments, signals: &Signals) -> Result<(), Failure> {
    let least: BTreeMap<String, u64> = arguments.least.iter().cloned().collect();
    let raised = SysctlOverride::raise(MachineSysctls, &least, &arguments.journal)?;
    let told = line(&json!({"changed": raised.changes(), "recovered": raised.recovered()}));
    // Whoever does not hear us any more does not need the settings either.
    if told.is_ok() {
        wait_for_the_end(signals, arguments.patience.map(Duration::from_secs))
            .map_err(|error| Failure::internal(format!("could not wait for the end: {error}")))?;
    }
    let restored = raised.release();
    let _ = line(&json!({"restored": restored}));
    Ok(())
}

/// Until standard input ends, nothing has come there for as long as `patience`, or one of `signals` comes.
fn wait_for_the_end(signals: &Signals, patience: Option<Duration>) -> std::io::Result<()> {
    const INPUT: u64 = 0;
    const SIGNAL: u64 = 1;
    let mut input = std::io::stdin().lock();
    let epoll = Epoll::new()?;
    epoll.add(signals.as_fd(), SIGNAL)?;
    // A file or /dev/null cannot be waited for, and has ended for our purpose.
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
