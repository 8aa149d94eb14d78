//! The files with few rows: states, queues, traces, transfers, completions, frames, bins and delays. Rows are pushed one by one
//! and encoded in batches.

use super::table::{Coding, Column, TableWriter, column, optional};
use crate::RecordError;
use crate::schema::{
    BinRow, CapacityRow, CompletionRow, DelayRow, FrameRow, QueueRow, StateRow, TraceRow,
    TransferRow,
};
use arrow_array::{
    ArrayRef, BooleanArray, Float64Array, StringArray, UInt16Array, UInt32Array, UInt64Array,
};
use arrow_schema::DataType;
use std::io::Write;
use std::sync::Arc;

/// Rows that are encoded together.
const BATCH: usize = 8192;

/// A row type with its columns.
pub(crate) trait Rows: Sized {
    fn columns() -> Vec<Column>;
    fn arrays(rows: &[Self]) -> Vec<ArrayRef>;
}

fn u64s<R>(rows: &[R], field: impl Fn(&R) -> u64) -> ArrayRef {
    Arc::new(UInt64Array::from_iter_values(rows.iter().map(field)))
}

fn maybe<R>(rows: &[R], field: impl Fn(&R) -> Option<u64>) -> ArrayRef {
    Arc::new(rows.iter().map(field).collect::<UInt64Array>())
}

fn flows<R>(rows: &[R], field: impl Fn(&R) -> u16) -> ArrayRef {
    Arc::new(UInt16Array::from_iter_values(rows.iter().map(field)))
}

fn texts<'a, R>(rows: &'a [R], field: impl Fn(&'a R) -> Option<&'a str>) -> ArrayRef {
    Arc::new(rows.iter().map(field).collect::<StringArray>())
}

impl Rows for StateRow {
    fn columns() -> Vec<Column> {
        let mut columns = vec![
            column("flow", DataType::UInt16, Coding::Words),
            column("time_ns", DataType::UInt64, Coding::Delta),
        ];
        columns.extend(
            [
                "cwnd_bytes",
                "ssthresh_bytes",
                "pacing_bps",
                "rtt_ns",
                "srtt_ns",
                "min_rtt_ns",
                "inflight_bytes",
                "delivered_bytes",
                "delivery_rate_bps",
                "retransmitted_bytes",
                "lost_packets",
            ]
            .map(|name| optional(name, DataType::UInt64, Coding::Delta)),
        );
        columns.push(optional("mode", DataType::Utf8, Coding::Words));
        columns
    }

    fn arrays(rows: &[Self]) -> Vec<ArrayRef> {
        vec![
            flows(rows, |r| r.flow),
            u64s(rows, |r| r.time_ns),
            maybe(rows, |r| r.cwnd_bytes),
            maybe(rows, |r| r.ssthresh_bytes),
            maybe(rows, |r| r.pacing_bps),
            maybe(rows, |r| r.rtt_ns),
            maybe(rows, |r| r.srtt_ns),
            maybe(rows, |r| r.min_rtt_ns),
            maybe(rows, |r| r.inflight_bytes),
            maybe(rows, |r| r.delivered_bytes),
            maybe(rows, |r| r.delivery_rate_bps),
            maybe(rows, |r| r.retransmitted_bytes),
            maybe(rows, |r| r.lost_packets),
            texts(rows, |r| r.mode.as_deref()),
        ]
    }
}

impl Rows for QueueRow {
    fn columns() -> Vec<Column> {
        vec![
            column("element", DataType::Utf8, Coding::Words),
            column("time_ns", DataType::UInt64, Coding::Delta),
            column("backlog_bytes", DataType::UInt64, Coding::Delta),
            column("backlog_packets", DataType::UInt32, Coding::Delta),
        ]
    }

    fn arrays(rows: &[Self]) -> Vec<ArrayRef> {
        let packets = rows.iter().map(|r| r.backlog_packets);
        vec![
            texts(rows, |r| Some(&r.element)),
            u64s(rows, |r| r.time_ns),
            u64s(rows, |r| r.backlog_bytes),
            Arc::new(UInt32Array::from_iter_values(packets)),
        ]
    }
}

