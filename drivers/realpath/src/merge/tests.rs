//! Records of runs with known truth, made from two folders written like those of two peers.

use super::*;
use narrows_cell::{VERSION, open_record};
use narrows_record::read::PacketReader;
use narrows_record::{Chunk, Direction, Fate, PacketRow, Verdict, metrics, read};
use narrows_tunnel::log::{Columns, Content, LogKind, TunnelLogRow};
use narrows_units::Time;
use serde_json::{Value, json};
use std::path::PathBuf;

const MS: u64 = 1_000_000;
/// Bytes of the tunnel's headers in IPv4.
const OVERHEAD: u32 = 56;
/// Readings of both tunnels' clocks at the start of the run; the second runs faster by 50 ppm.
const STARTS: [u64; 2] = [1_000_000 * MS, 3_500_000 * MS];
const DRIFT_PPM: u64 = 50;
const SECONDS: u64 = 4;
/// One-way delays without queues.
const MIN_DELAY: [u64; 2] = [20 * MS, 31 * MS];

/// Reading of the clock of `host` at the true time `since` ns after the start.
fn reading(host: usize, since: i64) -> u64 {
    let drift = if host == 1 {
        since * DRIFT_PPM as i64 / 1_000_000
    } else {
        0
    };
    (STARTS[host] as i64 + since + drift) as u64
}

/// The truth about a packet: sending time, and delay if it arrived.
#[derive(Clone, Copy)]
struct Truth {
    host: usize,
    sent: i64,
    delay: Option<u64>,
    flow: u16,
    size: u32,
}

struct Scene {
    folder: PathBuf,
    packets: Vec<Truth>,
    cell: Value,
    peers: [Value; 2],
    tunnels: [Value; 2],
    logs: [[Vec<u8>; 2]; 2],
}

impl Drop for Scene {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// Every fiftieth packet of the data of flow 1 is lost.
fn lost(index: i64) -> bool {
    index % 50 == 17
}

/// Flow 1 sends 1000 packets per second forward and receives an acknowledgement for each; flow 2, of the kernel, sends
/// 200 backward without acknowledgements. Both queues build up and drain every half second.
fn truth() -> Vec<Truth> {
    let queue = |at: i64| (at.unsigned_abs() / 1_000 % 500_000) * 20;
    let end = SECONDS as i64 * 1_000_000_000;
    let mut packets = Vec::new();
    let mut index = 0;
    let mut at = -200_000_000;
    while at < end {
        // Before the start only packets of no flow are sent.
        let flow = u16::from(at >= 0);
        let one = Truth {
            host: 0,
            sent: at,
            delay: (!lost(index)).then(|| MIN_DELAY[0] + queue(at)),
            flow,
            size: 1500,
        };
        packets.push(one);
        if let Some(delay) = one.delay {
            packets.push(Truth {
                host: 1,
                sent: at + delay as i64,
                delay: Some(MIN_DELAY[1] + queue(at)),
                flow,
                size: 52,
            });
        }
        if index % 5 == 0 && at >= 0 {
            packets.push(Truth {
                host: 1,
                sent: at + 137,
                delay: Some(MIN_DELAY[1] + queue(at) / 2),
                flow: 2,
                size: 1200,
            });
        }
        index += 1;
        at += 1_000_000;
    }
    // The kernel of host 1 resets flow 2 after its stop, and the last packet of flow 1 never arrives.
    packets.push(Truth {
        host: 1,
        sent: end + 5_000_000,
        delay: Some(MIN_DELAY[1]),
        flow: 2,
        size: 40,
    });
    packets.push(Truth {
        host: 0,
        sent: end + 70_000_000,
        delay: None,
        flow: 1,
        size: 1500,
    });
    packets.sort_by_key(|packet| packet.sent);
    packets
}

impl Scene {
    fn new(name: &str) -> Scene {
        Scene::with_packets(name, truth())
    }

