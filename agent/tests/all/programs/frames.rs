//! Programs that send video, and programs that need time before they can begin.

use super::{SINK, Trial, blameless, described};
use crate::common::{can_emulate, my_turn};
use narrows_record::metrics;
use narrows_record::read::read_frames;
use serde_json::json;

/// Reports that it is ready, and sends a frame of 500 bytes every 20 ms from the start signal, except the fourth.
const CAMERA: &str = "
import json, os, socket, sys, time
out = open(os.environ['OUT'] + '/frames.ndjson', 'w')
print('ready when you are', flush=True)
assert sys.stdin.readline() == 'begin\\n'
peer = socket.create_connection((sys.argv[1], int(sys.argv[2])))
print(json.dumps({'target_bps': 200000, 'at_ns': time.monotonic_ns()}), file=out)
for number in range(10 ** 6):
    line = {'frame': 90000 + 1800 * number, 'at_ns': time.monotonic_ns(), 'bytes': 500, 'key': number == 0}
    print(json.dumps(line), file=out, flush=True)
    if number != 3: peer.sendall(number.to_bytes(4, 'big') + bytes(496))
    time.sleep(0.02)
";
const SCREEN: &str = "
import json, os, socket, sys, time
out = open(os.environ['OUT'] + '/frames.ndjson', 'w')
server = socket.create_server(('', int(sys.argv[1])))
peer = server.accept()[0]
while whole := peer.recv(500, socket.MSG_WAITALL):
    number = int.from_bytes(whole[:4], 'big')
    print(json.dumps({'frame': 90000 + 1800 * number, 'at_ns': time.monotonic_ns()}), file=out, flush=True)
";

#[test]
fn frames_of_a_program_are_those_of_its_flow() {
    let _turn = my_turn();
    if !can_emulate() {
        return;
    }
    let trial = Trial::run("video", SCREEN, CAMERA, |cell| {
        cell["flows"][0]["start_ns"] = 200_000_000.into();
        let program = &mut cell["flows"][0]["program"];
        program["frames"] = "frames.ndjson".into();
        for side in ["listener", "connector"] {
            program[side]["env"] = json!({"OUT": "{log}"});
        }
        program["connector"]["ready"] = json!({"line": "ready"});
    });
    let record = trial.record();
    blameless(&record);
    let connector = &described(&record)["connector"];
    assert!(
        connector["started_ns"].as_i64().unwrap() < 0,
        "it starts ahead: {connector}"
    );
    assert!(connector["ready_ns"].as_u64().unwrap() > 0);
    let first = described(&record)["first_data_ns"].as_u64().unwrap();
    assert!(first >= 200_000_000, "it begins with its flow, at {first}");
    let frames = read_frames(record.frames.clone().unwrap()).unwrap();
    assert!(frames.len() > 20, "{}", frames.len());
    for (number, frame) in (0..).zip(frames.iter()) {
        assert_eq!((frame.flow, frame.frame, frame.bytes), (1, number, 500));
        assert_eq!(frame.key, number == 0);
        // The last ones are in flight at the end.
        if number < 15 {
            assert_eq!(frame.arrived_ns.is_none(), number == 3, "{frame:?}");
        }
    }
    let measured = metrics::measure(&record).unwrap();
    let values = &measured["flows"][0]["metrics"];
    assert_eq!(values["media_target_bps"], json!(200_000.0));
    assert!(values["freezes"].is_number() && values["frame_delay_p95_ns"].is_number());
}

#[test]
fn a_connector_that_never_is_ready_has_its_sentence() {
    let _turn = my_turn();
    if !can_emulate() {
        return;
    }
    let connector = "import time\nprint('almost', flush=True)\ntime.sleep(60)";
    let trial = Trial::run("slow", SINK, connector, |cell| {
        let program = &mut cell["flows"][0]["program"];
        program["connector"]["ready"] = json!({"line": "ready"});
        program["limits"]["ready_ns"] = 2_500_000_000u64.into();
    });
    let text = trial.refusal();
    assert!(
        text.contains(
            "the connector was not ready within 2.5 s: it has printed no line with \"ready\""
        ) && text.contains("almost"),
        "{text}"
    );
}
