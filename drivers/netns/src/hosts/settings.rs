//! Kernel settings of hosts: defaults, and those that the cell specifies.

use super::RunError;
use narrows_cell::Cell;
use narrows_cell::Context;
use narrows_sys::netns::{read_sysctl, write_sysctl};
use std::collections::BTreeMap;
use std::io;

/// Ephemeral ports are above those that identify flows.
const EPHEMERAL_PORTS: &str = "32768 60999";
/// Congestion control of programs that do not choose one.
const CONGESTION_CONTROL: &str = "net.ipv4.tcp_congestion_control";

/// The description of a host in the cell.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostPlan {
    /// Its name.
    pub name: String,
    /// Maximum IP packet size of its interface in bytes, if the cell specifies it.
    pub mtu: Option<u32>,
    /// Kernel settings by full name (`net.ipv4.tcp_sack`), in the order in which they are set.
    pub settings: Vec<(String, String)>,
}

impl HostPlan {
    /// A host with default settings.
    pub fn named(name: &str) -> Self {
        HostPlan {
            name: name.to_owned(),
            ..HostPlan::default()
        }
    }

    /// The hosts of `cell`, whose network calls them `names`.
    pub fn from_cell(cell: &Cell, names: &[String]) -> Vec<Self> {
        let plan = |(name, host): (&String, &narrows_cell::Host)| HostPlan {
            name: name.clone(),
            mtu: host.mtu(),
            settings: host.sysctls(),
        };
        names.iter().zip(&cell.hosts).map(plan).collect()
    }

    /// Private hosts of flows of programs, with the settings of the hosts that they replace.
    pub fn for_programs(cell: &Cell, plans: &[Self]) -> Vec<Self> {
        let mut found = Vec::new();
        for (flow, _) in cell.programs() {
            let ends = [("sender", flow.from), ("receiver", flow.to)];
            for ((end, place), host) in ends
                .into_iter()
                .zip(cell.own_hosts(flow.flow).unwrap_or_default())
            {
                // A host that several flows share is already included.
                if usize::from(host) == plans.len() + found.len() {
                    found.push(HostPlan {
                        name: format!("flow-{}-{end}", flow.flow),
                        ..plans[usize::from(place)].clone()
                    });
                }
            }
        }
        found
    }

    /// Sets the defaults and the settings of the cell in the calling thread's namespace.
    pub(super) fn configure(&self, buffer: u64, receive_cpus: u64) -> Result<(), RunError> {
        silence_ipv6();
        if receive_cpus != 0 {
            // Otherwise the receiver's TCP runs inside the emulator's system calls, and takes most of its time.
            // Interfaces created from now on have this mask; kernels before 6.3 and some sandboxes do not support it
            // per host, and then it is unchanged.
            let groups = format!(
                "{:08x},{:08x}",
                receive_cpus >> 32,
                receive_cpus & 0xffff_ffff
            );
            let mask = groups.trim_start_matches("00000000,");
            let _ = write_sysctl("net.core.rps_default_mask", mask);
        }
        for (name, value) in defaults(buffer) {
            write_sysctl(name, &value).could_not(&format!("set {name} of a host to '{value}'"))?;
        }
        choose_congestion_control()?;
        for (name, value) in &self.settings {
            write_sysctl(name, value).map_err(|error| self.explain(name, value, &error))?;
            // The kernel silently limits some values.
            let now = read_sysctl(name).unwrap_or_default();
            let wanted: Vec<&str> = value.split_ascii_whitespace().collect();
            if now != wanted.join(" ") {
                return Err(RunError::Unavailable(format!(
                    "host '{}': this kernel changed the setting {name} = '{value}' to '{now}'",
                    self.name
                )));
            }
        }
        Ok(())
    }

