//! Flows of real-time schemes in simulated worlds, with an unregistered scheme.

use narrows_cell::{Cell, SchemeRef};
use narrows_record::read::{read_frames, read_states};
use narrows_record::{FrameRow, Record, RunDocument, Verdict, metrics};
use narrows_tests::media::{DISCARDED, METRONOME, PARTS};
use narrows_tests::{Dumbbell, recorded};
use narrows_units::Params;
use serde_json::{Value, json};

/// Turns flow `number` of a cell into one of the metronome.
fn set_metronome(cell: &mut Cell, number: u16) {
    let flow = cell
        .flows
        .iter_mut()
        .find(|flow| flow.flow == number)
        .unwrap();
    let params = Params::resolve(METRONOME.params, []).unwrap();
    flow.scheme = SchemeRef::Media(&METRONOME, params);
    "metronome".clone_into(&mut flow.name);
}

struct Done {
    run: RunDocument,
    record: Record,
    metrics: Value,
}

fn simulate(cell: &Cell) -> Done {
    let record = recorded(cell);
    let metrics = metrics::measure(&record).unwrap();
    Done {
        run: record.run.clone(),
        record,
        metrics,
    }
}

impl Done {
    fn get(&self, flow: &str, metric: &str) -> f64 {
        let rows = self.metrics["flows"].as_array().unwrap();
        let row = rows.iter().find(|row| row["flow"] == flow).unwrap();
        row["metrics"][metric].as_f64().unwrap_or(f64::NAN)
    }

    fn frames(&self) -> Vec<FrameRow> {
        read_frames(self.record.frames.clone().unwrap()).unwrap()
    }

    fn check(&self) {
        assert_eq!(self.run.verdict, Verdict::Ok, "{:?}", self.run.reasons);
        assert!(
            self.run.checks.iter().all(|check| check.ok),
            "{:?}",
            self.run.checks
        );
    }
}

fn alone() -> Dumbbell {
    Dumbbell {
        seconds: 10.0,
        ..Dumbbell::default()
    }
}

#[test]
fn a_flow_of_frames_is_carried_and_recorded() {
    let mut cell = alone().cell();
    set_metronome(&mut cell, 1);
    let done = simulate(&cell);
    done.check();
    // Frames every 40 ms from 0, the last one at 9.96 s.
    let frames = done.frames();
    assert_eq!(frames.len(), 250);
    let discarded = frames.iter().filter(|frame| frame.discarded).count() as u64;
    assert_eq!(discarded, 250 / DISCARDED);
    // Three packets of 1500 bytes over 12 Mbit/s take 3 ms, the path 20 ms.
    let delay = 23_000_000;
    for frame in frames
        .iter()
        .filter(|frame| !frame.discarded && frame.captured_ns < 9_960_000_000)
    {
        assert_eq!(
            frame.arrived_ns,
            Some(frame.captured_ns + delay),
            "{frame:?}"
        );
        assert_eq!(frame.bytes, (1500 - 28 - 16) * u32::from(PARTS));
    }
    assert_eq!(done.get("1", "frame_delay_p95_ns"), delay as f64);
    // Of the 241 frames of the first 9.6 s, those with numbers 9, 19 ... 239 were discarded.
    assert!((done.get("1", "frame_loss_ratio") - 24.0 / 241.0).abs() < 1e-12);
    assert_eq!(
        done.get("1", "freezes"),
        0.0,
        "80 ms between frames are no freeze"
    );
    let bits = f64::from(1456 * u32::from(PARTS) * 8);
    assert!((done.get("1", "media_target_bps") - bits / 0.04).abs() < 1.0);
    assert!((done.get("1", "media_sent_bps") - bits * 225.0 / 10.0).abs() < 1.0);
    // Feedback arrives, and the round trip is measured: 40 ms and the time of one to three packets.
    let states = read_states(done.record.states.clone().unwrap()).unwrap();
    let rtts: Vec<u64> = states.iter().filter_map(|state| state.rtt_ns).collect();
    assert!(rtts.len() > 900, "{}", rtts.len());
    assert!(
        rtts.iter()
            .all(|rtt| (41_000_000..=43_000_000).contains(rtt)),
        "{rtts:?}"
    );
    let flow = &done.run.flows[0];
    assert_eq!(
        (flow.scheme.as_str(), flow.fingerprint.kind.as_str()),
        ("metronome", "native")
    );
    assert_eq!(flow.fingerprint.params["beat"], 40_000_000);
    assert!(flow.offered.is_none());
}

