//! The conformance kit for schemes, and a small script language for their unit tests.

#[cfg(test)]
pub(crate) mod bbr_profiles;
mod decisions;
pub mod event_log;
mod examples;
mod history;
#[cfg(test)]
pub(crate) mod listener;
mod model_writer;

pub use examples::{example_file, example_files, example_params, example_setup};
pub use model_writer::ModelWriter;

use crate::{AckEvent, CongestionControl, Fields, LossCause, LossEvent, Scheme, Setup};
use history::{Decisions, History};
use narrows_units::{Bytes, ParamSpec, Params, Span, Stream, Time};

/// Packet payload in tests.
pub const MSS: u64 = 1000;

/// The construction arguments of a scheme in tests: packets of [`MSS`] bytes, initial window 10.
pub fn setup() -> Setup {
    Setup {
        mss: Bytes::new(MSS),
        initial_window: 10,
        now: Time::ZERO,
        random: Stream::new(1, "test"),
        ecn: true,
        files: narrows_units::Files::default(),
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
    /// True if the window limits the sender.
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

    /// Values that the scheme traces.
    pub fn fields(&self) -> Fields {
        let mut fields = Fields::default();
        self.scheme.trace(&mut fields);
        fields
    }

    /// Acknowledges one window, packet by packet, spread evenly over one RTT.
    pub fn ack_round(&mut self) {
        self.ack_round_by(1);
    }

    /// Acknowledges one window, with `packets` packets per acknowledgement.
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

/// Passes `steps` random but legal events to a scheme with default parameters and checks that it never panics, never
/// stalls, never grows without bound, sets at least one limit, and is deterministic, whether it decides itself or leaves
/// its decisions to the caller.
///
/// # Panics
/// If the scheme violates the contract of [`CongestionControl`].
pub fn check(scheme: &Scheme, seed: u64, steps: u32) {
    try_out(scheme, Decisions::by_chance(seed), seed, steps);
    try_actions(scheme, seed, steps);
}

/// Passes random events to a scheme whose decisions the caller makes, and random actions, odd ones among them.
fn try_actions(scheme: &Scheme, seed: u64, steps: u32) {
    try_actions_with(scheme, &example_params(scheme), seed, steps);
}

/// The same with parameters other than the usual ones.
pub(crate) fn try_actions_with(scheme: &Scheme, params: &Params, seed: u64, steps: u32) {
    const ODD: [&[f32]; 6] = [
        &[],
        &[f32::NAN],
        &[f32::INFINITY; 3],
        &[-1e30; 3],
        &[f32::NAN; 3],
        &[0.0; 9],
    ];
    let mut built = (scheme.build)(params, example_setup()).expect("the parameters build");
    if !built.decide_outside() {
        assert!(built.observation().is_none(), "{}", scheme.name);
        return;
    }
    let mut history = History::new(Decisions::by_chance(seed));
    let mut stream = Stream::new(seed, "actions");
    let mut decisions = 0;
    for step in 0..steps {
        let before = built.allowance();
        let event = history.next(before.cwnd.map_or(100 * MSS, Bytes::get));
        event.play(&mut *built);
        if built.observation().is_none()
            && built.next_timer().is_some_and(|timer| timer <= history.now)
        {
            built.on_timer(history.now);
        }
        let Some(observation) = built.observation() else {
            continue;
        };
        assert!(
            observation.iter().all(|input| input.is_finite()),
            "{}: {observation:?} at step {step}",
            scheme.name
        );
        decisions += 1;
        let odd = ODD[stream.below(ODD.len() as u64) as usize];
        let usual: [f32; 3] = std::array::from_fn(|_| (4.0 * stream.uniform()) as f32);
        built.take_action(if stream.chance(0.1) { odd } else { &usual });
        let after = built.allowance();
        let cwnd = after.cwnd.map_or(MSS, Bytes::get);
        assert!(cwnd >= MSS, "{}: window {cwnd} at step {step}", scheme.name);
    }
    assert!(
        steps < 1_000 || decisions > 0,
        "{} never decides",
        scheme.name
    );
}

/// Entry for fuzzers: the first byte chooses a scheme of the registry, the others determine the events.
///
/// # Panics
/// If the scheme violates the contract of [`CongestionControl`].
pub fn fuzz(data: &[u8]) {
    if let Some((&first, rest)) = data.split_first() {
        let scheme = &crate::schemes::ALL[usize::from(first) % crate::schemes::ALL.len()];
        try_out(scheme, Decisions::Bytes(rest), 1, u32::MAX);
    }
}

/// Entry for fuzzers with the content of a model file: it is rejected in one sentence, or yields a scheme of its kind
/// that survives a short connection. An odd first byte means the content itself, an even one modifications of an
/// example.
///
/// # Panics
/// If neither is the case.
pub fn fuzz_models(data: &[u8]) {
    let Some((&first, rest)) = data.split_first() else {
        return;
    };
    let readers = ["remy", "indigo", "muses", "aurora", "policy"]
        .map(|name| crate::schemes::find(name).expect("a scheme"));
    let scheme = readers[usize::from(first / 2) % readers.len()];
    let file = example_file(scheme.name);
    let content = if first % 2 == 1 {
        rest.to_vec()
    } else {
        let mut content = example_files().get(&file).expect("an example").to_vec();
        for change in rest.chunks_exact(3) {
            let at = usize::from(u16::from_be_bytes([change[0], change[1]])) % content.len();
            content[at] = change[2];
        }
        content.truncate(content.len() - rest.len() % 3);
        content
    };
    let mut birth = setup();
    birth.files.insert(&file.sha256, content);
    match (scheme.build)(&example_params(scheme), birth) {
        Err(error) => {
            let text = error.to_string();
            assert!(
                text.len() < 300 && !text.contains(char::is_control),
                "{text:?}"
            );
        }
        Ok(mut built) => {
            // For any numbers, decisions are made, and sending is always possible.
            let mut history = History::new(Decisions::by_chance(1));
            for _ in 0..300 {
                let allowed = built.allowance();
                let may_send = match (allowed.cwnd, allowed.pacing) {
                    (Some(cwnd), _) => cwnd.get() >= MSS,
                    (None, rate) => rate.is_some_and(|rate| rate.bps() > 0),
                };
                assert!(may_send, "{}: {allowed:?}", scheme.name);
                let cwnd = allowed.cwnd.map_or(100 * MSS, Bytes::get);
                history.next(cwnd).play(&mut *built);
            }
        }
    }
}

/// Checks the page of a scheme of any registry: it states provenance and deviations, and each parameter has a
/// description and a source.
///
/// # Panics
/// If one is missing.
pub fn check_page(name: &str, page: &str, params: &[ParamSpec]) {
    for word in ["Provenance:", "Deviations:"] {
        assert!(page.contains(word), "{name}: its header lacks \"{word}\"");
    }
    for param in params {
        assert!(
            !param.doc.is_empty() && !param.source.is_empty(),
            "{name}: {}",
            param.name
        );
    }
}

fn try_out(scheme: &Scheme, decisions: Decisions<'_>, seed: u64, steps: u32) {
    let params = example_params(scheme);
    let birth = || Setup {
        random: Stream::new(seed, "scheme"),
        ..example_setup()
    };
    let mut first = (scheme.build)(&params, birth()).expect("defaults build");
    let mut second = (scheme.build)(&params, birth()).expect("defaults build");
    let mut history = History::new(decisions);
    for step in 0..steps {
        if history.is_over() {
            return;
        }
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
            // No scheme can have seen more than the bytes acknowledged; slow start doubles that. Hybla's multiplies it
            // by up to 2^16, with its own maximum window; so do model-driven schemes.
            let own = match scheme.name {
                "hybla" => 65_535 * MSS,
                // A measured rate times an RTT, which after a timeout may stem from another period: bursts of an
                // acknowledgement each 50 ms, and RTTs up to those of interplanetary paths.
                "westwood" => 10_000 * MSS,
                "remy" => 1_000_001 * MSS,
                "indigo" | "policy" => 100_000 * MSS,
                "muses" => 12_500 * MSS,
                _ => 0,
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
