//! What may happen to a congestion control scheme.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| narrows_cc::testing::fuzz(data));
