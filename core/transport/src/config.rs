//! Parameters of the bulk transport.

use crate::{RtoRule, wire};
use narrows_units::{Kind, ParamSpec, Params, Span};

/// Parameters of the transport that a scenario may set.
pub const PARAMS: &[ParamSpec] = &[
    ParamSpec::new("packet_size", Kind::Bytes, "IP size of a full data packet.")
        .default("1500")
        .range(128.0, 9000.0)
        .source("Ethernet MTU"),
    ParamSpec::new("initial_window", Kind::Packets, "Initial congestion window.")
        .default("10")
        .range(1.0, 1000.0)
        .source("RFC 6928"),
    ParamSpec::new("ack_every", Kind::Packets, "The receiver acknowledges every n-th packet.")
        .default("2")
        .range(1.0, 1000.0)
        .source("RFC 5681, section 4.2"),
    ParamSpec::new(
        "acks_per_rtt",
        Kind::Count,
        "Most acknowledgements per smallest round trip (TACK): the receiver then acknowledges when `ack_every` packets have arrived and that part of a round trip has passed, and at once only when a gap opens. 0 for no such limit; needs `sack`.",
    )
    .default("0")
    .range(0.0, 1000.0)
    .source("Li et al. 2020 (TACK): 4 with ack_every 2; the interval is told in data packets as by draft-ietf-quic-ack-frequency"),
    ParamSpec::new("max_ack_delay", Kind::Span, "Longest time an acknowledgement is held back.")
        .default("40000000")
        .range(0.0, 5e8)
        .source("Linux: 40 ms"),
    ParamSpec::new(
        "quick_acks",
        Kind::Packets,
        "Packets acknowledged one by one at the start and after data that had arrived before; unless it is 0, the closing of the last gap is acknowledged at once, too.",
    )
    .default("16")
    .range(0.0, 1e6)
    .source("Linux: 16; RFC 5681, section 4.2; QUIC has neither"),
    ParamSpec::new("rto_rule", Kind::Choice(&["linux", "rfc6298"]), "Rule for the variance term.")
        .default("linux")
        .source("Linux tcp_input; RFC 6298"),
    ParamSpec::new("min_rto", Kind::Span, "Smallest timeout (rfc6298) or variance term (linux).")
        .default("200000000")
        .range(0.0, 6e10)
        .source("Linux: 200 ms; RFC 6298 recommends 1 s"),
    ParamSpec::new(
        "timer_granularity",
        Kind::Span,
        "Step of the clock behind the timers of loss detection: the reordering timer and the tail-loss probe run 2 ms and a step longer.",
    )
    .default("4000000")
    .range(0.0, 1e8)
    .source("Linux: 2 ms are TCP_TIMEOUT_MIN_US, and with CONFIG_HZ=250 such timers run out 4 to 8 ms after the round trip, measured"),
    ParamSpec::new("packet_threshold", Kind::Packets, "Packets that overtake before one is lost.")
        .default("3")
        .range(1.0, 300.0)
        .source("RFC 5681, RFC 8985"),
    ParamSpec::new(
        "max_packet_threshold",
        Kind::Packets,
        "How far reordering raises the packet threshold: to the distance by which a packet was overtaken that arrived after all, at most to this. It stays what it is where this is no larger, and without `sack`.",
    )
    .default("300")
    .range(1.0, 1e6)
    .source("Linux tcp_max_reordering"),
    ParamSpec::new("tail_loss_probe", Kind::Flag, "Probe after two silent round trips.")
        .default("true")
        .source("RFC 8985, section 7"),
    ParamSpec::new(
        "pacing",
        Kind::Choice(&["scheme", "window"]),
        "Pace at the scheme's rate, if it has one, or all schemes at 2 (slow start) or 1.2 windows per round trip.",
    )
    .default("scheme")
    .source("Linux tcp_pacing_ss_ratio, tcp_pacing_ca_ratio"),
    ParamSpec::new("pacing_burst", Kind::Span, "Longest burst of a paced sender, at its rate.")
        .default("1000000")
        .range(0.0, 1e8)
        .source("Linux sizes bursts to about 1 ms; never less than two packets"),
    ParamSpec::new("ecn", Kind::Flag, "Send ECN-capable packets if the scheme reacts to marks.")
        .default("false")
        .source("Linux tcp_ecn: only on request"),
    ParamSpec::new(
        "sack",
        Kind::Flag,
        "Acknowledgements tell what has arrived beyond a gap; without it, only where the gap begins, and losses are repaired one per round trip.",
    )
    .default("true")
    .source("RFC 2018; without it RFC 6582 (NewReno)"),
    ParamSpec::new(
        "sack_reach",
        Kind::Packets,
        "Acknowledgements tell what has arrived up to this many full packets beyond the one that is missing first, and nothing about what lies further; 0 for no limit.",
    )
    .default("0")
    .range(0.0, 1e6)
    .source("libutp: a mask of 30 packets"),
    ParamSpec::new(
        "repair_at_once",
        Kind::Flag,
        "What is found lost because later packets have arrived is sent again at once, also where the window is full. Without it repairs wait for room in the window.",
    )
    .default("false")
    .source("libutp: selective_ack; of the first gap RFC 6675, section 5, step 4.3"),
    ParamSpec::new(
        "reliable",
        Kind::Flag,
        "Lost data is sent again; without it, what is lost stays lost and every packet carries new data. Schemes that were made for datagrams are defined without it.",
    )
    .default("true")
    .source("TCP; without it datagrams, as in QUIC's RFC 9221"),
    ParamSpec::new(
        "clock",
        Kind::Span,
        "Steps of the clock by which the scheme reads all times, rounded down; 0 for a clock without steps.",
    )
    .default("0")
    .range(0.0, 1e9),
    ParamSpec::new(
        "rack",
        Kind::Flag,
        "Losses are detected by time as well as by the number of packets that overtook.",
    )
    .default("true")
    .source("RFC 8985; without it RFC 6675"),
    ParamSpec::new(
        "window",
        Kind::Bytes,
        "Most payload bytes from the oldest unacknowledged to the newest one sent, as socket buffers and the peer's window set them; 0 means no limit.",
    )
    .default("0")
    .range(0.0, 1e12),
];

