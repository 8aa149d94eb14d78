//! A model of a video encoder as seen by the network: frames of varying sizes that follow a target rate.
//!
//! Each capture produces a frame of `target / frame rate`, less the headers of its packets, times a noise that is
//! correlated from frame to frame (the generator of SCReAM's sample program: a weight of 0.8 for the past). Key frames
//! are sent at the start, on request, at regular intervals if configured, after a pause and when the resolution
//! changes; the excess of a key frame over its share is saved in the following frames. Pictures may need less than the
//! target allows. A ladder of resolutions bounds the rate as in a browser: the encoder leaves a resolution when the
//! target allows too few bits per pixel, and each resolution has a maximum useful rate.

mod params;
#[cfg(test)]
mod tests;

pub use params::{EncoderParams, Ladder};

use crate::rtp;
use narrows_units::{ParamError, Params, Rate, Span, Stream, Time};

/// Minimum share of a frame in bit/s: SCReAM's sample program allows 5 bytes at 25 frames/s.
const MIN_BPS: f64 = 1000.0;
/// Minimum time for which a resolution is kept: the period of a browser's quality scaler.
const DWELL: Span = Span::from_ms(2000);
/// Bits per pixel below which the encoder switches to a smaller resolution, and above which it switches to the next
/// larger one. Chosen so that VGA at 30 frames/s is left below 166 kbit/s and entered again above 276 kbit/s.
const MIN_BITS_PER_PIXEL: f64 = 0.018;
const MANY_BITS: f64 = 0.03;

/// A resolution of the ladder: width and height in pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resolution {
    /// Pixels in a row.
    pub width: u32,
    /// Rows.
    pub height: u32,
}

impl Resolution {
    const fn new(width: u32, height: u32) -> Self {
        Resolution { width, height }
    }

    fn pixels(self) -> u32 {
        self.width * self.height
    }

    /// The largest useful rate in bit/s, as Chromium limits a single VP8 stream by the size of its pictures.
    pub fn limit_bps(self) -> f64 {
        match self.pixels() {
            0..=76_800 => 600e3,
            76_801..=307_200 => 1700e3,
            307_201..=518_400 => 2000e3,
            _ => 2500e3,
        }
    }
}

const HD: &[Resolution] = &[
    Resolution::new(1280, 720),
    Resolution::new(960, 540),
    Resolution::new(640, 360),
    Resolution::new(480, 270),
    Resolution::new(320, 180),
];
const VGA: &[Resolution] = &[
    Resolution::new(640, 480),
    Resolution::new(480, 360),
    Resolution::new(320, 240),
];

/// Configuration of an encoder.
#[derive(Clone, Debug)]
pub struct EncoderConfig {
    /// The declared parameters.
    pub params: EncoderParams,
    /// Smallest target in bit/s.
    pub min_bps: f64,
    /// Largest target in bit/s.
    pub max_bps: f64,
    /// Target before any report in bit/s.
    pub start_bps: f64,
    /// Maximum rate that the pictures need in bit/s, infinity for no limit: a nearly static screen needs little.
    pub content_bps: f64,
    /// Resolutions, largest first; if empty, only the target matters.
    pub ladder: &'static [Resolution],
    /// Largest payload of a packet in bytes.
    pub payload: u32,
}

impl EncoderConfig {
    /// The configuration described by the parameters of this module, with packets of at most `payload` bytes.
    ///
    /// # Errors
    /// If the minimum rate exceeds the maximum.
    pub fn new(params: &Params, payload: u32) -> Result<Self, ParamError> {
        let set = EncoderParams::read(params);
        let bps = |rate: Rate| rate.bps() as f64;
        let (min_bps, max_bps) = (bps(set.min_rate), bps(set.max_rate));
        if min_bps > max_bps {
            return Err(ParamError::Conflict(format!(
                "min_rate {min_bps} bit/s must not be above max_rate {max_bps} bit/s"
            )));
        }
        Ok(EncoderConfig {
            min_bps,
            max_bps,
            start_bps: bps(set.start_rate).clamp(min_bps, max_bps),
            content_bps: Some(bps(set.content_rate))
                .filter(|bps| *bps > 0.0)
                .unwrap_or(f64::INFINITY),
            ladder: match set.resolution {
                Ladder::Hd => HD,
                Ladder::Vga => VGA,
                Ladder::Any => &[],
            },
            payload: payload.max(1),
            params: set,
        })
    }

    /// The maximum rate that the encoder can use in bit/s.
    pub fn most_bps(&self) -> f64 {
        let ladder = self
            .ladder
            .first()
            .map_or(f64::INFINITY, |top| top.limit_bps());
        self.max_bps.min(ladder).max(self.min_bps)
    }
}

/// Payload bytes of an ordinary frame at a target in bit/s: its share, less the headers of its packets (at least one).
pub fn frame_budget(target_bps: f64, frame_rate: f64, payload: u32) -> f64 {
    let packets = frame_rate.max(target_bps / (8.0 * f64::from(payload)));
    let overhead = 8.0 * f64::from(rtp::HEADER) * packets;
    (target_bps - overhead).max(MIN_BPS) / frame_rate / 8.0
}

/// A newly encoded frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Its number, from 0, without gaps.
    pub number: u32,
    /// When it was captured.
    pub at: Time,
    /// Its payload bytes, at least one.
    pub bytes: u32,
    /// True if it can be decoded without other frames.
    pub key: bool,
}

