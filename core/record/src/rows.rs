//! The files with few rows: states, queues, traces, transfers, completions, frames, capacity, bins and delays.
//!
//! A kind of row is declared once, with `rows!` in `schema.rs`, which generates the struct, the columns of its file, a
//! writer to which rows are pushed one by one, and a reader. The type of a field determines how its column is stored.

use crate::table::{
    Batch, Coding, Column, Data, Kind, TableReader, TableWriter, Values, optional_int64,
};
use crate::{Content, RecordError};
use bytes::Bytes;
use narrows_units::Direction;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::Write;
use std::sync::Arc;

/// Rows that are encoded and decoded together.
pub(crate) const BATCH: usize = 1024;

/// A kind of rows, as `rows!` declares them in `schema.rs`.
pub trait Row: Sized {
    /// Name of its file.
    const FILE: &'static str;
    /// Its columns.
    #[doc(hidden)]
    fn columns() -> Vec<Column>;
    /// Its columns with the values of `rows`.
    #[doc(hidden)]
    fn encode(rows: &[Self]) -> Vec<Values>;
    /// Appends the rows of a batch, which has the columns of [`Row::columns`].
    #[doc(hidden)]
    fn decode(batch: &Batch, rows: &mut Vec<Self>) -> Result<(), RecordError>;
}

/// A type of fields: how its column is stored.
pub(crate) trait Field: Sized {
    const KIND: Kind;
    const NULLABLE: bool = false;
    const CODING: Coding;

    fn encode<'a>(fields: impl Iterator<Item = &'a Self>) -> Values
    where
        Self: 'a;

    /// The value of a row, or the problem with it.
    fn decode(values: &Values, row: usize) -> Result<Self, String>;

    /// The value, if it is an optional number.
    fn number(&self) -> Option<u64> {
        None
    }

    /// True for numbers and flags.
    const NUMERIC: bool = false;

    /// The value of a number or a flag (1 or 0); NaN where it is absent.
    fn real(&self) -> f64 {
        f64::NAN
    }
}

macro_rules! numbers {
    ($($kind:ty, $name:ident, $data:ident, $bits:ty, $values:ident, $coding:ident;)*) => {$(
        impl Field for $kind {
            const KIND: Kind = Kind::$name;
            const CODING: Coding = Coding::$coding;

            fn encode<'a>(fields: impl Iterator<Item = &'a Self>) -> Values {
                Data::$data(fields.map(|&value| value as $bits).collect()).into()
            }

            fn decode(values: &Values, row: usize) -> Result<Self, String> {
                Ok(values.$values()[row] as $kind)
            }

            const NUMERIC: bool = true;

            fn real(&self) -> f64 {
                *self as f64
            }
        }
    )*};
}

numbers!(
    u16, UInt16, Int32, i32, int32, Words;
    u32, UInt32, Int32, i32, int32, Delta;
    u64, UInt64, Int64, i64, int64, Delta;
    f64, Float64, Double, f64, double, Plain;
);

impl Field for Option<u64> {
    const KIND: Kind = Kind::UInt64;
    const NULLABLE: bool = true;
    const CODING: Coding = Coding::Delta;

    fn encode<'a>(fields: impl Iterator<Item = &'a Self>) -> Values {
        optional_int64(fields.map(|number| number.map(|number| number as i64)))
    }

    fn decode(values: &Values, row: usize) -> Result<Self, String> {
        Ok(values.is_valid(row).then(|| values.int64()[row] as u64))
    }

    fn number(&self) -> Option<u64> {
        *self
    }

    const NUMERIC: bool = true;

    fn real(&self) -> f64 {
        self.map_or(f64::NAN, |number| number as f64)
    }
}

impl Field for bool {
    const KIND: Kind = Kind::Boolean;
    const CODING: Coding = Coding::Plain;

    fn encode<'a>(fields: impl Iterator<Item = &'a Self>) -> Values {
        Data::Boolean(fields.copied().collect()).into()
    }

    fn decode(values: &Values, row: usize) -> Result<Self, String> {
        Ok(values.boolean()[row])
    }

    const NUMERIC: bool = true;

    fn real(&self) -> f64 {
        f64::from(u8::from(*self))
    }
}

