//! Waiting: epoll with nanosecond timeouts, a waker, and signals as readable descriptors.

use super::{check, check_len};
use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::event::{EventfdFlags, Timespec, eventfd};
use rustix::io::Errno;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::time::Duration;

/// Descriptors reported per call.
const MAX_EVENTS: usize = 64;

/// A set of descriptors to wait for.
#[derive(Debug)]
pub struct Epoll(OwnedFd);

/// The keys of the descriptors that are ready.
pub struct Events(Vec<epoll::Event>);

impl std::fmt::Debug for Events {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.keys()).finish()
    }
}

impl Default for Events {
    fn default() -> Self {
        Events(Vec::with_capacity(MAX_EVENTS))
    }
}

impl Events {
    /// The keys given to [`Epoll::add`], for each ready descriptor.
    pub fn keys(&self) -> impl Iterator<Item = u64> + '_ {
        self.0.iter().map(|event| { event.data }.u64())
    }
}

impl Epoll {
    /// An empty set.
    pub fn new() -> io::Result<Self> {
        Ok(Epoll(epoll::create(CreateFlags::CLOEXEC)?))
    }

    /// Waits for `fd` to become readable (or to be hung up), reported as `key`.
    pub fn add(&self, fd: BorrowedFd, key: u64) -> io::Result<()> {
        Ok(epoll::add(
            &self.0,
            fd,
            EventData::new_u64(key),
            EventFlags::IN,
        )?)
    }

    /// Reports each change of `fd` once: it became readable or writable, or its peer has hung up.
    pub fn add_edges(&self, fd: BorrowedFd, key: u64) -> io::Result<()> {
        let events = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
        Ok(epoll::add(&self.0, fd, EventData::new_u64(key), events)?)
    }

    /// No longer waits for `fd`.
    pub fn remove(&self, fd: BorrowedFd) -> io::Result<()> {
        Ok(epoll::delete(&self.0, fd)?)
    }

    /// Waits until a descriptor is ready or `timeout` has passed (`None`: for ever). A signal ends the wait early
    /// without a ready descriptor.
    pub fn wait(&self, events: &mut Events, timeout: Option<Duration>) -> io::Result<()> {
        let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
        events.0.clear();
        match epoll::wait(&self.0, spare_capacity(&mut events.0), timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

/// Time to wait for an event that is due in `left` without being late: all of it only if it is short.
///
/// Linux lets waits with many descriptors end late by a thousandth of their length, and by a 250th for nice processes,
/// to save wake-ups (`select_estimate_accuracy` in fs/select.c), regardless of `PR_SET_TIMERSLACK`. After a first wait
/// that always ends early, a 200th remains.
pub fn punctual(left: Duration) -> Duration {
    const SHORT: Duration = Duration::from_millis(20);
    if left <= SHORT {
        left
    } else {
        left.mul_f64(0.995)
    }
}

/// A descriptor by which one thread wakes another out of [`Epoll::wait`].
#[derive(Debug)]
pub struct Waker(OwnedFd);

impl Waker {
    /// A waker that has not been used.
    pub fn new() -> io::Result<Self> {
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        Ok(Waker(eventfd(0, flags)?))
    }

    /// Wakes the waiting thread, now or later.
    pub fn wake(&self) {
        // The only failure is a full counter, which means that the waker is already set.
        let _ = rustix::io::write(&self.0, &1u64.to_ne_bytes());
    }

    /// Clears earlier wake-ups.
    pub fn clear(&self) {
        let _ = rustix::io::read(&self.0, &mut [0; 8]);
    }
}

impl AsFd for Waker {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Signals as data: they are blocked for the process and read from a descriptor.
#[derive(Debug)]
pub struct Signals(OwnedFd);

impl Signals {
    /// Blocks `signals` in the calling thread, and in all threads that it starts from now on.
    pub fn block(signals: &[libc::c_int]) -> io::Result<Self> {
        // SAFETY: the set is initialised by sigemptyset before use and outlives the calls.
        unsafe {
            let mut set: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&raw mut set);
            for &signal in signals {
                libc::sigaddset(&raw mut set, signal);
            }
            let error =
                libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut());
            if error != 0 {
                return Err(io::Error::from_raw_os_error(error));
            }
            let flags = libc::SFD_CLOEXEC | libc::SFD_NONBLOCK;
            Ok(Signals(OwnedFd::from_raw_fd(check(libc::signalfd(
                -1,
                &raw const set,
                flags,
            ))?)))
        }
    }

    /// The next signal that has arrived, if any.
    pub fn next(&self) -> Option<libc::c_int> {
        self.next_with_origin().map(|(signal, _)| signal)
    }

    /// The same, with true if a process has sent it; the kernel sends those of the terminal's keys
    /// to the whole group of processes in the foreground.
    pub fn next_with_origin(&self) -> Option<(libc::c_int, bool)> {
        // SAFETY: a zeroed signalfd_siginfo is valid, and writable for its size.
        unsafe {
            let mut info: libc::signalfd_siginfo = std::mem::zeroed();
            let size = size_of::<libc::signalfd_siginfo>();
            let read = check_len(libc::read(self.0.as_raw_fd(), (&raw mut info).cast(), size));
            (read.ok()? == size).then_some((
                info.ssi_signo as libc::c_int,
                info.ssi_code <= libc::SI_USER,
            ))
        }
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock;

    #[test]
    fn long_waits_end_in_time_however_much_the_kernel_adds() {
        for left in [1, 19, 21, 1_000, 20_000, 86_400_000] {
            let mut left = Duration::from_millis(left);
            let mut waits = 0;
            loop {
                let wait = punctual(left);
                let maximum = wait + wait / 250;
                waits += 1;
                if wait == left {
                    break;
                }
                assert!(maximum < left, "{maximum:?} of {left:?}");
                // The machine may also end it exactly at the requested time.
                left -= if waits % 2 == 0 { wait } else { maximum };
            }
            assert!(
                left <= Duration::from_millis(20) && waits <= 5,
                "{left:?} after {waits}"
            );
        }
    }

    #[test]
    fn waits_are_precise_and_wakers_wake() {
        let epoll = Epoll::new().unwrap();
        let waker = Waker::new().unwrap();
        epoll.add(waker.as_fd(), 7).unwrap();
        let mut events = Events::default();
        let start = clock::mono_ns();
        epoll
            .wait(&mut events, Some(Duration::from_micros(300)))
            .unwrap();
        assert!(clock::mono_ns() - start >= 300_000);
        assert_eq!(events.keys().count(), 0);
        waker.wake();
        epoll.wait(&mut events, None).unwrap();
        assert_eq!(events.keys().collect::<Vec<_>>(), [7]);
        waker.clear();
        epoll.wait(&mut events, Some(Duration::ZERO)).unwrap();
        assert_eq!(events.keys().count(), 0);
    }
}
