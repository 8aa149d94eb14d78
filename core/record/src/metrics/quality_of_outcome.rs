//! Quality of Outcome: how near a flow comes to the requirements of an application.

use super::{Better, Measured, Metric, Scope, Subject, metrics};

/// Registry entries.
pub(super) const METRICS: &[Metric] = &[ALL, LATENCY, LOSS, THROUGHPUT];

/// A requirement: the conditions of optimal performance and those from which on performance is unacceptable.
struct Requirement {
    /// Percentiles of delay in ns, by share: optimal and unacceptable.
    delays: &'static [(f64, f64, f64)],
    /// Packet loss ratio: optimal and unacceptable.
    loss: (f64, f64),
    /// Minimum throughput in bit/s.
    throughput_bps: f64,
}

/// The draft's example, the only requirement that it states in full.
const EXAMPLE: Requirement = Requirement {
    delays: &[(0.99, 200e6, 500e6), (0.999, 300e6, 600e6)],
    loss: (0.01, 0.05),
    throughput_bps: 4e6,
};

const ALL: Metric = Metric {
    name: "qoo_ratio",
    label: "quality of outcome",
    better: Some(Better::Higher),
    scope: Scope::Flow,
    definition: "The lowest of the scores of latency, loss and throughput against the draft's example of a \
                 requirement (4 Mbit/s; 99th percentile of delay 200 to 500 ms, 99.9th 300 to 600 ms; loss 1 to 5 %): \
                 1 from the optimal values on, 0 from the unacceptable ones on, linear between. Delays are one-way, \
                 in the direction of the flow's data.",
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

/// The lowest score. A score of 0 decides even if another has no value: without arrivals no delay is known.
fn lowest(subject: &Subject<'_>) -> Measured {
    let scores = [latency(subject), loss(subject), throughput(subject)];
    if scores.contains(&Ok(0.0)) {
        return Ok(0.0);
    }
    let scores: Vec<f64> = scores.into_iter().collect::<Result<_, _>>()?;
    Ok(scores.into_iter().fold(1.0, f64::min))
}

fn latency(subject: &Subject<'_>) -> Measured {
    let mut worst = 1.0_f64;
    for &(share, optimal, unacceptable) in EXAMPLE.delays {
        let delay = subject.delays.percentile(share);
        let delay = delay.ok_or_else(|| subject.nothing(super::subject::ARRIVED))?;
        worst = worst.min(score(delay as f64, optimal, unacceptable));
    }
    Ok(worst)
}

fn loss(subject: &Subject<'_>) -> Measured {
    let (optimal, unacceptable) = EXAMPLE.loss;
    Ok(score(
        value_of("loss_ratio", subject)?,
        optimal,
        unacceptable,
    ))
}

fn throughput(subject: &Subject<'_>) -> Measured {
    let enough = value_of("throughput_bps", subject)? >= EXAMPLE.throughput_bps;
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

/// 1 at or below `optimal`, 0 at or above `unacceptable`, linear between.
fn score(value: f64, optimal: f64, unacceptable: f64) -> f64 {
    (1.0 - (value - optimal) / (unacceptable - optimal)).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[allow(clippy::float_cmp)] // Quarters are exact.
    fn scores_of_the_drafts_example() {
        let [(_, low, high), (_, low_tail, high_tail)] = EXAMPLE.delays else {
            panic!("two percentiles");
        };
        assert_eq!(score(350e6, *low, *high), 0.5);
        assert_eq!(score(375e6, *low_tail, *high_tail), 0.75);
        assert!((score(0.02, EXAMPLE.loss.0, EXAMPLE.loss.1) - 0.75).abs() < 1e-12);
        assert_eq!((score(1.0, 2.0, 3.0), score(4.0, 2.0, 3.0)), (1.0, 0.0));
    }
}
