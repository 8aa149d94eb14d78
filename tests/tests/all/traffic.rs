//! Traffic in simulated worlds: applications over connections, and datagrams.

use narrows_record::Verdict;
use narrows_tests::{Measured, measure, needed};
use serde_json::{Value, json};

const SECOND: u64 = 1_000_000_000;

/// A cell with one bottleneck and the same delay in both directions.
fn cell(seconds: u64, bottleneck: &Value, delay_ns: u64, flows: &[Value]) -> Value {
    let end = seconds * SECOND;
    let flows: Vec<Value> = flows
        .iter()
        .zip(1u16..)
        .map(|(flow, number)| {
            let mut flow = flow.clone();
            flow["flow"] = number.into();
            let mut default = |key: &str, value: Value| {
                let known = flow.get(key).cloned();
                flow[key] = known.unwrap_or(value);
            };
            default("start_ns", 0.into());
            default("stop_ns", end.into());
            flow
        })
        .collect();
    json!({
        "format": "narrows/cell/1", "id": "traffic-r1", "scheme": "mixed", "run": 1,
        "where": "simulate", "seed": 7, "duration_ns": end, "record": "packets",
        "bin_ns": 100_000_000, "sample_ns": 10_000_000,
        "network": {"kind": "dumbbell",
            "forward": [bottleneck, {"name": "forward.1", "kind": "delay", "delay": delay_ns}],
            "backward": [{"name": "backward.0", "kind": "delay", "delay": delay_ns}]},
        "flows": flows,
    })
}

fn bottleneck(bps: u64, queue: &Value) -> Value {
    json!({"name": "forward.0", "kind": "bottleneck", "rate": {"kind": "constant", "rate": bps},
           "queue": queue})
}

fn droptail(bytes: u64) -> Value {
    json!({"kind": "droptail", "bytes": bytes})
}

fn run(cell: &Value) -> Measured {
    let measured = measure(cell);
    assert_eq!(
        measured.run.verdict,
        Verdict::Ok,
        "{:?} {:?}",
        measured.run.reasons,
        measured.run.checks
    );
    measured
}

#[test]
fn a_sized_transfer_takes_as_long_as_its_bits_need() {
    // 12 Mbit/s carry a full packet in 1 ms; the path takes 20 ms. The initial window of ten packets leaves
    // immediately: 6 full packets and one of 1312 + 52 bytes.
    let flow = json!({"scheme": "reno", "traffic": {"kind": "transfer", "bytes": 10_000}});
    let measured = run(&cell(
        2,
        &bottleneck(12_000_000, &droptail(100_000)),
        20_000_000,
        &[flow],
    ));
    let last = (1312 + 52) * 8 * SECOND / 12_000_000;
    assert_eq!(measured.transfers.len(), 1);
    let transfer = &measured.transfers[0];
    assert_eq!((transfer.bytes, transfer.started_ns), (10_000, 0));
    let wanted = 6_000_000 + 20_000_000;
    let ended = transfer.ended_ns.unwrap();
    // The server rounds up to whole ns.
    assert!(ended.abs_diff(wanted + last) <= 1, "{ended}");
    // 20 packets: the second flight of ten starts when the first acknowledgement is back, after 1 + 20 + 20 ms, and is
    // clocked by acknowledgements after that: the link is never idle between the 11th packet and the end.
    let flow = json!({"scheme": "reno", "traffic": {"kind": "transfer", "bytes": 1448 * 20}});
    let measured = run(&cell(
        2,
        &bottleneck(12_000_000, &droptail(100_000)),
        20_000_000,
        &[flow],
    ));
    let ended = measured.transfers[0].ended_ns.unwrap();
    assert_eq!(ended, 41_000_000 + 10_000_000 + 20_000_000);
}

#[test]
fn parallel_connections_share_a_flow() {
    let many = json!({"scheme": "cubic", "connections": 30});
    let measured = run(&cell(
        30,
        &bottleneck(50_000_000, &droptail(250_000)),
        20_000_000,
        &[many, json!({"scheme": "cubic"})],
    ));
    let (many, one) = (
        measured.get("1", "goodput_bps"),
        measured.get("2", "goodput_bps"),
    );
    assert!(many / one > 10.0, "{many} {one}");
    assert!((many + one) > 0.94 * 50e6, "{many} {one}");
}

