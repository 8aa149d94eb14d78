//! Readers. They take bytes, never a path: the agent and the Python module open the files.
//!
//! A file that is damaged, cut off or not a record gives an error that names it, whatever its
//! bytes are.

mod packets;
mod panics;
mod table;

pub use crate::schema::{
    read_bins, read_capacity, read_completions, read_delays, read_frames, read_queues, read_states,
    read_traces, read_transfers,
};
pub use packets::PacketReader;
pub(crate) use panics::guarded;
pub(crate) use table::{TableReader, damaged, whole};

use crate::cell::Cell;
use crate::schema::{
    BINS_FILE, CAPACITY_FILE, COMPLETIONS_FILE, DELAYS_FILE, FRAMES_FILE, PACKETS_FILE,
    QUEUES_FILE, RUN_FILE, STATES_FILE, TRACES_FILE, TRANSFERS_FILE,
};
use crate::{RecordError, RunDocument};
use bytes::Bytes;

/// The rows of a file; none if the record has no such file.
pub(crate) fn rows_of<R>(
    file: Option<&Bytes>,
    read: fn(Bytes) -> Result<Vec<R>, RecordError>,
) -> Result<Vec<R>, RecordError> {
    file.cloned().map_or(Ok(Vec::new()), read)
}

/// All files of a record.
#[derive(Clone, Debug)]
pub struct Record {
    /// `run.json`.
    pub run: RunDocument,
    /// The cell inside it.
    pub cell: Cell,
    /// `packets.parquet`, of `record: packets`.
    pub packets: Option<Bytes>,
    /// `bins.parquet`, of `record: bins`.
    pub bins: Option<Bytes>,
    /// `delays.parquet`, of `record: bins`.
    pub delays: Option<Bytes>,
    /// `states.parquet`.
    pub states: Option<Bytes>,
    /// `queues.parquet`.
    pub queues: Option<Bytes>,
    /// `traces.parquet`.
    pub traces: Option<Bytes>,
    /// `transfers.parquet`.
    pub transfers: Option<Bytes>,
    /// `completions.parquet`, of `transfers: bins`.
    pub completions: Option<Bytes>,
    /// `frames.parquet`.
    pub frames: Option<Bytes>,
    /// `capacity.parquet`.
    pub capacity: Option<Bytes>,
}

impl Record {
    /// Collects a record; `load` returns the content of the file with the given name, or `None`
    /// if there is no such file.
    ///
    /// # Errors
    /// Whatever `load` reports, a missing or wrong `run.json`, neither packets nor bins.
    pub fn load<E: From<RecordError>>(
        mut load: impl FnMut(&str) -> Result<Option<Bytes>, E>,
    ) -> Result<Self, E> {
        let text = load(RUN_FILE)?.ok_or_else(|| {
            RecordError::data(
                RUN_FILE,
                "the file is missing, so this is not the record of a run",
            )
        })?;
        let run = RunDocument::parse(&text)?;
        let cell = Cell::parse(&run.cell)?;
        let record = Record {
            run,
            cell,
            packets: load(PACKETS_FILE)?,
            bins: load(BINS_FILE)?,
            delays: load(DELAYS_FILE)?,
            states: load(STATES_FILE)?,
            queues: load(QUEUES_FILE)?,
            traces: load(TRACES_FILE)?,
            transfers: load(TRANSFERS_FILE)?,
            completions: load(COMPLETIONS_FILE)?,
            frames: load(FRAMES_FILE)?,
            capacity: load(CAPACITY_FILE)?,
        };
        if record.packets.is_none() && (record.bins.is_none() || record.delays.is_none()) {
            let problem = "the file is missing, and there are no bins in its place";
            return Err(RecordError::data(PACKETS_FILE, problem).into());
        }
        Ok(record)
    }
}
