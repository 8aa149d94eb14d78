//! The policies of schemes by themselves: observations in, actions out.

use crate::actions::build_scheme;
use crate::{ActionSpace, Course, Reward, Worlds};
use narrows_cc::CongestionControl;
use narrows_cell::{Cell, CellError};

/// Copies of a scheme's policy, each with a memory.
pub struct Policies {
    cell: Cell,
    agent: usize,
    inputs: usize,
    space: ActionSpace,
    schemes: Vec<Box<dyn CongestionControl>>,
    /// The last action; kept for its capacity.
    action: Vec<f32>,
}

impl Policies {
    /// `count` copies of the policy of the flow with index `agent` on a course, without memories.
    ///
    /// # Errors
    /// A course whose cell is invalid, has no such flow, or leaves its decisions to the caller.
    pub fn new(course: Course, agent: usize, count: usize) -> Result<Self, CellError> {
        let cell = course.cell(0)?;
        let worlds = Worlds::new(vec![course], vec![agent], 1, Reward::Power, 1, 1)?;
        let mut policies = Policies {
            cell,
            agent,
            inputs: worlds.inputs(),
            space: worlds.space().clone(),
            schemes: Vec::with_capacity(count),
            action: Vec::new(),
        };
        for _ in 0..count {
            policies.schemes.push(build_scheme(&policies.cell, agent)?);
        }
        // A scheme without a model has nothing to decide with.
        let mut trial = build_scheme(&policies.cell, agent)?;
        trial.choose_action(&vec![0.0; policies.inputs], &mut policies.action);
        if policies.action.len() != policies.space.size() {
            return Err(CellError::Conflict(
                "the scheme has no model, and leaves its decisions to the caller".into(),
            ));
        }
        Ok(policies)
    }

    /// Numbers of an observation.
    pub fn inputs(&self) -> usize {
        self.inputs
    }

    /// The actions.
    pub fn space(&self) -> &ActionSpace {
        &self.space
    }

    /// Forgets the memories of the copies where `which` is true.
    ///
    /// # Errors
    /// None that did not occur at the construction.
    pub fn reset(&mut self, which: &[bool]) -> Result<(), CellError> {
        for (index, chosen) in which.iter().enumerate().take(self.schemes.len()) {
            if *chosen {
                self.schemes[index] = build_scheme(&self.cell, self.agent)?;
            }
        }
        Ok(())
    }

    /// The actions for `observations`, one row for each copy.
    pub fn act(&mut self, observations: &[f32], actions: &mut [f32]) {
        let observations = observations.chunks_exact(self.inputs);
        let actions = actions.chunks_exact_mut(self.space.size());
        for ((scheme, inputs), result) in self.schemes.iter_mut().zip(observations).zip(actions) {
            self.action.clear();
            scheme.choose_action(inputs, &mut self.action);
            result.copy_from_slice(&self.action);
        }
    }
}
