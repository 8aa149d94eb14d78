//! A scheme wrapper with a coarse clock, as in programs that count whole milliseconds.

use crate::parts::StepClock;
use crate::parts::actions::ActionSpace;
use crate::{
    AckEvent, AckedPacket, Allowance, CongestionControl, EcnEvent, Fields, HeardSends, LossEvent,
    LostPacket, SendEvent, SpuriousLossEvent,
};
use narrows_units::{Span, Time};

/// A scheme that reads all times from a coarse clock.
///
/// Times are rounded down; the RTT is the difference of two rounded times, as in programs that stamp their packets with
/// such a clock, and may be zero. Delivery-rate samples are computed by the transport and stay exact.
pub struct CoarseClock {
    scheme: Box<dyn CongestionControl>,
    clock: StepClock,
    min_rtt: Option<Span>,
    /// Copies with rounded times; kept for their capacity.
    packets: Vec<AckedPacket>,
    lost: Vec<LostPacket>,
}

impl CoarseClock {
    /// Wraps `scheme` with a clock of granularity `step` (at least 1 ns).
    pub fn new(scheme: Box<dyn CongestionControl>, step: Span) -> Self {
        CoarseClock {
            scheme,
            clock: StepClock::new(step),
            min_rtt: None,
            packets: Vec::with_capacity(64),
            lost: Vec::with_capacity(64),
        }
    }

    /// The event in this clock's time, except for its packets and the latest RTT.
    fn coarse<'a>(&self, ack: &AckEvent<'a>) -> AckEvent<'a> {
        AckEvent {
            now: self.clock.read(ack.now),
            smoothed_rtt: self.clock.span(ack.smoothed_rtt),
            min_rtt: self.min_rtt.unwrap_or(self.clock.span(ack.min_rtt)),
            ..ack.clone()
        }
    }
}

impl CongestionControl for CoarseClock {
    fn on_ack(&mut self, ack: &AckEvent<'_>) {
        let mut packets = std::mem::take(&mut self.packets);
        packets.clear();
        packets.extend(ack.packets.iter().map(|packet| AckedPacket {
            sent: self.clock.read(packet.sent),
            arrived: packet.arrived.map(|at| self.clock.read(at)),
            ..*packet
        }));
        let now = self.clock.read(ack.now);
        let newest = packets.last().map(|packet| now.since(packet.sent));
        let latest_rtt = ack
            .latest_rtt
            .map(|rtt| newest.unwrap_or(self.clock.span(rtt)));
        if let Some(rtt) = latest_rtt {
            self.min_rtt = Some(self.min_rtt.map_or(rtt, |least| least.min(rtt)));
        }
        self.scheme.on_ack(&AckEvent {
            packets: &packets,
            latest_rtt,
            ..self.coarse(ack)
        });
        self.packets = packets;
    }

    fn needs_caller(&self) -> bool {
        self.scheme.needs_caller()
    }

    fn decide_outside(&mut self) -> bool {
        self.scheme.decide_outside()
    }

    fn observation(&self) -> Option<&[f32]> {
        self.scheme.observation()
    }

    fn take_action(&mut self, action: &[f32]) {
        self.scheme.take_action(action);
    }

    fn action_space(&self) -> Vec<ActionSpace> {
        self.scheme.action_space()
    }

    fn choose_action(&mut self, inputs: &[f32], action: &mut Vec<f32>) {
        self.scheme.choose_action(inputs, action);
    }

    fn on_duplicate(&mut self, ack: &AckEvent<'_>) {
        self.scheme.on_duplicate(&self.coarse(ack));
    }

    fn on_loss(&mut self, loss: &LossEvent<'_>) {
        let mut lost = std::mem::take(&mut self.lost);
        lost.clear();
        lost.extend(loss.lost.iter().map(|packet| LostPacket {
            sent: self.clock.read(packet.sent),
            ..*packet
        }));
        self.scheme.on_loss(&LossEvent {
            now: self.clock.read(loss.now),
            lost: &lost,
            newest_sent: self.clock.read(loss.newest_sent),
            smoothed_rtt: self.clock.span(loss.smoothed_rtt),
            ..loss.clone()
        });
        self.lost = lost;
    }

    fn allowance(&self) -> Allowance {
        self.scheme.allowance()
    }

