//! The subject of a metric: one flow, or all flows of a cell together.

use super::distribution::DelayDistribution;
use super::group::Group;
use super::links::LinkTraffic;
use super::rtt_samples::RttSamples;
use super::traffic::{FlowTraffic, RecordTraffic};
use crate::capacity::Capacities;
use crate::cell::{Cell, CellElement};
use crate::read::Record;
use crate::run::{FlowSummary, RunDocument};
use crate::schema::{CompletionRow, FrameRow, TransferRow};
use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::BTreeMap;

/// Word for the event by which packets count as throughput.
pub(super) const ARRIVED: &str = "arrived";

/// Data gathered once for all subjects of a record.
pub(super) struct Material<'a> {
    pub(super) record: &'a Record,
    pub(super) traffic: RecordTraffic,
    pub(super) capacities: Capacities,
    pub(super) transfers: Cow<'a, [TransferRow]>,
    /// Flow by flow.
    pub(super) frames: Cow<'a, [FrameRow]>,
    /// Mean bitrate that each flow asked its encoder for.
    pub(super) targets: BTreeMap<u16, f64>,
    /// Values from the sampled states of each flow of the cell.
    pub(super) states: Vec<StatesOfFlow>,
    /// Histograms of completion times, in place of transfers.
    pub(super) completions: Cow<'a, [CompletionRow]>,
    /// From the last start of a flow under test to the first stop, within the part that is measured.
    pub(super) shared_span_ns: Option<(u64, u64)>,
    /// The congestion events of the flows under test, computed when a metric first asks for them.
    pub(super) congestion: OnceCell<Result<Congestion, String>>,
}

/// Values from the sampled states of one sender.
#[derive(Clone, Debug, Default)]
pub struct StatesOfFlow {
    /// Round-trip samples of the whole run.
    pub rtts: RttSamples,
    /// Time and bytes acknowledged so far, of the first and the last sample that is measured.
    pub delivered: Option<((u64, u64), (u64, u64))>,
}

/// Statistics of the congestion events of a run over the flows under test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Congestion {
    /// Number of events.
    pub(super) events: usize,
    /// Number of events in which each flow, by its index among those under test, lost packets.
    pub(super) hits: Vec<usize>,
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
    /// The flow's number; `None` for all flows together, and for a link.
    pub flow: Option<u16>,
    /// The bottleneck, if the subject is one.
    pub link: Option<&'a LinkTraffic>,
    /// The cell.
    pub cell: &'a Cell,
    /// The run.
    pub run: &'a RunDocument,
    /// One-way delays of all packets that arrived.
    pub delays: DelayDistribution,
    /// The same less propagation, or the reason why propagation is not known.
    pub queueing: Result<DelayDistribution, String>,
    /// Capacity of bottlenecks.
    pub capacities: &'a Capacities,
    /// The time during which all flows under test run, if there is one.
    pub shared_span_ns: Option<(u64, u64)>,
    /// The flows of the subject.
    traffic: Vec<&'a FlowTraffic>,
    /// All flows of the cell, background included.
    whole: &'a [FlowTraffic],
    transfers: Vec<&'a TransferRow>,
    completions: Vec<&'a CompletionRow>,
    frames: Vec<FramesOfFlow<'a>>,
    rtts: Vec<(u64, u64)>,
    /// States of the subject's flows.
    states: Vec<&'a StatesOfFlow>,
    tested: Vec<(&'a FlowTraffic, &'a StatesOfFlow)>,
    links: &'a [LinkTraffic],
    pub(super) congestion: &'a OnceCell<Result<Congestion, String>>,
}

impl<'a> Subject<'a> {
    /// Flow `index` of the cell.
    pub(super) fn for_flow(material: &'a Material<'a>, index: usize) -> Self {
        let flow = Some(material.traffic.flows[index].flow);
        Self::new(material, flow, &[index])
    }

    /// All flows of the cell that are under test.
    pub(super) fn for_all(material: &'a Material<'a>) -> Self {
        let flows = &material.record.cell.flows;
        let tested: Vec<usize> = (0..flows.len())
            .filter(|&index| !flows[index].background)
            .collect();
        Self::new(material, None, &tested)
    }

    /// The bottleneck called `name`.
    pub(super) fn for_link(material: &'a Material<'a>, link: &'a LinkTraffic) -> Self {
        Subject {
            link: Some(link),
            ..Self::new(material, None, &[])
        }
    }

