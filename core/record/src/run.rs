//! `run.json`: what ran, on what, how it ended and how the run is judged.

mod counters;

pub use counters::{
    BpfFingerprint, ElementCounters, Fingerprint, FlowSummary, Offered, ReceiverCounters,
    SenderCounters,
};

use crate::RecordError;
use crate::histogram::Histogram;
use crate::schema::RUN_FILE;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Name and major version of the format that this version writes and reads.
const FORMAT: &str = "narrows/run/";
const MAJOR: u32 = 1;

/// The document `run.json`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunDocument {
    /// `narrows/run/1`; a minor version may follow (`narrows/run/1.2`).
    pub format: String,
    /// The cell as it was given.
    pub cell: Value,
    /// `simulate`, `emulate`, `hosts`, or `import` of a run that others measured.
    pub plane: String,
    /// Versions of the program that wrote the record.
    pub versions: Versions,
    /// The machine, if the run depended on exactly one.
    pub host: Option<Host>,
    /// Settings in force inside each host, and the machines of real hosts; empty when simulated.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<HostSettings>,
    /// Start of the run by the wall clock (RFC 3339, UTC), if it depended on one.
    pub started_at: Option<String>,
    /// End of the run by the wall clock.
    pub ended_at: Option<String>,
    /// Agreement of the clocks at both ends.
    #[serde(default)]
    pub clock: Clock,
    /// Per flow: what ran and what its endpoints counted.
    #[serde(default)]
    pub flows: Vec<FlowSummary>,
    /// Per element: what it counted.
    #[serde(default)]
    pub elements: Vec<ElementCounters>,
    /// Exits of the processes of the run.
    #[serde(default)]
    pub processes: Vec<Process>,
    /// Lateness with which packets were released, if in real time.
    pub lateness: Option<Lateness>,
    /// Counters of the rings that packets were read from.
    #[serde(default)]
    pub rings: Vec<Ring>,
    /// Use of the processors, if it mattered.
    pub cpu: Option<Cpu>,
    /// The judgement of the run.
    pub verdict: Verdict,
    /// The reasons for the verdict.
    #[serde(default)]
    pub reasons: Vec<Reason>,
    /// Checks made when the record was written.
    #[serde(default)]
    pub checks: Vec<Check>,
    /// Fields of newer minor versions, preserved.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

impl RunDocument {
    /// True if packets were not observed between the ends of flows: a run between two hosts without a tunnel.
    pub fn has_only_ends(&self) -> bool {
        self.plane == "hosts" && self.other.get("tunnel").is_some_and(Value::is_null)
    }

    /// True if an imported run was measured at one end of its flows only: losses and one-way delays are not known.
    pub fn saw_one_end(&self) -> bool {
        let import = self.other.get("import");
        self.plane == "import" && import.is_some_and(|import| import["ends"] == "one")
    }

    /// A document for `cell`, with nothing counted yet.
    pub fn new(cell: Value, plane: &str, versions: Versions) -> Self {
        RunDocument {
            format: format!("{FORMAT}{MAJOR}"),
            cell,
            plane: plane.to_owned(),
            versions,
            ..RunDocument::default()
        }
    }

    /// Reads `run.json`. Older minor versions and fields of newer ones are accepted.
    ///
    /// # Errors
    /// Text that is not such a document, or one of a newer major version.
    pub fn parse(text: &[u8]) -> Result<Self, RecordError> {
        #[derive(Deserialize)]
        struct Head {
            format: Option<String>,
        }
        let error = |problem: String| RecordError::data(RUN_FILE, problem);
        let head: Head = serde_json::from_slice(text)
            .map_err(|e| error(format!("this is not a JSON document of a run ({e})")))?;
        check_format(head.format.as_deref())?;
        serde_json::from_slice(text)
            .map_err(|e| error(format!("a field of the document is missing or wrong ({e})")))
    }

    /// The text of `run.json`, with a newline at the end.
    pub fn to_text(&self) -> String {
        let mut text = serde_json::to_string_pretty(self)
            .expect("a run document has string keys and finite numbers");
        text.push('\n');
        text
    }

    /// Adds a reason and lowers the verdict to its severity.
    pub fn judge(&mut self, severity: Severity, code: &str, text: impl Into<String>) {
        self.verdict = self.verdict.max(severity.verdict());
        self.reasons.push(Reason {
            code: code.to_owned(),
            severity,
            text: text.into(),
        });
    }
}