    fn on_send(&mut self, send: &SendEvent) {
        let now = self.clock.read(send.now);
        let idle = send.idle.map(|idle| self.clock.span(idle));
        self.scheme.on_send(&SendEvent {
            now,
            idle,
            ..send.clone()
        });
    }

    fn heard_sends(&self) -> HeardSends {
        self.scheme.heard_sends()
    }

    fn on_ecn(&mut self, ecn: &EcnEvent) {
        let now = self.clock.read(ecn.now);
        self.scheme.on_ecn(&EcnEvent { now, ..ecn.clone() });
    }

    fn on_spurious_loss(&mut self, spurious: &SpuriousLossEvent) {
        let now = self.clock.read(spurious.now);
        self.scheme.on_spurious_loss(&SpuriousLossEvent {
            now,
            ..spurious.clone()
        });
    }

    fn on_recovery_exit(&mut self, now: Time) {
        self.scheme.on_recovery_exit(self.clock.read(now));
    }

    fn next_timer(&self) -> Option<Time> {
        // Rounded up: a timer that fires early by the scheme's clock would be requested again at once.
        let timer = self.scheme.next_timer()?;
        Some(self.clock.reached(timer))
    }

    fn on_timer(&mut self, now: Time) {
        self.scheme.on_timer(self.clock.read(now));
    }

    fn holds_back(&self) -> bool {
        self.scheme.holds_back()
    }

    fn trace(&self, fields: &mut Fields) {
        self.scheme.trace(fields);
    }
}

// The scheme under test shares its log with the test.
#[cfg(test)]
mod tests {
    #![allow(clippy::disallowed_types)]

    use super::*;
    use narrows_units::Bytes;
    use std::sync::{Arc, Mutex};

    #[derive(Default)]
    struct SeenTimes {
        now: Vec<u64>,
        rtt: Vec<Option<u64>>,
        min: Vec<u64>,
    }

    struct Ear(Arc<Mutex<SeenTimes>>, Time);

    impl CongestionControl for Ear {
        fn on_ack(&mut self, ack: &AckEvent<'_>) {
            let mut heard = self.0.lock().unwrap();
            heard.now.push(ack.now.ns());
            heard.rtt.push(ack.latest_rtt.map(Span::ns));
            heard.min.push(ack.min_rtt.ns());
        }
        fn on_loss(&mut self, _: &LossEvent<'_>) {}
        fn allowance(&self) -> Allowance {
            Allowance {
                cwnd: Some(Bytes::new(1)),
                ..Allowance::default()
            }
        }
        fn next_timer(&self) -> Option<Time> {
            Some(self.1)
        }
        fn on_timer(&mut self, now: Time) {
            self.0.lock().unwrap().now.push(now.ns());
        }
    }

    #[test]
    fn round_trips_are_differences_of_whole_steps() {
        let heard = Arc::new(Mutex::new(SeenTimes::default()));
        let ear = Box::new(Ear(heard.clone(), Time::from_ns(2_000_001)));
        let mut clock = CoarseClock::new(ear, Span::from_ms(1));
        for (sent, now) in [(900_000, 1_100_000), (1_000_000, 1_900_000)] {
            let packets = [AckedPacket {
                number: 1,
                bytes: 1,
                sent: Time::from_ns(sent),
                arrived: None,
            }];
            let mut ack = AckEvent::new(Time::from_ns(now));
            ack.latest_rtt = Some(Span::from_ns(now - sent));
            ack.min_rtt = Span::from_ns(200_000);
            ack.packets = &packets;
            clock.on_ack(&ack);
        }
        {
            let heard = heard.lock().unwrap();
            assert_eq!(heard.now, [1_000_000, 1_000_000]);
            // 0.2 ms across a step boundary count as one step; 0.9 ms within a step as none.
            assert_eq!(heard.rtt, [Some(1_000_000), Some(0)]);
            assert_eq!(heard.min, [1_000_000, 0]);
        }
        // Woken when the clock shows the requested time or later.
        let timer = clock.next_timer().unwrap();
        assert_eq!(timer, Time::from_ns(3_000_000));
        clock.on_timer(timer);
        assert_eq!(heard.lock().unwrap().now.last(), Some(&3_000_000));
        assert_eq!(
            CoarseClock::new(Box::new(Ear(heard, Time::FAR)), Span::from_ms(1)).next_timer(),
            Some(Time::FAR)
        );
    }
}