    fn new(material: &'a Material<'a>, flow: Option<u16>, indices: &[usize]) -> Self {
        let record = material.record;
        let cell = &record.cell;
        let whole = &material.traffic.flows;
        let traffic: Vec<&FlowTraffic> = indices.iter().map(|&index| &whole[index]).collect();
        let transfers = material.transfers.iter();
        let mine = |number: u16| traffic.iter().any(|t| t.flow == number);
        let begun = |row: &&TransferRow| cell.measure.counts(row.started_ns);
        let transfers = transfers
            .filter(|row| mine(row.flow))
            .filter(begun)
            .collect();
        let completions = material.completions.iter();
        let completions = completions.filter(|row| mine(row.flow)).collect();
        let (from_ns, to_ns) = cell.measure.span_ns().unwrap_or((0, u64::MAX));
        let frames = material.frames.chunk_by(|a, b| a.flow == b.flow);
        let frames = frames.filter_map(|rows| {
            let known = cell.flow(rows[0].flow)?;
            // Frames are in the order of their capture.
            let first = rows.partition_point(|row| row.captured_ns < from_ns);
            let last = rows.partition_point(|row| row.captured_ns < to_ns);
            (mine(known.flow) && first < last).then(|| FramesOfFlow {
                rows: &rows[first..last],
                start_ns: known.start_ns.max(from_ns),
                stop_ns: known.stop_ns.min(cell.duration_ns).min(to_ns),
                target_bps: material.targets.get(&known.flow).copied(),
            })
        });
        let frames = frames.collect();
        let pairs = whole.iter().zip(&material.states).zip(&cell.flows);
        let pairs = pairs.filter(|(_, flow)| !flow.background);
        let tested = pairs.map(|(pair, _)| pair).collect();
        let states: Vec<&StatesOfFlow> = indices
            .iter()
            .map(|&index| &material.states[index])
            .collect();
        let rtts = RttSamples::counted(states.iter().map(|states| &states.rtts));
        // The delay of a real path without queues is not known; the fastest packet is the best estimate.
        let minimum = &material.traffic.least_ns;
        let propagation = |t: &FlowTraffic| match minimum[t.direction as usize] {
            Some(minimum) if cell.is_real(t.flow, t.direction) => minimum,
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
                "the propagation delay of {} ({}) is not fixed or not known, so the part due to queues is not known",
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
            link: None,
            cell,
            run: &record.run,
            delays,
            queueing,
            capacities: &material.capacities,
            shared_span_ns: material.shared_span_ns,
            traffic,
            whole,
            transfers,
            completions,
            frames,
            rtts,
            states,
            tested,
            links: &material.traffic.links,
            congestion: &material.congestion,
        }
    }

    /// The row's name in results: the number of the flow, the name of the link, or `all`.
    pub fn label(&self) -> String {
        match (self.link, self.flow) {
            (Some(link), _) => link.name.clone(),
            (None, Some(flow)) => flow.to_string(),
            (None, None) => "all".to_owned(),
        }
    }

    /// The traffic of each flow.
    pub fn traffic(&self) -> impl Iterator<Item = &FlowTraffic> {
        self.traffic.iter().copied()
    }

    /// Transfers of the applications of the subject's flows.
    pub fn transfers(&self) -> impl Iterator<Item = &TransferRow> {
        self.transfers.iter().copied()
    }

    /// Histograms of the completion times of the subject's flows, where transfers are not kept.
    pub fn completions(&self) -> impl Iterator<Item = &CompletionRow> {
        self.completions.iter().copied()
    }

    /// Each flow's traffic, and the values of its states.
    pub fn states(&self) -> impl Iterator<Item = (&FlowTraffic, &StatesOfFlow)> {
        self.traffic().zip(self.states.iter().copied())
    }

    /// All flows under test, in the order of the cell, with the values of their states.
    pub fn flows_under_test(&self) -> impl Iterator<Item = (&FlowTraffic, &StatesOfFlow)> {
        self.tested.iter().copied()
    }

    /// True if it is a flow that is not under test.
    pub fn is_background(&self) -> bool {
        let flow = self.flow.and_then(|number| self.cell.flow(number));
        flow.is_some_and(|flow| flow.background)
    }

    /// Traffic of the bottleneck called `name`, from single packets or bins.
    pub fn link_called(&self, name: &str) -> Option<&LinkTraffic> {
        self.links.iter().find(|link| link.name == name)
    }

