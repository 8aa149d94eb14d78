//! Privileges of the processes and threads of a run: capabilities (capabilities(7)) and system calls, dropped as soon
//! as they are no longer needed.

use super::{process, seccomp};
use rustix::process::geteuid;
use rustix::thread::{
    CapabilitySet, CapabilitySets, Gid, Uid, capabilities, clear_ambient_capability_set,
    configure_capability_in_ambient_set, remove_capability_from_bounding_set, set_capabilities,
    set_keep_capabilities, set_no_new_privs, set_thread_groups, set_thread_res_gid,
    set_thread_res_uid,
};
use std::fs;
use std::io;

/// Capabilities that make nested paths and `ping` possible. They have no effect outside the user namespace.
const AMBIENT: CapabilitySet = CapabilitySet::NET_BIND_SERVICE.union(NAMESPACES);
/// Capabilities required to create namespaces and interfaces.
const NAMESPACES: CapabilitySet = CapabilitySet::NET_ADMIN
    .union(CapabilitySet::NET_RAW)
    .union(CapabilitySet::SYS_ADMIN);
/// The user and group that own nothing, by the convention of Linux (overflowuid, overflowgid).
const NOBODY: u32 = 65534;

/// Privileges that a process still needs once its sockets are prepared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// None beyond those of an ordinary user.
    Nothing,
    /// Choosing any congestion control of the kernel for new connections (CAP_NET_ADMIN in the
    /// network namespace of the connection).
    CongestionControls,
}

impl Need {
    fn capabilities(self) -> CapabilitySet {
        match self {
            Need::Nothing => CapabilitySet::empty(),
            Need::CongestionControls => CapabilitySet::NET_ADMIN,
        }
    }
}

/// True if this process may create namespaces and interfaces.
pub fn is_capable() -> bool {
    capabilities(None).is_ok_and(|sets| sets.effective.contains(NAMESPACES))
}

/// Permanently turns this process into one of an ordinary user: root becomes the user 65534, and privileges not in
/// `need` are dropped. It still ends with its parent. The process must have a single thread.
///
/// # Errors
/// The kernel's error; the process should not continue then.
pub fn give_up(need: Need) -> io::Result<()> {
    if owner_of_nothing().is_some() {
        set_keep_capabilities(true)?;
        become_nobody()?;
    }
    set_no_new_privs(true)?;
    keep_in_thread(need)?;
    // The kernel clears this setting when a process changes its user (prctl(2)).
    process::die_with_parent();
    Ok(())
}

/// The user and group without files to whom root may change; `None` for other users, and where they do not exist.
pub fn owner_of_nothing() -> Option<(u32, u32)> {
    (geteuid().is_root() && has_many_users()).then_some((NOBODY, NOBODY))
}

/// Changes from root to the user who owns nothing. Does not allocate.
fn become_nobody() -> io::Result<()> {
    set_thread_groups(&[])?;
    let (user, group) = (Uid::from_raw(NOBODY), Gid::from_raw(NOBODY));
    set_thread_res_gid(group, group, group)?;
    Ok(set_thread_res_uid(user, user, user)?)
}

/// Permanently drops all capabilities between `fork` and `exec`, and becomes the user who owns nothing if asked to. The program that is
/// started cannot regain any. Does not allocate.
pub(super) fn drop_privileges(becomes_nobody: bool) -> io::Result<()> {
    for capability in CapabilitySet::all().iter() {
        // The kernel does not know all of them.
        let _ = remove_capability_from_bounding_set(capability);
    }
    let _ = clear_ambient_capability_set();
    if becomes_nobody {
        become_nobody()?;
    }
    set_no_new_privs(true)?;
    let none = CapabilitySet::empty();
    let sets = CapabilitySets {
        effective: none,
        permitted: none,
        inheritable: none,
    };
    Ok(set_capabilities(None, sets)?)
}

/// Drops privileges not in `need`, and unneeded system calls, for the calling thread alone.
///
/// # Errors
/// The kernel's error.
pub fn keep_in_thread(need: Need) -> io::Result<()> {
    seccomp::refuse_in_thread()?;
    let kept = need.capabilities() & capabilities(None)?.permitted;
    let sets = CapabilitySets {
        effective: kept,
        permitted: kept,
        inheritable: CapabilitySet::empty(),
    };
    Ok(set_capabilities(None, sets)?)
}

/// Keeps some capabilities over the next `exec` of a user who is not root: they must be
/// inheritable before they can become ambient (capabilities(7)). Does not allocate.
pub(super) fn keep_over_exec() -> io::Result<()> {
    let mut sets = capabilities(None)?;
    sets.inheritable |= sets.permitted & AMBIENT;
    set_capabilities(None, sets)?;
    for capability in AMBIENT.iter() {
        configure_capability_in_ambient_set(capability, true)?;
    }
    Ok(())
}

/// True if other users exist, as is the case outside of the user namespaces created here.
fn has_many_users() -> bool {
    let map = fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    map.split_whitespace()
        .collect::<Vec<_>>()
        .chunks(3)
        .any(|range| match range {
            [first, _, count] => covers(first, count, NOBODY),
            _ => false,
        })
}

fn covers(first: &str, count: &str, user: u32) -> bool {
    match (first.parse::<u64>(), count.parse::<u64>()) {
        (Ok(first), Ok(count)) => (first..first + count).contains(&u64::from(user)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_gives_up_what_it_does_not_need() {
        // Capabilities are per thread, so the other tests keep theirs.
        let left = std::thread::spawn(|| {
            keep_in_thread(Need::CongestionControls).unwrap();
            capabilities(None).unwrap()
        });
        let left = left.join().unwrap();
        assert!(CapabilitySet::NET_ADMIN.contains(left.effective | left.permitted));
        assert!(left.inheritable.is_empty());
    }

    #[test]
    fn ranges_of_users_are_read() {
        assert!(covers("0", "4294967295", NOBODY));
        assert!(!covers("0", "1", NOBODY));
        assert!(!covers("1000", "what", NOBODY));
    }
}
