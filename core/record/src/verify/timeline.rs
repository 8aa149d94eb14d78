//! When each packet entered a bottleneck, began to be served, and left it.
//!
//! Entering follows from the stamp of sending and the fixed delays before the bottleneck; leaving
//! from the model's arrival and the fixed delays behind it. Service starts when the packet has
//! entered and its predecessor has left. The departure is not recorded only for packets that were
//! lost or still in flight behind the bottleneck; it is computed from the rate.
//!
//! Packets reach a bottleneck on one or more lines: a line is the packets of one flow on one path,
//! with copies separate. Within a line the order is known; if lines have paths of different length
//! or different links, the order among them follows from the times alone.

use super::layout::{Layout, Server, StageNature};
use super::packets::{NO_LANE, Packets};
use crate::cell::{Cell, RateLaw, table_size};
use crate::schema::Fate;
use std::collections::BTreeMap;

/// Nanoseconds per second.
pub(super) const NS: i128 = 1_000_000_000;
/// A packet that never left.
pub(super) const NEVER: u64 = u64::MAX;

/// One packet at the bottleneck.
#[derive(Clone, Copy, Debug)]
pub(super) struct BottleneckPass {
    /// Row in the columns.
    pub(super) row: usize,
    pub(super) size: u32,
    pub(super) enter: u64,
    /// When its service began; meaningless if it was dropped here.
    pub(super) start: u64,
    /// When it left; [`NEVER`] if the element still held it at the end.
    pub(super) leave: u64,
    /// True if `leave` is recorded and not computed.
    pub(super) seen: bool,
    /// Dropped by the bottleneck.
    pub(super) dropped: bool,
    /// Packets of another flow entered at the same instant from another access link, so that the
    /// order among them is not known.
    pub(super) tied: bool,
    /// `start` is not reliable, because a packet whose departure is not recorded is part of a tie,
    /// or immediately before.
    pub(super) loose: bool,
}

/// The passes of all packets through one bottleneck, in the order of entering.
pub(super) struct Timeline {
    /// Name of the element.
    pub(super) name: String,
    pub(super) law: RateLaw,
    pub(super) server: Server,
    pub(super) passes: Vec<BottleneckPass>,
    /// Error bound in ns of a start of service. Zero if every departure is recorded; one, for the
    /// fraction of a nanosecond that the server carries from packet to packet, if some were
    /// computed; more if their position among packets of a tie is not known.
    pub(super) uncertain_ns: u64,
}

impl Timeline {
    /// The timeline of the bottleneck at the given positions of lanes; `exact` if entries follow
    /// exactly from the stamps.
    ///
    /// # Errors
    /// The reason why it cannot be reconstructed.
    pub(super) fn new(
        cell: &Cell,
        lanes: &[Layout],
        passing: &[(usize, usize)],
        packets: &Packets,
        exact: bool,
    ) -> Result<Self, String> {
        let (lane, place) = passing[0];
        let stage = &lanes[lane].stages[place];
        let StageNature::Bottleneck(server) = &stage.nature else {
            return Err(format!("{} is not a bottleneck", stage.name));
        };
        let mut ways: Vec<Option<TimelineWay>> = lanes.iter().map(|_| None).collect();
        for &(lane, place) in passing {
            ways[lane] = Some(TimelineWay::new(cell, &lanes[lane], place)?);
        }
        let law = server.law.clone()?;
        if !server.queue.fifo {
            return Err(format!(
                "the queue of {} may change the order of packets",
                stage.name
            ));
        }
        if packets.lane.contains(&NO_LANE) {
            return Err("the path of some packets through the network is not known".into());
        }
        let mut passes = entries(packets, lanes, &ways)?;
        let first = ways[lane].as_ref().map(|way| &way.upstream);
        let mixed = cell.flows.iter().any(|flow| flow.extra_rtt_ns > 0)
            || passes.iter().any(|pass| packets.copy_of[pass.row] > 0)
            || ways
                .iter()
                .flatten()
                .any(|way| Some(&way.upstream) != first);
        if mixed && !exact {
            raise_to_departures(&mut passes);
        }
        if mixed {
            sort_by_entry(&mut passes, packets);
        }
        let uncertain_ns = serve(&mut passes, server, &law);
        Ok(Timeline {
            name: stage.name.clone(),
            law,
            server: (**server).clone(),
            passes,
            uncertain_ns,
        })
    }

