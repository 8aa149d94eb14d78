//! FillP (approximation): BBR without a limit of what is in flight, with acknowledgements tamed as in TACK.
//!
//! Approximation. FillP was published as a closed binary; what is known is what its repository says, the names in its
//! binaries, and the paper on its acknowledgements. This scheme puts those together and is not the original.
//!
//! Provenance: README of the FillP repository in the Pantheon collection (2023): "TACK" and BBR without limits of the
//! bytes in flight; T. Li et al., "TACK: Improving Wireless Transport Performance by Taming Acknowledgments",
//! SIGCOMM 2020; our `bbr1`. Deviations: from the original unknown, for the gains, the start-up and the share of losses
//! that is tolerated (an April 2018 configuration says 5 %) are inside the binaries. BBR is that of `bbr1`
//! in all but its window: there is none in STARTUP, DRAIN and PROBE_BW. In PROBE_RTT four packets may fly, as otherwise the
//! state, which the binaries name, could not see the path's RTT; and until the first RTT is known, and from a timeout
//! until it is repaired, BBR's window holds. A timeout needs a pause, though: as long as new data leave, a path that is dead
//! is sent into. The delivery
//! rate is measured at the sender, not reported by the receiver.
//!
//! An acknowledgement comes for every second packet or four times in the smallest round trip, whichever is less, and at once
//! when a gap opens: 40 per second on a path of 100 ms, at any rate. The sender paces at BBR's rate. Expected, and
//! so in the Pantheon reports: throughput near the top, and much delay, as nothing bounds the queue
//! where the bandwidth is overestimated: on links that vary, and beside other flows. For bounds see `fillp-sheep`. The
//! profile `pantheon` has payloads of 1300 bytes.
//!
//! Pitfalls: what it floods opens gaps, and each is acknowledged at once, so that a return path that carries few packets (10 kbit/s,
//! one per 100 ms) has acknowledgements wait in it for minutes; until they have come in, the state that looks for the
//! path's RTT is silent.
//!
//! | parameter | default | source |
//! |---|---|---|
//! | startup_gain | 739/256 | Linux tcp_bbr.c: bbr_high_gain (FillP's is unknown) |
//! | min_rtt_window | 10 s | Linux tcp_bbr.c: bbr_min_rtt_win_sec (FillP's is unknown) |
//! | probe_rtt_time | 200 ms | Linux tcp_bbr.c: bbr_probe_rtt_mode_ms (FillP's is unknown) |

use super::bbr1::Bbr1;
use crate::{
    AckEvent, Allowance, CongestionControl, EcnUse, Fields, LossEvent, Profile, Recovery, Scheme, SendEvent, Setup,
    SpuriousLossEvent,
};
use narrows_units::{Kind, ParamError, ParamSpec, Params};

/// Registry line.
pub const SCHEME: Scheme = Scheme {
    name: "fillp",
    summary: "Approximation of FillP: BBR with nothing but its rate as a limit, TACK acknowledgements",
    source: "README of FillP; Li et al. 2020 (TACK); Linux net/ipv4/tcp_bbr.c",
    recovery: Recovery::Direct,
    ecn: EcnUse::None,
    transport: TRANSPORT,
    profiles: PROFILES,
    params: &[STARTUP_GAIN, MIN_RTT_WINDOW, PROBE_RTT_TIME],
    build,
};

/// TACK's L = 2 and beta = 4.
pub(super) const TRANSPORT: &[(&str, &str)] = &[("ack_every", "2"), ("acks_per_rtt", "4")];

/// 1300 bytes, and 28 of IP and UDP and 28 of ours.
pub(super) const PROFILES: &[Profile] = &[Profile {
    name: "pantheon",
    doc: "As in the Pantheon reports: payloads of 1300 bytes.",
    params: &[],
    transport: &[("packet_size", "1356")],
}];

pub(super) const STARTUP_GAIN: ParamSpec =
    ParamSpec::new("startup_gain", Kind::Number, "Gain of rate and window in STARTUP.")
        .default("2.88671875")
        .range(1.25, 10.0)
        .source("Linux net/ipv4/tcp_bbr.c, bbr_high_gain = 739/256; FillP's is unknown");
pub(super) const MIN_RTT_WINDOW: ParamSpec =
    ParamSpec::new("min_rtt_window", Kind::Span, "Time after which the smallest RTT is looked at again.")
        .default("10000000000")
        .range(1e8, 1e12)
        .source("Linux net/ipv4/tcp_bbr.c, bbr_min_rtt_win_sec; FillP's is unknown");
pub(super) const PROBE_RTT_TIME: ParamSpec =
    ParamSpec::new("probe_rtt_time", Kind::Span, "Least time in PROBE_RTT with four packets in flight.")
        .default("200000000")
        .range(0.0, 1e10)
        .source("Linux net/ipv4/tcp_bbr.c, bbr_probe_rtt_mode_ms; FillP's is unknown");

