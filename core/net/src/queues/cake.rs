//! CAKE: traffic classes, fair shares for hosts and then for their connections, and COBALT for each queue.
//!
//! Source: Høiland-Jørgensen, Täht and Morton, Piece of CAKE, LANMAN 2018; Linux tc-cake(8). From outside to inside:
//!
//! * **classes** (tins) by DSCP. The link determines the rate, so this is CAKE without `bandwidth`: there is no shaper,
//!   and no rate threshold up to which a class has priority; classes are served by weight.
//! * **queues** of connections by a hash in sets of eight: a connection may use any queue of its set and takes an
//!   unused one. Queues that send little are served first, as in FQ-CoDel.
//! * ****hosts**: a queue that stays busy has a quantum divided by the number of busy queues of its sending or
//!   receiving host, whichever is larger (triple isolation). Hosts are those of the packet's route. On a plain path all
//!   flows have the same two hosts, so that the result is fairness of connections.
//! * **COBALT** decides in each queue (`aqm/cobalt.rs`). Without room the oldest packet of the longest queue is
//!   dropped.
//!
//! Deviations: the state of a queue's law decays with time and not when the scheduler visits it. Not implemented: the
//! shaper with its overheads (the bottleneck's `overhead` and `atm`), the filter of acknowledgements, GSO splitting,
//! DSCP washing, and NAT lookup. Each class has 1024 queues to hash into; hosts are known exactly and not hashed.

use crate::aqm::{CobaltSettings, CobaltState, Departure, FlowList, Flows, mix, obey};
use crate::fifo::QUEUE_FULL;
use crate::{Backlog, Entry, Example, Outcomes, Packet, Queue, QueueEffects};
use narrows_units::{ParamError, Params, Span, Stream, Time, choice, params};
use std::sync::Arc;

/// Registry entry.
pub const ENTRY: Entry = Entry {
    name: "cake",
    summary: "CAKE: classes by DSCP, fair shares for hosts and their connections, COBALT in each queue; no shaper",
    source: "Høiland-Jørgensen, Täht and Morton, Piece of CAKE, LANMAN 2018; Linux tc-cake(8)",
    params: CakeParams::PARAMS,
    shorthand: &["memory", "rtt"],
    example: Example::new(
        "cake",
        "Flow 1 has a separate queue and stays below 3 ms. Flow 2, which does not react, receives signals at growing frequency.",
    ),
};

/// Effects on packets.
pub const EFFECTS: QueueEffects = QueueEffects::ANY;

/// Queues of a class, and how many of them a connection may use.
const QUEUES: u32 = 1024;
const WAYS: u32 = 8;
/// Bytes per turn: a full packet; Linux without a rate has 1514, with the Ethernet header.
const QUANTUM: i64 = 1500;
/// Maximum number of classes.
const MAX_TINS: usize = 4;

/// Bytes that the classes send per turn, best effort first. Up to a common factor they are Linux's.
const WEIGHTS_3: &[i64] = &[1024, 64, 256];
const WEIGHTS_4: &[i64] = &[1024, 64, 512, 256];

/// The class of a code point: 0 best effort, 1 bulk, 2 voice (diffserv3) or video, 3 voice.
fn class_of(dscp: u8, classes: usize) -> usize {
    let (voice, video) = (classes - 1, if classes == 4 { 2 } else { 0 });
    match dscp {
        _ if classes == 1 => 0,
        // LE and CS1.
        1 | 8 => 1,
        // CS6, CS7, EF and VA.
        48 | 56 | 46 | 44 => voice,
        // CS4, CS5.
        32 | 40 if classes == 4 => voice,
        // The old TOS bit for low delay.
        4 if classes == 3 => voice,
        // AF2x to AF4x, CS2, CS3 and the TOS bit.
        4 | 16 | 18 | 20 | 22 | 24 | 26 | 28 | 30 | 34 | 36 | 38 => video,
        _ => 0,
    }
}

crate::registry::build!(dyn Queue<P>: |params, setup| {
    let mut chance = setup.stream();
    let maximum = setup.hosts.iter().map(|&(a, b)| a.max(b)).max().unwrap_or(0);
    let mut cake = Cake {
        queues: Flows::new(),
        tins: std::array::from_fn(|_| Tin::new(usize::from(maximum) + 1)),
        current: 0,
        salt: chance.bits(),
        chance,
        hosts: setup.hosts.clone(),
        set: CakeSettings::new(params),
    };
    cake.grow();
    cake
});

