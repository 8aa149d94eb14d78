//! FillP (approximation): BBR that fills the path and a queue larger than the path, empties it, and starts again.
//!
//! Approximation. FillP was published as a closed binary; the known facts are its repository's description, the names
//! in its binaries, the paper on its acknowledgements, and the observed behaviour of the binary of 2018. This scheme is
//! derived from these and is not the original.
//!
//! Provenance: README of the FillP repository in the Pantheon collection (2023): "TACK" and BBR that may have more than
//! two bandwidth-delay products in flight; T. Li et al., "TACK: Improving Wireless Transport Performance by Taming
//! Acknowledgments", SIGCOMM 2020; the scheme `bbr1`. Observed with one flow of the binary: at 12 Mbit/s, 40 ms and a
//! buffer of 60 kB 11.84 Mbit/s from the first second on, a queue of 20.5 ms in the mean and as long as the buffer at
//! its 95th percentile, 7.8 % lost in bursts, and no sign of PROBE_RTT in 27 s; on a cellular trace with 750 kB 4.34
//! Mbit/s, a queue of 50 ms in the mean and nothing lost. The latter implies a limit of the data in flight, contrary to
//! the README.
//!
//! Deviations: BBR is that of `bbr1` except for the following. PROBE_BW has three phases: with gain `probe_gain`, until
//! so many bandwidth-delay products are in flight; with 0.75, until one is; and one round trip with 1. The bandwidth is
//! the maximum of two rounds: with ten, as in BBR, a falling rate is detected too late on a cellular link (100 ms in
//! the mean there, with two products in flight). These numbers were chosen to reproduce both observations: 11.83
//! Mbit/s, 17.7 ms and 7.2 % lost on the one path, 4.37 Mbit/s, 58 ms and nothing lost on the other. Gains, start-up
//! and the tolerated loss ratio (an April 2018 configuration says 5 %) are unknown. The delivery rate is measured at
//! the sender, not reported by the receiver.
//!
//! An acknowledgement is sent for every second packet or four times per minimum RTT, whichever is less, and at once
//! when a gap opens: 40 per second on a path of 100 ms, at any rate. The sender paces at BBR's rate. The profile
//! `pantheon` has payloads of 1300 bytes.
//!
//! Pitfalls: buffers of less than 1.25 bandwidth-delay products overflow every few round trips, and cause losses for
//! other flows, too.

use super::bbr1::{Bbr1, Bbr1Params, Probing};
use crate::{CongestionControl, Profile, Scheme, Setup};
use narrows_units::{ParamError, Params, params};

/// Registry entry.
pub const SCHEME: Scheme = Scheme {
    name: "fillp",
    summary: "Approximation of FillP: BBR that fills and empties more than the path, TACK acknowledgements",
    source: "README of FillP and its binary of 2018, observed; Li et al. 2020 (TACK); Linux net/ipv4/tcp_bbr.c",
    // TACK's L = 2 and beta = 4.
    transport: &[("ack_every", "2"), ("acks_per_rtt", "4")],
    profiles: &[Profile {
        name: "pantheon",
        doc: "As in the Pantheon reports: payloads of 1300 bytes.",
        params: &[],
        // 1300 bytes, plus 28 of IP and UDP and 28 of the transport header.
        transport: &[("packet_size", "1356")],
    }],
    params: FillpParams::PARAMS,
    build,
    ..super::bbr1::SCHEME
};

params! {
    /// Parameters.
    struct FillpParams {
        /// Gain of rate and window in STARTUP.
        startup_gain: Number(1.25..=10.0) = 2.88671875, "Linux tcp_bbr.c: bbr_high_gain (FillP's is unknown)";
        /// Gain of the phase of PROBE_BW that sends more, and the bandwidth-delay products in flight at its end.
        probe_gain: Number(1.0..=10.0) = 2.25, "chosen; more than 2 by FillP's README";
        /// Maximum bandwidth-delay products in flight in PROBE_BW.
        cwnd_gain: Number(1.0..=10.0) = 2.25, "chosen: the same";
        /// Rounds over which the bandwidth is the maximum.
        bandwidth_window: Count(1.0..=100.0) = 2, "chosen";
        /// Time after which the minimum RTT is probed again.
        min_rtt_window: Span(1e8..=1e12) = "30 s", "observed: more than 27 s";
        /// Minimum time in PROBE_RTT with four packets in flight.
        probe_rtt_time: Span(0.0..=1e10) = "200 ms", "Linux tcp_bbr.c: bbr_probe_rtt_mode_ms (FillP's is unknown)";
    }
}

