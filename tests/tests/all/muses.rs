//! Muses in simulated worlds: the inputs of its network match the path, and results of the published network.

use narrows_cc::testing::{example_file, example_files};
use narrows_record::{Record, read};
use narrows_tests::models::{self, content};
use narrows_tests::part::{BITS, Part};
use narrows_tests::{Dumbbell, recorded_with};
use serde_json::json;

/// A path with one flow for 20 s.
#[derive(Clone, Copy, Debug)]
struct World {
    mbps: f64,
    rtt_ms: f64,
    /// Buffer in packets; `None` is infinite.
    buffer: Option<u64>,
    loss: f64,
    /// IP bytes of a packet.
    packet: u64,
    start_us: u64,
    seed: u64,
}

impl World {
    fn new(mbps: f64, rtt_ms: f64) -> World {
        World {
            mbps,
            rtt_ms,
            buffer: None,
            loss: 0.0,
            packet: 1_500,
            start_us: 0,
            seed: 1,
        }
    }

    fn run(self, model: &[u8]) -> Record {
        let mut cell = Dumbbell {
            mbps: self.mbps,
            rtt_ms: self.rtt_ms,
            loss: self.loss,
            schemes: vec!["muses"],
            seconds: 20.0,
            seed: self.seed,
            ..Dumbbell::default()
        }
        .json();
        cell["network"]["forward"][0]["queue"] = match self.buffer {
            Some(packets) => json!({"kind": "droptail", "packets": packets}),
            None => json!({"kind": "unlimited"}),
        };
        cell["transport"] = json!({"packet_size": self.packet});
        cell["flows"][0]["start_ns"] = json!(1_000 * self.start_us);
        cell["flows"][0]["params"] = json!({"model": models::reference()});
        recorded_with(&cell, models::files(model))
    }

    /// The second half of a run. (Rates count packets as ones of 1500 bytes.)
    fn part(self, record: &Record) -> Part {
        Part::new(record, 1, (self.mbps, self.rtt_ms), (10.0, 20.0))
    }
}

/// The mean of a value that the scheme publishes in the second half of a run.
fn told(record: &Record, name: &str) -> f64 {
    let rows = read::read_traces(record.traces.clone().expect("traces")).expect("traces");
    let rows = rows.iter().filter(|row| row.name == name);
    let late = rows.filter(|row| row.time_ns > 10_000_000_000);
    let values: Vec<f64> = late.map(|row| row.value).collect();
    values.iter().sum::<f64>() / values.len() as f64
}

/// Asserts that the inputs of the network match the path, rates to a relative tolerance.
fn check_inputs(world: World, record: &Record, near: f64) {
    let part = world.part(record);
    let [rtt, delay, delivery, sending, loss] = [
        "rtt_ms",
        "queueing_delay_ms",
        "delivery_mbps",
        "send_mbps",
        "loss_share",
    ]
    .map(|name| told(record, name));
    let text = format!(
        "{world:?}: {part:?}, told {rtt:.2} {delay:.2} ms, {delivery:.3} {sending:.3} Mbit/s, {loss:.4}"
    );
    println!("{text}");
    assert!((delivery / part.mbps - 1.0).abs() < near, "{text}");
    // Sent packets less lost ones are delivered.
    let arriving = sending * (1.0 - world.loss);
    assert!((arriving / delivery - 1.0).abs() < near, "{text}");
    // A step of the clock; packets count in one mean, and time in the other, in which few packets have long waits.
    let close = |found: f64, wanted: f64| (found - wanted).abs() < 1.0 + 0.3 * part.mean_ms;
    assert!(close(delay, part.mean_ms), "{text}");
    let own = BITS / world.mbps / 1e3;
    assert!(close(rtt, world.rtt_ms + own + part.mean_ms), "{text}");
    // Ten seconds have 20 000 packets and more: a thirtieth is the standard error of a loss of 5 %.
    assert!((loss - world.loss).abs() <= 0.1 * world.loss, "{text}");
}

