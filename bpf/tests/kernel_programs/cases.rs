//! The comparison of each program with its native scheme: paths, tolerances, parameters to try and wrong
//! constants to plant.

use crate::path::Path;

/// The comparison of one program.
pub(crate) struct Case {
    /// Name of program and native scheme.
    pub(crate) name: &'static str,
    /// Values of parameters that only the native scheme has.
    pub(crate) native: &'static [(&'static str, &'static str)],
    /// Packets by which windows may differ ...
    pub(crate) packets: f64,
    /// ... and this share of the window.
    pub(crate) share: f64,
    /// Share of the pacing rate by which it may differ, for programs that set one.
    pub(crate) pacing: f64,
    /// Share of the events of a path at which they may differ by more: a decision at a threshold may differ if it is
    /// within rounding, and the states agree again only after the next decision.
    pub(crate) apart: f64,
    /// Paths on which they are not compared; a comment gives the reason.
    pub(crate) except: &'static [&'static str],
    /// Values of parameters to try in addition to the defaults.
    pub(crate) settings: &'static [&'static [(&'static str, &'static str)]],
    /// Text of the program, and its replacement; the comparison must detect each.
    pub(crate) mutations: &'static [(&'static str, &'static str)],
}

/// Defaults of most of them.
const CASE: Case = Case {
    name: "",
    native: &[],
    packets: 2.0,
    share: 0.0,
    pacing: 0.0,
    apart: 0.0,
    except: &[],
    settings: &[],
    mutations: &[],
};

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

