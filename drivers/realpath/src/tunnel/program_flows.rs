//! Flows of programs in a tunnel: their packets are known by the addresses that each of them has for itself.

use narrows_cell::addressing::{contents, host_of};
use narrows_cell::judgement::{Conversation, ProgramTraffic};
use narrows_cell::{Cell, Role};
use narrows_units::Time;
use std::collections::BTreeMap;

/// The flows of programs of a run, and what this end has sent of them.
#[derive(Debug, Default)]
pub(crate) struct ProgramFlows {
    /// Numbers of flows with their hosts, the one that sends the data and the other.
    hosts: Vec<(u16, [u16; 2])>,
    /// What was sent here, by flow.
    pub(super) traffic: BTreeMap<u16, ProgramTraffic>,
}

impl ProgramFlows {
    pub(crate) fn of(cell: &Cell) -> Self {
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
        if self.hosts.is_empty() || packet.len() < 20 {
            return None;
        }
        let address = |from: usize| host_of(packet[from..from + 4].try_into().ok()?);
        let (from, to) = (address(12)?, address(16)?);
        let mut hosts = self.hosts.iter();
        let (flow, role) = hosts.find_map(|&(flow, [sender, receiver])| match (from, to) {
            _ if (from, to) == (sender, receiver) => Some((flow, Role::Sender)),
            _ if (from, to) == (receiver, sender) => Some((flow, Role::Receiver)),
            _ => None,
        })?;
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
}
