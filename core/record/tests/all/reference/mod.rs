//! A small calculator of correct records, independent of the simulator, the emulator and the
//! verifier: a drop-tail bottleneck at a constant rate between fixed delays, with random loss
//! behind it, acknowledgements on the return path and access delays per flow.
//!
//! It computes each packet's fate from closed formulas, in order of entering the bottleneck,
//! instead of running elements against a clock.
#![allow(dead_code, missing_docs, unreachable_pub)]

mod encoded;
mod told;

use narrows_record::{
    Direction, Fate, FrameRow, Lateness, PacketRow, QueueRow, RunDocument, StateRow, TraceRow,
    TransferRow, Versions,
};
use serde_json::json;
use std::collections::VecDeque;
use told::{frames, summary, transfers};

/// Parameters of the calculated run.
#[derive(Clone, Debug)]
pub struct Plan {
    pub rate_bps: u64,
    pub queue_bytes: Option<u64>,
    pub queue_packets: Option<u64>,
    pub before_ns: u64,
    pub after_ns: u64,
    pub loss: f64,
    pub back_ns: u64,
    /// Extra round-trip time per flow; its length is the number of flows.
    pub extra_rtt_ns: Vec<u64>,
    pub duration_ns: u64,
    /// Mean load offered, relative to the rate.
    pub load: f64,
    /// Whether packets are released late, as an emulator would.
    pub late: bool,
    pub seed: u64,
}

impl Default for Plan {
    fn default() -> Self {
        Plan {
            rate_bps: 12_000_000,
            queue_bytes: Some(30_000),
            queue_packets: None,
            before_ns: 3_000_000,
            after_ns: 17_000_000,
            loss: 0.01,
            back_ns: 20_000_000,
            extra_rtt_ns: vec![0, 0],
            duration_ns: 2_000_000_000,
            load: 1.05,
            late: false,
            seed: 1,
        }
    }
}

/// A record before it is encoded; tests change it at will.
#[derive(Clone, Debug)]
pub struct Draft {
    pub run: RunDocument,
    pub rows: Vec<PacketRow>,
    pub states: Vec<StateRow>,
    pub queues: Vec<QueueRow>,
    pub transfers: Vec<TransferRow>,
    pub frames: Vec<FrameRow>,
    pub traces: Vec<TraceRow>,
}

/// SplitMix64 (Steele, Lea and Flood 2014).
pub struct Dice(pub u64);

