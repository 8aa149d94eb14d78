//! Forward and backward through a sequence of decisions: the cross-entropy between the network's shares of the actions and
//! the expert's, and its gradient (backpropagation through time, over the whole sequence).

use crate::lstm_weights::Shape;
use crate::replay::Sequence;
use crate::trained_scheme::ACTIONS;
use narrows_cc::parts::exp_log;
use narrows_cc::parts::neural_arithmetic::{add_product, largest, logistic, tanh};

/// Values of a sequence that the backward pass needs; kept for their capacity.
#[derive(Debug, Default)]
pub(crate) struct Workspace {
    /// For each decision: inputs, then the layer's output before it.
    inputs: Vec<f32>,
    /// Activations of the gates i, j, f, o.
    gates: Vec<f32>,
    /// The cells before each decision, and after the last.
    cells: Vec<f32>,
    /// Hyperbolic tangents of the cells.
    squashed: Vec<f32>,
    outputs: Vec<f32>,
    /// Derivatives of the loss by the sums of the gates, and by the scores.
    gate_errors: Vec<f32>,
    score_errors: Vec<f32>,
    /// Transposed: the part of the kernel for the layer's own output, and the output weights.
    recurrent: Vec<f32>,
    output_weights: Vec<f32>,
    sums: Vec<f32>,
}

/// Sums over decisions.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Fit {
    pub(crate) decisions: usize,
    /// Cross-entropy in nats.
    pub(crate) loss: f64,
    /// Decisions for which the network and the expert prefer the same action.
    pub(crate) agreed: usize,
}

impl Fit {
    pub(crate) fn add(&mut self, other: Fit) {
        self.decisions += other.decisions;
        self.loss += other.loss;
        self.agreed += other.agreed;
    }
}

/// Adds the gradient of the loss of `sequence`, times `scale`, to `gradient`.
pub(crate) fn add_gradient(
    shape: Shape,
    weights: &[f32],
    sequence: &Sequence,
    scale: f32,
    gradient: &mut [f32],
    space: &mut Workspace,
) -> Fit {
    space.prepare(shape, weights, sequence.len());
    let fit = space.forward(shape, weights, sequence, scale);
    space.backward(shape, sequence.len());
    space.accumulate(shape, sequence.len(), gradient);
    fit
}

impl Workspace {
    fn prepare(&mut self, shape: Shape, weights: &[f32], steps: usize) {
        let Shape { inputs, units } = shape;
        let [kernel, _, output, _] = shape.split(weights);
        self.inputs.resize(steps * (inputs + units), 0.0);
        self.gates.resize(steps * 4 * units, 0.0);
        self.cells.resize((steps + 1) * units, 0.0);
        self.squashed.resize(steps * units, 0.0);
        self.outputs.resize(steps * units, 0.0);
        self.gate_errors.resize(steps * 4 * units, 0.0);
        self.score_errors.resize(steps * ACTIONS, 0.0);
        self.recurrent.resize(4 * units * units, 0.0);
        self.output_weights.resize(units * ACTIONS, 0.0);
        self.sums.resize(4 * units, 0.0);
        self.cells[..units].fill(0.0);
        for row in 0..units {
            for column in 0..4 * units {
                self.recurrent[column * units + row] = kernel[(inputs + row) * 4 * units + column];
            }
            for column in 0..ACTIONS {
                self.output_weights[column * units + row] = output[row * ACTIONS + column];
            }
        }
    }

