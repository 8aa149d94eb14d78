//! CoDel compared with RFC 8289.

use crate::harness::{
    Event, Fate, MS, Machine, RATE, compare, drop_times, order, packet, play, real,
};
use narrows_net::Ecn;
use narrows_net::testing::TestPacket;
use serde_json::json;

/// The pseudo-code of RFC 8289, section 5, with its loop; zero means "no time set" as there.
pub(crate) struct Model {
    pub(crate) queue: Vec<(u64, TestPacket)>,
    pub(crate) target: u64,
    pub(crate) interval: u64,
    pub(crate) ecn: bool,
    first_above_time: u64,
    drop_next: u64,
    count: u64,
    lastcount: u64,
    dropping: bool,
}

impl Model {
    pub(crate) fn new(target_ms: u64, interval_ms: u64, ecn: bool) -> Self {
        Model {
            queue: Vec::new(),
            target: target_ms * MS,
            interval: interval_ms * MS,
            ecn,
            first_above_time: 0,
            drop_next: 0,
            count: 0,
            lastcount: 0,
            dropping: false,
        }
    }

    fn control_law(&self, t: u64) -> u64 {
        t + (self.interval as f64 / (self.count as f64).sqrt()) as u64
    }

    fn dodequeue(&mut self, now: u64) -> (Option<TestPacket>, bool) {
        if self.queue.is_empty() {
            self.first_above_time = 0;
            return (None, false);
        }
        let (stamp, packet) = self.queue.remove(0);
        let bytes: u32 = self.queue.iter().map(|(_, packet)| packet.size).sum();
        let mut ok_to_drop = false;
        if now - stamp < self.target || bytes <= 1500 {
            self.first_above_time = 0;
        } else if self.first_above_time == 0 {
            self.first_above_time = now + self.interval;
        } else if now >= self.first_above_time {
            ok_to_drop = true;
        }
        (Some(packet), ok_to_drop)
    }

    /// Marks the packet instead, if possible; returns whether it did.
    fn marks(&self, packet: &mut TestPacket) -> bool {
        let can = self.ecn && packet.ecn != Ecn::NotEct;
        if can {
            packet.ecn = Ecn::Ce;
        }
        can
    }

    pub(crate) fn dequeue(&mut self, now: u64, log: &mut Vec<Event>) -> Option<TestPacket> {
        let (mut r, mut ok) = self.dodequeue(now);
        if self.dropping {
            if !ok {
                self.dropping = false;
            }
            while now >= self.drop_next && self.dropping {
                self.count += 1;
                if self.marks(r.as_mut().unwrap()) {
                    self.drop_next = self.control_law(self.drop_next);
                    return r;
                }
                log.push((now, r.unwrap().uid, Fate::Dropped("codel")));
                (r, ok) = self.dodequeue(now);
                if ok {
                    self.drop_next = self.control_law(self.drop_next);
                } else {
                    self.dropping = false;
                }
            }
        } else if ok {
            let marked = self.marks(r.as_mut().unwrap());
            if !marked {
                log.push((now, r.unwrap().uid, Fate::Dropped("codel")));
                (r, _) = self.dodequeue(now);
            }
            self.dropping = true;
            let delta = self.count - self.lastcount;
            self.count = 1;
            if delta > 1 && now as i64 - (self.drop_next as i64) < 16 * self.interval as i64 {
                self.count = delta;
            }
            self.drop_next = self.control_law(now);
            self.lastcount = self.count;
        }
        r
    }
}

/// The model with a log of departures.
struct Logged(Model, std::collections::BTreeMap<u64, Ecn>);

impl Machine for Logged {
    fn arrive(&mut self, now: u64, packet: TestPacket, _: &mut Vec<Event>) {
        self.1.insert(packet.uid, packet.ecn);
        self.0.queue.push((now, packet));
    }

    fn take(&mut self, now: u64, log: &mut Vec<Event>) -> Option<TestPacket> {
        let packet = self.0.dequeue(now, log)?;
        let marked = self.1[&packet.uid] != packet.ecn;
        let fate = if marked { Fate::LeftMarked } else { Fate::Left };
        log.push((now, packet.uid, fate));
        Some(packet)
    }
}

