//! What is said about a run between two hosts in its document, and what speaks against it.

use super::clocks::{Relation, by_ntp};
use super::packets::{OneWay, Packets, WAYS};
use super::peer::{Loaded, Side};
use narrows_cell::RunError;
use narrows_cell::judgement::{HostFacts, PairFacts, WayFacts};
use narrows_cell::{Cell, Flow, RecordFolder, SchemeRef, described};
use narrows_netns::facts;
use narrows_record::{Clock, FlowSummary, HostSettings, Ring, RunDocument, Versions};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::fs;

/// Member of the record about the tunnel; null if there was none.
const TUNNEL: &str = "tunnel";
/// Names of the hosts, as in every dumbbell.
const HOSTS: [&str; 2] = ["sender", "receiver"];
/// Members of `tunnel.json` that stand elsewhere in the record.
const ELSEWHERE: [&str; 8] = [
    "format",
    "narrows",
    "git",
    "host",
    "privilege",
    "program",
    "sysctls",
    "machine",
];

/// What a host says about the schemes whose data it sends.
pub(super) struct Origin {
    kernel: String,
    versions: Versions,
    loaded: BTreeMap<u16, Loaded>,
}

impl Origin {
    pub(super) fn of(side: &Side) -> Self {
        Origin {
            kernel: side.told.machine.kernel.clone(),
            versions: side.told.versions.clone(),
            loaded: side.told.loaded(),
        }
    }

    /// The summary of a flow before its ends have told anything.
    pub(super) fn summary(&self, flow: &Flow) -> FlowSummary {
        let mut summary = described(flow);
        let print = &mut summary.fingerprint;
        match flow.scheme {
            SchemeRef::Kernel(_) | SchemeRef::Bpf(_) => print.kernel = Some(self.kernel.clone()),
            SchemeRef::Native(..) | SchemeRef::Media(..) | SchemeRef::Datagrams
                if !self.versions.narrows.is_empty() =>
            {
                // Hosts of two kinds run two builds.
                print.version = Some(self.versions.narrows.clone());
                print.git.clone_from(&self.versions.git);
            }
            _ => {}
        }
        if let Some(loaded) = self.loaded.get(&flow.flow) {
            print.bpf = Some(loaded.identity.clone());
            print.params.clone_from(&loaded.params);
        }
        summary
    }
}

/// Fills in what is known of hosts, clocks and tunnel.
pub(super) fn describe(
    run: &mut RunDocument,
    sides: &[Side; 2],
    relation: &Relation,
    packets: &Packets,
) {
    run.started_at = Some(facts::wall_clock(sides[0].told.clocks.start.real));
    run.ended_at = Some(facts::wall_clock(sides[0].told.ended_real_ns));
    run.processes = sides
        .iter()
        .flat_map(|side| side.told.processes.iter().cloned())
        .collect();
    let hosts = HOSTS.into_iter().zip(sides);
    run.hosts = hosts.map(|(name, side)| host(name, side)).collect();
    run.clock = clock(relation, packets);
    let by_ntp = by_ntp([sides[0].told.timekeeping, sides[1].told.timekeeping]);
    run.clock.other.insert("by_ntp".to_owned(), by_ntp.into());
    if !sides[0].told.tunnel {
        run.other.insert(TUNNEL.to_owned(), Value::Null);
        return;
    }
    for (name, side) in HOSTS.into_iter().zip(sides) {
        let count = |pointer: &str| side.end.count(pointer);
        run.rings.push(Ring {
            port: name.to_owned(),
            received: count("/sent/packets")
                + count("/sent/before_session")
                + count("/sent/foreign"),
            dropped: count("/lost_here/ring"),
        });
    }
    let ways = WAYS.iter().zip(&packets.ways);
    let mut tunnel: Map<String, Value> = ways
        .map(|(direction, way)| (direction.word().to_owned(), one_way(way)))
        .collect();
    tunnel.insert("overhead_bytes".to_owned(), packets.overhead.into());
    run.other.insert(TUNNEL.to_owned(), tunnel.into());
}

fn clock(relation: &Relation, packets: &Packets) -> Clock {
    let [from, to] = relation.span();
    let fit = &relation.fit;
    let zeroed: u64 = packets.ways.iter().map(|way| way.zeroed[0]).sum();
    let other = json!({
        "end_offset_ns": fit.offset_ns(to),
        "drift_ppb": fit.drift_ppb(from),
        "lines": fit.lines(),
        "jumps": fit.jumps(),
        "implausible": relation.implausible,
        "starts_apart_ns": relation.starts_apart_ns(),
        "zeroed": zeroed,
        "resolved": {"forward": packets.ways[0].resolved, "backward": packets.ways[1].resolved},
    });
    Clock {
        offset_ns: fit.offset_ns(from),
        error_ns: relation.error.ns(),
        other: members(other),
    }
}

fn members(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(members) => members,
        _ => Map::new(),
    }
}

