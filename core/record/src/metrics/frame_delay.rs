//! Delay of frames of video.

use super::{DelayDistribution, Group, Measured, Metric, Subject};

/// Registry entries.
pub(super) const METRICS: &[Metric] = &[P50, P95];

const P50: Metric = Metric {
    name: "frame_delay_p50_ns",
    label: "median frame delay",
    group: Some(Group::Frames),
    definition: "Median, by nearest rank, of the times from the capture of a frame until its last \
                 packet arrived, over the frames of which all packets arrived. The wait in the sender is included; decoding and a playout buffer are not.",
    source: "RFC 8867, section 4.1 (end-to-end delay, here of frames)",
    compute: |subject| percentile(subject, 0.5),
    ..Metric::TIME
};

const P95: Metric = Metric {
    name: "frame_delay_p95_ns",
    label: "95th percentile frame delay",
    definition: "95th percentile, by nearest rank, of the times from the capture of a frame until \
                 its last packet arrived, over the frames of which all packets arrived.",
    compute: |subject| percentile(subject, 0.95),
    ..P50
};

fn percentile(subject: &Subject<'_>, share: f64) -> Measured {
    let rows = subject.frames()?.flat_map(|one| one.rows);
    let delays = rows.filter_map(|row| Some(row.arrived_ns?.saturating_sub(row.captured_ns)));
    let mut delays: Vec<u64> = delays.collect();
    delays.sort_unstable();
    DelayDistribution::exact(delays)
        .percentile(share)
        .map(|ns| ns as f64)
        .ok_or_else(|| "no frame arrived whole".into())
}
