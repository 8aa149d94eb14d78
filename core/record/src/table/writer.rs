//! A parquet file of one schema: encodings, compression and checksum in one place.

use super::{Coding, Column, Data, Values};
use crate::RecordError;
use crate::checksum::{self, Summing};
use bytes::Bytes;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::column::page::{CompressedPage, PageWriteSpec, PageWriter};
use parquet::column::writer::{ColumnWriter, get_column_writer};
use parquet::data_type::ByteArray;
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::{SerializedFileWriter, SerializedPageWriter, TrackedWrite};
use parquet::schema::types::{ColumnPath, Type};
use std::any::Any;
use std::io::Write;
use std::marker::PhantomData;
use std::ops::Range;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

/// Rows per row group. Readers hold one group at a time; the writer holds one, encoded.
const GROUP_ROWS: usize = 1 << 20;
/// Rows per page.
const PAGE_ROWS: usize = 1 << 16;
/// Rows that the encoder takes together.
const STEP_ROWS: usize = PAGE_ROWS / 8;
/// Name of the root of the schema, as in files of earlier versions. Readers ignore it.
const ROOT: &str = "arrow_schema";

/// Any output. The encoder writes to a trait object: with a type parameter, each crate that writes files would compile
/// parquet's writer again for its type of output.
trait Output: Write + Send + Any {}

impl<W: Write + Send + Any> Output for W {}

/// A parquet file being written to an output of type `W`.
pub(crate) struct TableWriter<W> {
    encoder: Encoder,
    output: PhantomData<fn() -> W>,
}

impl<W: Write + Send + 'static> TableWriter<W> {
    pub(crate) fn create(output: W, columns: &[Column]) -> Result<Self, RecordError> {
        Ok(TableWriter {
            encoder: Encoder::create(Box::new(output), columns)?,
            output: PhantomData,
        })
    }

    /// Appends `rows` rows, of which `columns` are the values.
    pub(crate) fn write(&mut self, rows: usize, columns: &[Values]) -> Result<(), RecordError> {
        self.encoder.write(rows, columns)
    }

    /// Adds an entry to the footer.
    pub(crate) fn describe(&mut self, key: &str, value: &str) {
        let entry = KeyValue::new(key.to_owned(), value.to_owned());
        self.encoder.file.append_key_value_metadata(entry);
    }

    /// Writes the footer and returns the output, flushed.
    pub(crate) fn finish(self) -> Result<W, RecordError> {
        let output: Box<dyn Any> = self.encoder.finish()?;
        Ok(*output.downcast().expect("the output has not changed"))
    }
}

/// Collects the pages of a column of the current row group, which in the file follow those of the column before, and
/// sends them when the column is complete.
struct Pages {
    sink: TrackedWrite<Vec<u8>>,
    complete: Sender<Vec<u8>>,
}

impl PageWriter for Pages {
    fn write_page(&mut self, page: CompressedPage) -> Result<PageWriteSpec, ParquetError> {
        SerializedPageWriter::new(&mut self.sink).write_page(page)
    }

    fn close(&mut self) -> Result<(), ParquetError> {
        let sink = std::mem::replace(&mut self.sink, TrackedWrite::new(Vec::new()));
        self.complete
            .send(sink.into_inner()?)
            .map_err(|error| ParquetError::External(Box::new(error)))
    }
}

/// A column of the current row group.
struct ChunkWriter {
    encoder: ColumnWriter<'static>,
    pages: Receiver<Vec<u8>>,
    nullable: bool,
}

impl ChunkWriter {
    /// Appends rows; `skipped` values belong to earlier rows. Returns the number of values written.
    fn write(
        &mut self,
        values: &Values,
        rows: Range<usize>,
        skipped: usize,
    ) -> Result<usize, ParquetError> {
        let levels: Vec<i16>;
        let (levels, count) = match (self.nullable, values.levels.is_empty()) {
            (false, _) => (None, rows.len()),
            (true, false) => {
                let levels = &values.levels[rows];
                (
                    Some(levels),
                    levels.iter().filter(|&&level| level > 0).count(),
                )
            }
            (true, true) => {
                levels = vec![1; rows.len()];
                (Some(levels.as_slice()), rows.len())
            }
        };
        let taken = skipped..skipped + count;
        match (&mut self.encoder, &values.data) {
            (ColumnWriter::Int32ColumnWriter(encoder), Data::Int32(numbers)) => {
                encoder.write_batch(&numbers[taken], levels, None)
            }
            (ColumnWriter::Int64ColumnWriter(encoder), Data::Int64(numbers)) => {
                encoder.write_batch(&numbers[taken], levels, None)
            }
            (ColumnWriter::DoubleColumnWriter(encoder), Data::Double(numbers)) => {
                encoder.write_batch(&numbers[taken], levels, None)
            }
            (ColumnWriter::BoolColumnWriter(encoder), Data::Boolean(flags)) => {
                encoder.write_batch(&flags[taken], levels, None)
            }
            (ColumnWriter::ByteArrayColumnWriter(encoder), Data::Words(keys, words)) => {
                // Copies of one allocation, which the encoder compares and hashes.
                let words: Vec<ByteArray> = words
                    .iter()
                    .map(|word| ByteArray::from(word.as_str()))
                    .collect();
                let keys = &keys[taken];
                let values: Vec<ByteArray> = keys
                    .iter()
                    .map(|&key| words[key as usize].clone())
                    .collect();
                encoder.write_batch(&values, levels, None)
            }
            _ => Err(ParquetError::General(
                "values of another type than the column's".to_owned(),
            )),
        }
    }
}

