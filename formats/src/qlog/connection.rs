//! The log of one connection, and the assignment of events to connections.

use super::event::{Data, Frame, Size, Space};
use super::ranges::AckedNumbers;
use std::collections::BTreeMap;

/// Packets of one direction, as columns.
#[derive(Clone, Debug, Default)]
pub(super) struct PacketColumns {
    pub ns: Vec<i64>,
    pub bytes: Vec<u32>,
    pub space: Vec<u8>,
    /// -1 for packets without one.
    pub number: Vec<i64>,
    /// Largest number in each space.
    newest: [Option<u64>; 4],
}

impl PacketColumns {
    pub(super) fn push(&mut self, ns: i64, size: Size, space: Space, number: Option<u64>) {
        let number = number.filter(|_| space != Space::None);
        self.ns.push(ns);
        self.bytes.push(match size {
            Size::Known(bytes) | Size::Payload(bytes) => bytes,
            Size::Unknown => 0,
        });
        self.space.push(space as u8);
        self.number.push(number.map_or(-1, |number| number as i64));
        let newest = &mut self.newest[space as usize];
        *newest = (*newest).max(number);
    }

    fn absorb(&mut self, other: PacketColumns) {
        self.ns.extend(other.ns);
        self.bytes.extend(other.bytes);
        self.space.extend(other.space);
        self.number.extend(other.number);
        for (newest, theirs) in self.newest.iter_mut().zip(other.newest) {
            *newest = (*newest).max(theirs);
        }
    }
}

/// Samples of the sender, as columns; NaN for values that an event does not contain.
#[derive(Clone, Debug, Default)]
pub(super) struct Samples {
    pub ns: Vec<i64>,
    /// Window, bytes in flight, threshold, pacing rate, latest, smoothed and smallest round-trip time.
    pub values: [Vec<f64>; 7],
}

/// One connection of a trace.
#[derive(Clone, Debug, Default)]
pub(super) struct Connection {
    /// Its name in the trace.
    pub group: Option<String>,
    pub sent: PacketColumns,
    pub received: PacketColumns,
    pub acked: [AckedNumbers; 3],
    pub lost_ns: Vec<i64>,
    pub lost_packets: Vec<u64>,
    pub samples: Samples,
}

impl Connection {
    /// True if there are packets or samples.
    pub(super) fn is_measured(&self) -> bool {
        self.packets() > 0 || !self.samples.ns.is_empty()
    }

    pub(super) fn packets(&self) -> usize {
        self.sent.ns.len() + self.received.ns.len()
    }

    /// Adds the log of the same connection under another name.
    pub(super) fn absorb(&mut self, other: Connection) {
        self.sent.absorb(other.sent);
        self.received.absorb(other.received);
        for (own, theirs) in self.acked.iter_mut().zip(other.acked) {
            own.extend(theirs);
        }
        self.lost_ns.extend(other.lost_ns);
        self.lost_packets.extend(other.lost_packets);
        self.samples.ns.extend(other.samples.ns);
        for (own, theirs) in self.samples.values.iter_mut().zip(other.samples.values) {
            own.extend(theirs);
        }
    }

    /// True if a packet with this number can belong to it: numbers of a space never repeat.
    fn fits(&self, sent: bool, space: Space, number: u64) -> bool {
        let packets = if sent { &self.sent } else { &self.received };
        packets.newest[space as usize].is_none_or(|newest| number > newest)
    }
}

/// The connections of a trace.
#[derive(Debug, Default)]
pub(super) struct Connections {
    pub all: Vec<Connection>,
    by_group: BTreeMap<String, usize>,
    by_id: BTreeMap<String, usize>,
    /// Connection of the last packet that could be assigned, for events that name none.
    last: usize,
}

impl Connections {
    /// The connection of an event that names it.
    pub(super) fn named(&mut self, group: &str) -> usize {
        if let Some(&known) = self.by_group.get(group) {
            return known;
        }
        self.all.push(Connection {
            group: Some(group.to_owned()),
            ..Connection::default()
        });
        let index = self.all.len() - 1;
        self.by_group.insert(group.to_owned(), index);
        index
    }

    /// The connection of an event that does not name it.
    pub(super) fn unnamed(&mut self) -> usize {
        if self.all.is_empty() {
            self.all.push(Connection::default());
        }
        self.last = self.last.min(self.all.len() - 1);
        self.last
    }

    /// The connection of a packet that does not name it, by its connection IDs. A connection may use new IDs at any
    /// time (RFC 9000, section 9), so an unknown ID alone does not start a new connection: only an Initial packet whose
    /// number an existing connection has used does.
    pub(super) fn by_ids(&mut self, sent: bool, data: &Data) -> usize {
        let ids = data.ids();
        let known = ids
            .iter()
            .flatten()
            .find_map(|id| self.by_id.get(id).copied());
        let index = known.unwrap_or_else(|| {
            let last = self.unnamed();
            if ids.iter().all(Option::is_none) {
                return last;
            }
            let (space, number) = (data.space(), data.number());
            let fits = |connection: &Connection| {
                number.is_none_or(|number| connection.fits(sent, space, number))
            };
            if fits(&self.all[last]) {
                return last;
            }
            match self.all.iter().rposition(fits) {
                Some(other) => other,
                None if space == Space::Initial => {
                    self.all.push(Connection::default());
                    self.all.len() - 1
                }
                None => last,
            }
        });
        self.last = index;
        let frames = data.frames.0.known().into_iter().flatten();
        let issued = frames.filter_map(|frame| frame.known()?.issued_id());
        for id in ids.into_iter().flatten().chain(issued) {
            self.by_id.entry(id).or_insert(index);
        }
        index
    }

    /// Assigns events without a name to the only named connection; returns the number of packets for which there are
    /// several.
    pub(super) fn settle(&mut self) -> u64 {
        if self.by_group.is_empty() {
            return 0;
        }
        let all = std::mem::take(&mut self.all);
        let (mut named, nameless): (Vec<_>, Vec<_>) = all
            .into_iter()
            .partition(|connection| connection.group.is_some());
        let mut strangers = 0;
        for other in nameless {
            match &mut named[..] {
                [only] => only.absorb(other),
                _ => strangers += other.packets() as u64,
            }
        }
        self.all = named;
        strangers
    }
}

impl Frame {
    /// The ID that a NEW_CONNECTION_ID frame issues.
    fn issued_id(&self) -> Option<String> {
        self.connection_id.0.clone().filter(|id| !id.is_empty())
    }
}
