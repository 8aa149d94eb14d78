//! Muses: Indigo's successor by Huawei and Stanford, with pacing, losses among its inputs, and deeper target queues.
//!
//! Provenance: github.com/StanfordSNR/indigo, branch muses, commit 094ec0b (2018-08-27), model 24, which Pantheon's
//! report of 2018-08 ran under a commit that no longer exists. Deviations: pacing is continuous, whereas the original
//! checks every half millisecond what it may send; the packets between two decisions are identified by their numbers,
//! not by the millisecond of sending; the sender does not stop after 5 s without sending; packets sent while
//! application-limited are excluded from steps, as with Indigo.
//!
//! The parameter `model` names the network. That of Narrows was trained by `narrows learn`; `narrows models add` reads
//! the authors' published checkpoint (`docs/guide/models.md`). Decisions are made as by Indigo, with the same five
//! actions. The network's inputs are the round trip (an average that is never reset), the queueing delay above the
//! minimum RTT, both rates, the loss ratio since the last decision, and the window, which stays between 10 and 12 500
//! packets and is paced over the minimum RTT. When nothing was sent for a round trip one packet is sent as a probe.
//!
//! Pitfalls: it was trained to keep four fifths of the buffer filled. The authors' network was trained for links of 100
//! and 1000 Mbit/s; as the window is never below 10 packets, slow links get a queue. The original's packets have 3000
//! bytes, which Ethernet fragments into two (`profile: pantheon`; for simulation, or links with such large packets).
//! Its clock has a granularity of 1 ms, as the original's, and on fast paths with short round trips its behaviour
//! depends on where in a step the acknowledgements arrive: on a path of 900 Mbit/s it reached 193, 341, 910 and 924
//! Mbit/s with a return delay of 1.5, 0.3, 2.2 and 4 ms. The clock is the transport's setting `clock`:
//! `{muses: MODEL, transport: {clock: 1 us}}` selects a finer one, with which the network has not been trained.

use super::indigo::build_policy;
use crate::parts::actions::ActionName;
use crate::parts::observations::MusesObserver;
use crate::{CongestionControl, Profile, Scheme, Setup};
use narrows_units::{ParamError, Params, params};

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
        model: File = "muses", "a network of 11 inputs: `narrows models list`";
        /// Bytes counted per packet beyond its payload.
        header: Bytes(0.0..=1_000.0) = 52,
            "bytes counted per packet beyond its payload: packets count with their size on the wire";
    }
}

fn build(params: &Params, setup: Setup) -> Result<Box<dyn CongestionControl>, ParamError> {
    let params = MusesParams::read(params);
    let observer = MusesObserver::new(params.header.get(), setup.now);
    build_policy(&params.model, KIND, ActionName::Muses, Box::new(observer), &setup)
}

#[cfg(test)]
mod tests {
    mod inputs;

    use super::*;
    use crate::{AckEvent, AckedPacket, Fields, SendEvent};
    use narrows_units::{Bytes, Rate, Span, Time};
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