/// The transport's parameters, typed.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Payload of a full packet in bytes.
    pub mss: u16,
    /// Initial window in packets.
    pub initial_window: u64,
    /// Acknowledge every n-th packet.
    pub ack_every: u32,
    /// Most acknowledgements per smallest round trip; 0 for no such limit.
    pub acks_per_rtt: u64,
    /// Longest delay of an acknowledgement.
    pub max_ack_delay: Span,
    /// Packets acknowledged one by one at the start and after data that had arrived before.
    pub quick_acks: u64,
    /// Variance rule of the timeout.
    pub rto_rule: RtoRule,
    /// See [`PARAMS`].
    pub min_rto: Span,
    /// Step of the clock behind the timers of loss detection.
    pub timer_granularity: Span,
    /// Packet threshold of loss detection before any reordering is seen.
    pub packet_threshold: u64,
    /// Largest value, in packets, to which reordering raises it.
    pub max_packet_threshold: u64,
    /// Tail-loss probes are sent.
    pub tail_loss_probe: bool,
    /// Schemes without a pacing rate of their own are paced by window and RTT.
    pub pace_by_window: bool,
    /// Longest burst of a paced sender.
    pub pacing_burst: Span,
    /// ECN is asked for.
    pub ecn: bool,
    /// Acknowledgements tell what has arrived beyond a gap (SACK).
    pub sack: bool,
    /// Packets beyond the first gap that are told of; 0 for all.
    pub sack_reach: u64,
    /// Retransmissions leave also where the window is full.
    pub repair_at_once: bool,
    /// Lost data is sent again.
    pub reliable: bool,
    /// Steps of the scheme's clock; zero for none.
    pub clock: Span,
    /// Losses are detected by time (RACK).
    pub rack: bool,
    /// Most payload bytes between the oldest unacknowledged and the newest one sent.
    pub window: u64,
}

impl Config {
    /// Longest timeout (Linux TCP_RTO_MAX; RFC 6298 asks for at least 60 s).
    pub const MAX_RTO: Span = Span::from_ms(120_000);
    /// What Linux adds to the timers of loss detection (TCP_TIMEOUT_MIN_US).
    const MIN_LOSS_TIMER: Span = Span::from_ms(2);

    /// By how much the timers of loss detection outlast what they were set for.
    pub(crate) fn timer_slack(&self) -> Span {
        Self::MIN_LOSS_TIMER + self.timer_granularity
    }

    /// Bytes of a full packet that are not payload: IP, UDP and our header.
    pub fn overhead(&self) -> u32 {
        overhead(self.acks_per_rtt)
    }

    /// From checked parameters.
    pub fn new(params: &Params) -> Self {
        let integer = |name: &str| params.integer(name).unwrap_or_default();
        let span = |name: &str| params.span(name).unwrap_or_default();
        let acks_per_rtt = integer("acks_per_rtt");
        Config {
            mss: integer("packet_size")
                .saturating_sub(u64::from(overhead(acks_per_rtt)))
                .clamp(1, 65_000) as u16,
            initial_window: integer("initial_window").max(1),
            ack_every: integer("ack_every").max(1) as u32,
            acks_per_rtt,
            max_ack_delay: span("max_ack_delay"),
            quick_acks: integer("quick_acks"),
            rto_rule: match params.word("rto_rule") {
                Some("rfc6298") => RtoRule::Rfc6298,
                _ => RtoRule::Linux,
            },
            min_rto: span("min_rto"),
            timer_granularity: span("timer_granularity"),
            packet_threshold: integer("packet_threshold").max(1),
            max_packet_threshold: integer("max_packet_threshold"),
            tail_loss_probe: params.flag("tail_loss_probe").unwrap_or_default(),
            pace_by_window: params.word("pacing") == Some("window"),
            pacing_burst: span("pacing_burst"),
            ecn: params.flag("ecn").unwrap_or_default(),
            sack: params.flag("sack").unwrap_or_default(),
            // Where all of it is missing there is nothing to limit.
            sack_reach: match params.flag("sack") {
                Some(false) => 0,
                _ => integer("sack_reach"),
            },
            repair_at_once: params.flag("repair_at_once").unwrap_or_default(),
            // Without selective acknowledgements nobody says what arrived beyond a gap: it has to be filled.
            reliable: params.flag("reliable").unwrap_or_default()
                || params.flag("sack") == Some(false),
            clock: span("clock"),
            rack: params.flag("rack").unwrap_or_default(),
            // At least one packet, or nothing could ever be sent.
            window: match integer("window") {
                0 => u64::MAX,
                window => window.max(integer("packet_size")),
            },
        }
    }
}

fn overhead(acks_per_rtt: u64) -> u32 {
    let interval = if acks_per_rtt > 0 {
        wire::ACK_INTERVAL
    } else {
        0
    };
    wire::IP_UDP + wire::DATA_HEADER + interval
}

impl Default for Config {
    fn default() -> Self {
        Config::new(&Params::resolve(PARAMS, []).expect("defaults resolve"))
    }
}
