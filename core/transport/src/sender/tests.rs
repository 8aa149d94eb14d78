//! Conformance of the transport, independent of any scheme: a sender and a receiver over a small
//! scripted network with one-way delays of 20 ms.

// The scheme under test shares its log with the test.
#![allow(clippy::disallowed_types)]

use super::*;
use crate::{Data, Receiver, Sender};
use narrows_units::Span;
use proptest::prelude::*;

mod feedback;
mod frto;
mod non_sack;
mod pacing;
mod reordering;
mod rig;
mod sack_limit;
mod tack;
mod unreliable;

use rig::*;

#[test]
fn a_fixed_window_gives_one_window_per_round_trip() {
    let mut rig = Rig::new(10);
    rig.run(4000);
    // 100 round trips of 40 ms; acknowledgements of every second packet cost nothing in total.
    let windows = rig.goodput() as f64 / (10 * MSS) as f64;
    assert!((windows - 100.0).abs() <= 1.0, "{windows}");
    assert_eq!(rig.heard().losses, 0);
    assert_eq!(rig.sender.counters().tail_probes, 0);
    assert_eq!(
        rig.heard().limited,
        rig.heard().acks,
        "the window is always the limit"
    );
}

#[test]
fn one_loss_is_one_epoch_and_is_repaired() {
    let mut rig = Rig::new(20).losing(&[30]);
    rig.run(1000);
    let heard = rig.heard();
    assert_eq!(heard.epochs, [LossCause::Reordering]);
    assert_eq!((heard.losses, heard.spurious, heard.exits), (1, 0, 1));
    let counters = rig.sender.counters();
    assert_eq!((counters.retransmitted_packets, counters.timeouts), (1, 0));
    let hole = rig.sends[30].1.offset;
    assert!(
        rig.sends
            .iter()
            .any(|(_, data)| data.retransmission && data.offset == hole)
    );
}

#[test]
fn two_losses_in_a_window_are_one_epoch() {
    let mut rig = Rig::new(20).losing(&[30, 37]);
    rig.run(1000);
    assert_eq!(rig.heard().epochs, [LossCause::Reordering]);
    assert_eq!(rig.heard().losses, 2);
}

#[test]
fn losses_in_different_windows_are_two_epochs() {
    let mut rig = Rig::new(20).losing(&[30, 130]);
    rig.run(1000);
    assert_eq!(rig.heard().epochs.len(), 2);
}

#[test]
fn a_lost_retransmission_is_repaired_without_a_timeout() {
    // Packet 30 is lost, and so is its retransmission, which is sent within the same round trip.
    let mut probe = Rig::new(20).losing(&[30]);
    probe.run(1000);
    let repair = probe
        .sends
        .iter()
        .position(|(_, data)| data.retransmission)
        .unwrap() as u64;
    let mut rig = Rig::new(20);
    rig.fault = Box::new(move |index| (index != 30 && index != repair).then_some(Span::ZERO));
    rig.run(1000);
    assert_eq!(rig.sender.counters().timeouts, 0);
    assert_eq!(rig.sender.counters().retransmitted_packets, 2);
    assert_eq!(rig.heard().epochs.len(), 1, "still the same epoch");
    assert!(rig.goodput() > 23 * 20 * MSS);
}

#[test]
fn reordering_by_two_packets_repeats_nothing() {
    let mut rig = Rig::new(20);
    // Packets arrive in bursts: lateness of 1 us moves one behind its two successors at most.
    rig.fault = Box::new(|index| Some(Span::from_us(u64::from(index % 7 == 0))));
    rig.run(1000);
    // Behind a whole burst is more than two packets; only time may then decide, and it does not.
    assert!(rig.heard().epochs.len() <= 1, "{:?}", rig.heard());
    assert_eq!(
        rig.heard().epochs.len() as u64,
        rig.heard().spurious,
        "undone at once"
    );
}

#[test]
fn reordering_within_the_window_is_learned_from_once() {
    let mut rig = Rig::new(20);
    // Every 50th packet is 5 ms late: far behind its burst, but less than a quarter of the RTT.
    rig.fault = Box::new(|index| Some(Span::from_ms(if index % 50 == 49 { 5 } else { 0 })));
    rig.run(4000);
    assert!(rig.heard().losses <= 2, "{:?}", rig.heard());
    assert_eq!(rig.heard().epochs.len() as u64, rig.heard().spurious);
}

