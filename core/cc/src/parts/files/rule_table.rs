//! Rule tables of Remy: boxes that tile the space of a sender's signals, each with an action.

use crate::parts::model_file::Model;

/// Signals of a sender: averages of the spacing of packets when sent and when received (ms), the ratio of the last
/// round trip to the minimum, and a slower average of the spacing when received (ms).
pub type Signals = [f64; SIGNALS];
/// Number of signals.
pub const SIGNALS: usize = 4;
/// Training produces a few hundred rules at most; checking is quadratic in their number.
const MAX_RULES: usize = 4_096;
/// A packet per minute is practically none.
const MAX_SPACING_MS: f64 = 60_000.0;

/// Action of a rule.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RuleAction {
    /// Packets added to the window, after the multiplication.
    pub increment: f64,
    /// Factor of the window.
    pub multiple: f64,
    /// Minimum time between two packets in ms.
    pub spacing_ms: f64,
}

#[derive(Clone, Copy, Debug)]
struct TableRule {
    lower: Signals,
    upper: Signals,
    action: RuleAction,
}

impl TableRule {
    fn contains(&self, point: &Signals) -> bool {
        let bounds = self.lower.iter().zip(&self.upper);
        point
            .iter()
            .zip(bounds)
            .all(|(x, (lower, upper))| lower <= x && x < upper)
    }

    /// True if the box is empty: training may split a box at its own edge, as in the published tables of 2013.
    fn is_empty(&self) -> bool {
        (0..SIGNALS).any(|k| self.lower[k] >= self.upper[k])
    }

    fn overlaps(&self, other: &TableRule) -> bool {
        let empty = self.is_empty() || other.is_empty();
        !empty
            && (0..SIGNALS)
                .all(|k| self.lower[k] < other.upper[k] && other.lower[k] < self.upper[k])
    }
}

/// A table in which every point has exactly one rule.
#[derive(Clone, Debug)]
pub struct RuleTable {
    rules: Vec<TableRule>,
    lowest: Signals,
    /// The largest point inside.
    highest: Signals,
    /// The last rule used, which is usually the next one, too.
    last: usize,
}

impl RuleTable {
    /// The table in `model`: arrays `lower` and `upper` (one row of bounds for each rule), `increment`, `multiple`
    /// and `spacing_ms`.
    ///
    /// # Errors
    /// Arrays that are missing, and rules that overlap or leave gaps.
    pub fn new(model: &Model<'_>) -> Result<Self, String> {
        let count = model.shape("lower", 2)?[0];
        if count > MAX_RULES {
            return Err(format!("it has {count} rules, more than {MAX_RULES}"));
        }
        let lower = model.doubles("lower", &[count, SIGNALS])?;
        let upper = model.doubles("upper", &[count, SIGNALS])?;
        let increments = model.integers("increment", &[count])?;
        let multiples = model.doubles("multiple", &[count])?;
        let spacings = model.doubles("spacing_ms", &[count])?;
        let rules = (0..count).map(|index| TableRule {
            lower: std::array::from_fn(|k| lower[index * SIGNALS + k]),
            upper: std::array::from_fn(|k| upper[index * SIGNALS + k]),
            action: RuleAction {
                increment: f64::from(increments[index]),
                multiple: multiples[index],
                spacing_ms: spacings[index],
            },
        });
        Self::from_rules(rules.collect())
    }

    fn from_rules(rules: Vec<TableRule>) -> Result<Self, String> {
        for (index, rule) in rules.iter().enumerate() {
            if (0..SIGNALS).any(|k| rule.lower[k] > rule.upper[k]) {
                return Err(format!(
                    "its rule {index} has a lower bound that is above its upper one"
                ));
            }
            if !(0.0..=MAX_SPACING_MS).contains(&rule.action.spacing_ms) {
                return Err(format!(
                    "its rule {index} has a spacing that is not within a minute"
                ));
            }
            if let Some(other) = rules[..index].iter().position(|other| other.overlaps(rule)) {
                return Err(format!("its rules {other} and {index} overlap"));
            }
        }
        let lowest = std::array::from_fn(|k| least(rules.iter().map(|rule| rule.lower[k])));
        let end: Signals = std::array::from_fn(|k| -least(rules.iter().map(|rule| -rule.upper[k])));
        if !fills(&rules, &lowest, &end) {
            return Err("its rules leave gaps between them".into());
        }
        Ok(RuleTable {
            rules,
            lowest,
            highest: end.map(f64::next_down),
            last: 0,
        })
    }

    /// Number of rules.
    pub fn count(&self) -> usize {
        self.rules.len()
    }

    /// The actions of all rules, in their order.
    pub fn actions(&self) -> impl Iterator<Item = RuleAction> {
        self.rules.iter().map(|rule| rule.action)
    }

    /// The action where the signals are `point`. Outside the table the nearest point inside is used.
    pub fn action(&mut self, point: &Signals) -> RuleAction {
        let index = self.index(point);
        self.rules[index].action
    }

    /// Index of the rule where the signals are `point`, as for [`RuleTable::action`].
    pub fn index(&mut self, point: &Signals) -> usize {
        let inside = std::array::from_fn(|k| point[k].max(self.lowest[k]).min(self.highest[k]));
        if !self.rules[self.last].contains(&inside)
            && let Some(found) = self.rules.iter().position(|rule| rule.contains(&inside))
        {
            self.last = found;
        }
        self.last
    }
}

