//! Flows of real-time schemes: construction of their ends, and joining of both ends' reports about video frames into
//! one table.

use crate::{Cell, CellError, Flow, SchemeRef};
use narrows_media::{FrameArrived, FrameSent, Media, MediaReceiver, MediaSender, MediaSetup};
use narrows_record::{FrameRow, RunDocument, Severity};
use narrows_transport::wire;
use narrows_units::{ParamError, Params, Stream};
use std::collections::BTreeMap;

/// The sending end of a real-time flow.
///
/// # Errors
/// Parameters that contradict each other, or a flow of another kind.
pub fn media_sender(cell: &Cell, flow: &Flow) -> Result<Box<dyn MediaSender>, CellError> {
    let (scheme, params) = scheme_of(flow)?;
    let setup = setup(cell, flow, &format!("flow/{}", flow.flow));
    (scheme.sender)(params, setup).map_err(|error| refuse(flow, error))
}

/// The receiving end of a real-time flow.
///
/// # Errors
/// Parameters that contradict each other, or a flow of another kind.
pub fn media_receiver(cell: &Cell, flow: &Flow) -> Result<Box<dyn MediaReceiver>, CellError> {
    let (scheme, params) = scheme_of(flow)?;
    let setup = setup(cell, flow, &format!("flow/{}/receiver", flow.flow));
    (scheme.receiver)(params, setup).map_err(|error| refuse(flow, error))
}

fn scheme_of(flow: &Flow) -> Result<(&'static Media, &Params), CellError> {
    match &flow.scheme {
        SchemeRef::Media(scheme, params) => Ok((scheme, params)),
        _ => Err(CellError::Conflict(format!(
            "flow {}: {} is not a native real-time scheme",
            flow.flow, flow.name
        ))),
    }
}

fn setup(cell: &Cell, flow: &Flow, stream: &str) -> MediaSetup {
    let payload = cell.transport(flow, flow.from).mss();
    MediaSetup {
        now: flow.start,
        // The size of a full packet of our transport between the same hosts.
        packet_size: wire::IP_UDP + wire::DATA_HEADER + payload as u32,
        random: Stream::new(cell.seed, stream),
    }
}

fn refuse(flow: &Flow, error: ParamError) -> CellError {
    CellError::Params {
        at: format!("flow {} ({})", flow.flow, flow.name),
        error,
    }
}

/// Joins the reports of the sender and the receiver of `flow` about its frames into one table; also returns the number
/// of frames that arrived but were never sent. A frame that the receiver reports twice has two rows, which the verifier
/// detects.
pub fn merge_frames(
    flow: u16,
    sent: &[FrameSent],
    arrived: &[FrameArrived],
) -> (Vec<FrameRow>, u64) {
    let row = |frame: &FrameSent| FrameRow {
        flow,
        frame: frame.number,
        captured_ns: frame.at.ns(),
        bytes: frame.bytes,
        key: frame.key,
        discarded: frame.discarded,
        arrived_ns: None,
    };
    let mut rows: Vec<FrameRow> = sent.iter().map(row).collect();
    let mut again = Vec::new();
    let mut strangers = 0;
    for FrameArrived { number, at } in arrived {
        match rows.binary_search_by_key(number, |row| row.frame) {
            Ok(place) if rows[place].arrived_ns.is_none() => rows[place].arrived_ns = Some(at.ns()),
            Ok(place) => again.push(FrameRow {
                arrived_ns: Some(at.ns()),
                ..rows[place]
            }),
            Err(_) => strangers += 1,
        }
    }
    rows.extend(again);
    rows.sort_by_key(|row| row.frame);
    (rows, strangers)
}

/// Renumbers the frames of a program like those of native schemes, 0, 1, 2 ... in the order of their capture. Frames
/// that arrived but were never sent have numbers behind all others.
pub(crate) fn number_frames(sent: &mut [FrameSent], arrived: &mut [FrameArrived]) {
    sent.sort_by_key(|frame| frame.at);
    let mut numbers = BTreeMap::new();
    for (number, frame) in (0..).zip(sent.iter_mut()) {
        numbers.insert(frame.number, number);
        frame.number = number;
    }
    for frame in arrived {
        let known = numbers.get(&frame.number);
        frame.number = known.copied().unwrap_or(u64::MAX);
    }
}

/// Judges a run in which frames of `flow` arrived that its sender never reported.
pub fn judge_frames(run: &mut RunDocument, flow: &Flow, strangers: u64) {
    if strangers > 0 {
        let text = format!(
            "{strangers} frames of flow {} ({}) arrived that its sender never sent.",
            flow.flow, flow.name
        );
        run.judge(Severity::Invalid, "frames", text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_units::{Span, Time};

    fn time(ms: u64) -> Time {
        Time::ZERO + Span::from_ms(ms)
    }

    #[test]
    fn frames_of_programs_get_numbers_of_ours() {
        let frame = |number, ms| FrameSent {
            number,
            at: time(ms),
            bytes: 1000,
            key: false,
            discarded: false,
        };
        // RTP time stamps, which begin anywhere and wrap.
        let mut sent = [
            frame(2_000, 80),
            frame(4_294_964_000, 0),
            frame(4_294_967_000, 40),
        ];
        let mut arrived = [4_294_964_000, 2_000, 77].map(|number| FrameArrived {
            number,
            at: time(100),
        });
        number_frames(&mut sent, &mut arrived);
        assert_eq!(sent.map(|one| one.at.ns() / 1_000_000), [0, 40, 80]);
        assert_eq!(sent.map(|one| one.number), [0, 1, 2]);
        assert_eq!(arrived.map(|one| one.number), [0, 2, u64::MAX]);
        let (rows, strangers) = merge_frames(1, &sent, &arrived);
        assert_eq!(strangers, 1);
        assert_eq!(rows[1].arrived_ns, None);
    }

    #[test]
    fn both_ends_tell_one_story() {
        let sent = |number| FrameSent {
            number,
            at: time(40 * number),
            bytes: 1000,
            key: number == 0,
            discarded: number == 2,
        };
        let arrived = |number, ms| FrameArrived {
            number,
            at: time(ms),
        };
        let (rows, strangers) = merge_frames(
            7,
            &[sent(0), sent(1), sent(2), sent(3)],
            &[arrived(0, 50), arrived(3, 160), arrived(1, 170)],
        );
        assert_eq!(strangers, 0);
        let times: Vec<Option<u64>> = rows.iter().map(|row| row.arrived_ns).collect();
        let ms = |ms: u64| Some(ms * 1_000_000);
        assert_eq!(times, [ms(50), ms(170), None, ms(160)]);
        assert!(rows[0].key && rows[2].discarded && rows.iter().all(|row| row.flow == 7));
        // Mismatches are not hidden.
        let (rows, strangers) = merge_frames(
            7,
            &[sent(0)],
            &[arrived(0, 1), arrived(0, 2), arrived(5, 3)],
        );
        assert_eq!((rows.len(), strangers), (2, 1));
        assert_eq!(rows[1].arrived_ns, ms(2));
    }
}
