//! Memory of episodes, in a process where nothing else allocates.

use narrows_cc::testing::{example_file, example_files};
use narrows_gym::{COUNTERS, Course, Outputs, Reward, Worlds};
use serde_json::json;

fn course() -> Course {
    let file = example_file("indigo");
    let end = 60_000_000_000_u64;
    Course {
        cell: json!({
            "format": "narrows/cell/1", "id": "memory", "scheme": "indigo", "run": 1, "where": "simulate", "seed": 1,
            "duration_ns": end, "record": "packets", "bin_ns": 100_000_000, "sample_ns": 10_000_000,
            "network": {"kind": "dumbbell",
                "forward": [
                    {"name": "forward.0", "kind": "bottleneck", "rate": {"kind": "constant", "rate": 12_000_000},
                        "queue": {"kind": "droptail", "packets": 60}},
                    {"name": "forward.1", "kind": "delay", "delay": 20_000_000}],
                "backward": [{"name": "backward.0", "kind": "delay", "delay": 20_000_000}]},
            "flows": [{"flow": 1, "scheme": "indigo", "direction": "forward", "start_ns": 0, "stop_ns": end,
                "params": {"model": {"name": file.name, "sha256": file.sha256}}}],
            "transport": {"packet_size": 1500}}),
        files: example_files(),
    }
}

fn resident_bytes() -> f64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap();
    text.split(' ').nth(1).unwrap().parse::<f64>().unwrap() * 4096.0
}

#[test]
fn a_world_takes_less_than_a_tenth_of_a_megabyte() {
    let count = 1_000;
    let courses = vec![course()];
    let mut worlds = Worlds::new(courses, vec![0], count, Reward::Power, u32::MAX, 1).unwrap();
    let mut outputs = Outputs {
        observations: &mut vec![0.0; count * worlds.inputs()],
        counters: &mut vec![0.0; count * COUNTERS.len()],
        rewards: &mut vec![0.0; count],
        clipped: &mut vec![0; count],
        endings: &mut vec![0; count],
    };
    let starts: Vec<_> = (0..count as u64).map(|seed| Some((0, seed))).collect();
    let before = resident_bytes();
    worlds.reset(&starts, &mut outputs).unwrap();
    // Doubled twice, the window is near the bandwidth-delay product of 40 packets.
    for action in [4.0, 4.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0] {
        worlds.step(&vec![action; count], &vec![false; count], &mut outputs);
    }
    let each = (resident_bytes() - before) / count as f64;
    assert!(each < 100_000.0, "{each} bytes");
}
