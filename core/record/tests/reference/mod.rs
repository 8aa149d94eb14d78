//! A small calculator of correct records, independent of the simulator, the emulator and the
//! verifier: a drop-tail bottleneck at a constant rate between fixed delays, with random loss
//! behind it, acknowledgements on the way back and access delays per flow.
//!
//! It works out each packet's fate from closed formulas, in order of entering the bottleneck,
//! instead of running elements against a clock.
#![allow(dead_code, missing_docs, unreachable_pub)]

use narrows_record::{
    BinFile, BinLog, Cell, DelayFile, Direction, ElementCounters, Fate, Fingerprint, FlowSummary,
    FrameFile, FrameRow, Lateness, PacketFile, PacketLog, PacketRow, QueueFile, QueueRow,
    ReceiverCounters, Record, RunDocument, SenderCounters, StateFile, StateRow, TraceFile,
    TraceRow, TransferFile, TransferRow, Versions,
};
use serde_json::json;
use std::collections::VecDeque;

/// What to calculate.
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

/// A packet on its way through the calculation.
#[derive(Clone, Debug)]
struct Mover {
    flow: u16,
    direction: Direction,
    size: u32,
    sent: u64,
    /// When it reached each element of its direction, and at last the other host.
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
            // Senders hand over bursts at one instant or spread out, and different senders often
            // share an instant.
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
            // Slow swings of the load, so that the queue fills and drains.
            let swing = 1.0 + 0.3 * (time * 1.3e-8).sin();
            time += burst as f64 * gap * swing * 2.0 * dice.uniform();
        }
        // Bursts may overlap by a few microseconds.
        sends.sort_by_key(|m| m.sent);
        sends
    }

    /// Works out the way of all data packets through the forward path.
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
            git: None,
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

    fn row(&self, uid: u64, m: &Mover, dice: &mut Dice) -> PacketRow {
        let end = self.duration_ns;
        let last = *m.times.last().unwrap();
        let names = self.elements(m.direction);
        let mut row = PacketRow {
            flow: m.flow,
            direction: m.direction,
            uid,
            size_bytes: m.size,
            sent_ns: m.sent,
            arrived_ns: None,
            late_ns: None,
            fate: Fate::InFlight,
            element: None,
            reason: None,
            copy_of: None,
        };
        if last > end {
            // The last element that it reached before the end.
            let index = m.times.iter().rposition(|&time| time <= end).unwrap();
            row.element = Some(names[index].0.clone());
        } else if let Some((element, reason)) = m.dropped {
            row.fate = Fate::Dropped;
            row.element = Some(names[element].0.clone());
            row.reason = Some(reason.to_owned());
        } else {
            let late = if self.late { lateness(dice) } else { 0 };
            row.fate = Fate::Delivered;
            row.arrived_ns = Some(last + late);
            row.late_ns = Some(late as i64);
        }
        row
    }

    fn counters(&self, movers: &[Mover]) -> Vec<ElementCounters> {
        let mut all = Vec::new();
        for direction in [Direction::Forward, Direction::Backward] {
            for (index, (name, kind)) in self.elements(direction).into_iter().enumerate() {
                let mut c = ElementCounters {
                    name,
                    kind: kind.to_owned(),
                    direction,
                    in_packets: 0,
                    in_bytes: 0,
                    out_packets: 0,
                    out_bytes: 0,
                    dropped_packets: 0,
                    dropped_bytes: 0,
                    marked_packets: 0,
                    held_packets: 0,
                    held_bytes: 0,
                    link: None,
                    copied_packets: 0,
                    copied_bytes: 0,
                    capacity_bytes: None,
                };
                for m in movers.iter().filter(|m| m.direction == direction) {
                    let reached = |i: usize| m.times.get(i).is_some_and(|&t| t <= self.duration_ns);
                    let size = u64::from(m.size);
                    if !reached(index) {
                        continue;
                    }
                    c.in_packets += 1;
                    c.in_bytes += size;
                    if m.dropped.is_some_and(|(element, _)| element == index) {
                        c.dropped_packets += 1;
                        c.dropped_bytes += size;
                    } else if reached(index + 1) {
                        c.out_packets += 1;
                        c.out_bytes += size;
                    } else {
                        c.held_packets += 1;
                        c.held_bytes += size;
                    }
                }
                all.push(c);
            }
        }
        all
    }

    /// Samples of the bottleneck's queue, between events by an odd offset.
    fn samples(&self, movers: &[Mover]) -> Vec<QueueRow> {
        let index = usize::from(self.has_access()) + 1;
        let mut stays: Vec<(u64, u64, u32)> = movers
            .iter()
            .filter(|m| m.direction == Direction::Forward && m.times.len() > index + 1)
            .map(|m| (m.times[index], m.times[index + 1], m.size))
            .collect();
        stays.sort_unstable();
        // Service starts when the predecessor has left.
        let mut left = 0;
        let waits: Vec<(u64, u64, u32)> = stays
            .into_iter()
            .map(|(entered, leaves, size)| {
                let start = entered.max(left);
                left = leaves;
                (entered, start, size)
            })
            .collect();
        let mut first = 0;
        (0..self.duration_ns / 10_000_000)
            .map(|i| {
                let time = i * 10_000_000 + 777;
                while waits.get(first).is_some_and(|w| w.1 <= time) {
                    first += 1;
                }
                let inside = waits[first..].iter().take_while(|w| w.0 <= time);
                let (bytes, packets) = inside.fold((0, 0), |(b, p), w| (b + u64::from(w.2), p + 1));
                QueueRow {
                    element: "forward.1".into(),
                    time_ns: time,
                    backlog_bytes: bytes,
                    backlog_packets: packets,
                }
            })
            .collect()
    }

    fn states(&self, rows: &[PacketRow]) -> Vec<StateRow> {
        let mut states = Vec::new();
        for flow in 1..=self.extra_rtt_ns.len() as u16 {
            let mut arrivals: Vec<(u64, u32)> = rows
                .iter()
                .filter(|r| r.flow == flow && r.direction == Direction::Forward)
                .filter_map(|r| Some((r.arrived_ns?, r.size_bytes)))
                .collect();
            arrivals.sort_unstable();
            let mut arrivals = arrivals.into_iter().peekable();
            let mut delivered = 0;
            for i in 0..self.duration_ns / 100_000_000 {
                let time = i * 100_000_000;
                while let Some((_, size)) = arrivals.next_if(|&(at, _)| at <= time) {
                    delivered += u64::from(size);
                }
                states.push(StateRow {
                    flow,
                    time_ns: time,
                    cwnd_bytes: Some(15_000),
                    rtt_ns: Some(40_000_000 + i * 1_000_000),
                    delivered_bytes: Some(delivered),
                    retransmitted_bytes: Some(0),
                    mode: Some("steady".into()),
                    ..StateRow::default()
                });
            }
        }
        states
    }
}

