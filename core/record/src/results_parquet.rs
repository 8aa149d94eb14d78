//! results.parquet of a campaign: a table whose columns are known only at run time.

use crate::RecordError;
use crate::rows::encode_words;
use crate::table::{Coding, Column, Data, Kind, TableWriter, Values};
use std::borrow::Cow;

/// The values of a column: one for each row, or none.
pub enum NamedValues {
    /// Words in UTF-8.
    Text(Vec<Option<String>>),
    /// 64 bits with a sign.
    Integers(Vec<Option<i64>>),
    /// Floating point with 64 bits.
    Numbers(Vec<Option<f64>>),
    /// True or false.
    Flags(Vec<Option<bool>>),
}

impl NamedValues {
    /// The number of rows.
    fn len(&self) -> usize {
        match self {
            NamedValues::Text(rows) => rows.len(),
            NamedValues::Integers(rows) => rows.len(),
            NamedValues::Numbers(rows) => rows.len(),
            NamedValues::Flags(rows) => rows.len(),
        }
    }

    /// The type and encoding of the column, and the values to be written.
    fn encode(&self) -> (Kind, Coding, Values) {
        match self {
            NamedValues::Text(rows) => {
                let values = encode_words(rows.iter().map(Option::as_deref));
                (Kind::Utf8, Coding::Words, values)
            }
            NamedValues::Integers(rows) => (Kind::Int64, Coding::Delta, encode(rows, Data::Int64)),
            NamedValues::Numbers(rows) => {
                (Kind::Float64, Coding::Plain, encode(rows, Data::Double))
            }
            NamedValues::Flags(rows) => (Kind::Boolean, Coding::Plain, encode(rows, Data::Boolean)),
        }
    }
}

/// Values to be written of `rows`.
fn encode<T: Copy>(rows: &[Option<T>], data: fn(Vec<T>) -> Data) -> Values {
    Values {
        data: data(rows.iter().flatten().copied().collect()),
        levels: rows.iter().map(|row| i16::from(row.is_some())).collect(),
    }
}

/// The content of a parquet file of `columns`, all of them nullable, with `entries` (name and text) in its footer.
///
/// # Errors
/// Columns of different lengths, or more than parquet can hold.
pub fn encode_columns(
    columns: Vec<(String, NamedValues)>,
    entries: &[(String, String)],
) -> Result<Vec<u8>, RecordError> {
    let rows = columns.first().map_or(0, |(_, values)| values.len());
    if let Some((name, values)) = columns.iter().find(|(_, values)| values.len() != rows) {
        let problem = format!(
            "the column '{name}' has {} rows instead of {rows}",
            values.len()
        );
        return Err(RecordError::data("table", problem));
    }
    let (schema, values): (Vec<Column>, Vec<Values>) = columns
        .into_iter()
        .map(|(name, values)| {
            let (kind, coding, values) = values.encode();
            let column = Column {
                name: Cow::Owned(name),
                kind,
                nullable: true,
                coding,
                added: false,
            };
            (column, values)
        })
        .unzip();
    let mut table = TableWriter::create(Vec::new(), &schema)?;
    for (name, text) in entries {
        table.describe(name, text);
    }
    table.write(rows, &values)?;
    table.finish()
}
