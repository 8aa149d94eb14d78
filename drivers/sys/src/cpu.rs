//! CPUs and scheduling of threads, and the load of the machine.

use super::check;
use rustix::process::{getpid, getsid, setpriority_process, setsid};
use rustix::thread::{
    CpuSet, Pid, gettid, sched_getaffinity, sched_setaffinity, set_current_timer_slack,
};
use std::io;
use std::num::NonZeroU64;

/// The CPUs that this process may use, ascending.
pub fn allowed_cpus() -> io::Result<Vec<usize>> {
    let set = sched_getaffinity(None)?;
    Ok((0..CpuSet::MAX_CPU)
        .filter(|&cpu| set.is_set(cpu))
        .collect())
}

/// Binds the calling thread to `cpus`. Callable between `fork` and `exec`.
pub fn pin_to(cpus: &[usize]) -> io::Result<()> {
    let mut set = CpuSet::new();
    for &cpu in cpus.iter().filter(|&&cpu| cpu < CpuSet::MAX_CPU) {
        set.set(cpu);
    }
    Ok(sched_setaffinity(None, &set)?)
}

/// A thread of this process, by the scheduler's ID.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadId(Pid);

impl ThreadId {
    /// The calling thread.
    pub fn current() -> ThreadId {
        ThreadId(gettid())
    }

    /// Makes the thread run only when the processor is otherwise idle.
    pub fn run_when_idle(self) -> io::Result<()> {
        self.schedule(libc::SCHED_IDLE)
    }

    /// Makes the thread an ordinary one again.
    pub fn run_normally(self) -> io::Result<()> {
        self.schedule(libc::SCHED_OTHER)
    }

    fn schedule(self, policy: libc::c_int) -> io::Result<()> {
        let parameter = libc::sched_param { sched_priority: 0 };
        let thread = self.0.as_raw_nonzero().get();
        // SAFETY: `parameter` outlives the call.
        check(unsafe { libc::sched_setscheduler(thread, policy, &raw const parameter) })?;
        Ok(())
    }
}

/// Raises the priority of the calling thread if allowed; otherwise changes nothing.
pub fn prefer(nice: i32) -> bool {
    // On Linux this process is the calling thread.
    setpriority_process(None, nice).is_ok()
}

/// Raises the priority of this process's session among the sessions of the machine (CFS groups tasks by session, and
/// niceness then only counts inside one, see sched(7), "The autogroup feature"). Done only if the session is our own,
/// so that other work is not affected.
pub fn prefer_session(nice: i32) -> bool {
    // The first fails harmlessly for leaders of process groups.
    let own = setsid().is_ok() || getsid(None) == Ok(getpid());
    own && std::fs::write("/proc/self/autogroup", nice.to_string()).is_ok()
}

/// True if the scheduler groups tasks by session, so that niceness counts only inside one (sched(7)).
pub fn groups_sessions() -> bool {
    let enabled = std::fs::read_to_string("/proc/sys/kernel/sched_autogroup_enabled");
    enabled.is_ok_and(|text| text.trim() == "1")
}

/// Asks the scheduler for the shortest slices for the calling thread: it then runs sooner after each wake-up, even when
/// other work keeps the processor busy. Needs no privilege; kernels before 6.12 do not support this and change nothing.
pub fn short_slices() -> bool {
    // SAFETY: the structure is laid out as struct sched_attr (sched_setattr(2)), with its size in
    // its first field, and outlives the call.
    unsafe {
        let attributes = SchedulingAttributes {
            size: size_of::<SchedulingAttributes>() as u32,
            policy: libc::SCHED_OTHER as u32,
            nice: libc::getpriority(libc::PRIO_PROCESS, 0),
            runtime: MIN_SLICE_NS,
            ..SchedulingAttributes::default()
        };
        libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) == 0
    }
}

/// The kernel's lower bound.
const MIN_SLICE_NS: u64 = 100_000;

#[repr(C)]
#[derive(Default)]
struct SchedulingAttributes {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime: u64,
    deadline: u64,
    period: u64,
    utilization: [u32; 2],
}

/// Wake-ups of the calling thread are no longer deferred to save energy (the default slack of
/// 50 us would be most of the emulator's error).
pub fn precise_timers() {
    let _ = set_current_timer_slack(NonZeroU64::new(1));
}

/// Times of one CPU since boot, in jiffies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuTicks {
    /// All time, in jiffies.
    pub total: u64,
    /// Idle time, including waits for disks, in jiffies.
    pub idle: u64,
    /// Time that the hypervisor gave to other guests, in jiffies.
    pub stolen: u64,
}

