//! The endpoints of all flows: one list of state machines.
//!
//! They are in pairs: a sender at an even index, followed by its receiver. A pair is one direction of a connection, or
//! a whole flow without connections (real-time schemes, datagrams). Pairs without connections exist from the start.

use crate::flow::FlowState;
use crate::packet::SimPacket;
use crate::world::World;
use narrows_cell::Machine;
use narrows_net::Packet;
use narrows_transport::{Body, Endpoint, Outgoing};
use narrows_units::{Span, Time};

/// Minimum time before an endpoint of a real-time scheme that had nothing to send is called again.
const MIN_MEDIA_WAIT: Span = Span::from_us(1);

/// One end of a pair.
pub(crate) struct SimEndpoint {
    pub(crate) machine: Machine,
    /// Serial number of the pair, unique among all pairs of the run; 0 while the slot is free.
    pub(crate) serial: u32,
    /// Index of its connection, if it has one.
    pub(crate) connection: u32,
    /// The common part of its packets.
    pub(crate) packet: SimPacket,
    /// Index of the process that it is part of, among those that may run late.
    pub(crate) process: u32,
    /// True if the pair carries the flow's data, not requests for them.
    pub(crate) is_data: bool,
    /// True if it has new input to react to.
    pub(crate) poked: bool,
    /// True if its connection ends when all data are delivered.
    pub(crate) closing: bool,
    pub(crate) stopped: bool,
    /// Position in the stream whose arrival the connection waits for.
    pub(crate) awaited: u64,
    pub(crate) start: Time,
    pub(crate) stop: Time,
}

impl SimEndpoint {
    /// Contiguous stream bytes that a receiver of the transport has received.
    #[inline]
    pub(crate) fn rcv_nxt(&self) -> u64 {
        match &self.machine {
            Machine::Receiver(receiver) => receiver.rcv_nxt(),
            _ => 0,
        }
    }

    /// The next time at which it has to act, or at which its flow stops if it sends data.
    #[inline]
    pub(crate) fn next_wakeup(&self) -> Time {
        if self.stopped {
            return Time::FAR;
        }
        let wakeup = self.machine.next_wakeup();
        if self.packet.is_ack() {
            wakeup
        } else {
            wakeup.min(self.stop).max(self.start)
        }
    }
}

/// An endpoint by its slot, and its serial number among those that had this slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EndpointId {
    pub(crate) index: u32,
    pub(crate) serial: u32,
}

impl World {
    /// Passes a packet that has arrived to its endpoint, which may have to act now.
    #[inline]
    pub(crate) fn on_packet(&mut self, at: Time, packet: SimPacket) -> Option<EndpointId> {
        let id = packet.to();
        if !self.exists(id) {
            self.flow_of(packet).count_orphan(packet, true);
            self.transit.payloads.free(packet.slot());
            return None;
        }
        let index = id.index as usize;
        if !packet.is_ack() {
            self.totals.data_delivered += 1;
        } else if !self.endpoints[index].is_data {
            self.flow_of(packet).count_orphan(packet, true);
        }
        let machine = &mut self.endpoints[index].machine;
        let payloads = &mut self.transit.payloads;
        payloads.read(packet.slot(), |header, body| {
            machine.receive(at, packet.ecn(), header, body);
        });
        payloads.free(packet.slot());
        Some(id)
    }

    /// The flow that a packet belongs to.
    fn flow_of(&mut self, packet: SimPacket) -> &mut FlowState {
        &mut self.flows[usize::from(self.index[usize::from(packet.flow())])]
    }

    /// True unless its connection has ended since.
    #[inline]
    pub(crate) fn exists(&self, id: EndpointId) -> bool {
        let endpoint = self.endpoints.get(id.index as usize);
        endpoint.is_some_and(|endpoint| endpoint.serial == id.serial)
    }

    /// Lets an endpoint react to received packets, and its connection to completed transfers.
    #[inline]
    pub(crate) fn respond(&mut self, now: Time, index: usize) {
        let endpoint = &self.endpoints[index];
        let (closing, connection) = (endpoint.closing, endpoint.connection);
        let complete = endpoint.rcv_nxt() >= endpoint.awaited;
        self.act(now, index);
        if complete {
            self.on_awaited(now, index);
        }
        if closing {
            self.retire_if_done(connection);
        }
    }

    /// Wakes an endpoint, unless it has postponed its wake-up since: see `Wakeups::bring_forward`.
    #[inline]
    pub(crate) fn wake_endpoint(&mut self, now: Time, index: usize) {
        let endpoint = &mut self.endpoints[index];
        if !std::mem::take(&mut endpoint.poked) {
            let wakeup = endpoint.next_wakeup();
            if wakeup > now {
                self.wakeups.set(self.parts.endpoint(index), wakeup);
                return;
            }
        }
        if self.delayed_processes.is_none() || !self.wait_for_processor(now, index) {
            self.act(now, index);
        }
    }

    /// Lets an endpoint send all it may.
    #[inline]
    pub(crate) fn act(&mut self, now: Time, index: usize) {
        let endpoint = &mut self.endpoints[index];
        if now >= endpoint.stop && !endpoint.stopped {
            endpoint.stopped = true;
            endpoint.machine.stop();
        }
        let part = self.parts.endpoint(index);
        if endpoint.stopped {
            self.wakeups.set(part, Time::FAR);
            return;
        }
        let template = endpoint.packet;
        let is_orphan = template.is_ack() && !endpoint.is_data;
        let (transit, flows) = (&mut self.transit, &mut self.flows);
        let place = usize::from(self.index[usize::from(template.flow())]);
        let send = |out: &Outgoing, body: &mut Body| {
            let slot = transit.payloads.put(&out.header, body);
            let packet = template.carrying(slot, out.size, out.ecn);
            if is_orphan {
                flows[place].count_orphan(packet, false);
            }
            transit.enter(now, packet);
        };
        endpoint.machine.transmit_all(now, &mut self.body, send);
        let wakeup = endpoint.next_wakeup();
        if !endpoint.machine.is_media() {
            self.wakeups.bring_forward(part, wakeup, now);
        } else if wakeup <= now {
            self.wakeups.set(part, now + MIN_MEDIA_WAIT);
        } else {
            self.wakeups.set(part, wakeup);
        }
    }
}