#[test]
fn losses_and_copies_are_told_apart() {
    // Packets are occasionally copied, and one in ten is lost.
    let mut json = Dumbbell {
        loss: 0.1,
        ..alone()
    }
    .json();
    let forward = json["network"]["forward"].as_array_mut().unwrap();
    forward.push(json!({"name": "forward.3", "kind": "duplicate", "ratio": 0.2}));
    let mut cell = Cell::parse(&json.to_string()).unwrap();
    set_metronome(&mut cell, 1);
    let done = simulate(&cell);
    done.check();
    // A frame needs all of its three packets: 0.9^3 = 0.729 of those that are sent arrive; over 225 frames
    // the standard deviation is 0.03, so 0.12 is four of it.
    let frames = done.frames();
    let sent = frames.iter().filter(|frame| !frame.discarded).count() as f64;
    let arrived = frames
        .iter()
        .filter(|frame| frame.arrived_ns.is_some())
        .count() as f64;
    assert!((arrived / sent - 0.729).abs() < 0.12, "{arrived} of {sent}");
    // Packets that arrived twice count once.
    let receiver = &done.run.flows[0].receiver;
    let goodput = receiver.goodput_bytes.unwrap();
    assert!(receiver.received_bytes.unwrap() > goodput + goodput / 10);
}

#[test]
fn real_time_and_bulk_flows_share_a_world() {
    let cell = |seconds: f64| {
        let mut cell = Dumbbell {
            schemes: vec!["reno", "reno", "reno"],
            interval_s: 2.0,
            seconds,
            ..alone()
        }
        .cell();
        set_metronome(&mut cell, 2);
        cell
    };
    let done = simulate(&cell(10.0));
    done.check();
    let frames = done.frames();
    assert!(frames.iter().all(|frame| frame.flow == 2));
    assert_eq!(
        frames[0].captured_ns, 2_000_000_000,
        "it begins with its flow"
    );
    // The queue that the bulk flows fill holds one bandwidth-delay product: 40 ms.
    let p95 = done.get("2", "frame_delay_p95_ns") / 1e6;
    assert!((45.0..=63.5).contains(&p95), "{p95}");
    assert!(done.get("1", "throughput_bps") > 2e6);
    // The same cell results in the same bytes.
    let again = simulate(&cell(10.0));
    assert_eq!(done.record.packets, again.record.packets);
    assert_eq!(done.record.frames, again.record.frames);
}

#[test]
fn a_flow_stops_when_it_should() {
    let mut json = alone().json();
    json["flows"][0]["stop_ns"] = 5_000_000_000_u64.into();
    let mut cell = Cell::parse(&json.to_string()).unwrap();
    set_metronome(&mut cell, 1);
    let done = simulate(&cell);
    done.check();
    let frames = done.frames();
    // At 0, 40 ... 4960 ms; none at 5000 ms, when the flow is stopped.
    assert_eq!(frames.len(), 125);
    assert!(frames.last().unwrap().arrived_ns.unwrap() < 5_000_000_000);
    assert_eq!(
        done.get("1", "freezes"),
        0.0,
        "the end of the flow is not a freeze"
    );
}

#[test]
fn a_silent_flow_is_no_result() {
    let mut json = alone().json();
    let forward = json["network"]["forward"].as_array_mut().unwrap();
    forward.push(json!({"name": "forward.2", "kind": "loss", "ratio": 1.0}));
    let mut cell = Cell::parse(&json.to_string()).unwrap();
    set_metronome(&mut cell, 1);
    let done = simulate(&cell);
    assert_eq!(done.run.verdict, Verdict::Invalid);
    assert!(
        done.run
            .reasons
            .iter()
            .any(|reason| reason.code == "silent")
    );
    assert!(done.frames().iter().all(|frame| frame.arrived_ns.is_none()));
}

#[test]
fn who_has_nothing_to_send_all_the_time_is_no_failure() {
    for scheme in ["scream", "gcc", "sprout"] {
        let mut json = alone().json();
        json["flows"][0]["scheme"] = scheme.into();
        json["flows"][0]["params"] = json!({"pause_for": 3_600_000_000_000u64});
        let done = simulate(&Cell::parse(&json.to_string()).unwrap());
        assert_eq!(
            done.run.verdict,
            Verdict::Ok,
            "{scheme}: {:?}",
            done.run.reasons
        );
    }
}

#[test]
fn packets_are_as_large_as_the_flow_says() {
    let mut json = alone().json();
    json["flows"][0]["transport"] = json!({"packet_size": 800});
    let mut cell = Cell::parse(&json.to_string()).unwrap();
    set_metronome(&mut cell, 1);
    let done = simulate(&cell);
    done.check();
    assert_eq!(done.frames()[0].bytes, (800 - 28 - 16) * u32::from(PARTS));
}

#[test]
fn registered_schemes_refuse_what_they_have_no_use_for() {
    for scheme in narrows_media::schemes::ALL {
        let refused = |key: &str, value: Value| {
            let mut json = alone().json();
            json["flows"][0]["scheme"] = scheme.name.into();
            json["flows"][0][key] = value;
            Cell::parse(&json.to_string()).unwrap_err().to_string()
        };
        let said = refused("traffic", json!({"kind": "transfer", "bytes": 5000}));
        assert!(said.contains("generates media"), "{said}");
        let said = refused("connections", 2.into());
        assert!(said.contains("has one connection"), "{said}");
        let said = refused("transport", json!({"initial_window": 4}));
        assert!(said.contains("only packet_size can be set"), "{said}");
        let said = refused("params", json!({"nonsense": 1}));
        assert!(said.contains("unknown parameter 'nonsense'"), "{said}");
    }
}
