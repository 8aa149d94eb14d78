//! The traffic that a token bucket could have carried between two times, given the traffic that had passed it before.
//!
//! A token bucket does not offer bits evenly: a full bucket lets a burst pass, an empty one only its fill rate. From a
//! time at which the bucket holds T bits it carries min(peak · L, T + rate · L) within L, and a sender that always has
//! data to send obtains exactly that. T follows from the traffic that passed until then, which is known in bins. For
//! each bin the time of the first packet is known, until which a full bucket stays full; therefore T is exact for a
//! sender that always has data to send once it has started, and for others the error is at most the fill of one bin.

use crate::RecordError;
use crate::cell::{Cell, CellElement, CellFraming};
use crate::link_passes::LinkPass;
use crate::log::Chunk;
use crate::read::{PacketReader, Record, read_bins};
use crate::schema::{BinRow, Direction};
use serde_json::Value;
use std::collections::BTreeMap;

/// Width of bins where single packets are known, unless the run has too many.
const BIN_NS: u64 = 1_000_000;
/// Maximum number of bins.
const MAX_BINS: u64 = 1_000_000;

/// A token bucket and its content over time, in bits.
#[derive(Clone, Debug)]
pub(crate) struct TokenBucket {
    rate_bps: f64,
    burst: f64,
    peak_bps: Option<f64>,
    bin_ns: u64,
    /// Content at the start of each bin; after the last, the bucket only fills.
    held: Vec<f64>,
}

impl TokenBucket {
    /// The bucket of a bottleneck whose rate is a token bucket throughout the run.
    pub(crate) fn read(cell: &Cell, element: &CellElement) -> Option<Self> {
        let rate = element.params.get("rate")?;
        let replaced = cell
            .changes_of(element.label())
            .any(|change| change.set.contains_key("rate"));
        if replaced || rate.get("kind")?.as_str()? != "tokenbucket" {
            return None;
        }
        let number = |name: &str| rate.get(name).and_then(Value::as_u64);
        Some(Self::full(
            number("rate")?,
            number("burst")?,
            number("peak"),
        ))
    }

    /// A full bucket of `burst` bytes, before any traffic.
    fn full(rate_bps: u64, burst: u64, peak_bps: Option<u64>) -> Self {
        TokenBucket {
            rate_bps: rate_bps as f64,
            burst: burst as f64 * 8.0,
            peak_bps: peak_bps.map(|bps| bps as f64),
            bin_ns: BIN_NS,
            held: Vec::new(),
        }
    }

    /// Records the traffic that passed in each bin.
    fn add_passed(&mut self, bin_ns: u64, bins: &[Passed]) {
        self.bin_ns = bin_ns;
        let fills = |ns: u64| self.rate_bps * ns as f64 / 1e9;
        let mut now = self.burst;
        self.held = vec![now];
        for passed in bins {
            let idle = passed.first_ns.min(bin_ns);
            let first = (now + fills(idle)).min(self.burst);
            now = (first + fills(bin_ns - idle) - passed.bits).min(self.burst);
            self.held.push(now);
        }
    }

    /// Its content at `time`, before the traffic that passes at that time.
    fn held_at(&self, time: u64) -> f64 {
        let Some(last) = self.held.len().checked_sub(1) else {
            return self.burst;
        };
        let bin = ((time / self.bin_ns) as usize).min(last);
        let since = time - bin as u64 * self.bin_ns;
        (self.held[bin] + self.rate_bps * since as f64 / 1e9).min(self.burst)
    }

    /// Bits that could have passed between two times, given the traffic that passed before.
    pub(crate) fn bits(&self, from: u64, to: u64) -> f64 {
        let seconds = to.saturating_sub(from) as f64 / 1e9;
        let saved = (self.held_at(from) + self.rate_bps * seconds).max(0.0);
        self.peak_bps
            .map_or(saved, |peak| saved.min(peak * seconds))
    }

    /// Bits of the same span for a sender that has had something to send since the start of the run.
    pub(crate) fn sustained_bits(&self, from: u64, to: u64) -> f64 {
        let until = |time: u64| {
            let seconds = time as f64 / 1e9;
            let all = self.burst + self.rate_bps * seconds;
            let line = self.peak_bps.map_or(f64::INFINITY, |peak| peak * seconds);
            if time == 0 { 0.0 } else { all.min(line) }
        };
        until(to.max(from)) - until(from)
    }
}

