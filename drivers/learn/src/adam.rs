//! Adam (Kingma and Ba, ICLR 2015), with weight decay in the gradient and its norm limited.

/// Limit of the gradient's norm.
const MAX_NORM: f64 = 1.0;
const BETA: [f32; 2] = [0.9, 0.999];
const EPSILON: f32 = 1e-8;

/// The state of the optimiser.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Adam {
    pub(crate) means: Vec<f32>,
    pub(crate) squares: Vec<f32>,
    /// Powers of both decay rates.
    pub(crate) powers: [f32; 2],
}

impl Adam {
    pub(crate) fn new(weights: usize) -> Self {
        Adam {
            means: vec![0.0; weights],
            squares: vec![0.0; weights],
            powers: [1.0; 2],
        }
    }

    /// Moves `weights` against `gradient`.
    pub(crate) fn step(
        &mut self,
        weights: &mut [f32],
        gradient: &mut [f32],
        rate: f32,
        decay: f32,
    ) {
        let mut norm = 0.0;
        for (slope, weight) in gradient.iter_mut().zip(&*weights) {
            *slope += decay * weight;
            norm += f64::from(*slope) * f64::from(*slope);
        }
        let norm = norm.sqrt();
        let factor = if norm > MAX_NORM {
            (MAX_NORM / norm) as f32
        } else {
            1.0
        };
        for (power, beta) in self.powers.iter_mut().zip(BETA) {
            *power *= beta;
        }
        let [first, second] = self.powers.map(|power| 1.0 - power);
        let state = self.means.iter_mut().zip(&mut self.squares);
        for ((weight, slope), (mean, square)) in weights.iter_mut().zip(gradient).zip(state) {
            let slope = *slope * factor;
            *mean = BETA[0] * *mean + (1.0 - BETA[0]) * slope;
            *square = BETA[1] * *square + (1.0 - BETA[1]) * slope * slope;
            *weight -= rate * (*mean / first) / ((*square / second).sqrt() + EPSILON);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_step_has_the_length_of_the_learning_rate() {
        // Bias correction makes the first step rate x sign of the gradient, whatever its size (section 2.1).
        let mut weights = [1.0, -2.0, 0.5];
        let mut adam = Adam::new(3);
        adam.step(&mut weights, &mut [0.3, -0.0002, 0.0], 0.01, 0.0);
        for (weight, exact) in weights.iter().zip([0.99, -1.99, 0.5]) {
            assert!((weight - exact).abs() < 1e-5, "{weight} {exact}");
        }
    }

    #[test]
    fn a_parabola_is_descended_to_its_minimum() {
        let mut weights = [5.0f32, -3.0];
        let mut adam = Adam::new(2);
        for _ in 0..3_000 {
            let mut gradient = [weights[0] - 1.0, 4.0 * (weights[1] - 2.0)];
            adam.step(&mut weights, &mut gradient, 0.01, 0.0);
        }
        assert!((weights[0] - 1.0).abs() < 1e-3 && (weights[1] - 2.0).abs() < 1e-3);
    }
}
