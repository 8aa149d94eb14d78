//! Consecutive packet rows as columns: logs produce them, files encode them and readers return
//! them.

use crate::schema::{Direction, Fate, PacketRow};
use std::borrow::Cow;

/// Rows of a full chunk.
pub const CHUNK_ROWS: usize = 65_536;
/// In [`Chunk::arrived_ns`]: the packet did not arrive.
pub const NOT_ARRIVED: u64 = u64::MAX;
/// In [`Chunk::element`] and [`Chunk::reason`]: the packet has none.
pub const NO_WORD: u16 = u16::MAX;

/// Packet rows as columns of equal length, in order of uid.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chunk {
    /// Flow of each packet.
    pub flow: Vec<u16>,
    /// Direction of each packet.
    pub direction: Vec<Direction>,
    /// Uid of each packet.
    pub uid: Vec<u64>,
    /// Size of each packet.
    pub size_bytes: Vec<u32>,
    /// When each packet entered.
    pub sent_ns: Vec<u64>,
    /// When each packet arrived, or [`NOT_ARRIVED`].
    pub arrived_ns: Vec<u64>,
    /// Lateness of each packet in ns; 0 if it did not arrive.
    pub late_ns: Vec<i64>,
    /// Fate of each packet.
    pub fate: Vec<Fate>,
    /// Index into [`Chunk::elements`], or [`NO_WORD`].
    pub element: Vec<u16>,
    /// Index into [`Chunk::reasons`], or [`NO_WORD`].
    pub reason: Vec<u16>,
    /// Uid of the packet that each is a copy of; 0 for originals.
    pub copy_of: Vec<u64>,
    /// The names that [`Chunk::element`] refers to.
    pub elements: Vec<String>,
    /// The words that [`Chunk::reason`] refers to.
    pub reasons: Vec<Cow<'static, str>>,
}

impl Chunk {
    /// An empty chunk with capacity for [`CHUNK_ROWS`] rows.
    pub fn with_room(elements: Vec<String>) -> Self {
        Chunk {
            flow: Vec::with_capacity(CHUNK_ROWS),
            direction: Vec::with_capacity(CHUNK_ROWS),
            uid: Vec::with_capacity(CHUNK_ROWS),
            size_bytes: Vec::with_capacity(CHUNK_ROWS),
            sent_ns: Vec::with_capacity(CHUNK_ROWS),
            arrived_ns: Vec::with_capacity(CHUNK_ROWS),
            late_ns: Vec::with_capacity(CHUNK_ROWS),
            fate: Vec::with_capacity(CHUNK_ROWS),
            element: Vec::with_capacity(CHUNK_ROWS),
            reason: Vec::with_capacity(CHUNK_ROWS),
            copy_of: Vec::with_capacity(CHUNK_ROWS),
            elements,
            reasons: Vec::new(),
        }
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.uid.len()
    }

    /// True if there are no rows.
    pub fn is_empty(&self) -> bool {
        self.uid.is_empty()
    }

    /// Clears the rows, but keeps the memory and the names of the elements.
    pub fn clear(&mut self) {
        self.flow.clear();
        self.direction.clear();
        self.uid.clear();
        self.size_bytes.clear();
        self.sent_ns.clear();
        self.arrived_ns.clear();
        self.late_ns.clear();
        self.fate.clear();
        self.element.clear();
        self.reason.clear();
        self.copy_of.clear();
    }

    /// Row `index` in full (for tests and exports, not for hot loops).
    pub fn row(&self, index: usize) -> PacketRow {
        let arrived = self.arrived_ns[index];
        let arrived_ns = (arrived != NOT_ARRIVED).then_some(arrived);
        PacketRow {
            flow: self.flow[index],
            direction: self.direction[index],
            uid: self.uid[index],
            size_bytes: self.size_bytes[index],
            sent_ns: self.sent_ns[index],
            arrived_ns,
            late_ns: arrived_ns.map(|_| self.late_ns[index]),
            fate: self.fate[index],
            element: self.elements.get(usize::from(self.element[index])).cloned(),
            reason: self
                .reasons
                .get(usize::from(self.reason[index]))
                .map(ToString::to_string),
            copy_of: Some(self.copy_of[index]).filter(|&uid| uid != 0),
        }
    }

    /// Appends one row (for tests and imports, not for hot loops).
    pub fn push(&mut self, row: &PacketRow) {
        self.flow.push(row.flow);
        self.direction.push(row.direction);
        self.uid.push(row.uid);
        self.size_bytes.push(row.size_bytes);
        self.sent_ns.push(row.sent_ns);
        self.arrived_ns.push(row.arrived_ns.unwrap_or(NOT_ARRIVED));
        self.late_ns.push(row.late_ns.unwrap_or(0));
        self.fate.push(row.fate);
        let element = row.element.as_ref().map_or(NO_WORD, |name| {
            let known = self.elements.iter().position(|e| e == name);
            known.unwrap_or_else(|| {
                self.elements.push(name.clone());
                self.elements.len() - 1
            }) as u16
        });
        self.element.push(element);
        let reason = row.reason.as_ref().map_or(NO_WORD, |word| {
            let known = self.reasons.iter().position(|r| r == word);
            known.unwrap_or_else(|| {
                self.reasons.push(Cow::Owned(word.clone()));
                self.reasons.len() - 1
            }) as u16
        });
        self.reason.push(reason);
        self.copy_of.push(row.copy_of.unwrap_or(0));
    }
}
