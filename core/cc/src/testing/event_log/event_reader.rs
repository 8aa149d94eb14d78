//! Events from lists in JSON.

use super::event_writer::{CAUSES, PHASES};
use crate::testing::decisions::Event;
use crate::{
    AckEvent, AckedPacket, EcnEvent, LossEvent, LostPacket, RateSample, SendEvent,
    SpuriousLossEvent,
};
use narrows_units::{Bytes, Rate, Span, Time};
use serde_json::Value;
use std::slice::Iter;

/// A line that is not part of a log.
pub(super) struct Malformed;

pub(super) type Read<T> = Result<T, Malformed>;

pub(super) fn read_start(line: &Value) -> Read<(Bytes, u64, Time)> {
    let mut members = Members::new(line)?;
    Ok((members.bytes()?, members.number()?, members.time()?))
}

pub(super) fn read_line(line: &Value) -> Read<(Event, String)> {
    let [kind, members, allowance] = line.as_array().ok_or(Malformed)?.as_slice() else {
        return Err(Malformed);
    };
    let mut members = Members::new(members)?;
    let event = match kind.as_str().ok_or(Malformed)? {
        "ack" => {
            let (ack, packets) = read_ack(&mut members)?;
            Event::Ack(Box::new(ack), packets)
        }
        "duplicate" => Event::Duplicate(Box::new(read_ack(&mut members)?.0)),
        "loss" => {
            let (loss, lost) = read_loss(&mut members)?;
            Event::Loss(loss, lost)
        }
        "send" => Event::Send(SendEvent {
            now: members.time()?,
            number: members.number()?,
            bytes: members.bytes()?,
            in_flight: members.bytes()?,
            idle: members.optional()?.map(Span::from_ns),
            retransmission: members.flag()?,
            app_limited: members.flag()?,
        }),
        "ecn" => Event::Ecn(EcnEvent {
            now: members.time()?,
            packets: members.number()?,
            in_flight: members.bytes()?,
            new_epoch: members.flag()?,
        }),
        "spurious" => Event::Spurious(SpuriousLossEvent {
            now: members.time()?,
            cause: members.choice(&CAUSES)?,
        }),
        "recovery_exit" => Event::RecoveryExit(members.time()?),
        "timer" => Event::Timer(members.time()?),
        _ => return Err(Malformed),
    };
    Ok((event, allowance.to_string()))
}

fn read_ack(members: &mut Members<'_>) -> Read<(AckEvent<'static>, Vec<AckedPacket>)> {
    let mut packets = Vec::new();
    let ack = AckEvent {
        now: members.time()?,
        packets: {
            packets.extend(members.list(|packet| {
                Ok(AckedPacket {
                    number: packet.number()?,
                    bytes: packet.number()?.try_into().or(Err(Malformed))?,
                    sent: packet.time()?,
                    arrived: packet.optional()?.map(Time::from_ns),
                })
            })?);
            &[]
        },
        bytes: members.bytes()?,
        ce_bytes: members.bytes()?,
        latest_rtt: members.optional()?.map(Span::from_ns),
        smoothed_rtt: members.span()?,
        min_rtt: members.span()?,
        rate: match members.next()? {
            Value::Null => None,
            rate => Some(read_rate(&mut Members::new(rate)?)?),
        },
        delivered: members.bytes()?,
        lost: members.bytes()?,
        lost_total: members.bytes()?,
        round: members.number()?,
        round_start: members.flag()?,
        in_flight_before: members.bytes()?,
        in_flight: members.bytes()?,
        cwnd_limited: members.flag()?,
        may_grow: members.flag()?,
        in_recovery: members.flag()?,
        phase: members.choice(&PHASES)?,
    };
    Ok((ack, packets))
}

fn read_rate(members: &mut Members<'_>) -> Read<RateSample> {
    Ok(RateSample {
        rate: Rate::from_bps(members.number()?),
        delivered: members.bytes()?,
        interval: members.span()?,
        app_limited: members.flag()?,
        prior_delivered: members.bytes()?,
        in_flight_at_send: members.bytes()?,
        lost: members.bytes()?,
    })
}

fn read_loss(members: &mut Members<'_>) -> Read<(LossEvent<'static>, Vec<LostPacket>)> {
    let mut lost = Vec::new();
    let loss = LossEvent {
        now: members.time()?,
        cause: members.choice(&CAUSES)?,
        bytes: members.bytes()?,
        packets: members.number()?,
        lost: {
            lost.extend(members.list(|packet| {
                Ok(LostPacket {
                    number: packet.number()?,
                    bytes: packet.number()?.try_into().or(Err(Malformed))?,
                    sent: packet.time()?,
                    in_flight_at_send: packet.bytes()?,
                    delivered_before: packet.bytes()?,
                    lost_before: packet.bytes()?,
                    app_limited: packet.flag()?,
                })
            })?);
            &[]
        },
        lost_total: members.bytes()?,
        delivered: members.bytes()?,
        newest_sent: members.time()?,
        in_flight: members.bytes()?,
        new_epoch: members.flag()?,
        smoothed_rtt: members.span()?,
    };
    Ok((loss, lost))
}

/// The members of an event, read in order.
struct Members<'a>(Iter<'a, Value>);

impl<'a> Members<'a> {
    fn new(list: &'a Value) -> Read<Self> {
        Ok(Members(list.as_array().ok_or(Malformed)?.iter()))
    }

    fn next(&mut self) -> Read<&'a Value> {
        self.0.next().ok_or(Malformed)
    }

    fn number(&mut self) -> Read<u64> {
        self.next()?.as_u64().ok_or(Malformed)
    }

    fn optional(&mut self) -> Read<Option<u64>> {
        match self.next()? {
            Value::Null => Ok(None),
            number => number.as_u64().map(Some).ok_or(Malformed),
        }
    }

    fn time(&mut self) -> Read<Time> {
        self.number().map(Time::from_ns)
    }

    fn span(&mut self) -> Read<Span> {
        self.number().map(Span::from_ns)
    }

    fn bytes(&mut self) -> Read<Bytes> {
        self.number().map(Bytes::new)
    }

    fn flag(&mut self) -> Read<bool> {
        self.next()?.as_bool().ok_or(Malformed)
    }

    fn choice<T: Copy>(&mut self, choices: &[T]) -> Read<T> {
        let index = usize::try_from(self.number()?).or(Err(Malformed))?;
        choices.get(index).copied().ok_or(Malformed)
    }

    fn list<T>(&mut self, read: impl Fn(&mut Members<'_>) -> Read<T>) -> Read<Vec<T>> {
        let items = self.next()?.as_array().ok_or(Malformed)?.iter();
        items.map(|item| read(&mut Members::new(item)?)).collect()
    }
}
