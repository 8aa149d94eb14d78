//! Flows of our transport: the core's senders and receivers over UDP sockets, with any number of connections.
//!
//! A connection is a pair of ports. The first one uses the flow's port on both hosts, so that the server has its socket
//! before the first packet arrives; the others start at ephemeral ports, and the server creates a connected socket when
//! the first packet from one arrives.

mod application;
mod connection;
#[cfg(feature = "event-log")]
mod event_log;
mod stream;

use super::clock::{EventLoop, RunClock, SampleTimes, add_key};
use super::link::{self, Link, SocketBuffers};
use super::live::LiveStates;
use super::receiver::ReceiveResult;
use super::source::Source;
use super::{Channel, EndpointOutcome, EndpointTask, Role};
use application::answer;
use connection::Connection;
use narrows_cell::{Context, RunError};
use narrows_cell::{SchemeRef, receiver_counters, sender_counters};
use narrows_sys::socket;
use narrows_traffic::TrafficEvent;
use narrows_transport::{Config, ConnectionTotals, Receiver, Sender};
use narrows_units::{Span, Time};
use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddrV4;
use std::os::fd::{AsFd, OwnedFd};

/// Maximum time for which acknowledgements wait for the next packet of a sender that is only limited by pacing. They do
/// not affect that packet, and count from their kernel receive time, so that only timers which they set can be late by
/// this. A wake-up for each would cost more than all other work.
const NAP: Span = Span::from_us(250);
/// Key of the socket on which first packets of connections arrive at the server.
const LISTENER: u64 = u64::MAX - 1;
/// Idle time after which the server removes a connection.
const IDLE: Span = Span::from_ms(20_000);

fn open(task: &EndpointTask) -> Result<OwnedFd, RunError> {
    let socket = link::open(task)?;
    socket::share_address(socket.as_fd()).could_not("prepare a UDP socket")?;
    Ok(socket)
}

/// One end of a flow.
pub(super) struct Node<'a> {
    task: &'a EndpointTask<'a>,
    client: bool,
    /// Parameters of the local streams, and of the peer's.
    configs: [Config; 2],
    first: Option<OwnedFd>,
    listener: Option<OwnedFd>,
    /// By key; at the client, keys are the numbers of connections.
    links: BTreeMap<u64, Link<Connection>>,
    /// At the server: keys by the peer's address.
    peers: BTreeMap<SocketAddrV4, u64>,
    next_key: u64,
    opened: u64,
    buffers: SocketBuffers,
    /// Sums over connections that have ended.
    past: ConnectionTotals,
    outcome: EndpointOutcome,
    socket_drops: u64,
}

impl<'a> Node<'a> {
    /// An end with the socket of the first connection.
    pub(super) fn prepare(task: &'a EndpointTask<'a>) -> Result<Self, RunError> {
        let flow = task.flow;
        let client = task.is_client();
        let (own, peer) = if client {
            (flow.client(), flow.server())
        } else {
            (flow.server(), flow.client())
        };
        let first = open(task)?;
        socket::bind(first.as_fd(), task.port_at(own)).could_not("bind the flow's port")?;
        socket::connect(first.as_fd(), task.port_at(peer)).could_not("connect a UDP socket")?;
        let mut node = Node {
            task,
            client,
            configs: [own, peer].map(|from| task.cell.transport(flow, from)),
            first: Some(first),
            listener: None,
            links: BTreeMap::new(),
            peers: BTreeMap::new(),
            next_key: 0,
            opened: 0,
            buffers: SocketBuffers::new(flow.flow, flow.dscp, task.end()),
            past: ConnectionTotals::default(),
            outcome: EndpointOutcome::default(),
            socket_drops: 0,
        };
        if !client {
            let listener = open(task)?;
            socket::bind(listener.as_fd(), task.port_at(own)).could_not("bind the flow's port")?;
            node.listener = Some(listener);
            if let Some(fd) = node.first.take() {
                node.meet(fd, task.port_at(peer));
            }
        }
        Ok(node)
    }

