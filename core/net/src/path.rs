//! A list of elements that packets pass in order.

use crate::pipe::{Pipe, PipePart};
use crate::{Backlog, Change, Element, Outcomes, Packet, RateServer};
use narrows_units::{ParamError, Span, Time};
use std::ops::Add;

/// Counters of one element, for the record and its verifier.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ElementCounters {
    /// Packets and bytes that entered.
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
    /// Copies made, which leave in addition to the packets that entered.
    pub copied_packets: u64,
    /// See `copied_packets`.
    pub copied_bytes: u64,
}

/// One element, or several that work as one.
enum StageElement<P> {
    /// Of any kind.
    Any(Box<dyn Element<P>>),
    /// Bottleneck and delay, the most common elements, without a virtual call.
    Pipe(Pipe<P>),
}

/// The part of an element that the hot loop needs, and its counters.
struct PathElement<P> {
    element: StageElement<P>,
    /// Index in the whole network, of the first element if there are several.
    first: u16,
    wakeup: Time,
    last_push: Time,
    counters: ElementCounters,
}

/// The state of one element as seen from outside.
pub struct ElementState<'a, P>(StateOf<'a, P>);

enum StateOf<'a, P> {
    Any(&'a dyn Element<P>),
    /// The element with this index in the pipe.
    Pipe(&'a Pipe<P>, usize),
}

impl<'a, P: Packet> ElementState<'a, P> {
    /// See [`Element::queued`].
    pub fn queued(&self) -> Backlog {
        match self.0 {
            StateOf::Any(element) => element.queued(),
            StateOf::Pipe(pipe, index) => pipe.queued(index),
        }
    }

    /// See [`Element::held`].
    pub fn held(&self) -> Backlog {
        match self.0 {
            StateOf::Any(element) => element.held(),
            StateOf::Pipe(pipe, index) => pipe.held(index),
        }
    }

    /// See [`Element::propagation`].
    pub fn propagation(&self) -> Span {
        match self.0 {
            StateOf::Any(element) => element.propagation(),
            StateOf::Pipe(pipe, index) if index + 1 == pipe.len() => pipe.propagation(),
            StateOf::Pipe(..) => Span::ZERO,
        }
    }

    /// See [`Element::server`].
    pub fn server(&self) -> Option<&'a dyn RateServer> {
        match self.0 {
            StateOf::Any(element) => element.server(),
            StateOf::Pipe(pipe, index) => pipe.server(index),
        }
    }
}

/// Elements in the order in which packets pass them.
///
/// The [network](crate::Network) pushes packets in, calls [`LinkPath::step`] when an event is due, and takes the
/// packets that either returns.
pub(crate) struct LinkPath<P> {
    /// Index of the first element in the whole network.
    base: u16,
    stages: Vec<PathElement<P>>,
    /// Name and registry name of each element, and its stage.
    names: Vec<(String, String, usize)>,
    /// The earliest wake-up and its element.
    next: (Time, usize),
}

