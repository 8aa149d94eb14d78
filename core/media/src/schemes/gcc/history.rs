//! Sent packets whose fate is unknown.

use narrows_units::Time;
use std::collections::VecDeque;

/// Maximum number of remembered packets: more than four seconds at 10 Mbit/s.
const MAX_PACKETS: usize = 4096;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GccPacketFate {
    Unknown,
    /// Reported as not arrived.
    Missing,
    Arrived,
    /// The report that covered it was lost.
    Untold,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct GccSentPacket {
    pub(super) at: Time,
    /// Its size with RTP's header.
    pub(super) size: u32,
    /// Its probe, or 0.
    pub(super) cluster: u32,
    pub(super) fate: GccPacketFate,
}

#[derive(Clone, Debug, Default)]
pub(super) struct GccHistory {
    packets: VecDeque<GccSentPacket>,
    first: u64,
    /// All packets below have been reported.
    told: u64,
    in_flight: u64,
}

impl GccHistory {
    /// The number of the next packet.
    pub(super) fn next(&self) -> u64 {
        self.first + self.packets.len() as u64
    }

    /// RTP bytes in flight.
    pub(super) fn in_flight(&self) -> u64 {
        self.in_flight
    }

    pub(super) fn push(&mut self, at: Time, size: u32, cluster: u32) {
        if self.packets.len() == MAX_PACKETS {
            self.settle(self.first, GccPacketFate::Untold);
            self.packets.pop_front();
            self.first += 1;
        }
        self.in_flight += u64::from(size);
        self.packets.push_back(GccSentPacket {
            at,
            size,
            cluster,
            fate: GccPacketFate::Unknown,
        });
    }

    fn get(&mut self, number: u64) -> Option<&mut GccSentPacket> {
        let index = number.checked_sub(self.first)?;
        self.packets.get_mut(usize::try_from(index).ok()?)
    }

    /// Sets the fate of packet `number`; returns the packet and its previous fate, if that is new.
    pub(super) fn settle(&mut self, number: u64, fate: GccPacketFate) -> Option<(GccSentPacket, GccPacketFate)> {
        let sent = self.get(number)?;
        let before = sent.fate;
        let news = match fate {
            GccPacketFate::Arrived => before != GccPacketFate::Arrived,
            _ => before == GccPacketFate::Unknown,
        };
        if !news {
            return None;
        }
        sent.fate = fate;
        let sent = *sent;
        if before == GccPacketFate::Unknown {
            self.in_flight -= u64::from(sent.size);
        }
        Some((sent, before))
    }

    /// A report begins at `base`: packets that it skips will not be reported any more.
    pub(super) fn passed(&mut self, base: u64, end: u64) {
        for number in self.told.max(self.first)..base.min(self.next()) {
            self.settle(number, GccPacketFate::Untold);
        }
        self.told = self.told.max(end.min(self.next()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fates_are_news_once_and_a_late_arrival_is_too() {
        let mut history = GccHistory::default();
        for _ in 0..10 {
            history.push(Time::ZERO, 120, 0);
        }
        assert_eq!(history.in_flight(), 1200);
        history.passed(0, 4);
        assert!(history.settle(0, GccPacketFate::Arrived).is_some());
        assert!(history.settle(0, GccPacketFate::Arrived).is_none());
        assert!(history.settle(1, GccPacketFate::Missing).is_some());
        assert!(history.settle(1, GccPacketFate::Missing).is_none());
        assert_eq!(history.settle(1, GccPacketFate::Arrived).map(|(_, before)| before), Some(GccPacketFate::Missing));
        assert_eq!(history.in_flight(), 960);
        // The report of 4 and 5 was lost.
        history.passed(6, 8);
        assert_eq!(history.in_flight(), 720);
        assert!(history.settle(10, GccPacketFate::Arrived).is_none(), "never sent");
        for _ in 0..MAX_PACKETS {
            history.push(Time::ZERO, 120, 0);
        }
        assert!(history.settle(3, GccPacketFate::Arrived).is_none(), "forgotten");
        assert_eq!(history.in_flight(), MAX_PACKETS as u64 * 120);
    }
}
