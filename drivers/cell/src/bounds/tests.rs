use super::*;
use serde_json::json;

fn cell(change: impl FnOnce(&mut Value)) -> Cell {
    let mut cell = json!({
        "format": "narrows/cell/1", "id": "reno-r1", "scheme": "reno", "run": 1,
        "where": "simulate", "seed": 1, "duration_ns": 1_000_000_000u64,
        "record": "packets", "bin_ns": 100_000_000, "sample_ns": 10_000_000,
        "network": {"kind": "dumbbell", "forward": [{"kind": "delay", "delay": 10_000_000}],
                    "backward": [{"kind": "delay", "delay": 10_000_000}]},
        "flows": [{"flow": 1, "scheme": "reno", "start_ns": 0, "stop_ns": 1_000_000_000u64,
                   "direction": "forward"}],
    });
    change(&mut cell);
    Cell::parse(&cell.to_string()).unwrap_or_else(|error| panic!("{error}"))
}

fn by(change: impl FnOnce(&mut Value)) -> Option<String> {
    let cell = cell(change);
    assert_eq!(
        cell.unbounded().is_some(),
        cell.bounds().iter().any(|b| b.by.is_none())
    );
    cell.bounds().remove(0).by
}

/// A change that inserts an element before the delay of the data.
fn with(element: Value) -> impl FnOnce(&mut Value) {
    move |cell| {
        let forward = cell["network"]["forward"].as_array_mut();
        forward.unwrap().insert(0, element);
    }
}

fn link(rate: &Value) -> Value {
    json!({"kind": "bottleneck", "name": "l", "rate": rate, "queue": {"kind": "unlimited"}})
}

#[test]
fn nothing_bounds_a_bulk_flow_without_a_link() {
    let cell = cell(|_| {});
    let says = cell.unbounded().unwrap();
    assert!(
        says.starts_with("nothing bounds flow 1 (reno), so that") && says.contains("rate"),
        "{says}"
    );
    for element in [
        json!({"kind": "delay", "delay": 5}),
        json!({"kind": "delay", "delay": 5, "limit": null}),
        json!({"kind": "delay", "delay": 0, "limit": 100}),
        json!({"kind": "jitter"}),
        json!({"kind": "outage", "start": 5, "length": 5, "period": 20}),
        json!({"kind": "losslist", "packets": [1, 2, 3]}),
        json!({"kind": "duplicate", "ratio": 0.5}),
        json!({"kind": "reorder", "ratio": 0.5}),
        json!({"kind": "gate"}),
        json!({"kind": "mtu", "bytes": 1500}),
        json!({"kind": "loss", "ratio": 0.00005}),
        json!({"kind": "periodicloss", "every": 100_000}),
        json!({"kind": "periodicloss", "every": 10, "offset": 1_000_000}),
        json!({"kind": "gilbert", "p": 0.0, "r": 0.1}),
        json!({"kind": "policer", "rate": 1_000_000, "burst": 10_000, "action": "remark"}),
        json!({"kind": "policer", "rate": 1_000_000, "burst": 100_000_000_000u64}),
        link(&json!({"kind": "tokenbucket", "rate": 1_000_000, "burst": 100_000_000_000u64})),
    ] {
        let said = element.to_string();
        assert_eq!(by(with(element)), None, "{said}");
    }
}

#[test]
fn links_policers_and_losses_bound() {
    let is = |element: Value, says: &str| {
        assert_eq!(by(with(element)).as_deref(), Some(says));
    };
    is(
        link(&json!({"kind": "constant", "rate": 12_000_000})),
        "link l (12 Mbit/s)",
    );
    is(
        link(&json!({"kind": "tokenbucket", "rate": 12_000_000, "burst": 10_000})),
        "link l",
    );
    let groups = json!({"kind": "ackaggregation", "packets": 1, "time": 1_000_000});
    is(groups, "groups at forward.0");
    let policer = json!({"kind": "policer", "rate": 1_000_000, "burst": 10_000});
    is(policer, "policer forward.0");
    let line = json!({"kind": "delay", "delay": 5_000_000, "limit": 1000});
    is(line, "the limit of forward.0");
    is(
        json!({"kind": "loss", "ratio": 0.001}),
        "loss of 0.100 % at forward.0",
    );
    is(
        json!({"kind": "periodicloss", "every": 100}),
        "loss of 1.000 % at forward.0",
    );
    is(
        json!({"kind": "gilbert", "p": 0.01, "r": 0.99}),
        "loss of 1.000 % at forward.0",
    );
}