fn build(params: &Params, setup: Setup) -> Result<Box<dyn CongestionControl>, ParamError> {
    Ok(Box::new(Fillp { bbr: Bbr1::new(params, setup) }))
}

struct Fillp {
    bbr: Bbr1,
}

impl CongestionControl for Fillp {
    fn on_ack(&mut self, ack: &AckEvent<'_>) {
        self.bbr.on_ack(ack);
    }

    fn on_loss(&mut self, loss: &LossEvent<'_>) {
        self.bbr.on_loss(loss);
    }

    fn on_spurious_loss(&mut self, spurious: &SpuriousLossEvent) {
        self.bbr.on_spurious_loss(spurious);
    }

    fn on_send(&mut self, send: &SendEvent) {
        self.bbr.on_send(send);
    }

    fn allowance(&self) -> Allowance {
        let mut allowance = self.bbr.allowance();
        if !self.bbr.needs_window() {
            allowance.cwnd = None;
        }
        allowance
    }

    fn holds_back(&self) -> bool {
        self.bbr.holds_back()
    }

    fn trace(&self, fields: &mut Fields) {
        self.bbr.trace(fields);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{MSS, Script, setup};
    use crate::{LossCause, Phase, RateSample};
    use narrows_units::{Bytes, Rate, Span, Time};

    fn fillp() -> Box<dyn CongestionControl> {
        build(&Params::resolve(SCHEME.params, []).unwrap(), setup()).unwrap()
    }

    /// One acknowledgement of a packet, with a sample of 10 Mbit/s.
    fn ack(scheme: &mut dyn CongestionControl, at_ms: u64, rtt_ms: u64, delivered: u64, phase: Phase) {
        let mut ack = AckEvent::new(Time::from_ns(at_ms * 1_000_000));
        let rtt = Span::from_ms(rtt_ms);
        ack.bytes = Bytes::new(MSS);
        ack.delivered = Bytes::new(delivered * MSS);
        (ack.latest_rtt, ack.smoothed_rtt, ack.min_rtt) = (Some(rtt), rtt, rtt);
        ack.in_flight = Bytes::new(100 * MSS);
        ack.in_flight_before = Bytes::new(101 * MSS);
        ack.phase = phase;
        ack.rate = Some(RateSample {
            rate: Rate::from_bps(10_000_000),
            delivered: Bytes::new(12_500 * rtt_ms / 10),
            interval: rtt,
            app_limited: false,
            prior_delivered: Bytes::new(delivered.saturating_sub(50) * MSS),
            in_flight_at_send: Bytes::new(50 * MSS),
            lost: Bytes::ZERO,
        });
        scheme.on_ack(&ack);
    }

    #[test]
    fn nothing_but_the_rate_is_a_limit_once_the_path_is_known() {
        let mut script = Script::new(fillp());
        // Ten packets before anything is known of the path.
        assert_eq!(script.scheme.allowance().cwnd, Some(Bytes::new(10 * MSS)));
        script.ack_round();
        assert_eq!(script.scheme.allowance().cwnd, None);
        assert!(script.scheme.allowance().pacing.is_some());
    }

    #[test]
    fn after_a_timeout_there_is_a_window_until_it_is_repaired() {
        let mut scheme = fillp();
        ack(&mut *scheme, 40, 40, 1, Phase::Open);
        assert_eq!(scheme.allowance().cwnd, None);
        let mut loss =
            LossEvent::new(Time::from_ns(300_000_000), LossCause::Timeout, Bytes::new(100 * MSS));
        loss.in_flight = Bytes::new(100 * MSS);
        scheme.on_loss(&loss);
        assert_eq!(scheme.allowance().cwnd, Some(Bytes::new(MSS)));
        ack(&mut *scheme, 400, 40, 2, Phase::Timeout);
        assert!(scheme.allowance().cwnd.is_some());
        ack(&mut *scheme, 410, 40, 3, Phase::Open);
        assert_eq!(scheme.allowance().cwnd, None);
    }

    #[test]
    fn probe_rtt_has_its_four_packets() {
        let mut scheme = fillp();
        for index in 0..2000 {
            // After the first the RTT is longer: its minimum expires after 10 s.
            let rtt = if index == 0 { 40 } else { 60 };
            ack(&mut *scheme, 40 + 10 * index, rtt, 1 + index, Phase::Open);
            let mut fields = Fields::default();
            scheme.trace(&mut fields);
            let limit = scheme.allowance().cwnd;
            if fields.mode == "probe_rtt" {
                assert_eq!(limit, Some(Bytes::new(4 * MSS)));
                return;
            }
            assert_eq!(limit, None);
        }
        panic!("no PROBE_RTT in 20 s");
    }
}
