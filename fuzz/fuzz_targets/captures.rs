//! Captures of other tools.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| narrows_tests::captures::captures(data));
