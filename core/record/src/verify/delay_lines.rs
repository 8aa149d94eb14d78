//! No delay line held more packets than its limit, or dropped one for which it had room.
//!
//! A packet enters a line of delay D a time D before it leaves it, and when it leaves follows from its arrival and
//! the fixed delays behind the line. So of the packets that arrived, the n-th must have left by the time at which
//! the one `limit` places later enters. Packets that were lost behind the line are not seen, which makes the check
//! milder. In emulation a packet may be handed over late, when others have left already
//! (see [`Evidence::slack_ns`]); these have to have left within that time.
//!
//! Where only fixed delays are before the line, entries follow from the stamps: around the time at which a packet
//! was dropped, at least as many as the limit must have been under way.

use super::layout::{Layout, StageNature};
use super::timeline::{Stamps, access_table};
use super::{CheckFaults, CheckOutcome, Evidence, VerifierCheck, bins_only};
use crate::schema::Fate;

pub(super) const CHECK: VerifierCheck = VerifierCheck {
    name: "lines",
    claim: "no delay line held more packets than its limit, or dropped one for which it had room",
    run,
};

fn run(evidence: &Evidence<'_>) -> CheckOutcome {
    let mut faults = CheckFaults::default();
    let (mut held, mut skipped) = (Vec::new(), Vec::new());
    let limited = evidence.stages.iter().filter_map(|stage| {
        let element = evidence.cell.network.element(&stage.name)?;
        let sets = evidence
            .cell
            .sets(element)
            .filter(|_| stage.kind == "delay");
        // The largest that it has at some time.
        let limit = sets.filter_map(|set| set.get("limit")?.as_u64()).max()?;
        Some((stage, limit))
    });
    for (stage, limit) in limited {
        if evidence.packets.is_none() {
            return bins_only();
        }
        let StageNature::Delay(delay) = stage.nature else {
            skipped.push(format!("the timeline changes {}", stage.name));
            continue;
        };
        let slack = evidence.slack_ns();
        let name = &stage.name;
        match departures(evidence, stage.index) {
            Ok(left) => {
                let places = usize::try_from(limit).unwrap_or(usize::MAX);
                let later = left.iter().skip(places);
                for (before, &(last, row)) in left.iter().zip(later) {
                    if before.0 > last - i128::from(delay) + i128::from(slack) {
                        let row = row + 1;
                        faults.add(|| {
                            format!("{name} took a packet (row {row}) while {limit} were under way in it")
                        });
                    }
                }
                held.push(format!("{} packets of {name}", left.len()));
            }
            Err(why) => skipped.push(why),
        }
        match arrivals(evidence, stage.index) {
            Ok((came, dropped)) => {
                let until = |time: Option<u64>| {
                    time.map_or(0, |time| came.partition_point(|&entry| entry <= time))
                };
                for &(at, row) in &dropped {
                    let gone = at.checked_sub(slack.saturating_add(delay));
                    let inside = until(Some(at.saturating_add(slack))) - until(gone);
                    if (inside as u64) < limit {
                        let row = row + 1;
                        faults.add(|| {
                            format!("{name} dropped a packet (row {row}) with {inside} of {limit} under way in it")
                        });
                    }
                }
                held.push(format!("{} drops of {name}", dropped.len()));
            }
            Err(why) => skipped.push(why),
        }
    }
    if held.is_empty() && skipped.is_empty() {
        return CheckOutcome::Holds("no delay line has a limit".into());
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

/// When the packets that the element took came to it, in order, and those that it dropped, with their rows.
type Arrivals = (Vec<u64>, Vec<(u64, usize)>);

fn arrivals(evidence: &Evidence<'_>, index: usize) -> Result<Arrivals, String> {
    let mut ways = Vec::new();
    for layout in &evidence.lanes {
        let way = layout.place(index).map(|place| {
            let copier = layout.stages.iter().find(|stage| stage.copies);
            if let Some(stage) = copier {
                return Err(format!("{} may copy packets", stage.name));
            }
            let before = Layout::fixed_ns(&layout.stages[..place])?;
            Ok((place, before, access_table(evidence.cell, layout)))
        });
        ways.push(way.transpose()?);
    }
    let (mut came, mut dropped) = (Vec::new(), Vec::new());
    let mut stamps = Stamps::new(&evidence.lanes);
    let Some(packets) = &evidence.packets else {
        return Ok((came, dropped));
    };
    for row in 0..packets.len() {
        let sent = stamps.raise(packets, row);
        let Some(Some((place, before, access))) = ways.get(usize::from(packets.lane[row])) else {
            continue;
        };
        let element = usize::from(packets.element[row]);
        let stopped = packets.fate[row] != Fate::Delivered;
        if stopped && element < *place {
            continue;
        }
        let extra = access.get(usize::from(packets.flow[row])).copied();
        let entry = sent
            .saturating_add(extra.unwrap_or(0))
            .saturating_add(*before);
        if packets.fate[row] == Fate::Dropped && element == *place {
            dropped.push((entry, row));
        } else {
            came.push(entry);
        }
    }
    came.sort_unstable();
    Ok((came, dropped))
}
