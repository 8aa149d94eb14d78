use super::*;
use narrows_units::Bytes;

fn config() -> EncoderConfig {
    EncoderConfig {
        params: EncoderParams {
            frame_rate: 25.0,
            min_rate: Rate::from_bps(64_000),
            max_rate: Rate::from_mbps(20.0),
            start_rate: Rate::from_mbps(1.0),
            noise: 0.0,
            key_interval: Span::ZERO,
            key_size: 1.0,
            least_frame: Bytes::ZERO,
            reaction: Span::ZERO,
            pause_at: Span::ZERO,
            pause_for: Span::ZERO,
            resolution: Ladder::Any,
            content_rate: Rate::from_bps(0),
        },
        min_bps: 64e3,
        max_bps: 20e6,
        start_bps: 1e6,
        content_bps: f64::INFINITY,
        ladder: &[],
        payload: 1200,
    }
}

fn encoder(config: EncoderConfig) -> Encoder {
    Encoder::new(config, Time::ZERO, Stream::new(1, "encoder"))
}

/// All frames up to `end` (exclusive).
fn frames(encoder: &mut Encoder, end: Time) -> Vec<Frame> {
    let mut made = vec![];
    while encoder.next_capture() < end {
        made.extend(encoder.capture(encoder.next_capture()));
    }
    made
}

#[test]
fn frame_sizes_are_those_of_screams_sample_program() {
    // (target in bit/s, bytes of a frame without noise), by the formula: the share of a frame at 25 frames/s after 160
    // bit of header per packet. A target of -1 requests a key frame.
    for (target, bytes) in [(64e3, 300), (200e3, 980), (1e6, 4916), (-1.0, 5)] {
        assert_eq!(frame_budget(target, 25.0, 1200) as u32, bytes);
    }
}

#[test]
fn the_rate_follows_the_target_with_headers_and_noise() {
    let mut config = config();
    config.params.noise = 0.1;
    let mut encoder = encoder(config);
    let made = frames(&mut encoder, Time::from_ns(40_000_000_000));
    assert_eq!(made.len(), 1000);
    let size = |frame: &Frame| u64::from(frame.bytes + 20 * frame.bytes.div_ceil(1200));
    let bps = made.iter().map(size).sum::<u64>() as f64 * 8.0 / 40.0;
    // The noise has a standard deviation of 9.6 % and is correlated over about nine frames: the standard error over
    // 1000 frames is 0.9 %; the tolerance is three of them.
    assert!((0.97e6..1.03e6).contains(&bps), "{bps}");
    let mean = made.iter().map(|frame| f64::from(frame.bytes)).sum::<f64>() / 1000.0;
    let spread = |frame: &Frame| (f64::from(frame.bytes) / mean - 1.0).powi(2);
    let sd = (made.iter().map(spread).sum::<f64>() / 1000.0).sqrt();
    // 0.2 / sqrt(12) / sqrt(1 - 0.64) = 0.096.
    assert!((0.08..0.11).contains(&sd), "{sd}");
    assert!(
        made.iter()
            .enumerate()
            .all(|(index, frame)| frame.number == index as u32)
    );
}

#[test]
fn pictures_that_need_little_get_no_more() {
    let mut config = config();
    config.content_bps = 200e3;
    let mut encoder = encoder(config);
    let made = frames(&mut encoder, Time::from_ns(4_000_000_000));
    assert!(made.iter().all(|frame| frame.bytes == 980), "{made:?}");
    // Nor do they exceed the target.
    encoder.set_target(64e3);
    let made = frames(&mut encoder, Time::from_ns(8_000_000_000));
    assert!(made.iter().all(|frame| frame.bytes == 300), "{made:?}");
}

#[test]
fn key_frames_are_paid_back() {
    let mut config = config();
    config.params.key_size = 4.0;
    config.params.key_interval = Span::from_ms(2000);
    let mut encoder = encoder(config);
    let made = frames(&mut encoder, Time::from_ns(8_000_000_000));
    let keys: Vec<_> = made
        .iter()
        .filter(|frame| frame.key)
        .map(|frame| frame.number)
        .collect();
    assert_eq!(keys, [0, 50, 100, 150]);
    assert_eq!(made[50].bytes, 4 * 4916 + 2, "four of 4916.67 bytes");
    assert_eq!(made[51].bytes, 2458);
    let total: u32 = made.iter().map(|frame| frame.bytes).sum();
    let (plain, rounding) = (4916.666 * 200.0, 200.0);
    assert!((f64::from(total) - plain).abs() <= rounding, "{total}");
    encoder.request_key();
    assert!(encoder.capture(encoder.next_capture()).unwrap().key);
    assert!(!encoder.capture(encoder.next_capture()).unwrap().key);
}

