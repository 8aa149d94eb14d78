//! The packets of both directions as the rows of a record.
//!
//! Logs contain packets sent and arrivals, but not the fate of the rest. A packet that did not arrive although a later
//! one of the same direction did counts as dropped. Those sent after all packets that arrived were still in flight when
//! the run ended, unless they had been in flight for longer than any packet of their direction: a path that is dead
//! until the end drops all packets.

use super::clocks::ClockRelation;
use super::peer::PeerFolder;
use crate::tunnel::direction;
use narrows_cell::FlowDeliveries;
use narrows_cell::RunError;
use narrows_cell::{Cell, Flow, RecordFolder, RecordKind, SchemeRef};
use narrows_record::{Direction, ElementCounters, Log, PacketLog, REAL};
use narrows_tunnel::log::Content;
use narrows_tunnel::merge::{DirectionSummary, LogDirection, MergedPacket, is_resolved, summarise};
use narrows_tunnel::mtu::overhead;
use std::net::SocketAddr;

/// Direction of the packets of each host.
pub(super) const WAYS: [Direction; 2] = [Direction::Forward, Direction::Backward];
/// Reason of drops, as known from logs.
const REASON: &str = "not_received";
/// Packets that our endpoints sent before their stop may be stamped slightly later by a tunnel that had to wait for a
/// processor. The verifier allows as much after the end of a run.
const GRACE_NS: u64 = 1_000_000_000;
/// Precision of stamps of the kernel and readings of a clock, a microsecond each.
const PRECISION_NS: i64 = 2_000;
/// Minimum time allowed for a packet to arrive; the maximum delay of its direction if that is longer. Delays of 100 ms
/// and below vary between runs with the queue.
const PATIENCE_NS: u64 = 100_000_000;
/// Packets between two reports of progress.
const REPORT: u64 = 1 << 16;

/// The packets of a run.
pub(super) struct Packets {
    /// Forward and backward.
    pub(super) ways: [OneWay; 2],
    /// Bytes that the tunnel adds to each packet.
    pub(super) overhead: u32,
    seen: Vec<FlowDeliveries>,
}

/// Deliveries of the flows by the counters of their receivers, if packets were not observed otherwise.
fn reported_deliveries(peers: &[PeerFolder; 2], flows: usize) -> Vec<FlowDeliveries> {
    let mut seen = vec![FlowDeliveries::default(); flows];
    for (flow, counters) in peers.iter().flat_map(|peer| peer.document.receivers()) {
        if let Some(seen) = seen.get_mut(usize::from(flow)) {
            // Only whether it is zero matters.
            let counted = counters.received_packets.or(counters.goodput_bytes);
            seen.delivered = counted.unwrap_or(0);
        }
    }
    seen
}

/// The packets of one direction.
#[derive(Default)]
pub(super) struct OneWay {
    /// Packets of the run, in the order of sending; delays are not negative.
    packets: Vec<MergedPacket>,
    /// Index of the last one that arrived.
    last: Option<usize>,
    /// Time by the clock of the record from which a packet that did not arrive may still be in flight.
    undecided: u64,
    /// Time from the sending of the last packet that arrived to that of the last one that can no longer arrive.
    pub(super) dead_ns: u64,
    /// Statistics of these packets.
    pub(super) summary: DirectionSummary,
    /// Sent and arrived, but excluded: before the run or after the stop of their flow.
    pub(super) left_out: [u64; 2],
    /// Arrivals of packets that the log of the sender does not have.
    pub(super) unknown: u64,
    /// Arrivals of packets that had arrived before.
    pub(super) again: u64,
    /// Arrivals whose stamps or sizes contradict the log of the sender.
    pub(super) contradicting: u64,
    /// Delays that were negative and are zero now, and how many of them by more than the precision of stamps.
    pub(super) zeroed: [u64; 2],
    /// True if the error of the clocks is smaller than the variation of delays.
    pub(super) resolved: bool,
}

impl Packets {
    /// The packets that belong to the run.
    ///
    /// # Errors
    /// [`RunError::Input`] with a log that is not in order.
    pub(super) fn gather(
        cell: &Cell,
        peers: &[PeerFolder; 2],
        relation: &ClockRelation,
    ) -> Result<Self, RunError> {
        let stops = FlowStops::new(cell);
        if !peers[0].document.tunnel {
            return Ok(Packets {
                ways: Default::default(),
                overhead: 0,
                seen: reported_deliveries(peers, stops.ends.len()),
            });
        }
        let mut ways: [OneWay; 2] = Default::default();
        for (host, way) in [(0, LogDirection::Forward), (1, LogDirection::Reverse)] {
            ways[host] = OneWay::gather(host, way, peers, relation, &stops)?;
        }
        let local = peers[0].end.document["local"].as_str().unwrap_or_default();
        let local: SocketAddr = local.parse().map_err(|_| {
            RunError::Input(format!(
                "{}: 'local' ('{local}') is not an address with a port",
                peers[0].folder.join("tunnel.json").display()
            ))
        })?;
        let mut seen = vec![FlowDeliveries::default(); stops.ends.len()];
        for (host, way) in (0..).zip(&ways) {
            for packet in way.packets.iter().filter(|it| it.delay_ns.is_some()) {
                let flow = usize::from(packet.flow);
                seen[flow].delivered += u64::from(stops.senders[flow] == Some(host));
            }
        }
        Ok(Packets {
            ways,
            overhead: overhead(local.ip()),
            seen,
        })
    }