impl Field for String {
    const KIND: Kind = Kind::Utf8;
    const CODING: Coding = Coding::Words;

    fn encode<'a>(fields: impl Iterator<Item = &'a Self>) -> Values {
        encode_words(fields.map(|word| Some(word.as_str())))
    }

    fn decode(values: &Values, row: usize) -> Result<Self, String> {
        Ok(values.word(row).to_owned())
    }
}

impl Field for Option<String> {
    const KIND: Kind = Kind::Utf8;
    const NULLABLE: bool = true;
    const CODING: Coding = Coding::Words;

    fn encode<'a>(fields: impl Iterator<Item = &'a Self>) -> Values {
        encode_words(fields.map(Option::as_deref))
    }

    fn decode(values: &Values, row: usize) -> Result<Self, String> {
        Ok(values.is_valid(row).then(|| values.word(row).to_owned()))
    }
}

impl Field for Direction {
    const KIND: Kind = Kind::Utf8;
    const CODING: Coding = Coding::Words;

    fn encode<'a>(fields: impl Iterator<Item = &'a Self>) -> Values {
        encode_words(fields.map(|way| Some(way.word())))
    }

    fn decode(values: &Values, row: usize) -> Result<Self, String> {
        let word = values.word(row);
        Direction::from_word(word).ok_or_else(|| format!("the direction '{word}' is unknown"))
    }
}

/// Words of rows, each different word once.
pub(crate) fn encode_words<'a>(rows: impl Iterator<Item = Option<&'a str>>) -> Values {
    let mut words: Vec<String> = Vec::new();
    let mut indices: BTreeMap<&str, u32> = BTreeMap::new();
    let keys: Vec<Option<u32>> = rows
        .map(|word| {
            let word = word?;
            Some(*indices.entry(word).or_insert_with(|| {
                words.push(word.to_owned());
                words.len() as u32 - 1
            }))
        })
        .collect();
    Values::words(keys.into_iter(), Arc::new(words))
}

/// The column of fields of type `F`.
pub(crate) fn column<F: Field>(name: &'static str) -> Column {
    Column {
        name: Cow::Borrowed(name),
        kind: F::KIND,
        nullable: F::NULLABLE,
        coding: F::CODING,
        added: false,
    }
}

/// Writes a file of rows of one kind.
pub struct RowFile<W, R> {
    table: TableWriter<W>,
    rows: Vec<R>,
}

impl<W: Write + Send + 'static, R: Row> RowFile<W, R> {
    /// Begins a file on `output`.
    ///
    /// # Errors
    /// Writing fails.
    pub fn create(output: W) -> Result<Self, RecordError> {
        let table = TableWriter::create(output, &R::columns())?;
        let rows = Vec::new();
        Ok(RowFile { table, rows })
    }

    /// Appends a row.
    ///
    /// # Errors
    /// Writing fails.
    pub fn push(&mut self, row: R) -> Result<(), RecordError> {
        self.rows.push(row);
        if self.rows.len() == BATCH {
            self.encode()?;
        }
        Ok(())
    }

    fn encode(&mut self) -> Result<(), RecordError> {
        if !self.rows.is_empty() {
            self.table.write(self.rows.len(), &R::encode(&self.rows))?;
            self.rows.clear();
        }
        Ok(())
    }

    /// Completes the file and returns the output, flushed.
    ///
    /// # Errors
    /// Writing fails.
    pub fn finish(mut self) -> Result<W, RecordError> {
        self.encode()?;
        self.table.finish()
    }
}

/// The rows of a file.
pub(crate) fn read<R: Row + Clone>(content: Content<R>) -> Result<Vec<R>, RecordError> {
    match content {
        Content::File(bytes) => {
            let mut rows = Vec::new();
            in_batches(bytes, |batch| rows.append(batch))?;
            Ok(rows)
        }
        Content::Rows(rows) => Ok(Arc::unwrap_or_clone(rows)),
    }
}

