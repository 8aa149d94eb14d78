//! Readings of a run while it is under way: gauges that the emulator's threads write and another thread reads.
//!
//! Each gauge has a single writer, which adds to it with a relaxed load and store: nothing per packet allocates, locks
//! or enters the kernel. Readings of different gauges may be a few packets apart.

use super::handle::Handle;
use super::hooks::{Hooks, Transit};
use super::steering::Steering;
use narrows_cell::{Cell, Role};
use narrows_net::Network;
use narrows_units::{Span, Time};
use serde::Serialize;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Time between two readings of the elements.
const LOOK: Span = Span::from_ms(20);

/// A counter or a state with a single writer.
#[derive(Debug, Default)]
struct Gauge(AtomicU64);

impl Gauge {
    #[inline]
    fn add(&self, value: u64) {
        self.set(self.get().wrapping_add(value));
    }

    #[inline]
    fn set(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }

    #[inline]
    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Counters of the data of one flow. Aligned, so that flows of different threads share no cache line.
#[derive(Debug, Default)]
#[repr(align(64))]
struct FlowGauges {
    delivered_packets: Gauge,
    delivered_bytes: Gauge,
    dropped_packets: Gauge,
    queueing_ns: Gauge,
}

/// Counters and state of one element with a queue.
#[derive(Debug, Default)]
#[repr(align(64))]
struct ElementGauges {
    left_packets: Gauge,
    left_bytes: Gauge,
    dropped_packets: Gauge,
    queued_packets: Gauge,
    queued_bytes: Gauge,
    rate_bps: Gauge,
}

/// Counts of the data of a flow since the start of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct FlowReading {
    /// Packets that have left the network towards the receiver.
    pub delivered_packets: u64,
    /// Their IP bytes.
    pub delivered_bytes: u64,
    /// Packets that elements have dropped.
    pub dropped_packets: u64,
    /// Sum over the delivered packets: time in the network less the fixed delays of the route.
    pub queueing_ns: u64,
}

/// Counts of an element since the start of the run, and its present state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ElementReading {
    /// Packets that have left.
    pub left_packets: u64,
    /// Their IP bytes.
    pub left_bytes: u64,
    /// Packets that it has dropped.
    pub dropped_packets: u64,
    /// Packets that wait.
    pub queued_packets: u64,
    /// Their IP bytes.
    pub queued_bytes: u64,
    /// Rate of its server in bit/s.
    pub rate_bps: u64,
}

/// Decisions for one thread.
#[derive(Debug, Default)]
struct Mailbox {
    is_full: AtomicBool,
    steering: Mutex<Option<Steering>>,
}

/// Shared between the threads of an emulator and the thread that shows the run.
#[derive(Debug)]
pub struct Gauges {
    /// By flow number.
    flows: Vec<FlowGauges>,
    /// By index of the element.
    elements: Vec<ElementGauges>,
    /// By thread.
    mailboxes: Vec<Mailbox>,
}

impl Gauges {
    /// Gauges for `cell`, whose network has this number of elements, with this number of threads.
    pub fn new(cell: &Cell, elements: usize, threads: usize) -> Self {
        let flows = cell.flows.last().map_or(0, |flow| usize::from(flow.flow)) + 1;
        Gauges {
            flows: (0..flows).map(|_| FlowGauges::default()).collect(),
            elements: (0..elements).map(|_| ElementGauges::default()).collect(),
            mailboxes: (0..threads).map(|_| Mailbox::default()).collect(),
        }
    }

    /// The counts of a flow.
    pub fn flow(&self, number: u16) -> FlowReading {
        let gauges = self.flows.get(usize::from(number));
        gauges.map_or_else(FlowReading::default, |gauges| FlowReading {
            delivered_packets: gauges.delivered_packets.get(),
            delivered_bytes: gauges.delivered_bytes.get(),
            dropped_packets: gauges.dropped_packets.get(),
            queueing_ns: gauges.queueing_ns.get(),
        })
    }

    /// The counts and the state of the element with this index.
    pub fn element(&self, index: u16) -> ElementReading {
        let gauges = self.elements.get(usize::from(index));
        gauges.map_or_else(ElementReading::default, |gauges| ElementReading {
            left_packets: gauges.left_packets.get(),
            left_bytes: gauges.left_bytes.get(),
            dropped_packets: gauges.dropped_packets.get(),
            queued_packets: gauges.queued_packets.get(),
            queued_bytes: gauges.queued_bytes.get(),
            rate_bps: gauges.rate_bps.get(),
        })
    }

    /// Hands a decision to a thread, which has to be woken then. A decision that was not taken yet is lost.
    pub fn steer(&self, thread: usize, steering: Steering) {
        let mailbox = &self.mailboxes[thread];
        if let Ok(mut place) = mailbox.steering.lock() {
            *place = Some(steering);
        }
        mailbox.is_full.store(true, Ordering::Release);
    }
}

