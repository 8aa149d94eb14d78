//! A list of elements that packets pass in order.

use crate::{Change, Element, Outcomes, Packet};
use narrows_units::{ParamError, Time};
use std::collections::VecDeque;

/// What one element has seen, for the record and its verifier.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Packets and bytes that came in.
    pub in_packets: u64,
    /// See `in_packets`.
    pub in_bytes: u64,
    /// Packets and bytes that left towards the receiver.
    pub out_packets: u64,
    /// See `out_packets`.
    pub out_bytes: u64,
    /// Packets and bytes dropped.
    pub dropped_packets: u64,
    /// See `dropped_packets`.
    pub dropped_bytes: u64,
    /// Packets marked with congestion experienced.
    pub marked_packets: u64,
    /// Copies made, which leave in addition to what came in.
    pub copied_packets: u64,
    /// See `copied_packets`.
    pub copied_bytes: u64,
}

struct Stage<P> {
    name: String,
    kind: String,
    element: Box<dyn Element<P>>,
    wakeup: Time,
    pushed: Time,
    counters: Counters,
}

/// Elements in the order in which packets pass them.
///
/// A driver pushes packets in, advances the path, and takes what has come out:
///
/// ```text
/// path.push(stamp, packet, &mut outcomes);
/// path.advance(now, &mut outcomes);
/// while let Some((model_time, packet)) = path.pop() { ... }
/// sleep_until(path.next_wakeup());
/// ```
pub struct Path<P> {
    /// Index of the first element in the whole network.
    base: u16,
    stages: Vec<Stage<P>>,
    next: Time,
    ready: VecDeque<(Time, P)>,
}

impl<P: Packet> Path<P> {
    /// An empty path: packets come out as they go in.
    pub fn new() -> Self {
        Path::starting_at(0)
    }

    /// An empty path whose first element will have the index `base` in the whole network.
    pub(crate) fn starting_at(base: u16) -> Self {
        Path {
            base,
            stages: Vec::new(),
            next: Time::FAR,
            ready: VecDeque::with_capacity(64),
        }
    }

    /// Appends an element. `name` is unique in the network, `kind` is its registry name.
    pub fn add(&mut self, name: &str, kind: &str, element: Box<dyn Element<P>>) {
        self.stages.push(Stage {
            name: name.to_owned(),
            kind: kind.to_owned(),
            element,
            wakeup: Time::FAR,
            pushed: Time::ZERO,
            counters: Counters::default(),
        });
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        self.stages.len()
    }

    /// Whether the path has no element.
    pub fn is_empty(&self) -> bool {
        self.stages.is_empty()
    }

    /// Name, registry name, element and counters of element `index`.
    pub fn stage(&self, index: usize) -> (&str, &str, &dyn Element<P>, &Counters) {
        let stage = &self.stages[index];
        (&stage.name, &stage.kind, &*stage.element, &stage.counters)
    }

    /// A packet enters at `now`. Whatever was due by then happens first.
    #[inline]
    pub fn push(&mut self, now: Time, packet: P, outcomes: &mut Outcomes<P>) {
        if self.next <= now {
            self.advance(now, outcomes);
        }
        self.enter(0, now, packet, outcomes);
        self.next = self.earliest().0;
    }

    /// Puts a packet, such as a copy, behind element `index` at `now`.
    pub(crate) fn inject(
        &mut self,
        index: usize,
        now: Time,
        packet: P,
        outcomes: &mut Outcomes<P>,
    ) {
        self.enter(index + 1, now, packet, outcomes);
        self.next = self.earliest().0;
    }

    /// Changes element `index` at `now`.
    ///
    /// # Errors
    /// What the element refuses.
    pub(crate) fn change(
        &mut self,
        index: usize,
        now: Time,
        change: Change,
        outcomes: &mut Outcomes<P>,
    ) -> Result<(), ParamError> {
        let stage = &mut self.stages[index];
        outcomes.element = self.base + index as u16;
        stage.element.change(now, change, outcomes)?;
        stage.wakeup = stage.element.next_wakeup();
        stage.settle(outcomes);
        self.next = self.earliest().0;
        Ok(())
    }

