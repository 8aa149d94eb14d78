//! Packets are numbered 1, 2, 3... without gap or repetition.

use super::{CheckFaults, CheckOutcome, Evidence, Packets, VerifierCheck, on_packets};

pub(super) const CHECK: VerifierCheck = VerifierCheck {
    name: "uids",
    claim: "packets are numbered in the order of entering, without gap or repetition",
    run: |evidence| on_packets(evidence, run),
};

fn run(evidence: &Evidence<'_>, packets: &Packets) -> CheckOutcome {
    let mut faults = CheckFaults::default();
    let mut sent = 0;
    for (row, &uid) in packets.uid.iter().enumerate() {
        let expected = row as u64 + 1;
        if uid != expected {
            let place = row + 1;
            // One mistake shifts all later numbers; the first contradiction is enough.
            return CheckOutcome::Fails(match packets.uid[..row].iter().rposition(|&u| u == uid) {
                Some(other) => {
                    format!(
                        "packet {uid} is there twice, in rows {} and {place}",
                        other + 1
                    )
                }
                None => format!("packet {uid} is in row {place}, where {expected} belongs"),
            });
        }
        // In emulation the stamps of two hosts interleave, so their order is checked per
        // direction, by the order of arrivals.
        if evidence.simulated() && packets.sent[row] < sent {
            faults.add(format_args!(
                "packet {uid} entered before packet {}",
                uid - 1
            ));
        }
        sent = packets.sent[row];
    }
    faults.outcome(|| format!("{} packets, numbered from 1", packets.len()))
}