impl Dice {
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn uniform(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// A packet during the calculation.
#[derive(Clone, Debug)]
struct Mover {
    flow: u16,
    direction: Direction,
    size: u32,
    sent: u64,
    /// When it reached each element of its direction, and finally the other host.
    times: Vec<u64>,
    dropped: Option<(usize, &'static str)>,
}

const MTU: u32 = 1500;
const ACK: u32 = 52;

impl Plan {
    fn has_access(&self) -> bool {
        self.extra_rtt_ns.iter().any(|&extra| extra > 0)
    }

    /// Names and kinds of the elements of one direction, as the run counts them.
    fn elements(&self, direction: Direction) -> Vec<(String, &'static str)> {
        let kinds: &[&str] = match direction {
            Direction::Forward => &["delay", "bottleneck", "delay", "loss"],
            Direction::Backward => &["delay"],
        };
        let access = self
            .has_access()
            .then(|| (format!("{direction}.access"), "access"));
        let path = kinds
            .iter()
            .enumerate()
            .map(|(i, kind)| (format!("{direction}.{i}"), *kind));
        access.into_iter().chain(path).collect()
    }

    fn cell(&self) -> serde_json::Value {
        let flows: Vec<_> = (1u16..)
            .zip(&self.extra_rtt_ns)
            .map(|(flow, extra)| {
                json!({"flow": flow, "scheme": "reference", "params": {}, "start_ns": 0,
                       "stop_ns": self.duration_ns, "direction": "forward",
                       "extra_rtt_ns": extra})
            })
            .collect();
        let queue = if self.queue_bytes.is_none() && self.queue_packets.is_none() {
            json!({"kind": "unlimited"})
        } else {
            json!({"kind": "droptail", "bytes": self.queue_bytes, "packets": self.queue_packets})
        };
        json!({
            "format": "narrows/cell/1", "id": "reference-r1", "scheme": "reference", "run": 1,
            "where": if self.late { "emulate" } else { "simulate" }, "seed": self.seed,
            "duration_ns": self.duration_ns, "record": "packets", "bin_ns": 100_000_000,
            "sample_ns": 10_000_000, "transport": {}, "flows": flows,
            "network": {"kind": "dumbbell",
                "forward": [
                    {"name": "forward.0", "kind": "delay", "delay": self.before_ns},
                    {"name": "forward.1", "kind": "bottleneck",
                     "rate": {"kind": "constant", "rate": self.rate_bps}, "queue": queue},
                    {"name": "forward.2", "kind": "delay", "delay": self.after_ns},
                    {"name": "forward.3", "kind": "loss", "ratio": self.loss}],
                "backward": [{"name": "backward.0", "kind": "delay", "delay": self.back_ns}]}
        })
    }

    /// Sends of data: bursts of a few packets, flows in random order, around the mean load.
    fn sends(&self, dice: &mut Dice) -> Vec<Mover> {
        let gap = f64::from(MTU) * 8e9 / (self.rate_bps as f64 * self.load);
        let mut time = 1000.0_f64;
        let mut sends = Vec::new();
        while (time as u64) < self.duration_ns {
            let flow = (dice.bits() % self.extra_rtt_ns.len() as u64) as u16 + 1;
            let burst = 1 + dice.bits() % 4;
            // Senders send bursts at one instant or spread out, and different senders often share
            // an instant.
            let spread = if dice.bits().is_multiple_of(2) {
                0
            } else {
                10_000
            };
            let start = time as u64 / 10_000 * 10_000;
            for i in 0..burst {
                let size = if dice.bits().is_multiple_of(50) {
                    600
                } else {
                    MTU
                };
                let sent = start + i * spread;
                if sent < self.duration_ns {
                    sends.push(Mover {
                        flow,
                        direction: Direction::Forward,
                        size,
                        sent,
                        times: Vec::new(),
                        dropped: None,
                    });
                }
            }
            // Slow oscillation of the load, so that the queue fills and drains.
            let swing = 1.0 + 0.3 * (time * 1.3e-8).sin();
            time += burst as f64 * gap * swing * 2.0 * dice.uniform();
        }
        // Bursts may overlap by a few microseconds.
        sends.sort_by_key(|m| m.sent);
        sends
    }

    /// Computes the times of all data packets on the forward path.
    fn forward(&self, sends: &mut [Mover], dice: &mut Dice) {
        for m in sends.iter_mut() {
            m.times.push(m.sent);
            let mut at = m.sent;
            if self.has_access() {
                at += self.extra_rtt_ns[usize::from(m.flow) - 1] / 2;
                m.times.push(at);
            }
            m.times.push(at + self.before_ns);
        }
        let mut order: Vec<usize> = (0..sends.len()).collect();
        order.sort_by_key(|&i| (*sends[i].times.last().unwrap(), i));
        // Waiting packets as (start of service, size).
        let mut waiting: VecDeque<(u64, u32)> = VecDeque::new();
        let mut backlog = 0;
        // A busy period: its start, the bits served in it so far, the last departure.
        let (mut base, mut bits, mut busy_until) = (0, 0_u128, 0);
        for i in order {
            let m = &mut sends[i];
            let at = *m.times.last().unwrap();
            while waiting.front().is_some_and(|&(start, _)| start <= at) {
                backlog -= u64::from(waiting.pop_front().unwrap().1);
            }
            let full = self
                .queue_bytes
                .is_some_and(|limit| backlog + u64::from(m.size) > limit)
                || self
                    .queue_packets
                    .is_some_and(|limit| waiting.len() as u64 >= limit);
            let bottleneck = m.times.len() - 1;
            if full {
                m.dropped = Some((bottleneck, "queue_full"));
                continue;
            }
            if busy_until <= at {
                (base, bits) = (at, 0);
            } else {
                waiting.push_back((busy_until, m.size));
                backlog += u64::from(m.size);
            }
            bits += u128::from(m.size) * 8;
            busy_until = base + (bits * 1_000_000_000 / u128::from(self.rate_bps)) as u64;
            m.times.push(busy_until);
            m.times.push(busy_until + self.after_ns);
            if dice.uniform() < self.loss {
                m.dropped = Some((bottleneck + 2, "random_loss"));
            } else {
                m.times.push(busy_until + self.after_ns);
            }
        }
    }

    /// An acknowledgement for every second packet of a flow that arrives.
    fn acks(&self, data: &[Mover]) -> Vec<Mover> {
        let mut arrivals: Vec<(u64, u16)> = data
            .iter()
            .filter(|m| m.dropped.is_none())
            .map(|m| (*m.times.last().unwrap(), m.flow))
            .filter(|&(time, _)| time < self.duration_ns)
            .collect();
        arrivals.sort_unstable();
        let mut seen = vec![0; self.extra_rtt_ns.len() + 1];
        let mut acks = Vec::new();
        for (sent, flow) in arrivals {
            seen[usize::from(flow)] += 1;
            if seen[usize::from(flow)] % 2 == 0 {
                let extra = self.extra_rtt_ns[usize::from(flow) - 1];
                let mut times = vec![sent];
                if self.has_access() {
                    times.push(sent + extra - extra / 2);
                }
                times.push(times.last().unwrap() + self.back_ns);
                let direction = Direction::Backward;
                acks.push(Mover {
                    flow,
                    direction,
                    size: ACK,
                    sent,
                    times,
                    dropped: None,
                });
            }
        }
        acks
    }

    pub fn draft(&self) -> Draft {
        let mut dice = Dice(self.seed);
        let mut movers = self.sends(&mut dice);
        self.forward(&mut movers, &mut dice);
        movers.extend(self.acks(&movers));
        movers.sort_by_key(|m| (m.sent, m.direction));
        let rows: Vec<PacketRow> = (1..)
            .zip(&movers)
            .map(|(uid, m)| self.row(uid, m, &mut dice))
            .collect();
        let versions = Versions {
            narrows: "0.1.0".into(),
            ..Versions::default()
        };
        let plane = if self.late { "emulate" } else { "simulate" };
        let mut run = RunDocument::new(self.cell(), plane, versions);
        run.elements = self.counters(&movers);
        run.flows = (1..=self.extra_rtt_ns.len() as u16)
            .map(|flow| summary(flow, &rows))
            .collect();
        if self.late {
            let max = rows.iter().filter_map(|r| r.late_ns).max().unwrap_or(0) as u64;
            run.lateness = Some(Lateness {
                packets: 1,
                max_ns: max,
                ..Lateness::default()
            });
        }
        Draft {
            run,
            queues: self.samples(&movers),
            states: self.states(&rows),
            transfers: transfers(&rows),
            frames: frames(&rows),
            traces: Vec::new(),
            rows,
        }
    }
}

/// A packet of 1000 bytes on the way forward: delivered without lateness at `arrived_ns`, or dropped by the full queue of
/// `forward.1`.
pub fn packet(flow: u16, uid: u64, sent_ns: u64, arrived_ns: Option<u64>) -> PacketRow {
    let dropped = arrived_ns.is_none();
    PacketRow {
        copy_of: None,
        flow,
        direction: Direction::Forward,
        uid,
        size_bytes: 1000,
        sent_ns,
        arrived_ns,
        late_ns: arrived_ns.map(|_| 0),
        fate: if dropped {
            Fate::Dropped
        } else {
            Fate::Delivered
        },
        element: dropped.then(|| "forward.1".into()),
        reason: dropped.then(|| "queue_full".into()),
    }
}
