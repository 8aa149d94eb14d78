//! Golden tables: results of every registered scheme on a grid of simulated paths, one file per
//! scheme. A change of a number shows here as a diff; `make golden` rewrites the tables.

use narrows_tests::{Dumbbell, golden, golden_folder};
use std::fmt::Write;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Rate in Mbit/s, RTT in ms, buffer in BDP, loss.
const PATHS: &[(f64, f64, f64, f64)] = &[
    (1.0, 100.0, 2.0, 0.0),
    (12.0, 40.0, 0.25, 0.0),
    (12.0, 40.0, 1.0, 0.0),
    (12.0, 40.0, 4.0, 0.0),
    (12.0, 40.0, 1.0, 0.001),
    (12.0, 40.0, 1.0, 0.02),
    (100.0, 20.0, 0.5, 0.0),
    (100.0, 100.0, 1.0, 0.0),
];

/// Flows, seconds between their starts, and their additional RTT in ms.
const SHARING: &[(usize, f64, &[f64])] = &[
    (2, 0.0, &[]),
    (2, 10.0, &[]),
    (3, 10.0, &[]),
    (2, 0.0, &[0.0, 80.0]),
    (8, 0.5, &[]),
];

#[test]
fn golden_tables_of_all_schemes() {
    let schemes = narrows_cc::schemes::ALL;
    let next = AtomicUsize::new(0);
    let threads = std::thread::available_parallelism().map_or(1, Into::into);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(scheme) = schemes.get(next.fetch_add(1, Ordering::Relaxed)) {
                    golden(
                        &file(scheme.name),
                        &(one_flow(scheme.name) + "\n" + &sharing(scheme.name)),
                    );
                }
            });
        }
    });
    let mut found: Vec<String> = std::fs::read_dir(golden_folder())
        .expect("the folder of the tables")
        .map(|entry| entry.expect("an entry"))
        .filter(|entry| entry.file_type().expect("a type").is_file())
        .map(|entry| entry.file_name().into_string().expect("a name"))
        .collect();
    let mut expected: Vec<String> = schemes.iter().map(|scheme| file(scheme.name)).collect();
    found.sort();
    expected.sort();
    assert_eq!(found, expected, "tables of schemes that do not exist");
}

fn file(scheme: &str) -> String {
    format!("{scheme}.txt")
}

fn one_flow(scheme: &'static str) -> String {
    let mut text = format!(
        "{scheme}: one flow, 30 s. Mbit/s and ms; loss is dropped / (dropped + delivered).\n\n\
         rate  RTT  BDP   loss | throughput goodput  p95 queueing  dropped%  again%  timeouts\n",
    );
    for &(mbps, rtt_ms, buffer_bdp, loss) in PATHS {
        let run = Dumbbell {
            mbps,
            rtt_ms,
            buffer_bdp,
            loss,
            schemes: vec![scheme],
            ..Dumbbell::default()
        }
        .measure();
        let get = |metric| run.get("1", metric);
        writeln!(
            text,
            "{mbps:4} {rtt_ms:4} {buffer_bdp:4} {loss:6} | {:10.3} {:7.3} {:13.3} {:9.4} {:7.4} {:9}",
            get("throughput_bps") / 1e6,
            get("goodput_bps") / 1e6,
            get("queueing_delay_p95_ns") / 1e6,
            get("loss_ratio") * 100.0,
            get("retransmitted_ratio") * 100.0,
            run.run.flows[0].sender.timeouts.unwrap_or(0),
        )
        .expect("writing to a string");
    }
    text
}

fn sharing(scheme: &'static str) -> String {
    let mut text = String::from(
        "Several flows over 24 Mbit/s, 40 ms, 1 BDP, 60 s. Jain's index over the time that all share.\n\n\
         flows interval extra RTT | Jain    utilization  p95 queueing  each Mbit/s\n",
    );
    for &(flows, interval_s, extra) in SHARING {
        let run = Dumbbell {
            mbps: 24.0,
            schemes: vec![scheme; flows],
            interval_s,
            extra_rtt_ms: extra.to_vec(),
            seconds: 60.0,
            ..Dumbbell::default()
        }
        .measure();
        let each: Vec<String> = (1..=flows)
            .map(|flow| format!("{:.2}", run.get(&flow.to_string(), "throughput_bps") / 1e6))
            .collect();
        writeln!(
            text,
            "{flows:5} {interval_s:8} {:>9} | {:.4} {:12.4} {:13.3}  {}",
            extra.last().unwrap_or(&0.0),
            run.get("all", "jain_index"),
            run.get("all", "utilization_ratio"),
            run.get("all", "queueing_delay_p95_ns") / 1e6,
            each.join(" "),
        )
        .expect("writing to a string");
    }
    text
}
