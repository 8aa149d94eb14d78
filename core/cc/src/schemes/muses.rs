//! Muses: Indigo's successor by Huawei and Stanford, with pacing, losses among its inputs, and deeper target queues.
//!
//! Provenance: github.com/StanfordSNR/indigo, branch muses, commit 094ec0b (2018-08-27), model 24, which Pantheon's
//! report of 2018-08 ran under a commit that no longer exists. Deviations: pacing is continuous, whereas the original
//! checks every half millisecond what it may send; the packets between two decisions are identified by their numbers,
//! not by the millisecond of sending; the sender does not stop after 5 s without sending; packets sent while
//! application-limited are excluded from steps, as with Indigo.
//!
//! The scheme has no built-in network: the parameter `model` names one, which `narrows models add` makes from the
//! published checkpoint (`docs/guide/models.md`). Decisions are made as by Indigo, with the same five actions. The
//! network's inputs are the round trip (an average that is never reset), the queueing delay above the minimum RTT, both
//! rates, the loss ratio since the last decision, and the window, which stays between 10 and 12 500 packets and is
//! paced over the minimum RTT. When nothing was sent for a round trip one packet is sent as a probe.
//!
//! Pitfalls: it was trained to keep four fifths of the buffer filled. The network was trained for links of 100 and 1000
//! Mbit/s; as the window is never below 10 packets, slow links get a queue. The original's packets have 3000 bytes,
//! which Ethernet fragments into two (`profile: pantheon`; for simulation, or links with such large packets). Its clock
//! has a granularity of 1 ms, as the original's, and on fast paths with short round trips its behaviour depends on
//! where in a step the acknowledgements arrive: on a path of 900 Mbit/s it reached 193, 341, 910 and 924 Mbit/s with a
//! return delay of 1.5, 0.3, 2.2 and 4 ms. The clock is the transport's setting `clock`: `{muses: MODEL, transport:
//! {clock: 1 us}}` selects a finer one, with which the network has not been trained.

use crate::parts::neural_policy::{self, Counters, Ewma, Flight, NeuralPolicy, Step};
use crate::{
    AckEvent, Allowance, CongestionControl, Fields, LossEvent, Profile, Scheme, SendEvent, Setup,
};
use narrows_units::{Bytes, ParamError, Params, Rate, Span, Time, params};

/// Kind of its models.
const KIND: &str = "muses";

/// Registry entry.
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
        /// Bytes counted per packet beyond its payload.
        header: Bytes(0.0..=1_000.0) = 52,
            "bytes counted per packet beyond its payload: packets count with their size on the wire";
    }
}

/// The initial, minimum and maximum window in packets.
const FIRST_WINDOW: f64 = 10.0;
const MIN_WINDOW: f64 = 10.0;
const MAX_WINDOW: f64 = 12_500.0;
/// Interval at which the original checks what it may send.
const CHECK: Span = Span::from_us(500);
/// Time without sending after which one packet is sent regardless, before any round trip is known.
const FIRST_PROBE: Span = Span::from_ms(10);
/// Round trip (ms), rates (Mbit/s) and window (packets) that correspond to an input of 1.
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

/// State for the loss ratio between two decisions.
#[derive(Clone, Copy, Debug, Default)]
struct Losses {
    /// Bytes sent before the packet whose acknowledgement led to the last decision, and bytes delivered by then.
    sent: u64,
    delivered: u64,
}

impl Losses {
    /// The loss ratio, if `sent` bytes were sent before the newest acknowledged packet, and `delivered` bytes have
    /// arrived in total.
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
    /// In packets, possibly fractional.
    window: f64,
    /// At least 1, as all round trips.
    min_rtt_ms: Option<f64>,
    rtt: Ewma,
    step: Step,
    losses: Losses,
    /// Loss ratio of the last step.
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

    /// When one packet is sent although the window is full.
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
        // One packet per check until a round trip is known, then the window over the minimum RTT.
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
        // A packet every half millisecond at first.
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
        // The very first packet has no predecessor.
        assert_eq!(losses.share(0, 1_000), 0.0);
        // Eight packets sent up to the one acknowledged now, six more delivered.
        assert_eq!(losses.share(8_000, 7_000), 0.25);
        assert_eq!(losses.share(18_000, 17_000), 0.0);
        // Late packets count in addition.
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