struct Encoder {
    file: SerializedFileWriter<Summing<Box<dyn Output>>>,
    nullable: Vec<bool>,
    /// The current row group, unless it has no rows, and its number of rows.
    group: Vec<ChunkWriter>,
    rows: usize,
}

impl Encoder {
    fn create(output: Box<dyn Output>, columns: &[Column]) -> Result<Self, RecordError> {
        let fields: Result<Vec<_>, _> = columns
            .iter()
            .map(|c| c.kind.field(&c.name, c.nullable))
            .collect();
        let schema = Arc::new(
            Type::group_type_builder(ROOT)
                .with_fields(fields?)
                .build()?,
        );
        let level = ZstdLevel::try_new(1).expect("zstd has a level 1");
        let mut properties = WriterProperties::builder()
            .set_created_by(concat!("narrows ", env!("CARGO_PKG_VERSION")).to_owned())
            .set_compression(Compression::ZSTD(level))
            .set_data_page_row_count_limit(PAGE_ROWS)
            .set_write_batch_size(STEP_ROWS)
            // Minimum and maximum per row group let other programs skip groups by time or uid;
            // an index of pages would only add bytes.
            .set_statistics_enabled(EnabledStatistics::Chunk)
            .set_offset_index_disabled(true);
        for column in columns {
            let path = ColumnPath::new(vec![column.name.clone().into_owned()]);
            let words = column.coding == Coding::Words;
            properties = properties.set_column_dictionary_enabled(path.clone(), words);
            if column.coding == Coding::Delta {
                properties = properties.set_column_encoding(path, Encoding::DELTA_BINARY_PACKED);
            }
        }
        let file =
            SerializedFileWriter::new(Summing::new(output), schema, Arc::new(properties.build()))?;
        Ok(Encoder {
            file,
            nullable: columns.iter().map(|column| column.nullable).collect(),
            group: Vec::new(),
            rows: 0,
        })
    }

    fn write(&mut self, rows: usize, columns: &[Values]) -> Result<(), RecordError> {
        let mut skipped = vec![0; columns.len()];
        let mut row = 0;
        while row < rows {
            if self.group.is_empty() {
                self.begin_group();
            }
            let next = rows.min(row + GROUP_ROWS - self.rows);
            for ((chunk, values), skipped) in self.group.iter_mut().zip(columns).zip(&mut skipped) {
                for step in (row..next).step_by(STEP_ROWS) {
                    *skipped += chunk.write(values, step..next.min(step + STEP_ROWS), *skipped)?;
                }
            }
            self.rows += next - row;
            row = next;
            if self.rows == GROUP_ROWS {
                self.end_group()?;
            }
        }
        Ok(())
    }

    fn begin_group(&mut self) {
        let columns = self
            .file
            .schema_descr()
            .columns()
            .iter()
            .zip(&self.nullable);
        let group = columns.map(|(column, &nullable)| {
            let (complete, pages) = channel();
            let sink = TrackedWrite::new(Vec::new());
            let properties = self.file.properties().clone();
            let writer = Box::new(Pages { sink, complete });
            ChunkWriter {
                encoder: get_column_writer(column.clone(), properties, writer),
                pages,
                nullable,
            }
        });
        self.group = group.collect();
    }

    fn end_group(&mut self) -> Result<(), RecordError> {
        self.rows = 0;
        if self.group.is_empty() {
            return Ok(());
        }
        let mut group = self.file.next_row_group()?;
        for chunk in self.group.drain(..) {
            let closed = chunk.encoder.close()?;
            let pages = chunk.pages.recv();
            let pages = pages.expect("a column that is closed has sent its pages");
            group.append_column(&Bytes::from(pages), closed)?;
        }
        group.close()?;
        Ok(())
    }

    fn finish(mut self) -> Result<Box<dyn Output>, RecordError> {
        self.end_group()?;
        // Passes everything before the footer through the checksum.
        self.file.flush()?;
        let sum = self.file.inner().sum();
        self.file
            .append_key_value_metadata(KeyValue::new(checksum::KEY.to_owned(), sum));
        let mut output = self.file.into_inner()?.into_inner();
        output.flush()?;
        Ok(output)
    }
}
