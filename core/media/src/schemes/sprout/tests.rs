//! The accounting of both ends of Sprout, computed by hand.

mod blackouts;
mod paths;

use super::forecast::{Belief, Tables};
use super::message::{SproutData, SproutReport};
use super::*;
use narrows_transport::{Body, Header, Media as Message};
use narrows_units::{Ecn, Stream, Time};
use proptest::prelude::*;

fn at(ms: u64) -> Time {
    Time::from_ns(ms * 1_000_000)
}

/// Parameters with the profile of that name; "" means none.
fn params(profile: &str) -> Params {
    crate::testing::params(&SCHEME, (!profile.is_empty()).then_some(profile), &[])
}

fn setup(seed: u64, end: &str) -> MediaSetup {
    MediaSetup {
        now: Time::ZERO,
        packet_size: 1500,
        random: Stream::new(seed, end),
    }
}

/// Both ends, of a run with this seed.
fn ends(params: &Params, seed: u64) -> (Box<dyn MediaSender>, Box<dyn MediaReceiver>) {
    let sender = (SCHEME.sender)(params, setup(seed, "sender"));
    let receiver = (SCHEME.receiver)(params, setup(seed, "receiver"));
    (sender.expect("a sender"), receiver.expect("a receiver"))
}

fn build(profile: &str) -> (Box<dyn MediaSender>, Box<dyn MediaReceiver>) {
    ends(&params(profile), 1)
}

/// All packets that a sender sends at `now`: payloads and content.
fn flight(sender: &mut dyn MediaSender, now: Time) -> Vec<(u32, SproutData)> {
    let mut body = Body::default();
    let mut sent = Vec::new();
    while let Some(packet) = sender.transmit(now, &mut body) {
        let Header::Media(media) = packet.header else { panic!("no message") };
        let data = SproutData::read(&body.bytes, u32::from(media.length)).expect("content");
        // As the original's: 46 bytes before the payload, and 18 for the sender's forecast.
        let own = if data.forecast { 18 } else { 0 };
        assert_eq!(packet.size, (46 + own + u32::from(data.payload)).max(60));
        sent.push((u32::from(data.payload), data));
        assert!(sent.len() < 10_000, "a flight without end");
    }
    sent
}

fn report(sender: &mut dyn MediaSender, now: Time, number: u64, settled: u64, forecast: [u32; 8]) {
    let report = SproutReport {
        settled: settled as u32,
        forecast,
        ..SproutReport::default()
    };
    let mut body = Body::default();
    report.write(&mut body.bytes);
    let header = Header::Media(Message {
        number,
        length: SproutReport::SIZE,
        feedback: true,
    });
    sender.receive(now, Ecn::NotEct, &header, &body);
}

#[test]
fn the_first_flight_follows_from_ignorance() {
    let (mut sender, _) = build("pantheon");
    // 1, 1, 3, 4, 5, 6, 8, 9: five packets of 1400 bytes from the first to the sixth tick.
    let sent = flight(&mut *sender, at(0));
    let payloads: Vec<u32> = sent.iter().map(|packet| packet.0).collect();
    assert_eq!(payloads, [1400; 5]);
    let positions: Vec<u64> = sent.iter().map(|packet| packet.1.position).collect();
    assert_eq!(positions, [0, 1450, 2900, 4350, 5800]);
    // All of them may still be overtaken; only the last one is followed by silence.
    assert!(sent.iter().all(|(_, data)| u64::from(data.young) == data.position));
    let silences: Vec<u16> = sent.iter().map(|packet| packet.1.time_to_next_ms).collect();
    assert_eq!(silences, [0, 0, 0, 0, 50]);
    assert_eq!(sender.counters().sent_bytes, 5 * 1446 + 18);
}

#[test]
fn ticks_drain_the_queue_estimate() {
    for (profile, third) in [("", vec![1350]), ("pantheon", vec![1400, 1350])] {
        let (mut sender, _) = build(profile);
        let payloads = |sender: &mut dyn MediaSender, ms: u64| -> Vec<u32> {
            let sent = flight(sender, at(ms));
            sent.iter().map(|packet| packet.0).collect()
        };
        payloads(&mut *sender, 0);
        report(&mut *sender, at(10), 0, 0, [1, 2, 3, 4, 5, 6, 7, 8]);
        // 7250 bytes are in flight, 1400 * (6 - 1) may be.
        assert!(payloads(&mut *sender, 10).is_empty());
        // It wakes every 10 ms, slightly late.
        let late = sender.next_wakeup().since(at(20));
        assert!(late >= Span::from_us(50) && late < Span::from_us(150), "{late:?}");
        // One packet has left the queue: 7000 - 5850 bytes.
        assert_eq!(payloads(&mut *sender, 30), [1150]);
        // 7050 bytes were in flight. The second tick takes one packet more, but two in the original, which takes the
        // first one again.
        assert_eq!(payloads(&mut *sender, 50), third, "{profile}");
    }
}

