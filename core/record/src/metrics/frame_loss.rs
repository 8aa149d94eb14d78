//! Frames of video that were of no use to a viewer.

use super::{Group, Measured, Metric, Subject};

/// A frame that takes longer is too late for a conversation.
pub(super) const LATE_NS: u64 = 400_000_000;

/// Registry entry.
pub(super) const METRICS: &[Metric] = &[Metric {
    name: "frame_loss_ratio",
    label: "frames lost or late",
    group: Some(Group::Frames),
    definition: "Share of the frames that were not complete at the receiver 400 ms after their capture: discarded by the sender, hit by a loss, or late. Frames of the last 400 ms of a flow are excluded.",
    source: "the limit is that of ITU-T G.114 for one-way delay",
    compute,
    ..Metric::SHARE
}];

fn compute(subject: &Subject<'_>) -> Measured {
    let (mut all, mut missed) = (0_u64, 0_u64);
    for one in subject.frames()? {
        let settled = |captured: u64| captured.saturating_add(LATE_NS) <= one.stop_ns;
        for row in one.rows.iter().filter(|row| settled(row.captured_ns)) {
            let delay = row.arrived_ns.map(|at| at.saturating_sub(row.captured_ns));
            all += 1;
            missed += u64::from(delay.is_none_or(|delay| delay > LATE_NS));
        }
    }
    if all == 0 {
        return Err("all frames were captured in the last 400 ms of their flow".into());
    }
    Ok(missed as f64 / all as f64)
}
