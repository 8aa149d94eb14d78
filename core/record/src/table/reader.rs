//! A parquet file being read: whole, of the right schema, in batches.

use super::Column;
use super::decoder_panics::{damage_error, guarded};
use crate::RecordError;
use crate::checksum;
use arrow_array::{Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema};
use bytes::Bytes;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader,
    ParquetRecordBatchReaderBuilder,
};
use parquet::file::metadata::ParquetMetaData;
use std::sync::Arc;

/// Rows per batch.
const BATCH: usize = 1 << 16;
/// Maximum number of rows accepted in one row group: the decoder reserves memory for the claimed
/// number before it reads any. Our writers put 2^20 into a group, other programs up to 2^26.
const MAX_GROUP_ROWS: i64 = 1 << 27;

/// A file with known columns.
pub(crate) struct TableReader {
    file: &'static str,
    reader: ParquetRecordBatchReader,
    rows: u64,
    /// Columns that the file has, of those asked for.
    columns: usize,
}

impl TableReader {
    /// Opens `bytes` as the file called `file`, whose schema must contain `columns`, except for
    /// those that were added later. Batches hold the columns in that order; other columns are
    /// ignored.
    pub(crate) fn open(
        file: &'static str,
        bytes: Bytes,
        columns: &[Column],
    ) -> Result<Self, RecordError> {
        TableReader::open_in(file, bytes, columns, BATCH)
    }

    /// The same, in batches of `batch` rows.
    pub(crate) fn open_in(
        file: &'static str,
        bytes: Bytes,
        columns: &[Column],
        batch: usize,
    ) -> Result<Self, RecordError> {
        let opened = guarded(file, || open(file, bytes, columns, batch))??;
        let (reader, rows, columns) = opened;
        Ok(TableReader {
            file,
            reader,
            rows,
            columns,
        })
    }

    /// The number of rows in the file.
    pub(crate) fn rows(&self) -> u64 {
        self.rows
    }

    /// The next batch.
    pub(crate) fn next(&mut self) -> Result<Option<RecordBatch>, RecordError> {
        let file = self.file;
        let reader = &mut self.reader;
        let batch = guarded(file, || reader.next())?;
        let batch = batch
            .transpose()
            .map_err(|e| damage_error(file, &e.to_string()))?;
        if batch
            .as_ref()
            .is_some_and(|batch| batch.num_columns() != self.columns)
        {
            return Err(damage_error(file, "columns are missing"));
        }
        Ok(batch)
    }
}

fn open(
    file: &'static str,
    bytes: Bytes,
    columns: &[Column],
    batch: usize,
) -> Result<(ParquetRecordBatchReader, u64, usize), RecordError> {
    let broken = |e: parquet::errors::ParquetError| damage_error(file, &e.to_string());
    let plain = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
    let metadata = ArrowReaderMetadata::load(&bytes, plain.clone()).map_err(broken)?;
    check_body(file, &bytes, metadata.metadata())?;
    let (schema, order) = project(file, metadata.schema(), columns)?;
    let options = plain.with_schema(Arc::new(schema));
    let metadata =
        ArrowReaderMetadata::try_new(metadata.metadata().clone(), options).map_err(broken)?;
    let rows = metadata.metadata().file_metadata().num_rows() as u64;
    let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(bytes, metadata);
    let found = order.len();
    let mask = ProjectionMask::roots(builder.parquet_schema(), order);
    let reader = builder
        .with_batch_size(batch)
        .with_projection(mask)
        .build()
        .map_err(broken)?;
    Ok((reader, rows, found))
}

/// Checks the footer's claims and the checksum of everything before it.
fn check_body(file: &str, bytes: &Bytes, metadata: &ParquetMetaData) -> Result<(), RecordError> {
    let mut rows = 0_i64;
    for group in metadata.row_groups() {
        if !(0..=MAX_GROUP_ROWS).contains(&group.num_rows()) {
            return Err(damage_error(file, "a row group of impossible size"));
        }
        rows += group.num_rows();
        for column in group.columns() {
            if column.num_values() != group.num_rows() {
                return Err(damage_error(file, "columns of different lengths"));
            }
        }
    }
    if rows != metadata.file_metadata().num_rows() {
        return Err(damage_error(file, "row groups that do not add up"));
    }
    let entries = metadata.file_metadata().key_value_metadata();
    let sum = entries
        .into_iter()
        .flatten()
        .find(|entry| entry.key == checksum::KEY);
    let Some(sum) = sum.and_then(|entry| entry.value.as_ref()) else {
        return Ok(());
    };
    // The last eight bytes are the length of the footer and the magic number; the metadata could
    // not have been read if they did not fit into the file.
    let tail = bytes.len() - 8;
    let length = u32::from_le_bytes([
        bytes[tail],
        bytes[tail + 1],
        bytes[tail + 2],
        bytes[tail + 3],
    ]);
    let body = tail.saturating_sub(length as usize);
    if *sum == checksum::compute(&bytes[..body]) {
        Ok(())
    } else {
        Err(damage_error(file, "its checksum does not fit its content"))
    }
}

/// The schema to read with (words as dictionaries where `columns` ask for that) and the indices of
/// the columns to read.
fn project(
    file: &str,
    found: &Schema,
    columns: &[Column],
) -> Result<(Schema, Vec<usize>), RecordError> {
    let mut fields: Vec<Field> = found
        .fields()
        .iter()
        .map(|field| field.as_ref().clone())
        .collect();
    let mut order = Vec::with_capacity(columns.len());
    for column in columns {
        let Some(index) = fields.iter().position(|field| field.name() == column.name) else {
            if column.added {
                continue;
            }
            let problem = format!("the column '{}' is missing", column.name);
            return Err(RecordError::data(file, problem));
        };
        let wanted = match &column.kind {
            DataType::Dictionary(_, value) => value.as_ref(),
            kind => kind,
        };
        if fields[index].data_type() != wanted {
            let problem = format!(
                "the column '{}' holds {} where {wanted} belongs",
                column.name,
                fields[index].data_type(),
            );
            return Err(RecordError::data(file, problem));
        }
        fields[index] = fields[index].clone().with_data_type(column.kind.clone());
        order.push(index);
    }
    if order.is_sorted() {
        Ok((Schema::new(fields), order))
    } else {
        // Batches have the column order of the file, and consumers index by position.
        Err(RecordError::data(
            file,
            "the columns are not in the order of the format",
        ))
    }
}

/// The values of column `index`, refusing nulls where the format has none.
pub(crate) fn whole<'a, A: Array + 'static>(
    file: &str,
    batch: &'a RecordBatch,
    columns: &[Column],
    index: usize,
) -> Result<&'a A, RecordError> {
    let column = batch.column(index);
    let name = columns[index].name;
    if !columns[index].nullable && column.null_count() > 0 {
        return Err(RecordError::data(
            file,
            format!("the column '{name}' has empty places"),
        ));
    }
    let values = column.as_any().downcast_ref::<A>();
    values.ok_or_else(|| damage_error(file, &format!("column '{name}' of the wrong type")))
}