    /// The packets that the bottleneck accepted.
    pub(super) fn accepted(&self) -> impl Iterator<Item = &BottleneckPass> {
        self.passes.iter().filter(|pass| !pass.dropped)
    }

    /// The rate, for people.
    pub(super) fn rate(&self) -> String {
        match self.law.steady() {
            Some(bps) => format!("{bps} bit/s"),
            None => format!("{} to {} bit/s", self.law.min_bps(), self.law.max_bps()),
        }
    }

    /// The earliest time at which a packet of `bits` on the wire whose service begins at `start`
    /// can have left, rounded down; [`NEVER`] if it cannot.
    pub(super) fn served(&self, start: u64, bits: i128) -> u64 {
        served(&self.law, start, bits)
    }
}

fn served(law: &RateLaw, start: u64, bits: i128) -> u64 {
    law.time_of(law.work(start) + bits * NS).unwrap_or(NEVER)
}

/// One lane that leads through the bottleneck.
struct TimelineWay {
    place: usize,
    before: u64,
    after: u64,
    /// Delay of the access link of each flow.
    access: Vec<u64>,
    /// The elements before the bottleneck.
    upstream: Vec<usize>,
}

impl TimelineWay {
    fn new(cell: &Cell, layout: &Layout, place: usize) -> Result<Self, String> {
        let mut bottlenecks = layout.bottlenecks();
        if bottlenecks.any(|other| other != place) {
            return Err(format!(
                "the {} has several bottlenecks, and times between them are not recorded",
                layout.label
            ));
        }
        let upstream = &layout.stages[..place];
        Ok(TimelineWay {
            place,
            before: Layout::fixed_ns(upstream)?,
            after: Layout::fixed_ns(&layout.stages[place + 1..])?,
            access: access_table(cell, layout),
            upstream: upstream.iter().map(|stage| stage.index).collect(),
        })
    }
}

/// All packets that reached the bottleneck, in order of uid, with entry and, where it is recorded,
/// departure.
fn entries(
    packets: &Packets,
    lanes: &[Layout],
    ways: &[Option<TimelineWay>],
) -> Result<Vec<BottleneckPass>, String> {
    let mut passes = Vec::new();
    let mut stamps = Stamps::new(lanes);
    for row in 0..packets.len() {
        let lane = usize::from(packets.lane[row]);
        let sent = stamps.raise(packets, row);
        let Some(way) = &ways[lane] else { continue };
        let element = usize::from(packets.element[row]);
        let stopped = packets.fate[row] != Fate::Delivered;
        if stopped && element < way.place {
            continue;
        }
        let copy = packets.copy_of[row] > 0;
        let enter = if copy {
            let copier = lanes[lane].only_copier();
            let copier = copier.ok_or("which element made each copy is not recorded")?;
            if copier > way.place {
                continue;
            }
            let between = Layout::fixed_ns(&lanes[lane].stages[copier + 1..way.place])?;
            packets.sent[row].saturating_add(between)
        } else {
            let extra = way.access.get(usize::from(packets.flow[row])).copied();
            sent.saturating_add(extra.unwrap_or(0))
                .saturating_add(way.before)
        };
        let here = stopped && element == way.place;
        let arrival = packets.model_arrival(row).filter(|_| !stopped);
        let leave = arrival.map(|time| time - i128::from(way.after));
        passes.push(BottleneckPass {
            row,
            size: packets.size[row],
            enter,
            start: 0,
            leave: leave.map_or(NEVER, |time| u64::try_from(time).unwrap_or(0)),
            seen: leave.is_some() || (here && packets.fate[row] == Fate::InFlight),
            dropped: here && packets.fate[row] == Fate::Dropped,
            tied: false,
            loose: false,
        });
    }
    Ok(passes)
}

/// Packets are pushed in the order of uids, and model time never decreases, so that the effective
/// stamp is the maximum of all stamps of its host so far.
pub(super) struct Stamps {
    /// Per lane: its host.
    host: Vec<usize>,
    latest: Vec<u64>,
}

impl Stamps {
    pub(super) fn new(lanes: &[Layout]) -> Self {
        let host = |lane: &Layout| lanes.iter().position(|other| other.host == lane.host);
        Stamps {
            host: lanes.iter().map(|lane| host(lane).unwrap_or(0)).collect(),
            latest: vec![0; lanes.len()],
        }
    }