/// Gain of the phase that sends less: Linux tcp_bbr.c, bbr_pacing_gain.
const DOWN: f64 = 0.75;

fn build(params: &Params, setup: Setup) -> Result<Box<dyn CongestionControl>, ParamError> {
    let set = FillpParams::read(params);
    let probing = Probing { gains: vec![set.probe_gain, DOWN, 1.0], until_drained: true, rounds: set.bandwidth_window };
    let params = Bbr1Params {
        startup_gain: set.startup_gain,
        probe_gain: set.probe_gain,
        cwnd_gain: set.cwnd_gain,
        min_rtt_window: set.min_rtt_window,
        probe_rtt_time: set.probe_rtt_time,
        policer: true,
        aggregation: true,
    };
    Ok(Box::new(Bbr1::new(params, setup, probing)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{MSS, setup};
    use crate::{AckEvent, Fields, CaState, RateSample};
    use narrows_units::{Bytes, Rate, Span, Time};

    /// One acknowledgement of a packet with a sample of `mbps`, on a path of 40 ms; `in_flight` packets are then in
    /// flight.
    fn ack(scheme: &mut dyn CongestionControl, at_ms: u64, delivered: u64, in_flight: u64, mbps: u64) {
        let mut ack = AckEvent::new(Time::from_ns(at_ms * 1_000_000));
        let rtt = Span::from_ms(40);
        ack.bytes = Bytes::new(MSS);
        ack.delivered = Bytes::new(delivered * MSS);
        (ack.latest_rtt, ack.smoothed_rtt, ack.min_rtt) = (Some(rtt), rtt, rtt);
        ack.in_flight = Bytes::new(in_flight * MSS);
        ack.in_flight_before = Bytes::new((in_flight + 1) * MSS);
        ack.phase = CaState::Open;
        ack.rate = Some(RateSample {
            rate: Rate::from_bps(mbps * 1_000_000),
            delivered: Bytes::new(mbps * 5_000),
            interval: rtt,
            app_limited: false,
            prior_delivered: Bytes::new(delivered.saturating_sub(35) * MSS),
            in_flight_at_send: Bytes::new(35 * MSS),
            lost: Bytes::ZERO,
        });
        scheme.on_ack(&ack);
    }

    fn shown(scheme: &dyn CongestionControl, name: &str) -> f64 {
        let mut fields = Fields::default();
        scheme.trace(&mut fields);
        fields.values.iter().find(|value| value.0 == name).unwrap().1
    }

    /// The path holds 35 packets: 79 with a gain of 2.25. The data in flight determines how long the gains of 2.25 and
    /// 0.75 last.
    #[test]
    fn more_than_the_path_is_filled_and_emptied() {
        let mut scheme = build(&Params::resolve(SCHEME.params, []).unwrap(), setup()).unwrap();
        let (mut at, mut delivered) = (40, 0);
        let mut step = |scheme: &mut dyn CongestionControl, in_flight: u64| {
            at += 41;
            delivered += 36;
            ack(scheme, at, delivered, in_flight, 10);
            shown(scheme, "pacing_gain")
        };
        assert!((0..200).any(|_| step(&mut *scheme, 30) == 2.25), "no probe");
        for _ in 0..5 {
            assert_eq!(step(&mut *scheme, 70), 2.25);
        }
        assert_eq!(step(&mut *scheme, 150), DOWN);
        for _ in 0..5 {
            assert_eq!(step(&mut *scheme, 60), DOWN);
        }
        assert_eq!(step(&mut *scheme, 20), 1.0);
        assert_eq!(step(&mut *scheme, 30), 2.25);
    }

    /// The delivery rate falls to a half: three rounds later that is the bandwidth.
    #[test]
    fn what_falls_is_noticed_within_three_rounds() {
        let mut scheme = build(&Params::resolve(SCHEME.params, []).unwrap(), setup()).unwrap();
        for round in 1..20 {
            ack(&mut *scheme, 41 * round, 36 * round, 30, 10);
        }
        let before = shown(&*scheme, "bandwidth_bps");
        for round in 20..23 {
            ack(&mut *scheme, 41 * round, 36 * round, 30, 5);
        }
        let share = shown(&*scheme, "bandwidth_bps") / before;
        assert!((share - 0.5).abs() < 0.01, "{share}");
    }
}
