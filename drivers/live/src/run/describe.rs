//! From what was measured to the document and the smaller files of the record.

use super::Watched;
use super::sizing::Sizing;
use crate::emulator::Report;
use crate::endpoints::Role;
use crate::error::{Context, LiveError};
use crate::facts;
use crate::hosts::{Side, WireCounters};
use crate::judge::{EndpointFacts, Facts, judge};
use crate::sys::cpu::CpuTicks;
use narrows_cell::{Cell, RecordFolder, SchemeRef};
use narrows_record::{
    Cpu, FlowSummary, Histogram, Lateness, Log, Process, Ring, RunDocument, StateRow, TraceRow,
};
use serde_json::json;

fn lateness(histogram: &Histogram) -> Lateness {
    let at = |p| histogram.quantile(p).unwrap_or(0);
    Lateness {
        packets: histogram.total(),
        p50_ns: at(0.5),
        p90_ns: at(0.9),
        p99_ns: at(0.99),
        p999_ns: at(0.999),
        max_ns: histogram.max().unwrap_or(0),
    }
}

/// Fills in the document and writes the files that are left.
#[allow(clippy::too_many_arguments)] // the one place where everything comes together
pub(super) fn describe(
    run: &mut RunDocument,
    cell: &Cell,
    sizing: &Sizing,
    report: Report,
    mut watched: Watched,
    processes: Vec<(Process, Option<String>)>,
    [before, after]: [[WireCounters; 2]; 2],
    folder: &RecordFolder,
) -> Result<(), LiveError> {
    let mut ring_drops = 0;
    let mut wire_losses = 0;
    for side in Side::BOTH {
        let index = side as usize;
        let (received, dropped) = report.wires[index]
            .ring
            .statistics()
            .could_not("read the counters of a ring")?;
        let (received, dropped) = (u64::from(received), u64::from(dropped));
        run.rings.push(Ring {
            port: side.name().to_owned(),
            received,
            dropped,
        });
        ring_drops += dropped;
        let (was, is) = (before[index], after[index]);
        let left = is.inner.tx_packets - was.inner.tx_packets;
        let reached = is.inner.rx_packets - was.inner.rx_packets;
        wire_losses += left.saturating_sub(received + dropped)
            + report.sent[index].saturating_sub(reached)
            + (is.inner.tx_dropped - was.inner.tx_dropped);
    }
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
    let late = lateness(&report.lateness);
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
        endpoints: Vec::new(),
    };
    let mut states: Vec<StateRow> = Vec::new();
    let mut traces: Vec<TraceRow> = Vec::new();
    let kernel = facts::kernel();
    for flow in &cell.flows {
        let mut summary: FlowSummary = narrows_cell::native_flow(flow, None, None);
        if let SchemeRef::Kernel(_) = flow.scheme {
            summary.fingerprint.kernel = Some(kernel.clone());
        }
        summary.fingerprint.read_back = None;
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
                role: member.role,
                active_ns: member.active_ns,
                delivered: report.delivered[usize::from(flow.flow)],
                outcome,
                failure: failure.clone(),
            });
        }
        run.flows.push(summary);
    }
    run.processes = processes.into_iter().map(|(process, _)| process).collect();
    states.sort_by_key(|row| (row.time_ns, row.flow));
    traces.sort_by_key(|row| (row.time_ns, row.flow));
    folder.states(states, traces)?;
    folder.queues(report.queues)?;
    if let Log::Bins(log) = &report.log {
        folder.bins(log)?;
    }
    judge(run, &facts);
    Ok(())
}
