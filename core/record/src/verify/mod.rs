//! The verifier: is this record possible at all?
//!
//! From the record alone, without any code of the links that produced it, it proves that packets were neither invented
//! nor lost without trace, that none was faster than the propagation delay or the bottleneck allow, that no queue held
//! more than its limit, and that the counters of elements and endpoints agree with the packets.
//!
//! A check is one file and one word in `checks!`. A check that cannot decide, because the path has an element whose
//! behaviour is unknown or because the record keeps bins in place of packets, reports that and counts as skipped, never
//! as passed.
//!
//! ```text
//! Record -> Evidence (columns, layout of the path, time line of the bottleneck) -> checks -> Report
//! ```

/// Declares the checks in the order in which they are reported; each file has `CHECK`.
macro_rules! checks {
    ($($module:ident),+ $(,)?) => {
        $(mod $module;)+

        const CHECKS: &[VerifierCheck] = &[$($module::CHECK),+];
    };
}

checks!(
    uids,
    fates,
    copies,
    conservation,
    endpoints,
    tunnel,
    lateness,
    propagation,
    rate,
    aggregated_service,
    delay_lines,
    residence_time,
    order,
    outages,
    queue_limit,
    queue_drops,
    queue_samples,
    random_loss,
    states,
    transfers,
    frames,
);

mod element_times;
mod layout;
mod packets;
mod record_data;
mod timeline;

use crate::read::Record;
use crate::run;
use packets::Packets;
use record_data::Evidence;
use serde::Serialize;
use serde_json::{Value, json};
use std::fmt::Display;

/// One check.
struct VerifierCheck {
    /// A word for programs.
    name: &'static str,
    /// The claim that holds if it passes.
    claim: &'static str,
    run: fn(&Evidence<'_>) -> CheckOutcome,
}

/// Outcome of a check; each text is a clause or a sentence without full stop.
enum CheckOutcome {
    /// The claim holds; the text says what was checked.
    Holds(String),
    /// The claim does not hold; the text is the first contradiction.
    Fails(String),
    /// The claim cannot be decided; the text is the reason.
    Skipped(String),
}

/// The result of one check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Name of the check.
    pub name: &'static str,
    /// The claim that holds if it passes.
    pub claim: &'static str,
    /// True if nothing contradicts it.
    pub ok: bool,
    /// True if it could not be decided.
    pub skipped: bool,
    /// The finding, one sentence.
    pub detail: String,
}

/// The results of all checks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifierReport {
    /// One finding per check.
    pub findings: Vec<Finding>,
}

/// Checks everything that can be checked about `record`.
pub fn verify(record: &Record) -> VerifierReport {
    let of_files =
        |outcome: CheckOutcome| outcome.finding("files", "every file can be read and is complete");
    let evidence = match Evidence::gather(record) {
        Ok(evidence) => evidence,
        Err(error) => {
            // No other check is possible for a record that cannot be read.
            let findings = vec![of_files(CheckOutcome::Fails(error.to_string()))];
            return VerifierReport { findings };
        }
    };
    let files = of_files(CheckOutcome::Holds(evidence.summary()));
    let rest = CHECKS
        .iter()
        .map(|check| (check.run)(&evidence).finding(check.name, check.claim));
    VerifierReport {
        findings: std::iter::once(files).chain(rest).collect(),
    }
}

impl CheckOutcome {
    fn finding(self, name: &'static str, claim: &'static str) -> Finding {
        let (ok, skipped, detail) = match self {
            CheckOutcome::Holds(detail) => (true, false, detail),
            CheckOutcome::Fails(detail) => (false, false, detail),
            CheckOutcome::Skipped(detail) => (true, true, detail),
        };
        Finding {
            name,
            claim,
            ok,
            skipped,
            detail: format!("{detail}."),
        }
    }
}

impl VerifierReport {
    /// True if nothing contradicts the record.
    pub fn ok(&self) -> bool {
        self.findings.iter().all(|finding| finding.ok)
    }

    /// The findings as `run.json` keeps them.
    pub fn checks(&self) -> Vec<run::Check> {
        let check = |finding: &Finding| run::Check {
            name: finding.name.to_owned(),
            ok: finding.ok,
            skipped: finding.skipped,
            detail: finding.detail.clone(),
        };
        self.findings.iter().map(check).collect()
    }

    /// `{"ok", "checks": [{"name", "claim", "ok", "skipped", "detail"}]}`.
    pub fn to_json(&self) -> Value {
        json!({ "ok": self.ok(), "checks": self.findings })
    }
}

/// Counts contradictions and remembers the first.
#[derive(Clone, Default)]
struct CheckFaults {
    first: Option<String>,
    count: u64,
    /// Claims that held, part by part.
    held: Vec<String>,
    /// Why parts were skipped.
    skipped: Vec<String>,
}

impl CheckFaults {
    fn add(&mut self, fault: impl Display) {
        self.count += 1;
        if self.first.is_none() {
            self.first = Some(fault.to_string());
        }
    }

    /// Records the result of one part of a check, or why it was skipped.
    fn note(&mut self, part: Result<String, String>) {
        match part {
            Ok(held) => self.held.push(held),
            Err(reason) => self.skipped.push(reason),
        }
    }

    /// The outcome of a check in parts; `nothing` without any part.
    fn conclude(mut self, nothing: CheckOutcome) -> CheckOutcome {
        match (self.count, self.held.is_empty(), self.skipped.is_empty()) {
            (0, true, true) => nothing,
            (0, true, false) => CheckOutcome::Skipped(self.skipped.join("; ")),
            _ => {
                let skipped = self.skipped.iter();
                let skipped = skipped.map(|reason| format!("not checked: {reason}"));
                self.held.extend(skipped);
                let held = self.held.join("; ");
                self.outcome(|| held)
            }
        }
    }

    /// The outcome of a check of `checked` `things`; skipped for the recorded reasons if that is zero.
    fn conclude_counted(mut self, checked: u64, things: &str) -> CheckOutcome {
        if checked > 0 || self.count > 0 || self.skipped.is_empty() {
            self.held.push(format!("{checked} {things}"));
        }
        self.conclude(CheckOutcome::Holds(String::new()))
    }

    /// The outcome: `holds` unless something was added.
    fn outcome(self, holds: impl FnOnce() -> String) -> CheckOutcome {
        match self.first {
            None => CheckOutcome::Holds(holds()),
            Some(first) if self.count == 1 => CheckOutcome::Fails(first),
            Some(first) => {
                CheckOutcome::Fails(format!("{first}, and {} more like it", self.count - 1))
            }
        }
    }
}

/// Outcome of a check of packets, depending on what the record keeps.
fn on_packets(
    evidence: &Evidence<'_>,
    check: fn(&Evidence<'_>, &Packets) -> CheckOutcome,
) -> CheckOutcome {
    match &evidence.packets {
        Some(packets) => check(evidence, packets),
        None => bins_only(),
    }
}

/// Outcome of a check of packets on a record of bins.
fn bins_only() -> CheckOutcome {
    CheckOutcome::Skipped("the record keeps bins in place of packets".into())
}
