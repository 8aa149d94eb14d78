//! The network of one run: hosts, directed links, routes, and their changes at given times.

mod groups;
mod steering;

use crate::access::Access;
use crate::describe::{build_element, pipe_part, plan_changes};
use crate::pipe::PipePart;
use crate::topology::read_timeline;
use crate::{
    Change, Direction, ElementCounters, ElementSetup, ElementState, Files, FlowSetup, LinkPath,
    NetworkError, Outcomes, Packet, Route, Topology,
};
use narrows_units::{Span, Time, Wakeups};
use serde_json::{Map, Value};
use std::collections::VecDeque;
use std::ops::Add;
use std::sync::Arc;

pub use steering::PendingChanges;

/// Everything a network is built from, in base units.
#[derive(Clone, Copy, Debug)]
pub struct Plan<'a> {
    /// The description that [`Topology::from_json`] reads.
    pub network: &'a Value,
    /// Changes at given times: `[{"at_ns", "element", "set": {...}}]`, or null.
    pub timeline: &'a Value,
    /// The flows.
    pub flows: &'a [FlowSetup],
    /// Seed of the run.
    pub seed: u64,
    /// Contents of the files that parameters name.
    pub files: &'a Files,
}

/// One directed link.
struct DirectedLink<P> {
    name: String,
    /// Its index in the wake-ups.
    part: u16,
    direction: Direction,
    path: LinkPath<P>,
}

/// A change that is due.
struct DueChange {
    at: Time,
    link: u16,
    /// Index of the element on its link.
    index: u16,
    change: Change,
}

/// One element as seen from outside.
pub struct ElementView<'a, P> {
    /// Index in the whole network.
    pub index: u16,
    /// Name, unique in the network.
    pub name: &'a str,
    /// Registry name.
    pub kind: &'a str,
    /// Name of the link it is on.
    pub link: &'a str,
    /// Index of that link.
    pub link_index: u16,
    /// Direction of the link.
    pub direction: Direction,
    /// The element.
    pub element: ElementState<'a, P>,
    /// Its counters.
    pub counters: ElementCounters,
}

/// A packet that has reached the end of its route, and when. The packet is the first field because reading freshly
/// written data in pieces of another size stalls the processor.
#[repr(C)]
struct Exit<P> {
    packet: P,
    at: Time,
}

/// Links with packets on them. Each packet knows its route ([`Packet::route`]); when it leaves a
/// link, it enters the next one of that route at the same instant.
///
/// ```text
/// network.advance(stamp, &mut outcomes);       // and give copies an identity
/// network.push(stamp, packet, &mut outcomes);
/// network.advance(now, &mut outcomes);
/// while let Some((model_time, packet)) = network.pop() { ... }
/// sleep_until(network.next_wakeup());
/// ```
pub struct Network<P> {
    hosts: Vec<String>,
    routes: Vec<Route>,
    links: Vec<DirectedLink<P>>,
    /// Index of the first element of each link in the whole network, followed by the total.
    bases: Vec<u16>,
    /// First link of each route.
    first: Vec<u16>,
    /// `next[route * links + link]`: the link after `link`, or [`EXIT`].
    next: Vec<u16>,
    /// Part 0 is the timeline: a change at an instant comes before the packets of that instant. The links follow, those
    /// nearest to the receivers first: packets that leave at an instant make room for packets that arrive at it.
    wakeups: Wakeups,
    /// The link of each part, indexed by part less one.
    order: Vec<u16>,
    timeline: VecDeque<DueChange>,
    ready: VecDeque<Exit<P>>,
    /// By direction, see [`Network::propagation`]; `None` without a route.
    propagation: [Option<Span>; 2],
    /// By host: whether packets enter there. See [`Network::keep`].
    kept: Vec<bool>,
}

const TIMELINE: usize = 0;
const LINKS: usize = 1;
/// Behind the last link of a route.
const EXIT: u16 = u16::MAX;

