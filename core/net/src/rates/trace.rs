//! A measured link: a trace of delivery opportunities or of rates.

use crate::rate_schedule::{ScheduledRate, RateTable};
use crate::opportunities::{ByOpportunity, Opportunities};
use crate::trace::{self, RateTrace};
use crate::{Entry, Example, RateServer, ElementSetup};
use narrows_units::{Kind, ParamError, ParamSpec, Params, Time, params};

/// Registry entry.
pub const ENTRY: Entry = Entry {
    name: "trace",
    summary: "Serves according to a recorded trace: opportunities to send (mahimahi's format) or rates over time",
    source: "mahimahi (Netravali et al., USENIX ATC 2015), mm-link(1); sizes here are IP bytes, mahimahi's include 4 more",
    params: &[
        ParamSpec::new(
            "file",
            Kind::File,
            "The trace: mahimahi's lines of milliseconds, or CSV with the header time_ns,rate_bps or time_s,rate_mbps.",
        )
        .trial(&["opportunities", "opportunities-2", "rates"])
        .required(),
        LOOP,
        TraceParams::PARAMS[0],
        TraceParams::PARAMS[1],
    ],
    shorthand: &["file"],
    example: Example::new(
        "{trace: cellular-drive.csv}",
        "A shipped trace of a fading link.",
    )
    .picture(r#"{"seconds": 60, "bin_ms": 250}"#),
};

/// The parameter of traces that may restart.
pub(super) const LOOP: ParamSpec = ParamSpec::new(
    "loop",
    Kind::Flag,
    "Whether the trace restarts at its end; if not, no packet is sent after that.",
)
.default("true");

params! {
    /// Parameters besides the trace.
    struct TraceParams {
        /// IP bytes that one opportunity moves; several small packets may share one, unused bytes are lost.
        packet: Bytes(1.0..=1e6) = 1500, "mm-link(1): one packet of the maximum size";
        /// Factor that multiplies the bytes of each opportunity (rounded), or each rate. Times are unchanged.
        scale: Number(0.001..=1000.0) = 1;
    }
}

/// Builds the server.
pub fn build(params: &Params, setup: &ElementSetup) -> Result<Box<dyn RateServer>, ParamError> {
    let looped = params.read("loop");
    let TraceParams { packet, scale } = TraceParams::read(params);
    match trace::named(params, &setup.files, trace::parse_rates)? {
        RateTrace::Opportunities(times) => {
            let size = (packet.get() as f64 * scale).round().max(1.0) as u32;
            Ok(Box::new(ByOpportunity::new(RecordedRate::new(times, looped), size)))
        }
        RateTrace::Rates { mut steps, end } => {
            for step in &mut steps {
                step.1 = (step.1 as f64 * scale).round() as u64;
            }
            if !looped {
                steps.push((end, 0));
            }
            let table = RateTable::new(&steps, looped.then_some(end));
            let table = table.map_err(|error| trace::reject(params, &error))?;
            Ok(Box::new(ScheduledRate::new(table)))
        }
    }
}

const MS: u64 = 1_000_000;
/// Time over which the rate of a plot is averaged.
const WINDOW: u64 = 100 * MS;

/// Opportunities at recorded milliseconds. At the end all repeat, shifted by the last time stamp.
struct RecordedRate {
    /// In ms, non-decreasing, the last above zero.
    times: Vec<u64>,
    looped: bool,
    /// The next opportunity that has not been taken: start of its round (ns) and index.
    round: u64,
    index: usize,
}

impl RecordedRate {
    fn new(times: Vec<u64>, looped: bool) -> Self {
        RecordedRate { times, looped, round: 0, index: 0 }
    }

    /// Length of a round in ns.
    fn length(&self) -> u64 {
        self.times[self.times.len() - 1] * MS
    }

    /// Start of the round and index of the first opportunity at or after `at`.
    fn find(&self, at: u64) -> (u64, usize) {
        // Opportunities at the boundary of two rounds belong to the earlier one as well: its last line.
        let round = if self.looped {
            at.saturating_sub(1) / self.length() * self.length()
        } else {
            0
        };
        let index = self.times.partition_point(|&ms| ms * MS < at - round);
        (round, index)
    }

    fn next(&self) -> Time {
        match self.times.get(self.index) {
            Some(&ms) => Time::from_ns(self.round.saturating_add(ms * MS)),
            None => Time::FAR,
        }
    }

    /// Number of opportunities before `at`.
    fn before(&self, at: u64) -> u64 {
        let (round, index) = self.find(at);
        let rounds = round / self.length();
        rounds
            .saturating_mul(self.times.len() as u64)
            .saturating_add(index as u64)
    }
}

impl Opportunities for RecordedRate {
    fn peek(&mut self, at: Time) -> Time {
        if self.next() < at {
            // This never returns to taken opportunities: all of these are before `at`.
            (self.round, self.index) = self.find(at.ns());
        }
        self.next()
    }

    fn take(&mut self) {
        self.index += 1;
        if self.index == self.times.len() && self.looped {
            self.index = 0;
            self.round = self.round.saturating_add(self.length());
        }
    }

    fn count(&self, from: Time, to: Time) -> u64 {
        self.before(to.ns()).saturating_sub(self.before(from.ns()))
    }

    fn frequency(&self, at: Time) -> f64 {
        let window = self.before(at.ns().saturating_add(WINDOW)) - self.before(at.ns());
        window as f64 * 1e9 / WINDOW as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_ends_where_the_next_begins() {
        // 0 and 5 coincide at the boundary.
        let mut trace = RecordedRate::new(vec![0, 2, 2, 5], true);
        let times: Vec<u64> = (0..9)
            .map(|_| {
                let at = trace.peek(Time::ZERO);
                trace.take();
                at.ns() / MS
            })
            .collect();
        assert_eq!(times, [0, 2, 2, 5, 5, 7, 7, 10, 10]);
        let all = RecordedRate::new(vec![0, 2, 2, 5], true);
        for (from, to, count) in [(0, 1, 1), (0, 5, 3), (5, 6, 2), (0, 10, 7), (10, 11, 2), (3, 3, 0)] {
            let (from, to) = (Time::from_ns(from * MS), Time::from_ns(to * MS));
            assert_eq!(all.count(from, to), count);
        }
    }

    #[test]
    fn skipping_an_idle_time_gives_up_what_was_not_used() {
        for start in 0..40 {
            let mut skipping = RecordedRate::new(vec![1, 1, 3, 7], true);
            let mut walking = RecordedRate::new(vec![1, 1, 3, 7], true);
            let at = Time::from_ns(start * MS);
            while walking.next() < at {
                walking.take();
            }
            for _ in 0..10 {
                assert_eq!(skipping.peek(at), walking.next());
                skipping.take();
                walking.take();
            }
        }
    }

    #[test]
    fn a_trace_played_once_is_over_at_its_end() {
        let mut trace = RecordedRate::new(vec![1, 4], false);
        assert_eq!(trace.peek(Time::from_ns(2 * MS)).ns(), 4 * MS);
        trace.take();
        assert_eq!(trace.peek(Time::from_ns(2 * MS)), Time::FAR);
        assert_eq!(trace.count(Time::ZERO, Time::from_ns(100 * MS)), 2);
    }
}
