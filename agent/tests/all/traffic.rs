//! Applications and networks of several hosts on real sockets, as reported by the kernels at both ends and the record.

use crate::common::{
    Folder, MACHINE, MS, can_emulate, cell, claim, emulate, last_event, my_turn, run_to_end,
};
use narrows_cell::open_record;
use narrows_record::read::{PacketReader, read_frames, read_transfers};
use narrows_record::{Chunk, FlowSummary, PacketRow, Record, Severity, TransferRow};
use serde_json::{Value, json};

fn run(folder: &Folder, cell: &Value) -> Record {
    let output = run_to_end(&mut emulate(folder, cell));
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(last_event(&output)["event"], "done");
    let record = open_record(&folder.path().join("out")).unwrap();
    for reason in &record.run.reasons {
        let excused = MACHINE.contains(&reason.code.as_str());
        assert!(
            excused || reason.severity == Severity::Note,
            "{}: {}",
            reason.code,
            reason.text
        );
    }
    assert!(
        record.run.checks.iter().all(|check| check.ok),
        "{:?}",
        record.run.checks
    );
    record
}

/// The record of `cell`, emulated in a separate folder.
fn emulated(name: &str, cell: &Value) -> Record {
    run(&Folder::new(name), cell)
}

fn packets(record: &Record) -> Vec<PacketRow> {
    let mut reader = PacketReader::open(record.packets.clone().unwrap()).unwrap();
    let (mut rows, mut chunk) = (Vec::new(), Chunk::default());
    while reader.next(&mut chunk).unwrap() {
        rows.extend((0..chunk.len()).map(|row| chunk.row(row)));
    }
    rows
}

fn transfers(record: &Record) -> Vec<TransferRow> {
    read_transfers(record.transfers.clone().unwrap()).unwrap()
}

fn goodput_mbps(flow: &FlowSummary, seconds: f64) -> f64 {
    flow.receiver.goodput_bytes.unwrap() as f64 * 8e-6 / seconds
}

/// A star of 100 Mbit/s links around a router, with these flows.
fn star(queue: &Value, flows: Vec<Value>, duration_ms: u64) -> Value {
    let hosts = ["left", "right", "top", "bottom"];
    let mut links = Vec::new();
    let mut routes = Vec::new();
    for host in hosts {
        for (from, to) in [(host, "center"), ("center", host)] {
            let name = format!("{from}-{to}");
            let rate = json!({"kind": "constant", "rate": 100_000_000});
            links.push(json!({"name": name, "from": from, "to": to, "elements": [
                {"name": format!("{name}.0"), "kind": "bottleneck", "rate": rate, "queue": queue},
                {"name": format!("{name}.1"), "kind": "delay", "delay": 250_000},
            ]}));
        }
        for other in hosts.into_iter().filter(|&other| other != host) {
            let passed = [format!("{host}-center"), format!("center-{other}")];
            routes.push(json!({"from": host, "to": other, "links": passed}));
        }
    }
    let mut star = cell(&["linux:cubic"], duration_ms);
    let hosts: Vec<Value> = hosts.iter().map(|host| json!({"name": host})).collect();
    star["network"] = json!({"kind": "graph", "hosts": hosts, "routers": ["center"],
                             "links": links, "routes": routes});
    let plain = star["flows"][0].clone();
    let numbered = (1..).zip(flows).map(|(number, wanted)| {
        let mut flow = plain.clone();
        flow["flow"] = json!(number);
        for (key, value) in wanted.as_object().unwrap() {
            flow[key] = value.clone();
        }
        flow
    });
    star["flows"] = numbered.collect();
    star
}

fn tcp_and_udp() -> Vec<Value> {
    let tcp = json!({"from": "right", "to": "left"});
    let mut flows = vec![tcp; 10];
    flows.push(json!({"from": "top", "to": "left", "scheme": "udp",
                      "traffic": {"kind": "cbr", "rate": 20_000_000, "packet": 1498}}));
    flows
}

#[test]
fn datagrams_hold_their_own_against_tcp_in_a_common_queue() {
    let _turn = my_turn();
    if !can_emulate() {
        return;
    }
    let queue = json!({"kind": "droptail", "packets": 1000});
    claim(
        || emulated("star-fifo", &star(&queue, tcp_and_udp(), 6000)),
        |record| {
            let (udp, tcp) = record.run.flows.split_last().unwrap();
            let sent = udp.sender.sent_packets.unwrap() as f64;
            // 20 Mbit/s in packets of 1498 bytes for 6 s.
            assert!((sent - 10_013.0).abs() < 15.0, "{sent} datagrams");
            let lost = udp.receiver.lost_datagrams.unwrap() as f64 / sent;
            // Losses due to the overshoots of ten slow starts, and to cubic's probing afterwards.
            assert!(lost < 0.05, "{lost} of the datagrams were lost");
            assert_eq!(udp.receiver.out_of_order_datagrams, Some(0));
            assert!(udp.receiver.jitter_ns.unwrap() > 0);
            // 100 less 20 Mbit/s, of which 1448 of 1500 bytes are payload, is 77.
            let sum: f64 = tcp.iter().map(|flow| goodput_mbps(flow, 6.0)).sum();
            assert!((70.0..=81.0).contains(&sum), "{sum} Mbit/s of TCP payload");
            // Hosts without flows exist as well.
            let ports: Vec<&str> = record
                .run
                .rings
                .iter()
                .map(|ring| ring.port.as_str())
                .collect();
            assert_eq!(ports, ["left", "right", "top", "bottom"]);
        },
    );
}

