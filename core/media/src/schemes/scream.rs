//! SCReAM: a window on a target delay of 100 ms for interactive video, and a rate control for its encoder.
//!
//! Provenance: RFC 8298 (2017), and for `profile: pantheon` github.com/EricssonResearch/scream at c3370fd inside
//! the program of the Pantheon (github.com/StanfordSNR/scream at f099118). Deviations: packets are not paced by a
//! timer of their own but when the window's pacing interval has passed, to the nanosecond; reports are messages of
//! 24 bytes of our own with the content of the RFC's feedback (highest number, a vector of 64, time of arrival);
//! there is one stream, so no scheduling between streams; marks (ECN) and the adaptation of the target delay to
//! competing flows (up to 0.4 s) are left out; the window's growth in fast start is that of the repository; the
//! target is left alone until a report has come, since what waits for the first window says nothing of the path;
//! frames come from the model of an encoder that all our media schemes share.
//!
//! Each report moves the window by the distance from the target delay: towards it by at most the acknowledged bytes
//! per window and packet, beyond it back again. It never exceeds 1.1 times what was in flight within five seconds,
//! so an encoder that sends little keeps it small. A loss (a packet sent 20 ms before one that has arrived) costs a
//! fifth, at most once per round trip. Until the delay shows a trend the window grows by what is acknowledged, and
//! again after 5 s without congestion. The encoder's target follows what has been acknowledged and sent, less what
//! waits to be sent, every 200 ms; it rises by `ramp_up` at most. Frames that wait longer than `queue_limit` are
//! thrown away, and a key frame is asked for.
//!
//! Pitfalls: next to flows that fill the queue it keeps almost nothing. With `profile: pantheon` the target starts
//! at 200 kbit/s, falls by a tenth per loss and practically never rises (2 bit/s per second): the program passed
//! its numbers in an order that the library had given up. All the reports show it at 0.2 Mbit/s for this reason,
//! whatever the path.
//!
//! | parameter | default | source |
//! |---|---|---|
//! | frame_rate | 25 | repository c3370fd: sample program |
//! | min_rate | 64 kbit/s | repository c3370fd: sample program |
//! | max_rate | 20 Mbit/s | own choice |
//! | start_rate | 1 Mbit/s | own choice |
//! | ramp_up | 200 kbit/s | RFC 8298: RAMP_UP_SPEED, bit/s per second |
//! | queue_limit | 500 ms | repository c3370fd: sample program, oldest frame in the queue |
//! | queue_factor | 1 | RFC 8298: TX_QUEUE_SIZE_FACTOR (0.3 in Pantheon) |
//! | guard | 0.1 | RFC 8298: PRE_CONGESTION_GUARD |
//! | target | 100 ms | RFC 8298: QDELAY_TARGET_LO |
//! | beta_loss | 0.8 | RFC 8298: BETA_LOSS (0.6 in the repository) |
//! | beta_rate | 0.9 | RFC 8298: BETA_R |
//! | gain_up | 1 | RFC 8298: GAIN |
//! | gain_down | 1 | RFC 8298: GAIN (2 in the repository) |
//! | min_cwnd | 3000 B | RFC 8298: MIN_CWND (two packets in the repository) |
//! | report_interval | 0 | RFC 8298, section 4.2.1: by rate, 10 to 100 ms (5 ms in Pantheon) |
//! | clock | 1 ns | own choice (1 ms in Pantheon) |
//! | cold_rtt | no | repository c3370fd: smoothed round-trip time rises from zero |
//! | noise | 0.1 | repository c3370fd: sample program |
//! | key_interval | 0 | repository c3370fd: sample program, no regular key frames |
//! | key_size | 3 | own choice (0 in Pantheon) |
//! | least_frame | 0 | own choice |
//! | reaction | 0 | repository c3370fd: sample program |
//! | pause_at | 0 | own choice |
//! | pause_for | 0 | own choice: no pause |
//! | content_rate | 0 | own choice: as much as the target allows |
//! | resolution | any | repository c3370fd: sample program |

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

use crate::clock::CoarseMediaClock;
use crate::encoder::{self, EncoderConfig};
use crate::{Media, MediaReceiver, MediaSender, MediaSetup, rtp};
use narrows_cc::Profile;
use narrows_units::{Kind, ParamError, ParamSpec, Params, Span};

const SAMPLE: &str = "repository c3370fd: sample program";

