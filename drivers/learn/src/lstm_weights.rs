//! The weights of a recurrent network in training.

use crate::model_file;
use crate::trained_scheme::{ACTIONS, Subject};
use narrows_units::Stream;
use safetensors::Dtype;
use safetensors::tensor::TensorView;

/// Shape of a network of one recurrent layer: `inputs` numbers, `units` cells, scores of the actions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) inputs: usize,
    pub(crate) units: usize,
}

impl Shape {
    /// Lengths of kernel, bias, output weights and output bias.
    pub(crate) fn lengths(self) -> [usize; 4] {
        let Shape { inputs, units } = self;
        [
            (inputs + units) * 4 * units,
            4 * units,
            units * ACTIONS,
            ACTIONS,
        ]
    }

    /// Splits weights, or their gradient, into kernel, bias, output weights and output bias.
    pub(crate) fn split(self, weights: &[f32]) -> [&[f32]; 4] {
        let mut rest = weights;
        self.lengths().map(|length| {
            let (part, behind) = rest.split_at(length);
            rest = behind;
            part
        })
    }

    /// Initial weights: uniform within the bounds of Glorot and Bengio 2010, biases 0.
    pub(crate) fn initial(self, stream: &mut Stream) -> Vec<f32> {
        let [kernel, bias, output, output_bias] = self.lengths();
        let Shape { inputs, units } = self;
        let mut uniform = |count: usize, ends: usize| -> Vec<f32> {
            let bound = (6.0 / ends as f64).sqrt();
            let number = |_| ((2.0 * stream.uniform() - 1.0) * bound) as f32;
            (0..count).map(number).collect()
        };
        let mut weights = uniform(kernel, inputs + units + 4 * units);
        weights.extend(vec![0.0; bias]);
        weights.extend(uniform(output, units + ACTIONS));
        weights.extend(vec![0.0; output_bias]);
        weights
    }

    /// The content of a model file of these weights; the gains of the features become part of the kernel. `notes` are
    /// added to the metadata.
    pub(crate) fn model(
        self,
        weights: &[f32],
        subject: &Subject,
        notes: &[(String, String)],
    ) -> Vec<u8> {
        let [kernel, bias, output, output_bias] = self.split(weights);
        let Shape { inputs, units } = self;
        let mut kernel = kernel.to_vec();
        for (row, gain) in kernel.chunks_exact_mut(4 * units).zip(subject.gains) {
            for weight in row {
                *weight *= gain;
            }
        }
        let arrays = [
            ("bias0", vec![4 * units], bias),
            ("kernel0", vec![inputs + units, 4 * units], &kernel),
            ("output_bias", vec![ACTIONS], output_bias),
            ("output_weights", vec![units, ACTIONS], output),
        ];
        let bytes: Vec<Vec<u8>> = arrays
            .iter()
            .map(|(_, _, values)| {
                values
                    .iter()
                    .flat_map(|value| value.to_le_bytes())
                    .collect()
            })
            .collect();
        let views = arrays.iter().zip(&bytes).map(|((name, shape, _), bytes)| {
            let view = TensorView::new(Dtype::F32, shape.clone(), bytes);
            (*name, view.expect("as many numbers as the shape has"))
        });
        model_file::encode(views, subject.scheme, notes)
    }
}
