//! Attributes arrivals of bytes to their departures.
//!
//! Bytes that were sent once arrived with the first frame that contains them. Bytes that were sent more than once are
//! distinguished by IP identification and time stamps, or else by the delay of their neighbours.

use super::stream::Frame;

/// Beyond this number of pairs of one byte's departures and arrivals, they are matched in order.
const MAX_CHOICES: usize = 1 << 16;

/// Maximum number of frames considered for a byte.
const MAX_HOLDERS: usize = 1 << 12;

/// Finds the frames that contain a byte.
pub(super) struct Index<'a> {
    frames: &'a [Frame],
    /// Indices in the order of their first bytes, with the largest end up to each.
    order: Vec<(i64, i64, u32)>,
}

impl<'a> Index<'a> {
    pub(super) fn new(frames: &'a [Frame]) -> Self {
        let mut order: Vec<(i64, i64, u32)> = (0_u32..)
            .zip(frames)
            .map(|(place, frame)| (frame.begin, frame.end, place))
            .collect();
        order.sort_unstable();
        let mut largest = i64::MIN;
        for entry in &mut order {
            largest = largest.max(entry.1);
            entry.1 = largest;
        }
        Index { frames, order }
    }

    /// The indices of the frames that contain `byte`, in order of time.
    pub(super) fn holders(&self, byte: i64, into: &mut Vec<u32>) {
        into.clear();
        let behind = self.order.partition_point(|entry| entry.0 <= byte);
        for entry in self.order[..behind].iter().rev().take(MAX_HOLDERS) {
            if entry.1 <= byte {
                break;
            }
            if self.frames[entry.2 as usize].end > byte {
                into.push(entry.2);
            }
        }
        into.sort_unstable();
    }
}

/// The arrival time of each packet that was sent.
pub(super) fn attribute(sent: &Index<'_>, came: &Index<'_>) -> Vec<Option<i64>> {
    let mut arrived: Vec<Option<i64>> = vec![None; sent.frames.len()];
    let (mut out, mut into) = (Vec::new(), Vec::new());
    let mut repeated = Vec::new();
    // Certain delays, in order of time.
    let mut clear: Vec<(i64, i64)> = Vec::new();
    for (place, packet) in (0_u32..).zip(sent.frames) {
        sent.holders(packet.end - 1, &mut out);
        if out.len() > 1 {
            repeated.push(place);
            continue;
        }
        came.holders(packet.end - 1, &mut into);
        let arrival = into
            .iter()
            .map(|&it| &came.frames[it as usize])
            .find(|it| may_be(packet, it));
        if let Some(arrival) = arrival {
            arrived[place as usize] = Some(arrival.time_ns);
            clear.push((packet.time_ns, arrival.time_ns - packet.time_ns));
        }
    }
    let minimum = clear.iter().map(|it| it.1).min().unwrap_or(i64::MIN);
    let usual = |time: i64| {
        let behind = clear.partition_point(|it| it.0 <= time);
        clear.get(behind.saturating_sub(1)).map(|it| it.1)
    };
    let mut done = vec![false; sent.frames.len()];
    for place in repeated {
        if done[place as usize] {
            continue;
        }
        let end = sent.frames[place as usize].end;
        sent.holders(end - 1, &mut out);
        came.holders(end - 1, &mut into);
        let departures: Vec<&Frame> = out.iter().map(|&it| &sent.frames[it as usize]).collect();
        let arrivals: Vec<&Frame> = into.iter().map(|&it| &came.frames[it as usize]).collect();
        let chosen = choose(&departures, &arrivals, minimum, usual);
        for (&packet, chosen) in out.iter().zip(chosen) {
            // Packets with other bounds have other bytes, and are considered separately.
            if sent.frames[packet as usize].end == end {
                done[packet as usize] = true;
                arrived[packet as usize] = chosen.map(|chosen| arrivals[chosen].time_ns);
            }
        }
    }
    arrived
}

/// False if time stamps show that these are not the same packet.
fn may_be(sent: &Frame, came: &Frame) -> bool {
    sent.stamp == came.stamp || sent.stamp == 0 || came.stamp == 0
}

/// Chooses the arrival for each departure of a byte; both are in order of time.
fn choose(
    sent: &[&Frame],
    came: &[&Frame],
    minimum: i64,
    usual: impl Fn(i64) -> Option<i64>,
) -> Vec<Option<usize>> {
    let mut chosen = vec![None; sent.len()];
    if sent.len() * came.len() > MAX_CHOICES {
        for (place, arrival) in chosen.iter_mut().take(came.len()).enumerate() {
            *arrival = Some(place);
        }
        return chosen;
    }
    let mut left: Vec<usize> = (0..came.len()).collect();
    let same_id = |sent: &Frame, came: &Frame| {
        sent.ip_id != 0
            && sent.ip_id == came.ip_id
            && sent.begin == came.begin
            && may_be(sent, came)
    };
    let same_stamp = |sent: &Frame, came: &Frame| sent.stamp != 0 && sent.stamp == came.stamp;
    for rule in [&same_id as &dyn Fn(&Frame, &Frame) -> bool, &same_stamp] {
        left.retain(|&arrival| {
            let mut fits =
                (0..sent.len()).filter(|&it| chosen[it].is_none() && rule(sent[it], came[arrival]));
            match (fits.next(), fits.next()) {
                (Some(only), None) => {
                    chosen[only] = Some(arrival);
                    false
                }
                _ => true,
            }
        });
    }
    for arrival in left {
        let delay = |it: usize| came[arrival].time_ns - sent[it].time_ns;
        let free = (0..sent.len()).filter(|&it| {
            chosen[it].is_none() && may_be(sent[it], came[arrival]) && delay(it) >= minimum
        });
        let nearest = free.min_by_key(|&it| {
            let usual = usual(sent[it].time_ns).unwrap_or(0);
            (delay(it).saturating_sub(usual)).unsigned_abs()
        });
        if let Some(nearest) = nearest {
            chosen[nearest] = Some(arrival);
        }
    }
    chosen
}
