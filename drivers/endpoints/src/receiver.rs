//! Datagrams read from a socket, with the kernel's receive times.

use super::clock::RunClock;
use narrows_cell::{Context, RunError};
use narrows_sys::batched_udp::{Datagram, UdpReceiver};
use narrows_units::Time;
use std::io;
use std::os::fd::BorrowedFd;

/// The result of one read of a socket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ReceiveResult {
    /// Number of datagrams, including those after the end of the run.
    pub(super) count: usize,
    /// True if there may be more that arrived before the end.
    pub(super) more: bool,
}

/// Reads datagrams from the sockets of an endpoint until its end.
pub(super) struct DatagramReceiver {
    receiver: UdpReceiver,
    end: Time,
}

impl DatagramReceiver {
    /// A receiver of datagrams that the kernel has received before `end`.
    pub(super) fn new(end: Time) -> Self {
        DatagramReceiver {
            receiver: UdpReceiver::default(),
            end,
        }
    }

    /// Reads one batch of datagrams and passes each to `visit`, with its arrival time. Datagrams that arrived at the
    /// end or later are dropped: they are not part of the run, regardless of when the endpoint reads them.
    pub(super) fn receive(
        &mut self,
        fd: BorrowedFd,
        clock: &RunClock,
        mut visit: impl FnMut(Time, Datagram),
    ) -> Result<ReceiveResult, RunError> {
        let count = match self.receiver.receive(fd) {
            // The peer's socket does not exist yet, or any more, which does not concern this end.
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                return Ok(ReceiveResult {
                    count: 0,
                    more: true,
                });
            }
            other => other.could_not("receive datagrams")?,
        };
        let (mut over, mut first) = (false, None);
        for index in 0..count {
            let datagram = self.receiver.datagram(index);
            let at = datagram
                .stamp_ns
                .map_or_else(|| clock.now(), |stamp| clock.at_stamp(stamp));
            first.get_or_insert(at);
            if at < self.end {
                visit(at, datagram);
            } else {
                over = true;
            }
        }
        if let Some(first) = first {
            clock.look(first);
        }
        Ok(ReceiveResult {
            count,
            more: count == UdpReceiver::CAPACITY && !over,
        })
    }

    /// Returns and resets the known number of datagrams that the socket has dropped because its buffer was full, for a
    /// receiver that serves many sockets.
    pub(super) fn take_dropped(&mut self) -> u32 {
        self.receiver.take_dropped()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_sys::clock::{mono_ns, real_ns};
    use narrows_sys::socket;
    use std::net::UdpSocket;
    use std::os::fd::AsFd;
    use std::time::{Duration, Instant};

    /// Two connected sockets, and the run's clock.
    fn pair() -> (UdpSocket, UdpSocket, RunClock) {
        let socket = || UdpSocket::bind("127.0.0.1:0").unwrap();
        let (a, b) = (socket(), socket());
        a.connect(b.local_addr().unwrap()).unwrap();
        b.connect(a.local_addr().unwrap()).unwrap();
        b.set_nonblocking(true).unwrap();
        socket::prepare_udp(b.as_fd(), 1 << 20).unwrap();
        (a, b, RunClock::new(real_ns(), mono_ns()))
    }

    /// The kernel starts stamping shortly after the first socket has requested it; until then the stamp is the time of
    /// reading.
    fn wait_for_stamps(a: &UdpSocket, b: &UdpSocket, clock: &RunClock) {
        let begun = Instant::now();
        let mut receiver = DatagramReceiver::new(Time::FAR);
        loop {
            a.send(b"probe").unwrap();
            let sent = clock.now();
            std::thread::sleep(Duration::from_millis(5));
            let mut stamped = false;
            let half = narrows_units::Span::from_us(2500);
            let visit = |at, _: Datagram| stamped |= at < sent + half;
            receiver.receive(b.as_fd(), clock, visit).unwrap();
            if stamped {
                return;
            }
            assert!(begun.elapsed() < Duration::from_mins(1), "no stamps");
        }
    }

    #[test]
    fn all_that_came_before_the_end_is_taken_after_it_and_nothing_else() {
        let (a, b, clock) = pair();
        wait_for_stamps(&a, &b, &clock);
        let send = |count: u8| (0..count).for_each(|n| assert_eq!(a.send(&[n]).unwrap(), 1));
        let pause = || std::thread::sleep(Duration::from_millis(5));
        // More than one batch; the end is well between both groups.
        send(150);
        pause();
        let end = clock.now();
        pause();
        send(100);
        let mut receiver = DatagramReceiver::new(end);
        let mut taken = Vec::new();
        let mut found = ReceiveResult {
            count: 0,
            more: true,
        };
        let mut looks = 0;
        while found.more {
            found = receiver
                .receive(b.as_fd(), &clock, |at, datagram| {
                    assert!(at < end);
                    taken.push(datagram.bytes[0]);
                })
                .unwrap();
            looks += 1;
        }
        assert_eq!(taken, (0..150).collect::<Vec<u8>>());
        // The third batch contains the first late ones: then reading stops.
        assert_eq!(looks, 3);
        assert_eq!(receiver.take_dropped(), 0);
    }

    #[test]
    fn a_batch_that_is_not_full_was_all_there_was() {
        let (a, b, clock) = pair();
        let mut receiver = DatagramReceiver::new(Time::FAR);
        let mut look = || receiver.receive(b.as_fd(), &clock, |_, _| {}).unwrap();
        let nothing = ReceiveResult {
            count: 0,
            more: false,
        };
        assert_eq!(look(), nothing);
        (0..=UdpReceiver::CAPACITY).for_each(|_| assert_eq!(a.send(b"x").unwrap(), 1));
        assert_eq!((look().more, look().count), (true, 1));
        assert_eq!(look(), nothing);
        // An ICMP error for an earlier packet is not the end.
        drop(a);
        b.send(b"x").unwrap();
        let refused = look();
        assert!(refused.more && refused.count == 0);
        assert_eq!(look(), nothing);
    }
}