fn check_format(format: Option<&str>) -> Result<(), RecordError> {
    let refuse = |problem: String| Err(RecordError::data(RUN_FILE, problem));
    let Some(format) = format else {
        return refuse("the document has no 'format', so it is not the record of a run".into());
    };
    let major = format
        .strip_prefix(FORMAT)
        .and_then(|version| version.split('.').next())
        .and_then(|major| major.parse::<u32>().ok());
    match major {
        Some(MAJOR) => Ok(()),
        Some(newer) if newer > MAJOR => refuse(format!(
            "the record has format '{format}', and this version reads '{FORMAT}{MAJOR}' and older; \
             install a newer version of Narrows to read it"
        )),
        _ => refuse(format!(
            "the format '{format}' is not that of a run ('{FORMAT}{MAJOR}')"
        )),
    }
}

/// Versions of the program that wrote the record.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Versions {
    /// Version of Narrows.
    pub narrows: String,
    /// Hash of the source, if known.
    pub git: Option<String>,
    /// Crates of users that were built in.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub extensions: Vec<Extension>,
}

/// A crate of a user that was built in.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Extension {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// SHA-256 of its sources.
    pub sha256: String,
}

/// The machine of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Host {
    /// Release of the kernel.
    pub kernel: String,
    /// Model of the processor.
    pub cpu_model: String,
    /// Number of processors.
    pub cpus: u32,
    /// Size of the memory.
    pub memory_bytes: u64,
    /// Source of the kernel's clock.
    pub clocksource: String,
    /// Settings of the kernel that bear on the run.
    pub sysctls: Map<String, Value>,
    /// Fields of newer minor versions, preserved.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// The settings of one host.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct HostSettings {
    /// Name of the host in the cell.
    pub name: String,
    /// Settings of its kernel that bear on the run, as read back.
    pub sysctls: Map<String, Value>,
    /// Fields of newer minor versions, preserved.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// Agreement of the clocks at both ends.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Clock {
    /// Receiver's clock less sender's.
    pub offset_ns: i64,
    /// Bound of the error of the offset.
    pub error_ns: u64,
    /// Fields of newer minor versions, preserved.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// Exit of a process of the run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    /// Its purpose.
    pub name: String,
    /// Its exit status, if it ended by itself.
    pub exit: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// True if it ended as it should.
    pub expected: bool,
    /// Processor time that it used, in ns, if it reported that. The kernel's work for it in interrupts is not included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_ns: Option<u64>,
}

/// Lateness with which packets were released after the model's time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lateness {
    /// Packets released.
    pub packets: u64,
    /// Median.
    pub p50_ns: u64,
    /// 90th percentile.
    pub p90_ns: u64,
    /// 99th percentile.
    pub p99_ns: u64,
    /// 99.9th percentile.
    pub p999_ns: u64,
    /// Largest.
    pub max_ns: u64,
}

impl Lateness {
    /// The quantiles of the packets' lateness in ns; zeros without packets.
    pub fn from_histogram(packets: &Histogram) -> Self {
        let at = |p| packets.quantile(p).unwrap_or(0);
        Lateness {
            packets: packets.total(),
            p50_ns: at(0.5),
            p90_ns: at(0.9),
            p99_ns: at(0.99),
            p999_ns: at(0.999),
            max_ns: packets.max().unwrap_or(0),
        }
    }

    /// The larger of each quantile, for packets that different threads have released.
    #[must_use]
    pub fn worst(&self, other: &Lateness) -> Self {
        Lateness {
            packets: self.packets + other.packets,
            p50_ns: self.p50_ns.max(other.p50_ns),
            p90_ns: self.p90_ns.max(other.p90_ns),
            p99_ns: self.p99_ns.max(other.p99_ns),
            p999_ns: self.p999_ns.max(other.p999_ns),
            max_ns: self.max_ns.max(other.max_ns),
        }
    }
}

/// Counters of a ring that packets were read from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ring {
    /// Host on the other side.
    pub port: String,
    /// Packets read.
    pub received: u64,
    /// Packets that found the ring full.
    pub dropped: u64,
}

/// Shares of processor time during the run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Cpu {
    /// Share of one processor that the emulator used; that of its busiest thread if there are several.
    pub emulator_ratio: f64,
    /// Threads of the emulator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub emulator_threads: Option<u32>,
    /// Share of all processors that was busy with anything.
    pub busy_ratio: f64,
    /// Share of all processors that the hypervisor took.
    pub stolen_ratio: f64,
}

