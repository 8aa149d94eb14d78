//! The machine's clocks, read as nanoseconds.

use rustix::thread::{ClockId, Timespec, clock_nanosleep_absolute};

/// Nanoseconds of `CLOCK_REALTIME` (since 1970): the clock of the kernel's packet stamps.
#[inline]
pub fn real_ns() -> u64 {
    read(libc::CLOCK_REALTIME)
}

/// Nanoseconds of `CLOCK_MONOTONIC` (since boot): the clock that is never set.
#[inline]
pub fn mono_ns() -> u64 {
    read(libc::CLOCK_MONOTONIC)
}

/// Nanoseconds of `CLOCK_MONOTONIC_RAW` (since boot): the oscillator itself, neither set nor corrected.
#[inline]
pub fn raw_ns() -> u64 {
    read(libc::CLOCK_MONOTONIC_RAW)
}

/// CPU time that the calling thread has used, in ns.
pub fn thread_cpu_ns() -> u64 {
    read(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// `CLOCK_REALTIME` minus `CLOCK_MONOTONIC`. It changes only when the clock is set: gradual corrections of the rate
/// (NTP) affect both clocks equally.
pub fn real_minus_mono_ns() -> i64 {
    real_minus(mono_ns)
}

/// `CLOCK_REALTIME` minus `CLOCK_MONOTONIC_RAW`, by which stamps of the kernel are converted. It changes continuously.
pub fn real_minus_raw_ns() -> i64 {
    real_minus(raw_ns)
}

fn real_minus(clock: fn() -> u64) -> i64 {
    // The reading with the shortest bracket is the best of several: a preemption in between would otherwise look like a
    // clock step.
    (0..8)
        .map(|_| {
            let before = clock();
            let real = real_ns();
            let after = clock();
            (
                after - before,
                real as i64 - (before + (after - before) / 2) as i64,
            )
        })
        .min()
        .map_or(0, |(_, offset)| offset)
}

/// The kernel's state of the time service (NTP, PTP), if there is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Discipline {
    /// True if a time service reports that the clock is synchronised.
    pub synchronized: bool,
    /// Maximum error according to that service; it grows without updates from it.
    pub max_error_ns: u64,
    /// Estimated error.
    pub estimated_error_ns: u64,
    /// Rate correction of the clock relative to the oscillator, in 10^-9.
    pub correction_ppb: i64,
}

/// Reads the kernel's state of `CLOCK_REALTIME` synchronisation; changes nothing.
pub fn discipline() -> std::io::Result<Discipline> {
    // SAFETY: an all-zero timex is valid and requests no change; it is writable for the call.
    let (state, timex) = unsafe {
        let mut timex: libc::timex = std::mem::zeroed();
        (libc::adjtimex(&raw mut timex), timex)
    };
    super::check(state)?;
    // The kernel counts both in microseconds, regardless of the unit of the offset: adjtimex(2).
    let microseconds = |value: libc::c_long| u64::try_from(value).unwrap_or(0) * 1000;
    Ok(Discipline {
        synchronized: state != libc::TIME_ERROR && timex.status & libc::STA_UNSYNC == 0,
        max_error_ns: microseconds(timex.maxerror),
        estimated_error_ns: microseconds(timex.esterror),
        // The frequency is in 10^-6 with 16 binary places; a tick is nominally 10 ms long and is expressed in
        // microseconds, each of which is 100 parts in a million.
        correction_ppb: timex.freq * 1000 / 65_536 + (timex.tick - 10_000) * 100_000,
    })
}

/// Sleeps until `CLOCK_MONOTONIC` shows `mono_ns`. A signal ends the sleep early.
pub fn sleep_until(mono_ns: u64) {
    let time = Timespec {
        tv_sec: (mono_ns / 1_000_000_000) as i64,
        tv_nsec: (mono_ns % 1_000_000_000) as i64,
    };
    let _ = clock_nanosleep_absolute(ClockId::Monotonic, &time);
}

#[inline]
fn read(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` is a valid timespec to write to; these clocks exist on every Linux.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_run_forward_and_keep_their_distance() {
        let (a, offset) = (mono_ns(), real_minus_mono_ns());
        std::thread::sleep(std::time::Duration::from_millis(5));
        assert!(mono_ns() - a >= 5_000_000);
        assert!((real_minus_mono_ns() - offset).abs() < 50_000);
        let raw = real_minus_raw_ns();
        // Recent stamps; a second of slack for machines that stall.
        let stamp = real_ns() as i64 - raw;
        assert!((stamp - raw_ns() as i64).abs() < 1_000_000_000);
        assert!(real_ns() > 1_600_000_000_000_000_000);
    }

    #[test]
    fn sleeps_end_at_a_time_and_not_before() {
        let end = mono_ns() + 3_000_000;
        sleep_until(end);
        assert!(mono_ns() >= end);
        // A time in the past must not lead to a sleep, which would be nearly endless.
        sleep_until(1);
    }

    #[test]
    fn the_kernel_tells_how_well_the_clock_is_kept() {
        // Some containers forbid the system call.
        let Ok(first) = discipline() else { return };
        // Both errors are bounds; without synchronisation the larger one has grown to its limit of 16 s.
        assert!(
            first.max_error_ns > 0 && first.max_error_ns <= 16_000_000_000,
            "{first:?}"
        );
        // 500 parts in a million by the frequency and 10 % by the tick: adjtimex(2).
        assert!(first.correction_ppb.abs() <= 100_500_000, "{first:?}");
    }
}