/// Paths and their losses.
const PATHS: [(f64, f64, f64); 4] = [
    (50.0, 40.0, 0.0),
    (50.0, 40.0, 0.05),
    (100.0, 100.0, 0.0),
    (100.0, 20.0, 0.2),
];

fn check_paths(model: &[u8], near: f64) {
    for (mbps, rtt_ms, loss) in PATHS {
        for seed in 1..=3 {
            let world = World {
                loss,
                seed,
                ..World::new(mbps, rtt_ms)
            };
            check_inputs(world, &world.run(model), near);
        }
    }
}

#[test]
fn an_example_network_hears_what_the_path_does() {
    let files = example_files();
    let model = files.get(&example_file("muses")).expect("the example");
    // Its window falls and grows by half each round trip, and there are no inputs between a decision and the next
    // acknowledgement: silent parts of a round trip, an eighth of its time and more, do not count.
    check_paths(model, 0.25);
}

#[test]
fn the_published_network_hears_what_the_path_does() {
    let Some(model) = content("muses") else {
        return;
    };
    check_paths(&model, 0.03);
}

#[test]
fn where_it_was_trained_it_fills_the_link_and_most_of_the_buffer() {
    let Some(model) = content("muses") else {
        return;
    };
    // Links of 100 Mbit/s with 6.2 packets of 3000 bytes in the buffer per ms of one-way delay.
    for one_way_ms in [10.0, 25.0, 50.0, 100.0] {
        for start_us in [0, 300, 700] {
            let buffer = 6.2 * one_way_ms;
            let world = World {
                buffer: Some(buffer as u64),
                packet: 3_000,
                start_us,
                ..World::new(100.0, 2.0 * one_way_ms)
            };
            let record = world.run(&model);
            let part = world.part(&record);
            let filled = part.p95_ms / (buffer * 0.24);
            println!("{world:?}: {part:?}, {filled}");
            // Its teacher aims at four fifths of the buffer: it stays below that, above half of it, and loses no
            // packets.
            assert!(2.0 * part.mbps > 95.0, "{part:?}");
            assert!((0.4..0.8).contains(&filled), "{filled}");
            assert!(told(&record, "loss_share") < 1e-6);
        }
    }
}

#[test]
fn losses_by_chance_do_not_drive_it_back() {
    let Some(model) = content("muses") else {
        return;
    };
    for (loss, seed) in [
        (0.01, 1),
        (0.01, 2),
        (0.01, 3),
        (0.1, 1),
        (0.1, 2),
        (0.1, 3),
    ] {
        let world = World {
            buffer: Some(155),
            packet: 3_000,
            loss,
            seed,
            ..World::new(100.0, 50.0)
        };
        let mbps = 2.0 * world.part(&world.run(&model)).mbps;
        println!("{world:?}: {mbps}");
        // As without loss, relative to the remaining rate.
        assert!(mbps > 95.0 * (1.0 - loss) * 0.98, "{mbps}");
    }
}

#[test]
fn below_its_range_it_swings() {
    let Some(model) = content("muses") else {
        return;
    };
    // Half of its training value suffices, but an eighth does not: the window oscillates between the minimum of 10
    // packets and twice the path's capacity, and the queue is empty as long as it is full.
    for (mbps, minimum) in [(50.0, 0.9), (12.0, 0.5)] {
        for start_us in [0, 300, 700] {
            let world = World {
                start_us,
                ..World::new(mbps, 40.0)
            };
            let part = world.part(&world.run(&model));
            println!("{world:?}: {part:?}");
            assert!((minimum..=1.001).contains(&(part.mbps / mbps)), "{part:?}");
            // Twice the bandwidth-delay product is queued for less than one and a half round trips.
            assert!(part.p95_ms < 60.0, "{part:?}");
        }
    }
}
