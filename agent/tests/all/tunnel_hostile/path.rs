//! The path between both ends, in this process: it relays, delays, makes copies, and can be made to misbehave.

use std::collections::VecDeque;
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Maximum number of copies that are kept, of both directions together.
const COPIES: usize = 20_000;

/// A datagram that passed, and whether it went to the listener.
pub(crate) type Copied = (bool, Vec<u8>);

/// Called first for each datagram, with whether it goes to the listener; returns whether it may pass.
pub(crate) type Guard = dyn Fn(bool, &[u8]) -> bool + Send + Sync;

#[derive(Default)]
struct Shared {
    dialer: Mutex<Option<SocketAddr>>,
    copies: Mutex<Vec<Copied>>,
    /// Towards the listener; the last one is used.
    to_listener: Mutex<Vec<Arc<UdpSocket>>>,
    stop: AtomicBool,
}

/// A guard that passes all datagrams.
pub(crate) fn free() -> Arc<Guard> {
    Arc::new(|_, _| true)
}

/// The path.
pub(crate) struct Path {
    /// Address that the dialer calls.
    pub(crate) address: SocketAddr,
    pub(crate) listener: SocketAddr,
    to_dialer: Arc<UdpSocket>,
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

/// A socket that is read with some patience.
pub(crate) fn socket() -> UdpSocket {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let patience = Some(Duration::from_millis(50));
    socket.set_read_timeout(patience).unwrap();
    socket
}

impl Path {
    /// A path without delay and without a guard.
    pub(crate) fn to(listener: &str) -> Path {
        Path::guarded(listener, Duration::ZERO, &free())
    }

    pub(crate) fn guarded(listener: &str, delay: Duration, guard: &Arc<Guard>) -> Path {
        let to_dialer = Arc::new(socket());
        let mut path = Path {
            address: to_dialer.local_addr().unwrap(),
            listener: listener.parse().unwrap(),
            to_dialer,
            shared: Arc::default(),
            threads: Vec::new(),
        };
        path.move_away();
        for to_listener in [true, false] {
            let (shared, home) = (path.shared.clone(), path.to_dialer.clone());
            let (listener, guard) = (path.listener, guard.clone());
            path.threads.push(std::thread::spawn(move || {
                relay(&shared, &home, listener, to_listener, delay, &*guard);
            }));
        }
        path
    }

    /// Moves the dialer's apparent address to another port; the previous one no longer works.
    pub(crate) fn move_away(&self) {
        let socket = Arc::new(socket());
        self.shared.to_listener.lock().unwrap().push(socket);
    }

    pub(crate) fn dialer(&self) -> Option<SocketAddr> {
        *self.shared.dialer.lock().unwrap()
    }

    /// Sends a datagram over the same sockets as those of the tunnel.
    pub(crate) fn send(&self, to_listener: bool, bytes: &[u8]) {
        send(
            &self.shared,
            &self.to_dialer,
            self.listener,
            to_listener,
            bytes,
        );
    }

    pub(crate) fn copy(&self, index: u64) -> Option<Copied> {
        let copies = self.shared.copies.lock().unwrap();
        let count = copies.len() as u64;
        copies.get(index.checked_rem(count)? as usize).cloned()
    }

    /// Number of datagrams that passed, up to the number of copies that are kept.
    pub(crate) fn seen(&self) -> usize {
        self.shared.copies.lock().unwrap().len()
    }
}

fn current(shared: &Shared) -> Arc<UdpSocket> {
    shared.to_listener.lock().unwrap().last().unwrap().clone()
}

fn send(shared: &Shared, home: &UdpSocket, listener: SocketAddr, to_listener: bool, bytes: &[u8]) {
    let dialer = *shared.dialer.lock().unwrap();
    if to_listener {
        let _ = current(shared).send_to(bytes, listener);
    } else if let Some(dialer) = dialer {
        let _ = home.send_to(bytes, dialer);
    }
}

/// One direction.
fn relay(
    shared: &Shared,
    home: &UdpSocket,
    listener: SocketAddr,
    to_listener: bool,
    delay: Duration,
    guard: &Guard,
) {
    let mut buffer = [0; 2048];
    let mut way: VecDeque<(Instant, Vec<u8>)> = VecDeque::new();
    while !shared.stop.load(Ordering::Relaxed) {
        let now = Instant::now();
        while way.front().is_some_and(|(due, _)| *due <= now) {
            if let Some((_, bytes)) = way.pop_front() {
                send(shared, home, listener, to_listener, &bytes);
            }
        }
        let away = current(shared);
        let from = if to_listener { home } else { &*away };
        let next = way.front().map_or(Duration::from_millis(50), |(due, _)| {
            due.duration_since(now).max(Duration::from_micros(100))
        });
        from.set_read_timeout(Some(next)).unwrap();
        let Ok((length, source)) = from.recv_from(&mut buffer) else {
            continue;
        };
        if to_listener {
            *shared.dialer.lock().unwrap() = Some(source);
        }
        let bytes = &buffer[..length];
        if !guard(to_listener, bytes) {
            continue;
        }
        if delay.is_zero() {
            send(shared, home, listener, to_listener, bytes);
        } else {
            way.push_back((Instant::now() + delay, bytes.to_vec()));
        }
        let mut copies = shared.copies.lock().unwrap();
        if copies.len() < COPIES {
            copies.push((to_listener, bytes.to_vec()));
        }
    }
}

impl Drop for Path {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}