#[test]
fn a_loss_that_few_packets_tell_of_waits_for_the_reordering_timer() {
    let mut rig = Rig::new(10);
    rig.receiver = Receiver::new(&Config {
        ack_every: 1,
        ..Config::default()
    });
    rig.sender.set_write_seq(4 * MSS);
    rig.fault = Box::new(|index| (index != 1).then_some(Span::ZERO));
    rig.run(1000);
    assert!(rig.sender.is_complete());
    // A round trip, a reordering window of a quarter of one, and the slack of the timer.
    let repair = rig.sends[4].0;
    assert_eq!(repair.since(rig.sends[1].0), Span::from_ms(40 + 40 / 4 + 6));
}

#[test]
fn a_lost_tail_is_probed_not_timed_out() {
    let mut rig = Rig::new(10);
    rig.receiver = Receiver::new(&Config {
        ack_every: 1,
        ..Config::default()
    });
    rig.sender.set_write_seq(30 * MSS);
    rig.fault = Box::new(|index| (!(25..30).contains(&index)).then_some(Span::ZERO));
    rig.run(1000);
    let counters = rig.sender.counters();
    assert_eq!(
        (counters.timeouts, counters.tail_probes),
        (0, 1),
        "{counters:?}"
    );
    assert!(rig.sender.is_complete());
    // The probe is sent two round trips and the slack of the timer after the last acknowledgement.
    let probe = rig.sends[30].0;
    assert!(
        probe.since(rig.sends[29].0) <= Span::from_ms(40 + 2 * 40 + 6),
        "{probe}"
    );
}

#[test]
fn a_blackout_ends_in_timeouts_with_back_off_and_recovers() {
    let mut rig = Rig::new(10);
    rig.fault = Box::new(|index| (!(20..45).contains(&index)).then_some(Span::ZERO));
    rig.run(20_000);
    let heard = rig.heard();
    assert!(heard.epochs.contains(&LossCause::Timeout), "{heard:?}");
    let timeouts = heard
        .epochs
        .iter()
        .filter(|cause| **cause == LossCause::Timeout)
        .count();
    assert_eq!(timeouts, 1, "repeated timeouts open no new epoch");
    assert!(
        rig.sender.counters().timeouts >= 2,
        "{:?}",
        rig.sender.counters()
    );
    assert_eq!(rig.goodput() % MSS, 0);
    assert!(rig.goodput() > 1_000 * MSS, "it continues afterwards");
}

#[test]
fn a_delay_spike_is_recognised_as_a_spurious_timeout() {
    for reliable in [true, false] {
        let config = Config {
            reliable,
            ack_every: 1,
            // A probe would delay the timeout by as much again.
            tail_loss_probe: false,
            ..Config::default()
        };
        let mut rig = Rig::with(10, &config);
        // A round trip of 540 ms; once 400 ms more, and nothing is lost: the delayed packets arrive individually, soon
        // enough that those declared lost are still remembered (two round trips).
        rig.fault = Box::new(|index| {
            let stalled = (100..140).contains(&index);
            Some(Span::from_ms(if stalled { 900 } else { 500 }))
        });
        rig.run(15_000);
        let (heard, counters) = (rig.heard(), *rig.sender.counters());
        let timeouts = heard.epochs.iter();
        let timeouts = timeouts.filter(|cause| **cause == LossCause::Timeout);
        // Packets retransmitted or abandoned meanwhile arrive one by one, and are reported once.
        assert!(counters.spurious_losses > 1, "{counters:?}");
        assert_eq!((timeouts.count(), heard.spurious), (1, 1), "{heard:?}");
        assert!(counters.retransmitted_packets <= 11, "{counters:?}");
    }
}

#[test]
fn an_application_that_pauses_marks_its_samples() {
    let mut rig = Rig::new(100);
    rig.sender.set_write_seq(5 * MSS);
    rig.run(200);
    rig.sender.set_write_seq(10 * MSS);
    rig.run(400);
    let heard = rig.heard();
    // The first flight was sent before the application was seen to pause.
    assert!(
        heard
            .rates
            .iter()
            .skip(5)
            .all(|(_, app_limited)| *app_limited),
        "{heard:?}"
    );
    assert_eq!(heard.limited, 0, "the window was never the limit");
}

