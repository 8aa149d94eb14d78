//! Policies: their files, their decisions, and their limits.

use super::*;
use crate::parts::observations::OBSERVATION_SETS;
use crate::testing::{MSS, ModelWriter, example_params, example_setup, setup, try_actions_with};
use crate::{AckEvent, AckedPacket, Fields, RateSample, SendEvent};
use narrows_units::{Bytes, FileRef, Rate, Span, Time};

const DESCRIPTION: &str = r#"{"observation": "remy", "step": {"rule": "time", "amount": 20}, "action": "window-factor",
    "layers": [{"kind": "dense"}]}"#;

/// A policy of one layer, which returns a factor times the RTT ratio, and a bias.
fn file(description: &str, factor: f32, bias: f32) -> Vec<u8> {
    ModelWriter::new("policy")
        .policy(description)
        .singles("kernel0", &[4, 1], &[0.0, 0.0, factor, 0.0])
        .singles("bias0", &[1], &[bias])
        .finish()
}

fn build_file(content: Vec<u8>) -> Result<Box<dyn CongestionControl>, String> {
    let file = FileRef {
        name: "a.safetensors".into(),
        sha256: "a".into(),
    };
    let mut birth = setup();
    birth.files.insert("a", content);
    let params = Params::resolve(SCHEME.params, [("model".to_owned(), Value::File(file))]).unwrap();
    (SCHEME.build)(&params, birth).map_err(|error| error.to_string())
}

fn problem(content: Vec<u8>) -> String {
    build_file(content).err().expect("it is refused")
}

fn outside(observation: &str, step: &str, action: &str) -> Params {
    let words = [("observation", observation), ("step", step), ("action", action)];
    let given = words.map(|(name, word)| (name.to_owned(), Value::Word(word.to_owned())));
    Params::resolve(SCHEME.params, given).unwrap()
}

fn at(ms: u64) -> Time {
    Time::ZERO + Span::from_ms(ms)
}

/// Packets of a flow with an RTT of 40 ms, one per ms from `from` to `to`; timers expire in between.
fn play(scheme: &mut dyn CongestionControl, from: u64, to: u64) {
    for ms in from..to {
        let mut send = SendEvent::new(at(ms), ms, Bytes::new(MSS));
        send.in_flight = Bytes::new(40 * MSS);
        scheme.on_send(&send);
        while scheme.next_timer().is_some_and(|timer| timer <= at(ms)) && scheme.observation().is_none() {
            scheme.on_timer(at(ms));
        }
        let Some(number) = ms.checked_sub(40) else {
            continue;
        };
        let packets = [AckedPacket {
            number,
            bytes: MSS as u32,
            sent: at(number),
            arrived: None,
        }];
        let mut ack = AckEvent::new(at(ms));
        ack.packets = &packets;
        ack.bytes = Bytes::new(MSS);
        ack.smoothed_rtt = Span::from_ms(40);
        ack.min_rtt = Span::from_ms(40);
        ack.in_flight = Bytes::new(39 * MSS);
        scheme.on_ack(&ack);
    }
}

fn fields(scheme: &dyn CongestionControl) -> (&'static str, Vec<(&'static str, f64)>) {
    let mut fields = Fields::default();
    scheme.trace(&mut fields);
    (fields.mode, fields.values)
}

fn value(scheme: &dyn CongestionControl, name: &str) -> f64 {
    let (_, values) = fields(scheme);
    values.iter().find(|(known, _)| *known == name).unwrap().1
}

#[test]
fn a_network_decides_at_each_timer() {
    // The ratio is 1: the window grows by 2^0.5 every 20 ms from the first acknowledgement at 40 ms on.
    let mut scheme = build_file(file(DESCRIPTION, 0.25, 0.25)).unwrap();
    play(&mut *scheme, 0, 130);
    let window = value(&*scheme, "window_packets");
    assert!((window - 10.0 * 4.0).abs() < 1e-6, "{window}");
    assert_eq!(value(&*scheme, "clipped_actions"), 0.0);
}

#[test]
fn actions_out_of_bounds_are_clipped_and_counted() {
    let mut scheme = build_file(file(DESCRIPTION, 0.0, -3.0)).unwrap();
    play(&mut *scheme, 0, 130);
    assert_eq!(value(&*scheme, "clipped_actions"), 4.0);
    assert_eq!(value(&*scheme, "window_packets"), 2.0);
}