fn least(values: impl Iterator<Item = f64>) -> f64 {
    values.fold(f64::INFINITY, f64::min)
}

/// True if rules that do not overlap fill the box from `lowest` to `end`. Volumes are counted in integer steps between
/// the bounds that occur, so that no gap is too small to be detected.
fn fills(rules: &[TableRule], lowest: &Signals, end: &Signals) -> bool {
    let mut bounds: [Vec<f64>; SIGNALS] = Default::default();
    for (k, all) in bounds.iter_mut().enumerate() {
        all.extend(rules.iter().flat_map(|rule| [rule.lower[k], rule.upper[k]]));
        all.sort_by(f64::total_cmp);
        all.dedup();
    }
    let volume = |lower: &Signals, upper: &Signals| -> u128 {
        let steps = (0..SIGNALS).map(|k| {
            let rank = |value: f64| bounds[k].partition_point(|&bound| bound < value);
            (rank(upper[k]) - rank(lower[k])) as u128
        });
        steps.product()
    };
    let filled: u128 = rules
        .iter()
        .map(|rule| volume(&rule.lower, &rule.upper))
        .sum();
    filled > 0 && filled == volume(lowest, end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::ModelWriter;

    /// Lower and upper bounds, and the increment that identifies a rule.
    type Given = ([f64; 4], [f64; 4], i32);

    fn table(rules: &[Given]) -> Result<RuleTable, String> {
        let count = rules.len();
        let all =
            |pick: fn(&Given) -> [f64; 4]| -> Vec<f64> { rules.iter().flat_map(pick).collect() };
        let content = ModelWriter::new("remy")
            .doubles("lower", &[count, 4], &all(|rule| rule.0))
            .doubles("upper", &[count, 4], &all(|rule| rule.1))
            .integers(
                "increment",
                &[count],
                &rules.iter().map(|rule| rule.2).collect::<Vec<_>>(),
            )
            .doubles("multiple", &[count], &vec![0.5; count])
            .doubles("spacing_ms", &[count], &vec![1.0; count])
            .finish();
        RuleTable::new(&Model::parse(&content)?)
    }

    const ZERO: [f64; 4] = [0.0; 4];

    #[test]
    fn the_lower_bound_belongs_to_a_rule_and_the_upper_one_to_its_neighbour() {
        let mut table = table(&[
            (ZERO, [8.0, 8.0, 2.0, 8.0], 1),
            ([0.0, 0.0, 2.0, 0.0], [3.0, 8.0, 8.0, 8.0], 2),
            ([3.0, 0.0, 2.0, 0.0], [8.0; 4], 3),
        ])
        .unwrap();
        assert_eq!(table.count(), 3);
        let mut increment = |point: [f64; 4]| table.action(&point).increment;
        assert_eq!(increment(ZERO), 1.0);
        assert_eq!(increment([3.0, 1.0, 2.0f64.next_down(), 1.0]), 1.0);
        assert_eq!(increment([3.0f64.next_down(), 1.0, 2.0, 1.0]), 2.0);
        assert_eq!(increment([3.0, 1.0, 2.0, 1.0]), 3.0);
        // Outside: the nearest point inside is used.
        assert_eq!(increment([9.0, -1.0, 1e300, 8.0]), 3.0);
        assert_eq!(increment([-1.0, 0.0, f64::INFINITY, 0.0]), 2.0);
    }

    #[test]
    fn tables_that_do_not_tile_are_refused() {
        let gap = table(&[(ZERO, [1.0; 4], 1), ([1.0; 4], [2.0; 4], 2)]);
        assert!(gap.unwrap_err().contains("gaps"));
        let sliver = table(&[
            (ZERO, [1.0, 8.0, 8.0, 8.0], 1),
            ([1.0f64.next_up(), 0.0, 0.0, 0.0], [8.0; 4], 2),
        ]);
        assert!(sliver.unwrap_err().contains("gaps"));
        let both = table(&[(ZERO, [8.0; 4], 1), ([7.0; 4], [8.0; 4], 2)]);
        assert!(both.unwrap_err().contains("0 and 1 overlap"));
        let inverted = table(&[([1.0; 4], [0.5, 2.0, 2.0, 2.0], 1)]);
        assert!(inverted.unwrap_err().contains("above its upper"));
        let nothing = table(&[([1.0; 4], [1.0, 2.0, 2.0, 2.0], 1)]);
        assert!(nothing.unwrap_err().contains("gaps"));
    }

    #[test]
    fn a_rule_for_no_point_is_never_asked() {
        // A box of ratios from 1 on, split at 1.
        let mut table = table(&[
            (ZERO, [8.0, 8.0, 1.0, 8.0], 1),
            ([0.0, 0.0, 1.0, 0.0], [8.0, 8.0, 1.0, 8.0], 2),
            ([0.0, 0.0, 1.0, 0.0], [8.0; 4], 3),
        ])
        .unwrap();
        let mut increment = |ratio: f64| table.action(&[1.0, 1.0, ratio, 1.0]).increment;
        assert_eq!(
            [
                increment(1.0f64.next_down()),
                increment(1.0),
                increment(2.0)
            ],
            [1.0, 3.0, 3.0]
        );
    }
}