#[test]
fn an_application_limited_flow_keeps_its_window() {
    for scheme in ["reno", "cubic"] {
        let mut rig = Rig::for_scheme(scheme);
        for round in 1..50 {
            rig.sender.set_write_seq(round * 4 * MSS);
            rig.run(round * 100);
        }
        assert_eq!(
            rig.sender.snapshot().cwnd,
            Some(Bytes::new(10 * MSS)),
            "{scheme}"
        );
    }
}

#[test]
fn thinned_acknowledgements_do_not_slow_reno_down() {
    for ack_every in [1, 2, 10] {
        let config = Config {
            ack_every,
            ..Config::default()
        };
        let mut rig = Rig::for_scheme("reno");
        rig.receiver = Receiver::new(&config);
        rig.fault = Box::new(|index| (index != 60).then_some(Span::ZERO));
        rig.run(800);
        let window = |rig: &Rig| rig.sender.snapshot().cwnd.unwrap().get() as f64 / MSS as f64;
        let before = window(&rig);
        rig.run(800 + 10 * 40);
        let growth = window(&rig) - before;
        // One packet per round trip, and at most one more because of the rounds' boundaries; delayed acknowledgements
        // (up to nine packets' worth) may hide one.
        assert!((8.0..=11.0).contains(&growth), "{ack_every}: {growth}");
    }
}

#[test]
fn the_pacing_rate_is_kept_with_a_bounded_burst() {
    let mut rig = Rig::new(1000);
    rig.heard.lock().unwrap().pacing = Some(Rate::from_bps(8 * MSS * 1000));
    // The allowance is read again after the first acknowledgement.
    rig.run(100);
    let start = rig.sends.len();
    rig.run(1100);
    let sent = rig.sends.len() - start;
    assert!(
        (995..=1005).contains(&sent),
        "1000 packets per second, not {sent}"
    );
    let gaps = rig.sends[start..].windows(3).map(|w| w[2].0.since(w[0].0));
    assert!(
        gaps.into_iter().all(|gap| gap >= Span::from_us(990)),
        "no more than two at once"
    );
}

/// Departure times of the packet after which a rate a hundred times higher applies, and of the next one.
fn around_another_rate(at_once: bool) -> [Time; 2] {
    let mut rig = Rig::new(1000);
    {
        let mut heard = rig.heard.lock().unwrap();
        heard.pacing = Some(Rate::from_bps(8 * MSS * 10));
        heard.at_once = at_once;
    }
    // Every 100 ms a packet, whose acknowledgement comes 40 ms later.
    rig.run(1_020);
    let last = rig.sends.last().unwrap().0;
    assert!(last > Time::from_ns(980_000_000), "{last:?}");
    rig.heard.lock().unwrap().pacing = Some(Rate::from_bps(8 * MSS * 1000));
    let before = rig.sends.len();
    rig.run(1_200);
    [last, rig.sends[before].0]
}

#[test]
fn another_pacing_rate_counts_from_the_last_packet_on_if_the_scheme_says_so() {
    let [last, next] = around_another_rate(true);
    // The mark is reported with the acknowledgement, a round trip after the packet.
    let trip = next.since(last);
    assert!(
        (Span::from_ms(40)..Span::from_ms(70)).contains(&trip),
        "{trip:?}"
    );
    let [last, next] = around_another_rate(false);
    let gap = next.since(last);
    assert!(
        (Span::from_ms(99)..Span::from_ms(101)).contains(&gap),
        "{gap:?}"
    );
}

/// Time from an acknowledgement until the next packet leaves, with four packets in 40 ms and at most one packet per ms.
fn after_a_full_window(anew: bool) -> Vec<Span> {
    let config = Config {
        ack_every: 1,
        ..Config::default()
    };
    let mut rig = Rig::with(4, &config);
    {
        let mut heard = rig.heard.lock().unwrap();
        heard.pacing = Some(Rate::from_bps(8 * MSS * 1000));
        heard.anew = anew;
    }
    rig.run(1000);
    // Four packets later, and a round trip of 40 ms.
    let late = rig.sends.iter().filter(|(at, _)| at.secs() > 0.3);
    let times: Vec<Time> = late.map(|(at, _)| *at).collect();
    let trips = times
        .windows(5)
        .map(|w| w[4].since(w[0]).saturating_sub(OWD * 2));
    trips.collect()
}

