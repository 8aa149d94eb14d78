//! Records as files of other tools, and measurements of other tools as records.

use crate::errors::{folder_error, input_error, record_error};
use crate::open;
use narrows_cell::RecordFolder;
use narrows_formats::import::{self, Columns};
use narrows_formats::{FormatError, Traffic, mahimahi, pcapng, qlog};
use narrows_pantheon::{OneDirection, Opportunity};
use narrows_record::{BinRow, Direction, RecordError, RunDocument, StateRow, csv};
use numpy::{PyArray1, PyArrayMethods, PyReadonlyArray1};
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyDictMethods};
use serde_json::json;
use std::fs::File;
use std::path::{Path, PathBuf};

fn value_error(error: impl ToString) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// An error of writing `path` from the record in `cell`.
fn export_error(cell: &Path, path: &Path, error: FormatError) -> PyErr {
    match error {
        FormatError::Record(RecordError::Io(error)) | FormatError::Io(error) => {
            PyOSError::new_err(format!("{}: {error}", path.display()))
        }
        FormatError::Record(error) => record_error(cell, error),
        FormatError::Input(problem) => PyValueError::new_err(problem),
    }
}

fn create(path: &Path) -> PyResult<File> {
    File::create(path).map_err(|e| PyOSError::new_err(format!("{}: {e}", path.display())))
}

/// Reads a regular file: other kinds of files might block, or never end.
pub(crate) fn load(path: &Path) -> PyResult<Vec<u8>> {
    let problem = |e| PyOSError::new_err(format!("{}: can't be read: {e}", path.display()));
    narrows_cell::read_regular(path).map_err(problem)
}

/// Writes the record in `cell_dir` as two captures, of the senders' and of the receivers' end, its time zero at
/// `base_ns` since 1970. Returns counts of packets as JSON.
#[pyfunction]
pub(crate) fn export_pcapng(
    py: Python<'_>,
    cell_dir: PathBuf,
    base_ns: u64,
    comment: &str,
    sender: PathBuf,
    receiver: PathBuf,
) -> PyResult<String> {
    py.detach(|| {
        let record = open(&cell_dir)?;
        let traffic = Traffic::read(&record, "a capture");
        let traffic = traffic.map_err(|e| export_error(&cell_dir, &sender, e))?;
        let mut counts = serde_json::Map::new();
        for (end, path) in [
            (pcapng::End::Sender, &sender),
            (pcapng::End::Receiver, &receiver),
        ] {
            let written = pcapng::write(&traffic, end, base_ns, comment, &mut create(path)?)
                .map_err(|e| export_error(&cell_dir, path, e))?;
            let count = json!({"packets": written.packets, "repeated": written.repeated});
            counts.insert(end.word().into(), count);
        }
        Ok(json!(counts).to_string())
    })
}

/// Writes the flows of the record in `cell_dir` as qlog: the path of each is `prefix` and its number. Returns counts of
/// events per flow as JSON.
#[pyfunction]
#[pyo3(signature = (cell_dir, base_ns, version, title, description, prefix, suffix))]
#[allow(clippy::too_many_arguments)]
pub(crate) fn export_qlog(
    py: Python<'_>,
    cell_dir: PathBuf,
    base_ns: u64,
    version: &str,
    title: &str,
    description: &str,
    prefix: &str,
    suffix: &str,
) -> PyResult<String> {
    let header = qlog::Header {
        version: version.to_owned(),
        title: title.to_owned(),
        description: description.to_owned(),
        base_ns,
    };
    py.detach(|| {
        let record = open(&cell_dir)?;
        let traffic = Traffic::read(&record, "a qlog file");
        let traffic = traffic.map_err(|e| export_error(&cell_dir, Path::new(prefix), e))?;
        let mut counts = serde_json::Map::new();
        for flow in traffic.flows() {
            let path = PathBuf::from(format!("{prefix}{flow}{suffix}"));
            let written = qlog::write(&traffic, flow, &header, &mut create(&path)?)
                .map_err(|e| export_error(&cell_dir, &path, e))?;
            let Some(written) = written else { continue };
            let count = json!({
                "sent": written.sent, "acknowledged": written.acknowledged, "lost": written.lost,
                "metrics": written.metrics,
            });
            counts.insert(flow.to_string(), count);
        }
        Ok(json!(counts).to_string())
    })
}

