//! No packet stayed in the network longer than its elements explain.
//!
//! The counterpart of the checks of propagation and rate: a server that has packets to serve serves
//! them, and a fixed delay is never exceeded. Three cases:
//!
//! * a packet leaves the bottleneck at the latest its serialisation (rounded up) after its service
//!   could begin;
//! * on a path without bottleneck, it arrives exactly after the fixed delays;
//! * a packet that was still held at the end was not due to leave its element before the last event
//!   of the record.
//!
//! In emulation an entry may be later than its stamp (see [`Evidence::slack_ns`]), and while the
//! hosts are shut down, packets that are due may stay unreleased for a few turns.

use super::layout::{Layout, PathStage, StageNature};
use super::record_data::Queueing;
use super::timeline::{NEVER, NS, Stamps, Timeline, access_table};
use super::{CheckFaults, CheckOutcome, Evidence, Packets, VerifierCheck, on_packets};
use crate::schema::Fate;

pub(super) const CHECK: VerifierCheck = VerifierCheck {
    name: "stay",
    claim: "no packet stayed longer than the delays, the packets before it and the rate explain",
    run: |evidence| on_packets(evidence, run),
};

/// Time within which an emulation stops, in ns.
const SHUTDOWN_NS: u64 = 50_000_000;

fn run(evidence: &Evidence<'_>, packets: &Packets) -> CheckOutcome {
    let mut faults = CheckFaults::default();
    let mut checked = 0_u64;
    let slack = evidence.slack_ns();
    let grace = if evidence.simulated() {
        0
    } else {
        slack.max(SHUTDOWN_NS)
    };
    let end = last_event(packets).saturating_sub(grace);
    for queueing in &evidence.servers {
        match &queueing.timeline {
            Ok(timeline) => {
                let seen = (packets, slack, end);
                checked += behind_queue(evidence, queueing, timeline, seen, &mut faults);
            }
            Err(reason) => faults.note(Err(reason.clone())),
        }
    }
    for lane in 0..evidence.lanes.len() {
        checked += on_fixed_delays(evidence, packets, lane, (slack, end), &mut faults);
    }
    faults.skipped.sort();
    faults.skipped.dedup();
    faults.conclude_counted(checked, "packets")
}

/// The last event in model time.
fn last_event(packets: &Packets) -> u64 {
    let arrivals = (0..packets.len()).filter_map(|row| packets.model_arrival(row));
    let last = arrivals
        .max()
        .and_then(|time| u64::try_from(time).ok())
        .unwrap_or(0);
    packets.sent.iter().copied().max().unwrap_or(0).max(last)
}

/// The delay of an element for one flow.
fn delay_of(stage: &PathStage, access: u64) -> u64 {
    match stage.nature {
        StageNature::Access => access,
        StageNature::Delay(ns) => ns,
        _ => 0,
    }
}

/// Packets at and behind the bottleneck. Returns how many were checked.
fn behind_queue(
    evidence: &Evidence<'_>,
    queueing: &Queueing,
    timeline: &Timeline,
    (packets, slack, end): (&Packets, u64, u64),
    faults: &mut CheckFaults,
) -> u64 {
    let mut checked = 0;
    let mut first_held = true;
    for pass in timeline.accepted() {
        let uid = packets.uid[pass.row];
        let bits = timeline.server.wire_bits(pass.size);
        // A start that follows a computed departure may be wrong by its rounding.
        let rounding = timeline.uncertain_ns.min(1);
        let latest =
            latest_departure(timeline, pass.start, bits).saturating_add(slack.max(rounding));
        if pass.leave == NEVER {
            // Packets that wait behind the packet in service are held rightly.
            if std::mem::take(&mut first_held) && !pass.loose && latest < end {
                faults.add(format_args!(
                    "packet {uid} is held by {} although it was due to leave",
                    timeline.name
                ));
            }
            checked += 1;
            continue;
        }
        if pass.seen {
            checked += 1;
            if !pass.loose && pass.leave > latest {
                faults.add(format_args!(
                    "packet {uid} left {} {} ns after it could have been served",
                    timeline.name,
                    pass.leave - pass.start
                ));
            }
        } else if packets.fate[pass.row] == Fate::InFlight {
            checked += 1;
            let lane = usize::from(packets.lane[pass.row]);
            let place = queueing.lanes.iter().find(|&&(l, _)| l == lane);
            let place = place.map_or(0, |&(_, place)| place);
            let layout = &evidence.lanes[lane];
            let held_at = usize::from(packets.element[pass.row]);
            let behind = layout.stages.get(place + 1..=held_at).unwrap_or(&[]);
            let due = behind
                .iter()
                .fold(pass.leave, |t, s| t.saturating_add(delay_of(s, 0)));
            if due
                .saturating_add(slack)
                .saturating_add(timeline.uncertain_ns)
                < end
            {
                faults.add(overdue(layout, held_at, uid));
            }
        }
    }
    checked
}

