//! Real-time schemes that are no bulk transport: both ends of them, and a model of the video encoder.
//!
//! A scheme of this crate is two sans-IO machines. The [`MediaSender`] sends media (or, like Sprout, anything
//! there is) in [`Header::Media`](narrows_transport::Header::Media) packets, whose content only its own
//! [`MediaReceiver`] reads; the receiver answers with feedback of the scheme's own. Drivers carry the packets
//! and know nothing of their content. Nothing is ever repeated by a driver.
//!
//! To add one, write a file in `schemes/` and add its name to the list in `schemes.rs`.
#![forbid(unsafe_code)]
// Constructors in a registry share one signature, whether or not they need all of it.
#![allow(clippy::needless_pass_by_value, clippy::unnecessary_wraps)]

pub mod encoder;
pub mod packetizer;
pub mod rate_meter;
pub mod reassembly;
pub mod rtp;
pub mod schemes;
pub mod source;
pub mod testing;

use narrows_cc::Profile;
use narrows_transport::{Endpoint, ReceiverCounters, SenderCounters, SenderSnapshot};
use narrows_units::{ParamError, ParamSpec, Params, Stream, Time};

/// Construction arguments of an end of a scheme.
#[derive(Clone, Debug)]
pub struct MediaSetup {
    /// The time of birth: the start of the flow.
    pub now: Time,
    /// IP size of the largest packet that the path takes. A scheme whose own packets are smaller keeps to those.
    pub packet_size: u32,
    /// The end's own random numbers.
    pub random: Stream,
}

/// A frame of video that an encoder has made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameSent {
    /// Its number, from 0, without gaps: frames that the encoder skipped have none.
    pub number: u64,
    /// When it was captured.
    pub at: Time,
    /// Its payload bytes.
    pub bytes: u32,
    /// True if it needs no other frame to be decoded.
    pub key: bool,
    /// True if it was thrown away before all of it was sent.
    pub discarded: bool,
}

/// A frame of which every packet has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameArrived {
    /// Its number.
    pub number: u64,
    /// When its last packet arrived.
    pub at: Time,
}

/// The end that sends media.
///
/// [`Endpoint::transmit`] must go on returning packets until nothing may be sent now; `next_wakeup` covers the
/// encoder, the pacer and every timer.
pub trait MediaSender: Endpoint {
    /// The flow is stopped: nothing is sent any more.
    fn stop(&mut self);

    /// The state for plots and audits. `scheme.values` has `target_bps` for schemes that steer an encoder.
    fn snapshot(&self) -> SenderSnapshot;

    /// Counters so far.
    fn counters(&self) -> SenderCounters;

    /// Moves the frames that are settled at this end (all of their packets sent, or thrown away) into `frames`, in
    /// order; none for schemes without an encoder.
    fn take_frames(&mut self, _frames: &mut Vec<FrameSent>) {}
}

/// The end that receives media and reports.
pub trait MediaReceiver: Endpoint {
    /// Counters so far. `goodput_bytes` are media bytes that were new.
    fn counters(&self) -> ReceiverCounters;

    /// Moves the frames that are complete into `frames`, in the order of their completion.
    fn take_frames(&mut self, _frames: &mut Vec<FrameArrived>) {}
}

/// Constructor of a sending end.
pub type BuildSender = fn(&Params, MediaSetup) -> Result<Box<dyn MediaSender>, ParamError>;

/// Constructor of a receiving end.
pub type BuildReceiver = fn(&Params, MediaSetup) -> Result<Box<dyn MediaReceiver>, ParamError>;

/// One line of the registry.
#[derive(Clone, Copy, Debug)]
pub struct Media {
    /// Name in scenarios.
    pub name: &'static str,
    /// Description, one sentence.
    pub summary: &'static str,
    /// Paper, RFC or draft with version.
    pub source: &'static str,
    /// True if it sends frames of an encoder; otherwise there is always more to send.
    pub frames: bool,
    /// Its parameters, those of the encoder included.
    pub params: &'static [ParamSpec],
    /// Set-ups that others have used.
    pub profiles: &'static [Profile],
    /// Builds the sending end.
    pub sender: BuildSender,
    /// Builds the receiving end.
    pub receiver: BuildReceiver,
}

impl Media {
    /// Properties of the scheme that registries show, without its parameters: name and word.
    pub fn words(&self) -> Vec<(&'static str, String)> {
        vec![
            ("name", self.name.to_owned()),
            ("summary", self.summary.to_owned()),
            ("source", self.source.to_owned()),
            ("ecn", "none".to_owned()),
        ]
    }
}
