//! Packets and bytes are conserved: by each element, between elements, and between the elements'
//! counters and the packets themselves.

use super::packets::{NO_LANE, Packets};
use super::{CheckOutcome, Evidence, VerifierCheck};
use crate::run::ElementCounters;
use crate::schema::{BinRow, Fate};

pub(super) const CHECK: VerifierCheck = VerifierCheck {
    name: "conservation",
    claim: "packets that enter an element or are copied by it leave it, are dropped by it or are held by it, and the counters of all elements agree with the packets",
    run,
};

/// Packets and bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Load {
    packets: u64,
    bytes: u64,
}

impl Load {
    const fn new(packets: u64, bytes: u64) -> Self {
        Load { packets, bytes }
    }

    fn add(&mut self, size: u32) {
        self.packets += 1;
        self.bytes += u64::from(size);
    }

    fn plus(self, other: Load) -> Load {
        Load::new(self.packets + other.packets, self.bytes + other.bytes)
    }
}

impl std::fmt::Display for Load {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} packets ({} bytes)", self.packets, self.bytes)
    }
}

fn came(e: &ElementCounters) -> Load {
    Load::new(e.in_packets, e.in_bytes)
}

fn went(e: &ElementCounters) -> Load {
    Load::new(e.out_packets, e.out_bytes)
}

fn dropped(e: &ElementCounters) -> Load {
    Load::new(e.dropped_packets, e.dropped_bytes)
}

fn held(e: &ElementCounters) -> Load {
    Load::new(e.held_packets, e.held_bytes)
}

fn copied(e: &ElementCounters) -> Load {
    Load::new(e.copied_packets, e.copied_bytes)
}

fn run(evidence: &Evidence<'_>) -> CheckOutcome {
    match check(evidence) {
        Ok(entered) => CheckOutcome::Holds(format!("{entered} accounted for")),
        Err(problem) => CheckOutcome::Fails(problem),
    }
}

fn check(evidence: &Evidence<'_>) -> Result<Load, String> {
    let elements = &evidence.run.elements;
    same_elements(evidence)?;
    match (&evidence.packets, &evidence.bins) {
        (Some(packets), _) => {
            let entered = by_packets(evidence, packets)?;
            elements.iter().try_for_each(by_itself)?;
            Ok(entered)
        }
        (None, Some((bins, _))) => {
            elements.iter().try_for_each(by_itself)?;
            by_bins(evidence, bins)
        }
        (None, None) => Ok(Load::default()),
    }
}

fn by_itself(element: &ElementCounters) -> Result<(), String> {
    let gone = went(element).plus(dropped(element)).plus(held(element));
    let had = came(element).plus(copied(element));
    let what = "counted as entered or copied";
    same(
        &element.name,
        what,
        had,
        "packets that left, were dropped and are held are",
        gone,
    )
}

/// Counts per element that follow from the packets, by its index in the network.
#[derive(Clone, Default)]
struct PacketCounters {
    came: Load,
    went: Load,
    dropped: Load,
    held: Load,
    copied: Load,
}

/// Every packet passed all elements of its path up to the one that stopped it; a copy passed those
/// behind the one that made it.
fn by_packets(evidence: &Evidence<'_>, packets: &Packets) -> Result<Load, String> {
    let mut derived = vec![PacketCounters::default(); evidence.stages.len()];
    let mut entered = Load::default();
    // Packets whose path or place of copying is not known: then the other packets are only a lower
    // bound of what elements counted.
    let mut astray = false;
    // Number of packets per lane, index at which they begin and index at which they end.
    let mut spans = std::collections::BTreeMap::<(usize, usize, usize, Fate), Load>::new();
    for row in 0..packets.len() {
        let size = packets.size[row];
        let element = usize::from(packets.element[row]);
        let copy = packets.copy_of[row] > 0;
        if !copy {
            entered.add(size);
        }
        if packets.lane[row] == NO_LANE {
            astray = true;
            let Some(derived) = derived.get_mut(element) else {
                continue;
            };
            match packets.fate[row] {
                Fate::Dropped => derived.dropped.add(size),
                Fate::InFlight => derived.held.add(size),
                Fate::Delivered => {}
            }
            continue;
        }
        let lane = usize::from(packets.lane[row]);
        let layout = &evidence.lanes[lane];
        let begin = match (copy, layout.only_copier()) {
            (false, _) => 0,
            (true, Some(place)) => place + 1,
            (true, None) => {
                astray = true;
                layout.stages.len()
            }
        };
        let stopped = packets.fate[row] != Fate::Delivered && element < layout.stages.len();
        let lost = packets.fate[row] != Fate::Delivered && !stopped;
        let (begin, end, fate) = match packets.fate[row] {
            // The record does not say where it stayed, so the counters cannot agree.
            _ if lost => (0, 0, Fate::Delivered),
            fate if stopped => (begin, element, fate),
            fate => (begin, layout.stages.len(), fate),
        };
        let span = (lane, begin, end, fate);
        spans.entry(span).or_default().add(size);
    }
    for (&(lane, begin, end, fate), &load) in &spans {
        let stages = &evidence.lanes[lane].stages;
        let at = |place: usize| stages[place].index;
        for place in begin..end {
            let derived = &mut derived[at(place)];
            derived.came = derived.came.plus(load);
            derived.went = derived.went.plus(load);
        }
        // If several elements may have made copies, the element that made one is not known.
        let maker = evidence.lanes[lane].only_copier();
        if let Some(maker) = maker.filter(|maker| maker + 1 == begin) {
            let derived = &mut derived[at(maker)];
            derived.copied = derived.copied.plus(load);
            derived.went = derived.went.plus(load);
        }
        if end < stages.len() {
            let derived = &mut derived[at(end)];
            if begin <= end {
                derived.came = derived.came.plus(load);
            }
            match fate {
                Fate::Dropped => derived.dropped = derived.dropped.plus(load),
                Fate::InFlight => derived.held = derived.held.plus(load),
                Fate::Delivered => {}
            }
        }
    }
    for (element, derived) in evidence.run.elements.iter().zip(&derived) {
        let name = element.name.as_str();
        let counters = [
            ("counted coming in", came(element), derived.came, astray),
            ("counted as dropped", dropped(element), derived.dropped, false),
            ("counted as held", held(element), derived.held, false),
            ("counted as copied", copied(element), derived.copied, astray),
            ("let through", went(element), derived.went, astray),
        ];
        for (what, counted, says, loosely) in counters {
            let fits = loosely && counted.packets >= says.packets && counted.bytes >= says.bytes;
            if !fits {
                same(name, what, counted, "the packets say", says)?;
            }
        }
    }
    Ok(entered)
}

