//! Measurements of other tools as records.
//!
//! Measurements of packets at both ends become records of packets, by the rules of Pantheon's logs ([`Packets`]): a
//! packet that did not arrive although a later one did was dropped, and the receiver's clock is moved if delays would
//! be negative. Measurements of only one end become records of bins and states.

use crate::FormatError;
use narrows_pantheon::{NO_PACKET, OneDirection, Packets, SentLine};
use narrows_record::{
    BinRow, CapacityRow, Direction, ElementCounters, RunDocument, Severity, StateRow,
};
use serde_json::Value;

/// Kind of the single element of each direction.
const KIND: &str = "path";
/// Bins of capacities, if opportunities are known.
const BIN_NS: u64 = 100_000_000;

/// Packets of one direction as columns of equal length.
#[derive(Clone, Debug, Default)]
pub struct Columns {
    /// Flow of each packet, from 1.
    pub flow: Vec<u16>,
    /// IP size.
    pub size_bytes: Vec<u32>,
    /// When it was sent, by the sender's clock, since a base that all columns share.
    pub sent_ns: Vec<i64>,
    /// When it arrived, by the receiver's clock; [`Columns::NEVER`] if it did not.
    pub arrived_ns: Vec<i64>,
}

impl Columns {
    /// In [`Columns::arrived_ns`]: it did not arrive.
    pub const NEVER: i64 = i64::MIN;

    /// The same as a log of one direction.
    ///
    /// # Errors
    /// Columns of different lengths.
    pub fn direction(&self) -> Result<OneDirection, FormatError> {
        let rows = self.flow.len();
        let lengths = [
            self.size_bytes.len(),
            self.sent_ns.len(),
            self.arrived_ns.len(),
        ];
        if lengths != [rows; 3] || rows >= NO_PACKET as usize {
            return Err(FormatError::input(
                "the columns of the packets have different lengths",
            ));
        }
        let mut link = OneDirection::default();
        for row in 0..rows {
            link.sent.push(SentLine {
                time_ns: self.sent_ns[row],
                size: self.size_bytes[row],
                flow: self.flow[row],
            });
            if self.arrived_ns[row] != Columns::NEVER {
                link.arrived.push(narrows_pantheon::Arrived {
                    time_ns: self.arrived_ns[row],
                    delay_ns: self.arrived_ns[row] - self.sent_ns[row],
                    size: self.size_bytes[row],
                    flow: self.flow[row],
                    line: 0,
                    sent: row as u32,
                });
            }
        }
        Ok(link)
    }
}

/// Packets of a run with the capacity of its links, and `run` completed from them: duration, spans of flows, counters
/// of elements, and corrections of the clocks.
///
/// # Errors
/// No packet was sent, or packets are days apart.
pub fn packets(
    run: &mut RunDocument,
    data: &OneDirection,
    back: Option<&OneDirection>,
) -> Result<(Packets, Vec<CapacityRow>), FormatError> {
    if data.sent.is_empty() {
        return Err(FormatError::input("no packet with data was sent"));
    }
    let packets = Packets::gather(data, back).map_err(|days| {
        FormatError::input(format!(
            "the packets are {days:.1} days apart, so they do not belong to one run"
        ))
    })?;
    let spans = packets.spans();
    complete_cell(run, packets.duration_ns, |flow| spans.get(&flow).copied());
    let capacity = packets.capacity(data, back, BIN_NS);
    run.elements = packets.counters();
    for counters in &mut run.elements {
        let own = capacity.iter().filter(|row| row.element == counters.name);
        counters.capacity_bytes = own.map(|row| row.bytes).reduce(|a, b| a + b);
    }
    let shifts = packets.shifts;
    run.clock.error_ns += shifts.receiver_ns.unsigned_abs();
    if shifts.receiver_ns != 0 {
        let text = format!(
            "The packets had negative delays, because the clocks of both ends disagree: the receiver's is moved by {:.3} ms, the minimum that makes no delay negative. Only differences of delays are meaningful, not absolute values.",
            shifts.receiver_ns as f64 / 1e6
        );
        run.judge(Severity::Degraded, "clock", text);
    }
    if shifts.zeroed > 0 {
        let text = format!(
            "Even so {} delays would be negative, because the clocks drift; they are zero in the record.",
            shifts.zeroed
        );
        run.judge(Severity::Degraded, "clock", text);
    }
    Ok((packets, capacity))
}

/// Completes `run` for a record of `bins`.
pub fn bins(run: &mut RunDocument, bins: &[BinRow], states: &[StateRow]) {
    let width = run
        .cell
        .get("bin_ns")
        .and_then(Value::as_u64)
        .unwrap_or(BIN_NS);
    let end = |flow: Option<u16>| {
        let mine = |number: u16| flow.is_none_or(|flow| flow == number);
        let bins = bins.iter().filter(|row| mine(row.flow));
        let bins = bins.map(|row| row.last_arrival_ns.unwrap_or(row.bin_ns + width));
        let states = states
            .iter()
            .filter(|row| mine(row.flow))
            .map(|row| row.time_ns);
        bins.chain(states).max().unwrap_or(1).max(1)
    };
    complete_cell(run, end(None), |flow| Some((0, end(Some(flow)))));
    run.elements = [Direction::Forward, Direction::Backward]
        .map(|direction| {
            let mut counters = ElementCounters::new(&format!("{direction}.0"), KIND, direction);
            for row in bins.iter().filter(|row| row.direction == direction) {
                counters.in_packets = counters.in_packets.saturating_add(row.sent_packets);
                counters.in_bytes = counters.in_bytes.saturating_add(row.sent_bytes);
                counters.out_packets = counters.out_packets.saturating_add(row.arrived_packets);
                counters.out_bytes = counters.out_bytes.saturating_add(row.arrived_bytes);
                counters.dropped_packets =
                    counters.dropped_packets.saturating_add(row.dropped_packets);
                counters.dropped_bytes = counters.dropped_bytes.saturating_add(row.dropped_bytes);
            }
            let gone =
                |all: u64, out: u64, dropped: u64| all.saturating_sub(out.saturating_add(dropped));
            counters.held_packets = gone(
                counters.in_packets,
                counters.out_packets,
                counters.dropped_packets,
            );
            counters.held_bytes = gone(
                counters.in_bytes,
                counters.out_bytes,
                counters.dropped_bytes,
            );
            counters
        })
        .into();
}

/// Fills in the durations of the run and its flows, if the cell does not specify them.
fn complete_cell(
    run: &mut RunDocument,
    duration_ns: u64,
    span: impl Fn(u16) -> Option<(u64, u64)>,
) {
    let Some(cell) = run.cell.as_object_mut() else {
        return;
    };
    cell.insert("duration_ns".into(), duration_ns.into());
    let flows = cell.get_mut("flows").and_then(Value::as_array_mut);
    for flow in flows.into_iter().flatten().filter_map(Value::as_object_mut) {
        let number = flow.get("flow").and_then(Value::as_u64).unwrap_or(0);
        let (start, stop) = span(number as u16).unwrap_or((0, duration_ns));
        for (name, time) in [("start_ns", start), ("stop_ns", stop)] {
            flow.entry(name).or_insert(time.into());
        }
    }
}
