//! Datagrams of our transport.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| narrows_tests::fuzz::messages(data));
