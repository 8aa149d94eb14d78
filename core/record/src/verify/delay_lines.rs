//! No delay line held more packets than its limit, or dropped one for which it had room.
//!
//! A packet enters a line of delay D a time D before it leaves it, and its departure follows from its arrival and the
//! fixed delays behind the line. So the n-th of the packets that arrived must have left by the time at which the packet
//! `limit` places later enters. Packets that were lost behind the line are not visible, which makes the check weaker.
//! In emulation a packet may be handed over late, after others have left (see [`Evidence::slack_ns`]); these must have
//! left within that time.
//!
//! If only fixed delays are before the line, entries follow from the stamps: around the time at which a packet was
//! dropped, at least `limit` packets must have been in the line.

use super::layout::StageNature;
use super::packets::Packets;
use super::{CheckFaults, CheckOutcome, Evidence, VerifierCheck, bins_only, element_times};

pub(super) const CHECK: VerifierCheck = VerifierCheck {
    name: "lines",
    claim: "no delay line held more packets than its limit, or dropped one for which it had room",
    run,
};

fn run(evidence: &Evidence<'_>) -> CheckOutcome {
    let mut faults = CheckFaults::default();
    let limited = evidence.stages.iter().filter_map(|stage| {
        let element = evidence.cell.network.element(&stage.name)?;
        let sets = evidence
            .cell
            .sets(element)
            .filter(|_| stage.kind == "delay");
        // The largest limit that it has at any time.
        let limit = sets.filter_map(|set| set.get("limit")?.as_u64()).max()?;
        Some((stage, limit))
    });
    for (stage, limit) in limited {
        let Some(packets) = &evidence.packets else {
            return bins_only();
        };
        let StageNature::Delay(delay) = stage.nature else {
            faults.note(Err(format!("the timeline changes {}", stage.name)));
            continue;
        };
        let slack = evidence.slack_ns();
        let name = &stage.name;
        let lanes = evidence.lanes.iter().enumerate();
        let places = lanes.filter_map(|(lane, layout)| Some((lane, layout.place(stage.index)?)));
        let places: Vec<(usize, usize)> = places.collect();
        let left = element_times::departures(evidence, packets, places.iter().copied());
        let part = left.map(|left| {
            let places = usize::try_from(limit).unwrap_or(usize::MAX);
            let later = left.iter().skip(places);
            for (before, &(last, row)) in left.iter().zip(later) {
                if before.0 > last - i128::from(delay) + i128::from(slack) {
                    let row = row + 1;
                    faults.add(format_args!(
                        "{name} accepted a packet (row {row}) while {limit} were in flight in it"
                    ));
                }
            }
            format!("{} packets of {name}", left.len())
        });
        faults.note(part);
        let part = arrivals(evidence, packets, &places).map(|(came, dropped)| {
            let until = |time: Option<u64>| {
                time.map_or(0, |time| came.partition_point(|&entry| entry <= time))
            };
            for &(at, row) in &dropped {
                let gone = at.checked_sub(slack.saturating_add(delay));
                let inside = until(Some(at.saturating_add(slack))) - until(gone);
                if (inside as u64) < limit {
                    let row = row + 1;
                    faults.add(format_args!("{name} dropped a packet (row {row}) with {inside} of {limit} in flight in it"));
                }
            }
            format!("{} drops of {name}", dropped.len())
        });
        faults.note(part);
    }
    faults.conclude(CheckOutcome::Holds("no delay line has a limit".into()))
}

/// When the packets that the element accepted reached it, in order, and when those that it dropped did, with their
/// rows.
type Arrivals = (Vec<u64>, Vec<(u64, usize)>);

fn arrivals(
    evidence: &Evidence<'_>,
    packets: &Packets,
    places: &[(usize, usize)],
) -> Result<Arrivals, String> {
    let (mut came, mut dropped) = (Vec::new(), Vec::new());
    for &(lane, place) in places {
        let mut stages = evidence.lanes[lane].stages.iter();
        if let Some(stage) = stages.find(|stage| stage.copies) {
            return Err(format!("{} may copy packets", stage.name));
        }
        for entry in element_times::entries(evidence, packets, (lane, place))? {
            if entry.dropped {
                dropped.push((entry.time_ns, entry.row));
            } else {
                came.push(entry.time_ns);
            }
        }
    }
    came.sort_unstable();
    dropped.sort_unstable_by_key(|&(_, row)| row);
    Ok((came, dropped))
}
