//! Reads the files with few rows.

use super::table::{TableReader, damaged, whole};
use crate::RecordError;
use crate::schema::{
    BINS_FILE, BinRow, CAPACITY_FILE, COMPLETIONS_FILE, CapacityRow, CompletionRow, DELAYS_FILE,
    DelayRow, Direction, FRAMES_FILE, FrameRow, QUEUES_FILE, QueueRow, STATES_FILE, StateRow,
    TRACES_FILE, TRANSFERS_FILE, TraceRow, TransferRow,
};
use crate::write::{Column, Rows};
use arrow_array::{
    Array, BooleanArray, Float64Array, RecordBatch, StringArray, UInt16Array, UInt32Array,
    UInt64Array,
};
use bytes::Bytes;

/// One batch with its schema, so that a column is fetched in one call.
struct Batch<'a> {
    file: &'static str,
    rows: &'a RecordBatch,
    columns: &'a [Column],
}

impl<'a> Batch<'a> {
    fn get<A: Array + 'static>(&self, name: &str) -> Result<&'a A, RecordError> {
        let index = self.columns.iter().position(|column| column.name == name);
        let index = index.ok_or_else(|| damaged(self.file, &format!("no column '{name}'")))?;
        whole(self.file, self.rows, self.columns, index)
    }

    fn maybe(&self, name: &str) -> Result<impl Fn(usize) -> Option<u64> + 'a, RecordError> {
        let values = self.get::<UInt64Array>(name)?;
        Ok(move |index: usize| values.is_valid(index).then(|| values.value(index)))
    }

    fn direction(
        &self,
    ) -> Result<impl Fn(usize) -> Result<Direction, RecordError> + 'a, RecordError> {
        let words = self.get::<StringArray>("direction")?;
        let file = self.file;
        Ok(move |index: usize| {
            Direction::from_word(words.value(index)).ok_or_else(|| {
                let word = words.value(index);
                RecordError::data(file, format!("the direction '{word}' is unknown"))
            })
        })
    }
}

