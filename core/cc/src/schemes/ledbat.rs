//! LEDBAT: a background transport that keeps the queue at a target delay and yields to everyone else.
//!
//! Provenance: RFC 6817 (December 2012). Deviations: the timeout is the transport's (the RFC has its own, CTO, with the
//! same outcome: one packet, and twice the time); the window is constant during a recovery, which uses Proportional
//! Rate Reduction (RFC 6937); marks count as losses, as the RFC requires, though packets are not ECN-capable unless
//! `transport: {ecn: true}`.
//!
//! The one-way delay of each packet comes from the receiver's clock, whose offset cancels out: only the difference to
//! the minimum delay of the last ten minutes counts. The window changes by gain times the distance from the target, at
//! most one packet per round trip. It has no slow start, so a long path fills slowly: from two packets, one more per
//! round trip.
//!
//! Pitfalls. A later flow mistakes the queue of the first for the path's base delay and adds its own target on top: the
//! latecomer wins, until the first lets the queue drain. If the buffer is shorter than the target the scheme runs into
//! losses and behaves like Reno. Of flows with different targets the one with the largest takes everything. Between
//! machines whose clocks drift the base delay is wrong by the drift of ten minutes; `delay: round-trip` avoids the
//! clocks but includes the queue of the return path.

use crate::parts::{CurrentDelays, BaseDelays};
use crate::{
    AckEvent, Allowance, CongestionControl, EcnEvent, Fields, LossCause, LossEvent,
    Scheme, SendEvent, Setup, SpuriousLossEvent,
};
use narrows_units::{Bytes, ParamError, Params, Span, choice, params};

/// Registry entry.
pub const SCHEME: Scheme = Scheme {
    name: "ledbat",
    summary: "Background transport: holds the queueing delay at 100 ms and yields to the rest",
    source: "RFC 6817",
    params: LedbatParams::PARAMS,
    build,
    ..super::reno::SCHEME
};

choice! {
    /// Delay that is controlled to the target.
    enum DelayChoice { OneWay = "one-way", RoundTrip = "round-trip" }
}

params! {
    /// Parameters.
    struct LedbatParams {
        /// Queueing delay to hold.
        target: Span(1e6..=1e10) = "100 ms", "RFC 6817, section 3.3: at most 100 ms";
        /// Packets per round trip far below the target.
        gain: Number(0.001..=100.0) = 1, "RFC 6817, section 2.5: at most 1";
        /// Packets by which the window may exceed the data in flight.
        allowed_increase: Number(0.01..=100.0) = 1, "RFC 6817, section 2.5";
        /// Initial window.
        init_cwnd: Packets(1.0..=1000.0) = 2, "RFC 6817, section 2.5";
        /// Minimum window except after a timeout.
        min_cwnd: Packets(1.0..=1000.0) = 2, "RFC 6817, section 2.5";
        /// Minutes over which the minimum delay is the path's base delay.
        base_history: Count(1.0..=1000.0) = 10, "RFC 6817, section 2.5: minutes";
        /// Samples whose minimum is the current delay.
        filter: Count(1.0..=1000.0) = 4,
            "RFC 6817, section 2.5: the smallest of at least four samples, not older than a round trip";
        /// Delay that is controlled to the target.
        delay: DelayChoice = "one-way", "RFC 6817, section 2.1; round-trip if the receiver reports no times";
    }
}

fn build(params: &Params, setup: Setup) -> Result<Box<dyn CongestionControl>, ParamError> {
    let mss = setup.mss.get() as f64;
    let params = LedbatParams::read(params);
    Ok(Box::new(Ledbat {
        mss,
        target: params.target.ns() as f64,
        allowed_increase: params.allowed_increase * mss,
        min_cwnd: params.min_cwnd * mss,
        cwnd: params.init_cwnd * mss,
        flown: 0.0,
        prior: None,
        base: BaseDelays::new(params.base_history as usize, MINUTE),
        current: CurrentDelays::new(params.filter as usize),
        params,
        queueing: None,
    }))
}

/// Span of one entry of the history (RFC 6817, section 2.4.2).
const MINUTE: Span = Span::from_ms(60_000);

/// Windows in bytes, delays in ns.
struct Ledbat {
    params: LedbatParams,
    mss: f64,
    target: f64,
    allowed_increase: f64,
    min_cwnd: f64,
    cwnd: f64,
    /// Bytes in flight after the last packet was sent, less losses since.
    flown: f64,
    /// Window before the last reduction, to undo it.
    prior: Option<f64>,
    base: BaseDelays,
    current: CurrentDelays,
    /// Estimated queueing delay; `None` before the first sample.
    queueing: Option<f64>,
}