impl<P: Packet> LinkPath<P> {
    /// An empty path whose first element will have the index `base` in the whole network. Packets pass it immediately.
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
        self.add_stage(name, kind, StageElement::Any(element));
    }

    /// Appends an element that can be part of a pipe, fused with the previous one if possible.
    pub(crate) fn add_to_pipe(&mut self, name: &str, kind: &str, part: PipePart) {
        let before = match self.stages.last_mut() {
            Some(PathElement {
                element: StageElement::Pipe(pipe),
                ..
            }) => pipe.append(part),
            _ => Some(part),
        };
        match before {
            None => self.add_name(name, kind),
            Some(part) => self.add_stage(name, kind, StageElement::Pipe(Pipe::new(part))),
        }
    }

    fn add_stage(&mut self, name: &str, kind: &str, element: StageElement<P>) {
        self.stages.push(PathElement {
            element,
            first: self.base + self.names.len() as u16,
            wakeup: Time::FAR,
            last_push: Time::ZERO,
            counters: ElementCounters::default(),
        });
        self.add_name(name, kind);
    }

    fn add_name(&mut self, name: &str, kind: &str) {
        let stage = self.stages.len() - 1;
        self.names.push((name.to_owned(), kind.to_owned(), stage));
    }

    /// Number of elements.
    pub(crate) fn len(&self) -> usize {
        self.names.len()
    }

    /// Name, registry name, state and counters of element `index`.
    pub(crate) fn stage(&self, index: usize) -> (&str, &str, ElementState<'_, P>, ElementCounters) {
        let (name, kind, stage) = &self.names[index];
        let stage = &self.stages[*stage];
        let (state, counters) = match &stage.element {
            StageElement::Any(element) => (StateOf::Any(&**element), stage.counters),
            StageElement::Pipe(pipe) => {
                let place = index - usize::from(stage.first - self.base);
                let counters = stage.counters_in_pipe(pipe, place);
                (StateOf::Pipe(pipe, place), counters)
            }
        };
        (name, kind, ElementState(state), counters)
    }

    /// Updates the visible state of the elements to `now`, until which all events have been processed.
    pub(crate) fn catch_up(&mut self, now: Time) {
        for stage in &mut self.stages {
            if let StageElement::Pipe(pipe) = &mut stage.element {
                pipe.catch_up(now);
            }
        }
    }

    /// A packet enters at `now`, before which no event is due; returned if it passes all elements immediately.
    #[inline]
    pub(crate) fn push(&mut self, now: Time, packet: P, outcomes: &mut Outcomes<P>) -> Option<P> {
        if let [only] = &mut self.stages[..] {
            only.push(now, packet, outcomes);
            self.next = (only.wakeup, 0);
            if only.wakeup > now {
                return None;
            }
            let left = self.pass_at_once(0, now, outcomes);
            self.next = self.earliest();
            return left;
        }
        let left = self.enter(0, now, packet, outcomes);
        self.next = self.earliest();
        left
    }

    /// Processes the next event, at [`LinkPath::next_wakeup`]; returns the packet that leaves the path, if any.
    #[inline]
    pub(crate) fn step(&mut self, outcomes: &mut Outcomes<P>) -> Option<P> {
        let (at, index) = self.next;
        let mut left = self.pop_from(index, at, outcomes);
        if index + 1 < self.stages.len() {
            left = left.and_then(|packet| self.enter(index + 1, at, packet, outcomes));
        }
        self.next = self.earliest();
        left
    }

    /// Inserts a packet, such as a copy, behind element `index` at `now`; returned if it passes all further elements
    /// immediately.
    pub(crate) fn inject(
        &mut self,
        index: usize,
        now: Time,
        packet: P,
        outcomes: &mut Outcomes<P>,
    ) -> Option<P> {
        // It leaves the element that made it like any other packet.
        let stage = self.names[index].2;
        let maker = &mut self.stages[stage].counters;
        maker.out_packets += 1;
        maker.out_bytes += u64::from(packet.size());
        let left = self.enter(stage + 1, now, packet, outcomes);
        self.next = self.earliest();
        left
    }

    /// Changes element `index` at `now`.
    ///
    /// # Errors
    /// A change that the element rejects.
    pub(crate) fn change(
        &mut self,
        index: usize,
        now: Time,
        change: Change,
        outcomes: &mut Outcomes<P>,
    ) -> Result<(), ParamError> {
        let stage = &mut self.stages[self.names[index].2];
        outcomes.element = stage.first;
        match &mut stage.element {
            StageElement::Any(element) => element.change(now, change, outcomes)?,
            StageElement::Pipe(_) => {
                let what = "an element that was fused with others cannot change";
                return Err(ParamError::Conflict(what.to_owned()));
            }
        }
        stage.wakeup = stage.element.next_wakeup();
        stage.collect_outcomes(outcomes);
        self.next = self.earliest();
        Ok(())
    }

    /// When [`LinkPath::step`] is to be called; [`Time::FAR`] if the path is empty.
    #[inline]
    pub(crate) fn next_wakeup(&self) -> Time {
        self.next.0
    }

    /// The minimum time of any packet.
    pub(crate) fn propagation(&self) -> Span {
        let each = self.stages.iter().map(|stage| match &stage.element {
            StageElement::Any(element) => element.propagation(),
            StageElement::Pipe(pipe) => pipe.propagation(),
        });
        each.fold(Span::ZERO, Add::add)
    }

    /// Calls `visit` with each packet inside and the index of the element that holds it.
    pub(crate) fn visit_held(&self, visit: &mut dyn FnMut(usize, &P)) {
        for stage in &self.stages {
            let first = usize::from(stage.first - self.base);
            match &stage.element {
                StageElement::Any(element) => {
                    element.visit_held(&mut |packet| visit(first, packet));
                }
                StageElement::Pipe(pipe) => {
                    pipe.visit_held(&mut |place, packet| visit(first + place, packet));
                }
            }
        }
    }

    /// The earliest wake-up and its element. On ties the element nearest to the receiver goes first: packets that leave
    /// at an instant make room for packets that arrive at it.
    #[inline]
    fn earliest(&self) -> (Time, usize) {
        if let [only] = &self.stages[..] {
            return (only.wakeup, 0);
        }
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
        outcomes.element = stage.first;
        let left = stage.element.pop(at, outcomes);
        stage.wakeup = stage.element.next_wakeup();
        if let Some(packet) = &left {
            stage.counters.out_packets += 1;
            stage.counters.out_bytes += u64::from(packet.size());
        }
        stage.collect_outcomes(outcomes);
        left
    }

    /// Takes the packet that has just entered element `index` out of it. Not inlined, so that [`LinkPath::step`] has
    /// the only inlined copy of the callees.
    #[inline(never)]
    fn pass_at_once(&mut self, index: usize, now: Time, outcomes: &mut Outcomes<P>) -> Option<P> {
        self.pop_from(index, now, outcomes)
    }

    /// `packet` arrives at element `index` at `now`, and passes all elements that do not hold it; returned if no
    /// element holds it.
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
            stage.push(now, packet, outcomes);
            if stage.wakeup > now {
                return None;
            }
            packet = self.pass_at_once(index, now, outcomes)?;
            index += 1;
        }
    }
}

