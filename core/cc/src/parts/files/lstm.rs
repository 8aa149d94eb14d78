//! Recurrent networks that choose one of a few actions: layers of LSTM cells and a linear layer.
//!
//! A layer with input x, output h before and cell c computes z = [x, h] K + B in four blocks i, j, f, o, and then
//! c <- c s(f + 1) + s(i) tanh(j), h <- tanh(c) s(o), where s is the logistic function: Hochreiter and Schmidhuber
//! 1997 with the forget gate of Gers et al. 2000, in the form of TensorFlow's `BasicLSTMCell`. The scores of the
//! actions are h W + b of the last layer.
//!
//! Single precision, as in training; only additions, multiplications and divisions in an order that is fixed here, so
//! that a run is the same on every machine. Nothing is allocated after the construction.

use crate::parts::model_file::Model;
use crate::parts::neural_arithmetic::{add_product, logistic, tanh};

/// Larger networks are too slow for a decision every few milliseconds.
pub(super) const MAX_UNITS: usize = 4_096;
pub(super) const MAX_LAYERS: usize = 8;

/// A layer with its state, which is zero at the beginning.
pub(super) struct LstmLayer {
    /// Rows of inputs, then of the layer's own output; columns i, j, f, o.
    kernel: Vec<f32>,
    bias: Vec<f32>,
    /// Sums of the four blocks; kept for its capacity.
    sums: Vec<f32>,
    cell: Vec<f32>,
    pub(super) output: Vec<f32>,
}

/// A network with its state, which is zero at the beginning.
pub struct Lstm {
    inputs: usize,
    pub(super) layers: Vec<LstmLayer>,
    /// One row for each unit of the last layer, one column for each score.
    pub(super) weights: Vec<f32>,
    pub(super) bias: Vec<f32>,
    scores: Vec<f32>,
}

impl Lstm {
    /// The network in `model`: arrays `bias0`, `kernel0`, `bias1` ... of the layers, `output_weights`, `output_bias`.
    ///
    /// # Errors
    /// Arrays that are missing, or inconsistent with each other or with `inputs` inputs and `scores` scores.
    pub fn new(model: &Model<'_>, inputs: usize, scores: usize) -> Result<Self, String> {
        let units = model.shape("output_weights", 2)?[0];
        if units > MAX_UNITS {
            return Err(format!(
                "its network has {units} units, more than {MAX_UNITS}"
            ));
        }
        let mut layers = Vec::new();
        while model.has(&format!("kernel{}", layers.len())) || layers.is_empty() {
            let index = layers.len();
            if index == MAX_LAYERS {
                return Err(format!("its network has more than {MAX_LAYERS} layers"));
            }
            let inputs = if index == 0 { inputs } else { units };
            layers.push(LstmLayer::read(model, index, inputs, units)?);
        }
        Ok(Lstm {
            inputs,
            layers,
            weights: model.singles("output_weights", &[units, scores])?,
            bias: model.singles("output_bias", &[scores])?,
            scores: vec![0.0; scores],
        })
    }

    /// Performs one step with the given inputs and returns the scores. (Missing inputs count as zero.)
    pub fn step(&mut self, inputs: &[f32]) -> &[f32] {
        let inputs = &inputs[..self.inputs.min(inputs.len())];
        for index in 0..self.layers.len() {
            let (before, rest) = self.layers.split_at_mut(index);
            let input = before.last().map_or(inputs, |layer| &layer.output);
            rest[0].step(input);
        }
        self.scores.copy_from_slice(&self.bias);
        if let Some(last) = self.layers.last() {
            add_product(&mut self.scores, &last.output, &self.weights);
        }
        &self.scores
    }

    /// The scores of the last step.
    pub fn scores(&self) -> &[f32] {
        &self.scores
    }
}

impl LstmLayer {
    /// Layer `index` of `model`, in its arrays `kernel` and `bias` of that number.
    ///
    /// # Errors
    /// Arrays that are missing, or have other shapes.
    pub(super) fn read(
        model: &Model<'_>,
        index: usize,
        inputs: usize,
        units: usize,
    ) -> Result<Self, String> {
        Ok(LstmLayer {
            kernel: model.singles(&format!("kernel{index}"), &[inputs + units, 4 * units])?,
            bias: model.singles(&format!("bias{index}"), &[4 * units])?,
            sums: vec![0.0; 4 * units],
            cell: vec![0.0; units],
            output: vec![0.0; units],
        })
    }

