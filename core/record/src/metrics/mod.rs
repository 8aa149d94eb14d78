//! Numbers that describe a run, each defined once.
//!
//! A metric is one file and one word in `metrics!`. Tables, JSON documents, the definitions shown
//! to readers and the statistics over runs all derive from the registry. Metrics see a
//! [`Subject`], which is one flow or all flows together, and never know whether the record holds
//! packets or bins.

/// Declares the metrics of a distribution of delays: `$first` in front, then its percentiles.
macro_rules! percentiles {
    (
        $name:literal, $label:literal, $of:literal, $percentile:path, $base:path,
        [$($first:expr),*], [$($p:literal $word:literal $begin:literal),*], [$($last:expr),*]
    ) => {
        pub(super) const METRICS: &[Metric] = &[
            $($first,)*
            $(Metric {
                name: concat!($name, "_p", $p, "_ns"),
                label: concat!($word, " ", $label),
                definition: concat!($begin, " ", $of),
                compute: |subject| $percentile(subject, $p as f64 / 100.0),
                ..$base
            },)*
            $($last,)*
        ];
    };
}

/// Declares the metrics, file by file in the order in which tables show them; each has `METRICS`.
macro_rules! metrics {
    ($($module:ident),+ $(,)?) => {
        $(mod $module;)+

        const METRICS: &[&[Metric]] = &[$($module::METRICS),+];
    };
}

metrics!(
    throughput,
    goodput,
    delay,
    queueing_delay,
    loss,
    utilization,
    jain,
    throughput_ratio,
    retransmitted,
    rtt,
    drop_ratio,
    loss_events,
    completion,
    datagrams,
    frame_delay,
    frame_loss,
    freezes,
    media_rate,
    offered,
    time_scales,
    convergence,
    responsiveness,
    quality_of_outcome,
);

mod bytes_per_second;
mod distribution;
mod group;
mod links;
mod rtt_samples;
pub mod states;
mod subject;
mod traffic;

pub use distribution::DelayDistribution;
pub use group::Group;
pub use links::LinkTraffic;
pub use rtt_samples::RttSamples;
pub use subject::{FramesOfFlow, StatesOfFlow, Subject};
pub use traffic::{DroppedPacket, FlowTraffic, RecordTraffic};

use crate::RecordError;
use crate::capacity::Capacities;
use crate::cell::Measure;
use crate::read::{Record, read_completions, read_frames, read_traces, read_transfers, rows_of};
use crate::rows::for_each;
use crate::schema::{RUN_FILE, StateRow, TraceRow};
use serde_json::{Map, Value, json};
use std::cell::OnceCell;
use std::collections::BTreeMap;
use subject::Material;

/// All metrics, in the order in which tables show them.
pub fn metrics() -> impl Iterator<Item = &'static Metric> {
    METRICS.iter().copied().flatten()
}

/// A value, or the reason why it is absent (a clause without full stop).
pub type Measured = Result<f64, String>;

/// One metric.
#[derive(Clone, Copy, Debug)]
pub struct Metric {
    /// Name in files, ending in the unit.
    pub name: &'static str,
    /// Name for people.
    pub label: &'static str,
    /// Unit of the value.
    pub unit: &'static str,
    /// Unit for people.
    pub show_unit: &'static str,
    /// Factor from the unit to the one for people.
    pub show_scale: f64,
    /// Direction in which it is better, if there is one.
    pub better: Option<Better>,
    /// Its subjects.
    pub scope: Scope,
    /// The part of a scenario that it is about; `None` if every scenario has a value.
    pub group: Option<Group>,
    /// The metric that is 1 in runs in which the event timed by this metric happened, and 0 in the others. Runs in
    /// which it did not happen have no value, so that a mean over the runs would be meaningless.
    pub happened: Option<&'static str>,
    /// One or two sentences shown to readers.
    pub definition: &'static str,
    /// Where the definition comes from.
    pub source: &'static str,
    /// The computation.
    pub compute: fn(&Subject<'_>) -> Measured,
}

/// Direction in which a metric is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// More is better.
    Higher,
    /// Less is better.
    Lower,
}

/// Subjects of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Single flows.
    Flow,
    /// All flows of a cell together.
    All,
    /// Both.
    Both,
    /// All flows together, and bottlenecks that are measured by name.
    AllAndLinks,
    /// Single flows, all together, and bottlenecks.
    Any,
}