/// Judgement of a run, from best to worst.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Nothing limits the use of the run.
    #[default]
    Ok,
    /// To be interpreted with the reasons.
    Degraded,
    /// Not usable as a result.
    Invalid,
}

/// Severity of a reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Worth knowing.
    Note,
    /// Makes the run degraded.
    Degraded,
    /// Makes the run invalid.
    Invalid,
}

impl Severity {
    /// The verdict on a run with such a reason and no worse one.
    pub const fn verdict(self) -> Verdict {
        match self {
            Severity::Note => Verdict::Ok,
            Severity::Degraded => Verdict::Degraded,
            Severity::Invalid => Verdict::Invalid,
        }
    }

    /// Invalid if something is beyond a limit, else degraded.
    pub const fn invalid_if(beyond: bool) -> Severity {
        if beyond {
            Severity::Invalid
        } else {
            Severity::Degraded
        }
    }
}

/// One reason of a verdict.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reason {
    /// A word for programs to match.
    pub code: String,
    /// Its severity.
    pub severity: Severity,
    /// One sentence for people.
    pub text: String,
}

/// Result of one check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    /// Name of the check.
    pub name: String,
    /// True if nothing contradicts it; a skipped check contradicts nothing.
    pub ok: bool,
    /// True if it could not be decided, so that `ok` does not imply that it holds.
    #[serde(default)]
    pub skipped: bool,
    /// The finding, or the reason for skipping it, one sentence.
    pub detail: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document() -> RunDocument {
        RunDocument::new(
            serde_json::json!({"format": "narrows/cell/1", "id": "reno-r1"}),
            "simulate",
            Versions {
                narrows: "0.1.0".into(),
                git: None,
                extensions: Vec::new(),
            },
        )
    }

    #[test]
    fn documents_survive_writing_and_reading() {
        let mut run = document();
        run.judge(Severity::Note, "seed", "The seed was given.");
        assert_eq!(run.verdict, Verdict::Ok);
        run.judge(Severity::Invalid, "lateness", "The emulator was late.");
        run.judge(Severity::Degraded, "cpu", "The machine was busy.");
        assert_eq!(run.verdict, Verdict::Invalid);
        assert_eq!(RunDocument::parse(run.to_text().as_bytes()).unwrap(), run);
    }

    #[test]
    fn minor_versions_are_accepted_and_kept() {
        let mut value = serde_json::to_value(document()).unwrap();
        value["format"] = "narrows/run/1.7".into();
        value["invented_later"] = 5.into();
        value.as_object_mut().unwrap().remove("rings");
        let run = RunDocument::parse(value.to_string().as_bytes()).unwrap();
        assert_eq!(run.other["invented_later"], 5);
        assert!(run.rings.is_empty());
    }

    #[test]
    fn checks_say_whether_they_were_skipped() {
        let check: Check =
            serde_json::from_str(r#"{"name":"uids","ok":true,"detail":"As before."}"#).unwrap();
        assert!(
            !check.skipped,
            "a record without the field says nothing about it"
        );
        let mut run = document();
        run.checks.push(Check {
            skipped: true,
            ..check
        });
        assert!(run.to_text().contains(r#""skipped": true"#));
        assert_eq!(RunDocument::parse(run.to_text().as_bytes()).unwrap(), run);
    }

    #[test]
    fn other_formats_are_refused_in_one_sentence() {
        for (format, says) in [
            ("\"narrows/run/2\"", "install a newer version of Narrows"),
            ("\"narrows/results/1\"", "is not that of a run"),
            ("\"narrows/run/x\"", "is not that of a run"),
            ("null", "has no 'format'"),
        ] {
            let error = RunDocument::parse(format!("{{\"format\":{format}}}").as_bytes());
            let text = error.unwrap_err().to_string();
            assert!(
                text.starts_with("run.json: ") && text.contains(says),
                "{text}"
            );
        }
        assert!(RunDocument::parse(b"[]").is_err());
        assert!(RunDocument::parse(b"\xff").is_err());
        let text = RunDocument::parse(b"{\"format\":\"narrows/run/1\"}")
            .unwrap_err()
            .to_string();
        assert!(text.contains("missing field `cell`"), "{text}");
    }
}
