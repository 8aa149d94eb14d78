//! The files with few rows: states, queues, traces, transfers, completions, frames, capacity, bins and delays.
//!
//! A kind of row is declared once, with `rows!` in `schema.rs`, which generates the struct, the columns of its file, a
//! writer to which rows are pushed one by one, and a reader. The type of a field determines how its column is stored.

use crate::table::{Coding, Column, TableReader, TableWriter, whole};
use crate::{Content, RecordError};
use arrow_array::{
    Array, ArrayRef, BooleanArray, Float64Array, RecordBatch, StringArray, UInt16Array,
    UInt32Array, UInt64Array,
};
use arrow_schema::DataType;
use bytes::Bytes;
use narrows_units::Direction;
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
    fn arrays(rows: &[Self]) -> Vec<ArrayRef>;
    /// Appends the rows of a batch, which has the columns of [`Row::columns`].
    #[doc(hidden)]
    fn decode(
        batch: &RecordBatch,
        columns: &[Column],
        rows: &mut Vec<Self>,
    ) -> Result<(), RecordError>;
}

/// A type of fields: how its column is stored.
pub(crate) trait Field: Sized {
    type Values: Array + 'static;
    const KIND: DataType;
    const NULLABLE: bool = false;
    const CODING: Coding;

    fn encode<'a>(fields: impl Iterator<Item = &'a Self>) -> ArrayRef
    where
        Self: 'a;

    /// The value of a row, or the problem with it.
    fn decode(values: &Self::Values, index: usize) -> Result<Self, String>;

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
    ($($kind:ty, $values:ident, $data:ident, $coding:ident;)*) => {$(
        impl Field for $kind {
            type Values = $values;
            const KIND: DataType = DataType::$data;
            const CODING: Coding = Coding::$coding;

            fn encode<'a>(fields: impl Iterator<Item = &'a Self>) -> ArrayRef {
                Arc::new($values::from_iter_values(fields.copied()))
            }

            fn decode(values: &$values, index: usize) -> Result<Self, String> {
                Ok(values.value(index))
            }

            const NUMERIC: bool = true;

            fn real(&self) -> f64 {
                *self as f64
            }
        }
    )*};
}

numbers!(
    u16, UInt16Array, UInt16, Words;
    u32, UInt32Array, UInt32, Delta;
    u64, UInt64Array, UInt64, Delta;
    f64, Float64Array, Float64, Plain;
);

impl Field for Option<u64> {
    type Values = UInt64Array;
    const KIND: DataType = DataType::UInt64;
    const NULLABLE: bool = true;
    const CODING: Coding = Coding::Delta;

    fn encode<'a>(fields: impl Iterator<Item = &'a Self>) -> ArrayRef {
        Arc::new(fields.copied().collect::<UInt64Array>())
    }

    fn decode(values: &UInt64Array, index: usize) -> Result<Self, String> {
        Ok(values.is_valid(index).then(|| values.value(index)))
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
    type Values = BooleanArray;
    const KIND: DataType = DataType::Boolean;
    const CODING: Coding = Coding::Plain;

    fn encode<'a>(fields: impl Iterator<Item = &'a Self>) -> ArrayRef {
        Arc::new(fields.map(|&flag| Some(flag)).collect::<BooleanArray>())
    }

    fn decode(values: &BooleanArray, index: usize) -> Result<Self, String> {
        Ok(values.value(index))
    }

    const NUMERIC: bool = true;

    fn real(&self) -> f64 {
        f64::from(u8::from(*self))
    }
}

impl Field for String {
    type Values = StringArray;
    const KIND: DataType = DataType::Utf8;
    const CODING: Coding = Coding::Words;

    fn encode<'a>(fields: impl Iterator<Item = &'a Self>) -> ArrayRef {
        Arc::new(fields.map(Some).collect::<StringArray>())
    }

    fn decode(values: &StringArray, index: usize) -> Result<Self, String> {
        Ok(values.value(index).to_owned())
    }
}

impl Field for Option<String> {
    type Values = StringArray;
    const KIND: DataType = DataType::Utf8;
    const NULLABLE: bool = true;
    const CODING: Coding = Coding::Words;

    fn encode<'a>(fields: impl Iterator<Item = &'a Self>) -> ArrayRef {
        Arc::new(fields.map(Option::as_deref).collect::<StringArray>())
    }

    fn decode(values: &StringArray, index: usize) -> Result<Self, String> {
        Ok(values
            .is_valid(index)
            .then(|| values.value(index).to_owned()))
    }
}

impl Field for Direction {
    type Values = StringArray;
    const KIND: DataType = DataType::Utf8;
    const CODING: Coding = Coding::Words;

    fn encode<'a>(fields: impl Iterator<Item = &'a Self>) -> ArrayRef {
        Arc::new(fields.map(|way| Some(way.word())).collect::<StringArray>())
    }

    fn decode(values: &StringArray, index: usize) -> Result<Self, String> {
        let word = values.value(index);
        Direction::from_word(word).ok_or_else(|| format!("the direction '{word}' is unknown"))
    }
}

/// The column of fields of type `F`.
pub(crate) fn column<F: Field>(name: &'static str) -> Column {
    Column {
        name,
        kind: F::KIND,
        nullable: F::NULLABLE,
        coding: F::CODING,
        added: false,
    }
}

/// The values of column `index` of a batch.
pub(crate) fn values<'a, R: Row, F: Field>(
    batch: &'a RecordBatch,
    columns: &[Column],
    index: usize,
) -> Result<&'a F::Values, RecordError> {
    whole(R::FILE, batch, columns, index)
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
            self.table.write(R::arrays(&self.rows))?;
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
    let columns = R::columns();
    let mut table = TableReader::open_in(R::FILE, bytes, &columns, BATCH)?;
    let mut rows = Vec::with_capacity(BATCH);
    while let Some(batch) = table.next()? {
        rows.clear();
        R::decode(&batch, &columns, &mut rows)?;
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
                        && <$kind as $crate::rows::Field>::KIND == arrow_schema::DataType::UInt64,
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

            fn arrays(rows: &[Self]) -> Vec<arrow_array::ArrayRef> {
                vec![$(<$kind as $crate::rows::Field>::encode(rows.iter().map(|row| &row.$field))),*]
            }

            fn decode(
                batch: &arrow_array::RecordBatch,
                columns: &[$crate::table::Column],
                rows: &mut Vec<Self>,
            ) -> Result<(), $crate::RecordError> {
                let mut index = 0..;
                $(
                    let place = index.next().unwrap_or_default();
                    let $field = $crate::rows::values::<Self, $kind>(batch, columns, place)?;
                )*
                let problem = |problem: String| $crate::RecordError::data($file, problem);
                for index in 0..batch.num_rows() {
                    rows.push($row {
                        $($field: <$kind as $crate::rows::Field>::decode($field, index).map_err(problem)?,)*
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
