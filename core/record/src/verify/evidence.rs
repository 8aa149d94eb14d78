//! Everything the checks look at, read once.

use super::layout::Layout;
use super::timeline::Timeline;
use crate::RecordError;
use crate::cell::Cell;
use crate::log::{Chunk, NO_WORD, NOT_ARRIVED};
use crate::read::{
    PacketReader, Record, read_bins, read_delays, read_queues, read_states, read_traces,
    read_transfers,
};
use crate::run::RunDocument;
use crate::schema::{
    BinRow, DelayRow, Direction, Fate, PACKETS_FILE, QueueRow, RUN_FILE, StateRow, TransferRow,
};

/// Both directions, in the order of their numbers.
pub(super) const DIRECTIONS: [Direction; 2] = [Direction::Forward, Direction::Backward];

/// A record, laid out for the checks.
pub(super) struct Evidence<'a> {
    pub(super) cell: &'a Cell,
    pub(super) run: &'a RunDocument,
    /// All packets, unless the record keeps bins.
    pub(super) packets: Option<Packets>,
    pub(super) bins: Option<(Vec<BinRow>, Vec<DelayRow>)>,
    pub(super) states: Vec<StateRow>,
    pub(super) queues: Vec<QueueRow>,
    pub(super) transfers: Vec<TransferRow>,
    pub(super) layouts: [Layout; 2],
    /// Per direction: the time line of its bottleneck, or why there is none.
    pub(super) timelines: [Result<Timeline, String>; 2],
}

/// All packets as columns.
#[derive(Default)]
pub(super) struct Packets {
    pub(super) flow: Vec<u16>,
    pub(super) direction: Vec<Direction>,
    pub(super) uid: Vec<u64>,
    pub(super) size: Vec<u32>,
    pub(super) sent: Vec<u64>,
    /// [`NOT_ARRIVED`] if it did not.
    pub(super) arrived: Vec<u64>,
    pub(super) late: Vec<i64>,
    pub(super) fate: Vec<Fate>,
    /// Place of the element on the path of the direction; see [`NO_ELEMENT`] and [`STRANGER`].
    pub(super) element: Vec<u16>,
    /// Index into `reasons`, or [`NO_WORD`].
    pub(super) reason: Vec<u16>,
    pub(super) reasons: Vec<String>,
}

/// The reason of packets that were delivered damaged.
pub(super) const CORRUPTED: &str = "corrupted";
/// No element is named.
pub(super) const NO_ELEMENT: u16 = u16::MAX;
/// An element is named that the path does not have.
pub(super) const STRANGER: u16 = u16::MAX - 1;

impl<'a> Evidence<'a> {
    pub(super) fn gather(record: &'a Record) -> Result<Self, RecordError> {
        let cell = &record.cell;
        let layouts = DIRECTIONS.map(|direction| Layout::new(cell, direction));
        let packets = match &record.packets {
            Some(bytes) => Some(Packets::read(PacketReader::open(bytes.clone())?, &layouts)?),
            None => None,
        };
        let bins = match (&record.bins, &record.delays) {
            (Some(bins), Some(delays)) if packets.is_none() => {
                Some((read_bins(bins.clone())?, read_delays(delays.clone())?))
            }
            _ => None,
        };
        if packets.is_none() && bins.is_none() {
            return Err(RecordError::data(PACKETS_FILE, "the file is missing"));
        }
        if !matches!(record.run.plane.as_str(), "simulate" | "emulate") {
            let problem = format!("the plane '{}' is unknown", record.run.plane);
            return Err(RecordError::data(RUN_FILE, problem));
        }
        if let Some(traces) = &record.traces {
            read_traces(traces.clone())?;
        }
        let timelines = DIRECTIONS.map(|direction| match &packets {
            Some(packets) => {
                let exact = record.run.plane == "simulate";
                Timeline::new(cell, &layouts[direction as usize], packets, exact)
            }
            None => Err("the record keeps bins in place of packets".into()),
        });
        let states = record
            .states
            .clone()
            .map(read_states)
            .transpose()?
            .unwrap_or_default();
        let queues = record
            .queues
            .clone()
            .map(read_queues)
            .transpose()?
            .unwrap_or_default();
        let transfers = record
            .transfers
            .clone()
            .map(read_transfers)
            .transpose()?
            .unwrap_or_default();
        let run = &record.run;
        Ok(Evidence {
            cell,
            run,
            packets,
            bins,
            states,
            queues,
            transfers,
            layouts,
            timelines,
        })
    }

