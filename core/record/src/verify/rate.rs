//! No packet left a bottleneck earlier than its rate allows.
//!
//! The rate is a function of time, given by steps and the timeline of the cell. Two conditions apply, both to
//! departures in nanoseconds, rounded down from exact times:
//!
//! * a packet leaves no earlier than its own serialisation after its service could begin, that is after it entered and
//!   its predecessor left; tolerance 1 ns for the rounding (not checked where simultaneous entries from several access
//!   links leave the predecessor undetermined);
//! * in every window that starts and ends with a departure, the bits that left during the window take no longer at the
//!   rate than the window lasts. Within a busy period the server carries over the fraction of a nanosecond that
//!   rounding cuts off, so the tolerance is 1 ns however long the window is. A server that becomes idle and restarts in
//!   the same nanosecond as a departure loses that fraction, which adds another nanosecond each time. In emulation
//!   entries may be later than their stamps (see [`Evidence::slack_ns`]), so the stamps do not show when the server was
//!   idle, and the tolerance is 1 ns per packet (below 0.01 % at 1 Gbit/s and full packets).
//!
//! If the starts of service are not known (several bottlenecks on a path, elements that hold packets before it), only
//! the second condition is checked, at every bottleneck behind which only fixed delays are. For a server whose rate
//! does not follow from the cell, such as a trace, the total is compared with its recorded capacity.

use super::layout::{Layout, Server, StageNature};
use super::record_data::Queueing;
use super::timeline::{BottleneckPass, NEVER, NS, Timeline};
use super::{CheckFaults, CheckOutcome, Evidence, VerifierCheck, element_times};
use crate::cell::RateLaw;
use crate::schema::BinRow;

pub(super) const CHECK: VerifierCheck = VerifierCheck {
    name: "rate",
    claim: "no packet left a bottleneck earlier than its rate allows, and no window of time \
            carried more than the rate",
    run,
};

fn run(evidence: &Evidence<'_>) -> CheckOutcome {
    let mut faults = CheckFaults::default();
    for queueing in &evidence.servers {
        let stage = &evidence.stages[queueing.index];
        let StageNature::Bottleneck(server) = &stage.nature else {
            continue;
        };
        let done = match (&queueing.timeline, &server.law, &evidence.bins) {
            (Ok(timeline), ..) => Ok(departures(timeline, evidence.simulated(), &mut faults)),
            (Err(_), Err(why), _) => total(evidence, queueing, why, &mut faults),
            (Err(_), Ok(law), Some((bins, _))) => {
                check_bins(evidence, queueing, law, bins, &mut faults)
            }
            (Err(_), Ok(law), None) => arrivals(evidence, queueing, (server, law), &mut faults),
        };
        faults.note(done);
    }
    faults.conclude(CheckOutcome::Skipped("no path has a bottleneck".into()))
}

/// Departures with known starts of service.
fn departures(timeline: &Timeline, simulated: bool, faults: &mut CheckFaults) -> String {
    let law = &timeline.law;
    let mut window = RateWindow::new(law);
    let mut before: Option<&BottleneckPass> = None;
    // One nanosecond for rounding, and one if the start follows a computed departure.
    let tolerance = 1 + timeline.uncertain_ns.min(1);
    let mut count = 0_u64;
    for pass in timeline.accepted() {
        if pass.seen && pass.leave != NEVER {
            count += 1;
            let bits = timeline.server.wire_bits(pass.size);
            let left = law.work(pass.leave.saturating_add(tolerance).max(pass.start));
            if !pass.loose && bits * NS > left - law.work(pass.start) {
                faults.add(format_args!(
                    "a packet of {} bytes (row {}) left {} {} ns after its service could \
                         begin, where {} need {} ns",
                    pass.size,
                    pass.row + 1,
                    timeline.name,
                    i128::from(pass.leave) - i128::from(pass.start),
                    timeline.rate(),
                    timeline.served(pass.start, bits).saturating_sub(pass.start),
                ));
            }
            let touching = before.is_some_and(|b| b.leave == pass.enter);
            let allowance = u64::from(touching || !simulated);
            if let Some(excess) = window.depart(pass.leave, bits, allowance) {
                faults.add(over(&timeline.name, pass.row, excess));
            }
        }
        before = Some(pass);
    }
    format!(
        "{count} departures of {} at {}",
        timeline.name,
        timeline.rate()
    )
}

/// Checks departures alone, if entries into the bottleneck are not known.
fn arrivals(
    evidence: &Evidence<'_>,
    queueing: &Queueing,
    (server, law): (&Server, &RateLaw),
    faults: &mut CheckFaults,
) -> Result<String, String> {
    let name = &evidence.stages[queueing.index].name;
    let rows = departures_of(evidence, queueing)?;
    let packets = evidence.packets.as_ref();
    let mut window = RateWindow::new(law);
    for &(leave, row) in &rows {
        let size = packets.map_or(0, |packets| packets.size[row]);
        let bits = server.wire_bits(size);
        // The idle times of the server are not known, so every packet may add its own rounding.
        if let Some(excess) = window.depart(leave, bits, 1) {
            faults.add(over(name, row, excess));
        }
    }
    Ok(format!(
        "{} departures of {name} by windows of time",
        rows.len()
    ))
}