    fn forward(&mut self, shape: Shape, weights: &[f32], sequence: &Sequence, scale: f32) -> Fit {
        let Shape { inputs, units } = shape;
        let [kernel, bias, output, output_bias] = shape.split(weights);
        let width = inputs + units;
        let mut fit = Fit {
            decisions: sequence.len(),
            ..Fit::default()
        };
        for step in 0..sequence.len() {
            let x = &mut self.inputs[step * width..][..width];
            sequence.write_inputs(step, &mut x[..inputs]);
            match step.checked_sub(1) {
                None => x[inputs..].fill(0.0),
                Some(before) => {
                    x[inputs..].copy_from_slice(&self.outputs[before * units..][..units]);
                }
            }
            let sums = &mut self.sums;
            sums.copy_from_slice(bias);
            add_product(sums, &x[..inputs], &kernel[..inputs * 4 * units]);
            add_product(sums, &x[inputs..], &kernel[inputs * 4 * units..]);
            let gates = &mut self.gates[step * 4 * units..][..4 * units];
            for (index, (gate, sum)) in gates.iter_mut().zip(sums).enumerate() {
                *gate = match index / units {
                    1 => tanh(*sum),
                    2 => logistic(*sum + 1.0),
                    _ => logistic(*sum),
                };
            }
            let (before, after) = self.cells[step * units..][..2 * units].split_at_mut(units);
            for (unit, cell) in after.iter_mut().enumerate() {
                let [i, j, f] = [0, 1, 2].map(|block| gates[block * units + unit]);
                *cell = before[unit] * f + i * j;
                let squashed = tanh(*cell);
                self.squashed[step * units + unit] = squashed;
                self.outputs[step * units + unit] = squashed * gates[3 * units + unit];
            }
            let mut scores = [0.0; ACTIONS];
            scores.copy_from_slice(output_bias);
            add_product(&mut scores, &self.outputs[step * units..][..units], output);
            let target = sequence.target(step);
            let shares = softmax(&scores);
            let errors = &mut self.score_errors[step * ACTIONS..][..ACTIONS];
            for (action, error) in errors.iter_mut().enumerate() {
                *error = (shares[action] - target[action]) * scale;
                if target[action] > 0.0 {
                    let share = f64::from(shares[action]).max(1e-12);
                    fit.loss -= f64::from(target[action]) * exp_log::ln(share);
                }
            }
            fit.agreed += usize::from(largest(&scores) == largest(&target));
        }
        fit
    }

    fn backward(&mut self, shape: Shape, steps: usize) {
        let units = shape.units;
        let mut output_error = vec![0.0f32; units];
        let mut cell_error = vec![0.0f32; units];
        for step in (0..steps).rev() {
            let errors = &self.score_errors[step * ACTIONS..][..ACTIONS];
            for (error, weights) in errors.iter().zip(self.output_weights.chunks_exact(units)) {
                for (sum, weight) in output_error.iter_mut().zip(weights) {
                    *sum += error * weight;
                }
            }
            let gates = &self.gates[step * 4 * units..][..4 * units];
            let squashed = &self.squashed[step * units..][..units];
            let before = &self.cells[step * units..][..units];
            let (di, rest) = self.gate_errors[step * 4 * units..][..4 * units].split_at_mut(units);
            let (dj, rest) = rest.split_at_mut(units);
            let (df, d_o) = rest.split_at_mut(units);
            for unit in 0..units {
                let [i, j, f, o] = [0, 1, 2, 3].map(|block| gates[block * units + unit]);
                d_o[unit] = output_error[unit] * squashed[unit] * o * (1.0 - o);
                let tail = 1.0 - squashed[unit] * squashed[unit];
                let error = cell_error[unit] + output_error[unit] * o * tail;
                di[unit] = error * j * i * (1.0 - i);
                dj[unit] = error * i * (1.0 - j * j);
                df[unit] = error * before[unit] * f * (1.0 - f);
                cell_error[unit] = error * f;
            }
            output_error.fill(0.0);
            let errors = &self.gate_errors[step * 4 * units..][..4 * units];
            add_product(&mut output_error, errors, &self.recurrent);
        }
    }

