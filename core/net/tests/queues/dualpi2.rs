//! DualPI2 compared with RFC 9332, appendix A.

use crate::harness::{Event, Fate, MS, Machine, chance, compare, order, packet, play, real};
use narrows_net::Ecn;
use narrows_net::testing::TestPacket;
use narrows_units::Stream;
use serde_json::json;

/// Appendix A with the overload variant, times in milliseconds, and a byte-weighted round robin that
/// owes the classic queue a tenth.
struct Model {
    lq: Vec<(u64, TestPacket)>,
    cq: Vec<(u64, TestPacket)>,
    lq_count: f64,
    cq_count: f64,
    /// Bytes by which the classic queue is behind its share.
    behind: f64,
    random: Option<Stream>,
    ramp: Option<(f64, f64)>,
    p: f64,
    prevq: f64,
    timer: u64,
}

const TUPDATE: u64 = 16 * MS;

fn recur(count: &mut f64, likelihood: f64) -> bool {
    *count += likelihood;
    if *count > 1.0 {
        *count -= 1.0;
        return true;
    }
    false
}

impl Model {
    fn new(random: bool, ramp: bool) -> Self {
        Model {
            lq: Vec::new(),
            cq: Vec::new(),
            lq_count: 0.0,
            cq_count: 0.0,
            behind: 0.0,
            random: random.then(chance),
            ramp: ramp.then_some((0.8, 0.4)),
            p: 0.0,
            prevq: 0.0,
            timer: TUPDATE,
        }
    }

    fn run_timer(&mut self, now: u64) {
        while self.timer <= now {
            let time = |queue: &[(u64, TestPacket)]| {
                queue
                    .first()
                    .map_or(0.0, |(stamp, _)| (self.timer - stamp) as f64 / MS as f64)
            };
            let curq = time(&self.lq).max(time(&self.cq));
            self.p += 0.16e-3 * (curq - 15.0) + 3.2e-3 * (curq - self.prevq);
            self.p = self.p.clamp(0.0, 1.0);
            self.prevq = curq;
            self.timer += TUPDATE;
        }
    }

    fn laqm(&self, waited_ms: f64) -> f64 {
        if self.lq.is_empty() {
            return 0.0;
        }
        match self.ramp {
            None => f64::from(u8::from(waited_ms >= 1.0)),
            Some((min, range)) => ((waited_ms - min) / range).clamp(0.0, 1.0),
        }
    }

    /// Whether a signal with probability p'^2 is due, in the low-latency queue or the classic one.
    fn classic_signal(&mut self, low: bool) -> bool {
        match &mut self.random {
            Some(random) => {
                let (first, second) = (random.uniform(), random.uniform());
                first < self.p && second < self.p
            }
            None if low => recur(&mut self.lq_count, self.p * self.p),
            None => recur(&mut self.cq_count, self.p * self.p),
        }
    }

    fn low_signal(&mut self, likelihood: f64) -> bool {
        match &mut self.random {
            Some(random) => random.uniform() < likelihood,
            None => recur(&mut self.lq_count, likelihood),
        }
    }
}

impl Machine for Model {
    fn arrive(&mut self, now: u64, packet: TestPacket, _: &mut Vec<Event>) {
        self.run_timer(now);
        if packet.ecn as u8 % 2 == 1 {
            self.lq.push((now, packet));
        } else {
            self.cq.push((now, packet));
        }
    }

    fn take(&mut self, now: u64, log: &mut Vec<Event>) -> Option<TestPacket> {
        self.run_timer(now);
        loop {
            if self.lq.is_empty() && self.cq.is_empty() {
                return None;
            }
            if self.lq.is_empty() || self.cq.is_empty() {
                self.behind = 0.0;
            }
            let low = self.cq.is_empty() || (!self.lq.is_empty() && self.behind <= 0.0);
            let (stamp, packet) = if low {
                self.lq.remove(0)
            } else {
                self.cq.remove(0)
            };
            let size = f64::from(packet.size);
            let p_cl = (2.0 * self.p).min(1.0);
            let mut marked = false;
            if low {
                if !self.cq.is_empty() {
                    self.behind += 0.1 * size;
                }
                if p_cl < 1.0 {
                    let native = self.laqm((now - stamp) as f64 / MS as f64);
                    marked = self.low_signal(p_cl.max(native));
                } else {
                    if self.classic_signal(true) {
                        log.push((now, packet.uid, Fate::Dropped("dualpi2")));
                        continue;
                    }
                    marked = self.low_signal(p_cl);
                }
                marked &= packet.ecn != Ecn::Ce;
            } else {
                if self.classic_signal(false) {
                    if packet.ecn == Ecn::NotEct || self.p * self.p >= 0.25 {
                        log.push((now, packet.uid, Fate::Dropped("dualpi2")));
                        continue;
                    }
                    marked = true;
                }
                if !self.lq.is_empty() {
                    self.behind -= 0.9 * size;
                }
            }
            let fate = if marked { Fate::LeftMarked } else { Fate::Left };
            log.push((now, packet.uid, fate));
            return Some(packet);
        }
    }
}

