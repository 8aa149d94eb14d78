//! Quality of Outcome: how near a flow comes to the requirements of an application.

use super::{Better, Measured, Metric, Scope, Subject, metrics};
use crate::cell::Requirement;
use std::sync::LazyLock;

/// Registry entries.
pub(super) const METRICS: &[Metric] = &[ALL, LATENCY, LOSS, THROUGHPUT];

/// The requirement of scenarios without one.
static EXAMPLE: LazyLock<Requirement> = LazyLock::new(Requirement::example);

const ALL: Metric = Metric {
    name: "qoo_ratio",
    label: "quality of outcome",
    better: Some(Better::Higher),
    scope: Scope::Flow,
    definition: "The lowest of the scores of latency, loss and throughput against the scenario's requirement \
                 (measure.requirement) or, without one, the draft's example (4 Mbit/s; 99th percentile of delay 200 \
                 to 500 ms, 99.9th 300 to 600 ms; loss 1 to 5 %): 1 from the optimal values on, 0 from the \
                 unacceptable ones on, linear between. Delays are one-way, in the direction of the flow's data.",
    source: "draft-ietf-ippm-qoo-10, section 3.4",
    compute: lowest,
    ..Metric::SHARE
};

const LATENCY: Metric = Metric {
    name: "qoo_latency_ratio",
    label: "latency score",
    definition: "The lowest score of the required percentiles of one-way delay, by nearest rank; see quality of \
                 outcome.",
    compute: latency,
    ..ALL
};

const LOSS: Metric = Metric {
    name: "qoo_loss_ratio",
    label: "loss score",
    definition: "The score of the share of packets that the network dropped; see quality of outcome.",
    compute: loss,
    ..ALL
};

const THROUGHPUT: Metric = Metric {
    name: "qoo_throughput_ratio",
    label: "throughput score",
    definition: "1 if the throughput is at least the required minimum, else 0; see quality of outcome.",
    compute: throughput,
    ..ALL
};

/// The requirement that the subject is scored against.
fn requirement<'a>(subject: &Subject<'a>) -> &'a Requirement {
    let own = subject.cell.measure.requirement.as_ref();
    own.unwrap_or_else(|| &EXAMPLE)
}

/// Why a score is absent.
fn not_required(part: &str) -> String {
    format!("the requirement has no {part}")
}

/// The lowest score of what is required. A score of 0 decides even if another has no value: without arrivals no delay is
/// known.
fn lowest(subject: &Subject<'_>) -> Measured {
    let required = requirement(subject);
    let scores = [
        (!required.delays.is_empty()).then(|| latency(subject)),
        required.loss.map(|_| loss(subject)),
        required.throughput_bps.map(|_| throughput(subject)),
    ];
    let scores: Vec<Measured> = scores.into_iter().flatten().collect();
    if scores.contains(&Ok(0.0)) {
        return Ok(0.0);
    }
    let scores: Vec<f64> = scores.into_iter().collect::<Result<_, _>>()?;
    Ok(scores.into_iter().fold(1.0, f64::min))
}

fn latency(subject: &Subject<'_>) -> Measured {
    let scores = requirement(subject).delays.iter().map(|delay| {
        let value = subject.delays.percentile(delay.share);
        let value = value.ok_or_else(|| subject.nothing(super::subject::ARRIVED))?;
        Ok(delay.bounds.score(value as f64))
    });
    let scores: Vec<f64> = scores.collect::<Result<_, String>>()?;
    let worst = scores.into_iter().reduce(f64::min);
    worst.ok_or_else(|| not_required("delay"))
}

fn loss(subject: &Subject<'_>) -> Measured {
    let bounds = requirement(subject).loss;
    let bounds = bounds.ok_or_else(|| not_required("loss"))?;
    Ok(bounds.score(value_of("loss_ratio", subject)?))
}

fn throughput(subject: &Subject<'_>) -> Measured {
    let least = requirement(subject).throughput_bps;
    let least = least.ok_or_else(|| not_required("throughput"))?;
    let enough = value_of("throughput_bps", subject)? >= least as f64;
    Ok(f64::from(u8::from(enough)))
}

/// The value of another metric.
fn value_of(name: &str, subject: &Subject<'_>) -> Measured {
    let metric = metrics().find(|metric| metric.name == name);
    metric.map_or_else(
        || Err(format!("{name} is not defined")),
        |metric| metric.value(subject),
    )
}
