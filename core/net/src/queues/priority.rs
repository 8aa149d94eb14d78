//! Strict priority by DSCP: a band is served only while all bands before it are empty.
//!
//! Source: RFC 2474 and RFC 4594 for the code points, RFC 8622 for LE. Default mapping: CS5 and
//! everything above (so also EF, VOICE-ADMIT, CS6 and CS7) to the first band, CS1 and LE to the last,
//! all others to the second (or the last, if there are fewer).

use crate::fifo::{QueueLimit, QUEUE_FULL};
use crate::{Backlog, Entry, Example, Fifo, Outcomes, Packet, Queue, QueueEffects};
use narrows_units::{Bytes, ParamError, Params, Time, params};

const MAX_BANDS: usize = 8;

/// Registry entry.
pub const ENTRY: Entry = Entry {
    name: "priority",
    summary: "Strict priority by DSCP: one drop-tail queue for each band, earlier bands first",
    source: "code points of RFC 4594 and RFC 8622",
    params: PriorityParams::PARAMS,
    shorthand: &["packets", "bytes"],
    example: Example::new(
        "{priority: {packets: 60 packets}}",
        "Flow 1 has the code point EF (46) and is served first; flow 2 waits and is dropped if its band is full.",
    )
    .picture(r#"{"load": [{"every_us": 6000, "spans_s": [[0, 3.2]], "ecn": "ECT(0)", "dscp": 46}, {"every_us":
               857, "spans_s": [[0.2, 1.2], [1.8, 2.8]]}]}"#),
};

/// Effects on packets.
pub const EFFECTS: QueueEffects = QueueEffects::ANY;

crate::registry::build!(dyn Queue<P>: |params, _| Priority {
    bands: std::array::from_fn(|_| Fifo::new()),
    set: PrioritySettings::new(params)?,
});

params! {
    /// Parameters.
    struct PriorityParams {
        /// Maximum number of bytes that may wait in each band; absent: no limit.
        bytes: Option<Bytes>(1.0..=1e15);
        /// Maximum number of packets that may wait in each band; absent: no limit.
        packets: Option<PacketCount>(1.0..=4e9);
        /// Number of bands.
        bands: Count(1.0..=MAX_BANDS as f64) = 3, "Linux tc-prio(8): 3";
        /// Exceptions from the default mapping: DSCP, band, DSCP, band ...; bands count from 0.
        #[trial("[46, 0, 8, 2]")]
        map: Option<Counts>(0.0..=63.0);
    }
}

#[derive(Clone, Copy, Debug)]
struct PrioritySettings {
    limit: QueueLimit,
    /// The band of each DSCP.
    map: [u8; 64],
}

const CS1: u64 = 8;
const LE: u64 = 1;
const CS5: u64 = 40;

impl PrioritySettings {
    fn new(params: &Params) -> Result<Self, ParamError> {
        let params = PriorityParams::read(params);
        let bytes = params.bytes.map_or(u64::MAX, Bytes::get);
        let limit = QueueLimit::from_counts(bytes, params.packets.unwrap_or(u64::MAX));
        let last = params.bands - 1;
        let mut map: [u8; 64] = std::array::from_fn(|dscp| match dscp as u64 {
            CS5.. => 0,
            CS1 | LE => last as u8,
            _ => last.min(1) as u8,
        });
        let exceptions = params.map.unwrap_or_default();
        if !exceptions.len().is_multiple_of(2) {
            return Err(ParamError::Conflict(
                "'map' must list pairs of a DSCP and a band, that is an even number of values".into(),
            ));
        }
        for pair in exceptions.chunks_exact(2) {
            let [dscp, band] = [pair[0], pair[1]];
            if band > last {
                return Err(ParamError::Conflict(format!(
                    "'map' assigns DSCP {dscp} to band {band}, but the last band is {last}"
                )));
            }
            // The range of the parameter keeps code points below 64.
            map[dscp as usize & 63] = band as u8;
        }
        Ok(PrioritySettings { limit, map })
    }
}

struct Priority<P> {
    bands: [Fifo<P>; MAX_BANDS],
    set: PrioritySettings,
}

impl<P: Packet> Queue<P> for Priority<P> {
    fn enqueue(&mut self, now: Time, packet: P, outcomes: &mut Outcomes<P>) {
        let band = self.set.map[usize::from(packet.dscp() & 63)];
        let band = &mut self.bands[usize::from(band)];
        if self.set.limit.admits(band.backlog(), packet.size()) {
            band.push(packet);
        } else {
            outcomes.drop(now, packet, QUEUE_FULL);
        }
    }

    fn dequeue(&mut self, _: Time, _: &mut Outcomes<P>) -> Option<P> {
        self.bands.iter_mut().find_map(Fifo::pop)
    }

    fn backlog(&self) -> Backlog {
        let mut sum = Backlog::default();
        for band in &self.bands {
            sum.bytes += band.backlog().bytes;
            sum.packets += band.backlog().packets;
        }
        sum
    }

    fn visit(&self, visit: &mut dyn FnMut(&P)) {
        self.bands.iter().for_each(|band| band.visit(visit));
    }

    fn change(&mut self, _: Time, params: &Params, _: &mut Outcomes<P>) -> Result<(), ParamError> {
        // Waiting packets stay in their band, even if no more packets are assigned to it.
        self.set = PrioritySettings::new(params)?;
        Ok(())
    }
}