#[test]
fn a_packet_that_a_full_window_kept_back_waits_for_its_time_if_the_scheme_says_so() {
    for (anew, wait) in [(false, Span::ZERO), (true, Span::from_ms(1))] {
        let waits = after_a_full_window(anew);
        assert!(waits.len() > 40, "{}", waits.len());
        assert!(
            waits.iter().all(|found| *found == wait),
            "{anew}: {waits:?}"
        );
    }
}

#[test]
fn a_window_is_spread_over_the_round_trip_on_request() {
    let config = Config {
        pacing: PacingChoice::Window,
        ..Config::default()
    };
    let mut rig = Rig::with(20, &config);
    rig.run(2000);
    // Twice the window per round trip: a packet per millisecond, or slightly less while delayed acknowledgements
    // lengthen the smoothed RTT; two may leave at once.
    let late = rig.sends.iter().filter(|(at, _)| at.secs() > 0.2);
    let times: Vec<Time> = late.map(|(at, _)| *at).collect();
    assert!(times.len() > 500, "{}", times.len());
    let gaps = times.windows(3).map(|w| w[2].since(w[0]));
    assert!(gaps.min().is_some_and(|gap| gap >= Span::from_us(990)));
}

#[test]
fn marks_are_echoed_once_and_open_one_epoch_per_round() {
    let config = Config {
        ecn: true,
        ..Config::default()
    };
    let mut rig = Rig::with(20, &config);
    rig.mark = Box::new(|index| (40..50).contains(&index));
    rig.run(1000);
    let heard = rig.heard();
    assert_eq!((heard.marks, heard.losses), (10, 0));
    assert_eq!(rig.receiver.counters().marked_packets, 10);
    assert_eq!(rig.sender.counters().recoveries, 1);
}

#[test]
fn without_ecn_packets_are_not_ecn_capable() {
    let mut rig = Rig::new(10);
    rig.run(50);
    assert!(rig.data.iter().all(|(_, _, _, ecn)| *ecn == Ecn::NotEct));
}

#[test]
fn a_stopped_flow_is_silent() {
    let mut rig = Rig::new(10);
    rig.run(100);
    rig.sender.stop();
    let sent = rig.sends.len();
    rig.run(5000);
    assert_eq!(rig.sends.len(), sent);
    assert_eq!(rig.sender.next_wakeup(), Time::FAR);
}

#[test]
fn acknowledgements_of_packets_never_sent_are_ignored() {
    let mut rig = Rig::new(10);
    rig.run(100);
    let before = rig.sender.counters().acked_packets;
    let ack = crate::Ack {
        largest: 1_000_000,
        ..crate::Ack::default()
    };
    let body = Body {
        ranges: vec![crate::Range {
            first: 0,
            last: 1_000_000,
        }],
        arrivals: vec![],
        ..Body::default()
    };
    rig.sender
        .receive(rig.now, Ecn::NotEct, &Header::Ack(ack), &body);
    assert_eq!(rig.sender.counters().acked_packets, before);
}

/// A transfer of 300 packets and a few bytes over a bad network.
fn transfer(scheme: &str, seed: u64, loss: f64, ack_loss: f64, jitter_us: u64) {
    let mut rig = Rig::for_scheme(scheme);
    rig.sender.set_write_seq(300 * MSS + 7);
    rig.fault = Box::new(move |index| {
        let jitter = (roll(seed, 4 * index + 1) * jitter_us as f64) as u64;
        (roll(seed, 2 * index) >= loss).then(|| Span::from_us(jitter))
    });
    rig.ack_fault =
        Box::new(move |order| (roll(seed, 4 * order + 3) >= ack_loss).then_some(Span::ZERO));
    // A timeout takes up to 120 s at the worst back-off; hours suffice for 300 packets.
    rig.run(10_000_000);
    let (counters, state) = (rig.sender.counters(), rig.sender.snapshot());
    assert!(
        rig.sender.is_complete(),
        "{counters:?} {state:?} {}",
        rig.sender.next_wakeup()
    );
    assert_eq!(rig.goodput(), 300 * MSS + 7);
    assert_eq!(rig.sender.in_flight(), Bytes::ZERO);
}

