//! Decisions that the caller makes: a world that pauses at each runs as one whose schemes decide.

use narrows_cc::parts::model_file::Model;
use narrows_cc::parts::{LayerKind, Lstm, Network};
use narrows_cc::testing::{ModelWriter, example_file, example_files};
use narrows_cell::Cell;
use narrows_sim::{Limits, World, run_to_record, run_to_record_deciding};
use narrows_units::{Span, Time};
use serde_json::{Value, json};

/// Flows of these schemes, a second apart, over 12 Mbit/s and 40 ms.
pub(crate) fn cell(schemes: &[&str], late_hosts: bool, rate: &str, loss: f64) -> Value {
    let end = 8_000_000_000u64;
    let flow = |(index, scheme): (usize, &&str)| {
        let mut params = json!({});
        if is_learned(scheme) {
            let file = example_file(scheme);
            params["model"] = json!({"name": file.name, "sha256": file.sha256});
        }
        json!({"flow": index + 1, "scheme": scheme, "params": params, "direction": "forward",
            "start_ns": index as u64 * 1_000_000_000, "stop_ns": end})
    };
    let flows: Vec<Value> = schemes.iter().enumerate().map(flow).collect();
    let rate = json!({"kind": rate, "rate": 12_000_000});
    let mut network = json!({"kind": "dumbbell",
        "forward": [
            {"name": "forward.0", "kind": "bottleneck", "rate": rate, "queue": {"kind": "droptail", "packets": 60}},
            {"name": "forward.1", "kind": "loss", "ratio": loss},
            {"name": "forward.2", "kind": "delay", "delay": 20_000_000}],
        "backward": [{"name": "backward.0", "kind": "delay", "delay": 20_000_000}]});
    if late_hosts {
        let host = |name| json!({"name": name, "settings": {"noise": "linux-vm"}});
        network["hosts"] = json!([host("sender"), host("receiver")]);
    }
    json!({"format": "narrows/cell/1", "id": "decisions", "scheme": schemes[0], "run": 1, "where": "simulate", "seed": 7,
        "duration_ns": end, "record": "packets", "bin_ns": 100_000_000, "sample_ns": 50_000_000, "network": network, "flows": flows,
        "transport": {"packet_size": 1500}})
}

pub(crate) fn parse(json: &Value) -> Cell {
    Cell::parse_with(&json.to_string(), |_| Ok(example_files())).unwrap()
}

/// The networks of the flows that have one, in their order.
pub(crate) fn networks(schemes: &[&str]) -> Vec<Lstm> {
    let files = example_files();
    let network = |scheme: &&str| {
        let content = files.content(&example_file(scheme)).unwrap();
        let inputs = if *scheme == "indigo" { 9 } else { 11 };
        Lstm::new(&Model::parse(content).unwrap(), inputs, 5).unwrap()
    };
    let learned = schemes.iter().filter(|scheme| is_learned(scheme));
    learned.map(network).collect()
}

fn is_learned(scheme: &str) -> bool {
    matches!(scheme, "indigo" | "muses")
}

pub(crate) fn best(scores: &[f32]) -> f32 {
    let mut best = 0;
    for (index, score) in scores.iter().enumerate() {
        if *score > scores[best] {
            best = index;
        }
    }
    best as f32
}

#[test]
fn a_caller_that_asks_the_same_network_gets_the_same_packets() {
    for (schemes, late_hosts, rate, loss) in [
        (&["indigo"][..], false, "constant", 0.0),
        (&["indigo"], true, "constant", 0.01),
        (&["muses"], true, "poisson", 0.0),
        (&["indigo", "muses", "indigo"], false, "poisson", 0.02),
        (&["muses", "indigo", "indigo"], true, "constant", 0.001),
    ] {
        let cell = parse(&cell(schemes, late_hosts, rate, loss));
        let inside = run_to_record(&cell, &Limits::UNLIMITED).unwrap();
        let mut networks = networks(schemes);
        let mut decisions = 0;
        let outside = run_to_record_deciding(
            &cell,
            &Limits::UNLIMITED,
            &mut |decision, inputs, action| {
                decisions += 1;
                action.push(best(networks[decision.flow].step(inputs)));
            },
        );
        let outside = outside.unwrap();
        assert!(decisions > 200, "{schemes:?}: {decisions}");
        assert!(inside.packets.is_some() && inside.states.is_some());
        let same = format!("{:?}", inside.packets) == format!("{:?}", outside.packets)
            && format!("{:?}", inside.queues) == format!("{:?}", outside.queues)
            && format!("{:?}", inside.run) == format!("{:?}", outside.run);
        assert!(same, "{schemes:?} with {rate}, late: {late_hosts}");
    }
}

