//! `side.json`: what this peer knows of the run when it is over.

use super::watch::Watched;
use crate::tunnel::save;
use narrows_cell::Role;
use narrows_cell::RunError;
use narrows_cell::{Cell, GIT, VERSION};
use narrows_endpoints::bpf::Programs;
use narrows_netns::facts;
use narrows_sys::clock as machine;
use serde_json::{Value, json};
use std::path::Path;

/// Format of `side.json`.
const FORMAT: &str = "narrows/side-end/1";
/// Its name.
const FILE: &str = "side.json";

/// What was known before the run.
pub(super) struct Facts {
    pub(super) host: u16,
    pub(super) privilege: &'static str,
    /// Whether there was a tunnel.
    pub(super) tunnel: bool,
    /// Settings inside, as read back.
    pub(super) settings: Value,
    /// Who keeps the machine's clock.
    pub(super) timekeeping: Value,
    /// Who worked on which processors.
    pub(super) cpus: Value,
    /// What was loaded into the kernel.
    pub(super) programs: Option<Programs>,
}

/// Ends the endpoints and writes the file.
pub(super) fn write(
    facts: &mut Facts,
    watched: Watched,
    cell: &Cell,
    folder: &Path,
) -> Result<(), RunError> {
    let Watched {
        mut supervisor,
        start,
        start_error_ns,
        end,
        clock_step_ns,
        ticks,
    } = watched;
    let ended = supervisor.stop();
    if facts.programs.as_mut().is_some_and(|it| !it.finish()) {
        return Err(RunError::Internal(
            "the program that holds the BPF congestion controls ended during the run".to_owned(),
        ));
    }
    let programs = facts.programs.as_ref();
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
        "versions": {"narrows": VERSION, "git": GIT},
        "cell": cell.id,
        "host": facts.host,
        "tunnel": facts.tunnel,
        "start_ns": start.tunnel,
        "start_real_ns": start.real,
        "start_error_ns": start_error_ns,
        "ended_real_ns": machine::real_ns(),
        "clocks": {"start": start, "end": end},
        "clock_step_ns": clock_step_ns,
        "timekeeping": facts.timekeeping,
        "name": facts::host_name(),
        "machine": facts::host(),
        "settings": facts.settings,
        "privilege": facts.privilege,
        "cpu": {"ticks": ticks, "of": facts.cpus},
        "missed_calls": programs.map(Programs::missed),
        "processes": processes,
        "ends": ends,
    });
    // On one line: samples of states are long lists.
    save(folder, FILE, &format!("{document}\n"))
}
