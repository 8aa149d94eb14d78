//! Trials of single queues and elements.

use super::{Dice, TestPacket};
use crate::{Change, Element, Outcomes, PacketOrder, Queue};
use narrows_units::{Params, Span, Time};
use std::collections::{BTreeMap, BTreeSet};

/// Locations of all packets.
#[derive(Default)]
struct Ledger {
    inside: BTreeSet<u64>,
    bytes: u64,
    /// Reasons for which packets were dropped.
    reasons: BTreeSet<&'static str>,
}

impl Ledger {
    fn enter(&mut self, packet: &TestPacket) {
        assert!(
            self.inside.insert(packet.uid),
            "packet {} entered twice",
            packet.uid
        );
        self.bytes += u64::from(packet.size);
    }
    fn leave(&mut self, packet: &TestPacket, how: &str) {
        let known = self.inside.remove(&packet.uid);
        assert!(known, "packet {} {how} but is not inside", packet.uid);
        self.bytes -= u64::from(packet.size);
    }
    fn check(&self, bytes: u64, packets: u32) {
        assert_eq!(self.inside.len(), packets as usize, "packets inside");
        assert_eq!(self.bytes, bytes, "bytes inside");
    }
    /// Removes the packets that were dropped at `now`.
    fn settle(&mut self, now: Time, outcomes: &mut Outcomes<TestPacket>) {
        for drop in outcomes.drops.drain(..) {
            assert_eq!(drop.at, now, "a drop is reported when it happens");
            assert!(!drop.reason.0.is_empty());
            self.reasons.insert(drop.reason.0);
            self.leave(&drop.packet, "was dropped");
        }
    }
}

/// Steps between changes.
const CHANGE_EVERY: u32 = 40;

/// Plays `steps` random arrivals and departures into a queue and checks conservation, an exact
/// backlog, and that a drained queue is empty.
///
/// # Panics
/// When the queue breaks the contract of [`Queue`].
pub fn check_queue(queue: Box<dyn Queue<TestPacket>>, seed: u64, steps: u32) {
    check_changing_queue(queue, &[], &mut Dice::random(seed, steps));
}

/// Like [`check_queue`], and applies each of `changes` in turn, repeatedly.
///
/// # Panics
/// When the queue breaks the contract of [`Queue`].
pub fn check_changing_queue(
    mut queue: Box<dyn Queue<TestPacket>>,
    changes: &[Params],
    dice: &mut Dice,
) {
    let mut outcomes = Outcomes::new();
    let mut ledger = Ledger::default();
    let mut now = Time::ZERO;
    let mut phase = 50;
    let mut steps = 0;
    let mut changes = changes.iter().cycle();
    while dice.step() {
        steps += 1;
        if steps % CHANGE_EVERY == 0
            && let Some(params) = changes.next()
        {
            queue
                .change(now, params, &mut outcomes)
                .expect("a set of examples is accepted");
            ledger.settle(now, &mut outcomes);
        }
        if dice.percent(1) {
            phase = *dice.pick(&[30, 50, 90]);
        }
        now += Span::from_us(dice.below(2_000));
        if dice.percent(phase) {
            let packet = dice.packet(u64::from(steps));
            ledger.enter(&packet);
            queue.enqueue(now, packet, &mut outcomes);
        } else {
            let before = queue.backlog();
            match queue.dequeue(now, &mut outcomes) {
                Some(packet) => ledger.leave(&packet, "was dequeued"),
                None => assert_eq!(
                    before.packets as usize,
                    outcomes.drops.len(),
                    "a queue with packets must return one or drop all"
                ),
            }
        }
        ledger.settle(now, &mut outcomes);
        let mut visited = 0;
        queue.visit(&mut |packet| {
            assert!(ledger.inside.contains(&packet.uid));
            visited += 1;
        });
        let backlog = queue.backlog();
        assert_eq!(visited, backlog.packets, "visit shows every packet once");
        ledger.check(backlog.bytes, backlog.packets);
    }
    while queue.backlog().packets > 0 {
        now += Span::from_ms(1);
        if let Some(packet) = queue.dequeue(now, &mut outcomes) {
            ledger.leave(&packet, "was dequeued");
        }
        ledger.settle(now, &mut outcomes);
    }
    ledger.check(0, 0);
    assert_eq!(queue.dequeue(now, &mut outcomes), None);
}

/// A trial of one element.
pub struct Trial {
    /// The element.
    pub element: Box<dyn Element<TestPacket>>,
    /// Changes that are made one after another.
    pub changes: Vec<Change>,
    /// Required order.
    pub order: PacketOrder,
    /// True if packets may stay inside for ever.
    pub strands: bool,
}

