//! Communication between the threads of an emulator and the rest of the agent.

use narrows_sys::poll::Waker;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// State shared by the emulator and the rest of the agent while it runs.
#[derive(Debug)]
pub struct Control {
    /// Start of the run by `CLOCK_REALTIME`; 0 until it is known.
    start_ns: AtomicU64,
    stop: AtomicBool,
    /// Frames seen before the start, per host.
    warm: Vec<AtomicU64>,
    /// One for each thread.
    wakers: Vec<Waker>,
}

impl Control {
    /// The initial state for an emulator of `hosts` hosts with `threads` threads.
    pub fn new(hosts: usize, threads: usize) -> io::Result<Self> {
        let wakers = (0..threads).map(|_| Waker::new());
        Ok(Control {
            start_ns: AtomicU64::new(0),
            stop: AtomicBool::new(false),
            warm: (0..hosts).map(|_| AtomicU64::new(0)).collect(),
            wakers: wakers.collect::<io::Result<_>>()?,
        })
    }

    /// The start of the run, once it is known.
    pub(crate) fn started_at(&self) -> Option<u64> {
        let start_ns = self.start_ns.load(Ordering::Acquire);
        (start_ns > 0).then_some(start_ns)
    }

    /// A frame of `host` has reached the emulator before the start.
    pub(crate) fn warmed_up(&self, host: u16) {
        self.warm[usize::from(host)].fetch_add(1, Ordering::Release);
    }

    /// The waker of a thread.
    pub(crate) fn waker(&self, thread: usize) -> &Waker {
        &self.wakers[thread]
    }

    /// Announces that the run starts at `real_ns`.
    pub fn start(&self, real_ns: u64) {
        self.start_ns.store(real_ns, Ordering::Release);
        self.wake();
    }

    /// Aborts the run.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Release);
        self.wake();
    }

    /// Wakes the emulator to process the injections of its hooks.
    pub fn wake(&self) {
        self.wakers.iter().for_each(Waker::wake);
    }

    /// True if the run has been aborted.
    pub fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }

    /// True once frames of all hosts have reached the emulator.
    pub fn is_warm(&self) -> bool {
        self.cold().next().is_none()
    }

    /// Hosts whose frames have not reached the emulator yet.
    pub fn cold(&self) -> impl Iterator<Item = u16> + '_ {
        let hosts = (0..).zip(&self.warm);
        hosts.filter_map(|(host, count)| (count.load(Ordering::Acquire) == 0).then_some(host))
    }
}
