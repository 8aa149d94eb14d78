//! Contents of the record for packets whose fates are known: rows, counters, samples, states,
//! frames.

use super::{Dice, Mover, Plan};
use narrows_record::{
    Direction, ElementCounters, Fate, Fingerprint, FlowSummary, FrameRow, PacketRow, QueueRow,
    ReceiverCounters, SenderCounters, StateRow, TransferRow,
};

impl Plan {
    pub(super) fn row(&self, uid: u64, m: &Mover, dice: &mut Dice) -> PacketRow {
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

    pub(super) fn counters(&self, movers: &[Mover]) -> Vec<ElementCounters> {
        let mut all = Vec::new();
        for direction in [Direction::Forward, Direction::Backward] {
            for (index, (name, kind)) in self.elements(direction).into_iter().enumerate() {
                let mut c = ElementCounters {
                    name,
                    kind: kind.to_owned(),
                    direction,
                    ..ElementCounters::default()
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
    pub(super) fn samples(&self, movers: &[Mover]) -> Vec<QueueRow> {
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

    pub(super) fn states(&self, rows: &[PacketRow]) -> Vec<StateRow> {
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

/// Mostly a few microseconds, occasionally much more, like an emulator on a busy machine.
fn lateness(dice: &mut Dice) -> u64 {
    let base = 1000 + (-(1.0 - dice.uniform()).ln() * 4000.0) as u64;
    if dice.bits().is_multiple_of(200) {
        base + dice.bits() % 150_000
    } else {
        base
    }
}

/// Each delivered data packet is a transfer of its payload; those in flight are not complete.
pub(super) fn transfers(rows: &[PacketRow]) -> Vec<TransferRow> {
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
pub(super) fn frames(rows: &[PacketRow]) -> Vec<FrameRow> {
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

pub(super) fn summary(flow: u16, rows: &[PacketRow]) -> FlowSummary {
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
