//! Series over time, for figures: throughput, delays, queues and states.

use crate::RecordError;
use crate::capacity::Capacities;
use crate::cell::{Cell, table_size};
use crate::log::{Chunk, NOT_ARRIVED};
use crate::read::{PacketReader, Record, read_bins, read_frames, read_transfers, rows_of};
use crate::rows::for_each;
use crate::schema::{BINS_FILE, Direction, FrameRow, QueueRow, StateRow, TransferRow};
use std::collections::BTreeMap;

/// Throughput over time, in bins.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ThroughputSeries {
    /// Start of each bin.
    pub time_s: Vec<f64>,
    /// Capacity of the slowest bottleneck on the data path, if known.
    pub capacity_bps: Option<Vec<f64>>,
    /// Per flow, in the direction of its data: sent and arrived rate in each bin.
    pub flows: BTreeMap<u16, (Vec<f64>, Vec<f64>)>,
}

/// One-way delays of the packets of one flow at the time of their arrival.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DelayPoints {
    /// Arrival.
    pub time_s: Vec<f64>,
    /// One-way delay.
    pub delay_ms: Vec<f64>,
}

/// Samples of one queue.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct QueueSeries {
    /// When each sample was taken.
    pub time_s: Vec<f64>,
    /// Bytes waiting.
    pub backlog_bytes: Vec<f64>,
    /// Packets waiting.
    pub backlog_packets: Vec<f64>,
}

