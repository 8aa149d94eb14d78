//! The path of a packet through one end of a tunnel. It does not allocate and waits only for the socket.
//!
//! ```text
//!   ring of the host's wire -> seal -> outbox -> UDP          (each packet is logged when sealed)
//!   UDP -> inbox -> authentic? -> Ethernet header replaces the tunnel's -> wire of the host
//! ```
//!
//! Both directions are handled alternately in portions, so that neither waits for more than one portion of the other.

use super::clock::TunnelClock;
use super::logs::Logs;
use super::meter::FlowMeter;
use super::program_flows::ProgramFlows;
use narrows_cell::addressing::flow_of;
use narrows_record::Histogram;
use narrows_sys::batched_udp::{Datagram, UdpReceiver, UdpSender};
use narrows_sys::mmsg::{SendBatch, is_busy};
use narrows_sys::ring::{RxRing, TxPort};
use narrows_tunnel::clock::Clocks;
use narrows_tunnel::ecn_tunnel::{self, Decapsulation};
use narrows_tunnel::keys::TAG;
use narrows_tunnel::log::{Content, LogKind, TunnelLogRow};
use narrows_tunnel::wire::{HEADER, OVERHEAD};
use narrows_tunnel::{Peer, ReceivedDatagram};
use narrows_units::Time;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsFd;

/// Bytes of an Ethernet header.
const ETHERNET: usize = 14;
/// Datagrams from the path per turn: the number that the wire of the host accepts in one system call.
const PORTION: usize = SendBatch::CAPACITY;
/// Number of retries on a blocked socket before a datagram is dropped. Each try sleeps, so this is a tenth of a second.
const PATIENCE: u32 = 1_000;

/// Counters of the packets that one end has sent or could not send.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct EngineCounters {
    /// Packets sealed and logged as sent.
    pub(super) packets: u64,
    /// Bytes of these packets.
    pub(super) bytes: u64,
    /// Packets from inside without a session: before it was opened and after it was closed.
    pub(super) early: u64,
    /// Packets from inside that are not IPv4 or too large.
    pub(super) foreign: u64,
    /// Datagrams that the kernel failed to send, logged as sent although they never left.
    pub(super) unsent: u64,
    /// Packets from the path that the wire did not accept.
    pub(super) undelivered: u64,
    /// Packets dropped because they were marked and their sender does not support ECN.
    pub(super) marked: u64,
    /// The last error code of the kernel about a datagram.
    pub(super) refusal: Option<i32>,
}

/// One end, running.
pub(super) struct Engine {
    pub(super) peer: Peer,
    pub(super) clock: TunnelClock,
    pub(super) clocks: Clocks,
    pub(super) socket: UdpSocket,
    pub(super) ring: RxRing,
    pub(super) port: TxPort,
    pub(super) logs: Logs,
    pub(super) counters: EngineCounters,
    /// Time in ns that packets from inside have waited before they were stamped and sent.
    pub(super) waited: Histogram,
    /// Flows of programs, which have separate addresses.
    pub(super) programs: ProgramFlows,
    /// Counts of flows, if the run is watched.
    pub(super) meter: Option<FlowMeter>,
    pub(super) buffers: EngineBuffers,
    /// Ethernet header of packets for the inside.
    pub(super) ethernet: [u8; ETHERNET],
    /// Bytes of the headers of IP and UDP outside.
    pub(super) outer_headers: usize,
}

/// Datagrams in an engine.
pub(super) struct EngineBuffers {
    inbox: UdpReceiver,
    /// Datagrams of the inbox that were examined.
    taken: usize,
    outbox: UdpSender,
    scratch: Vec<u8>,
    /// Packets for the inside: indices in the inbox.
    deliveries: Vec<usize>,
}

impl EngineBuffers {
    pub(super) fn new() -> Self {
        EngineBuffers {
            inbox: UdpReceiver::for_groups(),
            taken: 0,
            outbox: UdpSender::default(),
            scratch: Vec::with_capacity(UdpSender::SIZE),
            deliveries: Vec::with_capacity(PORTION),
        }
    }
}

