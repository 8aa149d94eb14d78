//! Capacity of the shared bottleneck, as exports contain it.

use crate::link::Opportunity;
use crate::origin::WayOrigin;
use crate::packets::element;
use narrows_record::read::{Record, read_capacity};
use narrows_record::{Capacities, Direction, RecordError};

/// Bytes of one delivery opportunity in merged logs.
const OPPORTUNITY_BYTES: u32 = 1500;
/// Opportunities are at whole milliseconds.
const TICK_NS: u64 = 1_000_000;
/// Ticks of a day; for longer runs no opportunities are generated.
const MAX_TICKS: u64 = 86_400_000;
/// Maximum number of opportunities (10 Gbit/s for a minute); otherwise none are written.
const MAX_OPPORTUNITIES: f64 = 5e7;

/// The opportunities of an imported run, from the bins of its record and the data kept with them.
/// The record's time zero is `zero_ns` since the base of the log.
pub(crate) fn again(
    record: &Record,
    way: &WayOrigin,
    direction: Direction,
    zero_ns: i64,
) -> Result<Vec<Opportunity>, RecordError> {
    let (Some(offered), Some(bytes)) = (&way.offered, &record.capacity) else {
        return Ok(Vec::new());
    };
    let name = element(direction);
    let rows = read_capacity(bytes.clone())?;
    let own: Vec<_> = rows.iter().filter(|row| row.element == name).collect();
    let end = record.cell.duration_ns;
    let ends = own.iter().skip(1).map(|row| row.time_ns).chain([end]);
    let signed = |ns: u64| i64::try_from(ns).unwrap_or(i64::MAX);
    let bins: Vec<(i64, u64)> = ends
        .map(signed)
        .zip(own.iter().map(|row| row.bytes))
        .collect();
    if offered.count(&bins) > MAX_OPPORTUNITIES {
        return Ok(Vec::new());
    }
    let mut list = offered.opportunities(&bins);
    for opportunity in &mut list {
        opportunity.time_ns = opportunity.time_ns.saturating_add(zero_ns);
    }
    Ok(list)
}

/// Times at which the bottleneck that all flows share could have carried another full packet; none
/// if flows do not share a bottleneck, or if its rate over time is not known.
pub(crate) fn generate(record: &Record, back: bool) -> Result<Vec<Opportunity>, RecordError> {
    let cell = &record.cell;
    let capacities = Capacities::gather(record)?;
    let end = cell.duration_ns;
    let mut names = cell.flows.iter().map(|flow| {
        let direction = if back {
            flow.direction.reverse()
        } else {
            flow.direction
        };
        let way = capacities.narrowest(cell, (flow.flow, direction), (0, end));
        way.ok().map(|(element, _)| element.label())
    });
    let Some(Some(name)) = names.next() else {
        return Ok(Vec::new());
    };
    if !capacities.over_time(name) || names.any(|other| other != Some(name)) {
        return Ok(Vec::new());
    }
    let all = capacities
        .sustained_bps(name, 0, end)
        .unwrap_or(f64::INFINITY);
    let all = all * end as f64 / 8e9 / f64::from(OPPORTUNITY_BYTES);
    if all > MAX_OPPORTUNITIES || end / TICK_NS > MAX_TICKS {
        return Ok(Vec::new());
    }
    let mut list = Vec::new();
    let mut carried = 0.0;
    let mut given = 0_u64;
    for tick in 0..end.div_ceil(TICK_NS) {
        let (from, to) = (tick * TICK_NS, ((tick + 1) * TICK_NS).min(end));
        let Ok(bps) = capacities.sustained_bps(name, from, to) else {
            return Ok(Vec::new());
        };
        carried += bps * (to - from) as f64 / 8e9;
        // A sum of many rates must not miss the last opportunity by a rounding error.
        let due = ((carried + 1e-3) / f64::from(OPPORTUNITY_BYTES)) as u64;
        for _ in given..due {
            list.push(Opportunity {
                time_ns: i64::try_from(to).unwrap_or(i64::MAX),
                bytes: OPPORTUNITY_BYTES,
            });
        }
        given = due;
    }
    Ok(list)
}