impl Metric {
    /// A time of single flows and of all together; less is better.
    pub const TIME: Metric = Metric::measured_in("ns", "ms", 1e-6, Better::Lower);
    /// A share; less is better.
    pub const SHARE: Metric = Metric::measured_in("1", "%", 100.0, Better::Lower);
    /// A number; less is better.
    pub const NUMBER: Metric = Metric::measured_in("1", "", 1.0, Better::Lower);
    /// A rate; more is better.
    pub const RATE: Metric = Metric::measured_in("bit/s", "Mbit/s", 1e-6, Better::Higher);

    const fn measured_in(
        unit: &'static str,
        show_unit: &'static str,
        show_scale: f64,
        better: Better,
    ) -> Metric {
        Metric {
            name: "",
            label: "",
            unit,
            show_unit,
            show_scale,
            better: Some(better),
            scope: Scope::Both,
            group: None,
            happened: None,
            definition: "",
            source: "",
            compute: |_| Err("it is not defined".into()),
        }
    }

    fn fits(&self, subject: &Subject<'_>) -> Result<(), String> {
        if subject.link.is_some() {
            return match self.scope {
                Scope::AllAndLinks | Scope::Any => Ok(()),
                _ => Err("it is not defined for links".into()),
            };
        }
        if subject.mixes_directions() {
            return Err("the flows went in both directions, so that a common value would be meaningless; each has its own value"
                .into());
        }
        match (self.scope, subject.flow) {
            (Scope::Flow, None) => Err("it is defined for single flows only".into()),
            (Scope::All | Scope::AllAndLinks, Some(_)) => {
                Err("it is defined for all flows together only".into())
            }
            _ => Ok(()),
        }
    }

    /// The value for `subject`.
    pub fn value(&self, subject: &Subject<'_>) -> Measured {
        self.fits(subject)?;
        (self.compute)(subject)
    }

    /// The description as JSON.
    pub fn to_json(&self) -> Value {
        json!({
            "name": self.name,
            "label": self.label,
            "unit": self.unit,
            "show_unit": self.show_unit,
            "show_scale": self.show_scale,
            "better": self.better.map(|better| match better {
                Better::Higher => "higher",
                Better::Lower => "lower",
            }),
            "scope": match self.scope {
                Scope::Flow => "flow",
                Scope::All | Scope::AllAndLinks => "all",
                Scope::Both | Scope::Any => "both",
            },
            "links": matches!(self.scope, Scope::AllAndLinks | Scope::Any),
            "happened": self.happened,
            "group": self.group.map(Group::name),
            "no_subject": self.group.and_then(Group::no_subject),
            "definition": self.definition,
            "source": self.source,
        })
    }
}

/// The registry as JSON: a list of descriptions.
pub fn registry() -> Value {
    metrics().map(Metric::to_json).collect()
}

/// All metrics of a record, per flow and for all flows together: `{"span_ns", "flows": [{"flow", "scheme", "metrics"}],
/// "absent": {flow: {metric: reason}}}`. Rows of background flows have `"background": true` and are not part of `all`.
/// Bottlenecks that the scenario asks for are in `"links": [{"link", "metrics", "absent"}]`.
///
/// # Errors
/// A damaged or contradictory record.
pub fn measure(record: &Record) -> Result<Value, RecordError> {
    measure_by(&metrics().collect::<Vec<_>>(), record)
}

/// The same for some metrics, which need not be in the registry.
///
/// # Errors
/// A damaged or contradictory record.
pub fn measure_by(metrics: &[&Metric], record: &Record) -> Result<Value, RecordError> {
    let material = gather(record)?;
    let mut rows = Vec::new();
    let mut absent = Map::new();
    let mut add = |subject: &Subject<'_>, scheme: &str, background: bool| {
        let label = subject.label();
        let (values, reasons) = values(metrics.iter().copied(), subject);
        let mut row = json!({"flow": label, "scheme": scheme, "metrics": values});
        if background {
            row["background"] = json!(true);
        }
        rows.push(row);
        if !reasons.is_empty() {
            absent.insert(label, Value::Object(reasons));
        }
    };
    for (index, flow) in record.cell.flows.iter().enumerate() {
        let subject = Subject::for_flow(&material, index);
        add(&subject, &flow.scheme, flow.background);
    }
    let all = Subject::for_all(&material);
    add(&all, &record.cell.scheme, false);
    let mut result = json!({ "span_ns": all.span_ns().ok(), "flows": rows, "absent": absent });
    let named = &record.cell.measure.links;
    if !named.is_empty() {
        let links = named
            .iter()
            .map(|name| measure_link(metrics, &material, name));
        result["links"] = links.collect::<Result<Vec<Value>, RecordError>>()?.into();
    }
    Ok(result)
}

