//! What a metric is computed for: one flow, or all flows of a cell together.

use super::distribution::DelayDistribution;
use super::traffic::{FlowTraffic, Traffic};
use crate::capacity::Capacities;
use crate::cell::{Cell, Element};
use crate::read::Record;
use crate::run::{FlowSummary, RunDocument};
use crate::schema::{FrameRow, TransferRow};
use std::collections::BTreeMap;

/// What happens to packets that are counted as throughput.
pub(super) const ARRIVED: &str = "arrived";

/// What is gathered once for all subjects of a record.
pub(super) struct Material<'a> {
    pub(super) record: &'a Record,
    pub(super) traffic: Traffic,
    pub(super) capacities: Capacities,
    pub(super) transfers: Vec<TransferRow>,
    /// Flow by flow.
    pub(super) frames: Vec<FrameRow>,
    /// Mean bitrate that each flow asked its encoder for.
    pub(super) targets: BTreeMap<u16, f64>,
    /// Round-trip samples, per flow of the cell.
    pub(super) rtts: Vec<Vec<u64>>,
}

/// The frames of video of one flow.
#[derive(Clone, Copy, Debug)]
pub struct FramesOfFlow<'a> {
    /// In the order of their capture.
    pub rows: &'a [FrameRow],
    /// When the flow began.
    pub start_ns: u64,
    /// When it stopped, or the run ended.
    pub stop_ns: u64,
    /// Mean bitrate that its scheme asked the encoder for.
    pub target_bps: Option<f64>,
}

/// One flow or all flows of a record, with what metrics ask about them.
pub struct Subject<'a> {
    /// The flow's number; `None` for all flows together.
    pub flow: Option<u16>,
    /// The cell.
    pub cell: &'a Cell,
    /// The run.
    pub run: &'a RunDocument,
    /// One-way delays of all packets that arrived.
    pub delays: DelayDistribution,
    /// The same less propagation, or the reason why propagation is not known.
    pub queueing: Result<DelayDistribution, String>,
    /// What bottlenecks could have carried.
    pub capacities: &'a Capacities,
    /// The flows of the subject.
    traffic: Vec<&'a FlowTraffic>,
    /// All flows of the cell, background included.
    whole: &'a [FlowTraffic],
    transfers: Vec<&'a TransferRow>,
    frames: Vec<FramesOfFlow<'a>>,
    rtts: Vec<u64>,
}

impl<'a> Subject<'a> {
    /// Flow `index` of the cell.
    pub(super) fn of_flow(material: &'a Material<'a>, index: usize) -> Self {
        let flow = Some(material.traffic.flows[index].flow);
        Self::new(material, flow, &[index])
    }

    /// All flows of the cell that are under test.
    pub(super) fn of_all(material: &'a Material<'a>) -> Self {
        let flows = &material.record.cell.flows;
        let tested: Vec<usize> = (0..flows.len())
            .filter(|&index| !flows[index].background)
            .collect();
        Self::new(material, None, &tested)
    }

    fn new(material: &'a Material<'a>, flow: Option<u16>, indices: &[usize]) -> Self {
        let record = material.record;
        let cell = &record.cell;
        let whole = &material.traffic.flows;
        let traffic: Vec<&FlowTraffic> = indices.iter().map(|&index| &whole[index]).collect();
        let transfers = material.transfers.iter();
        let transfers = transfers
            .filter(|row| traffic.iter().any(|t| t.flow == row.flow))
            .collect();
        let frames = material.frames.chunk_by(|a, b| a.flow == b.flow);
        let frames = frames.filter_map(|rows| {
            let known = cell.flow(rows[0].flow)?;
            let mine = traffic.iter().any(|t| t.flow == known.flow);
            mine.then(|| FramesOfFlow {
                rows,
                start_ns: known.start_ns,
                stop_ns: known.stop_ns.min(cell.duration_ns),
                target_bps: material.targets.get(&known.flow).copied(),
            })
        });
        let frames = frames.collect();
        let mut rtts: Vec<u64> = indices
            .iter()
            .flat_map(|&index| material.rtts[index].iter().copied())
            .collect();
        rtts.sort_unstable();
        // Nobody knows how long a real path takes without queues; the fastest packet took the least.
        let least = &material.traffic.least_ns;
        let propagation = |t: &FlowTraffic| match least[t.direction as usize] {
            Some(least) if cell.is_real(t.flow, t.direction) => least,
            _ => cell.propagation_ns(t.flow, t.direction),
        };
        let delays = match traffic[..] {
            [one] => one.delays.clone(),
            _ => DelayDistribution::pooled(traffic.iter().map(|t| &t.delays)),
        };
        let mut modelled = traffic
            .iter()
            .filter(|t| !cell.is_real(t.flow, t.direction));
        let unsteady = modelled.find_map(|t| cell.unsteady(t.flow, t.direction));
        let queueing = if let Some(element) = unsteady {
            Err(format!(
                "{} ({}) delays packets by an amount that is not fixed, so the part due to queues \
                 is not known",
                element.label(),
                element.kind
            ))
        } else if traffic
            .windows(2)
            .all(|pair| propagation(pair[0]) == propagation(pair[1]))
        {
            Ok(delays.less(traffic.first().map_or(0, |t| propagation(t))))
        } else {
            let each: Vec<_> = traffic
                .iter()
                .map(|t| t.delays.less(propagation(t)))
                .collect();
            Ok(DelayDistribution::pooled(each.iter()))
        };
        Subject {
            flow,
            cell,
            run: &record.run,
            delays,
            queueing,
            capacities: &material.capacities,
            traffic,
            whole,
            transfers,
            frames,
            rtts,
        }
    }

