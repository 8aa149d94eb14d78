//! The relation between the readings of two clocks, and a bound of its error.
//!
//! Every datagram that carries its send time bounds the *offset* (reading of the remote clock less
//! that of the local one), because no delay is negative:
//!
//! ```text
//!   sent locally at L, arrived there at R:   offset at L  <=  R - L       (the delay is in it)
//!   sent there at R, arrived locally at L:   offset at L  >=  R - L
//!
//!   offset                                   .   ______ .  <- smallest of the outbound differences: a lower envelope
//!     |      .      ______.________----------
//!     |  ._____------                        <- between the two: every feasible line
//!     |         ______'________------'----
//!     |  '______                   '         '   <- largest of the return differences: an upper envelope
//!     +--------------------------------------> local time
//! ```
//!
//! As long as both clocks run at constant rates, the offset is a line between the two sets of points. The lines that
//! fit form a convex polygon of (offset, drift); its extent at some instant is the bound of the error there, at best
//! half the smallest round-trip time, the uncertainty due to asymmetry (Duda, Harrus, Haddad and Bernard, "Estimating
//! global time in distributed systems", 1987; Zhang, Liu and Xia, "Clock synchronization algorithms for network
//! measurements", 2002, use convex hulls in the same way). The estimate is the middle of the strip between two parallel
//! lines, one touching each set. Its drift is the one for which most seconds have the same minimum delay ([`drift`]):
//! the base delay of a path is constant, while queues grow and drain.
//!
//! Points off the envelopes bound nothing and are discarded at once; the state remains small however long a run is.
//! Where no line fits, because a clock was set or its rate was changed, a new line begins. With undisciplined clocks
//! (`CLOCK_MONOTONIC_RAW`) this is rare.

mod drift;
mod envelope;
mod polygon;
#[cfg(test)]
mod tests;

use crate::ClockExchange;
use envelope::Envelope;
use narrows_units::{Span, Time};
use polygon::{Area, Polygon};

/// Largest difference from the first sample (seventy years), so that no arithmetic overflows.
const FARTHEST: i64 = 1 << 61;
const NS_PER_S: f64 = 1e9;
/// Shorter pieces of a run do not determine the drift: queues of a few ms would look like thousands of ppm.
const MIN_SPAN_NS: i64 = 1_000_000_000;

/// Assumptions about the clocks and the stamps.
#[derive(Clone, Copy, Debug)]
pub struct ClockConfig {
    /// Length of the blocks of time that make up a line. Setting a clock spoils its block, and the minimum delays of
    /// blocks are compared to find the drift.
    pub block: Span,
    /// Longest time that a single line may cover. Up to the Allan intercept, about 2^11 s in RFC 5905 (appendix A),
    /// noise of the stamps dominates the oscillators' wander.
    pub longest: Span,
    /// Largest error of a stamp, apart from lateness.
    pub precision: Span,
    /// Largest difference of the clocks' rates, in 10^-9. Quartz is better than 100 ppm; kernels
    /// correct by at most 500 ppm each.
    pub steepest_ppb: u32,
}

impl Default for ClockConfig {
    fn default() -> Self {
        ClockConfig {
            block: Span::from_ms(1_000),
            longest: Span::from_ms(1_024_000),
            precision: Span::from_us(1),
            steepest_ppb: 1_000_000,
        }
    }
}

/// The envelopes of one block of time.
#[derive(Clone, Debug)]
struct Block {
    /// Local time divided by the length of a block.
    index: i64,
    /// Upper limits, and negated lower limits.
    envelopes: [Envelope; 2],
}

/// The side from which a limit bounds the offset.
#[derive(Clone, Copy, Debug)]
enum LimitKind {
    Above,
    Below,
}

impl LimitKind {
    const BOTH: [LimitKind; 2] = [LimitKind::Above, LimitKind::Below];

    /// Sign that turns limits of either kind into upper limits.
    const fn sign(self) -> f64 {
        match self {
            LimitKind::Above => 1.0,
            LimitKind::Below => -1.0,
        }
    }
}

/// Collects bounds on the offset of a remote clock.
#[derive(Clone, Debug)]
pub struct Clocks {
    config: ClockConfig,
    /// The first difference; all others are stored relative to it.
    base: Option<i64>,
    blocks: Vec<Block>,
    implausible: u64,
}

impl Clocks {
    /// Without samples.
    pub fn new(config: ClockConfig) -> Self {
        Clocks {
            config,
            base: None,
            blocks: Vec::new(),
            implausible: 0,
        }
    }

    /// Adds a sample of a datagram sent locally that arrived at the remote end.
    #[inline]
    pub fn add_forward(&mut self, sent: Time, arrived_there: Time) {
        self.bound(sent, arrived_there, LimitKind::Above);
    }

    /// Adds a sample of a datagram sent by the remote end that arrived locally.
    #[inline]
    pub fn add_reverse(&mut self, sent_there: Time, arrived: Time) {
        self.bound(arrived, sent_there, LimitKind::Below);
    }