/// Mostly a few microseconds, now and then much more: what an emulator on a busy machine does.
fn lateness(dice: &mut Dice) -> u64 {
    let base = 1000 + (-(1.0 - dice.uniform()).ln() * 4000.0) as u64;
    if dice.bits().is_multiple_of(200) {
        base + dice.bits() % 150_000
    } else {
        base
    }
}

/// Each delivered data packet is a transfer of its payload; those in flight are not complete.
fn transfers(rows: &[PacketRow]) -> Vec<TransferRow> {
    let data = rows.iter().filter(|r| r.direction == Direction::Forward);
    let counts = data.filter(|r| r.flow > 0 && r.fate != Fate::Dropped);
    let mut next = std::collections::BTreeMap::new();
    counts
        .map(|row| {
            let number = next.entry(row.flow).or_insert(0);
            *number += 1;
            TransferRow {
                flow: row.flow,
                connection: 0,
                transfer: *number - 1,
                bytes: u64::from(row.size_bytes) - 52,
                started_ns: row.sent_ns,
                ended_ns: row.arrived_ns,
            }
        })
        .collect()
}

/// Each data packet is a frame of its payload, captured when it was sent; flow by flow.
fn frames(rows: &[PacketRow]) -> Vec<FrameRow> {
    let data = rows.iter().filter(|r| r.direction == Direction::Forward);
    let mut all: Vec<FrameRow> = data
        .filter(|r| r.flow > 0)
        .map(|row| FrameRow {
            flow: row.flow,
            captured_ns: row.sent_ns,
            bytes: row.size_bytes - 52,
            arrived_ns: row.arrived_ns,
            ..FrameRow::default()
        })
        .collect();
    all.sort_by_key(|row| row.flow);
    for flow in all.chunk_by_mut(|a, b| a.flow == b.flow) {
        (0..).zip(flow).for_each(|(number, row)| row.frame = number);
    }
    all
}

fn summary(flow: u16, rows: &[PacketRow]) -> FlowSummary {
    let mine = || {
        rows.iter()
            .filter(|r| r.flow == flow && r.direction == Direction::Forward)
    };
    let delivered = || mine().filter(|r| r.fate == Fate::Delivered);
    let bytes = |rows: &mut dyn Iterator<Item = &PacketRow>| -> u64 {
        rows.map(|r| u64::from(r.size_bytes)).sum()
    };
    FlowSummary {
        flow,
        scheme: "reference".into(),
        fingerprint: Fingerprint {
            kind: "native".into(),
            ..Fingerprint::default()
        },
        sender: SenderCounters {
            sent_packets: Some(mine().count() as u64),
            sent_bytes: Some(bytes(&mut mine())),
            retransmitted_packets: Some(0),
            retransmitted_bytes: Some(0),
            ..SenderCounters::default()
        },
        receiver: ReceiverCounters {
            received_packets: Some(delivered().count() as u64),
            received_bytes: Some(bytes(&mut delivered())),
            goodput_bytes: Some(delivered().map(|r| u64::from(r.size_bytes) - 52).sum()),
            ..ReceiverCounters::default()
        },
        ..FlowSummary::default()
    }
}

