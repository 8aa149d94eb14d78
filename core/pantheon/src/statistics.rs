//! Pantheon's own numbers, as its analysis defines and prints them.
//!
//! They count packets as the tunnel logged them, its header included: *throughput* is the bytes that arrived divided by
//! the time between the first and the last arrival, by time and not by line; the *95th percentile* is the delay nearest
//! to the index 0.95 (n - 1) of the sorted delays, counted from 0, with ties to the even index; *loss* is one minus the
//! ratio of bytes that arrived to bytes sent, so packets in flight at the end count as lost and copies made by the
//! network count as arrivals. Yan et al., Pantheon, USENIX ATC 2018, and the reports of the project.

use crate::link::OneDirection;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// A run counts if its arrivals span at least this share of its intended duration.
pub const MIN_SHARE: f64 = 0.8;

/// The numbers of one flow, or of all flows together.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Figures {
    /// Mbit/s; 0 if at most one packet arrived.
    pub throughput_mbps: f64,
    /// 95th percentile of the one-way delays, in ms; absent if no packet arrived.
    pub delay_p95_ms: Option<f64>,
    /// Between 0 and 1; absent if no packet arrived.
    pub loss_ratio: Option<f64>,
}

/// Pantheon's numbers of one direction of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Statistics {
    /// Capacity of the emulated link over its whole lifetime, in Mbit/s; absent on real paths.
    pub capacity_mbps: Option<f64>,
    /// Total throughput divided by the capacity.
    pub utilization_ratio: Option<f64>,
    /// Time between the first and the last arrival, in ms.
    pub duration_ms: f64,
    /// All flows together.
    pub total: Figures,
    /// By number of the flow.
    pub flows: BTreeMap<u16, Figures>,
}

/// Sums over the events of a flow or of all.
#[derive(Clone, Debug, Default)]
struct DelaySums {
    sent_bytes: u64,
    arrived_bytes: u64,
    /// First and last arrival. Lines out of order must not make spans negative.
    span: Option<(i64, i64)>,
    delays: Vec<i64>,
}

impl DelaySums {
    fn duration_ns(&self) -> i64 {
        self.span.map_or(0, |(first, last)| last - first)
    }

    fn figures(mut self) -> Figures {
        let arrived = self.span.is_some();
        let lost = 1.0 - self.arrived_bytes as f64 / self.sent_bytes as f64;
        Figures {
            throughput_mbps: megabits(self.arrived_bytes, self.duration_ns()),
            delay_p95_ms: percentile(&mut self.delays).map(|ns| ns as f64 / 1e6),
            loss_ratio: (arrived && self.sent_bytes > 0).then_some(lost),
        }
    }
}

/// Bytes over a time, in Mbit/s; 0 over no time.
fn megabits(bytes: u64, ns: i64) -> f64 {
    match ns {
        0 => 0.0,
        ns => bytes as f64 * 8e3 / ns as f64,
    }
}

/// The delay nearest to the index 0.95 (n - 1), NumPy's method `nearest`.
fn percentile(delays: &mut [i64]) -> Option<i64> {
    let last = delays.len().checked_sub(1)?;
    let place = (0.95 * last as f64).round_ties_even() as usize;
    Some(*delays.select_nth_unstable(place.min(last)).1)
}

impl Statistics {
    /// The statistics of a direction; `None` if no packet arrived.
    pub fn compute(link: &OneDirection) -> Option<Self> {
        let mut all = DelaySums::default();
        let mut flows: BTreeMap<u16, DelaySums> = BTreeMap::new();
        for sent in &link.sent {
            flows.entry(sent.flow).or_default().sent_bytes += u64::from(sent.size);
            all.sent_bytes += u64::from(sent.size);
        }
        for arrived in &link.arrived {
            let flow = flows.entry(arrived.flow).or_default();
            for sums in [flow, &mut all] {
                sums.arrived_bytes += u64::from(arrived.size);
                let at = arrived.time_ns;
                let (first, last) = sums.span.unwrap_or((at, at));
                sums.span = Some((first.min(at), last.max(at)));
                sums.delays.push(arrived.delay_ns);
            }
        }
        all.span?;
        let chances = &link.opportunities;
        let times = || chances.iter().map(|one| one.time_ns);
        let capacity = times().max().zip(times().min());
        let capacity = capacity.map(|(last, first)| last - first);
        let capacity_mbps = capacity.filter(|&ns| ns > 0).map(|ns| {
            let bytes = chances.iter().map(|one| u64::from(one.bytes)).sum();
            megabits(bytes, ns)
        });
        let duration_ns = all.duration_ns();
        let total = all.figures();
        Some(Statistics {
            capacity_mbps,
            utilization_ratio: capacity_mbps.map(|mbps| total.throughput_mbps / mbps),
            duration_ms: duration_ns as f64 / 1e6,
            total,
            flows: flows
                .into_iter()
                .map(|(flow, sums)| (flow, sums.figures()))
                .collect(),
        })
    }

