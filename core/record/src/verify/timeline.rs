//! When each packet entered the bottleneck of a path, began to be served, and left it.
//!
//! Entering follows from the stamp of sending and the fixed delays before the bottleneck; leaving
//! from the model's arrival and the fixed delays behind it. Service starts when the packet has
//! entered and its predecessor has left. Only of packets that were lost or still travelled behind
//! the bottleneck the departure is not recorded; it is worked out from the rate.

use super::evidence::Packets;
use super::layout::{Layout, Nature};
use crate::cell::{Cell, Limit};
use crate::schema::Fate;
use std::collections::BTreeMap;

/// A packet that never left.
pub(super) const NEVER: u64 = u64::MAX;

/// One packet at the bottleneck.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pass {
    /// Row in the columns.
    pub(super) row: usize,
    pub(super) size: u32,
    pub(super) enter: u64,
    /// When its service began; meaningless if it was dropped here.
    pub(super) start: u64,
    /// When it left; [`NEVER`] if the element still held it at the end.
    pub(super) leave: u64,
    /// Whether `leave` is from the record and not worked out.
    pub(super) seen: bool,
    /// Dropped by the bottleneck.
    pub(super) dropped: bool,
    /// Packets of another flow entered at the same instant by another access link, so that the
    /// order among them is not known.
    pub(super) tied: bool,
    /// `start` is not reliable, because a packet whose departure is not recorded is among those of
    /// a tie, or right before.
    pub(super) loose: bool,
}

/// The passes of all packets through the only bottleneck of a path, in the order of entering.
pub(super) struct Timeline {
    /// Name of the element.
    pub(super) name: String,
    pub(super) rate: u64,
    pub(super) limit: Limit,
    pub(super) passes: Vec<Pass>,
    /// By how much a start of service may be wrong. Zero if every departure is recorded; one, for
    /// the part of a nanosecond that the server carries from packet to packet, if some were worked
    /// out; more where their place among packets of a tie is not known.
    pub(super) uncertain_ns: u64,
}

impl Timeline {
    /// The time line of the bottleneck on `layout`; `exact` if entries are exactly what follows
    /// from the stamps.
    ///
    /// # Errors
    /// Why it cannot be drawn.
    pub(super) fn new(
        cell: &Cell,
        layout: &Layout,
        packets: &Packets,
        exact: bool,
    ) -> Result<Self, String> {
        let place = layout.only_bottleneck()?;
        let stage = &layout.stages[place];
        let before = Layout::fixed_ns(&layout.stages[..place])?;
        let after = Layout::fixed_ns(&layout.stages[place + 1..])?;
        let Nature::Bottleneck { rate, fifo, limit } = stage.nature else {
            return Err(format!("{} is no bottleneck", stage.name));
        };
        let rate = rate.ok_or_else(|| format!("the rate of {} is not constant", stage.name))?;
        if !fifo {
            return Err(format!(
                "the queue of {} may change the order of packets",
                stage.name
            ));
        }
        let mut passes = entries(cell, layout, packets, place as u16, before, after);
        let mixed = cell.flows.iter().any(|flow| flow.extra_rtt_ns > 0);
        if mixed && !exact {
            raise_to_departures(&mut passes);
        }
        if mixed {
            sort_by_entry(&mut passes, packets);
        }
        let uncertain_ns = serve(&mut passes, rate);
        Ok(Timeline {
            name: stage.name.clone(),
            rate,
            limit,
            passes,
            uncertain_ns,
        })
    }

    /// The packets that the bottleneck took.
    pub(super) fn accepted(&self) -> impl Iterator<Item = &Pass> {
        self.passes.iter().filter(|pass| !pass.dropped)
    }
}

/// All packets that reached the element at `place`, in order of uid, with entry and, where it is
/// recorded, departure.
fn entries(
    cell: &Cell,
    layout: &Layout,
    packets: &Packets,
    place: u16,
    before: u64,
    after: u64,
) -> Vec<Pass> {
    let access = access_table(cell, layout);
    let mut passes = Vec::new();
    let mut raised = 0;
    for row in 0..packets.len() {
        if packets.direction[row] != layout.direction {
            continue;
        }
        // Packets are pushed in the order of uids, and the model's time never goes back.
        raised = packets.sent[row].max(raised);
        let element = packets.element[row];
        let stopped = packets.fate[row] != Fate::Delivered;
        if stopped && element < place {
            continue;
        }
        let extra = access
            .get(usize::from(packets.flow[row]))
            .copied()
            .unwrap_or(0);
        let here = stopped && element == place;
        let arrival = packets.model_arrival(row).filter(|_| !stopped);
        let leave = arrival.map(|time| time - i128::from(after));
        passes.push(Pass {
            row,
            size: packets.size[row],
            enter: raised.saturating_add(extra).saturating_add(before),
            start: 0,
            leave: leave.map_or(NEVER, |time| u64::try_from(time).unwrap_or(0)),
            seen: leave.is_some() || (here && packets.fate[row] == Fate::InFlight),
            dropped: here && packets.fate[row] == Fate::Dropped,
            tied: false,
            loose: false,
        });
    }
    passes
}

