//! Records for the tests of this crate.

use narrows_record::log::PacketLog;
use narrows_record::read::Record;
use narrows_record::{
    Cell, Direction, FlowSummary, PacketFile, RunDocument, SenderCounters, Versions,
};
use serde_json::json;

/// A packet: direction, size, sending time and, unless it was dropped, arrival time.
pub(crate) type SentPacket = (Direction, u32, u64, Option<u64>);

/// The record of one flow of our transport that counted `repeated` retransmitted packets.
pub(crate) fn record(mut packets: Vec<SentPacket>, repeated: u64) -> Record {
    packets.sort_by_key(|packet| packet.2);
    let mut log = PacketLog::new(vec!["forward.0".into(), "backward.0".into()]);
    for (direction, size, sent, arrived) in packets {
        let uid = log.enter(1, direction, size, sent);
        match arrived {
            Some(arrived) => log.arrive(uid, arrived, 0),
            None => log.drop(uid, direction as u16, "queue_full"),
        }
    }
    log.finish();
    let mut file = PacketFile::create(Vec::new()).unwrap();
    while let Some(chunk) = log.take() {
        file.write(&chunk).unwrap();
    }
    let cell = json!({
        "format": "narrows/cell/1", "id": "x", "scheme": "reno", "duration_ns": 1_000_000_000_u64,
        "network": {"kind": "dumbbell", "forward": [{"name": "forward.0", "kind": "path"}],
                    "backward": [{"name": "backward.0", "kind": "path"}]},
        "flows": [{"flow": 1, "scheme": "reno", "start_ns": 0, "stop_ns": 1_000_000_000_u64}],
    });
    let versions = Versions {
        narrows: "0.1.0".into(),
        git: None,
        extensions: Vec::new(),
    };
    let mut run = RunDocument::new(cell.clone(), "simulate", versions);
    let mut flow = FlowSummary {
        flow: 1,
        scheme: "reno".into(),
        sender: SenderCounters {
            retransmitted_packets: Some(repeated),
            retransmitted_bytes: Some(repeated * 1500),
            ..SenderCounters::default()
        },
        ..FlowSummary::default()
    };
    flow.fingerprint.kind = "native".into();
    run.flows.push(flow);
    Record {
        cell: Cell::parse(&cell).unwrap(),
        run,
        packets: Some(file.finish().unwrap().into()),
        bins: None,
        delays: None,
        states: None,
        queues: None,
        traces: None,
        transfers: None,
        completions: None,
        frames: None,
        capacity: None,
    }
}
