//! Senders and receivers counted the packets that the network saw.

use super::{CheckOutcome, Evidence, VerifierCheck};

pub(super) const CHECK: VerifierCheck = VerifierCheck {
    name: "endpoints",
    claim: "the counters of our senders and receivers agree with the packets of their flows",
    run,
};

fn run(evidence: &Evidence<'_>) -> CheckOutcome {
    if evidence.run.has_only_ends() {
        return CheckOutcome::Skipped("only the ends of the flows were measured".into());
    }
    let mut compared = 0;
    let blurred = evidence.packets.is_none()
        && (evidence.run.elements.iter().any(|e| e.copied_packets > 0)
            || evidence.stages.iter().any(|stage| stage.corrupts));
    for flow in &evidence.cell.flows {
        let summary = evidence
            .run
            .flows
            .iter()
            .find(|summary| summary.flow == flow.flow);
        let Some(summary) = summary else {
            return CheckOutcome::Fails(format!("run.json says nothing about flow {}", flow.flow));
        };
        let seen = count_seen(evidence, flow.flow, flow.direction);
        let one_way = !["requests", "web"].contains(&flow.traffic.kind.as_str());
        if summary
            .receiver
            .goodput_bytes
            .is_some_and(|goodput| goodput > seen.sound_bytes)
        {
            return CheckOutcome::Fails(format!(
                "the receiver of flow {} got more new data than the bytes delivered to it",
                flow.flow
            ));
        }
        // The kernel counts segments and payload, not packets on the wire.
        if summary.fingerprint.kind != "native" {
            continue;
        }
        let (sender, receiver) = (&summary.sender, &summary.receiver);
        let pairs = [
            ("sender", "packets sent", sender.sent_packets, seen.sent),
            ("sender", "bytes sent", sender.sent_bytes, seen.sent_bytes),
            (
                "receiver",
                "packets received",
                receiver.received_packets,
                seen.sound,
            ),
            (
                "receiver",
                "bytes received",
                receiver.received_bytes,
                seen.sound_bytes,
            ),
        ];
        for (who, what, counted, found) in pairs {
            let Some(counted) = counted else { continue };
            compared += 1;
            // Between a real endpoint and the emulator are two kernels, which may lose packets (the
            // run's verdict reports that) but never add any. If data travel in both directions,
            // acknowledgements of the other direction are included, and bins do not distinguish
            // copies and damaged packets.
            let exact = evidence.simulated() && one_way && !blurred;
            let fits = match who {
                _ if exact => counted == found,
                _ if evidence.simulated() => counted <= found,
                "sender" => counted >= found,
                _ => counted <= found,
            };
            if !fits {
                return CheckOutcome::Fails(format!(
                    "the {who} of flow {} counted {counted} {what}, but the network saw {found}",
                    flow.flow
                ));
            }
        }
    }
    if compared == 0 {
        return CheckOutcome::Skipped("no endpoint counted packets".into());
    }
    CheckOutcome::Holds(format!(
        "{compared} counters of {} flows",
        evidence.cell.flows.len()
    ))
}

#[derive(Default)]
struct SeenPackets {
    /// Packets that left the sender, without copies.
    sent: u64,
    sent_bytes: u64,
    /// Packets that arrived undamaged.
    sound: u64,
    sound_bytes: u64,
}

/// Packets of one flow's data that the network saw.
fn count_seen(evidence: &Evidence<'_>, flow: u16, direction: crate::Direction) -> SeenPackets {
    let mut seen = SeenPackets::default();
    if let Some(packets) = &evidence.packets {
        for row in 0..packets.len() {
            if packets.flow[row] != flow || packets.direction[row] != direction {
                continue;
            }
            let size = u64::from(packets.size[row]);
            if packets.copy_of[row] == 0 {
                seen.sent += 1;
                seen.sent_bytes += size;
            }
            if packets.sound(row) {
                seen.sound += 1;
                seen.sound_bytes += size;
            }
        }
    }
    for bin in evidence.bins.iter().flat_map(|(bins, _)| bins) {
        if bin.flow == flow && bin.direction == direction {
            seen.sent += bin.sent_packets;
            seen.sent_bytes += bin.sent_bytes;
            seen.sound += bin.arrived_packets;
            seen.sound_bytes += bin.arrived_bytes;
        }
    }
    seen
}
