//! The size of bursts, and the allowance of a window for them.

use narrows_units::Rate;

/// Maximum burst in bytes: a segment of a network card without its headers.
pub(super) const MAX_BURST: u64 = 65_536 - 1 - 320;
/// Below this rate in bytes per second a burst is a single packet.
const SLOW: u64 = 150_000;

/// Bytes that may leave at once: the amount that the rate delivers in about 1 ms (2^-10 s), in whole packets, at least
/// two unless the rate is slow, and no more than `limit`.
pub(super) fn quantum(pacing: Rate, mss: u64, limit: u64) -> u64 {
    let bytes = pacing.bps() / 8;
    let least = if bytes < SLOW { 1 } else { 2 };
    ((bytes >> 10).min(limit) / mss).clamp(least, 127) * mss
}

/// `bytes` plus an allowance for the bursts at sender, path and receiver, in an even number of packets: an odd one
/// would be shared unequally between acknowledgements of two; `probing` adds two packets, without which windows of a
/// few packets would not probe.
pub(super) fn with_budget(bytes: f64, quantum: u64, mss: u64, probing: bool) -> u64 {
    let packets = (bytes / mss as f64).ceil() as u64 + 3 * (quantum / mss);
    (packets.next_multiple_of(2) + if probing { 2 } else { 0 }) * mss
}
