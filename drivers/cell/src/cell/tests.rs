use super::*;
use crate::SchemeRef;
use serde_json::json;

fn cell(change: impl FnOnce(&mut Value)) -> Result<Cell, String> {
    let mut cell = json!({
        "format": "narrows/cell/1", "id": "reno-r1", "scheme": "reno", "run": 1,
        "where": "simulate", "seed": 1, "duration_ns": 1_000_000_000u64,
        "record": "packets", "bin_ns": 100_000_000, "sample_ns": 10_000_000,
        "network": {"kind": "dumbbell",
            "forward": [{"kind": "delay", "delay": 10}], "backward": []},
        "flows": [{"flow": 1, "scheme": "reno", "params": {"beta": 0.6},
                   "start_ns": 0, "stop_ns": 1_000_000_000u64, "direction": "forward"}],
    });
    change(&mut cell);
    let cell = Cell::parse(&cell.to_string()).map_err(|error| error.to_string())?;
    cell.network::<narrows_net::testing::TestPacket>()
        .map_err(|error| error.to_string())?;
    Ok(cell)
}

#[test]
fn a_cell_is_read() {
    let cell = cell(|_| {}).unwrap();
    assert_eq!((cell.id.as_str(), cell.seed), ("reno-r1", 1));
    assert_eq!(Config::new(&cell.transport), Config::default());
    match &cell.flows[0].scheme {
        SchemeRef::Native(scheme, params) => {
            assert_eq!((scheme.name, params.real("beta")), ("reno", Some(0.6)));
        }
        _ => unreachable!("reno is native"),
    }
}

#[test]
fn traffic_and_host_settings_are_read() {
    let cell = cell(|c| {
        c["flows"][0]["traffic"] = json!({"kind": "transfer", "bytes": 5000});
        c["flows"][0]["connections"] = 3.into();
        c["flows"][0]["dscp"] = 46.into();
        c["flows"][0]["background"] = true.into();
        c["network"]["hosts"] = json!([{"name": "receiver", "settings": {"mtu": "1000"}}]);
    })
    .unwrap();
    let flow = &cell.flows[0];
    assert_eq!(flow.traffic.kind.entry.name, "transfer");
    assert_eq!(flow.traffic.params.integer("bytes"), Some(5000));
    assert_eq!(
        (flow.connections, flow.dscp, flow.background),
        (3, 46, true)
    );
    assert_eq!((flow.client(), flow.server()), (0, 1));
    assert_eq!(cell.transport(flow, 0).mss(), 948);
    assert_eq!(Config::new(&cell.transport).mss(), 1448);
}

#[test]
fn each_mistake_has_its_sentence() {
    type Change = fn(&mut Value);
    let cases: [(Change, &str); 20] = [
        (|c| c["sample_ns"] = 1.into(), "sample_ns is so short"),
        (
            |c| c["format"] = "narrows/cell/2".into(),
            "the cell has the format 'narrows/cell/2'",
        ),
        (|c| c["seed"] = Value::Null, "the cell cannot be read"),
        (|c| c["flows"] = json!([]), "at least one flow"),
        (
            |c| c["flows"][0]["scheme"] = "vegsa".into(),
            "flow 1: unknown scheme 'vegsa'; known: tahoe",
        ),
        (
            |c| c["flows"][0]["params"] = json!({"x": 1}),
            "flow 1 (reno): unknown parameter 'x'",
        ),
        (
            |c| c["flows"][0]["start_ns"] = 2_000_000_000u64.into(),
            "flow 1: it must start",
        ),
        (
            |c| c["flows"][0]["flow"] = 0.into(),
            "flow 0: numbers go from 1",
        ),
        (|c| c["duration_ns"] = 0.into(), "the duration must be"),
        (
            |c| c["transport"] = json!({"ack_evry": 3}),
            "transport: unknown parameter 'ack_evry'",
        ),
        (
            |c| c["network"]["forward"][0]["kind"] = "dealy".into(),
            "forward.0: unknown link element 'dealy'",
        ),
        (
            |c| c["network"]["forward"] = 5.into(),
            "network.forward: a list of elements is required",
        ),
        (
            |c| c["flows"][0]["traffic"] = json!({"kind": "blk"}),
            "flow 1: unknown traffic 'blk'; known: bulk, transfer",
        ),
        (
            |c| c["flows"][0]["traffic"] = json!({"kind": "transfer"}),
            "flow 1 (transfer traffic): parameter 'bytes' is missing",
        ),
        (
            |c| c["flows"][0]["traffic"] = json!({"kind": "cbr", "rate": 1_000_000}),
            "flow 1: traffic of the kind 'cbr' consists of datagrams",
        ),
        (
            |c| {
                c["flows"][0]["scheme"] = "udp".into();
                c["flows"][0]["params"] = json!({});
            },
            "flow 1: the scheme udp sends datagrams, but traffic of the kind 'bulk'",
        ),
        (
            |c| c["flows"][0]["connections"] = 0.into(),
            "flow 1: connections go from 1",
        ),
        (
            |c| c["flows"][0]["dscp"] = 64.into(),
            "flow 1: dscp goes from 0 to 63",
        ),
        (
            |c| c["network"]["hosts"] = json!([{"name": "left"}]),
            "network.hosts: the host 'left' does not exist; the hosts are sender, receiver",
        ),
        (
            |c| c["network"]["hosts"] = json!([{"name": "sender", "settings": {"tcp_sak": 1}}]),
            "settings of host sender: unknown parameter 'tcp_sak'",
        ),
    ];
    for (change, says) in cases {
        let error = cell(change).unwrap_err();
        assert!(
            error.starts_with(says),
            "'{error}' should start with '{says}'"
        );
    }
    let kernel = |c: &mut Value| c["flows"][0]["scheme"] = "linux:cubic".into();
    assert!(cell(kernel).unwrap_err().contains("takes no parameters"));
}
