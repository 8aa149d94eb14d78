//! Packets and bytes that each flow sent, lost and delivered in the direction of its data, from packets or bins.

use super::bytes_per_second::count_second;
use super::distribution::DelayDistribution;
use super::links::{LinkTraffic, Links};
use crate::cell::{Cell, table_size};
use crate::histogram::HistogramBucket;
use crate::log::{Chunk, NOT_ARRIVED};
use crate::read::{PacketReader, Record, read_bins, read_delays};
use crate::schema::{BinRow, DELAYS_FILE, DelayRow, Direction, Fate, PACKETS_FILE};
use crate::{Content, RecordError, schema::BINS_FILE};
use std::collections::BTreeMap;

/// The packets of one flow that travelled in the direction of its data.
#[derive(Clone, Debug, Default)]
pub struct FlowTraffic {
    /// Number of the flow.
    pub flow: u16,
    /// Direction of its data.
    pub direction: Direction,
    /// Packets that entered the network within the measured span.
    pub sent_packets: u64,
    /// Their bytes.
    pub sent_bytes: u64,
    /// Packets that arrived.
    pub arrived_packets: u64,
    /// Their bytes.
    pub arrived_bytes: u64,
    /// Packets sent within the measured span that were dropped.
    pub dropped_packets: u64,
    /// First and last arrival.
    pub arrivals_ns: Option<(u64, u64)>,
    /// Bytes that arrived during the span that all flows share.
    pub shared_bytes: u64,
    /// Bytes that arrived in each second of the span that the flows under test share; a last partial second is not
    /// counted.
    pub seconds: Vec<u64>,
    /// One-way delays of the packets that arrived; copies that the network made are excluded.
    pub delays: DelayDistribution,
    /// Packets that were dropped, in the order in which they were sent, with sending time and earliest time of arrival
    /// at the element that dropped it. `None` for bins.
    pub drops: Option<Vec<DroppedPacket>>,
}

/// One packet that was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DroppedPacket {
    /// When it was sent.
    pub sent_ns: u64,
    /// When it reached the element that dropped it: the sending time plus the smallest delay of the elements before.
    pub at_ns: u64,
}

/// The traffic of all flows of a cell, in the order of the cell.
#[derive(Clone, Debug)]
pub struct RecordTraffic {
    /// One entry per flow.
    pub flows: Vec<FlowTraffic>,
    /// Smallest one-way delay of any packet that travelled forward, and of any backward.
    pub least_ns: [Option<u64>; 2],
    /// Traffic of single bottlenecks.
    pub links: Vec<LinkTraffic>,
}

impl RecordTraffic {
    /// Collects the traffic of a record.
    ///
    /// # Errors
    /// A damaged record, or one in which a packet arrives before it is sent.
    pub fn gather(record: &Record) -> Result<Self, RecordError> {
        match (&record.packets, &record.bins, &record.delays) {
            (Some(packets), _, _) => from_packets(&record.cell, packets.clone()),
            (None, Some(bins), Some(delays)) => {
                from_bins(&record.cell, bins.clone(), delays.clone())
            }
            _ => Err(RecordError::data(PACKETS_FILE, "the file is missing")),
        }
    }
}

impl FlowTraffic {
    fn none(flow: u16, direction: Direction) -> Self {
        FlowTraffic {
            flow,
            direction,
            ..FlowTraffic::default()
        }
    }

    fn arrived(&mut self, first: u64, last: u64) {
        let (low, high) = self.arrivals_ns.unwrap_or((first, last));
        self.arrivals_ns = Some((low.min(first), high.max(last)));
    }
}

fn empty(cell: &Cell) -> Vec<FlowTraffic> {
    cell.flows
        .iter()
        .map(|flow| FlowTraffic::none(flow.flow, flow.direction))
        .collect()
}

/// Finds flows by number with one look-up per packet.
struct Index(Vec<usize>);

impl Index {
    fn new(flows: &[FlowTraffic]) -> Self {
        let size = table_size(flows.iter().map(|flow| flow.flow));
        let mut table = vec![usize::MAX; size];
        for (index, flow) in flows.iter().enumerate() {
            table[usize::from(flow.flow)] = index;
        }
        Index(table)
    }

