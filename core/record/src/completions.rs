//! Completion times of transfers as histograms, which long runs keep in place of single transfers.

use crate::cell::Measure;
use crate::histogram::Histogram;
use crate::schema::{CompletionRow, TransferRow};
use std::collections::BTreeMap;

/// Transfers of one flow.
#[derive(Clone, Debug, Default)]
struct OfFlow {
    times: Histogram,
    sum_ns: u64,
    bytes: u64,
    open: u64,
    open_bytes: u64,
}

/// Histograms of the transfers that began in the measured part of a run, flow by flow.
#[derive(Clone, Debug, Default)]
pub struct Completions {
    flows: BTreeMap<u16, OfFlow>,
}

impl Completions {
    /// Counts a transfer, complete or not, if it began in the measured part.
    pub fn add(&mut self, row: &TransferRow, measure: &Measure) {
        if !measure.counts(row.started_ns) {
            return;
        }
        let own = self.flows.entry(row.flow).or_default();
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

    /// Adds the histograms of other flows.
    pub fn join(&mut self, others: Completions) {
        self.flows.extend(others.flows);
    }

    /// The rows of the file.
    pub fn rows(self) -> Vec<CompletionRow> {
        let mut rows = Vec::new();
        for (flow, own) in self.flows {
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
            // Sums are exact, but not known per bucket: the first row contains the totals.
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
        let (mut completions, mut others) = (Completions::default(), Completions::default());
        for row in rows {
            let own = if row.flow == 1 {
                &mut completions
            } else {
                &mut others
            };
            own.add(&row, &measure);
        }
        completions.join(others);
        let found = completions.rows();
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
