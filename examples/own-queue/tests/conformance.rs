//! The queue keeps the contract of `narrows_net::Queue`, and chooses its victims as its file says.

use narrows_net::testing::{TestPacket, check_queue_entry};
use narrows_net::{ElementSetup, Outcomes};
use narrows_units::{Params, Time};
use own_queue::randomdrop::{ENTRY, build};
use serde_json::json;

#[test]
fn it_conforms() {
    check_queue_entry(&ENTRY, build);
}

#[test]
fn every_packet_is_as_likely_a_victim() {
    const TRIALS: u64 = 10_000;
    let params = json!({"packets": 4});
    let params = Params::from_json(ENTRY.params, params.as_object().unwrap()).unwrap();
    let mut victims = [0_u64; 5];
    for seed in 0..TRIALS {
        let mut queue = build(&params, &ElementSetup::new(seed, "forward.0")).unwrap();
        let mut outcomes = Outcomes::new();
        for uid in 0..5 {
            let packet = TestPacket { uid, size: 1500, flow: 1, ..TestPacket::default() };
            queue.enqueue(Time::ZERO, packet, &mut outcomes);
        }
        assert_eq!(outcomes.drops.len(), 1);
        victims[outcomes.drops[0].packet.uid as usize] += 1;
    }
    // Pearson's test; the 0.1 % point of the chi-squared distribution with 4 degrees of freedom is 18.47.
    let expected = TRIALS as f64 / 5.0;
    let square = |count: &u64| (*count as f64 - expected).powi(2) / expected;
    assert!(victims.iter().map(square).sum::<f64>() < 18.47, "{victims:?}");
}
