//! Rule tables under construction: the optimiser of Remy (Winstein and Balakrishnan, SIGCOMM 2013, section 4.3) with a
//! reduced objective.
//!
//! A table begins as rules of thumb with a few numbers, which the first round improves. Each other round improves the
//! action of one rule, one parameter after the other, as long as the objective rises; when all used rules have had their
//! turn, a round splits the most used rule at the median of one of its signals, the one that promises most. The original evaluates thousands of networks and all combinations
//! of the three parameters, and splits along all signals at once; here the networks are few, and the same in all
//! evaluations, so that small differences count.
//!
//! Three kinds of evaluations are left out: networks that don't use the rule, tables that fall far behind on the
//! slow links, which cost least, and tables that flood their links.

use crate::error::RecipeError;
use crate::objective::{self, Network, Objective, Uses};
use crate::rules::{CANDIDATES, Rule, State, encode, probes};
use crate::rules_of_thumb::Thumb;
use narrows_cc::parts::rule_table::SIGNALS;
use narrows_sim::parallel;
use serde::{Deserialize, Serialize};

/// The objective (sum over the networks) has risen if by more than this.
const MIN_GAIN: f64 = 1e-3;
/// Evaluation of a table ends when the other networks would have to gain more than this each.
const MAX_HOPE: f64 = 0.15;
/// Changes of the rules of thumb.
const MAX_THUMB_PASSES: usize = 20;
/// Passes over the parameters in one round.
const MAX_PASSES: usize = 3;
/// All rules are improved again when their number is this many times what it was.
const GROWTH: f64 = 1.5;

/// A recipe of rule tables.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RuleRecipe {
    /// The scheme: `remy`.
    pub scheme: String,
    /// Number of rounds.
    pub rounds: u32,
    /// Maximum number of rules: no more splits after it is reached.
    pub max_rules: usize,
    /// The objective: all networks count alike.
    pub objective: Vec<Objective>,
}

impl RuleRecipe {
    /// Reads a recipe from JSON.
    ///
    /// # Errors
    /// Unknown or missing members, and values out of range.
    pub fn from_json(text: &str) -> Result<Self, RecipeError> {
        let recipe: RuleRecipe =
            serde_json::from_str(text).map_err(|error| RecipeError(error.to_string()))?;
        if recipe.scheme != "remy" {
            return Err(RecipeError(format!(
                "scheme is {:?}; rule tables are trained for remy",
                recipe.scheme
            )));
        }
        if recipe.rounds == 0 || recipe.max_rules == 0 || recipe.max_rules > 1_000 {
            return Err(RecipeError(
                "use 1 or more rounds, and 1 to 1000 for max_rules".into(),
            ));
        }
        if recipe.objective.is_empty() {
            return Err(RecipeError(
                "objective has no networks; list one or more".into(),
            ));
        }
        recipe.objective.iter().try_for_each(Objective::check)?;
        Ok(recipe)
    }
}

/// A training of a rule table under way.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RuleSearch {
    recipe: RuleRecipe,
    seed: u64,
    rules: Vec<Rule>,
    round: u32,
    /// Number of rules at which all are improved again.
    next_turn: usize,
    /// The objective of the rules, once known.
    score: Option<f64>,
}

/// The outcome of a round.
#[derive(Clone, Debug)]
pub struct RuleReport {
    /// Number of the round, from 1.
    pub round: u32,
    /// Number of rules.
    pub rules: usize,
    /// Tables evaluated.
    pub evaluations: usize,
    /// Mean of log2(share of the link) - log2(round trip by the minimum one) over the networks.
    pub score: f64,
}

impl RuleSearch {
    /// Begins with rules of thumb.
    pub fn new(recipe: RuleRecipe, seed: u64) -> Self {
        let rules = Thumb::FIRST.rules(&recipe.objective);
        RuleSearch {
            recipe,
            seed,
            round: 0,
            next_turn: (rules.len() as f64 * GROWTH).ceil() as usize,
            rules,
            score: None,
        }
    }

    /// True after the last round of the recipe.
    pub fn is_complete(&self) -> bool {
        self.round >= self.recipe.rounds
    }

    /// The content of the file of the model, with `notes` in its metadata.
    pub fn model(&self, notes: &[(String, String)]) -> Vec<u8> {
        encode(&self.rules, notes)
    }

    /// The objective of the rules, once known.
    pub fn score(&self) -> Option<f64> {
        self.score
    }

    /// Everything that the next round depends on, as text.
    pub fn to_state(&self) -> String {
        serde_json::to_string(self).expect("plain data")
    }

    /// A training that continues from `state`.
    ///
    /// # Errors
    /// A state that is damaged, or was made with another recipe or seed.
    pub fn resume(recipe: &RuleRecipe, seed: u64, state: &str) -> Result<Self, RecipeError> {
        let search: Option<RuleSearch> = serde_json::from_str(state).ok();
        let same = |search: &RuleSearch| search.recipe == *recipe && search.seed == seed;
        let damaged =
            || RecipeError("the saved state is damaged, or belongs to another recipe".into());
        search.filter(same).ok_or_else(damaged)
    }

