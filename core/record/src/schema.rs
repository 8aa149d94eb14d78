//! The rows of the columnar files. Times are nanoseconds since the start of the run, sizes are
//! those of IP packets; every column ends in its unit.

use crate::rows::rows;
use crate::{Content, RecordError};
pub use narrows_units::Direction;
use serde::{Deserialize, Serialize};

/// The document that describes the run.
pub const RUN_FILE: &str = "run.json";
/// One row per packet.
pub const PACKETS_FILE: &str = "packets.parquet";
/// Sampled states of the senders.
pub const STATES_FILE: &str = "states.parquet";
/// Sampled backlogs of the queues.
pub const QUEUES_FILE: &str = "queues.parquet";
/// Values that schemes publish beyond the common state.
pub const TRACES_FILE: &str = "traces.parquet";
/// Transfers of applications: when each began and completed.
pub const TRANSFERS_FILE: &str = "transfers.parquet";
/// Histograms of completion times, kept in place of transfers for `transfers: bins`.
pub const COMPLETIONS_FILE: &str = "completions.parquet";
/// Frames of video that real-time schemes sent: when each was captured and completed.
pub const FRAMES_FILE: &str = "frames.parquet";
/// Capacity of servers over time, where it does not follow from the cell alone.
pub const CAPACITY_FILE: &str = "capacity.parquet";
/// Binned series, kept in place of packets for `record: bins`.
pub const BINS_FILE: &str = "bins.parquet";
/// Delay histograms, kept in place of packets for `record: bins`.
pub const DELAYS_FILE: &str = "delays.parquet";

/// Fate of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Fate {
    /// It reached the other host.
    Delivered = 0,
    /// An element dropped it.
    Dropped = 1,
    /// An element still held it when the run ended.
    InFlight = 2,
}

impl Fate {
    /// The word used in files.
    pub const fn word(self) -> &'static str {
        match self {
            Fate::Delivered => "delivered",
            Fate::Dropped => "dropped",
            Fate::InFlight => "in_flight",
        }
    }

    /// The fate that `word` names.
    pub fn from_word(word: &str) -> Option<Self> {
        match word {
            "delivered" => Some(Fate::Delivered),
            "dropped" => Some(Fate::Dropped),
            "in_flight" => Some(Fate::InFlight),
            _ => None,
        }
    }
}

/// One IP packet that entered the network (`packets.parquet`, in order of `uid`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PacketRow {
    /// Flow it belongs to; 0 if none.
    pub flow: u16,
    /// Its direction.
    pub direction: Direction,
    /// 1, 2, 3... in the order of entering, without gaps.
    pub uid: u64,
    /// Size of the IP packet.
    pub size_bytes: u32,
    /// When it left its host.
    pub sent_ns: u64,
    /// When it was released to the other host.
    pub arrived_ns: Option<u64>,
    /// `arrived_ns` less the time the model asked for; 0 in simulation.
    pub late_ns: Option<i64>,
    /// Its fate.
    pub fate: Fate,
    /// The element that dropped or holds it.
    pub element: Option<String>,
    /// Why it was dropped; `corrupted` for a packet that was delivered damaged.
    pub reason: Option<String>,
    /// Uid of the packet of which an element made this copy.
    pub copy_of: Option<u64>,
}

