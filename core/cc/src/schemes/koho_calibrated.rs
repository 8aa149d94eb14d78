//! Koho with constants from a search: an eighth of a packet per acknowledgement around 5.5 ms of queue, less for losses.
//!
//! Provenance: github.com/greghill/koho_cc, commit 3cb73c0, as Pantheon ran it ("calibrated_koho"). A packet sent more
//! than 5 ms before an acknowledged one is lost and reduces the window by a twentieth of a packet.
//!
//! Deviations: those of `koho`; the original searches for the oldest packet even if none exists. A packet whose
//! acknowledgement was lost does not count as lost.
//!
//! The window rises and falls by an eighth per round trip. Pitfalls: flows do not converge to fairness; the same 5.5 ms
//! on all paths, so that a jitter of some milliseconds keeps the window at two packets; without a queue it grows at up
//! to 72 % loss; otherwise as `koho`.

use super::koho::{Koho, KohoRules, Late, Long};
use crate::Scheme;
use narrows_units::{Params, params};

/// Registry entry.
pub const SCHEME: Scheme = Scheme {
    name: "koho-calibrated",
    summary: "Koho with searched constants: 5.5 ms of queue on all paths, a little less after losses",
    source: "greghill/koho_cc 3cb73c0",
    params: KohoCalibratedParams::PARAMS,
    build: |params, setup| Ok(Box::new(Koho::new(rules(params), &setup))),
    ..super::koho::SCHEME
};

params! {
    /// Parameters.
    struct KohoCalibratedParams {
        /// Queueing delay above which the window shrinks.
        queue: Span(0.0..=1e10) = "5.487712 ms", "koho_cc 3cb73c0: controller.cc";
        /// Packets by which an acknowledgement changes the window.
        step: Number(0.001..=1.0, "packets") = 0.127221, "koho_cc 3cb73c0: controller.cc";
        /// Packets by which a loss reduces the window.
        loss_step: Number(0.0..=10.0, "packets") = 0.05, "koho_cc 3cb73c0: controller.cc";
        /// A packet sent this long before an acknowledged one is lost.
        late: Span(0.0..=1e10) = "5 ms", "koho_cc 3cb73c0: controller.cc";
        /// Maximum window.
        largest: Packets(2.0..=1e6) = 10000, "koho_cc 3cb73c0: controller.cc";
        /// Time without acknowledgements after which one packet is sent regardless of the window.
        silence: Span(1e6..=6e10) = "50 ms", "koho_cc 3cb73c0: controller.cc, timeout_ms";
        /// That time is at least two smoothed RTTs.
        patient: Flag = true, "false: koho_cc; true keeps slow paths from being flooded";
    }
}

fn rules(params: &Params) -> KohoRules {
    let params = KohoCalibratedParams::read(params);
    KohoRules {
        long: Long::Plus(params.queue.ns() as f64),
        step: params.step,
        largest: params.largest,
        late: Some(Late { after: params.late, step: params.loss_step }),
        silence: params.silence,
        patient: params.patient,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schemes::koho::tests::{Peer, peer};
    use narrows_units::Span;

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
        // The third arrives after all, and counts like any other; nothing is lost twice.
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
