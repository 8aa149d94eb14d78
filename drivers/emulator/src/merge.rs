//! Merges the packets of several logs, which share one sequence of uids, into one file.

use narrows_record::RecordError;
use narrows_record::log::{CHUNK_ROWS, Chunk, NO_WORD};
use std::borrow::Cow;
use std::collections::VecDeque;

/// Merges the rows of several logs in the order of their uids. Each log is in order, and no uid is missing, so that the
/// next one has either arrived or will arrive.
#[derive(Debug)]
pub(crate) struct Merge {
    /// By log: chunks whose rows have not all been taken.
    waiting: Vec<VecDeque<Chunk>>,
    /// By log: rows taken of its first chunk.
    taken: Vec<usize>,
    /// The next uid.
    next: u64,
    /// Rows in order, not yet written.
    pub(crate) merged: Chunk,
}

impl Merge {
    pub(crate) fn new(logs: usize) -> Self {
        Merge {
            waiting: vec![VecDeque::new(); logs],
            taken: vec![0; logs],
            next: 1,
            merged: Chunk::default(),
        }
    }

    /// Takes a chunk of a log; passes it to `used` when it has been copied, and full chunks to `write`.
    ///
    /// # Errors
    /// Those of `write`.
    pub(crate) fn add(
        &mut self,
        log: usize,
        chunk: Chunk,
        used: &impl Fn(Chunk),
        write: &mut impl FnMut(&Chunk) -> Result<(), RecordError>,
    ) -> Result<(), RecordError> {
        if self.merged.elements.is_empty() {
            self.merged.elements.clone_from(&chunk.elements);
        }
        self.waiting[log].push_back(chunk);
        while let Some(log) = self.log_of_next() {
            self.take_run(log);
            if self.taken[log] == self.waiting[log][0].len() {
                self.taken[log] = 0;
                self.waiting[log].pop_front().into_iter().for_each(used);
            }
            if self.merged.len() >= CHUNK_ROWS {
                write(&self.merged)?;
                self.merged.clear();
            }
        }
        Ok(())
    }

    fn log_of_next(&self) -> Option<usize> {
        let first = |(chunks, &taken): (&VecDeque<Chunk>, &usize)| {
            chunks
                .front()
                .and_then(|chunk| chunk.uid.get(taken))
                .copied()
        };
        let mut firsts = self.waiting.iter().zip(&self.taken).map(first);
        firsts.position(|uid| uid == Some(self.next))
    }

    /// Copies consecutive rows of a log.
    fn take_run(&mut self, log: usize) {
        let (chunk, into) = (&self.waiting[log][0], &mut self.merged);
        let from = self.taken[log];
        let uids = chunk.uid[from..].iter();
        let to = from
            + uids
                .zip(self.next..)
                .take_while(|(uid, next)| **uid == *next)
                .count();
        self.next += (to - from) as u64;
        self.taken[log] = to;
        into.flow.extend_from_slice(&chunk.flow[from..to]);
        into.direction.extend_from_slice(&chunk.direction[from..to]);
        into.uid.extend_from_slice(&chunk.uid[from..to]);
        into.size_bytes
            .extend_from_slice(&chunk.size_bytes[from..to]);
        into.sent_ns.extend_from_slice(&chunk.sent_ns[from..to]);
        into.arrived_ns
            .extend_from_slice(&chunk.arrived_ns[from..to]);
        into.late_ns.extend_from_slice(&chunk.late_ns[from..to]);
        into.fate.extend_from_slice(&chunk.fate[from..to]);
        into.element.extend_from_slice(&chunk.element[from..to]);
        into.copy_of.extend_from_slice(&chunk.copy_of[from..to]);
        // Each log has a separate list of words.
        let reasons = &mut into.reasons;
        let word = |&index: &u16| match chunk.reasons.get(usize::from(index)) {
            Some(word) if index != NO_WORD => index_of(reasons, word),
            _ => NO_WORD,
        };
        into.reason.extend(chunk.reason[from..to].iter().map(word));
    }
}

fn index_of(words: &mut Vec<Cow<'static, str>>, word: &str) -> u16 {
    let known = words.iter().position(|other| other == word);
    known.unwrap_or_else(|| {
        words.push(Cow::Owned(word.to_owned()));
        words.len() - 1
    }) as u16
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_record::{Direction, PacketLog};
    use narrows_units::Stream;
    use std::cell::RefCell;
    use std::sync::Arc;
    use std::sync::atomic::AtomicU64;

    #[test]
    fn rows_of_several_logs_come_in_the_order_of_uids_with_words_of_their_own() {
        const LOGS: usize = 3;
        const PACKETS: u64 = 3 * CHUNK_ROWS as u64;
        let elements = vec!["one".to_owned(), "two".to_owned()];
        let last = Arc::new(AtomicU64::new(0));
        let mut logs = [(); LOGS].map(|()| PacketLog::new(elements.clone()).sharing(last.clone()));
        let mut stream = Stream::new(3, "merge");
        let mut merge = Merge::new(LOGS);
        let (written, used) = (RefCell::new(Vec::new()), RefCell::new(0));
        let mut give = |number: usize, log: &mut PacketLog| {
            while let Some(chunk) = log.take() {
                let used = |_| *used.borrow_mut() += 1;
                let mut write = |chunk: &Chunk| {
                    written.borrow_mut().push(chunk.clone());
                    Ok(())
                };
                merge.add(number, chunk, &used, &mut write).unwrap();
            }
        };
        let reasons = ["queue_full", "random_loss", "policed"];
        for packet in 1..=PACKETS {
            // The last log has few rows, which arrive late.
            let at = if stream.chance(0.001) {
                2
            } else {
                usize::from(stream.chance(0.5))
            };
            let log = &mut logs[at];
            let uid = log.enter(at as u16, Direction::Forward, packet as u32, packet);
            if packet % 5 == 0 {
                log.copy(uid, at as u16, Direction::Forward, 0, packet);
                log.arrive(uid + 1, packet, 0);
            }
            match packet % 3 {
                0 => log.drop(uid, at as u16 % 2, reasons[at]),
                _ => log.arrive(uid, packet + 7, 7),
            }
            if stream.chance(0.0001) {
                log.cut();
            }
            give(at, log);
        }
        for (at, log) in logs.iter_mut().enumerate() {
            log.finish();
            give(at, log);
        }
        written.borrow_mut().push(merge.merged.clone());
        let mut original = 0;
        let mut expected = 1..;
        for chunk in written.borrow().iter() {
            for index in 0..chunk.len() {
                let row = chunk.row(index);
                assert_eq!(Some(row.uid), expected.next());
                if row.size_bytes == 0 {
                    assert_eq!(row.copy_of, Some(original));
                    continue;
                }
                original = row.uid;
                let dropped = u64::from(row.size_bytes) % 3 == 0;
                let reason = dropped.then(|| reasons[usize::from(row.flow)].to_owned());
                assert_eq!((row.reason, row.copy_of), (reason, None));
                assert_eq!(row.element.is_some(), dropped);
            }
        }
        assert_eq!(expected.next(), Some(PACKETS + PACKETS / 5 + 1));
        assert!(merge.waiting.iter().all(VecDeque::is_empty) && *used.borrow() > LOGS);
    }
}