/// Traffic that passed a bucket in a bin.
#[derive(Clone, Copy, Debug)]
struct Passed {
    bits: f64,
    /// When the first bit passed, relative to the start of the bin; a time beyond the bin if none did.
    first_ns: u64,
}

/// Records in the buckets the traffic that passed them during the run.
///
/// # Errors
/// A damaged file.
pub(crate) fn fill_buckets(
    record: &Record,
    buckets: &mut BTreeMap<String, TokenBucket>,
) -> Result<(), RecordError> {
    if buckets.is_empty() {
        return Ok(());
    }
    let cell = &record.cell;
    let maximum = cell.duration_ns.div_ceil(MAX_BINS);
    let (bin_ns, single) = match (&record.packets, cell.bin_ns) {
        (None, Some(width)) => (width.max(maximum).max(1), false),
        _ => (BIN_NS.max(maximum), true),
    };
    let mut history = History {
        cell,
        bin_ns,
        elements: (buckets.keys())
            .filter_map(|name| cell.network.element(name))
            .collect(),
        passed: vec![Vec::new(); buckets.len()],
        ways: BTreeMap::new(),
    };
    if let (true, Some(packets)) = (single, &record.packets) {
        let mut reader = PacketReader::open(packets.clone())?;
        let mut chunk = Chunk::default();
        while reader.next(&mut chunk)? {
            history.packets(&chunk);
        }
    } else if let Some(bins) = &record.bins {
        for row in read_bins(bins.clone())? {
            history.bin(&row);
        }
    }
    for (bucket, bins) in buckets.values_mut().zip(&history.passed) {
        bucket.add_passed(bin_ns, bins);
    }
    Ok(())
}

/// Bits that passed each bucket, by bin.
struct History<'a> {
    cell: &'a Cell,
    bin_ns: u64,
    /// The buckets.
    elements: Vec<&'a CellElement>,
    /// By bucket and bin.
    passed: Vec<Vec<Passed>>,
    /// The buckets on the path of each flow.
    ways: BTreeMap<(u16, Direction), Vec<(usize, LinkPass)>>,
}

impl History<'_> {
    fn packets(&mut self, chunk: &Chunk) {
        for i in 0..chunk.len() {
            let way = (chunk.flow[i], chunk.direction[i]);
            let size = u64::from(chunk.size_bytes[i]);
            let bin_ns = self.bin_ns;
            self.each_bucket(way, |pass, framing, bins| {
                let outcome = pass.outcome(chunk, i);
                if let Some(time) = outcome.and_then(|outcome| outcome.passed_ns) {
                    add(bins, bin_ns, time, framing.wire_bytes(size) as f64 * 8.0);
                }
            });
        }
    }

    /// Counts a bin of arrivals, which passed earlier by the delay behind the bucket, spread evenly from the first
    /// arrival.
    fn bin(&mut self, row: &BinRow) {
        let bin_ns = self.bin_ns;
        self.each_bucket((row.flow, row.direction), |pass, framing, bins| {
            let bits = framing.mean_wire_bytes(row.arrived_bytes, row.arrived_packets) * 8.0;
            let earlier = |time: u64| time.saturating_sub(pass.behind_ns);
            let first = earlier(row.first_arrival_ns.unwrap_or(row.bin_ns));
            let end = earlier(row.bin_ns.saturating_add(bin_ns)).max(first + 1);
            // The share that falls into the earlier of two bins.
            let edge = (first / bin_ns + 1) * bin_ns;
            let share = edge.min(end).saturating_sub(first) as f64 / (end - first) as f64;
            add(bins, bin_ns, first, bits * share);
            add(bins, bin_ns, edge, bits * (1.0 - share));
        });
    }

    fn each_bucket(
        &mut self,
        way: (u16, Direction),
        mut look: impl FnMut(&LinkPass, CellFraming, &mut Vec<Passed>),
    ) {
        let (cell, elements) = (self.cell, &self.elements);
        let passes = self.ways.entry(way).or_insert_with(|| {
            let pass = |(bucket, element): (usize, &&CellElement)| {
                Some((bucket, LinkPass::new(cell, way, element.label())?))
            };
            elements.iter().enumerate().filter_map(pass).collect()
        });
        for (bucket, pass) in passes {
            let framing = elements[*bucket].framing();
            look(pass, framing, &mut self.passed[*bucket]);
        }
    }
}

