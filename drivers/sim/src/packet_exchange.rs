//! The endpoints of all flows, their wake-ups and the packets between them.
//!
//! Endpoints are one list of state machines, in pairs: a sender at an even index, followed by its receiver. A pair is one
//! direction of a connection, or a whole flow without connections (real-time schemes, datagrams). Pairs without
//! connections exist from the start.

use crate::endpoint_state::SimEndpoint;
use crate::flow::Flows;
use crate::packet::{EndpointId, SimPacket};
use crate::transit::Transit;
use crate::wakeup_clock::Clock;
use narrows_cell::Machine;
use narrows_net::Packet;
use narrows_transport::{Body, Endpoint, Outgoing, Sender};
use narrows_units::{Span, Time};

/// Minimum time before an endpoint of a real-time scheme that had nothing to send is called again.
const MIN_MEDIA_WAIT: Span = Span::from_us(1);

/// Totals of a world so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct RunTotals {
    /// Data packets that reached their receiver.
    pub data_delivered: u64,
}

pub(crate) struct PacketExchange {
    pub(crate) clock: Clock,
    /// Pairs of senders and receivers; slots of ended ones are reused.
    pub(crate) endpoints: Vec<SimEndpoint>,
    pub(crate) transit: Transit,
    pub(crate) totals: RunTotals,
    free_pairs: Vec<u32>,
    /// Pairs begun so far.
    serials: u32,
    body: Body,
}

impl PacketExchange {
    pub(crate) fn new(clock: Clock, endpoints: Vec<SimEndpoint>, transit: Transit) -> Self {
        PacketExchange {
            clock,
            endpoints,
            transit,
            totals: RunTotals::default(),
            free_pairs: Vec::new(),
            serials: 0,
            body: Body::default(),
        }
    }

    /// Passes a packet that has arrived to its endpoint, which may have to act now.
    #[inline]
    pub(crate) fn receive(
        &mut self,
        at: Time,
        packet: SimPacket,
        flows: &mut Flows,
    ) -> Option<EndpointId> {
        let id = packet.to();
        if !self.exists(id) {
            flows.owner(packet).count_orphan(packet, true);
            self.transit.payloads.free(packet.slot());
            return None;
        }
        let index = id.index as usize;
        if !packet.is_ack() {
            self.totals.data_delivered += 1;
        } else if !self.endpoints[index].is_data {
            flows.owner(packet).count_orphan(packet, true);
        }
        let machine = &mut self.endpoints[index].machine;
        let payloads = &mut self.transit.payloads;
        payloads.read(packet.slot(), |header, body| {
            machine.receive(at, packet.ecn(), header, body);
        });
        payloads.free(packet.slot());
        Some(id)
    }

    /// True unless its connection has ended since.
    #[inline]
    pub(crate) fn exists(&self, id: EndpointId) -> bool {
        let endpoint = self.endpoints.get(id.index as usize);
        endpoint.is_some_and(|endpoint| endpoint.serial == id.serial)
    }

    /// True if an endpoint whose wake-up has come has something to do; otherwise it has postponed that wake-up, which
    /// then moves: see [`Clock::bring_endpoint_forward`].
    #[inline]
    pub(crate) fn is_due(&mut self, now: Time, index: usize) -> bool {
        let endpoint = &mut self.endpoints[index];
        if std::mem::take(&mut endpoint.poked) {
            return true;
        }
        let wakeup = endpoint.next_wakeup();
        if wakeup > now {
            self.clock.wake_endpoint(index, wakeup);
        }
        wakeup <= now
    }

    /// Lets an endpoint send all it may.
    #[inline]
    pub(crate) fn act(&mut self, now: Time, index: usize, flows: &mut Flows) {
        let endpoint = &mut self.endpoints[index];
        if now >= endpoint.stop && !endpoint.stopped {
            endpoint.stopped = true;
            endpoint.machine.stop();
        }
        if endpoint.stopped {
            self.clock.wake_endpoint(index, Time::FAR);
            return;
        }
        let template = endpoint.packet;
        let is_orphan = template.is_ack() && !endpoint.is_data;
        let transit = &mut self.transit;
        let send = |out: &Outgoing, body: &mut Body| {
            let slot = transit.payloads.put(&out.header, body);
            let packet = template.carrying(slot, out.size, out.ecn);
            if is_orphan {
                flows.owner(packet).count_orphan(packet, false);
            }
            transit.enter(now, packet);
        };
        endpoint.machine.transmit_all(now, &mut self.body, send);
        let wakeup = endpoint.next_wakeup();
        if !endpoint.machine.is_media() {
            self.clock.bring_endpoint_forward(index, wakeup, now);
        } else if wakeup <= now {
            self.clock.wake_endpoint(index, now + MIN_MEDIA_WAIT);
        } else {
            self.clock.wake_endpoint(index, wakeup);
        }
    }

    /// True if the scheme of an endpoint waits for a decision of the caller.
    #[inline]
    pub(crate) fn awaits_decision(&self, index: usize) -> bool {
        let endpoint = &self.endpoints[index];
        match &endpoint.machine {
            Machine::Sender(sender) => !endpoint.stopped && sender.observation().is_some(),
            _ => false,
        }
    }

    /// Moves the end of a sender's stream as `end` specifies, and lets it react.
    pub(crate) fn write(&mut self, now: Time, sender: u32, end: impl FnOnce(&Sender) -> u64) {
        if let Machine::Sender(sender) = &mut self.endpoints[sender as usize].machine {
            let end = end(sender);
            sender.set_write_seq(end);
        }
        self.poke(now, sender as usize);
    }

    /// Lets an endpoint act at `at`, whatever its timers are.
    pub(crate) fn poke(&mut self, at: Time, index: usize) {
        self.endpoints[index].poked = true;
        self.clock.wake_endpoint(index, at);
    }

    /// The index at which the next pair will be.
    pub(crate) fn next_pair(&self) -> u32 {
        let free = self.free_pairs.last().copied();
        free.unwrap_or(self.endpoints.len() as u32)
    }

    /// Adds a pair, at the index that [`PacketExchange::next_pair`] has returned.
    pub(crate) fn add_pair(&mut self, pair: [SimEndpoint; 2]) -> u32 {
        let index = self.next_pair();
        if self.free_pairs.pop().is_some() {
            for (place, endpoint) in (index as usize..).zip(pair) {
                self.endpoints[place] = endpoint;
            }
        } else {
            self.endpoints.extend(pair);
            self.clock.grow(self.endpoints.len());
        }
        self.identify(index);
        index
    }

    /// Assigns a serial number to a pair.
    pub(crate) fn identify(&mut self, sender: u32) {
        self.serials += 1;
        for endpoint in &mut self.endpoints[sender as usize..][..2] {
            endpoint.serial = self.serials;
            endpoint.packet.set_serial(self.serials);
        }
    }

    /// Ends a pair: its packets in flight no longer belong to any.
    pub(crate) fn retire_pair(&mut self, sender: u32) {
        for place in [sender as usize, sender as usize + 1] {
            self.endpoints[place].serial = 0;
            self.clock.wake_endpoint(place, Time::FAR);
        }
        self.free_pairs.push(sender);
    }
}
