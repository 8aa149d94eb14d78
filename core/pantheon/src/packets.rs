//! The packets of both directions as the rows of a record.
//!
//! Logs contain packets sent and arrivals, but not the fate of the rest. A packet that did not arrive although a later
//! one of the same direction did counts as dropped; those sent after all packets that arrived were still in flight when
//! the tunnel was stopped.
//!
//! A record has no negative delays. If logs contain some, the clock of the receiving host is moved by the minimum
//! offset that removes them; remaining negative delays (drifting clocks) are set to zero. Both are counted in
//! [`Shifts`] and reported to readers of the record. The logged values are kept with the record.

use crate::link::{NO_PACKET, OneDirection};
use narrows_record::log::{CHUNK_ROWS, Chunk, NO_WORD, NOT_ARRIVED};
use narrows_record::{CapacityRow, Direction, ElementCounters, Fate};
use std::collections::BTreeMap;

/// Maximum number of delays kept with the record; more would make `run.json` unwieldy.
const MAX_MOVED: usize = 100_000;

/// Kind of the single element of each direction: a path about which nothing else is known.
pub(crate) const KIND: &str = "path";
/// Reason of drops, as known from logs.
const REASON: &str = "not_received";
/// Maximum accepted length of a run: a week. Logs whose clocks are years apart would fill the memory.
const MAX_RUN_NS: u64 = 7 * 86_400 * 1_000_000_000;

/// Corrections of the clocks of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shifts {
    /// Added to all times of the receiving host.
    pub receiver_ns: i64,
    /// Packets whose delay was still negative and was set to zero.
    pub zeroed: u64,
}

#[derive(Clone, Copy, Debug)]
struct PantheonRow {
    sent: i64,
    /// [`NONE`] if it did not arrive.
    arrived: i64,
    size: u32,
    flow: u16,
    direction: Direction,
    /// For a copy: the row of its original.
    original: u32,
}

const NONE: i64 = i64::MIN;

/// The rows of a record, in the order of sending.
#[derive(Clone, Debug)]
pub struct Packets {
    rows: Vec<PantheonRow>,
    /// Time zero of the record, since 1970.
    pub zero_ns: i64,
    /// Time of the last event.
    pub duration_ns: u64,
    /// Corrections of clocks.
    pub shifts: Shifts,
    /// Per direction, the index of the last packet that arrived, in the order of sending.
    latest: [Option<usize>; 2],
    /// Row, arrival since time zero, and delay, of packets for which rows differ from the log in arrival or delay:
    /// those set to zero, and copies whose delay was rounded otherwise.
    pub(crate) moved: Vec<(u64, i64, i64)>,
}

