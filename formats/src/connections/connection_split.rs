//! Groups packets into connections.

use super::{ACK, FIN, RST, SYN, TCP};
use crate::pcapng::Packet;
use std::collections::BTreeMap;

/// Sequence numbers farther apart belong to different connections: windows are smaller (RFC 7323).
const MAX_WINDOW: u32 = 1 << 30;
/// Equal frames within this time are one frame that was captured more than once: data are not repeated that soon.
const MAX_COPY_NS: i64 = 1_000_000;

/// One end of a connection.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Endpoint {
    /// As text.
    pub address: String,
    /// Of TCP or UDP.
    pub port: u16,
}

/// The packets between two ports of two hosts; for TCP, those of one connection.
#[derive(Clone, Debug, Default)]
pub struct Connection {
    /// Number of the protocol of IP.
    pub protocol: u8,
    /// Both ends; the first one opened the connection or, where that was not captured, sent the first packet.
    pub ends: [Endpoint; 2],
    /// Indices of its packets, in order of time.
    pub packets: Vec<u32>,
    /// Bytes of payload that each end sent, repeated ones included.
    pub payload: [u64; 2],
    /// The first sequence number of each end, if its SYN was captured.
    pub initial: [Option<u32>; 2],
    /// Maximum segment size that each end announces; 0 if that was not captured.
    pub mss: [u16; 2],
    /// Time of the first packet, since 1970.
    pub first_ns: i64,
    /// Time of the last packet.
    pub last_ns: i64,
    /// Address (as index) and port of the first end.
    opener: (u32, u16),
    closed: bool,
    /// End of the last data of each end.
    latest: [Option<u32>; 2],
}

impl Connection {
    /// The end that sent `packet`.
    pub(super) fn sender(&self, packet: &Packet) -> usize {
        usize::from((packet.source, packet.source_port) != self.opener)
    }

    /// The end that sends the data: the one with more payload.
    pub fn data_from(&self) -> usize {
        usize::from(self.payload[1] > self.payload[0])
    }

    /// How a connection of another capture has its ends if both are the same connection: `true` if they are in the
    /// opposite order. `None` if the connections are different.
    ///
    /// Where addresses or ports are translated between the captures, the initial sequence numbers of both ends, which
    /// are random (RFC 9293, section 3.4.1), tell that it is the same connection.
    pub(super) fn turned(&self, other: &Connection) -> Option<bool> {
        if self.protocol != other.protocol {
            return None;
        }
        let [first, second] = &other.ends;
        if [first, second] == self.ends.each_ref() {
            Some(false)
        } else if [second, first] == self.ends.each_ref() {
            Some(true)
        } else {
            let numbers = self.handshake()?;
            let [first, second] = other.handshake()?;
            if [first, second] == numbers {
                Some(false)
            } else {
                ([second, first] == numbers).then_some(true)
            }
        }
    }

    /// The initial sequence numbers of both ends, if both SYNs were captured.
    pub fn handshake(&self) -> Option<[u32; 2]> {
        Some([self.initial[0]?, self.initial[1]?])
    }

    /// True if `packet` begins another connection on the same ports.
    fn is_over_before(&self, packet: &Packet) -> bool {
        if packet.flags & RST != 0 {
            return false;
        }
        let from = self.sender(packet);
        if packet.flags & SYN != 0 {
            return match self.initial[from] {
                // A SYN is repeated only before any other packet is sent.
                Some(initial) if initial == packet.sequence => {
                    let used = self.closed || self.latest != [None; 2];
                    used && packet.flags & ACK == 0
                }
                Some(_) => true,
                // Data without SYN: the connection is older than the capture. An answer belongs to the packet that it
                // answers.
                None => {
                    self.latest[from].is_some()
                        || (packet.flags & ACK == 0 && self.initial[1 - from].is_some())
                }
            };
        }
        packet.payload > 0
            && self.latest[from].is_some_and(|latest| {
                let apart = packet.sequence.wrapping_sub(latest);
                (MAX_WINDOW..=u32::MAX - MAX_WINDOW).contains(&apart)
            })
    }

    fn push(&mut self, place: u32, packet: &Packet) {
        let from = self.sender(packet);
        self.packets.push(place);
        self.payload[from] += u64::from(packet.payload);
        self.last_ns = packet.time_ns;
        if self.protocol != TCP {
            return;
        }
        self.closed |= packet.flags & (FIN | RST) != 0;
        if packet.flags & SYN != 0 {
            self.initial[from] = Some(packet.sequence);
            self.mss[from] = packet.mss;
        } else if packet.payload > 0 {
            self.latest[from] = Some(packet.sequence.wrapping_add(packet.payload));
        }
    }
}

/// The connections of packets in order of time.
pub(super) fn connections(packets: &[Packet], addresses: &[String]) -> Vec<Connection> {
    let mut known: BTreeMap<(u8, u32, u16, u32, u16), usize> = BTreeMap::new();
    let mut all: Vec<Connection> = Vec::new();
    for (place, packet) in (0_u32..).zip(packets) {
        let here = (packet.source, packet.source_port);
        let there = (packet.destination, packet.destination_port);
        let (low, high) = (here.min(there), here.max(there));
        let key = (packet.protocol, low.0, low.1, high.0, high.1);
        let current = known.get(&key).copied();
        let number = current.filter(|&number| !all[number].is_over_before(packet));
        let number = number.unwrap_or_else(|| {
            // The answer to a SYN that was not captured.
            let answers = packet.protocol == TCP && packet.flags & (SYN | ACK) == SYN | ACK;
            let (opener, other) = if answers {
                (there, here)
            } else {
                (here, there)
            };
            let name = |end: (u32, u16)| Endpoint {
                address: addresses.get(end.0 as usize).cloned().unwrap_or_default(),
                port: end.1,
            };
            all.push(Connection {
                protocol: packet.protocol,
                ends: [name(opener), name(other)],
                first_ns: packet.time_ns,
                opener,
                ..Connection::default()
            });
            known.insert(key, all.len() - 1);
            all.len() - 1
        });
        all[number].push(place, packet);
    }
    all
}

/// Removes further copies of frames that were captured at several devices of one host or by a mirroring switch; returns
/// their number.
pub(super) fn drop_copies(packets: &mut Vec<Packet>) -> u64 {
    type Key = (u32, u32, u16, u16, u16, u32, u32, u32, u64);
    // Frames with payload, and an identification by which repeated data differ.
    let key = |packet: &Packet| -> Option<Key> {
        (packet.payload > 0 && packet.ip_id > 0 && packet.uid == 0).then_some((
            packet.source,
            packet.destination,
            packet.source_port,
            packet.destination_port,
            packet.ip_id,
            packet.sequence,
            packet.stamp,
            packet.payload,
            packet.hash,
        ))
    };
    let mut recent: BTreeMap<Key, i64> = BTreeMap::new();
    let mut order: std::collections::VecDeque<(i64, Key)> = std::collections::VecDeque::new();
    let before = packets.len();
    packets.retain(|packet| {
        let Some(key) = key(packet) else { return true };
        while let Some(&(time, old)) = order.front() {
            if packet.time_ns - time <= MAX_COPY_NS {
                break;
            }
            order.pop_front();
            if recent.get(&old) == Some(&time) {
                recent.remove(&old);
            }
        }
        if recent.contains_key(&key) {
            return false;
        }
        recent.insert(key, packet.time_ns);
        order.push_back((packet.time_ns, key));
        true
    });
    (before - packets.len()) as u64
}
