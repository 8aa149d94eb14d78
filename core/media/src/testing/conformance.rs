//! Requirements of every real-time scheme.

use super::pipe::{Pipe, Way};
use crate::Media;
use narrows_transport::{Header, Media as Message, wire};
use narrows_units::{Params, Rate, Span, Stream, Time};

/// Runs `scheme` (its defaults and each of its profiles) over a randomly changing path for `seconds`, with losses,
/// reordering, duplicates, silence and invalid messages, and checks that it never panics, never spins, shows finite
/// values, counts correctly, is deterministic, recovers after an outage of ten seconds, and is silent once it is
/// stopped.
///
/// # Panics
/// If the scheme violates the contract of [`MediaSender`](crate::MediaSender) or
/// [`MediaReceiver`](crate::MediaReceiver).
pub fn check(scheme: &Media, seed: u64, seconds: u64) {
    let profiles = scheme.profiles.iter().map(|profile| Some(profile.name));
    for profile in std::iter::once(None).chain(profiles) {
        let params = super::params(scheme, profile, &[]);
        for nonsense in [false, true] {
            let first = history(scheme, &params, seed, seconds, nonsense);
            let second = history(scheme, &params, seed, seconds, nonsense);
            assert_eq!(
                first.passed(),
                second.passed(),
                "{}: not repeatable",
                scheme.name
            );
            end(scheme, first, nonsense);
        }
    }
}

fn history(scheme: &Media, params: &Params, seed: u64, seconds: u64, nonsense: bool) -> Pipe {
    let mut random = Stream::new(seed, "history");
    let mut pipe = Pipe::new(scheme, params, seed, Way::new(2.0, 20), Way::new(2.0, 20));
    let mut now = Time::ZERO;
    while now < Time::from_ns(seconds * 1_000_000_000) {
        now += random.span(Span::from_ms(1), Span::from_ms(2000));
        pipe.run_until(now);
        *pipe.forward() = any_way(&mut random);
        *pipe.backward() = any_way(&mut random);
        if nonsense {
            for _ in 0..random.below(20) {
                disturb(&mut pipe, &mut random);
            }
        }
        let snapshot = pipe.sender.snapshot();
        let values = &snapshot.scheme.values;
        assert!(
            values.iter().all(|(_, value)| value.is_finite()),
            "{}: {values:?}",
            scheme.name
        );
    }
    pipe
}

/// From 10 kbit/s to 1 Gbit/s, each decade as likely as the others, and occasionally zero.
fn any_way(random: &mut Stream) -> Way {
    let mut bps = 10_000;
    for _ in 0..random.below(6) {
        bps *= 10;
    }
    bps += random.below(9 * bps);
    let dead = random.chance(0.1);
    let mut share = |chance, most: f64| {
        if random.chance(chance) {
            random.uniform() * most
        } else {
            0.0
        }
    };
    let (loss, duplicates) = (share(0.5, 0.3), share(0.2, 0.1));
    let jitter = if random.chance(0.5) {
        Span::from_ms(1 + random.below(50))
    } else {
        Span::ZERO
    };
    Way {
        rate: Rate::from_bps(if dead { 0 } else { bps }),
        delay: Span::from_ms(random.below(300)),
        jitter,
        buffer: 3000 + random.below(1_000_000),
        loss,
        duplicates,
    }
}

/// A forged message: arbitrary bytes, with numbers near and far.
fn disturb(pipe: &mut Pipe, random: &mut Stream) {
    let content = random.below(60) as usize;
    let mut bytes: Vec<u8> = (0..content).map(|_| random.bits() as u8).collect();
    // Invalid content is most dangerous if it begins like valid content.
    for byte in &mut bytes {
        if random.chance(0.7) {
            *byte = random.below(4) as u8;
        }
    }
    let number = match random.below(4) {
        0 => random.below(1 << 62),
        1 => wire::MAX_NUMBER,
        _ => random.below(10_000),
    };
    let message = Message {
        number,
        length: (content as u64 + random.below(1200)) as u16,
        feedback: random.chance(0.5),
    };
    pipe.deliver(&Header::Media(message), &bytes);
}

/// An outage, a working path, and the end.
fn end(scheme: &Media, mut pipe: Pipe, nonsense: bool) {
    let second = |pipe: &Pipe, seconds: u64| pipe.now() + Span::from_ms(1000 * seconds);
    let good = Way::new(5.0, 20);
    for dead in [true, false] {
        let mut way = good.clone().queue_ms(500);
        if dead {
            way.rate = Rate::from_bps(0);
        }
        *pipe.forward() = way.clone();
        *pipe.backward() = way;
        let until = second(&pipe, if dead { 10 } else { 30 });
        pipe.run_until(until);
    }
    // The rest of a queue of 1 MB at 10 kbit/s may still block the path: the flow has to recover only if the path does,
    // and forged numbers may have desynchronised the ends.
    let recent = pipe
        .passed()
        .iter()
        .filter(|passed| passed.sent + Span::from_ms(10_000) > pipe.now());
    assert!(
        nonsense || recent.count() > 0 || pipe.is_blocked(),
        "{}: stalled after an outage",
        scheme.name
    );
    let (sent, received) = (pipe.sender.counters(), pipe.receiver.counters());
    if !nonsense {
        let arrived = pipe.passed();
        let bytes: u64 = arrived.iter().map(|passed| u64::from(passed.size)).sum();
        assert_eq!(
            received.received_packets,
            arrived.len() as u64,
            "{}",
            scheme.name
        );
        assert_eq!(received.received_bytes, bytes, "{}", scheme.name);
        assert!(sent.acked_packets <= sent.sent_packets, "{}", scheme.name);
        assert!(
            received.goodput_bytes <= received.received_bytes,
            "{}",
            scheme.name
        );
        assert!(
            sent.sent_packets >= arrived.len() as u64 / 2,
            "{}: duplicates at most double",
            scheme.name
        );
    }
    for pair in pipe.frames_sent.windows(2) {
        assert_eq!(
            pair[1].number,
            pair[0].number + 1,
            "{}: frames in order, without gaps",
            scheme.name
        );
        assert!(pair[1].at >= pair[0].at, "{}", scheme.name);
    }
    if !nonsense {
        let known = pipe.frames_sent.len() as u64;
        let made = |number: u64| number <= known;
        assert!(
            pipe.frames_arrived.iter().all(|frame| made(frame.number)),
            "{}",
            scheme.name
        );
        assert_eq!(
            scheme.frames,
            !pipe.frames_sent.is_empty(),
            "{}: frames as registered",
            scheme.name
        );
    }
    pipe.sender.stop();
    assert_eq!(
        pipe.sender.next_wakeup(),
        Time::FAR,
        "{}: wakes up after its end",
        scheme.name
    );
    let until = second(&pipe, 5);
    pipe.run_until(until);
    assert_eq!(
        pipe.sender.counters().sent_packets,
        sent.sent_packets,
        "{}: sends after its end",
        scheme.name
    );
}
