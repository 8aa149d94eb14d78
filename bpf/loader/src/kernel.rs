//! Features of the running kernel, and our privileges.

use crate::Problem;
use libbpf_rs::ReferencesType;
use libbpf_rs::btf::Btf;
use libbpf_rs::btf::types::{FuncProto, Ptr, Struct};
use narrows_bpf_programs::protocol::LoadObstacle;
use std::fs::read_to_string;
use std::path::Path;

/// The kernel's own type information.
const TYPES: &str = "/sys/kernel/btf/vmlinux";
/// Capabilities that loading needs, by their numbers in linux/capability.h.
const NEEDED: [(u32, &str); 3] = [(39, "CAP_BPF"), (38, "CAP_PERFMON"), (12, "CAP_NET_ADMIN")];
/// CAP_SYS_ADMIN, which includes the first two (linux/capability.h, `bpf_capable`).
const ADMIN: u32 = 21;
/// The remedy for missing privileges.
const REMEDY: &str = "run as root, or as a user who has CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN (docs/guide/kernel-schemes.md)";

/// The privileges do not suffice; `why` is a clause.
pub(crate) fn no_rights(why: &str) -> Problem {
    Problem {
        obstacle: LoadObstacle::Rights,
        message: format!("this user may not load BPF congestion controls ({why}); {REMEDY}"),
    }
}

/// Rejects in advance if loading could only fail.
pub(crate) fn check() -> Result<(), Problem> {
    let missing = missing_rights(&read_to_string("/proc/self/status").unwrap_or_default());
    if !missing.is_empty() {
        return Err(no_rights(&format!("it lacks {}", missing.join(" and "))));
    }
    if !Path::new(TYPES).exists() {
        return Err(Problem {
            obstacle: LoadObstacle::Kernel,
            message: format!(
                "this kernel cannot load BPF congestion controls because it has no type information \
                 ({TYPES}); use a kernel with CONFIG_DEBUG_INFO_BTF=y and CONFIG_BPF_JIT=y"
            ),
        });
    }
    Ok(())
}

/// Capabilities that are not among the effective ones of `/proc/self/status`.
fn missing_rights(status: &str) -> Vec<&'static str> {
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let bits = line.and_then(|line| u64::from_str_radix(line.trim(), 16).ok());
    let Some(bits) = bits else {
        // If the kernel does not report them, loading shows.
        return Vec::new();
    };
    let has = |bit: u32| bits >> bit & 1 == 1;
    let covered = |bit: u32| has(bit) || (bit >= 38 && has(ADMIN));
    let missing = NEEDED.into_iter().filter(|&(bit, _)| !covered(bit));
    missing.map(|(_, name)| name).collect()
}

/// True if `cong_control` has only two arguments, as before Linux 6.10.
pub(crate) fn is_old() -> bool {
    let arguments = || {
        let types = Btf::from_vmlinux().ok()?;
        let ops = types.type_by_name::<Struct>("tcp_congestion_ops")?;
        let member = ops
            .iter()
            .find(|member| member.name.is_some_and(|name| name == "cong_control"))?;
        let pointer = types.type_by_id::<Ptr>(member.ty)?;
        let prototype = FuncProto::try_from(pointer.referenced_type()).ok()?;
        Some(prototype.iter().count())
    };
    arguments() == Some(2)
}

/// Names of the congestion controls that the kernel knows now.
pub(crate) fn taken() -> Vec<String> {
    let path = "/proc/sys/net/ipv4/tcp_available_congestion_control";
    let text = read_to_string(path).unwrap_or_default();
    text.split_ascii_whitespace().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::missing_rights;

    #[test]
    fn missing_rights_are_named() {
        let status = |bits: u64| format!("Name:\tx\nCapEff:\t{bits:016x}\nCapBnd:\t0\n");
        let all = 1 << 39 | 1 << 38 | 1 << 12;
        assert!(missing_rights(&status(all)).is_empty());
        assert_eq!(missing_rights(&status(all & !(1 << 38))), ["CAP_PERFMON"]);
        assert!(missing_rights(&status(1 << 21 | 1 << 12)).is_empty());
        assert_eq!(missing_rights(&status(1 << 21)), ["CAP_NET_ADMIN"]);
        assert_eq!(missing_rights(&status(0)).len(), 3);
        assert!(missing_rights("").is_empty());
    }
}