impl Engine {
    /// Does all pending work, up to one portion per direction. Returns whether there was any.
    pub(super) fn turn(&mut self) -> io::Result<bool> {
        let came = self.take_from_path()?;
        // First, because a host that always has packets to send would delay them.
        let own = self.own_messages();
        let went = self.take_from_inside();
        self.flush();
        self.logs.recycle();
        Ok(came || went || own)
    }

    fn take_from_path(&mut self) -> io::Result<bool> {
        if self.buffers.taken == self.buffers.inbox.len() {
            self.buffers.taken = 0;
            match self.buffers.inbox.receive(self.socket.as_fd()) {
                Ok(_) => {}
                // An earlier datagram was answered by an ICMP message, which is not an end.
                Err(error) if !is_fatal(&error) => {
                    self.counters.refusal = error.raw_os_error();
                    return Ok(true);
                }
                Err(error) => return Err(error),
            }
        }
        let portion =
            self.buffers.taken..self.buffers.inbox.len().min(self.buffers.taken + PORTION);
        self.buffers.taken = portion.end;
        let any = !portion.is_empty();
        self.buffers.deliveries.clear();
        for index in portion {
            self.take_datagram(index);
        }
        self.deliver();
        Ok(any)
    }

    fn take_datagram(&mut self, index: usize) {
        let Datagram {
            bytes,
            from,
            stamp_ns,
            tos,
        } = self.buffers.inbox.datagram(index);
        let arrived = self.clock.at_stamp(stamp_ns);
        let length = bytes.len();
        let (id, sent, content) = match self.peer.receive(arrived, from, bytes) {
            ReceivedDatagram::Packet { id, sent, .. } => (id, sent, Content::Packet),
            ReceivedDatagram::Clock { id, sent, exchange } => {
                if let Some(exchange) = &exchange {
                    self.clocks.exchange(exchange);
                }
                (id, sent, Content::Clock)
            }
            ReceivedDatagram::Control | ReceivedDatagram::Refused(_) => return,
        };
        self.logs.add(
            LogKind::Arrived,
            TunnelLogRow {
                id,
                sent,
                arrived,
                size: (length + self.outer_headers) as u32,
                content,
                tos,
                flow: 0,
            },
        );
        let queueing_ns = self.meter.as_mut().map(|meter| meter.look(sent, arrived));
        if content == Content::Clock {
            return;
        }
        let bytes = self.buffers.inbox.payload_mut(index);
        if let (Some(meter), Some(queueing_ns)) = (&mut self.meter, queueing_ns) {
            let packet = &bytes[HEADER..length - TAG];
            let known = self.programs.flow_of(packet);
            let flow = known.unwrap_or_else(|| flow_of(packet));
            meter.arrive(flow, packet.len() as u64, sent, queueing_ns);
        }
        match ecn_tunnel::decapsulate(&mut bytes[HEADER..length - TAG], tos) {
            Decapsulation::Deliver => {
                // Our header is longer than Ethernet's, which takes its last bytes.
                bytes[HEADER - ETHERNET..HEADER].copy_from_slice(&self.ethernet);
                self.buffers.deliveries.push(index);
            }
            Decapsulation::Drop => self.counters.marked += 1,
            Decapsulation::NotIp => self.counters.foreign += 1,
        }
    }

    /// Delivers packets to the inside. A wire that is full for long loses them, like any host.
    fn deliver(&mut self) {
        let mut done = 0;
        let mut tries = 0;
        while done < self.buffers.deliveries.len() {
            let frames = self.buffers.deliveries[done..].iter().map(|&index| {
                let bytes = self.buffers.inbox.datagram(index).bytes;
                &bytes[HEADER - ETHERNET..bytes.len() - TAG]
            });
            match self.port.send(frames) {
                Ok(sent) if sent > 0 => {
                    done += sent;
                    tries = 0;
                }
                Err(error) if is_busy(&error) && tries < PATIENCE => {
                    tries += 1;
                    pause();
                }
                _ => {
                    self.counters.undelivered += 1;
                    done += 1;
                }
            }
        }
    }

