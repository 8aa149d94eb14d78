//! A list of elements that packets pass in order.

use crate::{Change, Element, Outcomes, Packet};
use narrows_units::{ParamError, Span, Time};
use std::ops::Add;

/// Counters of one element, for the record and its verifier.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ElementCounters {
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

/// The part of an element that the hot loop needs, and what is told of it.
struct PathElement<P> {
    element: Box<dyn Element<P>>,
    wakeup: Time,
    last_push: Time,
    counters: ElementCounters,
}

/// Elements in the order in which packets pass them.
///
/// The [network](crate::Network) pushes packets in, calls [`LinkPath::step`] when something is due, and
/// takes what comes out of either.
pub(crate) struct LinkPath<P> {
    /// Index of the first element in the whole network.
    base: u16,
    stages: Vec<PathElement<P>>,
    /// Name and registry name of each element.
    names: Vec<(String, String)>,
    /// The earliest wake-up and its element.
    next: (Time, usize),
}

impl<P: Packet> LinkPath<P> {
    /// An empty path whose first element will have the index `base` in the whole network. Packets
    /// come out of it as they go in.
    pub(crate) fn starting_at(base: u16) -> Self {
        LinkPath {
            base,
            stages: Vec::new(),
            names: Vec::new(),
            next: (Time::FAR, 0),
        }
    }

    /// Appends an element. `name` is unique in the network, `kind` is its registry name.
    pub(crate) fn add(&mut self, name: &str, kind: &str, element: Box<dyn Element<P>>) {
        self.names.push((name.to_owned(), kind.to_owned()));
        self.stages.push(PathElement {
            element,
            wakeup: Time::FAR,
            last_push: Time::ZERO,
            counters: ElementCounters::default(),
        });
    }

    /// Number of elements.
    pub(crate) fn len(&self) -> usize {
        self.stages.len()
    }

    /// Name, registry name, element and counters of element `index`.
    pub(crate) fn stage(&self, index: usize) -> (&str, &str, &dyn Element<P>, &ElementCounters) {
        let (name, kind) = &self.names[index];
        let stage = &self.stages[index];
        (name, kind, &*stage.element, &stage.counters)
    }

    /// A packet enters at `now`, before which nothing is due; returned if it passes all elements
    /// at once.
    #[inline]
    pub(crate) fn push(&mut self, now: Time, packet: P, outcomes: &mut Outcomes<P>) -> Option<P> {
        let left = self.enter(0, now, packet, outcomes);
        self.next = self.earliest();
        left
    }

    /// Lets the next thing happen that is due, at [`LinkPath::next_wakeup`]; returns the packet that
    /// leaves the path by that.
    #[inline]
    pub(crate) fn step(&mut self, outcomes: &mut Outcomes<P>) -> Option<P> {
        let (at, index) = self.next;
        let left = self.pop_from(index, at, outcomes);
        let left = left.and_then(|packet| self.enter(index + 1, at, packet, outcomes));
        self.next = self.earliest();
        left
    }

    /// Puts a packet, such as a copy, behind element `index` at `now`; returned if it passes all
    /// further elements at once.
    pub(crate) fn inject(
        &mut self,
        index: usize,
        now: Time,
        packet: P,
        outcomes: &mut Outcomes<P>,
    ) -> Option<P> {
        // It leaves the element that made it like any other.
        let maker = &mut self.stages[index].counters;
        maker.out_packets += 1;
        maker.out_bytes += u64::from(packet.size());
        let left = self.enter(index + 1, now, packet, outcomes);
        self.next = self.earliest();
        left
    }

    /// Changes element `index` at `now`.
    ///
    /// # Errors
    /// A change that the element refuses.
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
        stage.collect_outcomes(outcomes);
        self.next = self.earliest();
        Ok(())
    }

    /// When [`LinkPath::step`] is to be called; [`Time::FAR`] when nothing is inside.
    #[inline]
    pub(crate) fn next_wakeup(&self) -> Time {
        self.next.0
    }

    /// The least time that every packet takes.
    pub(crate) fn propagation(&self) -> Span {
        let each = self.stages.iter().map(|stage| stage.element.propagation());
        each.fold(Span::ZERO, Add::add)
    }

    /// Calls `visit` with each packet inside and the index of the element that holds it.
    pub(crate) fn visit_held(&self, visit: &mut dyn FnMut(usize, &P)) {
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
        stage.collect_outcomes(outcomes);
        left
    }

    /// `packet` arrives at element `index` at `now`, and passes on through all elements that do
    /// not hold it; returned if that is all of them.
    #[inline]
    fn enter(
        &mut self,
        mut index: usize,
        now: Time,
        mut packet: P,
        outcomes: &mut Outcomes<P>,
    ) -> Option<P> {
        loop {
            let Some(stage) = self.stages.get_mut(index) else {
                return Some(packet);
            };
            stage.counters.in_packets += 1;
            stage.counters.in_bytes += u64::from(packet.size());
            outcomes.element = self.base + index as u16;
            let at = now.max(stage.last_push);
            stage.last_push = at;
            stage.element.push(at, packet, outcomes);
            stage.wakeup = stage.element.next_wakeup();
            stage.collect_outcomes(outcomes);
            if stage.wakeup > now {
                return None;
            }
            packet = self.pop_from(index, now, outcomes)?;
            index += 1;
        }
    }
}

impl<P> PathElement<P> {
    /// Moves what the element has just reported into its counters.
    #[inline]
    fn collect_outcomes(&mut self, outcomes: &mut Outcomes<P>) {
        if outcomes.reported {
            self.count(outcomes);
        }
    }

    #[cold]
    fn count(&mut self, outcomes: &mut Outcomes<P>) {
        use std::mem::take;
        outcomes.reported = false;
        let counters = &mut self.counters;
        counters.dropped_packets += take(&mut outcomes.dropped_packets);
        counters.dropped_bytes += take(&mut outcomes.dropped_bytes);
        counters.marked_packets += take(&mut outcomes.marked_packets);
        counters.copied_packets += take(&mut outcomes.copied_packets);
        counters.copied_bytes += take(&mut outcomes.copied_bytes);
    }
}
