//! Koho with constants from a search: an eighth of a packet per acknowledgement around 5.5 ms of queue, less for losses.
//!
//! Provenance: github.com/greghill/koho_cc, commit 3cb73c0, as Pantheon ran it ("calibrated_koho"). A packet that was sent
//! more than 5 ms before one that is acknowledged is lost and takes a twentieth of a packet off the window.
//!
//! Deviations: those of `koho`; the original looks for the oldest packet also when there is none. A packet whose
//! acknowledgement was lost is not taken for lost.
//!
//! The window rises and falls by an eighth of itself per round trip. Pitfalls: flows do not become equal; the same 5.5 ms on
//! all paths, so that a jitter of some milliseconds keeps the window at two packets; without a queue it
//! grows up to 72 % of losses; otherwise as `koho`.
//!
//! | parameter | default | source |
//! |---|---|---|
//! | queue | 5.487712 ms | koho_cc 3cb73c0: controller.cc |
//! | step | 0.127221 packets | koho_cc 3cb73c0: controller.cc |
//! | loss_step | 0.05 packets | koho_cc 3cb73c0: controller.cc |
//! | late | 5 ms | koho_cc 3cb73c0: controller.cc |
//! | largest | 10000 packets | koho_cc 3cb73c0: controller.cc |
//! | silence | 50 ms | koho_cc 3cb73c0: controller.cc, timeout_ms |
//! | patient | true | false: koho_cc; true keeps slow paths from being flooded |

use super::koho::{DATAGRAMS, Koho, Late, Long, PATIENT, PROFILES, KohoRules, SILENCE};
use crate::{CongestionControl, EcnUse, Recovery, Scheme, Setup};
use narrows_units::{Kind, ParamError, ParamSpec, Params, Span};

/// Registry line.
pub const SCHEME: Scheme = Scheme {
    name: "koho-calibrated",
    summary: "Koho with searched constants: 5.5 ms of queue on all paths, a little less after losses",
    source: "greghill/koho_cc 3cb73c0",
    recovery: Recovery::Direct,
    ecn: EcnUse::None,
    transport: DATAGRAMS,
    profiles: PROFILES,
    params: &[
        ParamSpec::new(
            "queue",
            Kind::Span,
            "Queueing delay above which the window shrinks.",
        )
        .default("5487712")
        .range(0.0, 1e10)
        .source("koho_cc 3cb73c0: controller.cc"),
        ParamSpec::new(
            "step",
            Kind::Number,
            "Packets by which an acknowledgement moves the window.",
        )
        .default("0.127221")
        .range(0.001, 1.0)
        .source("koho_cc 3cb73c0: controller.cc"),
        ParamSpec::new(
            "loss_step",
            Kind::Number,
            "Packets by which a loss makes the window smaller.",
        )
        .default("0.05")
        .range(0.0, 10.0)
        .source("koho_cc 3cb73c0: controller.cc"),
        ParamSpec::new(
            "late",
            Kind::Span,
            "Sent so long before one that is acknowledged, a packet is lost.",
        )
        .default("5000000")
        .range(0.0, 1e10)
        .source("koho_cc 3cb73c0: controller.cc"),
        ParamSpec::new("largest", Kind::Packets, "Largest window.")
            .default("10000")
            .range(2.0, 1e6)
            .source("koho_cc 3cb73c0: controller.cc"),
        SILENCE,
        PATIENT,
    ],
    build,
};

fn build(params: &Params, setup: Setup) -> Result<Box<dyn CongestionControl>, ParamError> {
    Ok(Box::new(Koho::new(rules(params), params, &setup)))
}

fn rules(params: &Params) -> KohoRules {
    let span = |name| params.span(name).unwrap_or(Span::ZERO);
    KohoRules {
        long: Long::Plus(span("queue").ns() as f64),
        step: params.real("step").unwrap_or_default(),
        largest: params.integer("largest").unwrap_or_default() as f64,
        late: Some(Late {
            after: span("late"),
            step: params.real("loss_step").unwrap_or_default(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schemes::koho::tests::{Peer, peer};

    fn calibrated() -> Peer {
        peer(rules(&Params::resolve(SCHEME.params, []).unwrap()))
    }

    // Half of an RTT of 40 ms and 5.487712 ms.
    #[test]
    fn the_turning_point_is_five_and_a_half_milliseconds() {
        let mut peer = calibrated();
        for (queue_ms, change) in [(0, 0.127_221), (5, 0.127_221), (6, -0.127_221)] {
            let moved = peer.ack(queue_ms);
            assert!((moved - change).abs() < 1e-12, "{queue_ms} ms: {moved}");
        }
    }

    #[test]
    fn two_losses_cost_a_tenth_of_a_packet() {
        let mut peer = calibrated();
        for later_ms in [0, 1, 6, 4] {
            peer.send(later_ms);
        }
        let now = peer.now();
        // The last packet is acknowledged: the first two were sent 11 and 10 ms before it, the third 4.
        peer.ack_of(4, now, 0, true);
        assert!(
            (peer.window() - (16.0 - 0.1 + 0.127_221)).abs() < 1e-12,
            "{}",
            peer.window()
        );
        // The third arrives after all, and counts as any other; nothing is lost twice.
        peer.ack_of(3, now - Span::from_ms(4), 0, true);
        peer.ack_of(1, now - Span::from_ms(11), 0, true);
        assert!(
            (peer.window() - (15.9 + 3.0 * 0.127_221)).abs() < 1e-12,
            "{}",
            peer.window()
        );
    }

    #[test]
    fn losses_alone_hardly_matter() {
        let mut peer = calibrated();
        // Half of all packets: 0.05 down for 0.127 up.
        for _ in 0..100 {
            peer.send(6);
            peer.ack(0);
        }
        assert!(
            (peer.window() - (16.0 + 100.0 * (0.127_221 - 0.05))).abs() < 0.06,
            "{}",
            peer.window()
        );
    }
}
