//! The counters of a tunnel's ends agree with the record.
//!
//! Records of runs between two real hosts are made from the logs of a tunnel, whose ends count packets independently of
//! their logs. A truncated log, or a packet that was lost between log and record, shows here.

use super::{CheckOutcome, Evidence, VerifierCheck};
use crate::schema::{Direction, Fate};
use serde_json::Value;

pub(super) const CHECK: VerifierCheck = VerifierCheck {
    name: "tunnel",
    claim: "every packet that the ends of the tunnel have counted is in the record, or was excluded because it was sent before or after the run",
    run,
};

fn run(evidence: &Evidence<'_>) -> CheckOutcome {
    if evidence.run.plane != "hosts" {
        return CheckOutcome::Holds("the packets went through no tunnel".into());
    }
    if evidence.run.has_only_ends() {
        return CheckOutcome::Skipped("there was no tunnel".into());
    }
    let Some(tunnel) = evidence.run.other.get("tunnel") else {
        return CheckOutcome::Fails("run.json says nothing about the tunnel".into());
    };
    let mut accounted = 0;
    for (sender, direction) in [Direction::Forward, Direction::Backward]
        .into_iter()
        .enumerate()
    {
        let left_out = |name: &str| number(&tunnel[direction.word()], &format!("/{name}"));
        let counted = |host: usize, what: &str| {
            let tunnel = evidence.run.hosts.get(host)?.other.get("tunnel")?;
            number(tunnel, &format!("/{what}/packets"))
        };
        let (sent, arrived) = count_seen(evidence, direction);
        let strangers = ["unknown", "again", "contradicting"];
        let strangers = strangers.into_iter().filter_map(left_out).sum::<u64>();
        let both = [
            ("sent", sender, sent, left_out("left_out_sent")),
            (
                "arrived",
                1 - sender,
                arrived,
                left_out("left_out_arrived").map(|count| count + strangers),
            ),
        ];
        for (what, host, seen, left_out) in both {
            let (Some(counted), Some(left_out)) = (counted(host, what), left_out) else {
                return CheckOutcome::Fails(format!(
                    "run.json does not say how many packets {what} {direction}"
                ));
            };
            if counted != seen + left_out {
                return CheckOutcome::Fails(format!(
                    "the tunnel counted {counted} packets that {what} {direction}, but {seen} are in the record and {left_out} were excluded"
                ));
            }
            accounted += counted;
        }
    }
    CheckOutcome::Holds(format!("{accounted} packets sent or arrived"))
}

fn number(value: &Value, pointer: &str) -> Option<u64> {
    value.pointer(pointer)?.as_u64()
}

/// Packets of the record that were sent in a direction, and those that arrived.
fn count_seen(evidence: &Evidence<'_>, direction: Direction) -> (u64, u64) {
    if let Some(packets) = &evidence.packets {
        let own = (0..packets.len()).filter(|&row| packets.direction[row] == direction);
        return own.fold((0, 0), |(sent, arrived), row| {
            let delivered = packets.fate[row] == Fate::Delivered;
            (sent + 1, arrived + u64::from(delivered))
        });
    }
    let bins = evidence.bins.iter().flat_map(|(bins, _)| bins);
    let own = bins.filter(|bin| bin.direction == direction);
    own.fold((0, 0), |(sent, arrived), bin| {
        (sent + bin.sent_packets, arrived + bin.arrived_packets)
    })
}
