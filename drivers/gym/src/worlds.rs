//! Many episodes at once.

use crate::actions::{ActionSpace, build_scheme};
use crate::episode::{Episode, Place, Rules};
use crate::oracle;
use crate::reward::Reward;
use crate::step_counters::{Facts, SIZE};
use narrows_cell::{Cell, CellError};
use narrows_sim::parallel;
use narrows_units::Files;
use serde_json::Value;

/// A path on which episodes take place.
pub struct Course {
    /// The cell as JSON; each episode has its own seed.
    pub cell: Value,
    /// Contents of the files that it names.
    pub files: Files,
}

impl Course {
    /// The cell of an episode.
    pub(crate) fn cell(&self, seed: u64) -> Result<Cell, CellError> {
        let mut json = self.cell.clone();
        json["seed"] = seed.into();
        Cell::parse_with(&json.to_string(), |_| Ok(self.files.clone()))
    }
}

/// Episodes that advance together. Episode `k` is the same whatever their number and that of the threads.
pub struct Worlds {
    courses: Vec<Course>,
    /// Properties of the courses.
    facts: Vec<Facts>,
    agents: Vec<usize>,
    rules: Rules,
    inputs: usize,
    threads: usize,
    episodes: Vec<Option<Episode>>,
}

/// Places for the results of all episodes, episode by episode, and agent by agent within each.
pub struct Outputs<'a> {
    /// Inputs of the next decision; unchanged if there is none.
    pub observations: &'a mut [f32],
    /// Counters of the step.
    pub counters: &'a mut [f64],
    /// Rewards.
    pub rewards: &'a mut [f64],
    /// Actions out of bounds since the episode began.
    pub clipped: &'a mut [u32],
    /// [`Ending`] of each episode.
    pub endings: &'a mut [u8],
}

/// An episode with its places.
struct Lane<'a> {
    episode: &'a mut Option<Episode>,
    observations: &'a mut [f32],
    counters: &'a mut [f64],
    rewards: &'a mut [f64],
    clipped: &'a mut [u32],
    ending: &'a mut u8,
    inputs: usize,
}

impl Lane<'_> {
    fn run(&mut self, act: impl for<'b> FnOnce(&mut Episode, &mut dyn Iterator<Item = Place<'b>>)) {
        let Some(episode) = self.episode else { return };
        let observations = self.observations.chunks_exact_mut(self.inputs);
        let counters = self.counters.chunks_exact_mut(SIZE);
        let rest = self.rewards.iter_mut().zip(self.clipped.iter_mut());
        let mut places = observations.zip(counters).zip(rest).map(
            |((observation, counters), (reward, clipped))| Place {
                observation,
                counters,
                reward,
                clipped,
            },
        );
        act(episode, &mut places);
        *self.ending = episode.ending() as u8;
    }
}

impl Worlds {
    /// `count` episodes, none of which has begun. `agents` are the indices of the flows that the caller controls, the same
    /// on all courses.
    ///
    /// # Errors
    /// A course whose cell is invalid, or has no such agents.
    pub fn new(
        courses: Vec<Course>,
        agents: Vec<usize>,
        count: usize,
        reward: Reward,
        max_steps: u32,
        threads: usize,
    ) -> Result<Self, CellError> {
        let mut worlds = Worlds {
            facts: Vec::with_capacity(courses.len()),
            courses,
            agents,
            rules: Rules {
                space: ActionSpace::Choice(0),
                reward,
                max_steps,
            },
            inputs: 0,
            threads,
            episodes: Vec::new(),
        };
        worlds.episodes.resize_with(count, || None);
        if worlds.courses.is_empty() || worlds.agents.is_empty() || count == 0 {
            return Err(CellError::Conflict(
                "at least one course, one agent and one episode are required".into(),
            ));
        }
        for index in 0..worlds.courses.len() {
            let cell = worlds.cell(index, 1)?;
            if let Some(agent) = worlds
                .agents
                .iter()
                .find(|&&agent| agent >= cell.flows.len())
            {
                return Err(CellError::Conflict(format!(
                    "course {index} has {} flows, so that flow {agent} can't be an agent",
                    cell.flows.len()
                )));
            }
            let facts = Facts::from_cell(&cell, worlds.agents[0])?;
            worlds.facts.push(facts);
            if index == 0 {
                worlds.inputs = worlds.count_inputs(&cell)?;
                let scheme = build_scheme(&cell, worlds.agents[0])?;
                let no_decisions = || CellError::Conflict("the scheme makes no decisions".into());
                worlds.rules.space = ActionSpace::from_scheme(&*scheme).ok_or_else(no_decisions)?;
            }
        }
        Ok(worlds)
    }