    /// Lets everything happen that is due at or before `now`, in order of model time.
    #[inline]
    pub fn advance(&mut self, now: Time, outcomes: &mut Outcomes<P>) {
        while self.next <= now {
            let (at, index) = self.earliest();
            let left = self.pop_from(index, at, outcomes);
            if let Some(packet) = left {
                self.enter(index + 1, at, packet, outcomes);
            }
            self.next = self.earliest().0;
        }
    }

    /// The next packet that has left the path, with the model time at which it left.
    #[inline]
    pub fn pop(&mut self) -> Option<(Time, P)> {
        self.ready.pop_front()
    }

    /// When the driver must look next: to take what has come out, or to `advance`. [`Time::FAR`]
    /// when the path is empty.
    #[inline]
    pub fn next_wakeup(&self) -> Time {
        match self.ready.front() {
            Some((at, _)) => *at,
            None => self.next,
        }
    }

    /// Calls `visit` with each packet inside and the index of the element that holds it.
    pub fn visit_held(&self, visit: &mut dyn FnMut(usize, &P)) {
        for (index, stage) in self.stages.iter().enumerate() {
            stage.element.visit_held(&mut |packet| visit(index, packet));
        }
    }

    /// The earliest wake-up and its element. On ties the element nearest to the receiver goes
    /// first: what leaves at an instant makes room for what arrives at it.
    #[inline]
    fn earliest(&self) -> (Time, usize) {
        let mut best = (Time::FAR, 0);
        for (index, stage) in self.stages.iter().enumerate() {
            if stage.wakeup <= best.0 {
                best = (stage.wakeup, index);
            }
        }
        best
    }

    #[inline]
    fn pop_from(&mut self, index: usize, at: Time, outcomes: &mut Outcomes<P>) -> Option<P> {
        let stage = &mut self.stages[index];
        outcomes.element = self.base + index as u16;
        let left = stage.element.pop(at, outcomes);
        stage.wakeup = stage.element.next_wakeup();
        if let Some(packet) = &left {
            stage.counters.out_packets += 1;
            stage.counters.out_bytes += u64::from(packet.size());
        }
        stage.settle(outcomes);
        left
    }

    /// `packet` arrives at element `index` at `now`, and passes on through all elements that do
    /// not hold it.
    #[inline]
    fn enter(&mut self, mut index: usize, now: Time, mut packet: P, outcomes: &mut Outcomes<P>) {
        loop {
            let Some(stage) = self.stages.get_mut(index) else {
                self.ready.push_back((now, packet));
                return;
            };
            stage.counters.in_packets += 1;
            stage.counters.in_bytes += u64::from(packet.size());
            outcomes.element = self.base + index as u16;
            let at = now.max(stage.pushed);
            stage.pushed = at;
            stage.element.push(at, packet, outcomes);
            stage.wakeup = stage.element.next_wakeup();
            stage.settle(outcomes);
            if stage.wakeup > now {
                return;
            }
            match self.pop_from(index, now, outcomes) {
                Some(next) => packet = next,
                None => return,
            }
            index += 1;
        }
    }
}

impl<P> Stage<P> {
    /// Moves what the element has just reported into its counters.
    #[inline]
    fn settle(&mut self, outcomes: &mut Outcomes<P>) {
        if outcomes.dropped_packets | outcomes.marked_packets != 0 {
            self.counters.dropped_packets += std::mem::take(&mut outcomes.dropped_packets);
            self.counters.dropped_bytes += std::mem::take(&mut outcomes.dropped_bytes);
            self.counters.marked_packets += std::mem::take(&mut outcomes.marked_packets);
        }
        if outcomes.copied_packets != 0 {
            self.counters.copied_packets += std::mem::take(&mut outcomes.copied_packets);
            self.counters.copied_bytes += std::mem::take(&mut outcomes.copied_bytes);
        }
    }
}

impl<P: Packet> Default for Path<P> {
    fn default() -> Self {
        Path::new()
    }
}
