//! Events that the transport reports to a scheme. Each event is one struct, built only by the transport (and by tests):
//! adding a member touches only the transport and the schemes that use it.

use narrows_units::{Bytes, Rate, Span, Time};

/// A packet newly acknowledged by an acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AckedPacket {
    /// Packet number, unique and increasing in order of transmission.
    pub number: u64,
    /// Payload bytes.
    pub bytes: u32,
    /// When it was sent.
    pub sent: Time,
    /// When it arrived by the peer's clock (with an unknown but constant offset), if the peer reported it.
    pub arrived: Option<Time>,
}

/// A delivery-rate sample (draft-cheng-iccrg-delivery-rate-estimation).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateSample {
    /// Bytes delivered per time over `interval`.
    pub rate: Rate,
    /// Bytes delivered in the interval.
    pub delivered: Bytes,
    /// The longer of the send and the acknowledgement interval.
    pub interval: Span,
    /// True if the application, not the path, limited the rate.
    pub app_limited: bool,
    /// Value of the connection's delivered counter when the sampled packet was sent.
    pub prior_delivered: Bytes,
    /// Payload bytes in flight when it was sent, including itself.
    pub in_flight_at_send: Bytes,
    /// Payload bytes found lost since it was sent.
    pub lost: Bytes,
}

/// State of the transport's congestion control (Linux: tcp_ca_state).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CaState {
    /// Normal operation.
    #[default]
    Open,
    /// Marks were reported, no losses (CWR in Linux).
    Cwr,
    /// Losses are being repaired.
    Recovery,
    /// A timeout is being repaired (Loss in Linux): the scheme grows its window again.
    Loss,
}

/// An acknowledgement that acknowledges new packets.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct AckEvent<'a> {
    /// Now.
    pub now: Time,
    /// The packets newly acknowledged, in ascending order of their numbers.
    pub packets: &'a [AckedPacket],
    /// Payload bytes newly acknowledged.
    pub bytes: Bytes,
    /// Payload bytes of packets newly reported as marked, estimated from packet counts.
    pub ce_bytes: Bytes,
    /// RTT of the newest packet acknowledged by this event.
    pub latest_rtt: Option<Span>,
    /// Smoothed RTT.
    pub smoothed_rtt: Span,
    /// Minimum RTT of the connection.
    pub min_rtt: Span,
    /// Delivery-rate sample, if a valid one could be taken.
    pub rate: Option<RateSample>,
    /// Total payload bytes delivered so far, including these.
    pub delivered: Bytes,
    /// Payload bytes found lost by this acknowledgement.
    pub lost: Bytes,
    /// Total payload bytes found lost so far, including these.
    pub lost_total: Bytes,
    /// Number of the current round trip, from 0.
    pub round: u64,
    /// True if a round trip begins with this acknowledgement.
    pub round_start: bool,
    /// Payload bytes in flight before this acknowledgement was processed.
    pub in_flight_before: Bytes,
    /// Payload bytes in flight after it (acknowledged and lost ones removed).
    pub in_flight: Bytes,
    /// True if the sender was window-limited in the last round trip.
    pub cwnd_limited: bool,
    /// True if it may grow a TCP-like window: the first gap has moved, or no gap exists, or the path reorders anyway
    /// (RFC 5681, section 3.1; Linux, tcp_may_raise_cwnd). QUIC's windows grow with every delivery.
    pub may_grow: bool,
    /// True if a recovery epoch caused by losses or marks is in progress. A scheme with `Recovery::Proportional` must
    /// not grow its window then.
    pub in_recovery: bool,
    /// State of congestion control. (`in_recovery` is true in `Cwr` and `Recovery`.)
    pub phase: CaState,
}

impl AckEvent<'_> {
    /// An event at `now` with default members.
    pub fn new(now: Time) -> Self {
        AckEvent {
            now,
            cwnd_limited: true,
            may_grow: true,
            ..AckEvent::default()
        }
    }
}

