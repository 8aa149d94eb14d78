//! Elements of random loss drop packets at about their configured ratio.
//!
//! The one statistical check: a count more than six standard deviations from its expectation occurs
//! once in five hundred million correct runs.

use super::{CheckFaults, CheckOutcome, Evidence, VerifierCheck};
use serde_json::Value;

pub(super) const CHECK: VerifierCheck = VerifierCheck {
    name: "random_loss",
    claim: "elements of random loss dropped about the share of packets that they should",
    run,
};

fn run(evidence: &Evidence<'_>) -> CheckOutcome {
    let mut faults = CheckFaults::default();
    let mut found = Vec::new();
    for stage in evidence.stages.iter().filter(|stage| stage.kind == "loss") {
        if evidence.cell.changes_of(&stage.name).next().is_some() {
            // The number of packets that arrived at each ratio is not counted.
            continue;
        }
        let element = evidence.cell.network.element(&stage.name);
        let ratio = element
            .and_then(|e| e.params.get("ratio"))
            .and_then(Value::as_f64);
        let counted = evidence
            .run
            .elements
            .iter()
            .find(|counters| counters.name == stage.name);
        let (Some(ratio), Some(counted)) = (ratio, counted) else {
            continue;
        };
        let came = counted.in_packets as f64;
        let dropped = counted.dropped_packets as f64;
        let expected = ratio * came;
        // One packet more for the skew of the distribution if few are expected.
        let maximum = 6.0 * (expected * (1.0 - ratio)).max(0.0).sqrt() + 6.0;
        let certain = ratio == 0.0 || ratio == 1.0;
        if (dropped - expected).abs() > if certain { 0.0 } else { maximum } {
            faults.add(format_args!(
                "{} dropped {dropped} of {came} packets where about {expected:.0} are expected",
                stage.name
            ));
        }
        found.push(format!(
            "{} dropped {dropped} of {came} packets",
            stage.name
        ));
    }
    if found.is_empty() && faults.count == 0 {
        return CheckOutcome::Skipped("no element drops packets at random".into());
    }
    faults.outcome(|| found.join("; "))
}
