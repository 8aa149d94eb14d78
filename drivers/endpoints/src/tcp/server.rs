//! The end that accepts connections and answers requests.

use super::super::clock::{EventLoop, RunClock};
use super::super::live::LiveStates;
use super::super::{Channel, EndpointOutcome, EndpointTask, Role};
use super::{BULK_MARK, READS, Sampler, Totals, Turn, WRITE};
use super::{abort, discard, limit_window, open, read_back, receive_window};
use narrows_cell::{Context, RunError};
use narrows_sys::socket;
use narrows_traffic::TransferHeader;
use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

/// Key of the listening socket; connections use their numbers.
const LISTENER: u64 = u64::MAX - 1;

/// One accepted connection.
struct Connection {
    fd: OwnedFd,
    /// The arrived part of the header of the next transfer.
    header: [u8; TransferHeader::LENGTH],
    arrived: usize,
    /// The transfer that is arriving, and its remaining bytes.
    body: Option<(TransferHeader, u64)>,
    /// Bytes of answers that are not in the send buffer yet.
    owed: u64,
    /// True if the client has ended its half.
    ended: bool,
    /// Limit of its window.
    window: Option<u64>,
}

/// The server of a flow.
pub(in super::super) struct Server<'a> {
    task: &'a EndpointTask<'a>,
    name: Option<&'a str>,
    listener: OwnedFd,
    connections: BTreeMap<u64, Connection>,
    accepted: u64,
    totals: Totals,
    outcome: EndpointOutcome,
    zeros: Vec<u8>,
    again: Vec<u64>,
    /// Limit of the windows of accepted connections.
    window: Option<u64>,
}

impl<'a> Server<'a> {
    /// A server that listens on the flow's port.
    pub(in super::super) fn prepare(
        task: &'a EndpointTask<'a>,
        name: Option<&'a str>,
    ) -> Result<Self, RunError> {
        // Accepted connections inherit the settings of the listening socket.
        let listener = open(task, name)?;
        socket::bind(listener.as_fd(), task.server()).could_not("bind the flow's port")?;
        socket::listen(listener.as_fd(), socket::BACKLOG).could_not("listen on the flow's port")?;
        Ok(Server {
            task,
            name,
            listener,
            connections: BTreeMap::new(),
            accepted: 0,
            totals: Totals::default(),
            outcome: EndpointOutcome::default(),
            zeros: vec![0; WRITE],
            again: Vec::new(),
            window: receive_window(task),
        })
    }

    /// Serves until the flow stops (if it sends the data) or the run ends.
    pub(in super::super) fn run(
        mut self,
        clock: &RunClock,
        channel: &mut Channel,
    ) -> Result<EndpointOutcome, RunError> {
        let EndpointTask { cell, flow, .. } = *self.task;
        let sends = self.task.role == Role::Sender;
        let mut sleeper = EventLoop::new(channel)?;
        sleeper.until_readable(self.listener.as_fd(), LISTENER)?;
        let mut started = flow.start;
        let mut sampler = Sampler::new(started, cell.sample);
        let mut live = LiveStates::new(self.task);
        let mut ready: Vec<u64> = Vec::new();
        loop {
            let (now, end) = (clock.now(), clock.end(self.task));
            if now >= end {
                break;
            }
            if clock.start() != started {
                started = clock.start();
                sampler = Sampler::new(started, cell.sample);
            }
            for key in ready.drain(..) {
                if key == LISTENER {
                    self.accept(&mut sleeper)?;
                } else {
                    self.progress(key, clock);
                }
            }
            if sends && sampler.times.is_due(now) {
                let single = self.accepted == 1;
                let each = self.connections.values();
                let each = each.map(|connection| (connection.fd.as_fd(), false));
                sampler.sample(now, single, &self.totals, each, &mut self.outcome);
                live.report(now, &self.outcome.states, channel);
            }
            let until = match (self.again.is_empty(), sends) {
                (false, _) => now,
                (true, true) => end.min(sampler.times.next),
                (true, false) => end,
            };
            sleeper.wait(clock, until, channel)?;
            sleeper.collect(&mut ready, &mut self.again);
        }
        let last = self.connections.values().next_back();
        let fd = last.map_or(&self.listener, |connection| &connection.fd);
        read_back(fd.as_fd(), self.task, self.name, &mut self.outcome);
        let left = self.connections.values().map(|one| one.fd.as_fd());
        abort(left, self.task.role, self.totals, &mut self.outcome)?;
        Ok(self.outcome)
    }

