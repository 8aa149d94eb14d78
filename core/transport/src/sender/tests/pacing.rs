//! A sender whose packets wait only for the pacer need not process acknowledgements earlier.

use super::*;
use narrows_units::Kind;

/// Departure times of packets if acknowledgements wait for packets that are due soon, and how many waited.
fn sent(scheme: &str, lost: &'static [u64], patience: Span) -> (Vec<(Time, Data)>, usize) {
    let config = Config {
        pacing: PacingChoice::Window,
        ..Config::default()
    };
    let mut rig = Rig::with_config(scheme, &config).losing(lost);
    rig.patience = Some(patience);
    // Long enough for hundreds of packets, and short enough for schemes that double their window for ever.
    rig.run(210);
    (rig.sends, rig.waited)
}

#[test]
fn acknowledgements_heard_late_move_no_paced_packet() {
    let mut all = 0;
    for scheme in narrows_cc::schemes::ALL {
        // Some need a model.
        if scheme.params.iter().any(|spec| spec.kind == Kind::File) {
            continue;
        }
        for lost in [&[][..], &[20, 60, 61, 150]] {
            let (prompt, none) = sent(scheme.name, lost, Span::ZERO);
            assert_eq!(none, 0);
            for patience in [Span::from_us(250), Span::from_ms(1000)] {
                let (lazy, waited) = sent(scheme.name, lost, patience);
                all += waited;
                assert_eq!(lazy, prompt, "{} with {patience} of patience", scheme.name);
            }
        }
    }
    assert!(all > 1000, "only {all} acknowledgements had to wait");
}
