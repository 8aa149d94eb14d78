//! Reads `packets.parquet`.

use crate::log::{Chunk, NO_WORD, NOT_ARRIVED};
use crate::schema::{Direction, Fate, PACKETS_FILE};
use crate::table::{Column, TableReader, damage_error, whole};
use crate::write::packet_columns;
use crate::{Content, RecordError};
use arrow_array::types::Int32Type;
use arrow_array::{
    Array, DictionaryArray, Int64Array, RecordBatch, StringArray, UInt16Array, UInt32Array,
    UInt64Array,
};
use arrow_schema::DataType;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

type Words = DictionaryArray<Int32Type>;

/// Index of the column that files of the first release do not have.
const COPY_OF: usize = 10;

/// Reads packet rows in chunks.
pub struct PacketReader(Source);

enum Source {
    File(TableReader, Vec<Column>),
    /// Chunks that were never written, and the index of the next one.
    Chunks(Arc<Vec<Chunk>>, usize),
}

impl PacketReader {
    /// Opens the content of `packets.parquet`.
    ///
    /// # Errors
    /// A damaged file or missing columns.
    pub fn open(content: impl Into<Content<Chunk>>) -> Result<Self, RecordError> {
        let bytes = match content.into() {
            Content::File(bytes) => bytes,
            Content::Rows(chunks) => return Ok(PacketReader(Source::Chunks(chunks, 0))),
        };
        let mut columns = packet_columns();
        for column in &mut columns {
            if let DataType::Dictionary(key, value) = &mut column.kind {
                if column.nullable {
                    // For a page without any word, the decoder would build a dictionary row by row.
                    column.kind = (**value).clone();
                } else {
                    // One key type for all; a foreign writer may have more words than 256.
                    **key = DataType::Int32;
                }
            }
        }
        let table = TableReader::open(PACKETS_FILE, bytes, &columns)?;
        Ok(PacketReader(Source::File(table, columns)))
    }

    /// The number of rows in the file.
    pub fn rows(&self) -> u64 {
        match &self.0 {
            Source::File(table, _) => table.rows(),
            Source::Chunks(chunks, _) => chunks.iter().map(|chunk| chunk.len() as u64).sum(),
        }
    }

    /// Replaces the content of `chunk` by the next rows; `false` at the end of the file.
    ///
    /// # Errors
    /// A damaged file, or values that the format does not know.
    pub fn next(&mut self, chunk: &mut Chunk) -> Result<bool, RecordError> {
        chunk.clear();
        chunk.elements.clear();
        chunk.reasons.clear();
        match &mut self.0 {
            Source::File(table, columns) => {
                let Some(batch) = table.next()? else {
                    return Ok(false);
                };
                Decoder(columns).fill(&batch, chunk)?;
            }
            Source::Chunks(chunks, next) => {
                let Some(kept) = chunks.get(*next) else {
                    return Ok(false);
                };
                chunk.clone_from(kept);
                *next += 1;
            }
        }
        Ok(true)
    }
}

/// Turns batches of these columns into chunks.
struct Decoder<'c>(&'c [Column]);

impl Decoder<'_> {
    fn column<'a, A: Array + 'static>(
        &self,
        batch: &'a RecordBatch,
        index: usize,
    ) -> Result<&'a A, RecordError> {
        whole(PACKETS_FILE, batch, self.0, index)
    }

    fn fill(&self, batch: &RecordBatch, chunk: &mut Chunk) -> Result<(), RecordError> {
        chunk
            .flow
            .extend_from_slice(self.column::<UInt16Array>(batch, 0)?.values());
        decode(
            self.column(batch, 1)?,
            "direction",
            Direction::from_word,
            &mut chunk.direction,
        )?;
        chunk
            .uid
            .extend_from_slice(self.column::<UInt64Array>(batch, 2)?.values());
        chunk
            .size_bytes
            .extend_from_slice(self.column::<UInt32Array>(batch, 3)?.values());
        chunk
            .sent_ns
            .extend_from_slice(self.column::<UInt64Array>(batch, 4)?.values());
        let arrived = self.column::<UInt64Array>(batch, 5)?;
        let late = self.column::<Int64Array>(batch, 6)?;
        match (arrived.nulls(), late.nulls()) {
            (None, None) => {
                chunk.arrived_ns.extend_from_slice(arrived.values());
                chunk.late_ns.extend_from_slice(late.values());
            }
            (one, other) if one == other => {
                chunk
                    .arrived_ns
                    .extend(arrived.iter().map(|t| t.unwrap_or(NOT_ARRIVED)));
                chunk.late_ns.extend(late.iter().map(|t| t.unwrap_or(0)));
            }
            _ => {
                let problem = "'late_ns' must be given exactly where 'arrived_ns' is";
                return Err(RecordError::data(PACKETS_FILE, problem));
            }
        }
        decode(
            self.column(batch, 7)?,
            "fate",
            Fate::from_word,
            &mut chunk.fate,
        )?;
        names(self.column(batch, 8)?, &mut chunk.element, |name| {
            chunk.elements.push(name.to_owned());
        })?;
        names(self.column(batch, 9)?, &mut chunk.reason, |word| {
            chunk.reasons.push(Cow::Owned(word.to_owned()));
        })?;
        if batch.num_columns() > COPY_OF {
            let originals = self.column::<UInt64Array>(batch, COPY_OF)?;
            chunk
                .copy_of
                .extend(originals.iter().map(|uid| uid.unwrap_or(0)));
        } else {
            chunk.copy_of.resize(chunk.uid.len(), 0);
        }
        Ok(())
    }
}

fn dictionary<'a>(column: &'a Words, name: &str) -> Result<&'a StringArray, RecordError> {
    let words = column.values().as_any().downcast_ref::<StringArray>();
    words.ok_or_else(|| damage_error(PACKETS_FILE, &format!("column '{name}' of the wrong type")))
}

/// Words that represent values of an enumeration.
fn decode<T: Copy>(
    column: &Words,
    name: &str,
    known: impl Fn(&str) -> Option<T>,
    out: &mut Vec<T>,
) -> Result<(), RecordError> {
    let words = dictionary(column, name)?;
    let table: Vec<Option<T>> = words.iter().map(|word| word.and_then(&known)).collect();
    for &key in column.keys().values() {
        let Some(value) = table.get(key as usize).copied().flatten() else {
            let word = words.iter().nth(key as usize).flatten().unwrap_or("");
            let problem = format!("the column '{name}' holds the unknown word '{word}'");
            return Err(RecordError::data(PACKETS_FILE, problem));
        };
        out.push(value);
    }
    Ok(())
}

/// Words that are names; null becomes [`NO_WORD`].
fn names(
    column: &StringArray,
    out: &mut Vec<u16>,
    mut add: impl FnMut(&str),
) -> Result<(), RecordError> {
    if column.null_count() == column.len() {
        out.resize(out.len() + column.len(), NO_WORD);
        return Ok(());
    }
    let mut known: BTreeMap<&str, u16> = BTreeMap::new();
    for name in column {
        let index = match name {
            None => NO_WORD,
            Some(name) => {
                let next = known.len() as u16;
                *known.entry(name).or_insert_with(|| {
                    add(name);
                    next
                })
            }
        };
        if known.len() >= usize::from(NO_WORD) {
            return Err(RecordError::data(PACKETS_FILE, "too many different names"));
        }
        out.push(index);
    }
    Ok(())
}