#[test]
fn decides_as_the_pseudo_code_does() {
    for random in [false, true] {
        for ramp in [false, true] {
            let params = json!({"signals": if random { "random" } else { "regular" },
                                "ramp": if ramp { 400_000 } else { 0 }});
            let (drops, marks) = compare(
                || real("dualpi2", &params),
                || Box::new(Model::new(random, ramp)),
            );
            assert!(drops > 300, "{drops} drops");
            assert!(marks > 300, "{marks} marks");
        }
    }
}

fn as_ecn(packet: TestPacket, ecn: Ecn) -> TestPacket {
    TestPacket { ecn, ..packet }
}

fn marked(log: &[Event]) -> Vec<u64> {
    log.iter()
        .filter(|(.., fate)| *fate == Fate::LeftMarked)
        .map(|(_, uid, _)| *uid)
        .collect()
}

/// The recurrence signals first with the second eligible packet, then with each.
#[test]
fn the_low_latency_queue_marks_from_one_millisecond_on() {
    for (waited, expected) in [(MS - 1, vec![]), (MS, vec![1, 2, 3])] {
        let mut queue = real("dualpi2", &json!({}));
        let mut log = Vec::new();
        for uid in 0..5 {
            queue.arrive(0, as_ecn(packet(uid, 1500), Ecn::Ect1), &mut log);
        }
        for _ in 0..5 {
            queue.take(waited, &mut log);
        }
        // The last packet has no other behind it.
        assert_eq!(marked(&log), expected, "after {waited} ns");
    }
}

/// The classic head has waited 5 ms at the update at 16 ms. With alpha 0 and beta 30 Hz, p' = 0.15:
/// scalable packets are marked with k p' = 0.3 (sums 0.3, 0.6, 0.9, 1.2: the fourth; then 0.5, 0.8,
/// 1.1: the seventh), classic ones with p'^2 = 0.0225 (the 45th is the first beyond 1/0.0225 = 44.4).
#[test]
fn signals_are_coupled_by_the_square() {
    let params = json!({"alpha": 0.0, "beta": 30.0, "step": 1_000 * MS});
    let mut queue = real("dualpi2", &params);
    let mut log = Vec::new();
    for uid in 0..60 {
        queue.arrive(11 * MS, packet(uid, 1500), &mut log);
    }
    for uid in 100..108 {
        queue.arrive(16 * MS, as_ecn(packet(uid, 1500), Ecn::Ect1), &mut log);
    }
    while queue.take(17 * MS, &mut log).is_some() {}
    assert_eq!(marked(&log), [103, 106]);
    let drops: Vec<u64> = log
        .iter()
        .filter(|(.., fate)| matches!(fate, Fate::Dropped(_)))
        .map(|(_, uid, _)| *uid)
        .collect();
    assert_eq!(drops, [44]);
}

/// p' = 0.6: k p' has reached 1, so the low-latency queue drops with p'^2 = 0.36 (the third of ten, as 1.08; every
/// other one is marked or carried over), and classic ECN is off.
#[test]
fn overload_drops_in_both_queues() {
    let params = json!({"alpha": 0.0, "beta": 60.0});
    for ecn in [Ecn::Ect1, Ecn::Ect0] {
        let mut queue = real("dualpi2", &params);
        let mut log = Vec::new();
        for uid in 0..10 {
            queue.arrive(6 * MS, as_ecn(packet(uid, 1500), ecn), &mut log);
        }
        while queue.take(17 * MS, &mut log).is_some() {}
        let drops = log.len() - order(&log).len();
        if ecn == Ecn::Ect0 {
            assert_eq!((drops, marked(&log)), (3, vec![]), "10 x 0.36 = 3.6");
        } else {
            assert!(drops >= 3 && !marked(&log).is_empty());
        }
    }
}

#[test]
fn the_classic_queue_keeps_its_share() {
    let mut queue = real(
        "dualpi2",
        &json!({"alpha": 0.0, "beta": 0.0, "classic_share": 0.25}),
    );
    let mut log = Vec::new();
    for uid in 0..400 {
        let ecn = if uid < 200 { Ecn::Ect1 } else { Ecn::NotEct };
        queue.arrive(0, as_ecn(packet(uid, 1500), ecn), &mut log);
    }
    for _ in 0..100 {
        queue.take(0, &mut log);
    }
    let classic = order(&log).into_iter().filter(|uid| *uid >= 200).count();
    assert_eq!(classic, 25);
    assert_eq!(order(&log)[..5], [0, 200, 1, 2, 3]);
}

/// Updates that change nothing are skipped, with the same result as carrying them out.
#[test]
fn a_long_standstill_ends_where_all_its_updates_would() {
    // On 1 kbit/s a packet takes 12 s; the last arrivals come after an hour without any.
    let hour = 3_600_000 * MS;
    let script: Vec<_> = [0, 1, 2, 3, hour, hour + 1, hour + 2, 2 * hour, 2 * hour + 1]
        .into_iter()
        .enumerate()
        .map(|(uid, at)| {
            let ecn = if uid % 2 == 0 { Ecn::Ect0 } else { Ecn::Ect1 };
            (at, as_ecn(packet(uid as u64, 1500), ecn))
        })
        .collect();
    for rate in [1_000, 10_000] {
        let got = play(&mut real("dualpi2", &json!({})), &script, rate);
        let expected = play(&mut Model::new(false, false), &script, rate);
        assert_eq!(got, expected);
    }
}
