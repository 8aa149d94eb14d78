//! Values over time in two columns: traces of rates and delays as parquet files.
//!
//! The first column is `time_ns`, the second `rate_bps` or `delay_ns`; integers of any width. The
//! core's parsers read the same data as text, which is also written here.

use crate::RecordError;
use crate::table::{
    Batch, Coding, Column, Data, Kind, TableReader, TableWriter, column, kind_of_column,
};
use bytes::Bytes;
use std::fmt::Write as _;
use std::io::Write;

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
            column(TIME, Kind::Int64, Coding::Delta),
            column(self.value, Kind::Int64, Coding::Delta),
        ];
        let mut table = TableWriter::create(output, &columns)?;
        let array = |values: &[u64]| {
            let signed = values.iter().map(|&value| i64::try_from(value));
            let signed: Result<Vec<i64>, _> = signed.collect();
            signed.map_err(|_| RecordError::data(FILE, "a number does not fit 63 bits"))
        };
        let columns = [
            Data::Int64(array(&self.times_ns)?).into(),
            Data::Int64(array(&self.values)?).into(),
        ];
        table.write(self.times_ns.len(), &columns)?;
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
    let missing = |names: &str| {
        RecordError::data(
            FILE,
            format!("it needs the columns {TIME} and then {names}"),
        )
    };
    let mut value = None;
    for name in StepSeries::VALUES {
        if value.is_none() && kind_of_column(FILE, bytes, name)?.is_some() {
            value = Some(name);
        }
    }
    let value = value.ok_or_else(|| missing(&StepSeries::VALUES.join(" or ")))?;
    let mut columns = Vec::new();
    for name in [TIME, value] {
        let kind = kind_of_column(FILE, bytes, name)?.ok_or_else(|| missing(value))?;
        let kind = match kind {
            Ok(kind @ (Kind::UInt32 | Kind::UInt64 | Kind::Int32 | Kind::Int64)) => Ok(kind),
            Ok(kind) => Err(kind.to_string()),
            Err(words) => Err(words),
        };
        let kind = kind.map_err(|kind| {
            let problem = format!("the column '{name}' holds {kind}; it must hold whole numbers");
            RecordError::data(FILE, problem)
        })?;
        columns.push(column(name, kind, Coding::Delta));
    }
    Ok((value, columns))
}

fn numbers(
    batch: &Batch,
    columns: &[Column],
    index: usize,
    out: &mut Vec<u64>,
) -> Result<(), RecordError> {
    fn extend<T: Copy>(values: &[T], out: &mut Vec<u64>) -> Option<()>
    where
        u64: TryFrom<T>,
    {
        for &value in values {
            out.push(u64::try_from(value).ok()?);
        }
        Some(())
    }
    let values = &batch.columns[index];
    let done = match columns[index].kind {
        Kind::UInt64 => {
            out.extend(values.int64().iter().map(|&number| number as u64));
            Some(())
        }
        Kind::UInt32 => {
            out.extend(
                values
                    .int32()
                    .iter()
                    .map(|&number| u64::from(number as u32)),
            );
            Some(())
        }
        Kind::Int64 => extend(values.int64(), out),
        _ => extend(values.int32(), out),
    };
    done.ok_or_else(|| {
        let name = &columns[index].name;
        RecordError::data(FILE, format!("the column '{name}' holds a negative number"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::Values;

    fn written(columns: &[Column], values: &[Values]) -> Bytes {
        let mut table = TableWriter::create(Vec::new(), columns).unwrap();
        table.write(values[0].len(), values).unwrap();
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
            column(TIME, Kind::UInt32, Coding::Plain),
            column("rate_bps", Kind::UInt64, Coding::Plain),
        ];
        let bytes = written(
            &columns,
            &[
                Data::Int32(vec![0, 9]).into(),
                Data::Int64(vec![3, 4]).into(),
            ],
        );
        let steps = StepSeries::read(bytes).unwrap();
        assert_eq!(steps.to_csv(), "time_ns,rate_bps\n0,3\n9,4\n");
    }

    #[test]
    fn each_mistake_has_its_sentence() {
        let time = || column(TIME, Kind::Int64, Coding::Plain);
        let numbers = |values: Vec<i64>| Values::from(Data::Int64(values));
        let only = written(&[time()], &[numbers(vec![1])]);
        assert_eq!(
            refused(only),
            "trace: it needs the columns time_ns and then rate_bps or delay_ns"
        );
        let rate = column("rate_bps", Kind::Int64, Coding::Plain);
        let negative = written(&[time(), rate], &[numbers(vec![1]), numbers(vec![-1])]);
        assert_eq!(
            refused(negative),
            "trace: the column 'rate_bps' holds a negative number"
        );
        let real = column("rate_bps", Kind::Float64, Coding::Plain);
        let reals = Data::Double(vec![1.0]).into();
        let reals = written(&[time(), real], &[numbers(vec![1]), reals]);
        assert!(refused(reals).ends_with("holds Float64; it must hold whole numbers"));
        assert!(refused(Bytes::from_static(b"PAR1")).contains("damaged"));
    }
}
