//! Encoder and send queue: the source of a sender's media.

use crate::encoder::{Encoder, EncoderConfig, Frame};
use crate::packetizer::Packetizer;
use narrows_units::{Stream, Time};

/// An encoder and its queue of frames.
#[derive(Clone, Debug)]
pub struct MediaSource {
    /// The encoder.
    pub encoder: Encoder,
    /// Frames encoded and not yet sent.
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

    /// Captures a frame that is due, if any. Call it until it returns `None`; skipped frames do not end the sequence.
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
