//! How each program is compared with its native scheme: paths, tolerances, parameters to try and wrong
//! constants to plant.

use crate::path::Path;

/// How one program is compared.
pub struct Case {
    /// Name of program and native scheme.
    pub name: &'static str,
    /// Packets by which windows may differ ...
    pub packets: f64,
    /// ... and this share of the window.
    pub share: f64,
    /// Values of parameters to try besides the defaults.
    pub settings: &'static [&'static [(&'static str, &'static str)]],
    /// Text of the program, and what to put in its place; each must be found.
    pub mutations: &'static [(&'static str, &'static str)],
}

/// Programs that have no native scheme yet.
pub const WITHOUT_NATIVE: &[&str] = &[];

const PATH: Path = Path {
    name: "",
    spacing: 1000,
    rtt: 50_000,
    buffer: 50,
    mark: u64::MAX,
    loss: 0.0,
    thinning: 2,
    jitter: 0,
    trouble: 0.0,
};

/// Paths on which they are compared: queues that overflow, losses at random, few and many packets in
/// flight, acknowledgements of one, two and several packets, delays that vary, marks, applications that
/// limit themselves, timeouts and losses that were none.
pub const PATHS: &[Path] = &[
    Path {
        name: "one bdp",
        ..PATH
    },
    Path {
        name: "short and deep",
        rtt: 10_000,
        buffer: 200,
        thinning: 1,
        ..PATH
    },
    Path {
        name: "long and shallow",
        rtt: 200_000,
        spacing: 200,
        buffer: 100,
        ..PATH
    },
    Path {
        name: "random losses",
        loss: 0.002,
        jitter: 2000,
        ..PATH
    },
    Path {
        name: "stretched",
        rtt: 100_000,
        spacing: 300,
        buffer: 300,
        thinning: 8,
        jitter: 500,
        ..PATH
    },
    Path {
        name: "marks",
        mark: 20,
        buffer: 1000,
        ..PATH
    },
    Path {
        name: "trouble",
        trouble: 0.003,
        loss: 0.0005,
        jitter: 300,
        ..PATH
    },
];

/// One line for each program.
pub const CASES: &[Case] = &[
    // Whole packets are kept after a reduction in both, growth is exact; the native window is in bytes, and
    // what is left over at the threshold may come one packet earlier or later.
    Case {
        name: "exp",
        packets: 1.0,
        share: 0.0,
        settings: &[&[("growth", "2.5"), ("beta", "0.6")]],
        mutations: &[("Q16(0.75)", "Q16(0.74)"), ("Q16(3.0)", "Q16(2.0)")],
    },
    // The kernel keeps whole packets, the native scheme the bytes between them: each reduction may take one
    // packet more, of which the next ones keep 7/8, so that up to 8 reductions add up in the worst case.
    Case {
        name: "scalable",
        packets: 2.0,
        share: 0.03,
        settings: &[
            &[("legacy_window", "5000")],
            &[("gain", "0.02"), ("beta", "0.8")],
        ],
        mutations: &[("Q16(0.875)", "Q16(0.8)"), ("Q16(0.01)", "Q16(0.02)")],
    },
];
