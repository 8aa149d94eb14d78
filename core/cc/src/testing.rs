//! The conformance kit for schemes, and a small script language for their unit tests.

use crate::{
    AckEvent, AckedPacket, CongestionControl, EcnEvent, Fields, LossCause, LossEvent, RateSample,
    Scheme, SendEvent, Setup, SpuriousLossEvent,
};
use narrows_units::{Bytes, Params, Rate, Span, Stream, Time};

/// Packet payload in tests.
pub const MSS: u64 = 1000;

/// The birth of a scheme in tests: packets of [`MSS`] bytes, initial window 10.
pub fn setup() -> Setup {
    Setup {
        mss: Bytes::new(MSS),
        initial_window: 10,
        now: Time::ZERO,
        random: Stream::new(1, "test"),
        ecn: true,
    }
}

/// Drives a scheme through rounds of acknowledgements.
pub struct Script {
    /// The scheme.
    pub scheme: Box<dyn CongestionControl>,
    /// Now.
    pub now: Time,
    /// Round-trip time of the next round.
    pub rtt: Span,
    /// Whether the window limits the sender.
    pub cwnd_limited: bool,
    round: u64,
    delivered: u64,
}

impl Script {
    /// A script with an RTT of 100 ms.
    pub fn new(scheme: Box<dyn CongestionControl>) -> Self {
        Script {
            scheme,
            now: Time::ZERO,
            rtt: Span::from_ms(100),
            cwnd_limited: true,
            round: 0,
            delivered: 0,
        }
    }

    /// The window in packets.
    pub fn cwnd_packets(&self) -> f64 {
        self.scheme
            .allowance()
            .cwnd
            .map_or(f64::INFINITY, |cwnd| cwnd.get() as f64 / MSS as f64)
    }

    /// What the scheme shows.
    pub fn fields(&self) -> Fields {
        let mut fields = Fields::default();
        self.scheme.trace(&mut fields);
        fields
    }

    /// One window is acknowledged, packet by packet, spread evenly over one RTT.
    pub fn ack_round(&mut self) {
        self.ack_round_by(1);
    }

    /// One window is acknowledged by acknowledgements of `packets` packets each.
    pub fn ack_round_by(&mut self, packets: u64) {
        let window = self.cwnd_packets() as u64;
        let acks = window / packets;
        for index in 0..acks {
            self.now += Span::from_ns(self.rtt.ns() / acks.max(1));
            let rest = if index + 1 == acks {
                window % packets
            } else {
                0
            };
            self.delivered += (packets + rest) * MSS;
            let mut ack = AckEvent::new(self.now);
            ack.bytes = Bytes::new((packets + rest) * MSS);
            ack.latest_rtt = Some(self.rtt);
            ack.smoothed_rtt = self.rtt;
            ack.min_rtt = self.rtt;
            ack.delivered = Bytes::new(self.delivered);
            ack.round = self.round;
            ack.round_start = index == 0;
            ack.cwnd_limited = self.cwnd_limited;
            ack.in_flight_before = Bytes::new(window * MSS);
            ack.in_flight = Bytes::new((window - packets.min(window)) * MSS);
            self.scheme.on_ack(&ack);
        }
        self.round += 1;
    }

    /// A loss that opens an epoch, with `in_flight` packets in flight.
    pub fn lose(&mut self, cause: LossCause, in_flight: u64) {
        self.loss(cause, in_flight, true);
    }

    /// A further loss of the same epoch.
    pub fn lose_again(&mut self, cause: LossCause, in_flight: u64) {
        self.loss(cause, in_flight, false);
    }

    fn loss(&mut self, cause: LossCause, in_flight: u64, new_epoch: bool) {
        let mut loss = LossEvent::new(self.now, cause, Bytes::new(MSS));
        loss.in_flight = Bytes::new(in_flight * MSS);
        loss.new_epoch = new_epoch;
        self.scheme.on_loss(&loss);
    }
}

/// The windows in packets before each of `rounds` rounds of acknowledgements, packet by packet.
pub fn windows(script: &mut Script, rounds: usize) -> Vec<f64> {
    let round = |_| {
        let window = script.cwnd_packets();
        script.ack_round();
        window
    };
    (0..rounds).map(round).collect()
}