choice! {
    /// Set of classes.
    enum Classes { Three = "diffserv3", Four = "diffserv4", BestEffort = "besteffort" }

    /// Hosts whose shares are equal.
    enum Isolation { Triple = "triple", Source = "source", Destination = "destination", Flows = "flows" }
}

params! {
    /// Parameters.
    struct CakeParams {
        /// Maximum number of bytes that may wait in all queues.
        memory: Bytes(1.0..=1e15) = 15360000,
            "Linux without bandwidth: 10240 packets of an Ethernet frame; here of 1500 IP bytes";
        /// Expected round-trip time: COBALT's interval; its target is a twentieth.
        rtt: Span(1000.0..=1e12) = "100 ms", "tc-cake(8): 100 ms (internet)";
        /// The set of classes.
        classes: Classes = "diffserv3", "tc-cake(8)";
        /// Hosts whose shares are equalised before those of connections: sending and receiving hosts, one of them, or
        /// none.
        isolation: Isolation = "triple", "tc-cake(8): triple-isolate, dual-srchost, dual-dsthost, flows";
        /// Whether packets that can be marked are marked instead of dropped.
        ecn: Flag = true, "tc-cake(8): always";
    }
}

struct CakeSettings {
    memory: u64,
    weights: &'static [i64],
    /// True if sending hosts, and receiving hosts, have equal shares.
    isolate: (bool, bool),
    cobalt: CobaltSettings,
}

impl CakeSettings {
    fn new(params: &Params) -> Self {
        let params = CakeParams::read(params);
        CakeSettings {
            memory: params.memory.get(),
            weights: match params.classes {
                Classes::Three => WEIGHTS_3,
                Classes::Four => WEIGHTS_4,
                Classes::BestEffort => &WEIGHTS_3[..1],
            },
            isolate: match params.isolation {
                Isolation::Triple => (true, true),
                Isolation::Source => (true, false),
                Isolation::Destination => (false, true),
                Isolation::Flows => (false, false),
            },
            cobalt: CobaltSettings {
                target: Span::from_ns(params.rtt.ns() / 20),
                interval: params.rtt,
                ecn: params.ecn,
            },
        }
    }
}

/// The list that a queue is in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum CakeFlowPlace {
    /// In no list.
    #[default]
    Idle,
    /// Among the new ones.
    Sparse,
    /// Among the old ones without having sent a whole quantum in one turn: empty when its turn ended.
    Waiting,
    /// Among the old ones.
    Bulk,
}

#[derive(Clone, Copy, Debug, Default)]
struct CakeFlow {
    /// The connection that uses it, and its hosts.
    connection: Option<u32>,
    hosts: (u16, u16),
    place: CakeFlowPlace,
    deficit: i64,
    cobalt: CobaltState,
}

/// A class.
struct Tin {
    sparse: FlowList,
    bulk: FlowList,
    deficit: i64,
    /// Busy queues of each host, as the one that sends and the one that receives.
    busy: (Vec<u32>, Vec<u32>),
}

impl Tin {
    fn new(hosts: usize) -> Self {
        Tin {
            sparse: FlowList::new(),
            bulk: FlowList::new(),
            deficit: 0,
            busy: (vec![0; hosts], vec![0; hosts]),
        }
    }

    fn is_empty(&self) -> bool {
        self.sparse.first().is_none() && self.bulk.first().is_none()
    }
}

struct Cake<P> {
    queues: Flows<P, CakeFlow>,
    tins: [Tin; MAX_TINS],
    /// The class whose turn it is.
    current: usize,
    salt: u64,
    chance: Stream,
    /// Hosts at the ends of each route.
    hosts: Arc<[(u16, u16)]>,
    set: CakeSettings,
}

impl<P: Packet> Cake<P> {
    fn grow(&mut self) {
        while self.queues.len() < QUEUES * self.set.weights.len() as u32 {
            self.queues.add(CakeFlow::default());
        }
    }