impl Ledbat {
    fn sample(&mut self, ack: &AckEvent<'_>) {
        let mut take = |delay: i64| {
            self.base.update(ack.now, delay);
            self.current.push(ack.now, delay);
        };
        if self.params.delay == DelayChoice::OneWay {
            for packet in ack.packets {
                if let Some(arrived) = packet.arrived {
                    // A difference between both clocks, with an arbitrary offset.
                    take(arrived.ns().wrapping_sub(packet.sent.ns()) as i64);
                }
            }
        } else if let Some(rtt) = ack.latest_rtt {
            take(rtt.ns() as i64);
        }
        let current = self.current.min(ack.now, ack.smoothed_rtt);
        if let (Some(current), Some(base)) = (current, self.base.min()) {
            self.queueing = Some(current.saturating_sub(base) as f64);
        }
    }

    fn reduce(&mut self) {
        self.prior = Some(self.cwnd);
        self.cwnd = self.cwnd.min((self.cwnd / 2.0).max(self.min_cwnd));
    }
}

impl CongestionControl for Ledbat {
    fn on_ack(&mut self, ack: &AckEvent<'_>) {
        self.sample(ack);
        let Some(queueing) = self.queueing else {
            return;
        };
        if ack.in_recovery {
            return;
        }
        let off_target = (self.target - queueing) / self.target;
        let acked = ack.bytes.get() as f64;
        self.cwnd += self.params.gain * off_target * acked * self.mss / self.cwnd;
        // An application that sends little does not let the window grow beyond what it uses. Acknowledgements processed
        // together each see less in flight, because nothing could be sent between them: that is not an application
        // limit.
        let before = ack.in_flight_before.get() as f64;
        let flight = if ack.cwnd_limited { before.max(self.flown) } else { before };
        let used = flight + self.allowed_increase;
        self.cwnd = self.cwnd.min(used).max(self.min_cwnd);
    }

    fn on_send(&mut self, send: &SendEvent) {
        self.flown = send.in_flight.get() as f64;
    }

    fn on_loss(&mut self, loss: &LossEvent<'_>) {
        self.flown = (self.flown - loss.bytes.get() as f64).max(0.0);
        match loss.cause {
            LossCause::Reordering if loss.new_epoch => self.reduce(),
            LossCause::Reordering => {}
            LossCause::Timeout | LossCause::Persistent => {
                if loss.new_epoch {
                    self.prior = Some(self.cwnd);
                }
                self.cwnd = self.mss;
            }
        }
    }

    fn on_ecn(&mut self, ecn: &EcnEvent) {
        if ecn.new_epoch {
            self.reduce();
        }
    }

    fn on_spurious_loss(&mut self, _: &SpuriousLossEvent) {
        if let Some(prior) = self.prior.take() {
            self.cwnd = self.cwnd.max(prior);
        }
    }

    fn allowance(&self) -> Allowance {
        Allowance { cwnd: Some(Bytes::new(self.cwnd as u64)), ..Allowance::default() }
    }

