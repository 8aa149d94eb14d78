//! Pacing with a bounded burst.

use narrows_units::{Bytes, Rate, Span, Time};

/// Spreads packets at a rate. A sender that was held up may catch up by one burst, not more.
///
/// A scheme may allow itself less than such a burst, down to none. That is about packets that window or application
/// kept back: a packet that waited for its time alone and went late because the machine woke up late does not
/// put off the ones behind it, or the rate would be less on a machine than in simulation.
#[derive(Clone, Debug)]
pub(crate) struct Pacer {
    /// When the next packet is due at the current rate.
    due: Time,
    /// The last packet, and from when on it uses up its time.
    last: Bytes,
    from: Time,
    burst: Span,
    min_burst: Bytes,
    /// The next packet waits for its time and for nothing else.
    held: bool,
    /// The window had no room, and the next packet's time has not begun.
    shut: bool,
}

impl Pacer {
    /// A pacer whose bursts last `burst` at the rate, but never less than `min_burst` bytes.
    pub(crate) fn new(burst: Span, min_burst: Bytes) -> Self {
        Pacer {
            due: Time::ZERO,
            last: Bytes::ZERO,
            from: Time::ZERO,
            burst,
            min_burst,
            held: false,
            shut: false,
        }
    }

    /// When the next packet may be sent.
    #[inline]
    pub(crate) fn due(&self) -> Time {
        self.due
    }

    /// Tells whether the next packet waits for its time and for nothing else.
    #[inline]
    pub(crate) fn hold(&mut self, held: bool) {
        self.held = held;
    }

    /// Whether that was told since the last packet.
    pub(crate) fn is_held(&self) -> bool {
        self.held
    }

    /// The window has no room: the time of the next packet begins when it has some.
    #[inline]
    pub(crate) fn shut(&mut self) {
        self.shut = true;
    }

    /// The window has room for a packet of `bytes` at `now`.
    #[inline]
    pub(crate) fn open(&mut self, now: Time, bytes: Bytes, rate: Rate) {
        if std::mem::take(&mut self.shut) {
            (self.last, self.from) = (bytes, now);
            self.due = now + rate.time_for(bytes);
        }
    }

    /// `bytes` are sent at `now` while `rate` is in force; `quantum` is the scheme's own burst.
    #[inline]
    pub(crate) fn sent(&mut self, now: Time, bytes: Bytes, rate: Rate, quantum: Option<Bytes>) {
        let ours = || self.burst.max(rate.time_for(self.min_burst));
        // What may be sent at once: a burst, less the packet whose time is being used up.
        let burst = match quantum {
            Some(quantum) if self.held => rate.time_for(quantum).max(ours()),
            Some(quantum) => rate.time_for(quantum),
            None => ours(),
        }
        .saturating_sub(rate.time_for(bytes));
        self.held = false;
        self.last = bytes;
        self.from = self.due.max(now - burst);
        self.due = self.from + rate.time_for(bytes);
    }

    /// `rate` counts from the last packet on.
    #[inline]
    pub(crate) fn hasten(&mut self, rate: Rate) {
        self.due = self.from + rate.time_for(self.last);
        // Who may go now has not been late.
        self.held = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: Rate = Rate::from_bps(8_000_000); // 1 byte per microsecond

    fn send_all(pacer: &mut Pacer, now: Time) -> u32 {
        let mut count = 0;
        while pacer.due() <= now {
            pacer.sent(now, Bytes::new(1000), RATE, None);
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

    /// Packets without any burst in 100 ms at a packet per ms, when the machine wakes up `late_us` after each is due.
    fn without_bursts(held: bool, late_us: u64) -> u32 {
        let mut pacer = Pacer::new(Span::from_ms(1), Bytes::new(2000));
        let packet = Bytes::new(1000);
        let mut now = Time::from_ns(1_000_000_000);
        let end = now + Span::from_ms(100);
        let mut count = 0;
        while now < end {
            pacer.hold(held && count > 0);
            pacer.sent(now, packet, RATE, Some(packet));
            count += 1;
            now = now.max(pacer.due()) + Span::from_us(late_us);
        }
        count
    }

    #[test]
    fn late_wake_ups_cost_no_rate_and_what_was_not_there_is_not_made_up_for() {
        assert_eq!(without_bursts(true, 0), 100);
        assert_eq!(without_bursts(true, 100), 100);
        // The time of one packet can be made up for, and three are gone.
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
        pacer.hasten(RATE);
        assert_eq!(pacer.due(), Time::ZERO, "there is no last packet");
        pacer.sent(at(5_000), packet, RATE, Some(packet));
        assert_eq!(pacer.due(), at(6_000));
        // A tenth of the rate, and twice.
        pacer.hasten(Rate::from_bps(RATE.bps() / 10));
        assert_eq!(pacer.due(), at(15_000));
        pacer.hold(true);
        pacer.hasten(Rate::from_bps(RATE.bps() * 2));
        assert_eq!(pacer.due(), at(5_500));
        // It went when it was allowed to, not late: nothing is made up for.
        pacer.sent(at(5_900), packet, RATE, Some(packet));
        assert_eq!(pacer.due(), at(6_900));
    }

    #[test]
    fn after_a_full_window_the_time_of_a_packet_begins_anew() {
        let mut pacer = Pacer::new(Span::from_ms(1), Bytes::new(2000));
        let packet = Bytes::new(1000);
        let at = |us: u64| Time::ZERO + Span::from_us(us);
        pacer.sent(at(5_000), packet, RATE, Some(packet));
        pacer.open(at(5_100), packet, RATE);
        assert_eq!(pacer.due(), at(6_000), "there was room all the time");
        pacer.shut();
        pacer.open(at(9_000), packet, RATE);
        assert_eq!(pacer.due(), at(10_000));
        // Another rate counts from then on too.
        pacer.hasten(Rate::from_bps(RATE.bps() * 2));
        assert_eq!(pacer.due(), at(9_500));
        pacer.open(at(9_400), packet, RATE);
        assert_eq!(pacer.due(), at(9_500), "it has been open since");
    }

    #[test]
    fn a_pause_is_not_made_up_for() {
        let mut pacer = Pacer::new(Span::from_ms(5), Bytes::new(2000));
        send_all(&mut pacer, Time::from_ns(1_000_000_000));
        assert_eq!(send_all(&mut pacer, Time::from_ns(9_000_000_000)), 5);
    }
}
