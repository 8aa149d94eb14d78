//! Events as lists in JSON.

use crate::{
    AckEvent, AckedPacket, Allowance, CaState, LossCause, LossEvent, LostPacket, RateSample,
};
use narrows_units::{Bytes, Rate, Span, Time};
use serde_json::{Value, json};

pub(super) fn write_allowance(allowance: &Allowance) -> Value {
    json!([
        allowance.cwnd.map(Bytes::get),
        allowance.pacing.map(Rate::bps),
        allowance.quantum.map(Bytes::get),
        allowance.reschedule_pacing,
        allowance.restart_pacing_when_open
    ])
}

pub(super) fn write_ack(ack: &AckEvent<'_>) -> Value {
    let packet = |packet: &AckedPacket| {
        json!([
            packet.number,
            packet.bytes,
            packet.sent.ns(),
            packet.arrived.map(Time::ns)
        ])
    };
    let rate = |rate: RateSample| {
        json!([
            rate.rate.bps(),
            rate.delivered.get(),
            rate.interval.ns(),
            rate.app_limited,
            rate.prior_delivered.get(),
            rate.in_flight_at_send.get(),
            rate.lost.get()
        ])
    };
    json!([
        ack.now.ns(),
        ack.packets.iter().map(packet).collect::<Vec<_>>(),
        ack.bytes.get(),
        ack.ce_bytes.get(),
        ack.latest_rtt.map(Span::ns),
        ack.smoothed_rtt.ns(),
        ack.min_rtt.ns(),
        ack.rate.map(rate),
        ack.delivered.get(),
        ack.lost.get(),
        ack.lost_total.get(),
        ack.round,
        ack.round_start,
        ack.in_flight_before.get(),
        ack.in_flight.get(),
        ack.cwnd_limited,
        ack.may_grow,
        ack.in_recovery,
        write_phase(ack.phase)
    ])
}

pub(super) fn write_loss(loss: &LossEvent<'_>) -> Value {
    let packet = |packet: &LostPacket| {
        json!([
            packet.number,
            packet.bytes,
            packet.sent.ns(),
            packet.in_flight_at_send.get(),
            packet.delivered_before.get(),
            packet.lost_before.get(),
            packet.app_limited
        ])
    };
    json!([
        loss.now.ns(),
        write_cause(loss.cause),
        loss.bytes.get(),
        loss.packets,
        loss.lost.iter().map(packet).collect::<Vec<_>>(),
        loss.lost_total.get(),
        loss.delivered.get(),
        loss.newest_sent.ns(),
        loss.in_flight.get(),
        loss.new_epoch,
        loss.smoothed_rtt.ns()
    ])
}

pub(super) const CAUSES: [LossCause; 3] = [
    LossCause::Reordering,
    LossCause::Timeout,
    LossCause::Persistent,
];
pub(super) const PHASES: [CaState; 4] = [
    CaState::Open,
    CaState::Cwr,
    CaState::Recovery,
    CaState::Loss,
];

pub(super) fn write_cause(cause: LossCause) -> Option<usize> {
    CAUSES.iter().position(|known| *known == cause)
}

pub(super) fn write_phase(phase: CaState) -> Option<usize> {
    PHASES.iter().position(|known| *known == phase)
}