    /// Deliveries of the data of a flow.
    pub(super) fn seen(&self, flow: u16) -> FlowDeliveries {
        self.seen
            .get(usize::from(flow))
            .copied()
            .unwrap_or_default()
    }

    /// Writes packets or bins; returns the counters of the path, forward and backward.
    ///
    /// # Errors
    /// Errors of the file system, or `progress` returned false.
    pub(super) fn write(
        &self,
        cell: &Cell,
        relation: &ClockRelation,
        names: &[String; 2],
        folder: &RecordFolder,
        progress: &mut dyn FnMut(u64, u64) -> bool,
    ) -> Result<Vec<ElementCounters>, RunError> {
        let mut log = match cell.record {
            RecordKind::Packets => Log::Packets(PacketLog::new(names.to_vec())),
            RecordKind::Bins => Log::Bins(cell.bin_log()),
        };
        let mut file = match cell.record {
            RecordKind::Packets => Some(folder.packets()?),
            RecordKind::Bins => None,
        };
        let mut counters = [0, 1].map(|host| ElementCounters::new(&names[host], REAL, WAYS[host]));
        let mut places = [0, 0];
        let length = relation.duration.ns();
        let next = |places: &[usize; 2], host: usize| self.ways[host].packets.get(places[host]);
        loop {
            // Both are in order, so the earlier of their next packets is next.
            let host = match (next(&places, 0), next(&places, 1)) {
                (None, None) => break,
                (Some(a), Some(b)) => usize::from(b.sent_ns < a.sent_ns),
                (first, _) => usize::from(first.is_none()),
            };
            let (way, place) = (&self.ways[host], places[host]);
            places[host] += 1;
            let time = self.put(way, place, host, relation, &mut log, &mut counters[host]);
            if let (Some(file), Log::Packets(log)) = (&mut file, &mut log)
                && log.has_chunk()
            {
                file.drain(log)
                    .map_err(|error| folder.packets_error(error))?;
            }
            if log.entered() % REPORT == 0 && !progress(time.min(length), length) {
                return Err(RunError::Interrupted(libc::SIGTERM));
            }
        }
        log.finish();
        match (file, &mut log) {
            (Some(mut file), Log::Packets(log)) => {
                file.drain(log)
                    .and_then(|()| file.finish().map(drop))
                    .map_err(|error| folder.packets_error(error))?;
            }
            (_, Log::Bins(log)) => folder.bins(log)?,
            (None, Log::Packets(_)) | (_, Log::Nothing(_)) => {}
        }
        if !progress(length, length) {
            return Err(RunError::Interrupted(libc::SIGTERM));
        }
        Ok(counters.into())
    }

    /// Reports one packet to the log and counts it; returns when it was sent.
    fn put(
        &self,
        way: &OneWay,
        place: usize,
        host: usize,
        relation: &ClockRelation,
        log: &mut Log,
        counters: &mut ElementCounters,
    ) -> u64 {
        let packet = &way.packets[place];
        let size = packet.size.saturating_sub(self.overhead);
        let bytes = u64::from(size);
        let sent = sent(packet, relation);
        let entered = log.enter(packet.flow, WAYS[host], size, sent);
        counters.in_packets += 1;
        counters.in_bytes += bytes;
        match packet.delay_ns {
            Some(delay) => {
                log.arrive(entered, sent.saturating_add(delay.unsigned_abs()), 0);
                counters.out_packets += 1;
                counters.out_bytes += bytes;
                if let (before, Some(after)) = packet.tos {
                    counters.marked_packets += u64::from(before & 3 != 3 && after & 3 == 3);
                }
            }
            // If no packet arrived, all were lost.
            None if way.last.is_none_or(|last| place < last) || sent < way.undecided => {
                log.drop(entered, host as u16, REASON);
                counters.dropped_packets += 1;
                counters.dropped_bytes += bytes;
            }
            None => {
                log.hold(entered, host as u16);
                counters.held_packets += 1;
                counters.held_bytes += bytes;
            }
        }
        sent
    }
}

