//! Packets and bytes are conserved: by each element, between elements, and between the elements'
//! counters and the packets themselves.

use super::evidence::{DIRECTIONS, Packets};
use super::layout::Layout;
use super::{Check, Evidence, Outcome};
use crate::run::ElementCounters;
use crate::schema::{Direction, Fate};

pub(super) const CHECK: Check = Check {
    name: "conservation",
    claim: "what enters an element leaves it, is dropped by it or is held by it, and the counters \
            of all elements agree with the packets",
    run,
};

/// Packets and bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Load {
    packets: u64,
    bytes: u64,
}

impl Load {
    fn add(&mut self, size: u32) {
        self.packets += 1;
        self.bytes += u64::from(size);
    }

    fn plus(self, other: Load) -> Load {
        Load {
            packets: self.packets + other.packets,
            bytes: self.bytes + other.bytes,
        }
    }
}

impl std::fmt::Display for Load {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} packets ({} bytes)", self.packets, self.bytes)
    }
}

/// What packets say about one direction.
#[derive(Default)]
struct Tally {
    entered: Load,
    delivered: Load,
    /// By place; empty for records of bins.
    dropped: Vec<Load>,
    held: Vec<Load>,
}

fn run(evidence: &Evidence<'_>) -> Outcome {
    let mut entered = Load::default();
    for direction in DIRECTIONS {
        match check(evidence, direction) {
            Ok(load) => entered = entered.plus(load),
            Err(problem) => return Outcome::Fails(problem),
        }
    }
    Outcome::Holds(format!("{entered} accounted for"))
}

fn check(evidence: &Evidence<'_>, direction: Direction) -> Result<Load, String> {
    let layout = evidence.layout(direction);
    let elements: Vec<&ElementCounters> = evidence
        .run
        .elements
        .iter()
        .filter(|element| element.direction == direction)
        .collect();
    same_elements(layout, &elements)?;
    let tally = match (&evidence.packets, &evidence.bins) {
        (Some(packets), _) => tally_packets(packets, layout),
        (None, Some((bins, _))) => {
            let mut tally = Tally::default();
            let mut dropped = Load::default();
            for bin in bins.iter().filter(|bin| bin.direction == direction) {
                let load = |packets, bytes| Load { packets, bytes };
                tally.entered = tally.entered.plus(load(bin.sent_packets, bin.sent_bytes));
                tally.delivered = tally
                    .delivered
                    .plus(load(bin.arrived_packets, bin.arrived_bytes));
                dropped = dropped.plus(load(bin.dropped_packets, bin.dropped_bytes));
            }
            let counted = elements
                .iter()
                .map(|e| dropped_by(e))
                .fold(Load::default(), Load::plus);
            same(
                direction.word(),
                "bins report dropped",
                dropped,
                "its elements counted",
                counted,
            )?;
            tally
        }
        (None, None) => return Ok(Load::default()),
    };
    let mut coming = tally.entered;
    for (place, element) in elements.iter().enumerate() {
        let name = element.name.as_str();
        let came = Load {
            packets: element.in_packets,
            bytes: element.in_bytes,
        };
        let went = Load {
            packets: element.out_packets,
            bytes: element.out_bytes,
        };
        let held = Load {
            packets: element.held_packets,
            bytes: element.held_bytes,
        };
        let dropped = dropped_by(element);
        same(
            name,
            "counted coming in",
            came,
            "what reached it is",
            coming,
        )?;
        let gone = went.plus(dropped).plus(held);
        same(
            name,
            "counted coming in",
            came,
            "what left, was dropped and is held is",
            gone,
        )?;
        if let (Some(&d), Some(&h)) = (tally.dropped.get(place), tally.held.get(place)) {
            same(name, "counted as dropped", dropped, "the packets say", d)?;
            same(name, "counted as held", held, "the packets say", h)?;
        }
        coming = went;
    }
    same(
        &format!("the {direction} path"),
        "let through",
        coming,
        "what was delivered is",
        tally.delivered,
    )?;
    Ok(tally.entered)
}

fn dropped_by(element: &ElementCounters) -> Load {
    Load {
        packets: element.dropped_packets,
        bytes: element.dropped_bytes,
    }
}

fn tally_packets(packets: &Packets, layout: &Layout) -> Tally {
    let places = layout.stages.len();
    let mut tally = Tally {
        dropped: vec![Load::default(); places],
        held: vec![Load::default(); places],
        ..Tally::default()
    };
    for row in 0..packets.len() {
        if packets.direction[row] != layout.direction {
            continue;
        }
        let size = packets.size[row];
        tally.entered.add(size);
        let by_place = match packets.fate[row] {
            Fate::Delivered => {
                tally.delivered.add(size);
                continue;
            }
            Fate::Dropped => &mut tally.dropped,
            Fate::InFlight => &mut tally.held,
        };
        // Packets that name no element of the path are the business of another check.
        if let Some(load) = by_place.get_mut(usize::from(packets.element[row])) {
            load.add(size);
        }
    }
    tally
}

/// The run must have counted at the very elements that the cell describes.
fn same_elements(layout: &Layout, elements: &[&ElementCounters]) -> Result<(), String> {
    let wanted: Vec<_> = layout
        .stages
        .iter()
        .map(|s| (s.name.as_str(), s.kind.as_str()))
        .collect();
    let found: Vec<_> = elements
        .iter()
        .map(|e| (e.name.as_str(), e.kind.as_str()))
        .collect();
    if wanted == found {
        return Ok(());
    }
    let list = |names: &[(&str, &str)]| {
        let names: Vec<String> = names
            .iter()
            .map(|(name, kind)| format!("{name} ({kind})"))
            .collect();
        if names.is_empty() {
            "none".to_owned()
        } else {
            names.join(", ")
        }
    };
    Err(format!(
        "the {} path has the elements {}, but the run counted at {}",
        layout.direction,
        list(&wanted),
        list(&found)
    ))
}

fn same(who: &str, one: &str, a: Load, other: &str, b: Load) -> Result<(), String> {
    if a == b {
        Ok(())
    } else {
        Err(format!("{who}: {one} {a}, but {other} {b}"))
    }
}
