//! The CoDel law, for one queue (`codel`) and for each of many (`fqcodel`).
//!
//! Source: RFC 8289, section 5 (the pseudo-code, including how it resumes the count of an earlier dropping state). The
//! pseudo-code dequeues packets in loops; here the same decisions are made packet by packet, and a decision that a drop
//! leaves to the next packet is stored (`Pending`). If a packet can be marked, a mark replaces the drop: the count
//! rises and the next time is set as for a drop, but the packet leaves, so that one call marks one packet (as the
//! reference implementation in Linux does). `ce_threshold` is section 5.2.7 of RFC 8290.

use super::{AqmLaw, AqmVerdict, Departure};
use crate::DropReason;
use narrows_units::{ParamError, Params, Span, Time, params};

const CODEL: DropReason = DropReason("codel");

params! {
    /// Parameters of the law, shared by all queues under it.
    #[derive(Copy)]
    pub(crate) struct CodelParams {
        /// Waiting time that may persist.
        target: Span(1.0..=1e10) = "5 ms", "RFC 8289, section 4.4: 5 ms";
        /// How long the waiting time must stay above the target before the first signal.
        interval: Span(1.0..=1e12) = "100 ms", "RFC 8289, section 4.3: 100 ms";
        /// No packet is dropped while the backlog is at most this.
        mtu: Bytes(0.0..=1e9) = 1500, "RFC 8289, section 5.3: the MTU of the interface";
        /// Whether packets that can be marked are marked instead of dropped.
        ecn: Flag = true, "RFC 8290, section 5.2.6: on";
        /// Packets that can be marked and have waited longer than this are marked; absent: none.
        ce_threshold: Option<Span>, "RFC 8290, section 5.2.7: off";
    }
}

impl CodelParams {
    /// When to signal next, after `count` signals.
    fn next(&self, from: Time, count: u32) -> Time {
        from + Span::from_ns((self.interval.ns() as f64 / f64::from(count).sqrt()) as u64)
    }
}

/// State that the last drop leaves for the next packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Pending {
    #[default]
    Nothing,
    /// It was the first drop of a dropping state: the next packet leaves.
    Entered,
    /// It was a further drop: the next packet may be due as well.
    Continued,
}

/// The state of one queue under the law. It needs no notification when the queue becomes empty: the last packet has no
/// backlog behind it, which ends the dropping state.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CodelState {
    first_above: Option<Time>,
    drop_next: Time,
    count: u32,
    last_count: u32,
    dropping: bool,
    pending: Pending,
}

impl CodelState {
    /// True if the waiting time has been above the target for a whole interval.
    fn stands(&mut self, set: &CodelParams, now: Time, packet: &Departure) -> bool {
        if packet.sojourn < set.target || packet.left.bytes <= set.mtu.get() {
            self.first_above = None;
            return false;
        }
        match self.first_above {
            None => {
                self.first_above = Some(now + set.interval);
                false
            }
            Some(since) => now >= since,
        }
    }

    pub(crate) fn leaving(
        &mut self,
        set: &CodelParams,
        now: Time,
        packet: &Departure,
    ) -> AqmVerdict {
        let verdict = self.decide(set, now, packet);
        let late = set
            .ce_threshold
            .is_some_and(|maximum| packet.sojourn > maximum);
        if verdict == AqmVerdict::Pass && packet.ect && late {
            return AqmVerdict::Mark;
        }
        verdict
    }

    fn decide(&mut self, set: &CodelParams, now: Time, packet: &Departure) -> AqmVerdict {
        let stands = self.stands(set, now, packet);
        let marks = set.ecn && packet.ect;
        match std::mem::replace(&mut self.pending, Pending::Nothing) {
            Pending::Entered => return AqmVerdict::Pass,
            Pending::Continued if stands => self.drop_next = set.next(self.drop_next, self.count),
            _ => {}
        }
        if self.dropping {
            self.dropping = stands;
            if !stands || now < self.drop_next {
                return AqmVerdict::Pass;
            }
            self.count = self.count.saturating_add(1);
            if marks {
                self.drop_next = set.next(self.drop_next, self.count);
                return AqmVerdict::Mark;
            }
            self.pending = Pending::Continued;
            return AqmVerdict::Drop(CODEL);
        }
        if !stands {
            return AqmVerdict::Pass;
        }
        self.dropping = true;
        // If the last dropping state ended recently, its rate is a good starting point.
        let made = self.count - self.last_count;
        let recent = now.since(self.drop_next) < set.interval * 16;
        self.count = if made > 1 && recent { made } else { 1 };
        self.last_count = self.count;
        self.drop_next = set.next(now, self.count);
        if marks {
            return AqmVerdict::Mark;
        }
        self.pending = Pending::Entered;
        AqmVerdict::Drop(CODEL)
    }
}

/// The law for one queue.
pub(crate) struct Codel {
    pub(crate) settings: CodelParams,
    pub(crate) state: CodelState,
}

impl Codel {
    pub(crate) fn new(params: &Params) -> Self {
        Codel {
            settings: CodelParams::read(params),
            state: CodelState::default(),
        }
    }
}

impl AqmLaw for Codel {
    fn leaving(&mut self, now: Time, packet: &Departure) -> AqmVerdict {
        self.state.leaving(&self.settings, now, packet)
    }

    fn change(&mut self, _: Time, params: &Params) -> Result<(), ParamError> {
        self.settings = CodelParams::read(params);
        Ok(())
    }
}
