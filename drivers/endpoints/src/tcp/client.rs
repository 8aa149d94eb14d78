//! The end that runs the application and opens connections.

use super::super::clock::{EventLoop, RunClock};
use super::super::live::LiveStates;
use super::super::source::Source;
use super::super::{Channel, EndpointOutcome, EndpointTask, Role};
use super::{READS, Sampler, Totals, Turn, WRITE};
use super::{abort, discard, limit_window, open, read_back, receive_window};
use narrows_cell::RunError;
use narrows_sys::socket;
use narrows_traffic::{TrafficAction, TrafficEvent, Transfer, TransferHeader};
use narrows_units::Time;
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::os::fd::{AsFd, OwnedFd};

/// Bytes of one transfer that are written to the send buffer.
#[derive(Debug)]
struct Piece {
    header: [u8; TransferHeader::LENGTH],
    /// Bytes accepted by the kernel so far.
    sent: u64,
    /// Total bytes.
    total: u64,
    /// Bytes that may be sent.
    granted: u64,
}

impl Piece {
    fn open_ended(&self) -> bool {
        self.total == Transfer::OPEN
    }
}

/// One connection.
#[derive(Debug)]
struct Connection {
    fd: OwnedFd,
    established: bool,
    /// Transfers to be sent, in order.
    up: VecDeque<Piece>,
    /// Transfers whose answers are awaited, with the remaining bytes of each.
    down: VecDeque<(u32, u64)>,
    /// True if the application has requested its end.
    closing: bool,
    /// True if our half has ended.
    ended: bool,
}

impl Connection {
    /// True if the congestion control alone should limit it now.
    fn greedy(&self) -> bool {
        let open = |piece: &Piece| piece.open_ended() && piece.granted == u64::MAX;
        self.established && self.up.front().is_some_and(open)
    }
}

/// The reason for the end of a connection.
enum End {
    /// Regular end.
    Regular,
    /// The peer or the network broke it.
    Broken(io::Error),
}

/// The client of a flow.
pub(in super::super) struct Client<'a> {
    task: &'a EndpointTask<'a>,
    name: Option<&'a str>,
    first: Option<OwnedFd>,
    connections: BTreeMap<u32, Connection>,
    opened: u32,
    totals: Totals,
    outcome: EndpointOutcome,
    /// Zeros, sometimes with a header in front.
    data: Vec<u8>,
    /// Connections with more data to read than one turn allows.
    again: Vec<u64>,
}

impl<'a> Client<'a> {
    /// A client that has opened nothing but the socket of its first connection.
    pub(in super::super) fn prepare(
        task: &'a EndpointTask<'a>,
        name: Option<&'a str>,
    ) -> Result<Self, RunError> {
        Ok(Client {
            first: Some(open(task, name)?),
            task,
            name,
            connections: BTreeMap::new(),
            opened: 0,
            totals: Totals::default(),
            outcome: EndpointOutcome::default(),
            data: vec![0; WRITE],
            again: Vec::new(),
        })
    }

    /// Runs until the flow stops (if it sends the data) or the run ends.
    pub(in super::super) fn run(
        mut self,
        clock: &RunClock,
        channel: &mut Channel,
    ) -> Result<EndpointOutcome, RunError> {
        let EndpointTask { cell, flow, .. } = *self.task;
        let sends = self.task.role == Role::Sender;
        let mut sleeper = EventLoop::new(channel)?;
        let mut source = Source::new(cell, flow)?;
        let mut live = LiveStates::new(self.task);
        sleeper.wait_for_start(clock, cell.duration, channel)?;
        let mut sampler = Sampler::new(clock.start(), cell.sample);
        source.notify(clock.start(), TrafficEvent::Start);
        let mut ready: Vec<u64> = Vec::new();
        loop {
            let (now, end) = (clock.now(), clock.end(self.task));
            if now >= end {
                break;
            }
            source.stop_at(clock.stop());
            for key in ready.drain(..) {
                self.progress(key as u32, now, &mut source);
            }
            source.wake(now);
            while let Some((at, action)) = source.next() {
                self.perform(at, action, clock, &mut sleeper, &mut source)?;
            }
            if sends && sampler.times.is_due(now) {
                let single = self.opened == 1;
                let each = self.connections.values();
                let each = each.map(|connection| (connection.fd.as_fd(), connection.greedy()));
                sampler.sample(now, single, &self.totals, each, &mut self.outcome);
                live.report(now, &self.outcome.states, channel);
            }
            let mut until = source.next_wakeup().min(end);
            if sends {
                until = until.min(sampler.times.next);
            }
            if !self.again.is_empty() {
                until = now;
            }
            sleeper.wait(clock, until, channel)?;
            sleeper.collect(&mut ready, &mut self.again);
        }
        self.finish(source, sends)
    }

