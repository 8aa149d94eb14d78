//! Acknowledgements that report only some packets beyond the first gap.

use super::*;

/// As libutp has it, with `reach` packets.
fn utp(reach: u64) -> Config {
    Config {
        sack_reach: reach,
        repair_at_once: true,
        rack: false,
        tail_loss_probe: false,
        ack_every: 1,
        ..Config::default()
    }
}

/// Times of retransmissions, in the order of sending.
fn repairs(rig: &Rig) -> Vec<Time> {
    let again = rig.sends.iter().filter(|(_, data)| data.retransmission);
    again.map(|(at, _)| *at).collect()
}

#[test]
fn the_second_hole_is_found_when_the_first_one_is_filled() {
    // 50 packets apart in a window of 100.
    let found = |reach| {
        let mut rig = Rig::with(100, &utp(reach)).losing(&[510, 560]);
        rig.run(2000);
        let counters = *rig.sender.counters();
        assert_eq!((counters.timeouts, counters.spurious_losses), (0, 0));
        let repairs = repairs(&rig);
        assert_eq!(repairs.len(), 2);
        repairs[1].since(repairs[0])
    };
    assert_eq!(found(0), Span::ZERO);
    assert_eq!(found(30), Span::from_ms(40));
    // The three packets that prove the loss have to be reported, too.
    assert_eq!(found(52), Span::from_ms(40));
    assert_eq!(found(53), Span::ZERO);
}

#[test]
fn a_hole_in_a_larger_window_stalls_the_sender_for_a_round_trip() {
    // New data in the round trip from the detection of the hole on.
    let new = |reach| {
        let mut rig = Rig::with(100, &utp(reach)).losing(&[510]);
        rig.run(2000);
        let found = repairs(&rig)[0];
        let during = rig.sends.iter().filter(|(at, data)| {
            !data.retransmission && *at >= found && *at < found + Span::from_ms(40)
        });
        during.count()
    };
    assert!(new(0) >= 85, "{}", new(0));
    assert!((25..=45).contains(&new(30)), "{}", new(30));
}

#[test]
fn what_arrived_out_of_reach_is_not_repeated_after_a_timeout() {
    let mut probe = Rig::with_config("utp", &utp(30)).losing(&[5000]);
    probe.run(8000);
    let again = probe.sends.iter().position(|(_, data)| data.retransmission);
    let repair = again.unwrap() as u64;
    let mut rig = Rig::with_config("utp", &utp(30));
    rig.fault = Box::new(move |index| (index != 5000 && index != repair).then_some(Span::ZERO));
    rig.run(8000);
    let counters = rig.sender.counters();
    // Once after three duplicates, once after the timeout.
    assert_eq!((counters.timeouts, counters.retransmitted_packets), (1, 2));
    assert_eq!(rig.goodput(), rig.receiver.rcv_nxt());
}

#[test]
fn a_receiver_that_may_report_nothing_yet_is_silent() {
    // All initial arrivals lie beyond the missing packet.
    let mut rig = Rig::with(10, &utp(1)).losing(&[0, 1]);
    rig.run(3000);
    assert!(rig.goodput() > 10 * MSS);
    assert_eq!(rig.goodput(), rig.receiver.rcv_nxt());
}

proptest! {
    #[test]
    fn whatever_is_lost_everything_arrives_once(
        reach in 1u64..60,
        lost in prop::collection::btree_set(0u64..600, 0..60),
        scheme in prop::sample::select(vec!["utp", "reno", "bbr1"]),
    ) {
        let mut rig = Rig::with_config(scheme, &utp(reach));
        rig.sender.set_write_seq(500 * MSS);
        rig.fault = Box::new(move |index| (!lost.contains(&index)).then_some(Span::ZERO));
        rig.run(400_000);
        prop_assert!(rig.sender.is_complete());
        prop_assert_eq!(rig.goodput(), 500 * MSS);
    }
}
