//! Indigo: a recurrent network that was trained to imitate the best window decides every 10 ms.
//!
//! Provenance: Yan et al., Pantheon: the training ground for Internet congestion-control research, USENIX ATC 2018;
//! github.com/StanfordSNR/indigo, commits a9b2060, 3ae9e4e, 2601c92, 1f3a7f7 and 7224f22, whose senders are the same and
//! whose networks differ. Deviations: the window is at most 100 000 packets, where the original has no bound; the
//! handshake, which the receiver begins, is left out; packets that were sent while the application had no more to send
//! are no part of a step (the original's application always has more, and so had that of the training), so that an idle flow's window and
//! network stay as they are.
//!
//! The scheme has no network of its own: the parameter `model` names one, which `narrows models add` makes from the
//! checkpoints that the authors published (`docs/guide/models.md`). With the first acknowledgement more than 10 ms after
//! the last decision, the averages of queueing delay, delivery rate and sending rate since then, the window and the
//! last action go into the network, and it halves the window, takes 10 packets away, keeps it, adds 10, or
//! doubles it. Nothing is paced, nothing is sent again, and losses change nothing by themselves.
//!
//! Pitfalls: the network knows 5 to 200 Mbit/s and round trips of 20 to 160 ms; elsewhere it does what it likes. Two
//! flows share as chance has it. Windows go out in bursts. Decisions are made on acknowledgements only: on a silent path
//! one packet per second asks whether it is back. The clock has steps of 1 ms, as when it was trained: on a local network
//! the smallest round trip is 0. The published sender is a Python program that stops at about 200 Mbit/s; this one does not.

use crate::parts::neural_policy::{Ewma, Counters, NeuralPolicy};
use crate::parts::{model_file, neural_policy};
use crate::{
    AckEvent, Allowance, CongestionControl, EcnUse, Fields, LossEvent, Profile, Recovery, Scheme,
    SendEvent, Setup,
};
use narrows_units::{Bytes, ParamError, Params, Span, Time, params};

/// Kind of its models.
const KIND: &str = "indigo";

/// Registry line.
pub const SCHEME: Scheme = Scheme {
    name: "indigo",
    summary: "A recurrent network, trained by imitation, changes the window every 10 ms",
    source: "Yan et al., USENIX ATC 2018; github.com/StanfordSNR/indigo",
    recovery: Recovery::Direct,
    ecn: EcnUse::None,
    transport: neural_policy::TRANSPORT,
    profiles: &[Profile {
        name: "pantheon",
        doc: "Datagrams of 1442 bytes, as in Pantheon's reports.",
        params: &[],
        transport: &[("packet_size", "1470")],
    }],
    params: IndigoParams::PARAMS,
    build,
};

params! {
    /// Parameters.
    struct IndigoParams {
        /// The network, by its name among the installed models, or a file.
        model: File, "a network of 9 inputs: `narrows models list`";
        /// What each packet counts beyond its payload.
        header: Bytes(0.0..=1_000.0) = 24,
            "what each packet counts beyond its payload: the original counts whole datagrams";
    }
}

/// The first window, the smallest and the largest in packets.
const FIRST_WINDOW: f64 = 10.0;
const MIN_WINDOW: f64 = 2.0;
const MAX_WINDOW: f64 = 100_000.0;
/// Decisions are more than this apart.
const STEP: Span = Span::from_ms(10);
/// After so long without any event one packet is sent regardless of the window.
const SILENCE: Span = Span::from_ms(1_000);
/// Delay (ms), rates (Mbit/s) and window (packets) that are 1 for the network.
const DELAY_UNIT: f64 = 200.0;
const RATE_UNIT: f64 = 200.0;
const WINDOW_UNIT: f64 = 5_000.0;
/// Inputs besides the last action.
const FEATURES: usize = 4;

fn build(params: &Params, setup: Setup) -> Result<Box<dyn CongestionControl>, ParamError> {
    let params = IndigoParams::read(params);
    let policy = model_file::load(&params.model, &setup.files, |model| {
        model.expect_kind(KIND)?;
        NeuralPolicy::new(model, FEATURES)
    })?;
    Ok(Box::new(Indigo {
        mss: setup.mss.get(),
        policy,
        counters: Counters::new(params.header.get(), setup.now),
        window: FIRST_WINDOW,
        min_rtt_ms: f64::INFINITY,
        delay: Ewma::default(),
        delivery: Ewma::default(),
        sending: Ewma::default(),
        step: None,
        active: setup.now,
        in_flight: 0,
        regardless: false,
    }))
}

