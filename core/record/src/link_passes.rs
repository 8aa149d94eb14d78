//! Times at which packets passed a bottleneck, computed from their rows.
//!
//! A packet has passed a bottleneck on its path if it arrived, or if an element behind the bottleneck dropped or holds
//! it. The time follows from its arrival, less the lateness of the driver and the smallest delay of the elements
//! behind: it is exact if no delay behind varies, and never too early.

use crate::cell::{Cell, CellElement};
use crate::log::{Chunk, NOT_ARRIVED};
use crate::schema::{Direction, Fate};

/// One bottleneck on the path of one flow in one direction.
#[derive(Clone, Debug)]
pub(crate) struct LinkPass {
    /// Its name.
    name: String,
    /// Names of the elements behind it.
    behind: Vec<String>,
    /// Smallest delay before it, in ns.
    before_ns: u64,
    /// Smallest delay behind it, in ns.
    pub(crate) behind_ns: u64,
    /// True if copies of packets are made before it.
    copies: bool,
}

impl LinkPass {
    /// How packets of a flow pass the element called `name` in a direction; `None` if they do not.
    pub(crate) fn new(
        cell: &Cell,
        (flow, direction): (u16, Direction),
        name: &str,
    ) -> Option<Self> {
        let path: Vec<&CellElement> = cell.elements(flow, direction).collect();
        let place = path.iter().position(|element| element.label() == name)?;
        let (before, behind) = (&path[..place], &path[place + 1..]);
        let minimum = |part: &[&CellElement]| {
            let delays = part.iter().map(|element| cell.least_delay_ns(element));
            delays.fold(0, u64::saturating_add)
        };
        let names = behind.iter().map(|element| element.label().to_owned());
        let copies =
            |element: &&CellElement| element.effects().is_some_and(|effects| effects.copies);
        Some(LinkPass {
            name: name.to_owned(),
            behind: names.collect(),
            before_ns: minimum(before).saturating_add(cell.access_ns(flow, direction)),
            behind_ns: minimum(behind),
            copies: before.iter().any(copies),
        })
    }

    /// The fate of row `i` of a chunk at this bottleneck; `None` for a copy that was made behind it.
    pub(crate) fn outcome(&self, chunk: &Chunk, i: usize) -> Option<Outcome> {
        // The sender sent the original only.
        if chunk.copy_of[i] > 0 && !self.copies {
            return None;
        }
        let place = match chunk.elements.get(usize::from(chunk.element[i])) {
            Some(name) if chunk.fate[i] != Fate::Delivered => Some(name),
            _ => None,
        };
        let arrived = chunk.arrived_ns[i];
        let reached_ns = chunk.sent_ns[i].saturating_add(self.before_ns);
        let delivered = chunk.fate[i] == Fate::Delivered && arrived != NOT_ARRIVED;
        let beyond = delivered || place.is_some_and(|name| self.behind.contains(name));
        let here = place.is_some_and(|name| *name == self.name);
        let passed_ns = beyond.then(|| {
            let model = arrived.saturating_add_signed(chunk.late_ns[i].saturating_neg());
            if delivered {
                model.saturating_sub(self.behind_ns).max(reached_ns)
            } else {
                reached_ns
            }
        });
        Some(Outcome {
            reached_ns,
            passed_ns,
            here,
            dropped: here && chunk.fate[i] == Fate::Dropped,
        })
    }
}

/// The fate of a packet at a bottleneck.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outcome {
    /// Earliest time at which it reached the bottleneck.
    pub(crate) reached_ns: u64,
    /// When it left, if it did.
    pub(crate) passed_ns: Option<u64>,
    /// True if it ended at the bottleneck.
    pub(crate) here: bool,
    /// True if the bottleneck dropped it.
    pub(crate) dropped: bool,
}
