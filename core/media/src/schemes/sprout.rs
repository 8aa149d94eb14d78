//! Sprout: a receiver that infers how the rate of a cellular link wanders, and a sender that bets on it cautiously.
//!
//! Provenance: Winstein, Sivaraman and Balakrishnan, "Stochastic forecasts achieve high throughput and low delay over
//! cellular networks" (NSDI 2013); constants and the sender's accounting as in keithw/sprout, branch `sendonly`,
//! commit 366e35c, which the Pantheon of Congestion Control ran. Deviations: the tables of forecasts are computed
//! from the constants when the first receiver starts, not shipped; likelihoods are logarithms, so that
//! hundreds of packets in a tick do not make all of them zero; reports pause after 10 s without a packet; packets are as long
//! as the original's (46 bytes of headers, 18 more for a forecast of its own every 20 ms, reports of 66), but those without
//! payload have 60 or 64. By default a tick that passes without a new forecast takes its own part of the forecast from the
//! queue estimate; the original takes the whole cumulative forecast, and so forgets packets that are still queued
//! (`drain: cumulative`, in the profile `pantheon`).
//! By default a window of at most two packets is sent as a whole, once nothing is under way; the original sends as
//! soon as a byte is allowed (`whole: 0`, in the profile `pantheon`).
//!
//! Time matters: ticks of the receiver, which begin with the first packet, and reports to the sender are two cycles of
//! 20 ms. The original reports when its process wakes, a little more than 20 ms after the report before (both ends
//! look around at every packet, and after 10 ms at the latest), and so one cycle drifts through the other within
//! seconds. Without that (`lateness: 0`) they lock into each other, and on long or slow paths the rate depends on the
//! millisecond of the round trip, by a factor of four at 12 Mbit/s and 100 ms.
//!
//! The receiver counts what arrives in ticks of 20 ms, unless the sender announced silence. It holds
//! probabilities for 256 rates up to 1000 packets/s and for an outage; each tick they spread as a Brownian motion
//! and are weighed with the Poisson probability of the count. Every 20 ms it reports how many packets at least
//! will arrive within 1 to 8 ticks (95 % sure), and how many bytes have been received or lost: everything
//! sent more than 10 ms before a packet that arrived is one or the other. The sender keeps as much under
//! way as the forecast says will have arrived within the look-ahead of 100 ms. Nothing is repeated. If it
//! may not send for 50 ms it sends an empty packet, which after an outage is what shows that the link is back; an
//! application that pauses leaves the flow with these alone.
//!
//! Pitfalls: what is under way includes the propagation of both directions, so throughput collapses as the round trip
//! nears the look-ahead (above 80 ms), however fast the link. The grid ends at 1000 packets/s, about 11 Mbit/s; only
//! round trips much shorter than the look-ahead carry more. Losses cause no reaction of their own, but what is lost
//! has not arrived: at 20 % the forecast spirals down to a seventh of the link. The wrong queue estimate of the
//! original changes single windows and hardly any mean: `drain` is for those who want to see.
//!
//! A receiver cannot tell a slow link from a sender that is not allowed more: one packet in each tick makes a forecast
//! of two within the look-ahead, which on a round trip of two ticks is one in each tick again. Only packets that
//! arrive together raise the forecast. With the profile `pantheon` a flow falls into this state after one outage in
//! ten, and stays until the two cycles have drifted apart: for 4 to 20 s, longer where the round trip is two ticks to
//! the millisecond; without `lateness` for good.
//! `whole` is the way out: two packets sent at once are two in a tick. It costs a sixth of the rate at 0.5 Mbit/s
//! and 40 ms. Payload, clock, drain and whole apart, the profile `pantheon` is the default.
//!
//! The tables take 2 MB and about 10 million additions and multiplications at the start, and are shared by all
//! receivers with the published volatility and escape; a tick takes some 40 thousand.

mod forecast;
mod message;
mod model;
mod receiver;
mod sender;
mod sleep;
#[cfg(test)]
mod tests;

use crate::{Media, MediaReceiver, MediaSender, MediaSetup};
use model::RateModel;
use narrows_cc::Profile;
use narrows_cc::parts::StepClock;
use narrows_units::{ParamError, Params, Rate, Span, choice, params};

