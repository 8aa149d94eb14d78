//! PIE compared with RFC 8033.

use crate::harness::{Event, Fate, MS, Machine, chance, compare, packet, real};
use narrows_net::Ecn;
use narrows_net::testing::TestPacket;
use narrows_units::Stream;
use serde_json::json;

/// RFC 8033, appendix A, with sections 5.1, 5.4 and 5.5; times in milliseconds, a timer that fires one
/// period at a time, and the largest queue in packets.
struct Model {
    queue: Vec<(u64, TestPacket)>,
    random: Stream,
    maximum: usize,
    derandomize: bool,
    timer: u64,
    drop_prob: f64,
    accu_prob: f64,
    burst_allowance: f64,
    qdelay_old: f64,
    current_qdelay: f64,
}

const QDELAY_REF: f64 = 15.0;
const T_UPDATE: u64 = 15 * MS;

impl Model {
    fn new(maximum: usize, derandomize: bool) -> Self {
        Model {
            queue: Vec::new(),
            random: chance(),
            maximum,
            derandomize,
            timer: T_UPDATE,
            drop_prob: 0.0,
            accu_prob: 0.0,
            burst_allowance: 150.0,
            qdelay_old: 0.0,
            current_qdelay: 0.0,
        }
    }

    fn run_timer(&mut self, now: u64) {
        while self.timer <= now {
            self.timer += T_UPDATE;
            let (current, old) = (self.current_qdelay, self.qdelay_old);
            let p = 0.125e-3 * (current - QDELAY_REF) + 1.25e-3 * (current - old);
            let p = match self.drop_prob {
                x if x < 0.000_001 => p / 2048.0,
                x if x < 0.000_01 => p / 512.0,
                x if x < 0.000_1 => p / 128.0,
                x if x < 0.001 => p / 32.0,
                x if x < 0.01 => p / 8.0,
                x if x < 0.1 => p / 2.0,
                _ => p,
            };
            let capped = self.drop_prob >= 0.1 && p > 0.02;
            self.drop_prob += if capped { 0.02 } else { p };
            if current < QDELAY_REF / 2.0 && old < QDELAY_REF / 2.0 {
                self.drop_prob *= 0.98;
            }
            self.drop_prob = self.drop_prob.clamp(0.0, 1.0);
            self.qdelay_old = current;
            self.burst_allowance = (self.burst_allowance - 15.0).max(0.0);
        }
    }

    fn drop_early(&mut self) -> bool {
        let bytes: u32 = self.queue.iter().map(|(_, packet)| packet.size).sum();
        if self.qdelay_old < QDELAY_REF / 2.0 && self.drop_prob < 0.2 {
            return false;
        }
        if bytes <= 2 * 1500 {
            return false;
        }
        if self.derandomize {
            if self.drop_prob == 0.0 {
                self.accu_prob = 0.0;
            }
            self.accu_prob += self.drop_prob;
            if self.accu_prob < 0.85 {
                return false;
            }
            if self.accu_prob >= 8.5 {
                return true;
            }
        }
        self.random.uniform() < self.drop_prob
    }
}

impl Machine for Model {
    fn arrive(&mut self, now: u64, mut packet: TestPacket, log: &mut Vec<Event>) {
        self.run_timer(now);
        if self.queue.len() >= self.maximum {
            self.accu_prob = 0.0;
            log.push((now, packet.uid, Fate::Dropped("queue_full")));
            return;
        }
        let half = QDELAY_REF / 2.0;
        if self.drop_prob == 0.0 && self.current_qdelay < half && self.qdelay_old < half {
            self.burst_allowance = 150.0;
        }
        if self.burst_allowance == 0.0 && self.drop_early() {
            self.accu_prob = 0.0;
            if packet.ecn == Ecn::NotEct || self.drop_prob > 0.1 {
                log.push((now, packet.uid, Fate::Dropped("pie_early")));
                return;
            }
            // Route 1: marked here. A packet that arrived marked is not marked again.
            packet.route = u16::from(packet.ecn != Ecn::Ce);
        }
        self.queue.push((now, packet));
    }

    fn take(&mut self, now: u64, log: &mut Vec<Event>) -> Option<TestPacket> {
        self.run_timer(now);
        if self.queue.is_empty() {
            return None;
        }
        let (stamp, packet) = self.queue.remove(0);
        self.current_qdelay = if self.queue.is_empty() {
            0.0
        } else {
            (now - stamp) as f64 / MS as f64
        };
        let marked = packet.route == 1;
        let fate = if marked { Fate::LeftMarked } else { Fate::Left };
        log.push((now, packet.uid, fate));
        Some(packet)
    }
}

#[test]
fn decides_as_the_pseudo_code_does() {
    for derandomize in [true, false] {
        for maximum in [40, 100_000] {
            let params = json!({"packets": maximum, "derandomize": derandomize});
            let (drops, marks) = compare(
                || real("pie", &params),
                || Box::new(Model::new(maximum, derandomize)),
            );
            assert!(drops > 100, "{drops} drops");
            assert!(marks > 20, "{marks} marks");
        }
    }
}

/// With gains so large that the first update with a queue sets the probability to one, the first drop shows when the
/// burst allowance is used up. Packets wait from time 0; one leaves at 20 ms and the last arrival before the next
/// update, at 29 ms, finds probability zero but no quiet period any more. The allowance was renewed at 16 ms and lasts
/// for ten updates: 30, 45 ... 165 ms.
#[test]
fn the_burst_allowance_lasts_for_ten_updates() {
    let mut queue = real("pie", &json!({"beta": 1e6}));
    let mut log = Vec::new();
    for uid in 0..50 {
        queue.arrive(0, packet(uid, 1500), &mut log);
    }
    queue.arrive(16 * MS, packet(50, 1500), &mut log);
    queue.take(20 * MS, &mut log).unwrap();
    for ms in 21..=300 {
        queue.arrive(ms * MS, packet(100 + ms, 1500), &mut log);
    }
    let drops: Vec<u64> = log
        .iter()
        .filter(|(.., fate)| *fate == Fate::Dropped("pie_early"))
        .map(|(at, ..)| at / MS)
        .collect();
    assert_eq!(drops, (165..=300).collect::<Vec<_>>());
}

/// A long silence takes no time: updates that change nothing are skipped.
#[test]
fn a_long_silence_is_free() {
    let mut queue = real("pie", &json!({"tupdate": 100_000}));
    let mut log = Vec::new();
    for round in 1..200_u64 {
        let at = round * 3_600_000 * MS;
        queue.arrive(at, packet(round, 1500), &mut log);
        queue.take(at + MS, &mut log).unwrap();
    }
    assert_eq!(log.len(), 199);
}
