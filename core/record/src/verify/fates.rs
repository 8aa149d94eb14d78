//! The columns of each packet agree with its fate.

use super::packets::{CORRUPTED, NO_ELEMENT, STRANGER};
use super::{CheckFaults, CheckOutcome, Evidence, Packets, VerifierCheck, on_packets};
use crate::log::NOT_ARRIVED;
use crate::schema::Fate;

pub(super) const CHECK: VerifierCheck = VerifierCheck {
    name: "fates",
    claim: "exactly the delivered packets arrive, and every other packet names the element that dropped or holds it",
    run: |evidence| on_packets(evidence, run),
};

fn run(evidence: &Evidence<'_>, packets: &Packets) -> CheckOutcome {
    let mut faults = CheckFaults::default();
    for row in 0..packets.len() {
        let uid = packets.uid[row];
        let arrived = packets.arrived[row] != NOT_ARRIVED;
        let element = packets.element[row];
        let reason = packets.reason(row);
        let direction = packets.direction[row];
        let problem = match packets.fate[row] {
            _ if packets.size[row] == 0 => "has no size",
            _ if element == STRANGER => "names an element that its path does not have",
            Fate::Delivered if !arrived => "is delivered but never arrives",
            Fate::Delivered if element != NO_ELEMENT => "is delivered but stays in an element",
            Fate::Delivered if reason == Some(CORRUPTED) => {
                if evidence.may_corrupt(row) {
                    continue;
                }
                "is damaged, and no element on its path damages packets"
            }
            Fate::Delivered | Fate::InFlight if reason.is_some() => {
                "was not dropped but has a reason for it"
            }
            Fate::Dropped | Fate::InFlight if arrived => "arrives although it is not delivered",
            Fate::Dropped if element == NO_ELEMENT => "was dropped, but no element is named",
            Fate::Dropped if reason.is_none() => "was dropped without a reason",
            Fate::Dropped if !may_drop(evidence, row, element) => {
                "was dropped by an element that does not drop packets for this reason"
            }
            Fate::InFlight if element == NO_ELEMENT => "is in flight but no element holds it",
            _ => continue,
        };
        faults.add(format_args!("packet {uid} ({direction}) {problem}"));
    }
    faults.outcome(|| format!("{} packets", packets.len()))
}

/// True if the element with index `element` may have dropped packet `row`. The verifier accepts
/// anything from elements that it does not know.
fn may_drop(evidence: &Evidence<'_>, row: usize, element: u16) -> bool {
    let Some(packets) = &evidence.packets else {
        return true;
    };
    let lane = evidence.lanes.get(usize::from(packets.lane[row]));
    let stages = lane.map_or(&evidence.stages, |lane| &lane.stages);
    let Some(known) = &stages[usize::from(element)].drops else {
        return true;
    };
    packets
        .reason(row)
        .is_some_and(|reason| known.contains(&reason))
}
