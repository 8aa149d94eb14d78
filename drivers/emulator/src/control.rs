//! Words between the threads of an emulator and the rest of the agent.

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
    /// Nothing has been said yet to an emulator of so many hosts with so many threads.
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

    /// What wakes a thread.
    pub(crate) fn waker(&self, thread: usize) -> &Waker {
        &self.wakers[thread]
    }

    /// The run starts at `real_ns`.
    pub fn start(&self, real_ns: u64) {
        self.start_ns.store(real_ns, Ordering::Release);
        self.wake();
    }

    /// The run is given up.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Release);
        self.wake();
    }

    /// Lets the emulator look at what its hooks have for it.
    pub fn wake(&self) {
        self.wakers.iter().for_each(Waker::wake);
    }

    /// True if the run has been given up.
    pub fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }

    /// True once frames of all hosts have reached the emulator.
    pub fn is_warm(&self) -> bool {
        self.cold().next().is_none()
    }

    /// Hosts of which no frame has reached the emulator yet.
    pub fn cold(&self) -> impl Iterator<Item = u16> + '_ {
        let hosts = (0..).zip(&self.warm);
        hosts.filter_map(|(host, count)| (count.load(Ordering::Acquire) == 0).then_some(host))
    }
}
