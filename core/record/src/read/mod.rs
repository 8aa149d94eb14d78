//! Readers. They take bytes, never a path: the agent and the Python module open the files.
//!
//! A file that is damaged, truncated or not a record leads to an error that names it, whatever its
//! bytes are.

mod packets;

pub use crate::schema::{
    read_bins, read_capacity, read_completions, read_delays, read_frames, read_queues, read_states,
    read_traces, read_transfers,
};
pub use packets::PacketReader;

use crate::cell::Cell;
use crate::log::Chunk;
use crate::rows::Row;
use crate::schema::{
    BinRow, CapacityRow, CompletionRow, DelayRow, FrameRow, PACKETS_FILE, QueueRow, RUN_FILE,
    StateRow, TraceRow, TransferRow,
};
use crate::{Content, RecordError, RunDocument};
use bytes::Bytes;
use std::borrow::Cow;

/// The rows of a file; none if the record has no such file.
pub(crate) fn rows_of<R: Clone>(
    content: Option<&Content<R>>,
    read: fn(Content<R>) -> Result<Vec<R>, RecordError>,
) -> Result<Cow<'_, [R]>, RecordError> {
    match content {
        None => Ok(Cow::Borrowed(&[])),
        Some(Content::Rows(rows)) => Ok(Cow::Borrowed(rows)),
        Some(content) => read(content.clone()).map(Cow::Owned),
    }
}

/// The content of the file of one kind of rows, if it exists.
fn rows<R: Row, E>(
    load: &mut impl FnMut(&str) -> Result<Option<Bytes>, E>,
) -> Result<Option<Content<R>>, E> {
    Ok(load(R::FILE)?.map(Content::File))
}

/// All files of a record, or the rows that these would have.
#[derive(Clone, Debug)]
pub struct Record {
    /// `run.json`.
    pub run: RunDocument,
    /// The cell inside it.
    pub cell: Cell,
    /// `packets.parquet`, of `record: packets`.
    pub packets: Option<Content<Chunk>>,
    /// `bins.parquet`, of `record: bins`.
    pub bins: Option<Content<BinRow>>,
    /// `delays.parquet`, of `record: bins`.
    pub delays: Option<Content<DelayRow>>,
    /// `states.parquet`.
    pub states: Option<Content<StateRow>>,
    /// `queues.parquet`.
    pub queues: Option<Content<QueueRow>>,
    /// `traces.parquet`.
    pub traces: Option<Content<TraceRow>>,
    /// `transfers.parquet`.
    pub transfers: Option<Content<TransferRow>>,
    /// `completions.parquet`, of `transfers: bins`.
    pub completions: Option<Content<CompletionRow>>,
    /// `frames.parquet`.
    pub frames: Option<Content<FrameRow>>,
    /// `capacity.parquet`.
    pub capacity: Option<Content<CapacityRow>>,
}

impl Record {
    /// Collects a record; `load` returns the content of the file with the given name, or `None` if
    /// that file does not exist.
    ///
    /// # Errors
    /// Errors of `load`, a missing or wrong `run.json`, or neither packets nor bins.
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
            packets: load(PACKETS_FILE)?.map(Content::File),
            bins: rows(&mut load)?,
            delays: rows(&mut load)?,
            states: rows(&mut load)?,
            queues: rows(&mut load)?,
            traces: rows(&mut load)?,
            transfers: rows(&mut load)?,
            completions: rows(&mut load)?,
            frames: rows(&mut load)?,
            capacity: rows(&mut load)?,
        };
        if record.packets.is_none() && (record.bins.is_none() || record.delays.is_none()) {
            let problem = "the file is missing, and the record has no bins in its place";
            return Err(RecordError::data(PACKETS_FILE, problem).into());
        }
        Ok(record)
    }
}