    fn get<'a>(&self, flows: &'a mut [FlowTraffic], flow: u16) -> Option<&'a mut FlowTraffic> {
        flows.get_mut(*self.0.get(usize::from(flow))?)
    }
}

fn from_packets(cell: &Cell, packets: Content<Chunk>) -> Result<RecordTraffic, RecordError> {
    let mut flows = empty(cell);
    let mut least_ns = [None; 2];
    let index = Index::new(&flows);
    let mut delays: Vec<Vec<u64>> = vec![Vec::new(); flows.len()];
    let (from, to) = cell.shared_span_ns().unwrap_or((1, 0));
    let measure = &cell.measure;
    let mut links = Links::new(cell, true);
    let mut before = Before::default();
    for flow in &mut flows {
        flow.drops = Some(Vec::new());
    }
    let mut reader = PacketReader::open(packets)?;
    let mut chunk = Chunk::default();
    while reader.next(&mut chunk)? {
        for i in 0..chunk.len() {
            if chunk.arrived_ns[i] != NOT_ARRIVED && chunk.copy_of[i] == 0 {
                let delay = chunk.arrived_ns[i].saturating_sub(chunk.sent_ns[i]);
                lower(&mut least_ns, chunk.direction[i], delay);
            }
            if !links.is_empty() {
                links.packet(&chunk, i);
            }
            let Some(&place) = index.0.get(usize::from(chunk.flow[i])) else {
                continue;
            };
            let Some(flow) = flows.get_mut(place) else {
                continue;
            };
            if flow.direction != chunk.direction[i] {
                continue;
            }
            let size = u64::from(chunk.size_bytes[i]);
            // The sender sent the original only, and a copy's stamp is not that of a host.
            let copy = chunk.copy_of[i] > 0;
            let sent = chunk.sent_ns[i];
            let sent_counts = measure.counts(sent);
            flow.sent_packets += u64::from(!copy && sent_counts);
            flow.sent_bytes += if copy || !sent_counts { 0 } else { size };
            let arrived = chunk.arrived_ns[i];
            match chunk.fate[i] {
                Fate::Delivered if arrived != NOT_ARRIVED => {
                    let delay = arrived.checked_sub(sent).ok_or_else(|| {
                        let uid = chunk.uid[i];
                        let problem = format!("packet {uid} arrives before it is sent");
                        RecordError::data(PACKETS_FILE, problem)
                    })?;
                    if !measure.counts(arrived) {
                        continue;
                    }
                    flow.arrived_packets += 1;
                    flow.arrived_bytes += size;
                    flow.arrived(arrived, arrived);
                    if (from..=to).contains(&arrived) {
                        flow.shared_bytes += size;
                    }
                    count_second(&mut flow.seconds, arrived, (from, to), size);
                    if !copy {
                        delays[place].push(delay);
                    }
                }
                Fate::Delivered => {
                    let problem = format!("packet {} is delivered but never arrives", chunk.uid[i]);
                    return Err(RecordError::data(PACKETS_FILE, problem));
                }
                Fate::Dropped if sent_counts => {
                    flow.dropped_packets += 1;
                    let name = chunk.elements.get(usize::from(chunk.element[i]));
                    let way = (flow.flow, flow.direction);
                    let at_ns = sent.saturating_add(before.delay_ns(cell, way, name));
                    let drop = DroppedPacket {
                        sent_ns: sent,
                        at_ns,
                    };
                    flow.drops.get_or_insert_default().push(drop);
                }
                Fate::Dropped | Fate::InFlight => {}
            }
        }
    }
    for (flow, delays) in flows.iter_mut().zip(delays) {
        flow.delays = DelayDistribution::exact(delays);
        if let Some(drops) = &mut flow.drops {
            drops.sort_unstable_by_key(|drop| drop.sent_ns);
        }
    }
    let links = links.finish();
    Ok(RecordTraffic {
        flows,
        least_ns,
        links,
    })
}