#[test]
fn an_action_that_is_not_a_number_ends_the_decisions() {
    // The largest finite weights: their sums overflow, and infinity less infinity is not a number.
    let description = DESCRIPTION.replace(r#"[{"kind": "dense"}"#, r#"[{"kind": "dense"}, {"kind": "dense"}"#);
    let wild = ModelWriter::new("policy")
        .policy(&description)
        .singles("kernel0", &[4, 2], &[0.0, 0.0, 0.0, 0.0, 3e38, 3e38, 0.0, 0.0])
        .singles("bias0", &[2], &[3e38, 3e38])
        .singles("kernel1", &[2, 1], &[1.0, -1.0])
        .singles("bias1", &[1], &[0.0])
        .finish();
    let mut scheme = build_file(wild).unwrap();
    play(&mut *scheme, 0, 200);
    assert_eq!(fields(&*scheme).0, "stopped: the action is not a number");
    assert_eq!(value(&*scheme, "window_packets"), 10.0);
    assert_eq!(value(&*scheme, "clipped_actions"), 0.0);
}

#[test]
fn a_caller_gets_the_inputs_and_its_numbers_count_as_those_of_a_network() {
    let mut scheme = (SCHEME.build)(&outside("raw", "time", "window-factor"), setup()).unwrap();
    assert!(scheme.needs_caller() && scheme.decide_outside());
    play(&mut *scheme, 0, 61);
    let inputs = scheme.observation().expect("a decision is due at 60 ms").to_vec();
    // The step began with the flow; 20 of the packets sent until 59 ms were acknowledged.
    assert_eq!((inputs[0], inputs[1]), (60e6, 60e6));
    assert_eq!((inputs[2], inputs[3], inputs[6]), (61e3, 20e3, 20.0));
    assert_eq!((inputs[7], inputs[8], inputs[13]), (40e6, 40e6, 10.0));
    scheme.take_action(&[1.0]);
    assert!(scheme.observation().is_none());
    assert!((value(&*scheme, "window_packets") - 20.0).abs() < 1e-9);
    scheme.take_action(&[1.0]);
    assert!((value(&*scheme, "window_packets") - 20.0).abs() < 1e-9, "none was due");
    play(&mut *scheme, 61, 82);
    scheme.take_action(&[f32::NAN]);
    play(&mut *scheme, 82, 200);
    assert!(scheme.observation().is_none());
    assert_eq!(fields(&*scheme).0, "stopped: the action is not a number");
}

#[test]
fn ratios_of_a_steady_flow_by_hand() {
    let mut scheme = (SCHEME.build)(&outside("aurora", "rtt", "rate-factor"), setup()).unwrap();
    for end in [61u64, 81, 101] {
        play(&mut *scheme, end.saturating_sub(if end == 61 { 61 } else { 20 }), end);
        let inputs = scheme.observation().expect("half an RTT has passed").to_vec();
        assert_eq!(inputs.len(), 30);
        // No inflation, an RTT at its minimum; 61 sent and 20 acknowledged until 60 ms, then as many sent as acknowledged.
        let wanted = if end == 61 { 61.0 / 20.0 } else { 1.0 };
        assert_eq!(inputs[27..], [0.0, 1.0, wanted], "{end}");
        scheme.take_action(&[0.0]);
    }
    let mut scheme = (SCHEME.build)(&outside("orca", "time", "cubic-factor"), setup()).unwrap();
    play(&mut *scheme, 0, 61);
    let inputs = scheme.observation().unwrap().to_vec();
    // 20 packets in 60 ms are the best so far; one and a half minimum RTTs long.
    assert_eq!((inputs[0], inputs[2]), (1.0, 0.0));
    assert_eq!(inputs[4..], [1.5, 1.0, 1.0]);
}

#[test]
fn an_idle_flow_has_no_timer_and_what_the_application_limits_is_no_step() {
    let mut scheme = (SCHEME.build)(&outside("raw", "time", "rate"), setup()).unwrap();
    play(&mut *scheme, 0, 50);
    // Everything is acknowledged: the timer at 60 ms ends the step without a decision.
    let mut ack = AckEvent::new(at(55));
    ack.smoothed_rtt = Span::from_ms(40);
    scheme.on_ack(&ack);
    assert_eq!(scheme.next_timer(), Some(at(60)));
    scheme.on_timer(at(60));
    assert!(scheme.next_timer().is_none() && scheme.observation().is_none());
    // A packet of an application that sends little, and then one of a full window, 10 ms later.
    for (now, app_limited) in [(100, true), (110, false)] {
        let packets = [AckedPacket {
            number: now,
            bytes: MSS as u32,
            sent: at(now - 40),
            arrived: None,
        }];
        let mut ack = AckEvent::new(at(now));
        ack.packets = &packets;
        ack.in_flight = Bytes::new(MSS);
        ack.rate = Some(RateSample {
            rate: Rate::from_bps(1_000_000),
            delivered: Bytes::new(MSS),
            interval: Span::from_ms(8),
            app_limited,
            prior_delivered: Bytes::ZERO,
            in_flight_at_send: Bytes::new(MSS),
            lost: Bytes::ZERO,
        });
        scheme.on_ack(&ack);
    }
    assert_eq!(scheme.next_timer(), Some(at(120)));
    scheme.on_timer(at(120));
    let inputs = scheme.observation().expect("a step of a full window").to_vec();
    // From the last packet that did not count on.
    assert_eq!((inputs[1], inputs[3], inputs[6]), (20e6, 1e3, 1.0));
}

#[test]
fn a_factor_follows_the_window_of_cubic_between_decisions() {
    let mut scheme = (SCHEME.build)(&outside("orca", "time", "cubic-factor"), setup()).unwrap();
    play(&mut *scheme, 0, 61);
    scheme.take_action(&[0.5]);
    for end in 62..80 {
        play(&mut *scheme, end - 1, end);
        let cubic = value(&*scheme, "cubic_window_packets");
        assert!(cubic > 10.0, "CUBIC grows in slow start");
        assert!((value(&*scheme, "window_packets") - 2.0 * cubic).abs() < 1e-9);
    }
}

#[test]
fn every_combination_of_inputs_steps_and_actions_conforms() {
    for set in OBSERVATION_SETS {
        for step in StepRuleName::WORDS {
            for action in ActionName::WORDS {
                try_actions_with(&SCHEME, &outside(set.name, step, action), 7, 3_000);
            }
        }
    }
}

#[test]
fn without_a_model_a_caller_is_needed() {
    let built = (SCHEME.build)(&example_params(&SCHEME), example_setup()).unwrap();
    assert!(!built.needs_caller());
    let nothing = Params::resolve(SCHEME.params, []).unwrap();
    let problem = (SCHEME.build)(&nothing, setup()).err().unwrap().to_string();
    assert!(problem.contains("policy needs a model"), "{problem}");
}

#[test]
fn every_bad_file_is_refused_in_one_sentence() {
    let described = |from: &str, to: &str| problem(file(&DESCRIPTION.replace(from, to), 0.0, 0.0));
    for (problem, words) in [
        (described("remy", "remi"), "its observation is \"remi\", where one of indigo, muses"),
        (described("time", "often"), "its rule is \"often\", where one of ack, rtt, time"),
        (described("20", "0.5"), "its step time has 0.5 ms, where 1 to 10000 ms"),
        (described("20", "\"20\""), "where a number is needed"),
        (described("window-factor", "jump"), "its action is \"jump\", where one of indigo"),
        (described("window-factor", "indigo"), "1 outputs, where its action needs 5"),
        (described("\"dense\"", "\"conv\""), "has no kind that is dense or lstm"),
        (described("\"dense\"", "\"dense\", \"activation\": \"gelu\""), "where tanh, relu or none"),
        (described("\"dense\"", "\"lstm\""), "0 units"),
        (described("\"dense\"", "\"dense\", \"units\": 4"), "the member units"),
        (described("\"remy\"", "\"raw\""), "[4, 1], where f32 [16, 1]"),
        (described("\"layers\"", "\"layer\""), "the member layer"),
        (described("}]", "}, 1]"), "its layer 1 is not a JSON object"),
        (problem(file("{", 0.0, 0.0)), "is not JSON"),
        (problem(file("[]", 0.0, 0.0)), "not a JSON object"),
        (problem(file(&"[".repeat(100_000), 0.0, 0.0)), "is not JSON"),
        (problem(file(DESCRIPTION, f32::NAN, 0.0)), "kernel0 has numbers that are not finite"),
        (problem(file(DESCRIPTION, 0.0, f32::INFINITY)), "bias0 has numbers that are not finite"),
        (problem(ModelWriter::new("policy").singles("a", &[1], &[0.0]).finish()), "lacks the description"),
        (problem(ModelWriter::new("indigo").singles("a", &[1], &[0.0]).finish()), "of the kind indigo"),
        (problem(b"?".to_vec()), "not a model file"),
    ] {
        assert!(problem.contains(words), "{words}: {problem}");
        assert!(problem.len() < 320 && !problem.contains(char::is_control), "{problem}");
    }
}

#[test]
fn a_design_beside_a_model_is_refused() {
    let mut params = vec![("step".to_owned(), Value::Word("ack".into()))];
    let model = FileRef { name: "a".into(), sha256: "a".into() };
    params.push(("model".to_owned(), Value::File(model)));
    let params = Params::resolve(SCHEME.params, params).unwrap();
    let problem = (SCHEME.build)(&params, setup()).err().unwrap().to_string();
    assert!(problem.contains("part of the model a; remove them"), "{problem}");
}