impl Draft {
    /// Feeds the rows through the log that drivers use, in an order of events.
    pub fn packets(&self) -> Vec<u8> {
        let names: Vec<String> = self.run.elements.iter().map(|e| e.name.clone()).collect();
        let mut log = PacketLog::new(names.clone());
        let mut file = PacketFile::create(Vec::new()).unwrap();
        for row in &self.rows {
            let uid = log.enter(row.flow, row.direction, row.size_bytes, row.sent_ns);
            assert_eq!(
                uid, row.uid,
                "use `packets_as_is` for rows without proper uids"
            );
        }
        for row in &self.rows {
            let element = row.element.as_ref().map(|name| {
                names
                    .iter()
                    .position(|n| n == name)
                    .expect("a known element") as u16
            });
            match row.fate {
                Fate::Delivered => {
                    log.arrive(row.uid, row.arrived_ns.unwrap(), row.late_ns.unwrap());
                }
                Fate::Dropped => {
                    let reason = match row.reason.as_deref() {
                        Some("random_loss") => "random_loss",
                        _ => "queue_full",
                    };
                    log.drop(row.uid, element.unwrap(), reason);
                }
                Fate::InFlight => log.hold(row.uid, element.unwrap()),
            }
        }
        log.finish();
        file.drain(&mut log).unwrap();
        file.finish().unwrap()
    }

    /// The rows exactly as they are, whatever they are.
    pub fn packets_as_is(&self) -> Vec<u8> {
        let mut chunk = narrows_record::Chunk::default();
        self.rows.iter().for_each(|row| chunk.push(row));
        let mut file = PacketFile::create(Vec::new()).unwrap();
        file.write(&chunk).unwrap();
        file.finish().unwrap()
    }

    pub fn states(&self) -> Vec<u8> {
        let mut file = StateFile::create(Vec::new()).unwrap();
        self.states
            .iter()
            .for_each(|row| file.push(row.clone()).unwrap());
        file.finish().unwrap()
    }

    pub fn queues(&self) -> Vec<u8> {
        let mut file = QueueFile::create(Vec::new()).unwrap();
        self.queues
            .iter()
            .for_each(|row| file.push(row.clone()).unwrap());
        file.finish().unwrap()
    }

    pub fn transfers(&self) -> Vec<u8> {
        let mut file = TransferFile::create(Vec::new()).unwrap();
        self.transfers
            .iter()
            .for_each(|row| file.push(row.clone()).unwrap());
        file.finish().unwrap()
    }

    pub fn frames(&self) -> Vec<u8> {
        let mut file = FrameFile::create(Vec::new()).unwrap();
        self.frames.iter().for_each(|row| file.push(*row).unwrap());
        file.finish().unwrap()
    }

    pub fn traces(&self) -> Vec<u8> {
        let mut file = TraceFile::create(Vec::new()).unwrap();
        self.traces
            .iter()
            .for_each(|row| file.push(row.clone()).unwrap());
        file.finish().unwrap()
    }

    /// The record as a reader sees it.
    pub fn record(&self) -> Record {
        Record {
            run: RunDocument::parse(self.run.to_text().as_bytes()).unwrap(),
            cell: Cell::parse(&self.run.cell).unwrap(),
            packets: Some(self.packets_as_is().into()),
            bins: None,
            delays: None,
            states: Some(self.states().into()),
            queues: Some(self.queues().into()),
            traces: (!self.traces.is_empty()).then(|| self.traces().into()),
            transfers: Some(self.transfers().into()),
            frames: Some(self.frames().into()),
            capacity: None,
        }
    }

    /// The same run, kept as bins.
    pub fn record_of_bins(&self, bin_ns: u64) -> Record {
        let mut log = BinLog::new(bin_ns);
        for row in &self.rows {
            log.enter(row.flow, row.direction, row.size_bytes, row.sent_ns);
        }
        for row in &self.rows {
            match row.fate {
                Fate::Delivered => log.arrive(row.uid, row.arrived_ns.unwrap()),
                Fate::Dropped => log.drop(row.uid),
                Fate::InFlight => {}
            }
        }
        log.finish();
        let mut bins = BinFile::create(Vec::new()).unwrap();
        log.bins().for_each(|row| bins.push(row).unwrap());
        let mut delays = DelayFile::create(Vec::new()).unwrap();
        log.delays().for_each(|row| delays.push(row).unwrap());
        Record {
            packets: None,
            bins: Some(bins.finish().unwrap().into()),
            delays: Some(delays.finish().unwrap().into()),
            ..self.record()
        }
    }
}
