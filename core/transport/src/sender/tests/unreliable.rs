//! Nothing is retransmitted.

use super::*;

fn unreliable() -> Config {
    Config {
        reliable: false,
        ..Config::default()
    }
}

#[test]
fn what_is_lost_stays_lost_and_everything_sent_is_new() {
    let mut rig = Rig::with(20, &unreliable()).losing(&[30, 31, 90]);
    rig.run(1000);
    let (counters, heard) = (*rig.sender.counters(), rig.heard());
    assert_eq!(counters.lost_packets, 3);
    assert_eq!((counters.retransmitted_packets, counters.timeouts), (0, 0));
    for (index, (_, data)) in rig.sends.iter().enumerate() {
        assert_eq!(data.offset, index as u64 * MSS, "new data in every packet");
    }
    // Recoveries end as soon as all data sent before them is acknowledged or lost.
    assert_eq!((heard.epochs.len(), heard.exits), (2, 2));
    // Everything that arrived counts, and the receiver keeps no list of gaps.
    let sent = counters.sent_packets;
    rig.sender.stop();
    rig.run(1100);
    assert_eq!(rig.goodput(), (sent - 3) * MSS);
    assert_eq!(rig.receiver.rcv_nxt(), sent * MSS);
}

#[test]
fn a_finite_supply_is_through_when_its_losses_are_known() {
    let mut rig = Rig::with(20, &unreliable()).losing(&[5, 19]);
    rig.sender.set_write_seq(20 * MSS);
    rig.run(3000);
    // Only the timer detects the loss of the last packet: there is no new data to probe with.
    let counters = rig.sender.counters();
    assert_eq!((counters.sent_packets, counters.timeouts), (20, 1));
    assert!(rig.sender.is_complete());
    assert_eq!(rig.goodput(), 18 * MSS);
}

#[test]
fn a_silent_path_is_tried_with_new_data() {
    let mut rig = Rig::with(4, &unreliable());
    rig.fault = Box::new(|index| (!(10..40).contains(&index)).then_some(Span::ZERO));
    rig.run(60_000);
    let counters = rig.sender.counters();
    assert!(counters.timeouts > 0 && counters.retransmitted_packets == 0);
    assert!(
        rig.goodput() > 1000 * MSS,
        "it continues when the path does"
    );
    assert!(
        rig.sends
            .windows(2)
            .all(|pair| pair[0].1.offset < pair[1].1.offset)
    );
}

#[test]
fn gaps_cannot_be_left_where_nobody_tells_of_them() {
    let params = [("reliable", "false"), ("sack", "false")].map(|(name, text)| {
        let spec = crate::PARAMS.iter().find(|spec| spec.name == name).unwrap();
        (name.to_owned(), spec.parse(text).unwrap())
    });
    let config = Config::new(&Params::resolve(crate::PARAMS, params).unwrap());
    assert!(config.reliable && !config.sack);
}
