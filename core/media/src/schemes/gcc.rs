//! GCC: the congestion control of browsers' video calls ("WebRTC media"), whose rate follows the trend of the delay and
//! losses.
//!
//! Provenance: draft-ietf-rmcat-gcc-02 (2016) as implemented in Chromium in 2018, when the Pantheon ran it
//! (github.com/StanfordSNR/webrtc at 3f0cc2a: two headless browsers, a fake camera of 640x480 and at most 30 frames/s):
//! the trend line instead of the Kalman filter, the loss rule of 2018, transport-wide feedback
//! (draft-holmer-rmcat-transport-wide-cc-extensions-01), probes with padding, a pacer of 2.5 times the target.
//! Deviations: an encoder model instead of VP8; losses are taken from the transport-wide feedback, once per second as
//! in libwebrtc without receiver reports (goog_cc_network_controller.cc, kLossUpdateInterval); no audio, no forward
//! error correction and no REMB; of the probes after the start only the periodic ones; one stream. Newer browsers have
//! a different loss rule and a pacer of 1.1 times.
//!
//! Packets sent within 5 ms form a group. The delay variations between groups are accumulated, and the slope of the sum
//! over the last 20 groups, scaled, is compared with an adaptive threshold. Overuse cuts the rate to 0.85 of the
//! arrival rate; otherwise it grows by 8 % per second, or by about a packet per response time near the rate at which it
//! was cut, never beyond 1.5 times the arrival rate. Losses above 10 % in a second cut it by half the loss ratio, up to
//! 2 % it may grow by 8 % per second. The target is the lower of both; the encoder's target is that less the rate of
//! retransmissions. At the start it probes at three and six times the start rate; later, while the application sends
//! less than two thirds of the target, it may keep probing at twice the target (`probe_interval`). Lost packets are
//! retransmitted on the receiver's request (`nack`), which it sends up to ten times, 100 ms apart, for media packets
//! only: a lost retransmission is requested again under the original number. A key frame is sent when a frame cannot be
//! repaired within a second.
//!
//! Pitfalls: it never sends more than its encoder produces (1.7 Mbit/s from 640x480), so it does not measure a link's
//! capacity. Without feedback it continues at its current rate: through a blackout, and into paths slower than
//! `min_rate`. Random loss above 10 % brings it down to `min_rate`, including retransmissions: these use at most the
//! target rate, and the encoder the rest, at least half. Losses of 5 % freeze the rate reached before them: near the
//! limit of the encoder with the initial probes, and near `start_rate` without, since only one second in six to twenty
//! has few enough losses to grow. Its queue consists mostly of single frames: the pacer sends a frame in two fifths of
//! the time that the bottleneck takes for it, so at 1 Mbit/s the last packet of a frame waits 14 ms for the others, and
//! this sawtooth desensitises the detector; at 0.5 Mbit/s, with a round trip of 100 ms, the 95th percentile is 54 ms
//! because of it. With `pacing_factor: 1.1` it disappears (19 ms). A probe of 15 ms covers only a few slots of a
//! slotted link, such as traces and Poisson links, and several of its packets share a slot: behind 0.57 Mbit/s of
//! Poisson service, 14 packets and 4.77 % of loss, 3 starts of 16 estimated 1.7 Mbit/s, and lost 39 to 46 % of the
//! packets of the first 5 s before the losses of the first second were evaluated. At a constant rate none does (3.5 to
//! 6 %), nor with `probing: false`.

mod acked;
mod aimd;
mod applimit;
mod capacity;
mod controller;
mod feedback;
mod groups;
mod history;
mod loss;
mod nack;
mod probe;
mod receiver;
mod repair;
mod sender;
#[cfg(test)]
mod tests;
mod trend;

use crate::encoder::{EncoderConfig, EncoderParams};
use crate::{Media, MediaReceiver, MediaSender, MediaSetup, rtp};
use narrows_cc::Profile;
use narrows_cc::parts::StepClock;
use narrows_units::{ParamError, ParamSpec, Params, params};

