//! Reports of the ends of flows as members of `run.json` and rows of the smaller files: common to all planes on which
//! processes send.

use crate::error::RunError;
use crate::judgement::EndpointMeasurements;
use crate::media::number_frames;
use crate::outcome::{EndpointOutcome, OfferedLoad, Role};
use crate::{Cell, Flow, RecordFolder, SchemeRef, judge_frames, merge_frames};
use narrows_media::{FrameArrived, FrameSent};
use narrows_record::completions::Completions;
use narrows_record::{
    FlowSummary, FrameRow, Offered, RunDocument, StateRow, TraceRow, TransferRow,
};
use narrows_traffic::Class;
use narrows_units::Time;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// One end of one flow after the run.
#[derive(Clone, Debug)]
pub struct FlowEnd {
    /// Number of the flow.
    pub flow: u16,
    /// The end of the flow.
    pub role: Role,
    /// Duration of the flow.
    pub active_ns: u64,
    /// Its report; `None` if it never reported.
    pub outcome: Option<EndpointOutcome>,
    /// The failure with which it ended, if any.
    pub failure: Option<String>,
}

/// Data packets of a flow that the network delivered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowDeliveries {
    /// Packets that arrived.
    pub delivered: u64,
    /// Packets that arrived damaged.
    pub damaged: u64,
}

/// Reports of all ends together.
#[derive(Debug, Default)]
pub struct EndpointResults {
    /// Measurements for the judgement.
    pub endpoints: Vec<EndpointMeasurements>,
    states: Vec<StateRow>,
    traces: Vec<TraceRow>,
    transfers: Vec<TransferRow>,
    frames: Vec<FrameRow>,
}

impl EndpointResults {
    /// Combines the reports of `ends`, flow by flow. Adds the summaries of the flows to `run`, each starting from
    /// `describe`, and reasons for frames that were never sent.
    pub fn gather(
        cell: &Cell,
        mut ends: Vec<FlowEnd>,
        describe: impl Fn(&Flow) -> FlowSummary,
        seen: impl Fn(u16) -> FlowDeliveries,
        run: &mut RunDocument,
    ) -> Self {
        // If the application runs at the receiver, its report says what the sender had to send.
        ends.sort_by_key(|end| (end.flow, end.role == Role::Sender));
        let mut results = EndpointResults::default();
        for flow in &cell.flows {
            let own = ends.iter_mut().filter(|end| end.flow == flow.flow);
            let summary = results.add_flow(cell, flow, own, describe(flow), seen(flow.flow), run);
            run.flows.push(summary);
        }
        results.states.sort_by_key(|row| (row.time_ns, row.flow));
        results.traces.sort_by_key(|row| (row.time_ns, row.flow));
        results
    }