#[test]
fn a_request_without_key_frames_gives_next_to_nothing() {
    let mut config = config();
    config.params.key_size = 0.0;
    let mut encoder = encoder(config);
    assert_eq!(encoder.capture(Time::ZERO).unwrap().bytes, 4916);
    encoder.request_key();
    assert_eq!(encoder.capture(encoder.next_capture()).unwrap().bytes, 5);
}

#[test]
fn a_pause_has_no_frames_and_ends_with_a_key_frame() {
    let mut config = config();
    config.params.pause_at = Span::from_ms(1000);
    config.params.pause_for = Span::from_ms(3000);
    let mut encoder = encoder(config);
    let made = frames(&mut encoder, Time::from_ns(5_000_000_000));
    let ms: Vec<_> = made.iter().map(|frame| frame.at.ns() / 1_000_000).collect();
    assert_eq!(ms[..25].last(), Some(&960));
    assert_eq!(ms[25], 4000);
    assert!(made[25].key);
    assert_eq!(made[25].number, 25, "numbers have no gap");
}

#[test]
fn the_ladder_bounds_the_rate_and_comes_back() {
    let mut config = config();
    config.ladder = VGA;
    config.params.frame_rate = 30.0;
    config.start_bps = 300e3;
    let mut encoder = encoder(config);
    assert_eq!(encoder.resolution(), Some(Resolution::new(640, 480)));
    encoder.set_target(5e6);
    let rate = |made: &[Frame], seconds: f64| {
        let size = |frame: &Frame| f64::from(frame.bytes + 20 * frame.bytes.div_ceil(1200));
        made.iter().map(size).sum::<f64>() * 8.0 / seconds
    };
    let made = frames(&mut encoder, Time::from_ns(10_000_000_000));
    assert!(
        (rate(&made, 10.0) / 1.7e6 - 1.0).abs() < 0.02,
        "1700 kbit/s at most"
    );
    // 100 kbit/s: too little for 640x480 (166 kbit/s) and, two seconds later, just enough for 480x360 (93).
    encoder.set_target(100e3);
    let made = frames(&mut encoder, Time::from_ns(30_000_000_000));
    assert_eq!(encoder.resolution(), Some(Resolution::new(480, 360)));
    assert_eq!(
        made.iter().filter(|frame| frame.key).count(),
        1,
        "for the new resolution"
    );
    encoder.set_target(50e3);
    frames(&mut encoder, Time::from_ns(40_000_000_000));
    assert_eq!(encoder.resolution(), Some(Resolution::new(320, 240)));
    encoder.set_target(5e6);
    let made = frames(&mut encoder, Time::from_ns(41_900_000_000));
    assert!(rate(&made, 1.9) <= 1.7e6 * 1.02);
    frames(&mut encoder, Time::from_ns(50_000_000_000));
    assert_eq!(encoder.resolution(), Some(Resolution::new(640, 480)));
}

#[test]
fn frames_too_small_are_left_out_and_their_bytes_kept() {
    let mut config = config();
    config.params.least_frame = Bytes::new(600);
    config.start_bps = 64e3;
    let mut encoder = encoder(config);
    let made = frames(&mut encoder, Time::from_ns(10_000_000_000));
    // 300 bytes per capture: every second frame, of 600.
    assert!((125..=126).contains(&made.len()), "{}", made.len());
    assert!(made[2..].iter().all(|frame| frame.bytes == 600));
}

#[test]
fn a_slow_encoder_takes_targets_over_now_and_then() {
    let mut config = config();
    config.params.reaction = Span::from_ms(100);
    let mut encoder = encoder(config);
    encoder.capture(Time::ZERO);
    encoder.set_target(200e3);
    let made = frames(&mut encoder, Time::from_ns(200_000_000));
    let bytes: Vec<_> = made.iter().map(|frame| frame.bytes).collect();
    assert_eq!(bytes, [4916, 4916, 980, 980], "at 40, 80, 120 and 160 ms");
}

#[test]
fn a_driver_that_was_away_gets_one_frame() {
    let mut encoder = encoder(config());
    encoder.capture(Time::ZERO);
    let late = Time::from_ns(60_000_000_000);
    assert_eq!(encoder.capture(late).map(|frame| frame.at), Some(late));
    assert_eq!(encoder.capture(late), None);
}