struct Indigo {
    mss: u64,
    policy: NeuralPolicy,
    counters: Counters,
    /// In packets, not always whole.
    window: f64,
    min_rtt_ms: f64,
    /// Of this step: queueing delay in ms, rates in Mbit/s.
    delay: Ewma,
    delivery: Ewma,
    sending: Ewma,
    /// When this step began.
    step: Option<Time>,
    /// When something was sent or acknowledged.
    active: Time,
    in_flight: u64,
    /// One packet may go although the window is full.
    regardless: bool,
}

impl Indigo {
    fn decide(&mut self, now: Time) {
        let features = [
            self.delay.get().unwrap_or(0.0) / DELAY_UNIT,
            self.delivery.get().unwrap_or(0.0) / RATE_UNIT,
            self.sending.get().unwrap_or(0.0) / RATE_UNIT,
            self.window / WINDOW_UNIT,
        ];
        self.window = self
            .policy
            .decide(&features, self.window)
            .clamp(MIN_WINDOW, MAX_WINDOW);
        self.begin(Some(now));
    }

    /// A step begins at `at`, or with the next packet.
    fn begin(&mut self, at: Option<Time>) {
        (self.delay, self.delivery, self.sending) = Default::default();
        self.step = at;
    }
}

impl CongestionControl for Indigo {
    fn on_ack(&mut self, ack: &AckEvent<'_>) {
        self.active = ack.now;
        self.in_flight = ack.in_flight.get();
        for packet in ack.packets {
            let rtt_ms = neural_policy::ms(ack.now.since(packet.sent));
            self.min_rtt_ms = self.min_rtt_ms.min(rtt_ms);
            let echo = self.counters.on_ack(ack.now, packet);
            if echo.is_some_and(|echo| echo.then.app_limited) {
                self.begin(None);
                continue;
            }
            self.delay.add(rtt_ms - self.min_rtt_ms);
            if let Some(echo) = echo {
                self.delivery.add(echo.delivery_mbps);
                self.sending.add(echo.send_mbps);
            }
            let step = *self.step.get_or_insert(ack.now);
            if ack.now.since(step) > STEP {
                self.decide(ack.now);
            }
        }
    }

    fn on_loss(&mut self, loss: &LossEvent<'_>) {
        self.in_flight = loss.in_flight.get().saturating_sub(loss.bytes.get());
    }

    fn on_send(&mut self, send: &SendEvent) {
        self.active = send.now;
        self.in_flight = send.in_flight.get();
        self.regardless = false;
        self.counters.on_send(send);
    }

    fn next_timer(&self) -> Option<Time> {
        Some(self.active + SILENCE)
    }

    fn on_timer(&mut self, now: Time) {
        if now >= self.active + SILENCE {
            self.active = now;
            self.regardless = true;
        }
    }

    fn allowance(&self) -> Allowance {
        // As long as less than the window is in flight another packet goes.
        let window = self.window.ceil() as u64 * self.mss;
        let least = if self.regardless {
            self.in_flight + self.mss
        } else {
            0
        };
        Allowance {
            cwnd: Some(Bytes::new(window.max(least))),
            ..Allowance::default()
        }
    }

    fn trace(&self, fields: &mut Fields) {
        fields.mode = self.policy.mode();
        fields.values.push(("window_packets", self.window));
        fields
            .values
            .extend(self.delay.get().map(|delay| ("queueing_delay_ms", delay)));
        fields
            .values
            .extend(self.delivery.get().map(|rate| ("delivery_mbps", rate)));
        fields
            .values
            .extend(self.sending.get().map(|rate| ("send_mbps", rate)));
    }
}