/// Writes every columnar file of the record in `cell_dir` as comma-separated values into `folder`. Returns the number
/// of rows of each as JSON.
#[pyfunction]
pub(crate) fn export_csv(py: Python<'_>, cell_dir: PathBuf, folder: PathBuf) -> PyResult<String> {
    py.detach(|| {
        let record = open(&cell_dir)?;
        let mut counts = serde_json::Map::new();
        for table in csv::tables(&record) {
            let name = Path::new(table).with_extension("csv");
            let path = folder.join(&name);
            let rows = csv::write(&record, table, &mut create(&path)?)
                .map_err(|e| export_error(&cell_dir, &path, e.into()))?;
            counts.insert(name.display().to_string(), rows.into());
        }
        Ok(json!(counts).to_string())
    })
}

/// The connections of a qlog as columns of events, and the unread parts of each trace: kind, count, and the results
/// that are based on a part of the trace because of them (`always`, `sender`, `never`).
#[pyfunction]
pub(crate) fn read_qlog<'py>(py: Python<'py>, content: &[u8]) -> PyResult<Vec<Bound<'py, PyDict>>> {
    let logs = py.detach(|| qlog::read(content)).map_err(value_error)?;
    let convert_log = |log: qlog::Log| {
        let all = PyDict::new(py);
        all.set_item("version", log.version)?;
        all.set_item("title", log.title)?;
        all.set_item("vantage_point", log.vantage_point)?;
        all.set_item("trace", log.trace)?;
        all.set_item("group", log.group)?;
        all.set_item("absolute", log.absolute)?;
        all.set_item("sent_ns", PyArray1::from_vec(py, log.sent_ns))?;
        all.set_item("sent_space", PyArray1::from_vec(py, log.sent_space))?;
        all.set_item("sent_number", PyArray1::from_vec(py, log.sent_number))?;
        all.set_item("sent_bytes", PyArray1::from_vec(py, log.sent_bytes))?;
        all.set_item("acked_ns", PyArray1::from_vec(py, log.acked_ns))?;
        all.set_item("received_ns", PyArray1::from_vec(py, log.received_ns))?;
        all.set_item("received_space", PyArray1::from_vec(py, log.received_space))?;
        all.set_item(
            "received_number",
            PyArray1::from_vec(py, log.received_number),
        )?;
        all.set_item("received_bytes", PyArray1::from_vec(py, log.received_bytes))?;
        all.set_item("lost_ns", PyArray1::from_vec(py, log.lost_ns))?;
        all.set_item("lost_packets", PyArray1::from_vec(py, log.lost_packets))?;
        all.set_item("metrics_ns", PyArray1::from_vec(py, log.metrics_ns))?;
        all.set_item("cwnd_bytes", PyArray1::from_vec(py, log.cwnd_bytes))?;
        all.set_item("inflight_bytes", PyArray1::from_vec(py, log.inflight_bytes))?;
        all.set_item("ssthresh_bytes", PyArray1::from_vec(py, log.ssthresh_bytes))?;
        all.set_item("pacing_bps", PyArray1::from_vec(py, log.pacing_bps))?;
        all.set_item("rtt_ns", PyArray1::from_vec(py, log.rtt_ns))?;
        all.set_item("srtt_ns", PyArray1::from_vec(py, log.srtt_ns))?;
        all.set_item("min_rtt_ns", PyArray1::from_vec(py, log.min_rtt_ns))?;
        let unread = log.unread.into_iter();
        let unread: Vec<(String, u64, &str)> = unread
            .map(|entry| (entry.kind, entry.count, entry.matters.word()))
            .collect();
        all.set_item("unread", unread)?;
        Ok(all)
    };
    logs.into_iter().map(convert_log).collect()
}

/// The log of one direction of a mahimahi link, the `content` of the file `path`: its packets and its delivery
/// opportunities as columns, times since the start of the link.
#[pyfunction]
pub(crate) fn read_mahimahi<'py>(
    py: Python<'py>,
    path: PathBuf,
    content: &[u8],
) -> PyResult<Bound<'py, PyDict>> {
    let log = py.detach(|| mahimahi::read(content).map_err(|error| input_error(&path, error)))?;
    let link = log.link;
    let mut arrived_ns = vec![Columns::NEVER; link.sent.len()];
    for arrived in &link.arrived {
        if let Some(time) = arrived_ns.get_mut(arrived.sent as usize) {
            *time = arrived.time_ns;
        }
    }
    let all = PyDict::new(py);
    let flows: Vec<u16> = link.sent.iter().map(|sent| sent.flow).collect();
    let sent: Vec<i64> = link.sent.iter().map(|sent| sent.time_ns).collect();
    let sizes: Vec<u32> = link.sent.iter().map(|sent| sent.size).collect();
    let times: Vec<i64> = link
        .opportunities
        .iter()
        .map(|entry| entry.time_ns)
        .collect();
    let bytes: Vec<u32> = link.opportunities.iter().map(|entry| entry.bytes).collect();
    all.set_item("base_ns", link.base_ns)?;
    all.set_item("ports", log.ports)?;
    all.set_item("strangers", log.strangers)?;
    all.set_item("cut", log.cut)?;
    all.set_item("flow", PyArray1::from_vec(py, flows))?;
    all.set_item("sent_ns", PyArray1::from_vec(py, sent))?;
    all.set_item("arrived_ns", PyArray1::from_vec(py, arrived_ns))?;
    all.set_item("size_bytes", PyArray1::from_vec(py, sizes))?;
    all.set_item("opportunity_ns", PyArray1::from_vec(py, times))?;
    all.set_item("opportunity_bytes", PyArray1::from_vec(py, bytes))?;
    Ok(all)
}