impl Rows for TraceRow {
    fn columns() -> Vec<Column> {
        vec![
            column("flow", DataType::UInt16, Coding::Words),
            column("time_ns", DataType::UInt64, Coding::Delta),
            column("name", DataType::Utf8, Coding::Words),
            column("value", DataType::Float64, Coding::Plain),
        ]
    }

    fn arrays(rows: &[Self]) -> Vec<ArrayRef> {
        vec![
            flows(rows, |r| r.flow),
            u64s(rows, |r| r.time_ns),
            texts(rows, |r| Some(&r.name)),
            Arc::new(Float64Array::from_iter_values(rows.iter().map(|r| r.value))),
        ]
    }
}

impl Rows for TransferRow {
    fn columns() -> Vec<Column> {
        vec![
            column("flow", DataType::UInt16, Coding::Words),
            column("connection", DataType::UInt32, Coding::Delta),
            column("transfer", DataType::UInt32, Coding::Delta),
            column("bytes", DataType::UInt64, Coding::Delta),
            column("started_ns", DataType::UInt64, Coding::Delta),
            optional("ended_ns", DataType::UInt64, Coding::Delta),
        ]
    }

    fn arrays(rows: &[Self]) -> Vec<ArrayRef> {
        let numbers = |field: fn(&Self) -> u32| -> ArrayRef {
            Arc::new(UInt32Array::from_iter_values(rows.iter().map(field)))
        };
        vec![
            flows(rows, |r| r.flow),
            numbers(|r| r.connection),
            numbers(|r| r.transfer),
            u64s(rows, |r| r.bytes),
            u64s(rows, |r| r.started_ns),
            maybe(rows, |r| r.ended_ns),
        ]
    }
}

impl Rows for CompletionRow {
    fn columns() -> Vec<Column> {
        let optional = |name| optional(name, DataType::UInt64, Coding::Delta);
        let column = |name| column(name, DataType::UInt64, Coding::Delta);
        vec![
            super::table::column("flow", DataType::UInt16, Coding::Words),
            optional("low_ns"),
            optional("high_ns"),
            column("transfers"),
            column("sum_ns"),
            column("bytes"),
        ]
    }

    fn arrays(rows: &[Self]) -> Vec<ArrayRef> {
        vec![
            flows(rows, |r| r.flow),
            maybe(rows, |r| r.low_ns),
            maybe(rows, |r| r.high_ns),
            u64s(rows, |r| r.transfers),
            u64s(rows, |r| r.sum_ns),
            u64s(rows, |r| r.bytes),
        ]
    }
}

impl Rows for FrameRow {
    fn columns() -> Vec<Column> {
        vec![
            column("flow", DataType::UInt16, Coding::Words),
            column("frame", DataType::UInt64, Coding::Delta),
            column("captured_ns", DataType::UInt64, Coding::Delta),
            column("bytes", DataType::UInt32, Coding::Delta),
            column("key", DataType::Boolean, Coding::Plain),
            column("discarded", DataType::Boolean, Coding::Plain),
            optional("arrived_ns", DataType::UInt64, Coding::Delta),
        ]
    }

    fn arrays(rows: &[Self]) -> Vec<ArrayRef> {
        let flags = |field: fn(&Self) -> bool| -> ArrayRef {
            Arc::new(
                rows.iter()
                    .map(|row| Some(field(row)))
                    .collect::<BooleanArray>(),
            )
        };
        vec![
            flows(rows, |r| r.flow),
            u64s(rows, |r| r.frame),
            u64s(rows, |r| r.captured_ns),
            Arc::new(UInt32Array::from_iter_values(rows.iter().map(|r| r.bytes))),
            flags(|r| r.key),
            flags(|r| r.discarded),
            maybe(rows, |r| r.arrived_ns),
        ]
    }
}

impl Rows for CapacityRow {
    fn columns() -> Vec<Column> {
        vec![
            column("element", DataType::Utf8, Coding::Words),
            column("time_ns", DataType::UInt64, Coding::Delta),
            column("bytes", DataType::UInt64, Coding::Delta),
        ]
    }

    fn arrays(rows: &[Self]) -> Vec<ArrayRef> {
        vec![
            texts(rows, |r| Some(&r.element)),
            u64s(rows, |r| r.time_ns),
            u64s(rows, |r| r.bytes),
        ]
    }
}