    fn trace(&self, fields: &mut Fields) {
        fields.mode = "avoidance";
        if let Some(queueing) = self.queueing {
            fields.values.push(("queueing_delay_ms", queueing / 1e6));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::AckedPacket;
    use crate::testing::{MSS, setup};
    use narrows_units::Time;

    /// A peer whose clock is an hour slow.
    struct Peer {
        scheme: Box<dyn CongestionControl>,
        now: Time,
        number: u64,
        in_flight: Option<u64>,
        limited: bool,
    }

    const BASE_MS: u64 = 20;

    impl Peer {
        fn new(given: &[(&str, &str)]) -> Self {
            let given = given.iter().map(|(name, text)| {
                let spec = SCHEME.params.iter().find(|spec| spec.name == *name).unwrap();
                ((*name).to_owned(), spec.parse(text).unwrap())
            });
            let params = Params::resolve(SCHEME.params, given).unwrap();
            let scheme = super::build(&params, setup()).unwrap();
            let now = Time::ZERO + Span::from_ms(5_000_000);
            Peer { scheme, now, number: 0, in_flight: None, limited: false }
        }

        fn cwnd(&self) -> f64 {
            self.scheme.allowance().cwnd.unwrap().get() as f64 / MSS as f64
        }

        /// Acknowledges a packet that was queued for `queue_ms`.
        fn ack(&mut self, queue_ms: u64) {
            self.number += 1;
            self.now += Span::from_ms(1);
            let delay = Span::from_ms(BASE_MS + queue_ms);
            let sent = self.now - Span::from_ms(2 * BASE_MS + queue_ms);
            let packets = [AckedPacket {
                number: self.number,
                bytes: MSS as u32,
                sent,
                arrived: Some(sent + delay - Span::from_ms(3_600_000)),
            }];
            let mut ack = AckEvent::new(self.now);
            ack.packets = &packets;
            ack.bytes = Bytes::new(MSS);
            ack.latest_rtt = Some(self.now.since(sent));
            ack.smoothed_rtt = self.now.since(sent);
            let flying = self.in_flight.unwrap_or(self.cwnd() as u64);
            ack.in_flight_before = Bytes::new(flying * MSS);
            ack.cwnd_limited = self.limited;
            self.scheme.on_ack(&ack);
        }

        /// A window's worth of packets.
        fn round(&mut self, queue_ms: u64) {
            for _ in 0..self.cwnd() as u64 {
                self.ack(queue_ms);
            }
        }
    }

    /// A peer with a known base delay and a window of ten packets.
    fn ten() -> Peer {
        let mut peer = Peer::new(&[("init_cwnd", "10")]);
        // One sample of the empty path; the filter of four then needs four to forget it.
        peer.in_flight = Some(8);
        for _ in 0..100 {
            peer.ack(0);
        }
        peer.in_flight = None;
        assert_eq!(peer.cwnd(), 9.0);
        peer
    }

    // RFC 6817, section 2.4.2: cwnd += GAIN off_target bytes_newly_acked MSS / cwnd.
    #[test]
    fn the_window_moves_with_the_distance_from_the_target() {
        for (queue_ms, change) in [(0, 1.0), (50, 0.5), (100, 0.0), (200, -1.0)] {
            let mut peer = ten();
            // The filter holds the smallest of four.
            peer.in_flight = Some(8);
            for _ in 0..3 {
                peer.ack(queue_ms);
            }
            peer.in_flight = None;
            let before = peer.cwnd();
            peer.round(queue_ms);
            // Growth within a round changes the rate by one part in nine, and bytes are truncated.
            let moved = peer.cwnd() - before;
            assert!((moved - change).abs() < 0.12, "{queue_ms} ms: {moved}");
        }
    }

    #[test]
    fn the_window_stays_within_what_is_used() {
        let mut peer = ten();
        peer.in_flight = Some(4);
        peer.ack(0);
        assert_eq!(peer.cwnd(), 5.0);
    }

    // As in an endpoint that was briefly suspended: it processes several acknowledgements before it sends.
    #[test]
    fn acknowledgements_that_are_read_together_do_not_shrink_the_window() {
        let mut peer = ten();
        let mut sent = SendEvent::new(peer.now, 0, Bytes::new(MSS));
        sent.in_flight = Bytes::new(9 * MSS);
        peer.scheme.on_send(&sent);
        peer.limited = true;
        for flying in (0..12).rev() {
            peer.in_flight = Some(flying.min(9));
            peer.ack(0);
        }
        assert_eq!(peer.cwnd(), 10.0);
        // Nor does it grow beyond the data in flight.
        peer.ack(0);
        assert_eq!(peer.cwnd(), 10.0);
        peer.limited = false;
        peer.in_flight = Some(4);
        peer.ack(0);
        assert_eq!(peer.cwnd(), 5.0);
    }

    #[test]
    fn a_loss_halves_and_a_timeout_leaves_one_packet() {
        let mut peer = ten();
        let mut loss = LossEvent::new(peer.now, LossCause::Reordering, Bytes::new(MSS));
        peer.scheme.on_loss(&loss);
        assert_eq!(peer.cwnd(), 4.5);
        loss.new_epoch = false;
        peer.scheme.on_loss(&loss);
        assert_eq!(peer.cwnd(), 4.5);
        let undo = SpuriousLossEvent::new(peer.now, LossCause::Reordering);
        peer.scheme.on_spurious_loss(&undo);
        assert_eq!(peer.cwnd(), 9.0);
        for _ in 0..6 {
            loss.new_epoch = true;
            peer.scheme.on_loss(&loss);
        }
        assert_eq!(peer.cwnd(), 2.0);
        peer.scheme.on_loss(&LossEvent::new(peer.now, LossCause::Timeout, Bytes::new(MSS)));
        assert_eq!(peer.cwnd(), 1.0);
        peer.ack(0);
        assert_eq!(peer.cwnd(), 2.0);
    }

    #[test]
    fn one_late_packet_is_filtered() {
        let mut peer = ten();
        let before = peer.cwnd();
        peer.ack(500);
        assert!(peer.cwnd() > before);
    }

    #[test]
    fn a_longer_path_is_learned_after_ten_minutes() {
        let mut peer = ten();
        // The path has become 300 ms longer: for ten minutes that looks like a queue.
        peer.now += Span::from_ms(9 * 60_000);
        for _ in 0..20 {
            peer.ack(300);
        }
        assert_eq!(peer.cwnd(), 2.0);
        peer.now += Span::from_ms(60_000);
        for _ in 0..20 {
            peer.ack(300);
        }
        assert!(peer.cwnd() > 5.0);
    }

    #[test]
    fn round_trips_will_do() {
        let mut peer = Peer::new(&[("delay", "round-trip")]);
        for _ in 0..50 {
            peer.ack(0);
        }
        let grown = peer.cwnd();
        assert!(grown > 8.0, "{grown}");
        for _ in 0..50 {
            peer.ack(300);
        }
        assert!(peer.cwnd() < grown - 5.0, "{}", peer.cwnd());
    }

    #[test]
    fn without_arrival_times_the_window_rests() {
        let mut peer = Peer::new(&[]);
        let mut ack = AckEvent::new(peer.now);
        ack.bytes = Bytes::new(MSS);
        ack.in_flight_before = Bytes::new(2 * MSS);
        peer.scheme.on_ack(&ack);
        assert_eq!(peer.cwnd(), 2.0);
    }
}
