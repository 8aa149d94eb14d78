//! A UDP socket of one connection, whose packets leave when the library wants them to.

use quiche::{Connection, RecvInfo};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

/// Longest interval between checks for a request to stop.
const LOOK: Duration = Duration::from_millis(100);

/// A packet that waits for its time.
struct Waiting {
    length: usize,
    to: SocketAddr,
    at: Instant,
}

pub struct Endpoint {
    socket: UdpSocket,
    /// Our own address.
    pub address: SocketAddr,
    /// The data received last.
    pub buffer: Vec<u8>,
    packet: Vec<u8>,
    waiting: Option<Waiting>,
}

impl Endpoint {
    pub fn new(here: SocketAddr) -> io::Result<Self> {
        let socket = UdpSocket::bind(here)?;
        socket.set_nonblocking(true)?;
        Ok(Endpoint {
            address: socket.local_addr()?,
            socket,
            buffer: vec![0; 65_536],
            packet: vec![0; 65_536],
            waiting: None,
        })
    }

    /// Finds out from which address packets to another one leave.
    pub fn connect(&mut self, to: SocketAddr) -> io::Result<()> {
        self.socket.connect(to)?;
        self.address = self.socket.local_addr()?;
        Ok(())
    }

    /// Takes a datagram into the buffer: its length and where it is from; none if there is none.
    pub fn datagram(&mut self) -> io::Result<Option<(usize, SocketAddr)>> {
        match self.socket.recv_from(&mut self.buffer) {
            Ok(found) => Ok(Some(found)),
            // Nobody listens (yet): QUIC repeats what was lost.
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::WouldBlock | ErrorKind::ConnectionRefused
                ) =>
            {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Gives all datagrams that have arrived to the connection.
    pub fn receive(&mut self, connection: &mut Connection) -> io::Result<()> {
        while let Some((length, from)) = self.datagram()? {
            let info = RecvInfo {
                from,
                to: self.address,
            };
            // Datagrams that are not packets of this connection are ignored.
            let _ = connection.recv(&mut self.buffer[..length], info);
        }
        Ok(())
    }

    /// Sends what is due by the library's pacing, and keeps the packet that is not.
    pub fn send(&mut self, connection: &mut Connection) -> Result<(), Box<dyn std::error::Error>> {
        if connection.timeout().is_some_and(|left| left.is_zero()) {
            connection.on_timeout();
        }
        loop {
            let waiting = match self.waiting.take() {
                Some(waiting) => waiting,
                None => match connection.send(&mut self.packet) {
                    Ok((length, info)) => Waiting {
                        length,
                        to: info.to,
                        at: info.at,
                    },
                    Err(quiche::Error::Done) => return Ok(()),
                    Err(error) => return Err(error.into()),
                },
            };
            if waiting.at > Instant::now() {
                self.waiting = Some(waiting);
                return Ok(());
            }
            self.transmit(waiting)?;
        }
    }

    fn transmit(&self, packet: Waiting) -> io::Result<()> {
        let bytes = &self.packet[..packet.length];
        let sent = if self.socket.peer_addr().is_ok() {
            self.socket.send(bytes)
        } else {
            self.socket.send_to(bytes, packet.to)
        };
        match sent {
            // A full buffer of the socket is a loss like any other.
            Err(error)
                if !matches!(
                    error.kind(),
                    ErrorKind::WouldBlock | ErrorKind::ConnectionRefused
                ) =>
            {
                Err(error)
            }
            _ => Ok(()),
        }
    }

    /// Waits for a datagram, a timer of the library or a packet's time; not for long, so that signals are seen.
    pub fn wait(&self, connection: Option<&Connection>) -> io::Result<()> {
        self.wait_until(connection, Instant::now() + LOOK)
    }

    /// The same until some time.
    pub fn wait_until(&self, connection: Option<&Connection>, end: Instant) -> io::Result<()> {
        let now = Instant::now();
        let mut left = end.saturating_duration_since(now);
        if let Some(timer) = connection.and_then(Connection::timeout) {
            left = left.min(timer);
        }
        if let Some(waiting) = &self.waiting {
            left = left.min(waiting.at.saturating_duration_since(now));
        }
        let timeout = Timespec {
            tv_sec: left.as_secs().try_into().unwrap_or(i64::MAX),
            tv_nsec: left.subsec_nanos().into(),
        };
        match poll(
            &mut [PollFd::new(&self.socket, PollFlags::IN)],
            Some(&timeout),
        ) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

/// A connection's identity.
pub fn random_id() -> io::Result<[u8; 16]> {
    use std::io::Read;
    let mut id = [0; 16];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut id)?;
    Ok(id)
}
