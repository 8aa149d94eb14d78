//! Sprout: a receiver infers the varying rate of a cellular link, and the sender follows a cautious forecast of it.
//!
//! Provenance: Winstein, Sivaraman and Balakrishnan, "Stochastic forecasts achieve high throughput and low delay over
//! cellular networks" (NSDI 2013); constants and the sender's accounting as in keithw/sprout, branch `sendonly`, commit
//! 366e35c, which the Pantheon of Congestion Control ran. Deviations: the forecast tables are computed from the
//! constants when the first receiver starts, instead of being shipped; likelihoods are logarithms, so that hundreds of
//! packets in a tick do not underflow; reports pause after 10 s without a packet; packet sizes are the original's (46
//! bytes of headers, 18 more for the sender's forecast every 20 ms, reports of 66), but packets without payload have 60
//! or 64. By default each tick without a new forecast subtracts only its own part of the forecast from the queue
//! estimate; the original subtracts the whole cumulative forecast, and so forgets packets that are still queued
//! (`drain: cumulative`, in the profile `pantheon`). By default a window of at most two packets is sent as a whole,
//! once nothing is in flight; the original sends as soon as a byte is allowed (`whole: 0`, in the profile `pantheon`).
//!
//! Timing matters: the receiver's ticks, which begin with the first packet, and its reports to the sender are two
//! cycles of 20 ms. The original reports when its process wakes, slightly more than 20 ms after the previous report
//! (both ends wake at every packet, and after 10 ms at the latest), so one cycle drifts through the other within
//! seconds. Without that (`lateness: 0`) they lock to each other, and on long or slow paths the rate depends on the
//! millisecond of the round trip, by a factor of four at 12 Mbit/s and 100 ms.
//!
//! The receiver counts what arrives in ticks of 20 ms, unless the sender announced silence. It maintains probabilities
//! for 256 rates up to 1000 packets/s and for an outage; in each tick they spread as a Brownian motion and are weighted
//! with the Poisson probability of the count. Every 20 ms it reports the minimum number of packets that will arrive
//! within 1 to 8 ticks (with 95 % confidence), and how many bytes have been received or lost: everything sent more than
//! 10 ms before a packet that arrived is one or the other. The sender keeps as much in flight as the forecast predicts
//! to arrive within the look-ahead of 100 ms. Nothing is retransmitted. If it may not send for 50 ms it sends an empty
//! packet, which reveals the end of an outage; while the application pauses, only these are sent.
//!
//! Pitfalls: the data in flight includes the propagation delay of both directions, so throughput collapses as the round
//! trip nears the look-ahead (above 80 ms), regardless of the link's rate. The grid ends at 1000 packets/s, about 11
//! Mbit/s; only round trips much shorter than the look-ahead carry more. Losses have no direct effect, but lost packets
//! do not arrive: at 20 % the forecast spirals down to a seventh of the link. The wrong queue estimate of the original
//! changes individual windows and hardly any mean: `drain` exists for comparison.
//!
//! A receiver cannot distinguish a slow link from a limited sender: one packet in each tick yields a forecast of two
//! within the look-ahead, which with a round trip of two ticks is one in each tick again. Only packets that arrive
//! together raise the forecast. With the profile `pantheon` a flow enters this state after one outage in ten, and stays
//! until the two cycles have drifted apart: for 4 to 20 s, longer if the round trip is exactly two ticks; without
//! `lateness` for ever. `whole` avoids it: two packets sent at once are two in a tick. It costs a sixth of the rate at
//! 0.5 Mbit/s and 40 ms. Except for payload, clock, drain and whole, the profile `pantheon` equals the defaults.
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

/// Registry entry.
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
        /// Probability that at least the forecast number of packets arrives.
        confidence: Ratio(0.5..=0.9999) = 0.95, "paper, section 3";
        /// Look-ahead within which all packets must arrive, in whole ticks of 20 ms.
        lookahead: Span(2e7..=1.4e8) = "100 ms", "paper, section 3: five ticks";
        /// Largest payload of a packet; 46 bytes of headers are added, and 18 more every 20 ms.
        payload: Bytes(1.0..=9000.0) = 1400, "Pantheon's patch of keithw/sprout; 1440 B before it";
        /// Standard deviation of the rate's change in one second, in packets/s.
        volatility: Number(10.0..=2000.0) = 200, "paper, section 3: packets/s per square root of a second";
        /// Rate at which outages end, per second.
        escape: Number(0.01..=50.0) = 1, "paper, section 3: per second";
        /// Windows of at most this many packets are sent as a whole, once nothing is in flight; 0: as soon as a byte is
        /// allowed.
        whole: Packets(0.0..=100.0) = 2, "own choice; keithw/sprout: 0";
        /// Decrease of the queue estimate per tick: the tick's own part of the forecast, or the cumulative forecast.
        drain: Drain = "tick", "own choice; keithw/sprout: cumulative";
        /// Granularity of the clock that both ends read.
        clock: Span(1.0..=2e7) = "1 ns", "own choice; keithw/sprout: 1 ms";
        /// Mean lateness with which a sleeping end wakes, uniform between half and one and a half of it.
        lateness: Span(0.0..=1e7) = "100 µs", "own choice: as measured for processes on Linux";
        /// When the application pauses, counted from the start of the flow.
        pause_at: Span = 0, "own choice";
        /// Duration for which the application has nothing to send; 0: none.
        pause_for: Span = 0, "own choice: no pause";
        /// Rate of the application's data; 0: unlimited.
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
    /// Load of the application, if it is limited.
    content: Option<Rate>,
    params: SproutParams,
}

impl SproutSettings {
    fn new(params: &Params) -> Result<Self, ParamError> {
        let params = SproutParams::read(params);
        let lookahead = params.lookahead;
        if !lookahead.ns().is_multiple_of(TICK.ns()) {
            return Err(ParamError::Conflict(format!(
                "lookahead {lookahead} is not a multiple of the tick {TICK}"
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
