//! The transfers of a flow.

use narrows_cell::Cell;
use narrows_record::completions::Completions;
use narrows_record::{KeptTransfers, Measure, TransferRow};
use narrows_units::Time;

/// Transfers in the order of their beginning. If single transfers are not kept, a complete one is counted, and the next
/// reuses its slot, so that long runs do not fill the memory.
pub(crate) struct Transfers {
    kept: KeptTransfers,
    measure: Measure,
    rows: Vec<TransferRow>,
    /// Slots of complete transfers, if single transfers are not kept.
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

    /// Adds a transfer that begins; returns its index.
    pub(crate) fn begin(&mut self, row: TransferRow) -> usize {
        if let Some(place) = self.free.pop() {
            self.rows[place] = row;
            return place;
        }
        self.rows.push(row);
        self.rows.len() - 1
    }

    /// Completes the transfer with index `place`.
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

    /// Takes all transfers that are not in the histograms, and the histograms.
    pub(crate) fn take(&mut self) -> (Vec<TransferRow>, Completions) {
        let mut rows = std::mem::take(&mut self.rows);
        if self.kept != KeptTransfers::All {
            rows.retain(|row| row.ended_ns.is_none());
        }
        self.free.clear();
        (rows, std::mem::take(&mut self.counted))
    }
}
