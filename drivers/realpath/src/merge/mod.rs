//! The record of a run between two hosts, made from the files of its two peers.
//!
//! ```text
//! host 0: sent, arrived, tunnel.json, side.json \    /-> packets: both logs of each way, by one clock
//!                                                >--+
//! host 1: the same                              /    \-> flows: what both ends of each reported, by the same clock
//! ```
//!
//! Times are those of host 0's clock since the first of the two hosts started. Sizes are those of the packets inside
//! the tunnel, as in emulation. Nothing is known about the path except departures and arrivals: its only element per
//! direction loses packets and holds them for arbitrary times.
//!
//! Peers without a tunnel have not observed packets. Their record has none, and `tunnel` in `run.json` is null; the
//! flows consist of the reports of their ends, and both peers are assumed to have started at the same time.

mod clocks;
mod describe;
mod packets;
mod peer;
#[cfg(test)]
mod tests;

use clocks::ClockRelation;
use describe::{SenderHost, copy_logs, describe, facts_of};
use narrows_cell::EndpointResults;
use narrows_cell::RunError;
use narrows_cell::judgement::{ProgramTraffic, judge_pair};
use narrows_cell::{Cell, ProgramReports, RecordFolder, versions};
use narrows_record::{REAL, RunDocument};
use packets::Packets;
use peer::PeerFolder;
use std::collections::BTreeMap;
use std::path::Path;

/// Makes the record `out` from the folders of the peers of hosts 0 and 1. `progress` is called with the written part of
/// the run (time and length, in ns) and returns whether to continue.
///
/// # Errors
/// A cell that is not of this plane, folders that are not of one run, or errors of the file system. A bad run is not an
/// error: its record says so.
pub fn side_record(
    cell: &Cell,
    folders: [&Path; 2],
    out: &Path,
    progress: &mut dyn FnMut(u64, u64) -> bool,
) -> Result<RunDocument, RunError> {
    let names = path_names(cell)?;
    let folder = RecordFolder::create(out)?;
    let peers = [
        PeerFolder::read(folders[0], 0)?,
        PeerFolder::read(folders[1], 1)?,
    ];
    let relation = ClockRelation::new(&peers, cell.duration)?;
    let packets = Packets::gather(cell, &peers, &relation)?;
    let elements = packets.write(cell, &relation, &names, &folder, progress)?;
    let mut run = RunDocument::new(cell.json.clone(), "hosts", versions());
    run.elements = elements;
    let facts = facts_of(cell, &peers, &relation, &packets);
    describe(&mut run, &peers, &relation, &packets);
    copy_logs(&peers, &folder)?;
    let origins = peers.each_ref().map(SenderHost::new);
    let programs = ProgramReports::new(peers.iter().flat_map(|peer| peer.document.programs()));
    let traffic = traffic_of(cell, &peers, &relation);
    let ends = PeerFolder::ends(peers, |host, since| relation.time(host, since));
    let document = EndpointResults::gather(
        cell,
        ends,
        |flow| origins[usize::from(flow.from)].summary(flow),
        |flow| packets.seen(flow),
        &mut run,
    );
    let endpoints = document.write(cell, &folder)?;
    judge_pair(&mut run, &facts, &endpoints);
    programs.describe(&mut run, cell, &traffic);
    folder.complete(&mut run)?;
    Ok(run)
}

/// The packets sent by the hosts of programs, by the clock of the record: each host has counted its packets.
fn traffic_of(
    cell: &Cell,
    peers: &[PeerFolder; 2],
    relation: &ClockRelation,
) -> BTreeMap<u16, ProgramTraffic> {
    let mut found = BTreeMap::new();
    for (flow, _) in cell.programs() {
        let counted = |host: u16| -> ProgramTraffic {
            let peer = &peers[usize::from(host)];
            let start = peer.document.clocks.start.tunnel_ns;
            let mut traffic = peer.end.programs(flow.flow);
            for sent in [&mut traffic.sender, &mut traffic.receiver] {
                for at in [&mut sent.first_ns, &mut sent.last_ns] {
                    *at = at.map(|at| relation.time(usize::from(host), at.saturating_sub(start)));
                }
            }
            traffic
        };
        let mut traffic = counted(flow.from);
        let other = counted(flow.to);
        traffic.receiver = other.receiver;
        for conversation in other.conversations {
            traffic.note(conversation);
        }
        found.insert(flow.flow, traffic);
    }
    found
}

/// Names of the elements that represent the path, forward and backward.
fn path_names(cell: &Cell) -> Result<[String; 2], RunError> {
    let refuse = || {
        RunError::Input(format!(
            "the cell {} is not of a run between two hosts, whose network is a dumbbell with one element of kind \
             '{REAL}' in each direction and no further delays",
            cell.id
        ))
    };
    let network = narrows_record::Cell::parse(&cell.json)
        .map_err(|error| RunError::Input(error.to_string()))?
        .network;
    if !network.dumbbell || cell.flows.iter().any(|flow| !flow.extra_rtt.is_zero()) {
        return Err(refuse());
    }
    let name = |link: usize| match &network.links[link].elements[..] {
        [element] if element.kind == REAL => Ok(element.label().to_owned()),
        _ => Err(refuse()),
    };
    Ok([name(0)?, name(1)?])
}
