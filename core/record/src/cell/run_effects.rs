//! Effects of elements on packets over a whole run: what the registries of elements declare, with the parameters of the
//! cell and all its planned changes. Metrics and the verifier know nothing else about individual kinds of elements, and
//! the verifier accepts any behaviour of kinds that no registry names.

use super::{Cell, CellElement};
use narrows_net::{DelayEffect, DropReason, LinkEffects, PacketOrder, QueueEffects, links, queues};
use serde_json::{Map, Value};

/// Kind of the element that represents a real path.
pub const REAL: &str = "real";

/// Kind of the element that represents everything that an imported run passed through. Nothing is known about it
/// except, where the log contains it, [`PROPAGATION`].
const PATH: &str = "path";
/// Parameter of a [`PATH`]: the fixed delay in ns, so that the rest of each delay is due to queues.
const PROPAGATION: &str = "propagation_ns";

/// A path between two real hosts, about which only their logs are known. Their tunnel accepts no packet twice.
const REAL_PATH: LinkEffects = LinkEffects {
    delay: DelayEffect::Changing(|_| 0),
    order: PacketOrder::Free,
    ..LinkEffects::drops(&[DropReason("not_received")])
};

impl CellElement {
    /// Fixed delay in ns of an imported path, if its log contains it.
    fn imported_propagation_ns(&self) -> Option<u64> {
        let told = (self.kind == PATH).then(|| self.params.get(PROPAGATION))?;
        told?.as_u64()
    }

    /// Declared effects of a link element; `None` for bottlenecks and unknown kinds.
    pub fn effects(&self) -> Option<LinkEffects> {
        if self.kind == REAL {
            return Some(REAL_PATH);
        }
        links::effects(&self.kind)
    }

    /// Declared effects of a bottleneck's queue; a bottleneck without one has an unlimited queue.
    pub(crate) fn queue_effects(&self) -> QueueEffects {
        let name = self.queue_kind().unwrap_or("unlimited");
        queues::effects(name).unwrap_or(QueueEffects::ANY)
    }
}

impl Cell {
    /// Parameters of an element at the start, and those that each change sets.
    pub(crate) fn sets<'a>(
        &'a self,
        element: &'a CellElement,
    ) -> impl Iterator<Item = &'a Map<String, Value>> {
        let changes = self.changes_of(element.label()).map(|change| &change.set);
        std::iter::once(&element.params).chain(changes)
    }

    /// True if a parameter of an element has this value at some time.
    pub(crate) fn ever(&self, element: &CellElement, name: &str, value: &Value) -> bool {
        self.sets(element).any(|set| set.get(name) == Some(value))
    }

    /// The smallest delay in ns that the element itself adds at any time of the run.
    pub fn least_delay_ns(&self, element: &CellElement) -> u64 {
        match element.effects().map(|effects| effects.delay) {
            Some(DelayEffect::Fixed | DelayEffect::FixedAndJitter) => {
                let delays = self
                    .sets(element)
                    .filter_map(|set| set.get("delay")?.as_u64());
                delays.min().unwrap_or(0)
            }
            Some(DelayEffect::Changing(least_ns)) => {
                least_ns(&self.sets(element).collect::<Vec<_>>())
            }
            _ => element.imported_propagation_ns().unwrap_or(0),
        }
    }

    /// True if an element holds packets at some time that are neither queued nor under way.
    pub(crate) fn may_hold(&self, effects: &LinkEffects, element: &CellElement) -> bool {
        match effects.delay {
            DelayEffect::HoldIf(name, value) => self.ever(element, name, &value.into()),
            _ => false,
        }
    }

    /// True if an element delays packets by an amount that is neither fixed, nor queueing, nor a variation that starts
    /// at zero, so that its share of the propagation delay changes over time.
    pub(super) fn is_unsteady(&self, element: &CellElement) -> bool {
        let Some(effects) = element.effects() else {
            return !element.is_bottleneck() && element.imported_propagation_ns().is_none();
        };
        match effects.delay {
            DelayEffect::None | DelayEffect::Jitter => false,
            DelayEffect::Fixed | DelayEffect::FixedAndJitter => self
                .sets(element)
                .skip(1)
                .any(|set| set.contains_key("delay")),
            DelayEffect::Changing(_) => true,
            DelayEffect::HoldIf(..) => self.may_hold(&effects, element),
        }
    }
}
