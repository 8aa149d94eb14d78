//! Facts about the machine, read on request.

use chrono::{DateTime, SecondsFormat};
use narrows_record::Host;
use narrows_sys::netns::read_sysctl;
use serde_json::Value;
use std::fs::read_to_string;

/// The machine, as stored in records. The hosts' settings are added by the run.
pub fn host() -> Host {
    Host {
        kernel: kernel(),
        cpu_model: cpu_model(),
        cpus: std::thread::available_parallelism().map_or(1, |n| n.get() as u32),
        memory_bytes: memory_bytes(),
        clocksource: clocksource(),
        ..Host::default()
    }
}

/// Release of the running kernel.
pub fn kernel() -> String {
    read_sysctl("kernel.osrelease").unwrap_or_else(|_| "unknown".to_owned())
}

/// The name of the processor model.
pub fn cpu_model() -> String {
    let text = read_to_string("/proc/cpuinfo").unwrap_or_default();
    let named = |line: &str| {
        Some(
            line.strip_prefix("model name")?
                .split_once(':')?
                .1
                .trim()
                .to_owned(),
        )
    };
    text.lines()
        .find_map(named)
        .unwrap_or_else(|| "unknown".to_owned())
}

/// Size of the memory.
pub fn memory_bytes() -> u64 {
    memory_field("MemTotal:")
}

/// Memory that could be used now.
pub fn available_bytes() -> u64 {
    memory_field("MemAvailable:")
}

fn memory_field(name: &str) -> u64 {
    let text = read_to_string("/proc/meminfo").unwrap_or_default();
    let field = |line: &str| {
        line.strip_prefix(name)?
            .trim()
            .strip_suffix("kB")?
            .trim()
            .parse()
            .ok()
    };
    text.lines()
        .find_map(field)
        .map_or(0, |kib: u64| kib * 1024)
}

/// Clock source of the kernel.
pub fn clocksource() -> String {
    let path = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    read_to_string(path).map_or_else(|_| "unknown".to_owned(), |text| text.trim().to_owned())
}

/// Name of the installed system, such as "Debian GNU/Linux 12 (bookworm)"; empty if it has none.
pub fn system() -> String {
    let text = read_to_string("/etc/os-release").unwrap_or_default();
    let name = text
        .lines()
        .find_map(|line| line.strip_prefix("PRETTY_NAME="));
    name.unwrap_or_default()
        .trim_matches(['"', '\''])
        .to_owned()
}

/// Average number of tasks that wanted a processor during the last 1, 5 and 15 minutes.
pub fn load() -> Vec<f64> {
    let text = read_to_string("/proc/loadavg").unwrap_or_default();
    text.split_ascii_whitespace()
        .take(3)
        .filter_map(|word| word.parse().ok())
        .collect()
}

/// True if the machine is a guest of a hypervisor, which can stop it at any time.
pub fn is_virtual() -> bool {
    let text = read_to_string("/proc/cpuinfo").unwrap_or_default();
    let flags = text.lines().find(|line| line.starts_with("flags"));
    flags.is_some_and(|line| {
        line.split_ascii_whitespace()
            .any(|flag| flag == "hypervisor")
    })
}

/// Host name of the machine.
pub fn host_name() -> String {
    read_sysctl("kernel.hostname").unwrap_or_else(|_| "unknown".to_owned())
}

/// Names of the congestion controls that the kernel offers.
pub fn congestion_controls() -> Vec<String> {
    let text = read_sysctl("net.ipv4.tcp_available_congestion_control").unwrap_or_default();
    text.split_ascii_whitespace().map(str::to_owned).collect()
}

/// Those of the given settings that exist, as JSON members.
pub fn sysctls(names: &[&str]) -> serde_json::Map<String, Value> {
    names
        .iter()
        .filter_map(|name| Some(((*name).to_owned(), Value::from(read_sysctl(name).ok()?))))
        .collect()
}

/// A time of `CLOCK_REALTIME` as RFC 3339 text in UTC, to the millisecond.
pub fn wall_clock(real_ns: u64) -> String {
    let at = DateTime::from_timestamp_nanos(i64::try_from(real_ns).unwrap_or(i64::MAX));
    at.to_rfc3339_opts(SecondsFormat::Millis, true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wall_clock_times_are_dates() {
        assert_eq!(wall_clock(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(
            wall_clock(951_782_400_123_000_000),
            "2000-02-29T00:00:00.123Z"
        );
        assert_eq!(
            wall_clock(1_795_256_100_999_999_999),
            "2026-11-21T10:15:00.999Z"
        );
        assert_eq!(
            wall_clock(4_102_444_799_000_000_000),
            "2099-12-31T23:59:59.000Z"
        );
    }

    #[test]
    fn the_machine_tells_about_itself() {
        let host = host();
        assert!(host.kernel.contains('.') && host.cpus > 0 && host.memory_bytes > 1 << 20);
        assert!(congestion_controls().contains(&"reno".to_owned()));
    }
}
