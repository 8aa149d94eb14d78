//! The packets of a record as columns, for analyses beyond the metrics.

use crate::errors::record_error;
use crate::open;
use narrows_record::log::NOT_ARRIVED;
use narrows_record::read::PacketReader;
use narrows_record::{Chunk, Direction, Record, RecordError};
use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::path::PathBuf;

/// Columns with one value per packet, in the order of entering.
#[derive(Default)]
struct Columns {
    flow: Vec<u16>,
    backward: Vec<bool>,
    size_bytes: Vec<u32>,
    sent_ns: Vec<i64>,
    /// -1 for packets that did not arrive.
    arrived_ns: Vec<i64>,
    /// 0 for packets that did not arrive.
    late_ns: Vec<i64>,
}

impl Columns {
    /// `None` for records of bins.
    fn read(record: &Record) -> Result<Option<Self>, RecordError> {
        let Some(packets) = &record.packets else {
            return Ok(None);
        };
        let mut columns = Columns::default();
        let mut reader = PacketReader::open(packets.clone())?;
        let mut chunk = Chunk::default();
        let time = |ns: u64| i64::try_from(ns).unwrap_or(i64::MAX);
        while reader.next(&mut chunk)? {
            for i in 0..chunk.len() {
                let arrived = chunk.arrived_ns[i];
                let lost = arrived == NOT_ARRIVED;
                columns.flow.push(chunk.flow[i]);
                let backward = chunk.direction[i] == Direction::Backward;
                columns.backward.push(backward);
                columns.size_bytes.push(chunk.size_bytes[i]);
                columns.sent_ns.push(time(chunk.sent_ns[i]));
                columns
                    .arrived_ns
                    .push(if lost { -1 } else { time(arrived) });
                columns
                    .late_ns
                    .push(if lost { 0 } else { chunk.late_ns[i] });
            }
        }
        Ok(Some(columns))
    }
}

/// The packets of a record in the order of entering, as columns: `flow`, `backward`, `size_bytes`, `sent_ns`,
/// `arrived_ns` (-1 if it did not), `late_ns`; None for records of bins.
#[pyfunction]
pub(crate) fn packets(py: Python<'_>, cell_dir: PathBuf) -> PyResult<Option<Bound<'_, PyDict>>> {
    let columns =
        py.detach(|| Columns::read(&open(&cell_dir)?).map_err(|e| record_error(&cell_dir, e)))?;
    let Some(columns) = columns else {
        return Ok(None);
    };
    let all = PyDict::new(py);
    all.set_item("flow", PyArray1::from_vec(py, columns.flow))?;
    all.set_item("backward", PyArray1::from_vec(py, columns.backward))?;
    all.set_item("size_bytes", PyArray1::from_vec(py, columns.size_bytes))?;
    all.set_item("sent_ns", PyArray1::from_vec(py, columns.sent_ns))?;
    all.set_item("arrived_ns", PyArray1::from_vec(py, columns.arrived_ns))?;
    all.set_item("late_ns", PyArray1::from_vec(py, columns.late_ns))?;
    Ok(Some(all))
}