/// The data of a flow.
#[derive(Clone, Copy, Debug)]
struct DataPath {
    route: u16,
    /// Half of the additional round-trip time of the flow.
    extra: Span,
    /// Fixed delay at present.
    fixed: Span,
}

/// Hooks that write the gauges.
#[derive(Debug)]
pub struct LiveHooks<'a> {
    gauges: &'a Gauges,
    thread: usize,
    /// By slot: when the packet entered the network.
    entered: Vec<Time>,
    /// By flow number.
    paths: Vec<Option<DataPath>>,
    /// When the elements are read next.
    next: Time,
}

impl<'a> LiveHooks<'a> {
    /// Hooks of one thread, whose network usually holds at most `frames` frames.
    pub fn new<'b>(
        gauges: &'a Gauges,
        thread: usize,
        cell: &'b Cell,
        network: &'b Network<Handle>,
        frames: usize,
    ) -> Self {
        let mut paths = vec![None; gauges.flows.len()];
        for flow in &cell.flows {
            let ends = [Role::Sender, Role::Receiver].map(|role| match role {
                Role::Sender => flow.from,
                Role::Receiver => flow.to,
            });
            paths[usize::from(flow.flow)] = network.route(ends[0], ends[1]).map(|route| DataPath {
                route,
                extra: Span::from_ns(flow.extra_rtt.ns() / 2),
                fixed: Span::ZERO,
            });
        }
        LiveHooks {
            gauges,
            thread,
            entered: vec![Time::ZERO; frames],
            paths,
            next: Time::ZERO,
        }
    }

    /// The gauges of the flow of a packet of data, and its fixed delay.
    #[inline]
    fn data(&self, packet: &Transit) -> Option<(&'a FlowGauges, Span)> {
        let flow = usize::from(packet.flow);
        let path = self.paths.get(flow).copied().flatten()?;
        (path.route == packet.route).then(|| (&self.gauges.flows[flow], path.fixed))
    }

    fn note(&mut self, slot: u32, at: Time) {
        let slot = slot as usize;
        if slot >= self.entered.len() {
            self.entered
                .resize((slot + 1).next_power_of_two(), Time::ZERO);
        }
        self.entered[slot] = at;
    }

    fn look(&mut self, network: &Network<Handle>) {
        for path in self.paths.iter_mut().flatten() {
            path.fixed = network.route_propagation(path.route) + path.extra;
        }
        for stage in network.stages() {
            let Some(server) = stage.element.server() else {
                continue;
            };
            let place = self.gauges.elements.get(usize::from(stage.index));
            let Some(gauges) = place.filter(|_| network.keeps(stage.link_index)) else {
                continue;
            };
            let queued = stage.element.queued();
            gauges.left_packets.set(stage.counters.out_packets);
            gauges.left_bytes.set(stage.counters.out_bytes);
            gauges.dropped_packets.set(stage.counters.dropped_packets);
            gauges.queued_packets.set(u64::from(queued.packets));
            gauges.queued_bytes.set(queued.bytes);
            gauges.rate_bps.set(server.rate(self.next).bps());
        }
    }
}

impl Hooks for LiveHooks<'_> {
    #[inline]
    fn enter(&mut self, packet: &Transit, _: &[u8]) -> Option<u16> {
        self.note(packet.slot, packet.at);
        None
    }

    fn copy(&mut self, original: u32, copy: u32) {
        let at = self.entered.get(original as usize).copied();
        self.note(copy, at.unwrap_or(Time::ZERO));
    }

    #[inline]
    fn leave(&mut self, packet: &Transit, _: &Network<Handle>) {
        if let Some((flow, fixed)) = self.data(packet) {
            let entered = self.entered.get(packet.slot as usize);
            let inside = packet.at.since(entered.copied().unwrap_or(packet.at));
            flow.delivered_packets.add(1);
            flow.delivered_bytes.add(u64::from(packet.size));
            // While packets that entered before a change of the delay are under way, the difference may be negative.
            flow.queueing_ns.add(inside.ns().saturating_sub(fixed.ns()));
        }
    }

    #[inline]
    fn dropped(&mut self, packet: &Transit, _: u16, _: &'static str) {
        if let Some((flow, _)) = self.data(packet) {
            flow.dropped_packets.add(1);
        }
    }

    #[inline]
    fn observe(&mut self, now: Time, network: &Network<Handle>) {
        // Before a long pause as well, in which the thread does not look.
        if now >= self.next || network.next_wakeup() > self.next {
            self.next = now;
            self.look(network);
            self.next = now + LOOK;
        }
    }

    #[inline]
    fn steering(&mut self) -> Option<Steering> {
        let mailbox = &self.gauges.mailboxes[self.thread];
        if !mailbox.is_full.load(Ordering::Acquire) {
            return None;
        }
        mailbox.is_full.store(false, Ordering::Release);
        mailbox.steering.lock().ok()?.take()
    }
}