#[test]
fn fair_queueing_gives_datagrams_their_share_and_no_more() {
    let _turn = my_turn();
    if !can_emulate() {
        return;
    }
    let queue = json!({"kind": "sfq"});
    claim(
        || emulated("star-sfq", &star(&queue, tcp_and_udp(), 8000)),
        |record| {
            let (udp, tcp) = record.run.flows.split_last().unwrap();
            let lost = udp.receiver.lost_datagrams.unwrap() as f64
                / udp.sender.sent_packets.unwrap() as f64;
            // 20 Mbit/s against a share of 100/11 = 9.1 Mbit/s.
            assert!(
                (0.45..0.60).contains(&lost),
                "{lost} of the datagrams were lost"
            );
            let rates: Vec<f64> = tcp.iter().map(|flow| goodput_mbps(flow, 8.0)).collect();
            let mean = rates.iter().sum::<f64>() / 10.0;
            for rate in &rates {
                assert!(
                    (rate / mean - 1.0).abs() < 0.05,
                    "unequal shares: {rates:?}"
                );
            }
            assert!((80.0..=88.5).contains(&(mean * 10.0)), "{rates:?}");
        },
    );
}

/// All real-time schemes in parallel, with a bulk flow.
#[test]
fn real_time_schemes_send_over_real_sockets() {
    let _turn = my_turn();
    if !can_emulate() {
        return;
    }
    let known = narrows_media::schemes::ALL;
    let mut names: Vec<&str> = known.iter().map(|scheme| scheme.name).collect();
    names.push("reno");
    let mut cell = cell(&names, 4000);
    for flow in cell["flows"].as_array_mut().unwrap() {
        flow["start_ns"] = 0.into();
    }
    let folder = Folder::new("real-time");
    let record = run(&folder, &cell);
    let frames = record
        .frames
        .clone()
        .map(|bytes| read_frames(bytes).unwrap());
    let frames = frames.unwrap_or_default();
    for (scheme, flow) in known.iter().zip(&record.run.flows) {
        assert_eq!(flow.fingerprint.read_back.as_deref(), Some(scheme.name));
        let (sent, received) = (&flow.sender, &flow.receiver);
        assert!(sent.sent_packets.unwrap() > 50, "{}: {sent:?}", scheme.name);
        assert!(
            received.goodput_bytes.unwrap() > 10_000,
            "{}: {received:?}",
            scheme.name
        );
        let mine: Vec<_> = frames
            .iter()
            .filter(|frame| frame.flow == flow.flow)
            .collect();
        assert_eq!(!mine.is_empty(), scheme.frames, "{}", scheme.name);
        if scheme.frames {
            // The slowest encoder makes a few frames per second, and most of them arrive.
            let arrived = mine
                .iter()
                .filter(|frame| frame.arrived_ns.is_some())
                .count();
            assert!(
                mine.len() >= 20 && 2 * arrived > mine.len(),
                "{}: {arrived} of {}",
                scheme.name,
                mine.len()
            );
        }
    }
    // The bulk flow takes the remaining capacity.
    assert!(goodput_mbps(&record.run.flows[known.len()], 4.0) > 1.0);
}

#[test]
fn thirty_connections_make_one_flow() {
    let _turn = my_turn();
    if !can_emulate() {
        return;
    }
    for scheme in ["linux:cubic", "reno"] {
        let mut cell = cell(&[scheme], 3000);
        cell["flows"][0]["connections"] = json!(30);
        // Thirty windows of ten packets at once do not fit into 37 kB.
        cell["network"]["forward"][0]["queue"]["bytes"] = json!(500_000);
        let folder = Folder::new("thirty");
        let record = run(&folder, &cell);
        let rate = goodput_mbps(&record.run.flows[0], 3.0);
        assert!((15.0..=19.5).contains(&rate), "{scheme}: {rate} Mbit/s");
        if scheme == "linux:cubic" {
            // A SYN with all its options has 60 bytes, and no other forward packet has that size.
            let rows = packets(&record);
            let opened = rows.iter().filter(|row| {
                row.size_bytes == 60 && row.direction == narrows_record::Direction::Forward
            });
            assert!(opened.count() >= 30);
        }
    }
}

