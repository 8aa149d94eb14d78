//! One episode.

use crate::actions::{ActionSpace, expert_choice};
use crate::reward::Reward;
use crate::step_counters::{Facts, Mark};
use narrows_cell::{Cell, CellError};
use narrows_sim::World;
use narrows_units::Time;

/// State of an episode after a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Ending {
    /// It waits for decisions.
    Running = 0,
    /// It had its number of steps.
    Steps = 1,
    /// The run reached its duration.
    Duration = 2,
    /// An action was not a number.
    Fault = 3,
}

/// A world and its agents.
pub(crate) struct Episode {
    world: World,
    agents: Vec<Agent>,
    /// Actions within their bounds; kept for its capacity.
    actions: Vec<f32>,
    until: Time,
    facts: Facts,
    steps: u32,
    ending: Ending,
}

struct Agent {
    flow: usize,
    mark: Mark,
    /// IP size and payload of a full packet.
    sizes: (u64, u64),
    /// Actions out of bounds so far.
    clipped: u32,
    /// Window in packets at its last decision.
    window: f64,
}

/// Rules that all episodes share.
#[derive(Clone, Debug)]
pub(crate) struct Rules {
    pub(crate) space: ActionSpace,
    pub(crate) reward: Reward,
    pub(crate) max_steps: u32,
}

/// Places for the results of one agent.
pub(crate) struct Place<'a> {
    pub(crate) observation: &'a mut [f32],
    pub(crate) counters: &'a mut [f64],
    pub(crate) reward: &'a mut f64,
    pub(crate) clipped: &'a mut u32,
}

impl Episode {
    /// The episode of `cell` before its first decision.
    pub(crate) fn new(cell: &Cell, agents: &[usize], facts: Facts) -> Result<Self, CellError> {
        let world = World::with_agents(cell, agents)?;
        let agent = |&flow: &usize| Agent {
            flow,
            mark: Mark::default(),
            sizes: world
                .data_sender(flow)
                .map_or((1, 1), narrows_transport::Sender::packet_sizes),
            clipped: 0,
            window: 0.0,
        };
        Ok(Episode {
            agents: agents.iter().map(agent).collect(),
            actions: Vec::new(),
            until: cell.duration,
            facts,
            steps: 0,
            ending: Ending::Running,
            world,
        })
    }

    pub(crate) fn ending(&self) -> Ending {
        self.ending
    }

    /// Runs to the first decision.
    pub(crate) fn begin<'a>(&mut self, rules: &Rules, places: impl Iterator<Item = Place<'a>>) {
        let next = self.advance();
        self.end_step(next, rules, places);
    }

    /// Lets the agents act (`actions` has the numbers of all, agent by agent) and runs to the next decision.
    pub(crate) fn step<'a>(
        &mut self,
        actions: &[f32],
        rules: &Rules,
        places: impl Iterator<Item = Place<'a>>,
    ) {
        if self.ending != Ending::Running {
            return;
        }
        let size = rules.space.size();
        self.actions.clear();
        self.actions.extend_from_slice(actions);
        for (agent, action) in self
            .agents
            .iter_mut()
            .zip(self.actions.chunks_exact_mut(size))
        {
            let Some(clipped) = rules.space.clip(action) else {
                self.ending = Ending::Fault;
                return;
            };
            agent.clipped += u32::from(clipped);
        }
        self.steps += 1;
        let next = if self.agents.len() == 1 {
            let next = self.world.step(&self.actions, self.until);
            next.map(|decision| decision.at)
        } else {
            for (agent, action) in self.agents.iter().zip(self.actions.chunks_exact(size)) {
                self.world.decide(agent.flow, action);
            }
            self.world.complete_gathered();
            self.advance()
        };
        self.end_step(next, rules, places);
    }

    /// Runs to the next decision, or with several agents to the next instant with decisions, and returns its time.
    fn advance(&mut self) -> Option<Time> {
        if self.agents.len() == 1 {
            let decision = self.world.run_to_decision(self.until);
            decision.map(|decision| decision.at)
        } else {
            self.world.run_to_instant(self.until)
        }
    }

    /// Writes the results of the step that has led to a decision at `next`, or to the end of the run.
    fn end_step<'a>(
        &mut self,
        next: Option<Time>,
        rules: &Rules,
        places: impl Iterator<Item = Place<'a>>,
    ) {
        self.ending = match next {
            None => Ending::Duration,
            Some(_) if self.steps >= rules.max_steps => Ending::Steps,
            Some(_) => Ending::Running,
        };
        let at = next.unwrap_or(self.until);
        let size = rules.space.size();
        for (index, (agent, place)) in self.agents.iter_mut().zip(places).enumerate() {
            let Some(sender) = self.world.data_sender(agent.flow) else {
                continue;
            };
            let step = agent.mark.advance(at, sender.progress(), agent.sizes);
            place.counters.copy_from_slice(&step.values);
            *place.clipped = agent.clipped;
            *place.reward = 0.0;
            if let Some(&action) = self.actions.get(index * size) {
                let imitated = rules.reward == Reward::Imitation
                    && action as usize == expert_choice(agent.window, self.facts.best_window);
                *place.reward = rules
                    .reward
                    .of_step(&step, &self.facts, agent.sizes.0, imitated);
            }
            agent.window = step.window();
            if let Some(observation) = sender.observation()
                && observation.len() == place.observation.len()
            {
                place.observation.copy_from_slice(observation);
            }
        }
    }
}