    pub(super) fn simulated(&self) -> bool {
        self.run.plane == "simulate"
    }

    pub(super) fn layout(&self, direction: Direction) -> &Layout {
        &self.layouts[direction as usize]
    }

    /// How far the model time at which a packet entered an element may lie behind what its stamp
    /// says.
    ///
    /// In simulation the two are the same. In emulation packets are pushed in the order of their
    /// kernel stamps, but a driver that is late pushes a packet after it has already let the model
    /// advance past the stamp; the model then raises the packet's time to what has happened. A
    /// driver is never later than it was when it released packets (it reads and releases in the
    /// same turn), so the largest lateness bounds this. The floor of 0.1 ms covers a turn in which
    /// nothing was due.
    pub(super) fn slack_ns(&self) -> u64 {
        if self.simulated() {
            return 0;
        }
        let noted = self
            .run
            .lateness
            .as_ref()
            .map_or(0, |lateness| lateness.max_ns);
        let seen = self
            .packets
            .iter()
            .flat_map(|p| p.late.iter().copied())
            .max()
            .unwrap_or(0);
        noted.max(u64::try_from(seen).unwrap_or(0)).max(100_000)
    }

    /// What there is, for the first finding.
    pub(super) fn summary(&self) -> String {
        let what = match (&self.packets, &self.bins) {
            (Some(packets), _) => format!("{} packets", packets.len()),
            (None, Some((bins, _))) => format!("{} bins", bins.len()),
            (None, None) => "nothing".to_owned(),
        };
        format!(
            "{what}, {} states, {} queue samples.",
            self.states.len(),
            self.queues.len()
        )
    }
}

impl Packets {
    fn read(mut reader: PacketReader, layouts: &[Layout; 2]) -> Result<Self, RecordError> {
        let mut all = Packets::default();
        let mut chunk = Chunk::default();
        while reader.next(&mut chunk)? {
            all.append(&chunk, layouts);
        }
        Ok(all)
    }

    fn append(&mut self, chunk: &Chunk, layouts: &[Layout; 2]) {
        self.flow.extend_from_slice(&chunk.flow);
        self.direction.extend_from_slice(&chunk.direction);
        self.uid.extend_from_slice(&chunk.uid);
        self.size.extend_from_slice(&chunk.size_bytes);
        self.sent.extend_from_slice(&chunk.sent_ns);
        self.arrived.extend_from_slice(&chunk.arrived_ns);
        self.late.extend_from_slice(&chunk.late_ns);
        self.fate.extend_from_slice(&chunk.fate);
        // Names become places once per chunk, not once per packet.
        let places: Vec<[u16; 2]> = chunk
            .elements
            .iter()
            .map(|name| [0, 1].map(|d: usize| layouts[d].place(name).unwrap_or(STRANGER)))
            .collect();
        self.element
            .extend(chunk.element.iter().zip(&chunk.direction).map(|(&e, &d)| {
                if e == NO_WORD {
                    NO_ELEMENT
                } else {
                    places[usize::from(e)][d as usize]
                }
            }));
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

    /// Whether packet `row` arrived and was not damaged.
    pub(super) fn sound(&self, row: usize) -> bool {
        self.fate[row] == Fate::Delivered && self.reason(row) != Some(CORRUPTED)
    }

    /// The time at which the model let packet `row` arrive: the real time less its lateness.
    pub(super) fn model_arrival(&self, row: usize) -> Option<i128> {
        let arrived = self.arrived[row];
        (arrived != NOT_ARRIVED).then(|| i128::from(arrived) - i128::from(self.late[row]))
    }
}
