//! Content of the logs of an imported run that its record cannot represent, so that an export can write them again:
//! clock offsets, opportunities of the emulated link before and after the packets, and negative delays.

use crate::link::{OneDirection, Opportunity};
use crate::packets::Packets;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// Opportunities of mahimahi are at whole milliseconds of its clock.
const TICK_NS: u64 = 1_000_000;

/// Kept in `run.json` as `pantheon.log`. Times count from time zero of the record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Origin {
    /// Time zero of the record, since 1970.
    pub(crate) zero_ns: i64,
    /// Offset added to all times of the receiving host.
    pub(crate) receiver_shift_ns: i64,
    pub(crate) data: WayOrigin,
    /// Absent if there was no log of the acknowledgements.
    pub(crate) ack: Option<WayOrigin>,
    /// Row, arrival and delay of each packet for which the record does not contain the last two.
    pub(crate) moved: Vec<(u64, i64, i64)>,
}

/// One log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct WayOrigin {
    /// Since 1970.
    pub(crate) base_ns: i64,
    /// Absent on real paths.
    pub(crate) offered: Option<OfferedCapacity>,
}

/// Capacity of the emulated link outside the bins of the record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct OfferedCapacity {
    first_ns: i64,
    last_ns: i64,
    /// Bytes before time zero of the record.
    before_bytes: u64,
    /// Bytes after its end.
    after_bytes: u64,
    /// Size of one opportunity.
    size_bytes: u32,
}

impl Origin {
    pub(crate) fn new(packets: &Packets, data: &OneDirection, ack: Option<&OneDirection>) -> Self {
        let way = |link: &OneDirection| WayOrigin {
            base_ns: link.base_ns,
            offered: OfferedCapacity::new(packets, link),
        };
        Origin {
            zero_ns: packets.zero_ns,
            receiver_shift_ns: packets.shifts.receiver_ns,
            data: way(data),
            ack: ack.map(way),
            moved: packets.moved.clone(),
        }
    }

    /// The origin of a record, if it was imported.
    pub(crate) fn read(kept: &Map<String, Value>) -> Result<Option<Self>, String> {
        let Some(log) = kept.get("pantheon").and_then(|kept| kept.get("log")) else {
            return Ok(None);
        };
        let origin = Origin::deserialize(log).map_err(|error| format!("pantheon.log: {error}"))?;
        Ok(Some(origin))
    }

    /// Arrival and delay by row, from 0.
    pub(crate) fn moved(&self) -> BTreeMap<u64, (i64, i64)> {
        let moved = self.moved.iter();
        moved.map(|&(row, at, delay)| (row, (at, delay))).collect()
    }
}

impl OfferedCapacity {
    fn new(packets: &Packets, link: &OneDirection) -> Option<Self> {
        let since =
            |opportunity: &Opportunity| link.base_ns + opportunity.time_ns - packets.zero_ns;
        let times = || link.opportunities.iter().map(since);
        let end = i64::try_from(packets.duration_ns).unwrap_or(i64::MAX);
        let bytes = |counts: &dyn Fn(i64) -> bool| {
            let all = link.opportunities.iter();
            let some = all.filter(|opportunity| counts(since(opportunity)));
            some.map(|opportunity| u64::from(opportunity.bytes)).sum()
        };
        Some(OfferedCapacity {
            first_ns: times().min()?,
            last_ns: times().max()?,
            before_bytes: bytes(&|at| at < 0),
            after_bytes: bytes(&|at| at >= end),
            size_bytes: link.opportunities.first()?.bytes,
        })
    }

    /// Largest number of opportunities.
    pub(crate) fn count(&self, bins: &[(i64, u64)]) -> f64 {
        let parts = bins.iter().map(|bin| bin.1);
        let parts = parts.chain([self.before_bytes, self.after_bytes]);
        parts
            .map(|bytes| (bytes as f64 / f64::from(self.size_bytes.max(1))).ceil())
            .sum()
    }

    /// Reconstructs the opportunities from the ends and bytes of the record's bins. The bytes in each bin, before and
    /// after the record are preserved, as are the times of the first and the last opportunity; those in between are
    /// spread evenly over the ticks of the first.
    pub(crate) fn opportunities(&self, bins: &[(i64, u64)]) -> Vec<Opportunity> {
        let mut list = Vec::new();
        let mut from = self.first_ns.min(0);
        let end = bins.last().map_or(0, |bin| bin.0);
        let before = std::iter::once((0, self.before_bytes));
        let after = std::iter::once((self.last_ns.max(end).saturating_add(1), self.after_bytes));
        for (to, bytes) in before.chain(bins.iter().copied()).chain(after) {
            self.spread((from, to), bytes, &mut list);
            from = to;
        }
        if let Some(first) = list.first_mut() {
            first.time_ns = self.first_ns;
        }
        if let Some(last) = list.last_mut() {
            last.time_ns = self.last_ns;
        }
        list
    }

    /// Opportunities for `bytes` between two times, the second excluded.
    fn spread(&self, (from, to): (i64, i64), bytes: u64, list: &mut Vec<Opportunity>) {
        let size = u64::from(self.size_bytes.max(1));
        let count = bytes.div_ceil(size);
        // Ticks since the first opportunity.
        let before = |time: i64| time.abs_diff(self.first_ns).div_ceil(TICK_NS);
        let (low, high) = match from.max(self.first_ns) {
            from if from < to => (before(from), before(to)),
            _ => (0, 0),
        };
        for place in 0..count {
            let tick =
                low + (u128::from(high - low) * u128::from(place) / u128::from(count)) as u64;
            let at = i64::try_from(tick.saturating_mul(TICK_NS)).unwrap_or(i64::MAX);
            // A bin shorter than a tick may have none.
            let at = if high > low {
                self.first_ns.saturating_add(at)
            } else {
                from
            };
            list.push(Opportunity {
                time_ns: at.clamp(self.first_ns, self.last_ns.max(self.first_ns)),
                bytes: (bytes - place * size).min(size) as u32,
            });
        }
    }
}
