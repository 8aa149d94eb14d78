//! The summary of a session: text for people, JSON for programs.

use super::addresses::OUTSIDE;
use super::counts::{DirectionCounts, Dropped};
use super::hooks::ShellResult;
use narrows_cell::RunError;
use narrows_net::Direction;
use narrows_record::{Lateness, Severity, Verdict};
use narrows_sys::cpu::{self, CpuTicks};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

/// Lateness that is rare on quiet machines; if more than a few packets exceed it, the program's
/// results depend on the machine and not on the path.
const LATE_NS: u64 = 200_000;
const HALF_LATE_NS: u64 = 100_000;

/// Summary of a session.
#[derive(Clone, Debug)]
pub(super) struct ShellSummary {
    seconds: f64,
    directions: [DirectionSummary; 2],
    pub(super) lateness: Lateness,
    pub(super) busy: CpuTicks,
    pub(super) emulator_ratio: f64,
    /// Reasons that degrade the session.
    pub(super) reasons: Vec<(Severity, &'static str, String)>,
}

#[derive(Clone, Debug)]
struct DirectionSummary {
    name: &'static str,
    entered: (u64, u64),
    left: (u64, u64),
    mean_bps: Option<f64>,
    dropped: Vec<(String, Dropped)>,
    queueing: [Option<u64>; 4],
}

impl ShellSummary {
    pub(super) fn new(finished: &ShellResult, elements: &[String], before: &[CpuTicks]) -> Self {
        let direction = |name: &'static str, which: Direction, counts: &DirectionCounts| {
            let element = |drop: &Dropped| elements[usize::from(drop.element)].clone();
            let dropped = finished.drops.0.iter().map(|drop| (element(drop), *drop));
            DirectionSummary {
                name,
                entered: counts.entered,
                left: counts.left,
                mean_bps: counts.mean_bps(),
                dropped: dropped
                    .filter(|(_, drop)| drop.direction == which)
                    .collect(),
                queueing: [
                    counts.queueing.quantile(0.5),
                    counts.queueing.quantile(0.95),
                    counts.queueing.quantile(0.99),
                    counts.queueing.max(),
                ],
            }
        };
        let directions = [
            direction("up", Direction::Forward, &finished.counts[0]),
            direction("down", Direction::Backward, &finished.counts[1]),
        ];
        let ticks = cpu::ticks();
        let passed = ticks.iter().zip(before).map(|(now, then)| now.since(*then));
        let mut summary = ShellSummary {
            seconds: finished.length.ns() as f64 / 1e9,
            directions,
            lateness: Lateness::from_histogram(&finished.lateness),
            busy: CpuTicks::sum(passed),
            emulator_ratio: finished.cpu_ns as f64 / finished.length.ns().max(1) as f64,
            reasons: Vec::new(),
        };
        summary.judge(finished);
        summary
    }

    fn judge(&mut self, finished: &ShellResult) {
        let late = &self.lateness;
        // One in a hundred is meaningful from a hundred packets.
        let tail = late.packets >= 100 && late.p99_ns > LATE_NS;
        if tail || late.p50_ns > HALF_LATE_NS {
            let text = format!(
                "The emulator was late (half of the packets by {}, one in a hundred by {}); give this \
                 machine less to do.",
                span(late.p50_ns),
                span(late.p99_ns)
            );
            self.reasons.push((Severity::Degraded, "lateness", text));
        }
        let lost: u32 = finished.rings.iter().map(|(_, dropped)| dropped).sum();
        if lost > 0 {
            let text = format!(
                "{lost} packets were lost before the emulator saw them; this machine is too slow or too busy for the program's traffic."
            );
            self.reasons.push((Severity::Invalid, "ring_drops", text));
        }
        if finished.no_memory > 0 {
            let text = format!(
                "{} packets were lost for lack of memory; limit the queues.",
                finished.no_memory
            );
            self.reasons.push((Severity::Invalid, "no_memory", text));
        }
    }

    /// `ok`, `degraded` or `invalid`.
    fn verdict(&self) -> Verdict {
        let verdicts = self.reasons.iter().map(|(severity, ..)| severity.verdict());
        verdicts.max().unwrap_or_default()
    }

    /// The text for people.
    pub(super) fn text(&self) -> String {
        let mut text = format!("narrows shell: {:.1} s behind the path\n", self.seconds);
        for direction in &self.directions {
            direction.write(&mut text);
        }
        let late = &self.lateness;
        if late.packets > 0 {
            let (half, maximum) = (span(late.p50_ns), span(late.p99_ns));
            let _ = writeln!(text, "  emulator late by  p50 {half}, p99 {maximum}");
        }
        for (_, _, reason) in &self.reasons {
            let _ = writeln!(text, "  warning: {reason}");
        }
        text
    }