    fn accept(&mut self, sleeper: &mut EventLoop) -> Result<(), RunError> {
        loop {
            let fd = match socket::accept(self.listener.as_fd()) {
                Ok(fd) => fd,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                // The client has ended already.
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => continue,
                Err(error) => return Err(error).could_not("accept a connection"),
            };
            let _ = socket::set_no_delay(fd.as_fd());
            sleeper.until_changed(fd.as_fd(), self.accepted)?;
            let connection = Connection {
                fd,
                header: [0; TransferHeader::LENGTH],
                arrived: 0,
                body: None,
                owed: 0,
                ended: false,
                window: self.window,
            };
            self.connections.insert(self.accepted, connection);
            // Data that arrived before it was monitored are not reported.
            self.again.push(self.accepted);
            self.accepted += 1;
        }
    }

    /// Makes all progress that is possible for a connection now.
    fn progress(&mut self, key: u64, clock: &RunClock) {
        let Some(connection) = self.connections.get_mut(&key) else {
            return;
        };
        let ended = &mut self.outcome.ended;
        let over = match connection.advance(&self.zeros, |transfer| {
            ended.push((transfer, clock.now().ns()));
        }) {
            Ok(Turn::Waits) => return,
            Ok(Turn::HasMore) => {
                self.again.push(key);
                return;
            }
            Ok(Turn::Over) => None,
            Err(error) => Some(error),
        };
        let connection = self.connections.remove(&key);
        if let Some(connection) = connection {
            self.totals.add(connection.fd.as_fd());
        }
        // A sender stops with a reset, which the client reports.
        let reset = |error: &io::Error| {
            matches!(
                error.kind(),
                io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe
            )
        };
        if let Some(error) = over.filter(|error| !reset(error)) {
            let text = format!("a connection broke: {error}");
            self.outcome.problem.get_or_insert(text);
        }
    }
}

impl Connection {
    /// Reads and writes as much as possible now; `complete` is called for transfers without an
    /// answer whose last byte has arrived.
    fn advance(&mut self, zeros: &[u8], mut complete: impl FnMut(u32)) -> io::Result<Turn> {
        let mut more = true;
        limit_window(self.fd.as_fd(), self.window);
        for _ in 0..READS {
            if self.ended || !self.read(&mut complete)? {
                more = false;
                break;
            }
        }
        while self.owed > 0 {
            let length = self.owed.min(zeros.len() as u64) as usize;
            match socket::send(self.fd.as_fd(), &zeros[..length]) {
                Ok(sent) => self.owed -= sent as u64,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        Ok(if self.ended && self.owed == 0 {
            Turn::Over
        } else if more {
            Turn::HasMore
        } else {
            Turn::Waits
        })
    }

    /// Reads once; `false` if there were no data.
    fn read(&mut self, complete: &mut impl FnMut(u32)) -> io::Result<bool> {
        let length = if let Some((_, left)) = &mut self.body {
            let Some(length) = discard(self.fd.as_fd(), *left)? else {
                return Ok(false);
            };
            *left = left.saturating_sub(length as u64);
            length
        } else {
            let room = &mut self.header[self.arrived..];
            let length = match socket::receive(self.fd.as_fd(), room) {
                Ok(length) => length,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(error),
            };
            self.arrived += length;
            length
        };
        if length == 0 {
            self.ended = true;
            return Ok(true);
        }
        if self.body.is_none() && self.arrived == TransferHeader::LENGTH {
            self.arrived = 0;
            let header = TransferHeader::decode(&self.header).ok_or_else(|| {
                io::Error::other("the data that arrived are not a transfer of Narrows")
            })?;
            if header.transfer.is_open() && self.window.is_none() {
                // A wake-up per packet would cost the machine more than the packet.
                let _ = socket::set_receive_mark(self.fd.as_fd(), BULK_MARK);
            }
            let left = header.transfer.up - TransferHeader::LENGTH as u64;
            self.body = Some((header, left));
        }
        if let Some((header, 0)) = self.body {
            self.body = None;
            if header.transfer.down > 0 {
                self.owed += header.transfer.down;
            } else {
                complete(header.transfer.transfer);
            }
        }
        Ok(true)
    }
}