    fn with_packets(name: &str, packets: Vec<Truth>) -> Scene {
        let name = format!("narrows-side-record-{name}-{}", std::process::id());
        let count = |host: usize, arrived: bool| {
            let own = packets.iter().filter(|packet| packet.host == host);
            own.filter(|packet| !arrived || packet.delay.is_some())
                .count()
        };
        let tunnel = |host: usize| {
            json!({
                "format": "narrows/tunnel-end/1", "narrows": VERSION,
                "role": if host == 0 { "dialer" } else { "listener" }, "host": host,
                "local": "192.0.2.7:7000", "reason": "stopped",
                "opened_ns": reading(host, -1_000_000_000), "ended_ns": reading(host, 5_000_000_000),
                "cpu_ns": 400 * MS, "outer_mtu": 1556, "inner_mtu": 1500, "path_bytes": 1556,
                "sent": {"packets": count(host, false), "unsent": 0, "before_session": 0, "foreign": 0},
                "arrived": {"packets": count(1 - host, true), "sessions": 1, "undelivered": 0},
                "lost_here": {"ring": 0, "socket": 0},
            })
        };
        let of_flow = |flow: u16, arrived: bool| {
            let own = packets
                .iter()
                .filter(|packet| packet.flow == flow && packet.host == usize::from(flow == 2));
            let own = own.filter(|packet| !arrived || packet.delay.is_some());
            let packets: Vec<u64> = own.map(|packet| u64::from(packet.size)).collect();
            (packets.len() as u64, packets.iter().sum::<u64>())
        };
        let end = |flow: u16, sends: bool| {
            let (packets, bytes) = of_flow(flow, !sends);
            // Samples every half second by the host's clock.
            let states: Vec<Value> = (0..8)
                .map(|n| json!({"time_ns": n * 500 * MS, "cwnd_bytes": n, "srtt_ns": n, "delivered_bytes": n}))
                .collect();
            let outcome = if sends {
                json!({"read_back": "x", "states": states,
                       "sender": {"sent_packets": packets, "sent_bytes": bytes}})
            } else {
                json!({"receiver": {"received_packets": packets, "received_bytes": bytes,
                                    "goodput_bytes": bytes * 9 / 10}})
            };
            json!({"flow": flow, "role": if sends { "sender" } else { "receiver" },
                   "active_ns": SECONDS * 1_000 * MS, "outcome": outcome, "failure": null})
        };
        let moment = |host: usize, since: i64| {
            json!({"tunnel_ns": reading(host, since), "mono_ns": 77_000_000_000 + since,
                   "real_ns": 1_795_256_100_000_000_000i64 + since})
        };
        let peer = |host: usize| {
            json!({
                "format": "narrows/side-end/1", "host": host, "name": format!("machine-{host}"),
                "clocks": {"start": moment(host, 0), "end": moment(host, 4_000_000_000)},
                "ended_real_ns": 1_795_256_104_500_000_000u64,
                "machine": {"kernel": format!("6.1.{host}"), "cpus": 2},
                "settings": {"mtu": 1500, "sysctls": {"net.ipv4.tcp_sack": "1"}},
                "privilege": "root", "versions": {"narrows": "9.9", "git": "abc"},
                "clock_step_ns": 0,
                "timekeeping": {"real_ns": 1_795_256_099_000_000_000i64, "raw_ns": reading(host, -1_000_000_000),
                                "bound_ns": 300_000 + host, "correction_ppb": -50_000 * host as i64},
                "cpu": {"ticks": [{"total": 400, "idle": 100, "stolen": 4}]},
                "missed_calls": null,
                "processes": [{"name": format!("flow {}", host + 1), "exit": 0, "signal": null,
                               "expected": true}],
                "ends": [end(1, host == 0), end(2, host == 1)],
            })
        };
        let flow = |flow: u16, scheme: &str, direction: &str| {
            json!({"flow": flow, "scheme": scheme, "params": {}, "start_ns": 0,
                   "stop_ns": SECONDS * 1_000 * MS, "direction": direction})
        };
        let cell = json!({
            "format": "narrows/cell/1", "id": "two-r1", "scheme": "cubic", "run": 1, "where": "hosts",
            "seed": 1, "duration_ns": SECONDS * 1_000 * MS, "record": "packets", "bin_ns": 100 * MS,
            "sample_ns": 10 * MS,
            "network": {"kind": "dumbbell", "forward": [{"name": "forward.0", "kind": "real"}],
                        "backward": [{"name": "backward.0", "kind": "real"}]},
            "flows": [flow(1, "cubic", "forward"), flow(2, "linux:cubic", "backward")],
        });
        let scene = Scene {
            folder: std::env::temp_dir().join(name),
            logs: logs(&packets),
            tunnels: [tunnel(0), tunnel(1)],
            peers: [peer(0), peer(1)],
            packets,
            cell,
        };
        std::fs::create_dir_all(&scene.folder).unwrap();
        scene
    }

