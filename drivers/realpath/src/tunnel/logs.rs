//! The logs of one end, written by a thread of their own that runs when nothing else wants the
//! processor.

use super::report::unfinished;
use narrows_cell::RunError;
use narrows_sys::cpu::ThreadId;
use narrows_tunnel::log::{Columns, LogSide, TunnelLogRow};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

/// Blocks of each log that exist from the start: one to fill, the others to be written meanwhile.
const SPARE: usize = 4;

/// Names of the finished files.
pub(super) const SENT: &str = "sent.ntl";
pub(super) const ARRIVED: &str = "arrived.ntl";

pub(super) fn file_name(side: LogSide) -> &'static str {
    match side {
        LogSide::Sent => SENT,
        LogSide::Arrived => ARRIVED,
    }
}

struct OneLog {
    side: LogSide,
    filling: Columns,
    spare: Vec<Columns>,
    rows: u64,
}

/// Both logs.
pub(super) struct Logs {
    folder: PathBuf,
    sent: OneLog,
    arrived: OneLog,
    full: Sender<(LogSide, Columns)>,
    empty: Receiver<(LogSide, Columns)>,
    writer: ThreadId,
    thread: JoinHandle<io::Result<()>>,
}

impl Logs {
    /// Creates the files in `folder` and starts the thread.
    pub(super) fn start(folder: &Path) -> Result<Self, RunError> {
        let create = |side| File::create(unfinished(folder, file_name(side)));
        let files = create(LogSide::Sent).and_then(|sent| Ok([sent, create(LogSide::Arrived)?]));
        let mut files =
            files.map_err(|error| RunError::Io(format!("{}: {error}", folder.display())))?;
        let (full, blocks) = channel::<(LogSide, Columns)>();
        let (back, empty) = channel();
        let (tell, hear) = channel();
        let mut write = move || -> io::Result<()> {
            let mut bytes = Vec::new();
            for (side, mut columns) in &blocks {
                bytes.clear();
                columns.drain_into(&mut bytes);
                files[side as usize].write_all(&bytes)?;
                // Nobody takes it back at the end.
                let _ = back.send((side, columns));
            }
            Ok(())
        };
        let thread = std::thread::Builder::new()
            .name("logs".to_owned())
            .spawn(move || {
                let id = ThreadId::current();
                // Refused only where scheduling is locked down.
                let _ = id.run_when_idle();
                let _ = tell.send(id);
                write()
            })
            .map_err(|error| RunError::Internal(format!("could not start a thread: {error}")))?;
        let writer = hear
            .recv()
            .map_err(|_| RunError::Internal("the thread that writes logs has crashed".into()))?;
        let log = |side| OneLog {
            side,
            filling: Columns::new(side),
            spare: (0..SPARE).map(|_| Columns::new(side)).collect(),
            rows: 0,
        };
        Ok(Logs {
            folder: folder.to_owned(),
            sent: log(LogSide::Sent),
            arrived: log(LogSide::Arrived),
            full,
            empty,
            writer,
            thread,
        })
    }

    /// Notes what was sent.
    #[inline]
    pub(super) fn sent(&mut self, row: TunnelLogRow) {
        push(&mut self.sent, row, &self.full);
    }

    /// Notes what has arrived.
    #[inline]
    pub(super) fn arrived(&mut self, row: TunnelLogRow) {
        push(&mut self.arrived, row, &self.full);
    }

    /// Has everything written that was noted so far, as blocks that are not full. What a killed process leaves can be
    /// read up to its last block, so call it about once a second.
    pub(super) fn flush(&mut self) {
        for log in [&mut self.sent, &mut self.arrived] {
            if !log.filling.is_empty() {
                hand_over(log, &self.full);
            }
        }
    }

    /// Takes back blocks that have been written. Call it now and then.
    pub(super) fn recycle(&mut self) {
        while let Ok((side, columns)) = self.empty.try_recv() {
            match side {
                LogSide::Sent => self.sent.spare.push(columns),
                LogSide::Arrived => self.arrived.spare.push(columns),
            }
        }
    }

    /// Whether the thread has given up, so that going on is useless.
    pub(super) fn has_failed(&self) -> bool {
        self.thread.is_finished()
    }

    /// Writes what is left and gives the files their names; returns the rows of both.
    pub(super) fn finish(mut self) -> Result<(u64, u64), RunError> {
        // Now somebody waits for it.
        let _ = self.writer.run_normally();
        for log in [&mut self.sent, &mut self.arrived] {
            let rest = std::mem::replace(&mut log.filling, Columns::new(log.side));
            // A failure is told by the thread itself.
            let _ = self.full.send((log.side, rest));
        }
        drop(self.full);
        let folder = self.folder;
        let failed = |error: io::Error| RunError::Io(format!("{}: {error}", folder.display()));
        match self.thread.join() {
            Ok(result) => result.map_err(failed)?,
            Err(_) => {
                return Err(RunError::Internal(
                    "the thread that writes logs has crashed".into(),
                ));
            }
        }
        for side in [LogSide::Sent, LogSide::Arrived] {
            let name = file_name(side);
            fs::rename(unfinished(&folder, name), folder.join(name)).map_err(failed)?;
        }
        Ok((self.sent.rows, self.arrived.rows))
    }
}

#[inline]
fn push(log: &mut OneLog, row: TunnelLogRow, full: &Sender<(LogSide, Columns)>) {
    log.filling.push(row);
    log.rows += 1;
    if log.filling.is_full() {
        hand_over(log, full);
    }
}

fn hand_over(log: &mut OneLog, full: &Sender<(LogSide, Columns)>) {
    // A writer that falls behind costs memory and never a packet.
    let next = log.spare.pop().unwrap_or_else(|| Columns::new(log.side));
    let block = std::mem::replace(&mut log.filling, next);
    // A failed writer has hung up; the tunnel is about to be closed for that.
    let _ = full.send((log.side, block));
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
            logs.sent(row(id));
            if id % 2 == 0 {
                logs.arrived(row(id));
            }
            logs.recycle();
            if id % 7_000 == 0 {
                logs.flush();
            }
        }
        assert!(!logs.has_failed());
        assert_eq!(logs.finish().unwrap(), (25_000, 12_500));
        for (name, side, step) in [(SENT, LogSide::Sent, 1), (ARRIVED, LogSide::Arrived, 2)] {
            let mut rows = Vec::new();
            decode(side, &fs::read(folder.join(name)).unwrap(), &mut rows).unwrap();
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
        logs.sent(row(7));
        logs.flush();
        // The writer gives the block back when it is written.
        while logs.sent.spare.len() < SPARE {
            std::thread::yield_now();
            logs.recycle();
        }
        let bytes = fs::read(unfinished(&folder, SENT)).unwrap();
        let mut rows = Vec::new();
        decode(LogSide::Sent, &bytes, &mut rows).unwrap();
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
