//! A record as Pantheon's tunnel would have logged it.
//!
//! Sizes stay those of the record's IP packets: without a tunnel its 36 bytes are not added. Copies that the network
//! made count as arrivals of their original, and packets that arrived damaged do not count, since the tunnel's UDP
//! would have discarded them.
//!
//! An imported run is exported as its original logs: by the clocks that logged it, with the logged delays and the
//! opportunities of its emulated link over its whole lifetime.

use crate::link::{Arrived, OneDirection, SentLine};
use crate::opportunities;
use crate::origin::Origin;
use crate::statistics::Statistics;
use narrows_record::log::{Chunk, NOT_ARRIVED};
use narrows_record::read::{PacketReader, Record};
use narrows_record::{Direction, Fate, RecordError};
use std::collections::BTreeMap;

const CORRUPTED: &str = "corrupted";

/// Both directions of a record, and Pantheon's numbers for them.
#[derive(Clone, Debug)]
pub struct Exported {
    /// From senders to receivers.
    pub data: OneDirection,
    /// The reverse direction; `None` for an imported run that had no log of it.
    pub ack: Option<OneDirection>,
    /// Statistics of the data; `None` if no packet arrived.
    pub statistics: Option<Statistics>,
}

/// Exports both directions of a record. Its time zero becomes `base_ns` (since 1970), the base of both; those of an
/// imported run have the bases of their logs.
///
/// # Errors
/// A damaged record, or one of bins.
pub fn export(record: &Record, base_ns: i64) -> Result<Exported, RecordError> {
    let refuse = |problem: &str| RecordError::data("packets.parquet", problem);
    let Some(bytes) = &record.packets else {
        return Err(refuse(
            "the record keeps bins in place of packets, and logs are made of packets; run it again \
             with 'record: packets'",
        ));
    };
    let cell = &record.cell;
    let origin = Origin::read(&record.run.other);
    let origin = origin.map_err(|problem| RecordError::data("run.json", &problem))?;
    let times = Times::new(origin.as_ref(), base_ns);
    // Direction of the data, and of the acknowledgements.
    let mut links = times.bases.map(|base_ns| OneDirection {
        base_ns,
        ..OneDirection::default()
    });
    let mut directions = vec![None; 1 << 16];
    for flow in &cell.flows {
        directions[usize::from(flow.flow)] = Some(flow.direction);
    }
    // For each row its packet, and when that was sent.
    let mut packets: Vec<(u32, i64)> = Vec::new();
    let mut reader = PacketReader::open(bytes.clone())?;
    let mut chunk = Chunk::default();
    while reader.next(&mut chunk)? {
        for row in 0..chunk.len() {
            let flow = chunk.flow[row];
            // Packets that belong to no flow were not in a tunnel.
            let Some(data) = directions[usize::from(flow)] else {
                packets.push((0, 0));
                continue;
            };
            let way = usize::from(data != chunk.direction[row]);
            let link = &mut links[way];
            let (index, sent_ns) = match chunk.copy_of[row] {
                0 => {
                    let time_ns = times.sent(way, chunk.sent_ns[row]);
                    link.sent.push(SentLine {
                        time_ns,
                        size: chunk.size_bytes[row],
                        flow,
                    });
                    (link.sent.len() as u32 - 1, time_ns)
                }
                original => {
                    let known = usize::try_from(original - 1).ok();
                    let known = known.and_then(|place| packets.get(place));
                    *known.ok_or_else(|| {
                        refuse("a copy precedes its original; run narrows check for details")
                    })?
                }
            };
            packets.push((index, sent_ns));
            let reason = chunk.reasons.get(usize::from(chunk.reason[row]));
            let damaged = reason.is_some_and(|reason| reason == CORRUPTED);
            if chunk.fate[row] != Fate::Delivered || chunk.arrived_ns[row] == NOT_ARRIVED || damaged
            {
                continue;
            }
            let place = packets.len() as u64 - 1;
            let (time_ns, delay_ns) = times.arrived(way, place, chunk.arrived_ns[row], sent_ns);
            link.arrived.push(Arrived {
                time_ns,
                delay_ns,
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
    let [mut data, ack] = links;
    let mut ack = Some(ack);
    if let Some(origin) = &origin {
        let [forward, backward] = times.zeros;
        data.opportunities =
            opportunities::again(record, &origin.data, Direction::Forward, forward)?;
        ack = ack.filter(|_| origin.ack.is_some());
        if let (Some(link), Some(way)) = (&mut ack, &origin.ack) {
            link.opportunities = opportunities::again(record, way, Direction::Backward, backward)?;
        }
    } else {
        data.opportunities = opportunities::generate(record, false)?;
        if let Some(link) = &mut ack {
            link.opportunities = opportunities::generate(record, true)?;
        }
    }
    let statistics = Statistics::compute(&data);
    Ok(Exported {
        data,
        ack,
        statistics,
    })
}

/// Converts times of a record into times of the logs of both directions.
struct Times {
    /// Since 1970.
    bases: [i64; 2],
    /// Time zero of the record, since the base of each direction.
    zeros: [i64; 2],
    /// Offset by which the clock of the receiving host was moved.
    shift_ns: i64,
    /// Arrival and delay by row, where the record does not contain them.
    moved: BTreeMap<u64, (i64, i64)>,
    /// True if times are rounded to microseconds, as in logs. Imported records keep the logged times.
    round: bool,
}

impl Times {
    fn new(origin: Option<&Origin>, base_ns: i64) -> Self {
        let Some(origin) = origin else {
            return Times {
                bases: [base_ns; 2],
                zeros: [0; 2],
                shift_ns: 0,
                moved: BTreeMap::new(),
                round: true,
            };
        };
        let data = origin.data.base_ns;
        let bases = [data, origin.ack.as_ref().map_or(data, |way| way.base_ns)];
        Times {
            bases,
            zeros: bases.map(|base| origin.zero_ns.saturating_sub(base)),
            shift_ns: origin.receiver_shift_ns,
            moved: origin.moved(),
            round: false,
        }
    }

    fn time(&self, way: usize, ns: u64) -> i64 {
        let ns = if self.round {
            ns.saturating_add(500) / 1000 * 1000
        } else {
            ns
        };
        let ns = i64::try_from(ns).unwrap_or(i64::MAX);
        ns.saturating_add(self.zeros[way])
    }

    fn sent(&self, way: usize, ns: u64) -> i64 {
        // Acknowledgements are sent by the receiving host.
        let shift = [0, self.shift_ns][way];
        self.time(way, ns).saturating_sub(shift)
    }

    /// Time and delay of an arrival. The delay is the difference of the logged times.
    fn arrived(&self, way: usize, row: u64, ns: u64, sent_ns: i64) -> (i64, i64) {
        if let Some(&(at, delay)) = self.moved.get(&row) {
            return (at.saturating_add(self.zeros[way]), delay);
        }
        let shift = [self.shift_ns, 0][way];
        let time = self.time(way, ns).saturating_sub(shift);
        (time, time.saturating_sub(sent_ns))
    }
}
