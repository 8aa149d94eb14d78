//! Muses: Indigo's successor by Huawei and Stanford, with pacing, losses among its inputs, and deeper queues as its aim.
//!
//! Provenance: github.com/StanfordSNR/indigo, branch muses, commit 094ec0b (2018-08-27), model 24, which Pantheon's
//! report of 2018-08 ran under a commit that is gone. Deviations: pacing is continuous, where the original looks every
//! half millisecond what it may send; the packets between two decisions are told apart by their numbers, not by
//! the millisecond in which they were sent; the sender does not end after 5 s in which it sent nothing; packets that were sent
//! while the application had no more to send are no part of a step, as with Indigo.
//!
//! The scheme has no network of its own: the parameter `model` names one, which `narrows models add` makes from the
//! published checkpoint (`docs/guide/models.md`). Decisions are made as by Indigo, with the same five actions. The
//! network hears of the round trip (an average that is never reset), the queueing delay over the smallest round trip,
//! both rates, the share of packets lost since the last decision, and the window, which stays between 10 and 12 500
//! packets and is paced over the smallest round trip. When nothing was sent for a round trip one packet asks for news.
//!
//! Pitfalls: it was trained to keep four fifths of the buffer filled. The network knows links of 100 and 1000 Mbit/s;
//! as the window is never below 10 packets, slow links get a queue. The original's packets have 3000 bytes, which
//! Ethernet cuts in two (`profile: pantheon`; for simulation, or links whose packets may be so large). Its clock has
//! steps of 1 ms, as the original's, and on fast paths with short round trips what it does depends on where in a step
//! the acknowledgements come: on one path of 900 Mbit/s it had 193, 341, 910 and 924 Mbit/s when the way back took 1.5,
//! 0.3, 2.2 and 4 ms. The clock is the transport's setting `clock`: `{muses: MODEL, transport: {clock: 1 us}}` gives it a finer
//! one, which the network has not been trained with.

use crate::parts::neural_policy::{self, Counters, Ewma, Flight, NeuralPolicy, Step};
use crate::{
    AckEvent, Allowance, CongestionControl, Fields, LossEvent, Profile, Scheme, SendEvent, Setup,
};
use narrows_units::{Bytes, ParamError, Params, Rate, Span, Time, params};

/// Kind of its models.
const KIND: &str = "muses";

/// Registry line.
pub const SCHEME: Scheme = Scheme {
    name: "muses",
    summary: "Indigo's successor: a larger network that is paced and hears of losses",
    source: "github.com/StanfordSNR/indigo, branch muses, commit 094ec0b",
    profiles: &[Profile {
        name: "pantheon",
        doc: "Packets of 3000 bytes, as in Pantheon's report of 2018-08.",
        params: &[],
        transport: &[("packet_size", "3000")],
    }],
    params: MusesParams::PARAMS,
    build,
    ..super::indigo::SCHEME
};

params! {
    /// Parameters.
    struct MusesParams {
        /// The network, by its name among the installed models, or a file.
        model: File, "a network of 11 inputs: `narrows models list`";
        /// Bytes that each packet counts beyond its payload.
        header: Bytes(0.0..=1_000.0) = 52,
            "what each packet counts beyond its payload: packets count with the size that they have on the way";
    }
}

/// The first window, the smallest and the largest in packets.
const FIRST_WINDOW: f64 = 10.0;
const MIN_WINDOW: f64 = 10.0;
const MAX_WINDOW: f64 = 12_500.0;
/// The original looks so often what it may send.
const CHECK: Span = Span::from_us(500);
/// Time without a packet sent after which one goes regardless, before any round trip is known.
const FIRST_PROBE: Span = Span::from_ms(10);
/// Round trip (ms), rates (Mbit/s) and window (packets) that are 1 for the network.
const RTT_UNIT: f64 = 300.0;
const RATE_UNIT: f64 = 1_000.0;
const WINDOW_UNIT: f64 = 12_500.0;
/// Inputs besides the last action.
const FEATURES: usize = 6;

fn build(params: &Params, setup: Setup) -> Result<Box<dyn CongestionControl>, ParamError> {
    let params = MusesParams::read(params);
    let policy = NeuralPolicy::load(&params.model, &setup.files, KIND, FEATURES)?;
    Ok(Box::new(Muses {
        flight: Flight::new(setup.mss.get()),
        policy,
        counters: Counters::new(params.header.get(), setup.now),
        window: FIRST_WINDOW,
        min_rtt_ms: None,
        rtt: Ewma::default(),
        step: Step::default(),
        losses: Losses::default(),
        loss: 0.0,
        sent_at: setup.now,
    }))
}