rows! {
    /// The state of one sender at one instant (`states.parquet`). Values that the scheme or the kernel does not report
    /// are absent.
    #[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(default)]
    pub struct StateRow in STATES_FILE, pub read_states {
        /// Flow of the sender.
        pub flow: u16,
        /// When it was sampled.
        pub time_ns: u64,
        /// Congestion window.
        pub cwnd_bytes: Option<u64>,
        /// Slow-start threshold.
        pub ssthresh_bytes: Option<u64>,
        /// Pacing rate in bit/s.
        pub pacing_bps: Option<u64>,
        /// Latest round-trip time.
        pub rtt_ns: Option<u64>,
        /// Smoothed round-trip time.
        pub srtt_ns: Option<u64>,
        /// Smallest round-trip time of the scheme's or transport's window.
        pub min_rtt_ns: Option<u64>,
        /// Sent and neither acknowledged nor lost.
        pub inflight_bytes: Option<u64>,
        /// Acknowledged since the start.
        pub delivered_bytes: Option<u64>,
        /// Latest delivery-rate sample in bit/s.
        pub delivery_rate_bps: Option<u64>,
        /// Sent again since the start.
        pub retransmitted_bytes: Option<u64>,
        /// Declared lost since the start.
        pub lost_packets: Option<u64>,
        /// Phase of the scheme, in its own words.
        pub mode: Option<String>,
    }

    /// One sample of a queue (`queues.parquet`). The packet in service is not counted.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct QueueRow in QUEUES_FILE, pub read_queues {
        /// The element that holds the queue.
        pub element: String,
        /// When it was sampled.
        pub time_ns: u64,
        /// Bytes waiting.
        pub backlog_bytes: u64,
        /// Packets waiting.
        pub backlog_packets: u32,
    }

    /// One value that a scheme publishes beyond the common state (`traces.parquet`).
    #[derive(Clone, Debug, PartialEq)]
    pub struct TraceRow in TRACES_FILE, pub read_traces {
        /// Flow of the scheme.
        pub flow: u16,
        /// When it was sampled.
        pub time_ns: u64,
        /// Name of the quantity.
        pub name: String,
        /// Its value.
        pub value: f64,
    }

    /// One transfer of an application (`transfers.parquet`).
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct TransferRow in TRANSFERS_FILE, pub read_transfers {
        /// Flow it belongs to.
        pub flow: u16,
        /// Connection of the flow that carried it, from 0.
        pub connection: u32,
        /// 0, 1, 2... in the order in which the flow began them.
        pub transfer: u32,
        /// Application bytes in the direction that counts.
        pub bytes: u64,
        /// When the application asked for it.
        pub started_ns: u64,
        /// When its last byte arrived; absent if it was not complete at the end.
        pub ended_ns: Option<u64>,
    }

    /// One bucket of the histogram of the completion times of one flow (`completions.parquet`). Both bounds
    /// are inclusive, and exact at either end of a flow's histogram.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct CompletionRow in COMPLETIONS_FILE, read_completion_rows {
        /// Flow.
        pub flow: u16,
        /// Shortest time counted here; absent in the row of the incomplete transfers.
        pub low_ns: Option<u64>,
        /// Longest time counted here.
        pub high_ns: Option<u64>,
        /// Number of transfers.
        pub transfers: u64,
        /// In the first row of a flow: sum of all its times; else 0.
        pub sum_ns: u64,
        /// In the first row of a flow: application bytes of all its complete transfers; in the row of the incomplete
        /// ones: their bytes; else 0.
        pub bytes: u64,
    }

    /// One frame of video that a real-time scheme sent (`frames.parquet`, flow by flow in order of
    /// `frame`).
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct FrameRow in FRAMES_FILE, pub read_frames {
        /// Flow it belongs to.
        pub flow: u16,
        /// 0, 1, 2... in the order in which the encoder made them, without gaps.
        pub frame: u64,
        /// When it was captured.
        pub captured_ns: u64,
        /// Payload bytes.
        pub bytes: u32,
        /// True if it needs no other frame to be decoded.
        pub key: bool,
        /// True if the sender discarded it before all of it was sent.
        pub discarded: bool,
        /// When its last packet arrived; absent if not all of them did.
        pub arrived_ns: Option<u64>,
    }

    /// Capacity of one server during one bin of time (`capacity.parquet`).
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct CapacityRow in CAPACITY_FILE, pub read_capacity {
        /// The bottleneck.
        pub element: String,
        /// Start of the bin; the next one of the element, or the end of the run, ends it.
        pub time_ns: u64,
        /// Bytes on the wire that it could have carried.
        pub bytes: u64,
    }

    /// Traffic of one flow in one direction during one bin of time (`bins.parquet`).
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct BinRow in BINS_FILE, pub read_bins {
        /// Flow.
        pub flow: u16,
        /// Direction of the packets.
        pub direction: Direction,
        /// Start of the bin.
        pub bin_ns: u64,
        /// Packets that entered the network in the bin.
        pub sent_packets: u64,
        /// Their bytes.
        pub sent_bytes: u64,
        /// Packets that arrived in the bin.
        pub arrived_packets: u64,
        /// Their bytes.
        pub arrived_bytes: u64,
        /// Packets *sent* in the bin that were dropped later.
        pub dropped_packets: u64,
        /// Their bytes.
        pub dropped_bytes: u64,
        /// Sum of the one-way delays of the packets that arrived in the bin.
        pub delay_sum_ns: u64,
        /// First arrival in the bin.
        pub first_arrival_ns: Option<u64>,
        /// Last arrival in the bin.
        pub last_arrival_ns: Option<u64>,
    }

    /// One bucket of a delay histogram (`delays.parquet`). Both bounds are inclusive; the lowest bound
    /// of a flow is its exact minimum, the highest its exact maximum.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct DelayRow in DELAYS_FILE, pub read_delays {
        /// Flow.
        pub flow: u16,
        /// Direction of the packets.
        pub direction: Direction,
        /// Smallest delay counted here.
        pub low_ns: u64,
        /// Largest delay counted here.
        pub high_ns: u64,
        /// Number of packets.
        pub packets: u64,
    }
}

/// Reads a file of [`CompletionRow`]s.
///
/// # Errors
/// A damaged file, or a bucket with one bound or with bounds in the wrong order.
pub fn read_completions(
    content: impl Into<Content<CompletionRow>>,
) -> Result<Vec<CompletionRow>, RecordError> {
    let rows = read_completion_rows(content)?;
    let sound = |row: &CompletionRow| match (row.low_ns, row.high_ns) {
        (Some(low), Some(high)) => low <= high,
        (None, None) => true,
        _ => false,
    };
    match rows.iter().find(|row| !sound(row)) {
        None => Ok(rows),
        Some(row) => {
            let problem = format!("a bucket of flow {} has inconsistent bounds", row.flow);
            Err(RecordError::data(COMPLETIONS_FILE, problem))
        }
    }
}
