//! Encodes packets during the run, on a thread that runs only when the processor is otherwise idle.

use super::merge::Merge;
use narrows_cell::RecordFolder;
use narrows_cell::RunError;
use narrows_record::{Chunk, Log, PacketLog, RecordError};
use narrows_sys::cpu::ThreadId;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

/// Initial number of chunks: those that wait to be encoded, and those that are filled in the meantime.
const SPARE_CHUNKS: usize = 4;

/// A thread that turns chunks into `packets.parquet`.
#[derive(Debug)]
pub struct Writer {
    full: Sender<(usize, Chunk)>,
    empty: Mutex<Receiver<Chunk>>,
    failed: Arc<AtomicBool>,
    id: ThreadId,
    thread: JoinHandle<Result<u64, RecordError>>,
}

impl Writer {
    /// Starts a thread that writes the packets of `folder`, from this number of logs.
    ///
    /// # Errors
    /// The file cannot be created.
    pub fn start(folder: &RecordFolder, logs: usize) -> Result<Self, RunError> {
        let mut file = folder.packets()?;
        let (full, chunks) = channel::<(usize, Chunk)>();
        let (back, empty) = channel::<Chunk>();
        let failed = Arc::new(AtomicBool::new(false));
        let (id_sender, id_receiver) = channel();
        let flag = failed.clone();
        let encode = move || -> Result<u64, RecordError> {
            // The receiver is closed when the emulator has finished.
            let give_back = |chunk: Chunk| drop(back.send(chunk));
            if logs == 1 {
                for (_, chunk) in &chunks {
                    file.write(&chunk)?;
                    give_back(chunk);
                }
            } else {
                let mut merge = Merge::new(logs);
                for (log, chunk) in &chunks {
                    merge.add(log, chunk, &give_back, &mut |merged| file.write(merged))?;
                }
                file.write(&merge.merged)?;
            }
            let rows = file.rows();
            file.finish()?;
            Ok(rows)
        };
        let thread = std::thread::Builder::new()
            .name("writer".to_owned())
            .spawn(move || {
                let id = ThreadId::current();
                // Fails only where scheduling is restricted; the run is then judged by its lateness.
                let _ = id.run_when_idle();
                let _ = id_sender.send(id);
                let result = encode();
                flag.store(result.is_err(), Ordering::Release);
                result
            })
            .map_err(|error| RunError::Internal(format!("could not start a thread: {error}")))?;
        let id = id_receiver
            .recv()
            .map_err(|_| RunError::Internal("the thread that writes packets has crashed".into()))?;
        Ok(Writer {
            full,
            empty: Mutex::new(empty),
            failed,
            id,
            thread,
        })
    }

    /// Provides a log with chunks whose memory has been touched already.
    pub fn prepare(log: &mut Log, elements: &[String]) {
        let Log::Packets(log) = log else { return };
        for _ in 0..SPARE_CHUNKS {
            let mut chunk = Chunk::with_room(elements.to_vec());
            touch(&mut chunk);
            log.recycle(chunk);
        }
    }

    /// Takes the full chunks of `log`, which has this number among those of the run, and returns empty ones to it.
    pub fn exchange(&self, number: usize, log: &mut PacketLog) {
        while let Some(chunk) = log.take() {
            // A failed writer has closed the channel; the run is about to be stopped for that reason.
            let _ = self.full.send((number, chunk));
        }
        if let Ok(empty) = self.empty.try_lock() {
            while let Ok(chunk) = empty.try_recv() {
                log.recycle(chunk);
            }
        }
    }

    /// Takes the remaining rows of a finished log.
    pub fn hand_over(&self, number: usize, log: &mut Log) {
        if let Log::Packets(log) = log {
            self.exchange(number, log);
        }
    }

    /// True if writing has failed, so that continuing is useless.
    pub fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Acquire)
    }

    /// Waits until everything is written; returns the number of rows.
    ///
    /// # Errors
    /// Errors of the disk or the encoder.
    pub fn finish(self, folder: &RecordFolder) -> Result<u64, RunError> {
        // Now the run waits for it.
        let _ = self.id.run_normally();
        drop(self.full);
        match self.thread.join() {
            Ok(Ok(rows)) => Ok(rows),
            Ok(Err(error)) => Err(folder.packets_error(error).into()),
            Err(_) => Err(RunError::Internal(
                "the thread that writes packets has crashed".into(),
            )),
        }
    }
}

/// Writes once to every page, so that the emulator never waits for a page fault.
fn touch(chunk: &mut Chunk) {
    fn fill<T: Clone>(column: &mut Vec<T>, value: T) {
        column.resize(column.capacity(), value);
    }
    fill(&mut chunk.flow, 1);
    fill(&mut chunk.direction, narrows_record::Direction::Backward);
    fill(&mut chunk.uid, 1);
    fill(&mut chunk.size_bytes, 1);
    fill(&mut chunk.sent_ns, 1);
    fill(&mut chunk.arrived_ns, 1);
    fill(&mut chunk.late_ns, 1);
    fill(&mut chunk.fate, narrows_record::Fate::Dropped);
    fill(&mut chunk.element, 1);
    fill(&mut chunk.reason, 1);
    chunk.clear();
}