/// Registry line.
pub const SCHEME: Media = Media {
    name: "scream",
    summary: "SCReAM: interactive video on a self-clocked window with a target delay of 100 ms",
    source: "RFC 8298; github.com/EricssonResearch/scream c3370fd",
    frames: true,
    params: &[
        encoder::frame_rate("25", SAMPLE),
        encoder::min_rate("64000", SAMPLE),
        encoder::max_rate("20000000", "own choice"),
        encoder::start_rate("1000000", "own choice"),
        ParamSpec::new("ramp_up", Kind::Rate, "Largest rise of the target per second.")
            .default("200000")
            .range(1.0, 1e9)
            .source("RFC 8298: RAMP_UP_SPEED"),
        ParamSpec::new("queue_limit", Kind::Span, "Frames that wait longer are thrown away.")
            .default("500000000")
            .range(1e6, 1e11)
            .source(SAMPLE),
        ParamSpec::new("queue_factor", Kind::Number, "Weight of what waits to be sent in the target.")
            .default("1")
            .range(0.0, 10.0)
            .source("RFC 8298: TX_QUEUE_SIZE_FACTOR"),
        ParamSpec::new("guard", Kind::Ratio, "Weight of the trend of the delay in the target.")
            .default("0.1")
            .source("RFC 8298: PRE_CONGESTION_GUARD"),
        ParamSpec::new("target", Kind::Span, "Queueing delay to hold.")
            .default("100000000")
            .range(1e6, 1e10)
            .source("RFC 8298: QDELAY_TARGET_LO"),
        ParamSpec::new("beta_loss", Kind::Ratio, "Share of the window kept after a loss.")
            .default("0.8")
            .range(0.05, 1.0)
            .source("RFC 8298: BETA_LOSS"),
        ParamSpec::new("beta_rate", Kind::Ratio, "Share of the target kept after a loss.")
            .default("0.9")
            .range(0.05, 1.0)
            .source("RFC 8298: BETA_R"),
        ParamSpec::new("gain_up", Kind::Number, "Gain of the window below the target delay.")
            .default("1")
            .range(0.01, 100.0)
            .source("RFC 8298: GAIN"),
        ParamSpec::new("gain_down", Kind::Number, "Gain of the window above the target delay.")
            .default("1")
            .range(0.01, 100.0)
            .source("RFC 8298: GAIN"),
        ParamSpec::new("min_cwnd", Kind::Bytes, "Smallest window; never less than two packets.")
            .default("3000")
            .range(0.0, 1e6)
            .source("RFC 8298: MIN_CWND"),
        ParamSpec::new(
            "report_interval",
            Kind::Span,
            "Shortest time between reports; 0: by the rate, from 10 ms (1 Mbit/s) to 100 ms (100 kbit/s).",
        )
        .default("0")
        .range(0.0, 1e10)
        .source("RFC 8298, section 4.2.1"),
        ParamSpec::new("clock", Kind::Span, "Step of the clocks of both ends.")
            .default("1")
            .range(1.0, 1e9)
            .source("own choice"),
        ParamSpec::new("cold_rtt", Kind::Flag, "The smoothed round-trip time begins at zero.")
            .default("false")
            .source("repository c3370fd"),
        encoder::noise("0.1", SAMPLE),
        encoder::key_interval("0", SAMPLE),
        encoder::key_size("3", "own choice"),
        encoder::least_frame("0", "own choice"),
        encoder::reaction("0", SAMPLE),
        encoder::pause_at("0", "own choice"),
        encoder::pause_for("0", "own choice"),
        encoder::content_rate(),
        encoder::resolution("any", SAMPLE),
    ],
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

/// Parameters that both ends share.
#[derive(Clone, Debug)]
struct ScreamSettings {
    min_bps: f64,
    max_bps: f64,
    start_bps: f64,
    ramp_up: f64,
    queue_limit: Span,
    queue_factor: f64,
    guard: f64,
    /// Seconds.
    target: f64,
    beta_loss: f64,
    beta_rate: f64,
    gain_up: f64,
    gain_down: f64,
    min_cwnd: f64,
    report_interval: Span,
    clock: CoarseMediaClock,
    cold_rtt: bool,
}

impl ScreamSettings {
    fn new(params: &Params, encoder: &EncoderConfig) -> Self {
        let real = |name| params.real(name).unwrap_or(1.0);
        let span = |name| params.span(name).unwrap_or_default();
        ScreamSettings {
            min_bps: encoder.min_bps,
            max_bps: encoder.most_bps(),
            start_bps: encoder.start_bps.min(encoder.most_bps()),
            ramp_up: params.rate("ramp_up").unwrap_or_default().bps() as f64,
            queue_limit: span("queue_limit"),
            queue_factor: real("queue_factor"),
            guard: real("guard"),
            target: span("target").secs(),
            beta_loss: real("beta_loss"),
            beta_rate: real("beta_rate"),
            gain_up: real("gain_up"),
            gain_down: real("gain_down"),
            min_cwnd: params.integer("min_cwnd").unwrap_or(0) as f64,
            report_interval: span("report_interval"),
            clock: CoarseMediaClock::new(span("clock")),
            cold_rtt: params.flag("cold_rtt").unwrap_or(false),
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
