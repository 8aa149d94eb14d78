//! Independent random loss.

use crate::{Backlog, Change, Element, Entry, Outcomes, Packet, Reason, Setup};
use narrows_units::{Kind, ParamError, ParamSpec, Params, Stream, Time};
use std::collections::VecDeque;

/// Registry entry.
pub const ENTRY: Entry = Entry {
    name: "loss",
    summary: "Drops each packet independently with a fixed probability",
    source: "Bernoulli trials from the element's own random stream",
    params: &[ParamSpec::new("ratio", Kind::Ratio, "Probability that a packet is dropped.")
        .required()],
    shorthand: &["ratio"],
};

/// Why this element drops.
pub const RANDOM_LOSS: Reason = Reason("random_loss");

/// Builds the element.
pub fn build<P: Packet + 'static>(
    params: &Params,
    setup: &Setup,
) -> Result<Box<dyn Element<P>>, ParamError> {
    Ok(Box::new(Loss {
        ratio: params.real("ratio").unwrap_or_default(),
        stream: setup.stream(),
        passing: VecDeque::new(),
        held: Backlog::default(),
    }))
}

struct Loss<P> {
    ratio: f64,
    stream: Stream,
    passing: VecDeque<(Time, P)>,
    held: Backlog,
}

impl<P: Packet> Element<P> for Loss<P> {
    fn push(&mut self, now: Time, packet: P, outcomes: &mut Outcomes<P>) {
        if self.stream.chance(self.ratio) {
            outcomes.drop(now, packet, RANDOM_LOSS);
        } else {
            self.held.add(packet.size());
            self.passing.push_back((now, packet));
        }
    }

    fn pop(&mut self, _: Time, _: &mut Outcomes<P>) -> Option<P> {
        let (_, packet) = self.passing.pop_front()?;
        self.held.remove(packet.size());
        Some(packet)
    }

    fn next_wakeup(&self) -> Time {
        self.passing.front().map_or(Time::FAR, |(at, _)| *at)
    }

    fn held(&self) -> Backlog {
        self.held
    }

    fn visit_held(&self, visit: &mut dyn FnMut(&P)) {
        self.passing.iter().for_each(|(_, packet)| visit(packet));
    }

    fn change(&mut self, _: Time, change: Change, _: &mut Outcomes<P>) -> Result<(), ParamError> {
        self.ratio = change.into_params()?.real("ratio").unwrap_or_default();
        Ok(())
    }
}
