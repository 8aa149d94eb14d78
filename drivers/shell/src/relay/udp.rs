//! UDP: a pair of sockets for each pair of addresses.

use super::super::hooks::{PendingFrame, RelayCommand};
use super::super::packet::Tuple;
use super::{RelayContext, Target, Wanted, meaning};
use narrows_sys::socket;
use std::collections::HashMap;
use std::io;
use std::net::UdpSocket;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

/// A pair that carried nothing for this long is closed (RFC 4787, REQ-5, asks for two minutes at
/// least).
const IDLE: Duration = Duration::from_mins(3);
/// The same for queries to a resolver, which have one answer.
const IDLE_QUESTION: Duration = Duration::from_secs(15);
/// Maximum number of pairs; the oldest is replaced.
const MAX_PAIRS: usize = 4096;
/// Buffer for bursts of datagrams.
const BUFFER: i32 = 1 << 20;
/// Datagrams copied before other sockets are served.
const TURN: usize = 64;
/// Maximum size of a datagram.
const MAX_DATAGRAM: usize = 65_535;

/// All pairs of sockets.
#[derive(Default)]
pub(super) struct UdpRelay {
    sessions: HashMap<Tuple, UdpSession>,
    numbers: HashMap<u64, Tuple>,
    buffer: Vec<u8>,
}

struct UdpSession {
    number: u64,
    inside: UdpSocket,
    outside: UdpSocket,
    used: Instant,
    answered: bool,
    /// True if it goes to a resolver.
    question: bool,
    /// The first frame, quoted if the destination is unreachable.
    first: Vec<u8>,
}

impl UdpRelay {
    /// A datagram for which no socket may exist yet.
    pub(super) fn hold(&mut self, pending: PendingFrame, context: &mut RelayContext) {
        if !self.sessions.contains_key(&pending.tuple) {
            match self.open(&pending, context) {
                Ok(()) => {}
                Err(error) => {
                    context.send(RelayCommand::Forget(pending.tuple));
                    if let Some(why) = meaning(&error) {
                        context.refuse(why, &pending.frame);
                    }
                    return;
                }
            }
        }
        context.send(RelayCommand::Release(pending));
    }

    fn open(&mut self, pending: &PendingFrame, context: &mut RelayContext) -> io::Result<()> {
        let tuple = pending.tuple;
        let target = match context.target(tuple.to) {
            Target::At(target) => target,
            Target::Unreachable => return Err(io::Error::from_raw_os_error(libc::EHOSTUNREACH)),
            Target::Nowhere => return Err(io::ErrorKind::InvalidInput.into()),
        };
        let outside = socket::udp_any()?;
        socket::connect(outside.as_fd(), target)?;
        let inside = context.relay.sockets.make(Wanted::Udp)?;
        // Other programs may talk to the same service at the same time.
        socket::set_int(inside.as_fd(), libc::SOL_SOCKET, libc::SO_REUSEADDR, 1)?;
        socket::bind(inside.as_fd(), tuple.to)?;
        socket::connect(inside.as_fd(), tuple.from)?;
        for fd in [inside.as_fd(), outside.as_fd()] {
            socket::set_int(fd, libc::SOL_SOCKET, libc::SO_RCVBUF, BUFFER)?;
        }
        let number = context.number();
        context.epoll.add(outside.as_fd(), number * 2)?;
        context.epoll.add(inside.as_fd(), number * 2 + 1)?;
        if self.sessions.len() >= MAX_PAIRS {
            let oldest = self.sessions.iter().min_by_key(|(_, session)| session.used);
            if let Some((&oldest, _)) = oldest {
                self.close(oldest, context);
            }
        }
        self.numbers.insert(number, tuple);
        self.sessions.insert(
            tuple,
            UdpSession {
                number,
                inside: UdpSocket::from(inside),
                outside: UdpSocket::from(outside),
                used: Instant::now(),
                answered: false,
                question: tuple.to.port() == 53,
                first: pending.frame.clone(),
            },
        );
        Ok(())
    }

    /// Handles an event of a socket.
    pub(super) fn event(&mut self, number: u64, context: &mut RelayContext) {
        let Some(&tuple) = self.numbers.get(&number) else {
            return;
        };
        self.buffer.resize(MAX_DATAGRAM, 0);
        let Some(session) = self.sessions.get_mut(&tuple) else {
            return;
        };
        session.used = Instant::now();
        let up = carry(&session.inside, &session.outside, &mut self.buffer);
        let down = carry(&session.outside, &session.inside, &mut self.buffer);
        session.answered |= matches!(down, Ok(1..));
        // Errors from outside are passed to the program; errors from the program's side are
        // ignored.
        if let Err(Broken::Writer(error)) | Ok(Err(Broken::Reader(error))) = up.map(|_| down) {
            let first = std::mem::take(&mut session.first);
            self.close(tuple, context);
            if let Some(why) = meaning(&error) {
                context.refuse(why, &first);
            }
        }
    }

    /// Closes idle pairs.
    pub(super) fn tick(&mut self, context: &mut RelayContext) {
        let limit = |session: &UdpSession| {
            if session.question {
                IDLE_QUESTION
            } else {
                IDLE
            }
        };
        let old: Vec<Tuple> = self
            .sessions
            .iter()
            .filter(|(_, session)| session.used.elapsed() > limit(session))
            .map(|(&tuple, _)| tuple)
            .collect();
        for tuple in old {
            self.close(tuple, context);
        }
    }

    fn close(&mut self, tuple: Tuple, context: &mut RelayContext) {
        // Before the socket is closed, so that the next datagram is held again.
        context.send(RelayCommand::Forget(tuple));
        if let Some(session) = self.sessions.remove(&tuple) {
            self.numbers.remove(&session.number);
            if session.question && !session.answered {
                context.relay.resolvers.next();
            }
        }
    }
}

/// The socket, of two, that reported an error.
enum Broken {
    Reader(io::Error),
    Writer(io::Error),
}

/// Forwards datagrams from one socket through the other; returns their number.
fn carry(from: &UdpSocket, to: &UdpSocket, buffer: &mut [u8]) -> Result<usize, Broken> {
    for count in 0..TURN {
        match from.recv(buffer) {
            Ok(size) => match to.send(&buffer[..size]) {
                Err(error) if meaning(&error).is_some() => return Err(Broken::Writer(error)),
                // A full interface loses datagrams, as everywhere; so does one with a smaller MTU.
                _ => {}
            },
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(count),
            Err(error) => return Err(Broken::Reader(error)),
        }
    }
    Ok(TURN)
}
