//! No packet was released before the time that the model asked for.

use super::{CheckFaults, CheckOutcome, Evidence, Packets, VerifierCheck, on_packets};
use crate::log::NOT_ARRIVED;

pub(super) const CHECK: VerifierCheck = VerifierCheck {
    name: "lateness",
    claim: "no packet was released before the model's time, and in simulation none after it",
    run: |evidence| on_packets(evidence, run),
};

fn run(evidence: &Evidence<'_>, packets: &Packets) -> CheckOutcome {
    if !evidence.modelled() {
        return CheckOutcome::Skipped("packets of a real path are not released by a model".into());
    }
    let mut faults = CheckFaults::default();
    let mut maximum = 0;
    for row in (0..packets.len()).filter(|&row| packets.arrived[row] != NOT_ARRIVED) {
        let (uid, late) = (packets.uid[row], packets.late[row]);
        maximum = maximum.max(late);
        if late < 0 {
            faults.add(format_args!(
                "packet {uid} was released {} ns early",
                late.unsigned_abs()
            ));
        } else if late > 0 && evidence.simulated() {
            faults.add(format_args!("packet {uid} was simulated {late} ns late"));
        }
    }
    faults.outcome(|| format!("the latest packet was {maximum} ns late"))
}
