//! Loss alone bounds the schemes that are `loss_based` in their registration, on paths without any rate.

use narrows_cc::schemes::ALL;
use narrows_cell::{Cell, MIN_LOSS};
use narrows_sim::World;
use narrows_units::Time;
use serde_json::{Value, json};

const MS: u64 = 1_000_000;
/// Round-trip time.
const RTT: u64 = 100 * MS;
const ROUNDS: u64 = 100;
/// Maximum number of packets that may arrive within a round trip. Slow start continues until the first loss, before
/// which 1 / MIN_LOSS packets arrive on average; once in e^10 runs it is ten times as many.
const MOST: f64 = 10.0 / MIN_LOSS;

fn cell(scheme: &str, loss: &Value) -> Cell {
    let delay = json!({"kind": "delay", "delay": RTT / 2});
    let cell = json!({
        "format": "narrows/cell/1", "id": "x", "scheme": scheme, "run": 1, "where": "simulate", "seed": 5,
        "duration_ns": ROUNDS * RTT, "record": "bins", "bin_ns": 100 * MS, "sample_ns": 100 * MS,
        "network": {"kind": "dumbbell", "forward": [loss, delay], "backward": [delay]},
        "flows": [{"flow": 1, "scheme": scheme, "start_ns": 0, "stop_ns": ROUNDS * RTT}],
    });
    Cell::parse(&cell.to_string()).unwrap_or_else(|error| panic!("{scheme}: {error}"))
}

/// The maximum number of packets that arrive within a round trip; aborted as soon as that is beyond all bounds.
fn peak(cell: &Cell) -> u64 {
    let mut world = World::new(cell).unwrap();
    let (mut peak, mut before) = (0, 0);
    for round in 1..=ROUNDS {
        world.run_until(Time::from_ns(round * RTT));
        let now = world.totals().data_delivered;
        peak = peak.max(now - before);
        before = now;
        if peak as f64 > MOST {
            break;
        }
    }
    peak
}

#[test]
fn loss_bounds_what_answers_it() {
    let losses = [
        json!({"kind": "loss", "ratio": MIN_LOSS}),
        json!({"kind": "periodicloss", "every": (1.0 / MIN_LOSS) as u64}),
    ];
    let mut beyond = Vec::new();
    let loss_based: Vec<_> = ALL
        .iter()
        .filter(|s| s.loss_based)
        .map(|s| s.name)
        .collect();
    assert!(loss_based.contains(&"cubic") && !loss_based.contains(&"bbr1"));
    for scheme in loss_based {
        for loss in &losses {
            let cell = cell(scheme, loss);
            assert_eq!(cell.unbounded(), None, "{scheme}");
            let peak = peak(&cell);
            if peak as f64 > MOST {
                beyond.push(format!("{scheme} with {}: {peak}", loss["kind"]));
            }
        }
    }
    assert_eq!(beyond, Vec::<String>::new());
}
