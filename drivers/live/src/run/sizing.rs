//! How much memory a cell needs: for frames inside the network, rings and TCP buffers.

use crate::emulator::frame;
use narrows_cell::Cell;
use narrows_net::{Network, Packet};
use narrows_transport::wire;
use narrows_units::{Bytes, Span, Time};
use serde_json::Value;

/// Sizes that follow from a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sizing {
    /// Smallest round-trip time without queues.
    pub(super) base_rtt: Span,
    /// Frames expected inside the network at most.
    pub(super) frames: usize,
    /// Largest IP packet.
    pub(super) mtu: u32,
    /// Slots per ring.
    pub(super) ring: usize,
    /// Largest TCP buffer.
    pub(super) tcp_buffer: u64,
}

/// What the wires carry unless our transport is told to send larger packets.
const ETHERNET_MTU: u32 = 1500;
/// Never below this, so that small networks need no thought.
const LEAST_BUFFER: u64 = 16 << 20;
/// The kernel's own limit for windows is 1 GiB.
const MOST_BUFFER: u64 = 1 << 30;

impl Sizing {
    /// Bytes of the largest Ethernet frame.
    pub(super) fn largest_frame(&self) -> usize {
        frame::ETHERNET + self.mtu as usize
    }

    pub(super) fn of<P: Packet + 'static>(cell: &Cell, network: &Network<P>) -> Self {
        let mut base_rtt = Span::ZERO;
        let mut fastest = 0;
        for stage in network.stages() {
            base_rtt += stage.element.propagation();
            if let Some(server) = stage.element.server() {
                // The mean over the run, and the rate at its start: whichever is faster.
                let mean = server.capacity(Time::ZERO, cell.duration);
                let mean = mean.get().saturating_mul(8_000_000_000) / cell.duration.ns().max(1);
                fastest = mean.max(server.rate(Time::ZERO).bps()).max(fastest);
            }
        }
        let extra = cell
            .flows
            .iter()
            .map(|flow| flow.extra_rtt)
            .max()
            .unwrap_or_default();
        // Without any bottleneck the hosts themselves are the limit, at a few Gbit/s.
        let fastest = if fastest == 0 { 5_000_000_000 } else { fastest };
        let bdp = narrows_units::Rate::from_bps(fastest).bytes_in(base_rtt + extra);
        let inside = bdp + queue_bytes(&cell.json["network"]);
        // A ring holds what can arrive while the thread is kept from running for 50 ms; hosts may
        // send faster than the bottleneck for a while.
        let ring = (fastest / 8 / 1500 / 20).clamp(8 * 1024, 32 * 1024) as usize;
        Sizing {
            base_rtt,
            mtu: packet_size(cell).max(ETHERNET_MTU),
            frames: (inside.get() / 1500 * 2).clamp(2048, 1 << 20) as usize,
            ring,
            tcp_buffer: (inside.get().saturating_mul(4)).clamp(LEAST_BUFFER, MOST_BUFFER),
        }
    }
}

/// Size of a full packet of our transport; the kernel's TCP fills whatever the wire allows.
fn packet_size(cell: &Cell) -> u32 {
    u32::from(cell.transport.mss) + wire::IP_UDP + wire::DATA_HEADER
}

/// What the queues can hold, as far as their descriptions say; unlimited queues count as 64 MB.
fn queue_bytes(network: &Value) -> Bytes {
    let elements = ["forward", "backward"]
        .into_iter()
        .flat_map(|direction| network[direction].as_array().into_iter().flatten());
    let queues = elements.filter_map(|element| element.get("queue"));
    let bytes = queues.map(|queue| {
        let limits = [
            queue["bytes"].as_u64(),
            queue["packets"]
                .as_u64()
                .map(|packets| packets.saturating_mul(1500)),
        ];
        limits.into_iter().flatten().min().unwrap_or(64 << 20)
    });
    Bytes::new(bytes.fold(0, u64::saturating_add).min(MOST_BUFFER))
}
