//! A link that alternates between on and off, for fixed or random times.

use crate::rate_schedule::{ScheduledRate, RateSchedule, RateTable};
use crate::{Entry, Example, RateServer};
use narrows_units::{ParamError, Stream, Time, choice, params};

/// Registry entry.
pub const ENTRY: Entry = Entry {
    name: "onoff",
    summary: "Serves at a rate while on and not at all while off; waiting packets stay in the queue",
    source: "the on-off links of mahimahi (Netravali et al., USENIX ATC 2015), which drop while off: use an outage for that",
    params: OnOffParams::PARAMS,
    shorthand: &[],
    example: Example::new(
        "{onoff: {rate: 10 Mbit/s, on: 300 ms, off: 200 ms, law: exponential}}",
        "On and off times with exponential lengths.",
    )
    .picture(r#"{"seconds": 4, "bin_ms": 20}"#),
};

choice! {
    /// Law of the times.
    enum Law { Fixed = "fixed", Exponential = "exponential" }
}

params! {
    /// Parameters.
    struct OnOffParams {
        /// Rate while on, in IP bits per second.
        rate: Rate(1000.0..=1e13);
        /// Length of an on time, or its mean.
        on: Span(1e6..=1e15);
        /// Length of an off time, or its mean.
        off: Span(1e6..=1e15);
        /// Whether times are all the same or drawn from an exponential law.
        law: Law = "fixed";
        /// Offset into the cycle of on and off time at which the run begins (fixed law); it begins off if this is not
        /// shorter than the on time (both laws).
        #[trial("3000000", "10000000")]
        phase: Span(0.0..=1e15) = 0;
    }
}

crate::registry::build!(dyn RateServer: |params, setup| {
    let OnOffParams { rate, on, off, law, phase } = OnOffParams::read(params);
    let (rate, on, off, phase) = (rate.bps(), on.ns(), off.ns(), phase.ns());
    if phase >= on + off {
        return Err(ParamError::Conflict(format!(
            "the phase ({phase} ns) must be shorter than an on and an off time together ({} ns)",
            on + off
        )));
    }
    if law == Law::Exponential {
        return Ok(Box::new(ScheduledRate::new(Random {
            rate,
            means: [on as f64, off as f64],
            starts_on: phase < on,
            stream: setup.stream(),
            toggles: Vec::new(),
            cursor: 0,
        })));
    }
    let steps = match phase {
        0 => vec![(0, rate), (on, 0)],
        _ if phase < on => vec![(0, rate), (on - phase, 0), (on - phase + off, rate)],
        _ => vec![(0, 0), (on + off - phase, rate), (on + off - phase + on, 0)],
    };
    let inside = |step: &(u64, u64)| step.0 < on + off;
    let steps: Vec<_> = steps.into_iter().filter(inside).collect();
    ScheduledRate::new(RateTable::new(&steps, Some(on + off))?)
});

/// On and off for exponential times. The times of past changes are kept (8 bytes each), so that the capacity of the
/// past is exact.
struct Random {
    rate: u64,
    /// Mean on and off time in ns.
    means: [f64; 2],
    starts_on: bool,
    stream: Stream,
    toggles: Vec<u64>,
    /// Index of the first toggle after the last query.
    cursor: usize,
}

impl Random {
    /// True if it is on between toggle `index - 1` and toggle `index`.
    fn is_on(&self, index: usize) -> bool {
        self.starts_on == index.is_multiple_of(2)
    }

    /// The toggle behind `last`, which is number `index`.
    fn toggle(&self, stream: &mut Stream, index: usize, last: u64) -> u64 {
        let mean = self.means[usize::from(!self.is_on(index))];
        // At least a nanosecond, so that time advances.
        last.saturating_add((stream.exponential(mean) as u64).max(1))
    }

    /// Calls `visit` with (start, end, on) of each part from the start of the run, until it returns `false`.
    fn parts(&self, mut visit: impl FnMut(u64, u64, bool) -> bool) {
        let mut stream = self.stream.clone();
        let (mut start, mut index) = (0, 0);
        loop {
            let end = match self.toggles.get(index) {
                Some(&known) => known,
                None => self.toggle(&mut stream, index, start),
            };
            if !visit(start, end, self.is_on(index)) {
                return;
            }
            (start, index) = (end, index + 1);
        }
    }
}

impl RateSchedule for Random {
    fn piece(&mut self, at: Time) -> (u64, Time) {
        loop {
            while let Some(&toggle) = self.toggles.get(self.cursor) {
                if toggle > at.ns() {
                    let rate = if self.is_on(self.cursor) { self.rate } else { 0 };
                    return (rate, Time::from_ns(toggle));
                }
                self.cursor += 1;
            }
            let last = self.toggles.last().copied().unwrap_or_default();
            let mut stream = self.stream.clone();
            let next = self.toggle(&mut stream, self.toggles.len(), last);
            self.stream = stream;
            self.toggles.push(next);
        }
    }

    fn work(&self, from: Time, to: Time) -> u128 {
        let mut work = 0;
        self.parts(|start, end, on| {
            let shared = end.min(to.ns()).saturating_sub(start.max(from.ns()));
            work += u128::from(shared) * u128::from(if on { self.rate } else { 0 });
            end < to.ns()
        });
        work
    }

    fn rate(&self, at: Time) -> u64 {
        let mut rate = 0;
        self.parts(|_, end, on| {
            rate = if on { self.rate } else { 0 };
            end <= at.ns()
        });
        rate
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ElementSetup;
    use narrows_units::Params;
    use serde_json::{Value, json};

    fn server(json: &Value) -> Box<dyn RateServer> {
        let params = Params::from_json(ENTRY.params, json.as_object().unwrap()).unwrap();
        build(&params, &ElementSetup::new(3, "forward.0")).unwrap()
    }

    #[test]
    fn fixed_times_begin_where_the_phase_says() {
        let at = |phase: u64| {
            let json = json!({"rate": 8_000_000, "on": 10_000_000, "off": 5_000_000, "phase": phase});
            let server = server(&json);
            let on = |ms: u64| server.rate(Time::from_ns(ms * 1_000_000)).bps() > 0;
            (0..30).map(on).collect::<Vec<_>>()
        };
        let whole: Vec<bool> = (0..60).map(|ms| ms % 15 < 10).collect();
        for phase in [0, 3, 9, 10, 12, 14] {
            assert_eq!(at(phase * 1_000_000), whole[phase as usize..phase as usize + 30]);
        }
    }

    #[test]
    fn random_times_have_their_means_and_the_capacity_of_what_happened() {
        let json = json!({"rate": 8_000_000, "on": 20_000_000, "off": 10_000_000, "law": "exponential"});
        let (mut used, fresh) = (server(&json), server(&json));
        let end = Time::from_ns(600_000_000_000);
        let mut at = Time::ZERO;
        let mut served = 0;
        while at < end {
            at = used.serve(at, 1_000);
            served += 1_000;
        }
        // The past of a server, and the prediction of an identical one that never served.
        let capacity = used.capacity(Time::ZERO, at).get();
        assert!(served - capacity <= 1, "{served} {capacity}");
        assert_eq!(fresh.capacity(Time::ZERO, at).get(), capacity);
        // n cycles of 30 ms: the on share is 2/3 with a standard error of (2/3)(1/3)sqrt(2/n).
        let cycles: f64 = 20_000.0;
        let share = capacity as f64 / (at.secs() * 1e6);
        let error = 2.0 / 9.0 * (2.0 / cycles).sqrt();
        assert!((share - 2.0 / 3.0).abs() < 5.0 * error, "{share}");
    }
}