fn host(name: &str, side: &Side) -> HostSettings {
    let told = &side.told;
    let ticks = told.ticks();
    let mut tunnel = side.end.document.clone();
    if let Some(members) = tunnel.as_object_mut() {
        members.retain(|name, _| !ELSEWHERE.contains(&name.as_str()));
    }
    HostSettings {
        name: name.to_owned(),
        sysctls: told.settings.sysctls.clone(),
        other: members(json!({
            "mtu": told.settings.mtu,
            "host_name": told.name,
            "machine": told.machine,
            "privilege": told.privilege,
            "versions": told.versions,
            "clock_step_ns": told.clock_step_ns,
            "started_at": facts::wall_clock(told.clocks.start.real),
            "cpu": {"busy_ratio": ticks.busy_ratio(), "stolen_ratio": ticks.stolen_ratio()},
            "tunnel": tunnel,
        })),
    }
}

fn one_way(way: &OneWay) -> Value {
    json!({
        "left_out_sent": way.left_out[0], "left_out_arrived": way.left_out[1],
        "unknown": way.unknown, "again": way.again, "contradicting": way.contradicting,
        "marked": way.summary.marked, "dscp_changed": way.summary.dscp_changed,
    })
}

/// What speaks against the run, but for its endpoints.
pub(super) fn facts_of(
    cell: &Cell,
    sides: &[Side; 2],
    relation: &Relation,
    packets: &Packets,
) -> PairFacts {
    let hosts = [0, 1].map(|host| host_facts(HOSTS[host], &sides[host], packets.overhead));
    let ways = [0, 1].map(|host| {
        let way = &packets.ways[host];
        let spread = way.summary.delay_ns.map(|[least, _, p95, ..]| p95 - least);
        WayFacts {
            direction: WAYS[host],
            spread_ns: spread.map(i64::unsigned_abs),
            resolved: way.resolved,
            unknown: way.unknown,
            contradicting: way.contradicting,
            negative: way.zeroed[1],
            dead_ns: way.dead_ns,
        }
    });
    let least = packets.ways.iter().map(|way| way.summary.delay_ns);
    let base_rtt = least.map(|delays| delays.map_or(0, |[least, ..]| least));
    let missed = sides.iter().flat_map(|side| &side.told.missed_calls);
    let missed = missed.flatten().map(|(name, count)| (name.clone(), *count));
    PairFacts {
        duration_ns: cell.duration.ns(),
        tunnel: sides[0].told.tunnel,
        error_ns: relation.error.ns(),
        lines: relation.fit.lines(),
        jumps: relation.fit.jumps(),
        starts_apart_ns: relation.starts_apart_ns(),
        base_rtt_ns: u64::try_from(base_rtt.sum::<i64>()).unwrap_or(0),
        missed_calls: missed.collect(),
        hosts,
        ways,
    }
}

fn host_facts(name: &'static str, side: &Side, overhead: u32) -> HostFacts {
    let end = &side.end;
    let open = end
        .count("/ended_ns")
        .saturating_sub(end.count("/opened_ns"));
    HostFacts {
        name,
        stolen_ratio: side.told.ticks().stolen_ratio(),
        // The endpoints go by another clock.
        clock_step_ns: if side.told.tunnel {
            side.told.clock_step_ns
        } else {
            0
        },
        engine_ratio: end.count("/cpu_ns") as f64 / open.max(1) as f64,
        sent: end.count("/sent/packets"),
        arrived: end.count("/arrived/packets"),
        ring: end.count("/lost_here/ring"),
        unsent: end.count("/sent/unsent"),
        socket: end.count("/lost_here/socket"),
        undelivered: end.count("/arrived/undelivered"),
        repeated: end.count("/refused/replayed"),
        sessions: end.count("/arrived/sessions"),
        reason: end.document["reason"]
            .as_str()
            .unwrap_or_default()
            .to_owned(),
        path_bytes: end.document["path_bytes"].as_u64(),
        waited_ns: end.count("/waited/p99_ns"),
        needed_bytes: end.count("/inner_mtu") + u64::from(overhead),
        remarks: end.remarks.clone(),
        doubt: end.doubt(),
    }
}

/// Copies what the processes of both sides have printed. Each end of a flow has a name of its own.
pub(super) fn copy_logs(sides: &[Side; 2], folder: &RecordFolder) -> Result<(), RunError> {
    for side in sides {
        let from = side.folder.join("logs");
        let failed = |error: std::io::Error| RunError::Io(format!("{}: {error}", from.display()));
        let Ok(entries) = fs::read_dir(&from) else {
            // A side on which no end of a flow ran.
            continue;
        };
        for entry in entries {
            let entry = entry.map_err(failed)?;
            let to = folder.path().join("logs").join(entry.file_name());
            fs::copy(entry.path(), to).map_err(failed)?;
        }
    }
    Ok(())
}
