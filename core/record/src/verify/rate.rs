//! No packet left a bottleneck earlier than its rate allows.
//!
//! Two conditions, both on departures in whole nanoseconds, rounded down from exact times:
//!
//! * a packet leaves no earlier than its own serialisation after its service could begin, that is
//!   after it entered and its predecessor left; tolerance 1 ns for the rounding (not asked where a
//!   tie of access links leaves open which was the predecessor);
//! * in every window that starts and ends with a departure, the bits that left during the window
//!   take no longer at the rate than the window lasts. Within a busy period the server carries the
//!   part of a nanosecond that rounding cuts off, so the tolerance is 1 ns however long the window
//!   is. A server that goes idle and starts again in the very nanosecond of a departure forgets
//!   that part, which gives another nanosecond each time. In emulation entries may be later than
//!   their stamps (see [`Evidence::slack_ns`]), so idling cannot be told from the stamps, and the
//!   tolerance is 1 ns per packet (below 0.01 % at 1 Gbit/s and full packets).

use super::evidence::DIRECTIONS;
use super::layout::{Layout, Nature};
use super::timeline::{NEVER, Pass, Timeline};
use super::{Check, Evidence, Faults, Outcome};
use crate::schema::{BinRow, Direction};

pub(super) const CHECK: Check = Check {
    name: "rate",
    claim: "no packet left a bottleneck earlier than its rate allows, and no window of time \
            carried more than the rate",
    run,
};

const NS: i128 = 1_000_000_000;

fn run(evidence: &Evidence<'_>) -> Outcome {
    let mut faults = Faults::default();
    let mut held = Vec::new();
    let mut skipped = Vec::new();
    for direction in DIRECTIONS {
        let layout = evidence.layout(direction);
        let is_server = |nature: &Nature| matches!(nature, Nature::Bottleneck { .. });
        if !layout.stages.iter().any(|stage| is_server(&stage.nature)) {
            continue;
        }
        let done = match (&evidence.timelines[direction as usize], &evidence.bins) {
            (Ok(timeline), _) => Ok(departures(timeline, evidence.simulated(), &mut faults)),
            (Err(_), Some((bins, _))) => binned(evidence, layout, bins, &mut faults),
            (Err(_), None) => arrivals(evidence, layout, &mut faults),
        };
        match done {
            Ok(detail) => held.push(detail),
            Err(reason) => skipped.push(reason),
        }
    }
    faults.conclude(held, &skipped, "no path has a bottleneck")
}

/// Departures of the only bottleneck, with known starts of service.
fn departures(timeline: &Timeline, simulated: bool, faults: &mut Faults) -> String {
    let rate = i128::from(timeline.rate);
    let mut window = Window::new(timeline.rate);
    let mut before: Option<&Pass> = None;
    // One nanosecond for rounding, and one if the start follows a departure that was worked out.
    let tolerance = 1 + i128::from(timeline.uncertain_ns.min(1));
    let mut count = 0_u64;
    for pass in timeline.accepted() {
        if pass.seen && pass.leave != NEVER {
            count += 1;
            let bits = i128::from(pass.size) * 8;
            let took = i128::from(pass.leave) - i128::from(pass.start);
            if !pass.loose && bits * NS > rate * (took + tolerance) {
                faults.add(|| {
                    format!(
                        "a packet of {} bytes (row {}) left {} {took} ns after its service could \
                         begin, where {} bit/s need {} ns",
                        pass.size,
                        pass.row + 1,
                        timeline.name,
                        timeline.rate,
                        bits * NS / rate
                    )
                });
            }
            let touching = before.is_some_and(|b| b.leave == pass.enter);
            let allowance = u64::from(touching || !simulated);
            if let Some(excess) = window.depart(pass.leave, pass.size, allowance) {
                faults.add(|| over(&timeline.name, pass.row, excess));
            }
        }
        before = Some(pass);
    }
    format!(
        "{count} departures of {} at {} bit/s",
        timeline.name, timeline.rate
    )
}

/// Arrivals behind the last bottleneck, when what happens before it is not known.
fn arrivals(
    evidence: &Evidence<'_>,
    layout: &Layout,
    faults: &mut Faults,
) -> Result<String, String> {
    let (stage, rate, after) = last_server(layout)?;
    let Some(packets) = &evidence.packets else {
        return Err("there are no packets".into());
    };
    let mut rows: Vec<(i128, usize)> = (0..packets.len())
        .filter(|&row| packets.direction[row] == layout.direction)
        .filter_map(|row| Some((packets.model_arrival(row)? - i128::from(after), row)))
        .collect();
    rows.sort_unstable();
    let mut window = Window::new(rate);
    for &(leave, row) in &rows {
        let leave = u64::try_from(leave).unwrap_or(0);
        // When the server idled is not known, so every packet may bring its own rounding.
        if let Some(excess) = window.depart(leave, packets.size[row], 1) {
            faults.add(|| over(stage, row, excess));
        }
    }
    Ok(format!(
        "{} departures of {stage} at {rate} bit/s",
        rows.len()
    ))
}

