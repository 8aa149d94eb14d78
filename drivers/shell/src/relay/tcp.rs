//! TCP: a connection outside for each connection inside.

use super::super::hooks::{PendingFrame, RelayCommand};
use super::super::packet::{Tuple, Unreachable};
use super::{Target, Wanted, Work, meaning};
use narrows_sys::socket;
use std::collections::HashMap;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, SocketAddrV4, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

/// Most bytes between two sockets of a connection, each way.
const BUFFER: usize = 64 << 10;
/// Most bytes that the gateway's socket takes before it has sent what it has.
const UNSENT: u32 = 128 << 10;
/// Receive buffer towards services on this machine: the kernel would otherwise take in megabytes
/// ahead of the path, and the service would take them for delivered.
const NEAR_BUFFER: i32 = 256 << 10;
/// Connections that the gateway's kernel may complete before the relay looks.
const BACKLOG: i32 = 1024;
/// A handshake that the program has not completed by then is given up.
const HANDSHAKE: Duration = Duration::from_secs(75);
/// A listening socket without any handshake under way is closed after this time.
const IDLE_LISTENER: Duration = Duration::from_secs(10);
/// Rounds of copying before other connections have their turn.
const ROUNDS: usize = 16;

/// All TCP connections, by number, in their different stages.
#[derive(Default)]
pub(super) struct Streams {
    opening: HashMap<u64, Opening>,
    listeners: HashMap<SocketAddrV4, Listener>,
    listening: HashMap<u64, SocketAddrV4>,
    splices: HashMap<u64, Splice>,
    /// Connections whose first packet is still with us or has not led to anything yet.
    stages: HashMap<Tuple, Stage>,
    /// Those that had more to copy when their turn was over.
    busy: Vec<u64>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Connecting outside.
    Connecting,
    /// Connected outside; the program's handshake with the gateway is under way.
    Expected,
}

/// A connection outside that is being made.
struct Opening {
    outside: TcpStream,
    held: PendingFrame,
}

/// A listening socket in the gateway, in the name of a service outside.
struct Listener {
    number: u64,
    socket: TcpListener,
    /// By the program's address: the connection outside, its number, and since when it waits.
    expected: HashMap<SocketAddrV4, (TcpStream, u64, Instant)>,
    used: Instant,
}

impl Streams {
    /// Whether something is left to do without waiting.
    pub(super) fn is_busy(&self) -> bool {
        !self.busy.is_empty()
    }

    /// The first packet of a connection.
    pub(super) fn hold(&mut self, held: PendingFrame, work: &mut Work) {
        match self.stages.get(&held.tuple) {
            // A repetition; the first one will be answered.
            Some(Stage::Connecting) => return,
            Some(Stage::Expected) => return work.send(RelayCommand::Release(held)),
            None => {}
        }
        let target = match work.target(held.tuple.to) {
            Target::At(target) => target,
            Target::Unreachable => return work.refuse(Unreachable::Host, &held.frame),
            Target::Nowhere => return,
        };
        let number = work.number();
        match connect(target, number, work) {
            Ok(outside) => {
                self.stages.insert(held.tuple, Stage::Connecting);
                self.opening.insert(number, Opening { outside, held });
            }
            Err(error) => fail(&error, held, work),
        }
    }

    /// Something happened at a socket; `false` if it is none of ours.
    pub(super) fn event(&mut self, number: u64, work: &mut Work) -> bool {
        if self.splices.contains_key(&number) {
            self.copy(number);
        } else if let Some(&address) = self.listening.get(&number) {
            self.accept(address, work);
        } else if let Some(opening) = self.opening.get(&number) {
            match opening.outside.take_error() {
                Ok(None) if opening.outside.peer_addr().is_err() => {} // not yet
                Ok(None) => self.connected(number, work),
                Ok(Some(error)) | Err(error) => {
                    if let Some(opening) = self.opening.remove(&number) {
                        self.stages.remove(&opening.held.tuple);
                        self.close_unused(opening.held.tuple.to);
                        fail(&error, opening.held, work);
                    }
                }
            }
        } else {
            // It may belong to a connection that waits for the program.
            return self.listeners.values().any(|listener| {
                let mut waiting = listener.expected.values();
                waiting.any(|(_, waiting, _)| *waiting == number)
            });
        }
        true
    }

