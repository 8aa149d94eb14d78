//! Senders and receivers counted the packets that the network saw.

use super::{Check, Evidence, Outcome};
use crate::schema::Fate;

pub(super) const CHECK: Check = Check {
    name: "endpoints",
    claim: "the counters of our senders and receivers agree with the packets of their flows",
    run,
};

fn run(evidence: &Evidence<'_>) -> Outcome {
    let mut compared = 0;
    for flow in &evidence.cell.flows {
        let summary = evidence
            .run
            .flows
            .iter()
            .find(|summary| summary.flow == flow.flow);
        let Some(summary) = summary else {
            return Outcome::Fails(format!("run.json tells nothing about flow {}", flow.flow));
        };
        let seen = seen(evidence, flow.flow, flow.direction);
        if summary
            .receiver
            .goodput_bytes
            .is_some_and(|goodput| goodput > seen.delivered_bytes)
        {
            return Outcome::Fails(format!(
                "the receiver of flow {} got more new data than the bytes delivered to it",
                flow.flow
            ));
        }
        // The kernel counts segments and payload, which are not the packets on the wire.
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
                seen.delivered,
            ),
            (
                "receiver",
                "bytes received",
                receiver.received_bytes,
                seen.delivered_bytes,
            ),
        ];
        for (who, what, counted, found) in pairs {
            let Some(counted) = counted else { continue };
            compared += 1;
            // Between a real endpoint and the emulator lie two kernels, which may lose packets
            // (the run's verdict tells of that) but never add any.
            let fits = match who {
                _ if evidence.simulated() => counted == found,
                "sender" => counted >= found,
                _ => counted <= found,
            };
            if !fits {
                return Outcome::Fails(format!(
                    "the {who} of flow {} counted {counted} {what}, but the network saw {found}",
                    flow.flow
                ));
            }
        }
    }
    if compared == 0 {
        return Outcome::Skipped("no endpoint counted packets".into());
    }
    Outcome::Holds(format!(
        "{compared} counters of {} flows",
        evidence.cell.flows.len()
    ))
}

#[derive(Default)]
struct Seen {
    sent: u64,
    sent_bytes: u64,
    delivered: u64,
    delivered_bytes: u64,
}

/// What the network saw of the data of one flow.
fn seen(evidence: &Evidence<'_>, flow: u16, direction: crate::Direction) -> Seen {
    let mut seen = Seen::default();
    if let Some(packets) = &evidence.packets {
        for row in 0..packets.len() {
            if packets.flow[row] == flow && packets.direction[row] == direction {
                let size = u64::from(packets.size[row]);
                seen.sent += 1;
                seen.sent_bytes += size;
                if packets.fate[row] == Fate::Delivered {
                    seen.delivered += 1;
                    seen.delivered_bytes += size;
                }
            }
        }
    }
    for bin in evidence.bins.iter().flat_map(|(bins, _)| bins) {
        if bin.flow == flow && bin.direction == direction {
            seen.sent += bin.sent_packets;
            seen.sent_bytes += bin.sent_bytes;
            seen.delivered += bin.arrived_packets;
            seen.delivered_bytes += bin.arrived_bytes;
        }
    }
    seen
}