    /// The row's name in results: the number of the flow, or `all`.
    pub fn label(&self) -> String {
        self.flow
            .map_or_else(|| "all".to_owned(), |flow| flow.to_string())
    }

    /// The traffic of each flow.
    pub fn traffic(&self) -> impl Iterator<Item = &FlowTraffic> {
        self.traffic.iter().copied()
    }

    /// Transfers of the applications of the subject's flows.
    pub fn transfers(&self) -> impl Iterator<Item = &TransferRow> {
        self.transfers.iter().copied()
    }

    /// The frames of each flow of the subject that sent any.
    ///
    /// # Errors
    /// That none did.
    pub fn frames(&self) -> Result<impl Iterator<Item = FramesOfFlow<'a>> + '_, String> {
        if self.frames.is_empty() {
            return Err("no frames of video were sent".into());
        }
        Ok(self.frames.iter().copied())
    }

    /// The flow, or all flows of the cell, background included.
    pub fn with_background(&self) -> impl Iterator<Item = &FlowTraffic> {
        let one = self.flow.is_some();
        let own = self.traffic().filter(move |_| one);
        own.chain(self.whole.iter().filter(move |_| !one))
    }

    /// The slowest bottleneck on the way of the data of each flow, each once, with its mean
    /// capacity in bit/s between two times.
    ///
    /// # Errors
    /// A way without bottleneck, or a capacity that is not known.
    pub fn bottlenecks(&self, span: (u64, u64)) -> Result<Vec<(&'a Element, f64)>, String> {
        let mut found: Vec<(&'a Element, f64)> = Vec::new();
        for flow in self.traffic() {
            let way = (flow.flow, flow.direction);
            let (element, bps) = self.capacities.narrowest(self.cell, way, span)?;
            if found
                .iter()
                .all(|(known, _)| known.label() != element.label())
            {
                found.push((element, bps));
            }
        }
        Ok(found)
    }

    /// Bytes and packets of all flows, background included, that passed `element` and arrived.
    pub fn through(&self, element: &Element) -> (u64, u64) {
        let passing = self.whole.iter().filter(|t| {
            let mut way = self.cell.elements(t.flow, t.direction);
            way.any(|passed| passed.label() == element.label())
        });
        passing.fold((0, 0), |(bytes, packets), t| {
            (bytes + t.arrived_bytes, packets + t.arrived_packets)
        })
    }

    /// The sum of a count over the flows.
    pub fn sum(&self, count: impl Fn(&FlowTraffic) -> u64) -> u64 {
        self.traffic().map(count).sum()
    }

    /// Time between the first and the last arrival, over all flows of the subject.
    ///
    /// # Errors
    /// The reason why there is no such span.
    pub fn span_ns(&self) -> Result<u64, String> {
        let (first, last) = self.span_of(&self.traffic)?;
        Ok(last - first)
    }

    /// Time in which the flows of the subject might send, where nobody saw their packets.
    pub fn active_ns(&self) -> Option<u64> {
        let mine = |number: u16| self.traffic.iter().any(|t| t.flow == number);
        let flows = self.cell.flows.iter().filter(|flow| mine(flow.flow));
        let spans = flows.map(|flow| (flow.start_ns, flow.stop_ns.min(self.cell.duration_ns)));
        let span = spans.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)));
        let (start, stop) = span.filter(|_| self.run.has_only_ends())?;
        stop.checked_sub(start).filter(|&span| span > 0)
    }

    /// First and last arrival of all flows, background included.
    ///
    /// # Errors
    /// The reason why there is no such span.
    pub fn whole_span_ns(&self) -> Result<(u64, u64), String> {
        let all: Vec<&FlowTraffic> = self.whole.iter().collect();
        self.span_of(&all)
    }

    /// Of whom packets are.
    fn whose(&self) -> &'static str {
        match self.flow {
            Some(_) => " of the flow",
            None => "",
        }
    }

    /// Why there is no number where nothing `happened` to any packet.
    pub(super) fn nothing(&self, happened: &str) -> String {
        if self.run.has_only_ends() {
            return "there was no tunnel, so that only the ends of flows were measured".to_owned();
        }
        format!("no packet{} {happened}", self.whose())
    }

    fn span_of(&self, traffic: &[&FlowTraffic]) -> Result<(u64, u64), String> {
        let whose = self.whose();
        let arrivals = traffic.iter().filter_map(|t| t.arrivals_ns);
        let span = arrivals.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)));
        let packets: u64 = traffic.iter().map(|t| t.arrived_packets).sum();
        match (span, packets) {
            (None, _) => Err(self.nothing(ARRIVED)),
            (_, 1) => Err(format!(
                "only one packet{whose} arrived, so there is no span of time"
            )),
            (Some((first, last)), _) if first == last => {
                Err(format!("all packets{whose} arrived at the same instant"))
            }
            (Some(span), _) => Ok(span),
        }
    }

    /// What the endpoints of each flow counted; `None` for a flow without such an entry.
    pub fn summaries(&self) -> impl Iterator<Item = Option<&FlowSummary>> {
        self.traffic
            .iter()
            .map(|t| self.run.flows.iter().find(|flow| flow.flow == t.flow))
    }

    /// Round-trip samples, in order of size.
    pub fn rtts(&self) -> &[u64] {
        &self.rtts
    }
}

/// Bits in `bytes` over `span_ns`, in bit/s.
pub(super) fn rate_bps(bytes: u64, span_ns: u64) -> f64 {
    bytes as f64 * 8e9 / span_ns as f64
}