    /// Copies for those whose turn was over before they were done.
    pub(super) fn go_on(&mut self, _work: &mut Work) {
        for number in std::mem::take(&mut self.busy) {
            self.copy(number);
        }
    }

    /// Gives up what waits for too long.
    pub(super) fn tick(&mut self, _work: &mut Work) {
        for (address, listener) in &mut self.listeners {
            listener.expected.retain(|client, (outside, _, since)| {
                let keep = since.elapsed() < HANDSHAKE;
                if !keep {
                    let _ = socket::abort_on_close(outside.as_fd());
                    self.stages
                        .retain(|tuple, _| (tuple.from, tuple.to) != (*client, *address));
                }
                keep
            });
        }
        let listening = &mut self.listening;
        self.listeners.retain(|_, listener| {
            let keep = !listener.expected.is_empty() || listener.used.elapsed() < IDLE_LISTENER;
            if !keep {
                listening.remove(&listener.number);
            }
            keep
        });
    }

    /// The connection outside stands: now the gateway may accept the program's.
    fn connected(&mut self, number: u64, work: &mut Work) {
        let Some(Opening { outside, held }) = self.opening.remove(&number) else {
            return;
        };
        let tuple = held.tuple;
        if let Err(error) = self.listen(tuple.to, work) {
            // Without a listener the gateway's kernel refuses; that is all that can be said.
            eprintln!(
                "narrows shell: no connection to {} can be taken: {error}",
                tuple.to
            );
            let _ = socket::abort_on_close(outside.as_fd());
            self.stages.remove(&tuple);
        } else if let Some(listener) = self.listeners.get_mut(&tuple.to) {
            let since = Instant::now();
            listener.used = since;
            listener
                .expected
                .insert(tuple.from, (outside, number, since));
            self.stages.insert(tuple, Stage::Expected);
        }
        work.send(RelayCommand::Release(held));
    }

    fn listen(&mut self, address: SocketAddrV4, work: &mut Work) -> io::Result<()> {
        if self.listeners.contains_key(&address) {
            return Ok(());
        }
        let fd = work.relay.factory.make(Wanted::Tcp)?;
        socket::set_int(fd.as_fd(), libc::SOL_SOCKET, libc::SO_REUSEADDR, 1)?;
        socket::bind(fd.as_fd(), address)?;
        // Connections inherit both from the listening socket.
        if let Some(name) = &work.relay.congestion {
            socket::set_congestion(fd.as_fd(), name)?;
        }
        socket::set_unsent_limit(fd.as_fd(), UNSENT)?;
        socket::listen(fd.as_fd(), BACKLOG)?;
        let number = work.number();
        work.epoll.add(fd.as_fd(), number * 2)?;
        self.listening.insert(number, address);
        self.listeners.insert(
            address,
            Listener {
                number,
                socket: TcpListener::from(fd),
                expected: HashMap::new(),
                used: Instant::now(),
            },
        );
        Ok(())
    }

    /// A service outside is gone: nobody may be accepted in its name any more.
    fn close_unused(&mut self, address: SocketAddrV4) {
        if let Some(listener) = self.listeners.get(&address)
            && listener.expected.is_empty()
        {
            self.listening.remove(&listener.number);
            self.listeners.remove(&address);
        }
    }