    /// Finds the best window of each course by trials, on several threads.
    ///
    /// # Errors
    /// Agents without the five changes of a window as actions, and more than one agent.
    pub fn find_best_windows(&mut self) -> Result<(), CellError> {
        let (agent, ActionSpace::Choice(_)) = (self.agents[0], &self.rules.space) else {
            return Err(CellError::Conflict(
                "best windows are searched with the five actions of indigo and muses, which this agent does not have".into(),
            ));
        };
        let courses: Vec<(&Course, Facts)> = self.courses.iter().zip(self.facts.clone()).collect();
        let windows = parallel::map(self.threads, &courses, |(course, facts)| {
            oracle::best_window(&course.cell(1)?, agent, facts)
        });
        for (facts, window) in self.facts.iter_mut().zip(windows) {
            facts.best_window = window?;
        }
        Ok(())
    }

    /// Number of inputs of a decision, by an episode's first one.
    fn count_inputs(&self, cell: &Cell) -> Result<usize, CellError> {
        let mut world = narrows_sim::World::with_agents(cell, &self.agents)?;
        match world.run_to_decision(cell.duration) {
            Some(_) => Ok(world.observation().len()),
            None => Err(CellError::Conflict(format!(
                "the agent makes no decision within {}",
                cell.duration
            ))),
        }
    }

    /// Properties of each course.
    pub fn facts(&self) -> &[Facts] {
        &self.facts
    }

    /// Numbers of one observation.
    pub fn inputs(&self) -> usize {
        self.inputs
    }

    /// The cell of an episode on a course.
    ///
    /// # Errors
    /// A course that does not exist, or a cell that is invalid.
    pub fn cell(&self, course: usize, seed: u64) -> Result<Cell, CellError> {
        let Some(course) = self.courses.get(course) else {
            return Err(CellError::Conflict(format!(
                "course {course} does not exist; there are {}",
                self.courses.len()
            )));
        };
        course.cell(seed)
    }

    /// Begins an episode, with a course and a seed, in each place for which `starts` has one.
    ///
    /// # Errors
    /// Cells that can't be simulated; no episode is changed then.
    pub fn reset(
        &mut self,
        starts: &[Option<(usize, u64)>],
        outputs: &mut Outputs<'_>,
    ) -> Result<(), CellError> {
        let mut made = Vec::new();
        for (index, start) in starts.iter().enumerate() {
            if let Some((course, seed)) = *start {
                let cell = self.cell(course, seed)?;
                let facts = self.facts[course];
                made.push((index, Episode::new(&cell, &self.agents, facts)?));
            }
        }
        for (index, episode) in made {
            self.episodes[index] = Some(episode);
        }
        self.each(outputs, |index, lane, rules| {
            if starts.get(index).is_some_and(Option::is_some) {
                lane.run(|episode, places| episode.begin(rules, places));
            }
        });
        Ok(())
    }

    /// Lets the agents of all episodes act, except where `skip` is true, and runs each to its next decision. `actions` has
    /// the numbers of all episodes.
    pub fn step(&mut self, actions: &[f32], skip: &[bool], outputs: &mut Outputs<'_>) {
        let size = self.rules.space.size() * self.agents.len();
        self.each(outputs, |index, lane, rules| {
            if !skip.get(index).copied().unwrap_or(false) {
                let actions = &actions[index * size..][..size];
                lane.run(|episode, places| episode.step(actions, rules, places));
            }
        });
    }

    /// Calls `work` for each episode, on several threads.
    fn each(
        &mut self,
        outputs: &mut Outputs<'_>,
        work: impl Fn(usize, &mut Lane<'_>, &Rules) + Sync,
    ) {
        let (agents, inputs, rules) = (self.agents.len(), self.inputs, &self.rules);
        let lanes = self
            .episodes
            .iter_mut()
            .zip(outputs.observations.chunks_exact_mut(agents * inputs))
            .zip(outputs.counters.chunks_exact_mut(agents * SIZE))
            .zip(outputs.rewards.chunks_exact_mut(agents))
            .zip(outputs.clipped.chunks_exact_mut(agents))
            .zip(outputs.endings.iter_mut());
        let lanes = lanes.map(
            |(((((episode, observations), counters), rewards), clipped), ending)| Lane {
                episode,
                observations,
                counters,
                rewards,
                clipped,
                ending,
                inputs,
            },
        );
        let threads = self.threads.clamp(1, lanes.len().max(1));
        if threads == 1 {
            for (index, mut lane) in lanes.enumerate() {
                work(index, &mut lane, rules);
            }
            return;
        }
        let mut lanes: Vec<Lane<'_>> = lanes.collect();
        let share = lanes.len().div_ceil(threads);
        std::thread::scope(|scope| {
            let work = &work;
            for (part, lanes) in lanes.chunks_mut(share).enumerate() {
                scope.spawn(move || {
                    for (index, lane) in lanes.iter_mut().enumerate() {
                        work(part * share + index, lane, rules);
                    }
                });
            }
        });
    }

    /// Number of episodes.
    pub fn count(&self) -> usize {
        self.episodes.len()
    }

    /// Number of agents in each episode.
    pub fn agents(&self) -> usize {
        self.agents.len()
    }

    /// The action space of each agent.
    pub fn space(&self) -> &ActionSpace {
        &self.rules.space
    }
}