impl<P: Packet + 'static> Network<P> {
    /// Builds the network with everything in it idle.
    ///
    /// # Errors
    /// A malformed description, unknown names or refused parameters, with the element's name.
    pub fn new(plan: &Plan) -> Result<Self, NetworkError> {
        Self::build(plan, false)
    }

    /// The same network for a driver that is never late, such as a simulator: elements are fused where possible, so
    /// that packets take fewer steps. Results are the same; before the driver reads the state of elements it calls
    /// [`Network::catch_up`].
    ///
    /// # Errors
    /// Those of [`Network::new`].
    pub fn fused(plan: &Plan) -> Result<Self, NetworkError> {
        Self::build(plan, true)
    }

    fn build(plan: &Plan, fuse: bool) -> Result<Self, NetworkError> {
        let topology = Topology::from_json(plan.network)?;
        let ends = |route: &Route| (route.from, route.to);
        let hosts: Arc<[(u16, u16)]> = topology.routes.iter().map(ends).collect();
        let order = nearest_first(&topology.routes, topology.links.len());
        let changes = read_timeline(plan.timeline)?;
        let mut links: Vec<DirectedLink<P>> = Vec::new();
        let mut bases = vec![0];
        let mut places: Vec<(String, u16, u16, Map<String, Value>)> = Vec::new();
        for (number, described) in topology.links.iter().enumerate() {
            let mut path = LinkPath::starting_at(bases[number]);
            if plan.network["kind"] != "graph"
                && let Some(access) = Access::from_flows(plan.flows, described.direction)
            {
                path.add(
                    &format!("{}.access", described.name),
                    "access",
                    Box::new(access),
                );
            }
            for (name, object) in &described.elements {
                if places.iter().any(|(known, ..)| known == name) {
                    return Err(NetworkError::shape(name, "two elements have this name"));
                }
                let setup = setup(plan, name, &hosts);
                let (kind, element) = build_element(object, &setup)?;
                places.push((
                    name.clone(),
                    number as u16,
                    path.len() as u16,
                    (*object).clone(),
                ));
                let part = pipe_part(object, &setup).filter(|part| {
                    let lasts = changes.iter().all(|change| change.element != name.as_str());
                    fuse && lasts && may_fuse(part, number as u16, &order, &topology.routes)
                });
                match part {
                    Some(part) => path.add_to_pipe(name, &kind, part),
                    None => path.add(name, &kind, element),
                }
            }
            bases.push(bases[number] + path.len() as u16);
            links.push(DirectedLink {
                name: described.name.clone(),
                part: 0,
                direction: described.direction,
                path,
            });
        }
        let mut timeline = VecDeque::new();
        for planned in changes {
            let place = places.iter_mut().find(|(name, ..)| name == planned.element);
            let Some((name, link, index, object)) = place else {
                let what = format!("the element '{}' does not exist", planned.element);
                return Err(NetworkError::shape("timeline", what));
            };
            for change in plan_changes(object, planned.set, &setup(plan, name, &hosts))? {
                timeline.push_back(DueChange {
                    at: planned.at,
                    link: *link,
                    index: *index,
                    change,
                });
            }
        }
        let mut next = vec![EXIT; topology.routes.len() * links.len()];
        for (number, route) in topology.routes.iter().enumerate() {
            for pair in route.links.windows(2) {
                next[number * links.len() + usize::from(pair[0])] = pair[1];
            }
        }
        for (part, &link) in order.iter().enumerate() {
            links[usize::from(link)].part = (LINKS + part) as u16;
        }
        let mut wakeups = Wakeups::new(LINKS + links.len());
        wakeups.set(TIMELINE, timeline.front().map_or(Time::FAR, |due| due.at));
        let mut network = Network {
            kept: vec![true; topology.hosts.len()],
            hosts: topology.hosts,
            first: topology.routes.iter().map(|route| route.links[0]).collect(),
            routes: topology.routes,
            links,
            bases,
            next,
            wakeups,
            order,
            timeline,
            ready: VecDeque::with_capacity(64),
            propagation: [None; 2],
        };
        network.propagation = network.propagation_now();
        Ok(network)
    }

    /// Names of the hosts.
    pub fn hosts(&self) -> &[String] {
        &self.hosts
    }

    /// All routes; packets refer to theirs by index.
    pub fn routes(&self) -> &[Route] {
        &self.routes
    }

    /// The route from host `from` to host `to`.
    pub fn route(&self, from: u16, to: u16) -> Option<u16> {
        let found = self
            .routes
            .iter()
            .position(|route| (route.from, route.to) == (from, to));
        found.map(|index| index as u16)
    }

    /// A packet enters the first link of its route at `now`. Events due by then happen first.
    #[inline]
    pub fn push(&mut self, now: Time, packet: P, outcomes: &mut Outcomes<P>) {
        if self.is_due(now) {
            self.advance(now, outcomes);
        }
        let link = usize::from(self.first[usize::from(packet.route())]);
        let left = self.links[link].path.push(now, packet, outcomes);
        self.look_at(link);
        if let Some(packet) = left {
            self.pass_or_exit(link, now, packet, outcomes);
        }
    }

    /// Inserts the copy of a packet behind the element that made it. See [`Outcomes::copies`].
    pub fn inject(&mut self, element: u16, now: Time, packet: P, outcomes: &mut Outcomes<P>) {
        let link = self.bases.partition_point(|&base| base <= element) - 1;
        let index = usize::from(element - self.bases[link]);
        let left = self.links[link].path.inject(index, now, packet, outcomes);
        self.look_at(link);
        if let Some(packet) = left {
            self.pass_or_exit(link, now, packet, outcomes);
        }
    }

    /// Processes all events due at or before `now`, in order of model time. Stops early when a copy waits in `outcomes`
    /// for its identity: take the copies, [`Network::inject`] them and call again.
    #[inline]
    pub fn advance(&mut self, now: Time, outcomes: &mut Outcomes<P>) {
        while let Some(exit) = self.advance_to_exit(now, outcomes) {
            self.ready.push_back(exit);
        }
    }

    /// Advances to `now`, and returns what [`Network::pop`] would return then.
    #[inline]
    pub fn advance_and_pop(&mut self, now: Time, outcomes: &mut Outcomes<P>) -> Option<(Time, P)> {
        let Exit { packet, at } = if self.ready.is_empty() {
            self.advance_to_exit(now, outcomes)?
        } else {
            self.ready.pop_front()?
        };
        if self.is_due(now) {
            self.advance(now, outcomes);
        }
        Some((at, packet))
    }

    /// True if an event is due at or before `now`.
    #[inline]
    fn is_due(&self, now: Time) -> bool {
        self.wakeups.earliest().0 <= now
    }

    /// Like [`Network::advance`], but only until a packet has left the network.
    #[inline]
    fn advance_to_exit(&mut self, now: Time, outcomes: &mut Outcomes<P>) -> Option<Exit<P>> {
        loop {
            let (at, part) = self.wakeups.earliest();
            if at > now || !outcomes.copies.is_empty() {
                return None;
            }
            if part == TIMELINE {
                self.change(outcomes);
                continue;
            }
            let link = usize::from(self.order[part - LINKS]);
            let left = self.links[link].path.step(outcomes);
            self.look_at(link);
            if let Some(packet) = left {
                match self.after(link, &packet) {
                    EXIT => return Some(Exit { packet, at }),
                    next => {
                        if let Some(packet) = self.pass(next, at, packet, outcomes) {
                            return Some(Exit { packet, at });
                        }
                    }
                }
            }
        }
    }

    /// The next packet that has reached the end of its route, with the model time at which it did.
    #[inline]
    pub fn pop(&mut self) -> Option<(Time, P)> {
        self.ready.pop_front().map(|exit| (exit.at, exit.packet))
    }

    /// When the driver must act next: to take packets that have left, or to `advance`. [`Time::FAR`] if no event is
    /// scheduled.
    #[inline]
    pub fn next_wakeup(&self) -> Time {
        match self.ready.front() {
            Some(exit) => exit.at,
            None => self.wakeups.earliest().0,
        }
    }

    /// The minimum time of any packet of a direction in the network, for the current state of the elements: a packet
    /// that enters at an instant leaves no earlier than this time later.
    #[inline]
    pub fn propagation(&self, direction: Direction) -> Span {
        self.propagation[direction as usize].unwrap_or_default()
    }

    /// The minimum over both directions.
    #[inline]
    pub fn least_propagation(&self) -> Span {
        let known = self.propagation.into_iter().flatten();
        known.min().unwrap_or_default()
    }

    fn propagation_now(&self) -> [Option<Span>; 2] {
        let link = |&link: &u16| self.links[usize::from(link)].path.propagation();
        let route = |route: &Route| route.links.iter().map(link).fold(Span::ZERO, Add::add);
        let kept = |route: &&Route| self.kept[usize::from(route.from)];
        Direction::BOTH.map(|direction| {
            let routes = self.routes.iter().filter(kept);
            let routes = routes.filter(|r| r.direction == direction);
            routes.map(route).min()
        })
    }

    /// Updates the visible state of all elements to `now`, until which all events have been processed. Only a
    /// [fused](Network::fused) network needs it.
    pub fn catch_up(&mut self, now: Time) {
        for link in &mut self.links {
            link.path.catch_up(now);
        }
    }

    /// All elements, in the order of their indices.
    pub fn stages(&self) -> impl Iterator<Item = ElementView<'_, P>> {
        let links = self.links.iter().zip(&self.bases).enumerate();
        links.flat_map(|(number, (link, &base))| {
            (0..link.path.len()).map(move |index| {
                let (name, kind, element, counters) = link.path.stage(index);
                ElementView {
                    index: base + index as u16,
                    name,
                    kind,
                    link: &link.name,
                    link_index: number as u16,
                    direction: link.direction,
                    element,
                    counters,
                }
            })
        })
    }

    /// Calls `visit` with each packet inside and the index of the element that holds it.
    pub fn visit_held(&self, visit: &mut dyn FnMut(u16, &P)) {
        for (link, &base) in self.links.iter().zip(&self.bases) {
            link.path
                .visit_held(&mut |index, packet| visit(base + index as u16, packet));
        }
    }

    /// The link that `packet` enters after `link`, or [`EXIT`].
    #[inline]
    fn after(&self, link: usize, packet: &P) -> u16 {
        self.next[usize::from(packet.route()) * self.links.len() + link]
    }

    /// `packet` has left `link` and continues.
    #[cold]
    fn pass_or_exit(&mut self, link: usize, now: Time, packet: P, outcomes: &mut Outcomes<P>) {
        let next = self.after(link, &packet);
        if let Some(packet) = self.pass(next, now, packet, outcomes) {
            self.ready.push_back(Exit { packet, at: now });
        }
    }

    /// `packet` enters `link` at `now`, and passes all links that do not hold it; returned if it leaves the network.
    fn pass(
        &mut self,
        mut link: u16,
        now: Time,
        mut packet: P,
        outcomes: &mut Outcomes<P>,
    ) -> Option<P> {
        while link != EXIT {
            let index = usize::from(link);
            let left = self.links[index].path.push(now, packet, outcomes);
            self.look_at(index);
            packet = left?;
            link = self.after(index, &packet);
        }
        Some(packet)
    }

    /// Updates the wake-up of a link.
    #[inline]
    fn look_at(&mut self, link: usize) {
        let link = &self.links[link];
        self.wakeups
            .set(usize::from(link.part), link.path.next_wakeup());
    }

    /// Carries out the next change of the timeline.
    #[cold]
    fn change(&mut self, outcomes: &mut Outcomes<P>) {
        if let Some(due) = self.timeline.pop_front() {
            let (link, index) = (usize::from(due.link), usize::from(due.index));
            let path = &mut self.links[link].path;
            path.change(index, due.at, due.change, outcomes)
                .expect("changes are checked when the network is built");
            self.look_at(link);
            self.propagation = self.propagation_now();
        }
        self.wakeups.set(
            TIMELINE,
            self.timeline.front().map_or(Time::FAR, |due| due.at),
        );
    }
}

