//! Records of runs: their schema, their writers and readers, the metrics and the verifier.
//!
//! A record is a folder: `run.json` ([`RunDocument`]) and columnar files. During a run, the driver reports every packet
//! to a [`Log`], once when it enters the network and once when its fate is known; the log turns this into [`Chunk`]s of
//! columns, which a [`PacketFile`] encodes. Nothing is inferred afterwards.
//!
//! Like everything under `core/`, this crate opens no file and reads no clock: writers take any
//! [`std::io::Write`], readers take [`bytes::Bytes`], or rows that were never written ([`Content`]).
#![forbid(unsafe_code)]

mod capacity;
mod cell;
mod checksum;
pub mod completions;
mod content;
pub mod csv;
mod error;
mod histogram;
mod link_passes;
pub mod log;
pub mod metrics;
pub mod read;
mod results_parquet;
mod rows;
mod run;
mod schema;
pub mod series;
mod steps;
mod table;
mod token_bucket;
pub mod verify;
pub mod write;

pub use capacity::Capacities;
pub use cell::{
    Cell, CellElement, CellFlow, CellLink, CellNetwork, CellQueueLimit, CellRoute, DelayBounds,
    KeptTransfers, Measure, PlannedChange, REAL, RateLaw, Requirement, ScoreBounds,
};
pub use content::Content;
pub use error::RecordError;
pub use histogram::{Histogram, HistogramBucket};
pub use log::{BinLog, Chunk, Entered, Log, PacketLog};
pub use read::Record;
pub use results_parquet::{NamedValues, encode_columns};
pub use run::{
    BpfFingerprint, Check, Clock, Cpu, ElementCounters, Extension, Fingerprint, FlowSummary, Host,
    HostSettings, Lateness, Offered, Process, Reason, ReceiverCounters, Ring, RunDocument,
    SenderCounters, Severity, Verdict, Versions,
};
pub use schema::{
    BINS_FILE, BinRow, CAPACITY_FILE, COMPLETIONS_FILE, CapacityRow, CompletionRow, DELAYS_FILE,
    DelayRow, Direction, FRAMES_FILE, Fate, FrameRow, PACKETS_FILE, PacketRow, QUEUES_FILE,
    QueueRow, RUN_FILE, STATES_FILE, StateRow, TRACES_FILE, TRANSFERS_FILE, TraceRow, TransferRow,
};
pub use steps::{PARQUET_MAGIC, StepSeries};
pub use write::{PacketFile, Row, RowFile};
