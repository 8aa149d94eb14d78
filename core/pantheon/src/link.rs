//! One direction of a run: packets sent, arrivals, and the packet of each arrival.

use std::collections::BTreeMap;

/// In [`Arrived::sent`]: no packet matches this arrival.
pub const NO_PACKET: u32 = u32::MAX;

/// Maximum difference between the sending time that an arrival implies and the logged one. Pantheon rounds to
/// microseconds when it merges the two logs of a tunnel (both times and the delay) and once more when it merges those
/// of all tunnels (both times), up to 2.5 us together, after sums with times since 1970 in double precision (steps of
/// 0.24 us).
pub(crate) const TOLERANCE_NS: i64 = 3_000;
/// Maximum number of packets considered for one arrival. Only artificial logs have more of one flow within the
/// tolerance; they must not cause quadratic cost.
const MAX_TRIES: usize = 64;

/// A packet entered the tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SentLine {
    /// Since the base of the link.
    pub time_ns: i64,
    /// Size of the outer IP packet in bytes.
    pub size: u32,
    /// Number of the flow, from 1.
    pub flow: u16,
}

/// A packet left the tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrived {
    /// Since the base of the link.
    pub time_ns: i64,
    /// One-way delay, negative where clocks disagree.
    pub delay_ns: i64,
    /// Size of the outer IP packet in bytes.
    pub size: u32,
    /// Number of the flow, from 1.
    pub flow: u16,
    /// Number of its line in the log.
    pub line: u32,
    /// Index of the packet among those sent, or [`NO_PACKET`]. Further arrivals of the same packet
    /// are copies of it.
    pub sent: u32,
}

/// A delivery opportunity of the emulated link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opportunity {
    /// Since the base of the link.
    pub time_ns: i64,
    /// Bytes of one opportunity.
    pub bytes: u32,
}

/// One direction of a run, in the order of its log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OneDirection {
    /// Since 1970.
    pub base_ns: i64,
    /// Packets sent.
    pub sent: Vec<SentLine>,
    /// Arrivals.
    pub arrived: Vec<Arrived>,
    /// Opportunities of the emulated link; empty on real paths.
    pub opportunities: Vec<Opportunity>,
}

impl OneDirection {
    /// True if it contains no events.
    pub fn is_empty(&self) -> bool {
        self.sent.is_empty() && self.arrived.is_empty()
    }

    /// Finds the packet of each arrival whose packet is not known: the one of its flow and size that was sent at its
    /// arrival less its delay. An arrival that matches no remaining packet is a copy of one that has arrived. Returns
    /// the indices of arrivals that match no packet at all.
    pub fn match_up(&mut self) -> Vec<usize> {
        let mut lanes: BTreeMap<u16, Lane> = BTreeMap::new();
        for (index, sent) in (0_u32..).zip(&self.sent) {
            lanes
                .entry(sent.flow)
                .or_default()
                .packets
                .push((sent.time_ns, index, sent.size));
        }
        for lane in lanes.values_mut() {
            lane.prepare();
        }
        let mut strangers = Vec::new();
        for (index, arrived) in self.arrived.iter_mut().enumerate() {
            if arrived.sent != NO_PACKET {
                continue;
            }
            let lane = lanes.get_mut(&arrived.flow);
            match lane.and_then(|lane| lane.find(arrived.time_ns - arrived.delay_ns, arrived.size))
            {
                Some(sent) => arrived.sent = sent,
                None => strangers.push(index),
            }
        }
        strangers
    }

    /// Sorts all events by time; the sort is stable.
    fn sort(&mut self) {
        if !self.sent.is_sorted_by_key(|sent| sent.time_ns) {
            let mut order: Vec<u32> = (0..self.sent.len() as u32).collect();
            order.sort_by_key(|&index| self.sent[index as usize].time_ns);
            let mut place = vec![0; order.len()];
            for (new, &old) in (0_u32..).zip(&order) {
                place[old as usize] = new;
            }
            self.sent = order.iter().map(|&old| self.sent[old as usize]).collect();
            for arrived in &mut self.arrived {
                if let Some(&new) = place.get(arrived.sent as usize) {
                    arrived.sent = new;
                }
            }
        }
        self.arrived.sort_by_key(|arrived| arrived.time_ns);
        self.opportunities
            .sort_by_key(|opportunity| opportunity.time_ns);
    }
}

/// Joins the logs of several tunnels of one direction: times count from the smallest base, and all events are in the
/// order of time.
pub fn join(parts: Vec<OneDirection>) -> OneDirection {
    let base_ns = parts.iter().map(|part| part.base_ns).min().unwrap_or(0);
    let mut all = OneDirection {
        base_ns,
        ..OneDirection::default()
    };
    for part in parts {
        let shift = part.base_ns - base_ns;
        let before = all.sent.len() as u32;
        all.sent.extend(part.sent.iter().map(|sent| SentLine {
            time_ns: sent.time_ns + shift,
            ..*sent
        }));
        all.arrived
            .extend(part.arrived.iter().map(|arrived| Arrived {
                time_ns: arrived.time_ns + shift,
                sent: match arrived.sent {
                    NO_PACKET => NO_PACKET,
                    sent => sent + before,
                },
                ..*arrived
            }));
        all.opportunities
            .extend(part.opportunities.iter().map(|opportunity| Opportunity {
                time_ns: opportunity.time_ns + shift,
                ..*opportunity
            }));
    }
    all.sort();
    all
}

/// The packets of one flow, with marks for those that have arrived.
#[derive(Default)]
struct Lane {
    /// Time, index among all packets, and size, in the order of time.
    packets: Vec<(i64, u32, u32)>,
    /// For each index, itself if its packet has not arrived, else a later index at which to continue the search.
    next: Vec<u32>,
}

