//! Results of an emulator, and merging of those of several threads.

use super::core::Core;
use super::hooks::Hooks;
use narrows_cell::judgement::{EmulatorEffort, ProgramTraffic, RefusedFrames};
use narrows_record::{CapacityRow, ElementCounters, Histogram, Lateness, Log, QueueRow};
use narrows_sys::ring::RxRing;
use narrows_units::Time;
use std::collections::BTreeMap;

/// Results of an emulator.
#[derive(Debug)]
pub struct Report<H = ()> {
    /// The hooks with their state.
    pub hooks: H,
    /// Model time at which it ended.
    pub ended: Time,
    /// Log of the packets, complete.
    pub log: Log,
    /// Lateness of packets in ns: from the time at which each was due until it was sent.
    pub lateness: Histogram,
    /// Quantiles of lateness, each from the thread with the largest value.
    pub latest: Lateness,
    /// Median lateness in each tenth of the run, from the thread with the largest value.
    pub late_by_tenth: [u64; 10],
    /// Capacity of servers over time, if it does not follow from the cell alone.
    pub capacity: Vec<CapacityRow>,
    /// Counters of the elements.
    pub elements: Vec<ElementCounters>,
    /// Samples of the queues.
    pub queues: Vec<QueueRow>,
    /// Packets delivered per flow.
    pub delivered: Vec<u64>,
    /// Damaged packets among them.
    pub damaged: Vec<u64>,
    /// Frames that were not admitted.
    pub refused: RefusedFrames,
    /// Traffic of flows with private hosts, by flow number.
    pub programs: BTreeMap<u16, ProgramTraffic>,
    /// The rings with the numbers of their hosts, in that order; their counters are read when the hosts are silent.
    pub rings: Vec<(u16, RxRing)>,
    /// Frames handed to the hosts, per host.
    pub sent: Vec<u64>,
    /// Processor time and waits, each from the thread with the largest value.
    pub effort: EmulatorEffort,
    /// True if the run reached its end.
    pub complete: bool,
    /// By element: whether it belongs to this thread. Results of others are meaningless.
    kept: Vec<bool>,
}

impl<H: Hooks> Report<H> {
    pub(crate) fn new(
        core: Core<H>,
        rings: Vec<(u16, RxRing)>,
        sent: Vec<u64>,
        effort: EmulatorEffort,
        ended: Time,
        complete: bool,
    ) -> Self {
        Report {
            ended,
            elements: core.counters(),
            capacity: core.capacity_rows(),
            queues: core.queue_rows().collect(),
            kept: core.kept(),
            hooks: core.hooks,
            log: core.log,
            latest: Lateness::from_histogram(&core.lateness),
            late_by_tenth: core.late_by_tenth.map(|it| it.quantile(0.5).unwrap_or(0)),
            lateness: core.lateness,
            delivered: core.delivered,
            damaged: core.damaged,
            refused: core.admission.refused,
            programs: core.admission.traffic(),
            rings,
            sent,
            effort,
            complete,
        }
    }

    /// The same results without the state of the hooks.
    pub fn without_hooks(self) -> Report {
        Report {
            hooks: (),
            ended: self.ended,
            log: self.log,
            lateness: self.lateness,
            latest: self.latest,
            late_by_tenth: self.late_by_tenth,
            capacity: self.capacity,
            elements: self.elements,
            queues: self.queues,
            delivered: self.delivered,
            damaged: self.damaged,
            refused: self.refused,
            programs: self.programs,
            rings: self.rings,
            sent: self.sent,
            effort: self.effort,
            complete: self.complete,
            kept: self.kept,
        }
    }

    /// Adds the results of another thread of the same run.
    ///
    /// # Panics
    /// If one thread kept every packet and the other did not.
    pub fn join(&mut self, other: Report<H>) {
        self.ended = self.ended.min(other.ended);
        self.complete &= other.complete;
        match (&mut self.log, other.log) {
            // The writer has their packets.
            (Log::Packets(_), Log::Packets(_)) => {}
            (Log::Bins(log), Log::Bins(more)) => log.merge(more),
            _ => panic!("all threads of a run keep the same kind of log"),
        }
        self.lateness.merge(&other.lateness);
        self.latest = self.latest.worst(&other.latest);
        let places = self.elements.iter().map(|element| element.name.clone());
        let places: BTreeMap<String, usize> = places.zip(0..).collect();
        let place = |name: &String| places.get(name).copied();
        let is_theirs = |name: &String| place(name).is_some_and(|at| other.kept[at]);
        self.capacity.retain(|row| !is_theirs(&row.element));
        let rows = other.capacity.into_iter();
        self.capacity
            .extend(rows.filter(|row| is_theirs(&row.element)));
        self.capacity.sort_by_key(|row| place(&row.element));
        self.queues.extend(other.queues);
        self.queues
            .sort_by_key(|row| (row.time_ns, place(&row.element)));
        let elements = self.elements.iter_mut().zip(other.elements);
        for ((mine, theirs), kept) in elements.zip(&other.kept) {
            if *kept {
                *mine = theirs;
            }
        }
        for (mine, theirs) in self.kept.iter_mut().zip(other.kept) {
            *mine |= theirs;
        }
        for (mine, theirs) in self.late_by_tenth.iter_mut().zip(other.late_by_tenth) {
            *mine = theirs.max(*mine);
        }
        let sums = [
            (&mut self.delivered, other.delivered),
            (&mut self.damaged, other.damaged),
            (&mut self.sent, other.sent),
        ];
        for (mine, theirs) in sums {
            mine.iter_mut().zip(theirs).for_each(|(a, b)| *a += b);
        }
        self.refused.add(other.refused);
        for (flow, traffic) in other.programs {
            self.programs.entry(flow).or_default().merge(traffic);
        }
        self.rings.extend(other.rings);
        self.rings.sort_by_key(|(host, _)| *host);
        self.effort = self.effort.worst(other.effort);
    }
}