fn read<R: Rows>(
    file: &'static str,
    bytes: Bytes,
    mut decode: impl FnMut(&Batch<'_>, &mut Vec<R>) -> Result<(), RecordError>,
) -> Result<Vec<R>, RecordError> {
    let columns = R::columns();
    let mut table = TableReader::open(file, bytes, &columns)?;
    let mut rows = Vec::new();
    while let Some(batch) = table.next()? {
        decode(
            &Batch {
                file,
                rows: &batch,
                columns: &columns,
            },
            &mut rows,
        )?;
    }
    Ok(rows)
}

/// Reads `states.parquet`.
pub fn read_states(bytes: Bytes) -> Result<Vec<StateRow>, RecordError> {
    read(STATES_FILE, bytes, |batch, rows| {
        let flow = batch.get::<UInt16Array>("flow")?;
        let time = batch.get::<UInt64Array>("time_ns")?;
        let cwnd = batch.maybe("cwnd_bytes")?;
        let ssthresh = batch.maybe("ssthresh_bytes")?;
        let pacing = batch.maybe("pacing_bps")?;
        let rtt = batch.maybe("rtt_ns")?;
        let srtt = batch.maybe("srtt_ns")?;
        let min_rtt = batch.maybe("min_rtt_ns")?;
        let inflight = batch.maybe("inflight_bytes")?;
        let delivered = batch.maybe("delivered_bytes")?;
        let rate = batch.maybe("delivery_rate_bps")?;
        let retransmitted = batch.maybe("retransmitted_bytes")?;
        let lost = batch.maybe("lost_packets")?;
        let mode = batch.get::<StringArray>("mode")?;
        rows.extend((0..flow.len()).map(|i| StateRow {
            flow: flow.value(i),
            time_ns: time.value(i),
            cwnd_bytes: cwnd(i),
            ssthresh_bytes: ssthresh(i),
            pacing_bps: pacing(i),
            rtt_ns: rtt(i),
            srtt_ns: srtt(i),
            min_rtt_ns: min_rtt(i),
            inflight_bytes: inflight(i),
            delivered_bytes: delivered(i),
            delivery_rate_bps: rate(i),
            retransmitted_bytes: retransmitted(i),
            lost_packets: lost(i),
            mode: mode.is_valid(i).then(|| mode.value(i).to_owned()),
        }));
        Ok(())
    })
}

/// Reads `queues.parquet`.
pub fn read_queues(bytes: Bytes) -> Result<Vec<QueueRow>, RecordError> {
    read(QUEUES_FILE, bytes, |batch, rows| {
        let element = batch.get::<StringArray>("element")?;
        let time = batch.get::<UInt64Array>("time_ns")?;
        let backlog = batch.get::<UInt64Array>("backlog_bytes")?;
        let packets = batch.get::<UInt32Array>("backlog_packets")?;
        rows.extend((0..time.len()).map(|i| QueueRow {
            element: element.value(i).to_owned(),
            time_ns: time.value(i),
            backlog_bytes: backlog.value(i),
            backlog_packets: packets.value(i),
        }));
        Ok(())
    })
}

/// Reads `traces.parquet`.
pub fn read_traces(bytes: Bytes) -> Result<Vec<TraceRow>, RecordError> {
    read(TRACES_FILE, bytes, |batch, rows| {
        let flow = batch.get::<UInt16Array>("flow")?;
        let time = batch.get::<UInt64Array>("time_ns")?;
        let name = batch.get::<StringArray>("name")?;
        let value = batch.get::<Float64Array>("value")?;
        rows.extend((0..flow.len()).map(|i| TraceRow {
            flow: flow.value(i),
            time_ns: time.value(i),
            name: name.value(i).to_owned(),
            value: value.value(i),
        }));
        Ok(())
    })
}

/// Reads `transfers.parquet`.
pub fn read_transfers(bytes: Bytes) -> Result<Vec<TransferRow>, RecordError> {
    read(TRANSFERS_FILE, bytes, |batch, rows| {
        let flow = batch.get::<UInt16Array>("flow")?;
        let connection = batch.get::<UInt32Array>("connection")?;
        let transfer = batch.get::<UInt32Array>("transfer")?;
        let size = batch.get::<UInt64Array>("bytes")?;
        let started = batch.get::<UInt64Array>("started_ns")?;
        let ended = batch.maybe("ended_ns")?;
        rows.extend((0..flow.len()).map(|i| TransferRow {
            flow: flow.value(i),
            connection: connection.value(i),
            transfer: transfer.value(i),
            bytes: size.value(i),
            started_ns: started.value(i),
            ended_ns: ended(i),
        }));
        Ok(())
    })
}

/// Reads `completions.parquet`.
pub fn read_completions(bytes: Bytes) -> Result<Vec<CompletionRow>, RecordError> {
    read(COMPLETIONS_FILE, bytes, |batch, rows| {
        let flow = batch.get::<UInt16Array>("flow")?;
        let (low, high) = (batch.maybe("low_ns")?, batch.maybe("high_ns")?);
        let transfers = batch.get::<UInt64Array>("transfers")?;
        let sum = batch.get::<UInt64Array>("sum_ns")?;
        let size = batch.get::<UInt64Array>("bytes")?;
        for i in 0..flow.len() {
            let row = CompletionRow {
                flow: flow.value(i),
                low_ns: low(i),
                high_ns: high(i),
                transfers: transfers.value(i),
                sum_ns: sum.value(i),
                bytes: size.value(i),
            };
            let sound = match (row.low_ns, row.high_ns) {
                (Some(low), Some(high)) => low <= high,
                (None, None) => true,
                _ => false,
            };
            if !sound {
                let problem = format!("a bucket of flow {} has no sound bounds", row.flow);
                return Err(RecordError::data(COMPLETIONS_FILE, problem));
            }
            rows.push(row);
        }
        Ok(())
    })
}

/// Reads `frames.parquet`.
pub fn read_frames(bytes: Bytes) -> Result<Vec<FrameRow>, RecordError> {
    read(FRAMES_FILE, bytes, |batch, rows| {
        let flow = batch.get::<UInt16Array>("flow")?;
        let frame = batch.get::<UInt64Array>("frame")?;
        let captured = batch.get::<UInt64Array>("captured_ns")?;
        let size = batch.get::<UInt32Array>("bytes")?;
        let key = batch.get::<BooleanArray>("key")?;
        let discarded = batch.get::<BooleanArray>("discarded")?;
        let arrived = batch.maybe("arrived_ns")?;
        rows.extend((0..flow.len()).map(|i| FrameRow {
            flow: flow.value(i),
            frame: frame.value(i),
            captured_ns: captured.value(i),
            bytes: size.value(i),
            key: key.value(i),
            discarded: discarded.value(i),
            arrived_ns: arrived(i),
        }));
        Ok(())
    })
}

/// Reads `capacity.parquet`.
pub fn read_capacity(bytes: Bytes) -> Result<Vec<CapacityRow>, RecordError> {
    read(CAPACITY_FILE, bytes, |batch, rows| {
        let element = batch.get::<StringArray>("element")?;
        let time = batch.get::<UInt64Array>("time_ns")?;
        let size = batch.get::<UInt64Array>("bytes")?;
        rows.extend((0..time.len()).map(|i| CapacityRow {
            element: element.value(i).to_owned(),
            time_ns: time.value(i),
            bytes: size.value(i),
        }));
        Ok(())
    })
}

/// Reads `bins.parquet`.
pub fn read_bins(bytes: Bytes) -> Result<Vec<BinRow>, RecordError> {
    read(BINS_FILE, bytes, |batch, rows| {
        let flow = batch.get::<UInt16Array>("flow")?;
        let direction = batch.direction()?;
        let get = |name| batch.get::<UInt64Array>(name);
        let (bin, sent, sent_bytes) = (get("bin_ns")?, get("sent_packets")?, get("sent_bytes")?);
        let (arrived, arrived_bytes) = (get("arrived_packets")?, get("arrived_bytes")?);
        let (dropped, dropped_bytes) = (get("dropped_packets")?, get("dropped_bytes")?);
        let delay = get("delay_sum_ns")?;
        let first = batch.maybe("first_arrival_ns")?;
        let last = batch.maybe("last_arrival_ns")?;
        for i in 0..flow.len() {
            rows.push(BinRow {
                flow: flow.value(i),
                direction: direction(i)?,
                bin_ns: bin.value(i),
                sent_packets: sent.value(i),
                sent_bytes: sent_bytes.value(i),
                arrived_packets: arrived.value(i),
                arrived_bytes: arrived_bytes.value(i),
                dropped_packets: dropped.value(i),
                dropped_bytes: dropped_bytes.value(i),
                delay_sum_ns: delay.value(i),
                first_arrival_ns: first(i),
                last_arrival_ns: last(i),
            });
        }
        Ok(())
    })
}

/// Reads `delays.parquet`.
pub fn read_delays(bytes: Bytes) -> Result<Vec<DelayRow>, RecordError> {
    read(DELAYS_FILE, bytes, |batch, rows| {
        let flow = batch.get::<UInt16Array>("flow")?;
        let direction = batch.direction()?;
        let low = batch.get::<UInt64Array>("low_ns")?;
        let high = batch.get::<UInt64Array>("high_ns")?;
        let packets = batch.get::<UInt64Array>("packets")?;
        for i in 0..flow.len() {
            rows.push(DelayRow {
                flow: flow.value(i),
                direction: direction(i)?,
                low_ns: low.value(i),
                high_ns: high.value(i),
                packets: packets.value(i),
            });
        }
        Ok(())
    })
}