/// Plays `steps` random but legal events into a scheme with default parameters and checks that it
/// never panics, never allows nothing for ever, never grows beyond all bounds, gives at least one
/// limit, and answers the same events with the same decisions.
///
/// # Panics
/// When the scheme breaks the contract of [`CongestionControl`].
pub fn check(scheme: &Scheme, seed: u64, steps: u32) {
    let params = Params::resolve(scheme.params, []).expect("defaults resolve");
    let birth = || Setup {
        random: Stream::new(seed, "scheme"),
        ..setup()
    };
    let mut first = (scheme.build)(&params, birth()).expect("defaults build");
    let mut second = (scheme.build)(&params, birth()).expect("defaults build");
    let mut history = History::new(seed);
    for step in 0..steps {
        let before = first.allowance();
        assert!(
            before.cwnd.is_some() || before.pacing.is_some(),
            "{}: no limit at step {step}",
            scheme.name
        );
        if let Some(cwnd) = before.cwnd {
            assert!(
                cwnd.get() >= 1,
                "{}: window of zero at step {step}",
                scheme.name
            );
            // No scheme can have seen more than what was acknowledged; slow start doubles that. Hybla's
            // multiplies it by two to the power of up to 16, with a largest window of its own.
            let own = if scheme.name == "hybla" {
                65_535 * MSS
            } else {
                0
            };
            let bound = own.max(4 * (history.delivered + 100 * MSS));
            assert!(
                cwnd.get() <= bound,
                "{}: window {cwnd} at step {step}",
                scheme.name
            );
        }
        if let Some(rate) = before.pacing {
            assert!(
                rate.bps() > 0,
                "{}: pacing rate of zero at step {step}",
                scheme.name
            );
        }
        let event = history.next(before.cwnd.map_or(100 * MSS, Bytes::get));
        event.play(&mut *first);
        event.play(&mut *second);
        assert_eq!(
            first.allowance(),
            second.allowance(),
            "{}: step {step}",
            scheme.name
        );
        let mut fields = Fields::default();
        first.trace(&mut fields);
        assert!(
            fields.values.iter().all(|(_, value)| value.is_finite()),
            "{fields:?}"
        );
        if let Some(timer) = first.next_timer()
            && timer <= history.now
        {
            first.on_timer(history.now);
            second.on_timer(history.now);
            let again = first.next_timer();
            assert!(
                again.is_none_or(|again| again > timer),
                "{}: timer stuck",
                scheme.name
            );
        }
    }
}

