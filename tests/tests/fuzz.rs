//! The fuzz targets on random bytes, so that they run wherever tests run.

use narrows_tests::fuzz;
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
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn any_file_is_refused_or_read(data in prop::collection::vec(any::<u8>(), 0..30)) {
        fuzz::records(&data);
    }
}
