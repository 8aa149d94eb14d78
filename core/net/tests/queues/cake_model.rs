//! CAKE compared with a second, naive transcription of the papers on CAKE and COBALT.

use crate::harness::{Event, Fate, MS, Machine, chance, compare, real};
use narrows_net::Ecn;
use narrows_net::testing::TestPacket;
use narrows_units::Stream;
use serde_json::json;
use std::collections::BTreeMap;

/// A connection in a second, naive transcription of the descriptions.
#[derive(Default)]
struct Own {
    waiting: Vec<(u64, TestPacket)>,
    deficit: i64,
    /// True if it counts as busy.
    busy: bool,
    count: u32,
    due: u64,
    signalling: bool,
    blue: f64,
    blue_at: u64,
    empty_at: u64,
}

const TARGET: u64 = 5 * MS;

impl Own {
    fn bytes(&self) -> u32 {
        self.waiting.iter().map(|(_, packet)| packet.size).sum()
    }

    fn step(&self) -> u64 {
        (1e8 / f64::from(self.count.max(1)).sqrt()) as u64
    }

    fn unlearn(&mut self, now: u64) {
        while self.count > 0 && self.due <= now {
            self.count -= 1;
            self.due += self.step();
        }
    }

    fn found_empty(&mut self, now: u64) {
        if self.blue > 0.0 && now > self.blue_at + TARGET {
            self.blue = (self.blue - 1.0 / 4096.0).max(0.0);
            self.blue_at = now;
        }
        self.empty_at = now;
        self.signalling = false;
        self.unlearn(now);
    }

    /// Every 5 ms for which it was empty reduce the probability like finding it empty.
    fn was_empty(&mut self, now: u64) {
        let rounds = (now - self.blue_at.max(self.empty_at)) / TARGET;
        if self.blue > 0.0 && rounds > 0 {
            self.blue = (self.blue - rounds as f64 / 4096.0).max(0.0);
            self.blue_at = now;
        }
        self.unlearn(now);
    }
}

/// One class, one host, and a queue for each connection: those of the scripts fit into any set.
struct Model {
    own: BTreeMap<u32, Own>,
    new: Vec<u32>,
    old: Vec<u32>,
    memory: u32,
    chance: Stream,
}

impl Model {
    fn new(memory: u32) -> Self {
        let mut chance = chance();
        // The seed of the hash, on which no result depends here.
        chance.bits();
        Model {
            own: BTreeMap::new(),
            new: Vec::new(),
            old: Vec::new(),
            memory,
            chance,
        }
    }

    fn quantum(&mut self) -> i64 {
        let load = self.own.values().filter(|own| own.busy).count().max(1) as u64;
        let up = if load > 1 { self.chance.below(load) } else { 0 };
        ((1500 + up) / load) as i64
    }

    /// The packet that COBALT passes, after those that it drops, and whether it is marked.
    fn decide(
        &mut self,
        number: u32,
        now: u64,
        log: &mut Vec<Event>,
    ) -> Option<(TestPacket, bool)> {
        let own = self.own.get_mut(&number).unwrap();
        while !own.waiting.is_empty() {
            let (at, packet) = own.waiting.remove(0);
            let due = own.count > 0 && own.due <= now;
            let above = now - at > TARGET;
            if above && !own.signalling {
                own.due = now + own.step();
            }
            own.signalling = above;
            if above {
                own.count = own.count.max(1);
            }
            let signal = due && above;
            if signal {
                own.count += 1;
                own.due += own.step();
            } else if due {
                own.unlearn(now);
            }
            let marked = signal && packet.ecn != Ecn::NotEct;
            let mut why = (signal && !marked).then_some("cobalt");
            if why.is_none() && own.blue > 0.0 && self.chance.chance(own.blue) {
                why = Some("blue");
            }
            if own.count == 0 {
                own.due = now + 100 * MS;
            } else if why.is_none() {
                own.due = own.due.max(now);
            }
            match why {
                Some(reason) => log.push((now, packet.uid, Fate::Dropped(reason))),
                None => return Some((packet, marked && packet.ecn != Ecn::Ce)),
            }
        }
        None
    }
}

impl Machine for Model {
    fn arrive(&mut self, now: u64, packet: TestPacket, log: &mut Vec<Event>) {
        let number = packet.connection;
        let idle = !self.new.contains(&number) && !self.old.contains(&number);
        let quantum = if idle { self.quantum() } else { 0 };
        let own = self.own.entry(number).or_default();
        // A queue that was empty when its turn ended is busy as soon as it has a packet.
        own.busy |= !idle && own.waiting.is_empty() && self.old.contains(&number);
        own.waiting.push((now, packet));
        if idle {
            own.was_empty(now);
            own.deficit = quantum;
            self.new.push(number);
        }
        while self.own.values().map(Own::bytes).sum::<u32>() > self.memory {
            // Among equals, the one whose turn comes first.
            let turns = || self.new.iter().chain(&self.old);
            let maximum = turns()
                .map(|number| self.own[number].bytes())
                .max()
                .unwrap();
            let longest = *turns()
                .find(|number| self.own[number].bytes() == maximum)
                .unwrap();
            let own = self.own.get_mut(&longest).unwrap();
            if now > own.blue_at + TARGET {
                own.blue = (own.blue + 1.0 / 256.0).min(1.0);
                own.blue_at = now;
            }
            (own.signalling, own.due, own.count) = (true, now, own.count.max(1));
            let (_, packet) = own.waiting.remove(0);
            log.push((now, packet.uid, Fate::Dropped("queue_full")));
        }
    }

    fn take(&mut self, now: u64, log: &mut Vec<Event>) -> Option<TestPacket> {
        loop {
            let is_new = !self.new.is_empty();
            let list = if is_new { &mut self.new } else { &mut self.old };
            let number = *list.first()?;
            let own = self.own.get_mut(&number).unwrap();
            if own.deficit <= 0 {
                list.remove(0);
                own.busy |= is_new && !own.waiting.is_empty();
                self.old.push(number);
                let quantum = self.quantum();
                self.own.get_mut(&number).unwrap().deficit += quantum;
                continue;
            }
            if let Some((packet, marked)) = self.decide(number, now, log) {
                self.own.get_mut(&number).unwrap().deficit -= i64::from(packet.size);
                let fate = if marked { Fate::LeftMarked } else { Fate::Left };
                log.push((now, packet.uid, fate));
                return Some(packet);
            }
            let own = self.own.get_mut(&number).unwrap();
            own.found_empty(now);
            if is_new {
                self.new.remove(0);
                self.old.push(number);
            } else {
                own.busy = false;
                self.old.remove(0);
            }
        }
    }
}

#[test]
fn decides_as_the_papers_describe() {
    for memory in [15_360_000, 40_000] {
        let params = json!({ "memory": memory });
        let (drops, marks) = compare(|| real("cake", &params), || Box::new(Model::new(memory)));
        assert!(drops > 200, "{drops} drops");
        assert!(marks > 100, "{marks} marks");
    }
}