impl CpuTicks {
    /// The ticks that have passed since `earlier`.
    pub fn since(self, earlier: CpuTicks) -> CpuTicks {
        CpuTicks {
            total: self.total.saturating_sub(earlier.total),
            idle: self.idle.saturating_sub(earlier.idle),
            stolen: self.stolen.saturating_sub(earlier.stolen),
        }
    }

    /// The sum of the ticks of several CPUs.
    pub fn sum(all: impl IntoIterator<Item = CpuTicks>) -> CpuTicks {
        let all = all.into_iter();
        all.fold(CpuTicks::default(), |sum, cpu| CpuTicks {
            total: sum.total + cpu.total,
            idle: sum.idle + cpu.idle,
            stolen: sum.stolen + cpu.stolen,
        })
    }

    /// Share of the time in which the CPU worked.
    pub fn busy_ratio(self) -> f64 {
        if self.total == 0 {
            0.0
        } else {
            1.0 - self.idle as f64 / self.total as f64
        }
    }

    /// Share of the time that was stolen.
    pub fn stolen_ratio(self) -> f64 {
        if self.total == 0 {
            0.0
        } else {
            self.stolen as f64 / self.total as f64
        }
    }
}

/// The tick counters of each CPU, by number.
pub fn ticks() -> Vec<CpuTicks> {
    parse_ticks(&std::fs::read_to_string("/proc/stat").unwrap_or_default())
}

fn parse_ticks(text: &str) -> Vec<CpuTicks> {
    let mut cpus = Vec::new();
    for line in text.lines() {
        let mut words = line.split_ascii_whitespace();
        let Some(number) = words
            .next()
            .and_then(|word| word.strip_prefix("cpu")?.parse::<usize>().ok())
        else {
            continue;
        };
        // user nice system idle iowait irq softirq steal; guest time is already inside user time.
        let fields: Vec<u64> = words.take(8).filter_map(|word| word.parse().ok()).collect();
        if cpus.len() <= number {
            cpus.resize(number + 1, CpuTicks::default());
        }
        let at = |index: usize| fields.get(index).copied().unwrap_or(0);
        cpus[number] = CpuTicks {
            total: fields.iter().sum(),
            idle: at(3) + at(4),
            stolen: at(7),
        };
    }
    cpus
}

/// Time for which a process has run, and for which it was ready but had to wait for a CPU, in ns
/// (`/proc/PID/schedstat`). `None` if the kernel does not report it.
pub fn run_and_wait_ns(pid: u32) -> Option<(u64, u64)> {
    parse_schedstat(&std::fs::read_to_string(format!("/proc/{pid}/schedstat")).ok()?)
}

/// The same for the calling thread.
pub fn thread_run_and_wait_ns() -> Option<(u64, u64)> {
    parse_schedstat(&std::fs::read_to_string("/proc/thread-self/schedstat").ok()?)
}

fn parse_schedstat(text: &str) -> Option<(u64, u64)> {
    let mut words = text.split_ascii_whitespace();
    Some((words.next()?.parse().ok()?, words.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_can_be_pinned() {
        let all = allowed_cpus().unwrap();
        let last = *all.last().unwrap();
        std::thread::spawn(move || {
            pin_to(&[last]).unwrap();
            assert_eq!(allowed_cpus().unwrap(), vec![last]);
        })
        .join()
        .unwrap();
        assert_eq!(
            allowed_cpus().unwrap(),
            all,
            "other threads are not affected"
        );
    }

    #[test]
    fn threads_can_step_back_and_return() {
        let (sender, receiver) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            ThreadId::current().run_when_idle().unwrap();
            sender.send(ThreadId::current()).unwrap();
        });
        let id = receiver.recv().unwrap();
        // It may have ended in the meantime.
        let _ = id.run_normally();
        thread.join().unwrap();
    }

    #[test]
    fn threads_may_ask_for_short_slices() {
        assert!(std::thread::spawn(short_slices).join().unwrap());
    }

    #[test]
    fn tick_counters_are_read() {
        let text = "cpu  9 9 9 9 9 9 9 9 0 0\ncpu0 10 1 5 100 4 0 2 3 0 0\ncpu1 1 0 0 50 0 0 0 0 0 0\nintr 4\n";
        let ticks = parse_ticks(text);
        assert_eq!(
            ticks[0],
            CpuTicks {
                total: 125,
                idle: 104,
                stolen: 3
            }
        );
        assert_eq!(ticks[1].busy_ratio(), 1.0 - 50.0 / 51.0);
        assert!(!super::ticks().is_empty());
    }
}