/// Plays `steps` random arrivals into an element, calls it exactly when it asks, and checks
/// conservation, that it never asks for a past time, that no packet is faster than its propagation,
/// and that it empties.
///
/// # Panics
/// When the element breaks the contract of [`Element`].
pub fn check_element(element: Box<dyn Element<TestPacket>>, seed: u64, steps: u32) {
    Trial {
        element,
        changes: Vec::new(),
        order: PacketOrder::Free,
        strands: false,
    }
    .run(&mut Dice::random(seed, steps));
}

impl Trial {
    /// Like [`check_element`], with all settings of the trial. Returns the number of copies that
    /// the element made, and the reasons for which it dropped packets.
    ///
    /// # Panics
    /// When the element breaks the contract of [`Element`].
    pub fn run(self, dice: &mut Dice) -> (u64, BTreeSet<&'static str>) {
        let mut run = Run {
            element: self.element,
            order: self.order,
            outcomes: Outcomes::new(),
            ledger: Ledger::default(),
            left: BTreeMap::new(),
            soonest: BTreeMap::new(),
            copies: 0,
        };
        let mut changes = self.changes.into_iter();
        let mut now = Time::ZERO;
        let mut uid = 0;
        while dice.step() {
            uid += 1;
            let next = now + Span::from_us(dice.below(3_000));
            run.until(now, next);
            now = next;
            if uid % u64::from(CHANGE_EVERY) == 0
                && let Some(change) = changes.next()
            {
                run.element
                    .change(now, change, &mut run.outcomes)
                    .expect("a set of examples is accepted");
                run.ledger.settle(now, &mut run.outcomes);
            }
            let packet = dice.packet(uid);
            run.ledger.enter(&packet);
            let soonest = now + run.element.propagation();
            run.soonest.insert(uid, soonest);
            run.element.push(now, packet, &mut run.outcomes);
            run.ledger.settle(now, &mut run.outcomes);
            run.take_copies(now, &packet);
            run.check_inside();
        }
        run.until(now, now + Span::from_secs(1e6));
        if self.strands {
            run.check_inside();
        } else {
            run.ledger.check(0, 0);
        }
        assert_eq!(
            run.element.next_wakeup(),
            Time::FAR,
            "an idle element has no wake-up"
        );
        (run.copies, run.ledger.reasons)
    }
}

struct Run {
    element: Box<dyn Element<TestPacket>>,
    order: PacketOrder,
    outcomes: Outcomes<TestPacket>,
    ledger: Ledger,
    /// The last packet that left, by class.
    left: BTreeMap<(u32, bool), u64>,
    /// Earliest departure of each packet, by the propagation reported on its arrival.
    soonest: BTreeMap<u64, Time>,
    copies: u64,
}

impl Run {
    /// Calls the element whenever it asks, until `until`.
    fn until(&mut self, from: Time, until: Time) {
        let mut at = from;
        let mut idle = 0;
        while self.element.next_wakeup() <= until && self.element.next_wakeup() != Time::FAR {
            let due = self.element.next_wakeup();
            assert!(due >= at, "wake-up {due:?} is before {at:?}");
            idle = if due > at { 0 } else { idle + 1 };
            assert!(idle < 100_000, "the element never lets time pass");
            at = due;
            if let Some(packet) = self.element.pop(at, &mut self.outcomes) {
                self.ledger.leave(&packet, "left");
                let soonest = self.soonest[&packet.uid];
                assert!(at >= soonest, "left at {at:?}, before {soonest:?}");
                self.check_order(&packet);
                idle = 0;
            }
            self.ledger.settle(at, &mut self.outcomes);
        }
    }

    fn check_order(&mut self, packet: &TestPacket) {
        let class = match self.order {
            PacketOrder::Free => return,
            PacketOrder::All => (0, false),
            PacketOrder::OfConnection => (packet.connection, packet.ack),
        };
        let before = self.left.insert(class, packet.uid).unwrap_or_default();
        assert!(
            before < packet.uid,
            "packet {} left after packet {before}",
            packet.uid
        );
    }

    /// Takes copies, which must be of the packet that has just arrived.
    fn take_copies(&mut self, now: Time, packet: &TestPacket) {
        for copied in self.outcomes.copies.drain(..) {
            assert_eq!((copied.at, copied.packet), (now, *packet));
            self.copies += 1;
        }
    }

    fn check_inside(&self) {
        let held = self.element.held();
        assert!(self.element.queued().packets <= held.packets);
        self.ledger.check(held.bytes, held.packets);
        let mut visited = 0;
        self.element.visit_held(&mut |packet| {
            assert!(self.ledger.inside.contains(&packet.uid));
            visited += 1;
        });
        assert_eq!(visited, held.packets, "visit shows every packet once");
    }
}
