//! The fuzz targets on random bytes, so that they run wherever tests run.

use narrows_tests::{fuzz, worlds};
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn any_cell_is_refused_or_built(data in prop::collection::vec(any::<u8>(), 1..60)) {
        fuzz::cells(&data);
    }

    #[test]
    fn any_bytes_are_a_message_or_refused(
        kind in 0u8..4,
        mut data in prop::collection::vec(prop_oneof![Just(0u8), any::<u8>()], 0..200),
    ) {
        data.insert(0, kind);
        fuzz::messages(&data);
    }

    #[test]
    fn any_bytes_are_a_datagram_of_the_tunnel_or_refused(
        kind in 0u8..7,
        mut data in prop::collection::vec(prop_oneof![Just(0u8), any::<u8>()], 0..120),
    ) {
        data.insert(0, kind);
        fuzz::tunnel_datagrams(&data);
    }

    #[test]
    fn any_log_of_the_tunnel_is_read_or_refused(data in prop::collection::vec(any::<u8>(), 0..40)) {
        fuzz::tunnel_logs(&data);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn a_liar_with_the_secret_does_not_confuse_a_tunnel(data in prop::collection::vec(any::<u8>(), 0..2_000)) {
        fuzz::tunnel_liars(&data);
    }

    #[test]
    fn any_file_is_refused_or_read(data in prop::collection::vec(any::<u8>(), 0..30)) {
        fuzz::records(&data);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn any_world_ends_with_a_record_that_is_believed(data in prop::collection::vec(any::<u8>(), 40..200)) {
        let _ = worlds::worlds(&data);
    }
}

#[test]
fn many_worlds_are_simulated() {
    // Bytes of a linear congruential generator (Numerical Recipes, "quick and dirty").
    let mut state = 1u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    let worlds = (0..40).map(|_| (0..200).map(|_| next()).collect::<Vec<u8>>());
    let simulated = worlds.filter(|data| worlds::worlds(data)).count();
    // The rest has parameters that do not fit each other, and is refused in one sentence.
    assert!(simulated >= 36, "{simulated} of 40");
}