    fn finish(mut self, source: Source, sends: bool) -> Result<EndpointOutcome, RunError> {
        let alone = self.opened == 1 && sends;
        if alone && self.connections.values().any(|entry| !entry.established) {
            let text = "the connection was not established before the flow stopped";
            self.outcome.problem.get_or_insert(text.to_owned());
        }
        let last = self.connections.values().next_back();
        if let Some(fd) = last.map(|entry| &entry.fd).or(self.first.as_ref())
            && self.outcome.read_back.is_none()
        {
            read_back(fd.as_fd(), self.task, self.name, &mut self.outcome);
        }
        let left = self.connections.values().map(|entry| entry.fd.as_fd());
        abort(left, self.task.role, self.totals, &mut self.outcome)?;
        self.outcome.offer = Some(source.report());
        Ok(self.outcome)
    }

    /// Carries out an action that the application requested at `at`.
    fn perform(
        &mut self,
        at: Time,
        action: TrafficAction,
        clock: &RunClock,
        sleeper: &mut EventLoop,
        source: &mut Source,
    ) -> Result<(), RunError> {
        match action {
            TrafficAction::Open { connection } => {
                return self.open(connection, sleeper, source, clock.now());
            }
            TrafficAction::Transfer(transfer) => {
                let Some(connection) = self.connections.get_mut(&transfer.connection) else {
                    return Ok(());
                };
                if !transfer.is_open() && connection.up.is_empty() && connection.down.is_empty() {
                    // Ends of transfers must not wait for more data.
                    let _ = socket::set_no_delay(connection.fd.as_fd());
                }
                let header = TransferHeader {
                    transfer,
                    started: at,
                };
                connection.up.push_back(Piece {
                    header: header.encode(),
                    sent: 0,
                    total: transfer.up,
                    granted: if transfer.is_open() { 0 } else { transfer.up },
                });
                if transfer.down > 0 {
                    connection
                        .down
                        .push_back((transfer.transfer, transfer.down));
                }
                self.progress(transfer.connection, clock.now(), source);
            }
            TrafficAction::Grant { connection, bytes } => {
                if let Some(piece) = self.open_piece(connection) {
                    piece.granted = piece.granted.saturating_add(bytes);
                    self.progress(connection, clock.now(), source);
                }
            }
            TrafficAction::Hold { connection } => {
                if let Some(piece) = self.open_piece(connection) {
                    piece.granted = piece.sent;
                }
            }
            TrafficAction::Close { connection } => {
                if let Some(entry) = self.connections.get_mut(&connection) {
                    entry.closing = true;
                    self.progress(connection, clock.now(), source);
                }
            }
            TrafficAction::Datagram { .. } => {}
        }
        Ok(())
    }

    /// The open transfer of a connection, which is its last.
    fn open_piece(&mut self, connection: u32) -> Option<&mut Piece> {
        let piece = self.connections.get_mut(&connection)?.up.back_mut()?;
        piece.open_ended().then_some(piece)
    }

    fn open(
        &mut self,
        number: u32,
        sleeper: &mut EventLoop,
        source: &mut Source,
        at: Time,
    ) -> Result<(), RunError> {
        let fd = match self.first.take() {
            Some(fd) => fd,
            None => open(self.task, self.name)?,
        };
        self.opened += 1;
        let connected = socket::connect(fd.as_fd(), self.task.server());
        let connection = Connection {
            established: false,
            up: VecDeque::new(),
            down: VecDeque::new(),
            closing: false,
            ended: false,
            fd,
        };
        sleeper.until_changed(connection.fd.as_fd(), u64::from(number))?;
        self.connections.insert(number, connection);
        if let Err(error) = connected {
            self.forget(number, End::Broken(error), source, at);
        }
        Ok(())
    }

