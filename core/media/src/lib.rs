//! Real-time schemes, which do not use the bulk transport: both ends of each, and a model of a video encoder.
//!
//! A scheme of this crate consists of two sans-IO state machines. The [`MediaSender`] sends media (or, like Sprout,
//! arbitrary data) in [`Header::Media`](narrows_transport::Header::Media) packets, whose content only its
//! [`MediaReceiver`] reads; the receiver answers with feedback in the scheme's own format. Drivers carry the packets
//! without interpreting their content, and never retransmit.
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
    /// The start of the flow.
    pub now: Time,
    /// IP size of the largest packet that the path carries. A scheme with smaller packets keeps its size.
    pub packet_size: u32,
    /// The end's own random numbers.
    pub random: Stream,
}

/// A frame of video made by an encoder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameSent {
    /// Its number, from 0, without gaps: skipped frames are not numbered.
    pub number: u64,
    /// When it was captured.
    pub at: Time,
    /// Its payload bytes.
    pub bytes: u32,
    /// True if it needs no other frame to be decoded.
    pub key: bool,
    /// True if it was discarded before all of it was sent.
    pub discarded: bool,
}

/// A frame all of whose packets have arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameArrived {
    /// Its number.
    pub number: u64,
    /// When its last packet arrived.
    pub at: Time,
}

/// The end that sends media.
///
/// [`Endpoint::transmit`] must return packets until no more may be sent now; `next_wakeup` covers the encoder, the
/// pacer and every timer.
pub trait MediaSender: Endpoint {
    /// Stops the flow: nothing more is sent.
    fn stop(&mut self);

    /// The state for plots and audits. `scheme.values` has `target_bps` for schemes that steer an encoder.
    fn snapshot(&self) -> SenderSnapshot;

    /// Counters so far.
    fn counters(&self) -> SenderCounters;

    /// Moves the frames that are finished at this end (all of their packets sent, or discarded) into `frames`, in
    /// order; none for schemes without an encoder.
    fn take_frames(&mut self, _frames: &mut Vec<FrameSent>) {}
}

/// The end that receives media and sends feedback.
pub trait MediaReceiver: Endpoint {
    /// Counters so far. `goodput_bytes` are new media bytes.
    fn counters(&self) -> ReceiverCounters;

    /// Moves the frames that are complete into `frames`, in the order of their completion.
    fn take_frames(&mut self, _frames: &mut Vec<FrameArrived>) {}
}

/// Constructor of a sending end.
pub type BuildSender = fn(&Params, MediaSetup) -> Result<Box<dyn MediaSender>, ParamError>;

/// Constructor of a receiving end.
pub type BuildReceiver = fn(&Params, MediaSetup) -> Result<Box<dyn MediaReceiver>, ParamError>;

/// One entry of the registry.
#[derive(Clone, Copy, Debug)]
pub struct Media {
    /// Name in scenarios.
    pub name: &'static str,
    /// Description, one sentence.
    pub summary: &'static str,
    /// Paper, RFC or draft with version.
    pub source: &'static str,
    /// True if it sends frames of an encoder; otherwise it always has data to send.
    pub frames: bool,
    /// Its parameters, including those of the encoder.
    pub params: &'static [ParamSpec],
    /// Configurations used by others.
    pub profiles: &'static [Profile],
    /// Builds the sending end.
    pub sender: BuildSender,
    /// Builds the receiving end.
    pub receiver: BuildReceiver,
}

impl Media {
    /// Properties of the scheme shown by registries, without its parameters: name and value.
    pub fn words(&self) -> Vec<(&'static str, String)> {
        vec![
            ("name", self.name.to_owned()),
            ("summary", self.summary.to_owned()),
            ("source", self.source.to_owned()),
            ("ecn", "none".to_owned()),
        ]
    }
}