/// Regressions of stalled flows: a retransmission whose packet was forgotten when a timeout was undone, and a reduction
/// that left less than a packet with nothing in flight.
#[test]
fn nasty_histories() {
    transfer(
        "reno",
        16_499_307_422_795_508_855,
        0.244_708_887_223_738_65,
        0.329_262_644_473_243_2,
        11_131,
    );
    transfer(
        "cubic",
        3_166_994_775_446_201_719,
        0.342_158_982_537_115_24,
        0.009_943_803_499_145_22,
        22_623,
    );
}

/// Numbers that the wire format permits, biased towards the ends of the range.
fn extreme() -> impl Strategy<Value = u64> {
    let largest = crate::wire::MAX_NUMBER;
    prop_oneof![
        0..=largest,
        Just(largest),
        Just(largest - 1),
        Just(0),
        0u64..100
    ]
}

/// A cheap hash for reproducible faults.
fn roll(seed: u64, index: u64) -> f64 {
    Stream::new(seed, &format!("{index}")).uniform()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    /// For any network that does not lose everything, a transfer completes and goodput counts every byte once.
    #[test]
    fn every_transfer_completes(
        seed: u64,
        loss in 0.0f64..0.4,
        ack_loss in 0.0f64..0.4,
        jitter_us in 0u64..30_000,
        scheme in prop::sample::select(vec!["reno", "cubic"]),
    ) {
        transfer(scheme, seed, loss, ack_loss, jitter_us);
    }

    /// A peer that sends arbitrary messages neither crashes an end nor causes it to exceed its limits in flight.
    #[test]
    fn a_lying_peer_is_survived(
        messages in prop::collection::vec(
            (any::<u8>(), extreme(), extreme(), extreme(), 0u64..60, 0u64..60, any::<u8>()),
            1..60,
        ),
    ) {
        let mut rig = Rig::for_scheme("cubic");
        rig.run(120);
        for (kind, a, b, c, near, length, marks) in messages {
            // Arbitrary numbers, but often near those actually sent.
            let number = if kind & 1 == 0 { a } else { near };
            let header = if kind & 2 == 0 {
                Header::Data(Data {
                    number,
                    offset: b,
                    least_unacked: if kind & 4 == 0 { c } else { number.saturating_sub(length) },
                    length: length as u16,
                    retransmission: false,
                    ack_interval: (kind & 16 == 0).then(|| Span::from_us(b & 0xffff_ffff)),
                })
            } else {
                Header::Ack(crate::Ack {
                    largest: number,
                    delay: Span::from_ns(b),
                    largest_arrived: Time::from_ns(c),
                    received: a,
                    marked: if kind & 8 == 0 { c } else { u64::from(marks) },
                    cumulative: None,
                })
            };
            let first = number.saturating_sub(length);
            let ranges = vec![crate::Range { first, last: number }, crate::Range { first: 0, last: near }];
            let arrivals = vec![crate::Arrival { number: b, at: Time::from_ns(a) }];
            let body = Body { ranges, arrivals, ..Body::default() };
            rig.sender.receive(rig.now, Ecn::Ce, &header, &body);
            rig.receiver.receive(rig.now, Ecn::Ce, &header, &body);
            rig.pump();
            let (_, bytes) = rig.sender.sent.outstanding();
            prop_assert_eq!(bytes, rig.sender.in_flight().get());
        }
    }

    /// The same network yields the same history. (Only loss limits the window here, so without any it would double for
    /// the whole run.)
    #[test]
    fn the_same_events_give_the_same_packets(seed: u64, loss in 0.002f64..0.2) {
        let history = || {
            let mut rig = Rig::for_scheme("cubic");
            rig.fault = Box::new(move |index| (roll(seed, index) >= loss).then_some(Span::ZERO));
            rig.run(2000);
            rig.sends
        };
        prop_assert_eq!(history(), history());
    }
}
