//! No queue accepted a packet for which it had no room.
//!
//! The backlog that a packet finds consists of the packets that entered before it and were not yet
//! in service. Departures at the instant of its entry come first. In simulation this is exact. In
//! emulation the true entry may be later than the stamp (see [`Evidence::slack_ns`]), after more
//! packets had left: a packet is accepted if it would have found room within that time, and such
//! packets are counted.

use super::layout::{Server, StageNature};
use super::timeline::{BottleneckPass, Timeline};
use super::{CheckFaults, CheckOutcome, Evidence, VerifierCheck};
use crate::cell::CellQueueLimit;
use std::collections::VecDeque;

pub(super) const CHECK: VerifierCheck = VerifierCheck {
    name: "queue_limit",
    claim: "no queue accepted a packet for which it had no room",
    run,
};

fn run(evidence: &Evidence<'_>) -> CheckOutcome {
    over_queues(evidence, |timeline, slack, faults| {
        let mut excused = 0;
        let mut maximum = 0;
        sweep(timeline, |pass, found| {
            maximum = maximum.max(found.queue.bytes);
            if pass.dropped {
                return;
            }
            let waiting = if pass.tied {
                found.before_tie
            } else {
                found.queue.total()
            };
            let limit = limit_at(&timeline.server, pass.enter, slack);
            if fits(limit, waiting, pass.size) {
                return;
            }
            if fits(
                limit,
                found.queue.at(pass.enter.saturating_add(slack)),
                pass.size,
            ) {
                excused += 1;
                return;
            }
            faults.add(format_args!(
                "{} accepted a packet of {} bytes (row {}) while {} packets ({} bytes) waited",
                timeline.name,
                pass.size,
                pass.row + 1,
                waiting.1,
                waiting.0
            ));
        });
        let note = if excused > 0 {
            format!(" ({excused} packets within the emulator's lateness)")
        } else {
            String::new()
        };
        Ok(format!(
            "{} never held more than {maximum} bytes{note}",
            timeline.name
        ))
    })
}

/// The limit of a queue at `time`; if entries are uncertain by `slack`, the largest within that
/// time.
pub(super) fn limit_at(server: &Server, time: u64, slack: u64) -> CellQueueLimit {
    let maximum = |a: Option<u64>, b: Option<u64>| a.zip(b).map(|(a, b)| a.max(b));
    let limits = &server.limits;
    let first = limits.partition_point(|limit| limit.0 <= time.saturating_sub(slack));
    let last = limits.partition_point(|limit| limit.0 <= time.saturating_add(slack));
    let near = &limits[first.saturating_sub(1)..last.max(1)];
    near[1..]
        .iter()
        .fold(near[0].1, |sum, (_, limit)| CellQueueLimit {
            bytes: maximum(sum.bytes, limit.bytes),
            packets: maximum(sum.packets, limit.packets),
        })
}

/// Runs `check` for every queue with a limit. `check` receives the uncertainty of entries in ns,
/// and returns a description if nothing contradicts, or why it does not apply.
pub(super) fn over_queues(
    evidence: &Evidence<'_>,
    mut check: impl FnMut(&Timeline, u64, &mut CheckFaults) -> Result<String, String>,
) -> CheckOutcome {
    let mut faults = CheckFaults::default();
    for queueing in &evidence.servers {
        let StageNature::Bottleneck(server) = &evidence.stages[queueing.index].nature else {
            continue;
        };
        if server
            .limits
            .iter()
            .all(|(_, limit)| *limit == CellQueueLimit::default())
        {
            continue;
        }
        let timeline = queueing.timeline.as_ref().map_err(String::clone);
        let part = timeline.and_then(|timeline| {
            let slack = evidence.slack_ns().max(timeline.uncertain_ns);
            check(timeline, slack, &mut faults)
        });
        faults.note(part);
    }
    faults.conclude(CheckOutcome::Skipped("no queue has a limit".into()))
}

/// Packets that wait, in order, as (start of service, size).
#[derive(Default)]
pub(super) struct Waiting {
    packets: VecDeque<(u64, u32)>,
    pub(super) bytes: u64,
}

impl Waiting {
    /// Bytes and packets.
    pub(super) fn total(&self) -> (u64, u64) {
        (self.bytes, self.packets.len() as u64)
    }

    /// Bytes and packets that would still wait at the later time `time` without further arrivals.
    pub(super) fn at(&self, time: u64) -> (u64, u64) {
        let gone = self.packets.iter().take_while(|&&(start, _)| start <= time);
        let (bytes, packets) = gone.fold((0, 0), |(b, p), &(_, size)| (b + u64::from(size), p + 1));
        (self.bytes - bytes, self.packets.len() as u64 - packets)
    }

    fn advance(&mut self, time: u64) {
        while let Some(&(start, size)) = self.packets.front() {
            if start > time {
                break;
            }
            self.packets.pop_front();
            self.bytes -= u64::from(size);
        }
    }
}

/// Backlog that a packet finds when it enters.
pub(super) struct Found<'a> {
    pub(super) queue: &'a Waiting,
    /// Bytes and packets without those that entered at the same instant.
    pub(super) before_tie: (u64, u64),
}

/// Calls `visit` for every packet that reached the bottleneck, with the backlog that it found.
pub(super) fn sweep(timeline: &Timeline, mut visit: impl FnMut(&BottleneckPass, &Found<'_>)) {
    let mut queue = Waiting::default();
    let mut instant = None;
    let mut before_tie = (0, 0);
    for pass in &timeline.passes {
        queue.advance(pass.enter);
        if instant != Some(pass.enter) {
            instant = Some(pass.enter);
            before_tie = queue.total();
        }
        visit(
            pass,
            &Found {
                queue: &queue,
                before_tie,
            },
        );
        if !pass.dropped && pass.start > pass.enter {
            queue.packets.push_back((pass.start, pass.size));
            queue.bytes += u64::from(pass.size);
        }
    }
}

/// True if a packet of `size` fits in addition to `waiting` (bytes, packets).
pub(super) fn fits(limit: CellQueueLimit, waiting: (u64, u64), size: u32) -> bool {
    limit
        .bytes
        .is_none_or(|maximum| waiting.0 + u64::from(size) <= maximum)
        && limit.packets.is_none_or(|maximum| waiting.1 < maximum)
}