#[test]
fn loss_bounds_those_alone_that_answer_it() {
    for scheme in ["bbr1", "copa", "pcc-allegro", "fast", "exp"] {
        let found = by(|cell| {
            cell["flows"][0]["scheme"] = scheme.into();
            with(json!({"kind": "loss", "ratio": 0.001}))(cell);
        });
        assert_eq!(found, None, "{scheme}");
    }
}

#[test]
fn changes_on_the_way_count() {
    let later = |set: Value| {
        by(|cell| {
            cell["timeline"] = json!([{"at_ns": 5, "element": "x", "set": set}]);
            with(json!({"kind": "loss", "name": "x", "ratio": 0.01}))(cell);
        })
    };
    assert_eq!(later(json!({"ratio": 0.0})), None);
    assert!(later(json!({"ratio": 0.5})).is_some());
}

#[test]
fn the_link_must_carry_the_data() {
    let server = link(&json!({"kind": "constant", "rate": 12_000_000}));
    let back = |direction: &str| {
        by(|cell| {
            cell["network"]["backward"] = json!([server, {"kind": "delay", "delay": 5}]);
            cell["flows"][0]["direction"] = direction.into();
        })
    };
    assert_eq!(back("forward"), None);
    assert!(back("backward").is_some());
}

#[test]
fn windows_bound_where_a_round_trip_lasts() {
    let window = |bytes: u64, delay: u64| {
        by(|cell| {
            cell["transport"] = json!({"window": bytes});
            cell["network"]["forward"][0]["delay"] = delay.into();
            cell["network"]["backward"][0]["delay"] = delay.into();
        })
    };
    assert_eq!(
        window(64_000, 1_000_000).as_deref(),
        Some("its window of 64 kB")
    );
    assert_eq!(window(64_000, 0), None, "time stands still");
    assert_eq!(window(64_000, 1), None, "256 Tbit/s");
    assert_eq!(window(100_000_000_000, 1_000_000_000), None);
    let hosts = by(|cell| {
        cell["network"]["hosts"] = json!([{"name": "receiver", "settings": {"window": 64_000}}]);
    });
    assert!(hosts.is_some());
}

#[test]
fn applications_bound_by_rate_or_size() {
    let traffic = |traffic: Value| by(|cell| cell["flows"][0]["traffic"] = traffic);
    let transfer = |bytes: u64| traffic(json!({"kind": "transfer", "bytes": bytes}));
    assert!(transfer(1_000_000).is_some());
    assert_eq!(transfer(1_000_000_000_000), None);
    let onoff = |rate: Value| {
        traffic(json!({"kind": "onoff", "on": 1_000_000, "off": 1_000_000, "rate": rate}))
    };
    assert!(onoff(json!(1_000_000)).is_some());
    assert_eq!(onoff(Value::Null), None);
    assert!(traffic(json!({"kind": "requests", "response": 5000})).is_some());
    let cbr = by(|cell| {
        cell["flows"][0]["scheme"] = "udp".into();
        cell["flows"][0]["traffic"] = json!({"kind": "cbr", "rate": 1_000_000});
    });
    assert_eq!(cbr.as_deref(), Some("its application (cbr)"));
    let standing = by(|cell| {
        cell["flows"][0]["traffic"] = json!({"kind": "requests", "response": 5000});
        cell["network"]["forward"][0]["delay"] = 0.into();
        cell["network"]["backward"][0]["delay"] = 0.into();
    });
    assert_eq!(standing, None, "all at one instant");
}