/// Remembers the smallest delays on the paths of flows to elements that drop packets.
#[derive(Default)]
struct Before(BTreeMap<u16, Vec<(String, u64)>>);

impl Before {
    /// The smallest delay of the elements before `name` on the path of flow `number`; 0 if the path is not known to
    /// lead there.
    fn delay_ns(
        &mut self,
        cell: &Cell,
        (number, direction): (u16, Direction),
        name: Option<&String>,
    ) -> u64 {
        let Some(name) = name else { return 0 };
        let known = self.0.entry(number).or_default();
        if let Some((_, delay)) = known.iter().find(|(known, _)| known == name) {
            return *delay;
        }
        let mut delay = cell.access_ns(number, direction);
        let reached = cell.elements(number, direction).any(|element| {
            let here = element.label() == name;
            if !here {
                delay = delay.saturating_add(cell.least_delay_ns(element));
            }
            here
        });
        let delay = if reached { delay } else { 0 };
        known.push((name.clone(), delay));
        delay
    }
}

fn lower(least_ns: &mut [Option<u64>; 2], direction: Direction, delay: u64) {
    let minimum = &mut least_ns[direction as usize];
    *minimum = Some(minimum.map_or(delay, |minimum| minimum.min(delay)));
}

fn from_bins(
    cell: &Cell,
    bins: Content<BinRow>,
    delays: Content<DelayRow>,
) -> Result<RecordTraffic, RecordError> {
    let mut flows = empty(cell);
    let mut least_ns = [None; 2];
    let index = Index::new(&flows);
    let mut sums = vec![0_u128; flows.len()];
    let width = cell.bin_ns.filter(|&width| width > 0).ok_or_else(|| {
        RecordError::data(
            BINS_FILE,
            "the cell in run.json does not specify the width of the bins",
        )
    })?;
    let (from, to) = cell.shared_span_ns().unwrap_or((1, 0));
    let mut links = Links::new(cell, false);
    for bin in read_bins(bins)? {
        if !cell.measure.counts_bin(bin.bin_ns, width) {
            continue;
        }
        links.bin(&bin);
        let Some(flow) = index.get(&mut flows, bin.flow) else {
            continue;
        };
        if flow.direction != bin.direction {
            continue;
        }
        flow.sent_packets += bin.sent_packets;
        flow.sent_bytes += bin.sent_bytes;
        flow.arrived_packets += bin.arrived_packets;
        flow.arrived_bytes += bin.arrived_bytes;
        flow.dropped_packets += bin.dropped_packets;
        if let (Some(first), Some(last)) = (bin.first_arrival_ns, bin.last_arrival_ns) {
            flow.arrived(first, last);
        }
        // Only bins that lie entirely within the span: the share of a partial bin is not known.
        if bin.bin_ns >= from && bin.bin_ns.saturating_add(width) <= to {
            flow.shared_bytes += bin.arrived_bytes;
        }
        count_second(&mut flow.seconds, bin.bin_ns, (from, to), bin.arrived_bytes);
        sums[index.0[usize::from(bin.flow)]] += u128::from(bin.delay_sum_ns);
    }
    let mut buckets: Vec<Vec<HistogramBucket>> = vec![Vec::new(); flows.len()];
    for row in read_delays(delays)? {
        lower(&mut least_ns, row.direction, row.low_ns);
        let Some(flow) = index.get(&mut flows, row.flow) else {
            continue;
        };
        if flow.direction == row.direction {
            if row.low_ns > row.high_ns {
                let problem = format!("a bucket of flow {} ends before it begins", row.flow);
                return Err(RecordError::data(DELAYS_FILE, problem));
            }
            let bucket = HistogramBucket {
                low: row.low_ns,
                high: row.high_ns,
                count: row.packets,
            };
            buckets[index.0[usize::from(row.flow)]].push(bucket);
        }
    }
    for ((flow, buckets), sum) in flows.iter_mut().zip(buckets).zip(sums) {
        flow.delays = DelayDistribution::buckets(buckets, sum);
    }
    let links = links.finish();
    Ok(RecordTraffic {
        flows,
        least_ns,
        links,
    })
}