    /// Makes all progress that is possible for a connection now.
    fn progress(&mut self, number: u32, now: Time, source: &mut Source) {
        let Some(connection) = self.connections.get_mut(&number) else {
            return;
        };
        limit_window(connection.fd.as_fd(), receive_window(self.task));
        let end = match advance(connection, &mut self.data, |transfer| {
            source.completed(now, number, transfer);
        }) {
            Ok(Turn::Waits) => return,
            Ok(Turn::HasMore) => {
                self.again.push(u64::from(number));
                return;
            }
            Ok(Turn::Over) => End::Regular,
            Err(error) => End::Broken(error),
        };
        self.forget(number, end, source, now);
    }

    fn forget(&mut self, number: u32, end: End, source: &mut Source, now: Time) {
        let Some(connection) = self.connections.remove(&number) else {
            return;
        };
        self.totals.add(connection.fd.as_fd());
        if self.outcome.read_back.is_none() {
            read_back(
                connection.fd.as_fd(),
                self.task,
                self.name,
                &mut self.outcome,
            );
        }
        if let End::Broken(error) = end
            // A sender of data that has stopped resets its connections.
            && !source.has_stopped(now)
        {
            self.outcome.broken += 1;
            let text = format!("a connection broke: {error}");
            self.outcome.problem.get_or_insert(text);
            source.notify(now, TrafficEvent::Failed { connection: number });
        }
    }
}

/// Reads and writes as much as possible now; `completed` is called for finished answers.
fn advance(
    connection: &mut Connection,
    data: &mut [u8],
    mut completed: impl FnMut(u32),
) -> io::Result<Turn> {
    let fd = connection.fd.as_fd();
    if !connection.established {
        socket::take_error(fd)?;
        connection.established = socket::is_connected(fd);
        if !connection.established {
            return Ok(Turn::Waits);
        }
    }
    write(&mut connection.up, &connection.fd, data)?;
    for _ in 0..READS {
        let Some(length) = discard(fd, u64::MAX)? else {
            if connection.closing
                && !connection.ended
                && connection.established
                && connection.up.is_empty()
                && connection.down.is_empty()
            {
                connection.ended = true;
                socket::end_stream(fd)?;
            }
            return Ok(Turn::Waits);
        };
        if length == 0 {
            let whole = connection.up.is_empty() && connection.down.is_empty();
            return if whole {
                Ok(Turn::Over)
            } else {
                Err(io::ErrorKind::UnexpectedEof.into())
            };
        }
        let mut length = length as u64;
        while let Some((transfer, left)) = connection.down.front_mut() {
            let task = length.min(*left);
            (*left, length) = (*left - task, length - task);
            if *left > 0 {
                break;
            }
            let transfer = *transfer;
            connection.down.pop_front();
            completed(transfer);
        }
    }
    Ok(Turn::HasMore)
}

/// Writes as much as may be sent and the kernel accepts.
fn write(up: &mut VecDeque<Piece>, fd: &OwnedFd, data: &mut [u8]) -> io::Result<()> {
    while let Some(piece) = up.front_mut() {
        if piece.sent == piece.total {
            up.pop_front();
            continue;
        }
        let allowed = piece.granted.min(piece.total) - piece.sent;
        if allowed == 0 {
            break;
        }
        let length = allowed.min(data.len() as u64) as usize;
        let ahead = TransferHeader::LENGTH
            .saturating_sub(piece.sent as usize)
            .min(length);
        if ahead > 0 {
            let from = piece.sent as usize;
            data[..ahead].copy_from_slice(&piece.header[from..from + ahead]);
        }
        let sent = socket::send(fd.as_fd(), &data[..length]);
        data[..ahead].fill(0);
        match sent {
            Ok(sent) => piece.sent += sent as u64,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
