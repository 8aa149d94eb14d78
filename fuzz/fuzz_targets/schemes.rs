//! Events of a congestion control scheme, in any order.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| narrows_cc::testing::fuzz(data));
