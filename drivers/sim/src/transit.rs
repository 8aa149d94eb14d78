//! Packets between their endpoints: the network, what they carry, and the log of all of them.

use crate::packet::SimPacket;
use crate::payloads::Payloads;
use narrows_net::{Copied, Network, Outcomes, Packet};
use narrows_record::Log;
use narrows_units::Time;

/// Apart from endpoints and flows, so that a turn of an endpoint can put packets in while it holds the endpoint.
pub(crate) struct Transit {
    pub(crate) network: Network<SimPacket>,
    pub(crate) log: Log,
    pub(crate) payloads: Payloads,
    outcomes: Outcomes<SimPacket>,
    /// Copies that have a share of what their originals carry, and no identity yet.
    copies: Vec<Copied<SimPacket>>,
}

impl Transit {
    pub(crate) fn new(network: Network<SimPacket>, log: Log) -> Self {
        Transit {
            network,
            log,
            payloads: Payloads::default(),
            outcomes: Outcomes::new(),
            copies: Vec::new(),
        }
    }

    /// Puts a packet into the network.
    #[inline]
    pub(crate) fn enter(&mut self, now: Time, mut packet: SimPacket) {
        let (flow, direction) = (packet.flow(), packet.direction());
        packet.set_key(self.log.enter(flow, direction, packet.size(), now.ns()));
        self.network.push(now, packet, &mut self.outcomes);
        self.collect_results();
    }

    /// Advances the network; the first packet that has come out.
    #[inline]
    pub(crate) fn advance(&mut self, now: Time) -> Option<(Time, SimPacket)> {
        let first = self.network.advance_and_pop(now, &mut self.outcomes);
        self.collect_results();
        first
    }

    /// The next packet that has come out.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<(Time, SimPacket)> {
        self.network.pop()
    }

    /// Writes down that a packet has come out; says whether it is whole.
    #[inline]
    pub(crate) fn arrive(&mut self, at: Time, packet: SimPacket) -> bool {
        if packet.is_corrupt() {
            self.log.arrive_corrupt(packet.entered(), at.ns(), 0);
            self.payloads.free(packet.slot());
            return false;
        }
        self.log.arrive(packet.entered(), at.ns(), 0);
        true
    }

    /// Closes the books at the end of the run, `now`: what is still in the network is in flight.
    pub(crate) fn finish(&mut self, now: Time) {
        self.network.catch_up(now);
        let log = &mut self.log;
        self.network
            .visit_held(&mut |element, packet| log.hold(packet.entered(), element));
        self.log.finish();
    }

    /// Writes down what elements have dropped, and gives copies an identity.
    #[inline]
    fn collect_results(&mut self) {
        if !self.outcomes.drops.is_empty() || !self.outcomes.copies.is_empty() {
            self.collect_outcomes();
        }
    }

    #[cold]
    fn collect_outcomes(&mut self) {
        // Before what was dropped is freed: an original may be lost at the instant at which it is copied.
        for copied in self.outcomes.copies.drain(..) {
            self.payloads.share(copied.packet.slot());
            self.copies.push(copied);
        }
        for drop in self.outcomes.drops.drain(..) {
            let packet = drop.packet.entered();
            self.log.drop(packet, drop.element, drop.reason.0);
            self.payloads.free(drop.packet.slot());
        }
        self.collect_copies();
    }

    fn collect_copies(&mut self) {
        while let Some(copied) = self.copies.pop() {
            let mut packet = copied.packet;
            packet.set_key(self.log.copy(packet.entered(), copied.at.ns()));
            self.network
                .inject(copied.element, copied.at, packet, &mut self.outcomes);
            self.network.advance(copied.at, &mut self.outcomes);
            self.collect_results();
        }
    }
}
