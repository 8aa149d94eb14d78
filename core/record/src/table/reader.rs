//! A parquet file being read: whole, of the right schema, in batches.

use super::decoder_panics::{damage_error, guarded};
use super::words::{ENCODINGS, WordReader, Words};
use super::{Batch, Column, Data, Kind, Values};
use crate::RecordError;
use crate::checksum;
use bytes::Bytes;
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{ByteArray, ByteArrayType, DataType};
use parquet::errors::ParquetError;
use parquet::file::metadata::ParquetMetaData;
use parquet::file::reader::FileReader;
use parquet::file::serialized_reader::SerializedFileReader;
use parquet::schema::types::SchemaDescriptor;
use std::borrow::Cow;

/// Rows per batch.
const BATCH: usize = 1 << 16;
/// Maximum number of rows accepted in one row group: no writer makes larger ones. Our writers put 2^20 into a group,
/// other programs up to 2^26.
const MAX_GROUP_ROWS: i64 = 1 << 27;

/// A file with known columns.
pub(crate) struct TableReader {
    file: &'static str,
    reader: SerializedFileReader<Bytes>,
    rows: u64,
    /// Rows per batch.
    batch: usize,
    columns: Vec<FileColumn>,
    /// The next row group, the columns of the current one, and its rows that are left.
    next_group: usize,
    group: Vec<ChunkReader>,
    left: usize,
}

/// A column of the file.
struct FileColumn {
    name: Cow<'static, str>,
    /// Its index among the leaves of the schema.
    index: usize,
    /// True if rows may lack a value by our format, and by the file.
    nullable: bool,
    optional: bool,
}

/// The values of a column of the current row group.
enum ChunkReader {
    Values(ColumnReader),
    Words(WordReader),
    /// Words in an encoding that [`WordReader`] does not know.
    OtherWords(ColumnReaderImpl<ByteArrayType>, Words),
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

    /// The same, in batches of `batch` rows; the last ones of a row group may be smaller.
    pub(crate) fn open_in(
        file: &'static str,
        bytes: Bytes,
        columns: &[Column],
        batch: usize,
    ) -> Result<Self, RecordError> {
        guarded(file, || {
            let content = bytes.clone();
            let reader = open(file, bytes)?;
            check_body(file, &content, reader.metadata())?;
            let metadata = reader.metadata().file_metadata();
            Ok(TableReader {
                file,
                rows: metadata.num_rows() as u64,
                batch,
                columns: project(file, metadata.schema_descr(), columns)?,
                reader,
                next_group: 0,
                group: Vec::new(),
                left: 0,
            })
        })?
    }

    /// The number of rows in the file.
    pub(crate) fn rows(&self) -> u64 {
        self.rows
    }

    /// The next batch.
    pub(crate) fn next(&mut self) -> Result<Option<Batch>, RecordError> {
        let file = self.file;
        let batch = guarded(file, || self.decode())?;
        let batch = batch.map_err(|e| damage_error(file, &e.to_string()))?;
        for (values, column) in batch
            .iter()
            .flat_map(|batch| &batch.columns)
            .zip(&self.columns)
        {
            if !column.nullable && !values.levels.is_empty() {
                let problem = format!("the column '{}' has empty places", column.name);
                return Err(RecordError::data(file, problem));
            }
        }
        Ok(batch)
    }

    fn decode(&mut self) -> Result<Option<Batch>, ParquetError> {
        while self.left == 0 {
            if self.next_group == self.reader.num_row_groups() {
                return Ok(None);
            }
            self.begin_group()?;
        }
        let rows = self.left.min(self.batch);
        let mut columns = Vec::with_capacity(self.columns.len());
        for (chunk, column) in self.group.iter_mut().zip(&self.columns) {
            columns.push(chunk.read(rows, column.optional)?);
        }
        self.left -= rows;
        Ok(Some(Batch { rows, columns }))
    }

    fn begin_group(&mut self) -> Result<(), ParquetError> {
        let group = self.reader.get_row_group(self.next_group)?;
        self.group.clear();
        for column in &self.columns {
            let encodings = group.metadata().column(column.index).encodings();
            let known = encodings
                .into_iter()
                .all(|encoding| ENCODINGS.contains(&encoding));
            let chunk = match group.get_column_reader(column.index)? {
                ColumnReader::ByteArrayColumnReader(_) if known => {
                    let pages = group.get_column_page_reader(column.index)?;
                    ChunkReader::Words(WordReader::new(pages, column.optional))
                }
                ColumnReader::ByteArrayColumnReader(reader) => {
                    ChunkReader::OtherWords(reader, Words::default())
                }
                reader => ChunkReader::Values(reader),
            };
            self.group.push(chunk);
        }
        self.left = group.metadata().num_rows() as usize;
        self.next_group += 1;
        Ok(())
    }
}

