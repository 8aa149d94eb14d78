//! `side.json`: this peer's report of the run, written at its end.

use super::watch::PeerRunResult;
use crate::tunnel::save;
use narrows_cell::Cell;
use narrows_cell::Role;
use narrows_cell::RunError;
use narrows_endpoints::bpf::Programs;
use narrows_netns::host_info;
use narrows_sys::clock as machine;
use serde_json::{Value, json};
use std::path::Path;

/// Format of `side.json`.
const FORMAT: &str = "narrows/side-end/1";
/// Its name.
const FILE: &str = "side.json";

/// Facts from before the run.
pub(super) struct PeerSetup {
    pub(super) host: u16,
    pub(super) privilege: &'static str,
    /// True if there was a tunnel.
    pub(super) tunnel: bool,
    /// Settings inside, as read back.
    pub(super) settings: Value,
    /// Synchronisation of the machine's clock.
    pub(super) timekeeping: Value,
    /// Assignment of processors.
    pub(super) cpus: Value,
    /// Programs that were loaded into the kernel.
    pub(super) programs: Option<Programs>,
}

/// Ends the endpoints and writes the file.
pub(super) fn write(
    setup: &mut PeerSetup,
    result: PeerRunResult,
    cell: &Cell,
    folder: &Path,
) -> Result<(), RunError> {
    let PeerRunResult {
        mut supervisor,
        start,
        start_error_ns,
        end,
        clock_step_ns,
        ticks,
    } = result;
    let ended = supervisor.stop();
    if setup.programs.as_mut().is_some_and(|it| !it.finish()) {
        return Err(RunError::Internal(
            "the program that holds the BPF congestion controls ended during the run".to_owned(),
        ));
    }
    let programs = setup.programs.as_ref();
    let mut ends = Vec::new();
    for (member, (_, failure)) in supervisor.endpoints.iter_mut().zip(&ended) {
        let mut document = json!({
            "flow": member.flow, "role": member.role, "active_ns": member.active_ns,
            "outcome": member.outcome.take(), "failure": failure,
        });
        let loaded = programs.filter(|_| member.role == Role::Sender);
        if let Some((identity, params)) = loaded.and_then(|it| it.describe(member.flow)) {
            document["loaded"] = json!({"identity": identity, "params": params});
        }
        ends.push(document);
    }
    let processes: Vec<_> = ended.into_iter().map(|(process, _)| process).collect();
    let ticks: Vec<Value> = ticks
        .into_iter()
        .map(|it| json!({"total": it.total, "idle": it.idle, "stolen": it.stolen}))
        .collect();
    let document = json!({
        "format": FORMAT,
        "versions": narrows_cell::versions(),
        "cell": cell.id,
        "host": setup.host,
        "tunnel": setup.tunnel,
        "start_ns": start.tunnel_ns,
        "start_real_ns": start.real_ns,
        "start_error_ns": start_error_ns,
        "ended_real_ns": machine::real_ns(),
        "clocks": {"start": start, "end": end},
        "clock_step_ns": clock_step_ns,
        "timekeeping": setup.timekeeping,
        "name": host_info::host_name(),
        "machine": host_info::host(),
        "settings": setup.settings,
        "privilege": setup.privilege,
        "cpu": {"ticks": ticks, "of": setup.cpus},
        "missed_calls": programs.map(Programs::missed),
        "processes": processes,
        "ends": ends,
    });
    // On one line: samples of states are long lists.
    save(folder, FILE, &format!("{document}\n"))
}
