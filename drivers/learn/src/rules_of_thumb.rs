//! The rules of thumb with which a table begins.

use crate::objective::Objective;
use crate::rules::{END, Rule, SPACINGS_MS, State};
use narrows_cc::parts::rule_table::SIGNALS;

/// Indices of signals: the average spacing of arrivals, and the round trip by the minimum one, which is 0 before the first
/// acknowledgement.
const ARRIVALS: usize = 1;
const RATIO: usize = 2;

/// Rules of thumb, from which a table begins: a burst until a round trip is known, and then a share of the
/// bandwidth-delay product that belongs to the spacing of arrivals.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Thumb([f64; 8]);

impl Thumb {
    /// Packets and their spacing in ms before the first acknowledgement; how fast windows approach their end (1 at once);
    /// then for a short queue and for a long one the window by the bandwidth-delay product and the spacing of packets by
    /// that of arrivals; last the round trip by the minimum one at which a queue is long.
    pub(crate) const FIRST: Thumb = Thumb([40.0, 0.25, 0.5, 1.1, 0.5, 0.6, 1.0, 1.5]);
    /// Changes that are tried of each number.
    const FACTORS: [f64; 6] = [0.5, 0.7, 0.85, 1.18, 1.4, 2.0];

    /// Itself with each change of one number.
    pub(crate) fn variants(&self) -> Vec<Thumb> {
        let change = |index: usize| {
            Thumb::FACTORS.map(|factor| {
                let mut numbers = self.0;
                numbers[index] *= factor;
                Thumb(numbers)
            })
        };
        (0..self.0.len()).flat_map(change).collect()
    }

    /// Its rules: one for each octave of the links of all `objectives`, with a short queue and a long one. The minimum round
    /// trip is that of the first.
    pub(crate) fn rules(&self, objectives: &[Objective]) -> Vec<Rule> {
        let rates = || objectives.iter().flat_map(|it| it.packets_per_ms);
        let slowest = rates().fold(f64::INFINITY, f64::min);
        let fastest = rates().fold(0.0, f64::max);
        let min_rtt_ms = 2.0 * objectives[0].one_way_ms;
        let Thumb(
            [
                packets,
                pace,
                speed,
                short,
                short_pace,
                long,
                long_pace,
                queue,
            ],
        ) = *self;
        let speed = speed.min(1.0);
        let action = |window: f64, spacing_ms: f64| {
            let increment = (window * speed).clamp(1.0, 250.0).round();
            Rule {
                lower: [0.0; SIGNALS],
                upper: [END; SIGNALS],
                increment: increment as i32,
                multiple: (1.0 - increment / window).clamp(0.0, 1.0),
                spacing_ms: spacing_ms.clamp(SPACINGS_MS.0, SPACINGS_MS.1),
                state: State::Pending,
            }
        };
        let mut start = action(packets / speed, pace);
        start.upper[RATIO] = 0.5;
        let mut rules = vec![start];
        let queue = queue.max(1.01);
        for (from, to, share, pace) in [
            (0.5, queue, short, short_pace),
            (queue, END, long, long_pace),
        ] {
            let (mut rate, mut lower) = (fastest, 0.0);
            loop {
                let mut rule = action(share * rate * min_rtt_ms, pace / rate);
                (rule.lower[RATIO], rule.upper[RATIO]) = (from, to);
                rule.lower[ARRIVALS] = lower;
                rate /= 2.0;
                if rate < slowest {
                    rules.push(rule);
                    break;
                }
                // Half an octave further.
                lower = std::f64::consts::FRAC_1_SQRT_2 / rate;
                rule.upper[ARRIVALS] = lower;
                rules.push(rule);
            }
        }
        rules
    }
}
