//! A record as Pantheon's tunnel would have logged it.
//!
//! Sizes stay those of the record's IP packets: no tunnel was there to add its 36 bytes. Copies that
//! the network made are arrivals of their original, and packets that arrived damaged are none, since
//! the tunnel's UDP would have discarded them.

use crate::link::{Arrived, Link, Opportunity, Sent};
use crate::statistics::Statistics;
use narrows_record::log::{Chunk, NOT_ARRIVED};
use narrows_record::read::{PacketReader, Record};
use narrows_record::{Capacities, Fate, RecordError};

/// Bytes of one delivery opportunity, as merged logs have it.
const OPPORTUNITY_BYTES: u32 = 1500;
/// Opportunities come on whole milliseconds.
const TICK_NS: u64 = 1_000_000;
/// Ticks of a day, longer than which no run is.
const MOST_TICKS: u64 = 86_400_000;
/// More opportunities than this (as of 10 Gbit/s for a minute) are left out.
const MOST_OPPORTUNITIES: f64 = 5e7;
const CORRUPTED: &str = "corrupted";

/// Both directions of a record, and Pantheon's numbers for them.
#[derive(Clone, Debug)]
pub struct Exported {
    /// From senders to receivers.
    pub data: Link,
    /// The reverse.
    pub ack: Link,
    /// Numbers of the data; `None` if nothing arrived.
    pub statistics: Option<Statistics>,
}

/// The links of a record. Its time zero becomes `base_ns` (since 1970), the base of both.
///
/// # Errors
/// A damaged record, one of bins, or one that is too long.
pub fn export(record: &Record, base_ns: i64) -> Result<Exported, RecordError> {
    let refuse = |problem: &str| RecordError::data("packets.parquet", problem);
    let Some(bytes) = &record.packets else {
        return Err(refuse(
            "the record keeps bins in place of packets, and logs are made of packets; run it again \
             with 'record: packets'",
        ));
    };
    let cell = &record.cell;
    if cell.duration_ns / TICK_NS > MOST_TICKS {
        return Err(refuse("the run is longer than a day"));
    }
    // Of the data, and of the acknowledgements.
    let mut links = [(); 2].map(|()| Link {
        base_ns,
        ..Link::default()
    });
    let mut directions = vec![None; 1 << 16];
    for flow in &cell.flows {
        directions[usize::from(flow.flow)] = Some(flow.direction);
    }
    let mut sent_us: Vec<(u32, i64)> = Vec::new();
    let mut reader = PacketReader::open(bytes.clone())?;
    let mut chunk = Chunk::default();
    while reader.next(&mut chunk)? {
        for row in 0..chunk.len() {
            let flow = chunk.flow[row];
            // Packets of no flow were in no tunnel.
            let Some(data) = directions[usize::from(flow)] else {
                sent_us.push((0, 0));
                continue;
            };
            let link = &mut links[usize::from(data != chunk.direction[row])];
            let (index, sent_ns) = match chunk.copy_of[row] {
                0 => {
                    // Logs have microseconds, and delays are differences of what they have.
                    let time_ns = rounded(chunk.sent_ns[row]);
                    link.sent.push(Sent {
                        time_ns,
                        size: chunk.size_bytes[row],
                        flow,
                    });
                    (link.sent.len() as u32 - 1, time_ns)
                }
                original => {
                    let known = usize::try_from(original - 1).ok();
                    let known = known.and_then(|place| sent_us.get(place));
                    *known.ok_or_else(|| {
                        refuse("a copy comes before its original; narrows check tells more")
                    })?
                }
            };
            sent_us.push((index, sent_ns));
            let reason = chunk.reasons.get(usize::from(chunk.reason[row]));
            let damaged = reason.is_some_and(|reason| reason == CORRUPTED);
            if chunk.fate[row] != Fate::Delivered || chunk.arrived_ns[row] == NOT_ARRIVED || damaged
            {
                continue;
            }
            let time_ns = rounded(chunk.arrived_ns[row]);
            link.arrived.push(Arrived {
                time_ns,
                delay_ns: time_ns - sent_ns,
                size: chunk.size_bytes[row],
                flow,
                line: 0,
                sent: index,
            });
        }
    }
    for link in &mut links {
        link.arrived.sort_by_key(|arrived| arrived.time_ns);
    }
    let [mut data, mut ack] = links;
    data.opportunities = opportunities(record, false)?;
    ack.opportunities = opportunities(record, true)?;
    let statistics = Statistics::of(&data);
    Ok(Exported {
        data,
        ack,
        statistics,
    })
}

/// Nanoseconds to the nearest microsecond.
fn rounded(ns: u64) -> i64 {
    i64::try_from(ns.saturating_add(500) / 1000 * 1000).unwrap_or(i64::MAX)
}

/// When the bottleneck that all flows share could have carried another full packet. There are none
/// where flows do not share one, or where its rate over time is not known.
fn opportunities(record: &Record, back: bool) -> Result<Vec<Opportunity>, RecordError> {
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
    let all = capacities.mean_bps(name, 0, end).unwrap_or(f64::INFINITY);
    let all = all * end as f64 / 8e9 / f64::from(OPPORTUNITY_BYTES);
    if all > MOST_OPPORTUNITIES {
        return Ok(Vec::new());
    }
    let mut found = Vec::new();
    let mut carried = 0.0;
    let mut given = 0_u64;
    for tick in 0..end.div_ceil(TICK_NS) {
        let (from, to) = (tick * TICK_NS, ((tick + 1) * TICK_NS).min(end));
        let Ok(bps) = capacities.mean_bps(name, from, to) else {
            return Ok(Vec::new());
        };
        carried += bps * (to - from) as f64 / 8e9;
        // A sum of many rates must not miss the last opportunity by a rounding error.
        let due = ((carried + 1e-3) / f64::from(OPPORTUNITY_BYTES)) as u64;
        for _ in given..due {
            found.push(Opportunity {
                time_ns: i64::try_from(to).unwrap_or(i64::MAX),
                bytes: OPPORTUNITY_BYTES,
            });
        }
        given = due;
    }
    Ok(found)
}
