//! Responsiveness under working conditions: round trips per minute while the path carries a load.

use super::{Better, Group, Measured, Metric, Scope, Subject};
use crate::cell::{CellFlow, KeptTransfers};

/// Registry entries.
pub(super) const METRICS: &[Metric] = &[BOTH, FOREIGN, LOADED];

/// The final value rests on the last four intervals of 5 s (MAD and ID of the draft).
const WINDOW_NS: u64 = 20_000_000_000;
/// Probes ask for 1 byte; larger answers count while they fit in one packet.
const LARGEST_ANSWER: u64 = 1400;
/// Nanoseconds of a minute.
const MINUTE_NS: f64 = 60e9;

const BOTH: Metric = Metric {
    name: "responsiveness_rpm",
    label: "responsiveness",
    unit: "1/min",
    show_unit: "RPM",
    show_scale: 1.0,
    better: Some(Better::Higher),
    scope: Scope::All,
    group: Some(Group::Transfers),
    definition: "Round trips per minute under load: the mean of the responsiveness on separate connections and on \
                 those of the load, over the last 20 s in which all bulk flows run.",
    source: "draft-ietf-ippm-responsiveness-09, section 5.3.1, without TLS",
    compute: |subject| Ok(f64::midpoint(foreign(subject)?, loaded(subject)?)),
    ..Metric::NUMBER
};

const FOREIGN: Metric = Metric {
    name: "foreign_responsiveness_rpm",
    label: "responsiveness on separate connections",
    definition: "One minute divided by the trimmed mean (without the longest 5 %) of the times of the exchanges of \
                 `requests` flows with open connections and answers of at most 1400 bytes. The handshake of new \
                 connections, the draft's other component, is not measured.",
    compute: foreign,
    ..BOTH
};

const LOADED: Metric = Metric {
    name: "loaded_responsiveness_rpm",
    label: "responsiveness on connections of the load",
    definition: "One minute divided by the trimmed mean (without the longest 5 %) of the round-trip times of the \
                 senders of bulk flows, weighted by time: the draft's substitute for exchanges on these connections.",
    compute: loaded,
    ..BOTH
};

/// The last part of the time in which all bulk flows under test run, if a flow probes the path.
fn window(subject: &Subject<'_>) -> Result<(u64, u64), String> {
    let cell = subject.cell;
    if !cell.flows_under_test().any(is_probe) {
        return Err("no flow of requests over open connections probes the path".into());
    }
    let load = || cell.flows_under_test().filter(|flow| is_load(flow));
    let from = load().map(|flow| flow.start_ns).max();
    let to = load().map(|flow| flow.stop_ns.min(cell.duration_ns)).min();
    let (Some(from), Some(to)) = (from, to) else {
        return Err("no bulk flow loads the path".into());
    };
    let (first, last) = cell.measure.span_ns().unwrap_or((0, u64::MAX));
    let to = to.min(last);
    let from = from.max(first).max(to.saturating_sub(WINDOW_NS));
    if from >= to {
        return Err("the bulk flows never run all at the same time".into());
    }
    Ok((from, to))
}

fn is_load(flow: &CellFlow) -> bool {
    flow.traffic.kind == "bulk"
}

fn is_probe(flow: &CellFlow) -> bool {
    flow.traffic.kind == "requests" && flow.traffic.persistent != Some(false)
}

fn foreign(subject: &Subject<'_>) -> Measured {
    if subject.cell.transfers != KeptTransfers::All {
        return Err("the scenario does not keep each transfer (transfers: all)".into());
    }
    let (from, to) = window(subject)?;
    let probes = subject.transfers().filter(|row| {
        let flow = subject.cell.flow(row.flow);
        flow.is_some_and(is_probe) && row.bytes <= LARGEST_ANSWER && row.started_ns >= from
    });
    let complete = probes.filter_map(|row| {
        let ended = row.ended_ns.filter(|&ended| ended <= to)?;
        Some((ended.saturating_sub(row.started_ns), 1))
    });
    let mean = trimmed_mean(complete.collect());
    let none = "no small exchange over an open connection was complete under load";
    mean.map(|mean| MINUTE_NS / mean).ok_or_else(|| none.into())
}

fn loaded(subject: &Subject<'_>) -> Measured {
    let (from, to) = window(subject)?;
    let states = subject.flows_under_test().filter(|(traffic, _)| {
        let flow = subject.cell.flow(traffic.flow);
        flow.is_some_and(is_load)
    });
    let rtts = states.flat_map(|(_, states)| states.rtts.within(from, to));
    let mean = trimmed_mean(rtts.collect());
    let none = "no sender of a bulk flow reported a round-trip time under load";
    mean.map(|mean| MINUTE_NS / mean).ok_or_else(|| none.into())
}

/// The mean of the smaller 95 % of values, each with its weight: all up to the 95th percentile by nearest rank. `None`
/// without values, and for a mean of 0.
fn trimmed_mean(mut values: Vec<(u64, u64)>) -> Option<f64> {
    values.sort_unstable();
    let all: u128 = values.iter().map(|&(_, weight)| u128::from(weight)).sum();
    let kept = (all * 95).div_ceil(100);
    let (mut left, mut sum) = (kept, 0.0);
    for (value, weight) in values {
        let weight = u128::from(weight).min(left);
        sum += value as f64 * weight as f64;
        left -= weight;
    }
    (sum > 0.0).then(|| sum / kept as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_longest_twentieth_is_left_out() {
        let mut times: Vec<(u64, u64)> = (1..=19).map(|_| (10, 1)).collect();
        times.push((1_000_000, 1));
        assert_eq!(trimmed_mean(times.clone()), Some(10.0));
        // 95 % of 21 is 19.95: 20 values remain, so one of the two long ones.
        times.push((1_000_000, 1));
        assert_eq!(trimmed_mean(times), Some((190.0 + 1e6) / 20.0));
        assert_eq!(trimmed_mean(Vec::new()), None);
        assert_eq!(trimmed_mean(vec![(0, 3)]), None);
    }

    proptest! {
        #[test]
        fn weights_are_repetitions(values in prop::collection::vec((1u64..1000, 1u64..20), 1..50)) {
            let single = values.iter().flat_map(|&(value, weight)| (0..weight).map(move |_| (value, 1)));
            let (a, b) = (trimmed_mean(values.clone()).unwrap(), trimmed_mean(single.collect()).unwrap());
            prop_assert!((a - b).abs() < 1e-9 * a);
        }
    }
}