    /// The queue of a packet in class `tin`: that of its connection, else a free one of its set, else the one given by
    /// its hash.
    fn queue_of(&mut self, tin: usize, packet: &P, now: Time) -> u32 {
        let hash = (mix(u64::from(packet.connection()) ^ self.salt) >> 32) as u32;
        let set = tin as u32 * QUEUES + hash % QUEUES / WAYS * WAYS;
        let way = |number: u32| set + (hash % WAYS + number) % WAYS;
        let connection = Some(packet.connection());
        let mut free = None;
        for number in 0..WAYS {
            let flow = self.queues.state(way(number));
            if flow.connection == connection {
                return way(number);
            }
            if flow.place == CakeFlowPlace::Idle && free.is_none() {
                flow.cobalt.idle(&self.set.cobalt, now);
                if flow.connection.is_none() || flow.cobalt.forgotten() {
                    free = Some(way(number));
                }
            }
        }
        let queue = free.unwrap_or(way(0));
        let flow = self.queues.state(queue);
        flow.connection = connection;
        if flow.place == CakeFlowPlace::Idle {
            flow.cobalt = CobaltState::default();
        }
        queue
    }

    /// Quantum of a queue. It is rounded at random, so that small shares are correct on average.
    fn quantum(&mut self, tin: usize, hosts: (u16, u16)) -> i64 {
        let busy = &self.tins[tin].busy;
        let source = busy.0[usize::from(hosts.0)] * u32::from(self.set.isolate.0);
        let destination = busy.1[usize::from(hosts.1)] * u32::from(self.set.isolate.1);
        let load = u64::from(source.max(destination).max(1));
        if load == 1 {
            return QUANTUM;
        }
        (QUANTUM + self.chance.below(load) as i64) / load as i64
    }

    /// A queue becomes busy or idle.
    fn count(&mut self, tin: usize, hosts: (u16, u16), begins: bool) {
        let busy = &mut self.tins[tin].busy;
        for host in [&mut busy.0[usize::from(hosts.0)], &mut busy.1[usize::from(hosts.1)]] {
            *host = if begins { *host + 1 } else { *host - 1 };
        }
    }

    /// Drops the oldest packet of the longest queue.
    fn relieve(&mut self, now: Time, outcomes: &mut Outcomes<P>) {
        let bytes = |backlog: Backlog| backlog.bytes;
        let mut longest: Option<(u64, u32)> = None;
        for list in self.tins.iter().flat_map(|tin| [tin.sparse, tin.bulk]) {
            let found = list.largest(&self.queues, bytes);
            if found.map(|(maximum, _)| maximum) > longest.map(|(maximum, _)| maximum) {
                longest = found;
            }
        }
        let Some((_, queue)) = longest else { return };
        self.queues.state(queue).cobalt.overflow(&self.set.cobalt, now);
        if let Some((_, packet)) = self.queues.pop(queue) {
            outcomes.drop(now, packet, QUEUE_FULL);
        }
    }

    /// The next class that is not empty, by weighted round robin. Classes that a change removed are served with the
    /// smallest weight.
    fn choose(&mut self) -> Option<usize> {
        if self.tins.iter().all(Tin::is_empty) {
            return None;
        }
        loop {
            let tin = &mut self.tins[self.current];
            if tin.deficit > 0 && !tin.is_empty() {
                return Some(self.current);
            }
            if tin.deficit <= 0 {
                tin.deficit += self.set.weights.get(self.current).copied().unwrap_or(64);
            }
            self.current = (self.current + 1) % MAX_TINS;
        }
    }

    /// Ends the turn of a queue of class `tin` that has used up what it may send.
    fn end_turn(&mut self, tin: usize, queue: u32, was_new: bool) {
        let hosts = self.queues.state(queue).hosts;
        let waits = self.queues.backlog_of(queue).packets > 0;
        if was_new {
            self.tins[tin].sparse.take(&self.queues);
            self.tins[tin].bulk.append(&mut self.queues, queue);
            self.queues.state(queue).place = if waits { CakeFlowPlace::Bulk } else { CakeFlowPlace::Waiting };
            if waits {
                self.count(tin, hosts, true);
            }
        } else {
            self.tins[tin].bulk.rotate(&mut self.queues);
        }
        let quantum = self.quantum(tin, hosts);
        self.queues.state(queue).deficit += quantum;
    }