#[test]
fn an_on_off_flow_sends_half_of_the_time() {
    let traffic = json!({"kind": "onoff", "on": SECOND, "off": SECOND, "rate": 4_000_000});
    let measured = run(&cell(
        20,
        &bottleneck(50_000_000, &droptail(250_000)),
        20_000_000,
        &[json!({"scheme": "cubic", "traffic": traffic})],
    ));
    let flow = &measured.run.flows[0];
    let goodput = flow.receiver.goodput_bytes.unwrap() as f64;
    assert!((goodput / 5e6 - 1.0).abs() < 0.01, "{goodput}");
    assert!((flow.offered.unwrap().mean_bps / 2e6 - 1.0).abs() < 0.01);
}

/// Ten bulk flows and datagrams of 20 Mbit/s over 100 Mbit/s of Ethernet, where 38 bytes are added to
/// each packet: 97.5 Mbit/s of full IP packets.
fn udp_against_tcp(queue: &Value) -> Measured {
    let bottleneck = bottleneck(97_530_000, queue);
    let mut flows: Vec<Value> = (0..10).map(|_| json!({"scheme": "cubic"})).collect();
    flows.push(json!({"scheme": "udp",
        "traffic": {"kind": "cbr", "rate": 20_000_000, "packet": 1498}}));
    run(&cell(60, &bottleneck, 500_000, &flows))
}

#[test]
fn first_in_first_out_lets_datagrams_take_what_they_want() {
    let measured = udp_against_tcp(&droptail(300_000));
    let tcp: f64 = (1..=10)
        .map(|flow| measured.get(&flow.to_string(), "goodput_bps"))
        .sum();
    let udp = &measured.run.flows[10].receiver;
    let total = udp.received_packets.unwrap() + udp.lost_datagrams.unwrap();
    let loss = udp.lost_datagrams.unwrap() as f64 / total as f64;
    // Of 97.53 Mbit/s, 20 are for datagrams; 1448 of 1500 bytes of the rest are payload.
    assert!((tcp / 74.84e6 - 1.0).abs() < 0.02, "{tcp}");
    assert!(loss < 0.02, "{loss}");
    assert!(udp.jitter_ns.unwrap() > 0 && udp.jitter_ns.unwrap() < 2_000_000);
}

#[test]
fn fair_queueing_gives_datagrams_their_share() {
    for queue in [
        json!({"kind": "sfq"}),
        json!({"kind": "drr", "bytes": 300_000}),
    ] {
        let measured = udp_against_tcp(&queue);
        let tcp: Vec<f64> = (1..=10)
            .map(|flow| measured.get(&flow.to_string(), "goodput_bps"))
            .collect();
        let mean = tcp.iter().sum::<f64>() / 10.0;
        for goodput in &tcp {
            assert!((goodput / mean - 1.0).abs() < 0.05, "{queue} {tcp:?}");
        }
        let udp = &measured.run.flows[10].receiver;
        let received = udp.received_bytes.unwrap() as f64 * 8.0 / 60.0;
        assert!(
            (received / (97.53e6 / 11.0) - 1.0).abs() < 0.05,
            "{queue} {received}"
        );
        let total = udp.received_packets.unwrap() + udp.lost_datagrams.unwrap();
        let loss = udp.lost_datagrams.unwrap() as f64 / total as f64;
        assert!((0.45..0.62).contains(&loss), "{queue} {loss}");
    }
}

#[test]
fn a_request_and_its_answer_take_a_round_trip_and_their_bits() {
    // The request of 200 bytes travels back over 20 ms without a bottleneck; the answer of two full packets arrives at
    // 12 Mbit/s over 20 ms: 42 ms and the acknowledgement; then 8 ms of thinking.
    let traffic = json!({"kind": "requests", "response": 2896, "request": 200,
                         "think": 8_000_000, "think_law": "fixed"});
    for persistent in [true, false] {
        let mut traffic = traffic.clone();
        traffic["persistent"] = persistent.into();
        let measured = run(&cell(
            2,
            &bottleneck(12_000_000, &droptail(100_000)),
            20_000_000,
            &[json!({"scheme": "reno", "traffic": traffic})],
        ));
        assert_eq!(measured.transfers.len(), 40);
        let mut start = 0;
        for (transfer, number) in measured.transfers.iter().zip(0u64..) {
            assert_eq!((transfer.bytes, transfer.started_ns), (2896, start));
            let ended = transfer.ended_ns.unwrap();
            // The first 16 packets of a connection are acknowledged immediately: 76 bytes ahead of the answer. Later
            // the acknowledgement of a request follows the answer.
            let quick = !persistent || number < 16;
            let ahead = if quick {
                76 * 8 * SECOND / 12_000_000
            } else {
                0
            };
            assert!(
                (ended - start).abs_diff(42_000_000 + ahead) <= 1,
                "{number}"
            );
            start = ended + 8_000_000;
            let connection = if persistent { 0 } else { number };
            assert_eq!(u64::from(transfer.connection), connection);
        }
    }
}

