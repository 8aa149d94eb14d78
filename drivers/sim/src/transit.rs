//! Packets between their endpoints: the network, their contents, and their log.

use crate::packet::SimPacket;
use crate::payloads::Payloads;
use narrows_net::{Copied, Network, Outcomes, Packet};
use narrows_record::Log;
use narrows_units::Time;

/// Separate from endpoints and flows, so that an endpoint can send packets while it is borrowed.
pub(crate) struct Transit {
    pub(crate) network: Network<SimPacket>,
    pub(crate) log: Log,
    pub(crate) payloads: Payloads,
    outcomes: Outcomes<SimPacket>,
    /// Copies that share the content of their originals, and have no identity yet.
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

    /// Sends a packet into the network.
    #[inline]
    pub(crate) fn enter(&mut self, now: Time, mut packet: SimPacket) {
        let (flow, direction) = (packet.flow(), packet.direction());
        packet.set_key(self.log.enter(flow, direction, packet.size(), now.ns()));
        self.network.push(now, packet, &mut self.outcomes);
        self.collect_results();
    }

    /// Advances the network; returns the first packet that has left it.
    #[inline]
    pub(crate) fn advance(&mut self, now: Time) -> Option<(Time, SimPacket)> {
        let first = self.network.advance_and_pop(now, &mut self.outcomes);
        self.collect_results();
        first
    }

    /// The next packet that has left the network.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<(Time, SimPacket)> {
        self.network.pop()
    }

    /// Logs that a packet has left the network; returns whether it is undamaged.
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

    /// Closes the log at the end of the run, `now`: packets still in the network are in flight.
    pub(crate) fn finish(&mut self, now: Time) {
        self.network.catch_up(now);
        let log = &mut self.log;
        self.network
            .visit_held(&mut |element, packet| log.hold(packet.entered(), element));
        self.log.finish();
    }

    /// Logs drops of elements, and assigns identities to copies.
    #[inline]
    fn collect_results(&mut self) {
        if !self.outcomes.drops.is_empty() || !self.outcomes.copies.is_empty() {
            self.collect_outcomes();
        }
    }

    #[cold]
    fn collect_outcomes(&mut self) {
        // Before dropped packets are freed: an original may be lost at the instant at which it is copied.
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
