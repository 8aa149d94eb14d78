//! The encoder's parameters. Every scheme with an encoder has them, with defaults of its own.

use narrows_units::{choice, params};

choice! {
    /// Ladders of resolutions.
    pub enum Ladder {
        /// Any size, at any rate.
        Any = "any",
        /// From 1280x720 downwards.
        Hd = "hd",
        /// From 640x480 downwards.
        Vga = "vga",
    }
}

params! {
    /// Parameters of the encoder; the schemes give their defaults.
    pub struct EncoderParams {
        /// Frames per second of the encoder.
        frame_rate: Number(1.0..=1000.0);
        /// Smallest rate that the encoder can make.
        min_rate: Rate(1_000.0..=1e10);
        /// Largest rate that the encoder can make.
        max_rate: Rate(1_000.0..=1e10);
        /// Target rate at the start.
        start_rate: Rate(1_000.0..=1e10);
        /// Largest step of the noise of frame sizes, which forgets a fifth of its past with each frame.
        noise: Ratio(0.0..=0.18);
        /// Time between regular key frames; 0: only the first one and those that are asked for.
        key_interval: Span;
        /// Size of a key frame in ordinary frames; 0: a request is answered by a frame of next to nothing.
        key_size: Number(0.0..=100.0);
        /// Smallest ordinary frame: at lower rates the encoder leaves frames out.
        least_frame: Bytes(0.0..=1e6);
        /// The encoder takes over a new target at most this often.
        reaction: Span;
        /// When the encoder pauses, counted from the start of the flow.
        pause_at: Span;
        /// For how long the encoder pauses; 0: it never does.
        pause_for: Span;
        /// Ladder of resolutions and their largest rates, from 1280x720 or 640x480 downwards; any: none.
        resolution: Ladder;
        /// Largest rate that the pictures need, whatever the target; 0: as much as they get.
        content_rate: Rate(0.0..=1e10);
    }
}
