//! Copies bytes between two TCP connections.

use narrows_sys::socket;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::AsFd;

/// Maximum number of buffered bytes between two sockets of a connection, per direction.
const BUFFER: usize = 64 << 10;
/// Rounds of copying before other connections are served.
const ROUNDS: usize = 16;

/// Two sockets whose bytes are copied to each other.
pub(super) struct Splice {
    inside: TcpStream,
    outside: TcpStream,
    up: Buffer,
    down: Buffer,
}

/// Progress of a connection.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// No progress until the next event.
    Waiting,
    /// More work, after other connections.
    More,
    /// Both streams have ended, and all bytes have been copied.
    Done,
}

impl Splice {
    pub(super) fn new(inside: TcpStream, outside: TcpStream) -> Self {
        Splice {
            inside,
            outside,
            up: Buffer::new(),
            down: Buffer::new(),
        }
    }

    pub(super) fn copy(&mut self) -> io::Result<Progress> {
        // A reset is noticed even without room to read.
        for stream in [&self.inside, &self.outside] {
            if let Some(error) = stream.take_error()? {
                return Err(error);
            }
        }
        for _ in 0..ROUNDS {
            let up = self.up.step(&self.inside, &self.outside)?;
            let down = self.down.step(&self.outside, &self.inside)?;
            if self.up.closed && self.down.closed {
                return Ok(Progress::Done);
            }
            if !up && !down {
                return Ok(Progress::Waiting);
            }
        }
        Ok(Progress::More)
    }

    /// Ends both connections with a reset.
    pub(super) fn abort(self) {
        let _ = socket::abort_on_close(self.inside.as_fd());
        let _ = socket::abort_on_close(self.outside.as_fd());
    }
}

/// Bytes between one socket and the other.
struct Buffer {
    bytes: Box<[u8]>,
    start: usize,
    end: usize,
    /// True if the stream that is read has ended.
    ended: bool,
    /// True if the stream that is written has been closed.
    closed: bool,
}

impl Buffer {
    fn new() -> Self {
        Buffer {
            bytes: vec![0; BUFFER].into(),
            start: 0,
            end: 0,
            ended: false,
            closed: false,
        }
    }

    /// Reads or writes once; true if anything changed.
    fn step(&mut self, mut from: &TcpStream, mut to: &TcpStream) -> io::Result<bool> {
        if self.closed {
            return Ok(false);
        }
        if self.start == self.end && !self.ended {
            match from.read(&mut self.bytes) {
                Ok(0) => self.ended = true,
                Ok(count) => (self.start, self.end) = (0, count),
                Err(error) => return unless_would_block(error),
            }
        }
        if self.start < self.end {
            match to.write(&self.bytes[self.start..self.end]) {
                Ok(count) => self.start += count,
                Err(error) => return unless_would_block(error),
            }
            return Ok(true);
        }
        if self.ended {
            to.shutdown(Shutdown::Write)?;
            self.closed = true;
        }
        Ok(true)
    }
}

fn unless_would_block(error: io::Error) -> io::Result<bool> {
    match error.kind() {
        ErrorKind::WouldBlock => Ok(false),
        ErrorKind::Interrupted => Ok(true),
        _ => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;
    use std::time::{Duration, Instant};

    fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (far, _) = listener.accept().unwrap();
        far.set_nonblocking(true).unwrap();
        (near, far)
    }

    fn spliced() -> (TcpStream, TcpStream, Splice) {
        let (program, inside) = pair();
        let (service, outside) = pair();
        (program, service, Splice::new(inside, outside))
    }

    /// Copies until `holds`.
    fn copy_until(splice: &mut Splice, holds: impl Fn(&io::Result<Progress>) -> bool) {
        let limit = Instant::now() + Duration::from_mins(1);
        loop {
            let progress = splice.copy();
            if holds(&progress) {
                return;
            }
            assert!(Instant::now() < limit, "never happened: {progress:?}");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn half_closed_connections_still_carry_answers() {
        let (mut program, mut service, mut splice) = spliced();
        program.write_all(b"question").unwrap();
        program.shutdown(Shutdown::Write).unwrap();
        copy_until(&mut splice, |_| true);
        let copying = std::thread::spawn(move || {
            copy_until(&mut splice, |progress| {
                matches!(progress, Ok(Progress::Done))
            });
        });
        let mut text = String::new();
        service.read_to_string(&mut text).unwrap();
        assert_eq!(text, "question", "the end of the question arrives");
        service.write_all(b"answer").unwrap();
        drop(service);
        let mut text = String::new();
        program.read_to_string(&mut text).unwrap();
        assert_eq!(text, "answer");
        copying.join().unwrap();
    }

    #[test]
    fn resets_are_passed_on() {
        let (mut program, service, mut splice) = spliced();
        socket::abort_on_close(service.as_fd()).unwrap();
        drop(service);
        copy_until(&mut splice, Result::is_err);
        splice.abort();
        let error = program.read(&mut [0; 8]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    }

    #[test]
    fn a_full_reader_stops_the_writer() {
        let (program, service, mut splice) = spliced();
        service.set_nonblocking(true).unwrap();
        let mut sent = 0;
        let mut last = Instant::now();
        // Until no bytes have been accepted for a while.
        while last.elapsed() < Duration::from_millis(300) {
            match (&service).write(&[0; 8192]) {
                Ok(count) => (sent, last) = (sent + count, Instant::now()),
                Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
            }
            let _ = splice.copy().unwrap();
        }
        drop(program);
        // The kernel's buffers on both sides hold some megabytes; the relay adds very little.
        assert!(
            sent < 64 << 20,
            "{sent} bytes were accepted without a reader"
        );
        let waiting = splice.down.start..splice.down.end;
        assert!(!waiting.is_empty() && waiting.len() <= BUFFER);
    }
}
