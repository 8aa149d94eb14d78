//! `packets.parquet`.

use crate::RecordError;
use crate::log::{Chunk, NO_WORD, NOT_ARRIVED, PacketLog};
use crate::table::{Coding, Column, TableWriter, added, column, optional};
use arrow_array::types::UInt16Type;
use arrow_array::{
    ArrayRef, DictionaryArray, Int64Array, StringArray, UInt8Array, UInt16Array, UInt32Array,
    UInt64Array,
};
use arrow_schema::{ArrowError, DataType};
use std::io::Write;
use std::sync::Arc;

/// Encodes packet chunks into `packets.parquet`.
pub struct PacketFile<W> {
    table: TableWriter<W>,
    rows: u64,
    directions: Arc<StringArray>,
    fates: Arc<StringArray>,
}

fn words_type<K: Into<DataType>>(key: K) -> DataType {
    DataType::Dictionary(Box::new(key.into()), Box::new(DataType::Utf8))
}

/// The schema of `packets.parquet`.
pub(crate) fn columns() -> Vec<Column> {
    vec![
        column("flow", DataType::UInt16, Coding::Words),
        column("direction", words_type(DataType::UInt8), Coding::Words),
        column("uid", DataType::UInt64, Coding::Delta),
        column("size_bytes", DataType::UInt32, Coding::Words),
        column("sent_ns", DataType::UInt64, Coding::Delta),
        optional("arrived_ns", DataType::UInt64, Coding::Delta),
        optional("late_ns", DataType::Int64, Coding::Delta),
        column("fate", words_type(DataType::UInt8), Coding::Words),
        optional("element", words_type(DataType::UInt16), Coding::Words),
        optional("reason", words_type(DataType::UInt16), Coding::Words),
        added("copy_of", DataType::UInt64, Coding::Delta),
    ]
}

impl<W: Write + Send + 'static> PacketFile<W> {
    /// Begins a file on `output`.
    pub fn create(output: W) -> Result<Self, RecordError> {
        Ok(PacketFile {
            table: TableWriter::create(output, &columns())?,
            rows: 0,
            directions: Arc::new(StringArray::from(vec!["forward", "backward"])),
            fates: Arc::new(StringArray::from(vec!["delivered", "dropped", "in_flight"])),
        })
    }

    /// Appends the rows of `chunk`.
    pub fn write(&mut self, chunk: &Chunk) -> Result<(), RecordError> {
        if chunk.is_empty() {
            return Ok(());
        }
        let arrays = encode_columns(chunk, &self.directions, &self.fates);
        self.rows += chunk.len() as u64;
        self.table
            .write(arrays.map_err(|e| RecordError::Encode(e.to_string()))?)
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
    directions: &Arc<StringArray>,
    fates: &Arc<StringArray>,
) -> Result<Vec<ArrayRef>, ArrowError> {
    let direction = chunk.direction.iter().map(|&d| d as u8);
    let direction = UInt8Array::from_iter_values(direction);
    let direction = DictionaryArray::try_new(direction, directions.clone())?;
    let fate = chunk.fate.iter().map(|&f| f as u8);
    let fate = UInt8Array::from_iter_values(fate);
    let fate = DictionaryArray::try_new(fate, fates.clone())?;
    let arrived = |i: usize| chunk.arrived_ns[i] != NOT_ARRIVED;
    let all_arrived = chunk.arrived_ns.iter().all(|&t| t != NOT_ARRIVED);
    let times = chunk
        .arrived_ns
        .iter()
        .map(|&t| (t != NOT_ARRIVED).then_some(t));
    let late = chunk
        .late_ns
        .iter()
        .enumerate()
        .map(|(i, &l)| arrived(i).then_some(l));
    let (arrived_ns, late_ns): (ArrayRef, ArrayRef) = if all_arrived {
        (
            Arc::new(UInt64Array::from(chunk.arrived_ns.clone())),
            Arc::new(Int64Array::from(chunk.late_ns.clone())),
        )
    } else {
        (
            Arc::new(times.collect::<UInt64Array>()),
            Arc::new(late.collect::<Int64Array>()),
        )
    };
    // Few networks copy packets; without copies the column takes a few bytes per page.
    let copies: UInt64Array = if chunk.copy_of.iter().all(|&uid| uid == 0) {
        UInt64Array::new_null(chunk.len())
    } else {
        let originals = chunk.copy_of.iter();
        originals.map(|&uid| (uid != 0).then_some(uid)).collect()
    };
    Ok(vec![
        Arc::new(UInt16Array::from(chunk.flow.clone())),
        Arc::new(direction),
        Arc::new(UInt64Array::from(chunk.uid.clone())),
        Arc::new(UInt32Array::from(chunk.size_bytes.clone())),
        Arc::new(UInt64Array::from(chunk.sent_ns.clone())),
        arrived_ns,
        late_ns,
        Arc::new(fate),
        words(&chunk.element, chunk.elements.iter().map(String::as_str))?,
        words(&chunk.reason, chunk.reasons.iter().map(AsRef::as_ref))?,
        Arc::new(copies),
    ])
}

/// Indices into `names` as a column of words; [`NO_WORD`] becomes null.
fn words<'a>(
    indices: &[u16],
    names: impl Iterator<Item = &'a str>,
) -> Result<ArrayRef, ArrowError> {
    let keys: UInt16Array = indices
        .iter()
        .map(|&index| (index != NO_WORD).then_some(index))
        .collect();
    let names: StringArray = names.map(Some).collect();
    Ok(Arc::new(DictionaryArray::<UInt16Type>::try_new(
        keys,
        Arc::new(names),
    )?))
}
