//! Stored messages are returned unchanged in all forms of storage.

use super::*;
use narrows_transport::Media;
use narrows_units::Stream;

fn ack(ranges: &[(u64, u64)], arrivals: &[(u64, u64)]) -> (Header, Body) {
    let body = Body {
        ranges: ranges
            .iter()
            .map(|&(first, last)| Range { first, last })
            .collect(),
        arrivals: (arrivals.iter())
            .map(|&(number, at)| Arrival {
                number,
                at: Time::from_ns(at),
            })
            .collect(),
        bytes: Vec::new(),
    };
    let ack = Ack {
        largest: 100,
        delay: Span::from_us(3),
        largest_arrived: Time::from_ns(5_000_000_000),
        received: 90,
        marked: 2,
        cumulative: None,
    };
    (Header::Ack(ack), body)
}

fn data(ack_interval: Option<Span>) -> (Header, Body) {
    let data = Data {
        number: 7,
        offset: 1 << 40,
        least_unacked: 3,
        length: 1448,
        retransmission: true,
        ack_interval,
    };
    (Header::Data(data), Body::default())
}

fn changed(mut message: (Header, Body), change: impl FnOnce(&mut Ack)) -> (Header, Body) {
    if let Header::Ack(ack) = &mut message.0 {
        change(ack);
    }
    message
}

/// Messages with the kind of their slot: limits of packed messages, and messages just beyond them.
fn examples() -> Vec<(u32, (Header, Body))> {
    let long = u64::from(u32::MAX);
    let late = |at| ack(&[(40, 100)], &[(99, at)]);
    let media = Media {
        number: 4,
        length: 90,
        feedback: true,
    };
    let content = Body {
        bytes: vec![1, 2, 3],
        ..Body::default()
    };
    vec![
        (DATA, data(None)),
        (DATA, data(Some(Span::ZERO))),
        (DATA, data(Some(Span::from_us(long - 1)))),
        (ANY, data(Some(Span::from_us(long)))),
        (ANY, data(Some(Span::from_ns(1500)))),
        (ACK, ack(&[(0, 100)], &[])),
        (ACK, late(4_999_000_000)),
        (ACK, late(5_000_000_000)),
        (ANY, late(5_000_000_001)),
        (ACK, late(5_000_000_000 - long)),
        (ANY, late(5_000_000_000 - long - 1)),
        (ANY, ack(&[(40, 100)], &[(100, 5_000_000_000)])),
        (ANY, ack(&[(40, 99)], &[])),
        (ANY, ack(&[(40, 100), (1, 20)], &[])),
        (
            ANY,
            ack(&[(40, 100)], &[(98, 4_900_000_000), (99, 4_900_000_000)]),
        ),
        (
            ACK,
            changed(ack(&[], &[]), |ack| ack.cumulative = Some(1 << 50)),
        ),
        (
            ANY,
            changed(ack(&[(40, 100)], &[]), |ack| ack.cumulative = Some(9)),
        ),
        (
            ACK,
            changed(ack(&[(5, 100)], &[]), |ack| ack.delay = Span::from_ns(long)),
        ),
        (
            ANY,
            changed(ack(&[(5, 100)], &[]), |ack| {
                ack.delay = Span::from_ns(long + 1);
            }),
        ),
        (ANY, ack(&[], &[])),
        (ANY, (Header::Media(media), content)),
    ]
}

#[test]
fn what_is_put_in_comes_out() {
    let mut payloads = Payloads::default();
    // Twice, so that slots are reused.
    for _ in 0..2 {
        let mut slots = Vec::new();
        for (kind, (header, body)) in examples() {
            let slot = payloads.put(&header, &mut body.clone());
            assert_eq!(slot >> PLACE, kind, "{header:?} {body:?}");
            slots.push(slot);
        }
        for (slot, (_, (header, body))) in slots.into_iter().zip(examples()) {
            payloads.read(slot, |shown, content| {
                assert_eq!((shown, content), (&header, &body));
            });
            payloads.free(slot);
        }
    }
}

#[test]
fn places_are_used_again_when_the_last_share_is_gone() {
    let mut payloads = Payloads::default();
    let mut stream = Stream::new(1, "payloads");
    let all = examples();
    // By slot: index of the example, and number of packets that carry it.
    let mut carried: BTreeMap<u32, (usize, u32)> = BTreeMap::new();
    for _ in 0..5000 {
        let dice = stream.below(10);
        let known: Vec<u32> = carried.keys().copied().collect();
        let any = stream.below(known.len().max(1) as u64) as usize;
        match known
            .get(any)
            .copied()
            .filter(|_| dice > 3 || carried.len() > 100)
        {
            None => {
                let which = stream.below(all.len() as u64) as usize;
                let (_, (header, body)) = &all[which];
                let slot = payloads.put(header, &mut body.clone());
                assert!(
                    carried.insert(slot, (which, 1)).is_none(),
                    "the slot is taken"
                );
            }
            Some(slot) if dice > 7 => {
                payloads.share(slot);
                carried.get_mut(&slot).unwrap().1 += 1;
            }
            Some(slot) => {
                let (which, packets) = carried.get_mut(&slot).unwrap();
                let (_, (header, body)) = &all[*which];
                payloads.read(slot, |shown, content| {
                    assert_eq!((shown, content), (header, body));
                });
                payloads.free(slot);
                *packets -= 1;
                if *packets == 0 {
                    carried.remove(&slot);
                }
            }
        }
    }
    let places = payloads.data.all.len() + payloads.acks.all.len() + payloads.others.all.len();
    assert!(places <= 202, "{places} places for 101 messages at a time");
}