/// The states of one sender: time and one column per number of [`StateRow`], NaN where absent.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StateSeries {
    /// When each sample was taken.
    pub time_s: Vec<f64>,
    /// The columns.
    pub columns: Vec<(&'static str, Vec<f64>)>,
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

/// The direction of each flow's data, by number.
fn data_directions(cell: &Cell) -> Vec<Option<Direction>> {
    let size = table_size(cell.flows.iter().map(|flow| flow.flow));
    let mut table = vec![None; size];
    for flow in &cell.flows {
        table[usize::from(flow.flow)] = Some(flow.direction);
    }
    table
}

/// The bin of an event. An event in the last instant of a run belongs to the bin before it, not to a bin of zero
/// length.
fn bin_of(time_ns: u64, duration_ns: u64, width_ns: u64) -> u64 {
    let time_ns = if time_ns == duration_ns {
        time_ns.saturating_sub(1)
    } else {
        time_ns
    };
    time_ns / width_ns
}

/// Counts bytes in bins, growing with time.
#[derive(Default)]
struct Counter {
    sent: Vec<u64>,
    arrived: Vec<u64>,
    last_ns: u64,
}

impl Counter {
    fn add(bins: &mut Vec<u64>, index: usize, bytes: u64) {
        if index >= bins.len() {
            bins.resize(index + 1, 0);
        }
        bins[index] += bytes;
    }
}

/// Throughput in bins of `bin_ns`. A record of bins is aggregated to the next multiple of its bin width; the times show
/// the resulting width.
///
/// # Errors
/// A width of zero or one that leads to more than ten million bins, or a damaged record.
pub fn throughput(record: &Record, bin_ns: u64) -> Result<ThroughputSeries, RecordError> {
    let cell = &record.cell;
    let refuse = |problem: &str| Err(RecordError::data("throughput series", problem));
    if bin_ns == 0 {
        return refuse("a bin must last at least one nanosecond");
    }
    if cell.duration_ns / bin_ns > 10_000_000 {
        return refuse("more than ten million bins are requested; choose wider ones");
    }
    let directions = data_directions(cell);
    let mut counters: BTreeMap<u16, Counter> = cell
        .flows
        .iter()
        .map(|flow| (flow.flow, Counter::default()))
        .collect();
    let width = match (&record.packets, &record.bins) {
        (Some(packets), _) => {
            let mut table: Vec<Counter> = directions.iter().map(|_| Counter::default()).collect();
            let mut reader = PacketReader::open(packets.clone())?;
            let mut chunk = Chunk::default();
            while reader.next(&mut chunk)? {
                count(&chunk, &directions, cell.duration_ns, bin_ns, &mut table);
            }
            // The largest integer must not make the range overflow.
            for (flow, counter) in (0..=u16::MAX).zip(table) {
                counters.entry(flow).and_modify(|entry| *entry = counter);
            }
            bin_ns
        }
        (None, Some(bins)) => {
            let own = cell.bin_ns.filter(|&own| own > 0);
            let Some(own) = own else {
                let problem = "the cell in run.json does not specify the width of the bins";
                return Err(RecordError::data(BINS_FILE, problem));
            };
            let width = bin_ns.div_ceil(own) * own;
            for row in read_bins(bins.clone())? {
                let data = directions.get(usize::from(row.flow)).copied().flatten();
                if data != Some(row.direction) {
                    continue;
                }
                let index = bin_of(row.bin_ns, cell.duration_ns, width) as usize;
                if index > 10_000_000 {
                    return Err(RecordError::data(
                        BINS_FILE,
                        "a bin lies far beyond the end",
                    ));
                }
                if let Some(counter) = counters.get_mut(&row.flow) {
                    Counter::add(&mut counter.sent, index, row.sent_bytes);
                    Counter::add(&mut counter.arrived, index, row.arrived_bytes);
                    counter.last_ns = counter.last_ns.max(row.last_arrival_ns.unwrap_or(0));
                }
            }
            width
        }
        (None, None) => return refuse("the record holds neither packets nor bins"),
    };
    let capacities = Capacities::gather(record)?;
    Ok(finish(cell, &capacities, width, counters))
}

fn count(
    chunk: &Chunk,
    directions: &[Option<Direction>],
    duration_ns: u64,
    bin_ns: u64,
    table: &mut [Counter],
) {
    // Beyond any sensible run; keeps a contradictory record from reserving unlimited memory.
    let maximum = 20_000_000;
    for i in 0..chunk.len() {
        let flow = usize::from(chunk.flow[i]);
        if directions.get(flow).copied().flatten() != Some(chunk.direction[i]) {
            continue;
        }
        let bytes = u64::from(chunk.size_bytes[i]);
        let counter = &mut table[flow];
        let sent = bin_of(chunk.sent_ns[i], duration_ns, bin_ns);
        if sent < maximum {
            Counter::add(&mut counter.sent, sent as usize, bytes);
        }
        let arrived = chunk.arrived_ns[i];
        let bin = bin_of(arrived, duration_ns, bin_ns);
        if arrived != NOT_ARRIVED && bin < maximum {
            Counter::add(&mut counter.arrived, bin as usize, bytes);
            counter.last_ns = counter.last_ns.max(arrived);
        }
    }
}

/// Total capacity of the narrowest bottlenecks of the flows under test between two times. A dumbbell has one per
/// direction; for several bottlenecks of a graph, a sum would be misleading.
fn capacity_of(cell: &Cell, capacities: &Capacities, span: (u64, u64)) -> Option<f64> {
    let mut found: Vec<(&str, f64)> = Vec::new();
    for flow in cell.flows_under_test() {
        let way = (flow.flow, flow.direction);
        let (element, bps) = capacities.narrowest(cell, way, span).ok()?;
        if !capacities.over_time(element.label()) {
            return None;
        }
        if found.iter().all(|(name, _)| *name != element.label()) {
            found.push((element.label(), bps));
        }
    }
    let clear = cell.network.dumbbell || found.len() == 1;
    clear.then(|| found.iter().map(|(_, bps)| bps).sum())
}

fn finish(
    cell: &Cell,
    capacities: &Capacities,
    width: u64,
    counters: BTreeMap<u16, Counter>,
) -> ThroughputSeries {
    let duration = cell.duration_ns;
    let last = counters
        .values()
        .map(|counter| counter.last_ns)
        .max()
        .unwrap_or(0);
    let bins = counters
        .values()
        .map(|counter| counter.sent.len().max(counter.arrived.len()))
        .max()
        .unwrap_or(0)
        .max(duration.div_ceil(width) as usize);
    // A last bin in which the run ends is cut there, so that its rate is not too low, unless packets still arrive after
    // the end, as is possible in emulation.
    let length = |i: u64| match duration.checked_sub(i * width) {
        Some(left) if left > 0 && last <= duration => width.min(left),
        _ => width,
    };
    let rates = |mut bytes: Vec<u64>| -> Vec<f64> {
        bytes.resize(bins, 0);
        (0..)
            .zip(bytes)
            .map(|(i, bytes)| bytes as f64 * 8e9 / length(i) as f64)
            .collect()
    };
    let capacity: Vec<f64> = (0..bins as u64)
        .map_while(|i| capacity_of(cell, capacities, (i * width, i * width + length(i))))
        .collect();
    ThroughputSeries {
        time_s: (0..bins as u64).map(|i| seconds(i * width)).collect(),
        capacity_bps: (capacity.len() == bins).then_some(capacity),
        flows: counters
            .into_iter()
            .map(|(flow, counter)| (flow, (rates(counter.sent), rates(counter.arrived))))
            .collect(),
    }
}

/// One-way delays per flow in the direction of its data, thinned out to at most `max_points` each (but at least two):
/// the fastest and the slowest packet in each interval of time are kept, so that no extreme is lost. `None` for records
/// of bins.
///
/// # Errors
/// A damaged record.
pub fn delay_points(
    record: &Record,
    max_points: usize,
) -> Result<Option<BTreeMap<u16, DelayPoints>>, RecordError> {
    let Some(packets) = &record.packets else {
        return Ok(None);
    };
    let directions = data_directions(&record.cell);
    let mut points: Vec<Vec<(u64, u64)>> = vec![Vec::new(); directions.len()];
    let mut reader = PacketReader::open(packets.clone())?;
    let mut chunk = Chunk::default();
    while reader.next(&mut chunk)? {
        for i in 0..chunk.len() {
            let flow = usize::from(chunk.flow[i]);
            let arrived = chunk.arrived_ns[i];
            let data = directions.get(flow).copied().flatten();
            if arrived != NOT_ARRIVED && data == Some(chunk.direction[i]) {
                points[flow].push((arrived, arrived.saturating_sub(chunk.sent_ns[i])));
            }
        }
    }
    let thin = |(flow, points): (u16, Vec<(u64, u64)>)| {
        directions[usize::from(flow)].map(|_| (flow, thin_out(points, max_points)))
    };
    Ok(Some((0..=u16::MAX).zip(points).filter_map(thin).collect()))
}

fn thin_out(mut points: Vec<(u64, u64)>, max_points: usize) -> DelayPoints {
    points.sort_unstable();
    if points.len() > max_points.max(2) {
        let columns = (max_points / 2).max(1) as u128;
        let (first, last) = (points[0].0, points[points.len() - 1].0);
        let span = u128::from(last - first) + 1;
        let column = |time: u64| u128::from(time - first) * columns / span;
        points = points
            .chunk_by(|a, b| column(a.0) == column(b.0))
            .flat_map(|group| {
                let low = group.iter().min_by_key(|point| point.1).copied();
                let high = group.iter().max_by_key(|point| point.1).copied();
                let mut pair: Vec<(u64, u64)> = low.into_iter().chain(high).collect();
                pair.sort_unstable();
                pair.dedup();
                pair
            })
            .collect();
    }
    DelayPoints {
        time_s: points.iter().map(|point| seconds(point.0)).collect(),
        delay_ms: points.iter().map(|point| point.1 as f64 / 1e6).collect(),
    }
}

/// The samples of each queue, by element.
///
/// # Errors
/// A damaged record.
pub fn queues(record: &Record) -> Result<BTreeMap<String, QueueSeries>, RecordError> {
    let mut all: BTreeMap<String, QueueSeries> = BTreeMap::new();
    for_each(record.queues.as_ref(), |row: &QueueRow| {
        if !all.contains_key(&row.element) {
            all.insert(row.element.clone(), QueueSeries::default());
        }
        if let Some(series) = all.get_mut(&row.element) {
            series.time_s.push(seconds(row.time_ns));
            series.backlog_bytes.push(row.backlog_bytes as f64);
            series.backlog_packets.push(f64::from(row.backlog_packets));
        }
    })?;
    Ok(all)
}

/// The states of each sender, by flow.
///
/// # Errors
/// A damaged record.
pub fn states(record: &Record) -> Result<BTreeMap<u16, StateSeries>, RecordError> {
    let mut all: BTreeMap<u16, StateSeries> = BTreeMap::new();
    for_each(record.states.as_ref(), |row: &StateRow| {
        let series = all.entry(row.flow).or_insert_with(|| StateSeries {
            time_s: Vec::new(),
            columns: StateRow::optional_numbers()
                .map(|(name, _)| (name, Vec::new()))
                .collect(),
        });
        series.time_s.push(seconds(row.time_ns));
        for ((_, value), (_, column)) in StateRow::optional_numbers().zip(&mut series.columns) {
            column.push(value(row).map_or(f64::NAN, |value| value as f64));
        }
    })?;
    Ok(all)
}

/// Columns of numbers by name, with times in seconds and NaN where a value is absent.
pub type Columns = Vec<(String, Vec<f64>)>;

fn columns<R>(rows: &[R], numbers: impl Iterator<Item = (&'static str, fn(&R) -> f64)>) -> Columns {
    let column = |(name, value): (&'static str, fn(&R) -> f64)| match name.strip_suffix("_ns") {
        Some(what) => (
            format!("{what}_s"),
            rows.iter().map(|row| value(row) / 1e9).collect(),
        ),
        None => (name.to_owned(), rows.iter().map(value).collect()),
    };
    numbers.map(column).collect()
}

/// The transfers of all applications, with the columns of [`TransferRow`].
///
/// # Errors
/// A damaged record.
pub fn transfers(record: &Record) -> Result<Columns, RecordError> {
    let rows = rows_of(record.transfers.as_ref(), read_transfers)?;
    Ok(columns(&rows, TransferRow::numbers()))
}

/// The frames of all flows, with the columns of [`FrameRow`].
///
/// # Errors
/// A damaged record.
pub fn frames(record: &Record) -> Result<Columns, RecordError> {
    let rows = rows_of(record.frames.as_ref(), read_frames)?;
    Ok(columns(&rows, FrameRow::numbers()))
}

/// Capacity of bottlenecks over time: start of each bin, and per bottleneck a rate for each.
pub type CapacitySeries = (Vec<f64>, BTreeMap<String, Vec<f64>>);

/// Start of each bin of `bin_ns`, and per bottleneck the mean rate in bit/s that it offered in each. Bottlenecks for
/// which nothing or only the mean over the run is known are excluded.
///
/// # Errors
/// A width of zero or one that leads to more than ten million bins, or a damaged record.
pub fn capacities(record: &Record, bin_ns: u64) -> Result<CapacitySeries, RecordError> {
    let end = record.cell.duration_ns;
    if bin_ns == 0 || end / bin_ns > 10_000_000 {
        let problem = "bins must last at least one nanosecond, and be fewer than ten million";
        return Err(RecordError::data("capacity series", problem));
    }
    let capacities = Capacities::gather(record)?;
    let starts: Vec<u64> = (0..end.div_ceil(bin_ns)).map(|i| i * bin_ns).collect();
    let mut all = BTreeMap::new();
    for name in capacities
        .elements()
        .filter(|name| capacities.over_time(name))
    {
        let rate = |&start: &u64| capacities.mean_bps(name, start, (start + bin_ns).min(end));
        let rates: Result<Vec<f64>, String> = starts.iter().map(rate).collect();
        if let Ok(rates) = rates {
            all.insert(name.to_owned(), rates);
        }
    }
    Ok((starts.into_iter().map(seconds).collect(), all))
}
