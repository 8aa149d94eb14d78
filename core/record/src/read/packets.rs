//! Reads `packets.parquet`.

use crate::log::{Chunk, NO_WORD, NOT_ARRIVED};
use crate::schema::{Direction, Fate, PACKETS_FILE};
use crate::table::{Batch, TableReader, Values};
use crate::write::packet_columns;
use crate::{Content, RecordError};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Index of the column that files of the first release do not have.
const COPY_OF: usize = 10;

/// Reads packet rows in chunks.
pub struct PacketReader(Source);

enum Source {
    File(TableReader),
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
        let table = TableReader::open(PACKETS_FILE, bytes, &packet_columns())?;
        Ok(PacketReader(Source::File(table)))
    }

    /// The number of rows in the file.
    pub fn rows(&self) -> u64 {
        match &self.0 {
            Source::File(table) => table.rows(),
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
            Source::File(table) => {
                let Some(batch) = table.next()? else {
                    return Ok(false);
                };
                fill(chunk, &batch)?;
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

/// Appends the rows of a batch to a chunk.
fn fill(chunk: &mut Chunk, batch: &Batch) -> Result<(), RecordError> {
    let columns = &batch.columns;
    chunk
        .flow
        .extend(columns[0].int32().iter().map(|&flow| flow as u16));
    decode(
        &columns[1],
        "direction",
        Direction::from_word,
        &mut chunk.direction,
    )?;
    extend_u64(&mut chunk.uid, &columns[2]);
    chunk
        .size_bytes
        .extend(columns[3].int32().iter().map(|&size| size as u32));
    extend_u64(&mut chunk.sent_ns, &columns[4]);
    let (arrived, late) = (&columns[5], &columns[6]);
    if arrived.levels != late.levels {
        let problem = "'late_ns' must be given exactly where 'arrived_ns' is";
        return Err(RecordError::data(PACKETS_FILE, problem));
    }
    extend_u64(&mut chunk.arrived_ns, arrived);
    chunk.late_ns.extend_from_slice(late.int64());
    for (row, &level) in arrived.levels.iter().enumerate() {
        if level == 0 {
            chunk.arrived_ns[row] = NOT_ARRIVED;
            chunk.late_ns[row] = 0;
        }
    }
    decode(&columns[7], "fate", Fate::from_word, &mut chunk.fate)?;
    names(&columns[8], &mut chunk.element, |name| {
        chunk.elements.push(name.to_owned());
    })?;
    names(&columns[9], &mut chunk.reason, |word| {
        chunk.reasons.push(Cow::Owned(word.to_owned()));
    })?;
    match columns.get(COPY_OF) {
        Some(originals) if !originals.is_all_null() => {
            extend_u64(&mut chunk.copy_of, originals);
            for (row, &level) in originals.levels.iter().enumerate() {
                if level == 0 {
                    chunk.copy_of[row] = 0;
                }
            }
        }
        _ => chunk.copy_of.resize(batch.rows, 0),
    }
    Ok(())
}

fn extend_u64(out: &mut Vec<u64>, column: &Values) {
    out.extend(column.int64().iter().map(|&number| number as u64));
}

/// Words that represent values of an enumeration.
fn decode<T: Copy>(
    column: &Values,
    name: &str,
    known: impl Fn(&str) -> Option<T>,
    out: &mut Vec<T>,
) -> Result<(), RecordError> {
    let (keys, words) = column.keys();
    let table: Vec<Option<T>> = words.iter().map(|word| known(word)).collect();
    for &key in keys {
        let Some(value) = table[key as usize] else {
            let word = &words[key as usize];
            let problem = format!("the column '{name}' holds the unknown word '{word}'");
            return Err(RecordError::data(PACKETS_FILE, problem));
        };
        out.push(value);
    }
    Ok(())
}

/// Words that are names, each of which is added once; null becomes [`NO_WORD`].
fn names(
    column: &Values,
    out: &mut Vec<u16>,
    mut add: impl FnMut(&str),
) -> Result<(), RecordError> {
    let (keys, words) = column.keys();
    if column.is_all_null() {
        out.resize(out.len() + keys.len(), NO_WORD);
        return Ok(());
    }
    // Two words of a file may be the same.
    let mut known: BTreeMap<&str, u16> = BTreeMap::new();
    let mut indices = vec![NO_WORD; words.len()];
    for (row, &key) in keys.iter().enumerate() {
        if !column.is_valid(row) {
            out.push(NO_WORD);
            continue;
        }
        let index = &mut indices[key as usize];
        if *index == NO_WORD {
            let next = known.len() as u16;
            let word = words[key as usize].as_str();
            *index = *known.entry(word).or_insert_with(|| {
                add(word);
                next
            });
            if known.len() >= usize::from(NO_WORD) {
                return Err(RecordError::data(PACKETS_FILE, "too many different names"));
            }
        }
        out.push(*index);
    }
    Ok(())
}
