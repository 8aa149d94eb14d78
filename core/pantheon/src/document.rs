//! Turns the logs of an imported run into a record, with explicit reasons for everything that the logs do not contain.

use crate::error::NoRun;
use crate::merged::Reading;
use crate::origin::Origin;
use crate::packets::{KIND, Packets, Shifts, element};
use crate::statistics::Statistics;
use narrows_record::{
    CapacityRow, Clock, Direction, Fingerprint, FlowSummary, Reason, RunDocument, Severity,
    Versions,
};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// Width of the bins of capacities.
const BIN_NS: u64 = 100_000_000;

/// Facts about a run in addition to its logs.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Task {
    /// Name of the cell.
    pub id: String,
    /// Label of the scheme.
    pub scheme: String,
    /// Number of the run.
    pub run: u64,
    /// Number of flows that the run was meant to have, at least 1; the logs may have others. The run does not count if
    /// no packet of one of them arrived.
    pub flows: u16,
    /// Intended duration.
    pub runtime_ns: Option<u64>,
    /// Parameters of the paths that are known, by direction: names of traces, commands of emulators.
    pub paths: BTreeMap<String, Map<String, Value>>,
    /// Facts about the scheme.
    pub fingerprint: Fingerprint,
    /// When it started (RFC 3339, UTC).
    pub started_at: Option<String>,
    /// When it ended.
    pub ended_at: Option<String>,
    /// Method by which the clocks of both ends were compared.
    pub clock: Clock,
    /// The statistics that Pantheon printed for it.
    pub printed: Option<String>,
    /// True if negative delays may come from clocks of two hosts.
    pub two_hosts: bool,
    /// Reasons that the caller adds to the verdict.
    pub reasons: Vec<Reason>,
    /// Its source, unchanged.
    pub source: Map<String, Value>,
}

/// A run in the form of its record.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// `run.json`, without the findings of the verifier.
    pub run: RunDocument,
    /// The packets.
    pub packets: Packets,
    /// Capacity of emulated links.
    pub capacity: Vec<CapacityRow>,
    /// Pantheon's numbers; `None` if nothing arrived.
    pub statistics: Option<Statistics>,
}

/// Builds a run from the logs of its data and of its acknowledgements.
///
/// # Errors
/// Logs without any packet, or too far apart to belong together.
pub fn import(
    task: &Task,
    versions: Versions,
    data: &Reading,
    ack: Option<&Reading>,
) -> Result<Outcome, NoRun> {
    if data.link.is_empty() {
        return Err(NoRun::Empty);
    }
    let ack_link = ack.map(|reading| &reading.link);
    let packets = Packets::gather(&data.link, ack_link).map_err(|days| {
        let alone = ack.is_none() || Packets::gather(&data.link, None).is_err();
        if alone {
            NoRun::Apart(days)
        } else {
            NoRun::AckApart(days)
        }
    })?;
    let capacity = packets.capacity(&data.link, ack_link, BIN_NS);
    let statistics = Statistics::compute(&data.link);
    let flows = flows(data, &packets);
    let mut run = RunDocument::new(cell(task, &packets, &flows), "import", versions);
    run.started_at.clone_from(&task.started_at);
    run.ended_at.clone_from(&task.ended_at);
    run.clock = task.clock.clone();
    run.clock.error_ns += packets.shifts.receiver_ns.unsigned_abs();
    run.elements = packets.counters();
    for counters in &mut run.elements {
        let own = capacity.iter().filter(|row| row.element == counters.name);
        counters.capacity_bytes = own.map(|row| row.bytes).reduce(|a, b| a + b);
    }
    run.flows = flows
        .into_keys()
        .map(|flow| FlowSummary {
            flow,
            scheme: task.scheme.clone(),
            fingerprint: task.fingerprint.clone(),
            ..FlowSummary::default()
        })
        .collect();
    for reason in &task.reasons {
        run.judge(reason.severity, &reason.code, reason.text.clone());
    }
    for reading in std::iter::once(data).chain(ack) {
        judge_reading(&mut run, reading);
    }
    judge_clocks(&mut run, task, packets.shifts);
    let mut kept = keep(&mut run, task, &data.flows, statistics.as_ref());
    kept.insert(
        "log".into(),
        json!(Origin::new(&packets, &data.link, ack_link)),
    );
    run.other.insert("pantheon".to_owned(), Value::Object(kept));
    Ok(Outcome {
        run,
        packets,
        capacity,
        statistics,
    })
}

/// The flows that left logs, with their first and last event.
fn flows(data: &Reading, packets: &Packets) -> BTreeMap<u16, (u64, u64)> {
    let mut flows = packets.spans();
    for &flow in &data.flows {
        flows.entry(flow).or_insert((0, packets.duration_ns));
    }
    flows
}

