//! Indigo: a recurrent network trained to imitate the optimal window decides every 10 ms.
//!
//! Provenance: Yan et al., Pantheon: the training ground for Internet congestion-control research, USENIX ATC 2018;
//! github.com/StanfordSNR/indigo, commits a9b2060, 3ae9e4e, 2601c92, 1f3a7f7 and 7224f22, whose senders are the same
//! and whose networks differ. Deviations: the window is at most 100 000 packets, whereas the original has no bound; the
//! handshake, which the receiver initiates, is omitted; packets sent while application-limited are excluded from steps
//! (the original's application always has data, as in training), so that an idle flow's window and network are
//! unchanged.
//!
//! The parameter `model` names the network. That of Narrows was trained by `narrows learn`; `narrows models add` reads
//! the authors' published checkpoints (`docs/guide/models.md`). With the first acknowledgement more than 10 ms after
//! the last decision, the averages of queueing delay, delivery rate and sending rate since then, the window and the
//! last action are the network's inputs, and it halves the window, removes 10 packets, keeps it, adds 10, or doubles
//! it. Nothing is paced, nothing is retransmitted, and losses have no direct effect.
//!
//! Pitfalls: the authors' networks were trained for 5 to 200 Mbit/s and round trips of 20 to 160 ms, and that of
//! Narrows for the paths of its card; elsewhere their behaviour is arbitrary. The shares of two flows are random.
//! Windows are sent in bursts. Decisions are made only on acknowledgements: on a silent path one packet per second
//! probes whether it is back. The clock has a granularity of 1 ms, as in training: on a local network the minimum RTT
//! is 0. The published sender is a Python program that stops at about 200 Mbit/s; this one does not.

use crate::parts::actions::{ActionName, Control};
use crate::parts::neural_policy::{self, ACTIONS, STEP};
use crate::parts::observations::{IndigoObserver, OBSERVATION_SETS, ObservationInfo, Observer};
use crate::parts::step_rules::{StepRule, Steps};
use crate::parts::{Lstm, Policy, model_file};
use crate::{CongestionControl, EcnUse, Profile, Recovery, Scheme, Setup};
use narrows_units::{FileRef, ParamError, Params, params};

/// Kind of its models.
const KIND: &str = "indigo";

/// Registry entry.
pub const SCHEME: Scheme = Scheme {
    name: "indigo",
    summary: "A recurrent network, trained by imitation, changes the window every 10 ms",
    source: "Yan et al., USENIX ATC 2018; github.com/StanfordSNR/indigo",
    recovery: Recovery::Direct,
    ecn: EcnUse::None,
    loss_based: false,
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
        model: File = "indigo", "a network of 9 inputs: `narrows models list`";
        /// Bytes counted per packet beyond its payload.
        header: Bytes(0.0..=1_000.0) = 24,
            "bytes counted per packet beyond its payload: the original counts whole datagrams";
    }
}

fn build(params: &Params, setup: Setup) -> Result<Box<dyn CongestionControl>, ParamError> {
    let params = IndigoParams::read(params);
    let observer = IndigoObserver::new(params.header.get(), setup.now);
    build_policy(&params.model, KIND, ActionName::Indigo, Box::new(observer), &setup)
}

/// A scheme with a network of the kind `kind`, whose inputs are those of the set of that name.
pub(super) fn build_policy(
    model: &FileRef,
    kind: &str,
    action: ActionName,
    observer: Box<dyn Observer>,
    setup: &Setup,
) -> Result<Box<dyn CongestionControl>, ParamError> {
    let inputs = OBSERVATION_SETS.iter().find(|set| set.name == kind).map_or(0, ObservationInfo::size);
    let network = model_file::load(model, &setup.files, |model| {
        model.expect_kind(kind)?;
        Lstm::new(model, inputs, ACTIONS)
    })?;
    let steps = Steps::new(StepRule::Ack(STEP));
    let control = Control::new(action, setup);
    let policy = Policy::new(observer, inputs, steps, control, Some(network.into()));
    Ok(Box::new(policy))
}

#[cfg(test)]
mod tests {
    mod inputs;

    use super::*;
    use crate::{AckEvent, AckedPacket, Fields, SendEvent};
    use narrows_units::{Bytes, Span, Time};
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
        // The example network doubles until a delay appears, then adds 10, holds, removes 10 or halves.
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
        // A step begins with the first window-limited packet.
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