    /// Adds the products of errors and inputs, four decisions at a time to touch the gradient less often.
    fn accumulate(&self, shape: Shape, steps: usize, gradient: &mut [f32]) {
        let Shape { inputs, units } = shape;
        let (width, columns) = (inputs + units, 4 * units);
        let [kernel_length, bias_length, output_length, _] = shape.lengths();
        let (kernel, rest) = gradient.split_at_mut(kernel_length);
        let (bias, rest) = rest.split_at_mut(bias_length);
        let (output, output_bias) = rest.split_at_mut(output_length);
        let mut step = 0;
        while step + 4 <= steps {
            let (first, second) =
                self.gate_errors[step * columns..][..4 * columns].split_at(2 * columns);
            let (error_a, error_b) = first.split_at(columns);
            let (error_c, error_d) = second.split_at(columns);
            for (row, sums) in kernel.chunks_exact_mut(columns).enumerate() {
                let [a, b, c, d] = [0, 1, 2, 3].map(|k| self.inputs[(step + k) * width + row]);
                let errors = error_a.iter().zip(error_b).zip(error_c.iter().zip(error_d));
                for (sum, ((in_a, in_b), (in_c, in_d))) in sums.iter_mut().zip(errors) {
                    *sum += (a * in_a + b * in_b) + (c * in_c + d * in_d);
                }
            }
            step += 4;
        }
        for step in step..steps {
            let errors = &self.gate_errors[step * columns..][..columns];
            for (row, sums) in kernel.chunks_exact_mut(columns).enumerate() {
                let input = self.inputs[step * width + row];
                for (sum, error) in sums.iter_mut().zip(errors) {
                    *sum += input * error;
                }
            }
        }
        for errors in self.gate_errors[..steps * columns].chunks_exact(columns) {
            for (sum, error) in bias.iter_mut().zip(errors) {
                *sum += error;
            }
        }
        for step in 0..steps {
            let errors = &self.score_errors[step * ACTIONS..][..ACTIONS];
            let outputs = &self.outputs[step * units..][..units];
            for (sums, value) in output.chunks_exact_mut(ACTIONS).zip(outputs) {
                for (sum, error) in sums.iter_mut().zip(errors) {
                    *sum += value * error;
                }
            }
            for (sum, error) in output_bias.iter_mut().zip(errors) {
                *sum += error;
            }
        }
    }
}

/// The shares e^score, with the sum 1.
fn softmax(scores: &[f32; ACTIONS]) -> [f32; ACTIONS] {
    let highest = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let powers = scores.map(|score| exp_log::exp(f64::from(score - highest)) as f32);
    let sum: f32 = powers.iter().sum();
    powers.map(|power| power / sum)
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_units::Stream;

    #[test]
    fn the_gradient_is_that_of_differences() {
        let shape = Shape {
            inputs: 9,
            units: 8,
        };
        let mut stream = Stream::new(1, "test");
        let mut weights = shape.initial(&mut Stream::new(3, "test"));
        let mut sequence = Sequence::new(4, &[1.0, 2.0, 1.0, 3.0]);
        for step in 0..30 {
            let features: Vec<f32> = (0..4).map(|_| stream.uniform() as f32).collect();
            let mut target = [0.0; ACTIONS];
            target[step % 5] = 0.75;
            target[(step + 1) % 5] = 0.25;
            sequence.push(&features, stream.below(5) as usize, target);
        }
        let mut space = Workspace::default();
        let mut loss = |weights: &[f32], gradient: &mut [f32]| {
            add_gradient(shape, weights, &sequence, 1.0, gradient, &mut space).loss
        };
        let mut gradient = vec![0.0; weights.len()];
        loss(&weights, &mut gradient);
        let mut unused = gradient.clone();
        for _ in 0..80 {
            let index = stream.below(weights.len() as u64) as usize;
            let weight = weights[index];
            let mut shifted = |by: f32| {
                weights[index] = weight + by;
                loss(&weights, &mut unused)
            };
            let slope = (shifted(5e-3) - shifted(-5e-3)) / 1e-2;
            weights[index] = weight;
            let error = (slope - f64::from(gradient[index])).abs();
            assert!(
                error < 2e-3 * (1.0 + slope.abs()),
                "{index}: {slope} {}",
                gradient[index]
            );
        }
    }
}