    /// Runs until the flow stops (if it sends the data) or the run ends.
    pub(super) fn run(
        mut self,
        clock: &RunClock,
        channel: &mut Channel,
    ) -> Result<EndpointOutcome, RunError> {
        let EndpointTask { cell, flow, .. } = *self.task;
        let sends = self.task.role == Role::Sender;
        let mut sleeper = EventLoop::new(channel)?;
        let mut source = if self.client {
            Some(Source::new(cell, flow)?)
        } else {
            None
        };
        sleeper.wait_for_start(clock, cell.duration, channel)?;
        self.watch(&mut sleeper)?;
        if let Some(source) = &mut source {
            source.notify(clock.start(), TrafficEvent::Start);
        }
        let mut samples = SampleTimes::new(clock.start(), cell.sample);
        let mut live = LiveStates::new(self.task);
        // Connections with events, or with work to do.
        let mut hot: Vec<u64> = self.links.keys().copied().collect();
        // Connections among them with more than one batch.
        let mut eager: Vec<u64> = Vec::new();
        let mut now = clock.now();
        while now < clock.end(self.task) {
            let end = clock.end(self.task);
            if let Some(source) = &mut source {
                source.stop_at(clock.stop());
                source.wake(now);
                while let Some((at, action)) = source.next() {
                    if let Some(key) = self.perform(at, action, &mut sleeper)? {
                        add_key(&mut hot, key);
                    }
                }
            }
            for &key in &hot {
                if let Some(link) = self.links.get_mut(&key)
                    && link.transmit(&mut self.buffers, now)?
                {
                    eager.push(key);
                }
            }
            if sends && samples.is_due(now) {
                self.sample(now);
                live.report(now, &self.outcome.states, channel);
            }
            self.retire(&hot, now);
            let mut until = if eager.is_empty() { end } else { now };
            let mut paced = sends;
            for link in self.links.values() {
                until = until.min(link.next_wakeup(now));
                paced &= link.is_drained() && link.endpoint.is_paced();
            }
            if let Some(source) = &source {
                until = until.min(source.next_wakeup());
            }
            if sends {
                until = until.min(samples.next);
            }
            if paced && until > now && until.since(now) <= NAP {
                clock.sleep_until(until);
            }
            sleeper.wait(clock, until, channel)?;
            // Only readable sockets are read, and once: remaining data are reported again.
            hot.clear();
            hot.extend(sleeper.ready().filter(|&key| key != LISTENER));
            for &key in &hot {
                self.receive(key, clock, source.as_mut())?;
            }
            eager.drain(..).for_each(|key| add_key(&mut hot, key));
            if self.listener.is_some() && sleeper.ready().any(|key| key == LISTENER) {
                self.listen(clock, &mut sleeper, &mut hot)?;
            }
            now = clock.now();
            for (&key, link) in &self.links {
                if link.is_due(now) {
                    add_key(&mut hot, key);
                }
            }
        }
        self.take_rest(clock, source.as_mut())?;
        if sends {
            // The sockets stay open: late acknowledgements would otherwise be answered with ICMP.
            for link in self.links.values() {
                sleeper.forget(link.socket())?;
            }
            if let Some(listener) = &self.listener {
                sleeper.forget(listener.as_fd())?;
            }
            sleeper.wait_until(clock, cell.duration, channel)?;
        }
        Ok(self.finish(source, sends))
    }

    fn watch(&self, sleeper: &mut EventLoop) -> Result<(), RunError> {
        for (&key, link) in &self.links {
            sleeper.until_readable(link.socket(), key)?;
        }
        match &self.listener {
            Some(listener) => sleeper.until_readable(listener.as_fd(), LISTENER),
            None => Ok(()),
        }
    }

    /// Adds a socket for a new connection at the server; returns its key.
    fn meet(&mut self, fd: OwnedFd, peer: SocketAddrV4) -> u64 {
        let key = self.next_key;
        self.next_key += 1;
        let config = &self.configs[1];
        // Without retransmissions the headers of transfers may be lost, and transfers have no end to wait for.
        let connection = Connection::new(None, Receiver::new(config), config.reliable);
        self.links.insert(key, Link::new(fd, connection));
        self.peers.insert(peer, key);
        key
    }

