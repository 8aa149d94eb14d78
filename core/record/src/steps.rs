//! Values over time in two columns: traces of rates and delays as parquet files.
//!
//! The first column is `time_ns`, the second `rate_bps` or `delay_ns`; integers of any width. The
//! core's parsers read the same data as text, which is also written here.

use crate::RecordError;
use crate::table::{
    Coding, Column, TableReader, TableWriter, column, damage_error, guarded, whole,
};
use arrow_array::{Int32Array, Int64Array, RecordBatch, UInt32Array, UInt64Array};
use arrow_schema::DataType;
use bytes::Bytes;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions};
use std::fmt::Write as _;
use std::io::Write;
use std::sync::Arc;

/// Name of these files in messages.
const FILE: &str = "trace";
const TIME: &str = "time_ns";
/// Maximum number of rows, one per microsecond for a minute: more are a mistake.
const MAX_ROWS: u64 = 60_000_000;

/// The first bytes of every parquet file.
pub const PARQUET_MAGIC: &[u8] = b"PAR1";

/// Values over time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepSeries {
    /// Name of the column of values: `rate_bps` or `delay_ns`.
    pub value: &'static str,
    /// Times in ns.
    pub times_ns: Vec<u64>,
    /// Values in base units.
    pub values: Vec<u64>,
}

impl StepSeries {
    /// Names of columns of values.
    pub const VALUES: [&'static str; 2] = ["rate_bps", "delay_ns"];

    /// Reads the content of a parquet file. The parser of the text checks that times increase and
    /// values are valid.
    ///
    /// # Errors
    /// A damaged file, missing columns, columns of other types, empty places, negative numbers.
    pub fn read(bytes: Bytes) -> Result<Self, RecordError> {
        let (value, columns) = columns(&bytes)?;
        let mut reader = TableReader::open(FILE, bytes, &columns)?;
        if reader.rows() > MAX_ROWS {
            let problem = format!("it has {} rows, more than {MAX_ROWS}", reader.rows());
            return Err(RecordError::data(FILE, problem));
        }
        let mut steps = StepSeries {
            value,
            times_ns: Vec::new(),
            values: Vec::new(),
        };
        while let Some(batch) = reader.next()? {
            numbers(&batch, &columns, 0, &mut steps.times_ns)?;
            numbers(&batch, &columns, 1, &mut steps.values)?;
        }
        Ok(steps)
    }

    /// Writes a parquet file; the same values result in the same bytes.
    ///
    /// # Errors
    /// Errors of `output` or the encoder.
    pub fn write<W: Write + Send + 'static>(&self, output: W) -> Result<W, RecordError> {
        let columns = [
            column(TIME, DataType::Int64, Coding::Delta),
            column(self.value, DataType::Int64, Coding::Delta),
        ];
        let mut table = TableWriter::create(output, &columns)?;
        let array = |values: &[u64]| {
            let signed = values.iter().map(|&value| i64::try_from(value));
            let signed: Result<Vec<i64>, _> = signed.collect();
            signed.map_err(|_| RecordError::data(FILE, "a number does not fit 63 bits"))
        };
        table.write(vec![
            Arc::new(Int64Array::from(array(&self.times_ns)?)),
            Arc::new(Int64Array::from(array(&self.values)?)),
        ])?;
        table.finish()
    }

    /// The same as text: a heading and a line per row.
    pub fn to_csv(&self) -> String {
        let mut text = format!("{TIME},{}\n", self.value);
        for (time, value) in self.times_ns.iter().zip(&self.values) {
            let _ = writeln!(text, "{time},{value}");
        }
        text
    }
}

/// The column of values and both columns with the types that the file has.
fn columns(bytes: &Bytes) -> Result<(&'static str, Vec<Column>), RecordError> {
    let plain = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
    let metadata = guarded(FILE, || ArrowReaderMetadata::load(bytes, plain))?
        .map_err(|error| damage_error(FILE, &error.to_string()))?;
    let kind = |name: &str| {
        let field = metadata.schema().field_with_name(name).ok()?;
        Some(field.data_type().clone())
    };
    let missing = |names: &str| {
        RecordError::data(
            FILE,
            format!("it needs the columns {TIME} and then {names}"),
        )
    };
    let value = StepSeries::VALUES
        .into_iter()
        .find(|name| kind(name).is_some());
    let value = value.ok_or_else(|| missing(&StepSeries::VALUES.join(" or ")))?;
    let mut found = Vec::new();
    for name in [TIME, value] {
        let kind = kind(name).ok_or_else(|| missing(value))?;
        if !kind.is_integer() || matches!(kind.primitive_width(), Some(1 | 2)) {
            let problem = format!("the column '{name}' holds {kind}; it must hold whole numbers");
            return Err(RecordError::data(FILE, problem));
        }
        found.push(column(name, kind, Coding::Delta));
    }
    Ok((value, found))
}

