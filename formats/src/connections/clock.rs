//! Puts the packets of one interface in order of time, and finds clocks that were set back.

use crate::pcapng::Packet;

/// Maximum disorder of packets, because several processors capture at once.
const MAX_DISORDER_NS: i64 = 10_000_000;
/// Minimum step of a clock (ntpd steps it above 128 ms, and otherwise changes its rate).
const MIN_STEP_NS: i64 = 100_000_000;
/// A file with more steps than this is not in the order of capture.
const MAX_STEPS: usize = 8;
/// Later times are limited to this, so that differences fit 64 bits.
const MAX_TIME_NS: i64 = 1 << 62;
/// Number of packets over which their spacing is measured.
const SPACING: usize = 64;

/// Problems with the clock of a capture.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Clock {
    /// Steps by which it was set back; later times were moved so that the spacing of packets is preserved.
    pub set_back_ns: Vec<i64>,
    /// True if the packets are not in the order of capture and were sorted by time.
    pub sorted: bool,
}

/// Sorts the packets, which are in the order of the file, by time.
pub(super) fn order(packets: &mut [Packet]) -> Clock {
    let steps = steps(packets);
    let clock = if steps.len() > MAX_STEPS {
        Clock {
            set_back_ns: Vec::new(),
            sorted: true,
        }
    } else {
        let mut shift = 0;
        let mut next = steps.iter().peekable();
        for (place, packet) in packets.iter_mut().enumerate() {
            if let Some(&(_, by)) = next.next_if(|step| step.0 == place) {
                shift = by.saturating_add(shift);
            }
            packet.time_ns = packet.time_ns.saturating_add(shift).min(MAX_TIME_NS);
        }
        Clock {
            set_back_ns: steps.into_iter().map(|step| step.1).collect(),
            sorted: false,
        }
    };
    if !packets.is_sorted_by_key(|packet| packet.time_ns) {
        packets.sort_by_key(|packet| packet.time_ns);
    }
    clock
}

/// The packets before which the clock was set back, and by how much.
fn steps(packets: &[Packet]) -> Vec<(usize, i64)> {
    let mut steps = Vec::new();
    let mut shift = 0;
    let mut latest = i64::MIN;
    // Index from which the times are those of the clock after the step.
    let mut since = 0;
    for (place, packet) in packets.iter().enumerate() {
        let time = packet.time_ns.saturating_add(shift);
        let late = latest.saturating_sub(time);
        let stays = || {
            let next = packets
                .get(place + 1)
                .map(|next| next.time_ns.saturating_add(shift));
            next.is_none_or(|next| latest.saturating_sub(next) > MAX_DISORDER_NS)
        };
        if place > 0 && (late > MIN_STEP_NS || (late > MAX_DISORDER_NS && stays())) {
            let from = since.max(place.saturating_sub(SPACING));
            let covered = packets[place - 1]
                .time_ns
                .saturating_sub(packets[from].time_ns);
            let spacing = covered.max(0) / (place - from).max(1) as i64;
            let by = late.saturating_add(spacing);
            steps.push((place, by));
            if steps.len() > MAX_STEPS {
                break;
            }
            shift = shift.saturating_add(by);
            since = place;
            latest = packet.time_ns.saturating_add(shift);
        } else {
            latest = latest.max(time);
        }
    }
    steps
}