#[cfg(test)]
mod inputs;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::AckedPacket;
    use crate::testing::{MSS, example_params, example_setup};

    fn at(ms: u64) -> Time {
        Time::ZERO + Span::from_ms(ms)
    }

    struct Peer {
        scheme: Box<dyn CongestionControl>,
        next: u64,
    }

    impl Peer {
        fn new() -> Self {
            Peer {
                scheme: build(&example_params(&SCHEME), example_setup()).unwrap(),
                next: 0,
            }
        }

        fn window(&self) -> u64 {
            self.scheme.allowance().cwnd.unwrap().get() / MSS
        }

        /// A packet sent at `sent` (ms) is acknowledged at `now`.
        fn packet(&mut self, sent: u64, now: u64) -> Fields {
            self.packet_of(sent, now, false)
        }

        fn packet_of(&mut self, sent: u64, now: u64, app_limited: bool) -> Fields {
            let mut send = SendEvent::new(at(sent), self.next, Bytes::new(MSS));
            send.app_limited = app_limited;
            self.scheme.on_send(&send);
            let packets = [AckedPacket {
                number: self.next,
                bytes: MSS as u32,
                sent: at(sent),
                arrived: None,
            }];
            self.next += 1;
            let mut ack = AckEvent::new(at(now));
            ack.packets = &packets;
            self.scheme.on_ack(&ack);
            let mut fields = Fields::default();
            self.scheme.trace(&mut fields);
            fields
        }
    }

    #[test]
    fn steps_are_longer_than_ten_milliseconds_and_end_on_acknowledgements() {
        // The example network doubles until a delay shows, then adds 10, holds, takes 10 away or halves.
        let mut peer = Peer::new();
        assert_eq!(peer.window(), 10);
        peer.packet(0, 40);
        peer.packet(10, 50);
        assert_eq!(peer.window(), 10, "10 ms are not more than 10 ms");
        let fields = peer.packet(11, 51);
        assert_eq!((peer.window(), fields.mode), (20, "double"));
        assert_eq!(
            fields.values.len(),
            1,
            "the averages start anew with each step"
        );
        // 48 ms: a delay of 8 ms, and 2 of 10 ms.
        let fields = peer.packet(12, 60);
        assert!(fields.values.contains(&("queueing_delay_ms", 8.0)));
        let fields = peer.packet(22, 62);
        assert_eq!((peer.window(), fields.mode), (10, "less"));
    }

    #[test]
    fn what_the_application_limits_is_no_step() {
        let mut peer = Peer::new();
        peer.packet(0, 40);
        for step in 1..100 {
            let fields = peer.packet_of(20 * step, 20 * step + 40, true);
            assert_eq!((peer.window(), fields.values.len()), (10, 1));
        }
        // A step begins with the first packet that the window limits.
        peer.packet(2_000, 2_040);
        peer.packet(2_010, 2_050);
        assert_eq!(peer.window(), 10);
        peer.packet(2_011, 2_051);
        assert_eq!(peer.window(), 20);
    }

    #[test]
    fn the_window_never_falls_below_two_packets() {
        let mut peer = Peer::new();
        peer.packet(0, 20);
        for step in 1..10 {
            peer.packet(20 * step, 20 * step + 120);
        }
        assert_eq!(peer.window(), 2);
    }

    #[test]
    fn after_a_silent_second_one_packet_goes_regardless() {
        let mut peer = Peer::new();
        let mut send = SendEvent::new(at(5), 0, Bytes::new(MSS));
        send.in_flight = Bytes::new(10 * MSS);
        peer.scheme.on_send(&send);
        assert_eq!(peer.scheme.next_timer(), Some(at(1_005)));
        peer.scheme.on_timer(at(1_005));
        assert_eq!(peer.window(), 11);
        send = SendEvent::new(at(1_005), 1, Bytes::new(MSS));
        send.in_flight = Bytes::new(11 * MSS);
        peer.scheme.on_send(&send);
        assert_eq!(peer.window(), 10);
        assert_eq!(peer.scheme.next_timer(), Some(at(2_005)));
    }

    #[test]
    fn a_model_of_another_kind_is_refused() {
        let params = example_params(&super::super::muses::SCHEME);
        let problem = build(&params, example_setup()).err().unwrap().to_string();
        assert!(
            problem.contains("is of the kind muses, where a model of the kind indigo"),
            "{problem}"
        );
    }
}
