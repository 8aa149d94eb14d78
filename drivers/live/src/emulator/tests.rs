//! The emulator on a scripted clock.

use super::core::Core;
use super::frame::{ETHERNET, FLOW_PORTS, sample};
use super::pool::Pool;
use narrows_cell::Cell;
use narrows_net::Direction;
use narrows_record::{Fate, Log};
use narrows_units::Time;
use serde_json::{Value, json};

const MS: u64 = 1_000_000;

/// 12 Mbit/s is 1 ms per full packet; 10 ms each way; room for three packets.
fn cell(record: &str) -> Cell {
    let delay = |name: &str| json!({"name": name, "kind": "delay", "delay": 10 * MS});
    Cell::parse(
        &json!({
            "format": "narrows/cell/1", "id": "test", "seed": 1, "duration_ns": 100 * MS,
            "record": record, "bin_ns": 10 * MS, "sample_ns": 5 * MS,
            "network": {
                "kind": "dumbbell",
                "forward": [
                    {"name": "forward.0", "kind": "bottleneck",
                     "rate": {"kind": "constant", "rate": 12_000_000},
                     "queue": {"kind": "droptail", "bytes": 4500}},
                    delay("forward.1"),
                ],
                "backward": [delay("backward.0")],
            },
            "flows": [{"flow": 1, "scheme": "linux:reno", "start_ns": 0, "stop_ns": 100 * MS}],
        })
        .to_string(),
    )
    .unwrap()
}

fn core(record: &str) -> Core {
    Core::new(&cell(record), Pool::new(16, 1514, 1 << 24)).unwrap()
}

fn at(us: u64) -> Time {
    Time::from_ns(us * 1000)
}

fn data(size: u16) -> Vec<u8> {
    sample(size, 6, FLOW_PORTS + 1, FLOW_PORTS + 1, 0)
}

/// Releases everything due, `late` after the due time of the first.
fn release(core: &mut Core, direction: Direction, now: Time) -> Vec<usize> {
    let sizes: Vec<usize> = core.due(direction).map(<[u8]>::len).collect();
    core.released(direction, sizes.len(), now, now);
    sizes
}

#[test]
fn packets_leave_when_the_model_says_and_lateness_is_what_it_is() {
    let mut core = core("packets");
    core.arrive(Direction::Forward, at(0), &data(1500));
    core.arrive(Direction::Forward, at(0), &data(1500));
    assert_eq!(
        core.next_wakeup(),
        at(1_000),
        "the first packet has left the bottleneck"
    );
    core.advance(at(10_999));
    assert!(!core.has_due(Direction::Forward));
    assert_eq!(core.next_wakeup(), at(11_000));
    core.advance(at(11_003));
    assert_eq!(release(&mut core, Direction::Forward, at(11_004)), [1514]);
    // The thread slept too long: the second packet leaves 500 us late, the model does not care.
    core.advance(at(12_500));
    assert_eq!(release(&mut core, Direction::Forward, at(12_500)), [1514]);
    core.finish();
    let Log::Packets(log) = &mut core.log else {
        panic!("packets were asked for")
    };
    let chunk = log.take().unwrap();
    assert_eq!(chunk.row(0).arrived_ns, Some(11_004_000));
    assert_eq!(chunk.row(0).late_ns, Some(4_000));
    assert_eq!(chunk.row(1).late_ns, Some(500_000));
    assert_eq!(core.lateness.max(), Some(500_000));
    assert_eq!(core.delivered[1], 2);
}

#[test]
fn late_driving_changes_no_decision() {
    // The same frames, once driven at every event and once in a single late step.
    let play = |late: bool| {
        let mut core = core("packets");
        for n in 0..40u64 {
            core.arrive(Direction::Forward, at(n * 300), &data(1500));
            if !late {
                for us in 0..3 {
                    core.advance(at(n * 300 + us * 100));
                }
            }
        }
        core.advance(at(100_000));
        let mut due = Vec::new();
        while core.has_due(Direction::Forward) {
            let now = at(100_000);
            core.released(Direction::Forward, 1, now, now);
            due.push(core.lateness.max());
        }
        core.finish();
        let Log::Packets(log) = &mut core.log else {
            panic!("packets were asked for")
        };
        let chunk = log.take().unwrap();
        (0..chunk.len())
            .map(|row| {
                let row = chunk.row(row);
                let model = row.arrived_ns.map(|ns| ns as i64 - row.late_ns.unwrap());
                (row.uid, model, row.fate, row.element, row.reason)
            })
            .collect::<Vec<_>>()
    };
    let on_time = play(false);
    assert_eq!(on_time, play(true));
    assert!(on_time.iter().any(|row| row.2 == Fate::Dropped));
}

