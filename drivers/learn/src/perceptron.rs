//! Perceptrons in training: layers of hyperbolic tangents, and one sum as output.

use narrows_cc::parts::neural_arithmetic::{add_product, tanh};
use narrows_units::Stream;

/// Shape of a perceptron: the numbers of its inputs, of the units of each hidden layer, and 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Perceptron {
    sizes: Vec<usize>,
}

/// Outputs of the layers at the last input, and errors on their way back; kept for their capacity.
#[derive(Clone, Debug, Default)]
pub(crate) struct Layers {
    outputs: Vec<Vec<f32>>,
    errors: [Vec<f32>; 2],
}

impl Perceptron {
    pub(crate) fn new(inputs: usize, hidden: &[usize]) -> Self {
        let sizes = [&[inputs], hidden, &[1]].concat();
        Perceptron { sizes }
    }

    /// Inputs and units of each layer.
    pub(crate) fn layers(&self) -> impl Iterator<Item = (usize, usize)> {
        self.sizes.windows(2).map(|ends| (ends[0], ends[1]))
    }

    /// Number of weights: of each layer the kernel, one row for each input, and the bias.
    pub(crate) fn weights(&self) -> usize {
        self.layers().map(|(rows, units)| (rows + 1) * units).sum()
    }

    /// Initial weights: uniform within the bounds of Glorot and Bengio 2010, those of the output times `last`; biases 0.
    pub(crate) fn initial(&self, stream: &mut Stream, last: f64) -> Vec<f32> {
        let mut weights = Vec::with_capacity(self.weights());
        for (layer, (rows, units)) in self.layers().enumerate() {
            let factor = if layer + 2 == self.sizes.len() {
                last
            } else {
                1.0
            };
            let bound = factor * (6.0 / (rows + units) as f64).sqrt();
            let number = |_| ((2.0 * stream.uniform() - 1.0) * bound) as f32;
            weights.extend((0..rows * units).map(number));
            weights.extend(vec![0.0; units]);
        }
        weights
    }

    /// Kernel and bias of each layer.
    pub(crate) fn split<'a>(&self, weights: &'a [f32]) -> Vec<(&'a [f32], &'a [f32])> {
        let mut rest = weights;
        let split = |(rows, units): (usize, usize)| {
            let (kernel, behind) = rest.split_at(rows * units);
            let (bias, behind) = behind.split_at(units);
            rest = behind;
            (kernel, bias)
        };
        self.layers().map(split).collect()
    }

    /// The output for `inputs`.
    pub(crate) fn evaluate(&self, weights: &[f32], inputs: &[f32], space: &mut Layers) -> f32 {
        space.outputs.resize_with(self.sizes.len() - 1, Vec::new);
        let mut rest = weights;
        for (layer, (rows, units)) in self.layers().enumerate() {
            let (before, outputs) = space.outputs.split_at_mut(layer);
            let input = before.last().map_or(inputs, Vec::as_slice);
            let (kernel, behind) = rest.split_at(rows * units);
            let (bias, behind) = behind.split_at(units);
            rest = behind;
            let output = &mut outputs[0];
            output.clear();
            output.extend_from_slice(bias);
            add_product(output, input, kernel);
            if layer + 2 < self.sizes.len() {
                for sum in output.iter_mut() {
                    *sum = tanh(*sum);
                }
            }
        }
        space.outputs[self.sizes.len() - 2][0]
    }

    /// Adds to `gradient` that of `slope` times the output, after [`Perceptron::evaluate`] with the same `weights` and
    /// `inputs`.
    pub(crate) fn add_gradient(
        &self,
        weights: &[f32],
        inputs: &[f32],
        slope: f32,
        gradient: &mut [f32],
        space: &mut Layers,
    ) {
        let Layers { outputs, errors } = space;
        let [errors, below] = errors;
        errors.clear();
        errors.push(slope);
        let mut end = weights.len();
        let layers: Vec<_> = self.layers().collect();
        for (layer, (rows, units)) in layers.into_iter().enumerate().rev() {
            let start = end - (rows + 1) * units;
            let kernel = &weights[start..start + rows * units];
            let (slopes, bias) = gradient[start..end].split_at_mut(rows * units);
            end = start;
            let input = if layer == 0 {
                inputs
            } else {
                &outputs[layer - 1]
            };
            for (sum, error) in bias.iter_mut().zip(&*errors) {
                *sum += error;
            }
            for (value, row) in input.iter().zip(slopes.chunks_exact_mut(units)) {
                for (sum, error) in row.iter_mut().zip(&*errors) {
                    *sum += value * error;
                }
            }
            if layer == 0 {
                break;
            }
            below.clear();
            for (value, row) in input.iter().zip(kernel.chunks_exact(units)) {
                let sum: f32 = row
                    .iter()
                    .zip(&*errors)
                    .map(|(weight, error)| weight * error)
                    .sum();
                below.push(sum * (1.0 - value * value));
            }
            std::mem::swap(errors, below);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gradient_is_that_of_differences() {
        let shape = Perceptron::new(5, &[7, 4]);
        let mut stream = Stream::new(1, "test");
        let mut weights = shape.initial(&mut stream, 1.0);
        assert_eq!(weights.len(), 6 * 7 + 8 * 4 + 5);
        let inputs: Vec<f32> = (0..5).map(|_| stream.uniform() as f32).collect();
        let mut space = Layers::default();
        let mut gradient = vec![0.0; weights.len()];
        shape.evaluate(&weights, &inputs, &mut space);
        shape.add_gradient(&weights, &inputs, 3.0, &mut gradient, &mut space);
        for index in 0..weights.len() {
            let weight = weights[index];
            let mut shifted = |by: f32| {
                weights[index] = weight + by;
                f64::from(shape.evaluate(&weights, &inputs, &mut space))
            };
            let slope = 3.0 * (shifted(1e-2) - shifted(-1e-2)) / 2e-2;
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
