//! The decisions of a history, random or from the bytes of a fuzzer, and the resulting events.

use crate::{
    AckEvent, AckedPacket, CongestionControl, EcnEvent, LossEvent, LostPacket, SendEvent,
    SpuriousLossEvent,
};
use narrows_units::{Stream, Time};

/// Source of decisions.
pub(super) enum Decisions<'a> {
    /// Random numbers.
    Stream(Box<Stream>),
    /// Bytes; zeros once they are exhausted.
    Bytes(&'a [u8]),
}

impl Decisions<'_> {
    /// Random decisions from a seed.
    pub(super) fn by_chance(seed: u64) -> Self {
        Decisions::Stream(Box::new(Stream::new(seed, "history")))
    }

    /// A number below `bound`, which is at least one.
    pub(super) fn below(&mut self, bound: u64) -> u64 {
        match self {
            Decisions::Stream(stream) => stream.below(bound),
            Decisions::Bytes(_) => (u64::from(self.word()) * bound) >> 16,
        }
    }

    pub(super) fn chance(&mut self, p: f64) -> bool {
        match self {
            Decisions::Stream(stream) => stream.chance(p),
            Decisions::Bytes(_) => f64::from(self.word()) < p * 65_536.0,
        }
    }

    fn word(&mut self) -> u16 {
        let Decisions::Bytes(bytes) = self else {
            return 0;
        };
        let (word, rest) = bytes.split_at(bytes.len().min(2));
        *bytes = rest;
        word.iter().fold(0, |sum, &byte| sum << 8 | u16::from(byte))
    }

    /// True if no decisions are left.
    pub(super) fn is_over(&self) -> bool {
        matches!(self, Decisions::Bytes([]))
    }
}

/// One event.
pub(super) enum Event {
    Send(SendEvent),
    Ack(Box<AckEvent<'static>>, Vec<AckedPacket>),
    Loss(LossEvent<'static>, Vec<LostPacket>),
    Ecn(EcnEvent),
    Spurious(SpuriousLossEvent),
    RecoveryExit(Time),
    Duplicate(Box<AckEvent<'static>>),
    Timer(Time),
}

impl Event {
    pub(super) fn play(&self, scheme: &mut dyn CongestionControl) {
        match self {
            Event::Send(send) => scheme.on_send(send),
            Event::Ack(ack, packets) => {
                scheme.on_ack(&AckEvent {
                    packets,
                    ..(**ack).clone()
                });
            }
            Event::Loss(loss, lost) => scheme.on_loss(&LossEvent {
                lost,
                ..loss.clone()
            }),
            Event::Ecn(ecn) => scheme.on_ecn(ecn),
            Event::Spurious(spurious) => scheme.on_spurious_loss(spurious),
            Event::RecoveryExit(now) => scheme.on_recovery_exit(*now),
            Event::Duplicate(ack) => scheme.on_duplicate(ack),
            Event::Timer(now) => scheme.on_timer(*now),
        }
    }
}
