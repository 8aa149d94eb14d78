//! The encoder's parameters. Every scheme with an encoder has them, with its own defaults.

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
    /// Parameters of the encoder; the schemes set the defaults.
    pub struct EncoderParams {
        /// Frames per second of the encoder.
        frame_rate: Number(1.0..=1000.0);
        /// Minimum rate of the encoder.
        min_rate: Rate(1_000.0..=1e10);
        /// Maximum rate of the encoder.
        max_rate: Rate(1_000.0..=1e10);
        /// Target rate at the start.
        start_rate: Rate(1_000.0..=1e10);
        /// Maximum step of the noise of frame sizes, in which the past has a weight of 0.8 per frame.
        noise: Ratio(0.0..=0.18);
        /// Time between regular key frames; 0: only the first one and on request.
        key_interval: Span;
        /// Size of a key frame in ordinary frames; 0: a request is answered by a minimal frame.
        key_size: Number(0.0..=100.0);
        /// Smallest ordinary frame: at lower rates the encoder skips frames.
        least_frame: Bytes(0.0..=1e6);
        /// Minimum time between changes of the encoder's target.
        reaction: Span;
        /// When the encoder pauses, counted from the start of the flow.
        pause_at: Span;
        /// Duration of the encoder's pause; 0: none.
        pause_for: Span;
        /// Ladder of resolutions and their largest rates, from 1280x720 or 640x480 downwards; any: none.
        resolution: Ladder;
        /// Maximum rate that the pictures need, regardless of the target; 0: no limit.
        content_rate: Rate(0.0..=1e10);
    }
}
