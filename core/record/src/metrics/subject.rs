//! What a metric is computed for: one flow, or all flows of a cell together.

use super::distribution::DelayDistribution;
use super::traffic::{FlowTraffic, Traffic};
use crate::cell::Cell;
use crate::read::Record;
use crate::run::{FlowSummary, RunDocument};

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
    traffic: &'a [FlowTraffic],
    rtts: Vec<u64>,
}

impl<'a> Subject<'a> {
    /// Flow `index` of the cell, with its round-trip samples.
    pub(super) fn of_flow(
        record: &'a Record,
        traffic: &'a Traffic,
        index: usize,
        rtts: &[Vec<u64>],
    ) -> Self {
        let flow = Some(traffic.flows[index].flow);
        Self::new(record, flow, &traffic.flows[index..=index], rtts)
    }

    /// All flows of the cell, with the round-trip samples of each.
    pub(super) fn of_all(record: &'a Record, traffic: &'a Traffic, rtts: &[Vec<u64>]) -> Self {
        Self::new(record, None, &traffic.flows, rtts)
    }

    fn new(
        record: &'a Record,
        flow: Option<u16>,
        traffic: &'a [FlowTraffic],
        rtts: &[Vec<u64>],
    ) -> Self {
        let cell = &record.cell;
        let mut rtts: Vec<u64> = rtts.concat();
        rtts.sort_unstable();
        let propagation = |t: &FlowTraffic| cell.propagation_ns(t.flow, t.direction);
        let delays = match traffic {
            [one] => one.delays.clone(),
            many => DelayDistribution::pooled(many.iter().map(|t| &t.delays)),
        };
        let unsteady = traffic.iter().find_map(|t| cell.unsteady(t.direction));
        let queueing = if let Some(element) = unsteady {
            Err(format!(
                "{} ({}) delays packets by an amount that is not fixed, so the part due to queues \
                 is not known",
                element.label(),
                element.kind
            ))
        } else if traffic
            .windows(2)
            .all(|pair| propagation(&pair[0]) == propagation(&pair[1]))
        {
            Ok(delays.less(traffic.first().map_or(0, propagation)))
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
            traffic,
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
        self.traffic.iter()
    }

    /// The sum of a count over the flows.
    pub fn sum(&self, count: impl Fn(&FlowTraffic) -> u64) -> u64 {
        self.traffic.iter().map(count).sum()
    }

    /// Time between the first and the last arrival, over all flows of the subject.
    ///
    /// # Errors
    /// The reason why there is no such span.
    pub fn span_ns(&self) -> Result<u64, String> {
        let whose = if self.flow.is_some() {
            " of the flow"
        } else {
            ""
        };
        let arrivals = self.traffic.iter().filter_map(|t| t.arrivals_ns);
        let span = arrivals.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)));
        match (span, self.sum(|t| t.arrived_packets)) {
            (None, _) => Err(format!("no packet{whose} arrived")),
            (_, 1) => Err(format!(
                "only one packet{whose} arrived, so there is no span of time"
            )),
            (Some((first, last)), _) if first == last => {
                Err(format!("all packets{whose} arrived at the same instant"))
            }
            (Some((first, last)), _) => Ok(last - first),
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
