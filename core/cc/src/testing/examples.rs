//! Models for trials of schemes that read files: a small rule table and four small networks, constructed by hand. They
//! are not good congestion control, but they keep a queue short, so that their behaviour can be verified.

use super::setup;
use crate::parts::neural_policy::ACTIONS;
use crate::testing::ModelWriter;
use crate::{Scheme, Setup};
use narrows_units::{FileRef, Files, Kind, Params, Value};

/// The parameters of `scheme` that name an example file.
pub fn example_file(scheme: &str) -> FileRef {
    FileRef {
        name: format!("{scheme}.safetensors"),
        sha256: format!("example-{scheme}"),
    }
}

/// The files that [`example_params`] name.
pub fn example_files() -> Files {
    let mut files = Files::default();
    let models = [
        ("remy", rules()),
        ("indigo", indigo()),
        ("muses", muses()),
        ("aurora", aurora()),
        ("policy", policy()),
    ];
    for (scheme, content) in models {
        files.insert(&example_file(scheme).sha256, content);
    }
    files
}

/// The defaults of `scheme`, with the example file if it needs one.
///
/// # Panics
/// If it needs anything else.
pub fn example_params(scheme: &Scheme) -> Params {
    let needed = scheme.params.iter().filter(|spec| spec.kind == Kind::File);
    let given = needed.map(|spec| (spec.name.to_owned(), Value::File(example_file(scheme.name))));
    Params::resolve(scheme.params, given).expect("defaults resolve")
}

/// [`setup`] with [`example_files`].
pub fn example_setup() -> Setup {
    Setup {
        files: example_files(),
        ..setup()
    }
}

/// Six rules: by the spacing of arrivals (below 0.5 ms or not) and by the round trip over the smallest one (below 1.1,
/// below 1.5, or not).
fn rules() -> Vec<u8> {
    const END: f64 = 163_840.0;
    const RATIOS: [f64; 4] = [0.0, 1.1, 1.5, END];
    let (mut lower, mut upper) = (vec![], vec![]);
    for (low, high) in [(0.0, 0.5), (0.5, END)] {
        for ratio in RATIOS.windows(2) {
            lower.extend([0.0, low, ratio[0], 0.0]);
            upper.extend([END, high, ratio[1], END]);
        }
    }
    ModelWriter::new("remy")
        .doubles("lower", &[6, 4], &lower)
        .doubles("upper", &[6, 4], &upper)
        .integers("increment", &[6], &[10, 4, 2, 12, 4, 2])
        .doubles("multiple", &[6], &[0.95, 0.9, 0.8, 0.9, 0.9, 0.8])
        .doubles("spacing_ms", &[6], &[0.05, 0.1, 0.2, 0.3, 0.5, 1.0])
        .finish()
}

/// A layer of two units without memory: each is tanh(tanh(factor times one of its inputs)).
fn layer(writer: ModelWriter, index: usize, rows: usize, heard: [(usize, f32); 2]) -> ModelWriter {
    // Blocks i, j, f, o of two columns each. Gates that are wide open, and a forget gate that is shut.
    const GATE: f32 = 20.0;
    let bias = [GATE, GATE, 0.0, 0.0, -GATE, -GATE, GATE, GATE];
    let mut kernel = vec![0.0; (rows + 2) * 8];
    for (unit, (row, factor)) in heard.into_iter().enumerate() {
        kernel[row * 8 + 2 + unit] = factor;
    }
    writer
        .singles(&format!("bias{index}"), &[8], &bias)
        .singles(&format!("kernel{index}"), &[rows + 2, 8], &kernel)
}

/// Scores of the actions from two units, the first of which receives the delay, the second the action "twice". With the
/// output h of the first: halve above 0.7, ten less above 0.4, hold above 0.2, else ten more; and double as long as the
/// delay is negligible and the window was doubled before.
fn output(writer: ModelWriter) -> ModelWriter {
    writer
        .singles("output_bias", &[ACTIONS], &[-2.0, -0.6, -0.2, 0.0, -1.0])
        .singles(
            "output_weights",
            &[2, ACTIONS],
            &[4.0, 2.0, 1.0, 0.0, -5.0, 0.0, 0.0, 0.0, 0.0, 2.0],
        )
}

fn indigo() -> Vec<u8> {
    // A delay of 10 ms is an input of 0.05 and sets the first unit to 0.64.
    let writer = layer(ModelWriter::new("indigo"), 0, 9, [(0, 20.0), (8, 5.0)]);
    output(writer).finish()
}

fn muses() -> Vec<u8> {
    // A delay of a tenth of the minimum RTT sets the first unit to 0.36, which becomes 0.62 after a second layer.
    let writer = layer(ModelWriter::new("muses"), 0, 11, [(1, 4.0), (10, 5.0)]);
    let writer = layer(writer, 1, 2, [(0, 2.5), (1, 2.5)]);
    output(writer).finish()
}

/// The rate grows by up to 1 % per step, and falls where the mean RTT is above 1.25 times the least one, or grows, and
/// where nothing is acknowledged.
fn aurora() -> Vec<u8> {
    // The first unit receives inflation and latency ratio of the last step, and the second shows that the ratio is 0.
    const LAST: usize = 27;
    let mut kernel = vec![0.0; 30 * 2];
    kernel[LAST * 2] = 4.0;
    kernel[(LAST + 1) * 2] = 1.0;
    kernel[(LAST + 1) * 2 + 1] = -10.0;
    ModelWriter::new("aurora")
        .policy(
            r#"{"observation": "aurora", "step": {"rule": "rtt", "amount": 0.5}, "action": "rate-factor",
                "layers": [{"kind": "dense", "activation": "tanh"}, {"kind": "dense", "activation": "none"}]}"#,
        )
        .singles("kernel0", &[30, 2], &kernel)
        .singles("bias0", &[2], &[-1.25, 5.0])
        .singles("kernel1", &[2, 1], &[-1.6, -1.2])
        .singles("bias1", &[1], &[-1.2])
        .finish()
}

/// The window grows by up to 2^0.3 per step, and shrinks where the queueing delay is above 7.5 ms.
fn policy() -> Vec<u8> {
    // The first unit receives the delay in units of 200 ms; the second is constant.
    let mut kernel = vec![0.0; 9 * 2];
    kernel[0] = 4.0;
    ModelWriter::new("policy")
        .policy(
            r#"{"observation": "indigo", "step": {"rule": "ack", "amount": 10}, "action": "window-factor",
                "layers": [{"kind": "dense", "activation": "tanh"}, {"kind": "dense", "activation": "none"}]}"#,
        )
        .singles("kernel0", &[9, 2], &kernel)
        .singles("bias0", &[2], &[0.0, 1.0])
        .singles("kernel1", &[2, 1], &[-2.0, 0.4])
        .singles("bias1", &[1], &[0.0])
        .finish()
}