    fn add_flow<'a>(
        &mut self,
        cell: &Cell,
        flow: &Flow,
        ends: impl Iterator<Item = &'a mut FlowEnd>,
        mut summary: FlowSummary,
        seen: FlowDeliveries,
        run: &mut RunDocument,
    ) -> FlowSummary {
        summary.fingerprint.read_back = None;
        let mut offer: Option<OfferedLoad> = None;
        let mut ended: BTreeMap<u32, u64> = BTreeMap::new();
        let (mut made, mut whole) = (Vec::new(), Vec::new());
        for end in ends {
            let mut outcome = end.outcome.take();
            if let Some(outcome) = &mut outcome {
                let states = std::mem::take(&mut outcome.states).into_iter();
                self.states
                    .extend(states.map(|state| state.into_row(flow.flow)));
                self.traces.extend(outcome.trace_rows(flow.flow));
                outcome.traces.clear();
                // The kernel counts datagrams with a wrong checksum as dropped by the socket.
                outcome.socket_drops = outcome.socket_drops.saturating_sub(seen.damaged);
                ended.extend(std::mem::take(&mut outcome.ended));
                let sent = std::mem::take(&mut outcome.frames).into_iter();
                made.extend(sent.map(FrameSent::from));
                let arrived = std::mem::take(&mut outcome.whole).into_iter();
                whole.extend(arrived.map(|(number, at)| FrameArrived {
                    number,
                    at: Time::from_ns(at),
                }));
                offer = offer.or(outcome.offer.take());
                // Wake-ups of programs are not known.
                if outcome.program.is_none() {
                    let woken = summary.other.entry("woken").or_insert_with(|| json!({}));
                    woken[end.role.name()] = json!(outcome.woken);
                }
                match end.role {
                    Role::Sender => {
                        summary.sender = outcome.sender.clone();
                        summary.fingerprint.read_back.clone_from(&outcome.read_back);
                        if outcome.program.is_none() {
                            let limits = json!(outcome.limits);
                            summary.other.insert("limits".to_owned(), limits);
                        }
                    }
                    Role::Receiver => summary.receiver = outcome.receiver.clone(),
                }
            }
            self.endpoints.push(EndpointMeasurements {
                flow: flow.flow,
                wanted: must_deliver(flow, offer.as_ref()),
                capped: is_capped(cell, flow),
                role: end.role,
                active_ns: end.active_ns,
                delivered: seen.delivered,
                outcome,
                failure: end.failure.take(),
            });
        }
        if let Some(offer) = &offer {
            describe_offer(&mut summary, cell, flow, offer);
        }
        let noted = offer.iter().flat_map(|offer| &offer.noted);
        self.transfers.extend(noted.map(|noted| {
            // The last byte arrives at the server or at the client, never at both.
            let there = ended.get(&noted.transfer).copied();
            TransferRow {
                flow: flow.flow,
                connection: noted.connection,
                transfer: noted.transfer,
                bytes: noted.bytes,
                started_ns: noted.started_ns,
                // The two ends read one clock at slightly different times, or two clocks whose relation has an error.
                ended_ns: noted.ended_ns.or(there).map(|at| at.max(noted.started_ns)),
            }
        }));
        if matches!(flow.scheme, SchemeRef::Program(_)) {
            number_frames(&mut made, &mut whole);
        }
        let (rows, strangers) = merge_frames(flow.flow, &made, &whole);
        self.frames.extend(rows);
        judge_frames(run, flow, strangers);
        summary
    }

    /// Writes states, traces, transfers and frames.
    pub fn write(
        self,
        cell: &Cell,
        folder: &RecordFolder,
    ) -> Result<Vec<EndpointMeasurements>, RunError> {
        folder.states(self.states, self.traces)?;
        folder.transfers(cell, self.transfers, Completions::default())?;
        folder.frames(&self.frames)?;
        Ok(self.endpoints)
    }
}

/// True if packets of a flow must have arrived; false if the application never asked for any data.
fn must_deliver(flow: &Flow, offer: Option<&OfferedLoad>) -> bool {
    // The traffic of programs is judged separately.
    let program = matches!(flow.scheme, SchemeRef::Program(_));
    let datagrams = flow.traffic.kind.class == Class::Datagrams;
    !program
        && !flow.is_paused()
        && offer.is_none_or(|offer| {
            if datagrams {
                offer.datagrams > 0
            } else {
                offer.unlimited || offer.bytes > 0
            }
        })
}

/// True if a host's settings are meant to limit the windows of a flow.
fn is_capped(cell: &Cell, flow: &Flow) -> bool {
    let hosts = [flow.from, flow.to].map(|host| &cell.hosts[usize::from(host)]);
    hosts.into_iter().any(|host| {
        let buffers = host.sysctls();
        let sized = |path: &str| path.ends_with("tcp_rmem") || path.ends_with("tcp_wmem");
        host.window().is_some() || buffers.iter().any(|(path, _)| sized(path))
    })
}

/// Describes the load that the application of a flow offered, if it chooses that itself, and the numbers that it
/// publishes.
fn describe_offer(summary: &mut FlowSummary, cell: &Cell, flow: &Flow, offer: &OfferedLoad) {
    let seconds = flow.stop.min(cell.duration).since(flow.start).secs();
    if !offer.unlimited && seconds > 0.0 {
        summary.offered = Some(Offered {
            bytes: offer.bytes,
            mean_bps: offer.bytes as f64 * 8.0 / seconds,
        });
    }
    if !offer.facts.is_empty() {
        let facts = offer.facts.iter();
        let facts: Map<String, Value> = facts
            .map(|(name, value)| (name.clone(), Value::from(*value)))
            .collect();
        summary.other.insert("traffic".to_owned(), facts.into());
    }
}
