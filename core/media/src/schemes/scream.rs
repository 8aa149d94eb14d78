//! SCReAM: a window on a target delay of 100 ms for interactive video, and a rate control for its encoder.
//!
//! Provenance: RFC 8298 (2017), and for `profile: pantheon` github.com/EricssonResearch/scream at c3370fd inside the
//! program of the Pantheon (github.com/StanfordSNR/scream at f099118). Deviations: packets are not paced by a separate
//! timer but when the window's pacing interval has passed, to the nanosecond; reports are messages of 24 bytes in a
//! private format with the content of the RFC's feedback (highest number, a vector of 64, time of arrival); a single
//! stream, hence no scheduling between streams; marks (ECN) and the adaptation of the target delay to competing flows
//! (up to 0.4 s) are omitted; the window's growth in fast start is that of the repository; the target is unchanged
//! until a report arrives, since data waiting for the first window says nothing about the path; frames come from the
//! encoder model shared by all media schemes.
//!
//! Each report moves the window by the distance from the target delay: towards it by at most the acknowledged bytes per
//! window and packet, beyond it back again. It never exceeds 1.1 times the maximum in flight within five seconds, so an
//! encoder that sends little keeps it small. A loss (a packet sent 20 ms before one that has arrived) reduces it by a
//! fifth, at most once per round trip. Until the delay shows a trend the window grows by the bytes acknowledged, and
//! again after 5 s without congestion. The encoder's target follows the acknowledged and sent rates, less the queued
//! data, every 200 ms; it rises by at most `ramp_up`. Frames that wait longer than `queue_limit` are discarded, and a
//! key frame is requested.
//!
//! Pitfalls: in competition with queue-filling flows it gets almost nothing. With `profile: pantheon` the target starts
//! at 200 kbit/s, falls by a tenth per loss and practically never rises (2 bit/s per second): the program passed its
//! arguments in an obsolete order of the library. For this reason all reports show it at 0.2 Mbit/s on every path.

mod delay;
mod meter;
mod rate;
mod receiver;
mod report;
mod sender;
mod sent;
#[cfg(test)]
mod tests;
mod window;

use crate::encoder::{EncoderConfig, EncoderParams};
use crate::{Media, MediaReceiver, MediaSender, MediaSetup, rtp};
use narrows_cc::Profile;
use narrows_cc::parts::StepClock;
use narrows_units::{ParamError, ParamSpec, Params, params};

/// Registry entry.
pub const SCHEME: Media = Media {
    name: "scream",
    summary: "SCReAM: interactive video on a self-clocked window with a target delay of 100 ms",
    source: "RFC 8298; github.com/EricssonResearch/scream c3370fd",
    frames: true,
    params: &PARAMS,
    profiles: &[Profile {
        name: "pantheon",
        doc: "As the Pantheon ran it (github.com/StanfordSNR/scream f099118): limited \
                  to 200 kbit/s by swapped arguments, \
              clocks of 1 ms, reports 5 ms apart, the repository's constants.",
        params: &[
            ("max_rate", "200000"),
            ("start_rate", "200000"),
            ("ramp_up", "2"),
            ("queue_factor", "0.3"),
            ("beta_loss", "0.6"),
            ("gain_down", "2"),
            ("min_cwnd", "0"),
            ("report_interval", "5000000"),
            ("clock", "1000000"),
            ("cold_rtt", "true"),
            ("key_size", "0"),
        ],
        transport: &[],
    },
    Profile {
        name: "rfc8867",
        doc: "The video of the test cases of RFC 8867: 150 kbit/s to 1.5 Mbit/s, 30 frames/s, an encoder that \
                  follows within 100 ms.",
        params: &[
            ("frame_rate", "30"),
            ("min_rate", "150000"),
            ("max_rate", "1500000"),
            ("start_rate", "150000"),
            ("reaction", "100000000"),
        ],
        transport: &[],
    }],
    sender: build_sender,
    receiver: build_receiver,
};

