//! All packets of a record as columns, each with its path and its elements by position.

use super::layout::{Layout, PathStage};
use crate::RecordError;
use crate::cell::Cell;
use crate::log::{Chunk, NO_WORD, NOT_ARRIVED};
use crate::read::PacketReader;
use crate::schema::{Direction, Fate};

/// All packets as columns.
#[derive(Default)]
pub(super) struct Packets {
    pub(super) flow: Vec<u16>,
    pub(super) direction: Vec<Direction>,
    /// Index of the path on which it travelled; [`NO_LANE`] if the cell does not say.
    pub(super) lane: Vec<u16>,
    pub(super) uid: Vec<u64>,
    pub(super) size: Vec<u32>,
    pub(super) sent: Vec<u64>,
    /// [`NOT_ARRIVED`] if it did not.
    pub(super) arrived: Vec<u64>,
    pub(super) late: Vec<i64>,
    pub(super) fate: Vec<Fate>,
    /// Position of the element on the packet's path (without a path, its index in the network); see [`NO_ELEMENT`] and
    /// [`STRANGER`].
    pub(super) element: Vec<u16>,
    /// Uid of the original of a copy; 0 for originals.
    pub(super) copy_of: Vec<u64>,
    /// Index into `reasons`, or [`NO_WORD`].
    pub(super) reason: Vec<u16>,
    pub(super) reasons: Vec<String>,
}

/// The reason of packets that were delivered damaged.
pub(super) const CORRUPTED: &str = "corrupted";
/// The path of a packet is not known.
pub(super) const NO_LANE: u16 = u16::MAX;
/// No element is named.
pub(super) const NO_ELEMENT: u16 = u16::MAX;
/// An element is named that the path does not have.
pub(super) const STRANGER: u16 = u16::MAX - 1;

/// Finds the path of a packet with one look-up.
struct Ways<'a> {
    cell: &'a Cell,
    known: Vec<[Option<u16>; 2]>,
}

impl<'a> Ways<'a> {
    fn new(cell: &'a Cell) -> Self {
        Ways {
            cell,
            known: Vec::new(),
        }
    }

    fn lane(&mut self, flow: u16, direction: Direction) -> u16 {
        let index = usize::from(flow);
        if self.known.len() <= index {
            self.known.resize(index + 1, [None; 2]);
        }
        let cell = self.cell;
        *self.known[index][direction as usize].get_or_insert_with(|| {
            let route = cell.route_of(flow, direction);
            route.map_or(NO_LANE, |route| route as u16)
        })
    }
}

impl Packets {
    pub(super) fn read(
        mut reader: PacketReader,
        cell: &Cell,
        stages: &[PathStage],
        lanes: &[Layout],
    ) -> Result<Self, RecordError> {
        let mut all = Packets::default();
        let mut chunk = Chunk::default();
        let mut ways = Ways::new(cell);
        while reader.next(&mut chunk)? {
            all.append(&chunk, &mut ways, stages, lanes);
        }
        Ok(all)
    }

    fn append(
        &mut self,
        chunk: &Chunk,
        ways: &mut Ways<'_>,
        stages: &[PathStage],
        lanes: &[Layout],
    ) {
        self.flow.extend_from_slice(&chunk.flow);
        self.direction.extend_from_slice(&chunk.direction);
        self.uid.extend_from_slice(&chunk.uid);
        self.size.extend_from_slice(&chunk.size_bytes);
        self.sent.extend_from_slice(&chunk.sent_ns);
        self.arrived.extend_from_slice(&chunk.arrived_ns);
        self.late.extend_from_slice(&chunk.late_ns);
        self.fate.extend_from_slice(&chunk.fate);
        self.copy_of.extend_from_slice(&chunk.copy_of);
        let first = self.lane.len();
        let flows = chunk.flow.iter().zip(&chunk.direction);
        self.lane
            .extend(flows.map(|(&flow, &d)| ways.lane(flow, d)));
        // Names are resolved once per chunk, not once per packet: per lane, with a last entry for packets without one.
        let places: Vec<Vec<u16>> = chunk
            .elements
            .iter()
            .map(|name| {
                let index = stages.iter().position(|stage| stage.name == *name);
                let on = |lane: &Layout| index.and_then(|index| lane.place(index));
                let places = lanes.iter().map(on).chain([index]);
                places
                    .map(|place| place.map_or(STRANGER, |place| place as u16))
                    .collect()
            })
            .collect();
        let lanes_of_chunk = self.lane[first..].iter();
        let elements = chunk.element.iter().zip(lanes_of_chunk).map(|(&e, &lane)| {
            if e == NO_WORD {
                NO_ELEMENT
            } else {
                places[usize::from(e)][usize::from(lane).min(lanes.len())]
            }
        });
        self.element.extend(elements);
        let words: Vec<u16> = chunk.reasons.iter().map(|word| self.intern(word)).collect();
        self.reason.extend(chunk.reason.iter().map(|&r| {
            if r == NO_WORD {
                NO_WORD
            } else {
                words[usize::from(r)]
            }
        }));
    }

    fn intern(&mut self, word: &str) -> u16 {
        let known = self.reasons.iter().position(|reason| reason == word);
        known.unwrap_or_else(|| {
            self.reasons.push(word.to_owned());
            self.reasons.len() - 1
        }) as u16
    }

    pub(super) fn len(&self) -> usize {
        self.uid.len()
    }

    /// Why packet `row` was dropped, if a reason is given.
    pub(super) fn reason(&self, row: usize) -> Option<&str> {
        self.reasons
            .get(usize::from(self.reason[row]))
            .map(String::as_str)
    }

    /// True if packet `row` arrived and was not damaged.
    pub(super) fn sound(&self, row: usize) -> bool {
        self.fate[row] == Fate::Delivered && self.reason(row) != Some(CORRUPTED)
    }

    /// The time at which the model let packet `row` arrive: the real time less its lateness.
    pub(super) fn model_arrival(&self, row: usize) -> Option<i128> {
        let arrived = self.arrived[row];
        (arrived != NOT_ARRIVED).then(|| i128::from(arrived) - i128::from(self.late[row]))
    }
}
