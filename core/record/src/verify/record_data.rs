//! All data that the checks use, read once.

use super::layout::{Layout, PathStage, all_stages};
use super::states::StatesSeen;
use super::timeline::Timeline;
use crate::cell::Cell;
use crate::log::{Chunk, NO_WORD, NOT_ARRIVED};
use crate::read::{
    PacketReader, Record, read_bins, read_delays, read_frames, read_transfers, rows_of,
};
use crate::rows::for_each;
use crate::run::RunDocument;
use crate::schema::{
    BinRow, DelayRow, Direction, Fate, FrameRow, PACKETS_FILE, QueueRow, RUN_FILE, TraceRow,
    TransferRow,
};
use crate::{Content, RecordError};
use std::borrow::Cow;

/// A record, prepared for the checks.
pub(super) struct Evidence<'a> {
    pub(super) cell: &'a Cell,
    pub(super) run: &'a RunDocument,
    /// All packets, unless the record keeps bins.
    pub(super) packets: Option<Packets>,
    pub(super) bins: Option<(Vec<BinRow>, Vec<DelayRow>)>,
    pub(super) states: StatesSeen,
    /// Samples of queues, which are read when they are checked: a long run has millions.
    pub(super) queues: Option<&'a Content<QueueRow>>,
    pub(super) queue_samples: u64,
    pub(super) transfers: Cow<'a, [TransferRow]>,
    pub(super) frames: Cow<'a, [FrameRow]>,
    /// All elements, in the order in which the run counts them.
    pub(super) stages: Vec<PathStage>,
    /// Link of each element.
    pub(super) links: Vec<usize>,
    /// The paths of packets, one per route; packets refer to theirs by index.
    pub(super) lanes: Vec<Layout>,
    pub(super) servers: Vec<Queueing>,
}

/// One bottleneck that is on some path.
pub(super) struct Queueing {
    /// Index of the element.
    pub(super) index: usize,
    /// The lanes that pass it, and its position on each.
    pub(super) lanes: Vec<(usize, usize)>,
    /// Its timeline, or the reason why it cannot be reconstructed.
    pub(super) timeline: Result<Timeline, String>,
}

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

impl<'a> Evidence<'a> {
    pub(super) fn gather(record: &'a Record) -> Result<Self, RecordError> {
        let cell = &record.cell;
        let all = all_stages(cell);
        let lanes = Layout::all(cell, &all);
        let (links, stages): (Vec<usize>, Vec<PathStage>) = all.into_iter().unzip();
        let packets = match &record.packets {
            Some(bytes) => {
                let reader = PacketReader::open(bytes.clone())?;
                Some(Packets::read(reader, cell, &stages, &lanes)?)
            }
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
        let plane = record.run.plane.as_str();
        if !matches!(plane, "simulate" | "emulate" | "hosts" | "import") {
            let problem = format!("the plane '{}' is unknown", record.run.plane);
            return Err(RecordError::data(RUN_FILE, problem));
        }
        for_each(record.traces.as_ref(), |_: &TraceRow| ())?;
        let mut queue_samples = 0;
        for_each(record.queues.as_ref(), |_: &QueueRow| queue_samples += 1)?;
        let servers = queueing(record, &lanes, &stages, packets.as_ref());
        let run = &record.run;
        Ok(Evidence {
            cell,
            run,
            packets,
            bins,
            states: StatesSeen::read(record, end_ns(cell, run))?,
            queues: record.queues.as_ref(),
            queue_samples,
            transfers: rows_of(record.transfers.as_ref(), read_transfers)?,
            frames: rows_of(record.frames.as_ref(), read_frames)?,
            stages,
            links,
            lanes,
            servers,
        })
    }

    pub(super) fn simulated(&self) -> bool {
        self.run.plane == "simulate"
    }

    pub(super) fn end_ns(&self) -> u64 {
        end_ns(self.cell, self.run)
    }

    /// Bound in ns by which a time that a host reports by its own clock may be too early: between two real hosts, the
    /// error bound of their clock relation plus the drift of the clocks during the run (relations with a drift above
    /// 1000 ppm are rejected when the record is made).
    pub(super) fn early_ns(&self) -> u64 {
        if self.run.plane == "hosts" {
            self.run.clock.error_ns + self.cell.duration_ns / 1_000
        } else {
            0
        }
    }

    /// True if a model decided when packets arrived.
    pub(super) fn modelled(&self) -> bool {
        matches!(self.run.plane.as_str(), "simulate" | "emulate")
    }

    /// The timelines that could be reconstructed.
    pub(super) fn timelines(&self) -> impl Iterator<Item = &Timeline> {
        self.servers.iter().flat_map(|server| &server.timeline)
    }

    /// Bound in ns by which the model time at which a packet entered an element may be later than its stamp implies.
    ///
    /// In simulation the two are the same. In emulation packets are pushed in the order of their kernel stamps, but a
    /// late driver pushes a packet after it has let the model advance past the stamp; the model then raises the
    /// packet's time to the current model time. A driver is never later than it was when it released packets (it reads
    /// and releases in the same turn), so the largest lateness is the bound. The floor of 0.1 ms covers a turn in which
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

    /// True if an element on the path of packet `row` may have damaged it.
    pub(super) fn may_corrupt(&self, row: usize) -> bool {
        let lane = self
            .packets
            .as_ref()
            .map_or(NO_LANE, |packets| packets.lane[row]);
        let lane = self.lanes.get(usize::from(lane));
        let stages = lane.map_or(&self.stages, |lane| &lane.stages);
        stages.iter().any(|stage| stage.corrupts)
    }

    /// The data, for the first finding.
    pub(super) fn summary(&self) -> String {
        let what = match (&self.packets, &self.bins) {
            (Some(packets), _) => format!("{} packets", packets.len()),
            (None, Some((bins, _))) => format!("{} bins", bins.len()),
            (None, None) => "nothing".to_owned(),
        };
        format!(
            "{what}, {} states, {} queue samples",
            self.states.rows, self.queue_samples
        )
    }
}

/// The latest time in ns of events that a process of a host may report: those of real hosts, and the sampler of an
/// emulation, are late at the end.
fn end_ns(cell: &Cell, run: &RunDocument) -> u64 {
    let grace = if run.plane == "simulate" {
        0
    } else {
        1_000_000_000
    };
    cell.duration_ns.saturating_add(grace)
}

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

fn queueing(
    record: &Record,
    lanes: &[Layout],
    stages: &[PathStage],
    packets: Option<&Packets>,
) -> Vec<Queueing> {
    let exact = record.run.plane == "simulate";
    let mut servers = Vec::new();
    for index in 0..stages.len() {
        let passing: Vec<(usize, usize)> = lanes
            .iter()
            .enumerate()
            .filter_map(|(lane, layout)| {
                let mut places = layout.bottlenecks();
                let place = places.find(|&place| layout.stages[place].index == index)?;
                Some((lane, place))
            })
            .collect();
        if passing.is_empty() {
            continue;
        }
        let timeline = match packets {
            Some(packets) => Timeline::new(&record.cell, lanes, &passing, packets, exact),
            None => Err("the record keeps bins in place of packets".into()),
        };
        servers.push(Queueing {
            index,
            lanes: passing,
            timeline,
        });
    }
    servers
}

impl Packets {
    fn read(
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