/// The encoder.
#[derive(Clone, Debug)]
pub struct Encoder {
    config: EncoderConfig,
    random: Stream,
    born: Time,
    /// The next capture.
    next: Time,
    number: u32,
    noise: f64,
    /// Latest target, and the target in use, in bit/s.
    told: f64,
    target: f64,
    taken_over: Option<Time>,
    level: usize,
    level_since: Time,
    /// Excess bytes of key frames over their share.
    debt: f64,
    /// Bytes saved by skipping frames.
    saved: f64,
    wanted: bool,
    last_key: Time,
}

impl Encoder {
    /// An encoder that captures its first frame at `now`.
    pub fn new(config: EncoderConfig, now: Time, random: Stream) -> Self {
        let (told, smallest) = (config.start_bps, config.ladder.len().saturating_sub(1));
        let fits =
            |of: &Resolution| told >= MANY_BITS * f64::from(of.pixels()) * config.params.frame_rate;
        let level = config.ladder.iter().position(fits).unwrap_or(smallest);
        Encoder {
            random,
            born: now,
            next: now,
            number: 0,
            noise: 0.0,
            told,
            target: told,
            taken_over: None,
            level,
            level_since: now,
            debt: 0.0,
            saved: 0.0,
            wanted: false,
            last_key: now,
            config,
        }
    }

    /// The configuration.
    pub fn config(&self) -> &EncoderConfig {
        &self.config
    }

    /// Time of the next capture.
    #[inline]
    pub fn next_capture(&self) -> Time {
        self.next
    }

    /// The resolution in use, if it has a ladder.
    pub fn resolution(&self) -> Option<Resolution> {
        self.config.ladder.get(self.level).copied()
    }

    /// Sets the target in bit/s.
    pub fn set_target(&mut self, bps: f64) {
        self.told = bps.clamp(0.0, self.config.max_bps);
    }

    /// The target in use in bit/s.
    pub fn target_bps(&self) -> f64 {
        self.target
    }

    /// Requests a key frame.
    pub fn request_key(&mut self) {
        self.wanted = true;
    }

    /// Captures a frame that is due at `now`; `None` if none is due, or the encoder skipped it or pauses.
    pub fn capture(&mut self, now: Time) -> Option<Frame> {
        if now < self.next {
            return None;
        }
        // A driver that was delayed does not receive all the frames of that time at once.
        let at = if now - self.next > Span::from_ms(1000) {
            now
        } else {
            self.next
        };
        self.next = at + Span::from_secs(1.0 / self.config.params.frame_rate);
        let (pause, resume) = (
            self.born + self.config.params.pause_at,
            self.config.params.pause_for,
        );
        if at >= pause && at < pause + resume {
            self.next = pause + resume;
            // Decoders restart from a key frame.
            self.wanted = true;
            return None;
        }
        if self
            .taken_over
            .is_none_or(|then| at - then >= self.config.params.reaction)
        {
            self.target = self.told;
            self.taken_over = Some(at);
        }
        self.climb(at);
        self.make(at)
    }

    /// Moves up or down the ladder of resolutions.
    fn climb(&mut self, at: Time) {
        let Some(now) = self.resolution() else { return };
        if at - self.level_since < DWELL {
            return;
        }
        let per_pixel =
            |of: Resolution| self.target / (f64::from(of.pixels()) * self.config.params.frame_rate);
        let larger = self
            .level
            .checked_sub(1)
            .map(|above| self.config.ladder[above]);
        let level =
            if per_pixel(now) < MIN_BITS_PER_PIXEL && self.level + 1 < self.config.ladder.len() {
                self.level + 1
            } else if larger.is_some_and(|larger| per_pixel(larger) > MANY_BITS) {
                self.level - 1
            } else {
                return;
            };
        self.level = level;
        self.level_since = at;
        self.wanted = true;
    }

    fn make(&mut self, at: Time) -> Option<Frame> {
        let limit = self
            .resolution()
            .map_or(f64::INFINITY, Resolution::limit_bps);
        let limit = limit.min(self.config.content_bps);
        let (rate, payload) = (self.config.params.frame_rate, self.config.payload);
        let budget = frame_budget(self.target.min(limit), rate, payload);
        let regular = !self.config.params.key_interval.is_zero()
            && at - self.last_key >= self.config.params.key_interval;
        let asked = self.wanted || regular;
        let key = asked || self.number == 0;
        if !key && budget + self.saved < self.config.params.least_frame.get() as f64 {
            self.saved += budget;
            return None;
        }
        self.noise =
            0.8 * self.noise + 2.0 * self.config.params.noise * (self.random.uniform() - 0.5);
        let share = budget + std::mem::take(&mut self.saved);
        let size = if asked && self.config.params.key_size == 0.0 {
            frame_budget(-1.0, rate, payload)
        } else if key {
            let size = share * self.config.params.key_size.max(1.0);
            self.debt += size - share;
            size * (1.0 + self.noise)
        } else {
            let back = self.debt.min(share / 2.0);
            self.debt -= back;
            (share - back) * (1.0 + self.noise)
        };
        if key {
            self.wanted = false;
            self.last_key = at;
        }
        let most = f64::from(payload) * f64::from(rtp::MAX_PACKETS);
        let frame = Frame {
            number: self.number,
            at,
            bytes: size.clamp(1.0, most) as u32,
            key,
        };
        self.number = self.number.saturating_add(1);
        Some(frame)
    }
}
