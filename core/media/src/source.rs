//! Encoder and outbox together: where a sender's media comes from.

use crate::encoder::{Encoder, EncoderConfig, Frame};
use crate::packetizer::Packetizer;
use narrows_units::{Stream, Time};

/// An encoder whose frames wait to be sent.
#[derive(Clone, Debug)]
pub struct MediaSource {
    /// The encoder.
    pub encoder: Encoder,
    /// Frames made and not yet sent.
    pub outbox: Packetizer,
}

impl MediaSource {
    /// A source that starts at `now`.
    pub fn new(config: EncoderConfig, now: Time, random: Stream) -> Self {
        MediaSource {
            outbox: Packetizer::new(config.payload),
            encoder: Encoder::new(config, now, random),
        }
    }

    /// Captures one frame that is due, if any. To be called until it returns `None`: a frame that the encoder leaves
    /// out is no reason to stop.
    pub fn capture(&mut self, now: Time) -> Option<Frame> {
        while self.encoder.next_capture() <= now {
            if let Some(frame) = self.encoder.capture(now) {
                self.outbox.push(frame);
                return Some(frame);
            }
        }
        None
    }
}
