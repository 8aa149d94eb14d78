//! Completion times of transfers as histograms, kept in place of the transfers of long runs.

use crate::cell::Measure;
use crate::histogram::Histogram;
use crate::schema::{CompletionRow, TransferRow};
use std::collections::BTreeMap;

/// Transfers of one flow.
#[derive(Default)]
struct OfFlow {
    times: Histogram,
    sum_ns: u64,
    bytes: u64,
    open: u64,
    open_bytes: u64,
}

/// The histograms of the transfers that began in the measured part of the run, flow by flow.
pub fn binned(
    transfers: impl Iterator<Item = TransferRow>,
    measure: &Measure,
) -> Vec<CompletionRow> {
    let mut flows: BTreeMap<u16, OfFlow> = BTreeMap::new();
    for row in transfers.filter(|row| measure.counts(row.started_ns)) {
        let own = flows.entry(row.flow).or_default();
        if let Some(ended) = row.ended_ns {
            let time = ended.saturating_sub(row.started_ns);
            own.times.add(time);
            own.sum_ns = own.sum_ns.saturating_add(time);
            own.bytes += row.bytes;
        } else {
            own.open += 1;
            own.open_bytes += row.bytes;
        }
    }
    let mut rows = Vec::new();
    for (flow, own) in flows {
        let row = |low_ns, high_ns, transfers| CompletionRow {
            flow,
            low_ns,
            high_ns,
            transfers,
            sum_ns: 0,
            bytes: 0,
        };
        let first = rows.len();
        let buckets = own.times.buckets();
        rows.extend(buckets.map(|b| row(Some(b.low), Some(b.high), b.count)));
        // Sums are exact, but not known bucket by bucket: the first row has those of all.
        if let Some(row) = rows.get_mut(first) {
            (row.sum_ns, row.bytes) = (own.sum_ns, own.bytes);
        }
        if own.open > 0 {
            let bytes = own.open_bytes;
            rows.push(CompletionRow {
                bytes,
                ..row(None, None, own.open)
            });
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn open_transfers_are_counted_and_have_no_time() {
        let row = |flow, started_ns, ended_ns| TransferRow {
            flow,
            connection: 0,
            transfer: 0,
            bytes: 10,
            started_ns,
            ended_ns,
        };
        let rows = [
            row(2, 5, Some(105)),
            row(1, 0, Some(7)),
            row(1, 6, Some(106)),
            row(1, 7, None),
            row(1, 20, None),
        ];
        let measure = Measure {
            from_ns: Some(5),
            to_ns: Some(20),
            ..Measure::default()
        };
        let found = binned(rows.into_iter(), &measure);
        let short: Vec<_> = found
            .iter()
            .map(|r| (r.flow, r.low_ns, r.high_ns, r.transfers, r.sum_ns, r.bytes))
            .collect();
        assert_eq!(
            short,
            [
                (1, Some(100), Some(100), 1, 100, 10),
                (1, None, None, 1, 0, 10),
                (2, Some(100), Some(100), 1, 100, 10)
            ]
        );
    }
}