/// Share of what was sent between two decisions that was delivered.
#[derive(Clone, Copy, Debug, Default)]
struct Losses {
    /// Bytes sent before the packet whose acknowledgement led to the last decision, and bytes delivered by then.
    sent: u64,
    delivered: u64,
}

impl Losses {
    /// The share lost, when the newest packet acknowledged had `sent` bytes sent before it, and `delivered` bytes have
    /// arrived in all.
    fn share(&mut self, sent: u64, delivered: u64) -> f64 {
        let between = sent.saturating_sub(self.sent);
        let arrived = delivered.saturating_sub(self.delivered);
        if between == 0 {
            self.delivered = delivered;
            return 0.0;
        }
        *self = Losses { sent, delivered };
        (1.0 - arrived as f64 / between as f64).max(0.0)
    }
}

struct Muses {
    flight: Flight,
    policy: NeuralPolicy,
    counters: Counters,
    /// In packets, not always whole.
    window: f64,
    /// At least 1, as all round trips.
    min_rtt_ms: Option<f64>,
    rtt: Ewma,
    step: Step,
    losses: Losses,
    /// Share lost in the last step.
    loss: f64,
    sent_at: Time,
}

impl Muses {
    fn decide(&mut self, now: Time) {
        let features = [
            self.rtt.get().unwrap_or(0.0) / RTT_UNIT,
            self.step.delay.get().unwrap_or(0.0) / self.min_rtt_ms.unwrap_or(1.0),
            self.step.sending.get().unwrap_or(0.0) / RATE_UNIT,
            self.step.delivery.get().unwrap_or(0.0) / RATE_UNIT,
            self.loss,
            self.window / WINDOW_UNIT,
        ];
        self.window = self
            .policy
            .decide(&features, self.window)
            .clamp(MIN_WINDOW, MAX_WINDOW);
        self.step = Step::new(Some(now));
    }

    /// When one packet goes although the window is full.
    fn probe_at(&self) -> Time {
        let wait = self
            .rtt
            .get()
            .map_or(FIRST_PROBE, |ms| Span::from_ns((ms * 1e6) as u64));
        self.sent_at + wait
    }
}

impl CongestionControl for Muses {
    fn on_ack(&mut self, ack: &AckEvent<'_>) {
        self.flight.bytes = ack.in_flight.get();
        for packet in ack.packets {
            let rtt_ms = neural_policy::ms(ack.now.since(packet.sent)).max(1.0);
            let min_rtt_ms = self.min_rtt_ms.map_or(rtt_ms, |least| least.min(rtt_ms));
            self.min_rtt_ms = Some(min_rtt_ms);
            self.rtt.add(rtt_ms);
            let echo = self.counters.on_ack(ack.now, packet);
            if echo.is_some_and(|echo| echo.then.app_limited) {
                self.step = Step::default();
                continue;
            }
            if self.step.add(ack.now, rtt_ms - min_rtt_ms, echo) {
                let delivered = self.counters.delivered();
                self.loss = echo.map_or(0.0, |echo| self.losses.share(echo.then.sent, delivered));
                self.decide(ack.now);
            }
        }
    }

    fn on_loss(&mut self, loss: &LossEvent<'_>) {
        self.flight.on_loss(loss);
    }

    fn on_send(&mut self, send: &SendEvent) {
        self.sent_at = send.now;
        self.flight.on_send(send);
        self.counters.on_send(send);
    }

    fn next_timer(&self) -> Option<Time> {
        Some(self.probe_at())
    }

    fn on_timer(&mut self, now: Time) {
        if now >= self.probe_at() {
            self.sent_at = now;
            self.flight.regardless = true;
        }
    }

    fn allowance(&self) -> Allowance {
        let mss = Bytes::new(self.flight.mss);
        // One packet at each look until a round trip is known, then the window over the smallest one.
        let rate = match self.min_rtt_ms {
            None => Rate::of(mss, CHECK),
            Some(ms) => Rate::from_bps((self.window * self.flight.mss as f64 * 8e3 / ms).ceil() as u64),
        };
        Allowance {
            cwnd: Some(self.flight.cwnd(self.window)),
            pacing: Some(rate),
            quantum: Some(rate.bytes_in(CHECK).max(mss)),
            ..Allowance::default()
        }
    }

    fn trace(&self, fields: &mut Fields) {
        fields.mode = self.policy.mode();
        fields
            .values
            .extend([("window_packets", self.window), ("loss_share", self.loss)]);
        fields
            .values
            .extend(self.rtt.get().map(|rtt| ("rtt_ms", rtt)));
        self.step.trace(fields);
    }
}


#[cfg(test)]
mod tests {
    mod inputs;