/// The values of metrics by their names, and the reasons why some are absent.
fn values<'a>(
    metrics: impl Iterator<Item = &'a Metric>,
    subject: &Subject<'_>,
) -> (Map<String, Value>, Map<String, Value>) {
    let (mut values, mut reasons) = (Map::new(), Map::new());
    for metric in metrics {
        let value = metric.value(subject).map_or_else(
            |reason| {
                reasons.insert(metric.name.into(), json!(reason));
                Value::Null
            },
            |value| json!(value),
        );
        values.insert(metric.name.into(), value);
    }
    (values, reasons)
}

/// The metrics of one bottleneck that are defined for it.
fn measure_link(
    metrics: &[&Metric],
    material: &Material<'_>,
    name: &str,
) -> Result<Value, RecordError> {
    let mut links = material.traffic.links.iter();
    let link = links.find(|link| link.name == name).ok_or_else(|| {
        let problem = format!("the cell measures {name}, which is not an element of its network");
        RecordError::data(RUN_FILE, problem)
    })?;
    let subject = Subject::for_link(material, link);
    let defined = metrics.iter().copied();
    let defined = defined.filter(|metric| metric.fits(&subject).is_ok());
    let (values, reasons) = values(defined, &subject);
    Ok(json!({"link": name, "metrics": values, "absent": reasons}))
}

/// Reads everything that metrics use, once.
fn gather(record: &Record) -> Result<Material<'_>, RecordError> {
    let flows = &record.cell.flows;
    let mut told = vec![StatesOfFlow::default(); flows.len()];
    let places: BTreeMap<u16, usize> = flows.iter().map(|flow| flow.flow).zip(0..).collect();
    for_each(record.states.as_ref(), |row: &StateRow| {
        let Some(&index) = places.get(&row.flow) else {
            return;
        };
        let own = &mut told[index];
        // The kernel reports only its smoothed value.
        if let Some(rtt) = row.rtt_ns.or(row.srtt_ns) {
            own.rtts
                .push(row.time_ns, rtt, record.cell.measure.counts(row.time_ns));
        }
        if let Some(bytes) = row.delivered_bytes
            && record.cell.measure.counts(row.time_ns)
        {
            let now = (row.time_ns, bytes);
            let (first, _) = own.delivered.unwrap_or((now, now));
            own.delivered = Some((first, now));
        }
    })?;
    for own in &mut told {
        own.rtts.settle();
    }
    let transfers = rows_of(record.transfers.as_ref(), read_transfers)?;
    let completions = rows_of(record.completions.as_ref(), read_completions)?;
    let frames = rows_of(record.frames.as_ref(), read_frames)?;
    let targets = if frames.is_empty() {
        BTreeMap::new()
    } else {
        let traces = rows_of(record.traces.as_ref(), read_traces)?;
        targets(&traces, &record.cell.measure)
    };
    Ok(Material {
        record,
        traffic: RecordTraffic::gather(record)?,
        capacities: Capacities::gather(record)?,
        transfers,
        frames,
        targets,
        states: told,
        completions,
        shared_span_ns: record.cell.shared_span_ns(),
        congestion: OnceCell::new(),
    })
}

/// The trace in which schemes that control an encoder record the bitrate that they ask for.
const TARGET: &str = "target_bps";

/// The mean target of each flow that reported one.
fn targets(traces: &[TraceRow], measure: &Measure) -> BTreeMap<u16, f64> {
    let mut sums: BTreeMap<u16, (f64, u64)> = BTreeMap::new();
    let told = traces.iter().filter(|row| row.name == TARGET);
    for row in told.filter(|row| measure.counts(row.time_ns)) {
        let (sum, count) = sums.entry(row.flow).or_default();
        *sum += row.value;
        *count += 1;
    }
    let means = sums.into_iter();
    means
        .map(|(flow, (sum, count))| (flow, sum / count as f64))
        .collect()
}