fn setup(plan: &Plan, name: &str, hosts: &Arc<[(u16, u16)]>) -> ElementSetup {
    ElementSetup {
        hosts: Arc::clone(hosts),
        seed: plan.seed,
        name: name.to_owned(),
        files: plan.files.clone(),
    }
}

/// True if `part` of `link` may be in a pipe. Packets that leave a bottleneck at an instant make room for packets that
/// arrive at it, so its link must act first at any instant at which another link may pass it a packet, directly or over
/// links whose packets are due at the same instant.
fn may_fuse(part: &PipePart, link: u16, order: &[u16], routes: &[Route]) -> bool {
    let mut upstream = vec![link];
    let mut seen = 0;
    while let Some(&next) = upstream.get(seen) {
        let hops = routes.iter().flat_map(|route| route.links.windows(2));
        for hop in hops.filter(|hop| hop[1] == next) {
            if !upstream.contains(&hop[0]) {
                upstream.push(hop[0]);
            }
        }
        seen += 1;
    }
    let place = |link: u16| order.iter().position(|&other| other == link);
    let first = upstream[1..]
        .iter()
        .all(|&other| place(link) < place(other));
    first || matches!(part, PipePart::Delay(_))
}

/// The links ordered by the maximum number of links behind each on any route, fewest first.
fn nearest_first(routes: &[Route], links: usize) -> Vec<u16> {
    let mut behind = vec![0; links];
    for route in routes {
        for (position, &link) in route.links.iter().rev().enumerate() {
            let maximum = &mut behind[usize::from(link)];
            *maximum = position.max(*maximum);
        }
    }
    let mut order: Vec<u16> = (0..links as u16).collect();
    order.sort_by_key(|&link| behind[usize::from(link)]);
    order
}
