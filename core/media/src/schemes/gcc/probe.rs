//! Probes: a few packets, padded if necessary, at a rate above the known capacity. Times in ms.

use std::collections::VecDeque;

/// Minimum number of packets and minimum duration of a cluster.
const PACKETS: u32 = 5;
const LENGTH: f64 = 15.0;
/// Initial probes in multiples of the start rate.
const FIRST: [f64; 2] = [3.0, 6.0];
/// A probe result above this fraction of its rate triggers another probe at this multiple of the result.
const FURTHER: f64 = 0.7;
const MORE: f64 = 2.0;
/// Fraction of a cluster that must have arrived.
const ENOUGH: f64 = 0.8;
/// A measurement faster than the sending rate by this factor is discarded.
const MAX_SPEEDUP: f64 = 2.0;
/// Below this fraction of the sending rate the path is saturated, and only part of the measured rate is used.
const FULL: f64 = 0.9;
const OF_FULL: f64 = 0.95;
/// Longest duration of a cluster, and how long to wait for its report.
const MAX_DURATION_MS: f64 = 1000.0;
/// Duration of a padding packet at the rate of the probe.
const PADDING: f64 = 2.0;
const PADDING_BYTES: (f64, f64) = (200.0, 1200.0);
/// Maximum number of pending probes, more than a sender can reach.
const MAX_WAITING: usize = 8;

#[derive(Clone, Debug, Default)]
struct Cluster {
    id: u32,
    bps: f64,
    sent_packets: u32,
    sent_bytes: f64,
    first_sent: f64,
    last_sent: f64,
    last_size: f64,
    packets: u32,
    bytes: f64,
    first_arrived: f64,
    last_arrived: f64,
    first_size: f64,
    /// A packet arrived since the last evaluation.
    fresh: bool,
}

impl Cluster {
    fn is_whole(&self) -> bool {
        self.sent_packets >= PACKETS && self.sent_bytes * 8.0 >= self.bps * LENGTH / 1e3
    }

    /// Estimate from the cluster in bit/s.
    fn result(&self) -> Option<f64> {
        let enough = f64::from(self.packets) >= ENOUGH * f64::from(self.sent_packets)
            && self.bytes >= ENOUGH * self.sent_bytes;
        let (sent_ms, arrived_ms) = (self.last_sent - self.first_sent, self.last_arrived - self.first_arrived);
        let plausible = |ms: f64| ms > 0.0 && ms <= MAX_DURATION_MS;
        if !enough || !plausible(sent_ms) || !plausible(arrived_ms) {
            return None;
        }
        // The last packet sent, and the first to arrive, are excluded from the measurement.
        let sent = (self.sent_bytes - self.last_size) * 8e3 / sent_ms;
        let arrived = (self.bytes - self.first_size) * 8e3 / arrived_ms;
        if arrived > MAX_SPEEDUP * sent {
            None
        } else if arrived < FULL * sent {
            Some(OF_FULL * arrived)
        } else {
            Some(sent.min(arrived))
        }
    }
}

#[derive(Clone, Debug)]
pub(super) struct Probes {
    max_bps: f64,
    waiting: VecDeque<f64>,
    active: Option<Cluster>,
    sent: VecDeque<Cluster>,
    next_id: u32,
    /// A result above this triggers another probe.
    further: f64,
}

impl Probes {
    pub(super) fn new(max_bps: f64) -> Self {
        Probes {
            max_bps,
            waiting: VecDeque::new(),
            active: None,
            sent: VecDeque::new(),
            next_id: 1,
            further: f64::INFINITY,
        }
    }

    /// The initial probes.
    pub(super) fn start(&mut self, start_bps: f64) {
        for times in FIRST {
            self.probe(times * start_bps);
        }
    }

    /// Starts a probe at `bps`, capped at the maximum rate.
    pub(super) fn probe(&mut self, bps: f64) {
        if self.waiting.len() < MAX_WAITING {
            let bps = bps.min(self.max_bps);
            self.waiting.push_back(bps);
            self.further = FURTHER * bps;
        }
    }

    #[cfg(test)]
    fn is_idle(&self) -> bool {
        self.waiting.is_empty() && self.active.is_none() && self.sent.is_empty()
    }

    /// The sending rate while a probe is active.
    #[inline]
    pub(super) fn rate(&self) -> Option<f64> {
        self.active.as_ref().map(|cluster| cluster.bps).or_else(|| self.waiting.front().copied())
    }

    /// Bytes of a packet of padding.
    pub(super) fn padding(&self) -> u32 {
        let bytes = self.rate().unwrap_or(0.0) * PADDING / 8e3;
        bytes.clamp(PADDING_BYTES.0, PADDING_BYTES.1) as u32
    }

