//! The data read from a trace: one log per connection.

use super::clock;
use super::connection::Connection;
use super::ranges::AckedNumbers;

/// Events of one connection in one trace, as columns. Times are nanoseconds since the reference of the trace, or since
/// 1970 where [`Log::absolute`]; values that an event does not contain are NaN.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Log {
    /// Version of the format.
    pub version: String,
    /// Title of the trace.
    pub title: String,
    /// `client`, `server`, or another word of the trace.
    pub vantage_point: String,
    /// Index of the trace in its file.
    pub trace: u32,
    /// The name that the trace gives to the connection (`group_id`, `ODCID`); empty if none.
    pub group: String,
    /// True if times are since 1970.
    pub absolute: bool,
    /// Packets sent: time.
    pub sent_ns: Vec<i64>,
    /// Their packet-number spaces: 0 Initial, 1 Handshake, 2 application data, 3 none.
    pub sent_space: Vec<u8>,
    /// Their numbers, -1 if they have none.
    pub sent_number: Vec<i64>,
    /// Their sizes in bytes; 0 if unknown.
    pub sent_bytes: Vec<u32>,
    /// When they were acknowledged; [`Log::NEVER`] if they were not.
    pub acked_ns: Vec<i64>,
    /// Packets received: time.
    pub received_ns: Vec<i64>,
    /// Their packet-number spaces.
    pub received_space: Vec<u8>,
    /// Their numbers.
    pub received_number: Vec<i64>,
    /// Their sizes in bytes.
    pub received_bytes: Vec<u32>,
    /// Packets lost: time.
    pub lost_ns: Vec<i64>,
    /// Number of packets lost at each time.
    pub lost_packets: Vec<u64>,
    /// Metrics: time.
    pub metrics_ns: Vec<i64>,
    /// Congestion window, bytes.
    pub cwnd_bytes: Vec<f64>,
    /// Bytes in flight.
    pub inflight_bytes: Vec<f64>,
    /// Slow-start threshold, bytes.
    pub ssthresh_bytes: Vec<f64>,
    /// Pacing rate, bit/s.
    pub pacing_bps: Vec<f64>,
    /// Latest round-trip time.
    pub rtt_ns: Vec<f64>,
    /// Smoothed round-trip time.
    pub srtt_ns: Vec<f64>,
    /// Smallest round-trip time.
    pub min_rtt_ns: Vec<f64>,
    /// Parts of the trace that could not be read, or are not used.
    pub unread: Vec<UnreadKind>,
}

impl Log {
    /// In [`Log::acked_ns`]: it was not acknowledged.
    pub const NEVER: i64 = i64::MIN;
}

/// Something that was not read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnreadKind {
    /// Description in the plural.
    pub kind: String,
    /// Their number.
    pub count: u64,
    /// Whether results are based on only a part of the trace because of it.
    pub matters: Matters,
}

/// Results that are based on only a part of a trace because something was not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Matters {
    /// Those of both ends.
    Always,
    /// Those of the end that sent the data: acknowledgements.
    Sender,
    /// No results.
    Never,
}

impl Matters {
    /// The word for it: `always`, `sender`, `never`.
    pub fn word(self) -> &'static str {
        match self {
            Matters::Always => "always",
            Matters::Sender => "sender",
            Matters::Never => "never",
        }
    }
}

/// The log of a connection, each sent packet with the time at which it was acknowledged.
pub(super) fn log_of(connection: Connection) -> Log {
    let times = connection.acked.map(AckedNumbers::times);
    let numbers = connection.sent.number.iter().zip(&connection.sent.space);
    let acked = numbers.map(|(&number, &space)| {
        let number = u64::try_from(number).ok()?;
        times.get(usize::from(space))?.time(number)
    });
    let acked_ns = acked.map(|ns| ns.unwrap_or(Log::NEVER)).collect();
    let [cwnd, inflight, ssthresh, pacing, rtt, srtt, min_rtt] = connection.samples.values;
    let (sent, received) = (connection.sent, connection.received);
    let first = sent
        .ns
        .iter()
        .chain(&received.ns)
        .chain(&connection.samples.ns)
        .min();
    Log {
        group: connection.group.unwrap_or_default(),
        absolute: first.is_some_and(|&first| first > clock::ABSOLUTE_NS),
        acked_ns,
        sent_ns: sent.ns,
        sent_space: sent.space,
        sent_number: sent.number,
        sent_bytes: sent.bytes,
        received_ns: received.ns,
        received_space: received.space,
        received_number: received.number,
        received_bytes: received.bytes,
        lost_ns: connection.lost_ns,
        lost_packets: connection.lost_packets,
        metrics_ns: connection.samples.ns,
        cwnd_bytes: cwnd,
        inflight_bytes: inflight,
        ssthresh_bytes: ssthresh,
        pacing_bps: pacing,
        rtt_ns: rtt,
        srtt_ns: srtt,
        min_rtt_ns: min_rtt,
        ..Log::default()
    }
}
