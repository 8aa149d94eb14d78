//! Independent bit errors: a packet of n bits arrives with probability (1 - ratio)^n.
//!
//! Provenance: the binary symmetric channel (Shannon, 1948), without correction. Deviations: none.

use narrows_net::{
    DataLimit, DropReason, Element, ElementSetup, Entry, Example, LinkEffects, Outcomes, Packet,
    PacketDecision, PacketRule, PerPacket,
};
use narrows_units::{ParamError, Params, Stream, Time, params};

/// Registry entry.
pub const ENTRY: Entry = Entry {
    name: "biterrors",
    summary: "Drops packets with bit errors, which occur independently with a fixed ratio",
    source: "the binary symmetric channel, Shannon, 1948",
    params: BitErrorsParams::PARAMS,
    shorthand: &["ratio"],
    example: Example::new(
        "{biterrors: 0.0004 %}",
        "Of packets of 1500 bytes 4.7 % are lost, of acknowledgements 0.2 %.",
    )
    .picture(r#"{"view": "rate"}"#),
};

/// Bits of the packet for which the declared effects state the loss.
const FULL_BITS: u32 = 1500 * 8;

/// Effects on packets, for metrics and verifier.
pub const EFFECTS: LinkEffects = LinkEffects::drops(&[BIT_ERROR]).limiting(|state| {
    let ratio = state.get("ratio").and_then(serde_json::Value::as_f64);
    DataLimit::Loss(1.0 - intact(ratio.unwrap_or(0.0), FULL_BITS))
});

/// Reason of its drops, as written to records.
pub const BIT_ERROR: DropReason = DropReason("bit_error");

params! {
    /// Parameters.
    struct BitErrorsParams {
        /// Share of bits that are wrong.
        ratio: Ratio(0.0..=1.0);
    }
}

/// Builds the element from parameters that were checked one by one.
///
/// # Errors
/// None; the registry's signature has them.
pub fn build<P: Packet + 'static>(
    params: &Params,
    setup: &ElementSetup,
) -> Result<Box<dyn Element<P>>, ParamError> {
    Ok(Box::new(PerPacket::new(BitErrors {
        ratio: BitErrorsParams::read(params).ratio,
        stream: setup.stream(),
    })))
}

/// (1 - ratio)^bits by repeated squaring: the same on all machines, which `f64::powi` does not promise.
fn intact(ratio: f64, bits: u32) -> f64 {
    let (mut result, mut square, mut rest) = (1.0, 1.0 - ratio, bits);
    while rest > 0 {
        if rest % 2 == 1 {
            result *= square;
        }
        square *= square;
        rest /= 2;
    }
    result
}

struct BitErrors {
    ratio: f64,
    stream: Stream,
}

impl<P: Packet> PacketRule<P> for BitErrors {
    fn decide(&mut self, now: Time, packet: &mut P, _: &mut Outcomes<P>) -> PacketDecision {
        if self.stream.chance(intact(self.ratio, packet.size() * 8)) {
            PacketDecision::Forward(now)
        } else {
            PacketDecision::Drop(BIT_ERROR)
        }
    }

    fn change(&mut self, _: Time, params: &Params) -> Result<(), ParamError> {
        self.ratio = BitErrorsParams::read(params).ratio;
        Ok(())
    }
}
