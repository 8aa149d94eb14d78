//! The fuzz targets on random bytes, so that they run wherever tests run.

use narrows_tests::{captures, fuzz, worlds};
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
    fn any_capture_is_read_or_refused(data in prop::collection::vec(any::<u8>(), 0..600)) {
        captures::captures(&data);
    }

    #[test]
    fn packets_with_any_changes_are_measured(
        link in 0u8..2,
        changes in prop::collection::vec((0usize..60, any::<u8>()), 0..40),
    ) {
        // Data and acknowledgements of TCP over IPv4, some bytes of which are changed.
        let mut data = vec![1 + 8 * link];
        for number in 0..20u8 {
            let (from, to) = if number % 3 == 2 { (2, 1) } else { (1, 2) };
            data.extend([52, 1, 0x45, 0, 5, 220, 0, number, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, from, 10, 0, 0, to]);
            data.extend([0, from, 0, to, 0, 0, number, 0, 0, 0, number, 0, 0x80, 0x18, 1, 1, 0, 0, 0, 0]);
            data.extend([1, 1, 8, 10, 0, 0, 0, number, 0, 0, 0, 9]);
        }
        for (place, value) in changes {
            let place = (place * 7 + usize::from(value)) % data.len();
            data[place] ^= value;
        }
        captures::captures(&data);
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
    // The rest has contradictory parameters, and is rejected with one sentence.
    assert!(simulated >= 36, "{simulated} of 40");
}