#[test]
fn reports_settle_the_accounts() {
    let (mut sender, _) = build("");
    flight(&mut *sender, at(0));
    // Two of the five packets have arrived.
    report(&mut *sender, at(40), 3, 2900, [4, 8, 12, 16, 20, 24, 28, 32]);
    let sent = flight(&mut *sender, at(40));
    let payload: u32 = sent.iter().map(|packet| packet.0).sum();
    assert_eq!(payload, 20 * 1400 - 3 * 1450);
    // Packets sent 40 ms ago are no longer young.
    assert_eq!(sent[0].1.young, 0);
    assert_eq!(sent[1].1.young, 1450);
    // Reordered reports, and reports about bytes that were never sent, are ignored.
    let before = sender.snapshot().in_flight;
    report(&mut *sender, at(41), 2, 0, [0; 8]);
    report(&mut *sender, at(41), 4, 1 << 31, [200; 8]);
    assert_eq!(sender.snapshot().in_flight, before);
    assert!(flight(&mut *sender, at(41)).is_empty());
}

#[test]
fn small_windows_are_sent_as_a_whole() {
    for (profile, first) in [("", vec![]), ("pantheon", vec![1350])] {
        let (mut sender, _) = build(profile);
        let payloads = |sender: &mut dyn MediaSender, ms: u64| -> Vec<u32> {
            let sent = flight(sender, at(ms));
            sent.iter().map(|packet| packet.0).collect()
        };
        payloads(&mut *sender, 0);
        // One of five packets is in flight, two may be.
        report(&mut *sender, at(10), 0, 4 * 1450, [0, 0, 0, 1, 1, 2, 3, 4]);
        assert_eq!(payloads(&mut *sender, 10), first, "{profile}");
        // All has arrived, and an empty packet's 50 bytes would not matter.
        let position = 5 * 1450 + first.iter().map(|payload| payload + 50).sum::<u32>();
        report(&mut *sender, at(12), 1, u64::from(position) - 50, [0, 0, 0, 1, 1, 2, 3, 4]);
        assert_eq!(payloads(&mut *sender, 12), [1400, 1350], "{profile}");
        // A window of three packets is fully used.
        report(&mut *sender, at(14), 2, u64::from(position), [0, 0, 1, 1, 2, 3, 4, 4]);
        assert_eq!(payloads(&mut *sender, 14), [1350], "{profile}");
    }
}

/// The belief is that of the model after 15 packets in every tick, whenever the first one arrives; headers do not
/// count.
#[test]
fn the_receiver_counts_payload_from_the_first_packet_on() {
    let mut belief = Belief::new(Tables::from_model(RateModel::PUBLISHED));
    (0..100).for_each(|_| belief.tick(Some(15.0)));
    for begin in [5, 10_005] {
        let (_, mut receiver) = build("");
        let (mut body, mut last) = (Body::default(), None);
        for number in 0..1501 {
            body.clear();
            let position = number * 1450;
            SproutData { position, young: 0, time_to_next_ms: 0, forecast: false, payload: 1400 }.write(&mut body.bytes);
            let header = Header::Media(Message { number, length: 1402, feedback: false });
            let now = at(begin + number / 15 * 20);
            // A tick has not passed before its last instant.
            receiver.receive(now + Span::from_us(u64::from(number > 0)), Ecn::NotEct, &header, &body);
            let mut out = Body::default();
            if receiver.transmit(now + Span::from_us(1), &mut out).is_some() {
                last = SproutReport::read(&out.bytes).ok();
            }
        }
        let report = last.expect("reports");
        assert_eq!(report.forecast, belief.forecast(0.05), "{begin}");
    }
}

#[test]
fn silence_is_broken_by_empty_packets() {
    let (mut sender, _) = build("");
    flight(&mut *sender, at(0));
    report(&mut *sender, at(20), 0, 7250, [0; 8]);
    let mut sent = Vec::new();
    for ms in 20..=200 {
        for (payload, data) in flight(&mut *sender, at(ms)) {
            assert_eq!((payload, data.time_to_next_ms), (0, 50));
            sent.push(ms);
        }
    }
    assert_eq!(sent, [50, 100, 150, 200]);
    sender.stop();
    assert!(flight(&mut *sender, at(1000)).is_empty());
    assert_eq!(sender.next_wakeup(), Time::FAR);
}

