//! The measuring tunnel: datagrams, callers who lie, logs.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| match data.split_first() {
    Some((0..=84, rest)) => narrows_tests::fuzz::tunnel_datagrams(rest),
    Some((85..=169, rest)) => narrows_tests::fuzz::tunnel_liars(rest),
    Some((_, rest)) => narrows_tests::fuzz::tunnel_logs(rest),
    None => {}
});
