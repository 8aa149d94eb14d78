//! The record of a session, in the format of all records: a run whose flows are the connections
//! that the program has made.

use super::hooks::ShellResult;
use super::plan::ShellPlan;
use super::report::ShellSummary;
use narrows_cell::RunError;
use narrows_cell::{RecordFolder, versions};
use narrows_netns::host_info;
use narrows_record::{Cpu, FlowSummary, Process, Ring, RunDocument};
use serde_json::{Value, json};
use std::ffi::OsString;
use std::fs;

/// The table of connections.
const CONNECTIONS_FILE: &str = "connections.json";

/// Writes all files except the packets and renames the folder.
pub(super) fn complete(
    folder: RecordFolder,
    plan: &ShellPlan,
    command: &[OsString],
    finished: &mut ShellResult,
    summary: &ShellSummary,
    exit_code: i32,
) -> Result<(), RunError> {
    let words: Vec<_> = command.iter().map(|word| word.to_string_lossy()).collect();
    let duration = finished.length.ns().max(1);
    let mut flows = Vec::new();
    let mut summaries = Vec::new();
    for (flow, connection) in finished.connections.iter() {
        let scheme = connection.label();
        flows.push(json!({
            "flow": flow, "scheme": scheme, "params": {},
            "start_ns": connection.first.ns(), "stop_ns": duration,
            "direction": connection.data_direction(), "extra_rtt_ns": 0,
        }));
        let mut summary = FlowSummary {
            flow,
            scheme,
            ..FlowSummary::default()
        };
        "program".clone_into(&mut summary.fingerprint.kind);
        summary.fingerprint.name = words.first().map_or_else(String::new, ToString::to_string);
        summaries.push(summary);
    }
    let cell = cell(plan, &words.join(" "), duration, &flows);
    let mut run = RunDocument::new(cell, "emulate", versions());
    run.host = Some(host_info::host());
    run.started_at = Some(host_info::wall_clock(finished.start_real_ns));
    run.ended_at = Some(host_info::wall_clock(finished.start_real_ns + duration));
    run.flows = summaries;
    run.elements = std::mem::take(&mut finished.elements);
    let signal = (exit_code > 128).then_some(exit_code - 128);
    run.processes = vec![Process {
        name: words.join(" "),
        exit: signal.is_none().then_some(exit_code),
        signal,
        expected: true,
        run_ns: None,
    }];
    run.lateness = Some(summary.lateness.clone());
    for (port, (received, dropped)) in ["inside", "outside"].into_iter().zip(finished.rings) {
        run.rings.push(Ring {
            port: port.to_owned(),
            received: u64::from(received),
            dropped: u64::from(dropped),
        });
    }
    run.cpu = Some(Cpu {
        emulator_ratio: summary.emulator_ratio,
        emulator_threads: Some(1),
        busy_ratio: summary.busy.busy_ratio(),
        stolen_ratio: summary.busy.stolen_ratio(),
    });
    for (severity, code, text) in &summary.reasons {
        run.judge(*severity, code, text.clone());
    }
    run.other
        .insert("shell".to_owned(), summary.json(exit_code));
    let table = folder.path().join(CONNECTIONS_FILE);
    fs::write(&table, format!("{:#}\n", finished.connections.table()))
        .map_err(|error| RunError::Io(format!("{} cannot be written: {error}", table.display())))?;
    folder.states(Vec::new(), Vec::new())?;
    folder.queues(std::mem::take(&mut finished.queues))?;
    folder.complete(&mut run)?;
    Ok(())
}

/// The session as a cell, so that all readers of cells support it.
fn cell(plan: &ShellPlan, command: &str, duration_ns: u64, flows: &[Value]) -> Value {
    let mut cell = json!({
        "format": "narrows/cell/1", "id": "shell", "scheme": command, "run": 1,
        "where": "emulate", "seed": plan.options.seed, "duration_ns": duration_ns,
        "record": "packets", "bin_ns": 100_000_000, "sample_ns": plan.sample().ns(),
        "network": plan.json["network"], "flows": flows, "transport": {},
    });
    if !plan.json["timeline"].is_null() {
        cell["timeline"] = plan.json["timeline"].clone();
    }
    cell
}
