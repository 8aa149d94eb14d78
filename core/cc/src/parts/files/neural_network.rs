//! Networks of several layers, dense and recurrent, with their state.
//!
//! A dense layer with input x computes f(x K + B), where f is the hyperbolic tangent, max(x, 0) or nothing; `lstm.rs`
//! defines recurrent ones. Single precision; only additions, multiplications and divisions in a fixed order, so that a
//! run is the same on every machine. Nothing is allocated after the construction.

use super::lstm::{LstmLayer, MAX_LAYERS, MAX_UNITS};
use crate::parts::Lstm;
use crate::parts::model_file::Model;
use crate::parts::neural_arithmetic::{add_product, tanh};

/// The kind of a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LayerKind {
    /// Sums without a function.
    Linear,
    /// Sums through the hyperbolic tangent.
    Tanh,
    /// The positive parts of sums.
    Relu,
    /// Cells with memory.
    Lstm,
}

enum Layer {
    Dense {
        /// One row for each input.
        kernel: Vec<f32>,
        bias: Vec<f32>,
        kind: LayerKind,
        output: Vec<f32>,
    },
    Lstm(LstmLayer),
}

impl Layer {
    fn read(
        model: &Model<'_>,
        index: usize,
        inputs: usize,
        kind: LayerKind,
    ) -> Result<Self, String> {
        let columns = model.shape(&format!("kernel{index}"), 2)?[1];
        let units = if kind == LayerKind::Lstm {
            columns / 4
        } else {
            columns
        };
        if !(1..=MAX_UNITS).contains(&units) {
            return Err(format!(
                "its layer {index} has {units} units, where 1 to {MAX_UNITS} are allowed"
            ));
        }
        if kind == LayerKind::Lstm {
            return LstmLayer::read(model, index, inputs, units).map(Layer::Lstm);
        }
        Ok(Layer::Dense {
            kernel: model.singles(&format!("kernel{index}"), &[inputs, units])?,
            bias: model.singles(&format!("bias{index}"), &[units])?,
            kind,
            output: vec![0.0; units],
        })
    }

    fn output(&self) -> &[f32] {
        match self {
            Layer::Dense { output, .. } => output,
            Layer::Lstm(layer) => &layer.output,
        }
    }

    fn step(&mut self, input: &[f32]) {
        let (kernel, bias, kind, output) = match self {
            Layer::Lstm(layer) => return layer.step(input),
            Layer::Dense {
                kernel,
                bias,
                kind,
                output,
            } => (kernel, bias, kind, output),
        };
        output.copy_from_slice(bias);
        add_product(output, input, kernel);
        match kind {
            // The hyperbolic tangent of something that is not a number would be a number.
            LayerKind::Tanh => output
                .iter_mut()
                .filter(|x| !x.is_nan())
                .for_each(|x| *x = tanh(*x)),
            LayerKind::Relu => output
                .iter_mut()
                .filter(|x| **x < 0.0)
                .for_each(|x| *x = 0.0),
            LayerKind::Linear | LayerKind::Lstm => {}
        }
    }
}

/// A network with its state.
pub struct Network {
    layers: Vec<Layer>,
}

impl Network {
    /// The network of these layers in `model`: arrays `kernel0`, `bias0`, `kernel1` ...
    ///
    /// # Errors
    /// No or too many layers, and arrays that are missing, superfluous, or inconsistent with each other or with the
    /// numbers of inputs and outputs.
    pub fn read(
        model: &Model<'_>,
        kinds: &[LayerKind],
        inputs: usize,
        outputs: usize,
    ) -> Result<Self, String> {
        if !(1..=MAX_LAYERS).contains(&kinds.len()) {
            return Err(format!(
                "its network has {} layers, where 1 to {MAX_LAYERS} are allowed",
                kinds.len()
            ));
        }
        let mut layers: Vec<Layer> = Vec::with_capacity(kinds.len());
        for (index, kind) in kinds.iter().enumerate() {
            let inputs = layers.last().map_or(inputs, |layer| layer.output().len());
            layers.push(Layer::read(model, index, inputs, *kind)?);
        }
        let network = Network { layers };
        let found = network.output().len();
        if found != outputs {
            return Err(format!(
                "its last layer has {found} outputs, where its action needs {outputs}"
            ));
        }
        if model.count() != 2 * kinds.len() {
            return Err(format!(
                "it has {} arrays, where its {} layers have {}",
                model.count(),
                kinds.len(),
                2 * kinds.len()
            ));
        }
        Ok(network)
    }

