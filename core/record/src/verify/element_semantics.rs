//! Semantics of elements: their effects on packets, as far as their documentation promises it.
//!
//! A new kind of element needs one line in [`KINDS`], a new queue one in [`QUEUES`]. Of kinds that
//! are not listed the verifier believes everything that concerns single packets, skips what depends
//! on them and says so.

use crate::cell::{Cell, Element};
use serde_json::Value;

/// Time for which an element keeps a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HoldTime {
    /// Not at all.
    Never,
    /// For its parameter `delay`, which the timeline may change.
    Delay,
    /// As long as it likes.
    Free,
}

/// Which reasons for dropping a packet an element may give.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DropReasons {
    /// It drops nothing.
    Never,
    /// Only these.
    Only(&'static [&'static str]),
    /// Any.
    Any,
}

impl DropReasons {
    pub(super) fn allows(self, reason: &str) -> bool {
        match self {
            DropReasons::Never => false,
            DropReasons::Only(reasons) => reasons.contains(&reason),
            DropReasons::Any => true,
        }
    }
}

/// Semantics of a kind of element.
#[derive(Clone, Copy, Debug)]
pub(super) struct ElementSemantics {
    pub(super) name: &'static str,
    pub(super) hold: HoldTime,
    /// Packets leave in the order in which they came.
    pub(super) in_order: bool,
    pub(super) drops: DropReasons,
    pub(super) copies: bool,
    pub(super) corrupts: bool,
}

/// An element that lets every packet through at once.
const PASS: ElementSemantics = ElementSemantics {
    name: "",
    hold: HoldTime::Never,
    in_order: true,
    drops: DropReasons::Never,
    copies: false,
    corrupts: false,
};

const fn kind(name: &'static str) -> ElementSemantics {
    ElementSemantics { name, ..PASS }
}

const fn drops(name: &'static str, reasons: &'static [&'static str]) -> ElementSemantics {
    ElementSemantics {
        drops: DropReasons::Only(reasons),
        ..kind(name)
    }
}

const fn holds(name: &'static str) -> ElementSemantics {
    ElementSemantics {
        hold: HoldTime::Free,
        ..kind(name)
    }
}

/// All kinds but bottlenecks and access links.
pub(super) const KINDS: &[ElementSemantics] = &[
    ElementSemantics {
        hold: HoldTime::Delay,
        ..kind("delay")
    },
    drops("loss", &["random_loss"]),
    drops("gilbert", &["random_loss"]),
    drops("periodicloss", &["planned_loss"]),
    drops("losslist", &["planned_loss"]),
    drops("policer", &["policed"]),
    drops("mtu", &["too_big"]),
    drops("gate", &["link_cut"]),
    ElementSemantics {
        hold: HoldTime::Free,
        ..drops("outage", &["outage"])
    },
    ElementSemantics {
        copies: true,
        ..kind("duplicate")
    },
    ElementSemantics {
        corrupts: true,
        ..kind("corrupt")
    },
    holds("delaysteps"),
    holds("drift"),
    holds("delaytrace"),
    holds("jitter"),
    holds("jittertrace"),
    ElementSemantics {
        in_order: false,
        ..holds("reorder")
    },
    holds("ackaggregation"),
    ElementSemantics {
        in_order: false,
        hold: HoldTime::Free,
        ..drops("ackdecimation", &["ack_thinned"])
    },
    // A path between two real hosts, of which their logs are all that is known. Their tunnel takes no packet twice.
    ElementSemantics {
        in_order: false,
        hold: HoldTime::Free,
        ..drops("real", &["not_received"])
    },
];

/// A queue discipline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Discipline {
    pub(super) name: &'static str,
    /// First in, first out.
    pub(super) fifo: bool,
    /// Drops packets only as they come, so that what was dropped never waited.
    pub(super) at_entry: bool,
    /// Drops only what finds no room.
    pub(super) only_full: bool,
}

const fn fifo(name: &'static str, at_entry: bool, only_full: bool) -> Discipline {
    Discipline {
        name,
        fifo: true,
        at_entry,
        only_full,
    }
}

/// A queue of which nothing is known.
pub(super) const ANY_QUEUE: Discipline = Discipline {
    name: "",
    fifo: false,
    at_entry: false,
    only_full: false,
};

pub(super) const QUEUES: &[Discipline] = &[
    fifo("droptail", true, true),
    fifo("unlimited", true, true),
    fifo("drophead", false, false),
    fifo("onepacket", true, true),
    fifo("red", true, false),
    fifo("pie", true, false),
    fifo("codel", false, false),
    fifo("step", false, false),
];

/// The discipline of a bottleneck's queue; a bottleneck without one has an unlimited queue.
pub(super) fn discipline(element: &Element) -> Discipline {
    let name = element.queue_kind().unwrap_or("unlimited");
    let known = QUEUES.iter().find(|queue| queue.name == name);
    known.copied().unwrap_or(ANY_QUEUE)
}

/// Most packets that a delay line ever may hold, if it has a limit at some time.
pub(super) fn limit_of_line(cell: &Cell, element: &Element) -> Option<u64> {
    let changes = cell.changes_of(element.label()).map(|change| &change.set);
    let sets = std::iter::once(&element.params).chain(changes);
    sets.filter_map(|set| set.get("limit")?.as_u64()).max()
}

/// Semantics of an element that is no bottleneck.
pub(super) fn kind_of(cell: &Cell, element: &Element) -> Option<ElementSemantics> {
    let mut kind = *KINDS.iter().find(|kind| kind.name == element.kind)?;
    let set = |name: &str| {
        let changes = cell.changes_of(element.label());
        let all = changes.map(|change| &change.set);
        std::iter::once(&element.params).chain(all).any(|set| {
            set.get(name)
                .is_some_and(|value| *value == Value::Bool(true))
        })
    };
    if set("reorder") {
        kind.in_order = false;
    }
    if element.kind == "delay" && limit_of_line(cell, element).is_some() {
        kind.drops = DropReasons::Only(&["line_full"]);
    }
    let moved = cell.changes_of(element.label()).next().is_some();
    if kind.hold == HoldTime::Delay && moved {
        // Later packets wait for those that left before the delay shrank.
        kind.hold = HoldTime::Free;
    }
    if element.kind == "outage" && !cell.may_hold(element) {
        kind.hold = HoldTime::Never;
    }
    Some(kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_listed_once() {
        let names = || KINDS.iter().map(|kind| kind.name);
        assert!(names().all(|name| names().filter(|other| *other == name).count() == 1));
        assert!(!names().any(|name| name == "bottleneck" || name == "access"));
    }
}
