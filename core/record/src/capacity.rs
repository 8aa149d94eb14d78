//! Capacity of bottlenecks, from the cell where it specifies the rate, else from the record.

use crate::RecordError;
use crate::cell::{Cell, CellElement, CellFlow, RateLaw};
use crate::link_passes::LinkPass;
use crate::read::{Record, read_capacity};
use crate::schema::{CAPACITY_FILE, Direction};
use crate::token_bucket::{TokenBucket, fill_buckets};
use std::collections::BTreeMap;

/// The capacity of every bottleneck of a cell over time, and of other elements for which the record contains it (paths
/// in between about which nothing else is known).
#[derive(Clone, Debug, Default)]
pub struct Capacities {
    known: BTreeMap<String, CapacitySource>,
}

#[derive(Clone, Debug)]
enum CapacitySource {
    Law(RateLaw),
    Bucket(TokenBucket),
    /// Ends of bins with the bytes until then; the first entry is the start of the run.
    Bins(Vec<(u64, u64)>),
    /// Total bytes over a time.
    Total(u64, u64),
    Unknown(String),
}

impl Capacities {
    /// The capacities of a record.
    ///
    /// # Errors
    /// A damaged file.
    pub fn gather(record: &Record) -> Result<Self, RecordError> {
        let cell = &record.cell;
        let mut bins = read_bins(record)?;
        let mut known = BTreeMap::new();
        let mut buckets = BTreeMap::new();
        for (_, element) in cell.network.elements() {
            let name = element.label();
            if !element.is_bottleneck() && !bins.contains_key(name) {
                continue;
            }
            if let Some(bucket) = TokenBucket::read(cell, element) {
                buckets.insert(name.to_owned(), bucket);
                continue;
            }
            let counters = record.run.elements.iter().find(|c| c.name == name);
            let total = counters.and_then(|c| c.capacity_bytes);
            let source = match (cell.rate_law(element), bins.remove(name), total) {
                (Ok(law), ..) => CapacitySource::Law(law),
                (Err(_), Some(bins), _) => CapacitySource::Bins(bins),
                (Err(_), None, Some(bytes)) => {
                    CapacitySource::Total(bytes, cell.duration_ns.max(1))
                }
                (Err(why), None, None) => CapacitySource::Unknown(why),
            };
            known.insert(name.to_owned(), source);
        }
        fill_buckets(record, &mut buckets)?;
        let buckets = buckets.into_iter();
        known.extend(buckets.map(|(name, bucket)| (name, CapacitySource::Bucket(bucket))));
        Ok(Capacities { known })
    }

    /// Mean rate in bit/s on the wire that `element` offered between two times. A token bucket offers its content at
    /// the boundary in both of two adjacent spans; see [`Capacities::sustained_bps`].
    ///
    /// # Errors
    /// Why it is not known.
    pub fn mean_bps(&self, element: &str, from: u64, to: u64) -> Result<f64, String> {
        let span = to.saturating_sub(from).max(1) as f64;
        match self.known.get(element) {
            Some(CapacitySource::Law(law)) => Ok(match law.steady() {
                Some(bps) => bps as f64,
                None => law.bits(from, to) * 1e9 / span,
            }),
            Some(CapacitySource::Bucket(bucket)) => Ok(bucket.bits(from, to) * 1e9 / span),
            Some(CapacitySource::Bins(bins)) => {
                Ok((until(bins, to) - until(bins, from)) * 8e9 / span)
            }
            Some(&CapacitySource::Total(bytes, time)) => Ok(bytes as f64 * 8e9 / time as f64),
            Some(CapacitySource::Unknown(why)) => Err(why.clone()),
            None => Err(format!("{element} is not a bottleneck")),
        }
    }

    /// The same, for sums over many spans: for a token bucket, the rate that a sender with unlimited data achieves.
    ///
    /// # Errors
    /// Those of [`Capacities::mean_bps`].
    pub fn sustained_bps(&self, element: &str, from: u64, to: u64) -> Result<f64, String> {
        match self.known.get(element) {
            Some(CapacitySource::Bucket(bucket)) => {
                let span = to.saturating_sub(from).max(1) as f64;
                Ok(bucket.sustained_bits(from, to) * 1e9 / span)
            }
            _ => self.mean_bps(element, from, to),
        }
    }

