//! Capabilities of this machine, tested and not guessed.

use narrows_cell::RunError;
use narrows_endpoints::bpf;
use narrows_netns::{self as hosts, host_info};
use narrows_sys::cpu;
use narrows_sys::netns::{Privilege, is_root};
use narrows_sys::ring;
use serde_json::{Value, json};

/// Settings that affect emulated runs.
const SYSCTLS: &[&str] = &[
    "net.core.rmem_max",
    "net.core.wmem_max",
    "net.core.netdev_max_backlog",
    "net.ipv4.tcp_congestion_control",
    "net.ipv4.tcp_allowed_congestion_control",
    "user.max_net_namespaces",
    "user.max_user_namespaces",
    "kernel.unprivileged_userns_clone",
    "kernel.apparmor_restrict_unprivileged_userns",
];

/// Checks whether the kernel allows creating tunnel devices: the right to open this file is required.
pub(crate) fn tunnel_device() -> Result<(), String> {
    let path = "/dev/net/tun";
    let opened = std::fs::File::options().read(true).write(true).open(path);
    opened
        .map(drop)
        .map_err(|error| format!("{path} cannot be opened: {error}"))
}

/// Examines the machine. This process leaves its network namespace, which is why the whole answer is prepared at once
/// and the process ends afterwards.
pub(crate) fn examine() -> Value {
    let host = host_info::host();
    let offered = host_info::congestion_controls();
    let sysctls = host_info::sysctls(SYSCTLS);
    let root = is_root();
    let mut checks = Vec::new();
    let mut check = |name: &str, found: Result<String, String>, remedy: &str| {
        let ok = found.is_ok();
        let (Ok(detail) | Err(detail)) = found;
        let remedy = (!ok).then_some(remedy);
        checks.push(json!({"name": name, "ok": ok, "detail": detail, "remedy": remedy}));
    };

    // Tested before entering namespaces, like runs.
    let loading = bpf::probe().map_err(|error| error.to_string());
    let network = hosts::enter_private_network()
        .map(Privilege::name)
        .map_err(|error| error.to_string());
    check(
        "network namespaces",
        network.clone().map(|how| format!("can be created ({how})")),
        "run as root, or allow unprivileged user namespaces",
    );
    // Tested where they are needed: inside the namespace.
    let inside = match &network {
        Ok(_) => Ok(()),
        Err(_) => Err("needs a network namespace first".to_owned()),
    };
    let packets = inside.clone().and_then(|()| {
        ring::probe().map_err(|error| format!("AF_PACKET cannot be opened: {error}"))
    });
    let built = inside.and_then(|()| build_two().map_err(|error| error.to_string()));
    check(
        "packet sockets",
        packets.clone().map(|()| "can be opened".to_owned()),
        "use a kernel with CONFIG_PACKET, and run as root or with user namespaces",
    );
    check(
        "virtual hosts",
        built.map(|()| "two hosts were built, wired, configured and removed".to_owned()),
        "use a kernel with CONFIG_VETH and CONFIG_NET_NS",
    );
    check(
        "processors",
        require(host.cpus >= 2, format!("{} usable", host.cpus)),
        "give the machine a second processor: the emulator needs one for itself",
    );
    check(
        "kernel congestion controls",
        require(!offered.is_empty(), offered.join(", ")),
        "use a kernel with TCP",
    );
    check(
        "BPF congestion controls",
        loading
            .clone()
            .map(|name| format!("can be loaded ({name} was loaded and unloaded)")),
        "only schemes that begin with bpf: need this; see docs/guide/kernel-schemes.md",
    );
    let clock_ok = matches!(
        host.clocksource.as_str(),
        "tsc" | "kvm-clock" | "arch_sys_counter"
    );
    check(
        "clock",
        require(clock_ok, host.clocksource.clone()),
        "boot with a clock source that can be read without a system call",
    );
    // Runs create a session and raise its priority; if that is refused, any busy session delays the emulator.
    let grouped = cpu::groups_sessions();
    let preferred = !grouped || cpu::prefer_session(-1);
    checks.push(json!({
        "name": "priority of runs",
        "ok": true,
        "warning": !preferred,
        "detail": match (grouped, preferred) {
            (false, _) => "counts against all other work: the scheduler does not group sessions",
            (true, true) => "counts against all other work: the session of a run is raised",
            (true, false) =>
                "has no effect on other sessions: the scheduler groups tasks by session (autogroup) and a run may not raise its own, so that other work can delay packets by 20 ms",
        },
        "remedy": (!preferred).then_some("sysctl kernel.sched_autogroup_enabled=0, or run as root"),
    }));
    json!({
        "kernel": host.kernel,
        "machine": std::env::consts::ARCH,
        "cpus": host.cpus,
        "cpu_model": host.cpu_model,
        "memory_bytes": host.memory_bytes,
        "root": root,
        "namespaces": {"ok": network.is_ok(), "how": network.as_ref().ok(), "why": network.as_ref().err()},
        "packet_socket": {"ok": packets.is_ok(), "why": packets.err()},
        "congestion_controls": offered,
        "bpf": {"ok": loading.is_ok(), "why": loading.err()},
        "clocksource": host.clocksource,
        "sysctls": sysctls,
        "checks": checks,
    })
}

/// `detail` as the result of a check that passes if `ok`.
fn require(ok: bool, detail: String) -> Result<String, String> {
    if ok { Ok(detail) } else { Err(detail) }
}

/// Builds two hosts like those of a run.
fn build_two() -> Result<(), RunError> {
    let plans = ["sender", "receiver"].map(hosts::HostPlan::named);
    let common = hosts::HostDefaults {
        mtu: 1500,
        buffer: 1 << 24,
        verify_checksums: false,
        receive_cpus: 0,
    };
    hosts::Hosts::build(&plans, common).map(drop)
}
