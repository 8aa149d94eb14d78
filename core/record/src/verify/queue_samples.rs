//! The samples of queues agree with the backlogs that follow from the packets.
//!
//! A sample may be taken before or after the events at the same instant, so any value in between is
//! correct. In emulation the same holds for all events within the uncertainty of entries (see
//! [`Evidence::slack_ns`]).

use super::layout::StageNature;
use super::queue_limit::limit_at;
use super::timeline::Timeline;
use super::{CheckFaults, CheckOutcome, Evidence, VerifierCheck};
use crate::rows::for_each;
use crate::schema::QueueRow;
use narrows_net::QueueDrops;

pub(super) const CHECK: VerifierCheck = VerifierCheck {
    name: "queue_samples",
    claim: "the samples of queues agree with the packets and never exceed the limits",
    run,
};

fn run(evidence: &Evidence<'_>) -> CheckOutcome {
    if evidence.queue_samples == 0 {
        return CheckOutcome::Skipped("no queue was sampled".into());
    }
    let mut faults = CheckFaults::default();
    // Packets that were dropped after they had waited are missing in the computed backlog.
    let known = evidence.timelines().filter(|timeline| {
        timeline.server.queue.drops != QueueDrops::Any && timeline.server.limits.len() == 1
    });
    let curves: Vec<BacklogCurve<'_>> = known.map(BacklogCurve::new).collect();
    let slack = evidence.slack_ns();
    let mut compared = 0;
    let mut last: Vec<(String, u64)> = Vec::new();
    let read = for_each(evidence.queues, |sample: &QueueRow| {
        let QueueRow {
            element,
            time_ns: time,
            backlog_bytes: bytes,
            backlog_packets: packets,
        } = sample;
        let stage = evidence.stages.iter().find(|s| s.name == *element);
        // Other elements that hold packets may be sampled as well; their backlog is not known.
        if stage.is_some_and(|stage| stage.nature == StageNature::Free) {
            return;
        }
        let Some(StageNature::Bottleneck(server)) = stage.map(|stage| &stage.nature) else {
            faults.add(format_args!(
                "a queue '{element}' was sampled, which the cell does not have"
            ));
            return;
        };
        match last.iter_mut().find(|(name, _)| name == element) {
            Some((_, before)) if *before >= *time => {
                faults.add(format_args!(
                    "the samples of {element} go back in time at {time} ns"
                ));
            }
            Some((_, before)) => *before = *time,
            None => last.push((element.clone(), *time)),
        }
        // A reduced limit may leave packets that wait already in place.
        let limit = limit_at(server, *time, u64::MAX);
        if limit.bytes.is_some_and(|maximum| *bytes > maximum)
            || limit.packets.is_some_and(|maximum| u64::from(*packets) > maximum)
        {
            faults.add(format_args!(
                "at {time} ns {element} held {packets} packets ({bytes} bytes), beyond its limit"
            ));
            return;
        }
        let Some(curve) = curves.iter().find(|curve| curve.timeline.name == *element) else {
            return;
        };
        compared += 1;
        let slack = slack.max(curve.timeline.uncertain_ns);
        let (low, high) = curve.range(*time, slack);
        if !(low.0..=high.0).contains(bytes) || !(low.1..=high.1).contains(&u64::from(*packets)) {
            faults.add(format_args!(
                "at {time} ns {element} was sampled with {packets} packets ({bytes} bytes), but \
                     from {} to {} ({} to {} bytes) waited",
                low.1, high.1, low.0, high.0
            ));
        }
    });
    if let Err(error) = read {
        faults.add(format_args!("the samples cannot be read: {error}"));
    }
    if compared == 0 && faults.count == 0 {
        let reason = evidence
            .servers
            .iter()
            .find_map(|server| server.timeline.as_ref().err().map(String::as_str))
            .unwrap_or("no sample can be compared");
        return CheckOutcome::Skipped(format!("only limits were checked, because {reason}"));
    }
    faults.outcome(|| format!("{compared} samples"))
}

/// The backlog over time, as sums over all entries and all starts of service.
struct BacklogCurve<'a> {
    timeline: &'a Timeline,
    /// Times of entry, with bytes and packets up to and including each.
    entries: BacklogSums,
    starts: BacklogSums,
}

struct BacklogSums {
    times: Vec<u64>,
    bytes: Vec<u64>,
}

impl BacklogSums {
    fn new(mut events: Vec<(u64, u32)>) -> Self {
        // Already in order unless the record contradicts itself.
        events.sort_by_key(|event| event.0);
        let mut total = 0;
        let bytes = events.iter().map(|&(_, size)| {
            total += u64::from(size);
            total
        });
        BacklogSums {
            bytes: bytes.collect(),
            times: events.iter().map(|event| event.0).collect(),
        }
    }

    /// Bytes and packets of the first `count` events.
    fn first(&self, count: usize) -> (u64, u64) {
        (
            count.checked_sub(1).map_or(0, |last| self.bytes[last]),
            count as u64,
        )
    }

    fn until(&self, time: u64) -> (u64, u64) {
        self.first(self.times.partition_point(|&t| t <= time))
    }

    fn before(&self, time: u64) -> (u64, u64) {
        self.first(self.times.partition_point(|&t| t < time))
    }
}

impl<'a> BacklogCurve<'a> {
    fn new(timeline: &'a Timeline) -> Self {
        let waited = || timeline.accepted().filter(|pass| pass.start > pass.enter);
        BacklogCurve {
            timeline,
            entries: BacklogSums::new(waited().map(|pass| (pass.enter, pass.size)).collect()),
            starts: BacklogSums::new(waited().map(|pass| (pass.start, pass.size)).collect()),
        }
    }

    /// The smallest and largest backlog (bytes, packets) that a sample at `time` may show.
    fn range(&self, time: u64, slack: u64) -> ((u64, u64), (u64, u64)) {
        let (early, late) = (time.saturating_sub(slack), time.saturating_add(slack));
        let less =
            |a: (u64, u64), b: (u64, u64)| (a.0.saturating_sub(b.0), a.1.saturating_sub(b.1));
        let low = less(self.entries.before(early), self.starts.until(late));
        let high = less(self.entries.until(late), self.starts.before(early));
        (low, high)
    }
}