    use super::*;
    use crate::AckedPacket;
    use crate::testing::{MSS, example_params, example_setup};

    fn at(ms: u64) -> Time {
        Time::ZERO + Span::from_ms(ms)
    }

    fn scheme() -> Box<dyn CongestionControl> {
        build(&example_params(&SCHEME), example_setup()).unwrap()
    }

    fn window(scheme: &dyn CongestionControl) -> u64 {
        scheme.allowance().cwnd.unwrap().get() / MSS
    }

    fn send(scheme: &mut dyn CongestionControl, number: u64, now: u64) {
        scheme.on_send(&SendEvent::new(at(now), number, Bytes::new(MSS)));
    }

    fn ack(scheme: &mut dyn CongestionControl, number: u64, sent: u64, now: u64) -> Fields {
        let packets = [AckedPacket {
            number,
            bytes: MSS as u32,
            sent: at(sent),
            arrived: None,
        }];
        let mut ack = AckEvent::new(at(now));
        ack.packets = &packets;
        scheme.on_ack(&ack);
        let mut fields = Fields::default();
        scheme.trace(&mut fields);
        fields
    }

    #[test]
    fn the_window_is_paced_over_the_smallest_round_trip() {
        let mut muses = scheme();
        // A packet each half millisecond at first.
        assert_eq!(muses.allowance().pacing, Some(Rate::from_bps(16_000_000)));
        assert_eq!(muses.allowance().quantum, Some(Bytes::new(MSS)));
        send(&mut *muses, 0, 0);
        ack(&mut *muses, 0, 0, 20);
        // Ten packets of 1000 bytes in 20 ms are 4 Mbit/s.
        assert_eq!(muses.allowance().pacing, Some(Rate::from_bps(4_000_000)));
        send(&mut *muses, 1, 20);
        let fields = ack(&mut *muses, 1, 20, 40);
        assert_eq!((window(&*muses), fields.mode), (20, "double"));
        assert_eq!(muses.allowance().pacing, Some(Rate::from_bps(8_000_000)));
    }

    #[test]
    fn what_the_application_limits_is_no_step() {
        let mut muses = scheme();
        for number in 0..12 {
            let mut event = SendEvent::new(at(20 * number), number, Bytes::new(MSS));
            event.app_limited = true;
            muses.on_send(&event);
            ack(&mut *muses, number, 20 * number, 20 * number + 20);
        }
        assert_eq!(window(&*muses), 10);
        for number in 12..14 {
            send(&mut *muses, number, 20 * number);
            ack(&mut *muses, number, 20 * number, 20 * number + 20);
        }
        assert_eq!(window(&*muses), 20, "a step has begun with the first of them");
    }

    #[test]
    fn the_window_stays_between_10_and_12500_packets() {
        let mut muses = scheme();
        for number in 0..12 {
            send(&mut *muses, number, 20 * number);
            ack(&mut *muses, number, 20 * number, 20 * number + 20);
        }
        assert_eq!(window(&*muses), 12_500);
        for number in 12..32 {
            send(&mut *muses, number, 20 * number);
            ack(&mut *muses, number, 20 * number, 20 * number + 80);
        }
        assert_eq!(window(&*muses), 10);
    }

    #[test]
    fn losses_are_what_was_sent_and_not_delivered_between_decisions() {
        let mut losses = Losses::default();
        // The first packet of all has nothing before it.
        assert_eq!(losses.share(0, 1_000), 0.0);
        // Eight packets sent up to the one acknowledged now, six more delivered.
        assert_eq!(losses.share(8_000, 7_000), 0.25);
        assert_eq!(losses.share(18_000, 17_000), 0.0);
        // What was late comes in addition.
        assert_eq!(losses.share(23_000, 24_000), 0.0);
        assert_eq!(losses.share(23_000, 25_000), 0.0);
        assert_eq!(losses.share(27_000, 27_000), 0.5);
    }

    #[test]
    fn a_round_trip_without_a_packet_asks_for_news() {
        let mut muses = scheme();
        assert_eq!(muses.next_timer(), Some(at(10)));
        let mut event = SendEvent::new(at(3), 0, Bytes::new(MSS));
        event.in_flight = Bytes::new(10 * MSS);
        muses.on_send(&event);
        assert_eq!(muses.next_timer(), Some(at(13)));
        muses.on_timer(at(13));
        assert_eq!(window(&*muses), 11);
        send(&mut *muses, 1, 13);
        assert_eq!(window(&*muses), 10);
        ack(&mut *muses, 1, 13, 33);
        assert_eq!(
            muses.next_timer(),
            Some(at(33)),
            "20 ms after the last packet"
        );
    }
}
