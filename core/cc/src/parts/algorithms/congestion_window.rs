//! The window of a loss-based scheme: slow start, additive increase, reduction and undo.

use crate::Setup;
use narrows_units::Bytes;

/// Minimum window after a loss, in packets (RFC 5681, equation 4).
const MIN_WINDOW: u64 = 2;

/// cwnd and ssthresh with the rules of RFC 5681, counting bytes (RFC 3465 without its limit on slow start, as Linux
/// does, so that stretch acknowledgements do not slow growth).
#[derive(Clone, Debug)]
pub struct CongestionWindow {
    mss: u64,
    /// Bytes as a real number: at large windows an acknowledgement contributes less than one byte of growth, which must
    /// not be lost to rounding. Whole numbers stay exact.
    cwnd: f64,
    ssthresh: u64,
    /// Bytes acknowledged in congestion avoidance not yet converted into growth.
    credit: u64,
    /// cwnd and ssthresh before the current epoch's reduction, to undo it.
    prior: Option<(f64, u64)>,
}

impl CongestionWindow {
    /// The initial window, threshold infinite.
    pub fn new(setup: &Setup) -> Self {
        CongestionWindow {
            mss: setup.mss.get(),
            cwnd: setup.initial_cwnd().get() as f64,
            ssthresh: u64::MAX,
            credit: 0,
            prior: None,
        }
    }

    /// Congestion window.
    #[inline]
    pub fn cwnd(&self) -> Bytes {
        Bytes::new(self.cwnd as u64)
    }

    /// Congestion window in packets.
    #[inline]
    pub fn packets(&self) -> f64 {
        self.cwnd / self.mss as f64
    }

    /// Payload bytes of a packet.
    #[inline]
    pub fn mss(&self) -> f64 {
        self.mss as f64
    }

    /// Slow-start threshold in packets; infinite until the first congestion event.
    #[inline]
    pub fn threshold(&self) -> f64 {
        if self.ssthresh == u64::MAX {
            f64::INFINITY
        } else {
            self.ssthresh as f64 / self.mss as f64
        }
    }

    /// Sets the threshold from packets (at least two).
    pub fn set_threshold(&mut self, packets: f64) {
        self.ssthresh = ((packets * self.mss as f64).round() as u64).max(MIN_WINDOW * self.mss);
    }

    /// Adds (or subtracts) `packets`, down to a minimum of one.
    #[inline]
    pub fn add(&mut self, packets: f64) {
        self.set_packets(self.packets() + packets);
    }

    /// Sets the window from packets (at least one).
    #[inline]
    pub fn set_packets(&mut self, packets: f64) {
        self.cwnd = (packets * self.mss as f64).max(self.mss as f64);
    }

    /// Slow-start threshold; `None` while infinite.
    pub fn ssthresh(&self) -> Option<Bytes> {
        (self.ssthresh != u64::MAX).then(|| Bytes::new(self.ssthresh))
    }

    /// True if slow start is running (RFC 5681: cwnd below ssthresh).
    #[inline]
    pub fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh as f64
    }

    /// Grows exponentially by `bytes`, not beyond ssthresh; returns the bytes left for congestion avoidance.
    #[inline]
    pub fn slow_start(&mut self, bytes: u64) -> u64 {
        let growth = bytes.min(self.ssthresh.saturating_sub(self.cwnd as u64));
        self.cwnd += growth as f64;
        bytes - growth
    }

    /// Grows by one packet for each `per_packet` bytes acknowledged (Reno: a window's worth).
    #[inline]
    pub fn additive_increase(&mut self, bytes: u64, per_packet: u64) {
        if self.credit >= per_packet {
            // The window has shrunk since the credit was earned: one packet is due at once.
            self.credit = 0;
            self.cwnd += self.mss as f64;
        }
        self.credit += bytes;
        if self.credit >= per_packet {
            self.cwnd += (self.credit / per_packet * self.mss) as f64;
            self.credit %= per_packet;
        }
    }

    /// Ends slow start here.
    pub fn exit_slow_start(&mut self) {
        self.ssthresh = self.cwnd as u64;
    }

    /// Reduces to `target` bytes (at least two packets), saving the state for an undo.
    pub fn reduce(&mut self, target: u64) {
        self.prior = Some((self.cwnd, self.ssthresh));
        self.ssthresh = target.max(MIN_WINDOW * self.mss);
        self.cwnd = self.ssthresh as f64;
        self.credit = 0;
    }

    /// As [`CongestionWindow::reduce`], but restarts from one packet (RFC 5681, section 3.1).
    pub fn restart(&mut self, target: u64) {
        self.reduce(target);
        self.cwnd = self.mss as f64;
    }

    /// Restarts from one packet without changing the threshold (a timeout of data that had timed out before).
    pub fn restart_again(&mut self) {
        self.cwnd = self.mss as f64;
        self.credit = 0;
    }

    /// Undoes the last reduction.
    pub fn undo(&mut self) {
        if let Some((cwnd, ssthresh)) = self.prior.take() {
            self.cwnd = self.cwnd.max(cwnd);
            self.ssthresh = ssthresh;
        }
    }
}
