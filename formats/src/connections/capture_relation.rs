//! The relation of two captures: whether they show the same connection, and where they were taken.

use super::capture_side::{Side, find_side};
use super::pairs::{Matched, match_ends};
use super::{Connection, TCP, View};

/// Share of the packets of the smaller capture that must be in the other one.
const SAME: f64 = 0.3;
/// Captures are from one place if packets travel from one to the other and back within one part in this many of the
/// round-trip time.
const SAME_PLACE: i64 = 20;
/// Clocks drift: the sum of the minimum delays of both directions may be negative by this much, plus a share of the
/// time.
const MAX_DRIFT_NS: i64 = 1_000_000;
const MAX_DRIFT: i64 = 5_000;

/// How two captures of connections are related.
#[derive(Clone, Debug)]
pub enum Relation {
    /// They show different connections.
    Unrelated,
    /// They show one connection, but its packets cannot be matched.
    Unmatched,
    /// They show one connection from one place.
    SamePlace,
    /// They show one connection at different places: the index of the capture nearer to the sender of the data (0 or
    /// 1), and its packets.
    Ends(usize, Box<Matched>),
}

/// Compares two connections of two captures.
pub fn compare_captures(first: (&View, &Connection), second: (&View, &Connection)) -> Relation {
    let (one, other) = (first.1, second.1);
    if one.turned(other).is_none() {
        return Relation::Unrelated;
    }
    let at_once = one.first_ns <= other.last_ns && other.first_ns <= one.last_ns;
    let unmatched = if at_once {
        Relation::Unmatched
    } else {
        Relation::Unrelated
    };
    let matched = match_ends(first, second);
    let fewer = matched.near_packets.min(matched.far_packets);
    if fewer == 0 || (matched.matched_packets as f64) < SAME * fewer as f64 {
        return unmatched;
    }
    let span = one.last_ns.max(other.last_ns) - one.first_ns.min(other.first_ns);
    let tolerance = MAX_DRIFT_NS + (one.last_ns - one.first_ns).min(span) / MAX_DRIFT;
    let there: Vec<i64> = matched.data.delays().collect();
    let back: Vec<i64> = matched.back.delays().collect();
    let (Some(there), Some(back)) = (Delays::new(there.clone()), Delays::new(back)) else {
        return one_way(first, second, &there, matched);
    };
    let (forth, reverse) = (
        there.minimum.saturating_add(back.minimum),
        -there.maximum.saturating_add(back.maximum),
    );
    let round = there.median.saturating_add(back.median);
    if forth.max(reverse) < -tolerance {
        // Packets would arrive before they were sent for any clocks: it is another run between the same ports.
        return Relation::Unrelated;
    }
    let near = usize::from(round < 0);
    let (view, connection) = if near == 0 { first } else { second };
    let (_, distances) = find_side(view, connection, connection.data_from());
    let whole = distances.receiver_ns.unwrap_or(i64::MAX);
    let no_distance = round == 0
        || round.saturating_abs().saturating_mul(SAME_PLACE) < whole
            && distances.receiver_ns.is_some();
    if no_distance {
        return Relation::SamePlace;
    }
    let matched = if near == 0 {
        matched
    } else {
        match_ends(second, first)
    };
    Relation::Ends(near, Box::new(matched))
}

/// Without packets of both directions, the nearer end is the one with the earlier times.
fn one_way(
    first: (&View, &Connection),
    second: (&View, &Connection),
    delays: &[i64],
    matched: Matched,
) -> Relation {
    let Some(delays) = Delays::new(delays.to_vec()) else {
        return Relation::Unmatched;
    };
    if delays.minimum == 0 && delays.maximum == 0 {
        return Relation::SamePlace;
    }
    let sides = [first, second].map(|(view, connection)| {
        (connection.protocol == TCP).then(|| find_side(view, connection, connection.data_from()).0)
    });
    let second_sends = match sides {
        [Some(Side::Receiver), Some(Side::Sender)] => true,
        [Some(Side::Sender), Some(Side::Receiver)] => false,
        _ => delays.median < 0,
    };
    if second_sends {
        Relation::Ends(1, Box::new(match_ends(second, first)))
    } else {
        Relation::Ends(0, Box::new(matched))
    }
}

/// Statistics of delays by two clocks; minimum and maximum exclude the outermost values, which may be of mismatched
/// packets.
struct Delays {
    minimum: i64,
    median: i64,
    maximum: i64,
}

/// One of this many delays may be wrong.
const OUTERMOST: usize = 20;

impl Delays {
    fn new(mut delays: Vec<i64>) -> Option<Self> {
        delays.sort_unstable();
        Some(Delays {
            minimum: *delays.get(delays.len() / OUTERMOST)?,
            median: delays[delays.len() / 2],
            maximum: delays[delays.len() - 1 - delays.len() / OUTERMOST],
        })
    }
}
