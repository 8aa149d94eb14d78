//! The bytes that leave at once, and the room that a window has for them.

use narrows_units::Rate;

/// Most bytes in a burst: a segment of a network card without its headers.
pub(super) const MAX_BURST: u64 = 65_536 - 1 - 320;
/// Below this rate in bytes per second a burst is a single packet.
const SLOW: u64 = 150_000;

/// Bytes that may leave at once: what the rate delivers in about 1 ms (2^-10 s), in whole packets, at
/// least two unless the rate is slow, and no more than `limit`.
pub(super) fn quantum(pacing: Rate, mss: u64, limit: u64) -> u64 {
    let bytes = pacing.bps() / 8;
    let least = if bytes < SLOW { 1 } else { 2 };
    ((bytes >> 10).min(limit) / mss).clamp(least, 127) * mss
}

/// `bytes` and room for the bursts under way at sender, path and receiver, in an even number of packets: an
/// odd one would be shared unequally between acknowledgements of two; `probing` adds two packets, without
/// which nothing would be tried at windows of a few packets.
pub(super) fn with_budget(bytes: f64, quantum: u64, mss: u64, probing: bool) -> u64 {
    let packets = (bytes / mss as f64).ceil() as u64 + 3 * (quantum / mss);
    (packets.next_multiple_of(2) + if probing { 2 } else { 0 }) * mss
}