impl ChunkReader {
    /// The values of the next `rows` rows.
    fn read(&mut self, rows: usize, optional: bool) -> Result<Values, ParquetError> {
        let mut values = match self {
            ChunkReader::Words(reader) => reader.read(rows)?,
            ChunkReader::OtherWords(reader, words) => {
                let (bytes, levels): (Vec<ByteArray>, _) = read(reader, rows, optional)?;
                let keys: Result<Vec<u32>, _> =
                    bytes.iter().map(|word| words.find(word.data())).collect();
                words.with_keys(keys?, levels)
            }
            ChunkReader::Values(reader) => {
                let (data, levels) = match reader {
                    ColumnReader::Int32ColumnReader(reader) => {
                        let (values, levels) = read(reader, rows, optional)?;
                        (Data::Int32(values), levels)
                    }
                    ColumnReader::Int64ColumnReader(reader) => {
                        let (values, levels) = read(reader, rows, optional)?;
                        (Data::Int64(values), levels)
                    }
                    ColumnReader::DoubleColumnReader(reader) => {
                        let (values, levels) = read(reader, rows, optional)?;
                        (Data::Double(values), levels)
                    }
                    ColumnReader::BoolColumnReader(reader) => {
                        let (values, levels) = read(reader, rows, optional)?;
                        (Data::Boolean(values), levels)
                    }
                    _ => return Err(ParquetError::General("a column of another type".to_owned())),
                };
                Values { data, levels }
            }
        };
        if optional {
            values.spread();
        }
        if values.len() == rows {
            Ok(values)
        } else {
            Err(ParquetError::General(
                "columns of different lengths".to_owned(),
            ))
        }
    }
}

/// The values of the next `rows` rows that have one, and for each row whether it has.
fn read<T: DataType>(
    reader: &mut ColumnReaderImpl<T>,
    rows: usize,
    optional: bool,
) -> Result<(Vec<T::T>, Vec<i16>), ParquetError> {
    let mut values = Vec::with_capacity(rows);
    let mut levels = Vec::new();
    // A page may end before the rows do.
    let mut left = rows;
    while left > 0 {
        let levels = optional.then_some(&mut levels);
        let (read, ..) = reader.read_records(left, levels, None, &mut values)?;
        if read == 0 {
            break;
        }
        left -= read;
    }
    Ok((values, levels))
}

fn open(file: &str, bytes: Bytes) -> Result<SerializedFileReader<Bytes>, RecordError> {
    SerializedFileReader::new(bytes).map_err(|e| damage_error(file, &e.to_string()))
}

/// The type of a column of an unopened file, or a description of an unsupported type; `None` without the column.
pub(crate) fn kind_of_column(
    file: &'static str,
    bytes: &Bytes,
    name: &str,
) -> Result<Option<Result<Kind, String>>, RecordError> {
    guarded(file, || {
        let reader = open(file, bytes.clone())?;
        let fields = reader
            .metadata()
            .file_metadata()
            .schema()
            .get_fields()
            .iter();
        let mut fields = fields.filter(|field| field.name() == name);
        Ok(fields.next().map(|field| Kind::from_field(field)))
    })?
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

/// The columns to read: where they are in the file.
fn project(
    file: &str,
    schema: &SchemaDescriptor,
    columns: &[Column],
) -> Result<Vec<FileColumn>, RecordError> {
    let fields = schema.root_schema().get_fields();
    let mut order = Vec::with_capacity(columns.len());
    let mut chosen = Vec::with_capacity(columns.len());
    for column in columns {
        let Some(place) = fields
            .iter()
            .position(|field| field.name() == &*column.name)
        else {
            if column.added {
                continue;
            }
            let problem = format!("the column '{}' is missing", column.name);
            return Err(RecordError::data(file, problem));
        };
        let kind = Kind::from_field(&fields[place]);
        if kind.as_ref() != Ok(&column.kind) {
            let problem = format!(
                "the column '{}' holds {} where {} belongs",
                column.name,
                kind.map_or_else(|words| words, |kind| kind.to_string()),
                column.kind,
            );
            return Err(RecordError::data(file, problem));
        }
        let leaves = 0..schema.num_columns();
        let mut leaves = leaves.filter(|&leaf| schema.get_column_root_idx(leaf) == place);
        let Some(index) = leaves.next() else {
            return Err(damage_error(file, "columns are missing"));
        };
        order.push(place);
        chosen.push(FileColumn {
            name: column.name.clone(),
            index,
            nullable: column.nullable,
            optional: schema.column(index).max_def_level() > 0,
        });
    }
    if order.is_sorted() {
        Ok(chosen)
    } else {
        // Other programs that read the format index by position.
        Err(RecordError::data(
            file,
            "the columns are not in the order of the format",
        ))
    }
}