    fn make(&self) -> Result<RunDocument, RunError> {
        let place = |host: usize| self.folder.join(format!("side-{host}"));
        for host in 0..2 {
            let place = place(host);
            std::fs::create_dir_all(place.join("logs")).unwrap();
            let write = |name: &str, bytes: &[u8]| std::fs::write(place.join(name), bytes).unwrap();
            write("sent.ntl", &self.logs[host][0]);
            write("arrived.ntl", &self.logs[host][1]);
            write("tunnel.json", self.tunnels[host].to_string().as_bytes());
            write("side.json", self.peers[host].to_string().as_bytes());
            write(&format!("logs/flow-{}-sender.log", host + 1), b"words\n");
        }
        let cell = Cell::parse(&self.cell.to_string()).unwrap();
        let (here, there) = (place(0), place(1));
        side_record(&cell, [&here, &there], &self.out(), &mut |_, _| true)
    }

    fn out(&self) -> PathBuf {
        self.folder.join("record")
    }

    fn rows(&self) -> Vec<PacketRow> {
        let record = open_record(&self.out()).unwrap();
        let mut reader = PacketReader::open(record.packets.unwrap()).unwrap();
        let (mut chunk, mut rows) = (Chunk::default(), Vec::new());
        while reader.next(&mut chunk).unwrap() {
            rows.extend((0..chunk.len()).map(|index| chunk.row(index)));
        }
        rows
    }