/// Bins count packets that entered, arrived and were dropped per flow and direction, so links are
/// followed from element to element, and compared with the bins where only complete paths begin or
/// end on them.
fn by_bins(evidence: &Evidence<'_>, bins: &[BinRow]) -> Result<Load, String> {
    let elements = &evidence.run.elements;
    let sum = |load: fn(&ElementCounters) -> Load| {
        elements.iter().map(load).fold(Load::default(), Load::plus)
    };
    let mut entered = Load::default();
    let mut lost = Load::default();
    let lanes = &evidence.lanes;
    let mut begun = vec![Load::default(); evidence.cell.network.links.len()];
    let mut ended = begun.clone();
    let mut astray = false;
    for bin in bins {
        let sent = Load::new(bin.sent_packets, bin.sent_bytes);
        let arrived = Load::new(bin.arrived_packets, bin.arrived_bytes);
        entered = entered.plus(sent);
        lost = lost.plus(Load::new(bin.dropped_packets, bin.dropped_bytes));
        let lane = evidence.cell.route_of(bin.flow, bin.direction);
        match lane.and_then(|lane| lanes[lane].links.first().zip(lanes[lane].links.last())) {
            Some((&first, &last)) => {
                begun[first] = begun[first].plus(sent);
                ended[last] = ended[last].plus(arrived);
            }
            None => astray = true,
        }
    }
    let counted = sum(dropped);
    same(
        "the network",
        "bins report dropped",
        lost,
        "its elements counted",
        counted,
    )?;
    let copies = sum(copied).packets > 0;
    for link in 0..begun.len() {
        let own: Vec<&ElementCounters> = (0..elements.len())
            .filter(|&index| evidence.links[index] == link)
            .map(|index| &elements[index])
            .collect();
        for pair in own.windows(2) {
            let (before, after) = (went(pair[0]), came(pair[1]));
            let name = &pair[1].name;
            same(
                name,
                "counted coming in",
                after,
                "packets that reached it are",
                before,
            )?;
        }
        let (Some(first), Some(last)) = (own.first(), own.last()) else {
            continue;
        };
        let follows = |links: &[usize]| links.contains(&link);
        let middle = lanes.iter().any(|lane| follows(&lane.links[1..]));
        // Bins count a copy as sent, wherever it was made.
        if !astray && !copies && !middle {
            let what = "packets that reached it are";
            same(
                &first.name,
                "counted coming in",
                came(first),
                what,
                begun[link],
            )?;
        }
        let goes_on = lanes.iter().any(|lane| {
            let until = lane.links.len() - 1;
            follows(&lane.links[..until])
        });
        if !astray && !goes_on {
            let what = "delivered packets are";
            same(&last.name, "let through", went(last), what, ended[link])?;
        }
    }
    Ok(entered)
}

/// The run must have counted at the very elements that the cell describes.
fn same_elements(evidence: &Evidence<'_>) -> Result<(), String> {
    let wanted: Vec<_> = evidence
        .stages
        .iter()
        .map(|s| (s.name.as_str(), s.kind.as_str()))
        .collect();
    let counted_at: Vec<_> = evidence
        .run
        .elements
        .iter()
        .map(|e| (e.name.as_str(), e.kind.as_str()))
        .collect();
    if wanted == counted_at {
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
        "the network has the elements {}, but the run counted at {}",
        list(&wanted),
        list(&counted_at)
    ))
}

fn same(who: &str, this: &str, a: Load, other: &str, b: Load) -> Result<(), String> {
    if a == b {
        Ok(())
    } else {
        Err(format!("{who}: {this} {a}, but {other} {b}"))
    }
}
