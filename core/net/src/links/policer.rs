//! A policer: a token bucket that drops or remarks what it does not cover, and delays nothing.
//!
//! The bucket holds `burst` bytes, is full at the start of the run and fills at `rate`. A packet for
//! which it holds enough takes its bytes out and passes; any other leaves the bucket as it is, and
//! is dropped or passes with another DSCP (the single-rate meter of RFC 2697 without its second
//! bucket).

use crate::token_bucket::TokenBucket;
use crate::per_packet::{PacketDecision, PacketRule, PerPacket};
use crate::{Element, Entry, Example, LinkEffects, Outcomes, Packet, DropReason};
use narrows_units::{Kind, ParamError, ParamSpec, Params, Time};

/// Registry entry.
pub const ENTRY: Entry = Entry {
    name: "policer",
    summary: "Drops or remarks what exceeds a token bucket, without any queue",
    source: "RFC 2697 with EBS = 0; RFC 2475, section 2.3.3",
    params: &[
        ParamSpec::new("rate", Kind::Rate, "Rate at which the bucket fills, in IP bits per second.")
            .range(1.0, 1e13)
            .required(),
        ParamSpec::new(
            "burst",
            Kind::Bytes,
            "Size of the bucket; larger packets never conform. It is full at the start.",
        )
        .range(1.0, 1e12)
        .required(),
        ParamSpec::new(
            "action",
            Kind::Choice(&["drop", "remark"]),
            "What becomes of packets that exceed it.",
        )
        .default("drop"),
        ParamSpec::new("dscp", Kind::Count, "The DSCP that exceeding packets get (remark).")
            .default("0")
            .range(0.0, 63.0)
            .source("RFC 2474: 0, the default forwarding"),
    ],
    shorthand: &[],
    example: Example::new(
        "{policer: {rate: 4 Mbit/s, burst: 75 kB}}",
        "6 Mbit/s come. The burst passes, then a third is dropped; nothing is ever delayed.",
    )
    .picture(r#"{"view": "rate"}"#),
};

/// Effects on packets.
pub const EFFECTS: LinkEffects = LinkEffects::drops(&[POLICED]);

/// Why policers drop.
pub const POLICED: DropReason = DropReason("policed");

crate::registry::build!(dyn Element<P>: |params, _| {
    let (rate, burst, remark) = settings(params);
    PerPacket::new(Policer {
        bucket: TokenBucket::new(rate, burst),
        remark,
    })
});

/// Rate, burst and the DSCP for exceeding packets, if they are not dropped.
fn settings(params: &Params) -> (u64, u64, Option<u8>) {
    let whole = |name: &str| params.integer(name).unwrap_or_default();
    let remark = params.word("action") == Some("remark");
    (
        whole("rate"),
        whole("burst"),
        remark.then_some(whole("dscp") as u8),
    )
}

struct Policer {
    bucket: TokenBucket,
    remark: Option<u8>,
}

impl<P: Packet> PacketRule<P> for Policer {
    fn decide(&mut self, now: Time, packet: &mut P, _: &mut Outcomes<P>) -> PacketDecision {
        self.bucket.fill(now);
        if self.bucket.holds(packet.size()) {
            self.bucket.take(packet.size());
        } else if let Some(dscp) = self.remark {
            packet.set_dscp(dscp);
        } else {
            return PacketDecision::Drop(POLICED);
        }
        PacketDecision::Forward(now)
    }

    fn change(&mut self, now: Time, params: &Params) -> Result<(), ParamError> {
        let (rate, burst, remark) = settings(params);
        self.bucket.change(now, rate, burst);
        self.remark = remark;
        Ok(())
    }
}