    /// The reason why Pantheon does not count the run; `None` if it does. `meant` are the intended flows, which its log
    /// may lack; `runtime_ns` is its intended duration.
    pub fn refusal(&self, meant: &BTreeSet<u16>, runtime_ns: Option<u64>) -> Option<String> {
        let arrived = |flow: &u16| {
            let figures = self.flows.get(flow);
            figures.is_some_and(|figures| figures.delay_p95_ms.is_some())
        };
        let silent = meant.iter().chain(self.flows.keys());
        if let Some(flow) = silent.filter(|flow| !arrived(flow)).min() {
            return Some(format!("no packet of flow {flow} arrived"));
        }
        let wanted_ms = runtime_ns? as f64 / 1e6 * MIN_SHARE;
        (self.duration_ms < wanted_ms).then(|| {
            format!(
                "arrivals span {:.1} s, less than 80 % of the {} s that the run was meant to last",
                self.duration_ms / 1e3,
                runtime_ns.unwrap_or(0) as f64 / 1e9
            )
        })
    }

    /// The block of Pantheon's stats files that begins with `# Datalink statistics`.
    pub fn text(&self) -> String {
        let count = self.flows.len();
        let plural = if count == 1 { "" } else { "s" };
        let mut text = format!("# Datalink statistics\n-- Total of {count} flow{plural}:\n");
        // Writing to a string cannot fail.
        if let Some(mbps) = self.capacity_mbps {
            let _ = writeln!(text, "Average capacity: {mbps:.2} Mbit/s");
        }
        let used = self.utilization_ratio.map_or_else(String::new, |ratio| {
            format!(" ({:.1}% utilization)", ratio * 100.0)
        });
        block(&mut text, &self.total, &used);
        for (flow, figures) in &self.flows {
            let _ = writeln!(text, "-- Flow {flow}:");
            block(&mut text, figures, "");
        }
        text
    }
}