    pub(super) fn step(&mut self, input: &[f32]) {
        let units = self.cell.len();
        self.sums.copy_from_slice(&self.bias);
        let (from_input, from_output) = self.kernel.split_at(self.kernel.len() - units * 4 * units);
        add_product(&mut self.sums, input, from_input);
        add_product(&mut self.sums, &self.output, from_output);
        let (i, rest) = self.sums.split_at_mut(units);
        let (j, rest) = rest.split_at_mut(units);
        let (f, o) = rest.split_at_mut(units);
        for (((cell, i), j), f) in self.cell.iter_mut().zip(&*i).zip(&*j).zip(&*f) {
            *cell = *cell * logistic(f + 1.0) + logistic(*i) * tanh(*j);
        }
        for ((output, cell), o) in self.output.iter_mut().zip(&self.cell).zip(&*o) {
            *output = tanh(*cell) * logistic(*o);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::ModelWriter;

    /// Irregular numbers, so that no error in the order of operations goes unnoticed.
    fn numbers(count: usize, seed: usize) -> Vec<f32> {
        let number = |index: usize| ((index * 37 + seed * 11) % 101) as f32 / 100.0 - 0.5;
        (0..count).map(number).collect()
    }

    fn network(inputs: usize, units: usize, layers: usize) -> Vec<u8> {
        let mut writer = ModelWriter::new("test")
            .singles("output_bias", &[3], &numbers(3, 1))
            .singles("output_weights", &[units, 3], &numbers(units * 3, 2));
        for layer in 0..layers {
            let rows = units + if layer == 0 { inputs } else { units };
            writer = writer
                .singles(
                    &format!("bias{layer}"),
                    &[4 * units],
                    &numbers(4 * units, 3 + layer),
                )
                .singles(
                    &format!("kernel{layer}"),
                    &[rows, 4 * units],
                    &numbers(rows * 4 * units, 7 + layer),
                );
        }
        writer.finish()
    }

    /// A direct implementation of the definition, in double precision, in its own notation.
    #[allow(clippy::many_single_char_names, clippy::needless_range_loop)]
    fn reference(inputs: &[Vec<f32>], units: usize, layers: usize) -> Vec<f64> {
        let real = |values: Vec<f32>| values.into_iter().map(f64::from).collect::<Vec<f64>>();
        let squash = |x: f64| 1.0 / (1.0 + (-x).exp());
        let mut state = vec![(vec![0.0; units], vec![0.0; units]); layers];
        let mut scores = vec![];
        for input in inputs {
            let mut x = real(input.clone());
            for (layer, (h, c)) in state.iter_mut().enumerate() {
                let all: Vec<f64> = x.iter().chain(h.iter()).copied().collect();
                let kernel = real(numbers(all.len() * 4 * units, 7 + layer));
                let bias = real(numbers(4 * units, 3 + layer));
                let z = |column: usize| {
                    let terms = all
                        .iter()
                        .enumerate()
                        .map(|(row, x)| x * kernel[row * 4 * units + column]);
                    bias[column] + terms.sum::<f64>()
                };
                for unit in 0..units {
                    let (i, j, f, o) = (
                        z(unit),
                        z(units + unit),
                        z(2 * units + unit),
                        z(3 * units + unit),
                    );
                    c[unit] = c[unit] * squash(f + 1.0) + squash(i) * j.tanh();
                    x = if unit == 0 { vec![] } else { x };
                    x.push(c[unit].tanh() * squash(o));
                }
                h.clone_from(&x);
            }
            let weights = real(numbers(units * 3, 2));
            let score = |k: usize| {
                (0..units)
                    .map(|unit| x[unit] * weights[unit * 3 + k])
                    .sum::<f64>()
            };
            scores.extend((0..3).map(|k| score(k) + f64::from(numbers(3, 1)[k])));
        }
        scores
    }

    #[test]
    fn networks_compute_what_their_definition_says() {
        // Odd numbers of rows, too, which are not taken four at a time.
        for (count, units, layers) in [(1, 1, 1), (9, 32, 1), (11, 7, 2), (5, 6, 3)] {
            let content = network(count, units, layers);
            let mut lstm = Lstm::new(&Model::parse(&content).unwrap(), count, 3).unwrap();
            let inputs: Vec<Vec<f32>> = (0..6).map(|step| numbers(count, 20 + step)).collect();
            let found: Vec<f64> = inputs
                .iter()
                .flat_map(|x| lstm.step(x).to_vec())
                .map(f64::from)
                .collect();
            for (found, exact) in found.iter().zip(reference(&inputs, units, layers)) {
                assert!(
                    (found - exact).abs() < 1e-5,
                    "{count} {units} {layers}: {found} {exact}"
                );
            }
        }
    }

    #[test]
    fn one_unit_by_hand() {
        // Only j depends on the input: i = f = o = 0, so that the gates are s(0) = 1/2 and s(1) = 0.731059.
        let content = ModelWriter::new("test")
            .singles("output_bias", &[1], &[0.25])
            .singles("output_weights", &[1, 1], &[2.0])
            .singles("bias0", &[4], &[0.0; 4])
            .singles(
                "kernel0",
                &[2, 4],
                &[0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
            )
            .finish();
        let mut lstm = Lstm::new(&Model::parse(&content).unwrap(), 1, 1).unwrap();
        // c = tanh(1)/2 = 0.380797, h = tanh(c)/2 = 0.181700, score = 2 h + 0.25.
        assert!((lstm.step(&[1.0])[0] - 0.613_400).abs() < 2e-6);
        // c = 0.380797 * 0.731059 + tanh(-0.5)/2 = 0.278385 - 0.231059 = 0.047326, h = 0.023645.
        assert!((lstm.step(&[-0.5])[0] - 0.297_290).abs() < 3e-6);
        assert_eq!(lstm.scores().len(), 1);
    }

    #[test]
    fn parts_that_do_not_fit_are_refused() {
        let content = network(9, 8, 2);
        let model = Model::parse(&content).unwrap();
        assert!(Lstm::new(&model, 9, 3).is_ok());
        assert!(
            Lstm::new(&model, 11, 3)
                .err()
                .unwrap()
                .contains("[17, 32], where f32 [19, 32]")
        );
        assert!(
            Lstm::new(&model, 9, 5)
                .err()
                .unwrap()
                .contains("output_weights")
        );
    }
}