    /// Performs one step with the given inputs and returns the outputs.
    pub fn step(&mut self, inputs: &[f32]) -> &[f32] {
        for index in 0..self.layers.len() {
            let (before, rest) = self.layers.split_at_mut(index);
            rest[0].step(before.last().map_or(inputs, Layer::output));
        }
        self.output()
    }

    /// The outputs of the last step.
    pub fn output(&self) -> &[f32] {
        self.layers.last().map_or(&[], Layer::output)
    }
}

impl From<Lstm> for Network {
    fn from(lstm: Lstm) -> Self {
        let output = Layer::Dense {
            output: vec![0.0; lstm.bias.len()],
            kernel: lstm.weights,
            bias: lstm.bias,
            kind: LayerKind::Linear,
        };
        let layers = lstm.layers.into_iter().map(Layer::Lstm);
        Network {
            layers: layers.chain([output]).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::ModelWriter;

    fn writer() -> ModelWriter {
        ModelWriter::new("policy")
            .singles("kernel0", &[2, 3], &[1.0, -2.0, 0.5, 0.25, 1.0, -1.0])
            .singles("bias0", &[3], &[0.1, 0.0, -0.2])
            .singles("kernel1", &[3, 1], &[2.0, -1.0, 4.0])
            .singles("bias1", &[1], &[0.5])
    }

    fn outputs(first: LayerKind, inputs: &[f32]) -> f32 {
        let content = writer().finish();
        let kinds = [first, LayerKind::Linear];
        Network::read(&Model::parse(&content).unwrap(), &kinds, 2, 1)
            .unwrap()
            .step(inputs)[0]
    }

    #[test]
    fn dense_layers_by_hand() {
        // x K + B for x = (1, 2): 1 + 0.5 + 0.1, -2 + 2, 0.5 - 2 - 0.2.
        let sums = [1.6f32, 0.0, -1.7];
        let last = |x: [f32; 3]| 2.0 * x[0] - x[1] + 4.0 * x[2] + 0.5;
        for (kind, wanted) in [
            (LayerKind::Linear, last(sums)),
            (LayerKind::Tanh, last(sums.map(f32::tanh))),
            (LayerKind::Relu, last(sums.map(|x| x.max(0.0)))),
        ] {
            let found = outputs(kind, &[1.0, 2.0]);
            assert!((found - wanted).abs() < 1e-5, "{kind:?}: {found} {wanted}");
        }
    }

    #[test]
    fn a_recurrent_network_is_the_same_in_both_forms() {
        let content = crate::testing::example_files();
        let content = content
            .content(&crate::testing::example_file("muses"))
            .unwrap();
        let model = Model::parse(content).unwrap();
        let mut lstm = Lstm::new(&model, 11, 5).unwrap();
        let mut network = Network::from(Lstm::new(&model, 11, 5).unwrap());
        for step in 0..50u8 {
            let inputs: Vec<f32> = (0..11u8)
                .map(|k| f32::from(step % 9 * k % 7) / 7.0)
                .collect();
            let bits = |values: &[f32]| values.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
            assert_eq!(bits(lstm.step(&inputs)), bits(network.step(&inputs)));
        }
    }

    #[test]
    fn what_is_not_a_number_stays_none() {
        for kind in [LayerKind::Linear, LayerKind::Tanh, LayerKind::Relu] {
            assert!(outputs(kind, &[f32::NAN, 1.0]).is_nan(), "{kind:?}");
        }
    }

    #[test]
    fn layers_that_do_not_fit_are_refused() {
        let content = writer().finish();
        let model = Model::parse(&content).unwrap();
        let problem = |kinds: &[LayerKind], inputs, outputs| {
            Network::read(&model, kinds, inputs, outputs).err().unwrap()
        };
        let two = [LayerKind::Tanh, LayerKind::Linear];
        assert!(problem(&two, 3, 1).contains("[2, 3], where f32 [3, 3]"));
        assert!(problem(&two, 2, 5).contains("1 outputs, where its action needs 5"));
        assert!(problem(&two[..1], 2, 3).contains("4 arrays, where its 1 layers have 2"));
        assert!(problem(&[LayerKind::Tanh; 3], 2, 1).contains("lacks the array kernel2"));
        assert!(problem(&[], 2, 1).contains("0 layers"));
        assert!(problem(&[LayerKind::Tanh; 9], 2, 1).contains("9 layers"));
        assert!(problem(&[LayerKind::Lstm], 2, 1).contains("0 units"));
    }
}