    /// Receives datagrams of peers that are not known yet.
    fn listen(
        &mut self,
        clock: &RunClock,
        sleeper: &mut EventLoop,
        hot: &mut Vec<u64>,
    ) -> Result<(), RunError> {
        let mut buffer = [0; 9216];
        loop {
            let Some(listener) = &self.listener else {
                return Ok(());
            };
            let (length, peer) = match socket::receive_from(listener.as_fd(), &mut buffer) {
                Ok(result) => result,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error).could_not("receive datagrams"),
            };
            let key = if let Some(&key) = self.peers.get(&peer) {
                key
            } else {
                let fd = open(self.task)?;
                socket::bind(fd.as_fd(), self.task.server())
                    .and_then(|()| socket::connect(fd.as_fd(), peer))
                    .could_not("connect a UDP socket")?;
                let key = self.meet(fd, peer);
                sleeper.until_readable(self.links[&key].socket(), key)?;
                key
            };
            if let Some(link) = self.links.get_mut(&key) {
                link.take(&mut self.buffers, clock.now(), &buffer[..length]);
            }
            add_key(hot, key);
        }
    }

    /// Takes datagrams that arrived in time but were not read before the end.
    fn take_rest(
        &mut self,
        clock: &RunClock,
        mut source: Option<&mut Source>,
    ) -> Result<(), RunError> {
        let keys: Vec<u64> = self.links.keys().copied().collect();
        for key in keys {
            while self.receive(key, clock, source.as_deref_mut())?.more {}
        }
        Ok(())
    }

    /// Takes one batch of datagrams of a connection, and handles the transfers that they complete.
    fn receive(
        &mut self,
        key: u64,
        clock: &RunClock,
        source: Option<&mut Source>,
    ) -> Result<ReceiveResult, RunError> {
        let Some(link) = self.links.get_mut(&key) else {
            return Ok(ReceiveResult::default());
        };
        let result = link.receive(&mut self.buffers, clock)?;
        let connection = &mut link.endpoint;
        let arrived = connection.receiver.rcv_nxt();
        if let Some(source) = source {
            while let Some(&(transfer, end)) = connection.awaited.front() {
                if arrived < end {
                    break;
                }
                connection.awaited.pop_front();
                source.completed(clock.now(), key as u32, transfer);
            }
            return Ok(result);
        }
        while let Some(headers) = &mut connection.headers {
            match headers.next(arrived) {
                Ok(Some(header)) => answer(
                    connection,
                    &header,
                    self.task,
                    &self.configs[0],
                    clock,
                    &mut self.outcome,
                )?,
                Ok(None) => break,
                Err(()) => {
                    let text = "the data that arrived are not a transfer of Narrows".to_owned();
                    self.outcome.problem.get_or_insert(text);
                    connection.headers = None;
                }
            }
        }
        Ok(result)
    }

    /// Removes connections that have to end and are idle.
    fn retire(&mut self, hot: &[u64], now: Time) {
        let done = |link: &Link<Connection>| link.endpoint.is_idle() && link.endpoint.closing;
        for &key in hot {
            if self.links.get(&key).is_some_and(done) {
                self.close(key);
            }
        }
        if self.client || self.links.len() < 64 {
            return;
        }
        // The client does not signal the end of a connection.
        let idle =
            |link: &Link<Connection>| link.endpoint.is_idle() && now.since(link.active) > IDLE;
        let gone: Vec<u64> = self
            .links
            .iter()
            .filter_map(|(&key, link)| idle(link).then_some(key))
            .collect();
        for key in gone {
            self.close(key);
        }
        self.peers.retain(|_, key| self.links.contains_key(key));
    }

    /// Adds the counters of a connection, and removes it.
    fn close(&mut self, key: u64) {
        if let Some(link) = self.links.remove(&key) {
            self.count(&link);
        }
    }

    fn count(&mut self, link: &Link<Connection>) {
        self.socket_drops += u64::from(link.dropped);
        if let Some(sender) = &link.endpoint.sender {
            self.past.add_sender(sender);
        }
        self.past.add_receiver(&link.endpoint.receiver);
    }

    /// The state of the only connection so far, or the combined state of all.
    fn sample(&mut self, now: Time) {
        let began = if self.client {
            self.opened
        } else {
            self.next_key
        };
        let senders = self.links.values();
        let senders = senders.filter_map(|link| link.endpoint.sender.as_ref());
        let mut snapshots = senders.map(Sender::snapshot);
        let snapshot = if began == 1 {
            snapshots.next()
        } else {
            Some(self.past.together(snapshots))
        };
        if let Some(snapshot) = snapshot {
            self.outcome.add_state(now, &snapshot);
        }
    }

    fn finish(mut self, source: Option<Source>, sends: bool) -> EndpointOutcome {
        let links = std::mem::take(&mut self.links);
        for link in links.values() {
            self.count(link);
        }
        if sends {
            // Packets that left the socket, including acknowledgements of requests.
            let [packets, bytes] = self.buffers.sending.sent;
            (self.past.sender.sent_packets, self.past.sender.sent_bytes) = (packets, bytes);
            self.outcome.sender = sender_counters(&self.past.sender);
            if let SchemeRef::Native(scheme, _) = &self.task.flow.scheme {
                self.outcome.read_back = Some(scheme.name.to_owned());
            }
        } else {
            let [packets, bytes] = self.buffers.received;
            let sum = &mut self.past.receiver;
            (sum.received_packets, sum.received_bytes) = (packets, bytes);
            self.outcome.receiver = receiver_counters(sum);
        }
        self.outcome.socket_drops = self.socket_drops;
        let problem = self.buffers.problem();
        self.outcome.problem = self.outcome.problem.take().or(problem);
        self.outcome.offer = source.map(Source::report);
        self.outcome
    }
}
