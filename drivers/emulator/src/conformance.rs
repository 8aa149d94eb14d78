//! The emulator and the bare network must agree: the same packets with the same stamps through every element, queue and
//! rate of the registries, once as packets of a punctual driver and once as frames through a core whose thread is late.
//! Departure times, drops, marks, copies, damage and packets left inside must be the same.

use super::core::Core;
use super::frame::{ETHERNET, Kind, classify};
use super::pool::Pool;
use super::testing::sample;
use narrows_cell::Cell;
use narrows_cell::addressing::FLOW_PORTS;
use narrows_net::testing::play::{Played, play, script};
use narrows_net::testing::{Case, Dice, TestPacket, cases, example_files};
use narrows_net::{Ecn, Network};
use narrows_record::{Fate, Log, PacketRow};
use narrows_units::{Span, Time};
use serde_json::json;

const END: Time = Time::from_ns(3_000_000_000);
const PACKETS: u32 = 600;
const SENDER: u16 = 0;
const RECEIVER: u16 = 1;

fn cell(case: &Case) -> Cell {
    let flow = |flow: u16| json!({"flow": flow, "scheme": "linux:reno", "start_ns": 0, "stop_ns": END.ns()});
    let text = json!({
        "format": "narrows/cell/1", "id": "test", "seed": 7, "duration_ns": END.ns(),
        "record": "packets", "bin_ns": 10_000_000, "sample_ns": 100_000_000,
        "network": {"kind": "dumbbell", "forward": case.forward, "backward": []},
        "timeline": case.timeline,
        "flows": [flow(1), flow(2), flow(3), flow(4)],
    });
    Cell::parse_with(&text.to_string(), |_| Ok(example_files()))
        .unwrap_or_else(|error| panic!("{}: {error}", case.name))
}

/// The frame for a packet of the script: TCP, and an acknowledgement if it has only headers.
fn frame(packet: &TestPacket) -> Vec<u8> {
    let from = 40_000 + packet.connection as u16;
    let to = match packet.flow {
        0 => 9_999,
        flow => FLOW_PORTS + flow,
    };
    let tos = packet.dscp << 2 | packet.ecn as u8;
    sample(packet.size as u16, 6, from, to, tos)
}

/// The packet as the emulator reads it from its frame.
fn read(frame: &[u8]) -> TestPacket {
    let Kind::Packet(header) = classify(frame) else {
        panic!("the frame must be a packet")
    };
    TestPacket {
        size: u32::from(header.size),
        flow: header.flow,
        ecn: Ecn::from_bits(header.tos & 3),
        dscp: header.tos >> 2,
        connection: header.connection,
        ack: header.tcp_ack,
        ..TestPacket::default()
    }
}

/// The fate of one packet: number, number of the original if it is a copy, model time of its arrival with its DSCP and
/// ECN and whether it was damaged, or the element and reason of its drop, or the element that holds it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct PacketOutcome {
    uid: u64,
    copy_of: Option<u64>,
    arrived: Option<(u64, u8, bool)>,
    dropped: Option<(String, String)>,
    held: Option<String>,
}

fn outcome(uid: u64, copy_of: Option<u64>) -> PacketOutcome {
    PacketOutcome {
        uid,
        copy_of,
        arrived: None,
        dropped: None,
        held: None,
    }
}

fn by_network(cell: &Cell, script: &[(Time, TestPacket)]) -> Vec<PacketOutcome> {
    let mut network: Network<TestPacket> = cell.network().unwrap();
    let names: Vec<String> = network
        .stages()
        .map(|stage| stage.name.to_owned())
        .collect();
    let name = |element: u16| names[usize::from(element)].clone();
    let Played {
        left,
        drops,
        copies,
        held,
    } = play(&mut network, script, None, END);
    let count = script.len() + copies.len();
    let mut all: Vec<PacketOutcome> = (1..=count as u64).map(|uid| outcome(uid, None)).collect();
    let place = |uid: u64| uid as usize - 1;
    for (_, uid, original) in copies {
        all[place(uid)].copy_of = Some(original);
    }
    for (at, packet) in left {
        let tos = packet.dscp << 2 | packet.ecn as u8;
        all[place(packet.uid)].arrived = Some((at.ns(), tos, packet.corrupt));
    }
    for (_, uid, element, reason) in drops {
        all[place(uid)].dropped = Some((name(element), reason.to_owned()));
    }
    for (uid, element) in held {
        all[place(uid)].held = Some(name(element));
    }
    all
}

