//! Cost of a decision of a recurrent network, for networks of the sizes that have been published.

use crate::repeat;
use narrows_cc::parts::Lstm;
use narrows_cc::parts::model_file::Model;
use narrows_cc::testing::ModelWriter;
use narrows_units::Stream;

/// Layers, units, and inputs: Indigo's three sizes, and Muses.
const SIZES: [(usize, usize, usize); 4] = [(1, 32, 9), (1, 128, 9), (2, 256, 9), (2, 256, 11)];
const SCORES: usize = 5;

/// A network of the size with small random weights, as trained ones have.
fn network(layers: usize, units: usize, inputs: usize) -> Lstm {
    let mut chance = Stream::new(1, "weights");
    let mut weights = |count: usize| -> Vec<f32> {
        (0..count)
            .map(|_| chance.uniform() as f32 * 0.2 - 0.1)
            .collect()
    };
    let mut writer = ModelWriter::new("bench")
        .singles("output_bias", &[SCORES], &weights(SCORES))
        .singles("output_weights", &[units, SCORES], &weights(units * SCORES));
    for layer in 0..layers {
        let rows = units + if layer == 0 { inputs } else { units };
        writer = writer
            .singles(&format!("bias{layer}"), &[4 * units], &weights(4 * units))
            .singles(
                &format!("kernel{layer}"),
                &[rows, 4 * units],
                &weights(rows * 4 * units),
            );
    }
    let content = writer.finish();
    let model = Model::parse(&content).expect("what was written can be read");
    Lstm::new(&model, inputs, SCORES).expect("the parts fit")
}

/// Prints the time of a decision.
///
/// # Panics
/// Never: the networks are made here.
pub fn table(runs: usize) {
    println!("networks             us per decision");
    for (layers, units, inputs) in SIZES {
        let mut network = network(layers, units, inputs);
        let features: Vec<f32> = (0..inputs).map(|index| index as f32 * 0.05).collect();
        let decisions = 20_000_000 / (layers * units * units + 1_000);
        let spread = repeat(
            runs,
            || {
                (0..decisions)
                    .map(|_| network.step(std::hint::black_box(&features))[0])
                    .sum::<f32>()
            },
            |_, seconds| seconds * 1e6 / decisions as f64,
        );
        println!(
            "{:20} {}",
            format!("{layers} x {units}, {inputs} inputs"),
            spread.show(2)
        );
    }
    println!();
}
