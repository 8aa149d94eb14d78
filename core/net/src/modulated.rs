//! Poisson processes whose rate changes over time (doubly stochastic, or Cox, processes): the common part of a drifting
//! Poisson link and one based on a trace of rates.
//!
//! The rate is piecewise constant. Each piece is divided into blocks of 256 mean gaps, and each block has a separate
//! random stream, keyed by the time at which it starts, from which exponential gaps are drawn until the block is full:
//! see `rates/poisson.rs`. Cutting a gap where the rate changes is exact for the same reason.

use crate::opportunities::Opportunities;
use narrows_units::{Stream, Time};

/// Mean gaps in a block.
const BLOCK: f64 = 256.0;

/// An interval with constant rate; its end is exclusive.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ModulatedPiece {
    /// In ns.
    pub(crate) start: u64,
    /// In ns; `u64::MAX` if it never ends.
    pub(crate) end: u64,
    /// In bit/s.
    pub(crate) bps: f64,
}

/// A rate over time.
pub(crate) trait Pieces: Send {
    /// The piece that `at` (ns) is in.
    fn piece(&self, at: u64) -> ModulatedPiece;
}

/// Opportunities of a Poisson process with the rate of `P`.
pub(crate) struct Modulated<P> {
    process: ModulatingProcess<P>,
    place: ModulatedPlace,
}

/// State that determines all opportunities.
struct ModulatingProcess<P> {
    pieces: P,
    key: u64,
    /// IP bits that an opportunity moves.
    bits: f64,
}

/// A position in the process: before the next opportunity.
struct ModulatedPlace {
    /// The block, as a piece.
    block: ModulatedPiece,
    stream: Stream,
    /// ns since the start of the block, within it unless the process has ended.
    next: f64,
}

impl<P: Pieces> Modulated<P> {
    /// A process whose opportunities move `packet` IP bytes each; `key` determines its random streams.
    pub(crate) fn new(pieces: P, key: u64, packet: u32) -> Self {
        let bits = f64::from(packet) * 8.0;
        let process = ModulatingProcess { pieces, key, bits };
        let place = process.enter(0);
        Modulated { process, place }
    }
}

impl<P: Pieces> ModulatingProcess<P> {
    /// The block that `at` is in.
    fn block(&self, at: u64) -> ModulatedPiece {
        let piece = self.pieces.piece(at);
        if piece.bps <= 0.0 {
            return piece;
        }
        let length = (BLOCK * self.gap(piece)).ceil().max(1.0) as u64;
        let start = piece.start + (at - piece.start) / length * length;
        ModulatedPiece {
            start,
            end: piece.end.min(start.saturating_add(length)),
            ..piece
        }
    }

    /// Mean gap in ns.
    fn gap(&self, piece: ModulatedPiece) -> f64 {
        self.bits * 1e9 / piece.bps
    }

    /// The stream of the block that starts at `start`.
    fn stream(&self, start: u64) -> Stream {
        Stream::new(self.key.wrapping_add(start), "opportunities")
    }

    /// The position before the first opportunity of the block of `at`, or of a later block.
    fn enter(&self, at: u64) -> ModulatedPlace {
        let block = self.block(at);
        let mut place = ModulatedPlace {
            block,
            stream: self.stream(block.start),
            next: 0.0,
        };
        self.step(&mut place);
        place
    }

    /// Advances to the next opportunity.
    fn step(&self, place: &mut ModulatedPlace) {
        loop {
            let ModulatedPiece { start, end, bps } = place.block;
            if bps > 0.0 {
                place.next += place.stream.exponential(self.gap(place.block));
                if place.next < (end - start) as f64 {
                    return;
                }
            }
            if end == u64::MAX {
                place.next = f64::INFINITY;
                return;
            }
            *place = ModulatedPlace {
                block: self.block(end),
                stream: self.stream(end),
                next: 0.0,
            };
        }
    }
}

impl ModulatedPlace {
    fn time(&self) -> Time {
        if self.next.is_infinite() {
            return Time::FAR;
        }
        Time::from_ns(self.block.start.saturating_add(self.next as u64))
    }
}

impl<P: Pieces> Opportunities for Modulated<P> {
    fn peek(&mut self, at: Time) -> Time {
        if at.ns() >= self.place.block.end {
            self.place = self.process.enter(at.ns());
        }
        while self.place.time() < at {
            self.process.step(&mut self.place);
        }
        self.place.time()
    }

    fn take(&mut self) {
        self.process.step(&mut self.place);
    }

    fn count(&self, from: Time, to: Time) -> u64 {
        let mut place = self.process.enter(from.ns());
        let mut count = 0;
        while place.time() < to {
            count += u64::from(place.time() >= from);
            self.process.step(&mut place);
        }
        count
    }

    fn frequency(&self, at: Time) -> f64 {
        self.process.pieces.piece(at.ns()).bps / self.process.bits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Alternates between 8 Mbit/s and zero every 100 ms.
    struct InTurn;

    impl Pieces for InTurn {
        fn piece(&self, at: u64) -> ModulatedPiece {
            let number = at / 100_000_000;
            let start = number * 100_000_000;
            let bps = if number.is_multiple_of(2) { 8e6 } else { 0.0 };
            ModulatedPiece {
                start,
                end: start + 100_000_000,
                bps,
            }
        }
    }

    #[test]
    fn opportunities_come_only_while_there_is_a_rate_and_as_often() {
        let mut process = Modulated::new(InTurn, 5, 1000);
        let end = Time::from_ns(200_000_000_000);
        let (mut at, mut taken) = (Time::ZERO, 0u64);
        while process.peek(at) < end {
            at = process.peek(at);
            assert!((at.ns() / 100_000_000).is_multiple_of(2), "{at}");
            process.take();
            taken += 1;
        }
        // 1000 per second for half of 200 s; five standard deviations of a Poisson count.
        assert!(
            (taken as f64 - 100_000.0).abs() < 5.0 * 100_000f64.sqrt(),
            "{taken}"
        );
        let fresh = Modulated::new(InTurn, 5, 1000);
        assert_eq!(fresh.count(Time::ZERO, end), taken);
        let middle = Time::from_ns(77_777_777_777);
        assert_eq!(
            fresh.count(Time::ZERO, middle) + fresh.count(middle, end),
            taken
        );
        // Looking far ahead leads to the same position.
        let mut jumper = Modulated::new(InTurn, 5, 1000);
        assert_eq!(jumper.peek(end), process.peek(end));
    }
}