impl<P: Packet> StageElement<P> {
    #[inline]
    fn push(&mut self, now: Time, packet: P, outcomes: &mut Outcomes<P>) {
        match self {
            StageElement::Any(element) => element.push(now, packet, outcomes),
            StageElement::Pipe(pipe) => pipe.push(now, packet, outcomes),
        }
    }

    #[inline]
    fn pop(&mut self, now: Time, outcomes: &mut Outcomes<P>) -> Option<P> {
        match self {
            StageElement::Any(element) => element.pop(now, outcomes),
            StageElement::Pipe(pipe) => pipe.pop(now),
        }
    }

    #[inline]
    fn next_wakeup(&self) -> Time {
        match self {
            StageElement::Any(element) => element.next_wakeup(),
            StageElement::Pipe(pipe) => pipe.next_wakeup(),
        }
    }
}

impl<P: Packet> PathElement<P> {
    /// `packet` arrives at `now`.
    #[inline]
    fn push(&mut self, now: Time, packet: P, outcomes: &mut Outcomes<P>) {
        self.counters.in_packets += 1;
        self.counters.in_bytes += u64::from(packet.size());
        outcomes.element = self.first;
        let at = now.max(self.last_push);
        self.last_push = at;
        self.element.push(at, packet, outcomes);
        self.wakeup = self.element.next_wakeup();
        self.collect_outcomes(outcomes);
    }

    /// The counters of element `place` of `pipe`, which is this stage; the counters of the stage are those of the whole
    /// pipe.
    fn counters_in_pipe(&self, pipe: &Pipe<P>, place: usize) -> ElementCounters {
        let mut counters = self.counters;
        match (pipe.departed(), place) {
            (None, _) => {}
            (Some(departed), 0) => {
                counters.out_packets = departed.packets;
                counters.out_bytes = departed.bytes;
            }
            (Some(departed), _) => {
                counters.in_packets = departed.packets;
                counters.in_bytes = departed.bytes;
                (counters.dropped_packets, counters.dropped_bytes) = (0, 0);
            }
        }
        counters
    }

    /// Adds the element's latest reports to its counters.
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
