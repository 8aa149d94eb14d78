//! The rate keeps the contract of `narrows_net::RateServer`, and is the sawtooth that its file describes.

use narrows_net::ElementSetup;
use narrows_net::testing::check_rate_entry;
use narrows_units::{Params, Time};
use own_rate::ramp::{ENTRY, build};
use serde_json::json;

#[test]
fn it_conforms() {
    check_rate_entry(&ENTRY, build);
}

#[test]
fn it_carries_the_area_below_the_sawtooth() {
    let params = json!({"low": 2_000_000, "high": 10_000_000, "period": 1_000_000_000});
    let params = Params::from_json(ENTRY.params, params.as_object().unwrap()).unwrap();
    let mut server = build(&params, &ElementSetup::default()).unwrap();
    let at = |ms: u64| Time::from_ns(ms * 1_000_000);
    // A trapezium: half a period at 2 to 6 Mbit/s is 2 Mbit = 250 kB, a whole one 6 Mbit = 750 kB.
    assert_eq!(server.capacity(at(0), at(500)).get(), 250_000);
    assert_eq!(server.capacity(at(0), at(3_000)).get(), 2_250_000);
    assert_eq!(server.rate(at(1_500)).bps(), 6_000_000);
    assert_eq!(server.serve(at(0), 250_000), at(500));
}

#[test]
fn a_falling_ramp_is_refused() {
    let params = json!({"low": 2_000_000, "high": 1_000_000, "period": 1_000_000_000});
    let params = Params::from_json(ENTRY.params, params.as_object().unwrap()).unwrap();
    assert!(build(&params, &ElementSetup::default()).is_err());
}