    /// A packet is sent; returns the number of its cluster, 0 outside of probes.
    pub(super) fn sent(&mut self, at: f64, size: f64) -> u32 {
        if self.active.is_none() {
            let Some(bps) = self.waiting.pop_front() else { return 0 };
            self.active = Some(Cluster {
                id: self.next_id,
                bps,
                first_sent: at,
                last_sent: at,
                first_arrived: f64::INFINITY,
                last_arrived: f64::NEG_INFINITY,
                ..Cluster::default()
            });
            self.next_id += 1;
        }
        let Some(cluster) = &mut self.active else { return 0 };
        cluster.sent_packets += 1;
        cluster.sent_bytes += size;
        cluster.last_sent = at;
        cluster.last_size = size;
        let id = cluster.id;
        if cluster.is_whole() {
            self.sent.extend(self.active.take());
        }
        id
    }

    /// A packet of a cluster arrived.
    pub(super) fn arrived(&mut self, id: u32, arrived: f64, size: f64) {
        let cluster = self.sent.iter_mut().chain(&mut self.active).find(|cluster| cluster.id == id);
        let Some(cluster) = cluster else { return };
        cluster.packets += 1;
        cluster.bytes += size;
        if arrived < cluster.first_arrived {
            (cluster.first_arrived, cluster.first_size) = (arrived, size);
        }
        cluster.last_arrived = cluster.last_arrived.max(arrived);
        cluster.fresh = true;
    }

    /// After a report: the result of the newest probe in bit/s.
    pub(super) fn result(&mut self, now: f64) -> Option<f64> {
        let mut found = None;
        for cluster in &mut self.sent {
            if std::mem::take(&mut cluster.fresh)
                && let Some(bps) = cluster.result()
            {
                found = Some(bps);
            }
        }
        self.sent.retain(|cluster| cluster.packets < cluster.sent_packets && now - cluster.last_sent <= MAX_DURATION_MS);
        let bps = found?;
        if bps > self.further && self.waiting.is_empty() && self.active.is_none() {
            if bps < self.max_bps && self.further < FURTHER * self.max_bps {
                self.probe(MORE * bps);
            } else {
                self.further = f64::INFINITY;
            }
        }
        Some(bps)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sends a cluster of `size` bytes per packet at its rate over a path of `path_bps`.
    fn play(probes: &mut Probes, path_bps: f64, at: &mut f64) -> Option<f64> {
        let bps = probes.rate()?;
        let size = f64::from(probes.padding());
        let mut arrived = *at + 20.0;
        let mut packets = vec![];
        loop {
            let id = probes.sent(*at, size);
            arrived = (*at + 20.0).max(arrived) + size * 8e3 / path_bps;
            packets.push((id, arrived));
            if probes.active.is_none() {
                break;
            }
            *at += size * 8e3 / bps;
        }
        assert!(packets.len() >= 5);
        *at += 100.0;
        for (id, arrived) in packets {
            probes.arrived(id, arrived, size);
        }
        probes.result(*at)
    }

    #[test]
    fn a_start_finds_the_largest_rate_in_two_or_three_probes() {
        let mut probes = Probes::new(1.7e6);
        probes.start(300e3);
        let mut at = 0.0;
        let first = play(&mut probes, 12e6, &mut at).unwrap();
        assert!((first / 900e3 - 1.0).abs() < 0.01, "{first}");
        // Six times exceeds the maximum rate.
        let second = play(&mut probes, 12e6, &mut at).unwrap();
        assert!((second / 1.7e6 - 1.0).abs() < 0.01, "{second}");
        assert_eq!(probes.rate(), None, "it goes no further");
        let mut probes = Probes::new(20e6);
        probes.start(300e3);
        at = 0.0;
        let found: Vec<_> = std::iter::from_fn(|| play(&mut probes, 100e6, &mut at)).map(f64::round).collect();
        let expected = [0.9e6, 1.8e6, 3.6e6, 7.2e6, 14.4e6, 20e6];
        assert_eq!(found.len(), expected.len(), "{found:?}");
        for (found, expected) in found.iter().zip(expected) {
            assert!((found / expected - 1.0).abs() < 0.01, "{found} {expected}");
        }
    }

    #[test]
    fn a_path_that_is_full_gives_a_little_less_than_it_carries() {
        let mut probes = Probes::new(1.7e6);
        probes.start(300e3);
        let mut at = 0.0;
        let first = play(&mut probes, 0.5e6, &mut at).unwrap();
        assert!((first / (0.95 * 0.5e6) - 1.0).abs() < 0.01, "{first}");
        play(&mut probes, 0.5e6, &mut at).unwrap();
        assert!(probes.rate().is_none());
    }

    #[test]
    fn what_arrives_faster_than_it_was_sent_is_not_believed() {
        let mut probes = Probes::new(1.7e6);
        probes.probe(900e3);
        for packet in 0..8 {
            let id = probes.sent(f64::from(packet) * 2.0, 225.0);
            probes.arrived(id, 100.0 + f64::from(packet) * 0.5, 225.0);
        }
        assert_eq!(probes.result(200.0), None);
        assert!(probes.is_idle(), "all of it has arrived");
    }
}
