//! Grouping of packets, and the delay variation between consecutive groups. Times in ms.

/// Packets sent within this time of the first one form a group.
const LENGTH: f64 = 5.0;
/// Packets that arrive this close together and faster than they were sent are a burst of the path and form a group.
const BURST: f64 = 5.0;
const MAX_BURST_MS: f64 = 100.0;

#[derive(Clone, Copy, Debug)]
struct PacketGroup {
    first_sent: f64,
    last_sent: f64,
    first_arrived: f64,
    last_arrived: f64,
}

/// Distance of two groups.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Deltas {
    pub(super) sent: f64,
    pub(super) arrived: f64,
}

#[derive(Clone, Debug, Default)]
pub(super) struct PacketGroups {
    current: Option<PacketGroup>,
    previous: Option<PacketGroup>,
}

impl PacketGroups {
    /// A packet has arrived. Returns the distance between the two groups before it if it opens a new one.
    pub(super) fn push(&mut self, sent: f64, arrived: f64) -> Option<Deltas> {
        let new = PacketGroup {
            first_sent: sent,
            last_sent: sent,
            first_arrived: arrived,
            last_arrived: arrived,
        };
        let Some(group) = &mut self.current else {
            self.current = Some(new);
            return None;
        };
        if sent < group.first_sent {
            return None;
        }
        let apart = arrived - group.last_arrived;
        let burst = apart <= BURST
            && apart < sent - group.last_sent
            && arrived - group.first_arrived < MAX_BURST_MS;
        if sent - group.first_sent <= LENGTH || burst {
            group.last_sent = group.last_sent.max(sent);
            group.last_arrived = group.last_arrived.max(arrived);
            return None;
        }
        let done = *group;
        let before = self.previous.replace(done);
        self.current = Some(new);
        let before = before?;
        let deltas = Deltas {
            sent: done.last_sent - before.last_sent,
            arrived: done.last_arrived - before.last_arrived,
        };
        // Groups that arrive out of order are ignored.
        (deltas.arrived >= 0.0).then_some(deltas)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_sent_together_or_squeezed_by_the_path_are_one_group() {
        let mut groups = PacketGroups::default();
        // (sent, arrived): two at 0, two at 33, and one at 66 that opens the third group.
        for (sent, arrived) in [(0.0, 50.0), (4.0, 54.0), (33.0, 84.0), (37.0, 90.0)] {
            assert_eq!(groups.push(sent, arrived), None);
        }
        assert_eq!(groups.push(66.0, 120.0), Some(Deltas { sent: 33.0, arrived: 36.0 }));
        // Held up by the path until 160, then 1 ms apart: still the third group.
        let mut groups = PacketGroups::default();
        for (sent, arrived) in [(0.0, 50.0), (20.0, 160.0), (40.0, 161.0), (60.0, 162.0)] {
            groups.push(sent, arrived);
        }
        assert_eq!(groups.push(80.0, 180.0), Some(Deltas { sent: 60.0, arrived: 112.0 }));
    }
}
