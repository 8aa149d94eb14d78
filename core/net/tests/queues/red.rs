//! RED compared with Floyd and Jacobson 1993, figure 2, with the gentle and the adaptive variant.

use crate::harness::{Event, Fate, Machine, chance, compare, real};
use narrows_net::Ecn;
use narrows_net::testing::TestPacket;
use narrows_units::Stream;
use serde_json::{Value, json};

struct Model {
    queue: Vec<(u64, TestPacket)>,
    random: Stream,
    maximum: u64,
    bytes: bool,
    min_th: f64,
    max_th: f64,
    max_p: f64,
    w_q: f64,
    gentle: bool,
    adaptive: bool,
    next_step: u64,
    avg: f64,
    count: i64,
    q_time: Option<u64>,
}

impl Model {
    fn new(params: &Value) -> Self {
        let number = |name: &str| params[name].as_f64();
        let adaptive = params["adaptive"].as_bool() == Some(true);
        let bytes = number("min_bytes").is_some();
        let (min, max) = if bytes {
            ("min_bytes", "max_bytes")
        } else {
            ("min_threshold", "max_threshold")
        };
        // 1.2 ms per packet: 833.33 packets per second.
        let own = if adaptive {
            1.0 - (-1.0_f64 / 833.333_333_333_333_3).exp()
        } else {
            0.002
        };
        Model {
            queue: Vec::new(),
            random: chance(),
            maximum: if bytes {
                params["bytes"].as_u64().unwrap()
            } else {
                params["packets"].as_u64().unwrap()
            },
            bytes,
            min_th: number(min).unwrap(),
            max_th: number(max).unwrap(),
            max_p: number("max_p").unwrap_or(0.1),
            w_q: number("weight").unwrap_or(own),
            gentle: params["gentle"].as_bool() != Some(false),
            adaptive,
            next_step: 500_000_000,
            avg: 0.0,
            count: -1,
            q_time: Some(0),
        }
    }

    fn length(&self) -> u64 {
        self.queue
            .iter()
            .map(|(_, packet)| {
                if self.bytes {
                    u64::from(packet.size)
                } else {
                    1
                }
            })
            .sum()
    }

    fn marks(&mut self, now: u64, size: u32) -> bool {
        while self.adaptive && self.next_step <= now {
            self.next_step += 500_000_000;
            let low = self.min_th + 0.4 * (self.max_th - self.min_th);
            let high = self.min_th + 0.6 * (self.max_th - self.min_th);
            if self.avg > high && self.max_p <= 0.5 {
                self.max_p += f64::min(0.01, self.max_p / 4.0);
            } else if self.avg < low && self.max_p >= 0.01 {
                self.max_p *= 0.9;
            }
        }
        let q = self.length() as f64;
        if let Some(since) = self.q_time.take() {
            let m = (now - since) as f64 / 1_200_000.0;
            self.avg *= (1.0 - self.w_q).powf(m);
        } else {
            self.avg = (1.0 - self.w_q) * self.avg + self.w_q * q;
        }
        let (min, max) = (self.min_th, self.max_th);
        let mut p_b = if self.avg < min {
            self.count = -1;
            return false;
        } else if self.avg < max {
            self.max_p * (self.avg - min) / (max - min)
        } else if self.gentle && self.avg < 2.0 * max {
            self.max_p + (self.avg / max - 1.0) * (1.0 - self.max_p)
        } else {
            self.count = 0;
            return true;
        };
        self.count += 1;
        if self.bytes {
            p_b *= f64::from(size) / 1500.0;
        }
        let rest = 1.0 - self.count as f64 * p_b;
        let hit = if rest <= 0.0 {
            true
        } else {
            self.random.uniform() < p_b / rest
        };
        if hit {
            self.count = 0;
        }
        hit
    }
}

impl Machine for Model {
    fn arrive(&mut self, now: u64, mut packet: TestPacket, log: &mut Vec<Event>) {
        let size = if self.bytes {
            u64::from(packet.size)
        } else {
            1
        };
        let room = self.length() + size <= self.maximum;
        if self.marks(now, packet.size) {
            if packet.ecn == Ecn::NotEct {
                log.push((now, packet.uid, Fate::Dropped("red_early")));
                return;
            }
            packet.route = u16::from(packet.ecn != Ecn::Ce);
        }
        if !room {
            log.push((now, packet.uid, Fate::Dropped("queue_full")));
            return;
        }
        self.queue.push((now, packet));
    }

    fn take(&mut self, now: u64, log: &mut Vec<Event>) -> Option<TestPacket> {
        if self.queue.is_empty() {
            self.q_time = Some(now);
            return None;
        }
        let (_, packet) = self.queue.remove(0);
        let marked = packet.route == 1;
        let fate = if marked { Fate::LeftMarked } else { Fate::Left };
        log.push((now, packet.uid, fate));
        Some(packet)
    }
}

#[test]
fn decides_as_the_papers_do() {
    for params in [
        json!({"packets": 200, "min_threshold": 5, "max_threshold": 15}),
        json!({"packets": 60, "min_threshold": 10, "max_threshold": 20, "weight": 0.05}),
        json!({"packets": 200, "min_threshold": 5, "max_threshold": 15, "gentle": false, "max_p": 0.02}),
        json!({"bytes": 150_000, "min_bytes": 7_500, "max_bytes": 22_500, "weight": 0.01}),
        json!({"packets": 300, "min_threshold": 5, "max_threshold": 15, "adaptive": true}),
        json!({"packets": 300, "min_threshold": 5, "max_threshold": 15, "adaptive": true,
               "weight": 0.02, "max_p": 0.3}),
    ] {
        let (drops, marks) = compare(|| real("red", &params), || Box::new(Model::new(&params)));
        assert!(drops > 100, "{params}: {drops} drops");
        assert!(marks > 100, "{params}: {marks} marks");
    }
}

/// Absent thresholds follow from the limit: a quarter of it, and a third of that.
#[test]
fn thresholds_follow_from_the_limit() {
    let written = json!({"packets": 120, "min_threshold": 10, "max_threshold": 30});
    let (drops, _) = compare(
        || real("red", &json!({"packets": 120})),
        || Box::new(Model::new(&written)),
    );
    assert!(drops > 100);
}
