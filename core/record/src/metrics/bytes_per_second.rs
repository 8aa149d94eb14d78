//! Bytes per second of a span.

/// A second, the unit of time scales.
pub(super) const SECOND: u64 = 1_000_000_000;

/// Counts bytes of `time` if that is within the whole seconds of the span.
pub(super) fn count_second(seconds: &mut Vec<u64>, time: u64, (from, to): (u64, u64), bytes: u64) {
    let whole = from + to.saturating_sub(from) / SECOND * SECOND;
    if (from..whole).contains(&time) {
        let index = ((time - from) / SECOND) as usize;
        if seconds.len() <= index {
            seconds.resize(index + 1, 0);
        }
        seconds[index] += bytes;
    }
}
