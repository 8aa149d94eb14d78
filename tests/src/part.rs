//! One flow of full packets from one time to another, packet by packet.

use narrows_record::Record;
use narrows_record::series::{self, DelayPoints};

/// Bits of a full packet.
pub const BITS: f64 = 12_000.0;

/// The delays of a flow's packets.
///
/// # Panics
/// When the record holds no packets.
pub fn delays(record: &Record, flow: u16) -> DelayPoints {
    let all = series::delay_points(record, usize::MAX).expect("a record that can be read");
    all.expect("packets")[&flow].clone()
}

/// Rate and queueing delays of a part of a flow's time.
#[derive(Clone, Copy, Debug)]
pub struct Part {
    /// Rate of arrival in Mbit/s of IP bytes.
    pub mbps: f64,
    /// Mean queueing delay in ms.
    pub mean_ms: f64,
    /// 95th percentile.
    pub p95_ms: f64,
    /// Smallest.
    pub least_ms: f64,
}

impl Part {
    /// The part of `flow` between two times in seconds, on a path of a rate in Mbit/s and an RTT in ms that is split
    /// evenly. Queueing delays exclude propagation and the packet's serialisation time.
    ///
    /// # Panics
    /// When the record holds no packets of that time.
    pub fn new(
        record: &Record,
        flow: u16,
        (mbps, rtt_ms): (f64, f64),
        (from_s, to_s): (f64, f64),
    ) -> Part {
        let points = delays(record, flow);
        let own = rtt_ms / 2.0 + BITS / mbps / 1e3;
        let inside = points.time_s.iter().zip(&points.delay_ms);
        let inside = inside.filter(|(time, _)| (from_s..to_s).contains(*time));
        let mut waits: Vec<f64> = inside.map(|(_, delay)| delay - own).collect();
        waits.sort_by(f64::total_cmp);
        let count = waits.len() as f64;
        Part {
            mbps: count * BITS / (to_s - from_s) / 1e6,
            mean_ms: waits.iter().sum::<f64>() / count,
            p95_ms: waits[(count * 0.95) as usize],
            least_ms: waits[0],
        }
    }
}
