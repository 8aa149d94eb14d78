//! Every copy of a packet agrees with its original.

use super::{CheckFaults, CheckOutcome, Evidence, Packets, VerifierCheck, on_packets};

pub(super) const CHECK: VerifierCheck = VerifierCheck {
    name: "copies",
    claim: "every copy names an earlier packet of the same flow, path and size, and is on a path on which packets are copied",
    run: |evidence| on_packets(evidence, run),
};

fn run(evidence: &Evidence<'_>, packets: &Packets) -> CheckOutcome {
    let mut faults = CheckFaults::default();
    let mut copies = 0_u64;
    for row in (0..packets.len()).filter(|&row| packets.copy_of[row] > 0) {
        copies += 1;
        let (uid, original) = (packets.uid[row], packets.copy_of[row]);
        // Packet n is in row n - 1 unless the numbers are wrong, which another check finds.
        let source = usize::try_from(original - 1).unwrap_or(usize::MAX);
        if source >= row {
            faults.add(format_args!(
                "packet {uid} is a copy of packet {original}, which came later"
            ));
            continue;
        }
        let same = packets.flow[row] == packets.flow[source]
            && packets.direction[row] == packets.direction[source]
            && packets.size[row] == packets.size[source];
        if !same {
            faults.add(format_args!(
                "packet {uid} differs from packet {original}, its original"
            ));
        }
        if packets.sent[row] < packets.sent[source] {
            faults.add(format_args!(
                "packet {uid} was copied before packet {original} was sent"
            ));
        }
        let lane = evidence.lanes.get(usize::from(packets.lane[row]));
        if lane.is_some_and(|lane| lane.stages.iter().all(|stage| !stage.copies)) {
            faults.add(format_args!(
                "packet {uid} is a copy, and no element on its path copies packets"
            ));
        }
    }
    if copies == 0 {
        return CheckOutcome::Holds("no packet was copied".into());
    }
    faults.outcome(|| format!("{copies} copies"))
}