impl Rows for BinRow {
    fn columns() -> Vec<Column> {
        let mut columns = vec![
            column("flow", DataType::UInt16, Coding::Words),
            column("direction", DataType::Utf8, Coding::Words),
        ];
        columns.extend(
            [
                "bin_ns",
                "sent_packets",
                "sent_bytes",
                "arrived_packets",
                "arrived_bytes",
                "dropped_packets",
                "dropped_bytes",
                "delay_sum_ns",
            ]
            .map(|name| column(name, DataType::UInt64, Coding::Delta)),
        );
        columns.push(optional(
            "first_arrival_ns",
            DataType::UInt64,
            Coding::Delta,
        ));
        columns.push(optional("last_arrival_ns", DataType::UInt64, Coding::Delta));
        columns
    }

    fn arrays(rows: &[Self]) -> Vec<ArrayRef> {
        vec![
            flows(rows, |r| r.flow),
            texts(rows, |r| Some(r.direction.word())),
            u64s(rows, |r| r.bin_ns),
            u64s(rows, |r| r.sent_packets),
            u64s(rows, |r| r.sent_bytes),
            u64s(rows, |r| r.arrived_packets),
            u64s(rows, |r| r.arrived_bytes),
            u64s(rows, |r| r.dropped_packets),
            u64s(rows, |r| r.dropped_bytes),
            u64s(rows, |r| r.delay_sum_ns),
            maybe(rows, |r| r.first_arrival_ns),
            maybe(rows, |r| r.last_arrival_ns),
        ]
    }
}

impl Rows for DelayRow {
    fn columns() -> Vec<Column> {
        let mut columns = vec![
            column("flow", DataType::UInt16, Coding::Words),
            column("direction", DataType::Utf8, Coding::Words),
        ];
        columns.extend(
            ["low_ns", "high_ns", "packets"]
                .map(|name| column(name, DataType::UInt64, Coding::Delta)),
        );
        columns
    }

    fn arrays(rows: &[Self]) -> Vec<ArrayRef> {
        vec![
            flows(rows, |r| r.flow),
            texts(rows, |r| Some(r.direction.word())),
            u64s(rows, |r| r.low_ns),
            u64s(rows, |r| r.high_ns),
            u64s(rows, |r| r.packets),
        ]
    }
}

/// A file that takes rows one by one.
macro_rules! file {
    ($(#[$doc:meta])* $name:ident, $row:ty) => {
        $(#[$doc])*
        pub struct $name<W: Write + Send> {
            table: TableWriter<W>,
            rows: Vec<$row>,
        }

        impl<W: Write + Send> $name<W> {
            /// Begins a file on `output`.
            pub fn create(output: W) -> Result<Self, RecordError> {
                Ok($name { table: TableWriter::create(output, &<$row>::columns())?, rows: Vec::new() })
            }

            /// Appends a row.
            pub fn push(&mut self, row: $row) -> Result<(), RecordError> {
                self.rows.push(row);
                if self.rows.len() == BATCH { self.encode() } else { Ok(()) }
            }

            fn encode(&mut self) -> Result<(), RecordError> {
                if !self.rows.is_empty() {
                    self.table.write(<$row>::arrays(&self.rows))?;
                    self.rows.clear();
                }
                Ok(())
            }

            /// Completes the file and returns the output, flushed.
            pub fn finish(mut self) -> Result<W, RecordError> {
                self.encode()?;
                self.table.finish()
            }
        }
    };
}

file!(
    /// Writes `states.parquet`.
    StateFile,
    StateRow
);
file!(
    /// Writes `queues.parquet`.
    QueueFile,
    QueueRow
);
file!(
    /// Writes `traces.parquet`.
    TraceFile,
    TraceRow
);
file!(
    /// Writes `transfers.parquet`.
    TransferFile,
    TransferRow
);
file!(
    /// Writes `completions.parquet`.
    CompletionFile,
    CompletionRow
);
file!(
    /// Writes `frames.parquet`.
    FrameFile,
    FrameRow
);
file!(
    /// Writes `capacity.parquet`.
    CapacityFile,
    CapacityRow
);
file!(
    /// Writes `bins.parquet`.
    BinFile,
    BinRow
);
file!(
    /// Writes `delays.parquet`.
    DelayFile,
    DelayRow
);