#[test]
fn short_flows_arrive_and_complete() {
    let traffic = json!({"kind": "arrivals", "size": 20_000, "law": "pareto", "most": 1_000_000,
                         "load": 20_000_000});
    let measured = run(&cell(
        30,
        &bottleneck(50_000_000, &droptail(250_000)),
        10_000_000,
        &[
            json!({"scheme": "cubic", "traffic": traffic}),
            json!({"scheme": "reno", "start_ns": 0}),
        ],
    ));
    let short: Vec<_> = measured.transfers.iter().collect();
    assert!(short.len() > 2500, "{}", short.len());
    let complete = short.iter().filter(|transfer| transfer.ended_ns.is_some());
    assert!(complete.count() as f64 > 0.98 * short.len() as f64);
    let offered = measured.run.flows[0].offered.unwrap();
    // The size law has a heavy tail: 3750 flows leave the load uncertain.
    assert!((offered.mean_bps / 20e6 - 1.0).abs() < 0.15, "{offered:?}");
    // No transfer is faster than propagation and the link.
    for transfer in &short {
        let minimum = 10_000_000 + transfer.bytes * 8 * SECOND / 50_000_000;
        assert!(
            transfer
                .ended_ns
                .is_none_or(|end| end - transfer.started_ns >= minimum)
        );
    }
}

#[test]
fn web_users_load_a_path() {
    for persistent in [false, true] {
        let traffic = json!({"kind": "web", "load": 38_000_000, "object_time": 60_000_000,
                             "persistent": persistent});
        let mut cell = cell(
            40,
            &bottleneck(400_000_000, &droptail(2_000_000)),
            20_000_000,
            &[
                json!({"scheme": "cubic", "traffic": traffic, "background": true}),
                json!({"scheme": "cubic"}),
            ],
        );
        cell["record"] = "bins".into();
        let measured = run(&cell);
        let web = &measured.run.flows[0];
        let offered = web.offered.unwrap();
        assert!((offered.mean_bps / 38e6 - 1.0).abs() < 0.25, "{offered:?}");
        assert!(web.other["traffic"]["users"].as_f64().unwrap() > 1000.0);
        let all = &measured.transfers;
        assert!(all.len() > 10_000, "{}", all.len());
        let complete = all.iter().filter(|transfer| transfer.ended_ns.is_some());
        let (count, bytes) = complete.fold((0usize, 0u64), |(count, bytes), transfer| {
            (count + 1, bytes + transfer.bytes)
        });
        assert!(count as f64 > 0.98 * all.len() as f64);
        assert!(bytes <= web.receiver.goodput_bytes.unwrap());
    }
}

#[test]
fn both_directions_at_once() {
    let pull = json!({"kind": "requests", "response": 100_000});
    let measured = run(&cell(
        20,
        &bottleneck(20_000_000, &droptail(100_000)),
        10_000_000,
        &[
            json!({"scheme": "cubic"}),
            json!({"scheme": "reno", "traffic": pull, "direction": "backward", "connections": 3}),
        ],
    ));
    assert!(measured.get("1", "goodput_bps") > 17e6, "{}", measured.json);
    // 100 kB over an unlimited return path: four round trips of 20 ms at the start, one at the end.
    assert!(
        measured.transfers.len() > 300,
        "{}",
        measured.transfers.len()
    );
}

/// Goodput of one flow over 100 Mbit/s and 100 ms with these settings of the sending host.
fn with_settings(settings: &Value, loss: f64) -> f64 {
    let mut cell = cell(
        60,
        &bottleneck(100_000_000, &droptail(1_250_000)),
        50_000_000,
        &[json!({"scheme": "reno"})],
    );
    cell["network"]["hosts"] = json!([{"name": "sender", "settings": settings}]);
    if let Some(forward) = cell["network"]["forward"].as_array_mut() {
        forward.push(json!({"name": "forward.2", "kind": "loss", "ratio": loss}));
    }
    run(&cell).get("1", "goodput_bps")
}

