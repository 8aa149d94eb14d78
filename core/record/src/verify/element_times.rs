//! Times at which packets reached an element or left it, if only fixed delays are between it and the host.

use super::Evidence;
use super::layout::Layout;
use super::packets::Packets;
use super::timeline::{Stamps, access_table};
use crate::schema::Fate;

/// A packet that reached an element.
pub(super) struct PacketEntry {
    pub(super) row: usize,
    pub(super) time_ns: u64,
    /// True if the element dropped it.
    pub(super) dropped: bool,
}

/// Packets of a lane that reached the element at `place`, without copies, in the order of their rows.
///
/// # Errors
/// An element before it whose delay is not fixed.
pub(super) fn entries<'a>(
    evidence: &'a Evidence<'_>,
    packets: &'a Packets,
    (lane, place): (usize, usize),
) -> Result<impl Iterator<Item = PacketEntry> + use<'a>, String> {
    let layout = &evidence.lanes[lane];
    let before = Layout::fixed_ns(&layout.stages[..place])?;
    let access = access_table(evidence.cell, layout);
    let mut stamps = Stamps::new(&evidence.lanes);
    Ok((0..packets.len()).filter_map(move |row| {
        let sent = stamps.raise(packets, row);
        let element = usize::from(packets.element[row]);
        let stopped = packets.fate[row] != Fate::Delivered && element < place;
        if usize::from(packets.lane[row]) != lane || packets.copy_of[row] > 0 || stopped {
            return None;
        }
        let extra = access.get(usize::from(packets.flow[row])).copied();
        let delay = before.saturating_add(extra.unwrap_or(0));
        Some(PacketEntry {
            row,
            time_ns: sent.saturating_add(delay),
            dropped: packets.fate[row] == Fate::Dropped && element == place,
        })
    }))
}

/// When packets that arrived left an element, which has these indices in lanes, in order of time, with their rows.
///
/// # Errors
/// An element behind it whose delay is not fixed.
pub(super) fn departures(
    evidence: &Evidence<'_>,
    packets: &Packets,
    places: impl IntoIterator<Item = (usize, usize)>,
) -> Result<Vec<(i128, usize)>, String> {
    // Per lane: the delay behind the element, and whether copies are made there, which did not pass the element.
    let mut behind: Vec<Option<(u64, bool)>> = vec![None; evidence.lanes.len()];
    for (lane, place) in places {
        let rest = &evidence.lanes[lane].stages[place + 1..];
        let copied = rest.iter().any(|stage| stage.copies);
        behind[lane] = Some((Layout::fixed_ns(rest)?, copied));
    }
    let mut left = Vec::new();
    for row in 0..packets.len() {
        let lane = behind.get(usize::from(packets.lane[row]));
        let Some(&(after, copied)) = lane.and_then(Option::as_ref) else {
            continue;
        };
        if let Some(arrival) = packets.model_arrival(row)
            && !(copied && packets.copy_of[row] > 0)
        {
            left.push((arrival - i128::from(after), row));
        }
    }
    left.sort_unstable();
    Ok(left)
}
