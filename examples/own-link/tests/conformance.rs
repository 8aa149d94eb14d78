//! The element keeps the contract of `narrows_net::Element`, and loses the share of packets that its file states.

use narrows_net::testing::{TestPacket, check_link_entry};
use narrows_net::{ElementSetup, Outcomes};
use narrows_units::{Params, Time};
use own_link::biterrors::{EFFECTS, ENTRY, build};
use serde_json::json;

#[test]
fn it_conforms() {
    check_link_entry(&ENTRY, EFFECTS, build);
}

#[test]
fn large_packets_are_lost_more_often_than_small_ones() {
    const TRIALS: usize = 100_000;
    let params = json!({"ratio": 1e-5});
    let params = Params::from_json(ENTRY.params, params.as_object().unwrap()).unwrap();
    for (size, expected) in [(1500, 0.113_08), (40, 0.003_195)] {
        let mut element = build(&params, &ElementSetup::new(1, "forward.0")).unwrap();
        let mut outcomes = Outcomes::new();
        for uid in 0..TRIALS as u64 {
            let packet = TestPacket { uid, size, flow: 1, ..TestPacket::default() };
            element.push(Time::ZERO, packet, &mut outcomes);
        }
        // 1 - exp(bits ln(1 - ratio)), by hand; within 4 standard deviations of a binomial share.
        let lost = outcomes.drops.len() as f64 / TRIALS as f64;
        let deviation = (expected * (1.0 - expected) / TRIALS as f64).sqrt();
        assert!((lost - expected).abs() < 4.0 * deviation, "{size} bytes: {lost}");
    }
}
