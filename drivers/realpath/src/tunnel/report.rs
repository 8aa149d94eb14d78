//! Reports of one end: events while it runs, and `tunnel.json` at the end.

use super::engine::{Engine, EngineCounters};
use super::plan::TunnelPlan;
use super::unfinished_files::{save, unfinished};
use narrows_cell::{Context, RunError};
use narrows_netns::WireCounters;
use narrows_netns::host_info;
use narrows_record::Lateness;
use narrows_sys::clock as machine;
use narrows_tunnel::clock::Fit;
use narrows_tunnel::mtu::MtuSearch;
use narrows_tunnel::{DatagramRefusal, PeerCounts};
use narrows_units::Time;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::net::SocketAddr;

/// Format of `tunnel.json`.
pub(super) const FORMAT: &str = "narrows/tunnel-end/1";
/// Its name.
pub(super) const FILE: &str = "tunnel.json";

/// Facts about an end at its start, in addition to its plan.
pub(super) struct EndStart {
    pub(super) local: SocketAddr,
    pub(super) privilege: &'static str,
    pub(super) real_ns: u64,
    /// Reading of the machine's clock.
    pub(super) raw_ns: u64,
}

/// Facts about an end that its engine does not have.
pub(super) struct EndSummary {
    pub(super) start: EndStart,
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

/// The current relation of the clocks, from the clock messages so far.
pub(super) fn clock_event(engine: &mut Engine) -> Value {
    let (fit, now) = (engine.clocks.fit(), engine.clock.now());
    if let (Some(meter), Some(fit)) = (&mut engine.meter, &fit) {
        meter.correct(fit, now);
    }
    json!({
        "event": "clock",
        "clock": fit.map(|fit| clock_json(&fit, now)),
        "path_bytes": engine.peer.search().and_then(MtuSearch::found),
        "packets_sent": engine.counters.packets,
        "packets_arrived": engine.peer.counts().packets,
    })
}

fn refusal_counts(counts: &PeerCounts) -> Map<String, Value> {
    let one =
        |&refusal: &DatagramRefusal| (refusal.word().to_owned(), counts.refused(refusal).into());
    DatagramRefusal::ALL.iter().map(one).collect()
}

/// Writes the initially known facts about an end, which identify the logs of a killed agent. The file has the temporary
/// name of the complete document.
pub(super) fn begin(plan: &TunnelPlan, start: &EndStart) -> Result<(), RunError> {
    let path = unfinished(&plan.folder, FILE);
    fs::write(&path, format!("{:#}\n", known(plan, start))).at(&path)
}

fn known(plan: &TunnelPlan, start: &EndStart) -> Value {
    json!({
        "format": FORMAT,
        "narrows": narrows_cell::VERSION,
        "git": narrows_cell::GIT,
        "role": if plan.dial.is_some() { "dialer" } else { "listener" },
        "host": plan.host(),
        "local": start.local.to_string(),
        "interface": plan.interface,
        "privilege": start.privilege,
        "started_real_ns": start.real_ns,
        "outer_mtu": plan.outer_mtu,
        "inner_mtu": plan.inner_mtu(),
        "clock_shift": {
            "offset_ns": plan.clock.offset_ns, "drift_ppb": plan.clock.drift_ppb,
            "start_raw_ns": start.raw_ns,
        },
    })
}

/// Closes the logs and writes `tunnel.json`; returns its content. `program` is how the program has ended: its exit code
/// or the signal, or neither if unknown.
pub(super) fn write(
    plan: &TunnelPlan,
    engine: Engine,
    summary: &EndSummary,
    reason: &str,
    opened: Option<Time>,
    program: Option<(Option<i32>, Option<i32>)>,
) -> Result<Value, RunError> {
    let ring_dropped = engine.ring.statistics().ok().map(|(_, dropped)| dropped);
    let now = engine.clock.now();
    let counts = engine.peer.counts();
    let EngineCounters {
        packets,
        bytes,
        early,
        foreign,
        unsent,
        undelivered,
        marked,
        refusal,
    } = engine.counters;
    let refusal = refusal.map(|code| std::io::Error::from_raw_os_error(code).to_string());
    let wire = summary.wire.map(|wire| {
        json!({
            "host_sent": wire.inner.tx_packets, "host_dropped": wire.inner.tx_dropped,
            "host_received": wire.inner.rx_packets, "host_refused": wire.inner.rx_dropped,
        })
    });
    let program = program.map(
        |(code, signal)| json!({"command": plan.command, "exit_code": code, "signal": signal}),
    );
    let mut document = known(plan, &summary.start);
    let mut rest = json!({
        "peer": engine.peer_address().map(|address| address.to_string()),
        "ended_real_ns": summary.ended_real_ns,
        "opened_ns": opened.map(Time::ns),
        "ended_ns": now.ns(),
        "reason": reason,
        // Processor time of the thread that moves packets, which is the current one.
        "cpu_ns": machine::thread_cpu_ns(),
        "path_bytes": engine.peer.search().and_then(MtuSearch::found),
        "clock": engine.clocks.fit().map(|fit| clock_json(&fit, now)),
        "clock_implausible": engine.clocks.implausible(),
        "sent": {
            "packets": packets, "bytes": bytes, "unsent": unsent, "refusal": refusal,
            "before_session": early, "foreign": foreign,
        },
        "arrived": {
            "packets": counts.packets, "bytes": counts.bytes, "messages": counts.messages,
            "sessions": counts.sessions, "moves": counts.moves, "moves_refused": counts.moves_refused, "refused": refusal_counts(counts),
            "undelivered": undelivered, "marked_dropped": marked,
        },
        // From a packet's departure from the host to its stamp, which no log contains.
        "waited": Lateness::from_histogram(&engine.waited),
        "lost_here": {"ring": ring_dropped, "socket": engine.socket_dropped()},
        "wire": wire,
        "program": program,
        // Packets that this end has sent for flows of programs.
        "programs": engine.programs.traffic,
        "sysctls": summary.sysctls,
        "machine": host_info::host(),
    });
    let (sent, arrived) = engine.logs.finish()?;
    rest["log_rows"] = json!({"sent": sent, "arrived": arrived});
    if let (Some(document), Value::Object(rest)) = (document.as_object_mut(), rest) {
        document.extend(rest);
    }
    save(&plan.folder, FILE, &format!("{document:#}\n"))?;
    Ok(document)
}