    fn explain(&self, name: &str, value: &str, error: &io::Error) -> RunError {
        let host = &self.name;
        match error.kind() {
            io::ErrorKind::NotFound if name == CONGESTION_CONTROL => RunError::Unavailable(
                format!("host '{host}': this kernel has no congestion control '{value}'"),
            ),
            io::ErrorKind::NotFound => RunError::Unavailable(format!(
                "host '{host}': this kernel has no setting {name} per host; omit it"
            )),
            io::ErrorKind::PermissionDenied if name == CONGESTION_CONTROL => {
                RunError::Unavailable(format!(
                    "host '{host}': this machine does not allow '{value}' in hosts; add it to net.ipv4.tcp_allowed_congestion_control"
                ))
            }
            io::ErrorKind::PermissionDenied => RunError::Unavailable(format!(
                "host '{host}': the setting {name} cannot be changed for one host alone; set it for the whole machine, or omit it"
            )),
            _ => RunError::Unavailable(format!(
                "host '{host}': this kernel rejects '{value}' for the setting {name} ({error})"
            )),
        }
    }

    /// All settings in the host that affect TCP, as the kernel reports them, and those of the cell.
    pub fn read_back(&self) -> BTreeMap<String, String> {
        let wished = self.settings.iter().map(|(name, _)| name.as_str());
        READ_BACK
            .iter()
            .copied()
            .chain(wished)
            .filter_map(|name| Some((name.to_owned(), read_sysctl(name).ok()?)))
            .collect()
    }
}

/// Disables IPv6 in the calling thread's namespace.
pub(super) fn silence_ipv6() {
    for name in [
        "net.ipv6.conf.all.disable_ipv6",
        "net.ipv6.conf.default.disable_ipv6",
    ] {
        let _ = write_sysctl(name, "1"); // kernels without IPv6 have nothing to disable
    }
}

/// Settings of each host. Metrics of earlier connections must not leak into later ones, and buffers must not limit the
/// flows under study.
fn defaults(buffer: u64) -> [(&'static str, String); 5] {
    [
        ("net.ipv4.tcp_no_metrics_save", "1".to_owned()),
        // The receive buffer starts large: its automatic growth would otherwise shape slow start.
        ("net.ipv4.tcp_rmem", format!("4096 {buffer} {buffer}")),
        ("net.ipv4.tcp_wmem", format!("4096 16384 {buffer}")),
        ("net.ipv4.ip_forward", "0".to_owned()),
        ("net.ipv4.ip_local_port_range", EPHEMERAL_PORTS.to_owned()),
    ]
}

/// Sets Linux's default, CUBIC, in the host instead of this machine's: some programs choose their congestion control
/// after connecting, and a connection that began with BBR stays paced. The kernel allows in hosts only the congestion
/// controls that this machine allows for all users, which always include Reno.
fn choose_congestion_control() -> Result<(), RunError> {
    write_sysctl(CONGESTION_CONTROL, "cubic")
        .or_else(|_| write_sysctl(CONGESTION_CONTROL, "reno"))
        .could_not("choose the congestion control of a host")
}

/// Settings that are recorded for every host.
const READ_BACK: &[&str] = &[
    CONGESTION_CONTROL,
    "net.ipv4.tcp_no_metrics_save",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_wmem",
    "net.ipv4.tcp_moderate_rcvbuf",
    "net.ipv4.tcp_sack",
    "net.ipv4.tcp_dsack",
    "net.ipv4.tcp_timestamps",
    "net.ipv4.tcp_window_scaling",
    "net.ipv4.tcp_ecn",
    "net.ipv4.tcp_recovery",
    "net.ipv4.tcp_reordering",
    "net.ipv4.tcp_max_reordering",
    "net.ipv4.tcp_early_retrans",
    "net.ipv4.tcp_slow_start_after_idle",
    "net.ipv4.tcp_limit_output_bytes",
    "net.ipv4.tcp_min_tso_segs",
    "net.ipv4.tcp_pacing_ss_ratio",
    "net.ipv4.tcp_pacing_ca_ratio",
    "net.core.rps_default_mask",
    "net.core.rmem_max",
    "net.core.wmem_max",
];
