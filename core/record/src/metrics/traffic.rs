//! What each flow sent, lost and delivered in the direction of its data, from packets or bins.

use super::distribution::DelayDistribution;
use crate::cell::Cell;
use crate::histogram::Bucket;
use crate::log::{Chunk, NOT_ARRIVED};
use crate::read::{PacketReader, Record, read_bins, read_delays};
use crate::schema::{DELAYS_FILE, Direction, Fate, PACKETS_FILE};
use crate::{RecordError, schema::BINS_FILE};
use bytes::Bytes;

/// A second, the unit of time scales.
pub(super) const SECOND: u64 = 1_000_000_000;

/// The packets of one flow that travelled in the direction of its data.
#[derive(Clone, Debug)]
pub struct FlowTraffic {
    /// Number of the flow.
    pub flow: u16,
    /// Direction of its data.
    pub direction: Direction,
    /// Packets that entered the network.
    pub sent_packets: u64,
    /// Their bytes.
    pub sent_bytes: u64,
    /// Packets that arrived.
    pub arrived_packets: u64,
    /// Their bytes.
    pub arrived_bytes: u64,
    /// Packets that were dropped.
    pub dropped_packets: u64,
    /// First and last arrival.
    pub arrivals_ns: Option<(u64, u64)>,
    /// Bytes that arrived during the span that all flows share.
    pub shared_bytes: u64,
    /// Bytes that arrived in each second of the span that the flows under test share; after a
    /// last part of a second nothing counts.
    pub seconds: Vec<u64>,
    /// One-way delays of the packets that arrived; copies that the network made are left out.
    pub delays: DelayDistribution,
}

/// The traffic of all flows of a cell, in the order of the cell.
#[derive(Clone, Debug)]
pub struct Traffic {
    /// One entry per flow.
    pub flows: Vec<FlowTraffic>,
    /// Smallest one-way delay of any packet that travelled forward, and of any backward.
    pub least_ns: [Option<u64>; 2],
}

impl Traffic {
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
            sent_packets: 0,
            sent_bytes: 0,
            arrived_packets: 0,
            arrived_bytes: 0,
            dropped_packets: 0,
            arrivals_ns: None,
            shared_bytes: 0,
            seconds: Vec::new(),
            delays: DelayDistribution::exact(Vec::new()),
        }
    }

    /// Counts bytes that arrived at `time` if that is within the seconds of the span.
    fn count_second(&mut self, time: u64, (from, to): (u64, u64), bytes: u64) {
        let whole = from + to.saturating_sub(from) / SECOND * SECOND;
        if (from..whole).contains(&time) {
            let index = ((time - from) / SECOND) as usize;
            if self.seconds.len() <= index {
                self.seconds.resize(index + 1, 0);
            }
            self.seconds[index] += bytes;
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

/// Finds flows by number at the cost of one look-up per packet.
struct Index(Vec<usize>);

impl Index {
    fn new(flows: &[FlowTraffic]) -> Self {
        let size = flows
            .iter()
            .map(|flow| usize::from(flow.flow) + 1)
            .max()
            .unwrap_or(0);
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

fn from_packets(cell: &Cell, bytes: Bytes) -> Result<Traffic, RecordError> {
    let mut flows = empty(cell);
    let mut least_ns = [None; 2];
    let index = Index::new(&flows);
    let mut delays: Vec<Vec<u64>> = vec![Vec::new(); flows.len()];
    let (from, to) = cell.shared_span_ns().unwrap_or((1, 0));
    let mut reader = PacketReader::open(bytes)?;
    let mut chunk = Chunk::default();
    while reader.next(&mut chunk)? {
        for i in 0..chunk.len() {
            if chunk.arrived_ns[i] != NOT_ARRIVED && chunk.copy_of[i] == 0 {
                let delay = chunk.arrived_ns[i].saturating_sub(chunk.sent_ns[i]);
                lower(&mut least_ns, chunk.direction[i], delay);
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
            flow.sent_packets += u64::from(!copy);
            flow.sent_bytes += if copy { 0 } else { size };
            let arrived = chunk.arrived_ns[i];
            match chunk.fate[i] {
                Fate::Delivered if arrived != NOT_ARRIVED => {
                    flow.arrived_packets += 1;
                    flow.arrived_bytes += size;
                    flow.arrived(arrived, arrived);
                    if (from..=to).contains(&arrived) {
                        flow.shared_bytes += size;
                    }
                    flow.count_second(arrived, (from, to), size);
                    let delay = arrived.checked_sub(chunk.sent_ns[i]).ok_or_else(|| {
                        let uid = chunk.uid[i];
                        let problem = format!("packet {uid} arrives before it is sent");
                        RecordError::data(PACKETS_FILE, problem)
                    })?;
                    if !copy {
                        delays[place].push(delay);
                    }
                }
                Fate::Delivered => {
                    let problem = format!("packet {} is delivered but never arrives", chunk.uid[i]);
                    return Err(RecordError::data(PACKETS_FILE, problem));
                }
                Fate::Dropped => flow.dropped_packets += 1,
                Fate::InFlight => {}
            }
        }
    }
    for (flow, delays) in flows.iter_mut().zip(delays) {
        flow.delays = DelayDistribution::exact(delays);
    }
    Ok(Traffic { flows, least_ns })
}

fn lower(least_ns: &mut [Option<u64>; 2], direction: Direction, delay: u64) {
    let least = &mut least_ns[direction as usize];
    *least = Some(least.map_or(delay, |least| least.min(delay)));
}

fn from_bins(cell: &Cell, bins: Bytes, delays: Bytes) -> Result<Traffic, RecordError> {
    let mut flows = empty(cell);
    let mut least_ns = [None; 2];
    let index = Index::new(&flows);
    let mut sums = vec![0_u128; flows.len()];
    let width = cell.bin_ns.filter(|&width| width > 0).ok_or_else(|| {
        RecordError::data(
            BINS_FILE,
            "the cell in run.json does not tell the width of the bins",
        )
    })?;
    let (from, to) = cell.shared_span_ns().unwrap_or((1, 0));
    for bin in read_bins(bins)? {
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
        // Bins that lie within the span as a whole: what part of a bin fell inside is not known.
        if bin.bin_ns >= from && bin.bin_ns.saturating_add(width) <= to {
            flow.shared_bytes += bin.arrived_bytes;
        }
        flow.count_second(bin.bin_ns, (from, to), bin.arrived_bytes);
        sums[index.0[usize::from(bin.flow)]] += u128::from(bin.delay_sum_ns);
    }
    let mut buckets: Vec<Vec<Bucket>> = vec![Vec::new(); flows.len()];
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
            let bucket = Bucket {
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
    Ok(Traffic { flows, least_ns })
}
