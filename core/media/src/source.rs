//! Encoder and outbox together: where a sender's media comes from.

use crate::encoder::{Config, Encoder, Frame};
use crate::outbox::Outbox;
use narrows_units::{Stream, Time};

/// An encoder whose frames wait to be sent.
#[derive(Clone, Debug)]
pub struct Source {
    /// The encoder.
    pub encoder: Encoder,
    /// What it has made and nobody has sent.
    pub outbox: Outbox,
}

impl Source {
    /// A source that starts at `now`.
    pub fn new(config: Config, now: Time, random: Stream) -> Self {
        Source {
            outbox: Outbox::new(config.payload),
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
