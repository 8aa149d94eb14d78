//! From what was measured to the document and the smaller files of the record.

use super::Watched;
use super::sizing::Sizing;
use crate::bpf::Programs;
use crate::emulator::Report;
use crate::endpoints::{Offer, Role};
use crate::error::{Context, LiveError};
use crate::facts;
use crate::hosts::{Host, Hosts, WireCounters};
use crate::judge::{EndpointFacts, Facts, judge};
use crate::sys::cpu::CpuTicks;
use narrows_cell::{Cell, Flow, RecordFolder, SchemeRef, judge_frames, merge_frames};
use narrows_media::{FrameArrived, FrameSent};
use narrows_record::{
    Cpu, FlowSummary, FrameRow, HostSettings, Lateness, Log, Offered, Process, Ring, RunDocument,
    StateRow, TraceRow, TransferRow,
};
use narrows_traffic::Class;
use narrows_units::Time;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// The wires and what they counted around the run.
pub(super) struct Wires<'a> {
    pub(super) hosts: &'a Hosts,
    pub(super) before: Vec<WireCounters>,
    pub(super) after: Vec<WireCounters>,
}

/// The kernel's settings: those that all hosts share with the machine's facts, and all of each host
/// under its name.
pub(super) fn describe_hosts(run: &mut RunDocument, hosts: &Hosts) {
    let words = |map: &BTreeMap<String, String>| -> Map<String, Value> {
        let words = map.iter();
        words
            .map(|(name, value)| (name.clone(), Value::from(value.clone())))
            .collect()
    };
    let described = hosts.hosts.iter().map(|host| HostSettings {
        name: host.name.clone(),
        sysctls: words(&host.sysctls),
        other: std::iter::once(("mtu".to_owned(), host.mtu.into())).collect(),
    });
    run.hosts = described.collect();
    let mut machine = facts::host();
    if let Some(first) = hosts.hosts.first() {
        let mut shared = first.sysctls.clone();
        shared.retain(|name, value| {
            let same = |other: &Host| other.sysctls.get(name) == Some(value);
            hosts.hosts.iter().all(same)
        });
        machine.sysctls = words(&shared);
    }
    run.host = Some(machine);
}

/// Notes what the rings counted; returns the frames that the rings dropped and those that were lost
/// between hosts and emulator.
fn describe_wires(
    run: &mut RunDocument,
    report: &Report,
    wires: &Wires,
) -> Result<(u64, u64), LiveError> {
    let (mut ring_drops, mut wire_losses) = (0, 0);
    let counters = wires.before.iter().zip(&wires.after);
    let ports = wires
        .hosts
        .hosts
        .iter()
        .zip(&report.wires)
        .zip(&report.sent);
    for (((host, wire), &sent), (was, is)) in ports.zip(counters) {
        let statistics = wire.ring.statistics();
        let (received, dropped) = statistics.could_not("read the counters of a ring")?;
        let (received, dropped) = (u64::from(received), u64::from(dropped));
        run.rings.push(Ring {
            port: host.name.clone(),
            received,
            dropped,
        });
        ring_drops += dropped;
        let left = is.inner.tx_packets - was.inner.tx_packets;
        let reached = is.inner.rx_packets - was.inner.rx_packets;
        wire_losses += left.saturating_sub(received + dropped)
            + sent.saturating_sub(reached)
            + (is.inner.tx_dropped - was.inner.tx_dropped);
    }
    Ok((ring_drops, wire_losses))
}

/// Whether packets of a flow must have arrived: not where the application never asked for anything.
fn wanted(flow: &Flow, offer: Option<&Offer>) -> bool {
    let datagrams = flow.traffic.kind.class == Class::Datagrams;
    offer.is_none_or(|offer| {
        if datagrams {
            offer.datagrams > 0
        } else {
            offer.unlimited || offer.bytes > 0
        }
    })
}

/// Whether a host's settings are meant to limit the windows of a flow.
fn capped(cell: &Cell, flow: &Flow) -> bool {
    let hosts = [flow.from, flow.to].map(|host| &cell.hosts[usize::from(host)]);
    hosts.into_iter().any(|host| {
        let buffers = host.sysctls();
        let sized = |path: &str| path.ends_with("tcp_rmem") || path.ends_with("tcp_wmem");
        host.window().is_some() || buffers.iter().any(|(path, _)| sized(path))
    })
}