/// Calls a function for each row of a file, without keeping all rows in memory.
pub(crate) fn for_each<R: Row>(
    content: Option<&Content<R>>,
    mut see: impl FnMut(&R),
) -> Result<(), RecordError> {
    match content {
        None => Ok(()),
        Some(Content::Rows(rows)) => {
            rows.iter().for_each(see);
            Ok(())
        }
        Some(Content::File(bytes)) => in_batches(bytes.clone(), |batch| {
            batch.iter().for_each(&mut see);
        }),
    }
}

/// Decodes a file batch by batch; rows left in the batch are discarded.
fn in_batches<R: Row>(bytes: Bytes, mut see: impl FnMut(&mut Vec<R>)) -> Result<(), RecordError> {
    let mut table = TableReader::open_in(R::FILE, bytes, &R::columns(), BATCH)?;
    let mut rows = Vec::with_capacity(BATCH);
    while let Some(batch) = table.next()? {
        rows.clear();
        R::decode(&batch, &mut rows)?;
        see(&mut rows);
    }
    Ok(())
}

/// Declares kinds of rows: `struct NAME in FILE, read by READER { fields }`.
macro_rules! rows {
    ($(
        $(#[$meta:meta])*
        pub struct $row:ident in $file:ident, $read:vis $reader:ident {
            $($(#[$doc:meta])* pub $field:ident: $kind:ty,)*
        }
    )*) => {$(
        $(#[$meta])*
        pub struct $row {
            $($(#[$doc])* pub $field: $kind,)*
        }

        impl $row {
            /// Names and values of the optional numbers, in the order of the file.
            pub fn optional_numbers() -> impl Iterator<Item = (&'static str, fn(&Self) -> Option<u64>)> {
                let fields: Vec<(bool, &'static str, fn(&Self) -> Option<u64>)> = vec![$((
                    <$kind as $crate::rows::Field>::NULLABLE
                        && <$kind as $crate::rows::Field>::KIND == $crate::table::Kind::UInt64,
                    stringify!($field),
                    |row| $crate::rows::Field::number(&row.$field),
                )),*];
                fields.into_iter().filter_map(|(number, name, value)| number.then_some((name, value)))
            }

            /// Names and values of all numbers and flags, in the order of the file.
            pub fn numbers() -> impl Iterator<Item = (&'static str, fn(&Self) -> f64)> {
                let fields: Vec<(bool, &'static str, fn(&Self) -> f64)> = vec![$((
                    <$kind as $crate::rows::Field>::NUMERIC,
                    stringify!($field),
                    |row| $crate::rows::Field::real(&row.$field),
                )),*];
                fields.into_iter().filter_map(|(number, name, value)| number.then_some((name, value)))
            }
        }

        impl $crate::rows::Row for $row {
            const FILE: &'static str = $file;

            fn columns() -> Vec<$crate::table::Column> {
                vec![$($crate::rows::column::<$kind>(stringify!($field))),*]
            }

            fn encode(rows: &[Self]) -> Vec<$crate::table::Values> {
                vec![$(<$kind as $crate::rows::Field>::encode(rows.iter().map(|row| &row.$field))),*]
            }

            fn decode(batch: &$crate::table::Batch, rows: &mut Vec<Self>) -> Result<(), $crate::RecordError> {
                let mut columns = batch.columns.iter();
                $(let $field = columns.next().expect("a batch has all columns");)*
                let problem = |problem: String| $crate::RecordError::data($file, problem);
                for row in 0..batch.rows {
                    rows.push($row {
                        $($field: <$kind as $crate::rows::Field>::decode($field, row).map_err(problem)?,)*
                    });
                }
                Ok(())
            }
        }

        #[doc = concat!("Reads a file of [`", stringify!($row), "`]s.")]
        $read fn $reader(
            content: impl Into<$crate::Content<$row>>,
        ) -> Result<Vec<$row>, $crate::RecordError> {
            $crate::rows::read(content.into())
        }
    )*};
}
pub(crate) use rows;
