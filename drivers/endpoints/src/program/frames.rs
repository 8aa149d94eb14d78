//! Video frames that a program has sent or received, as reported by the program.
//!
//! Each line of its file is a JSON document. The side that sends the data writes
//! `{"frame": 7, "at_ns": 81234567890123, "bytes": 5012, "key": false}` when it has captured a frame, and
//! `{"target_bps": 800000, "at_ns": 81234567890123}` when it asks its encoder for another rate. The other side writes
//! `{"frame": 7, "at_ns": 81234617890123}` when all of a frame has arrived. `frame` is any number that both sides know,
//! `at_ns` is `CLOCK_MONOTONIC`.

use narrows_cell::{EndpointOutcome, read_regular};
use narrows_media::FrameSent;
use narrows_units::Time;
use serde::Deserialize;
use std::path::Path;

/// Name of the trace in which native schemes record it as well.
const TARGET: &str = "target_bps";
/// Maximum number of lines that are read: 300 frames in each of 3600 seconds.
const MOST_LINES: usize = 1_080_000;
/// Maximum size of a file of frames.
const MOST_BYTES: u64 = 200_000_000;

#[derive(Deserialize)]
struct Line {
    at_ns: u64,
    frame: Option<u64>,
    #[serde(default)]
    bytes: Option<u32>,
    #[serde(default)]
    key: bool,
    #[serde(default)]
    discarded: bool,
    target_bps: Option<f64>,
}

/// Adds the contents of the file at `path` to the report of its end; times are relative to `zero_ns`. Invalid lines are
/// skipped; a file that cannot be read adds nothing.
pub(super) fn add(outcome: &mut EndpointOutcome, path: &Path, zero_ns: u64) {
    let small = path.metadata().is_ok_and(|about| about.len() <= MOST_BYTES);
    if small && let Ok(content) = read_regular(path) {
        read(outcome, &content, zero_ns);
    }
}

fn read(outcome: &mut EndpointOutcome, content: &[u8], zero_ns: u64) {
    let lines = content.split(|&byte| byte == b'\n').take(MOST_LINES);
    for line in lines.filter_map(|line| serde_json::from_slice::<Line>(line).ok()) {
        let at_ns = line.at_ns.saturating_sub(zero_ns);
        if let Some(bps) = line.target_bps.filter(|bps| bps.is_finite()) {
            outcome.traces.push((at_ns, TARGET.to_owned(), bps));
        }
        match (line.frame, line.bytes) {
            (Some(number), Some(bytes)) => outcome.frames.push(
                FrameSent {
                    number,
                    at: Time::from_ns(at_ns),
                    bytes,
                    key: line.key,
                    discarded: line.discarded,
                }
                .into(),
            ),
            (Some(number), None) => outcome.whole.push((number, at_ns)),
            (None, _) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(text: &str) -> EndpointOutcome {
        let mut outcome = EndpointOutcome::default();
        read(&mut outcome, text.as_bytes(), 1_000);
        outcome
    }

    #[test]
    fn a_sender_tells_frames_and_targets() {
        let outcome = told(
            "starting\n\
             {\"target_bps\": 300000, \"at_ns\": 900}\n\
             {\"frame\": 4294967295, \"at_ns\": 1500, \"bytes\": 9000, \"key\": true}\n\
             {\"frame\": 12, \"at_ns\": 2500, \"bytes\": 800, \"discarded\": true}\n\
             {\"frame\": -1, \"at_ns\": 2500, \"bytes\": 800}\n\
             {\"frame\": 13, \"at_ns\": 26",
        );
        let frames: Vec<FrameSent> = outcome.frames.iter().copied().map(Into::into).collect();
        let seen: Vec<_> = frames
            .iter()
            .map(|one| (one.number, one.at.ns(), one.bytes, one.key, one.discarded))
            .collect();
        assert_eq!(
            seen,
            [
                (4_294_967_295, 500, 9000, true, false),
                (12, 1500, 800, false, true)
            ]
        );
        assert_eq!(outcome.traces, [(0, "target_bps".to_owned(), 300_000.0)]);
        assert!(outcome.whole.is_empty());
    }

    #[test]
    fn a_receiver_tells_what_arrived() {
        let outcome = told("{\"frame\": 12, \"at_ns\": 1700}\n\n{\"frame\": 13, \"at_ns\": 1800}");
        assert_eq!(outcome.whole, [(12, 700), (13, 800)]);
        assert!(outcome.frames.is_empty());
    }

    #[test]
    fn a_file_that_is_not_there_tells_nothing() {
        let mut outcome = EndpointOutcome::default();
        add(&mut outcome, Path::new("/no/such/file"), 0);
        add(&mut outcome, Path::new("/dev/zero"), 0);
        assert!(outcome.frames.is_empty() && outcome.whole.is_empty());
    }
}