#[test]
fn transfers_are_complete_to_the_byte_and_timed() {
    let _turn = my_turn();
    if !can_emulate() {
        return;
    }
    for scheme in ["linux:reno", "reno"] {
        let mut cell = cell(&[scheme], 2500);
        cell["flows"][0]["traffic"] = json!({"kind": "transfer", "bytes": 2_000_000});
        let folder = Folder::new("transfer");
        let record = run(&folder, &cell);
        let rows = transfers(&record);
        assert_eq!(rows.len(), 1, "{scheme}");
        assert_eq!(
            (rows[0].flow, rows[0].bytes, rows[0].started_ns),
            (1, 2_000_000, 0)
        );
        let took = rows[0].ended_ns.expect("there was time enough") as f64 / 1e9;
        // At least 2 MB at 20 Mbit/s and half an RTT: 0.805 s, headers not counted.
        assert!((0.805..2.5).contains(&took), "{scheme}: {took} s");
        assert_eq!(record.run.flows[0].offered.unwrap().bytes, 2_000_000);
        let goodput = record.run.flows[0].receiver.goodput_bytes.unwrap();
        // The kernel counts the end of the stream as a byte.
        assert!(
            (2_000_000..=2_000_001).contains(&goodput),
            "{scheme}: {goodput}"
        );
    }
}

#[test]
fn requests_are_answered() {
    let _turn = my_turn();
    if !can_emulate() {
        return;
    }
    for scheme in ["linux:reno", "reno"] {
        let mut cell = cell(&[scheme], 2500);
        cell["flows"][0]["traffic"] = json!({"kind": "requests", "response": 30_000});
        let folder = Folder::new("requests");
        let record = run(&folder, &cell);
        let rows = transfers(&record);
        let done = rows.iter().filter(|row| row.ended_ns.is_some()).count();
        assert!(done >= 3, "{scheme}: {done} answers");
        for row in rows
            .iter()
            .filter_map(|row| Some((row.started_ns, row.ended_ns?)))
        {
            // A round trip of 10 ms, and 30 kB at 20 Mbit/s.
            assert!(row.1 - row.0 > 21 * MS, "{scheme}: {row:?}");
        }
        let goodput = record.run.flows[0].receiver.goodput_bytes.unwrap();
        assert!(goodput >= 30_000 * done as u64, "{scheme}: {goodput}");
    }
}

#[test]
fn data_travel_both_ways_at_once() {
    let _turn = my_turn();
    if !can_emulate() {
        return;
    }
    let flows = vec![
        json!({"from": "left", "to": "right"}),
        json!({"from": "right", "to": "left", "scheme": "cubic"}),
    ];
    let queue = json!({"kind": "droptail", "packets": 200});
    let folder = Folder::new("both");
    let record = run(&folder, &star(&queue, flows, 2000));
    for flow in &record.run.flows {
        let rate = goodput_mbps(flow, 2.0);
        assert!((40.0..=97.0).contains(&rate), "flow {}: {rate}", flow.flow);
    }
}

/// Selective acknowledgements in the options of any segment.
fn has_sack(record: &Record) -> bool {
    // Without options for SACK, an acknowledgement with time stamps has 52 bytes.
    packets(record)
        .iter()
        .any(|row| row.direction == narrows_record::Direction::Backward && row.size_bytes > 60)
}

#[test]
fn host_settings_reach_the_kernel() {
    let _turn = my_turn();
    if !can_emulate() {
        return;
    }
    let with = |sack: &str| {
        let mut cell = cell(&["linux:cubic"], 1500);
        cell["network"]["hosts"] = json!([
            {"name": "sender", "settings": {"mtu": 1200}},
            {"name": "receiver", "settings": {"tcp_sack": sack}},
        ]);
        let folder = Folder::new("settings");
        run(&folder, &cell)
    };
    let (without, with) = (with("0"), with("1"));
    assert!(has_sack(&with) && !has_sack(&without));
    let largest = packets(&with).iter().map(|row| row.size_bytes).max();
    assert_eq!(largest, Some(1200));
    let [sender, receiver] = &without.run.hosts[..] else {
        panic!("two hosts are described: {:?}", without.run.hosts)
    };
    assert_eq!(receiver.sysctls["net.ipv4.tcp_sack"], "0");
    assert_eq!(sender.sysctls["net.ipv4.tcp_sack"], "1");
    assert_eq!(sender.other["mtu"], 1200);
    let shared = &without.run.host.as_ref().unwrap().sysctls;
    assert!(shared.contains_key("net.ipv4.tcp_rmem") && !shared.contains_key("net.ipv4.tcp_sack"));
}