fn cell(task: &Task, packets: &Packets, flows: &BTreeMap<u16, (u64, u64)>) -> Value {
    let path = |direction: Direction| {
        let mut path = json!({"name": element(direction), "kind": KIND});
        if let (Some(path), Some(more)) = (path.as_object_mut(), task.paths.get(direction.word())) {
            path.extend(more.clone());
        }
        vec![path]
    };
    let flows: Vec<Value> = flows
        .iter()
        .map(|(flow, (start, stop))| {
            json!({"flow": flow, "scheme": task.scheme, "start_ns": start, "stop_ns": stop,
                   "direction": "forward", "traffic": {"kind": "bulk"}})
        })
        .collect();
    json!({
        "format": "narrows/cell/1", "id": task.id, "scheme": task.scheme, "run": task.run,
        "where": "import", "duration_ns": packets.duration_ns, "bin_ns": BIN_NS,
        "record": "packets",
        "network": {"kind": "dumbbell", "forward": path(Direction::Forward),
                    "backward": path(Direction::Backward)},
        "timeline": [], "flows": flows,
    })
}

fn judge_reading(run: &mut RunDocument, reading: &Reading) {
    if let Some(error) = &reading.stopped {
        let text = format!("A log was read up to its first flaw only ({error}).");
        run.judge(Severity::Degraded, "log", text);
    }
    if let Some(error) = &reading.disorder {
        let text = format!(
            "A log is not in the order of time ({error}): its clock was set back, or it was merged incorrectly. The first and the last packet are those by time."
        );
        run.judge(Severity::Degraded, "order", text);
    }
    if reading.strangers > 0 {
        let text = format!(
            "{} arrivals of packets that were never sent are not in the record.",
            reading.strangers
        );
        run.judge(Severity::Degraded, "strangers", text);
    }
}

fn judge_clocks(run: &mut RunDocument, task: &Task, shifts: Shifts) {
    let ms = |ns: i64| ns as f64 / 1e6;
    let between = if task.two_hosts {
        "the clocks of the two hosts disagree"
    } else {
        "the clock was set during the run"
    };
    if shifts.receiver_ns != 0 {
        let text = format!(
            "The log has negative delays, because {between}: in the record the receiver's clock is moved by {:.3} ms, the minimum that makes no delay negative. Only differences of delays are meaningful, not absolute values; Pantheon's numbers are those of the log.",
            ms(shifts.receiver_ns)
        );
        run.judge(Severity::Degraded, "clock", text);
    }
    if shifts.zeroed > 0 {
        let text = format!(
            "Even so {} delays would be negative, because the clocks drift; they are zero in the \
             record.",
            shifts.zeroed
        );
        run.judge(Severity::Degraded, "clock", text);
    }
}

/// Adds Pantheon's numbers of the run to `run.json`, and judges the run by them. `logged` are flows with separate logs.
fn keep(
    run: &mut RunDocument,
    task: &Task,
    logged: &BTreeSet<u16>,
    statistics: Option<&Statistics>,
) -> Map<String, Value> {
    let meant = (1..=task.flows).chain(logged.iter().copied()).collect();
    let refused = match statistics {
        Some(statistics) => statistics.refusal(&meant, task.runtime_ns),
        None => Some("nothing arrived".to_owned()),
    };
    if let Some(why) = &refused {
        let text = format!("Pantheon does not count this run: {why}.");
        run.judge(Severity::Invalid, "pantheon", text);
    }
    let text = statistics.map(Statistics::text);
    // Its analysis prints nothing about runs that it rejects, so an older block does not count either.
    let agrees = match (&task.printed, &text, &refused) {
        (Some(printed), Some(text), None) => Some(same(printed, text)),
        _ => None,
    };
    if agrees == Some(false) {
        let text = "The statistics that Pantheon printed for this run differ from those of its log; the log counts.";
        run.judge(Severity::Degraded, "printed", text);
    }
    let mut kept = task.source.clone();
    kept.insert("statistics".into(), json!(statistics));
    kept.insert("text".into(), json!(text));
    kept.insert("refused".into(), json!(refused));
    kept.insert("printed".into(), json!(task.printed));
    kept.insert("agrees".into(), json!(agrees));
    kept
}

fn same(printed: &str, text: &str) -> bool {
    let lines = |text: &str| -> Vec<String> {
        let lines = text.lines().map(|line| line.trim_end().to_owned());
        lines.filter(|line| !line.is_empty()).collect()
    };
    lines(printed) == lines(text)
}