/// A column of `columns`, which may be missing.
fn column<T: numpy::Element>(columns: &Bound<'_, PyDict>, name: &str) -> PyResult<Vec<T>> {
    let Some(values) = columns.get_item(name)? else {
        return Ok(Vec::new());
    };
    let wrong = |_| value_error(format!("the column '{name}' has the wrong type"));
    let array: PyReadonlyArray1<'_, T> = values.extract().map_err(wrong)?;
    Ok(array.to_vec()?)
}

/// One direction of packets from a dictionary with `flow`, `size_bytes`, `sent_ns`, `arrived_ns` (the smallest number
/// for never), and possibly `opportunity_ns` and `opportunity_bytes`.
fn direction(columns: &Bound<'_, PyDict>) -> PyResult<OneDirection> {
    let packets = Columns {
        flow: column(columns, "flow")?,
        size_bytes: column(columns, "size_bytes")?,
        sent_ns: column(columns, "sent_ns")?,
        arrived_ns: column(columns, "arrived_ns")?,
    };
    let mut link = packets.direction().map_err(value_error)?;
    let times: Vec<i64> = column(columns, "opportunity_ns")?;
    let bytes: Vec<u32> = column(columns, "opportunity_bytes")?;
    let opportunities = times.into_iter().zip(bytes);
    link.opportunities = opportunities
        .map(|(time_ns, bytes)| Opportunity { time_ns, bytes })
        .collect();
    Ok(link)
}

/// States from a dictionary of columns; NaN for values that were not reported. Times are since `zero_ns`.
fn states(columns: Option<&Bound<'_, PyDict>>) -> PyResult<Vec<(i64, StateRow)>> {
    let Some(columns) = columns else {
        return Ok(Vec::new());
    };
    let flow: Vec<u16> = column(columns, "flow")?;
    let time: Vec<i64> = column(columns, "time_ns")?;
    let mut rows: Vec<(i64, StateRow)> = flow
        .into_iter()
        .zip(time)
        .map(|(flow, time)| {
            (
                time,
                StateRow {
                    flow,
                    ..StateRow::default()
                },
            )
        })
        .collect();
    let mut fill = |name: &str, field: fn(&mut StateRow) -> &mut Option<u64>| -> PyResult<()> {
        for (row, value) in rows.iter_mut().zip(column::<f64>(columns, name)?) {
            let known = value.is_finite() && value >= 0.0;
            *field(&mut row.1) = known.then_some(value.round() as u64);
        }
        Ok(())
    };
    fill("cwnd_bytes", |row| &mut row.cwnd_bytes)?;
    fill("ssthresh_bytes", |row| &mut row.ssthresh_bytes)?;
    fill("pacing_bps", |row| &mut row.pacing_bps)?;
    fill("rtt_ns", |row| &mut row.rtt_ns)?;
    fill("srtt_ns", |row| &mut row.srtt_ns)?;
    fill("min_rtt_ns", |row| &mut row.min_rtt_ns)?;
    fill("inflight_bytes", |row| &mut row.inflight_bytes)?;
    fill("delivered_bytes", |row| &mut row.delivered_bytes)?;
    fill("delivery_rate_bps", |row| &mut row.delivery_rate_bps)?;
    fill("retransmitted_bytes", |row| &mut row.retransmitted_bytes)?;
    fill("lost_packets", |row| &mut row.lost_packets)?;
    rows.sort_by_key(|row| (row.0, row.1.flow));
    Ok(rows)
}