#[test]
fn a_window_limits_a_flow_and_the_run_stays_good() {
    let _turn = my_turn();
    if !can_emulate() {
        return;
    }
    // A window, or a buffer, per round trip of 10 ms and more: at most 10 and 16 Mbit/s of the 20.
    let cases = [
        (json!({"window": 12_500}), 10.0),
        (json!({"tcp_rmem": "4096 20000 20000"}), 16.0),
    ];
    for (settings, maximum) in cases {
        let mut cell = cell(&["linux:cubic"], 2000);
        cell["network"]["hosts"] = json!([{"name": "receiver", "settings": settings}]);
        let folder = Folder::new("window");
        let record = run(&folder, &cell);
        let rate = goodput_mbps(&record.run.flows[0], 2.0);
        assert!((2.0..=maximum).contains(&rate), "{settings}: {rate} Mbit/s");
        assert_eq!(record.run.elements[0].dropped_packets, 0);
    }
}

#[test]
fn damaged_and_repeated_packets_are_noticed_by_the_receiving_kernel() {
    let _turn = my_turn();
    if !can_emulate() {
        return;
    }
    let mut cell = cell(&["udp"], 2000);
    cell["flows"][0]["traffic"] = json!({"kind": "cbr", "rate": 8_000_000, "packet": 500});
    // Every packet must be counted: the flow is silent for the last 100 ms, so that none is in flight between two
    // kernels when the run ends, even if the machine stalls then.
    cell["flows"][0]["stop_ns"] = json!(1900 * MS);
    let elements = cell["network"]["forward"].as_array_mut().unwrap();
    elements.push(json!({"name": "forward.2", "kind": "corrupt", "ratio": 0.1}));
    elements.push(json!({"name": "forward.3", "kind": "duplicate", "ratio": 0.2}));
    let folder = Folder::new("damage");
    let record = run(&folder, &cell);
    let rows = packets(&record);
    let corrupt = rows
        .iter()
        .filter(|row| row.reason.as_deref() == Some("corrupted"));
    let (corrupt, copies) = (
        corrupt.count() as u64,
        rows.iter().filter(|row| row.copy_of.is_some()).count(),
    );
    // 3800 datagrams; five standard deviations of binomials around 760 copies and 456 damaged ones (380, and copies
    // of a fifth of them).
    assert!((335..=580).contains(&corrupt), "{corrupt} damaged");
    assert!((635..=885).contains(&copies), "{copies} copies");
    let receiver = &record.run.flows[0].receiver;
    let delivered = rows.iter().filter(|row| row.arrived_ns.is_some()).count() as u64;
    assert_eq!(
        receiver.received_packets,
        Some(delivered - corrupt),
        "the kernel passes on what is not damaged"
    );
    assert!(receiver.duplicate_datagrams.unwrap() > 500);
}

#[test]
fn a_timeline_changes_the_rate_and_cuts_the_link() {
    let _turn = my_turn();
    if !can_emulate() {
        return;
    }
    let mut cell = cell(&["udp"], 3000);
    cell["flows"][0]["traffic"] = json!({"kind": "cbr", "rate": 8_000_000});
    let gate = json!({"name": "forward.gate", "kind": "gate", "open": true});
    cell["network"]["forward"]
        .as_array_mut()
        .unwrap()
        .insert(0, gate);
    cell["timeline"] = json!([
        {"at_ns": 1000 * MS, "element": "forward.0", "set": {"rate": {"kind": "constant", "rate": 4_000_000}}},
        {"at_ns": 2000 * MS, "element": "forward.gate", "set": {"open": false}},
    ]);
    claim(
        || emulated("timeline", &cell),
        |record| {
            let rows = packets(record);
            let within = |from: u64, to: u64| -> f64 {
                let model = |row: &PacketRow| Some(row.arrived_ns? - row.late_ns? as u64);
                let bytes = rows
                    .iter()
                    .filter(|row| model(row).is_some_and(|at| (from * MS..to * MS).contains(&at)));
                let bytes: u64 = bytes.map(|row| u64::from(row.size_bytes)).sum();
                bytes as f64 * 8e-3 / (to - from) as f64
            };
            // Packets of 12 kbit: a window of 900 ms may hold one more or one less.
            assert!((within(50, 950) - 8.0).abs() < 0.1, "{}", within(50, 950));
            assert!(
                (within(1050, 1950) - 4.0).abs() < 0.1,
                "{}",
                within(1050, 1950)
            );
            // 37.5 kB of queue at 4 Mbit/s and 5 ms after the cut all packets have arrived.
            assert!(within(2100, 3000) < 1e-9, "{}", within(2100, 3000));
        },
    );
}
