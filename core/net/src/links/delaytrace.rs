//! A measured propagation delay.

use crate::per_packet::{PacketDecision, PacketRule, PerPacket};
use crate::piecewise::Piecewise;
use crate::trace;
use crate::{DelayEffect, Element, Entry, Example, Files, LinkEffects, Outcomes, Packet};
use narrows_units::{Kind, ParamError, ParamSpec, Params, Span, Time};

/// Registry entry.
pub const ENTRY: Entry = Entry {
    name: "delaytrace",
    summary: "Delays by the value of a trace at the time of arrival",
    source: "packets in flight keep the delay with which they started",
    params: &[FILE, LOOP, super::REORDER],
    shorthand: &["file"],
    example: Example::new(
        "{delaytrace: delays-handover.csv}",
        "A shipped trace of delays. Where the delay falls, packets wait for those before them.",
    ),
};

/// Effects on packets.
pub const EFFECTS: LinkEffects =
    LinkEffects::delays(DelayEffect::Changing(|_| 0)).taking_time();

pub(super) const FILE: ParamSpec = ParamSpec::new(
    "file",
    Kind::File,
    "The trace: CSV with the header time_ns,delay_ns or time_s,delay_ms; a delay applies until the next row, the last row marks the end.",
).trial(&["delays", "delays-2"])
.required();

pub(super) const LOOP: ParamSpec = ParamSpec::new(
    "loop",
    Kind::Flag,
    "Whether the trace restarts at its end; if not, its last delay applies for ever.",
)
.default("true");

crate::registry::build!(dyn Element<P>: |params, setup| PerPacket::new(RecordedDelays {
    delays: DelayTrace::new(params, setup.files.clone())?,
}));

/// The delays of a trace of delays or jitter.
pub(super) struct DelayTrace {
    steps: Piecewise,
    reorder: bool,
    /// Files that changes may refer to.
    files: Files,
}

impl DelayTrace {
    pub(super) fn new(params: &Params, files: Files) -> Result<Self, ParamError> {
        let trace = trace::named(params, &files, trace::parse_delays)?;
        let looped = params.flag("loop").unwrap_or(true);
        Ok(DelayTrace {
            steps: Piecewise::new(&trace.steps, looped.then_some(trace.end))?,
            reorder: params.flag("reorder").unwrap_or_default(),
            files,
        })
    }

    pub(super) fn at(&mut self, now: Time) -> Span {
        Span::from_ns(self.steps.piece(now).0)
    }

    pub(super) fn reorder(&self) -> bool {
        self.reorder
    }

    pub(super) fn change(&mut self, params: &Params) -> Result<(), ParamError> {
        *self = DelayTrace::new(params, self.files.clone())?;
        Ok(())
    }
}

struct RecordedDelays {
    delays: DelayTrace,
}

impl<P: Packet> PacketRule<P> for RecordedDelays {
    fn decide(&mut self, now: Time, _: &mut P, _: &mut Outcomes<P>) -> PacketDecision {
        PacketDecision::Forward(now + self.delays.at(now))
    }

    fn reorders(&self) -> bool {
        self.delays.reorder()
    }

    fn propagation(&self) -> Span {
        let minimum = self.delays.steps.values.iter().copied().min();
        Span::from_ns(minimum.unwrap_or_default())
    }

    fn change(&mut self, _: Time, params: &Params) -> Result<(), ParamError> {
        self.delays.change(params)
    }
}
