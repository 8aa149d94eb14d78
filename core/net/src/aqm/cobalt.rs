//! The COBALT law: CoDel and BLUE in parallel, for each queue of `cake`.
//!
//! Source: Palmei et al., Design and Evaluation of COBALT Queue Discipline, LANMAN 2019; Høiland-Jørgensen, Täht and
//! Morton, Piece of CAKE, LANMAN 2018, section III.C. The CoDel part signals at the times of CoDel's law, starting with
//! the first packet above the target for which a signal is due, keeps its count when the queue improves, and decrements
//! it at the same times at which it would have incremented it. It drops or marks one packet at a time. The BLUE part is
//! a drop probability (also for packets that could be marked) that grows with each overflow and shrinks each time the
//! queue is found empty, at most once per `target`.

use super::{AqmVerdict, Departure};
use crate::DropReason;
use narrows_units::{Span, Stream, Time};

/// Reason of scheduled drops.
const COBALT: DropReason = DropReason("cobalt");
/// Reason of random drops.
const BLUE: DropReason = DropReason("blue");

/// Increase of the probability per overflow.
const MORE: f64 = 1.0 / 256.0;
/// Decrease of the probability per empty queue.
const LESS: f64 = 1.0 / 4096.0;

/// Parameters that all queues under the law share.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CobaltSettings {
    /// Waiting time that may persist.
    pub(crate) target: Span,
    /// Time within which senders can react.
    pub(crate) interval: Span,
    /// True if packets that can be marked are marked.
    pub(crate) ecn: bool,
}

impl CobaltSettings {
    /// When to signal next, after `count` signals.
    fn next(&self, from: Time, count: u32) -> Time {
        let divisor = f64::from(count.max(1)).sqrt();
        from + Span::from_ns((self.interval.ns() as f64 / divisor) as u64)
    }
}

/// The state of one queue under the law.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CobaltState {
    count: u32,
    /// When the next signal is due, or the count falls.
    next: Time,
    dropping: bool,
    /// Probability of a random drop.
    blue: f64,
    /// When `blue` last changed.
    changed: Time,
    /// When the queue was last found empty.
    emptied: Time,
}

impl CobaltState {
    /// A packet of this queue had to be dropped because there was no room.
    pub(crate) fn overflow(&mut self, set: &CobaltSettings, now: Time) {
        if now.since(self.changed) > set.target {
            self.blue = (self.blue + MORE).min(1.0);
            self.changed = now;
        }
        self.dropping = true;
        self.next = now;
        self.count = self.count.max(1);
    }

    /// The queue is found empty at `now`.
    pub(crate) fn empty(&mut self, set: &CobaltSettings, now: Time) {
        if self.blue > 0.0 && now.since(self.changed) > set.target {
            self.blue = (self.blue - LESS).max(0.0);
            self.changed = now;
        }
        self.emptied = now;
        self.dropping = false;
        self.decay(set, now);
    }

    /// The queue has been empty until `now`: catches up on the decreases of the idle time.
    pub(crate) fn idle(&mut self, set: &CobaltSettings, now: Time) {
        if self.blue > 0.0 {
            let since = self.changed.max(self.emptied);
            let times = now.since(since).ns() / set.target.ns().max(1);
            if times > 0 {
                self.blue = (self.blue - times as f64 * LESS).max(0.0);
                self.changed = now;
            }
        }
        self.decay(set, now);
    }

    /// True if its state equals the initial one.
    pub(crate) fn forgotten(&self) -> bool {
        self.count == 0 && self.blue <= 0.0
    }

    fn decay(&mut self, set: &CobaltSettings, now: Time) {
        while self.count > 0 && now >= self.next {
            self.count -= 1;
            self.next = set.next(self.next, self.count);
        }
    }

    /// Decides about a packet that is about to leave.
    pub(crate) fn leaving(
        &mut self,
        set: &CobaltSettings,
        now: Time,
        packet: &Departure,
        chance: &mut Stream,
    ) -> AqmVerdict {
        let due = self.count > 0 && now >= self.next;
        if packet.sojourn > set.target {
            if !self.dropping {
                self.dropping = true;
                self.next = set.next(now, self.count);
            }
            self.count = self.count.max(1);
        } else {
            self.dropping = false;
        }
        let mut verdict = AqmVerdict::Pass;
        if due && self.dropping {
            verdict = if set.ecn && packet.ect {
                AqmVerdict::Mark
            } else {
                AqmVerdict::Drop(COBALT)
            };
            self.count = self.count.saturating_add(1);
            self.next = set.next(self.next, self.count);
        } else if due {
            self.decay(set, now);
        }
        if self.blue > 0.0 && !matches!(verdict, AqmVerdict::Drop(_)) && chance.chance(self.blue) {
            verdict = AqmVerdict::Drop(BLUE);
        }
        // Overdue signals are not sent in a burst.
        if self.count == 0 {
            self.next = now + set.interval;
        } else if now > self.next && !matches!(verdict, AqmVerdict::Drop(_)) {
            self.next = now;
        }
        verdict
    }
}