impl OneWay {
    /// The packets that host `host` sent.
    fn gather(
        host: usize,
        way: LogDirection,
        peers: &[PeerFolder; 2],
        relation: &ClockRelation,
        stops: &FlowStops,
    ) -> Result<Self, RunError> {
        let (from, to) = (&peers[host].end, &peers[1 - host].end);
        let joined = direction(way, from, to, &relation.fit)?;
        let mut one = OneWay {
            unknown: joined.unknown,
            again: joined.again,
            contradicting: joined.contradicting,
            ..OneWay::default()
        };
        // Whether a packet belongs to the run is decided by the clock of the host that sent it, which is
        // also the one by which its endpoints started and stopped.
        let start = relation.readings[host].start.tunnel_ns;
        for (row, mut packet) in from.sent.iter().zip(joined.packets) {
            if packet.content != Content::Packet {
                continue;
            }
            let since = row.sent.ns().checked_sub(start);
            if since.is_none_or(|since| since >= stops.from(packet.flow, host)) {
                one.left_out[0] += 1;
                one.left_out[1] += u64::from(packet.delay_ns.is_some());
                continue;
            }
            if !stops.knows(packet.flow) {
                packet.flow = 0;
            }
            if let Some(delay) = &mut packet.delay_ns
                && *delay < 0
            {
                one.zeroed[0] += 1;
                one.zeroed[1] += u64::from(*delay < -PRECISION_NS);
                *delay = 0;
            }
            if packet.delay_ns.is_some() {
                one.last = Some(one.packets.len());
            }
            one.packets.push(packet);
        }
        one.summary = summarise(&one.packets);
        one.resolved = is_resolved(&one.summary, relation.error);
        // Where the relation of the clocks changes from one line to the next, times may decrease.
        if !one.packets.is_sorted_by_key(|packet| packet.sent_ns) {
            one.packets.sort_by_key(|packet| packet.sent_ns);
            one.last = one.packets.iter().rposition(|it| it.delay_ns.is_some());
        }
        one.decide(relation);
        Ok(one)
    }

    /// Determines which packets have had the time to arrive.
    fn decide(&mut self, relation: &ClockRelation) {
        let maximum = self.packets.iter().filter_map(|it| it.delay_ns).max();
        let patience = maximum.map_or(0, i64::unsigned_abs).max(PATIENCE_NS);
        self.undecided = relation.duration.ns().saturating_sub(patience);
        let mut newest_first = self.packets.iter().rev().map(|it| sent(it, relation));
        let newest = newest_first.find(|&sent| sent < self.undecided);
        if let (Some(last), Some(newest)) = (self.last, newest) {
            self.dead_ns = newest.saturating_sub(sent(&self.packets[last], relation));
        }
    }
}

/// When a packet was sent, by the clock of the record.
fn sent(packet: &MergedPacket, relation: &ClockRelation) -> u64 {
    u64::try_from(packet.sent_ns.saturating_sub(relation.zero)).unwrap_or(0)
}

/// Times after which hosts no longer send packets of a flow, in ns since their start.
struct FlowStops {
    /// By flow and host; the first is for packets of no flow.
    ends: Vec<[u64; 2]>,
    /// Host that sends the data of each existing flow.
    senders: Vec<Option<u16>>,
}

impl FlowStops {
    fn new(cell: &Cell) -> Self {
        let maximum = cell.flows.iter().map(|flow| usize::from(flow.flow)).max();
        let end = cell.duration.ns().saturating_add(GRACE_NS);
        let mut stops = FlowStops {
            ends: vec![[end; 2]; maximum.unwrap_or(0) + 1],
            senders: vec![None; maximum.unwrap_or(0) + 1],
        };
        for flow in &cell.flows {
            let index = usize::from(flow.flow);
            stops.senders[index] = Some(flow.from);
            stops.ends[index][usize::from(flow.from)] = last_word(cell, flow);
        }
        stops
    }

    fn from(&self, flow: u16, host: usize) -> u64 {
        self.ends.get(usize::from(flow)).unwrap_or(&self.ends[0])[host]
    }

    fn knows(&self, flow: u16) -> bool {
        self.senders
            .get(usize::from(flow))
            .is_some_and(Option::is_some)
    }
}

/// When the sender of a flow's data is done. A stopped sender is silent in the other planes, even if its kernel still
/// retransmits or resets.
fn last_word(cell: &Cell, flow: &Flow) -> u64 {
    let stop = flow.stop.min(cell.duration).ns();
    match flow.scheme {
        SchemeRef::Kernel(_) | SchemeRef::Bpf(_) | SchemeRef::Program(_) => stop,
        SchemeRef::Native(..) | SchemeRef::Media(..) | SchemeRef::Datagrams => {
            stop.saturating_add(GRACE_NS)
        }
    }
}