    /// True if it is all flows of an imported run whose data went in both directions. Only the tool that made the run
    /// combined these flows; in a scenario the user combines them on purpose.
    pub fn mixes_directions(&self) -> bool {
        let first = self.traffic.first().map(|t| t.direction);
        let mut others = self.traffic.iter();
        self.run.plane == "import" && others.any(|t| Some(t.direction) != first)
    }

    /// Checks that the packets were observed at both ends.
    ///
    /// # Errors
    /// Only one end was measured, so that losses are not known.
    pub fn both_ends(&self) -> Result<(), String> {
        if self.run.saw_one_end() {
            return Err(self.nothing("was seen at both ends"));
        }
        Ok(())
    }

    /// Checks that the whole run is measured, for values that are counted over all of it.
    ///
    /// # Errors
    /// Only a part of the run is measured.
    pub fn whole_run(&self) -> Result<(), String> {
        match self.cell.measure.span_ns() {
            None => Ok(()),
            Some(_) => {
                Err("it is counted over the whole run, of which only a part is measured".to_owned())
            }
        }
    }

    /// The frames of each flow of the subject that sent any.
    ///
    /// # Errors
    /// No flow did.
    pub fn frames(&self) -> Result<impl Iterator<Item = FramesOfFlow<'a>> + '_, String> {
        if self.frames.is_empty() {
            return Group::Frames.absent();
        }
        Ok(self.frames.iter().copied())
    }

    /// The flow; for all flows together those, background included, whose data pass the slowest bottleneck of a flow
    /// under test or, where that is not known, any link on the data path of one.
    pub fn with_company(&self) -> Vec<&FlowTraffic> {
        if self.flow.is_some() {
            return self.traffic().collect();
        }
        let span = self.shared_span_ns.unwrap_or((0, u64::MAX));
        let narrow = self.bottlenecks(span).ok();
        let links = |t: &FlowTraffic| {
            let route = self.cell.route_of(t.flow, t.direction);
            route.map_or(&[][..], |route| &self.cell.network.routes[route].links)
        };
        let shares = |t: &&FlowTraffic| match &narrow {
            Some(narrow) => self.cell.elements(t.flow, t.direction).any(|passed| {
                let mut narrow = narrow.iter();
                narrow.any(|(element, _)| element.label() == passed.label())
            }),
            None => self
                .traffic()
                .any(|own| own.flow == t.flow || links(own).iter().any(|l| links(t).contains(l))),
        };
        self.whole.iter().filter(shares).collect()
    }

    /// The slowest bottleneck on the data path of each flow, each once, with its mean capacity in bit/s between two
    /// times.
    ///
    /// # Errors
    /// A path without bottleneck, or a capacity that is not known.
    pub fn bottlenecks(&self, span: (u64, u64)) -> Result<Vec<(&'a CellElement, f64)>, String> {
        let mut found: Vec<(&'a CellElement, f64)> = Vec::new();
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
    pub fn through(&self, element: &CellElement) -> (u64, u64) {
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
    /// The reason why no such span exists.
    pub fn span_ns(&self) -> Result<u64, String> {
        let (first, last) = self.span_of(&self.traffic)?;
        Ok(last - first)
    }

    /// Time in which the flows of the subject might send, where their packets were not observed.
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
    /// The reason why no such span exists.
    pub fn whole_span_ns(&self) -> Result<(u64, u64), String> {
        let all: Vec<&FlowTraffic> = self.whole.iter().collect();
        self.span_of(&all)
    }

    /// The owner of the packets, for messages.
    fn whose(&self) -> &'static str {
        match self.flow {
            Some(_) => " of the flow",
            None => "",
        }
    }

    /// Why the value is absent if nothing `happened` to any packet.
    pub fn nothing(&self, happened: &str) -> String {
        if self.run.has_only_ends() {
            return "there was no tunnel, so that only the ends of flows were measured".to_owned();
        }
        if self.run.saw_one_end() {
            return "only one end of the flows was measured".to_owned();
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

    /// Counters of the endpoints of each flow; `None` for a flow without such an entry.
    pub fn summaries(&self) -> impl Iterator<Item = Option<&FlowSummary>> {
        self.traffic
            .iter()
            .map(|t| self.run.flows.iter().find(|flow| flow.flow == t.flow))
    }

    /// Round-trip samples, in order of size, each with its number.
    pub fn rtts(&self) -> &[(u64, u64)] {
        &self.rtts
    }
}

/// Bits in `bytes` over `span_ns`, in bit/s.
pub(super) fn rate_bps(bytes: u64, span_ns: u64) -> f64 {
    bytes as f64 * 8e9 / span_ns as f64
}
