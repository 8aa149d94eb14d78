//! The state of one endpoint.

use crate::packet::SimPacket;
use narrows_cell::Machine;
use narrows_net::Packet;
use narrows_transport::Endpoint;
use narrows_units::Time;

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