    /// Makes one round on `threads` threads.
    pub fn round(&mut self, threads: usize) -> RuleReport {
        let mut step = Step::new(&self.recipe.objective, &self.rules, self.seed, threads);
        let used = |state: State, rules: &[Rule]| {
            let fit = (0..rules.len()).filter(|&n| rules[n].state == state);
            let weight = |n: &usize| step.uses[*n].weight;
            // The first of equally used rules.
            fit.filter(|n| weight(n) > 0.0)
                .min_by(|a, b| weight(b).total_cmp(&weight(a)).then(a.cmp(b)))
        };
        if self.round == 0 {
            self.rules = step.improve_thumb(&self.recipe.objective);
        } else if let Some(index) = used(State::Pending, &self.rules) {
            step.improve(&mut self.rules, index);
            self.rules[index].state = State::Improved;
        } else if self.rules.len() >= self.recipe.max_rules {
            self.reopen();
        } else if let Some(index) = used(State::Improved, &self.rules) {
            step.split(&mut self.rules, index);
            if self.rules.len() >= self.next_turn {
                self.next_turn = (self.rules.len() as f64 * GROWTH).ceil() as usize;
                self.reopen();
            }
        } else {
            self.reopen();
        }
        let score = step.scores.iter().sum::<f64>() / step.networks.len() as f64;
        self.score = Some(score);
        self.round += 1;
        RuleReport {
            round: self.round,
            rules: self.rules.len(),
            evaluations: step.evaluations,
            score,
        }
    }

    /// Lets all rules be improved and split again.
    fn reopen(&mut self) {
        for rule in &mut self.rules {
            rule.state = State::Pending;
        }
    }
}

/// The table in a round.
struct Step {
    networks: Vec<Network>,
    threads: usize,
    /// The score of the table in each network.
    scores: Vec<f64>,
    uses: Vec<Uses>,
    evaluations: usize,
}

impl Step {
    fn new(objectives: &[Objective], rules: &[Rule], seed: u64, threads: usize) -> Self {
        let each = objectives.iter().zip(0u64..);
        let mut networks: Vec<Network> = each
            .flat_map(|(objective, number)| objective.networks(seed + 1_000_003 * number))
            .collect();
        networks.sort_by(|a, b| a.packets().total_cmp(&b.packets()));
        let model = encode(rules, &[]);
        Step {
            scores: objective::scores(&model, &networks, threads),
            uses: objective::uses(&model, rules.len(), &networks, threads),
            networks,
            threads,
            evaluations: 1,
        }
    }

    /// The rules of the best numbers for the rules of thumb.
    fn improve_thumb(&mut self, objectives: &[Objective]) -> Vec<Rule> {
        let mut thumb = Thumb::FIRST;
        let used: Vec<usize> = (0..self.networks.len()).collect();
        for _ in 0..MAX_THUMB_PASSES {
            let tried = thumb.variants();
            let tables: Vec<Vec<Rule>> = tried.iter().map(|it| it.rules(objectives)).collect();
            let Some((best, scores)) = self.choose(&tables, &used) else {
                break;
            };
            thumb = tried[best];
            self.scores = scores;
        }
        thumb.rules(objectives)
    }

    /// Improves the action of rule `index`.
    fn improve(&mut self, rules: &mut [Rule], index: usize) {
        for _ in 0..MAX_PASSES {
            let mut risen = false;
            for candidates in CANDIDATES {
                let tables: Vec<Vec<Rule>> = candidates(&rules[index])
                    .into_iter()
                    .map(|rule| {
                        let mut table = rules.to_vec();
                        table[index] = rule;
                        table
                    })
                    .collect();
                let used = self.uses[index].networks.clone();
                if let Some((best, scores)) = self.choose(&tables, &used) {
                    rules[index] = tables[best][index].clone();
                    self.scores = scores;
                    risen = true;
                }
            }
            if !risen {
                break;
            }
        }
    }

    /// Splits rule `index` at the median of the signal where another action of one half improves the table most; no
    /// signal if none does.
    fn split(&mut self, rules: &mut Vec<Rule>, index: usize) {
        let rule = &rules[index];
        let mut tables = Vec::new();
        for signal in 0..SIGNALS {
            let Some(median) = self.uses[index].median(signal) else {
                continue;
            };
            if median <= rule.lower[signal] || median >= rule.upper[signal] {
                continue;
            }
            let (mut below, mut above) = (rule.clone(), rule.clone());
            below.upper[signal] = median;
            above.lower[signal] = median;
            (below.state, above.state) = (State::Pending, State::Pending);
            let halves = |below: Rule, above: Rule| {
                let mut table = rules.clone();
                table.splice(index..=index, [below, above]);
                table
            };
            for changed in probes(&below) {
                tables.push(halves(changed, above.clone()));
            }
            for changed in probes(&above) {
                tables.push(halves(below.clone(), changed));
            }
        }
        let used = self.uses[index].networks.clone();
        match self.choose(&tables, &used) {
            Some((best, scores)) => {
                *rules = tables.swap_remove(best);
                self.scores = scores;
            }
            None => rules[index].state = State::Whole,
        }
    }

    /// The best of `tables` and its scores, if it exceeds those of the present table. They differ from it in rules that
    /// are used in the networks `used` only.
    fn choose(&mut self, tables: &[Vec<Rule>], used: &[usize]) -> Option<(usize, Vec<f64>)> {
        self.evaluations += tables.len();
        let reached = parallel::map(self.threads, tables, |table| self.evaluate(table, used));
        let mut best = None;
        let mut most = MIN_GAIN;
        for (index, scores) in reached.into_iter().enumerate() {
            if let Some((gain, scores)) = scores
                && gain > most
            {
                most = gain;
                best = Some((index, scores));
            }
        }
        best
    }

    /// The gain of `table` over the present one, and its scores; `None` if it has fallen too far behind.
    fn evaluate(&self, table: &[Rule], used: &[usize]) -> Option<(f64, Vec<f64>)> {
        let model = encode(table, &[]);
        let mut scores = self.scores.clone();
        let mut gain = 0.0;
        for (done, &network) in used.iter().enumerate() {
            let score = self.networks[network].score(&model);
            gain += score - scores[network];
            scores[network] = score;
            if gain + (used.len() - done - 1) as f64 * MAX_HOPE < 0.0 {
                return None;
            }
        }
        Some((gain, scores))
    }
}
