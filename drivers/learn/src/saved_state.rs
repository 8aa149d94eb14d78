//! The state of a training as bytes, so that it can be resumed.

use crate::error::RecipeError;
use crate::imitation::Imitation;
use crate::recipe::Recipe;
use crate::replay::Sequence;

/// First bytes of a state.
const MAGIC: &[u8; 16] = b"narrows/learn/1\n";

impl Imitation {
    /// Everything that the next round depends on, besides recipe and seed.
    pub fn to_state(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend(self.round.to_le_bytes());
        bytes.extend((self.weights.len() as u32).to_le_bytes());
        let best = self.best.as_ref();
        bytes.extend(
            best.map_or(f64::NAN, |(advantage, _)| *advantage)
                .to_le_bytes(),
        );
        let best = best.map_or(&self.averaged, |(_, weights)| weights);
        let adam = &self.adam;
        for values in [
            &self.weights,
            &self.averaged,
            best,
            &adam.means,
            &adam.squares,
            &adam.powers.to_vec(),
        ] {
            bytes.extend(values.iter().flat_map(|value| value.to_le_bytes()));
        }
        bytes
    }

    /// The sequences of the latest round, which later rounds are trained with, too.
    pub fn latest_rows(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let latest = self.replay.back().map_or(&[][..], Vec::as_slice);
        for sequence in latest {
            sequence.write(&mut bytes);
        }
        bytes
    }

    /// A training that continues from `state` and the rows of rounds with their numbers, among them those of the latest
    /// rounds, oldest first, which were made with the same recipe and seed.
    ///
    /// # Errors
    /// A recipe that can't be used, and a state that is damaged or of another recipe.
    pub fn resume(
        recipe: Recipe,
        seed: u64,
        threads: usize,
        state: &[u8],
        rows: &[(u32, Vec<u8>)],
    ) -> Result<Self, RecipeError> {
        let mut training = Imitation::new(recipe, seed, threads)?;
        let damaged =
            || RecipeError("the saved state is damaged, or belongs to another recipe".into());
        training.restore(state, rows).ok_or_else(damaged)?;
        Ok(training)
    }

    fn restore(&mut self, state: &[u8], rows: &[(u32, Vec<u8>)]) -> Option<()> {
        let mut bytes = state.strip_prefix(MAGIC)?;
        self.round = take_u32(&mut bytes)?;
        if take_u32(&mut bytes)? as usize != self.weights.len() {
            return None;
        }
        let (advantage, rest) = bytes.split_first_chunk::<8>()?;
        let advantage = f64::from_le_bytes(*advantage);
        bytes = rest;
        let mut best = self.weights.clone();
        let mut powers = self.adam.powers.to_vec();
        for values in [
            &mut self.weights,
            &mut self.averaged,
            &mut best,
            &mut self.adam.means,
            &mut self.adam.squares,
            &mut powers,
        ] {
            let (numbers, rest) = bytes.split_at_checked(4 * values.len())?;
            bytes = rest;
            for (value, number) in values.iter_mut().zip(numbers.as_chunks::<4>().0) {
                *value = f32::from_le_bytes(*number);
            }
        }
        self.adam.powers = [powers[0], powers[1]];
        self.best = (!advantage.is_nan()).then_some((advantage, best));
        let kept = self.recipe.replay.min(self.round as usize);
        let first = self.round - kept as u32;
        let latest = rows
            .iter()
            .filter(|(number, _)| first < *number && *number <= self.round);
        for mut bytes in latest.map(|(_, bytes)| bytes.as_slice()) {
            let mut round = Vec::new();
            while !bytes.is_empty() {
                let (features, gains) = (self.subject.features, self.subject.gains);
                round.push(Sequence::read(features, gains, &mut bytes)?);
            }
            self.replay.push_back(round);
        }
        (bytes.is_empty() && self.replay.len() == kept).then_some(())
    }
}

fn take_u32(bytes: &mut &[u8]) -> Option<u32> {
    let (number, rest) = bytes.split_first_chunk::<4>()?;
    *bytes = rest;
    Some(u32::from_le_bytes(*number))
}