    /// Seals packets of the host, up to one portion; returns whether there were any.
    pub(super) fn take_from_inside(&mut self) -> bool {
        let mut any = false;
        while !self.buffers.outbox.is_full() {
            let Some(frame) = self.ring.peek() else { break };
            any = true;
            let packet = frame.bytes.get(ETHERNET..).unwrap_or_default();
            let length = packet.len() + OVERHEAD;
            let is_whole = frame.length as usize == frame.bytes.len();
            let (Some(tos), Some(buffer), true) = (
                ecn_tunnel::traffic_class(packet),
                self.buffers.outbox.room(length),
                is_whole,
            ) else {
                self.counters.foreign += 1;
                self.ring.release();
                continue;
            };
            buffer[HEADER..length - TAG].copy_from_slice(packet);
            let came = self.clock.at_stamp(Some(frame.stamp_ns));
            let sent = self.clock.now();
            let known = self.programs.note(packet, sent);
            let (bytes, flow) = (
                packet.len() as u64,
                known.unwrap_or_else(|| flow_of(packet)),
            );
            self.ring.release();
            let Some((to, id)) = self.peer.seal(sent, buffer) else {
                self.counters.early += 1;
                continue;
            };
            self.buffers.outbox.add(length, to, tos);
            self.waited.add(sent.since(came).ns());
            self.counters.packets += 1;
            self.counters.bytes += bytes;
            if let Some(meter) = &mut self.meter {
                meter.send(flow, sent);
            }
            self.note_sent(id, sent, length, Content::Packet, tos, flow);
        }
        any
    }

    fn own_messages(&mut self) -> bool {
        let mut any = false;
        while !self.buffers.outbox.is_full() {
            let now = self.clock.now();
            let Some(outgoing) = self.peer.transmit(now, &mut self.buffers.scratch) else {
                break;
            };
            any = true;
            let length = self.buffers.scratch.len();
            let Some(buffer) = self.buffers.outbox.room(length) else {
                continue;
            };
            buffer.copy_from_slice(&self.buffers.scratch);
            self.buffers.outbox.add(length, outgoing.to, 0);
            if outgoing.in_session {
                self.note_sent(outgoing.id, now, length, Content::Clock, 0, 0);
            }
        }
        any
    }

    fn note_sent(
        &mut self,
        id: u64,
        sent: Time,
        length: usize,
        content: Content,
        tos: u8,
        flow: u16,
    ) {
        self.logs.add(
            LogKind::Sent,
            TunnelLogRow {
                id,
                sent,
                arrived: sent,
                size: (length + self.outer_headers) as u32,
                content,
                tos,
                flow,
            },
        );
    }

    /// Sends waiting datagrams. While the machine's queue towards the path is full, no more packets are taken from
    /// inside, so that the queue of the sending host grows and not one of the tunnel.
    pub(super) fn flush(&mut self) {
        let mut tries = 0;
        while !self.buffers.outbox.is_empty() {
            match self.buffers.outbox.send(self.socket.as_fd()) {
                Ok(_) => tries = 0,
                Err(error) if is_busy(&error) && tries < PATIENCE => {
                    tries += 1;
                    pause();
                }
                Err(error) => {
                    self.counters.refusal = error.raw_os_error();
                    self.counters.unsent += 1;
                    self.buffers.outbox.skip();
                    tries = 0;
                }
            }
        }
    }

    /// Known number of messages for which the socket's buffer had no room.
    pub(super) fn socket_dropped(&self) -> u32 {
        self.buffers.inbox.dropped()
    }

    /// Destination of datagrams.
    pub(super) fn peer_address(&self) -> Option<SocketAddr> {
        self.peer.to()
    }
}

/// True for errors of the socket itself. Others concern a datagram that was sent before.
fn is_fatal(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::EBADF | libc::EFAULT | libc::EINVAL | libc::ENOTSOCK | libc::ENOMEM)
    )
}

fn pause() {
    std::thread::sleep(std::time::Duration::from_micros(100));
}
