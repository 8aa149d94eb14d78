//! The traffic keeps the contract of `narrows_traffic::Application`, and has the sizes and the rate that it states.

use narrows_traffic::testing::check;
use narrows_traffic::{TrafficAction, TrafficEvent, TrafficSetup};
use narrows_units::{Params, Time};
use own_traffic::imix::{ROUND, TRAFFIC};
use serde_json::json;

#[test]
fn it_conforms() {
    for seed in 0..20 {
        check(&TRAFFIC, &json!({"rate": 3_000_000}), seed, 2_000);
    }
}

#[test]
fn sizes_are_seven_to_four_to_one_at_the_given_rate() {
    let count = |size: u32| ROUND.iter().filter(|&&other| other == size).count();
    assert_eq!((count(ROUND[0]), count(576), count(1500)), (7, 4, 1));
    let params = json!({"rate": 1_000_000});
    let params = Params::from_json(TRAFFIC.entry.params, params.as_object().unwrap()).unwrap();
    let setup = TrafficSetup { seed: 1, flow: 1, connections: 1 };
    let mut imix = TRAFFIC.build(&params, &setup).unwrap();
    let (mut actions, mut now) = (Vec::new(), Time::ZERO);
    imix.on(now, TrafficEvent::Start, &mut actions);
    while imix.next_wakeup() < Time::from_ns(10_000_000_000) {
        now = imix.next_wakeup();
        imix.on(now, TrafficEvent::Wakeup, &mut actions);
    }
    let sizes = actions.iter().map(|action| match action {
        TrafficAction::Datagram { size } => u64::from(*size),
        other => panic!("{other:?}"),
    });
    // Ten seconds at 1 Mbit/s are 1.25 MB, to a datagram.
    assert!(sizes.sum::<u64>().abs_diff(1_250_000) <= 1500);
}
