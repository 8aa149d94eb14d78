//! Traffic and drops of single bottlenecks, worked out from packets or bins.
//!
//! A packet has passed a bottleneck on its way if it arrived, or if an element behind the bottleneck
//! dropped or holds it; acknowledgements count like data. When it passed follows from its arrival,
//! less the lateness of the driver and the smallest delay of the elements behind: exactly, if nothing
//! behind varies; never too early. Of bins, whole ones count by the time of arrival, and packets
//! that were dropped behind the bottleneck are not known to have passed it.

use super::traffic::count_second;
use crate::cell::{Cell, CellElement, CellFraming};
use crate::log::{Chunk, NOT_ARRIVED};
use crate::schema::{BinRow, Direction, Fate};
use std::collections::BTreeMap;

/// Traffic of one bottleneck within the measured span.
#[derive(Clone, Debug, Default)]
pub struct LinkTraffic {
    /// Name of the bottleneck.
    pub name: String,
    /// IP bytes that passed it.
    pub carried_bytes: u64,
    /// Their bytes on its wire.
    pub wire_bytes: u64,
    /// When the first and the last packet passed.
    pub passed_ns: Option<(u64, u64)>,
    /// Bytes on the wire in each second of the span that the flows under test share.
    pub seconds: Vec<u64>,
    /// Packets that came to it and that it dropped, where single packets are known.
    pub drops: Option<(u64, u64)>,
}

/// One bottleneck on the way of one flow in one direction.
#[derive(Clone, Debug)]
struct LinkPass {
    /// Index of its traffic.
    link: usize,
    /// Names of the elements behind it.
    behind: Vec<String>,
    /// Smallest delay before it, and behind it.
    before_ns: u64,
    behind_ns: u64,
    /// True if copies of packets are made before it.
    copies: bool,
}

/// Gathers the traffic of some bottlenecks.
pub(super) struct Links<'a> {
    cell: &'a Cell,
    elements: Vec<&'a CellElement>,
    framing: Vec<CellFraming>,
    found: Vec<LinkTraffic>,
    ways: BTreeMap<(u16, Direction), Vec<LinkPass>>,
    shared: (u64, u64),
}

impl<'a> Links<'a> {
    /// Nothing yet of the bottlenecks that the scenario names and, where only a part of the run is
    /// measured, of those on the ways of the data: the drivers' counters tell of the whole run.
    pub(super) fn new(cell: &'a Cell, single_packets: bool) -> Self {
        let part = cell.measure.span_ns().is_some();
        let on_the_way = |element: &CellElement| {
            cell.tested().any(|flow| {
                let mut way = cell.elements(flow.flow, flow.direction);
                way.any(|passed| passed.label() == element.label())
            })
        };
        let wanted = |element: &&CellElement| {
            let named = cell.measure.links.iter();
            named.clone().any(|name| name == element.label())
                || (part && element.is_bottleneck() && on_the_way(element))
        };
        let all = cell.network.elements().map(|(_, element)| element);
        let elements: Vec<&CellElement> = all.filter(wanted).collect();
        let none = |element: &&CellElement| LinkTraffic {
            name: element.label().to_owned(),
            drops: single_packets.then_some((0, 0)),
            ..LinkTraffic::default()
        };
        Links {
            cell,
            found: elements.iter().map(none).collect(),
            framing: elements.iter().map(|element| element.framing()).collect(),
            elements,
            ways: BTreeMap::new(),
            shared: cell.shared_span_ns().unwrap_or((1, 0)),
        }
    }

    /// True if there is nothing to gather.
    pub(super) fn is_empty(&self) -> bool {
        self.elements.is_empty()
    }

