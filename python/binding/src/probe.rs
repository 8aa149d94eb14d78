//! The effect of one element on given packets: for the pictures of the reference, and for tests.

use narrows_net::testing::TestPacket;
use narrows_net::{Ecn, Files, Network, Outcomes, Plan};
use narrows_units::Time;
use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// In the arrays: the event did not happen.
const NEVER: i64 = -1;
const MOST_PACKETS: usize = 10_000_000;

/// The fate of each packet, in the order of the packets; copies in the order of leaving.
struct Fates {
    left_ns: Vec<i64>,
    dropped_ns: Vec<i64>,
    reason: Vec<Option<&'static str>>,
    marked: Vec<bool>,
    corrupt: Vec<bool>,
    dscp: Vec<u8>,
    copy_of: Vec<u64>,
    copy_left_ns: Vec<i64>,
}

/// Sends packets through one element (JSON object as in a cell) and returns when each left
/// (`left_ns`) or was dropped (`dropped_ns`, `reason`); -1 is never. Packets are described by time
/// (ns, non-decreasing), size, flow, ECN field, DSCP, and whether they are acknowledgements.
/// `timeline` are changes of the element as in a cell; it is called `probe`.
#[pyfunction]
#[pyo3(signature = (element_json, time_ns, size, flow, ecn, dscp, ack, seed = 1, timeline = "null", files = None))]
#[allow(clippy::too_many_arguments)] // columns of one table
pub(crate) fn probe_element<'py>(
    py: Python<'py>,
    element_json: &str,
    time_ns: PyReadonlyArray1<'py, u64>,
    size: PyReadonlyArray1<'py, u32>,
    flow: PyReadonlyArray1<'py, u16>,
    ecn: PyReadonlyArray1<'py, u8>,
    dscp: PyReadonlyArray1<'py, u8>,
    ack: PyReadonlyArray1<'py, bool>,
    seed: u64,
    timeline: &str,
    files: Option<BTreeMap<String, Vec<u8>>>,
) -> PyResult<Bound<'py, PyDict>> {
    let parse = |text: &str| {
        let value: Result<Value, _> = serde_json::from_str(text);
        value.map_err(|error| PyValueError::new_err(error.to_string()))
    };
    let mut element = parse(element_json)?;
    element["name"] = "probe".into();
    let timeline = parse(timeline)?;
    let mut contents = Files::default();
    for (sha256, content) in files.unwrap_or_default() {
        let content = narrows_cell::as_text(content).map_err(PyValueError::new_err)?;
        contents.insert(&sha256, content);
    }
    let times = time_ns.as_slice()?;
    let columns = (size.as_slice()?, flow.as_slice()?, ecn.as_slice()?);
    let (dscp, ack) = (dscp.as_slice()?, ack.as_slice()?);
    let lengths = [
        columns.0.len(),
        columns.1.len(),
        columns.2.len(),
        dscp.len(),
        ack.len(),
    ];
    if lengths.iter().any(|&length| length != times.len()) || times.len() > MOST_PACKETS {
        let text = "the columns must have equal lengths of at most 10 million";
        return Err(PyValueError::new_err(text));
    }
    if !times.is_sorted() {
        return Err(PyValueError::new_err("the times must not decrease"));
    }
    let packets: Vec<(Time, TestPacket)> = (0..times.len())
        .map(|index| {
            let packet = TestPacket {
                uid: index as u64,
                size: columns.0[index],
                flow: columns.1[index],
                connection: u32::from(columns.1[index]),
                ecn: Ecn::from_bits(columns.2[index]),
                dscp: dscp[index],
                ack: ack[index],
                ..TestPacket::default()
            };
            (Time::from_ns(times[index]), packet)
        })
        .collect();
    let fates = py.detach(|| {
        let network = json!({"kind": "dumbbell", "forward": [element], "backward": []});
        let plan = Plan {
            network: &network,
            timeline: &timeline,
            flows: &[],
            seed,
            files: &contents,
        };
        let network =
            Network::new(&plan).map_err(|error| PyValueError::new_err(error.to_string()))?;
        Ok::<_, PyErr>(play(network, &packets))
    })?;
    let found = PyDict::new(py);
    found.set_item("left_ns", PyArray1::from_vec(py, fates.left_ns))?;
    found.set_item("dropped_ns", PyArray1::from_vec(py, fates.dropped_ns))?;
    found.set_item("reason", fates.reason)?;
    found.set_item("marked", PyArray1::from_vec(py, fates.marked))?;
    found.set_item("corrupt", PyArray1::from_vec(py, fates.corrupt))?;
    found.set_item("dscp", PyArray1::from_vec(py, fates.dscp))?;
    found.set_item("copy_of", PyArray1::from_vec(py, fates.copy_of))?;
    found.set_item("copy_left_ns", PyArray1::from_vec(py, fates.copy_left_ns))?;
    Ok(found)
}

fn play(mut network: Network<TestPacket>, packets: &[(Time, TestPacket)]) -> Fates {
    let count = packets.len();
    let mut fates = Fates {
        left_ns: vec![NEVER; count],
        dropped_ns: vec![NEVER; count],
        reason: vec![None; count],
        marked: vec![false; count],
        corrupt: vec![false; count],
        dscp: packets.iter().map(|(_, packet)| packet.dscp).collect(),
        copy_of: Vec::new(),
        copy_left_ns: Vec::new(),
    };
    // Identities of copies follow those of the packets.
    let mut originals: Vec<u64> = Vec::new();
    let mut outcomes = Outcomes::new();
    for &(at, packet) in packets {
        settle(&mut network, at, &mut outcomes, &mut originals, count);
        network.push(at, packet, &mut outcomes);
    }
    // Packets that have not left after a year never will.
    let end = Time::from_ns(365 * 86_400 * 1_000_000_000);
    settle(&mut network, end, &mut outcomes, &mut originals, count);
    for drop in &outcomes.drops {
        if let Some(at) = fates.dropped_ns.get_mut(drop.packet.uid as usize) {
            *at = drop.at.ns() as i64;
            fates.reason[drop.packet.uid as usize] = Some(drop.reason.0);
        }
    }
    while let Some((at, packet)) = network.pop() {
        let index = packet.uid as usize;
        if index >= count {
            fates.copy_of.push(originals[index - count]);
            fates.copy_left_ns.push(at.ns() as i64);
            continue;
        }
        fates.left_ns[index] = at.ns() as i64;
        fates.marked[index] = packet.ecn == Ecn::Ce && packets[index].1.ecn != Ecn::Ce;
        fates.corrupt[index] = packet.corrupt;
        fates.dscp[index] = packet.dscp;
    }
    fates
}

/// Processes all events due by `at`, and assigns separate identities to copies.
fn settle(
    network: &mut Network<TestPacket>,
    at: Time,
    outcomes: &mut Outcomes<TestPacket>,
    originals: &mut Vec<u64>,
    count: usize,
) {
    loop {
        while let Some(copied) = outcomes.copies.pop() {
            let mut packet = copied.packet;
            originals.push(packet.uid);
            packet.uid = (count + originals.len() - 1) as u64;
            network.inject(copied.element, copied.at, packet, outcomes);
        }
        network.advance(at, outcomes);
        if outcomes.copies.is_empty() {
            return;
        }
    }
}
