//! Relates the clocks of both hosts.

use super::peer::{ClockDiscipline, ClockReadings, PeerFolder};
use narrows_cell::RunError;
use narrows_tunnel::clock::{ClockConfig, Clocks, Fit};
use narrows_tunnel::merge::clocks;
use narrows_units::{Span, Time};
use serde_json::{Value, json};

/// Maximum time between the starts of the peers of one run: the second is started by the first one's clock.
const FARTHEST_START_NS: u64 = 10_000_000_000;

/// Without a tunnel the clocks were not compared during the run: both peers started on command, which is assumed to be
/// at the same time, and their clocks are assumed to run at the same rate.
fn assume_clocks(readings: [ClockReadings; 2], duration: Time) -> Clocks {
    let mut clocks = Clocks::new(ClockConfig::default());
    for since in [0, duration.ns()] {
        let later =
            |readings: ClockReadings| Time::from_ns(readings.start.tunnel_ns.saturating_add(since));
        let [first, second] = readings.map(later);
        clocks.add_forward(first, second);
        clocks.add_reverse(second, first);
    }
    clocks
}

/// The relation of the clocks, and time zero of the record.
pub(super) struct ClockRelation {
    /// Relation of host 1's clock to that of host 0.
    pub(super) fit: Fit,
    /// Readings of the clocks of both hosts.
    pub(super) readings: [ClockReadings; 2],
    /// The starts of both hosts by host 0's clock, in ns.
    starts: [i64; 2],
    /// The earlier of the two, in ns.
    pub(super) zero: i64,
    /// Maximum error bound of their relation during the run.
    pub(super) error: Span,
    /// Number of samples that were excluded because no clocks differ by that much.
    pub(super) implausible: u64,
    /// Length of the run.
    pub(super) duration: Time,
}

impl ClockRelation {
    /// The relation by the datagrams that arrived at both peers.
    ///
    /// # Errors
    /// [`RunError::Input`] if no datagram arrived at one of them, if their stamps contradict each other, or if they are
    /// not of one run.
    pub(super) fn new(peers: &[PeerFolder; 2], duration: Time) -> Result<Self, RunError> {
        let [here, there] = peers;
        let readings = [here.document.clocks, there.document.clocks];
        let all = if here.document.tunnel && there.document.tunnel {
            here.end.check_pair(&there.end)?;
            clocks(
                &here.end.arrived,
                &there.end.arrived,
                ClockConfig::default(),
            )
        } else if here.document.tunnel == there.document.tunnel {
            assume_clocks(readings, duration)
        } else {
            return Err(RunError::Input(format!(
                "only one of {} and {} had a tunnel, so they are not the two sides of one run",
                here.folder.display(),
                there.folder.display()
            )));
        };
        let Some(fit) = all.fit() else {
            return Err(here.end.no_clocks(&there.end, all.implausible()));
        };
        let [first, second] = readings.map(|readings| readings.start.tunnel_ns);
        let starts = [
            i64::try_from(first).unwrap_or(i64::MAX),
            fit.local_ns(Time::from_ns(second)),
        ];
        if starts[0].abs_diff(starts[1]) > FARTHEST_START_NS {
            return Err(RunError::Input(format!(
                "{} and {} started {:.1} s apart, so they are not the two sides of one run",
                here.folder.display(),
                there.folder.display(),
                starts[0].abs_diff(starts[1]) as f64 / 1e9
            )));
        }
        let mut relation = ClockRelation {
            fit,
            readings,
            starts,
            zero: starts[0].min(starts[1]),
            error: Span::ZERO,
            implausible: all.implausible(),
            duration,
        };
        let [from, to] = relation.span();
        relation.error = relation.fit.largest_error(from, to);
        for peer in peers.iter().filter(|peer| !peer.document.tunnel) {
            let document = Span::from_ns(peer.document.start_error_ns.unwrap_or(0));
            relation.error = relation.error.max(document);
        }
        Ok(relation)
    }

    /// Time in ns between the starts of the two hosts.
    pub(super) fn starts_apart_ns(&self) -> u64 {
        self.starts[0].abs_diff(self.starts[1])
    }

    /// Time zero and the end of the run by host 0's clock.
    pub(super) fn span(&self) -> [Time; 2] {
        let from = Time::from_ns(u64::try_from(self.zero).unwrap_or(0));
        [from, from + Span::from_ns(self.duration.ns())]
    }

    /// The time of the record when `since_ns` have passed since the start of `host` by its clock.
    pub(super) fn time(&self, host: usize, since_ns: u64) -> u64 {
        let own = self.readings[host].at(since_ns);
        let reading = if host == 0 {
            i64::try_from(own).unwrap_or(i64::MAX)
        } else {
            self.fit.local_ns(Time::from_ns(own))
        };
        u64::try_from(reading.saturating_sub(self.zero)).unwrap_or(0)
    }
}

/// The relation of the oscillators of two hosts according to their time services, for comparison with the tunnel's
/// measurement: the second one's reading less the first one's, the error bound, and the relative rate of the second
/// one. `None` unless both clocks are synchronised.
pub(super) fn by_ntp([first, second]: [ClockDiscipline; 2]) -> Option<Value> {
    let behind = |kept: ClockDiscipline| Some(kept.real_ns?.saturating_sub(kept.raw_ns?));
    Some(json!({
        // Both synchronised clocks show the same time, so the offsets of the oscillators from them are compared.
        "offset_ns": behind(first)?.saturating_sub(behind(second)?),
        "bound_ns": first.bound_ns?.saturating_add(second.bound_ns?),
        // A clock that is sped up has a slow oscillator.
        "drift_ppb": first.correction_ppb?.saturating_sub(second.correction_ppb?),
    }))
}
