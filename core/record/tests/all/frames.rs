//! Metrics of frames of video, computed by hand.

use crate::reference::{Draft, Plan};
use narrows_record::metrics::measure;
use narrows_record::{FrameRow, TraceRow};
use serde_json::Value;

const MS: u64 = 1_000_000;

/// Two flows of ten seconds; the first sends frames of 5000 bytes every 40 ms, of which those in `lost` never
/// arrive and the others do after `delay`.
fn draft(lost: impl Fn(u64) -> bool, delay: impl Fn(u64) -> u64) -> Draft {
    let mut draft = Plan {
        extra_rtt_ns: vec![0, 0],
        duration_ns: 200 * MS,
        ..Plan::default()
    }
    .draft();
    draft.run.cell["duration_ns"] = (10_000 * MS).into();
    for flow in draft.run.cell["flows"].as_array_mut().unwrap() {
        flow["stop_ns"] = (10_000 * MS).into();
    }
    let row = |frame| FrameRow {
        flow: 1,
        frame,
        captured_ns: frame * 40 * MS,
        bytes: 5000,
        key: frame == 0,
        discarded: false,
        arrived_ns: (!lost(frame)).then(|| frame * 40 * MS + delay(frame)),
    };
    draft.frames = (0..250).map(row).collect();
    draft
}

fn metric(result: &Value, flow: &str, name: &str) -> Option<f64> {
    let rows = result["flows"].as_array().unwrap();
    let row = rows.iter().find(|row| row["flow"] == flow).unwrap();
    let value = &row["metrics"][name];
    assert_eq!(value.is_null(), result["absent"][flow][name].is_string());
    value.as_f64()
}

#[test]
fn a_smooth_picture() {
    let mut d = draft(
        |_| false,
        |frame| if frame < 125 { 60 * MS } else { 80 * MS },
    );
    d.traces = (0..100_u16)
        .map(|n| TraceRow {
            flow: 1,
            time_ns: u64::from(n) * 100 * MS,
            name: "target_bps".into(),
            value: if n < 50 { 1e6 } else { 2e6 },
        })
        .collect();
    let result = measure(&d.record()).unwrap();
    for flow in ["1", "all"] {
        // 125 of 250 frames: the nearest rank is the last of the lower half.
        assert_eq!(metric(&result, flow, "frame_delay_p50_ns"), Some(60e6));
        assert_eq!(metric(&result, flow, "frame_delay_p95_ns"), Some(80e6));
        assert_eq!(metric(&result, flow, "frame_loss_ratio"), Some(0.0));
        assert_eq!(metric(&result, flow, "freezes"), Some(0.0));
        assert_eq!(metric(&result, flow, "freeze_ratio"), Some(0.0));
        // 5000 bytes 25 times a second.
        assert_eq!(metric(&result, flow, "media_sent_bps"), Some(1e6));
        assert_eq!(metric(&result, flow, "media_target_bps"), Some(1.5e6));
    }
    for name in ["frame_delay_p50_ns", "freezes", "media_sent_bps"] {
        assert_eq!(metric(&result, "2", name), None, "{name}");
    }
}

#[test]
fn a_picture_that_stands_still() {
    // Frames 100 to 104 are lost: 6 x 40 = 240 ms between two frames are at least 40 + 150 and 3 x 40. Frames
    // 200 to 202 are lost: 160 ms are not.
    let d = draft(
        |frame| (100..105).contains(&frame) || (200..203).contains(&frame),
        |_| 50 * MS,
    );
    let result = measure(&d.record()).unwrap();
    assert_eq!(metric(&result, "1", "freezes"), Some(1.0));
    // From 50 ms to 10 s.
    let ratio = metric(&result, "1", "freeze_ratio").unwrap();
    assert!((ratio - 240.0 / 9950.0).abs() < 1e-12, "{ratio}");
    // 241 frames were captured at least 400 ms before the end, from 0 to 9600 ms.
    let lost = metric(&result, "1", "frame_loss_ratio").unwrap();
    assert!((lost - 8.0 / 241.0).abs() < 1e-12, "{lost}");
    assert_eq!(
        metric(&result, "1", "media_target_bps"),
        None,
        "no scheme reported one"
    );

    // Late by more than 400 ms is as bad as lost; exactly 400 ms is not late.
    let d = draft(
        |_| false,
        |frame| if frame < 100 { 400 * MS } else { 401 * MS },
    );
    let result = measure(&d.record()).unwrap();
    let late = metric(&result, "1", "frame_loss_ratio").unwrap();
    assert!((late - 141.0 / 241.0).abs() < 1e-12, "{late}");

    // A frame that overtakes: the ones that it overtook are not shown, and the end closes the last freeze.
    let overtaken = |frame| match frame {
        100..=110 => 1000 * MS,
        _ => 50 * MS,
    };
    let d = draft(|frame| frame > 200, overtaken);
    let result = measure(&d.record()).unwrap();
    assert_eq!(metric(&result, "1", "freezes"), Some(2.0));
    // Frame 99 is shown at 4010 ms and frame 111 at 4490 ms; frame 200 at 8050 ms.
    let ratio = metric(&result, "1", "freeze_ratio").unwrap();
    let frozen = 480.0 + 1950.0;
    assert!((ratio - frozen / 9950.0).abs() < 1e-12, "{ratio}");
}

#[test]
fn what_was_thrown_away_was_not_sent() {
    let mut d = draft(|frame| frame % 2 == 1, |_| 50 * MS);
    for row in d.frames.iter_mut().filter(|row| row.frame % 2 == 1) {
        row.discarded = true;
    }
    let result = measure(&d.record()).unwrap();
    assert_eq!(metric(&result, "1", "media_sent_bps"), Some(5e5));
    // 120 odd numbers among 0 to 240.
    assert_eq!(
        metric(&result, "1", "frame_loss_ratio"),
        Some(120.0 / 241.0)
    );
}