/// The access delay of each flow, by number.
pub(super) fn access_table(cell: &Cell, layout: &Layout) -> Vec<u64> {
    let size = cell
        .flows
        .iter()
        .map(|flow| usize::from(flow.flow) + 1)
        .max()
        .unwrap_or(0);
    (0..size)
        .map(|flow| cell.access_ns(flow as u16, layout.direction))
        .collect()
}

/// Access links change the order. Packets of one flow keep theirs; packets of different flows that
/// come out at the same instant may follow each other in any order: take the one in which they
/// left, put the dropped ones last, and note the tie.
fn sort_by_entry(passes: &mut [Pass], packets: &Packets) {
    passes.sort_by_key(|pass| (pass.enter, pass.row));
    let flow = |pass: &Pass| packets.flow[pass.row];
    for group in passes.chunk_by_mut(|a, b| a.enter == b.enter) {
        if group.iter().all(|pass| flow(pass) == flow(&group[0])) {
            continue;
        }
        // Where a departure is not recorded, the packet left before the next one of its flow.
        let loose = group.iter().any(|pass| !pass.seen && !pass.dropped);
        let mut next: BTreeMap<u16, u64> = BTreeMap::new();
        let mut order: Vec<(bool, u64, Pass)> = Vec::with_capacity(group.len());
        for pass in group.iter().rev() {
            let left = next.entry(flow(pass)).or_insert(NEVER);
            if pass.seen && !pass.dropped {
                *left = pass.leave;
            }
            order.push((
                pass.dropped,
                *left,
                Pass {
                    tied: true,
                    loose: loose || pass.loose,
                    ..*pass
                },
            ));
        }
        order.sort_by_key(|&(dropped, left, pass)| (dropped, left, pass.row));
        for (place, (_, _, pass)) in group.iter_mut().zip(order) {
            *place = pass;
        }
    }
}

/// In emulation a late driver may push a packet into its access link after the model has let
/// packets of other flows with later stamps out of theirs, so stamps do not tell the order among
/// flows. Departures do: entries are raised so that they are in the order of departures. Packets
/// whose departure is not recorded stay where their stamps put them, and starts near them are not
/// relied on.
fn raise_to_departures(passes: &mut [Pass]) {
    let unseen = |pass: &Pass| !pass.seen && !pass.dropped;
    passes
        .iter_mut()
        .filter(|pass| unseen(pass))
        .for_each(|pass| pass.loose = true);
    let departed = |pass: &Pass| pass.seen && !pass.dropped && pass.leave != NEVER;
    let mut order: Vec<usize> = (0..passes.len())
        .filter(|&i| departed(&passes[i]))
        .collect();
    order.sort_by_key(|&i| (passes[i].leave, passes[i].row));
    let mut entered = 0;
    for i in order {
        entered = passes[i].enter.max(entered);
        passes[i].enter = entered;
    }
}

/// Fills in when service began, and departures that are not recorded. Returns by how much starts
/// may be wrong.
fn serve(passes: &mut [Pass], rate: u64) -> u64 {
    let mut uncertain = 0;
    let mut left = 0;
    // The current busy period: its start, and the bits served in it.
    let (mut base, mut bits) = (0, 0_u128);
    // Since the last departure that is beyond doubt: whether starts are reliable, and the time
    // that packets took whose place is not known.
    let (mut loose, mut astray) = (false, 0);
    let span = |bits: u128| u64::try_from(bits * 1_000_000_000 / u128::from(rate)).unwrap_or(NEVER);
    for pass in passes.iter_mut().filter(|pass| !pass.dropped) {
        if pass.enter >= left {
            (base, bits) = (pass.enter, 0);
        }
        let firm = pass.seen && !pass.loose;
        loose |= pass.loose;
        pass.loose = loose;
        pass.start = pass.enter.max(left);
        bits += u128::from(pass.size) * 8;
        let expected = base.saturating_add(span(bits));
        if !pass.seen {
            if loose {
                astray += span(u128::from(pass.size) * 8) + 1;
            }
            uncertain = uncertain.max(astray).max(1);
            pass.leave = if pass.start == NEVER { NEVER } else { expected };
        } else if pass.leave != expected {
            // Whatever this means, what follows is reckoned from what is recorded.
            (base, bits) = (pass.leave, 0);
        }
        if firm {
            (loose, astray) = (false, 0);
        }
        left = pass.leave;
    }
    uncertain
}