#[test]
fn what_is_inside_at_the_end_is_in_flight_and_held_by_its_element() {
    let mut core = core("packets");
    core.arrive(Direction::Forward, at(85_000), &data(1500));
    core.arrive(Direction::Forward, at(99_500), &data(1500));
    core.arrive(Direction::Forward, at(99_600), &data(1500));
    core.arrive(Direction::Backward, at(99_700), &data(60));
    core.advance(at(120_000));
    assert_eq!(
        release(&mut core, Direction::Forward, at(96_001)),
        [1514],
        "nothing after the end"
    );
    core.finish();
    let counters = core.counters();
    assert_eq!(
        (counters[0].name.as_str(), counters[0].held_packets),
        ("forward.0", 2)
    );
    assert_eq!(
        (counters[2].name.as_str(), counters[2].held_packets),
        ("backward.0", 1)
    );
    let Log::Packets(log) = &mut core.log else {
        panic!("packets were asked for")
    };
    let chunk = log.take().unwrap();
    let holder = |row: usize| chunk.row(row).element.unwrap();
    assert_eq!(
        (holder(1), holder(2), holder(3)),
        ("forward.0".into(), "forward.0".into(), "backward.0".into())
    );
    assert_eq!(chunk.row(3).fate, Fate::InFlight);
}

#[test]
fn queues_are_sampled_in_model_time() {
    let mut core = core("packets");
    for _ in 0..4 {
        core.arrive(Direction::Forward, at(4_500), &data(1500));
    }
    core.advance(at(30_000));
    let rows: Vec<_> = core.queue_rows().collect();
    let bytes: Vec<u64> = rows.iter().map(|row| row.backlog_bytes).collect();
    // At 5 ms one is in service and three wait; the driver came 25 ms later.
    assert_eq!(bytes[..4], [0, 4500, 0, 0]);
    assert_eq!(rows[1].time_ns, 5 * MS);
    core.advance(at(200_000));
    assert_eq!(
        core.queue_rows().count(),
        21,
        "both ends of the run are sampled, nothing beyond"
    );
}

#[test]
fn foreign_frames_and_unknown_ports_are_told_apart() {
    let mut core = core("bins");
    let mut arp = data(60);
    arp[13] = 6;
    core.arrive(Direction::Forward, at(1), &arp);
    core.arrive(Direction::Forward, at(2), &sample(60, 17, 9999, 9, 0));
    core.arrive(
        Direction::Forward,
        at(3),
        &sample(60, 17, FLOW_PORTS + 9, FLOW_PORTS + 9, 0),
    );
    assert_eq!(core.refused.foreign, 1);
    assert_eq!(core.log.entered(), 1);
    core.advance(at(50_000));
    release(&mut core, Direction::Forward, at(50_000));
    assert_eq!(core.delivered, [1, 0], "an unknown flow counts as none");
}

#[test]
fn stamps_that_run_backwards_keep_the_order_of_the_wire() {
    let mut core = core("packets");
    core.arrive(Direction::Backward, at(100), &data(60));
    core.arrive(Direction::Backward, at(99), &data(61));
    core.advance(at(11_000));
    assert_eq!(
        release(&mut core, Direction::Backward, at(11_000)),
        [60 + ETHERNET, 61 + ETHERNET]
    );
}

#[test]
fn a_full_pool_refuses_frames_and_says_so() {
    let mut core = Core::new(&cell("packets"), Pool::new(1, 1514, 1)).unwrap();
    for n in 0..1100u64 {
        core.arrive(Direction::Backward, at(n), &data(60));
    }
    assert_eq!(core.refused.no_memory, 1100 - 1024);
}

#[test]
fn a_bad_network_is_refused_with_its_place() {
    let mut bad = cell("packets");
    *bad.json
        .pointer_mut("/network/forward/0/queue/bytes")
        .unwrap() = Value::from("x");
    let error = Core::new(&bad, Pool::new(1, 1514, 1))
        .err()
        .unwrap()
        .to_string();
    assert!(
        error.contains("forward.0") && error.contains("bytes"),
        "{error}"
    );
}
