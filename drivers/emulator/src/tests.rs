//! The emulator on a scripted clock.

mod programs;
mod threads;

use super::core::Core;
use super::frame::ETHERNET;
use super::pool::Pool;
use super::testing::{readdress, sample};
use narrows_cell::addressing::FLOW_PORTS;
use narrows_cell::{Cell, element_names};
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
    core_of(&cell(record), Pool::new(16, 1514, 1 << 24))
}

fn core_of(cell: &Cell, pool: Pool) -> Core {
    Core::new(cell, cell.network().unwrap(), pool)
}

fn at(us: u64) -> Time {
    Time::from_ns(us * 1000)
}

fn data(size: u16) -> Vec<u8> {
    sample(size, 6, FLOW_PORTS + 1, FLOW_PORTS + 1, 0)
}

/// The ports of the two hosts of the dumbbell.
const SENDER: u16 = 0;
const RECEIVER: u16 = 1;

/// A frame in the direction of acknowledgements.
fn back(size: u16) -> Vec<u8> {
    readdress(data(size), RECEIVER, SENDER)
}

/// Releases everything due at `port` at `now`.
fn release(core: &mut Core, port: u16, now: Time) -> Vec<usize> {
    let sizes: Vec<usize> = core.due(port).map(<[u8]>::len).collect();
    core.released(port, sizes.len(), now, now);
    sizes
}

