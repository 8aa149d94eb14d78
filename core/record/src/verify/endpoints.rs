//! Senders and receivers counted the packets that the network saw.

use super::{CheckOutcome, Evidence, VerifierCheck};
use crate::Direction;

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
    let all_seen = SeenFlows::count(evidence);
    for flow in &evidence.cell.flows {
        let summary = evidence
            .run
            .flows
            .iter()
            .find(|summary| summary.flow == flow.flow);
        let Some(summary) = summary else {
            return CheckOutcome::Fails(format!("run.json says nothing about flow {}", flow.flow));
        };
        let seen = all_seen.get(flow.flow, flow.direction);
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

#[derive(Clone, Copy, Default)]
struct SeenPackets {
    /// Packets that left the sender, without copies.
    sent: u64,
    sent_bytes: u64,
    /// Packets that arrived undamaged.
    sound: u64,
    sound_bytes: u64,
}

/// Packets of each flow's data that the network saw, by the flow's number and the direction. Counted in one pass: a cell
/// may have thousands of flows.
struct SeenFlows(Vec<[SeenPackets; 2]>);

impl SeenFlows {
    fn count(evidence: &Evidence<'_>) -> SeenFlows {
        let mut seen = SeenFlows(Vec::new());
        if let Some(packets) = &evidence.packets {
            for row in 0..packets.len() {
                let flow = seen.entry(packets.flow[row], packets.direction[row]);
                let size = u64::from(packets.size[row]);
                if packets.copy_of[row] == 0 {
                    flow.sent += 1;
                    flow.sent_bytes += size;
                }
                if packets.sound(row) {
                    flow.sound += 1;
                    flow.sound_bytes += size;
                }
            }
        }
        for bin in evidence.bins.iter().flat_map(|(bins, _)| bins) {
            let flow = seen.entry(bin.flow, bin.direction);
            flow.sent += bin.sent_packets;
            flow.sent_bytes += bin.sent_bytes;
            flow.sound += bin.arrived_packets;
            flow.sound_bytes += bin.arrived_bytes;
        }
        seen
    }

    fn entry(&mut self, flow: u16, direction: Direction) -> &mut SeenPackets {
        let index = usize::from(flow);
        if index >= self.0.len() {
            self.0.resize(index + 1, Default::default());
        }
        &mut self.0[index][direction as usize]
    }

    fn get(&self, flow: u16, direction: Direction) -> SeenPackets {
        let directions = self.0.get(usize::from(flow)).copied().unwrap_or_default();
        directions[direction as usize]
    }
}