/// One random event.
enum Event {
    Send(SendEvent),
    Ack(Box<AckEvent<'static>>, Vec<AckedPacket>),
    Loss(LossEvent<'static>),
    Ecn(EcnEvent),
    Spurious(SpuriousLossEvent),
    RecoveryExit(Time),
}

impl Event {
    fn play(&self, scheme: &mut dyn CongestionControl) {
        match self {
            Event::Send(send) => scheme.on_send(send),
            Event::Ack(ack, packets) => {
                scheme.on_ack(&AckEvent {
                    packets,
                    ..(**ack).clone()
                });
            }
            Event::Loss(loss) => scheme.on_loss(loss),
            Event::Ecn(ecn) => scheme.on_ecn(ecn),
            Event::Spurious(spurious) => scheme.on_spurious_loss(spurious),
            Event::RecoveryExit(now) => scheme.on_recovery_exit(*now),
        }
    }
}

/// A random but consistent history of a connection.
struct History {
    stream: Stream,
    now: Time,
    number: u64,
    in_flight: u64,
    delivered: u64,
    round: u64,
    base_rtt: Span,
    min_rtt: Span,
    in_recovery: bool,
}

impl History {
    fn new(seed: u64) -> Self {
        let mut stream = Stream::new(seed, "history");
        // From a data centre to a satellite and beyond.
        let base_rtt = Span::from_us(10u64.pow(2 + stream.below(5) as u32));
        History {
            stream,
            now: Time::ZERO,
            number: 0,
            in_flight: 0,
            delivered: 0,
            round: 0,
            base_rtt,
            min_rtt: Span::MAX,
            in_recovery: false,
        }
    }

    fn next(&mut self, cwnd: u64) -> Event {
        let pause = if self.stream.chance(0.001) {
            self.base_rtt * 1000
        } else {
            self.base_rtt
        };
        self.now += Span::from_ns(self.stream.below(pause.ns() / 4 + 1));
        let roll = self.stream.uniform();
        if self.in_flight == 0 || (roll < 0.45 && self.in_flight + MSS <= cwnd.max(MSS)) {
            let idle = (self.in_flight == 0).then_some(Span::from_ms(self.stream.below(2_000)));
            self.number += 1;
            self.in_flight += MSS;
            let mut send = SendEvent::new(self.now, self.number, Bytes::new(MSS));
            send.in_flight = Bytes::new(self.in_flight);
            send.idle = idle;
            return Event::Send(send);
        }
        if roll < 0.93 {
            return self.ack();
        }
        if roll < 0.97 {
            let cause = match self.stream.below(10) {
                0 => LossCause::Persistent,
                1 | 2 => LossCause::Timeout,
                _ => LossCause::Reordering,
            };
            let mut loss = LossEvent::new(self.now, cause, Bytes::new(MSS));
            loss.in_flight = Bytes::new(self.in_flight);
            loss.new_epoch = !self.in_recovery || self.stream.chance(0.1);
            loss.smoothed_rtt = self.base_rtt;
            self.in_flight -= MSS;
            self.in_recovery = cause == LossCause::Reordering;
            return Event::Loss(loss);
        }
        if self.in_recovery && roll < 0.98 {
            self.in_recovery = false;
            return Event::RecoveryExit(self.now);
        }
        if roll < 0.985 {
            return Event::Spurious(SpuriousLossEvent::new(self.now, LossCause::Reordering));
        }
        let mut ecn = EcnEvent::new(self.now, Bytes::new(self.in_flight));
        ecn.new_epoch = !self.in_recovery;
        Event::Ecn(ecn)
    }

    fn ack(&mut self) -> Event {
        let packets = 1 + self.stream.below((self.in_flight / MSS).min(20));
        let bytes = packets * MSS;
        let rtt = self.base_rtt + Span::from_ns(self.stream.below(self.base_rtt.ns() * 3));
        self.min_rtt = self.min_rtt.min(rtt);
        let round_start = self.stream.chance(0.1);
        self.round += u64::from(round_start);
        let mut ack = AckEvent::new(self.now);
        ack.bytes = Bytes::new(bytes);
        ack.ce_bytes = Bytes::new(if self.stream.chance(0.1) { MSS } else { 0 });
        ack.latest_rtt = self.stream.chance(0.95).then_some(rtt);
        ack.smoothed_rtt = self.base_rtt * 2;
        ack.min_rtt = self.min_rtt;
        ack.in_flight_before = Bytes::new(self.in_flight);
        self.in_flight -= bytes;
        self.delivered += bytes;
        ack.in_flight = Bytes::new(self.in_flight);
        ack.delivered = Bytes::new(self.delivered);
        ack.round = self.round;
        ack.round_start = round_start;
        ack.cwnd_limited = self.stream.chance(0.8);
        ack.in_recovery = self.in_recovery;
        let interval = rtt.max(Span::from_us(1));
        ack.rate = self.stream.chance(0.9).then(|| RateSample {
            rate: Rate::of(Bytes::new(bytes), interval),
            delivered: Bytes::new(bytes),
            interval,
            app_limited: self.stream.chance(0.1),
            prior_delivered: Bytes::new(self.delivered - bytes),
            in_flight_at_send: ack.in_flight_before,
            lost: Bytes::ZERO,
        });
        let first = self.number.saturating_sub(packets) + 1;
        let acked = (first..=self.number).map(|number| AckedPacket {
            number,
            bytes: MSS as u32,
            sent: self.now - rtt,
            arrived: Some(self.now - Span::from_ns(rtt.ns() / 2)),
        });
        Event::Ack(Box::new(ack), acked.collect())
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_registered_scheme_conforms() {
        for scheme in crate::schemes::ALL {
            for seed in 0..64 {
                super::check(scheme, seed, 5_000);
            }
        }
    }

    #[test]
    fn every_file_begins_with_its_provenance() {
        for scheme in crate::schemes::ALL {
            let page = crate::schemes::page(scheme.name).unwrap();
            for word in ["Provenance:", "Deviations:"] {
                assert!(
                    page.contains(word),
                    "{}: its header lacks \"{word}\"",
                    scheme.name
                );
            }
            for param in scheme.params {
                let row = format!("| {} |", param.name);
                assert!(
                    page.contains(&row),
                    "{}: its header lacks {row}",
                    scheme.name
                );
            }
        }
    }

    #[test]
    fn names_are_unique_and_parameters_have_sources() {
        let schemes = crate::schemes::ALL;
        for (index, scheme) in schemes.iter().enumerate() {
            assert!(
                schemes[..index]
                    .iter()
                    .all(|other| other.name != scheme.name)
            );
            assert!(!scheme.source.is_empty() && !scheme.summary.is_empty());
            for param in scheme.params {
                assert!(!param.source.is_empty(), "{}: {}", scheme.name, param.name);
                if param.default.is_some() {
                    param.default_value();
                }
            }
        }
    }
}