/// What the application of a flow offered, where it chooses its load itself, and what it tells.
fn describe_offer(summary: &mut FlowSummary, cell: &Cell, flow: &Flow, offer: &Offer) {
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

/// Fills in the document and writes the files that are left.
#[allow(clippy::too_many_arguments)] // the one place where everything comes together
pub(super) fn describe(
    run: &mut RunDocument,
    cell: &Cell,
    programs: Option<&Programs>,
    sizing: &Sizing,
    report: Report,
    mut watched: Watched,
    processes: Vec<(Process, Option<String>)>,
    wires: &Wires,
    folder: &RecordFolder,
) -> Result<(), LiveError> {
    let (ring_drops, wire_losses) = describe_wires(run, &report, wires)?;
    let duration = cell.duration.ns().max(1) as f64;
    let work = report.effort.cpu_ns.saturating_sub(report.effort.spin_ns) as f64 / duration;
    let all = watched
        .ticks
        .iter()
        .fold(CpuTicks::default(), |sum, cpu| CpuTicks {
            total: sum.total + cpu.total,
            idle: sum.idle + cpu.idle,
            stolen: sum.stolen + cpu.stolen,
        });
    run.cpu = Some(Cpu {
        emulator_ratio: work,
        busy_ratio: all.busy_ratio(),
        stolen_ratio: all.stolen_ratio(),
    });
    let late = Lateness::of(&report.lateness);
    run.lateness = Some(late.clone());
    run.elements.clone_from(&report.elements);

    let mut facts = Facts {
        duration_ns: cell.duration.ns(),
        base_rtt_ns: sizing.base_rtt.ns(),
        lateness: late,
        late_by_tenth_ns: report
            .late_by_tenth
            .each_ref()
            .map(|tenth| tenth.quantile(0.5).unwrap_or(0)),
        effort: report.effort,
        ring_drops,
        wire_losses,
        refused: report.refused,
        clock_step_ns: watched.clock_step_ns,
        stolen_ratio: all.stolen_ratio(),
        missed_calls: programs.map_or_else(BTreeMap::new, |programs| programs.missed().clone()),
        endpoints: Vec::new(),
    };
    let mut states: Vec<StateRow> = Vec::new();
    let mut traces: Vec<TraceRow> = Vec::new();
    let mut transfers: Vec<TransferRow> = Vec::new();
    let mut frames: Vec<FrameRow> = Vec::new();
    let kernel = facts::kernel();
    for flow in &cell.flows {
        let mut summary: FlowSummary = narrows_cell::native_flow(flow, None, None);
        if let SchemeRef::Kernel(_) | SchemeRef::Bpf(_) = flow.scheme {
            summary.fingerprint.kernel = Some(kernel.clone());
        }
        let loaded = programs.and_then(|programs| programs.describe(flow.flow));
        if let Some((identity, params)) = loaded {
            summary.fingerprint.bpf = Some(identity);
            summary.fingerprint.params = params;
        }
        summary.fingerprint.read_back = None;
        let mut offer: Option<Offer> = None;
        let mut ended: BTreeMap<u32, u64> = BTreeMap::new();
        let (mut made, mut whole) = (Vec::new(), Vec::new());
        for (member, (_, failure)) in watched.crew.members.iter_mut().zip(&processes) {
            if member.flow != flow.flow {
                continue;
            }
            let mut outcome = member.outcome.take();
            if let Some(outcome) = &mut outcome {
                states.extend(
                    std::mem::take(&mut outcome.states)
                        .into_iter()
                        .map(|state| state.into_row(flow.flow)),
                );
                traces.extend(outcome.trace_rows(flow.flow));
                outcome.traces.clear();
                // The kernel counts datagrams with a wrong checksum as dropped by the socket.
                let damaged = report.damaged[usize::from(flow.flow)];
                outcome.socket_drops = outcome.socket_drops.saturating_sub(damaged);
                ended.extend(std::mem::take(&mut outcome.ended));
                let told = std::mem::take(&mut outcome.frames).into_iter();
                made.extend(told.map(FrameSent::from));
                let told = std::mem::take(&mut outcome.whole).into_iter();
                whole.extend(told.map(|(number, at)| FrameArrived {
                    number,
                    at: Time::from_ns(at),
                }));
                offer = offer.or(outcome.offer.take());
                match member.role {
                    Role::Sender => {
                        summary.sender = outcome.sender.clone();
                        summary.fingerprint.read_back.clone_from(&outcome.read_back);
                        summary
                            .other
                            .insert("limits".to_owned(), json!(outcome.limits));
                    }
                    Role::Receiver => summary.receiver = outcome.receiver.clone(),
                }
            }
            facts.endpoints.push(EndpointFacts {
                flow: flow.flow,
                wanted: wanted(flow, offer.as_ref()),
                capped: capped(cell, flow),
                role: member.role,
                active_ns: member.active_ns,
                delivered: report.delivered[usize::from(flow.flow)],
                outcome,
                failure: failure.clone(),
            });
        }
        if let Some(offer) = &offer {
            describe_offer(&mut summary, cell, flow, offer);
        }
        let noted = offer.iter().flat_map(|offer| &offer.noted);
        transfers.extend(noted.map(|noted| {
            // The last byte arrives at the server or at the client, never at both.
            let there = ended.get(&noted.transfer).copied();
            TransferRow {
                flow: flow.flow,
                connection: noted.connection,
                transfer: noted.transfer,
                bytes: noted.bytes,
                started_ns: noted.started_ns,
                // The two processes read the same clock, a moment apart.
                ended_ns: noted.ended_ns.or(there).map(|at| at.max(noted.started_ns)),
            }
        }));
        let (rows, strangers) = merge_frames(flow.flow, &made, &whole);
        frames.extend(rows);
        judge_frames(run, flow, strangers);
        run.flows.push(summary);
    }
    run.processes = processes.into_iter().map(|(process, _)| process).collect();
    states.sort_by_key(|row| (row.time_ns, row.flow));
    traces.sort_by_key(|row| (row.time_ns, row.flow));
    folder.states(states, traces)?;
    folder.queues(report.queues)?;
    folder.transfers(transfers)?;
    folder.frames(&frames)?;
    folder.capacity(report.capacity)?;
    if let Log::Bins(log) = &report.log {
        folder.bins(log)?;
    }
    judge(run, &facts);
    Ok(())
}