impl Packets {
    /// Gathers the packets of the data direction and of the acknowledgement direction.
    ///
    /// # Errors
    /// Days between the events, if that is too long for one run.
    pub fn gather(data: &OneDirection, ack: Option<&OneDirection>) -> Result<Self, f64> {
        let mut rows: Vec<PantheonRow> = Vec::with_capacity(data.sent.len());
        let mut copies: Vec<(PantheonRow, i64)> = Vec::new();
        for (direction, link) in links(data, ack) {
            collect(direction, link, &mut rows, &mut copies);
        }
        let originals = rows.len();
        rows.extend(copies.iter().map(|copy| copy.0));
        let receiver_ns = shift(&rows);
        let mut zeroed = 0;
        let mut moved = Vec::new();
        for (place, row) in rows.iter_mut().enumerate() {
            let (arrived, apart) = (row.arrived, row.arrived.saturating_sub(row.sent));
            let copy = place.checked_sub(originals).map(|copy| copies[copy].1);
            let delay = copy.unwrap_or(apart);
            match row.direction {
                Direction::Forward if row.arrived != NONE => row.arrived += receiver_ns,
                Direction::Forward => {}
                Direction::Backward => row.sent += receiver_ns,
            }
            if row.arrived != NONE && row.arrived < row.sent {
                row.arrived = row.sent;
                zeroed += 1;
            } else if delay == apart {
                continue;
            }
            if moved.len() < MAX_MOVED {
                moved.push((place, arrived, delay));
            }
        }
        // Rows refer to their originals by index, so indices are sorted. Originals precede their copies, and a stable
        // sort preserves that.
        let mut order: Vec<u32> = (0..rows.len() as u32).collect();
        order.sort_by_key(|&place| rows[place as usize].sent);
        let mut place_of = vec![0_u32; rows.len()];
        for (new, &old) in (0_u32..).zip(&order) {
            place_of[old as usize] = new;
        }
        let rows: Vec<PantheonRow> = order
            .iter()
            .map(|&old| {
                let row = rows[old as usize];
                let original = place_of.get(row.original as usize);
                PantheonRow {
                    original: original.copied().unwrap_or(NO_PACKET),
                    ..row
                }
            })
            .collect();
        let zero_ns = rows.first().map_or(data.base_ns, |row| row.sent);
        let end = rows.iter().map(|row| row.sent.max(row.arrived)).max();
        let duration_ns = end.unwrap_or(zero_ns).abs_diff(zero_ns).max(1);
        let moved = moved.iter();
        let mut moved: Vec<(u64, i64, i64)> = moved
            .map(|&(place, at, delay)| (u64::from(place_of[place]), at - zero_ns, delay))
            .collect();
        moved.sort_unstable();
        if duration_ns > MAX_RUN_NS {
            return Err(duration_ns as f64 / 86_400e9);
        }
        let mut latest = [None; 2];
        for (place, row) in rows.iter().enumerate() {
            if row.arrived != NONE {
                latest[row.direction as usize] = Some(place);
            }
        }
        Ok(Packets {
            rows,
            zero_ns,
            duration_ns,
            shifts: Shifts {
                receiver_ns,
                zeroed,
            },
            latest,
            moved,
        })
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// True if there are no rows.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    fn fate(&self, place: usize) -> Fate {
        let row = &self.rows[place];
        if row.arrived != NONE {
            Fate::Delivered
        } else if self.latest[row.direction as usize].is_none_or(|last| place <= last) {
            // If no packet arrived, all were lost.
            Fate::Dropped
        } else {
            Fate::InFlight
        }
    }

    /// Passes the rows to `sink`, chunk by chunk.
    ///
    /// # Errors
    /// Errors of `sink`.
    pub fn chunks<E>(&self, mut sink: impl FnMut(&Chunk) -> Result<(), E>) -> Result<(), E> {
        let names = [Direction::Forward, Direction::Backward].map(element);
        let mut chunk = Chunk::with_room(names.to_vec());
        chunk.reasons.push(REASON.into());
        let mut place = 0;
        for part in self.rows.chunks(CHUNK_ROWS) {
            chunk.clear();
            for row in part {
                let fate = self.fate(place);
                place += 1;
                let arrived = match fate {
                    Fate::Delivered => row.arrived.abs_diff(self.zero_ns),
                    Fate::Dropped | Fate::InFlight => NOT_ARRIVED,
                };
                chunk.flow.push(row.flow);
                chunk.direction.push(row.direction);
                chunk.uid.push(place as u64);
                chunk.size_bytes.push(row.size);
                chunk.sent_ns.push(row.sent.abs_diff(self.zero_ns));
                chunk.arrived_ns.push(arrived);
                chunk.late_ns.push(0);
                chunk.fate.push(fate);
                chunk.element.push(match fate {
                    Fate::Delivered => NO_WORD,
                    Fate::Dropped | Fate::InFlight => row.direction as u16,
                });
                chunk.reason.push(match fate {
                    Fate::Dropped => 0,
                    Fate::Delivered | Fate::InFlight => NO_WORD,
                });
                chunk.copy_of.push(match row.original {
                    NO_PACKET => 0,
                    original => u64::from(original) + 1,
                });
            }
            sink(&chunk)?;
        }
        Ok(())
    }

    /// Counters of the paths of both directions.
    pub fn counters(&self) -> Vec<ElementCounters> {
        let mut both = [Direction::Forward, Direction::Backward]
            .map(|direction| ElementCounters::new(&element(direction), KIND, direction));
        for (place, row) in self.rows.iter().enumerate() {
            let c = &mut both[row.direction as usize];
            let bytes = u64::from(row.size);
            let (came, came_bytes) = match row.original {
                NO_PACKET => (&mut c.in_packets, &mut c.in_bytes),
                _ => (&mut c.copied_packets, &mut c.copied_bytes),
            };
            *came += 1;
            *came_bytes += bytes;
            let (went, went_bytes) = match self.fate(place) {
                Fate::Delivered => (&mut c.out_packets, &mut c.out_bytes),
                Fate::Dropped => (&mut c.dropped_packets, &mut c.dropped_bytes),
                Fate::InFlight => (&mut c.held_packets, &mut c.held_bytes),
            };
            *went += 1;
            *went_bytes += bytes;
        }
        both.into()
    }

