//! The verifier: is this record possible at all?
//!
//! From the record alone, and without any code of the links that produced it, it proves that
//! packets were neither invented nor lost without a witness, that none was faster than the
//! propagation delay or the bottleneck allow, that no queue held more than its limit, and that the
//! counters of elements and endpoints tell the same story as the packets.
//!
//! A check is one file and one word in `checks!`. A check that cannot decide, because the path has
//! an element whose behaviour it does not know or because the record keeps bins in place of
//! packets, says so and is counted as skipped, never as passed.
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

mod layout;
mod passing;
mod record_data;
mod timeline;

use crate::read::Record;
use crate::run;
use record_data::Evidence;
use serde_json::{Value, json};

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
    /// The claim holds; on what it rests.
    Holds(String),
    /// The claim does not hold; the first contradiction.
    Fails(String),
    /// It cannot be decided; why.
    Skipped(String),
}

/// The result of one check.
#[derive(Clone, Debug, PartialEq, Eq)]
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
    let readable = "every file can be read and is whole";
    let evidence = match Evidence::gather(record) {
        Ok(evidence) => evidence,
        Err(error) => {
            // Nothing else can be said about a record that cannot be read.
            let detail = format!("{error}.");
            let finding = Finding {
                name: "files",
                claim: readable,
                ok: false,
                skipped: false,
                detail,
            };
            return VerifierReport {
                findings: vec![finding],
            };
        }
    };
    let files = Finding {
        name: "files",
        claim: readable,
        ok: true,
        skipped: false,
        detail: evidence.summary(),
    };
    let rest = CHECKS.iter().map(|check| {
        let (ok, skipped, detail) = match (check.run)(&evidence) {
            CheckOutcome::Holds(detail) => (true, false, format!("{detail}.")),
            CheckOutcome::Fails(detail) => (false, false, format!("{detail}.")),
            CheckOutcome::Skipped(detail) => (true, true, format!("{detail}.")),
        };
        Finding {
            name: check.name,
            claim: check.claim,
            ok,
            skipped,
            detail,
        }
    });
    VerifierReport {
        findings: std::iter::once(files).chain(rest).collect(),
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
        let checks: Vec<Value> = self
            .findings
            .iter()
            .map(|f| {
                json!({"name": f.name, "claim": f.claim, "ok": f.ok, "skipped": f.skipped,
                       "detail": f.detail})
            })
            .collect();
        json!({ "ok": self.ok(), "checks": checks })
    }
}

/// Counts contradictions and remembers the first.
#[derive(Default)]
struct CheckFaults {
    first: Option<String>,
    count: u64,
}

impl CheckFaults {
    fn add(&mut self, describe: impl FnOnce() -> String) {
        self.count += 1;
        if self.first.is_none() {
            self.first = Some(describe());
        }
    }

    /// The outcome of a check made part by part: what `held`, and why parts were `skipped`. Without
    /// any part, `nothing` says what was missing.
    fn conclude(self, mut held: Vec<String>, skipped: &[String], nothing: &str) -> CheckOutcome {
        match (self.count, held.is_empty(), skipped.is_empty()) {
            (0, true, true) => CheckOutcome::Skipped(nothing.to_owned()),
            (0, true, false) => CheckOutcome::Skipped(skipped.join("; ")),
            _ => self.outcome(|| {
                let parts = skipped
                    .iter()
                    .map(|reason| format!("not checked: {reason}"));
                held.extend(parts);
                held.join("; ")
            }),
        }
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

/// Outcome of a check of packets on a record of bins.
fn bins_only() -> CheckOutcome {
    CheckOutcome::Skipped("the record keeps bins in place of packets".into())
}