/// Registry line.
pub const SCHEME: Media = Media {
    name: "sprout",
    summary: "Sprout: sends what a cautious forecast of the link's rate will carry within 100 ms",
    source: "Winstein, Sivaraman, Balakrishnan, NSDI 2013; keithw/sprout, branch sendonly",
    frames: false,
    params: SproutParams::PARAMS,
    profiles: &[Profile {
        name: "pantheon",
        doc: "As the Pantheon of Congestion Control ran it (StanfordSNR/pantheon, src/wrappers/sprout.py): payload of 1400 bytes, whole milliseconds, queue estimate of the original, windows of any size.",
        params: &[
            ("payload", "1400"),
            ("whole", "0"),
            ("drain", "cumulative"),
            ("clock", "1000000"),
        ],
        transport: &[],
    }],
    sender,
    receiver,
};

params! {
    /// Parameters of Sprout.
    #[derive(Copy)]
    struct SproutParams {
        /// Probability that at least the forecast arrives.
        confidence: Ratio(0.5..=0.9999) = 0.95, "paper, section 3";
        /// Time within which all packets are to be through, in whole ticks of 20 ms.
        lookahead: Span(2e7..=1.4e8) = "100 ms", "paper, section 3: five ticks";
        /// Largest payload of a packet; 46 bytes of headers come on top, and 18 more every 20 ms.
        payload: Bytes(1.0..=9000.0) = 1400, "Pantheon's patch of keithw/sprout; 1440 B before it";
        /// Standard deviation that the rate acquires in one second, in packets/s.
        volatility: Number(10.0..=2000.0) = 200, "paper, section 3: packets/s per square root of a second";
        /// Ends of an outage per second.
        escape: Number(0.01..=50.0) = 1, "paper, section 3: per second";
        /// Windows of at most so many packets are sent as a whole, when nothing is under way any more; 0: as soon as
        /// a byte is allowed.
        whole: Packets(0.0..=100.0) = 2, "own choice; keithw/sprout: 0";
        /// Decrease of the queue estimate with each tick: its own part of the forecast, or the forecast from
        /// the start on.
        drain: Drain = "tick", "own choice; keithw/sprout: cumulative";
        /// Steps of the clock that both ends read.
        clock: Span(1.0..=2e7) = "1 ns", "own choice; keithw/sprout: 1 ms";
        /// Mean lateness with which a sleeping end wakes, each time between half and one and a half of it.
        lateness: Span(0.0..=1e7) = "100 µs", "own choice: what a process on Linux sees";
        /// When the application pauses, counted from the start of the flow.
        pause_at: Span = 0, "own choice";
        /// For how long the application has nothing to send; 0: it always has.
        pause_for: Span = 0, "own choice: no pause";
        /// Rate at which the application has something to send; 0: always more.
        content_rate: Rate(0.0..=1e10) = 0, "own choice: always more to send";
    }
}

/// Length of a tick.
const TICK: Span = Span::from_ms(20);
/// Bytes of a packet in the model.
const UNIT: u64 = 1400;

choice! {
    /// Decrease of the queue estimate per tick.
    enum Drain {
        /// The forecast for the tick.
        Tick = "tick",
        /// The forecast from the beginning to the end of the tick.
        Cumulative = "cumulative",
    }
}

/// The parameters.
#[derive(Clone, Copy, Debug)]
struct SproutSettings {
    model: RateModel,
    /// In ticks.
    lookahead: usize,
    clock: StepClock,
    /// Load of the application, if that is little.
    content: Option<Rate>,
    params: SproutParams,
}

impl SproutSettings {
    fn new(params: &Params) -> Result<Self, ParamError> {
        let params = SproutParams::read(params);
        let lookahead = params.lookahead;
        if !lookahead.ns().is_multiple_of(TICK.ns()) {
            return Err(ParamError::Conflict(format!(
                "lookahead {lookahead} is no whole number of ticks of {TICK}"
            )));
        }
        Ok(SproutSettings {
            model: RateModel {
                volatility: params.volatility,
                escape: params.escape,
            },
            lookahead: (lookahead.ns() / TICK.ns()) as usize,
            clock: StepClock::new(params.clock),
            content: Some(params.content_rate).filter(|rate| rate.bps() > 0),
            params,
        })
    }
}

fn sender(params: &Params, setup: MediaSetup) -> Result<Box<dyn MediaSender>, ParamError> {
    let settings = SproutSettings::new(params)?;
    Ok(Box::new(sender::SproutSender::new(settings, setup)))
}

fn receiver(params: &Params, setup: MediaSetup) -> Result<Box<dyn MediaReceiver>, ParamError> {
    Ok(Box::new(receiver::SproutReceiver::new(SproutSettings::new(params)?, setup)))
}
