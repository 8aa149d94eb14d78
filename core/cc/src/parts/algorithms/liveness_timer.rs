//! The liveness timer of programs over datagrams: after a period without acknowledgements, one packet is sent
//! regardless of the window.

use crate::{AckEvent, LossEvent, SendEvent};
use narrows_units::{Bytes, Span, Time};

/// Watches for silence.
#[derive(Clone, Debug)]
pub struct LivenessTimer {
    timeout: Span,
    /// When a packet was last acknowledged or sent.
    last_activity: Time,
    in_flight: u64,
    /// A packet may be sent.
    may_exceed_cwnd: bool,
}

impl LivenessTimer {
    /// A timer with the period `after` that starts at `now`.
    pub fn new(after: Span, now: Time) -> Self {
        LivenessTimer {
            timeout: after,
            last_activity: now,
            in_flight: 0,
            may_exceed_cwnd: false,
        }
    }

    /// An acknowledgement arrived; sets the period to `after`.
    pub fn on_ack(&mut self, ack: &AckEvent<'_>, after: Span) {
        self.timeout = after;
        self.last_activity = ack.now;
        self.in_flight = ack.in_flight.get();
        self.may_exceed_cwnd = false;
    }

    /// Packets are no longer in flight.
    pub fn on_loss(&mut self, loss: &LossEvent<'_>) {
        self.in_flight = loss.in_flight.get().saturating_sub(loss.bytes.get());
    }

    /// A packet was sent.
    pub fn on_send(&mut self, send: &SendEvent) {
        self.last_activity = send.now;
        self.in_flight = send.in_flight.get();
        self.may_exceed_cwnd = false;
    }

    /// When the timer expires; never while nothing is in flight.
    pub fn timer(&self) -> Option<Time> {
        (self.in_flight > 0).then(|| self.last_activity + self.timeout)
    }

    /// Checks whether the timer has expired.
    pub fn on_timer(&mut self, now: Time) {
        if self.timer().is_some_and(|timer| timer <= now) {
            self.last_activity = now;
            self.may_exceed_cwnd = true;
        }
    }

    /// The window of a scheme that itself allows `window` bytes, with packets of `mss` bytes.
    pub fn cwnd(&self, window: u64, mss: u64) -> Bytes {
        let beyond = if self.may_exceed_cwnd {
            self.in_flight + mss
        } else {
            0
        };
        Bytes::new(window.max(beyond))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LossCause;

    fn at(ms: u64) -> Time {
        Time::from_ns(ms * 1_000_000)
    }

    fn send(ms: u64, in_flight: u64) -> SendEvent {
        let mut send = SendEvent::new(at(ms), 1, Bytes::new(1000));
        send.in_flight = Bytes::new(in_flight);
        send
    }

    #[test]
    fn one_packet_goes_after_each_silence() {
        let mut silence = LivenessTimer::new(Span::from_ms(50), at(0));
        assert_eq!(silence.timer(), None, "nothing is awaited");
        silence.on_send(&send(10, 4000));
        silence.on_timer(at(59));
        assert_eq!(silence.cwnd(2000, 1000), Bytes::new(2000));
        for (now, in_flight) in [(60, 4000), (110, 5000)] {
            assert_eq!(silence.timer(), Some(at(now)));
            silence.on_timer(at(now));
            assert_eq!(silence.cwnd(2000, 1000), Bytes::new(in_flight + 1000));
            assert_eq!(silence.cwnd(9000, 1000), Bytes::new(9000));
            silence.on_send(&send(now, in_flight + 1000));
            assert_eq!(silence.cwnd(2000, 1000), Bytes::new(2000));
        }
        let mut ack = AckEvent::new(at(150));
        ack.in_flight = Bytes::new(1000);
        silence.on_ack(&ack, Span::from_ms(80));
        assert_eq!(silence.timer(), Some(at(230)));
        let mut loss = LossEvent::new(at(160), LossCause::Timeout, Bytes::new(1000));
        loss.in_flight = Bytes::new(1000);
        silence.on_loss(&loss);
        assert_eq!(silence.timer(), None);
    }
}
