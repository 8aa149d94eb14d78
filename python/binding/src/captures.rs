//! Captures of other tools: the connections of each interface, and the connections that two of them share.

use crate::errors::input_error;
use crate::formats::load;
use narrows_formats::connections::{self, Fates, OneEnd, Relation, Rows, Side};
use narrows_formats::pcapng;
use numpy::PyArray1;
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyDict;
use std::path::PathBuf;
use std::sync::Arc;

/// One connection of a capture.
#[pyclass(frozen, get_all, module = "narrows._native")]
pub(crate) struct Connection {
    /// Protocol number of IP.
    protocol: u8,
    /// Address and port of both ends; the first end opened it, if that is known.
    ends: [(String, u16); 2],
    /// Number of its packets.
    packets: usize,
    /// Bytes of payload that each end sent.
    payload: [u64; 2],
    /// First and last time, in ns since 1970.
    first_ns: i64,
    last_ns: i64,
    /// True if its first packet was captured.
    opened: bool,
    /// Initial sequence numbers of both ends, if both SYNs were captured.
    handshake: Option<[u32; 2]>,
}

/// The packets captured at one interface.
#[pyclass(frozen, module = "narrows._native")]
pub(crate) struct CaptureView {
    view: Arc<connections::View>,
}

#[pymethods]
impl CaptureView {
    /// Name of the interface.
    #[getter]
    fn name(&self) -> &str {
        &self.view.name
    }

    /// Steps by which its clock was set back.
    #[getter]
    fn set_back_ns(&self) -> Vec<i64> {
        self.view.clock.set_back_ns.clone()
    }

    /// True if the packets had to be sorted by time.
    #[getter]
    fn sorted(&self) -> bool {
        self.view.clock.sorted
    }

    /// Its connections, in the order of their first packets.
    fn connections(&self) -> Vec<Connection> {
        let connections = self.view.connections.iter();
        connections
            .map(|connection| Connection {
                protocol: connection.protocol,
                ends: connection.ends.clone().map(|end| (end.address, end.port)),
                packets: connection.packets.len(),
                payload: connection.payload,
                first_ns: connection.first_ns,
                last_ns: connection.last_ns,
                opened: connection.initial != [None, None],
                handshake: connection.handshake(),
            })
            .collect()
    }

    /// Evaluates a connection as captured at this end, as columns and counters; `None` if it carried no data.
    fn one_end<'py>(
        &self,
        py: Python<'py>,
        connection: usize,
    ) -> PyResult<Option<Bound<'py, PyDict>>> {
        let known = self.connection(connection)?;
        let end = py.detach(|| connections::one_end(&self.view, known));
        end.map(|end| columns(py, end)).transpose()
    }

    /// The packets with data of a connection and their fates, as columns and counters; `None` if it carried no data.
    fn fates<'py>(
        &self,
        py: Python<'py>,
        connection: usize,
    ) -> PyResult<Option<Bound<'py, PyDict>>> {
        let known = self.connection(connection)?;
        let fates = py.detach(|| connections::fates(&self.view, known));
        fates.map(|fates| fate_columns(py, fates)).transpose()
    }
}

impl CaptureView {
    fn connection(&self, number: usize) -> PyResult<&connections::Connection> {
        let problem = || PyIndexError::new_err(format!("the capture has no connection {number}"));
        self.view.connections.get(number).ok_or_else(problem)
    }
}

fn side_name(side: Side) -> &'static str {
    match side {
        Side::Sender => "sender",
        Side::Receiver => "receiver",
        Side::Between => "between",
    }
}

