//! TCP: a connection outside for each connection inside.

use super::super::hooks::{PendingFrame, RelayCommand};
use super::super::packet::{TCP, Tuple, Unreachable};
use super::splice::{Progress, Splice};
use super::{RelayContext, Target, Wanted, meaning};
use narrows_sys::socket;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::io;
use std::net::{SocketAddr, SocketAddrV4, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

/// Maximum number of unsent bytes in the gateway's socket.
const UNSENT: u32 = 128 << 10;
/// Receive buffer towards services on this machine: the kernel would otherwise buffer megabytes
/// ahead of the path, which the service would consider delivered.
const NEAR_BUFFER: i32 = 256 << 10;
/// Connections that the gateway's kernel may complete before the relay accepts them.
const BACKLOG: i32 = 1024;
/// Time after which an incomplete handshake of the program is abandoned.
const HANDSHAKE: Duration = Duration::from_secs(75);
/// Time after which a listening socket without a pending handshake is closed.
const IDLE_LISTENER: Duration = Duration::from_secs(10);

/// All TCP connections in their different stages.
#[derive(Default)]
pub(super) struct TcpRelay {
    /// By the numbers under which their sockets are polled.
    stages: HashMap<u64, Stage>,
    /// Numbers of the connections whose first packet the program may still retransmit.
    opening: HashMap<Tuple, u64>,
    listeners: HashMap<SocketAddrV4, Listener>,
    /// Connections that had more to copy at the end of their turn.
    busy: Vec<u64>,
}

enum Stage {
    /// Connecting outside, while the program's first packet waits.
    Connecting(TcpStream, PendingFrame),
    /// Connected outside; the program's handshake with the gateway has been pending since then.
    Expected(TcpStream, Tuple, Instant),
    /// Bytes are being copied.
    Relaying(Splice),
    /// Not a connection, but the socket in the gateway that listens at this address.
    Listening(SocketAddrV4),
}

/// A listening socket in the gateway that represents a service outside.
struct Listener {
    number: u64,
    socket: TcpListener,
    /// Number of connections in the stage [`Stage::Expected`].
    expected: usize,
    used: Instant,
}

impl TcpRelay {
    /// True if work remains that does not have to wait.
    pub(super) fn is_busy(&self) -> bool {
        !self.busy.is_empty()
    }

    /// The first packet of a connection.
    pub(super) fn hold(&mut self, pending: PendingFrame, context: &mut RelayContext) {
        let number = self.opening.get(&pending.tuple);
        match number.and_then(|number| self.stages.get(number)) {
            // A retransmission; the first one will be answered.
            Some(Stage::Connecting(..)) => return,
            Some(_) => return context.send(RelayCommand::Release(pending)),
            None => {}
        }
        let target = match context.target(pending.tuple.to) {
            Target::At(target) => target,
            Target::Unreachable => return context.refuse(Unreachable::Host, &pending.frame),
            Target::Nowhere => return,
        };
        let number = context.number();
        match connect(target, number, context) {
            Ok(outside) => {
                self.opening.insert(pending.tuple, number);
                let stage = Stage::Connecting(outside, pending);
                self.stages.insert(number, stage);
            }
            Err(error) => fail(&error, pending, context),
        }
    }

    /// Handles an event of a socket; `false` if the socket is unknown.
    pub(super) fn event(&mut self, number: u64, context: &mut RelayContext) -> bool {
        match self.stages.get(&number) {
            None => return false,
            Some(Stage::Expected(..)) => {}
            Some(Stage::Relaying(_)) => self.copy(number),
            Some(&Stage::Listening(address)) => self.accept(address, context),
            Some(Stage::Connecting(outside, _)) => match outside.take_error() {
                Ok(None) if outside.peer_addr().is_err() => {} // not yet
                Ok(None) => self.connected(number, context),
                Ok(Some(error)) | Err(error) => {
                    if let Some(Stage::Connecting(_, pending)) = self.stages.remove(&number) {
                        self.opening.remove(&pending.tuple);
                        self.close_unused(pending.tuple.to);
                        fail(&error, pending, context);
                    }
                }
            },
        }
        true
    }

    /// Continues copying for connections with remaining bytes.
    pub(super) fn go_on(&mut self) {
        for number in std::mem::take(&mut self.busy) {
            self.copy(number);
        }
    }

    /// Abandons connections that have waited too long.
    pub(super) fn tick(&mut self) {
        let is_late = |stage: &Stage| matches!(stage, Stage::Expected(_, _, since) if since.elapsed() >= HANDSHAKE);
        for (_, stage) in self.stages.extract_if(|_, stage| is_late(stage)) {
            if let Stage::Expected(outside, tuple, _) = stage {
                let _ = socket::abort_on_close(outside.as_fd());
                self.opening.remove(&tuple);
                if let Some(listener) = self.listeners.get_mut(&tuple.to) {
                    listener.expected -= 1;
                }
            }
        }
        self.listeners.retain(|_, listener| {
            let keep = listener.expected > 0 || listener.used.elapsed() < IDLE_LISTENER;
            if !keep {
                self.stages.remove(&listener.number);
            }
            keep
        });
    }

    /// The connection outside is established: now the gateway may accept the program's.
    fn connected(&mut self, number: u64, context: &mut RelayContext) {
        let Some(Stage::Connecting(outside, pending)) = self.stages.remove(&number) else {
            return;
        };
        let tuple = pending.tuple;
        match self.listen(tuple.to, context) {
            Ok(listener) => {
                listener.used = Instant::now();
                listener.expected += 1;
                let stage = Stage::Expected(outside, tuple, Instant::now());
                self.stages.insert(number, stage);
            }
            Err(error) => {
                // Without a listener the gateway's kernel refuses the connection.
                eprintln!(
                    "narrows shell: no connection to {} can be accepted: {error}",
                    tuple.to
                );
                let _ = socket::abort_on_close(outside.as_fd());
                self.opening.remove(&tuple);
            }
        }
        context.send(RelayCommand::Release(pending));
    }

    fn listen(
        &mut self,
        address: SocketAddrV4,
        context: &mut RelayContext,
    ) -> io::Result<&mut Listener> {
        let entry = match self.listeners.entry(address) {
            Entry::Occupied(listener) => return Ok(listener.into_mut()),
            Entry::Vacant(entry) => entry,
        };
        let fd = context.relay.sockets.make(Wanted::Tcp)?;
        socket::share_address(fd.as_fd())?;
        socket::bind(fd.as_fd(), address)?;
        // Connections inherit both from the listening socket.
        if let Some(name) = &context.relay.congestion {
            socket::set_congestion(fd.as_fd(), name)?;
        }
        socket::set_unsent_limit(fd.as_fd(), UNSENT)?;
        socket::listen(fd.as_fd(), BACKLOG)?;
        let number = context.number();
        context.epoll.add(fd.as_fd(), number * 2)?;
        self.stages.insert(number, Stage::Listening(address));
        Ok(entry.insert(Listener {
            number,
            socket: TcpListener::from(fd),
            expected: 0,
            used: Instant::now(),
        }))
    }

    /// A service outside has closed: no more connections may be accepted on its behalf.
    fn close_unused(&mut self, address: SocketAddrV4) {
        if let Entry::Occupied(listener) = self.listeners.entry(address)
            && listener.get().expected == 0
        {
            self.stages.remove(&listener.remove().number);
        }
    }

    fn accept(&mut self, address: SocketAddrV4, context: &mut RelayContext) {
        let Some(listener) = self.listeners.get_mut(&address) else {
            return;
        };
        let mut accepted = Vec::new();
        while let Ok((inside, peer)) = listener.socket.accept() {
            listener.used = Instant::now();
            let SocketAddr::V4(from) = peer else { continue };
            let tuple = Tuple {
                protocol: TCP,
                from,
                to: address,
            };
            let number = self.opening.remove(&tuple).unwrap_or_default();
            let Some(Stage::Expected(outside, ..)) = self.stages.remove(&number) else {
                let _ = socket::abort_on_close(inside.as_fd());
                continue;
            };
            listener.expected -= 1;
            let ready = inside
                .set_nonblocking(true)
                .and_then(|()| inside.set_nodelay(true))
                .and_then(|()| context.epoll.add_edges(inside.as_fd(), number * 2 + 1));
            let splice = Splice::new(inside, outside);
            if ready.is_ok() {
                self.stages.insert(number, Stage::Relaying(splice));
                accepted.push(number);
            } else {
                splice.abort();
            }
        }
        for number in accepted {
            self.copy(number);
        }
    }

    fn copy(&mut self, number: u64) {
        let Some(Stage::Relaying(splice)) = self.stages.get_mut(&number) else {
            return;
        };
        match splice.copy() {
            Ok(Progress::Waiting) => {}
            Ok(Progress::More) => self.busy.push(number),
            Ok(Progress::Done) => drop(self.stages.remove(&number)),
            Err(_) => {
                if let Some(Stage::Relaying(splice)) = self.stages.remove(&number) {
                    splice.abort();
                }
            }
        }
    }
}

fn connect(target: SocketAddrV4, number: u64, context: &RelayContext) -> io::Result<TcpStream> {
    let fd = socket::tcp()?;
    if target.ip().is_loopback() {
        socket::set_int(fd.as_fd(), libc::SOL_SOCKET, libc::SO_RCVBUF, NEAR_BUFFER)?;
    }
    socket::connect(fd.as_fd(), target)?;
    context.epoll.add_edges(fd.as_fd(), number * 2)?;
    let stream = TcpStream::from(fd);
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// The connection failed: reports it to the program as the network outside did.
fn fail(error: &io::Error, pending: PendingFrame, context: &RelayContext) {
    match meaning(error) {
        // The gateway's kernel, which has no listener either, resets the connection.
        Some(Unreachable::Port) => context.send(RelayCommand::Release(pending)),
        Some(why) => context.refuse(why, &pending.frame),
        None => {}
    }
}