    /// True if the rate of `element` over time is known, and not only its mean over the run.
    pub fn over_time(&self, element: &str) -> bool {
        matches!(
            self.known.get(element),
            Some(CapacitySource::Law(_) | CapacitySource::Bucket(_) | CapacitySource::Bins(_))
        )
    }

    /// Names of all bottlenecks.
    pub fn elements(&self) -> impl Iterator<Item = &str> {
        self.known.keys().map(String::as_str)
    }

    /// The bottleneck with the smallest capacity between two times on the path of flow `number` in `direction`, with
    /// that capacity in bit/s. Among several of equal capacity, the one through which most flows send their data, and
    /// the first of these.
    ///
    /// # Errors
    /// There is no bottleneck, or a capacity is not known.
    pub fn narrowest<'a>(
        &self,
        cell: &'a Cell,
        (number, direction): (u16, Direction),
        (from, to): (u64, u64),
    ) -> Result<(&'a CellElement, f64), String> {
        let sharing = |element: &CellElement| {
            let sends = |flow: &&CellFlow| {
                let mut way = cell.elements(flow.flow, flow.direction);
                way.any(|passed| passed.label() == element.label())
            };
            cell.flows.iter().filter(sends).count()
        };
        let mut minimum: Option<(&CellElement, f64)> = None;
        let passed = cell.elements(number, direction);
        for element in passed.filter(|element| self.known.contains_key(element.label())) {
            let name = element.label();
            // The times are arrival times, and packets that arrive at these times passed a bucket earlier.
            let behind_ns = match self.known.get(name) {
                Some(CapacitySource::Bucket(_)) => {
                    LinkPass::new(cell, (number, direction), name).map_or(0, |pass| pass.behind_ns)
                }
                _ => 0,
            };
            let earlier = |time: u64| time.saturating_sub(behind_ns);
            let bps = self.mean_bps(name, earlier(from), earlier(to))?;
            let narrower = minimum.is_none_or(|(known, least_bps)| {
                bps < least_bps || (bps <= least_bps && sharing(element) > sharing(known))
            });
            if narrower {
                minimum = Some((element, bps));
            }
        }
        minimum.ok_or_else(|| {
            if cell.is_real(number, direction) {
                "the capacity of a real path is not known".to_owned()
            } else if cell.network.dumbbell {
                format!("the {direction} path has no bottleneck")
            } else {
                format!("the path of flow {number} has no bottleneck")
            }
        })
    }
}

fn read_bins(record: &Record) -> Result<BTreeMap<String, Vec<(u64, u64)>>, RecordError> {
    let mut bins: BTreeMap<String, Vec<(u64, u64)>> = BTreeMap::new();
    let Some(bytes) = &record.capacity else {
        return Ok(bins);
    };
    let width = record.cell.bin_ns.unwrap_or(0).max(1);
    let end = record.cell.duration_ns;
    for row in read_capacity(bytes.clone())? {
        let known = bins.entry(row.element).or_insert_with(|| vec![(0, 0)]);
        let (start, sum) = known[known.len() - 1];
        if start != row.time_ns || start >= end {
            let problem = format!("a bin at {} ns does not follow {start} ns", row.time_ns);
            return Err(RecordError::data(CAPACITY_FILE, problem));
        }
        let next = start.saturating_add(width).min(end);
        known.push((next, sum.saturating_add(row.bytes)));
    }
    Ok(bins)
}

/// Bytes until `time`, evenly spread within a bin.
fn until(bins: &[(u64, u64)], time: u64) -> f64 {
    let after = bins.partition_point(|bin| bin.0 <= time).max(1);
    let (start, before) = bins[after - 1];
    let Some(&(end, sum)) = bins.get(after) else {
        return before as f64;
    };
    before as f64 + (sum - before) as f64 * (time - start) as f64 / (end - start) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_are_shared_out_evenly() {
        let bins = [(0, 0), (10, 100), (20, 100), (25, 200)];
        assert!((until(&bins, 5) - 50.0).abs() < 1e-9);
        assert!((until(&bins, 15) - 100.0).abs() < 1e-9);
        assert!((until(&bins, 99) - 200.0).abs() < 1e-9);
    }
}
