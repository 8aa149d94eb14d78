//! Reports of the ends of a flow when it has ended, as JSON documents.

use crate::{ProgramReport, state_row, trace_rows};
use narrows_media::FrameSent;
use narrows_record::{Histogram, ReceiverCounters, SenderCounters, StateRow, TraceRow};
use narrows_transport::SenderSnapshot;
use narrows_units::Time;
use serde::{Deserialize, Serialize};

/// The two ends of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Sends the data.
    Sender,
    /// Receives the data.
    Receiver,
}

impl Role {
    /// The word used in names of processes.
    pub const fn name(self) -> &'static str {
        match self {
            Role::Sender => "sender",
            Role::Receiver => "receiver",
        }
    }
}

/// The report of an endpoint.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct EndpointOutcome {
    /// Name of the congestion control in force, as read back.
    pub read_back: Option<String>,
    /// Counters of a sender.
    pub sender: SenderCounters,
    /// Counters of a receiver.
    pub receiver: ReceiverCounters,
    /// Samples of the state.
    pub states: Vec<StateSample>,
    /// Values beyond the common state: time, name, value.
    pub traces: Vec<(u64, String, f64)>,
    /// Limits of the flow other than its congestion control.
    pub limits: TcpLimits,
    /// Datagrams that the socket dropped because its buffer was full.
    pub socket_drops: u64,
    /// Time on a processor, and time spent ready but waiting for one.
    pub run_ns: u64,
    /// See `run_ns`.
    pub wait_ns: u64,
    /// The maximum delay with which the endpoint noticed an expired timer or a datagram.
    pub latest_ns: u64,
    /// Its wake-up delays.
    pub woken: WakeupDelays,
    /// A problem with the flow itself, one sentence.
    pub problem: Option<String>,
    /// Load that the application offered, from the end at which it runs.
    pub offer: Option<OfferedLoad>,
    /// Transfers whose last byte arrived at this end: number and time.
    pub ended: Vec<(u32, u64)>,
    /// Connections that broke before the flow stopped.
    pub broken: u64,
    /// Frames of video, from the sender of a real-time scheme.
    pub frames: Vec<SentFrame>,
    /// Frames that arrived completely, from the receiver of a real-time scheme: number and time.
    pub whole: Vec<(u64, u64)>,
    /// The process of a program, if that is the end of the flow.
    pub program: Option<Box<ProgramReport>>,
}

/// Wake-up delays of an endpoint.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct WakeupDelays {
    /// From the kernel's stamp of the first datagram since the socket was last emptied until it was read.
    pub arrivals: WakeupDelay,
    /// From the time for which a timer was set until it was served.
    pub timers: WakeupDelay,
}

/// Wake-up delays of one cause.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct WakeupDelay {
    /// Number of wake-ups.
    pub count: u64,
    /// Shares of them, with their maximum delay in ns.
    pub quantiles_ns: Vec<(f64, u64)>,
}

/// Shares at which quantiles are reported: close together at the late end, where a few wake-ups matter.
const SHARES: [f64; 15] = [
    0.0, 0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.98, 0.99, 0.995, 0.999, 0.9999, 1.0,
];

impl WakeupDelays {
    /// From the counted delays.
    pub fn from_histograms(arrivals: &Histogram, timers: &Histogram) -> Self {
        let late = |histogram: &Histogram| WakeupDelay {
            count: histogram.total(),
            quantiles_ns: SHARES
                .iter()
                .filter_map(|&share| match share {
                    0.0 => Some((share, histogram.min()?)),
                    _ => Some((share, histogram.quantile(share)?)),
                })
                .collect(),
        };
        WakeupDelays {
            arrivals: late(arrivals),
            timers: late(timers),
        }
    }
}

/// A [`FrameSent`] in a form that can be sent: number, time of capture, bytes, whether it is a key frame and whether it
/// was discarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SentFrame(u64, u64, u32, bool, bool);

