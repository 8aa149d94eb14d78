//! A record that is only measured: the rows of its files, which are never written.

use crate::Cell;
use crate::folder::judge_by_verifier;
use narrows_record::completions::Completions;
use narrows_record::{
    BinLog, CapacityRow, Chunk, Content, FrameRow, KeptTransfers, QueueRow, Record, RecordError,
    RunDocument, StateRow, TraceRow, TransferRow,
};
use std::sync::Arc;

/// The rows that [`crate::RecordFolder`] would write, collected in memory. The rows are the same, and therefore metrics
/// and findings.
#[derive(Debug, Default)]
pub struct RecordRows {
    /// Packets, of `record: packets`.
    pub packets: Option<Vec<Chunk>>,
    /// States of the senders.
    pub states: Vec<StateRow>,
    /// Values that schemes published in addition.
    pub traces: Vec<TraceRow>,
    /// Samples of the queues.
    pub queues: Vec<QueueRow>,
    /// Transfers of applications, regardless of what the cell asks to record.
    pub transfers: Vec<TransferRow>,
    /// Transfers that are in histograms already.
    pub counted: Completions,
    /// Frames of video.
    pub frames: Vec<FrameRow>,
    /// Capacity of servers for which the cell does not specify it.
    pub capacity: Vec<CapacityRow>,
}

impl RecordRows {
    /// The record of `cell`, verified and judged like one that is written; `bins` is the log of `record: bins`.
    ///
    /// # Errors
    /// A document that does not describe a run.
    pub fn complete(
        mut self,
        cell: &Cell,
        bins: Option<&BinLog>,
        run: RunDocument,
    ) -> Result<Record, RecordError> {
        let (mut transfers, mut completions) = (None, None);
        match cell.transfers {
            KeptTransfers::All => transfers = if_any(self.transfers),
            KeptTransfers::Bins => {
                for row in &self.transfers {
                    self.counted.add(row, &cell.measure);
                }
                completions = if_any(self.counted.rows());
            }
            KeptTransfers::None => {}
        }
        let mut record = Record {
            cell: narrows_record::Cell::parse(&run.cell)?,
            run,
            packets: self.packets.map(rows),
            bins: bins.map(|log| rows(log.bins().collect())),
            delays: bins.map(|log| rows(log.delays().collect())),
            states: Some(rows(self.states)),
            queues: Some(rows(self.queues)),
            traces: if_any(self.traces),
            transfers,
            completions,
            frames: if_any(self.frames),
            capacity: if_any(self.capacity),
        };
        let report = narrows_record::verify::verify(&record);
        judge_by_verifier(&mut record.run, &report);
        Ok(record)
    }
}

fn rows<R>(rows: Vec<R>) -> Content<R> {
    Content::Rows(Arc::new(rows))
}

/// `None` without rows, as a folder has no such file then.
fn if_any<R>(found: Vec<R>) -> Option<Content<R>> {
    (!found.is_empty()).then(|| rows(found))
}
