//! The output of a program: all of it is read, so that the program never blocks, and its first and last part are kept.

use std::collections::VecDeque;
use std::io::Read;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Maximum length of a line that is examined.
const LONGEST_LINE: usize = 4096;
/// Maximum length of a last line in sentences.
const SHOWN: usize = 200;
/// Time for a reader to notice that all writers have ended.
const END: Duration = Duration::from_secs(1);

/// One stream of a program, read by a thread.
#[derive(Debug)]
pub(super) struct Output {
    state: Arc<Mutex<State>>,
    thread: JoinHandle<()>,
}

#[derive(Debug)]
struct State {
    /// Maximum number of bytes kept of each part.
    half: usize,
    head: Vec<u8>,
    tail: VecDeque<u8>,
    total: u64,
    /// Expected text, until it has appeared.
    wanted: Option<String>,
    /// The current line, while a text is expected.
    line: Vec<u8>,
}

impl Output {
    /// Reads `stream` to its end and keeps up to `maximum` bytes; detects a line that contains `wanted`.
    pub(super) fn read(
        mut stream: impl Read + Send + 'static,
        maximum: u64,
        wanted: Option<String>,
    ) -> std::io::Result<Output> {
        let state = Arc::new(Mutex::new(State {
            half: usize::try_from(maximum / 2).unwrap_or(usize::MAX),
            head: Vec::new(),
            tail: VecDeque::new(),
            total: 0,
            wanted,
            line: Vec::new(),
        }));
        let shared = Arc::clone(&state);
        let read = move || {
            let mut buffer = vec![0; 64 << 10];
            while let Ok(length @ 1..) = stream.read(&mut buffer) {
                lock(&shared).add(&buffer[..length]);
            }
        };
        let thread = std::thread::Builder::new()
            .name("output".to_owned())
            .spawn(read)?;
        Ok(Output { state, thread })
    }

    /// True if the expected line has appeared.
    pub(super) fn has_said_it(&self) -> bool {
        lock(&self.state).wanted.is_none()
    }

    /// Waits until all writers have ended, but not for ever.
    pub(super) fn finish(&self) {
        let limit = Instant::now() + END;
        while !self.thread.is_finished() && Instant::now() < limit {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Number of printed bytes, and the kept ones.
    pub(super) fn kept(&self) -> (u64, Vec<u8>) {
        let state = lock(&self.state);
        let mut kept = state.head.clone();
        let cut = state.total - (state.head.len() + state.tail.len()) as u64;
        if cut > 0 {
            kept.extend(format!("\n[{cut} bytes were omitted here]\n").bytes());
        }
        kept.extend(&state.tail);
        (state.total, kept)
    }

    /// Bytes of the output that were kept.
    pub(super) fn kept_bytes(&self) -> u64 {
        let state = lock(&self.state);
        (state.head.len() + state.tail.len()) as u64
    }

    /// The last non-empty line, formatted for a sentence.
    pub(super) fn last_line(&self) -> Option<String> {
        let (_, kept) = self.kept();
        let text = String::from_utf8_lossy(&kept);
        let line = text.lines().rfind(|line| !line.trim().is_empty())?;
        let printable = line.trim().chars().map(|letter| match letter {
            '"' => '\'',
            other if other.is_control() => ' ',
            other => other,
        });
        Some(printable.take(SHOWN).collect())
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl State {
    fn add(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        if self.wanted.is_some() {
            self.look_for_line(bytes);
        }
        let room = self.half.saturating_sub(self.head.len()).min(bytes.len());
        let (first, rest) = bytes.split_at(room);
        self.head.extend(first);
        let rest = &rest[rest.len().saturating_sub(self.half)..];
        self.tail.extend(rest);
        let more = self.tail.len().saturating_sub(self.half);
        self.tail.drain(..more);
    }

    fn look_for_line(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            if self.line.len() < LONGEST_LINE && byte != b'\n' {
                self.line.push(byte);
            }
            if byte == b'\n' {
                let line = String::from_utf8_lossy(&self.line);
                if self
                    .wanted
                    .as_ref()
                    .is_some_and(|text| line.contains(&**text))
                {
                    self.wanted = None;
                    return;
                }
                self.line.clear();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    fn read(text: &str, maximum: u64, wanted: Option<&str>) -> Output {
        let output = Output::read(
            Cursor::new(text.to_owned().into_bytes()),
            maximum,
            wanted.map(str::to_owned),
        );
        let output = output.unwrap();
        output.finish();
        output
    }

    #[test]
    fn short_output_is_kept_and_long_output_loses_its_middle() {
        let text = |output: &Output| String::from_utf8(output.kept().1).unwrap();
        assert_eq!(text(&read("abc\n", 100, None)), "abc\n");
        let long = read("0123456789abcdef", 8, None);
        assert_eq!(text(&long), "0123\n[8 bytes were omitted here]\ncdef");
        assert_eq!((long.kept().0, long.kept_bytes()), (16, 8));
        assert_eq!(text(&read("", 8, None)), "");
    }

    #[test]
    fn lines_are_noticed_when_they_are_complete() {
        assert!(read("x\nis ready now\n", 4, Some("ready")).has_said_it());
        assert!(!read("x\nis ready now", 4, Some("ready")).has_said_it());
        assert!(!read("rea\ndy\n", 100, Some("ready")).has_said_it());
    }

    #[test]
    fn the_last_line_fits_into_a_sentence() {
        let last = |text: &str| read(text, 10_000, None).last_line();
        assert_eq!(last("one\ntwo \"x\"\t\n\n"), Some("two 'x'".into()));
        assert_eq!(last("\n \n"), None);
        assert_eq!(last(&"y".repeat(1000)).unwrap().len(), SHOWN);
    }
}