#[test]
fn decides_as_the_pseudo_code_does() {
    for (target, interval) in [(5, 100), (1, 20), (20, 40)] {
        for ecn in [false, true] {
            let params = json!({"target": target * MS, "interval": interval * MS, "ecn": ecn});
            let model = || {
                Logged(
                    Model::new(target, interval, ecn),
                    std::collections::BTreeMap::new(),
                )
            };
            let (drops, marks) = compare(|| real("codel", &params), || Box::new(model()));
            assert!(drops > 200, "{drops} drops");
            assert_eq!(marks > 100, ecn, "{marks} marks");
        }
    }
}

/// 1500 bytes every 0.5 ms; one packet leaves every millisecond. Packet k begins service at k ms and has waited k/2 ms:
/// 5 ms first at 10 ms, so the first drop is due at 110 ms. After that the drops are due 100 ms / sqrt(n) apart: 210,
/// 280.71, 338.45, 388.45, 433.17, 473.99, 511.79, 547.14, 580.48, 612.10 ms; packets leave at whole milliseconds.
#[test]
fn drops_at_the_times_worked_out_by_hand() {
    let script: Vec<_> = (0..1300).map(|k| (k * MS / 2, packet(k, 1500))).collect();
    let log = play(&mut real("codel", &json!({})), &script, RATE);
    let expected = [110, 210, 281, 339, 389, 434, 474, 512, 548, 581, 613];
    let times: Vec<u64> = drop_times(&log, "codel").iter().map(|at| at / MS).collect();
    assert_eq!(times[..expected.len()], expected);

    // If packets can be marked, the same number of signals, and no packet is lost.
    let script: Vec<_> = script
        .into_iter()
        .map(|(at, packet)| {
            let ecn = Ecn::Ect0;
            (at, TestPacket { ecn, ..packet })
        })
        .collect();
    let log = play(&mut real("codel", &json!({})), &script, RATE);
    let marked: Vec<u64> = log
        .iter()
        .filter(|(.., fate)| *fate == Fate::LeftMarked)
        .map(|(at, ..)| at / MS)
        .collect();
    assert_eq!(marked[..expected.len()], expected);
    assert_eq!(order(&log).len(), 1300);
}

/// After a pause that is short compared with 16 intervals, dropping resumes at the previous rate.
#[test]
fn resumes_the_count_of_the_last_dropping_state() {
    let run = |pause_ms: u64| {
        let mut script: Vec<_> = (0..1300).map(|k| (k * MS / 2, packet(k, 1500))).collect();
        let from = (1_300 + pause_ms) * MS;
        script.extend((0..800).map(|k| (from + k * MS / 2, packet(2000 + k, 1500))));
        let log = play(&mut real("codel", &json!({})), &script, RATE);
        let times = drop_times(&log, "codel");
        let again: Vec<u64> = times.into_iter().filter(|&at| at >= from).collect();
        (again[1] - again[0]) / MS
    };
    assert!(run(200) < 40, "a count of more than 6: {} ms", run(200));
    assert_eq!(run(3_000), 100, "a new start");
}

#[test]
fn one_full_packet_behind_is_never_dropped() {
    // A link of 0.6 Mbit/s needs 20 ms for each packet: with two packets every 40 ms the second always waits far beyond
    // the target, but no packet waits behind it.
    let script: Vec<_> = (0..400)
        .map(|k| (k / 2 * 40 * MS, packet(k, 1500)))
        .collect();
    let log = play(&mut real("codel", &json!({})), &script, 600_000);
    assert_eq!(order(&log).len(), 400);
    // Two at the start and then one every 20 ms: each waits for 20 ms and more, and exactly one waits behind it.
    let script: Vec<_> = (0..400)
        .map(|k| {
            (
                if k < 2 { 0 } else { (10 + 20 * (k - 2)) * MS },
                packet(k, 1500),
            )
        })
        .collect();
    let log = play(&mut real("codel", &json!({})), &script, 600_000);
    assert_eq!(order(&log).len(), 400);
}

#[test]
fn a_ce_threshold_marks_at_once() {
    let mut script: Vec<_> = (0..20).map(|k| (0, packet(k, 1500))).collect();
    for (_, packet) in &mut script {
        packet.ecn = Ecn::Ect1;
    }
    let log = play(
        &mut real("codel", &json!({"ce_threshold": 4 * MS})),
        &script,
        RATE,
    );
    let marked: Vec<u64> = log
        .iter()
        .filter(|(.., fate)| *fate == Fate::LeftMarked)
        .map(|(_, uid, _)| *uid)
        .collect();
    assert_eq!(marked, (5..20).collect::<Vec<_>>(), "longer than 4 ms");
}
