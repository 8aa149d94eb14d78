//! The transfers of a flow.

use narrows_cell::Cell;
use narrows_record::completions::Completions;
use narrows_record::{KeptTransfers, Measure, TransferRow};
use narrows_units::Time;

/// Transfers in the order of their beginning. Where not each of them is kept, one that is complete is counted, and the
/// next takes its place, so that the users of a long run do not fill the memory.
pub(crate) struct Transfers {
    kept: KeptTransfers,
    measure: Measure,
    rows: Vec<TransferRow>,
    /// Places of those that are complete, where not each is kept.
    free: Vec<usize>,
    counted: Completions,
}

impl Transfers {
    pub(crate) fn new(cell: &Cell) -> Self {
        Transfers {
            kept: cell.transfers,
            measure: cell.measure.clone(),
            rows: Vec::new(),
            free: Vec::new(),
            counted: Completions::default(),
        }
    }

    /// A transfer begins; gives its place.
    pub(crate) fn begin(&mut self, row: TransferRow) -> usize {
        if let Some(place) = self.free.pop() {
            self.rows[place] = row;
            return place;
        }
        self.rows.push(row);
        self.rows.len() - 1
    }

    /// The transfer at `place` is complete.
    pub(crate) fn end(&mut self, place: usize, now: Time) {
        let row = &mut self.rows[place];
        row.ended_ns = Some(now.ns());
        if self.kept == KeptTransfers::All {
            return;
        }
        if self.kept == KeptTransfers::Bins {
            self.counted.add(row, &self.measure);
        }
        self.free.push(place);
    }

    /// Rows that are in memory.
    pub(crate) fn held(&self) -> usize {
        self.rows.len()
    }

    /// Takes what is known of them: each that is not in the histograms, and these.
    pub(crate) fn take(&mut self) -> (Vec<TransferRow>, Completions) {
        let mut rows = std::mem::take(&mut self.rows);
        if self.kept != KeptTransfers::All {
            rows.retain(|row| row.ended_ns.is_none());
        }
        self.free.clear();
        (rows, std::mem::take(&mut self.counted))
    }
}
