//! The independent parts of a network, and restriction of a network to some of them.

use super::{Network, TIMELINE};
use crate::Packet;
use narrows_units::Time;

impl<P: Packet + 'static> Network<P> {
    /// For each host the number of its group, from 0: packets of hosts in different groups share no link, and thus do
    /// not affect each other. Each direction of a dumbbell is one group.
    pub fn groups(&self) -> Vec<u16> {
        let mut group: Vec<u16> = (0..self.hosts.len() as u16).collect();
        let mut user: Vec<Option<u16>> = vec![None; self.links.len()];
        for route in &self.routes {
            for &link in &route.links {
                let other = *user[usize::from(link)].get_or_insert(route.from);
                let (a, b) = (group[usize::from(other)], group[usize::from(route.from)]);
                for member in group.iter_mut().filter(|member| **member == a.max(b)) {
                    *member = a.min(b);
                }
            }
        }
        let mut numbers = group.clone();
        numbers.sort_unstable();
        numbers.dedup();
        let number = |name: &u16| numbers.partition_point(|other| other < name) as u16;
        group.iter().map(number).collect()
    }

    /// Restricts the network to packets of these hosts, which must form complete [groups](Network::groups). The links
    /// of other hosts become inactive.
    pub fn keep(&mut self, hosts: impl Fn(u16) -> bool) {
        self.kept = (0..self.hosts.len() as u16).map(hosts).collect();
        let kept: Vec<bool> = (0..self.links.len() as u16)
            .map(|link| self.keeps(link))
            .collect();
        self.timeline.retain(|due| kept[usize::from(due.link)]);
        let first = self.timeline.front().map_or(Time::FAR, |due| due.at);
        self.wakeups.set(TIMELINE, first);
        self.propagation = self.propagation_now();
    }

    /// True if packets of the hosts that were [kept](Network::keep) can be on a link. An unused link is kept with the
    /// first host.
    pub fn keeps(&self, link: u16) -> bool {
        let user = self.routes.iter().find(|r| r.links.contains(&link));
        let user = user.map_or(0, |route| route.from);
        self.kept.get(usize::from(user)).is_none_or(|&kept| kept)
    }
}
