//! What the processes and threads of a run may do: capabilities (capabilities(7)) and system calls, given up as soon
//! as they are no longer needed.

use super::{check, process, seccomp};
use std::fs;
use std::io;

/// Capabilities by their numbers (linux/capability.h) that make nested paths and `ping` possible.
/// Outside of the user namespace they mean nothing.
const AMBIENT: [u32; 4] = [
    CAP_NET_BIND_SERVICE,
    CAP_NET_ADMIN,
    CAP_NET_RAW,
    CAP_SYS_ADMIN,
];
const CAP_NET_BIND_SERVICE: u32 = 10;
const CAP_NET_ADMIN: u32 = 12;
const CAP_NET_RAW: u32 = 13;
const CAP_SYS_ADMIN: u32 = 21;

const CAPABILITY_VERSION_3: u32 = 0x2008_0522;
/// The user and group that own nothing, by the convention of Linux (overflowuid, overflowgid).
const NOBODY: u32 = 65534;

/// What a process still needs once its sockets are prepared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// Nothing that an ordinary user may not do.
    Nothing,
    /// Choosing any congestion control of the kernel for new connections (CAP_NET_ADMIN in the
    /// network namespace of the connection).
    CongestionControls,
}

impl Need {
    fn capabilities(self) -> u64 {
        match self {
            Need::Nothing => 0,
            Need::CongestionControls => 1 << CAP_NET_ADMIN,
        }
    }
}

/// Whether this process may create namespaces and interfaces as it is.
pub fn is_capable() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let effective = status
        .lines()
        .find_map(|line| u64::from_str_radix(line.strip_prefix("CapEff:")?.trim(), 16).ok())
        .unwrap_or(0);
    [CAP_NET_ADMIN, CAP_NET_RAW, CAP_SYS_ADMIN]
        .iter()
        .all(|&number| effective & (1 << number) != 0)
}

/// Turns this process into one of an ordinary user for good: root becomes the user who owns nothing, and what is
/// not in `need` is given up. It still ends with its parent. The process must have a single thread.
///
/// # Errors
/// What the kernel said; the process should not go on then.
pub fn give_up(need: Need) -> io::Result<()> {
    // SAFETY: these calls take numbers only; without groups there is nothing to read.
    unsafe {
        if libc::geteuid() == 0 && has_many_users() {
            check(libc::prctl(
                libc::PR_SET_KEEPCAPS,
                1 as libc::c_ulong,
                0,
                0,
                0,
            ))?;
            check(libc::setgroups(0, std::ptr::null()))?;
            check(libc::setresgid(NOBODY, NOBODY, NOBODY))?;
            check(libc::setresuid(NOBODY, NOBODY, NOBODY))?;
        }
        check(libc::prctl(
            libc::PR_SET_NO_NEW_PRIVS,
            1 as libc::c_ulong,
            0,
            0,
            0,
        ))?;
    }
    keep_in_thread(need)?;
    // The kernel forgets this wish when a process changes its user (prctl(2)).
    process::die_with_parent();
    Ok(())
}

/// Gives up what is not in `need`, and system calls that nobody needs, for the calling thread alone.
///
/// # Errors
/// What the kernel said.
pub fn keep_in_thread(need: Need) -> io::Result<()> {
    seccomp::refuse_in_thread()?;
    change(|sets| {
        let kept = need.capabilities();
        for (half, sets) in sets.as_chunks_mut::<3>().0.iter_mut().enumerate() {
            let kept = (kept >> (32 * half)) as u32 & sets[1];
            *sets = [kept, kept, 0];
        }
    })
}

/// Keeps some capabilities over the next `exec` of a user who is not root: they must be
/// inheritable before they can become ambient (capabilities(7)).
pub(super) fn keep_over_exec() -> io::Result<()> {
    change(|sets| {
        for number in AMBIENT {
            sets[2] |= sets[1] & (1 << number);
        }
    })?;
    for number in AMBIENT {
        // SAFETY: PR_CAP_AMBIENT takes integers.
        unsafe {
            check(libc::prctl(
                libc::PR_CAP_AMBIENT,
                libc::PR_CAP_AMBIENT_RAISE as libc::c_ulong,
                libc::c_ulong::from(number),
                0,
                0,
            ))?;
        }
    }
    Ok(())
}

/// Changes the capabilities of the calling thread: effective, permitted and inheritable ones, first of the lower
/// and then of the upper 32 numbers. Does not allocate.
fn change(how: impl FnOnce(&mut [u32; 6])) -> io::Result<()> {
    let mut header = [CAPABILITY_VERSION_3, 0];
    let mut sets = [0u32; 6];
    // SAFETY: header and sets have the layout of version 3 and outlive the calls.
    unsafe {
        check_call(libc::syscall(
            libc::SYS_capget,
            header.as_mut_ptr(),
            sets.as_mut_ptr(),
        ))?;
        how(&mut sets);
        check_call(libc::syscall(
            libc::SYS_capset,
            header.as_mut_ptr(),
            sets.as_ptr(),
        ))
    }
}

/// Whether there are other users than this one, as there are outside of the user namespaces that we make.
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

fn check_call(result: libc::c_long) -> io::Result<()> {
    check(result as libc::c_int).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_gives_up_what_it_does_not_need() {
        // Threads have capabilities of their own, so the other tests keep theirs.
        let left = std::thread::spawn(|| {
            keep_in_thread(Need::CongestionControls).unwrap();
            let mut left = [0; 6];
            change(|sets| left = *sets).unwrap();
            left
        });
        let left = left.join().unwrap();
        assert_eq!(left[0] & !(1 << CAP_NET_ADMIN), 0, "effective");
        assert_eq!(left[1] & !(1 << CAP_NET_ADMIN), 0, "permitted");
        assert_eq!([left[2], left[3], left[4], left[5]], [0; 4]);
    }

    #[test]
    fn ranges_of_users_are_read() {
        assert!(covers("0", "4294967295", NOBODY));
        assert!(!covers("0", "1", NOBODY));
        assert!(!covers("1000", "what", NOBODY));
    }
}
