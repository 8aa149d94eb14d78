//! Pacing with a bounded burst.

use narrows_units::{Bytes, Rate, Span, Time};

/// Spaces packets at a rate. A delayed sender may catch up by one burst, no more.
///
/// A scheme may set a smaller burst, down to zero. That applies to packets held back by the window or the application:
/// a packet that waited only for the pacer and left late because the machine woke up late does not delay those behind
/// it, or the rate on a real machine would be lower than in simulation.
#[derive(Clone, Debug)]
pub(crate) struct Pacer {
    /// When the next packet is due at the current rate.
    next_send: Time,
    /// The last packet, and the start of its transmission time.
    last_bytes: Bytes,
    last_begin: Time,
    burst: Span,
    min_burst: Bytes,
    /// The next packet waits only for the pacer.
    pacing_limited: bool,
    /// The window was full, and the next packet's transmission time has not begun.
    awaits_cwnd: bool,
}

impl Pacer {
    /// A pacer whose bursts last `burst` at the rate, but are never smaller than `min_burst` bytes.
    pub(crate) fn new(burst: Span, min_burst: Bytes) -> Self {
        Pacer {
            next_send: Time::ZERO,
            last_bytes: Bytes::ZERO,
            last_begin: Time::ZERO,
            burst,
            min_burst,
            pacing_limited: false,
            awaits_cwnd: false,
        }
    }

    /// When the next packet may be sent.
    #[inline]
    pub(crate) fn next_send(&self) -> Time {
        self.next_send
    }

    /// Sets whether the next packet waits only for the pacer.
    #[inline]
    pub(crate) fn set_pacing_limited(&mut self, held: bool) {
        self.pacing_limited = held;
    }

    /// True if the next packet waits only for the pacer.
    pub(crate) fn is_pacing_limited(&self) -> bool {
        self.pacing_limited
    }

    /// The window is full: the transmission time of the next packet begins when there is room.
    #[inline]
    pub(crate) fn wait_for_cwnd(&mut self) {
        self.awaits_cwnd = true;
    }

    /// The window has room for a packet of `bytes` at `now`.
    #[inline]
    pub(crate) fn on_cwnd_available(&mut self, now: Time, bytes: Bytes, rate: Rate) {
        if std::mem::take(&mut self.awaits_cwnd) {
            (self.last_bytes, self.last_begin) = (bytes, now);
            self.next_send = now + rate.time_for(bytes);
        }
    }

    /// `bytes` are sent at `now` while `rate` is in force; `quantum` is the scheme's own burst.
    #[inline]
    pub(crate) fn on_sent(&mut self, now: Time, bytes: Bytes, rate: Rate, quantum: Option<Bytes>) {
        let ours = || self.burst.max(rate.time_for(self.min_burst));
        // Bytes that may be sent at once: a burst, less the packet in transmission.
        let burst = match quantum {
            Some(quantum) if self.pacing_limited => rate.time_for(quantum).max(ours()),
            Some(quantum) => rate.time_for(quantum),
            None => ours(),
        }
        .saturating_sub(rate.time_for(bytes));
        self.pacing_limited = false;
        self.last_bytes = bytes;
        self.last_begin = self.next_send.max(now - burst);
        self.next_send = self.last_begin + rate.time_for(bytes);
    }