    /// The bottlenecks that packets of `flow` pass in `direction`.
    fn way<'w>(
        ways: &'w mut BTreeMap<(u16, Direction), Vec<LinkPass>>,
        cell: &Cell,
        elements: &[&CellElement],
        way: (u16, Direction),
    ) -> &'w [LinkPass] {
        ways.entry(way).or_insert_with(|| {
            let path: Vec<&CellElement> = cell.elements(way.0, way.1).collect();
            let least = |part: &[&CellElement]| {
                let delays = part.iter().map(|element| cell.least_delay_ns(element));
                delays.fold(0, u64::saturating_add)
            };
            let pass = |(link, wanted): (usize, &&CellElement)| {
                let mut labels = path.iter().map(|element| element.label());
                let place = labels.position(|label| label == wanted.label())?;
                let (before, behind) = (&path[..place], &path[place + 1..]);
                let names = behind.iter().map(|element| element.label().to_owned());
                Some(LinkPass {
                    link,
                    behind: names.collect(),
                    before_ns: least(before).saturating_add(cell.access_ns(way.0, way.1)),
                    behind_ns: least(behind),
                    copies: before
                        .iter()
                        .any(|element| element.effects().is_some_and(|effects| effects.copies)),
                })
            };
            elements.iter().enumerate().filter_map(pass).collect()
        })
    }

    /// Takes row `i` of a chunk of packets into account.
    pub(super) fn packet(&mut self, chunk: &Chunk, i: usize) {
        let key = (chunk.flow[i], chunk.direction[i]);
        let place = match chunk.elements.get(usize::from(chunk.element[i])) {
            Some(name) if chunk.fate[i] != Fate::Delivered => Some(name),
            _ => None,
        };
        let size = u64::from(chunk.size_bytes[i]);
        let (sent, arrived) = (chunk.sent_ns[i], chunk.arrived_ns[i]);
        for pass in Self::way(&mut self.ways, self.cell, &self.elements, key) {
            // The sender sent the original only.
            if chunk.copy_of[i] > 0 && !pass.copies {
                continue;
            }
            let reached = sent.saturating_add(pass.before_ns);
            let here = place.is_some_and(|name| name == &self.found[pass.link].name);
            let delivered = chunk.fate[i] == Fate::Delivered && arrived != NOT_ARRIVED;
            let beyond = delivered || place.is_some_and(|name| pass.behind.contains(name));
            let found = &mut self.found[pass.link];
            if (here || beyond) && self.cell.measure.counts(reached) {
                let (came, dropped) = found.drops.get_or_insert_default();
                *came += 1;
                *dropped += u64::from(here && chunk.fate[i] == Fate::Dropped);
            }
            if beyond {
                let model = arrived.saturating_add_signed(chunk.late_ns[i].saturating_neg());
                let time = if delivered {
                    model.saturating_sub(pass.behind_ns).max(reached)
                } else {
                    reached
                };
                if self.cell.measure.counts(time) {
                    let wire = self.framing[pass.link].wire_bytes(size);
                    found.carried((time, time), size, wire);
                    count_second(&mut found.seconds, time, self.shared, wire);
                }
            }
        }
    }

    /// Takes a bin that counts into account.
    pub(super) fn bin(&mut self, row: &BinRow) {
        let (Some(first), Some(last)) = (row.first_arrival_ns, row.last_arrival_ns) else {
            return;
        };
        let key = (row.flow, row.direction);
        for pass in Self::way(&mut self.ways, self.cell, &self.elements, key) {
            let framing = self.framing[pass.link];
            let wire = mean_wire_bytes(framing, row.arrived_bytes, row.arrived_packets) as u64;
            let found = &mut self.found[pass.link];
            found.carried((first, last), row.arrived_bytes, wire);
            count_second(&mut found.seconds, row.bin_ns, self.shared, wire);
        }
    }

    /// The findings.
    pub(super) fn finish(self) -> Vec<LinkTraffic> {
        self.found
    }
}

impl LinkTraffic {
    fn carried(&mut self, (first, last): (u64, u64), bytes: u64, wire: u64) {
        self.carried_bytes += bytes;
        self.wire_bytes += wire;
        let (low, high) = self.passed_ns.unwrap_or((first, last));
        self.passed_ns = Some((low.min(first), high.max(last)));
    }

    /// Time between the first and the last packet that passed.
    ///
    /// # Errors
    /// The reason why there is no such time.
    pub fn span_ns(&self) -> Result<(u64, u64), String> {
        match self.passed_ns {
            None => Err(format!("no packet passed {}", self.name)),
            Some((first, last)) if first == last => {
                Err(format!("all packets passed {} at one instant", self.name))
            }
            Some(span) => Ok(span),
        }
    }
}

/// Bytes of packets on the wire, each taken to be of mean size.
pub(super) fn mean_wire_bytes(framing: CellFraming, bytes: u64, packets: u64) -> f64 {
    if framing == CellFraming::default() || packets == 0 {
        return bytes as f64;
    }
    framing.wire_bytes(bytes.div_ceil(packets)) as f64 * packets as f64
}
