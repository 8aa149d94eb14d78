//! Operations on queues, with changes.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| narrows_net::testing::fuzz::queue_operations(data));
