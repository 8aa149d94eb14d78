//! Times in which a viewer saw a frozen picture.

use super::subject::FramesOfFlow;
use super::{Group, Measured, Metric, Subject};
use std::collections::VecDeque;

/// Number of intervals whose mean is the usual interval.
const WINDOW: usize = 30;
/// Minimum number of intervals for a meaningful mean.
const MIN_INTERVALS: usize = 5;
/// A freeze lasts at least this much longer than the usual interval.
const MORE_NS: u64 = 150_000_000;

/// Registry entries.
pub(super) const METRICS: &[Metric] = &[COUNT, SHARE];

const COUNT: Metric = Metric {
    name: "freezes",
    label: "freezes",
    group: Some(Group::Frames),
    definition: "Times between two frames that were at least three times as long as the mean of the \
                 last 30, and at least 150 ms longer. Frames count at the time at which they were complete, unless a later frame was complete before; whether they could be decoded without the missing ones is not considered. A source that pauses freezes as well. The end of the flow ends the last interval.",
    source: "W3C Identifiers for WebRTC's Statistics API, freezeCount",
    compute: |subject| Ok(total(subject)?.count as f64),
    ..Metric::NUMBER
};

const SHARE: Metric = Metric {
    name: "freeze_ratio",
    label: "time frozen",
    show_unit: "%",
    show_scale: 100.0,
    definition: "Sum of the freezes divided by the time from the first complete frame to the end of the flow.",
    source: "W3C Identifiers for WebRTC's Statistics API, totalFreezesDuration",
    compute: share,
    ..COUNT
};

/// The freezes of one or more flows.
#[derive(Clone, Copy, Debug, Default)]
struct Freezes {
    count: u64,
    frozen_ns: u64,
    shown_ns: u64,
}

fn share(subject: &Subject<'_>) -> Measured {
    let total = total(subject)?;
    if total.shown_ns == 0 {
        return Err("no frame arrived completely before the end of its flow".into());
    }
    Ok(total.frozen_ns as f64 / total.shown_ns as f64)
}

fn total(subject: &Subject<'_>) -> Result<Freezes, String> {
    let mut sum = Freezes::default();
    for flow_frames in subject.frames()? {
        let result = freezes(&flow_frames);
        sum.count += result.count;
        sum.frozen_ns += result.frozen_ns;
        sum.shown_ns += result.shown_ns;
    }
    Ok(sum)
}

fn freezes(flow: &FramesOfFlow<'_>) -> Freezes {
    let rows = flow.rows.iter();
    let mut whole: Vec<(u64, u64)> = rows
        .filter_map(|row| Some((row.arrived_ns?, row.frame)))
        .filter(|(at, _)| *at <= flow.stop_ns)
        .collect();
    whole.sort_unstable();
    let mut result = Freezes::default();
    let mut usual: VecDeque<u64> = VecDeque::with_capacity(WINDOW);
    let mut last: Option<(u64, u64)> = None;
    for (at, frame) in whole.into_iter().chain([(flow.stop_ns, u64::MAX)]) {
        let Some((before, newest)) = last else {
            last = Some((at, frame));
            continue;
        };
        // No player shows a frame after its successor.
        if frame < newest {
            continue;
        }
        let interval = at - before;
        if usual.len() >= MIN_INTERVALS {
            let mean = usual.iter().sum::<u64>() / usual.len() as u64;
            if interval >= (3 * mean).max(mean + MORE_NS) {
                result.count += 1;
                result.frozen_ns += interval;
            }
        }
        if usual.len() == WINDOW {
            usual.pop_front();
        }
        usual.push_back(interval);
        result.shown_ns += interval;
        last = Some((at, frame));
    }
    result
}
