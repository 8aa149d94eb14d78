//! Turns measurements into the document and the smaller files of the record.

use super::supervision::SupervisedRun;
use super::testbed::Testbed;
use narrows_cell::judgement::{RunMeasurements, judge};
use narrows_cell::{Context, RunError};
use narrows_cell::{EndpointResults, FlowDeliveries, FlowEnd};
use narrows_cell::{Flow, ProgramReports, SchemeRef};
use narrows_emulator::Report;
use narrows_netns::host_info;
use narrows_netns::{Host, Hosts, WireCounters};
use narrows_record::{Cpu, HostSettings, Lateness, Log, Process, Ring, RunDocument};
use narrows_sys::cpu::CpuTicks;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// The kernel's settings: those common to all hosts with the machine's facts, and all settings of
/// each host under its name.
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
    let mut machine = host_info::host();
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

/// Adds the counters of the rings; returns the frames that the rings dropped and those that were
/// lost between hosts and emulator.
fn describe_wires(
    run: &mut RunDocument,
    report: &Report,
    testbed: &Testbed,
    after: &[WireCounters],
) -> Result<(u64, u64), RunError> {
    let (mut ring_drops, mut wire_losses) = (0, 0);
    let hosts = &testbed.hosts;
    let counters = testbed.before.iter().zip(after);
    let ports = hosts.hosts.iter().zip(&report.rings).zip(&report.sent);
    for (((host, (_, ring)), &sent), (was, is)) in ports.zip(counters) {
        let statistics = ring.statistics();
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

/// Fills in the document and writes the remaining files; `after` are the counters of the wires after the run.
pub(super) fn describe(
    run: &mut RunDocument,
    testbed: &Testbed,
    after: &[WireCounters],
    report: Report,
    mut supervised: SupervisedRun,
    processes: Vec<(Process, Option<String>)>,
) -> Result<(), RunError> {
    let (cell, folder, programs) = (&*testbed.cell, &testbed.folder, testbed.programs.as_ref());
    let (ring_drops, wire_losses) = describe_wires(run, &report, testbed, after)?;
    let all = CpuTicks::sum(supervised.ticks.iter().copied());
    run.cpu = Some(Cpu {
        emulator_ratio: report.effort.work_ratio(cell.duration.ns()),
        emulator_threads: Some(testbed.threads as u32),
        busy_ratio: all.busy_ratio(),
        stolen_ratio: all.stolen_ratio(),
    });
    run.lateness = Some(Lateness::from_histogram(&report.lateness));
    run.elements.clone_from(&report.elements);

    let mut measured = RunMeasurements {
        duration_ns: cell.duration.ns(),
        base_rtt_ns: testbed.sizing.base_rtt.ns(),
        lateness: report.latest.clone(),
        late_by_tenth_ns: report.late_by_tenth,
        effort: report.effort,
        ring_drops,
        wire_losses,
        refused: report.refused,
        clock_step_ns: supervised.clock_step_ns,
        stolen_ratio: all.stolen_ratio(),
        missed_calls: programs.map_or_else(BTreeMap::new, |programs| programs.missed().clone()),
        endpoints: Vec::new(),
    };
    let kernel = host_info::kernel();
    let summary = |flow: &Flow| {
        let mut summary = narrows_cell::described(flow);
        if let SchemeRef::Kernel(_) | SchemeRef::Bpf(_) = flow.scheme {
            summary.fingerprint.kernel = Some(kernel.clone());
        }
        let loaded = programs.and_then(|programs| programs.describe(flow.flow));
        if let Some((identity, params)) = loaded {
            summary.fingerprint.bpf = Some(identity);
            summary.fingerprint.params = params;
        }
        summary
    };
    let seen = |flow: u16| FlowDeliveries {
        delivered: report.delivered[usize::from(flow)],
        damaged: report.damaged[usize::from(flow)],
    };
    let reported = supervised.supervisor.endpoints.iter_mut();
    let reports = ProgramReports::new(reported.filter_map(|end| {
        let report = end.outcome.as_mut()?.program.take()?;
        Some((end.flow, end.role, *report))
    }));
    let members = supervised.supervisor.endpoints.iter_mut().zip(&processes);
    let ends = members.map(|(member, (_, failure))| FlowEnd {
        flow: member.flow,
        role: member.role,
        active_ns: member.active_ns,
        outcome: member.outcome.take(),
        failure: failure.clone(),
    });
    let results = EndpointResults::gather(cell, ends.collect(), summary, seen, run);
    run.processes = processes.into_iter().map(|(process, _)| process).collect();
    measured.endpoints = results.write(cell, folder)?;
    folder.queues(report.queues)?;
    folder.capacity(report.capacity)?;
    if let Log::Bins(log) = &report.log {
        folder.bins(log)?;
    }
    judge(run, &measured);
    reports.describe(run, cell, &report.programs);
    Ok(())
}
