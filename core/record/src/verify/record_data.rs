//! All data that the checks use, read once.

use super::layout::{Layout, PathStage, all_stages};
use super::packets::{NO_LANE, Packets};
use super::states::StatesSeen;
use super::timeline::Timeline;
use crate::cell::Cell;
use crate::read::{
    PacketReader, Record, read_bins, read_delays, read_frames, read_transfers, rows_of,
};
use crate::rows::for_each;
use crate::run::RunDocument;
use crate::schema::{
    BinRow, DelayRow, FrameRow, PACKETS_FILE, QueueRow, RUN_FILE, TraceRow, TransferRow,
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
