//! A tail-drop queue drops only packets for which it has no room.
//!
//! The backlog is reconstructed as for the limit. In emulation a drop is accepted if the packet
//! would have found no room at any time within the uncertainty of entries, before or after its
//! stamp: a departure that is not recorded may have been later than computed.

use super::queue_limit::{fits, limit_at, over_queues, sweep};
use super::{CheckOutcome, Evidence, VerifierCheck};
use narrows_net::QueueDrops;
use std::collections::VecDeque;

pub(super) const CHECK: VerifierCheck = VerifierCheck {
    name: "queue_drops",
    claim: "no queue dropped a packet for which it had room",
    run,
};

fn run(evidence: &Evidence<'_>) -> CheckOutcome {
    over_queues(evidence, |timeline, slack, faults| {
        if timeline.server.queue.drops != QueueDrops::NoRoom {
            return Err(format!(
                "the queue of {} ({}) also drops packets for which it has room",
                timeline.name, timeline.server.queue_kind
            ));
        }
        if timeline.server.limits.len() > 1 {
            return Err(format!(
                "the timeline changes the limit of {}, which may drop waiting packets",
                timeline.name
            ));
        }
        let mut drops = 0_u64;
        // Packets that began service recently may, within the uncertainty, still have waited.
        let mut recent: VecDeque<(u64, u32)> = VecDeque::new();
        sweep(timeline, |pass, found| {
            while recent
                .front()
                .is_some_and(|&(s, _)| s.saturating_add(slack) <= pass.enter)
            {
                recent.pop_front();
            }
            if !pass.dropped {
                if slack > 0 {
                    recent.push_back((pass.start, pass.size));
                }
                return;
            }
            drops += 1;
            let limit = limit_at(&timeline.server, pass.enter, 0);
            if !fits(limit, found.queue.total(), pass.size) {
                return;
            }
            let begun = recent.iter().filter(|&&(start, _)| start <= pass.enter);
            let uncertain = begun.fold(found.queue.total(), |(bytes, packets), &(_, size)| {
                (bytes + u64::from(size), packets + 1)
            });
            if fits(limit, uncertain, pass.size) {
                let (bytes, packets) = found.queue.total();
                faults.add(format_args!(
                    "{} dropped a packet of {} bytes (row {}) while only {packets} packets \
                         ({bytes} bytes) waited",
                    timeline.name,
                    pass.size,
                    pass.row + 1
                ));
            }
        });
        Ok(format!("{drops} drops of {}", timeline.name))
    })
}
