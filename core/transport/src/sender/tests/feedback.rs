//! Information of acknowledgements beyond "arrived": when each packet arrived, how many were marked, and when nothing
//! is left to wait for.

use super::*;

fn thinned(ack_every: u32) -> Config {
    Config {
        ack_every,
        ecn: true,
        ..Config::default()
    }
}

#[test]
fn each_packet_comes_with_its_own_arrival() {
    // Also if up to Body::MAX_ARRIVALS and the largest share an acknowledgement, late or not.
    for ack_every in [1, 2, 10, 17] {
        let mut rig = Rig::with(40, &thinned(ack_every));
        rig.fault = Box::new(|index| Some(Span::from_us(index * 37 % 3000)));
        rig.run(2000);
        let delays = rig.heard().delays;
        assert!(delays.len() > 1500, "{}", delays.len());
        for delay in delays {
            let delay = delay.expect("the acknowledgement says when it arrived");
            assert!((OWD..OWD + Span::from_us(3000)).contains(&delay), "{delay}");
        }
    }
}

#[test]
fn a_lost_acknowledgement_takes_only_its_own_arrivals_along() {
    let mut rig = Rig::with(40, &thinned(2));
    rig.ack_fault = Box::new(|order| (order % 5 != 0).then_some(Span::ZERO));
    rig.run(2000);
    let delays = rig.heard().delays;
    let known = delays.iter().flatten().count();
    assert!(delays.iter().flatten().all(|delay| *delay == OWD));
    // At least three of five remain in the order of events, and their acknowledgements report everything.
    assert!(known * 5 >= delays.len() * 3, "{known} of {}", delays.len());
    assert!(known < delays.len());
}

#[test]
fn without_sack_the_packet_that_filled_the_gap_has_its_arrival() {
    let config = Config {
        sack: false,
        ..thinned(2)
    };
    let mut rig = Rig::with(20, &config);
    rig.run(1000);
    let delays = rig.heard().delays;
    let known = delays.iter().flatten().count();
    assert!(delays.iter().flatten().all(|delay| *delay == OWD));
    assert!(known * 2 >= delays.len(), "{known} of {}", delays.len());
}

#[test]
fn marks_are_counted_exactly_however_acknowledgements_are_thinned_or_lost() {
    for (ack_every, sack) in [(1, true), (2, true), (10, true), (2, false)] {
        let config = Config {
            sack,
            ..thinned(ack_every)
        };
        let mut rig = Rig::with(20, &config);
        rig.sender.set_write_seq(2000 * MSS);
        rig.mark = Box::new(|index| index % 7 < 3);
        rig.ack_fault = Box::new(|order| (order % 9 != 0).then_some(Span::ZERO));
        rig.run(60_000);
        let marked = rig.receiver.counters().marked_packets;
        assert!(rig.sender.is_complete() && marked > 800, "{marked}");
        let heard = rig.heard();
        assert_eq!(heard.marks, marked, "{ack_every}, {sack}");
        assert_eq!(heard.ce_bytes, marked * MSS, "{ack_every}, {sack}");
    }
}

#[test]
fn what_is_sent_is_acknowledged_lost_or_in_flight() {
    let mut rig = Rig::new(20);
    rig.fault = Box::new(|index| (index % 31 != 7).then_some(Span::ZERO));
    for ms in (10..4000).step_by(10) {
        rig.run(ms);
        let counters = *rig.sender.counters();
        assert_eq!(rig.heard().spurious, 0);
        let (flying, _) = rig.sender.sent.outstanding();
        assert_eq!(
            counters.sent_packets,
            counters.acked_packets + counters.lost_packets + flying,
            "{counters:?}"
        );
    }
}

#[test]
fn the_timer_runs_while_something_is_under_way_and_not_longer() {
    let mut rig = Rig::new(10);
    assert_eq!(rig.sender.next_wakeup(), Time::FAR);
    rig.sender.set_write_seq(5 * MSS);
    rig.run(1);
    // Before any round trip is known: one second (RFC 6298, section 2.1).
    assert_eq!(rig.sender.next_wakeup(), Time::ZERO + Span::from_ms(1000));
    rig.run(500);
    assert!(rig.sender.is_complete());
    assert_eq!(rig.sender.next_wakeup(), Time::FAR);
}