    fn refusal(&self) -> String {
        match self.make() {
            Err(RunError::Input(message)) => message,
            other => panic!("{:?}", other.map(|run| run.verdict)),
        }
    }
}

/// Both logs of both hosts, with clock messages between the packets.
fn logs(packets: &[Truth]) -> [[Vec<u8>; 2]; 2] {
    let mut rows: [[Vec<TunnelLogRow>; 2]; 2] = Default::default();
    let mut ids = [0u64; 2];
    for (index, packet) in packets.iter().enumerate() {
        let from = packet.host;
        let messages = usize::from(index % 20 == 0);
        for is_clock in (0..=messages).map(|n| n == 1) {
            let sent = Time::from_ns(reading(from, packet.sent) + u64::from(is_clock));
            let row = TunnelLogRow {
                id: ids[from],
                sent,
                arrived: sent,
                size: if is_clock { 76 } else { packet.size + OVERHEAD },
                content: if is_clock {
                    Content::Clock
                } else {
                    Content::Packet
                },
                tos: 2,
                flow: if is_clock { 0 } else { packet.flow },
            };
            ids[from] += 1;
            rows[from][0].push(row);
            if let Some(delay) = packet.delay {
                let arrived = reading(1 - from, packet.sent + delay as i64);
                rows[1 - from][1].push(TunnelLogRow {
                    arrived: Time::from_ns(arrived),
                    flow: 0,
                    tos: 2 + u8::from(index % 1000 == 0),
                    ..row
                });
            }
        }
    }
    rows.map(|[sent, arrived]| {
        [(LogKind::Sent, sent), (LogKind::Arrived, arrived)].map(|(peer, rows)| {
            let mut bytes = Vec::new();
            for part in rows.chunks(1000) {
                let mut columns = Columns::new(peer);
                for &row in part {
                    columns.push(row);
                }
                columns.drain_into(&mut bytes);
            }
            bytes
        })
    })
}

fn codes(run: &RunDocument) -> Vec<&str> {
    run.reasons.iter().map(|it| it.code.as_str()).collect()
}

#[test]
fn the_record_tells_what_was_true() {
    let scene = Scene::new("truth");
    let run = scene.make().unwrap();
    // Both directions together take 51 ms, of unknown shares; the queues vary by less.
    assert_eq!(
        codes(&run),
        ["clock_bound", "clock_bound"],
        "{:#?}",
        run.reasons
    );
    assert_eq!(run.verdict, Verdict::Ok);
    let failed: Vec<_> = run.checks.iter().filter(|check| !check.ok).collect();
    assert!(failed.is_empty(), "{failed:#?}");
    let skipped = run.checks.iter().filter(|check| check.skipped);
    let skipped: Vec<&str> = skipped.map(|check| check.name.as_str()).collect();
    for decided in [
        "uids",
        "fates",
        "conservation",
        "endpoints",
        "propagation",
        "states",
        "tunnel",
    ] {
        assert!(!skipped.contains(&decided), "{skipped:?}");
    }

    // Clocks: the bound includes the truth, and the drift is found.
    let truth = (STARTS[1] - STARTS[0]) as i64;
    let off = (run.clock.offset_ns - truth).unsigned_abs();
    assert!(off <= run.clock.error_ns, "{:?}", run.clock);
    assert!(
        (25 * MS..27 * MS).contains(&run.clock.error_ns),
        "{:?}",
        run.clock
    );
    let drift = run.clock.other["drift_ppb"].as_f64().unwrap();
    // Minimum delays are measured to 1 us, over four seconds.
    assert!((drift - 50_000.0).abs() < 1_000.0, "{drift}");
    assert_eq!(run.clock.other["resolved"]["forward"], false);
    // Time services have read both clocks a second earlier, when their difference was 50 us smaller.
    let by_ntp = json!({"offset_ns": truth - 50_000, "bound_ns": 600_001, "drift_ppb": 50_000});
    assert_eq!(run.clock.other["by_ntp"], by_ntp);

    // Packets: those of the run, each with its fate, flow, size and time, and none with a negative delay.
    let rows = scene.rows();
    let wanted: Vec<&Truth> = scene
        .packets
        .iter()
        .filter(|it| it.sent >= 0 && it.size != 40)
        .collect();
    assert_eq!(rows.len(), wanted.len());
    let middle = (MIN_DELAY[1] as i64 - MIN_DELAY[0] as i64) / 2;
    for host in 0..2 {
        let direction = [Direction::Forward, Direction::Backward][host];
        let own = rows.iter().filter(|row| row.direction == direction);
        let truth = wanted.iter().filter(|packet| packet.host == host);
        for (row, packet) in own.zip(truth) {
            assert_eq!((row.flow, row.size_bytes), (packet.flow, packet.size));
            // By the estimate, each direction takes half of the minimum round trip.
            let shift = if host == 0 { middle } else { -middle };
            let sent = packet.sent + if host == 1 { middle } else { 0 };
            assert!((row.sent_ns as i64 - sent).abs() < 20_000, "{row:?} {sent}");
            match (packet.delay, row.arrived_ns) {
                (Some(delay), Some(arrived)) => {
                    let expected = delay as i64 + shift;
                    let delay = arrived as i64 - row.sent_ns as i64;
                    assert!((delay - expected).abs() < 20_000, "{row:?} {expected}");
                }
                (None, None) => {
                    let is_last = packet.sent > SECONDS as i64 * 1_000_000_000;
                    let fate = if is_last {
                        Fate::InFlight
                    } else {
                        Fate::Dropped
                    };
                    assert_eq!((row.fate, row.reason.is_some()), (fate, !is_last));
                    assert_eq!(row.element.as_deref(), Some("forward.0"));
                }
                other => panic!("{other:?}"),
            }
        }
    }

    // Flows: both ends of each, and their hosts.
    assert_eq!(run.flows[0].fingerprint.version.as_deref(), Some("9.9"));
    assert_eq!(run.flows[1].fingerprint.kernel.as_deref(), Some("6.1.1"));
    assert_eq!(run.flows[0].sender.sent_packets, Some(4001));
    assert!(run.flows[1].receiver.received_packets.is_some());
    assert_eq!(run.hosts[1].other["machine"]["kernel"], "6.1.1");
    assert_eq!(run.hosts[0].other["tunnel"]["local"], "192.0.2.7:7000");
    assert_eq!(run.processes.len(), 2);
    assert_eq!(run.other["tunnel"]["overhead_bytes"], OVERHEAD);
    assert!(run.other["tunnel"]["forward"]["marked"].as_u64().unwrap() > 0);
    assert!(scene.out().join("logs/flow-2-sender.log").exists());

    // Reports of endpoints at the other host are by the same clock.
    let record = open_record(&scene.out()).unwrap();
    let states = read::read_states(record.states.clone().unwrap()).unwrap();
    let of = |flow: u16| states.iter().filter(move |row| row.flow == flow);
    let last = |flow: u16| of(flow).next_back().unwrap().time_ns as i64;
    assert_eq!(of(1).count(), 8);
    assert!(
        (last(2) - last(1) - middle).abs() < 20_000,
        "{} {}",
        last(1),
        last(2)
    );

    // Metrics that depend on the path are absent; queueing delays count from the minimum delay.
    let measured = metrics::measure(&record).unwrap();
    let first = |name: &str| measured["flows"][0]["metrics"][name].as_f64();
    assert_eq!(first("utilization_ratio"), None);
    let p95 = first("queueing_delay_p95_ns").unwrap();
    assert!((p95 - 9.5e6).abs() < 1e5, "{p95}");
    let rate = first("throughput_bps").unwrap();
    assert!((rate / 1e6 - 12.0 * 0.98).abs() < 0.1, "{rate}");
}

#[test]
fn bins_count_what_packets_tell() {
    let mut scene = Scene::new("bins");
    scene.cell["record"] = json!("bins");
    let run = scene.make().unwrap();
    assert_eq!(run.verdict, Verdict::Ok, "{:#?}", run.reasons);
    let record = open_record(&scene.out()).unwrap();
    assert!(record.packets.is_none());
    let bins = read::read_bins(record.bins.unwrap()).unwrap();
    let sent: u64 = bins
        .iter()
        .filter(|bin| bin.flow == 1)
        .map(|bin| bin.sent_packets)
        .sum();
    let truth = scene.packets.iter().filter(|it| it.flow == 1);
    assert_eq!(sent, truth.count() as u64);
}

#[test]
fn losses_that_are_not_the_paths_are_told() {
    let mut scene = Scene::new("short");
    let length = scene.logs[1][1].len();
    scene.logs[1][1].truncate(length / 2);
    let run = scene.make().unwrap();
    assert_eq!(run.verdict, Verdict::Invalid);
    assert!(codes(&run).contains(&"log"), "{:?}", run.reasons);
    // The counters of the tunnel reveal it as well.
    let tunnel = run
        .checks
        .iter()
        .find(|check| check.name == "tunnel")
        .unwrap();
    assert!(!tunnel.ok, "{tunnel:?}");
    drop(scene);

    let mut scene = Scene::new("silent");
    scene.tunnels[0]["lost_here"]["ring"] = json!(100);
    scene.peers[1]["ends"][0]["outcome"] = Value::Null;
    scene.peers[1]["ends"][0]["failure"] = json!("was ended by signal 9 during the run");
    scene.peers[1]["cpu"]["ticks"][0]["stolen"] = json!(100);
    scene.peers[0]["missed_calls"] = json!({"bpf:exp": 3});
    let run = scene.make().unwrap();
    assert_eq!(run.verdict, Verdict::Invalid);
    for code in ["lost_here", "process_died", "stolen", "missed_calls"] {
        assert!(codes(&run).contains(&code), "{:?}", run.reasons);
    }
}

#[test]
fn a_path_that_is_dead_at_the_end_has_lost_what_was_sent() {
    let mut packets = truth();
    for packet in &mut packets {
        if packet.host == 0 && packet.sent >= 2_000_000_000 {
            packet.delay = None;
        }
    }
    let scene = Scene::with_packets("dead", packets);
    let run = scene.make().unwrap();
    assert_eq!(run.verdict, Verdict::Degraded);
    let dead = run.reasons.iter().find(|it| it.code == "path_dead");
    let text = &dead.unwrap().text;
    assert!(text.contains("forward in the last 1.9 s"), "{text}");
    // The run lasts four seconds, and a packet may take 100 ms: longer than any took.
    for row in scene.rows() {
        if row.direction == Direction::Forward && row.sent_ns > 2_030_000_000 {
            let fate = if row.sent_ns < 3_899_000_000 {
                Fate::Dropped
            } else {
                Fate::InFlight
            };
            if row.sent_ns.abs_diff(3_900_000_000) > 1_000_000 {
                assert_eq!(row.fate, fate, "{row:?}");
            }
        }
    }
}

#[test]
fn a_clock_that_is_set_is_told_and_no_delay_is_negative() {
    let mut scene = Scene::new("set");
    let mut rows = Vec::new();
    narrows_tunnel::log::decode(LogKind::Arrived, &scene.logs[1][1], &mut rows).unwrap();
    let half = Time::from_ns(reading(1, 2_000_000_000));
    let mut columns = Columns::new(LogKind::Arrived);
    for mut row in rows {
        if row.arrived > half {
            row.arrived = Time::from_ns(row.arrived.ns() - 400 * MS);
        }
        columns.push(row);
    }
    scene.logs[1][1].clear();
    columns.drain_into(&mut scene.logs[1][1]);
    let run = scene.make().unwrap();
    assert_eq!(run.verdict, Verdict::Invalid);
    assert!(codes(&run).contains(&"clock"), "{:?}", run.reasons);
    let negative = |row: &PacketRow| row.arrived_ns.is_some_and(|arrived| arrived < row.sent_ns);
    assert!(!scene.rows().iter().any(negative));
}

#[test]
fn folders_that_do_not_fit_are_refused_in_one_sentence() {
    let mut scene = Scene::new("refused");
    scene.peers.swap(0, 1);
    assert!(scene.refusal().contains("the folders are confused"));
    scene.peers.swap(0, 1);
    scene.tunnels[1]["role"] = json!("dialer");
    assert!(scene.refusal().contains("both of a dialer"));
    scene.tunnels[1]["role"] = json!("listener");
    scene.peers[1]["clocks"]["start"]["tunnel_ns"] = json!(reading(1, 60_000_000_000));
    assert!(scene.refusal().contains("not the two sides of one run"));
    scene.peers[1]["clocks"]["start"]["tunnel_ns"] = json!(reading(1, 0));
    scene.peers[0]["tunnel"] = json!(false);
    assert!(scene.refusal().contains("only one of"));
    scene.peers[0]["tunnel"] = json!(true);
    scene.peers[1]["format"] = json!("narrows/side-end/2");
    assert!(
        scene
            .refusal()
            .contains("same version of Narrows on both hosts")
    );
    scene.peers[1]["format"] = json!("narrows/side-end/1");
    scene.cell["network"]["forward"] = json!([{"kind": "delay", "delay": 5}]);
    assert!(
        scene
            .refusal()
            .contains("is not of a run between two hosts")
    );
    assert!(!scene.out().exists());
}
