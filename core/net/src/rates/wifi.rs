//! A radio link of IEEE 802.11n/ac: packets are sent in aggregates, and each transmission has additional airtime.
//!
//! ```text
//!  airtime = overhead + ack * 8 / rate + sum over frames of L * 8 / rate
//!  L       = packet + frame, rounded up to 4 bytes
//! ```
//!
//! `overhead` is the part that does not depend on the rate: inter-frame spaces, mean backoff, preamble. A transmission
//! begins when the one before has ended (or immediately, if the link was idle) and takes the packets that wait at that
//! instant, as many as the limits of an aggregate allow, but at least one. All of them arrive at its end. With the
//! defaults this is the model that Høiland-Jørgensen et al. validated against hardware, with its constants.
//!
//! Not modelled: other stations (a second one can be approximated by a lower rate or a longer overhead), the randomness
//! of backoff, collisions, retransmitted frames, rate selection, and TCP acknowledgements that use the same channel.
//! Losses and jitter are separate elements.

use crate::{Entry, Example, RateServer};
use narrows_units::{Bytes, Rate, Span, Time, params};

/// Registry entry.
pub const ENTRY: Entry = Entry {
    name: "wifi",
    summary: "Sends packets in aggregates (A-MPDU), each with a fixed airtime in addition to that of its frames",
    source: "Høiland-Jørgensen et al., Ending the Anomaly, USENIX ATC 2017, section 2.2.1; IEEE 802.11-2016",
    params: WifiParams::PARAMS,
    shorthand: &["rate"],
    example: Example::new(
        "{wifi: {rate: 14.4 Mbit/s}}",
        "Packets arrive in aggregates of four, one of which takes 3.6 ms.",
    )
    .picture(r#"{"seconds": 0.1, "bin_ms": 1}"#),
};

params! {
    /// Parameters.
    struct WifiParams {
        /// Rate of the radio (PHY), in bits per second of frames.
        rate: Rate(1e3..=1e12);
        /// Airtime of a transmission that depends neither on its frames nor on the rate.
        overhead: Span(1.0..=1e10) = "166 µs",
            "ATC 2017, section 2.2.1: preamble 32 us, DIFS 34 us, SIFS 16 us twice, mean backoff 68 us (half of 15 slots of 9 us)";
        /// Size of the block acknowledgement, which is sent at the same rate.
        ack: Bytes(0.0..=1e6) = 58, "ATC 2017, section 2.2.1";
        /// Bytes that a frame has in addition to its packet; frames are padded to a multiple of 4 bytes.
        frame: Bytes(0.0..=1e6) = 42, "ATC 2017: MAC header 34, FCS 4, delimiter 4";
        /// Maximum number of frames in an aggregate.
        frames: Count(1.0..=4096.0) = 64, "IEEE 802.11n: the window of a block acknowledgement";
        /// Maximum number of bytes in an aggregate; a single frame may be larger.
        #[trial("65535", "4000")]
        bytes: Bytes(1.0..=1e9) = 65535, "IEEE 802.11n: largest A-MPDU; 802.11ac: 1048575";
        /// Maximum airtime of the frames of an aggregate; a single frame may take longer.
        time: Span(1.0..=1e10) = "4 ms", "Linux ath9k: 4 ms";
    }
}

crate::registry::build!(dyn RateServer: |params, _| {
    let params = WifiParams::read(params);
    let rate = params.rate.bps();
    // Bytes that can be sent in the maximum airtime.
    let in_time = u128::from(params.time.ns()) * u128::from(rate) / BYTE;
    let mut wifi = Wifi {
        rate,
        overhead: params.overhead.ns() + airtime(params.ack.get(), rate),
        frame: params.frame.get(),
        frames: params.frames,
        bytes: params.bytes.get().min(u64::try_from(in_time).unwrap_or(u64::MAX)),
        full: (1, 1),
        began: Time::ZERO,
        count: 0,
        sum: 0,
    };
    let frames = (wifi.bytes / wifi.length(USUAL)).clamp(1, wifi.frames);
    wifi.full = (frames * u64::from(USUAL), wifi.needs(frames * wifi.length(USUAL)));
    wifi
});

/// Work of a byte, in bits times nanoseconds per second.
const BYTE: u128 = 8_000_000_000;

/// Packet size for which the capacity is reported: full Ethernet packets.
const USUAL: u32 = 1500;

/// Time that `bytes` take, in ns.
fn airtime(bytes: u64, rate: u64) -> u64 {
    u64::try_from((u128::from(bytes) * BYTE).div_ceil(u128::from(rate))).unwrap_or(u64::MAX / 4)
}

struct Wifi {
    /// In bit/s.
    rate: u64,
    /// Overhead of a transmission, including its acknowledgement, in ns.
    overhead: u64,
    /// Bytes of a frame in addition to the packet.
    frame: u64,
    /// Limits of an aggregate.
    frames: u64,
    bytes: u64,
    /// Bytes of packets in the largest aggregate of usual packets, and its duration in ns.
    full: (u64, u64),
    /// The transmission that has just begun: its start, frames, and bytes of frames.
    began: Time,
    count: u64,
    sum: u64,
}

impl Wifi {
    /// Length of the frame of a packet.
    fn length(&self, packet: u32) -> u64 {
        (u64::from(packet) + self.frame).next_multiple_of(4)
    }

    /// Duration of a transmission of `bytes` of frames, in ns.
    fn needs(&self, bytes: u64) -> u64 {
        self.overhead.saturating_add(airtime(bytes, self.rate))
    }

    fn end(&self) -> Time {
        self.began + Span::from_ns(self.needs(self.sum))
    }
}

impl RateServer for Wifi {
    fn serve(&mut self, now: Time, bytes: u32) -> Time {
        (self.began, self.count, self.sum) = (now, 1, self.length(bytes));
        self.end()
    }

    fn rest(&mut self) {}

    fn is_aggregating(&self) -> bool {
        true
    }

    fn has_room(&self) -> bool {
        self.count < self.frames && self.sum < self.bytes
    }

    fn join(&mut self, bytes: u32) -> Option<Time> {
        let sum = self.sum + self.length(bytes);
        if self.count >= self.frames || sum > self.bytes {
            return None;
        }
        (self.count, self.sum) = (self.count + 1, sum);
        Some(self.end())
    }

    /// The capacity for consecutive full aggregates of packets of 1500 bytes.
    fn capacity(&self, from: Time, to: Time) -> Bytes {
        let until = |time: Time| {
            let bytes = u128::from(time.ns()) * u128::from(self.full.0) / u128::from(self.full.1);
            u64::try_from(bytes).unwrap_or(u64::MAX)
        };
        Bytes::new(until(to) - until(from))
    }

    fn rate(&self, _: Time) -> Rate {
        let bits = u128::from(self.full.0) * BYTE / u128::from(self.full.1);
        Rate::from_bps(u64::try_from(bits).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ElementSetup;
    use narrows_units::Params;
    use serde_json::{Value, json};

    fn server(params: &Value) -> Box<dyn RateServer> {
        let params = Params::from_json(ENTRY.params, params.as_object().unwrap()).unwrap();
        build(&params, &ElementSetup::default()).unwrap()
    }

    /// Airtime of an aggregate of `packets` packets of 1500 bytes, in ns.
    fn airtime_of(server: &mut dyn RateServer, packets: u32) -> f64 {
        let mut end = server.serve(Time::ZERO, 1500);
        for _ in 1..packets {
            end = server.join(1500).unwrap();
        }
        end.ns() as f64
    }

    /// The base rates of table 1 of the paper, which follow from mean lengths of aggregates.
    #[test]
    fn rates_are_those_of_ending_the_anomaly() {
        let published = [
            (144_400_000, 4.47, 97.3),
            (144_400_000, 5.08, 101.1),
            (144_400_000, 18.44, 126.7),
            (144_400_000, 18.52, 126.8),
            (7_200_000, 1.92, 6.5),
        ];
        for (rate, frames, expected) in published {
            let mut server = server(&json!({ "rate": rate }));
            // Airtime is linear in the number of frames.
            let (one, two) = (airtime_of(&mut *server, 1), airtime_of(&mut *server, 2));
            let airtime = one + (frames - 1.0) * (two - one);
            let mbps = frames * 1500.0 * 8e3 / airtime;
            // Published with one digit, from lengths with two.
            assert!((mbps - expected).abs() < 0.15, "{rate} {frames}: {mbps}");
        }
    }

    #[test]
    fn an_aggregate_ends_at_its_limits() {
        let fill = |params: &Value, size: u32| {
            let mut server = server(params);
            server.serve(Time::ZERO, size);
            let mut frames = 1;
            while server.has_room() && server.join(size).is_some() {
                frames += 1;
            }
            frames
        };
        // By bytes: 65535 / 1544; by number, of small packets; by time: 4 ms at 7.2 Mbit/s are 3600 bytes.
        assert_eq!(fill(&json!({"rate": 300_000_000}), 1500), 42);
        assert_eq!(fill(&json!({"rate": 300_000_000}), 40), 64);
        assert_eq!(fill(&json!({"rate": 7_200_000}), 1500), 2);
        assert_eq!(fill(&json!({"rate": 300_000_000, "frames": 8}), 1500), 8);
        // A single frame is always sent.
        assert_eq!(fill(&json!({"rate": 1_000_000}), 1500), 1);
    }
}