    /// The model's time at which packet `row`, the next one, entered the network.
    pub(super) fn raise(&mut self, packets: &Packets, row: usize) -> u64 {
        let sent = packets.sent[row];
        let Some(&host) = self.host.get(usize::from(packets.lane[row])) else {
            return sent;
        };
        if packets.copy_of[row] > 0 {
            // Made by an element, at model time.
            return sent;
        }
        let latest = &mut self.latest[host];
        *latest = sent.max(*latest);
        *latest
    }
}

/// The access delay of each flow, by number.
pub(super) fn access_table(cell: &Cell, layout: &Layout) -> Vec<u64> {
    let size = table_size(cell.flows.iter().map(|flow| flow.flow));
    (0..size)
        .map(|flow| cell.access_ns(flow as u16, layout.direction))
        .collect()
}

/// Sorts packets of several lines. Packets of one line keep their order; packets of different lines
/// that enter at the same instant may follow each other in any order: use the order of departures,
/// put dropped packets last, and mark the tie.
fn sort_by_entry(passes: &mut [BottleneckPass], packets: &Packets) {
    passes.sort_by_key(|pass| (pass.enter, pass.row));
    let flow = |pass: &BottleneckPass| {
        let copy = packets.copy_of[pass.row] > 0;
        (packets.lane[pass.row], packets.flow[pass.row], copy)
    };
    for group in passes.chunk_by_mut(|a, b| a.enter == b.enter) {
        if group.iter().all(|pass| flow(pass) == flow(&group[0])) {
            continue;
        }
        // Where a departure is not recorded, the packet left before the next one of its line.
        let loose = group.iter().any(|pass| !pass.seen && !pass.dropped);
        let mut next: BTreeMap<(u16, u16, bool), u64> = BTreeMap::new();
        let mut order: Vec<(bool, u64, BottleneckPass)> = Vec::with_capacity(group.len());
        for pass in group.iter().rev() {
            let left = next.entry(flow(pass)).or_insert(NEVER);
            if pass.seen && !pass.dropped {
                *left = pass.leave;
            }
            order.push((
                pass.dropped,
                *left,
                BottleneckPass {
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

/// In emulation a late driver may push a packet into its access link after the model has released
/// packets of other flows with later stamps from theirs, so stamps do not determine the order among
/// flows. Departures do: entries are raised so that they are in the order of departures. Packets
/// whose departure is not recorded keep the position of their stamps, and starts near them are not
/// used.
fn raise_to_departures(passes: &mut [BottleneckPass]) {
    let unseen = |pass: &BottleneckPass| !pass.seen && !pass.dropped;
    passes
        .iter_mut()
        .filter(|pass| unseen(pass))
        .for_each(|pass| pass.loose = true);
    let departed = |pass: &BottleneckPass| pass.seen && !pass.dropped && pass.leave != NEVER;
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

/// Computes starts of service, and departures that are not recorded. Returns the error bound of
/// starts in ns.
fn serve(passes: &mut [BottleneckPass], server: &Server, law: &RateLaw) -> u64 {
    let mut uncertain = 0;
    let mut left = 0;
    // The current busy period: its start, and the bits served in it.
    let (mut base, mut bits) = (0, 0_i128);
    // Since the last certain departure: whether starts are reliable, and the service time of
    // packets whose position is not known.
    let (mut loose, mut astray) = (false, 0_u64);
    for pass in passes.iter_mut().filter(|pass| !pass.dropped) {
        if pass.enter >= left {
            (base, bits) = (pass.enter, 0);
        }
        let firm = pass.seen && !pass.loose;
        loose |= pass.loose;
        pass.loose = loose;
        pass.start = pass.enter.max(left);
        let own = server.wire_bits(pass.size);
        bits += own;
        let expected = served(law, base, bits);
        if !pass.seen {
            if loose {
                let alone = served(law, pass.start, own).saturating_sub(pass.start);
                astray = astray.saturating_add(alone).saturating_add(1);
            }
            uncertain = uncertain.max(astray).max(1);
            pass.leave = if pass.start == NEVER { NEVER } else { expected };
        } else if pass.leave != expected {
            // A contradiction, which other checks report; later times are computed from the
            // recorded one.
            (base, bits) = (pass.leave, 0);
        }
        if firm {
            (loose, astray) = (false, 0);
        }
        left = pass.leave;
    }
    uncertain
}
