//! Measuring and printing: repeated runs, their spread, and the machine they ran on.

pub mod emulator;
pub mod gym;
pub mod logs;
pub mod networks;
pub mod other_simulators;
pub mod programs;
pub mod schemes;
pub mod tunnel;

use std::fs;
use std::time::Instant;

/// Minimum, median and maximum of repeated measurements.
#[derive(Clone, Copy, Debug)]
pub struct Spread {
    /// Smallest value, in the unit of what is measured.
    pub min: f64,
    /// Median, in the same unit.
    pub median: f64,
    /// Largest value, in the same unit.
    pub max: f64,
}

impl Spread {
    /// The spread of `values`.
    ///
    /// # Panics
    /// When there are none.
    pub fn of(mut values: Vec<f64>) -> Self {
        values.sort_by(f64::total_cmp);
        Spread {
            min: values[0],
            median: values[values.len() / 2],
            max: values[values.len() - 1],
        }
    }

    /// `median (min..max)` with the given number of decimals.
    pub fn show(&self, decimals: usize) -> String {
        format!(
            "{:.decimals$} ({:.decimals$}..{:.decimals$})",
            self.median, self.min, self.max
        )
    }
}

/// Runs `work` once to warm up and then `runs` times; `rate` turns its result and the seconds it
/// took into the number of interest.
pub fn repeat<T>(
    runs: usize,
    mut work: impl FnMut() -> T,
    rate: impl Fn(&T, f64) -> f64,
) -> Spread {
    work();
    let values = (0..runs).map(|_| {
        let start = Instant::now();
        let result = work();
        rate(&result, start.elapsed().as_secs_f64())
    });
    Spread::of(values.collect())
}

/// Cycles of this processor per nanosecond: the time of a chain of shifts and exclusive ors, each of which takes a
/// cycle and needs the result of the one before.
pub fn cycles_per_ns() -> Spread {
    const ROUNDS: u64 = 5_000_000;
    const CYCLES: u64 = 6;
    repeat(
        5,
        || {
            let mut value = std::hint::black_box(88_172_645_463_325_252_u64);
            for _ in 0..ROUNDS {
                value ^= value << 13;
                value ^= value >> 7;
                value ^= value << 17;
            }
            std::hint::black_box(value)
        },
        |_, seconds| (ROUNDS * CYCLES) as f64 / (seconds * 1e9),
    )
}

fn line_after(path: &str, key: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let line = text.lines().find(|line| line.starts_with(key))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

/// One line about the machine.
pub fn machine() -> String {
    let cpu = line_after("/proc/cpuinfo", "model name").unwrap_or_else(|| "unknown CPU".into());
    let cpus = std::thread::available_parallelism().map_or(0, usize::from);
    let memory = line_after("/proc/meminfo", "MemTotal").unwrap_or_default();
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = load.split(' ').next().unwrap_or_default().to_owned();
    format!(
        "{cpus} x {cpu}, {memory}, kernel {}, load {load}",
        kernel.trim()
    )
}

/// The largest amount of memory that this process has used so far, in MB.
pub fn peak_memory_mb() -> f64 {
    let text = line_after("/proc/self/status", "VmHWM").unwrap_or_default();
    text.split(' ')
        .next()
        .and_then(|kb| kb.parse::<f64>().ok())
        .unwrap_or(f64::NAN)
        / 1024.0
}