/// When packets left a bottleneck behind which only fixed delays are, in order, with their rows.
///
/// # Errors
/// The reason why the departures are not known.
pub(super) fn departures_of(
    evidence: &Evidence<'_>,
    queueing: &Queueing,
) -> Result<Vec<(u64, usize)>, String> {
    let Some(packets) = &evidence.packets else {
        return Err("there are no packets".into());
    };
    let rows = element_times::departures(evidence, packets, queueing.lanes.iter().copied())?;
    let leave = |(left, row)| (u64::try_from(left).unwrap_or(0), row);
    Ok(rows.into_iter().map(leave).collect())
}

/// Compares the total bytes that left a server of unknown rate with its capacity.
fn total(
    evidence: &Evidence<'_>,
    queueing: &Queueing,
    why: &str,
    faults: &mut CheckFaults,
) -> Result<String, String> {
    let name = &evidence.stages[queueing.index].name;
    let counters = evidence.run.elements.get(queueing.index);
    let counters = counters.filter(|counters| counters.name == *name);
    let Some((capacity, counters)) = counters.and_then(|c| Some((c.capacity_bytes?, c))) else {
        return Err(why.to_owned());
    };
    // The last packet may have left in a nanosecond that the capacity counts only partly.
    let maximum = capacity.saturating_add(65_535);
    if counters.out_bytes > maximum {
        faults.add(format_args!(
            "{name} let {} bytes through, where its server could have carried {capacity}",
            counters.out_bytes
        ));
    }
    Ok(format!(
        "{name} let {} of {capacity} possible bytes through",
        counters.out_bytes
    ))
}

fn over(name: &str, row: usize, excess_bits: i128) -> String {
    format!(
        "up to the packet in row {}, {name} carried {excess_bits} bits more than its rate allows",
        row + 1
    )
}

/// Checks all windows at once: the level is the work done up to each departure less the work that the rate allowed; its
/// largest rise over any window is the excess.
struct RateWindow<'a> {
    law: &'a RateLaw,
    /// Largest rate, which converts tolerated nanoseconds of rounding into bits.
    rate: i128,
    level: i128,
    lowest: Option<i128>,
}

impl<'a> RateWindow<'a> {
    fn new(law: &'a RateLaw) -> Self {
        RateWindow {
            law,
            rate: i128::from(law.max_bps()),
            level: 0,
            lowest: None,
        }
    }

    /// Counts a departure; `allowance` is the tolerated rounding of this packet in ns. Returns the excess in bits, if
    /// any, and continues as if it had not occurred.
    fn depart(&mut self, time: u64, bits: i128, allowance: u64) -> Option<i128> {
        self.level += bits * NS - i128::from(allowance) * self.rate;
        let at = self.level - self.law.work(time);
        let Some(lowest) = self.lowest else {
            self.lowest = Some(at);
            return None;
        };
        let excess = at - lowest - self.rate;
        if excess > 0 {
            self.lowest = Some(at);
            return Some((excess + NS - 1) / NS);
        }
        self.lowest = Some(lowest.min(at));
        None
    }
}

/// Checks bins: the traffic that arrived in any sequence of bins takes no longer at the rate than the bins last, plus
/// one packet (of the maximum IP size, since bins do not contain sizes) that left at their start and, in emulation, the
/// packets that a late driver may have released at once.
fn check_bins(
    evidence: &Evidence<'_>,
    queueing: &Queueing,
    law: &RateLaw,
    bins: &[BinRow],
    faults: &mut CheckFaults,
) -> Result<String, String> {
    let name = &evidence.stages[queueing.index].name;
    let mut behind: Vec<Option<u64>> = evidence.lanes.iter().map(|_| None).collect();
    for &(lane, place) in &queueing.lanes {
        let rest = &evidence.lanes[lane].stages[place + 1..];
        if rest.iter().any(|stage| stage.copies) {
            return Err(format!("packets that left {name} may have been copied"));
        }
        behind[lane] = Some(Layout::fixed_ns(rest)?);
    }
    if behind
        .iter()
        .flatten()
        .any(|after| Some(*after) != behind[queueing.lanes[0].0])
    {
        return Err(format!("bins do not determine when packets left {name}"));
    }
    let after = behind[queueing.lanes[0].0].unwrap_or(0);
    let width = evidence
        .cell
        .bin_ns
        .filter(|&width| width > 0)
        .ok_or("the bins have no width")?;
    let mut sums = std::collections::BTreeMap::new();
    for bin in bins {
        let lane = evidence.cell.route_of(bin.flow, bin.direction);
        if lane.is_some_and(|lane| behind[lane].is_some()) {
            *sums.entry(bin.bin_ns).or_insert(0_u64) += bin.arrived_bytes;
        }
    }
    let packet = 65_535 * 8 * NS;
    let late = i128::from(evidence.slack_ns()) * i128::from(law.max_bps());
    let work = |time: u64| law.work(time.saturating_sub(after));
    let mut level = 0_i128;
    let mut lowest = 0_i128;
    for (&start, &bytes) in &sums {
        // Level before the bin: bits that arrived so far less bits that the rate allowed until its start.
        lowest = lowest.min(level - work(start));
        level += i128::from(bytes) * 8 * NS;
        let at_end = level - work(start.saturating_add(width));
        let excess = at_end - lowest - packet - late;
        if excess > 0 {
            faults.add(format_args!(
                "up to the bin at {start} ns, {name} carried {} bits too many",
                excess / NS
            ));
            lowest = at_end;
        }
    }
    Ok(format!("{} bins of {name}", sums.len()))
}