/// The latest time at which a packet whose service began at `start` has left. A timeline that
/// changes the rate during service may round the remainder up to a whole byte.
fn latest_departure(timeline: &Timeline, start: u64, bits: i128) -> u64 {
    let law = &timeline.law;
    let left = timeline.served(start, bits);
    if left == NEVER {
        return NEVER;
    }
    let exact = law.work(left) - law.work(start) >= bits * NS;
    let left = left.saturating_add(u64::from(!exact));
    let meanwhile = law.changes().filter(|&at| at > start && at <= left).count() as u64;
    if meanwhile == 0 {
        return left;
    }
    let byte = (8 * NS).checked_div(i128::from(law.min_bps())).unwrap_or(0);
    left.saturating_add(meanwhile * (u64::try_from(byte).unwrap_or(0) + 2))
}

/// Checks packets that met only fixed delays: all packets of a path without bottleneck, and those
/// that never reached it. Returns how many were checked.
fn on_fixed_delays(
    evidence: &Evidence<'_>,
    packets: &Packets,
    lane: usize,
    (slack, end): (u64, u64),
    faults: &mut CheckFaults,
) -> u64 {
    let layout = &evidence.lanes[lane];
    let access = access_table(evidence.cell, layout);
    let fixed = Layout::fixed_ns(&layout.stages).is_ok();
    // Up to the first element whose delay is not fixed, the delays determine where packets are.
    let loose =
        |stage: &PathStage| matches!(stage.nature, StageNature::Bottleneck(_) | StageNature::Free);
    let known = layout.stages.iter().position(loose);
    let known = known.unwrap_or(layout.stages.len());
    let mut stamps = Stamps::new(&evidence.lanes);
    let mut checked = 0;
    for row in 0..packets.len() {
        let raised = stamps.raise(packets, row);
        if usize::from(packets.lane[row]) != lane || packets.copy_of[row] > 0 {
            continue;
        }
        let extra = access
            .get(usize::from(packets.flow[row]))
            .copied()
            .unwrap_or(0);
        let until = |places: &[PathStage]| {
            places
                .iter()
                .fold(raised, |t, s| t.saturating_add(delay_of(s, extra)))
        };
        let uid = packets.uid[row];
        match packets.fate[row] {
            Fate::Delivered if fixed => {
                checked += 1;
                let latest = i128::from(until(&layout.stages).saturating_add(slack));
                if packets
                    .model_arrival(row)
                    .is_some_and(|arrival| arrival > latest)
                {
                    faults.add(format_args!(
                        "packet {uid} ({}) arrived later than fixed delays allow",
                        packets.direction[row]
                    ));
                }
            }
            Fate::InFlight if usize::from(packets.element[row]) < known => {
                checked += 1;
                let held_at = usize::from(packets.element[row]);
                if until(&layout.stages[..=held_at]).saturating_add(slack) < end {
                    faults.add(overdue(layout, held_at, uid));
                }
            }
            _ => {}
        }
    }
    checked
}

fn overdue(layout: &Layout, place: usize, uid: u64) -> String {
    let name = layout
        .stages
        .get(place)
        .map_or("an element", |stage| stage.name.as_str());
    format!("packet {uid} is held by {name} although it was due to leave")
}
