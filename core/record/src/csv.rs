//! The columnar files of a record as text: comma-separated values with a header line.
//!
//! Numbers are written unchanged, words without quotes unless they contain commas or quotes, absent values as empty
//! fields. Spreadsheets interpret a word that begins with `=`, `+`, `-` or `@` as a formula, so such a word is prefixed
//! with an apostrophe.

use crate::read::Record;
use crate::rows::Row;
use crate::schema::PACKETS_FILE;
use crate::table::{Column, Kind, TableReader, Values};
use crate::write::packet_columns;
use crate::{Content, RecordError};
use bytes::Bytes;
use std::io::Write;

/// Bytes that are buffered before they are written.
const BLOCK: usize = 1 << 20;

/// A file of a record with its content, if the record has it.
type File<'a> = (&'static str, Option<&'a Bytes>, fn() -> Vec<Column>);

fn rows<R: Row>(content: Option<&Content<R>>) -> File<'_> {
    (R::FILE, content.and_then(Content::file), R::columns)
}

fn files(record: &Record) -> [File<'_>; 10] {
    let packets = record.packets.as_ref().and_then(Content::file);
    [
        (PACKETS_FILE, packets, packet_columns),
        rows(record.bins.as_ref()),
        rows(record.delays.as_ref()),
        rows(record.states.as_ref()),
        rows(record.traces.as_ref()),
        rows(record.queues.as_ref()),
        rows(record.transfers.as_ref()),
        rows(record.completions.as_ref()),
        rows(record.frames.as_ref()),
        rows(record.capacity.as_ref()),
    ]
}

/// The names of the columnar files that the record has.
pub fn tables(record: &Record) -> Vec<&'static str> {
    let there = files(record).into_iter().filter(|file| file.1.is_some());
    there.map(|file| file.0).collect()
}

/// Writes the columnar file called `file` as text and returns its number of rows.
///
/// # Errors
/// A file that is damaged or does not exist, or an output that cannot be written.
pub fn write(record: &Record, file: &str, out: &mut impl Write) -> Result<u64, RecordError> {
    let found = files(record).into_iter().find(|one| one.0 == file);
    let Some((file, Some(bytes), columns)) = found else {
        return Err(RecordError::data(file, "the record has no such table"));
    };
    let columns = columns();
    let mut table = TableReader::open(file, bytes.clone(), &columns)?;
    let mut text: Vec<u8> = Vec::with_capacity(BLOCK + 4096);
    let mut rows = 0;
    let mut named = false;
    while let Some(batch) = table.next()? {
        if !named {
            heading(&mut text, &columns[..batch.columns.len()]);
            named = true;
        }
        let kinds = columns.iter().map(|column| column.kind);
        let cells: Vec<_> = batch.columns.iter().zip(kinds).collect();
        for row in 0..batch.rows {
            for (index, (values, kind)) in cells.iter().enumerate() {
                if index > 0 {
                    text.push(b',');
                }
                write_cell(values, *kind, row, &mut text);
            }
            text.push(b'\n');
            if text.len() >= BLOCK {
                out.write_all(&text)?;
                text.clear();
            }
        }
        rows += batch.rows as u64;
    }
    if !named {
        heading(&mut text, &columns);
    }
    out.write_all(&text)?;
    Ok(rows)
}

fn heading(text: &mut Vec<u8>, columns: &[Column]) {
    let names: Vec<&str> = columns.iter().map(|column| &*column.name).collect();
    text.extend(names.join(",").as_bytes());
    text.push(b'\n');
}

/// Appends the value of a row of one column.
fn write_cell(values: &Values, kind: Kind, row: usize, text: &mut Vec<u8>) {
    if !values.is_valid(row) {
        return;
    }
    // Writing to memory does not fail.
    let _ = match kind {
        Kind::UInt16 | Kind::UInt32 => write!(text, "{}", values.int32()[row] as u32),
        Kind::Int32 => write!(text, "{}", values.int32()[row]),
        Kind::UInt64 => write!(text, "{}", values.int64()[row] as u64),
        Kind::Int64 => write!(text, "{}", values.int64()[row]),
        Kind::Float64 => write!(text, "{}", values.double()[row]),
        Kind::Boolean => write!(text, "{}", values.boolean()[row]),
        Kind::Utf8 => {
            write_quoted(values.word(row), text);
            Ok(())
        }
    };
}

fn write_quoted(word: &str, text: &mut Vec<u8>) {
    let formula = word.starts_with(['=', '+', '-', '@', '\t', '\r', '\n']);
    let mark = if formula && !is_number(word) { "'" } else { "" };
    if word.contains([',', '"', '\n', '\r']) {
        text.push(b'"');
        text.extend(mark.as_bytes());
        text.extend(word.replace('"', "\"\"").as_bytes());
        text.push(b'"');
    } else {
        text.extend(mark.as_bytes());
        text.extend(word.as_bytes());
    }
}

/// True for digits with a sign, a point and an exponent, which no spreadsheet evaluates.
fn is_number(word: &str) -> bool {
    word.parse::<f64>().is_ok_and(f64::is_finite)
}

#[cfg(test)]
mod tests {
    use super::write_quoted;

    #[test]
    fn words_that_spreadsheets_would_compute_have_an_apostrophe() {
        let written = |word: &str| {
            let mut text = Vec::new();
            write_quoted(word, &mut text);
            String::from_utf8(text).unwrap()
        };
        for word in ["=1+1", "+a", "-a", "@a", "\tx", "-", "-1+2", "-inf"] {
            assert_eq!(written(word), format!("'{word}"));
        }
        assert_eq!(written("=A1,B1"), "\"'=A1,B1\"");
        assert_eq!(written("\r=1"), "\"'\r=1\"");
        for word in ["", "cubic", "a=b", "-1.5", "+2", "-1e-3", "'x"] {
            assert_eq!(written(word), word);
        }
    }
}