#[test]
fn packets_leave_when_the_model_says_and_lateness_is_what_it_is() {
    let mut core = core("packets");
    core.arrive(SENDER, at(0), &data(1500));
    core.arrive(SENDER, at(0), &data(1500));
    assert_eq!(
        core.next_wakeup(),
        at(1_000),
        "the first packet has left the bottleneck"
    );
    core.advance(at(10_999));
    assert!(!core.has_due(RECEIVER));
    assert_eq!(core.next_wakeup(), at(11_000));
    core.advance(at(11_003));
    assert_eq!(release(&mut core, RECEIVER, at(11_004)), [1514]);
    // The thread slept too long: the second packet leaves 500 us late, which does not affect the
    // model.
    core.advance(at(12_500));
    assert_eq!(release(&mut core, RECEIVER, at(12_500)), [1514]);
    core.finish();
    let Log::Packets(log) = &mut core.log else {
        panic!("packets were requested")
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
            core.arrive(SENDER, at(n * 300), &data(1500));
            if !late {
                for us in 0..3 {
                    core.advance(at(n * 300 + us * 100));
                }
            }
        }
        core.advance(at(100_000));
        let mut due = Vec::new();
        while core.has_due(RECEIVER) {
            let now = at(100_000);
            core.released(RECEIVER, 1, now, now);
            due.push(core.lateness.max());
        }
        core.finish();
        let Log::Packets(log) = &mut core.log else {
            panic!("packets were requested")
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
    core.arrive(SENDER, at(85_000), &data(1500));
    core.arrive(SENDER, at(99_500), &data(1500));
    core.arrive(SENDER, at(99_600), &data(1500));
    core.arrive(RECEIVER, at(99_700), &back(60));
    core.advance(at(120_000));
    assert_eq!(
        release(&mut core, RECEIVER, at(96_001)),
        [1514],
        "no packet after the end"
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
        panic!("packets were requested")
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
        core.arrive(SENDER, at(4_500), &data(1500));
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
        "both ends of the run are sampled, but nothing beyond"
    );
}

#[test]
fn foreign_frames_and_unknown_ports_are_told_apart() {
    let mut core = core("bins");
    let mut arp = data(60);
    arp[13] = 6;
    core.arrive(SENDER, at(1), &arp);
    core.arrive(SENDER, at(2), &sample(60, 17, 9999, 9, 0));
    core.arrive(
        SENDER,
        at(3),
        &sample(60, 17, FLOW_PORTS + 9, FLOW_PORTS + 9, 0),
    );
    assert_eq!(core.admission.refused.foreign, 1);
    assert_eq!(core.log.entered(), 1);
    core.advance(at(50_000));
    release(&mut core, RECEIVER, at(50_000));
    assert_eq!(core.delivered, [1, 0], "an unknown flow counts as none");
}

#[test]
fn stamps_that_run_backwards_keep_the_order_of_the_wire() {
    let mut core = core("packets");
    core.arrive(RECEIVER, at(100), &back(60));
    core.arrive(RECEIVER, at(99), &back(61));
    core.advance(at(11_000));
    assert_eq!(
        release(&mut core, SENDER, at(11_000)),
        [60 + ETHERNET, 61 + ETHERNET]
    );
}

#[test]
fn a_full_pool_refuses_frames_and_says_so() {
    let mut core = core_of(&cell("packets"), Pool::new(1, 1514, 1));
    for n in 0..1100u64 {
        core.arrive(RECEIVER, at(n), &back(60));
    }
    assert_eq!(core.admission.refused.no_memory, 1100 - 1024);
}

/// Three hosts around a router, and a cell whose network is `change`d.
fn star(change: impl FnOnce(&mut Value)) -> Core {
    let link = |name: &str, from: &str, to: &str| {
        let delay = json!({"name": format!("{name}.0"), "kind": "delay", "delay": MS});
        json!({"name": name, "from": from, "to": to, "elements": [delay]})
    };
    let mut links = Vec::new();
    let mut routes = Vec::new();
    for host in ["a", "b", "c"] {
        links.push(link(&format!("{host}-r"), host, "r"));
        links.push(link(&format!("r-{host}"), "r", host));
        for other in ["a", "b", "c"].into_iter().filter(|&other| other != host) {
            let passed = [format!("{host}-r"), format!("r-{other}")];
            routes.push(json!({"from": host, "to": other, "links": passed}));
        }
    }
    let flow = |flow: u16, from: &str, to: &str| {
        json!({"flow": flow, "scheme": "linux:reno", "start_ns": 0, "stop_ns": 100 * MS,
               "from": from, "to": to})
    };
    let mut cell = json!({
        "format": "narrows/cell/1", "id": "test", "seed": 1, "duration_ns": 100 * MS,
        "record": "packets", "bin_ns": 10 * MS, "sample_ns": 5 * MS,
        "network": {"kind": "graph", "hosts": [{"name": "a"}, {"name": "b"}, {"name": "c"}],
                    "routers": ["r"], "links": links, "routes": routes},
        "flows": [flow(1, "a", "b"), flow(2, "c", "a")],
    });
    change(&mut cell);
    let cell = Cell::parse(&cell.to_string()).unwrap();
    core_of(&cell, Pool::new(16, 1514, 1 << 24))
}

fn frame_of(flow: u16, from: u16, to: u16, size: u16) -> Vec<u8> {
    readdress(sample(size, 6, 40_000, FLOW_PORTS + flow, 0), from, to)
}

fn rows(core: &mut Core) -> Vec<narrows_record::PacketRow> {
    core.finish();
    let Log::Packets(log) = &mut core.log else {
        panic!("packets were requested")
    };
    let chunk = log.take().unwrap();
    (0..chunk.len()).map(|row| chunk.row(row)).collect()
}

#[test]
fn packets_find_their_way_by_address() {
    let mut core = star(|_| {});
    core.arrive(0, at(0), &frame_of(1, 0, 1, 1500));
    core.arrive(0, at(0), &frame_of(2, 0, 2, 60));
    core.arrive(2, at(10), &frame_of(2, 2, 0, 1000));
    core.arrive(1, at(20), &frame_of(9, 1, 2, 500));
    core.arrive(1, at(20), &frame_of(1, 1, 40, 500));
    core.advance(at(2_100));
    let pending: Vec<u16> = (0..).map_while(|skip| core.pending(skip)).collect();
    assert_eq!(pending, [1, 2, 0], "in the order in which they became due");
    assert_eq!(release(&mut core, 1, at(2_100)), [1514]);
    assert_eq!(release(&mut core, 2, at(2_100)), [74, 514]);
    assert_eq!(release(&mut core, 0, at(2_100)), [1014]);
    assert_eq!(core.pending(0), None);
    assert_eq!(core.admission.refused.no_route, 1);
    assert_eq!(core.delivered, [1, 1, 2]);
    let said: Vec<_> = rows(&mut core)
        .iter()
        .map(|row| (row.flow, row.direction, row.size_bytes))
        .collect();
    use narrows_record::Direction::{Backward, Forward};
    let expected = [
        (1, Forward, 1500),
        // The acknowledgement of a flow travels against its data in any direction.
        (2, Backward, 60),
        (2, Forward, 1000),
        // A packet of no flow has the direction of its route.
        (0, Forward, 500),
    ];
    assert_eq!(said, expected);
}

#[test]
fn flows_between_the_same_hosts_may_be_of_both_directions() {
    let mut core = star(|cell| cell["flows"][1]["direction"] = "backward".into());
    core.arrive(2, at(0), &frame_of(2, 2, 0, 1000));
    core.arrive(0, at(1), &frame_of(2, 0, 2, 60));
    core.advance(at(50_000));
    release(&mut core, 0, at(50_000));
    release(&mut core, 2, at(50_000));
    use narrows_record::Direction::{Backward, Forward};
    let said: Vec<_> = rows(&mut core).iter().map(|row| row.direction).collect();
    assert_eq!(said, [Backward, Forward]);
}

#[test]
fn whatever_enters_one_of_two_ports_can_leave_at_the_other() {
    let network: narrows_net::Network<super::Handle> = cell("bins").network().unwrap();
    let config = super::CoreConfig {
        flows: Vec::new(),
        log: Log::Bins(narrows_record::BinLog::new(10 * MS)),
        sample: narrows_units::Span::ZERO,
        end: Time::FAR,
        forwarding: super::Forwarding::Across,
        unknown_rates: (narrows_units::Span::ZERO, Vec::new()),
        replaced_rates: Vec::new(),
    };
    let mut core = Core::with(network, config, Pool::new(16, 1514, 1 << 24), ());
    let mut outside = sample(100, 17, 5000, 53, 0);
    outside[ETHERNET + 16..ETHERNET + 20].copy_from_slice(&[192, 0, 2, 1]);
    core.arrive(0, at(0), &outside);
    outside[ETHERNET + 16..ETHERNET + 20].copy_from_slice(&[203, 0, 113, 9]);
    core.arrive(1, at(0), &outside);
    core.advance(at(20_000_000));
    assert_eq!(release(&mut core, 1, at(20_000_000)), [114]);
    assert_eq!(release(&mut core, 0, at(20_000_000)), [114]);
    assert_eq!(
        (core.admission.refused, core.queue_rows().count()),
        (narrows_cell::judgement::RefusedFrames::default(), 0)
    );
}

/// Numbers packets consecutively, and holds back those with an odd number of bytes.
#[derive(Default)]
struct Turnstile {
    entered: u16,
    left: Vec<(u32, u64)>,
    held: Vec<usize>,
}

impl super::Hooks for Turnstile {
    fn enter(&mut self, _: &super::Transit, _: &[u8]) -> Option<u16> {
        self.entered += 1;
        Some(self.entered)
    }

    fn leave(&mut self, packet: &super::Transit, _: &narrows_net::Network<super::Handle>) {
        self.left.push((packet.size, packet.at.ns()));
    }

    fn admits(&self, port: u16, frame: &[u8]) -> bool {
        port != 1 || frame.len().is_multiple_of(2)
    }

    fn hold(&mut self, _: u16, frame: &[u8]) {
        self.held.push(frame.len());
    }
}

#[test]
fn hooks_number_packets_and_hold_frames_back() {
    let network = cell("packets").network().unwrap();
    let config = super::CoreConfig {
        flows: vec![None; 8],
        log: Log::Packets(narrows_record::PacketLog::new(element_names(&network))),
        sample: narrows_units::Span::ZERO,
        end: Time::FAR,
        forwarding: super::Forwarding::Across,
        unknown_rates: (narrows_units::Span::ZERO, Vec::new()),
        replaced_rates: Vec::new(),
    };
    let pool = Pool::new(16, 1514, 1 << 24);
    let mut core = Core::with(network, config, pool, Turnstile::default());
    for size in [100, 101, 102] {
        core.arrive(0, at(0), &sample(size, 17, 5000, 53, 0));
    }
    let now = at(20_000_000);
    core.advance(now);
    let sizes: Vec<_> = core.hooks.left.iter().map(|(size, _)| *size).collect();
    assert_eq!(sizes, [100, 101, 102]);
    let due = |core: &Core<Turnstile>| core.due(1).map(<[u8]>::len).collect::<Vec<_>>();
    assert_eq!(due(&core), [114]);
    core.released(1, 1, now, now);
    assert_eq!(due(&core), [0; 0]);
    assert!(core.hold_back(1, || now));
    assert_eq!((due(&core), &core.hooks.held), (vec![116], &vec![115]));
    assert!(!core.hold_back(1, || now));
    core.released(1, 1, now, now);
    core.end_at(now);
    core.finish();
    assert_eq!(core.delivered[1..4], [1, 1, 1]);
}
