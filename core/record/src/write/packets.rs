//! `packets.parquet`.

use crate::RecordError;
use crate::log::{Chunk, NO_WORD, NOT_ARRIVED, PacketLog};
use crate::table::{
    Coding, Column, Data, Kind, TableWriter, Values, added, column, optional, optional_int64,
};
use std::io::Write;
use std::sync::Arc;

/// Encodes packet chunks into `packets.parquet`.
pub struct PacketFile<W> {
    table: TableWriter<W>,
    rows: u64,
    directions: Arc<Vec<String>>,
    fates: Arc<Vec<String>>,
}

/// The schema of `packets.parquet`.
pub(crate) fn columns() -> Vec<Column> {
    vec![
        column("flow", Kind::UInt16, Coding::Words),
        column("direction", Kind::Utf8, Coding::Words),
        column("uid", Kind::UInt64, Coding::Delta),
        column("size_bytes", Kind::UInt32, Coding::Words),
        column("sent_ns", Kind::UInt64, Coding::Delta),
        optional("arrived_ns", Kind::UInt64, Coding::Delta),
        optional("late_ns", Kind::Int64, Coding::Delta),
        column("fate", Kind::Utf8, Coding::Words),
        optional("element", Kind::Utf8, Coding::Words),
        optional("reason", Kind::Utf8, Coding::Words),
        added("copy_of", Kind::UInt64, Coding::Delta),
    ]
}

impl<W: Write + Send + 'static> PacketFile<W> {
    /// Begins a file on `output`.
    pub fn create(output: W) -> Result<Self, RecordError> {
        Ok(PacketFile {
            table: TableWriter::create(output, &columns())?,
            rows: 0,
            directions: Arc::new(["forward", "backward"].map(str::to_owned).into()),
            fates: Arc::new(
                ["delivered", "dropped", "in_flight"]
                    .map(str::to_owned)
                    .into(),
            ),
        })
    }

    /// Appends the rows of `chunk`.
    pub fn write(&mut self, chunk: &Chunk) -> Result<(), RecordError> {
        if chunk.is_empty() {
            return Ok(());
        }
        self.rows += chunk.len() as u64;
        let columns = encode_columns(chunk, &self.directions, &self.fates);
        self.table.write(chunk.len(), &columns)
    }

    /// Writes all full chunks of `log` and returns them to it; drivers call this when
    /// [`PacketLog::has_chunk`] is true.
    pub fn drain(&mut self, log: &mut PacketLog) -> Result<(), RecordError> {
        while let Some(chunk) = log.take() {
            self.write(&chunk)?;
            log.recycle(chunk);
        }
        Ok(())
    }

    /// The number of rows written.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Completes the file and returns the output, flushed.
    pub fn finish(self) -> Result<W, RecordError> {
        self.table.finish()
    }
}

/// The columns of a chunk's rows.
fn encode_columns(
    chunk: &Chunk,
    directions: &Arc<Vec<String>>,
    fates: &Arc<Vec<String>>,
) -> Vec<Values> {
    let direction = chunk.direction.iter().map(|&way| way as u32);
    let fate = chunk.fate.iter().map(|&fate| fate as u32);
    let has_arrived = |&time: &u64| time != NOT_ARRIVED;
    let (arrived_ns, late_ns) = if chunk.arrived_ns.iter().all(has_arrived) {
        (
            encode_u64(&chunk.arrived_ns),
            Data::Int64(chunk.late_ns.clone()).into(),
        )
    } else {
        let times = chunk.arrived_ns.iter();
        let late = times.clone().zip(&chunk.late_ns);
        (
            optional_int64(times.map(|time| has_arrived(time).then_some(*time as i64))),
            optional_int64(late.map(|(time, &late)| has_arrived(time).then_some(late))),
        )
    };
    let originals = chunk.copy_of.iter();
    vec![
        Data::Int32(chunk.flow.iter().map(|&flow| i32::from(flow)).collect()).into(),
        Data::Words(direction.collect(), directions.clone()).into(),
        encode_u64(&chunk.uid),
        Data::Int32(chunk.size_bytes.iter().map(|&size| size as i32).collect()).into(),
        encode_u64(&chunk.sent_ns),
        arrived_ns,
        late_ns,
        Data::Words(fate.collect(), fates.clone()).into(),
        encode_words(&chunk.element, chunk.elements.clone()),
        encode_words(
            &chunk.reason,
            chunk.reasons.iter().map(ToString::to_string).collect(),
        ),
        // Few networks copy packets; without copies the column takes a few bytes per page.
        optional_int64(originals.map(|&uid| (uid != 0).then_some(uid as i64))),
    ]
}

fn encode_u64(numbers: &[u64]) -> Values {
    Data::Int64(numbers.iter().map(|&number| number as i64).collect()).into()
}

/// Indices into `words`; [`NO_WORD`] becomes null.
fn encode_words(indices: &[u16], words: Vec<String>) -> Values {
    let keys = indices
        .iter()
        .map(|&index| (index != NO_WORD).then_some(u32::from(index)));
    Values::words(keys, Arc::new(words))
}