/// Registry entry.
pub const SCHEME: Media = Media {
    name: "gcc",
    summary: "WebRTC media: Google congestion control, by the trend of the delay and by losses, with probes and pacer",
    source: "draft-ietf-rmcat-gcc-02; Chromium of 2018; draft-holmer-rmcat-transport-wide-cc-extensions-01",
    frames: true,
    params: &PARAMS,
    profiles: &[Profile {
        name: "pantheon",
        doc: "As the Pantheon ran it (github.com/StanfordSNR/webrtc 3f0cc2a): a camera of 640x480, at most 1.7 Mbit/s, \
              times in whole milliseconds.",
        params: &[("resolution", "vga"), ("max_rate", "1700000"), ("clock", "1000000")],
        transport: &[],
    },
    Profile {
        name: "rfc8867",
        doc: "The video of the test cases of RFC 8867: 150 kbit/s to 1.5 Mbit/s, 30 frames/s, an encoder that \
                  follows within 100 ms.",
        params: &[
            ("min_rate", "150000"),
            ("max_rate", "1500000"),
            ("start_rate", "150000"),
            ("reaction", "100000000"),
            ("resolution", "any"),
        ],
        transport: &[],
    }],
    sender: build_sender,
    receiver: build_receiver,
};

params! {
    /// Parameters of GCC besides those of the encoder.
    struct GccParams {
        /// Time between reports; 0: adaptive, so that they take 5 % of the rate, between 50 and 250 ms.
        feedback_interval: Span(0.0..=1e10) = "100 ms", "Chromium: default interval of transport feedback";
        /// Probe for the path's capacity at the start.
        probing: Flag = true, "Chromium: probes at the start";
        /// Time between probes at twice the target while the application, not the path, is the limit; 0: none.
        probe_interval: Span = 0, "Chromium: none for cameras, 5 s for screens";
        /// Lost packets are requested and retransmitted.
        nack: Flag = true, "Chromium: NACK and RTX for video";
        /// Pacing rate as a multiple of the target.
        pacing_factor: Number(1.0..=100.0) = 2.5, "Chromium: pacing factor of 2018";
        /// Granularity of the clocks with which both ends record sending and arrival times.
        clock: Span(1.0..=1e9) = "1 ns", "own choice (Chromium: 1 ms)";
    }
}

/// Its parameters and those of the encoder.
const PARAMS: [ParamSpec; 19] = ParamSpec::join(&[&ENCODER, GccParams::PARAMS]);

const ENCODER: [ParamSpec; 13] = ParamSpec::with_defaults(EncoderParams::PARAMS, &[
    ("frame_rate", "30", "Chromium: default of getUserMedia"),
    ("min_rate", "30 kbit/s", "Chromium: smallest rate of VP8"),
    ("max_rate", "2500 kbit/s", "Chromium: largest rate above 960x540"),
    ("start_rate", "300 kbit/s", "Chromium: start rate of a call"),
    ("resolution", "hd", "own choice (vga in Pantheon)"),
    ("noise", "0.1", "RFC 8298: sample program of SCReAM"),
    ("key_interval", "0", "Chromium: key frames on request"),
    ("key_size", "4", "own choice"),
    ("least_frame", "250", "own choice: at 30 kbit/s every second frame"),
    ("reaction", "0", "Chromium: the encoder is updated with each report"),
    ("pause_at", "0", "own choice"),
    ("pause_for", "0", "own choice: no pause"),
    ("content_rate", "0", "own choice: as much as the target allows"),
]);

/// Parameters shared by both ends.
#[derive(Clone, Debug)]
struct GccSettings {
    min_bps: f64,
    max_bps: f64,
    start_bps: f64,
    clock: StepClock,
    params: GccParams,
}

fn settings(params: &Params, setup: &MediaSetup) -> Result<(GccSettings, EncoderConfig), ParamError> {
    let config = EncoderConfig::new(params, rtp::largest_payload(setup.packet_size))?;
    let params = GccParams::read(params);
    let settings = GccSettings {
        min_bps: config.min_bps,
        max_bps: config.most_bps(),
        start_bps: config.start_bps.min(config.most_bps()),
        clock: StepClock::new(params.clock),
        params,
    };
    Ok((settings, config))
}

fn build_sender(params: &Params, setup: MediaSetup) -> Result<Box<dyn MediaSender>, ParamError> {
    let (settings, config) = settings(params, &setup)?;
    Ok(Box::new(sender::GccSender::new(settings, config, setup)))
}

fn build_receiver(params: &Params, setup: MediaSetup) -> Result<Box<dyn MediaReceiver>, ParamError> {
    let (settings, _) = settings(params, &setup)?;
    Ok(Box::new(receiver::GccReceiver::new(settings, setup.now)))
}