    /// Adds a sample of each kind.
    pub fn exchange(&mut self, exchange: &ClockExchange) {
        self.add_forward(exchange.sent, exchange.arrived_there);
        self.add_reverse(exchange.sent_there, exchange.arrived);
    }

    /// Samples ignored because no clocks differ by that much.
    pub fn implausible(&self) -> u64 {
        self.implausible
    }

    #[inline]
    fn bound(&mut self, local: Time, remote: Time, kind: LimitKind) {
        // A peer may send any values, so nothing here may overflow.
        let difference = remote.ns().wrapping_sub(local.ns()) as i64;
        let base = *self.base.get_or_insert(difference);
        let y = difference
            .checked_sub(base)
            .filter(|y| y.unsigned_abs() < FARTHEST as u64);
        let x = i64::try_from(local.ns()).ok().filter(|&x| x < FARTHEST);
        let (Some(x), Some(y)) = (x, y) else {
            self.implausible += 1;
            return;
        };
        let index = x / (self.config.block.ns().clamp(1, FARTHEST as u64) as i64);
        let y = match kind {
            LimitKind::Above => y,
            LimitKind::Below => -y,
        };
        self.block(index).envelopes[kind as usize].add(x, y);
    }

    #[inline]
    fn block(&mut self, index: i64) -> &mut Block {
        let at = match self.blocks.last() {
            Some(last) if last.index == index => self.blocks.len() - 1,
            _ => {
                let at = self.blocks.partition_point(|block| block.index < index);
                if self.blocks.get(at).is_none_or(|block| block.index != index) {
                    let block = Block {
                        index,
                        envelopes: Default::default(),
                    };
                    self.blocks.insert(at, block);
                }
                at
            }
        };
        &mut self.blocks[at]
    }

    /// The lines that fit. `None` until there are samples in both directions.
    pub fn fit(&self) -> Option<Fit> {
        let mut pieces = Vec::new();
        let (mut jumps, mut first, mut at) = (0, 0, 0);
        let mut open: Option<Polygon> = None;
        while at < self.blocks.len() {
            let area = match &open {
                Some(_) if self.is_too_long(first, at) => Area::Empty,
                Some(polygon) => polygon.narrowed(
                    self.limits(LimitKind::Above, first, at, at),
                    self.limits(LimitKind::Below, first, at, at),
                ),
                None => Polygon::between(
                    self.limits(LimitKind::Above, first, first, at),
                    self.limits(LimitKind::Below, first, first, at),
                    f64::from(self.config.steepest_ppb),
                ),
            };
            match area {
                // So far samples exist for only one direction.
                Area::Unbounded => at += 1,
                Area::Polygon(polygon) => {
                    open = Some(polygon);
                    at += 1;
                }
                Area::Empty => {
                    if let Some(polygon) = open.take() {
                        // The next line begins with the block that does not fit.
                        pieces.push(self.piece(first, at - 1, polygon));
                        first = at;
                    } else if first < at {
                        // Blocks with only one direction do not constrain it.
                        first = at;
                    } else {
                        // No line fits: a clock was set within the block.
                        jumps += 1;
                        at += 1;
                        first = at;
                    }
                }
            }
        }
        if let Some(polygon) = open {
            pieces.push(self.piece(first, at - 1, polygon));
        }
        if pieces.is_empty() {
            return None;
        }
        Some(Fit {
            base: self.base?,
            pieces,
            jumps,
        })
    }

    fn is_too_long(&self, first: usize, last: usize) -> bool {
        let blocks = (self.blocks[last].index - self.blocks[first].index + 1) as u64;
        blocks.saturating_mul(self.config.block.ns()) > self.config.longest.ns()
    }

    /// Local time from which a line that begins with this block is counted.
    fn origin(&self, first: usize) -> i64 {
        self.blocks[first].index * (self.config.block.ns().clamp(1, FARTHEST as u64) as i64)
    }

    /// Limits of one kind by the blocks from `from` to `to`, for a line that begins with the block
    /// `first`: seconds and ns.
    fn limits(
        &self,
        kind: LimitKind,
        first: usize,
        from: usize,
        to: usize,
    ) -> impl Iterator<Item = (f64, f64)> + Clone + '_ {
        let (origin, precision) = (self.origin(first), self.config.precision.ns() as f64);
        let points = self.blocks[from..=to]
            .iter()
            .flat_map(move |block| block.envelopes[kind as usize].points());
        points.map(move |(x, y)| {
            let seconds = (x - origin) as f64 / NS_PER_S;
            (seconds, kind.sign() * (y as f64 + precision))
        })
    }

    /// The line through the blocks from `first` to `last`.
    fn piece(&self, first: usize, last: usize, polygon: Polygon) -> ClockPiece {
        let blocks = &self.blocks[first..=last];
        let ends = blocks
            .iter()
            .flat_map(|block| block.envelopes.iter().filter_map(Envelope::ends));
        let from = ends.clone().map(|(start, _)| start).min().unwrap_or(0);
        let to = ends.map(|(_, end)| end).max().unwrap_or(0);
        // A drift measured over less time than this is meaningless.
        let slope = (to - from >= MIN_SPAN_NS)
            .then(|| drift::likeliest(blocks, polygon.slopes()))
            .flatten();
        let (offset_ns, drift_ppb) = polygon.middle(
            slope,
            self.limits(LimitKind::Above, first, first, last),
            self.limits(LimitKind::Below, first, first, last),
        );
        ClockPiece {
            from,
            to,
            origin: self.origin(first),
            polygon,
            offset_ns,
            drift_ppb,
        }
    }
}

