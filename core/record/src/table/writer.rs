//! A parquet file of one schema: encodings, compression and checksum in one place.

use super::{Coding, Column};
use crate::RecordError;
use crate::checksum::{self, Summing};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{Field, Schema, SchemaRef};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::ArrowWriterOptions;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::schema::types::ColumnPath;
use std::any::Any;
use std::io::Write;
use std::marker::PhantomData;
use std::sync::Arc;

/// Rows per row group. Readers hold one group at a time; the writer holds one, encoded.
const GROUP_ROWS: usize = 1 << 20;
/// Rows per page.
const PAGE_ROWS: usize = 1 << 16;

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

    pub(crate) fn write(&mut self, columns: Vec<ArrayRef>) -> Result<(), RecordError> {
        self.encoder.write(columns)
    }

    /// Writes the footer and returns the output, flushed.
    pub(crate) fn finish(self) -> Result<W, RecordError> {
        let output: Box<dyn Any> = self.encoder.finish()?;
        Ok(*output.downcast().expect("the output has not changed"))
    }
}

struct Encoder {
    writer: ArrowWriter<Summing<Box<dyn Output>>>,
    schema: SchemaRef,
}

impl Encoder {
    fn create(output: Box<dyn Output>, columns: &[Column]) -> Result<Self, RecordError> {
        let fields: Vec<Field> = columns
            .iter()
            .map(|c| Field::new(c.name, c.kind.clone(), c.nullable))
            .collect();
        let schema = Arc::new(Schema::new(fields));
        let level = ZstdLevel::try_new(1).expect("zstd has a level 1");
        let mut properties = WriterProperties::builder()
            .set_created_by(concat!("narrows ", env!("CARGO_PKG_VERSION")).to_owned())
            .set_compression(Compression::ZSTD(level))
            .set_max_row_group_row_count(Some(GROUP_ROWS))
            .set_data_page_row_count_limit(PAGE_ROWS)
            .set_write_batch_size(PAGE_ROWS / 8)
            // Minimum and maximum per row group let other programs skip groups by time or uid;
            // an index of pages would only add bytes.
            .set_statistics_enabled(EnabledStatistics::Chunk)
            .set_offset_index_disabled(true);
        for column in columns {
            let path = ColumnPath::new(vec![column.name.to_owned()]);
            let words = column.coding == Coding::Words;
            properties = properties.set_column_dictionary_enabled(path.clone(), words);
            if column.coding == Coding::Delta {
                properties = properties.set_column_encoding(path, Encoding::DELTA_BINARY_PACKED);
            }
        }
        // Without the copy of the arrow schema, which only arrow itself uses.
        let options = ArrowWriterOptions::new()
            .with_properties(properties.build())
            .with_skip_arrow_metadata(true);
        let writer =
            ArrowWriter::try_new_with_options(Summing::new(output), schema.clone(), options)?;
        Ok(Encoder { writer, schema })
    }

    fn write(&mut self, columns: Vec<ArrayRef>) -> Result<(), RecordError> {
        let batch = RecordBatch::try_new(self.schema.clone(), columns)
            .map_err(|e| RecordError::Encode(e.to_string()))?;
        Ok(self.writer.write(&batch)?)
    }

    fn finish(mut self) -> Result<Box<dyn Output>, RecordError> {
        self.writer.flush()?;
        // Passes everything before the footer through the checksum.
        self.writer.sync()?;
        let sum = self.writer.inner().sum();
        self.writer
            .append_key_value_metadata(KeyValue::new(checksum::KEY.to_owned(), sum));
        let mut output = self.writer.into_inner()?.into_inner();
        output.flush()?;
        Ok(output)
    }
}