#[test]
fn settings_of_hosts_change_the_transport() {
    // 100 kB in 100 ms and the time of 70 packets: 8 Mbit/s less what the queue adds.
    let limited = with_settings(&json!({"window": "100000"}), 0.0);
    assert!((limited / 8e6 - 1.0).abs() < 0.05, "{limited}");
    let buffers = with_settings(&json!({"tcp_wmem": "4096 16384 200000"}), 0.0);
    assert!((buffers / limited - 1.0).abs() < 0.01, "{buffers}");
    // Slow start overshoots by hundreds of packets, which are retransmitted at once with selective acknowledgements,
    // but one per round trip without.
    for (loss, minimum, maximum) in [(0.0, 0.2, 0.6), (0.05, 0.6, 1.0), (0.1, 0.5, 1.0)] {
        let with = with_settings(&json!({}), loss);
        let without = with_settings(&json!({"tcp_sack": 0}), loss);
        assert!(
            (minimum..maximum).contains(&(without / with)),
            "{loss} {with} {without}"
        );
    }
}

#[test]
fn without_selective_acknowledgements_losses_do_not_make_windows_grow() {
    let mut bold = Vec::new();
    for scheme in narrows_cc::schemes::ALL {
        let flow = json!({
            "scheme": scheme.name, "params": needed(scheme.name), "transport": {"sack": false},
        });
        let bottleneck = bottleneck(20_000_000, &droptail(100_000));
        let mut cell = cell(15, &bottleneck, 20_000_000, &[flow]);
        if let Some(forward) = cell["network"]["forward"].as_array_mut() {
            forward.push(json!({"name": "forward.2", "kind": "loss", "ratio": 0.01}));
        }
        let loss = run(&cell).get("1", "loss_ratio");
        if loss > 0.1 {
            bold.push(scheme.name);
        }
    }
    // One per cent at random, and what slow start loses once. Schemes that count losses are misled: one loss is
    // reported per round trip; and verus is aggressive in such a buffer anyway. Rates in which duplicates count twice
    // are too high: the kernel's BBR loses 19 % on such a path, and FillP is based on our `bbr1`. The saturator keeps the
    // queue full by design.
    let expected = [
        "bbr1",
        "fillp",
        "fillp-sheep",
        "pcc-allegro",
        "verus",
        "saturator",
    ];
    assert_eq!(bold, expected);
}

#[test]
fn what_is_to_arrive_whole_is_repaired_in_time() {
    // The last packet of a transfer is lost, and nothing follows that would show it: with the longest timers of schemes
    // without retransmissions it would arrive after a minute.
    for scheme in narrows_cc::schemes::ALL {
        let traffic = json!({"kind": "transfer", "bytes": 30_000});
        let flow =
            json!({"scheme": scheme.name, "params": needed(scheme.name), "traffic": traffic});
        let bottleneck = bottleneck(12_000_000, &droptail(60_000));
        let mut cell = cell(30, &bottleneck, 20_000_000, &[flow]);
        if let Some(forward) = cell["network"]["forward"].as_array_mut() {
            forward.insert(
                0,
                json!({"name": "forward.2", "kind": "losslist", "packets": [21]}),
            );
        }
        let ended = run(&cell).transfers[0].ended_ns;
        // Its timeout and a round trip; the longest of those that schemes set is a second.
        assert!(
            ended.is_some_and(|ended| ended < 2 * SECOND),
            "{}: {ended:?}",
            scheme.name
        );
    }
}

#[test]
fn repairs_that_are_lost_are_noticed_while_new_data_leave() {
    // vivace has no window that a gap could fill: new data are sent all the time, until there are none.
    for (setting, value) in [("sack", json!(false)), ("rack", json!(false))] {
        let traffic = json!({"kind": "transfer", "bytes": 2_000_000});
        let flow = json!({"scheme": "vivace", "traffic": traffic, "transport": {setting: value}});
        let bottleneck = bottleneck(12_000_000, &droptail(60_000));
        let mut cell = cell(60, &bottleneck, 20_000_000, &[flow]);
        if let Some(forward) = cell["network"]["forward"].as_array_mut() {
            forward.push(json!({"name": "forward.2", "kind": "loss", "ratio": 0.05}));
        }
        let measured = run(&cell);
        assert!(measured.get("1", "loss_ratio") > 0.03, "{setting}");
        assert!(
            measured.transfers[0].ended_ns.is_some(),
            "{setting}: {:?}",
            measured.transfers[0]
        );
    }
}
