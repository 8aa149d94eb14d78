//! Reordering: single packets are overtaken by later ones.

use crate::per_packet::DelayLine;
use crate::{Backlog, Change, DelayEffect, Element, Entry, Example, LinkEffects, Outcomes, Packet, PacketOrder};
use narrows_units::{ParamError, Stream, Time, params};
use std::collections::VecDeque;

/// Registry entry.
pub const ENTRY: Entry = Entry {
    name: "reorder",
    summary: "Holds back single packets, so that later ones overtake them",
    source: "chosen packets keep their order among themselves; the extent in packets is that of RFC 4737, section 4.2",
    params: ReorderParams::PARAMS,
    shorthand: &["ratio"],
    example: Example::new(
        "{reorder: {ratio: 5 %, delay: 10 ms}}",
        "One packet in twenty is held for 10 ms and overtaken by five others.",
    ),
};

/// Effects on packets.
pub const EFFECTS: LinkEffects = LinkEffects {
    order: PacketOrder::Free,
    ..LinkEffects::delays(DelayEffect::Jitter)
};

crate::registry::build!(dyn Element<P>: |params, setup| Reorder {
    params: ReorderParams::read(params),
    stream: setup.stream(),
    line: DelayLine::new(),
    back: VecDeque::new(),
    held: Backlog::default(),
    passed: 0,
});

params! {
    /// Parameters.
    struct ReorderParams {
        /// Probability that a packet is held back.
        ratio: Ratio;
        /// Maximum time for which it is held back.
        delay: Span(1.0..=3.6e12) = "10 ms";
        /// It is released as soon as this many packets have overtaken it; without it only the delay counts.
        gap: Option<PacketCount>(1.0..=1e9);
    }
}

/// A packet that is held back.
struct Held<P> {
    /// Latest time of its release.
    due: Time,
    /// Total number of passed packets at which it may be released.
    after: u64,
    packet: P,
}

struct Reorder<P> {
    params: ReorderParams,
    stream: Stream,
    line: DelayLine<P>,
    /// In the order in which they are released.
    back: VecDeque<Held<P>>,
    held: Backlog,
    /// Packets that were not held back.
    passed: u64,
}

impl<P: Packet> Element<P> for Reorder<P> {
    fn push(&mut self, now: Time, packet: P, _: &mut Outcomes<P>) {
        if self.stream.chance(self.params.ratio) {
            let after = self.params.gap.map_or(u64::MAX, |gap| self.passed + gap);
            let due = now + self.params.delay;
            // After a change of the settings the later one still stays behind.
            let (due, after) = match self.back.back() {
                Some(last) => (due.max(last.due), after.max(last.after)),
                None => (due, after),
            };
            self.held.add(packet.size());
            self.back.push_back(Held { due, after, packet });
            return;
        }
        self.line.push(now, packet);
        self.passed += 1;
        while self
            .back
            .front()
            .is_some_and(|first| first.after <= self.passed)
        {
            if let Some(first) = self.back.pop_front() {
                self.held.remove(first.packet.size());
                self.line.push(now, first.packet);
            }
        }
    }

    fn pop(&mut self, now: Time, _: &mut Outcomes<P>) -> Option<P> {
        if let Some(packet) = self.line.pop(now) {
            return Some(packet);
        }
        if self.back.front()?.due > now {
            return None;
        }
        let packet = self.back.pop_front()?.packet;
        self.held.remove(packet.size());
        Some(packet)
    }

    fn next_wakeup(&self) -> Time {
        let back = self.back.front().map_or(Time::FAR, |first| first.due);
        self.line.next_wakeup().min(back)
    }

    fn held(&self) -> Backlog {
        self.line.held() + self.held
    }

    fn visit_held(&self, visit: &mut dyn FnMut(&P)) {
        self.line.visit(visit);
        self.back.iter().for_each(|held| visit(&held.packet));
    }

    fn change(&mut self, _: Time, change: Change, _: &mut Outcomes<P>) -> Result<(), ParamError> {
        self.params = ReorderParams::read(&change.into_params()?);
        Ok(())
    }
}