#[test]
fn a_world_waits_for_its_decision_however_often_it_is_run() {
    let cell = parse(&cell(&["indigo"], true, "constant", 0.0));
    let mut world = World::with_decisions_outside(&cell).unwrap();
    let until = Time::ZERO + Span::from_ms(500);
    let first = world.run_to_decision(until).unwrap();
    assert_eq!(world.observation().len(), 9);
    assert_eq!(world.run_to_decision(until), Some(first));
    let second = world.step(&[2.0], until).unwrap();
    // Steps last more than 10 ms.
    assert!(second.at > first.at + Span::from_ms(10));
}

#[test]
fn actions_out_of_range_count_as_the_nearest_and_no_number_as_the_first() {
    let cell = parse(&cell(&["indigo"], false, "constant", 0.0));
    let until = Time::ZERO + Span::from_ms(500);
    let window_after = |action: &[f32]| {
        let mut world = World::with_decisions_outside(&cell).unwrap();
        world.run_to_decision(until).unwrap();
        world.step(action, until).unwrap();
        (f64::from(world.observation()[3]) * 5_000.0).round()
    };
    assert_eq!(window_after(&[4.0]), 20.0);
    assert_eq!(window_after(&[7.0]), 20.0);
    assert_eq!(window_after(&[f32::INFINITY]), 20.0);
    assert_eq!(window_after(&[-3.0]), 5.0);
    assert_eq!(window_after(&[f32::NAN]), 5.0);
    assert_eq!(window_after(&[]), 5.0);
}

#[test]
fn schemes_without_decisions_never_pause() {
    let mut json = cell(&["indigo"], false, "constant", 0.0);
    json["flows"][0]["scheme"] = "reno".into();
    json["flows"][0]["params"] = json!({});
    let cell = parse(&json);
    let mut world = World::with_decisions_outside(&cell).unwrap();
    assert_eq!(world.run_to_decision(cell.duration), None);
}

/// A policy of two layers over counters in base units, which decides by a timer.
fn timed_policy() -> Vec<u8> {
    // Ten packets more if the mean RTT is below 46 ms, else ten less.
    let mut kernel = vec![0.0; 16];
    kernel[7] = -1e-6;
    ModelWriter::new("policy")
        .policy(
            r#"{"observation": "raw", "step": {"rule": "rtt", "amount": 0.7}, "action": "window-factor",
                "layers": [{"kind": "dense", "activation": "tanh"}, {"kind": "dense"}]}"#,
        )
        .singles("kernel0", &[16, 1], &kernel)
        .singles("bias0", &[1], &[46.0])
        .singles("kernel1", &[1, 1], &[0.2])
        .singles("bias1", &[1], &[0.0])
        .finish()
}

#[test]
fn a_caller_that_decides_by_a_timer_gets_the_packets_of_the_policy() {
    let content = timed_policy();
    for (late_hosts, rate, loss) in [
        (false, "constant", 0.0),
        (true, "constant", 0.01),
        (true, "poisson", 0.001),
    ] {
        let mut json = cell(&["policy", "policy"], late_hosts, rate, loss);
        let parse = |json: &Value| {
            let mut files = example_files();
            files.insert("timed", content.clone());
            Cell::parse_with(&json.to_string(), |_| Ok(files)).unwrap()
        };
        for flow in json["flows"].as_array_mut().unwrap() {
            flow["params"] = json!({"model": {"name": "timed.safetensors", "sha256": "timed"}});
        }
        let inside = run_to_record(&parse(&json), &Limits::UNLIMITED).unwrap();
        for flow in json["flows"].as_array_mut().unwrap() {
            flow["params"] = json!({"observation": "raw", "step": "rtt", "step_amount": 0.7,
                "action": "window-factor"});
        }
        let cell = parse(&json);
        let refused = run_to_record(&cell, &Limits::UNLIMITED).err().unwrap();
        assert!(
            refused.to_string().contains("policy needs a model"),
            "{refused}"
        );
        let model = Model::parse(&content).unwrap();
        let kinds = [LayerKind::Tanh, LayerKind::Linear];
        let mut networks = [(); 2].map(|()| Network::read(&model, &kinds, 16, 1).unwrap());
        let mut decisions = 0;
        let outside = run_to_record_deciding(
            &cell,
            &Limits::UNLIMITED,
            &mut |decision, inputs, action| {
                decisions += 1;
                action.extend(networks[decision.flow].step(inputs));
            },
        );
        let outside = outside.unwrap();
        assert!(decisions > 300, "{decisions}");
        let same = format!("{:?}", inside.packets) == format!("{:?}", outside.packets)
            && format!("{:?}", inside.queues) == format!("{:?}", outside.queues);
        assert!(
            same && inside.packets.is_some(),
            "{rate}, late: {late_hosts}"
        );
    }
}