/// Paths on which they are compared: overflowing queues, random losses, few and many packets in flight,
/// acknowledgements of one, two and several packets, varying delays, marks, application-limited senders, timeouts and
/// spurious losses.
pub(crate) const PATHS: &[Path] = &[
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
        name: "trouble on a long path",
        rtt: 200_000,
        spacing: 200,
        buffer: 500,
        trouble: 0.002,
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
pub(crate) const CASES: &[Case] = &[
    // Whole packets are kept after a reduction in both, growth is exact; the native window is in bytes, and the
    // remainder at the threshold may add a packet one packet earlier or later.
    Case {
        name: "exp",
        packets: 1.0,
        settings: &[&[("growth", "2.5"), ("beta", "0.6")]],
        mutations: &[("Q16(0.75)", "Q16(0.74)"), ("Q16(3.0)", "Q16(2.0)")],
        ..CASE
    },
    // The kernel keeps whole packets, the native scheme also fractions in bytes: each reduction may take one packet
    // more, of which the next ones keep 7/8, so that up to 8 reductions add up in the worst case.
    Case {
        name: "scalable",
        packets: 2.0,
        share: 0.03,
        settings: &[
            &[("legacy_window", "5000")],
            &[("gain", "0.02"), ("beta", "0.8")],
        ],
        mutations: &[("Q16(0.875)", "Q16(0.8)"), ("Q16(0.01)", "Q16(0.02)")],
        ..CASE
    },
    // Growth is the same up to the interpolation (0.1 % of the growth of an epoch); the program counts fractions of
    // packets, but shows whole ones. With the table, growth jumps by a packet per round trip when the window passes a
    // row, which may happen a round trip apart in the two.
    Case {
        name: "highspeed",
        packets: 3.0,
        share: 0.01,
        settings: &[&[("lookup", "table")], &[("max_ssthresh", "50")]],
        mutations: &[
            (
                "row_of(tp, ca).increase, acked",
                "row_of(tp, ca).increase / 2, acked",
            ),
            ("Q16_ONE - row_of", "Q16_ONE + 3000 - row_of"),
        ],
        ..CASE
    },
    // Whole packets in both; growth is credited when a whole packet is earned, in the native scheme at the current
    // rate, so that a packet may be added earlier or later after each of several reductions. Beyond the last maximum
    // the distance from it grows by a third per round trip, and with it a difference.
    Case {
        name: "bic",
        packets: 4.0,
        share: 0.04,
        settings: &[
            &[("ack_ratio", "true")],
            &[("max_increment", "32"), ("fast_convergence", "false")],
        ],
        mutations: &[
            ("Q16(0.7998046875)", "Q16(0.75)"),
            ("#define PARTS 4", "#define PARTS 2"),
            ("#define UNKNOWN 20", "#define UNKNOWN 10"),
            ("PARAM(max_increment, 16)", "PARAM(max_increment, 8)"),
        ],
        ..CASE
    },
    // Both work on the same RTTs in us; windows differ by the fraction that the program does not show, and by a
    // packet per round trip in which the backlog is within rounding of a threshold.
    Case {
        name: "vegas",
        packets: 2.0,
        settings: &[
            &[("alpha", "10"), ("beta", "20"), ("gamma", "5")],
            &[("drain", "false")],
        ],
        mutations: &[
            ("Q16(2.0));\nPARAM(beta", "Q16(3.0));\nPARAM(beta"),
            ("PARAM(beta, Q16(4.0))", "PARAM(beta, Q16(6.0))"),
            ("PARAM(gamma, Q16(1.0))", "PARAM(gamma, Q16(30.0))"),
        ],
        ..CASE
    },
    // As Reno, whose credit for the next packet is counted in packets here and in bytes there; fractions of
    // a window after a reduction are not shown.
    Case {
        name: "veno",
        packets: 3.0,
        share: 0.02,
        settings: &[&[("threshold", "10"), ("random_kept", "0.9")]],
        mutations: &[
            ("Q16(3.0)", "Q16(30.0)"),
            ("Q16(0.8)", "Q16(0.7)"),
            ("2 * tp->snd_cwnd :", "tp->snd_cwnd :"),
        ],
        ..CASE
    },
    // The estimate is rounded down to whole packets in both; the filters round to 2^-16 packets per second.
    Case {
        name: "westwood",
        packets: 2.0,
        share: 0.01,
        settings: &[&[("repair", "half")], &[("interval", "200000000")]],
        mutations: &[
            (
                "7 * now->twice + now->once) / 8",
                "3 * now->twice + now->once) / 4",
            ),
            ("50000", "500000"),
        ],
        ..CASE
    },
    // Growth is computed from delays rounded to 1/256 us, alpha and beta to 2^-16: below 0.1 % each; with up to ten
    // packets of growth per round trip, windows may differ by one round trip's growth near a step of alpha.
    Case {
        name: "illinois",
        packets: 2.0,
        share: 0.01,
        settings: &[
            &[("alpha_max", "5"), ("theta", "2")],
            &[("beta_max", "0.6"), ("window_threshold", "50")],
        ],
        mutations: &[
            ("Q16(10.0)", "Q16(8.0)"),
            ("Q16(0.3)", "Q16(0.5)"),
            ("PARAM(beta_min, Q16(0.125))", "PARAM(beta_min, Q16(0.2))"),
            ("largest / 100", "largest / 20"),
            ("largest / 10,", "largest / 5,"),
            ("largest * 8 / 10", "largest * 6 / 10"),
        ],
        ..CASE
    },
    // Growth in whole packets, backlogs with 2^-16 packets; if a backlog is at the threshold, one reduces the window a
    // round trip before the other.
    Case {
        name: "yeah",
        packets: 3.0,
        share: 0.02,
        apart: 0.05,
        settings: &[
            &[("alpha", "40"), ("rho", "4")],
            &[("delta", "0.2"), ("phi", "4"), ("zeta", "3")],
        ],
        mutations: &[
            ("PARAM(alpha, Q16(80.0))", "PARAM(alpha, Q16(60.0))"),
            ("Q16(0.125)", "Q16(0.25)"),
            ("Q16(8.0)", "Q16(2.0)"),
            ("SCALABLE 100", "SCALABLE 50"),
            ("PARAM(rho, 16)", "PARAM(rho, 2)"),
        ],
        ..CASE
    },
    // Growth is computed in steps of 2^-16; the throughput of an epoch is rounded to 1/256 packets per second, and
    // decides whether to halve if it has changed by a fifth.
    Case {
        name: "htcp",
        packets: 2.0,
        share: 0.02,
        settings: &[
            &[("bandwidth_switch", "false"), ("rtt_scaling", "false")],
            &[("whole_factor", "true"), ("max_rtt_step", "5000000")],
        ],
        mutations: &[
            ("#define LOW_SPEED 1000000", "#define LOW_SPEED 1500000"),
            (
                "#define REFERENCE_RTT 100000",
                "#define REFERENCE_RTT 50000",
            ),
            ("BETA_HIGH Q16(0.8)", "BETA_HIGH Q16(0.7)"),
            ("* 19 / 20", "* 10 / 20"),
            ("10 * over", "5 * over"),
            ("5 * change", "50 * change"),
        ],
        ..CASE
    },
    // rho and 2^rho are rounded to 2^-16, which in slow start is multiplied by the packets of a round.
    Case {
        name: "hybla",
        packets: 2.0,
        share: 0.01,
        settings: &[
            &[("rtt0", "30000000"), ("beta", "0.7")],
            &[("linux_init", "true")],
        ],
        mutations: &[
            ("PARAM(rtt0, 25000)", "PARAM(rtt0, 20000)"),
            ("PARAM(beta, Q16(0.5))", "PARAM(beta, Q16(0.55))"),
            ("n <= 12", "n <= 1"),
        ],
        ..CASE
    },
    // Time on the curve is rounded to 61 us and the plateau to 2^-16 packets; where growth is steep a window may be
    // ahead by its growth between two acknowledgements.
    Case {
        name: "cubic2008",
        packets: 2.0,
        share: 0.02,
        settings: &[
            &[
                ("max_increment", "16"),
                ("initial_ssthresh", "100"),
                ("initial_growth", "0.02"),
            ],
            &[
                ("c", "4"),
                ("fast_convergence", "false"),
                ("tcp_friendliness", "false"),
            ],
        ],
        mutations: &[
            ("Q16(0.4)", "Q16(0.5)"),
            ("Q16(0.8)", "Q16(0.75)"),
            ("Q16(0.05)", "Q16(0.1)"),
            ("#define SLOWEST 100", "#define SLOWEST 1"),
            ("3 * (Q16_ONE - param_beta)", "6 * (Q16_ONE - param_beta)"),
        ],
        ..CASE
    },
    // Alpha is exact to 2^-32, the window to a packet.
    Case {
        name: "dctcp",
        packets: 2.0,
        share: 0.01,
        settings: &[
            &[("arithmetic", "linux")],
            &[("g", "0.25"), ("initial_alpha", "0")],
        ],
        mutations: &[
            ("Q16(0.0625)", "Q16(0.125)"),
            (
                "PARAM(initial_alpha, Q16(1.0))",
                "PARAM(initial_alpha, Q16(0.5))",
            ),
            ("#define LINUX_SHIFT 4", "#define LINUX_SHIFT 3"),
            ("<< 16) / 2, &ca", "<< 16) / 3, &ca"),
        ],
        ..CASE
    },
    // The native scheme uses RTTs too, because a program cannot measure one-way delays.
    Case {
        name: "ledbat",
        native: &[("delay", "round-trip")],
        packets: 2.0,
        share: 0.01,
        settings: &[
            &[("target", "20000000"), ("gain", "0.5")],
            &[
                ("init_cwnd", "10"),
                ("min_cwnd", "4"),
                ("allowed_increase", "8"),
            ],
        ],
        mutations: &[
            ("PARAM(target, 100000)", "PARAM(target, 25000)"),
            ("PARAM(gain, Q16(1.0))", "PARAM(gain, Q16(0.9))"),
            (
                "PARAM(allowed_increase, Q16(1.0))",
                "PARAM(allowed_increase, Q16(9.0))",
            ),
            ("PARAM(init_cwnd, 2)", "PARAM(init_cwnd, 10)"),
            ("window / 2,", "window / 3,"),
        ],
        ..CASE
    },
    // One-way delays and RTTs are equivalent on these paths, whose return path has no queue. A reaction halves the
    // window: if the delay is at the threshold, one reacts an acknowledgement before the other.
    Case {
        name: "lp",
        packets: 2.0,
        share: 0.02,
        apart: 0.05,
        settings: &[&[("threshold", "0.3"), ("inference", "1")]],
        mutations: &[
            ("Q16(0.15)", "Q16(0.25)"),
            ("Q16(3.0)", "Q16(6.0)"),
            (
                "now->smoothed / 8 + ((u64)rtt << 8) / 8",
                "now->smoothed / 2 + ((u64)rtt << 8) / 2",
            ),
        ],
        ..CASE
    },
    // The window is a function of the previous window and of RTTs, both known to 2^-16. If the application ends slow
    // start within a fraction of a packet of its threshold (as on one path, after a timeout), the program has reached
    // its integer part but the native scheme has not reached it: they then set the window in different ones of two
    // round trips for the rest of the connection.
    Case {
        name: "fast",
        packets: 2.0,
        share: 0.01,
        except: &["trouble on a long path"],
        settings: &[&[("alpha", "50"), ("gamma", "0.8")], &[("alpha", "0")]],
        mutations: &[
            ("PARAM(alpha, 20)", "PARAM(alpha, 30)"),
            ("20 << 16", "30 << 16"),
            ("PARAM(gamma, Q16(0.5))", "PARAM(gamma, Q16(0.25))"),
            ("Q16(12.0)", "Q16(48.0)"),
        ],
        ..CASE
    },
    // The model is the same up to rounding. The data in flight when a packet was sent are computed from the data
    // delivered and lost since, which misses losses that are not known yet: up to three packets. A probe that ends an
    // acknowledgement earlier or later changes the rate until the other one ends as well.
    Case {
        name: "bbr3",
        packets: 3.0,
        share: 0.02,
        pacing: 0.005,
        apart: 0.05,
        settings: &[
            &[
                ("probe_rtt_interval", "1500000000"),
                ("min_rtt_window", "3000000000"),
            ],
            &[("startup_gain", "2"), ("headroom", "0.3")],
            &[("loss_threshold", "0.05"), ("beta", "0.6")],
        ],
        mutations: &[
            ("Q16(2.7734375)", "Q16(2.6)"),
            ("Q16(0.01953125)", "Q16(0.2)"),
            ("Q16(0.703125)", "Q16(0.8)"),
            ("Q16(0.1484375)", "Q16(0.3)"),
            ("5000000", "6000000"),
            ("DRAIN_GAIN Q16(0.34375)", "DRAIN_GAIN Q16(0.5)"),
            ("DOWN_GAIN Q16(0.90625)", "DOWN_GAIN Q16(0.75)"),
            ("UP_GAIN Q16(1.25)", "UP_GAIN Q16(1.3)"),
            ("UP_CWND_GAIN Q16(2.25)", "UP_CWND_GAIN Q16(1.5)"),
            ("#define BASE_WAIT 2000000", "#define BASE_WAIT 3000000"),
            ("#define MAX_ROUNDS 63", "#define MAX_ROUNDS 40"),
            ("#define MARGIN 990000", "#define MARGIN 1000000"),
        ],
        ..CASE
    },
    // RTTs are in us, and minima over a time forget a 32nd of it later than natively, where it is a 256th: the window
    // oscillates around its target, and may turn an acknowledgement earlier or later.
    Case {
        name: "copa",
        packets: 3.0,
        share: 0.02,
        pacing: 0.03,
        apart: 0.05,
        settings: &[
            &[
                ("mode", "constant"),
                ("delta", "0.1"),
                ("velocity", "paper"),
            ],
            &[("halving", "reference")],
            &[
                ("mode", "constant"),
                ("delta", "1"),
                ("velocity", "agreement"),
                ("rtt", "smoothed"),
                ("pacing_gain", "1"),
                ("beyond", "1"),
            ],
        ],
        mutations: &[
            ("PARAM(delta, Q16(0.5))", "PARAM(delta, Q16(0.4))"),
            (
                "PARAM(pacing_gain, Q16(2.0))",
                "PARAM(pacing_gain, Q16(1.9))",
            ),
            ("BRAKE_KEEPS Q16(0.7)", "BRAKE_KEEPS Q16(0.5)"),
            ("#define GAIN 16", "#define GAIN 8"),
            ("#define NEARLY 10", "#define NEARLY 3"),
            ("#define PAPER_ROUNDS 3", "#define PAPER_ROUNDS 2"),
            ("span / 2)", "span)"),
            ("ca->inverse + Q16_ONE", "ca->inverse + 2 * Q16_ONE"),
            ("3 * (ca->balance", "2 * (ca->balance"),
        ],
        ..CASE
    },
];