impl From<FrameSent> for SentFrame {
    fn from(frame: FrameSent) -> Self {
        SentFrame(
            frame.number,
            frame.at.ns(),
            frame.bytes,
            frame.key,
            frame.discarded,
        )
    }
}

impl From<SentFrame> for FrameSent {
    fn from(SentFrame(number, at, bytes, key, discarded): SentFrame) -> Self {
        FrameSent {
            number,
            at: Time::from_ns(at),
            bytes,
            key,
            discarded,
        }
    }
}

/// Load that an application offered.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct OfferedLoad {
    /// Bytes: payload of transfers, IP bytes of datagrams.
    pub bytes: u64,
    /// Transfers begun.
    pub transfers: u64,
    /// Connections opened.
    pub connections: u64,
    /// Datagrams sent.
    pub datagrams: u64,
    /// True if unlimited data were offered, so that the load is not a number.
    pub unlimited: bool,
    /// Numbers that the application publishes.
    pub facts: Vec<(String, f64)>,
    /// The transfers that have an end.
    pub noted: Vec<TransferReport>,
}

/// One transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TransferReport {
    /// Its connection.
    pub connection: u32,
    /// Its number in the flow.
    pub transfer: u32,
    /// Bytes of the direction that counts.
    pub bytes: u64,
    /// When the application asked for it.
    pub started_ns: u64,
    /// When its last byte arrived, if this end knows.
    pub ended_ns: Option<u64>,
}

/// Limits of a kernel TCP flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TcpLimits {
    /// Time with data outstanding.
    pub busy_us: u64,
    /// Time in which the receiver's window was the limit.
    pub rwnd_us: u64,
    /// Time in which the send buffer was the limit.
    pub sndbuf_us: u64,
    /// Samples taken while the flow should have had data to send.
    pub samples: u64,
    /// Samples in which nothing waited in the send buffer.
    pub starved: u64,
}

/// A [`StateRow`] in a form that can be sent; the receiver adds the flow.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct StateSample(StateRow);

impl From<StateRow> for StateSample {
    fn from(row: StateRow) -> Self {
        StateSample(row)
    }
}

impl StateSample {
    /// The row of `flow`.
    pub fn into_row(self, flow: u16) -> StateRow {
        StateRow { flow, ..self.0 }
    }
}

impl EndpointOutcome {
    /// Converts all its times, for a record with another clock.
    pub fn map_times(&mut self, time: impl Fn(u64) -> u64) {
        for state in &mut self.states {
            state.0.time_ns = time(state.0.time_ns);
        }
        for trace in &mut self.traces {
            trace.0 = time(trace.0);
        }
        for noted in self.offer.iter_mut().flat_map(|offer| &mut offer.noted) {
            noted.started_ns = time(noted.started_ns);
            noted.ended_ns = noted.ended_ns.map(&time);
        }
        for (_, at) in &mut self.ended {
            *at = time(*at);
        }
        for frame in &mut self.frames {
            frame.1 = time(frame.1);
        }
        for (_, at) in &mut self.whole {
            *at = time(*at);
        }
    }

    /// Adds the state of a native sender at `now`, and further values of its scheme.
    pub fn add_state(&mut self, now: Time, snapshot: &SenderSnapshot) {
        let state = state_row(0, now.ns(), snapshot);
        self.states.push(StateSample::from(state));
        let rows = trace_rows(0, now.ns(), snapshot);
        let traces = rows.map(|row| (row.time_ns, row.name, row.value));
        self.traces.extend(traces);
    }

    /// The traces as rows of `flow`.
    pub fn trace_rows(&self, flow: u16) -> impl Iterator<Item = TraceRow> {
        self.traces
            .iter()
            .map(move |(time_ns, name, value)| TraceRow {
                flow,
                time_ns: *time_ns,
                name: name.clone(),
                value: *value,
            })
    }
}