    fn accept(&mut self, address: SocketAddrV4, work: &mut Work) {
        let Some(listener) = self.listeners.get_mut(&address) else {
            return;
        };
        let mut accepted = Vec::new();
        while let Ok((stream, peer)) = listener.socket.accept() {
            let SocketAddr::V4(peer) = peer else { continue };
            match listener.expected.remove(&peer) {
                Some((outside, number, _)) => accepted.push((stream, peer, outside, number)),
                None => drop(socket::abort_on_close(stream.as_fd())),
            }
            listener.used = Instant::now();
        }
        for (stream, peer, outside, number) in accepted {
            self.stages
                .retain(|tuple, _| (tuple.from, tuple.to) != (peer, address));
            let ready = stream
                .set_nonblocking(true)
                .and_then(|()| stream.set_nodelay(true))
                .and_then(|()| work.epoll.add_edges(stream.as_fd(), number * 2 + 1));
            let splice = Splice::new(stream, outside);
            match ready {
                Ok(()) => {
                    self.splices.insert(number, splice);
                    self.copy(number);
                }
                Err(_) => splice.abort(),
            }
        }
    }

    fn copy(&mut self, number: u64) {
        let Some(splice) = self.splices.get_mut(&number) else {
            return;
        };
        match splice.copy() {
            Ok(Progress::Waiting) => {}
            Ok(Progress::More) => self.busy.push(number),
            Ok(Progress::Done) => drop(self.splices.remove(&number)),
            Err(_) => {
                if let Some(splice) = self.splices.remove(&number) {
                    splice.abort();
                }
            }
        }
    }
}

fn connect(target: SocketAddrV4, number: u64, work: &Work) -> io::Result<TcpStream> {
    let fd = socket::tcp()?;
    if target.ip().is_loopback() {
        socket::set_int(fd.as_fd(), libc::SOL_SOCKET, libc::SO_RCVBUF, NEAR_BUFFER)?;
    }
    socket::connect(fd.as_fd(), target)?;
    work.epoll.add_edges(fd.as_fd(), number * 2)?;
    let stream = TcpStream::from(fd);
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// Nobody is there: says so to the program as the network outside did.
fn fail(error: &io::Error, held: PendingFrame, work: &Work) {
    match meaning(error) {
        // The gateway's kernel, where nobody listens either, resets the connection.
        Some(Unreachable::Port) => work.send(RelayCommand::Release(held)),
        Some(why) => work.refuse(why, &held.frame),
        None => {}
    }
}

/// Two sockets whose bytes are carried to each other.
struct Splice {
    inside: TcpStream,
    outside: TcpStream,
    up: Buffer,
    down: Buffer,
}

/// How far a connection got.
#[derive(Debug, PartialEq, Eq)]
enum Progress {
    /// Nothing can be done until something happens.
    Waiting,
    /// Others have their turn first.
    More,
    /// Both sides have said everything, and it has been passed on.
    Done,
}

impl Splice {
    fn new(inside: TcpStream, outside: TcpStream) -> Self {
        Splice {
            inside,
            outside,
            up: Buffer::new(),
            down: Buffer::new(),
        }
    }

    fn copy(&mut self) -> io::Result<Progress> {
        // A reset shows even when there is no room to read.
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
    fn abort(self) {
        let _ = socket::abort_on_close(self.inside.as_fd());
        let _ = socket::abort_on_close(self.outside.as_fd());
    }
}

/// Bytes on their way from one socket to the other.
struct Buffer {
    bytes: Box<[u8]>,
    start: usize,
    end: usize,
    /// The reader has said its last word.
    ended: bool,
    /// And the writer has been told.
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

    /// Reads or writes once; whether anything changed.
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
        let limit = Instant::now() + Duration::from_secs(10);
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
        // Until nothing has been taken for a while.
        while last.elapsed() < Duration::from_millis(300) {
            match (&service).write(&[0; 8192]) {
                Ok(count) => (sent, last) = (sent + count, Instant::now()),
                Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
            }
            let _ = splice.copy().unwrap();
        }
        drop(program);
        // The kernel's buffers on both sides hold some megabytes; the relay adds almost nothing.
        assert!(sent < 64 << 20, "{sent} bytes went nowhere");
        let waiting = splice.down.start..splice.down.end;
        assert!(!waiting.is_empty() && waiting.len() <= BUFFER);
    }
}