fn block(text: &mut String, figures: &Figures, used: &str) {
    let mbps = figures.throughput_mbps;
    let _ = writeln!(text, "Average throughput: {mbps:.2} Mbit/s{used}");
    if let Some(ms) = figures.delay_p95_ms {
        let _ = writeln!(text, "95th percentile per-packet one-way delay: {ms:.3} ms");
    }
    if let Some(ratio) = figures.loss_ratio {
        let _ = writeln!(text, "Loss rate: {:.2}%", ratio * 100.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::merged::read_merged;

    fn statistics_of(events: &str) -> Option<Statistics> {
        let text = format!("# init timestamp: 1500000000000.000\n{events}");
        let reading = read_merged("log", text.as_bytes(), false).unwrap();
        Statistics::compute(&reading.link)
    }

    #[test]
    fn the_nearest_place_with_ties_to_the_even_one() {
        let of = |count: i64| percentile(&mut (0..count).rev().collect::<Vec<_>>());
        assert_eq!(of(0), None);
        assert_eq!(of(1), Some(0));
        assert_eq!(of(11), Some(10), "0.95 x 10 is 9.5, and 10 is even");
        assert_eq!(of(12), Some(10), "0.95 x 11 is 10.45");
        assert_eq!(of(20), Some(18), "0.95 x 19 is 18.05");
        assert_eq!(of(31), Some(28), "0.95 x 30 is 28.5, and 28 is even");
        assert_eq!(of(101), Some(95));
    }

    #[test]
    fn the_block_by_hand() {
        // Flow 1: 3000 of 4500 bytes in 10 ms, flow 2: one packet. Together 4500 of 6000 in 20 ms.
        let statistics = statistics_of(
            "0.000 # 1500\n\
             1.000 + 1500 1\n1.875 + 1500 1\n3.000 + 1500 1\n4.000 + 1500 2\n\
             10.000 - 1500 9.000 1\n20.000 - 1500 18.125 1\n30.000 - 1500 26.000 2\n\
             40.000 # 1500\n",
        )
        .unwrap();
        assert_eq!(
            statistics.text(),
            "# Datalink statistics\n\
             -- Total of 2 flows:\n\
             Average capacity: 0.60 Mbit/s\n\
             Average throughput: 1.80 Mbit/s (300.0% utilization)\n\
             95th percentile per-packet one-way delay: 26.000 ms\n\
             Loss rate: 25.00%\n\
             -- Flow 1:\n\
             Average throughput: 2.40 Mbit/s\n\
             95th percentile per-packet one-way delay: 18.125 ms\n\
             Loss rate: 33.33%\n\
             -- Flow 2:\n\
             Average throughput: 0.00 Mbit/s\n\
             95th percentile per-packet one-way delay: 26.000 ms\n\
             Loss rate: 0.00%\n"
        );
        let both = BTreeSet::from([1, 2]);
        assert_eq!(statistics.refusal(&both, None), None);
        assert_eq!(statistics.refusal(&both, Some(25_000_000)), None);
        let why = statistics.refusal(&both, Some(26_000_000)).unwrap();
        assert!(why.contains("less than 80 % of the 0.026 s"), "{why}");
    }

    #[test]
    fn copies_make_loss_negative_and_wrong_clocks_delays() {
        let statistics = statistics_of(
            "0.000 + 1500 1\n1.000 + 1500 1\n2.000 + 1500 1\n\
             10.000 - 1500 -3.000 1\n10.500 - 1500 9.500 1\n11.000 - 1500 9.000 1\n\
             12.000 - 1500 12.000 1\n13.000 + 1500 1\n",
        );
        // All of four packets sent arrive; one of them by a wrong clock.
        let statistics = statistics.unwrap();
        assert_eq!(statistics.total.loss_ratio, Some(0.0));
        let statistics = statistics_of(
            "0.000 + 900 1\n1.000 + 900 1\n2.000 + 900 1\n\
             10.000 - 900 10.000 1\n11.000 - 900 10.000 1\n12.000 - 900 10.000 1\n\
             13.000 - 900 13.000 1\n",
        )
        .unwrap();
        assert!(statistics.text().contains("Loss rate: -33.33%"));
    }

    #[test]
    fn a_flow_of_which_nothing_arrives_has_a_throughput_of_zero_and_spoils_the_run() {
        let statistics = statistics_of("0.000 + 60 1\n0.000 + 60 3\n5.000 - 60 5.000 1\n").unwrap();
        assert!(
            statistics
                .text()
                .ends_with("-- Flow 3:\nAverage throughput: 0.00 Mbit/s\n")
        );
        let refused = |meant: &[u16]| {
            let meant = meant.iter().copied().collect();
            statistics.refusal(&meant, None).unwrap()
        };
        assert_eq!(refused(&[]), "no packet of flow 3 arrived");
        assert_eq!(refused(&[1, 2, 3]), "no packet of flow 2 arrived");
        assert!(statistics_of("0.000 + 60 1\n").is_none());
    }

    #[test]
    fn a_flow_that_was_meant_to_be_and_left_no_line_spoils_the_run() {
        let statistics = statistics_of("0.000 + 60 2\n5.000 - 60 5.000 2\n").unwrap();
        for (meant, silent) in [
            (vec![2], None),
            (vec![1, 2], Some(1)),
            (vec![2, 3], Some(3)),
        ] {
            let why = silent.map(|flow: u16| format!("no packet of flow {flow} arrived"));
            assert_eq!(statistics.refusal(&meant.into_iter().collect(), None), why);
        }
    }
}
