//! The encoder's parameters. Every scheme with an encoder has them, with defaults of its own.

use narrows_units::{Kind, ParamSpec};

/// `frame_rate`: frames per second.
pub const FRAME_RATE: ParamSpec = ParamSpec::new(
    "frame_rate",
    Kind::Number,
    "Frames per second of the encoder.",
)
.range(1.0, 1000.0);

/// `min_rate`: smallest target.
pub const MIN_RATE: ParamSpec = ParamSpec::new(
    "min_rate",
    Kind::Rate,
    "Smallest rate that the encoder can make.",
)
.range(1_000.0, 1e10);

/// `max_rate`: largest target.
pub const MAX_RATE: ParamSpec = ParamSpec::new(
    "max_rate",
    Kind::Rate,
    "Largest rate that the encoder can make.",
)
.range(1_000.0, 1e10);

/// `start_rate`: target before any report.
pub const START_RATE: ParamSpec =
    ParamSpec::new("start_rate", Kind::Rate, "Target rate at the start.").range(1_000.0, 1e10);

/// `noise`: amplitude of the variation of frame sizes.
pub const NOISE: ParamSpec = ParamSpec::new(
    "noise",
    Kind::Ratio,
    "Largest step of the noise of frame sizes, which forgets a fifth of its past with each frame.",
)
.range(0.0, 0.18);

/// `key_interval`: time between regular key frames.
pub const KEY_INTERVAL: ParamSpec = ParamSpec::new(
    "key_interval",
    Kind::Span,
    "Time between regular key frames; 0: only the first one and those that are asked for.",
);

/// `key_size`: size of key frames.
pub const KEY_SIZE: ParamSpec = ParamSpec::new(
        "key_size",
        Kind::Number,
        "Size of a key frame in ordinary frames; 0: a request is answered by a frame of next to nothing.",
    )
    .range(0.0, 100.0);

/// `least_frame`: smallest frame worth coding.
pub const LEAST_FRAME: ParamSpec = ParamSpec::new(
    "least_frame",
    Kind::Bytes,
    "Smallest ordinary frame: at lower rates the encoder leaves frames out.",
)
.range(0.0, 1e6);

/// `reaction`: how soon the encoder follows.
pub const REACTION: ParamSpec = ParamSpec::new(
    "reaction",
    Kind::Span,
    "The encoder takes over a new target at most this often.",
);

/// `pause_at`: start of the pause.
pub const PAUSE_AT: ParamSpec = ParamSpec::new(
    "pause_at",
    Kind::Span,
    "When the encoder pauses, counted from the start of the flow.",
);

/// `pause_for`: length of the pause.
pub const PAUSE_FOR: ParamSpec = ParamSpec::new(
    "pause_for",
    Kind::Span,
    "For how long the encoder pauses; 0: it never does.",
);

/// `resolution`: the ladder.
pub const RESOLUTION: ParamSpec = ParamSpec::new(
    "resolution",
    Kind::Choice(&["any", "hd", "vga"]),
    "Ladder of resolutions and their largest rates, from 1280x720 or 640x480 downwards; any: none.",
);

/// `content_rate`: what the pictures need.
pub const CONTENT_RATE: ParamSpec = ParamSpec::new(
    "content_rate",
    Kind::Rate,
    "Largest rate that the pictures need, whatever the target; 0: as much as they get.",
)
.default("0")
.range(0.0, 1e10)
.source("own choice");
