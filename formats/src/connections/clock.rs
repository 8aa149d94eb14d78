//! Puts the packets of one interface in order of time, and finds clocks that were set back.

use crate::pcapng::Packet;

/// Packets are written this much out of order at most, because several processors capture at once.
const MAX_DISORDER_NS: i64 = 10_000_000;
/// A clock is set by more than this (ntpd sets it from 128 ms on, and else changes its rate).
const MIN_STEP_NS: i64 = 100_000_000;
/// A file with more steps than this is not in the order of capture at all.
const MAX_STEPS: usize = 8;
/// Later times than this are cut, so that differences fit 64 bits.
const MAX_TIME_NS: i64 = 1 << 62;
/// The spacing of packets is measured over so many.
const SPACING: usize = 64;

/// What was wrong with the clock of a capture.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Clock {
    /// By how much it was set back, each time; later times were moved so that packets follow each other as before.
    pub set_back_ns: Vec<i64>,
    /// True if the packets are not in the order of capture and were sorted by time.
    pub sorted: bool,
}

/// Puts the packets, which are in the order of the file, in order of time.
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
    // Where the latest times began to be those of the clock as it is set now.
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
