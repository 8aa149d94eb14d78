//! Connections of captures: grouping packets, evaluating one end, and matching both ends.
//!
//! ```text
//! Capture -> View per interface (in order of time) -> Connection -> OneEnd, Fates
//!                                          two Views -> Relation -> Matched
//! ```
//!
//! All TCP results are computed with byte ranges of the stream and not with frames, because frames may be larger than
//! packets: captured before the adapter segments them (TSO, GSO) or after it merged them (GRO, LRO).

mod attribution;
mod capture_relation;
mod capture_side;
mod clock;
mod connection_split;
mod datagrams;
mod fate_columns;
mod fates;
mod fates_at_receiver;
mod fates_at_sender;
mod one_end;
mod packet_rows;
mod pairs;
mod ranges;
mod stream;
#[cfg(test)]
mod tests;

pub use capture_relation::{Relation, compare_captures};
pub use capture_side::Side;
pub use clock::Clock;
pub use connection_split::{Connection, Endpoint};
pub use fate_columns::Fates;
pub use fates::fates;
pub use one_end::{OneEnd, one_end};
pub use packet_rows::Rows;
pub use pairs::{Matched, match_ends};

use crate::pcapng::{Capture, Packet, Sack, Unread};
use std::collections::BTreeMap;
use std::sync::Arc;

const TCP: u8 = 6;
const FIN: u8 = 0x01;
const SYN: u8 = 0x02;
const RST: u8 = 0x04;
const ACK: u8 = 0x10;

/// The packets captured at one interface.
#[derive(Clone, Debug, Default)]
pub struct View {
    /// Name of the interface.
    pub name: String,
    /// In order of time.
    pub packets: Vec<Packet>,
    /// Selective acknowledgements of all interfaces of the file.
    sacks: Arc<Vec<Sack>>,
    /// In the order of their first packets.
    pub connections: Vec<Connection>,
    /// Problems with the clock.
    pub clock: Clock,
}

impl View {
    /// The selective acknowledgements of a packet.
    fn sack(&self, packet: &Packet) -> Option<&Sack> {
        self.sacks.get((packet.sack as usize).checked_sub(1)?)
    }
}

/// Splits a capture into its interfaces and connections; also returns the number of unread frames by kind.
pub fn views(capture: Capture) -> (Vec<View>, BTreeMap<Unread, u64>) {
    let mut unread = capture.unread;
    let mut parts: Vec<Vec<Packet>> = vec![Vec::new(); capture.interfaces.len()];
    if capture
        .packets
        .windows(2)
        .all(|two| two[0].interface == two[1].interface)
    {
        // Without a copy, in the usual case.
        let number = capture.packets.first().map_or(0, |packet| packet.interface);
        if let Some(part) = parts.get_mut(usize::from(number)) {
            *part = capture.packets;
        }
    } else {
        for packet in capture.packets {
            parts[usize::from(packet.interface)].push(packet);
        }
    }
    let sacks = Arc::new(capture.sacks);
    let mut views = Vec::new();
    for (name, mut packets) in capture.interfaces.into_iter().zip(parts) {
        if packets.is_empty() {
            continue;
        }
        let clock = clock::order(&mut packets);
        let copies = connection_split::drop_copies(&mut packets);
        if copies > 0 {
            *unread.entry(Unread::Copies).or_default() += copies;
        }
        let connections = connection_split::connections(&packets, &capture.addresses);
        views.push(View {
            name,
            packets,
            sacks: Arc::clone(&sacks),
            connections,
            clock,
        });
    }
    (views, unread)
}
