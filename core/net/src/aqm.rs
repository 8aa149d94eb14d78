//! Foundations of active queue management: laws that decide about packets, the queue that applies a law, and the stores
//! that disciplines with many queues share.
//!
//! A law ([`AqmLaw`]) sees every packet that arrives and every packet that is about to leave, and returns
//! [`AqmVerdict::Pass`], [`AqmVerdict::Mark`] or [`AqmVerdict::Drop`]. It never touches a packet. [`LawQueue`] is a
//! FIFO with a limit that applies the verdicts of its law. To add an AQM, write its law and its entry in a file of
//! `queues/`.

mod cobalt;
mod codel;
mod flows;
mod law;
mod stamped;
mod table;

pub(crate) use cobalt::{CobaltSettings, CobaltState};
pub(crate) use codel::{Codel, CodelParams, CodelState};
pub(crate) use flows::{FlowList, Flows};
pub(crate) use law::LawQueue;
pub(crate) use stamped::Stamped;
pub(crate) use table::{AqmTable, mix, place};

use crate::{Backlog, DropReason, Ecn, Outcomes, Packet};
use narrows_units::{ParamError, Params, Span, Time};

/// Verdict of a law about one packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AqmVerdict {
    /// Forward it.
    Pass,
    /// Mark it with congestion experienced, and forward it. Only returned for packets that can be marked.
    Mark,
    /// Drop it, for this reason.
    Drop(DropReason),
}

/// A packet that arrives, as a law sees it.
#[derive(Clone, Copy, Debug)]
pub struct ArrivingPacket {
    /// IP size in bytes.
    pub size: u32,
    /// True if its sender understands marks (ECN field other than Not-ECT).
    pub ect: bool,
    /// Backlog before it.
    pub backlog: Backlog,
    /// True if the queue has room for it. If not, it is dropped regardless of the law.
    pub room: bool,
}

/// A packet that is about to leave, as a law sees it.
#[derive(Clone, Copy, Debug)]
pub struct Departure {
    /// IP size in bytes.
    pub size: u32,
    /// True if its sender understands marks (ECN field other than Not-ECT).
    pub ect: bool,
    /// Time it has waited.
    pub sojourn: Span,
    /// Backlog behind it.
    pub left: Backlog,
}

/// A rule that decides which packets are marked or dropped. Called in order of time.
pub trait AqmLaw: Send {
    /// Decides about a packet that arrives.
    fn arriving(&mut self, _now: Time, _packet: &ArrivingPacket) -> AqmVerdict {
        AqmVerdict::Pass
    }

    /// Decides about the oldest packet, which is about to leave. After [`AqmVerdict::Drop`] the law is asked about the
    /// next one at the same time.
    fn leaving(&mut self, _now: Time, _packet: &Departure) -> AqmVerdict {
        AqmVerdict::Pass
    }

    /// The server asked for a packet and the queue was empty: it is idle until the next arrival.
    fn drained(&mut self, _now: Time) {}

    /// All parameters have these values from `now` on.
    ///
    /// # Errors
    /// Values that contradict each other; the state is unchanged then.
    fn change(&mut self, now: Time, params: &Params) -> Result<(), ParamError>;
}

/// Applies the verdict of `law` to a packet that arrived at `at`, is about to leave and has the backlog `left` behind
/// it; `None` if it was dropped.
#[inline]
pub(crate) fn obey<P: Packet>(
    now: Time,
    (at, mut packet): (Time, P),
    left: Backlog,
    outcomes: &mut Outcomes<P>,
    law: impl FnOnce(&Departure) -> AqmVerdict,
) -> Option<P> {
    let departure = Departure {
        size: packet.size(),
        ect: can_be_marked(&packet),
        sojourn: now.since(at),
        left,
    };
    match law(&departure) {
        AqmVerdict::Drop(reason) => {
            outcomes.drop(now, packet, reason);
            return None;
        }
        AqmVerdict::Mark => mark(&mut packet, outcomes),
        AqmVerdict::Pass => {}
    }
    Some(packet)
}

/// True if the sender of `packet` supports ECN.
#[inline]
pub(crate) fn can_be_marked<P: Packet>(packet: &P) -> bool {
    packet.ecn() != Ecn::NotEct
}

/// Marks `packet`; a packet that is already marked is not counted again.
#[inline]
pub(crate) fn mark<P: Packet>(packet: &mut P, outcomes: &mut Outcomes<P>) {
    if packet.ecn() != Ecn::Ce {
        outcomes.mark(packet);
    }
}