impl Lane {
    fn prepare(&mut self) {
        self.packets.sort_by_key(|packet| packet.0);
        self.next = (0..=self.packets.len() as u32).collect();
    }

    /// The first index from `place` whose packet has not arrived; the number of packets if all have.
    fn free(&mut self, place: usize) -> usize {
        let mut place = place.min(self.packets.len());
        loop {
            let next = self.next[place] as usize;
            if next == place {
                return place;
            }
            // Path halving keeps later look-ups short.
            self.next[place] = self.next[next];
            place = next;
        }
    }

    /// Index of the packet of `size` bytes that was sent at about `goal`.
    fn find(&mut self, goal: i64, size: u32) -> Option<u32> {
        let low = self
            .packets
            .partition_point(|packet| packet.0 < goal - TOLERANCE_NS);
        let mut best: Option<(i64, usize)> = None;
        let mut place = self.free(low);
        for _ in 0..MAX_TRIES {
            let Some(&(time, _, bytes)) = self.packets.get(place) else {
                break;
            };
            if time > goal + TOLERANCE_NS {
                break;
            }
            let off = (time - goal).abs();
            if bytes == size && best.is_none_or(|(minimum, _)| off < minimum) {
                best = Some((off, place));
                if off == 0 {
                    break;
                }
            }
            place = self.free(place + 1);
        }
        if let Some((_, place)) = best {
            self.next[place] = place as u32 + 1;
            return Some(self.packets[place].1);
        }
        let near = self.packets[low..].iter().take(MAX_TRIES);
        let near = near.take_while(|packet| packet.0 <= goal + TOLERANCE_NS);
        let fits = near.filter(|packet| packet.2 == size);
        fits.min_by_key(|packet| (packet.0 - goal).abs())
            .map(|packet| packet.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(time_ns: i64, size: u32, flow: u16) -> SentLine {
        SentLine {
            time_ns,
            size,
            flow,
        }
    }

    fn arrived(time_ns: i64, delay_ns: i64, size: u32, flow: u16) -> Arrived {
        Arrived {
            time_ns,
            delay_ns,
            size,
            flow,
            line: 0,
            sent: NO_PACKET,
        }
    }

    fn matched(sent: Vec<SentLine>, arrived: Vec<Arrived>) -> (Vec<u32>, Vec<usize>) {
        let mut link = OneDirection {
            sent,
            arrived,
            ..OneDirection::default()
        };
        let strangers = link.match_up();
        (link.arrived.iter().map(|a| a.sent).collect(), strangers)
    }

    #[test]
    fn arrivals_find_their_packets_across_reordering_and_rounding() {
        let packets = vec![
            sent(0, 1500, 1),
            sent(0, 100, 1),
            sent(1_000, 1500, 2),
            sent(50_000, 1500, 1),
        ];
        let arrivals = vec![
            arrived(90_000, 41_000, 1500, 1),
            arrived(95_000, 95_000, 100, 1),
            arrived(96_000, 95_000, 1500, 2),
            arrived(99_000, 98_000, 1500, 1),
        ];
        assert_eq!(matched(packets, arrivals), (vec![3, 1, 2, 0], vec![]));
    }

    #[test]
    fn packets_of_the_same_instant_are_each_taken_once() {
        let packets = vec![sent(0, 1500, 1), sent(0, 1500, 1), sent(1_000, 1500, 1)];
        let arrivals = vec![
            arrived(10_000, 9_000, 1500, 1),
            arrived(10_000, 10_000, 1500, 1),
            arrived(10_000, 9_000, 1500, 1),
        ];
        assert_eq!(matched(packets, arrivals), (vec![2, 0, 1], vec![]));
    }

    #[test]
    fn further_arrivals_are_copies_and_others_are_strangers() {
        let packets = vec![sent(0, 1500, 1)];
        let arrivals = vec![
            arrived(10_000, 10_000, 1500, 1),
            arrived(15_000, 15_000, 1500, 1),
            arrived(15_000, 15_000, 1499, 1),
            arrived(15_000, 11_000, 1500, 1),
            arrived(15_000, 15_000, 1500, 3),
        ];
        assert_eq!(
            matched(packets, arrivals),
            (vec![0, 0, NO_PACKET, NO_PACKET, NO_PACKET], vec![2, 3, 4])
        );
    }

    #[test]
    fn a_negative_delay_finds_a_packet_that_is_sent_later() {
        let (found, strangers) = matched(
            vec![sent(20_000, 60, 1)],
            vec![arrived(10_000, -10_000, 60, 1)],
        );
        assert_eq!((found, strangers), (vec![0], vec![]));
    }

    #[test]
    fn joined_links_count_from_the_smallest_base() {
        let opportunity = |base_ns, flow| {
            let mut link = OneDirection {
                base_ns,
                sent: vec![sent(0, 60, flow), sent(30, 60, flow)],
                arrived: vec![arrived(40, 10, 60, flow)],
                ..OneDirection::default()
            };
            link.match_up();
            link.arrived[0].sent = 1;
            link
        };
        let all = join(vec![opportunity(1_010, 1), opportunity(1_000, 2)]);
        assert_eq!(all.base_ns, 1_000);
        let times: Vec<(i64, u16)> = all.sent.iter().map(|s| (s.time_ns, s.flow)).collect();
        assert_eq!(times, [(0, 2), (10, 1), (30, 2), (40, 1)]);
        let ends: Vec<(i64, u32)> = all.arrived.iter().map(|a| (a.time_ns, a.sent)).collect();
        assert_eq!(ends, [(40, 2), (50, 3)]);
    }
}