/// Counts bits that passed from `time`.
fn add(bins: &mut Vec<Passed>, bin_ns: u64, time: u64, bits: f64) {
    let bin = time / bin_ns;
    // Emulated packets may leave a little after the end; a contradictory record reserves no memory.
    if bin > 2 * MAX_BINS || bits <= 0.0 {
        return;
    }
    if bins.len() <= bin as usize {
        let none = Passed {
            bits: 0.0,
            first_ns: u64::MAX,
        };
        bins.resize(bin as usize + 1, none);
    }
    let passed = &mut bins[bin as usize];
    passed.bits += bits;
    passed.first_ns = passed.first_ns.min(time % bin_ns);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Bits that a fluid sender with data to send from `start` until `end` carries in each step of a microsecond, by
    /// the rule of RFC 2697 alone.
    fn saturate((rate, burst, peak): (u64, u64, Option<u64>), start: u64, steps: u64) -> Vec<f64> {
        let (mut tokens, step) = (burst as f64 * 8.0, 1e-6);
        let line = peak.map_or(f64::INFINITY, |bps| bps as f64 * step);
        (0..steps)
            .map(|now| {
                if now < start {
                    return 0.0;
                }
                tokens += rate as f64 * step;
                let sent = tokens.min(line);
                tokens -= sent;
                sent
            })
            .collect()
    }

    proptest! {
        #[test]
        fn a_saturating_sender_carries_the_capacity_of_any_span(
            rate in 1_000_000u64..1_000_000_000,
            burst in 2_000u64..500_000,
            faster in prop::option::of(2u64..50),
            start in 0u64..3_000,
            (from, length) in (0u64..9_000, 1u64..9_000),
            bin in 1u64..2_000,
        ) {
            let peak = faster.map(|times| rate * times);
            let steps = saturate((rate, burst, peak), start, 20_000);
            let mut bucket = TokenBucket::full(rate, burst, peak);
            let bins = steps.chunks(bin as usize).map(|part| Passed {
                bits: part.iter().sum(),
                first_ns: part.iter().take_while(|&&bits| bits <= 0.0).count() as u64 * 1_000,
            });
            bucket.add_passed(bin * 1_000, &bins.collect::<Vec<_>>());
            let bits = |from: u64, to: u64| steps[from as usize..to as usize].iter().sum::<f64>();
            // A span that begins with a bin, or before the first packet was sent.
            for from in [from / bin * bin, from.min(start)] {
                let to = from + length;
                let carried = bits(from, to);
                let capacity = bucket.bits(from * 1_000, to * 1_000);
                // Time before the sender began adds nothing, as the bucket was full.
                prop_assert!(carried <= capacity + 1.0, "{carried} of {capacity}");
                if from >= start {
                    let step = rate as f64 / 1e6;
                    prop_assert!(capacity - carried <= 1e-6 * capacity + step, "{carried} of {capacity}");
                }
            }
            // A sender that began with the run obtains the same in total over all bins.
            let all = saturate((rate, burst, peak), 0, 20_000);
            let parts: f64 = (0..20_000u64.div_ceil(bin))
                .map(|i| bucket.sustained_bits(i * bin * 1_000, ((i + 1) * bin).min(20_000) * 1_000))
                .sum();
            let all: f64 = all.iter().sum();
            prop_assert!((parts - all).abs() <= 1e-6 * all + rate as f64 / 1e6, "{parts} of {all}");
        }
    }

    #[test]
    fn what_was_saved_up_before_a_span_can_be_carried_in_it() {
        // 8 Mbit/s, 1 MB; 0.5 MB pass in the first second.
        let mut bucket = TokenBucket::full(8_000_000, 1_000_000, None);
        let all = [12e6, 8e6].map(|bits| Passed { bits, first_ns: 0 });
        bucket.add_passed(1_000_000_000, &all);
        assert!((bucket.bits(0, 1_000_000_000) - 16e6).abs() < 1.0);
        assert!((bucket.bits(1_000_000_000, 2_000_000_000) - 12e6).abs() < 1.0);
        assert!(
            (bucket.bits(5_000_000_000, 6_000_000_000) - 16e6).abs() < 1.0,
            "full again"
        );
    }
}
