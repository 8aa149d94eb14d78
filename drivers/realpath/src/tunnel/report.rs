//! What one end says about itself: events while it runs, and `tunnel.json` at the end.

use super::engine::{EndpointOutcome, Engine};
use super::plan::Plan;
use narrows_cell::RunError;
use narrows_netns::WireCounters;
use narrows_netns::facts;
use narrows_record::Lateness;
use narrows_sys::clock as machine;
use narrows_tunnel::clock::Fit;
use narrows_tunnel::mtu::Search;
use narrows_tunnel::{Counts, Refusal};
use narrows_units::Time;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// Format of `tunnel.json`.
pub(super) const FORMAT: &str = "narrows/tunnel-end/1";
/// Its name.
pub(super) const FILE: &str = "tunnel.json";

/// What is known of an end when it starts, besides its plan.
pub(super) struct Start {
    pub(super) local: SocketAddr,
    pub(super) privilege: &'static str,
    pub(super) real_ns: u64,
    /// Of the machine's own clock.
    pub(super) raw_ns: u64,
}

/// What the engine does not know.
pub(super) struct Facts {
    pub(super) start: Start,
    pub(super) ended_real_ns: u64,
    pub(super) sysctls: BTreeMap<String, String>,
    pub(super) wire: Option<WireCounters>,
}

/// The relation of the clocks as JSON, at a local time.
pub(super) fn clock_json(fit: &Fit, at: Time) -> Value {
    json!({
        "at_ns": at.ns(),
        "offset_ns": fit.offset_ns(at),
        "error_ns": fit.error(at).ns(),
        "drift_ppb": fit.drift_ppb(at),
        "lines": fit.lines(),
        "jumps": fit.jumps(),
    })
}

/// How the clocks relate now, from what the clock messages said so far.
pub(super) fn clock_event(engine: &Engine, now: Time) -> Value {
    let fit = engine.clocks.fit();
    json!({
        "event": "clock",
        "clock": fit.map(|fit| clock_json(&fit, now)),
        "path_bytes": engine.peer.search().and_then(Search::found),
        "packets_sent": engine.outcome.packets,
        "packets_arrived": engine.peer.counts().packets,
    })
}

fn refused(counts: &Counts) -> Map<String, Value> {
    let one = |&refusal: &Refusal| (refusal.word().to_owned(), counts.refused(refusal).into());
    Refusal::ALL.iter().map(one).collect()
}

/// Files are called so while they are written.
pub(super) fn unfinished(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}.part"))
}

/// Writes what is known of an end from the start, by which the logs of a killed agent can be told from others. The file
/// has the name that the whole document has while it is written.
pub(super) fn begin(plan: &Plan, start: &Start) -> Result<(), RunError> {
    let path = unfinished(&plan.folder, FILE);
    let document = Value::Object(known(plan, start));
    fs::write(&path, format!("{document:#}\n"))
        .map_err(|error| RunError::Io(format!("{}: {error}", path.display())))
}

fn known(plan: &Plan, start: &Start) -> Map<String, Value> {
    let members = [
        ("format", json!(FORMAT)),
        ("narrows", json!(narrows_cell::VERSION)),
        ("git", json!(narrows_cell::GIT)),
        (
            "role",
            json!(if plan.dial.is_some() {
                "dialer"
            } else {
                "listener"
            }),
        ),
        ("host", json!(plan.host())),
        ("local", json!(start.local.to_string())),
        ("interface", json!(plan.interface)),
        ("privilege", json!(start.privilege)),
        ("started_real_ns", json!(start.real_ns)),
        ("outer_mtu", json!(plan.outer_mtu)),
        ("inner_mtu", json!(plan.inner_mtu)),
        (
            "clock_shift",
            json!({
                "offset_ns": plan.clock.offset_ns, "drift_ppb": plan.clock.drift_ppb,
                "start_raw_ns": start.raw_ns,
            }),
        ),
    ];
    let members = members.into_iter();
    members
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}

/// Closes the logs and writes `tunnel.json`; returns its content. `program` is how the program has
/// ended: its exit code or the signal, or neither if nobody knows.
pub(super) fn write(
    plan: &Plan,
    engine: Engine,
    facts: &Facts,
    reason: &str,
    opened: Option<Time>,
    program: Option<(Option<i32>, Option<i32>)>,
) -> Result<Value, RunError> {
    let ring_dropped = engine.ring.statistics().ok().map(|(_, dropped)| dropped);
    let now = engine.clock.now();
    let counts = engine.peer.counts();
    let EndpointOutcome {
        packets,
        bytes,
        early,
        foreign,
        unsent,
        undelivered,
        marked,
        refusal,
    } = engine.outcome;
    let refusal = refusal.map(|code| std::io::Error::from_raw_os_error(code).to_string());
    let wire = facts.wire.map(|wire| {
        json!({
            "host_sent": wire.inner.tx_packets, "host_dropped": wire.inner.tx_dropped,
            "host_received": wire.inner.rx_packets, "host_refused": wire.inner.rx_dropped,
        })
    });
    let program = program.map(
        |(code, signal)| json!({"command": plan.command, "exit_code": code, "signal": signal}),
    );
    let mut document = known(plan, &facts.start);
    let rest = json!({
        "peer": engine.peer_address().map(|address| address.to_string()),
        "ended_real_ns": facts.ended_real_ns,
        "opened_ns": opened.map(Time::ns),
        "ended_ns": now.ns(),
        "reason": reason,
        // Of the thread that moves packets, which is the one that writes this.
        "cpu_ns": machine::thread_cpu_ns(),
        "path_bytes": engine.peer.search().and_then(Search::found),
        "clock": engine.clocks.fit().map(|fit| clock_json(&fit, now)),
        "clock_implausible": engine.clocks.implausible(),
        "sent": {
            "packets": packets, "bytes": bytes, "unsent": unsent, "refusal": refusal,
            "before_session": early, "foreign": foreign,
        },
        "arrived": {
            "packets": counts.packets, "bytes": counts.bytes, "messages": counts.messages,
            "sessions": counts.sessions, "moves": counts.moves, "moves_refused": counts.moves_refused, "refused": refused(counts),
            "undelivered": undelivered, "marked_dropped": marked,
        },
        // Between a packet's leaving the host and its stamp, which is what no log shows.
        "waited": Lateness::of(&engine.waited),
        "lost_here": {"ring": ring_dropped, "socket": engine.socket_dropped()},
        "wire": wire,
        "program": program,
        "sysctls": facts.sysctls,
        "machine": facts::host(),
    });
    let (sent, arrived) = engine.logs.finish()?;
    if let Value::Object(rest) = rest {
        document.extend(rest);
    }
    let rows = json!({"sent": sent, "arrived": arrived});
    document.insert("log_rows".to_owned(), rows);
    let document = Value::Object(document);
    save(&plan.folder, FILE, &format!("{document:#}\n"))?;
    Ok(document)
}

/// Writes a file under a temporary name and renames it.
pub(crate) fn save(folder: &Path, name: &str, text: &str) -> Result<(), RunError> {
    let path = folder.join(name);
    let unfinished = unfinished(folder, name);
    fs::write(&unfinished, text)
        .and_then(|()| fs::rename(&unfinished, &path))
        .map_err(|error| RunError::Io(format!("{}: {error}", path.display())))
}
