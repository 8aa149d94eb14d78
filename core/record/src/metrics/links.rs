//! Traffic and drops of single bottlenecks, computed from packets or bins.
//!
//! The time at which a packet passed follows from its row ([`crate::link_passes`]); acknowledgements count like data. Bins
//! count as a whole, by the time of arrival; packets that were dropped behind the bottleneck are not counted, because
//! bins do not say where a packet was dropped.

use super::bytes_per_second::count_second;
use crate::cell::{Cell, CellElement, CellFraming};
use crate::link_passes::LinkPass;
use crate::log::Chunk;
use crate::schema::{BinRow, Direction};
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
    /// Packets that reached it and packets that it dropped, where single packets are known.
    pub drops: Option<(u64, u64)>,
}

/// Gathers the traffic of some bottlenecks.
pub(super) struct Links<'a> {
    cell: &'a Cell,
    elements: Vec<&'a CellElement>,
    framing: Vec<CellFraming>,
    totals: Vec<LinkTraffic>,
    /// By flow and direction: the index of each bottleneck on the path, and how it is passed.
    ways: BTreeMap<(u16, Direction), Vec<(usize, LinkPass)>>,
    shared: (u64, u64),
}

impl<'a> Links<'a> {
    /// Starts empty for the bottlenecks that the scenario names and, if only a part of the run is measured, for those
    /// on the data paths: the drivers' counters cover the whole run.
    pub(super) fn new(cell: &'a Cell, single_packets: bool) -> Self {
        let part = cell.measure.span_ns().is_some();
        let on_the_way = |element: &CellElement| {
            cell.flows_under_test().any(|flow| {
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
            totals: elements.iter().map(none).collect(),
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
        ways: &'w mut BTreeMap<(u16, Direction), Vec<(usize, LinkPass)>>,
        cell: &Cell,
        elements: &[&CellElement],
        way: (u16, Direction),
    ) -> &'w [(usize, LinkPass)] {
        ways.entry(way).or_insert_with(|| {
            let pass = |(link, wanted): (usize, &&CellElement)| {
                Some((link, LinkPass::new(cell, way, wanted.label())?))
            };
            elements.iter().enumerate().filter_map(pass).collect()
        })
    }

    /// Takes row `i` of a chunk of packets into account.
    pub(super) fn packet(&mut self, chunk: &Chunk, i: usize) {
        let key = (chunk.flow[i], chunk.direction[i]);
        let size = u64::from(chunk.size_bytes[i]);
        for (link, pass) in Self::way(&mut self.ways, self.cell, &self.elements, key) {
            let Some(outcome) = pass.outcome(chunk, i) else {
                continue;
            };
            let totals = &mut self.totals[*link];
            let came = outcome.here || outcome.passed_ns.is_some();
            if came && self.cell.measure.counts(outcome.reached_ns) {
                let (came, dropped) = totals.drops.get_or_insert_default();
                *came += 1;
                *dropped += u64::from(outcome.dropped);
            }
            if let Some(time) = outcome.passed_ns
                && self.cell.measure.counts(time)
            {
                let wire = self.framing[*link].wire_bytes(size);
                totals.add_carried((time, time), size, wire);
                count_second(&mut totals.seconds, time, self.shared, wire);
            }
        }
    }

    /// Takes a bin that counts into account.
    pub(super) fn bin(&mut self, row: &BinRow) {
        let (Some(first), Some(last)) = (row.first_arrival_ns, row.last_arrival_ns) else {
            return;
        };
        let key = (row.flow, row.direction);
        for (link, _) in Self::way(&mut self.ways, self.cell, &self.elements, key) {
            let framing = self.framing[*link];
            let wire = framing.mean_wire_bytes(row.arrived_bytes, row.arrived_packets) as u64;
            let totals = &mut self.totals[*link];
            totals.add_carried((first, last), row.arrived_bytes, wire);
            count_second(&mut totals.seconds, row.bin_ns, self.shared, wire);
        }
    }

    /// The traffic of each bottleneck.
    pub(super) fn finish(self) -> Vec<LinkTraffic> {
        self.totals
    }
}

impl LinkTraffic {
    fn add_carried(&mut self, (first, last): (u64, u64), bytes: u64, wire: u64) {
        self.carried_bytes += bytes;
        self.wire_bytes += wire;
        let (low, high) = self.passed_ns.unwrap_or((first, last));
        self.passed_ns = Some((low.min(first), high.max(last)));
    }

    /// Time between the first and the last packet that passed.
    ///
    /// # Errors
    /// The reason why no such time exists.
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
