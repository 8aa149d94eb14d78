//! The logs of one end, written by a separate thread that runs only when the processor is otherwise idle.

use super::unfinished_files::unfinished;
use narrows_cell::{Context, RunError};
use narrows_sys::cpu::ThreadId;
use narrows_tunnel::log::{Columns, LogKind, TunnelLogRow};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

/// Initial number of blocks of each log: one to fill, the others to be written in the meantime.
const SPARE: usize = 4;

/// Names of the finished files.
pub(super) const SENT: &str = "sent.ntl";
pub(super) const ARRIVED: &str = "arrived.ntl";

pub(super) fn file_name(kind: LogKind) -> &'static str {
    match kind {
        LogKind::Sent => SENT,
        LogKind::Arrived => ARRIVED,
    }
}

struct LogBlocks {
    filling: Columns,
    spare: Vec<Columns>,
    rows: u64,
}

/// Both logs.
pub(super) struct Logs {
    folder: PathBuf,
    /// By [`LogKind`].
    blocks: [LogBlocks; 2],
    full: Sender<(LogKind, Columns)>,
    empty: Receiver<(LogKind, Columns)>,
    writer: ThreadId,
    thread: JoinHandle<io::Result<()>>,
}

impl Logs {
    /// Creates the files in `folder` and starts the thread.
    pub(super) fn start(folder: &Path) -> Result<Self, RunError> {
        let create = |kind| File::create(unfinished(folder, file_name(kind))).at(folder);
        let mut files = [create(LogKind::Sent)?, create(LogKind::Arrived)?];
        let (full, blocks) = channel::<(LogKind, Columns)>();
        let (back, empty) = channel();
        let (send_id, receive_id) = channel();
        let mut write = move || -> io::Result<()> {
            let mut bytes = Vec::new();
            for (kind, mut columns) in &blocks {
                bytes.clear();
                columns.drain_into(&mut bytes);
                files[kind as usize].write_all(&bytes)?;
                // It is not taken back at the end.
                let _ = back.send((kind, columns));
            }
            Ok(())
        };
        let thread = std::thread::Builder::new()
            .name("logs".to_owned())
            .spawn(move || {
                let id = ThreadId::current();
                // Fails only where scheduling is restricted.
                let _ = id.run_when_idle();
                let _ = send_id.send(id);
                write()
            })
            .map_err(|error| RunError::Internal(format!("could not start a thread: {error}")))?;
        let writer = receive_id
            .recv()
            .map_err(|_| RunError::Internal("the thread that writes logs has crashed".into()))?;
        let blocks = LogKind::BOTH.map(|kind| LogBlocks {
            filling: Columns::new(kind),
            spare: (0..SPARE).map(|_| Columns::new(kind)).collect(),
            rows: 0,
        });
        Ok(Logs {
            folder: folder.to_owned(),
            blocks,
            full,
            empty,
            writer,
            thread,
        })
    }

    /// Adds a row to one of the logs.
    #[inline]
    pub(super) fn add(&mut self, kind: LogKind, row: TunnelLogRow) {
        let log = &mut self.blocks[kind as usize];
        log.filling.push(row);
        log.rows += 1;
        if log.filling.is_full() {
            self.hand_over(kind);
        }
    }

    fn hand_over(&mut self, kind: LogKind) {
        let log = &mut self.blocks[kind as usize];
        // A writer that falls behind costs memory and never a packet.
        let next = log.spare.pop().unwrap_or_else(|| Columns::new(kind));
        let block = std::mem::replace(&mut log.filling, next);
        // A failed writer has closed the channel; the tunnel is about to be closed for that reason.
        let _ = self.full.send((kind, block));
    }

    /// Writes all rows so far, as partial blocks. The logs of a killed process can be read up to the last block, so
    /// call it about once a second.
    pub(super) fn flush(&mut self) {
        for kind in LogKind::BOTH {
            if !self.blocks[kind as usize].filling.is_empty() {
                self.hand_over(kind);
            }
        }
    }

    /// Takes back blocks that have been written. Call it now and then.
    pub(super) fn recycle(&mut self) {
        while let Ok((kind, columns)) = self.empty.try_recv() {
            self.blocks[kind as usize].spare.push(columns);
        }
    }

    /// True if the thread has failed, so that continuing is useless.
    pub(super) fn has_failed(&self) -> bool {
        self.thread.is_finished()
    }

    /// Writes the remaining rows and renames the files; returns the numbers of rows of both.
    pub(super) fn finish(mut self) -> Result<(u64, u64), RunError> {
        // Now the tunnel waits for it.
        let _ = self.writer.run_normally();
        // A failure is reported by the thread itself.
        self.flush();
        drop(self.full);
        let folder = self.folder;
        match self.thread.join() {
            Ok(result) => result.at(&folder)?,
            Err(_) => {
                return Err(RunError::Internal(
                    "the thread that writes logs has crashed".into(),
                ));
            }
        }
        for kind in LogKind::BOTH {
            let name = file_name(kind);
            fs::rename(unfinished(&folder, name), folder.join(name)).at(&folder)?;
        }
        let [sent, arrived] = self.blocks.map(|log| log.rows);
        Ok((sent, arrived))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_tunnel::log::{Content, decode};
    use narrows_units::Time;

    fn row(id: u64) -> TunnelLogRow {
        TunnelLogRow {
            id,
            sent: Time::from_ns(id * 1000),
            arrived: Time::from_ns(id * 1000),
            size: 100,
            content: Content::Packet,
            tos: 0,
            flow: 0,
        }
    }

    #[test]
    fn all_rows_are_in_the_files_in_order() {
        let folder = std::env::temp_dir().join(format!("narrows-logs-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let mut logs = Logs::start(&folder).unwrap();
        for id in 0..25_000 {
            logs.add(LogKind::Sent, row(id));
            if id % 2 == 0 {
                logs.add(LogKind::Arrived, row(id));
            }
            logs.recycle();
            if id % 7_000 == 0 {
                logs.flush();
            }
        }
        assert!(!logs.has_failed());
        assert_eq!(logs.finish().unwrap(), (25_000, 12_500));
        for (name, kind, step) in [(SENT, LogKind::Sent, 1), (ARRIVED, LogKind::Arrived, 2)] {
            let mut rows = Vec::new();
            decode(kind, &fs::read(folder.join(name)).unwrap(), &mut rows).unwrap();
            let ids: Vec<u64> = rows.iter().map(|row| row.id).collect();
            assert_eq!(ids, (0..25_000).step_by(step).collect::<Vec<_>>());
        }
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn what_is_flushed_is_written_although_the_block_is_not_full() {
        let folder = std::env::temp_dir().join(format!("narrows-flush-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let mut logs = Logs::start(&folder).unwrap();
        logs.add(LogKind::Sent, row(7));
        logs.flush();
        // The writer returns the block after writing it.
        while logs.blocks[0].spare.len() < SPARE {
            std::thread::yield_now();
            logs.recycle();
        }
        let bytes = fs::read(unfinished(&folder, SENT)).unwrap();
        let mut rows = Vec::new();
        decode(LogKind::Sent, &bytes, &mut rows).unwrap();
        assert_eq!(rows.len(), 1);
        logs.flush();
        assert_eq!(logs.finish().unwrap(), (1, 0));
        assert_eq!(
            fs::metadata(folder.join(SENT)).unwrap().len(),
            bytes.len() as u64
        );
        fs::remove_dir_all(&folder).unwrap();
    }
}
