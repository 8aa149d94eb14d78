//! Flows of programs in a tunnel: their packets are identified by separate addresses.

use narrows_cell::addressing::{contents, host_of};
use narrows_cell::judgement::{Conversation, ProgramTraffic};
use narrows_cell::{Cell, Role};
use narrows_units::Time;
use std::collections::BTreeMap;

/// The flows of programs of a run, and the packets that this end has sent for them.
#[derive(Debug, Default)]
pub(crate) struct ProgramFlows {
    /// Numbers of flows with their hosts: the sender of the data and the other.
    hosts: Vec<(u16, [u16; 2])>,
    /// Packets sent here, by flow.
    pub(super) traffic: BTreeMap<u16, ProgramTraffic>,
}

impl ProgramFlows {
    pub(crate) fn new(cell: &Cell) -> Self {
        let hosts = cell
            .programs()
            .filter_map(|(flow, _)| Some((flow.flow, cell.own_hosts(flow.flow)?)));
        ProgramFlows {
            hosts: hosts.collect(),
            traffic: BTreeMap::new(),
        }
    }

    /// The flow of an IP packet that is sent here at `at`, if it is between the hosts of a program.
    #[inline]
    pub(super) fn note(&mut self, packet: &[u8], at: Time) -> Option<u16> {
        let (flow, role) = self.sender_of(packet)?;
        let (protocol, [source, target], payload) = contents(packet);
        let (sender_port, receiver_port) = match role {
            Role::Sender => (source, target),
            Role::Receiver => (target, source),
        };
        let traffic = self.traffic.entry(flow).or_default();
        traffic.add(role, at.ns(), packet.len() as u64, payload, true);
        traffic.note(Conversation {
            protocol,
            sender_port,
            receiver_port,
        });
        Some(flow)
    }

    /// The flow of an IP packet, if it is between the hosts of a program.
    #[inline]
    pub(super) fn flow_of(&self, packet: &[u8]) -> Option<u16> {
        Some(self.sender_of(packet)?.0)
    }

    /// The flow of an IP packet between the hosts of a program, and the end of the flow that has sent it.
    #[inline]
    fn sender_of(&self, packet: &[u8]) -> Option<(u16, Role)> {
        if self.hosts.is_empty() || packet.len() < 20 {
            return None;
        }
        let address = |from: usize| host_of(packet[from..from + 4].try_into().ok()?);
        let (from, to) = (address(12)?, address(16)?);
        let mut hosts = self.hosts.iter();
        hosts.find_map(|&(flow, [sender, receiver])| match (from, to) {
            _ if (from, to) == (sender, receiver) => Some((flow, Role::Sender)),
            _ if (from, to) == (receiver, sender) => Some((flow, Role::Receiver)),
            _ => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn udp(from: u16, to: u16, ports: [u16; 2], payload: usize) -> Vec<u8> {
        use narrows_cell::addressing::address;
        let size = 28 + payload;
        let mut packet = vec![0; size];
        packet[0] = 0x45;
        packet[2..4].copy_from_slice(&(size as u16).to_be_bytes());
        packet[9] = 17;
        packet[12..16].copy_from_slice(&address(from).octets());
        packet[16..20].copy_from_slice(&address(to).octets());
        packet[20..22].copy_from_slice(&ports[0].to_be_bytes());
        packet[22..24].copy_from_slice(&ports[1].to_be_bytes());
        packet
    }

    #[test]
    fn packets_are_known_by_both_addresses() {
        let mut flows = ProgramFlows {
            hosts: vec![(3, [2, 3]), (7, [5, 4])],
            traffic: BTreeMap::new(),
        };
        let mut note = |packet: &[u8], at| flows.note(packet, Time::from_ns(at));
        assert_eq!(note(&udp(2, 3, [9, 5000], 100), 10), Some(3));
        assert_eq!(note(&udp(3, 2, [5000, 9], 0), 20), Some(3));
        assert_eq!(note(&udp(4, 5, [1, 2], 50), 30), Some(7));
        assert_eq!(note(&udp(2, 4, [1, 2], 50), 40), None, "of two flows");
        assert_eq!(note(&udp(0, 1, [20_003, 1], 50), 50), None, "of others");
        assert_eq!(note(&[0x45; 10], 60), None);
        let (three, seven) = (&flows.traffic[&3], &flows.traffic[&7]);
        assert_eq!(
            (three.sender.payload_bytes, three.receiver.packets),
            (100, 1)
        );
        assert_eq!(three.sender.first_ns, Some(10));
        assert_eq!(
            (
                three.conversations.len(),
                three.conversations[0].receiver_port
            ),
            (1, 5000)
        );
        assert_eq!(
            (seven.sender.packets, seven.receiver.payload_bytes),
            (0, 50)
        );
    }
}