    /// For each flow with packets: its first and its last event, since time zero.
    pub fn spans(&self) -> BTreeMap<u16, (u64, u64)> {
        let mut spans: BTreeMap<u16, (u64, u64)> = BTreeMap::new();
        for row in &self.rows {
            let since = row.sent.abs_diff(self.zero_ns);
            let until = row.sent.max(row.arrived).abs_diff(self.zero_ns);
            let span = spans.entry(row.flow).or_insert((since, until));
            *span = (span.0.min(since), span.1.max(until));
        }
        spans
    }

    /// Capacity of the emulated links during the run, in bins of `bin_ns`.
    pub fn capacity(
        &self,
        data: &OneDirection,
        ack: Option<&OneDirection>,
        bin_ns: u64,
    ) -> Vec<CapacityRow> {
        let mut rows = Vec::new();
        for (direction, link) in links(data, ack) {
            if link.opportunities.is_empty() {
                continue;
            }
            let bins = self.duration_ns.div_ceil(bin_ns);
            let mut bytes = vec![0_u64; bins as usize];
            for one in &link.opportunities {
                let since = link.base_ns + one.time_ns - self.zero_ns;
                let during = u64::try_from(since).ok();
                let during = during.filter(|&since| since < self.duration_ns);
                let place = during.map(|since| since / bin_ns);
                if let Some(bin) = place.and_then(|place| bytes.get_mut(place as usize)) {
                    *bin += u64::from(one.bytes);
                }
            }
            rows.extend((0..).zip(bytes).map(|(bin, bytes)| CapacityRow {
                element: element(direction),
                time_ns: bin * bin_ns,
                bytes,
            }));
        }
        rows
    }
}

/// Name of the element of a direction.
pub(crate) fn element(direction: Direction) -> String {
    format!("{direction}.0")
}

fn links<'a>(
    data: &'a OneDirection,
    ack: Option<&'a OneDirection>,
) -> impl Iterator<Item = (Direction, &'a OneDirection)> {
    let ack = ack.map(|link| (Direction::Backward, link));
    std::iter::once((Direction::Forward, data)).chain(ack)
}

/// Adds the packets of a link to `rows`, and copies to `copies`, with the delay of each.
fn collect(
    direction: Direction,
    link: &OneDirection,
    rows: &mut Vec<PantheonRow>,
    copies: &mut Vec<(PantheonRow, i64)>,
) {
    let before = rows.len();
    rows.extend(link.sent.iter().map(|sent| PantheonRow {
        sent: link.base_ns + sent.time_ns,
        arrived: NONE,
        size: sent.size,
        flow: sent.flow,
        direction,
        original: NO_PACKET,
    }));
    for arrived in link.arrived.iter().filter(|one| one.sent != NO_PACKET) {
        let place = before + arrived.sent as usize;
        let time = link.base_ns + arrived.time_ns;
        let row = &mut rows[place];
        if row.arrived == NONE {
            row.arrived = time;
            // Merged logs are rounded: the delay is as measured, and the sending time may be off by its rounding.
            row.sent = time - arrived.delay_ns;
        } else {
            let copy = PantheonRow {
                arrived: time,
                original: place as u32,
                ..*row
            };
            copies.push((copy, arrived.delay_ns));
        }
    }
}

/// The minimum offset of the receiver's clock that makes no delay negative, giving priority to the data if both
/// directions cannot be satisfied.
fn shift(rows: &[PantheonRow]) -> i64 {
    let minimum = |direction| {
        let own = rows.iter().filter(|row| row.direction == direction);
        let delays = own.filter(|row| row.arrived != NONE);
        delays.map(|row| row.arrived - row.sent).min()
    };
    match (minimum(Direction::Forward), minimum(Direction::Backward)) {
        (Some(data), _) if data < 0 => -data,
        // Sent by the receiving host: an earlier clock there makes these delays longer.
        (data, Some(ack)) if ack < 0 => ack.max(-data.unwrap_or(i64::MAX)),
        _ => 0,
    }
}
