//! Golden tables: what every registered scheme does on a grid of simulated paths. A change that
//! moves a number shows it here as a diff; `make golden` rewrites the tables.

use narrows_tests::{Dumbbell, golden};
use std::fmt::Write;

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

#[test]
fn golden_one_flow() {
    let mut text = String::from(
        "One flow, 30 s. Mbit/s and ms; loss is dropped / (dropped + delivered).\n\n\
         scheme     rate  RTT  BDP   loss | throughput goodput  p95 queueing  dropped%  again%  timeouts\n",
    );
    for scheme in narrows_cc::schemes::ALL {
        for &(mbps, rtt_ms, buffer_bdp, loss) in PATHS {
            let run = Dumbbell {
                mbps,
                rtt_ms,
                buffer_bdp,
                loss,
                schemes: vec![scheme.name],
                ..Dumbbell::default()
            }
            .measure();
            let get = |metric| run.get("1", metric);
            writeln!(
                text,
                "{:10} {mbps:4} {rtt_ms:4} {buffer_bdp:4} {loss:6} | {:10.3} {:7.3} {:13.3} {:9.4} {:7.4} {:9}",
                scheme.name,
                get("throughput_bps") / 1e6,
                get("goodput_bps") / 1e6,
                get("queueing_delay_p95_ns") / 1e6,
                get("loss_ratio") * 100.0,
                get("retransmitted_ratio") * 100.0,
                run.run.flows[0].sender.timeouts.unwrap_or(0),
            )
            .expect("writing to a string");
        }
    }
    golden("one-flow.txt", &text);
}

#[test]
fn golden_sharing() {
    let mut text = String::from(
        "Flows of one scheme over 24 Mbit/s, 40 ms, 1 BDP, 60 s. Jain's index over the time that all share.\n\n\
         scheme     flows interval extra RTT | Jain    utilization  p95 queueing  each Mbit/s\n",
    );
    let cases: &[(usize, f64, &[f64])] = &[
        (2, 0.0, &[]),
        (2, 10.0, &[]),
        (3, 10.0, &[]),
        (2, 0.0, &[0.0, 80.0]),
        (8, 0.5, &[]),
    ];
    for scheme in narrows_cc::schemes::ALL {
        for &(flows, interval_s, extra) in cases {
            let run = Dumbbell {
                mbps: 24.0,
                schemes: vec![scheme.name; flows],
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
                "{:10} {flows:5} {interval_s:8} {:>9} | {:.4} {:12.4} {:13.3}  {}",
                scheme.name,
                extra.last().unwrap_or(&0.0),
                run.get("all", "jain_index"),
                run.get("all", "utilization_ratio"),
                run.get("all", "queueing_delay_p95_ns") / 1e6,
                each.join(" "),
            )
            .expect("writing to a string");
        }
    }
    golden("sharing.txt", &text);
}
