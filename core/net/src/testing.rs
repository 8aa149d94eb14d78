//! The conformance kit: what every queue and every element must keep to.
//!
//! The registries run it over all their entries; an outside implementation runs it with one call.

use crate::{Ecn, Element, Outcomes, Packet, Queue};
use narrows_units::{Span, Stream, Time};
use std::collections::BTreeSet;

/// A packet for tests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TestPacket {
    /// Identity.
    pub uid: u64,
    /// IP size in bytes.
    pub size: u32,
    /// Flow number.
    pub flow: u16,
    /// ECN field.
    pub ecn: Ecn,
    /// DSCP field.
    pub dscp: u8,
    /// Number of the connection.
    pub connection: u32,
    /// Whether it is a pure acknowledgement.
    pub ack: bool,
    /// Whether it was damaged.
    pub corrupt: bool,
    /// Index of its route.
    pub route: u16,
}

impl Packet for TestPacket {
    fn size(&self) -> u32 {
        self.size
    }
    fn flow(&self) -> u16 {
        self.flow
    }
    fn ecn(&self) -> Ecn {
        self.ecn
    }
    fn mark(&mut self) {
        self.ecn = Ecn::Ce;
    }
    fn dscp(&self) -> u8 {
        self.dscp
    }
    fn set_dscp(&mut self, dscp: u8) {
        self.dscp = dscp;
    }
    fn connection(&self) -> u32 {
        self.connection
    }
    fn is_ack(&self) -> bool {
        self.ack
    }
    fn corrupt(&mut self) {
        self.corrupt = true;
    }
    fn route(&self) -> u16 {
        self.route
    }
}

fn random_packet(stream: &mut Stream, uid: u64) -> TestPacket {
    let sizes = [40, 52, 576, 1280, 1500, 9000];
    let flow = stream.below(5) as u16;
    TestPacket {
        uid,
        size: sizes[stream.below(sizes.len() as u64) as usize],
        flow,
        ecn: Ecn::from_bits(stream.below(4) as u8),
        dscp: [0, 8, 10, 34, 46][stream.below(5) as usize],
        connection: u32::from(flow) * 10 + stream.below(3) as u32,
        ack: stream.chance(0.2),
        ..TestPacket::default()
    }
}

/// Who has been seen where.
#[derive(Default)]
struct Ledger {
    inside: BTreeSet<u64>,
    bytes: u64,
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
}

/// Plays `steps` random arrivals and departures into a queue and checks conservation, honest
/// backlog, and that an emptied queue is empty.
///
/// # Panics
/// When the queue breaks the contract of [`Queue`].
pub fn check_queue(mut queue: Box<dyn Queue<TestPacket>>, seed: u64, steps: u32) {
    let mut stream = Stream::new(seed, "conformance/queue");
    let mut outcomes = Outcomes::new();
    let mut ledger = Ledger::default();
    let mut now = Time::ZERO;
    let mut phase = 0.5;
    for step in 0..steps {
        if stream.chance(0.01) {
            phase = [0.3, 0.5, 0.9][stream.below(3) as usize];
        }
        now += Span::from_us(stream.below(2_000));
        if stream.chance(phase) {
            let packet = random_packet(&mut stream, u64::from(step));
            ledger.enter(&packet);
            queue.enqueue(now, packet, &mut outcomes);
        } else {
            let before = queue.backlog();
            let drops = outcomes.drops.len();
            match queue.dequeue(now, &mut outcomes) {
                Some(packet) => ledger.leave(&packet, "was dequeued"),
                None => assert_eq!(
                    before.packets as usize,
                    outcomes.drops.len() - drops,
                    "a queue with packets must return one or drop all"
                ),
            }
        }
        for drop in outcomes.drops.drain(..) {
            assert_eq!(drop.at, now, "a drop is reported when it happens");
            assert!(!drop.reason.0.is_empty());
            ledger.leave(&drop.packet, "was dropped");
        }
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
        for drop in outcomes.drops.drain(..) {
            ledger.leave(&drop.packet, "was dropped");
        }
    }
    ledger.check(0, 0);
    assert_eq!(queue.dequeue(now, &mut outcomes), None);
}

