//! The relay: connections that end in the gateway continue from here in the network outside.
//!
//! It handles each connection before the gateway sees it, and connects outside first: the program
//! is refused, accepted or left waiting exactly as by the other machine. Then bytes are copied
//! between the two connections with small buffers, so that a fast sender on one side is slowed down
//! by the other.

mod names;
mod splice;
mod tcp;
mod udp;

pub(super) use names::{Resolvers, host_names};

use super::addresses::{OUTSIDE, Prefix};
use super::hooks::{PendingFrame, RelayCommand, Shared};
use super::packet::{Admission, Unreachable, unreachable};
use narrows_sys::netns::NetNs;
use narrows_sys::poll::{Epoll, Events, Waker};
use narrows_sys::socket;
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

/// Time between checks for expired entries.
const TICK: Duration = Duration::from_secs(1);
/// Key of the waker; numbers of sockets begin above it.
const WAKER: u64 = 0;

/// Kinds of sockets that the gateway provides.
#[derive(Clone, Copy, Debug)]
enum Wanted {
    Tcp,
    Udp,
}

/// Creates sockets in the gateway for any thread: its thread has moved into the gateway's namespace
/// for good.
#[derive(Debug)]
pub(super) struct GatewaySockets {
    request: Sender<Wanted>,
    answer: Receiver<io::Result<OwnedFd>>,
}

impl GatewaySockets {
    /// Starts the thread. It ends with this object.
    pub(super) fn start(gateway: NetNs) -> io::Result<GatewaySockets> {
        let (request, requests) = channel();
        let (send_socket, answer) = channel();
        let make = move || {
            let entered = gateway.enter();
            for wanted in requests {
                let socket = match (&entered, wanted) {
                    (Err(error), _) => Err(io::Error::from(error.kind())),
                    (Ok(()), Wanted::Tcp) => socket::tcp(),
                    (Ok(()), Wanted::Udp) => socket::udp_any(),
                };
                if send_socket.send(socket).is_err() {
                    return;
                }
            }
        };
        std::thread::Builder::new()
            .name("gateway".to_owned())
            .spawn(make)?;
        Ok(GatewaySockets { request, answer })
    }

    fn make(&self, wanted: Wanted) -> io::Result<OwnedFd> {
        let gone = || io::Error::other("the gateway's thread has ended");
        self.request.send(wanted).map_err(|_| gone())?;
        self.answer.recv().map_err(|_| gone())?
    }
}

/// The state of the relay's thread.
pub(super) struct Relay<'a> {
    pub(super) sockets: GatewaySockets,
    pub(super) pending: Receiver<PendingFrame>,
    pub(super) waker: Arc<Waker>,
    pub(super) commands: Sender<RelayCommand>,
    pub(super) shared: &'a Shared,
    pub(super) resolvers: Resolvers,
    /// Congestion control of connections towards the program; `None` leaves the kernel's choice.
    pub(super) congestion: Option<String>,
    /// True if another shell, through which packets cannot be forwarded, encloses this one.
    pub(super) enclosed: bool,
}

impl Relay<'_> {
    /// Relays until it is stopped.
    ///
    /// # Errors
    /// The system no longer reports events of sockets.
    pub(super) fn run(self) -> io::Result<()> {
        let epoll = Epoll::new()?;
        epoll.add(self.waker.as_fd(), WAKER)?;
        let mut context = RelayContext {
            relay: &self,
            epoll: &epoll,
            next: 1,
        };
        let mut tcp = tcp::TcpRelay::default();
        let mut udp = udp::UdpRelay::default();
        let mut events = Events::default();
        let mut looked = Instant::now();
        while !self.shared.control.is_stopped() {
            let wait = if tcp.is_busy() { Duration::ZERO } else { TICK };
            epoll.wait(&mut events, Some(wait))?;
            for key in events.keys() {
                match key {
                    WAKER => self.waker.clear(),
                    key => {
                        let number = key / 2;
                        if !tcp.event(number, &mut context) {
                            udp.event(number, &mut context);
                        }
                    }
                }
            }
            tcp.go_on();
            while let Ok(pending) = self.pending.try_recv() {
                match pending.kind {
                    Admission::Datagram => udp.hold(pending, &mut context),
                    _ => tcp.hold(pending, &mut context),
                }
            }
            if looked.elapsed() > TICK {
                looked = Instant::now();
                tcp.tick();
                udp.tick(&mut context);
            }
        }
        Ok(())
    }
}

/// Context that the relays of both protocols use.
struct RelayContext<'a> {
    relay: &'a Relay<'a>,
    epoll: &'a Epoll,
    next: u64,
}

impl RelayContext<'_> {
    /// A number for a new pair of sockets; their keys are twice that, and one more.
    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    fn send(&self, command: RelayCommand) {
        // The emulator only ends with the session.
        let _ = self.relay.commands.send(command);
        self.relay.shared.control.wake();
    }

    /// The outside target of packets to `to`.
    fn target(&self, to: SocketAddrV4) -> Target {
        let (ip, port) = (*to.ip(), to.port());
        if ip.is_multicast() || ip.is_broadcast() || ip.is_unspecified() {
            return Target::Nowhere;
        }
        if ip == OUTSIDE {
            if port == 53 {
                return Target::At(self.relay.resolvers.current());
            }
            let ip = if self.relay.enclosed {
                OUTSIDE
            } else {
                Ipv4Addr::LOCALHOST
            };
            return Target::At(SocketAddrV4::new(ip, port));
        }
        if ip.is_loopback() || (Prefix::OUTERMOST.contains(ip) && !self.relay.enclosed) {
            return Target::Unreachable;
        }
        Target::At(to)
    }

    /// Answers a frame with an ICMP error: its destination is unreachable.
    fn refuse(&self, why: Unreachable, frame: &[u8]) {
        if let Some(answer) = unreachable(why, frame, OUTSIDE) {
            self.send(RelayCommand::Answer(answer));
        }
    }
}

/// An outside target.
enum Target {
    At(SocketAddrV4),
    /// An unreachable address.
    Unreachable,
    /// Packets are discarded without an answer.
    Nowhere,
}

/// The ICMP answer to the sender of a packet for which `connect` or `send` failed; `None` for no
/// answer.
fn meaning(error: &io::Error) -> Option<Unreachable> {
    match error.raw_os_error()? {
        libc::ENETUNREACH | libc::ENETDOWN => Some(Unreachable::Network),
        libc::EHOSTUNREACH | libc::EHOSTDOWN => Some(Unreachable::Host),
        libc::EACCES | libc::EPERM => Some(Unreachable::Forbidden),
        libc::ECONNREFUSED => Some(Unreachable::Port),
        _ => None,
    }
}
