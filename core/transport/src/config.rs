//! Parameters of the bulk transport.

use crate::{RtoRule, wire};
use narrows_units::{ParamSpec, Params, Span, choice, params};

/// Parameters of the transport that a scenario may set.
pub const PARAMS: &[ParamSpec] = Config::PARAMS;

choice! {
    /// Which schemes are paced.
    pub enum PacingChoice { Scheme = "scheme", Window = "window" }
}

params! {
    /// The transport's parameters. As [`Config::new`] makes them, they agree with each other.
    #[derive(PartialEq)]
    pub struct Config {
        /// IP size of a full data packet.
        packet_size: Bytes(128.0..=9000.0) = 1500, "Ethernet MTU";
        /// Initial congestion window.
        initial_window: PacketCount(1.0..=1000.0) = 10, "RFC 6928";
        /// The receiver acknowledges every n-th packet.
        ack_every: Packets as u32(1.0..=1000.0) = 2, "RFC 5681, section 4.2";
        /// Maximum number of acknowledgements per minimum RTT (TACK): the receiver then acknowledges when `ack_every`
        /// packets have arrived and that part of a round trip has passed, and at once only when a gap opens. 0 means no
        /// such limit; requires `sack`.
        acks_per_rtt: Count(0.0..=1000.0) = 0,
            "Li et al. 2020 (TACK): 4 with ack_every 2; data packets carry the interval, as in draft-ietf-quic-ack-frequency";
        /// Longest time an acknowledgement is held back.
        max_ack_delay: Span(0.0..=5e8) = "40 ms", "Linux: 40 ms";
        /// Packets acknowledged individually at the start and after duplicate data; unless it is 0, closing the last
        /// gap is acknowledged at once, too.
        quick_acks: PacketCount(0.0..=1e6) = 16, "Linux: 16; RFC 5681, section 4.2; QUIC has neither";
        /// Rule for the variance term.
        rto_rule: RtoRule = "linux", "Linux tcp_input; RFC 6298";
        /// Minimum timeout (rfc6298) or variance term (linux).
        min_rto: Span(0.0..=6e10) = "200 ms", "Linux: 200 ms; RFC 6298 recommends 1 s";
        /// Granularity of the clock of the loss-detection timers: the reordering timer and the tail-loss probe run
        /// longer by 2 ms and one step.
        timer_granularity: Span(0.0..=1e8) = "4 ms",
            "Linux: 2 ms are TCP_TIMEOUT_MIN_US, and with CONFIG_HZ=250 such timers run out 4 to 8 ms after the round trip, measured";
        /// Number of later packets that must arrive before a packet counts as lost.
        packet_threshold: PacketCount(1.0..=300.0) = 3, "RFC 5681, RFC 8985";
        /// Maximum to which reordering raises the packet threshold. The threshold becomes the distance by which a late
        /// packet was overtaken; it stays constant if this value is no larger, and without `sack`.
        max_packet_threshold: PacketCount(1.0..=1e6) = 300, "Linux tcp_max_reordering";
        /// Send a probe after two silent round trips.
        tail_loss_probe: Flag = true, "RFC 8985, section 7";
        /// Pace only schemes with a pacing rate, or all schemes (those without one at 2 windows per round trip in slow
        /// start, else 1.2).
        pacing: PacingChoice = "scheme", "Linux tcp_pacing_ss_ratio, tcp_pacing_ca_ratio";
        /// Longest burst of a paced sender, at its rate.
        pacing_burst: Span(0.0..=1e8) = "1 ms", "Linux sizes bursts to about 1 ms; never less than two packets";
        /// Send ECN-capable packets if the scheme reacts to marks.
        ecn: Flag = false, "Linux tcp_ecn: only on request";
        /// Acknowledgements report data beyond a gap (selective acknowledgements); without it they report only the
        /// start of the gap, and losses are repaired one per round trip.
        sack: Flag = true, "RFC 2018; without it RFC 6582 (NewReno)";
        /// Acknowledgements report data up to this many full packets beyond the first missing one, and nothing further;
        /// 0 means no limit.
        sack_reach: PacketCount(0.0..=1e6) = 0, "libutp: a mask of 30 packets";
        /// Data found lost because later packets have arrived is retransmitted at once, even if the window is full.
        /// Without it retransmissions wait for room in the window.
        repair_at_once: Flag = false, "libutp: selective_ack; of the first gap RFC 6675, section 5, step 4.3";
        /// Lost data is retransmitted; without it, lost data stays lost and every packet carries new data. Schemes
        /// designed for datagrams are defined without it.
        reliable: Flag = true, "TCP; without it datagrams, as in QUIC's RFC 9221";
        /// Granularity of the clock with which the scheme reads all times, rounded down; 0 means nanoseconds.
        clock: Span(0.0..=1e9) = 0;
        /// Losses are detected by time as well as by packet threshold.
        rack: Flag = true, "RFC 8985; without it RFC 6675";
        /// Maximum number of payload bytes between the oldest unacknowledged and the newest sent byte, as set by socket
        /// buffers and the peer's window; 0 means no limit.
        window: Bytes as u64(0.0..=1e12) = 0;
    }
}

impl Config {
    /// Longest timeout (Linux TCP_RTO_MAX; RFC 6298 asks for at least 60 s).
    pub const MAX_RTO: Span = Span::from_ms(120_000);
    /// Span that Linux adds to the timers of loss detection (TCP_TIMEOUT_MIN_US).
    const MIN_LOSS_TIMER: Span = Span::from_ms(2);

    /// Slack of the loss-detection timers.
    pub(crate) fn timer_slack(&self) -> Span {
        Self::MIN_LOSS_TIMER + self.timer_granularity
    }

    /// True if the packet that closes the last gap is acknowledged at once (RFC 5681, section 4.2). For a receiver
    /// without quick acknowledgements, as in QUIC, it is like any other packet: packet numbers are acknowledged, not
    /// the stream (RFC 9000, section 13.2.1).
    pub(crate) fn acks_closing_of_gaps(&self) -> bool {
        self.quick_acks > 0
    }

    /// Overhead of a full packet in bytes: the IP, UDP and transport headers.
    #[inline]
    pub fn overhead(&self) -> u32 {
        let interval = if self.acks_per_rtt > 0 {
            wire::ACK_INTERVAL
        } else {
            0
        };
        wire::IP_UDP + wire::DATA_HEADER + interval
    }

    /// Payload of a full packet in bytes.
    #[inline]
    pub fn mss(&self) -> u64 {
        self.packet_size.get() - u64::from(self.overhead())
    }

    /// From checked parameters.
    pub fn new(params: &Params) -> Self {
        let mut config = Config::read(params);
        if !config.sack {
            // Without selective acknowledgements there is nothing to limit.
            config.sack_reach = 0;
            // Without selective acknowledgements data beyond a gap is not reported: the gap has to be filled.
            config.reliable = true;
        }
        config.window = match config.window {
            0 => u64::MAX,
            // At least one packet, or nothing could be sent.
            window => window.max(config.packet_size.get()),
        };
        config
    }
}

impl Default for Config {
    fn default() -> Self {
        Config::new(&Params::resolve(PARAMS, []).expect("defaults resolve"))
    }
}
