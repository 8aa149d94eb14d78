//! No packet was faster than the fixed delays of its path.
//!
//! Exact to the nanosecond in simulation and in emulation, because the model's time (the real
//! arrival less the lateness) is compared with the stamp that the model started from. A stamp that
//! was raised (see [`Evidence::slack_ns`]) only makes the packet slower.

use super::{Check, Evidence, Faults, Outcome};

pub(super) const CHECK: Check = Check {
    name: "propagation",
    claim: "no packet arrived earlier than it was sent plus the fixed delays of its path",
    run,
};

fn run(evidence: &Evidence<'_>) -> Outcome {
    let mut faults = Faults::default();
    let cell = evidence.cell;
    if let Some(packets) = &evidence.packets {
        let flows = packets
            .flow
            .iter()
            .map(|&flow| usize::from(flow) + 1)
            .max()
            .unwrap_or(0);
        let least: Vec<[u64; 2]> = (0..flows)
            .map(|flow| super::evidence::DIRECTIONS.map(|d| cell.propagation_ns(flow as u16, d)))
            .collect();
        let mut checked = 0_u64;
        for row in 0..packets.len() {
            let Some(arrival) = packets.model_arrival(row) else {
                continue;
            };
            checked += 1;
            let direction = packets.direction[row];
            let least = least[usize::from(packets.flow[row])][direction as usize];
            let delay = arrival - i128::from(packets.sent[row]);
            if delay < i128::from(least) {
                let uid = packets.uid[row];
                faults.add(|| {
                    format!(
                        "packet {uid} ({direction}) took {delay} ns where propagation alone takes \
                         {least} ns"
                    )
                });
            }
        }
        return faults.outcome(|| format!("{checked} arrivals"));
    }
    let Some((bins, delays)) = &evidence.bins else {
        return Outcome::Skipped("the record holds neither packets nor bins".into());
    };
    for row in delays.iter().filter(|row| row.packets > 0) {
        let least = cell.propagation_ns(row.flow, row.direction);
        if row.low_ns < least {
            faults.add(|| {
                format!(
                    "{} packets of flow {} ({}) took as little as {} ns where propagation alone \
                     takes {least} ns",
                    row.packets, row.flow, row.direction, row.low_ns
                )
            });
        }
    }
    // The histogram must tell of the packets that the bins count.
    let counted: u64 = bins.iter().map(|bin| bin.arrived_packets).sum();
    let measured: u64 = delays.iter().map(|row| row.packets).sum();
    if counted != measured {
        faults.add(|| format!("{counted} packets arrived, but {measured} delays are recorded"));
    }
    faults.outcome(|| format!("{measured} delays in {} buckets", delays.len()))
}