fn numbers(
    batch: &RecordBatch,
    columns: &[Column],
    index: usize,
    out: &mut Vec<u64>,
) -> Result<(), RecordError> {
    fn extend<T: Copy>(values: &[T], out: &mut Vec<u64>) -> Result<(), ()>
    where
        u64: TryFrom<T>,
    {
        for &value in values {
            out.push(u64::try_from(value).map_err(|_| ())?);
        }
        Ok(())
    }
    let result = match columns[index].kind {
        DataType::UInt64 => extend(
            whole::<UInt64Array>(FILE, batch, columns, index)?.values(),
            out,
        ),
        DataType::Int64 => extend(
            whole::<Int64Array>(FILE, batch, columns, index)?.values(),
            out,
        ),
        DataType::UInt32 => extend(
            whole::<UInt32Array>(FILE, batch, columns, index)?.values(),
            out,
        ),
        _ => extend(
            whole::<Int32Array>(FILE, batch, columns, index)?.values(),
            out,
        ),
    };
    result.map_err(|()| {
        let name = columns[index].name;
        RecordError::data(FILE, format!("the column '{name}' holds a negative number"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(columns: &[Column], arrays: Vec<arrow_array::ArrayRef>) -> Bytes {
        let mut table = TableWriter::create(Vec::new(), columns).unwrap();
        table.write(arrays).unwrap();
        table.finish().unwrap().into()
    }

    fn refused(bytes: Bytes) -> String {
        StepSeries::read(bytes).unwrap_err().to_string()
    }

    #[test]
    fn what_is_written_is_read() {
        for value in StepSeries::VALUES {
            let steps = StepSeries {
                value,
                times_ns: vec![0, 5, 1 << 61],
                values: vec![7, 0, 0],
            };
            let bytes = steps.write(Vec::new()).unwrap();
            assert_eq!(StepSeries::read(bytes.into()).unwrap(), steps);
        }
    }

    #[test]
    fn other_widths_are_read() {
        let columns = [
            column(TIME, DataType::UInt32, Coding::Plain),
            column("rate_bps", DataType::UInt64, Coding::Plain),
        ];
        let bytes = written(
            &columns,
            vec![
                Arc::new(UInt32Array::from(vec![0, 9])),
                Arc::new(UInt64Array::from(vec![3, 4])),
            ],
        );
        let steps = StepSeries::read(bytes).unwrap();
        assert_eq!(steps.to_csv(), "time_ns,rate_bps\n0,3\n9,4\n");
    }

    #[test]
    fn each_mistake_has_its_sentence() {
        let time = || column(TIME, DataType::Int64, Coding::Plain);
        let numbers = |values: Vec<i64>| Arc::new(Int64Array::from(values));
        let only = written(&[time()], vec![numbers(vec![1])]);
        assert_eq!(
            refused(only),
            "trace: it needs the columns time_ns and then rate_bps or delay_ns"
        );
        let rate = column("rate_bps", DataType::Int64, Coding::Plain);
        let negative = written(&[time(), rate], vec![numbers(vec![1]), numbers(vec![-1])]);
        assert_eq!(
            refused(negative),
            "trace: the column 'rate_bps' holds a negative number"
        );
        let real = column("rate_bps", DataType::Float64, Coding::Plain);
        let reals = Arc::new(arrow_array::Float64Array::from(vec![1.0]));
        let reals = written(&[time(), real], vec![numbers(vec![1]), reals]);
        assert!(refused(reals).ends_with("holds Float64; it must hold whole numbers"));
        assert!(refused(Bytes::from_static(b"PAR1")).contains("damaged"));
    }
}