params! {
    /// Parameters of SCReAM besides those of the encoder.
    struct ScreamParams {
        /// Largest rise of the target per second.
        ramp_up: Rate(1.0..=1e9) = "200 kbit/s", "RFC 8298: RAMP_UP_SPEED, bit/s per second";
        /// Frames that wait longer are discarded.
        queue_limit: Span(1e6..=1e11) = "500 ms", "repository c3370fd: sample program, oldest frame in the queue";
        /// Weight of the sender's queue in the target.
        queue_factor: Number(0.0..=10.0) = 1, "RFC 8298: TX_QUEUE_SIZE_FACTOR (0.3 in Pantheon)";
        /// Weight of the trend of the delay in the target.
        guard: Ratio = 0.1, "RFC 8298: PRE_CONGESTION_GUARD";
        /// Queueing delay to hold.
        target: Span(1e6..=1e10) = "100 ms", "RFC 8298: QDELAY_TARGET_LO";
        /// Fraction of the window kept after a loss.
        beta_loss: Ratio(0.05..=1.0) = 0.8, "RFC 8298: BETA_LOSS (0.6 in the repository)";
        /// Fraction of the target kept after a loss.
        beta_rate: Ratio(0.05..=1.0) = 0.9, "RFC 8298: BETA_R";
        /// Gain of the window below the target delay.
        gain_up: Number(0.01..=100.0) = 1, "RFC 8298: GAIN";
        /// Gain of the window above the target delay.
        gain_down: Number(0.01..=100.0) = 1, "RFC 8298: GAIN (2 in the repository)";
        /// Smallest window; never less than two packets.
        min_cwnd: Bytes(0.0..=1e6) = 3000, "RFC 8298: MIN_CWND (two packets in the repository)";
        /// Shortest time between reports; 0: by the rate, from 10 ms (1 Mbit/s) to 100 ms (100 kbit/s).
        report_interval: Span(0.0..=1e10) = 0, "RFC 8298, section 4.2.1: by rate, 10 to 100 ms (5 ms in Pantheon)";
        /// Granularity of the clocks of both ends.
        clock: Span(1.0..=1e9) = "1 ns", "own choice (1 ms in Pantheon)";
        /// The smoothed round-trip time begins at zero.
        cold_rtt: Flag = false, "repository c3370fd: smoothed round-trip time rises from zero";
    }
}

/// Its parameters and those of the encoder.
const PARAMS: [ParamSpec; 26] = ParamSpec::join(&[&RATES, ScreamParams::PARAMS, &ENCODER]);

const RATES: [ParamSpec; 4] = ParamSpec::with_defaults(EncoderParams::PARAMS, &[
    ("frame_rate", "25", "repository c3370fd: sample program"),
    ("min_rate", "64 kbit/s", "repository c3370fd: sample program"),
    ("max_rate", "20 Mbit/s", "own choice"),
    ("start_rate", "1 Mbit/s", "own choice"),
]);

const ENCODER: [ParamSpec; 9] = ParamSpec::with_defaults(EncoderParams::PARAMS, &[
    ("noise", "0.1", "repository c3370fd: sample program"),
    ("key_interval", "0", "repository c3370fd: sample program, no regular key frames"),
    ("key_size", "3", "own choice (0 in Pantheon)"),
    ("least_frame", "0", "own choice"),
    ("reaction", "0", "repository c3370fd: sample program"),
    ("pause_at", "0", "own choice"),
    ("pause_for", "0", "own choice: no pause"),
    ("content_rate", "0", "own choice: as much as the target allows"),
    ("resolution", "any", "repository c3370fd: sample program"),
]);

/// Parameters shared by both ends.
#[derive(Clone, Debug)]
struct ScreamSettings {
    min_bps: f64,
    max_bps: f64,
    start_bps: f64,
    ramp_up: f64,
    /// Seconds.
    target: f64,
    min_cwnd: f64,
    clock: StepClock,
    params: ScreamParams,
}

impl ScreamSettings {
    fn new(params: &Params, encoder: &EncoderConfig) -> Self {
        let params = ScreamParams::read(params);
        ScreamSettings {
            min_bps: encoder.min_bps,
            max_bps: encoder.most_bps(),
            start_bps: encoder.start_bps.min(encoder.most_bps()),
            ramp_up: params.ramp_up.bps() as f64,
            target: params.target.secs(),
            min_cwnd: params.min_cwnd.get() as f64,
            clock: StepClock::new(params.clock),
            params,
        }
    }
}

fn settings(params: &Params, setup: &MediaSetup) -> Result<(ScreamSettings, EncoderConfig), ParamError> {
    let config = EncoderConfig::new(params, rtp::largest_payload(setup.packet_size))?;
    Ok((ScreamSettings::new(params, &config), config))
}

fn build_sender(params: &Params, setup: MediaSetup) -> Result<Box<dyn MediaSender>, ParamError> {
    let (settings, config) = settings(params, &setup)?;
    Ok(Box::new(sender::ScreamSender::new(settings, config, setup)))
}

fn build_receiver(params: &Params, setup: MediaSetup) -> Result<Box<dyn MediaReceiver>, ParamError> {
    let (settings, _) = settings(params, &setup)?;
    Ok(Box::new(receiver::ScreamReceiver::new(settings, setup.now)))
}