    /// The next packet of class `tin`; `None` if the class has become empty.
    fn serve(&mut self, tin: usize, now: Time, outcomes: &mut Outcomes<P>) -> Option<P> {
        loop {
            let (queue, is_new) = match (self.tins[tin].sparse.first(), self.tins[tin].bulk.first()) {
                (Some(queue), _) => (queue, true),
                (None, queue) => (queue?, false),
            };
            if self.queues.state(queue).deficit <= 0 {
                self.end_turn(tin, queue, is_new);
                continue;
            }
            if let Some(packet) = self.let_go(queue, now, outcomes) {
                self.queues.state(queue).deficit -= i64::from(packet.size());
                return Some(packet);
            }
            self.queues.state(queue).cobalt.empty(&self.set.cobalt, now);
            if is_new {
                // It stays for a round among the old ones, so that it cannot return as new immediately.
                self.tins[tin].sparse.take(&self.queues);
                self.tins[tin].bulk.append(&mut self.queues, queue);
                self.queues.state(queue).place = CakeFlowPlace::Waiting;
            } else {
                self.tins[tin].bulk.take(&self.queues);
                let CakeFlow { place, hosts, .. } = *self.queues.state(queue);
                if place == CakeFlowPlace::Bulk {
                    self.count(tin, hosts, false);
                }
                self.queues.state(queue).place = CakeFlowPlace::Idle;
            }
        }
    }

    /// The oldest packet of a queue that its law does not drop.
    fn let_go(&mut self, queue: u32, now: Time, outcomes: &mut Outcomes<P>) -> Option<P> {
        while let Some(entry) = self.queues.pop(queue) {
            let left = self.queues.backlog_of(queue);
            let (state, chance) = (&mut self.queues.state(queue).cobalt, &mut self.chance);
            let law = |departure: &Departure| state.leaving(&self.set.cobalt, now, departure, chance);
            if let Some(packet) = obey(now, entry, left, outcomes, law) {
                return Some(packet);
            }
        }
        None
    }
}

impl<P: Packet> Queue<P> for Cake<P> {
    fn enqueue(&mut self, now: Time, packet: P, outcomes: &mut Outcomes<P>) {
        let tin = class_of(packet.dscp() & 63, self.set.weights.len());
        let queue = self.queue_of(tin, &packet, now);
        self.queues.push(queue, now, packet);
        let route = self.hosts.get(usize::from(packet.route()));
        let hosts = route.copied().unwrap_or_default();
        match self.queues.state(queue).place {
            CakeFlowPlace::Idle => {
                let quantum = self.quantum(tin, hosts);
                let flow = self.queues.state(queue);
                flow.cobalt.idle(&self.set.cobalt, now);
                (flow.place, flow.hosts, flow.deficit) = (CakeFlowPlace::Sparse, hosts, quantum);
                self.tins[tin].sparse.append(&mut self.queues, queue);
            }
            CakeFlowPlace::Waiting => {
                let flow = self.queues.state(queue);
                flow.place = CakeFlowPlace::Bulk;
                let hosts = flow.hosts;
                self.count(tin, hosts, true);
            }
            CakeFlowPlace::Sparse | CakeFlowPlace::Bulk => {}
        }
        while self.queues.backlog().bytes > self.set.memory {
            self.relieve(now, outcomes);
        }
    }

    fn dequeue(&mut self, now: Time, outcomes: &mut Outcomes<P>) -> Option<P> {
        while let Some(tin) = self.choose() {
            if let Some(packet) = self.serve(tin, now, outcomes) {
                self.tins[tin].deficit -= i64::from(packet.size());
                return Some(packet);
            }
        }
        None
    }

    fn backlog(&self) -> Backlog {
        self.queues.backlog()
    }

    fn visit(&self, visit: &mut dyn FnMut(&P)) {
        self.queues.visit(visit);
    }

    fn change(
        &mut self,
        now: Time,
        params: &Params,
        outcomes: &mut Outcomes<P>,
    ) -> Result<(), ParamError> {
        // Waiting packets stay in their class.
        self.set = CakeSettings::new(params);
        self.grow();
        while self.queues.backlog().bytes > self.set.memory {
            self.relieve(now, outcomes);
        }
        Ok(())
    }
}