/// Plays `steps` random arrivals into an element, calls it exactly when it asks, and checks
/// conservation, that it never asks for the past, and that it empties.
///
/// # Panics
/// When the element breaks the contract of [`Element`].
pub fn check_element(mut element: Box<dyn Element<TestPacket>>, seed: u64, steps: u32) {
    let mut stream = Stream::new(seed, "conformance/element");
    let mut outcomes = Outcomes::new();
    let mut ledger = Ledger::default();
    let mut now = Time::ZERO;
    let run = |element: &mut Box<dyn Element<TestPacket>>,
               ledger: &mut Ledger,
               outcomes: &mut Outcomes<TestPacket>,
               from: Time,
               until: Time| {
        let mut at = from;
        let mut idle = 0;
        while element.next_wakeup() <= until && element.next_wakeup() != Time::FAR {
            let due = element.next_wakeup();
            assert!(due >= at, "wake-up {due:?} lies before {at:?}");
            idle = if due > at { 0 } else { idle + 1 };
            assert!(idle < 100_000, "the element never lets time pass");
            at = due;
            if let Some(packet) = element.pop(at, outcomes) {
                ledger.leave(&packet, "left");
                idle = 0;
            }
            for drop in outcomes.drops.drain(..) {
                ledger.leave(&drop.packet, "was dropped");
            }
        }
    };
    for step in 0..steps {
        let next = now + Span::from_us(stream.below(3_000));
        run(&mut element, &mut ledger, &mut outcomes, now, next);
        now = next;
        let packet = random_packet(&mut stream, u64::from(step));
        ledger.enter(&packet);
        element.push(now, packet, &mut outcomes);
        for drop in outcomes.drops.drain(..) {
            ledger.leave(&drop.packet, "was dropped");
        }
        let held = element.held();
        assert!(element.queued().packets <= held.packets);
        ledger.check(held.bytes, held.packets);
        let mut visited = 0;
        element.visit_held(&mut |packet| {
            assert!(ledger.inside.contains(&packet.uid));
            visited += 1;
        });
        assert_eq!(visited, held.packets, "visit shows every packet once");
    }
    run(
        &mut element,
        &mut ledger,
        &mut outcomes,
        now,
        now + Span::from_secs(1e6),
    );
    ledger.check(0, 0);
    assert_eq!(
        element.next_wakeup(),
        Time::FAR,
        "an empty element waits for nothing"
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Entry, Setup, links, queues, rates};
    use narrows_units::{Kind, Params};
    use serde_json::{Map, Value, json};

    /// Values for the parameters of an entry: small ones, so that limits are met.
    fn params(entry: &Entry) -> Map<String, Value> {
        let value = |kind: Kind| match kind {
            Kind::Rate => json!(10_000_000),
            Kind::Span => json!(7_000_000),
            Kind::Bytes => json!(20_000),
            Kind::Packets | Kind::Count => json!(12),
            Kind::Ratio => json!(0.2),
            Kind::Number => json!(1.0),
            Kind::Flag => json!(true),
            Kind::Choice(words) => json!(words[0]),
            Kind::Counts => json!([3, 5, 8]),
            Kind::RateSteps => json!([[0, 10_000_000], [1_000_000_000, 2_000_000]]),
            Kind::SpanSteps => json!([[0, 7_000_000], [1_000_000_000, 2_000_000]]),
            Kind::File => json!({"name": "steady.trace", "sha256": "00"}),
        };
        // Where values must fit each other.
        let fitting = match entry.name {
            "steps" => json!({"period": 2_000_000_000}),
            "square" => json!({"low": 1_000_000}),
            "onoff" => json!({"phase": 3_000_000, "law": "exponential"}),
            "red" => {
                json!({"min_threshold": 2, "max_threshold": 6, "min_bytes": null, "max_bytes": null})
            }
            "priority" => json!({"bands": 8, "map": [3, 5, 8, 7]}),
            _ => json!({}),
        };
        let guessed = entry.params.iter();
        let guessed = guessed.map(|spec| (spec.name.to_owned(), value(spec.kind)));
        guessed
            .chain(fitting.as_object().unwrap().clone())
            .collect()
    }

    fn setup() -> Setup {
        let mut setup = Setup::new(5, "forward.0");
        setup.files.insert("00", b"0\n1\n1\n5\n".to_vec());
        setup
    }

    #[test]
    fn every_registered_queue_conforms() {
        for entry in queues::ALL {
            for seed in 0..20 {
                let queue = queues::build(entry.name, &params(entry), &setup()).unwrap();
                check_queue(queue, seed, 3_000);
            }
        }
    }

    #[test]
    fn every_registered_element_conforms() {
        for entry in links::ALL {
            for seed in 0..20 {
                let element = links::build(entry.name, &params(entry), &setup()).unwrap();
                check_element(element, seed, 2_000);
            }
        }
    }

    #[test]
    fn every_bottleneck_conforms() {
        for queue in queues::ALL {
            for rate in rates::ALL {
                for seed in 0..5 {
                    let server = rates::build(rate.name, &params(rate), &setup()).unwrap();
                    let queue = queues::build(queue.name, &params(queue), &setup()).unwrap();
                    let own = Params::resolve(crate::BOTTLENECK_PARAMS, []).unwrap();
                    let element = crate::Bottleneck::new(queue, server, &own);
                    check_element(Box::new(element), seed, 2_000);
                }
            }
        }
    }

    #[test]
    fn entries_are_complete() {
        let all = [queues::ALL, links::ALL, rates::ALL].concat();
        for entry in all {
            assert!(!entry.summary.is_empty());
            for name in entry.shorthand {
                assert!(
                    entry.params.iter().any(|spec| spec.name == *name),
                    "{}",
                    entry.name
                );
            }
        }
    }

    #[test]
    fn builders_refuse_in_one_sentence() {
        let refuse = |name: &str, params: Value| {
            let params = params.as_object().unwrap().clone();
            match queues::build::<TestPacket>(name, &params, &setup()) {
                Ok(_) => panic!("{name} {params:?} was accepted"),
                Err(error) => error.to_string(),
            }
        };
        assert!(
            refuse("droptial", json!({}))
                .starts_with("unknown queue 'droptial'; known: droptail, drophead, unlimited")
        );
        assert!(refuse("droptail", json!({})).contains("a limit is missing"));
        assert!(refuse("droptail", json!({"bytes": 0})).contains("must be between 1"));
        assert!(refuse("unlimited", json!({"bytes": 1})).contains("allowed: none"));
    }
}
