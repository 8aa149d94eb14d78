//! No delay line held more packets than its limit.
//!
//! A packet enters a line of delay D a time D before it leaves it, and when it leaves follows from its arrival and
//! the fixed delays behind the line. So of the packets that arrived, the n-th must have left by the time at which
//! the one `limit` places later enters. Packets that were lost behind the line are not seen, which makes the check
//! milder. In emulation a packet may be handed over late, when others have left already
//! (see [`Evidence::slack_ns`]); these have to have left within that time.

use super::layout::{Layout, Nature};
use super::natures::limit_of_line;
use super::{Check, Evidence, Faults, Outcome, bins_only};

pub(super) const CHECK: Check = Check {
    name: "lines",
    claim: "no delay line held more packets than its limit",
    run,
};

fn run(evidence: &Evidence<'_>) -> Outcome {
    let mut faults = Faults::default();
    let (mut held, mut skipped) = (Vec::new(), Vec::new());
    let limited = evidence.stages.iter().filter_map(|stage| {
        let element = evidence.cell.network.element(&stage.name)?;
        let limit = limit_of_line(evidence.cell, element).filter(|_| stage.kind == "delay")?;
        Some((stage, limit))
    });
    for (stage, limit) in limited {
        if evidence.packets.is_none() {
            return bins_only();
        }
        let Nature::Delay(delay) = stage.nature else {
            skipped.push(format!("the timeline changes {}", stage.name));
            continue;
        };
        let left = match departures(evidence, stage.index) {
            Ok(left) => left,
            Err(why) => {
                skipped.push(why);
                continue;
            }
        };
        let slack = i128::from(evidence.slack_ns());
        let places = usize::try_from(limit).unwrap_or(usize::MAX);
        for (before, &(last, row)) in left.iter().zip(left.iter().skip(places)) {
            if before.0 > last - i128::from(delay) + slack {
                faults.add(|| {
                    let row = row + 1;
                    let name = &stage.name;
                    format!("{name} took a packet (row {row}) while {limit} were under way in it")
                });
            }
        }
        held.push(format!("{} packets of {}", left.len(), stage.name));
    }
    if held.is_empty() && skipped.is_empty() {
        return Outcome::Holds("no delay line has a limit".into());
    }
    faults.conclude(held, &skipped, "")
}

/// When packets left the element, in order, with their rows.
fn departures(evidence: &Evidence<'_>, index: usize) -> Result<Vec<(i128, usize)>, String> {
    let mut behind = Vec::new();
    for layout in &evidence.lanes {
        let after = layout.place(index).map(|place| {
            let rest = &layout.stages[place + 1..];
            Layout::fixed_ns(rest).map(|after| (after, rest.iter().any(|stage| stage.copies)))
        });
        behind.push(after.transpose()?);
    }
    let mut left = Vec::new();
    let packets = evidence
        .packets
        .iter()
        .flat_map(|packets| (0..packets.len()).map(move |row| (packets, row)));
    for (packets, row) in packets {
        let lane = behind
            .get(usize::from(packets.lane[row]))
            .copied()
            .flatten();
        let (Some((after, copied)), Some(arrival)) = (lane, packets.model_arrival(row)) else {
            continue;
        };
        if !(copied && packets.copy_of[row] > 0) {
            left.push((arrival - i128::from(after), row));
        }
    }
    left.sort_unstable();
    Ok(left)
}