/// A thread that wakes up late by up to 5 ms, finds the frames that have arrived in the meantime, and sends those that
/// are due.
fn by_emulator(cell: &Cell, script: &[(Time, TestPacket)], seed: u64) -> Vec<PacketOutcome> {
    let mut core = Core::new(
        cell,
        cell.network().unwrap(),
        Pool::new(4_096, 9_100, 1 << 26),
    );
    let mut dice = Dice::random(seed, 0);
    let mut now = Time::ZERO;
    let mut next = 0;
    // In the order of release: the code points of the frames.
    let mut released = Vec::new();
    while now < END {
        now = (now + Span::from_us(dice.below(5_000))).min(END);
        while let Some((stamp, packet)) = script.get(next).filter(|(stamp, _)| *stamp <= now) {
            core.arrive(SENDER, *stamp, &frame(packet));
            next += 1;
        }
        core.advance(now);
        let codes: Vec<u8> = core
            .due(RECEIVER)
            .map(|frame| frame[ETHERNET + 1])
            .collect();
        core.released(RECEIVER, codes.len(), now, now);
        released.extend(codes);
        assert!(!core.has_due(SENDER));
    }
    core.finish();
    assert_eq!(
        core.admission.refused,
        narrows_cell::judgement::RefusedFrames::default()
    );
    let Log::Packets(log) = &mut core.log else {
        panic!("packets were requested")
    };
    let mut rows: Vec<PacketRow> = Vec::new();
    while let Some(chunk) = log.take() {
        rows.extend((0..chunk.len()).map(|row| chunk.row(row)));
    }
    let model = |row: &PacketRow| row.arrived_ns.map(|ns| ns - row.late_ns.unwrap() as u64);
    let mut all: Vec<PacketOutcome> = Vec::new();
    for row in &rows {
        let mut outcome = outcome(row.uid, row.copy_of);
        match row.fate {
            Fate::Delivered => {
                let corrupt = row.reason.as_deref() == Some("corrupted");
                outcome.arrived = Some((model(row).unwrap(), 0, corrupt));
            }
            Fate::Dropped => {
                outcome.dropped = Some((row.element.clone().unwrap(), row.reason.clone().unwrap()));
            }
            Fate::InFlight => outcome.held = row.element.clone(),
        }
        all.push(outcome);
    }
    let arrived = all
        .iter()
        .filter(|outcome| outcome.arrived.is_some())
        .count();
    assert_eq!(arrived, released.len());
    set_code_points(&mut all, &released);
    all
}

/// The packets that arrived, by the model times at which they did.
fn in_order(all: &[PacketOutcome]) -> Vec<(u64, usize)> {
    let arrived = all.iter().enumerate();
    let mut order: Vec<_> = arrived
        .filter_map(|(place, outcome)| Some((outcome.arrived?.0, place)))
        .collect();
    order.sort_unstable();
    order
}

/// Frames carry no number, but they are released in the order of their model times. Those of one instant are assigned
/// their code points in increasing order.
fn set_code_points(all: &mut [PacketOutcome], released: &[u8]) {
    let mut released = released.iter();
    for group in in_order(all).chunk_by(|a, b| a.0 == b.0) {
        let mut codes: Vec<u8> = released.by_ref().take(group.len()).copied().collect();
        codes.sort_unstable();
        for (&(_, place), code) in group.iter().zip(codes) {
            if let Some(arrived) = &mut all[place].arrived {
                arrived.1 = code;
            }
        }
    }
}

/// The same for the results of the network, so that both can be compared.
fn with_sorted_code_points(mut all: Vec<PacketOutcome>) -> Vec<PacketOutcome> {
    let order = in_order(&all);
    let code = |&(_, place): &(u64, usize)| all[place].arrived.map(|arrived| arrived.1);
    let codes: Vec<u8> = order.iter().filter_map(code).collect();
    set_code_points(&mut all, &codes);
    all
}

#[test]
fn every_element_queue_and_rate_does_the_same_in_the_emulator() {
    let frames = script(5, PACKETS);
    let packets: Vec<(Time, TestPacket)> = frames
        .iter()
        .map(|(at, packet)| (*at, read(&frame(packet))))
        .collect();
    let (mut dropped, mut marked, mut copied, mut corrupt, mut held) = (0, 0, 0, 0, 0);
    for case in cases() {
        let cell = cell(&case);
        let expected = with_sorted_code_points(by_network(&cell, &packets));
        for seed in 0..2 {
            let actual = by_emulator(&cell, &frames, seed);
            for (expected, actual) in expected.iter().zip(&actual) {
                assert_eq!(actual, expected, "{}", case.name);
            }
            assert_eq!(actual.len(), expected.len(), "{}", case.name);
        }
        let ce = |outcome: &&PacketOutcome| outcome.arrived.is_some_and(|(_, tos, _)| tos & 3 == 3);
        dropped += expected
            .iter()
            .filter(|outcome| outcome.dropped.is_some())
            .count();
        marked += expected.iter().filter(ce).count();
        copied += expected
            .iter()
            .filter(|outcome| outcome.copy_of.is_some())
            .count();
        corrupt += expected
            .iter()
            .filter(|outcome| outcome.arrived.is_some_and(|(.., corrupt)| corrupt))
            .count();
        held += expected
            .iter()
            .filter(|outcome| outcome.held.is_some())
            .count();
    }
    // The cases include each kind of outcome.
    assert!(dropped > 1_000 && marked > 1_000 && copied > 50 && corrupt > 50 && held > 10);
}
