//! The encoder's parameters. Every scheme with an encoder has them; the defaults are the scheme's.

use narrows_units::{Kind, ParamSpec};

/// `frame_rate`: frames per second.
pub const fn frame_rate(default: &'static str, source: &'static str) -> ParamSpec {
    ParamSpec::new(
        "frame_rate",
        Kind::Number,
        "Frames per second of the encoder.",
    )
    .default(default)
    .range(1.0, 1000.0)
    .source(source)
}

/// `min_rate`: smallest target.
pub const fn min_rate(default: &'static str, source: &'static str) -> ParamSpec {
    ParamSpec::new(
        "min_rate",
        Kind::Rate,
        "Smallest rate that the encoder can make.",
    )
    .default(default)
    .range(1_000.0, 1e10)
    .source(source)
}

/// `max_rate`: largest target.
pub const fn max_rate(default: &'static str, source: &'static str) -> ParamSpec {
    ParamSpec::new(
        "max_rate",
        Kind::Rate,
        "Largest rate that the encoder can make.",
    )
    .default(default)
    .range(1_000.0, 1e10)
    .source(source)
}

/// `start_rate`: target before any report.
pub const fn start_rate(default: &'static str, source: &'static str) -> ParamSpec {
    ParamSpec::new("start_rate", Kind::Rate, "Target rate at the start.")
        .default(default)
        .range(1_000.0, 1e10)
        .source(source)
}

/// `noise`: amplitude of the variation of frame sizes.
pub const fn noise(default: &'static str, source: &'static str) -> ParamSpec {
    ParamSpec::new(
        "noise",
        Kind::Ratio,
        "Largest step of the noise of frame sizes, which forgets a fifth of its past with each frame.",
    )
    .default(default)
    .range(0.0, 0.18)
    .source(source)
}

/// `key_interval`: time between regular key frames.
pub const fn key_interval(default: &'static str, source: &'static str) -> ParamSpec {
    ParamSpec::new(
        "key_interval",
        Kind::Span,
        "Time between regular key frames; 0: only the first one and those that are asked for.",
    )
    .default(default)
    .source(source)
}

/// `key_size`: size of key frames.
pub const fn key_size(default: &'static str, source: &'static str) -> ParamSpec {
    ParamSpec::new(
        "key_size",
        Kind::Number,
        "Size of a key frame in ordinary frames; 0: a request is answered by a frame of next to nothing.",
    )
    .default(default)
    .range(0.0, 100.0)
    .source(source)
}

/// `least_frame`: smallest frame worth coding.
pub const fn least_frame(default: &'static str, source: &'static str) -> ParamSpec {
    ParamSpec::new(
        "least_frame",
        Kind::Bytes,
        "Smallest ordinary frame: at lower rates the encoder leaves frames out.",
    )
    .default(default)
    .range(0.0, 1e6)
    .source(source)
}

/// `reaction`: how soon the encoder follows.
pub const fn reaction(default: &'static str, source: &'static str) -> ParamSpec {
    ParamSpec::new(
        "reaction",
        Kind::Span,
        "The encoder takes over a new target at most this often.",
    )
    .default(default)
    .source(source)
}

/// `pause_at`: start of the pause.
pub const fn pause_at(default: &'static str, source: &'static str) -> ParamSpec {
    ParamSpec::new(
        "pause_at",
        Kind::Span,
        "When the encoder pauses, counted from the start of the flow.",
    )
    .default(default)
    .source(source)
}

/// `pause_for`: length of the pause.
pub const fn pause_for(default: &'static str, source: &'static str) -> ParamSpec {
    ParamSpec::new(
        "pause_for",
        Kind::Span,
        "For how long the encoder pauses; 0: it never does.",
    )
    .default(default)
    .source(source)
}

/// `resolution`: the ladder.
pub const fn resolution(default: &'static str, source: &'static str) -> ParamSpec {
    ParamSpec::new(
        "resolution",
        Kind::Choice(&["any", "hd", "vga"]),
        "Ladder of resolutions and their largest rates, from 1280x720 or 640x480 downwards; any: none.",
    )
    .default(default)
    .source(source)
}

/// `content_rate`: what the pictures need.
pub const fn content_rate() -> ParamSpec {
    ParamSpec::new(
        "content_rate",
        Kind::Rate,
        "Largest rate that the pictures need, whatever the target; 0: as much as they get.",
    )
    .default("0")
    .range(0.0, 1e10)
    .source("own choice")
}