/// A packet declared lost, with the state when it was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LostPacket {
    /// Packet number.
    pub number: u64,
    /// Payload bytes.
    pub bytes: u32,
    /// When it was sent.
    pub sent: Time,
    /// Payload bytes in flight then, including itself.
    pub in_flight_at_send: Bytes,
    /// Total payload bytes delivered before it was sent.
    pub delivered_before: Bytes,
    /// Total payload bytes found lost before it was sent.
    pub lost_before: Bytes,
    /// True if the sender was application-limited then.
    pub app_limited: bool,
}

/// Reason why packets are declared lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossCause {
    /// Packets sent later have arrived (packet or time threshold, or a tail-loss probe).
    Reordering,
    /// The retransmission timer expired without any acknowledgement.
    Timeout,
    /// Persistent congestion: everything sent over several timeouts was lost (RFC 9002, section 7.6).
    Persistent,
}

/// Packets were found to be lost.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LossEvent<'a> {
    /// Now.
    pub now: Time,
    /// Why.
    pub cause: LossCause,
    /// Payload bytes lost.
    pub bytes: Bytes,
    /// Packets lost.
    pub packets: u64,
    /// The packets, in ascending order of their numbers. (Without selective acknowledgements the packets that caused a
    /// duplicate are unknown and not included.)
    pub lost: &'a [LostPacket],
    /// Total payload bytes found lost so far, including these.
    pub lost_total: Bytes,
    /// Total payload bytes delivered so far.
    pub delivered: Bytes,
    /// Send time of the newest packet among them.
    pub newest_sent: Time,
    /// Payload bytes in flight before these were removed.
    pub in_flight: Bytes,
    /// True if this is the first loss of a recovery epoch. Schemes reduce once per epoch; a
    /// timeout always opens a new one unless it repeats an unanswered timeout.
    pub new_epoch: bool,
    /// Smoothed RTT.
    pub smoothed_rtt: Span,
}

impl LossEvent<'_> {
    /// A loss of one full packet that opens an epoch; adjust the members as needed.
    pub fn new(now: Time, cause: LossCause, bytes: Bytes) -> Self {
        LossEvent {
            now,
            cause,
            bytes,
            packets: 1,
            lost: &[],
            lost_total: bytes,
            delivered: Bytes::ZERO,
            newest_sent: now,
            in_flight: bytes,
            new_epoch: true,
            smoothed_rtt: Span::ZERO,
        }
    }
}

/// The peer reported marked packets.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct EcnEvent {
    /// Now.
    pub now: Time,
    /// Packets newly reported as marked.
    pub packets: u64,
    /// Payload bytes in flight before the acknowledgement was processed.
    pub in_flight: Bytes,
    /// True if this opens a recovery epoch (at most once per round trip).
    pub new_epoch: bool,
}

impl EcnEvent {
    /// One marked packet that opens an epoch; adjust the members as needed.
    pub fn new(now: Time, in_flight: Bytes) -> Self {
        EcnEvent {
            now,
            packets: 1,
            in_flight,
            new_epoch: true,
        }
    }
}

/// A packet was sent.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SendEvent {
    /// Now.
    pub now: Time,
    /// Its packet number.
    pub number: u64,
    /// Its payload bytes.
    pub bytes: Bytes,
    /// Payload bytes in flight, including it.
    pub in_flight: Bytes,
    /// Time for which nothing had been in flight before it, if any.
    pub idle: Option<Span>,
    /// True if it is a retransmission.
    pub retransmission: bool,
    /// True if the sender is application-limited.
    pub app_limited: bool,
}

impl SendEvent {
    /// A first transmission; adjust the members as needed.
    pub fn new(now: Time, number: u64, bytes: Bytes) -> Self {
        SendEvent {
            now,
            number,
            bytes,
            in_flight: bytes,
            idle: None,
            retransmission: false,
            app_limited: false,
        }
    }
}

/// The losses of the last epoch were spurious.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SpuriousLossEvent {
    /// Now.
    pub now: Time,
    /// Cause to which the losses had been attributed.
    pub cause: LossCause,
}

impl SpuriousLossEvent {
    /// A spurious loss at `now` that had been attributed to `cause`.
    pub fn new(now: Time, cause: LossCause) -> Self {
        SpuriousLossEvent { now, cause }
    }
}