fn fate_columns(py: Python<'_>, fates: Fates) -> PyResult<Bound<'_, PyDict>> {
    let all = PyDict::new(py);
    all.set_item("data_from", fates.data_from)?;
    all.set_item("side", fates.side.map(side_name))?;
    all.set_item("to_receiver_ns", fates.to_receiver_ns)?;
    all.set_item("to_sender_ns", fates.to_sender_ns)?;
    all.set_item("tick_ns", fates.tick_ns)?;
    all.set_item("unclear", fates.unclear)?;
    all.set_item("large_frames", fates.large_frames)?;
    all.set_item("sent_ns", PyArray1::from_vec(py, fates.sent_ns))?;
    all.set_item("known_ns", PyArray1::from_vec(py, fates.known_ns))?;
    all.set_item("size_bytes", PyArray1::from_vec(py, fates.size_bytes))?;
    all.set_item("again", PyArray1::from_vec(py, fates.again))?;
    all.set_item("repeated_ns", PyArray1::from_vec(py, fates.repeated_ns))?;
    all.set_item("answers_ns", PyArray1::from_vec(py, fates.answers_ns))?;
    Ok(all)
}

fn columns(py: Python<'_>, end: OneEnd) -> PyResult<Bound<'_, PyDict>> {
    let all = PyDict::new(py);
    all.set_item("data_from", end.data_from)?;
    all.set_item("side", end.side.map(side_name))?;
    all.set_item("to_receiver_ns", end.to_receiver_ns)?;
    all.set_item("to_sender_ns", end.to_sender_ns)?;
    all.set_item("sent_packets", end.sent_packets)?;
    all.set_item("retransmitted_packets", end.retransmitted_packets)?;
    all.set_item("goodput_bytes", end.goodput_bytes)?;
    all.set_item("missed_bytes", end.missed_bytes)?;
    all.set_item("large_frames", end.large_frames)?;
    all.set_item("unanswered", end.unanswered)?;
    all.set_item("repeated_bytes", end.repeated_bytes)?;
    all.set_item("time_ns", PyArray1::from_vec(py, end.time_ns))?;
    all.set_item("sample_ns", PyArray1::from_vec(py, end.sample_ns))?;
    for (name, values) in [
        ("sent_bytes", end.sent_bytes),
        ("arrived_bytes", end.arrived_bytes),
        ("rtt_ns", end.rtt_ns),
        ("inflight_bytes", end.inflight_bytes),
        ("delivered_bytes", end.delivered_bytes),
        ("retransmitted_bytes", end.retransmitted_bytes),
    ] {
        all.set_item(name, PyArray1::from_vec(py, values))?;
    }
    Ok(all)
}

/// Reads a capture (pcapng or pcap): the file, or its decompressed `content`. Returns a view per interface, and the
/// unread parts: kind, count, and whether numbers may depend on them.
#[pyfunction]
#[pyo3(signature = (path, content=None))]
#[allow(clippy::type_complexity)] // two results
pub(crate) fn read_capture(
    py: Python<'_>,
    path: PathBuf,
    content: Option<PyBackedBytes>,
) -> PyResult<(Vec<CaptureView>, Vec<(String, u64, bool)>)> {
    let (views, unread) = py.detach(|| {
        let capture = match content {
            Some(content) => pcapng::read(&content),
            None => pcapng::read(&load(&path)?),
        };
        let capture = capture.map_err(|error| input_error(&path, error))?;
        PyResult::Ok(connections::views(capture))
    })?;
    let unread = unread.into_iter();
    let unread = unread.map(|(kind, count)| (kind.text(), count, kind.matters()));
    let views = views.into_iter().map(|view| CaptureView {
        view: Arc::new(view),
    });
    Ok((views.collect(), unread.collect()))
}

/// The relation of two connections of two captures: `unrelated`, `unmatched` (one connection, whose packets cannot be
/// matched), `same place`, or `ends`; for `ends` also the index (0 or 1) of the one nearer to the sender of the data,
/// and columns and counters of its packets.
#[pyfunction]
pub(crate) fn relate<'py>(
    py: Python<'py>,
    first: &CaptureView,
    connection: usize,
    second: &CaptureView,
    other: usize,
) -> PyResult<(&'static str, usize, Option<Bound<'py, PyDict>>)> {
    let (one, two) = (first.connection(connection)?, second.connection(other)?);
    let relation =
        py.detach(|| connections::compare_captures((&first.view, one), (&second.view, two)));
    let (near, matched) = match relation {
        Relation::Unrelated => return Ok(("unrelated", 0, None)),
        Relation::Unmatched => return Ok(("unmatched", 0, None)),
        Relation::SamePlace => return Ok(("same place", 0, None)),
        Relation::Ends(near, matched) => (near, matched),
    };
    let all = PyDict::new(py);
    all.set_item("strangers", matched.strangers)?;
    all.set_item("near_packets", matched.near_packets)?;
    all.set_item("far_packets", matched.far_packets)?;
    all.set_item("matched_packets", matched.matched_packets)?;
    all.set_item("goodput_bytes", matched.goodput_bytes)?;
    all.set_item("large_frames", matched.large_frames)?;
    all.set_item("data", rows(py, matched.data)?)?;
    all.set_item("back", rows(py, matched.back)?)?;
    Ok(("ends", near, Some(all)))
}

fn rows(py: Python<'_>, rows: Rows) -> PyResult<Bound<'_, PyDict>> {
    let all = PyDict::new(py);
    all.set_item("size_bytes", PyArray1::from_vec(py, rows.size_bytes))?;
    all.set_item("sent_ns", PyArray1::from_vec(py, rows.sent_ns))?;
    all.set_item("arrived_ns", PyArray1::from_vec(py, rows.arrived_ns))?;
    Ok(all)
}
