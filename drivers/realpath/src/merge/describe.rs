//! The description of a run between two hosts in its document, and the facts for its judgement.

use super::clocks::{ClockRelation, by_ntp};
use super::packets::{OneWay, Packets, WAYS};
use super::peer::{Loaded, PeerFolder};
use narrows_cell::judgement::{DirectionMeasurements, HostMeasurements, PairMeasurements};
use narrows_cell::{Cell, Flow, RecordFolder, SchemeRef, described};
use narrows_cell::{Context, RunError};
use narrows_netns::host_info;
use narrows_record::{Clock, FlowSummary, HostSettings, Ring, RunDocument, Versions};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

/// Member of the record about the tunnel; null if there was none.
const TUNNEL: &str = "tunnel";
/// Names of the hosts, as in every dumbbell.
const HOSTS: [&str; 2] = ["sender", "receiver"];
/// Members of `tunnel.json` that are elsewhere in the record.
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

/// A host's account of the schemes whose data it sends.
pub(super) struct SenderHost {
    kernel: String,
    versions: Versions,
    loaded: BTreeMap<u16, Loaded>,
}

impl SenderHost {
    pub(super) fn new(peer: &PeerFolder) -> Self {
        SenderHost {
            kernel: peer.document.machine.kernel.clone(),
            versions: peer.document.versions.clone(),
            loaded: peer.document.loaded(),
        }
    }

    /// The summary of a flow before its ends have reported anything.
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

/// Fills in the facts about hosts, clocks and tunnel.
pub(super) fn describe(
    run: &mut RunDocument,
    peers: &[PeerFolder; 2],
    relation: &ClockRelation,
    packets: &Packets,
) {
    run.started_at = Some(host_info::wall_clock(
        peers[0].document.clocks.start.real_ns,
    ));
    run.ended_at = Some(host_info::wall_clock(peers[0].document.ended_real_ns));
    run.processes = peers
        .iter()
        .flat_map(|peer| peer.document.processes.iter().cloned())
        .collect();
    let hosts = HOSTS.into_iter().zip(peers);
    run.hosts = hosts.map(|(name, peer)| host(name, peer)).collect();
    run.clock = clock(relation, packets);
    let by_ntp = by_ntp([peers[0].document.timekeeping, peers[1].document.timekeeping]);
    run.clock.other.insert("by_ntp".to_owned(), by_ntp.into());
    if !peers[0].document.tunnel {
        run.other.insert(TUNNEL.to_owned(), Value::Null);
        return;
    }
    for (name, peer) in HOSTS.into_iter().zip(peers) {
        let count = |pointer: &str| peer.end.count(pointer);
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

fn clock(relation: &ClockRelation, packets: &Packets) -> Clock {
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

fn host(name: &str, peer: &PeerFolder) -> HostSettings {
    let document = &peer.document;
    let ticks = document.ticks();
    let mut tunnel = peer.end.document.clone();
    if let Some(members) = tunnel.as_object_mut() {
        members.retain(|name, _| !ELSEWHERE.contains(&name.as_str()));
    }
    HostSettings {
        name: name.to_owned(),
        sysctls: document.settings.sysctls.clone(),
        other: members(json!({
            "mtu": document.settings.mtu,
            "host_name": document.name,
            "machine": document.machine,
            "privilege": document.privilege,
            "versions": document.versions,
            "clock_step_ns": document.clock_step_ns,
            "started_at": host_info::wall_clock(document.clocks.start.real_ns),
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

/// The facts for the judgement of the run, without those of its endpoints.
pub(super) fn facts_of(
    cell: &Cell,
    peers: &[PeerFolder; 2],
    relation: &ClockRelation,
    packets: &Packets,
) -> PairMeasurements {
    let hosts = [0, 1].map(|host| host_facts(HOSTS[host], &peers[host], packets.overhead));
    let ways = [0, 1].map(|host| {
        let way = &packets.ways[host];
        let spread = way
            .summary
            .delay_ns
            .map(|[minimum, _, p95, ..]| p95 - minimum);
        DirectionMeasurements {
            direction: WAYS[host],
            spread_ns: spread.map(i64::unsigned_abs),
            resolved: way.resolved,
            unknown: way.unknown,
            contradicting: way.contradicting,
            negative: way.zeroed[1],
            dead_ns: way.dead_ns,
        }
    });
    let minimum = packets.ways.iter().map(|way| way.summary.delay_ns);
    let base_rtt = minimum.map(|delays| delays.map_or(0, |[minimum, ..]| minimum));
    let missed = peers.iter().flat_map(|peer| &peer.document.missed_calls);
    let missed = missed.flatten().map(|(name, count)| (name.clone(), *count));
    PairMeasurements {
        duration_ns: cell.duration.ns(),
        tunnel: peers[0].document.tunnel,
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

fn host_facts(name: &'static str, peer: &PeerFolder, overhead: u32) -> HostMeasurements {
    let end = &peer.end;
    let open = end
        .count("/ended_ns")
        .saturating_sub(end.count("/opened_ns"));
    HostMeasurements {
        name,
        stolen_ratio: peer.document.ticks().stolen_ratio(),
        // The endpoints use another clock.
        clock_step_ns: if peer.document.tunnel {
            peer.document.clock_step_ns
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

/// Copies the output of the processes of both peers. Each end of a flow has a distinct name.
pub(super) fn copy_logs(peers: &[PeerFolder; 2], folder: &RecordFolder) -> Result<(), RunError> {
    for peer in peers {
        let from = peer.folder.join("logs");
        let Ok(entries) = fs::read_dir(&from) else {
            // A peer on which no end of a flow ran.
            continue;
        };
        for entry in entries {
            let entry = entry.at(&from)?;
            let to = folder.path().join("logs").join(entry.file_name());
            copy(&entry.path(), &to).at(&from)?;
        }
    }
    Ok(())
}

/// Copies a file, or a folder of a program with its content. Links are not followed.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    let kind = fs::symlink_metadata(from)?.file_type();
    if kind.is_file() {
        return fs::copy(from, to).map(drop);
    }
    if kind.is_dir() {
        fs::create_dir_all(to)?;
        for entry in fs::read_dir(from)? {
            let entry = entry?;
            copy(&entry.path(), &to.join(entry.file_name()))?;
        }
    }
    Ok(())
}
