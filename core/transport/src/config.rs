//! Parameters of the bulk transport.

use crate::{RtoRule, wire};
use narrows_units::{ParamSpec, Params, Span, choice, params};

/// Parameters of the transport that a scenario may set.
pub const PARAMS: &[ParamSpec] = Config::PARAMS;

choice! {
    /// Schemes that are paced.
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
        /// Most acknowledgements per smallest round trip (TACK): the receiver then acknowledges when `ack_every`
        /// packets have arrived and that part of a round trip has passed, and at once only when a gap opens. 0 for no
        /// such limit; needs `sack`.
        acks_per_rtt: Count(0.0..=1000.0) = 0,
            "Li et al. 2020 (TACK): 4 with ack_every 2; the interval is told in data packets as by draft-ietf-quic-ack-frequency";
        /// Longest time an acknowledgement is held back.
        max_ack_delay: Span(0.0..=5e8) = "40 ms", "Linux: 40 ms";
        /// Packets acknowledged one by one at the start and after data that had arrived before; unless it is 0, the
        /// closing of the last gap is acknowledged at once, too.
        quick_acks: PacketCount(0.0..=1e6) = 16, "Linux: 16; RFC 5681, section 4.2; QUIC has neither";
        /// Rule for the variance term.
        rto_rule: RtoRule = "linux", "Linux tcp_input; RFC 6298";
        /// Smallest timeout (rfc6298) or variance term (linux).
        min_rto: Span(0.0..=6e10) = "200 ms", "Linux: 200 ms; RFC 6298 recommends 1 s";
        /// Step of the clock behind the timers of loss detection: the reordering timer and the tail-loss probe run 2
        /// ms and a step longer.
        timer_granularity: Span(0.0..=1e8) = "4 ms",
            "Linux: 2 ms are TCP_TIMEOUT_MIN_US, and with CONFIG_HZ=250 such timers run out 4 to 8 ms after the round trip, measured";
        /// Packets that overtake before one is lost.
        packet_threshold: PacketCount(1.0..=300.0) = 3, "RFC 5681, RFC 8985";
        /// Largest value to which reordering raises the packet threshold, which becomes the distance by which a packet
        /// was overtaken that arrived after all. It stays what it is where this is no larger, and without `sack`.
        max_packet_threshold: PacketCount(1.0..=1e6) = 300, "Linux tcp_max_reordering";
        /// Probe after two silent round trips.
        tail_loss_probe: Flag = true, "RFC 8985, section 7";
        /// Pace at the scheme's rate, if it has one, or all schemes at 2 (slow start) or 1.2 windows per round trip.
        pacing: PacingChoice = "scheme", "Linux tcp_pacing_ss_ratio, tcp_pacing_ca_ratio";
        /// Longest burst of a paced sender, at its rate.
        pacing_burst: Span(0.0..=1e8) = "1 ms", "Linux sizes bursts to about 1 ms; never less than two packets";
        /// Send ECN-capable packets if the scheme reacts to marks.
        ecn: Flag = false, "Linux tcp_ecn: only on request";
        /// Acknowledgements tell what has arrived beyond a gap; without it, only where the gap begins, and losses are
        /// repaired one per round trip.
        sack: Flag = true, "RFC 2018; without it RFC 6582 (NewReno)";
        /// Acknowledgements tell what has arrived up to this many full packets beyond the one that is missing first,
        /// and nothing about what lies further; 0 for no limit.
        sack_reach: PacketCount(0.0..=1e6) = 0, "libutp: a mask of 30 packets";
        /// Data found lost because later packets have arrived is sent again at once, also where the window is
        /// full. Without it repairs wait for room in the window.
        repair_at_once: Flag = false, "libutp: selective_ack; of the first gap RFC 6675, section 5, step 4.3";
        /// Lost data is sent again; without it, what is lost stays lost and every packet carries new data. Schemes
        /// that were made for datagrams are defined without it.
        reliable: Flag = true, "TCP; without it datagrams, as in QUIC's RFC 9221";
        /// Steps of the clock by which the scheme reads all times, rounded down; 0 for a clock without steps.
        clock: Span(0.0..=1e9) = 0;
        /// Losses are detected by time as well as by the number of packets that overtook.
        rack: Flag = true, "RFC 8985; without it RFC 6675";
        /// Most payload bytes from the oldest unacknowledged to the newest one sent, as socket buffers and the peer's
        /// window set them; 0 means no limit.
        window: Bytes as u64(0.0..=1e12) = 0;
    }
}

impl Config {
    /// Longest timeout (Linux TCP_RTO_MAX; RFC 6298 asks for at least 60 s).
    pub const MAX_RTO: Span = Span::from_ms(120_000);
    /// Span that Linux adds to the timers of loss detection (TCP_TIMEOUT_MIN_US).
    const MIN_LOSS_TIMER: Span = Span::from_ms(2);

    /// By how much the timers of loss detection outlast what they were set for.
    pub(crate) fn timer_slack(&self) -> Span {
        Self::MIN_LOSS_TIMER + self.timer_granularity
    }

    /// True if the packet that closes the last gap is acknowledged at once (RFC 5681, section 4.2). To a receiver without
    /// quick acknowledgements, QUIC's, it is as any other: packet numbers are acknowledged, not the stream (RFC 9000,
    /// section 13.2.1).
    pub(crate) fn acks_closing_of_gaps(&self) -> bool {
        self.quick_acks > 0
    }

    /// Bytes of a full packet that are not payload: IP, UDP and our header.
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
            // Where all of it is missing there is nothing to limit.
            config.sack_reach = 0;
            // Without selective acknowledgements nobody says what arrived beyond a gap: it has to be filled.
            config.reliable = true;
        }
        config.window = match config.window {
            0 => u64::MAX,
            // At least one packet, or nothing could ever be sent.
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
