//! A policer: a token bucket that drops or remarks excess packets, and delays none.
//!
//! The bucket holds `burst` bytes, is full at the start of the run and fills at `rate`. A packet for which it holds
//! enough tokens removes its bytes and passes; any other packet leaves the bucket unchanged, and is dropped or passes
//! with another DSCP (the single-rate meter of RFC 2697 without its second bucket).

use crate::token_bucket::TokenBucket;
use crate::per_packet::{PacketDecision, PacketRule, PerPacket};
use crate::declared_effects::number;
use crate::{DataLimit, DropReason, Element, Entry, Example, LinkEffects, Outcomes, Packet};
use narrows_units::{ParamError, Params, Time, choice, params};
use serde_json::Value;

/// Registry entry.
pub const ENTRY: Entry = Entry {
    name: "policer",
    summary: "Drops or remarks packets that exceed a token bucket, without any queue",
    source: "RFC 2697 with EBS = 0; RFC 2475, section 2.3.3",
    params: PolicerParams::PARAMS,
    shorthand: &[],
    example: Example::new(
        "{policer: {rate: 4 Mbit/s, burst: 75 kB}}",
        "6 Mbit/s arrive. The burst passes, then a third is dropped; no packet is ever delayed.",
    )
    .picture(r#"{"view": "rate"}"#),
};

/// Effects on packets.
pub const EFFECTS: LinkEffects = LinkEffects::drops(&[POLICED]).limiting(|state| {
    match state.get("action").and_then(Value::as_str) {
        Some("remark") => DataLimit::None,
        _ => DataLimit::Excess(number(state, "burst", 0.0)),
    }
});

/// Reason of drops by policers.
pub const POLICED: DropReason = DropReason("policed");

crate::registry::build!(dyn Element<P>: |params, _| {
    let params = PolicerParams::read(params);
    PerPacket::new(Policer { bucket: TokenBucket::new(params.rate.bps(), params.burst.get()), params })
});

choice! {
    /// Treatment of packets that exceed the bucket.
    enum Action { Drop = "drop", Remark = "remark" }
}

params! {
    /// Parameters.
    struct PolicerParams {
        /// Rate at which the bucket fills, in IP bits per second.
        rate: Rate(1.0..=1e13);
        /// Size of the bucket; larger packets never conform. It is full at the start.
        burst: Bytes(1.0..=1e12);
        /// Treatment of packets that exceed the bucket.
        action: Action = "drop";
        /// The DSCP set on excess packets (remark).
        dscp: Count(0.0..=63.0) = 0, "RFC 2474: 0, the default forwarding";
    }
}

struct Policer {
    bucket: TokenBucket,
    params: PolicerParams,
}

impl<P: Packet> PacketRule<P> for Policer {
    fn decide(&mut self, now: Time, packet: &mut P, _: &mut Outcomes<P>) -> PacketDecision {
        self.bucket.fill(now);
        if self.bucket.holds(packet.size()) {
            self.bucket.take(packet.size());
        } else if self.params.action == Action::Remark {
            packet.set_dscp(self.params.dscp as u8);
        } else {
            return PacketDecision::Drop(POLICED);
        }
        PacketDecision::Forward(now)
    }

    fn change(&mut self, now: Time, params: &Params) -> Result<(), ParamError> {
        self.params = PolicerParams::read(params);
        self.bucket.change(now, self.params.rate.bps(), self.params.burst.get());
        Ok(())
    }
}