/// A line and its distance from the other lines that fit.
#[derive(Clone, Debug)]
struct ClockPiece {
    /// Local time of the first and the last limit.
    from: i64,
    to: i64,
    /// Local time from which seconds are counted.
    origin: i64,
    polygon: Polygon,
    /// Offset at `origin`, relative to the base.
    offset_ns: f64,
    /// ns per s.
    drift_ppb: f64,
}

impl ClockPiece {
    fn seconds(&self, local: i64) -> f64 {
        (local - self.origin) as f64 / NS_PER_S
    }

    fn offset(&self, local: i64) -> f64 {
        self.offset_ns + self.drift_ppb * self.seconds(local)
    }

    fn error(&self, local: i64) -> f64 {
        let (low, high) = self.polygon.extent(self.seconds(local));
        let line = self.offset(local);
        (high - line).max(line - low).max(0.0)
    }
}

/// The relation of two clocks over a run.
#[derive(Clone, Debug)]
pub struct Fit {
    base: i64,
    /// In order of time, never empty.
    pieces: Vec<ClockPiece>,
    jumps: u32,
}

impl Fit {
    /// Reading of the remote clock less that of the local one, in ns, at a local time.
    pub fn offset_ns(&self, local: Time) -> i64 {
        let local = clamp(local);
        self.base
            .saturating_add(self.at(local).offset(local).round() as i64)
    }

    /// Bound of the error of [`Fit::offset_ns`].
    pub fn error(&self, local: Time) -> Span {
        let local = clamp(local);
        Span::from_ns(self.at(local).error(local).ceil() as u64)
    }

    /// Largest bound between two local times.
    pub fn largest_error(&self, from: Time, to: Time) -> Span {
        // The bound is convex along each line, so it is largest at an end.
        let inner = self.pieces.iter().flat_map(|piece| [piece.from, piece.to]);
        let inner = inner.map(|at| Time::from_ns(at as u64));
        let all = inner.filter(|&at| from <= at && at <= to).chain([from, to]);
        all.map(|at| self.error(at)).max().unwrap_or(Span::ZERO)
    }

    /// Drift of the remote clock in 10^-9 (positive: it is faster), at a local time.
    pub fn drift_ppb(&self, local: Time) -> f64 {
        self.at(clamp(local)).drift_ppb
    }

    /// Number of lines in the relation; more than one means that a clock was disturbed or that the run was long.
    pub fn lines(&self) -> usize {
        self.pieces.len()
    }

    /// Blocks of time in which no line fits.
    pub fn jumps(&self) -> u32 {
        self.jumps
    }

    /// The local reading, in ns, at the instant when the remote clock reads `remote`. It is negative if the local clock
    /// had not started then.
    pub fn local_ns(&self, remote: Time) -> i64 {
        let shifted = (remote.ns() as i64).wrapping_sub(self.base);
        let near = shifted.clamp(0, FARTHEST);
        let piece = self.at(near);
        let since = shifted.saturating_sub(piece.origin) as f64 - piece.offset_ns;
        let local = since / (1.0 + piece.drift_ppb / NS_PER_S);
        piece.origin.saturating_add(local.round() as i64)
    }

    /// One-way delay of a datagram sent locally, in ns by the local clock.
    pub fn forward_delay_ns(&self, sent: Time, arrived_there: Time) -> i64 {
        self.local_ns(arrived_there).saturating_sub(clamp(sent))
    }

    /// One-way delay of a datagram sent by the remote end, in ns by the local clock.
    pub fn reverse_delay_ns(&self, sent_there: Time, arrived: Time) -> i64 {
        clamp(arrived).saturating_sub(self.local_ns(sent_there))
    }

    /// The line that covers a time, or the nearest one.
    fn at(&self, local: i64) -> &ClockPiece {
        let after = self.pieces.partition_point(|piece| piece.from <= local);
        let before = after.saturating_sub(1);
        match self.pieces.get(after) {
            // Between two lines the nearer one is better.
            Some(next) if local - self.pieces[before].to > next.from - local => next,
            _ => &self.pieces[before],
        }
    }
}

/// Times beyond this are not clock readings.
fn clamp(time: Time) -> i64 {
    time.ns().min(FARTHEST as u64) as i64
}