fn over(name: &str, row: usize, excess_bits: i128) -> String {
    format!(
        "up to the packet in row {}, {name} carried {excess_bits} bits more than its rate allows",
        row + 1
    )
}

/// Name, rate and fixed delay behind the last bottleneck of a path.
fn last_server(layout: &Layout) -> Result<(&str, u64, u64), String> {
    let is_server = |nature: &Nature| matches!(nature, Nature::Bottleneck { .. });
    let place = layout
        .stages
        .iter()
        .rposition(|stage| is_server(&stage.nature));
    let place = place.ok_or_else(|| format!("the {} path has no bottleneck", layout.direction))?;
    let stage = &layout.stages[place];
    let after = Layout::fixed_ns(&layout.stages[place + 1..])?;
    match stage.nature {
        Nature::Bottleneck {
            rate: Some(rate), ..
        } => Ok((&stage.name, rate, after)),
        _ => Err(format!("the rate of {} is not constant", stage.name)),
    }
}

/// All windows at once: the work done up to each departure less what the rate allowed; the largest
/// rise of that number over any window is the excess.
struct Window {
    rate: i128,
    level: i128,
    lowest: Option<i128>,
}

impl Window {
    fn new(rate: u64) -> Self {
        Window {
            rate: i128::from(rate),
            level: 0,
            lowest: None,
        }
    }

    /// A packet leaves; `allowance` is the rounding in ns that it brings along. Returns the excess
    /// in bits, if there is one, and goes on as if it had not been.
    fn depart(&mut self, time: u64, size: u32, allowance: u64) -> Option<i128> {
        self.level += i128::from(size) * 8 * NS - i128::from(allowance) * self.rate;
        let at = self.level - i128::from(time) * self.rate;
        let Some(lowest) = self.lowest else {
            self.lowest = Some(at);
            return None;
        };
        let excess = at - lowest - self.rate;
        if excess > 0 {
            self.lowest = Some(at);
            return Some(excess.div_ceil_positive(NS));
        }
        self.lowest = Some(lowest.min(at));
        None
    }
}

trait CeilDiv {
    fn div_ceil_positive(self, by: Self) -> Self;
}

impl CeilDiv for i128 {
    fn div_ceil_positive(self, by: i128) -> i128 {
        (self + by - 1) / by
    }
}

/// Bins: what arrived in any run of bins takes no longer at the rate than the bins last, plus one
/// packet (of the largest size that IP allows, since bins do not tell sizes) that left right at
/// their start and, in emulation, what a late driver may have released at once.
fn binned(
    evidence: &Evidence<'_>,
    layout: &Layout,
    bins: &[BinRow],
    faults: &mut Faults,
) -> Result<String, String> {
    let (stage, rate, _) = last_server(layout)?;
    let width = evidence
        .cell
        .bin_ns
        .filter(|&width| width > 0)
        .ok_or("the bins have no width")?;
    let sums = sum_by_bin(bins, layout.direction);
    let packet = 65_535 * 8 * NS;
    let late = i128::from(evidence.slack_ns()) * i128::from(rate);
    let mut level = 0_i128;
    let mut lowest = 0_i128;
    for &(start, bytes) in &sums {
        // Level before the bin: what came so far less what the rate allowed until its start.
        let before = level - i128::from(start) * i128::from(rate);
        lowest = lowest.min(before);
        level += i128::from(bytes) * 8 * NS;
        let after = level - (i128::from(start) + i128::from(width)) * i128::from(rate);
        let excess = after - lowest - packet - late;
        if excess > 0 {
            faults.add(|| {
                format!(
                    "up to the bin at {start} ns, {stage} carried {} bits too many",
                    excess / NS
                )
            });
            lowest = after;
        }
    }
    Ok(format!("{} bins of {stage} at {rate} bit/s", sums.len()))
}

/// Bytes of all flows that arrived in each bin, in order of time.
fn sum_by_bin(bins: &[BinRow], direction: Direction) -> Vec<(u64, u64)> {
    let mut sums = std::collections::BTreeMap::new();
    for bin in bins.iter().filter(|bin| bin.direction == direction) {
        *sums.entry(bin.bin_ns).or_insert(0) += bin.arrived_bytes;
    }
    sums.into_iter().collect()
}