    /// The JSON for programs.
    pub(super) fn json(&self, exit_code: i32) -> Value {
        json!({
            "format": "narrows/shell-summary/1",
            "seconds": self.seconds,
            "exit_code": exit_code,
            "outside": OUTSIDE.to_string(),
            "up": self.directions[0].json(),
            "down": self.directions[1].json(),
            "lateness": self.lateness,
            "verdict": self.verdict(),
            "reasons": self.reasons.iter().map(|(_, code, text)| json!({"code": code, "text": text}))
                .collect::<Vec<_>>(),
        })
    }

    /// Writes it as JSON to a file, or to standard error if that is called `-`.
    pub(super) fn write(&self, file: &Path, exit_code: i32) -> Result<(), RunError> {
        let text = format!("{:#}\n", self.json(exit_code));
        if file.as_os_str() == "-" {
            eprint!("{text}");
            return Ok(());
        }
        fs::write(file, text)
            .map_err(|error| RunError::Io(format!("{} cannot be written: {error}", file.display())))
    }
}

impl DirectionSummary {
    fn write(&self, text: &mut String) {
        let _ = write!(
            text,
            "  {:<5} {} packets, {}",
            self.name,
            self.left.0,
            bytes(self.left.1)
        );
        // The rate of a few packets is meaningless.
        if let Some(mean) = self.mean_bps.filter(|_| self.left.0 >= 10) {
            let _ = write!(text, ", mean {}", bits(mean));
        }
        let dropped: u64 = self.dropped.iter().map(|(_, drop)| drop.packets).sum();
        if dropped > 0 {
            let share = dropped as f64 * 100.0 / self.entered.0.max(1) as f64;
            let _ = write!(text, "; dropped {dropped} ({share:.2} %):");
            for (index, (element, drop)) in self.dropped.iter().enumerate() {
                let comma = if index > 0 { "," } else { "" };
                let reason = drop.reason.replace('_', " ");
                let _ = write!(text, "{comma} {} {reason} at {element}", drop.packets);
            }
        }
        text.push('\n');
        if let [Some(p50), Some(p95), Some(p99), Some(max)] = self.queueing {
            let _ = writeln!(
                text,
                "        queueing delay  p50 {}, p95 {}, p99 {}, max {}",
                span(p50),
                span(p95),
                span(p99),
                span(max)
            );
        }
    }

    fn json(&self) -> Value {
        let dropped = self.dropped.iter().map(|(element, drop)| {
            json!({"element": element, "reason": drop.reason, "packets": drop.packets, "bytes": drop.bytes})
        });
        let [p50, p95, p99, max] = self.queueing;
        json!({
            "entered_packets": self.entered.0, "entered_bytes": self.entered.1,
            "left_packets": self.left.0, "left_bytes": self.left.1,
            "mean_bps": self.mean_bps,
            "dropped": dropped.collect::<Vec<_>>(),
            "queueing_delay": {"p50_ns": p50, "p95_ns": p95, "p99_ns": p99, "max_ns": max},
        })
    }
}

/// A rate for people.
pub(super) fn bits(bps: f64) -> String {
    scale(bps, &["bit/s", "kbit/s", "Mbit/s", "Gbit/s"])
}

/// An amount of data for people.
pub(super) fn bytes(bytes: u64) -> String {
    scale(bytes as f64, &["B", "kB", "MB", "GB"])
}

/// A time for people.
fn span(ns: u64) -> String {
    scale(ns as f64, &["ns", "us", "ms", "s"])
}

/// Three digits and a suitable unit, each a thousand times the previous one.
fn scale(mut value: f64, units: &[&str]) -> String {
    let mut index = 0;
    while value >= 999.5 && index + 1 < units.len() {
        value /= 1000.0;
        index += 1;
    }
    let digits = match value {
        _ if index == 0 => 0,
        value if value < 9.995 => 2,
        value if value < 99.95 => 1,
        _ => 0,
    };
    format!("{value:.digits$} {}", units[index])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_digits_and_a_unit() {
        assert_eq!(bits(11_840_000.0), "11.8 Mbit/s");
        assert_eq!(bits(999.0), "999 bit/s");
        assert_eq!(bits(999_700.0), "1.00 Mbit/s");
        assert_eq!(bytes(0), "0 B");
        assert_eq!(bytes(45_000), "45.0 kB");
        assert_eq!(span(20_123_456), "20.1 ms");
        assert_eq!(span(3_400), "3.40 us");
        assert_eq!(span(120_000_000_000), "120 s");
    }
}
