//! Aurora: a small network, trained by rewards alone, changes the sending rate every half round trip.
//!
//! Provenance: Jay, Rotman, Godfrey, Schapira and Tamar, A Deep Reinforcement Learning Perspective on Internet
//! Congestion Control, ICML 2019; inputs, steps and actions as in github.com/PCCproject/PCC-RL, commit 67aa329.
//! Deviations: an action changes the rate by at most 2.5 %, where the original's actions have no bound; a flow begins
//! with its initial window over the first RTT, where the original begins with 0.3 to 1.5 times the rate of the link in
//! training, and with a fixed rate elsewhere; rates are 10 kbit/s to 100 Gbit/s, where the original's are 40 to 1000
//! packets per second; a step has half the smoothed RTT, where the original takes half the mean RTT of the step before;
//! packets sent while application-limited are excluded from steps.
//!
//! The parameter `model` names the network. The default, `aurora`, was trained by Narrows with the law of paths and the
//! reward of the paper: `narrows learn aurora` trains others (`docs/guide/learning.md`). The inputs are latency
//! inflation, latency ratio and send ratio of the last ten steps, all of them ratios, so that the policy does not depend
//! on the units of its training. Nothing limits the window.
//!
//! Pitfalls: there is no slow start. The rate changes by at most 2.5 % per half round trip and so needs 14 round trips
//! to double: a flow over a large bandwidth-delay product takes seconds to fill it. Losses are an input only as packets
//! that were sent and not acknowledged. A flow that shares its bottleneck was not part of the training, nor were paths
//! whose rate changes. When acknowledgements cease the flow sends on until the transport's timeout. A flow that is idle
//! when a step ends makes no decision: with less than a packet in flight on average the rate never changes.

use super::policy;
use crate::parts::actions::ActionName;
use crate::parts::model_file;
use crate::parts::observations::ObservationName;
use crate::{CongestionControl, Scheme, Setup};
use narrows_units::{ParamError, Params, params};

/// Kind of its models.
const KIND: &str = "aurora";

/// Registry entry.
pub const SCHEME: Scheme = Scheme {
    name: "aurora",
    summary: "A small network, trained by rewards, changes the rate every half round trip",
    source: "Jay et al., ICML 2019; github.com/PCCproject/PCC-RL",
    profiles: &[],
    params: AuroraParams::PARAMS,
    build,
    ..policy::SCHEME
};

params! {
    /// Parameters.
    struct AuroraParams {
        /// The network, by its name among the installed models, or a file.
        model: File = "aurora", "a policy of 30 inputs: `narrows models list`";
    }
}

fn build(params: &Params, setup: Setup) -> Result<Box<dyn CongestionControl>, ParamError> {
    let params = AuroraParams::read(params);
    let (design, network) = model_file::load(&params.model, &setup.files, |model| {
        let (design, network) = policy::read(model, KIND)?;
        if design.observation != ObservationName::Aurora || design.action != ActionName::RateFactor {
            return Err("its policy lacks the observation aurora or the action rate-factor".into());
        }
        Ok((design, network))
    })?;
    design.build(Some(network), &setup)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{MSS, ModelWriter, example_params, example_setup};
    use crate::{AckEvent, AckedPacket, SendEvent};
    use narrows_units::{Bytes, Span, Time};

    fn at(ms: u64) -> Time {
        Time::ZERO + Span::from_ms(ms)
    }

    /// The rates in bit/s after each decision of a flow whose packets, one per ms, have these RTTs in ms.
    fn rates(rtts: impl Fn(u64) -> u64) -> Vec<f64> {
        let mut scheme = build(&example_params(&SCHEME), example_setup()).unwrap();
        let mut rates = Vec::new();
        let mut waiting = Vec::new();
        for ms in 0..2_000 {
            let mut send = SendEvent::new(at(ms), ms, Bytes::new(MSS));
            send.in_flight = Bytes::new(40 * MSS);
            scheme.on_send(&send);
            waiting.push((ms + rtts(ms), ms));
            let (due, rest) = waiting.into_iter().partition::<Vec<_>, _>(|(back, _)| *back <= ms);
            waiting = rest;
            for (_, sent) in due {
                let packets = [AckedPacket {
                    number: sent,
                    bytes: MSS as u32,
                    sent: at(sent),
                    arrived: None,
                }];
                let mut ack = AckEvent::new(at(ms));
                ack.packets = &packets;
                ack.smoothed_rtt = Span::from_ms(ms - sent);
                ack.in_flight = Bytes::new(40 * MSS);
                scheme.on_ack(&ack);
            }
            if scheme.next_timer().is_some_and(|timer| timer <= at(ms)) {
                scheme.on_timer(at(ms));
                rates.push(scheme.allowance().pacing.unwrap().bps() as f64);
            }
        }
        rates
    }

    #[test]
    fn the_rate_rises_without_a_queue_and_falls_behind_a_long_one_each_half_round_trip() {
        let rising = rates(|_| 40);
        // From the first acknowledgement at 40 ms on; this loop looks at timers each ms.
        assert!((1_960 / 22..=1_960 / 20).contains(&rising.len()), "{}", rising.len());
        let mut ratios = rising.windows(2).map(|pair| pair[1] / pair[0]);
        assert!(ratios.all(|ratio| (1.0..1.0251).contains(&ratio)), "{rising:?}");
        assert!(rising[rising.len() - 1] > 1.5 * rising[10], "{rising:?}");
        let falling = rates(|ms| if ms < 300 { 40 } else { 100 });
        let late = &falling[falling.len() - 10..];
        assert!(late.windows(2).all(|pair| pair[1] < pair[0]), "{falling:?}");
    }

    #[test]
    fn policies_of_other_kinds_inputs_and_actions_are_refused() {
        let problem = |kind: &str, description: &str| {
            let content = ModelWriter::new(kind)
                .policy(description)
                .singles("kernel0", &[30, 1], &[0.0; 30])
                .singles("bias0", &[1], &[0.0])
                .finish();
            let mut setup = example_setup();
            setup.files.insert("example-aurora", content);
            let built = build(&example_params(&SCHEME), setup);
            built.err().map(|error| error.to_string()).unwrap_or_default()
        };
        let good = r#"{"observation": "aurora", "step": "rtt", "action": "rate-factor", "layers": [{"kind": "dense"}]}"#;
        assert_eq!(problem("aurora", good), "");
        assert!(problem("policy", good).contains("of the kind policy, where a model of the kind aurora"));
        let other = good.replace("rate-factor", "window-factor");
        assert!(problem("aurora", &other).contains("lacks the observation aurora or the action"));
    }
}