    /// `rate` applies from the last packet on.
    #[inline]
    pub(crate) fn apply_rate_now(&mut self, rate: Rate) {
        self.next_send = self.last_begin + rate.time_for(self.last_bytes);
        // A packet that may leave now is not late.
        self.pacing_limited = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: Rate = Rate::from_bps(8_000_000); // 1 byte per microsecond

    fn send_all(pacer: &mut Pacer, now: Time) -> u32 {
        let mut count = 0;
        while pacer.next_send() <= now {
            pacer.on_sent(now, Bytes::new(1000), RATE, None);
            count += 1;
        }
        count
    }

    #[test]
    fn the_first_packets_are_one_burst_and_then_the_rate_holds() {
        let mut pacer = Pacer::new(Span::ZERO, Bytes::new(2000));
        let start = Time::from_ns(50_000_000);
        assert_eq!(send_all(&mut pacer, start), 2);
        let mut count = 0;
        for us in 1..=100_000u64 {
            count += send_all(&mut pacer, start + Span::from_us(us));
        }
        assert_eq!(count, 100);
    }

    /// Packets sent in 100 ms with no burst at one packet per ms, if the machine wakes up `late_us` after each is due.
    fn without_bursts(held: bool, late_us: u64) -> u32 {
        let mut pacer = Pacer::new(Span::from_ms(1), Bytes::new(2000));
        let packet = Bytes::new(1000);
        let mut now = Time::from_ns(1_000_000_000);
        let end = now + Span::from_ms(100);
        let mut count = 0;
        while now < end {
            pacer.set_pacing_limited(held && count > 0);
            pacer.on_sent(now, packet, RATE, Some(packet));
            count += 1;
            now = now.max(pacer.next_send()) + Span::from_us(late_us);
        }
        count
    }

    #[test]
    fn late_wake_ups_cost_no_rate_and_what_was_not_there_is_not_made_up_for() {
        assert_eq!(without_bursts(true, 0), 100);
        assert_eq!(without_bursts(true, 100), 100);
        // The time of one packet can be caught up, and three are lost.
        assert_eq!(without_bursts(true, 4000), 25);
        assert_eq!(without_bursts(false, 0), 100);
        // A packet every 1.1 ms.
        assert_eq!(without_bursts(false, 100), 91);
    }

    #[test]
    fn another_rate_may_count_from_the_last_packet_on() {
        let mut pacer = Pacer::new(Span::from_ms(1), Bytes::new(2000));
        let packet = Bytes::new(1000);
        let at = |us: u64| Time::ZERO + Span::from_us(us);
        pacer.apply_rate_now(RATE);
        assert_eq!(pacer.next_send(), Time::ZERO, "no last packet exists");
        pacer.on_sent(at(5_000), packet, RATE, Some(packet));
        assert_eq!(pacer.next_send(), at(6_000));
        // A tenth of the rate, and twice.
        pacer.apply_rate_now(Rate::from_bps(RATE.bps() / 10));
        assert_eq!(pacer.next_send(), at(15_000));
        pacer.set_pacing_limited(true);
        pacer.apply_rate_now(Rate::from_bps(RATE.bps() * 2));
        assert_eq!(pacer.next_send(), at(5_500));
        // It left when it was allowed to, not late: there is nothing to catch up.
        pacer.on_sent(at(5_900), packet, RATE, Some(packet));
        assert_eq!(pacer.next_send(), at(6_900));
    }

    #[test]
    fn after_a_full_window_the_time_of_a_packet_begins_anew() {
        let mut pacer = Pacer::new(Span::from_ms(1), Bytes::new(2000));
        let packet = Bytes::new(1000);
        let at = |us: u64| Time::ZERO + Span::from_us(us);
        pacer.on_sent(at(5_000), packet, RATE, Some(packet));
        pacer.on_cwnd_available(at(5_100), packet, RATE);
        assert_eq!(pacer.next_send(), at(6_000), "there was room all the time");
        pacer.wait_for_cwnd();
        pacer.on_cwnd_available(at(9_000), packet, RATE);
        assert_eq!(pacer.next_send(), at(10_000));
        // A new rate also applies from then on.
        pacer.apply_rate_now(Rate::from_bps(RATE.bps() * 2));
        assert_eq!(pacer.next_send(), at(9_500));
        pacer.on_cwnd_available(at(9_400), packet, RATE);
        assert_eq!(pacer.next_send(), at(9_500), "it has been open since");
    }

    #[test]
    fn a_pause_is_not_made_up_for() {
        let mut pacer = Pacer::new(Span::from_ms(5), Bytes::new(2000));
        send_all(&mut pacer, Time::from_ns(1_000_000_000));
        assert_eq!(send_all(&mut pacer, Time::from_ns(9_000_000_000)), 5);
    }
}
