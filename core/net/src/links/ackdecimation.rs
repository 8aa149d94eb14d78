//! ACK decimation: a device that reduces acknowledgements on its slow or shared return link.
//!
//! It keeps every n-th pure acknowledgement of a connection; each of the others waits and is
//! dropped when the next arrives, which acknowledges at least as much. An acknowledgement that has
//! waited for `hold`, counted from the first of its group, is forwarded, so that the last one of a
//! flight arrives as well. All other packets pass immediately. Like real devices of this kind, it
//! does not inspect the content of acknowledgements.

use crate::per_packet::DelayLine;
use crate::{Backlog, Change, DelayEffect, Element, Entry, Example, LinkEffects, Outcomes, Packet, PacketOrder, DropReason};
use narrows_units::{ParamError, Time, params};
use std::collections::VecDeque;

/// Registry entry.
pub const ENTRY: Entry = Entry {
    name: "ackdecimation",
    summary: "Thins out pure acknowledgements: keeps every n-th of each connection and drops the others",
    source: "ACK filtering and decimation as described in RFC 3449, sections 5.2.1 and 5.2.2",
    params: AckDecimationParams::PARAMS,
    shorthand: &["keep"],
    example: Example::new(
        "{ackdecimation: 4 packets}",
        "Every fourth of the acknowledgements, sent one per ms, is kept; the others are dropped.",
    )
    .picture(r#"{"load": [{"every_us": 1000, "spans_s": [[0, 0.4]], "size": 40, "ack": true}], "seconds": 0.4,
               "bin_ms": 20, "view": "rate"}"#),
};

/// Effects on packets.
pub const EFFECTS: LinkEffects = LinkEffects {
    delay: DelayEffect::Jitter,
    order: PacketOrder::OfConnection,
    ..LinkEffects::drops(&[ACK_THINNED])
};

/// Reason of drops of acknowledgements that a newer one replaces.
pub const ACK_THINNED: DropReason = DropReason("ack_thinned");

crate::registry::build!(dyn Element<P>: |params, _| Decimation {
    params: AckDecimationParams::read(params),
    line: DelayLine::new(),
    groups: VecDeque::new(),
    held: Backlog::default(),
});

params! {
    /// Parameters.
    struct AckDecimationParams {
        /// One of this many acknowledgements is kept.
        keep: PacketCount(1.0..=1e6);
        /// How long an acknowledgement waits for a newer one, counted from the first of its group.
        hold: Span(0.0..=3.6e12) = "25 ms";
    }
}

/// The acknowledgements of one connection since one was forwarded.
struct AckGroup<P> {
    connection: u32,
    /// Number of packets that have arrived.
    count: u64,
    /// When the newest is forwarded without waiting for another.
    due: Time,
    newest: P,
}

struct Decimation<P> {
    params: AckDecimationParams,
    line: DelayLine<P>,
    /// Groups of connections with a waiting acknowledgement, in the order of their times; few at
    /// any time.
    groups: VecDeque<AckGroup<P>>,
    held: Backlog,
}

impl<P: Packet> Element<P> for Decimation<P> {
    fn push(&mut self, now: Time, packet: P, outcomes: &mut Outcomes<P>) {
        if !packet.is_ack() || self.params.keep == 1 {
            self.line.push(now, packet);
            return;
        }
        let connection = packet.connection();
        let found = self
            .groups
            .iter()
            .position(|group| group.connection == connection);
        let Some(index) = found else {
            let due = now + self.params.hold;
            // After a change of the settings the later one still leaves later.
            let due = self.groups.back().map_or(due, |last| due.max(last.due));
            self.held.add(packet.size());
            self.groups.push_back(AckGroup {
                connection,
                count: 1,
                due,
                newest: packet,
            });
            return;
        };
        let group = &mut self.groups[index];
        let older = std::mem::replace(&mut group.newest, packet);
        group.count += 1;
        let full = group.count >= self.params.keep;
        outcomes.drop(now, older, ACK_THINNED);
        self.held.remove(older.size());
        if full {
            self.groups.remove(index);
            self.line.push(now, packet);
        } else {
            self.held.add(packet.size());
        }
    }

    fn pop(&mut self, now: Time, _: &mut Outcomes<P>) -> Option<P> {
        if let Some(packet) = self.line.pop(now) {
            return Some(packet);
        }
        if self.groups.front()?.due > now {
            return None;
        }
        let packet = self.groups.pop_front()?.newest;
        self.held.remove(packet.size());
        Some(packet)
    }

    fn next_wakeup(&self) -> Time {
        let waiting = self.groups.front().map_or(Time::FAR, |group| group.due);
        self.line.next_wakeup().min(waiting)
    }

    fn held(&self) -> Backlog {
        self.line.held() + self.held
    }

    fn visit_held(&self, visit: &mut dyn FnMut(&P)) {
        self.line.visit(visit);
        self.groups.iter().for_each(|group| visit(&group.newest));
    }

    fn change(&mut self, _: Time, change: Change, _: &mut Outcomes<P>) -> Result<(), ParamError> {
        self.params = AckDecimationParams::read(&change.into_params()?);
        Ok(())
    }
}
