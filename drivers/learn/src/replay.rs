//! Sequences of decisions with the expert's answers.

use crate::trained_scheme::ACTIONS;

/// Answers are kept as shares of this, in one byte each.
const WHOLE: f32 = 255.0;

/// The decisions of one rollout.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Sequence {
    features: usize,
    gains: Vec<f32>,
    values: Vec<f32>,
    /// The last action before each decision.
    actions: Vec<u8>,
    targets: Vec<[u8; ACTIONS]>,
}

impl Sequence {
    /// A sequence without decisions, of `features` features and their gains.
    pub(crate) fn new(features: usize, gains: &[f32]) -> Self {
        Sequence {
            features,
            gains: gains.to_vec(),
            values: Vec::new(),
            actions: Vec::new(),
            targets: Vec::new(),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.actions.len()
    }

    /// Adds a decision: its features, the action before, and the shares of the actions in the expert's answer.
    pub(crate) fn push(&mut self, features: &[f32], last_action: usize, target: [f32; ACTIONS]) {
        let gained = features.iter().zip(&self.gains);
        self.values.extend(gained.map(|(value, gain)| value * gain));
        self.actions.push(last_action as u8);
        self.targets
            .push(target.map(|share| (share * WHOLE + 0.5) as u8));
    }

    /// The network's inputs of a decision: features, times their gains, and the last action.
    pub(crate) fn write_inputs(&self, step: usize, inputs: &mut [f32]) {
        let (known, last) = inputs.split_at_mut(self.features);
        known.copy_from_slice(&self.values[step * self.features..][..self.features]);
        last.fill(0.0);
        last[usize::from(self.actions[step])] = 1.0;
    }

    /// The expert's answer; its sum is 1.
    pub(crate) fn target(&self, step: usize) -> [f32; ACTIONS] {
        let shares = self.targets[step].map(f32::from);
        let sum: f32 = shares.iter().sum();
        shares.map(|share| share / sum)
    }

    /// Appends it to a file.
    pub(crate) fn write(&self, bytes: &mut Vec<u8>) {
        bytes.extend((self.len() as u32).to_le_bytes());
        bytes.extend(self.values.iter().flat_map(|value| value.to_le_bytes()));
        bytes.extend(&self.actions);
        bytes.extend(self.targets.iter().flatten());
    }

    /// Reads what [`Sequence::write`] has written; `None` if `bytes` end before.
    pub(crate) fn read(features: usize, gains: &[f32], bytes: &mut &[u8]) -> Option<Self> {
        let mut sequence = Sequence::new(features, gains);
        let (length, rest) = bytes.split_first_chunk::<4>()?;
        let length = u32::from_le_bytes(*length) as usize;
        let (values, rest) = rest.split_at_checked(length.checked_mul(4 * features)?)?;
        let (actions, rest) = rest.split_at_checked(length)?;
        let (targets, rest) = rest.split_at_checked(length * ACTIONS)?;
        let (values, _) = values.as_chunks::<4>();
        sequence.values = values
            .iter()
            .map(|value| f32::from_le_bytes(*value))
            .collect();
        sequence.actions = actions.to_vec();
        sequence.targets = targets.as_chunks::<ACTIONS>().0.to_vec();
        let legal = actions.iter().all(|action| usize::from(*action) < ACTIONS);
        *bytes = rest;
        legal.then_some(sequence)
    }
}