/// The rows with times since `zero_ns`; earlier ones are excluded.
fn since(rows: Vec<(i64, StateRow)>, zero_ns: i64, end_ns: u64) -> Vec<StateRow> {
    let timed = rows.into_iter().filter_map(|(time, mut row)| {
        row.time_ns = u64::try_from(time.checked_sub(zero_ns)?).ok()?;
        Some(row)
    });
    timed.filter(|row| row.time_ns <= end_ns).collect()
}

/// Makes the record `out_dir` of a run whose packets were seen at both ends: `run_json` is `run.json` without the
/// members that follow from the packets, `data` and `back` are their columns, `senders` the sampled states. Returns
/// `run.json` as text.
#[pyfunction]
pub(crate) fn import_packets(
    py: Python<'_>,
    run_json: &str,
    out_dir: PathBuf,
    data: &Bound<'_, PyDict>,
    back: Option<&Bound<'_, PyDict>>,
    senders: Option<&Bound<'_, PyDict>>,
) -> PyResult<String> {
    let mut run = RunDocument::parse(run_json.as_bytes()).map_err(value_error)?;
    let data = direction(data)?;
    let back = back.map(direction).transpose()?;
    let rows = states(senders)?;
    py.detach(|| {
        let (packets, capacity) =
            import::packets(&mut run, &data, back.as_ref()).map_err(value_error)?;
        let folder = RecordFolder::create(&out_dir).map_err(folder_error)?;
        let mut file = folder.packets().map_err(folder_error)?;
        let written = packets.chunks(|chunk| file.write(chunk));
        written
            .and_then(|()| file.finish().map(drop))
            .map_err(|e| folder_error(folder.packets_error(e)))?;
        folder.capacity(capacity).map_err(folder_error)?;
        let rows = since(rows, packets.zero_ns, packets.duration_ns);
        if !rows.is_empty() {
            folder.states(rows, Vec::new()).map_err(folder_error)?;
        }
        folder.complete(&mut run).map_err(folder_error)?;
        Ok(run.to_text())
    })
}

/// Makes the record `out_dir` of a run that was measured at one end: `run_json` as for `import_packets`, `bins` the
/// columns of bins, `senders` the sampled states, both with times since the start. Returns `run.json` as text.
#[pyfunction]
pub(crate) fn import_bins(
    py: Python<'_>,
    run_json: &str,
    out_dir: PathBuf,
    bins: &Bound<'_, PyDict>,
    senders: Option<&Bound<'_, PyDict>>,
) -> PyResult<String> {
    let mut run = RunDocument::parse(run_json.as_bytes()).map_err(value_error)?;
    let rows = bin_rows(bins)?;
    let samples = since(states(senders)?, 0, u64::MAX);
    py.detach(|| {
        import::bins(&mut run, &rows, &samples);
        let folder = RecordFolder::create(&out_dir).map_err(folder_error)?;
        folder
            .bin_rows(rows.into_iter(), std::iter::empty())
            .map_err(folder_error)?;
        if !samples.is_empty() {
            folder.states(samples, Vec::new()).map_err(folder_error)?;
        }
        folder.complete(&mut run).map_err(folder_error)?;
        Ok(run.to_text())
    })
}

fn bin_rows(columns: &Bound<'_, PyDict>) -> PyResult<Vec<BinRow>> {
    let flow: Vec<u16> = column(columns, "flow")?;
    let backward: Vec<bool> = column(columns, "backward")?;
    let names = [
        "bin_ns",
        "sent_packets",
        "sent_bytes",
        "arrived_packets",
        "arrived_bytes",
        "first_arrival_ns",
        "last_arrival_ns",
    ];
    let numbers: Vec<Vec<u64>> = names
        .iter()
        .map(|name| column(columns, name))
        .collect::<PyResult<_>>()?;
    let rows = flow.len();
    if backward.len() != rows || numbers.iter().any(|column| column.len() != rows) {
        return Err(value_error(
            "the columns of the bins have different lengths",
        ));
    }
    let row = |i: usize| {
        let arrived = numbers[3][i] > 0;
        BinRow {
            flow: flow[i],
            direction: if backward[i] {
                Direction::Backward
            } else {
                Direction::Forward
            },
            bin_ns: numbers[0][i],
            sent_packets: numbers[1][i],
            sent_bytes: numbers[2][i],
            arrived_packets: numbers[3][i],
            arrived_bytes: numbers[4][i],
            first_arrival_ns: arrived.then_some(numbers[5][i]),
            last_arrival_ns: arrived.then_some(numbers[6][i]),
            ..BinRow::default()
        }
    };
    Ok((0..rows).map(row).collect())
}