#[test]
fn an_application_that_pauses_leaves_the_flow_with_empty_packets() {
    let pause = [("pause_at", "100000000"), ("pause_for", "300000000")];
    let params = crate::testing::params(&SCHEME, None, &pause);
    let mut sender = (SCHEME.sender)(&params, setup(1, "sender")).expect("a sender");
    let (mut position, mut empty, mut full) = (0, vec![], vec![]);
    for ms in 0..=500 {
        if ms % 20 == 0 {
            // All of it has arrived, and a hundred packets may follow.
            report(&mut *sender, at(ms), ms, position, [20, 40, 60, 80, 100, 120, 140, 160]);
        }
        for (payload, data) in flight(&mut *sender, at(ms)) {
            position = data.position + u64::from(payload) + 50;
            let list = if payload == 0 { &mut empty } else { &mut full };
            list.push(ms);
        }
        assert!(sender.next_wakeup() > at(ms));
    }
    // The last flight was sent at 80 ms; the window stands open all the time.
    assert_eq!(empty, [130, 180, 230, 280, 330, 380]);
    assert!(full.contains(&80) && !full.iter().any(|ms| (100..400).contains(ms)));
    assert_eq!(full.iter().find(|ms| **ms >= 100), Some(&400), "it resumes when the pause is over");
}

#[test]
fn an_application_that_gives_little_is_waited_for() {
    // A packet of 1400 bytes every 70 ms, but not between 200 and 300 ms.
    let set = [("content_rate", "160000"), ("pause_at", "200000000"), ("pause_for", "100000000")];
    let params = crate::testing::params(&SCHEME, None, &set);
    let mut sender = (SCHEME.sender)(&params, setup(1, "sender")).expect("a sender");
    let (mut full, mut position) = (Vec::new(), 0);
    for ms in 0..500 {
        if ms % 20 == 0 {
            report(&mut *sender, at(ms), ms, position, [20, 40, 60, 80, 100, 120, 140, 160]);
        }
        for (payload, data) in flight(&mut *sender, at(ms)) {
            assert!(payload == 0 || payload == 1400, "{payload}");
            position = data.position + u64::from(payload) + 50;
            full.extend((payload > 0).then_some(ms));
        }
        assert!(sender.next_wakeup() > at(ms));
    }
    assert_eq!(full, [70, 140, 310, 380, 450]);
}

#[test]
fn received_and_lost_bytes_are_settled() {
    let (mut sender, mut receiver) = build("");
    let mut body = Body::default();
    let mut arrive = |receiver: &mut dyn MediaReceiver, number: u64, position: u64, young: u32, ms: u64| {
        body.clear();
        SproutData { position, young, time_to_next_ms: 0, forecast: false, payload: 1400 }.write(&mut body.bytes);
        let header = Header::Media(Message { number, length: 1402, feedback: false });
        receiver.receive(at(ms), Ecn::NotEct, &header, &body);
        let mut out = Body::default();
        let packet = receiver.transmit(at(ms), &mut out).map(|_| SproutReport::read(&out.bytes).ok());
        packet.flatten().map(|report| report.settled)
    };
    // The first packet is answered a tick later.
    assert_eq!(arrive(&mut *receiver, 0, 0, 0, 5), None);
    assert_eq!(arrive(&mut *receiver, 3, 4350, 4350, 6), None);
    // The second and third are missing, but still young: two packets of four are settled. A copy adds nothing.
    assert_eq!(arrive(&mut *receiver, 3, 4350, 4350, 25), Some(2900));
    // Everything before the fourth is old now, and lost if it has not arrived.
    assert_eq!(arrive(&mut *receiver, 4, 5800, 1450, 46), Some(7250));
    // One of them arrives after all and changes nothing.
    assert_eq!(arrive(&mut *receiver, 1, 1450, 1450, 70), Some(7250));
    let counters = receiver.counters();
    assert_eq!((counters.received_packets, counters.duplicate_packets), (5, 1));
    assert_eq!(counters.goodput_bytes, 4 * 1400);
    // Reports of three arrivals and of numbers that were never sent: not from its receiver.
    assert_eq!(sender.counters().acked_packets, 0);
    flight(&mut *sender, at(80));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]
    #[test]
    fn no_content_makes_them_panic(
        messages in prop::collection::vec(
            (prop::collection::vec(any::<u8>(), 0..80), any::<u16>(), 0u64..1 << 62, any::<bool>(), 0u64..100_000_000),
            1..40,
        )
    ) {
        let (mut sender, mut receiver) = build("");
        let mut now = Time::ZERO;
        for (bytes, length, number, feedback, pause) in messages {
            now += Span::from_ns(pause);
            let body = Body { bytes, ..Body::default() };
            let header = Header::Media(Message { number, length, feedback });
            sender.receive(now, Ecn::NotEct, &header, &body);
            receiver.receive(now, Ecn::Ce, &header, &body);
            // A false report may open the window up to the limit of the tables, and no further.
            prop_assert!(flight(&mut *sender, now).len() <= 240);
            let mut out = Body::default();
            prop_assert!(receiver.transmit(now, &mut out).is_none() || receiver.transmit(now, &mut out).is_none());
            prop_assert!(sender.next_wakeup() > now && receiver.next_wakeup() > now);
        }
    }
}
