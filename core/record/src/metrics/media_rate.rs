//! The rate of the video itself.

use super::subject::rate_bps;
use super::{Group, Measured, Metric, Subject};

/// Registry entries.
pub(super) const METRICS: &[Metric] = &[SENT, TARGET];

const SENT: Metric = Metric {
    name: "media_sent_bps",
    label: "media bitrate",
    group: Some(Group::Frames),
    definition: "Bits of the frames that were sent completely, without any header, divided by the time for which the flow ran; summed over flows.",
    source: "RFC 8867, section 4.1 (sending rate), of the media",
    compute: sent_rate,
    ..Metric::RATE
};

const TARGET: Metric = Metric {
    name: "media_target_bps",
    label: "target bitrate",
    definition: "Mean of the bitrate that the scheme asked its encoder for, sampled at regular intervals; summed over flows.",
    source: "the scheme's own account (target_bps of the traces)",
    compute: target,
    ..SENT
};

fn sent_rate(subject: &Subject<'_>) -> Measured {
    let mut sum = 0.0;
    for one in subject.frames()? {
        let rows = one.rows.iter().filter(|row| !row.discarded);
        let bytes = rows.map(|row| u64::from(row.bytes)).sum();
        let lasted = one.stop_ns.saturating_sub(one.start_ns);
        if lasted > 0 {
            sum += rate_bps(bytes, lasted);
        }
    }
    Ok(sum)
}

fn target(subject: &Subject<'_>) -> Measured {
    let targets = subject.frames()?.filter_map(|one| one.target_bps);
    let sum = targets.fold(None, |sum: Option<f64>, bps| Some(sum.unwrap_or(0.0) + bps));
    sum.ok_or_else(|| "no scheme reported a target bitrate".into())
}
