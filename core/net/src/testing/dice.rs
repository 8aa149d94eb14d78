//! The source of decisions of trials: a random stream, or the bytes of a fuzzer.

use super::TestPacket;
use narrows_units::{Ecn, Stream};

/// A source of decisions that lasts for a number of steps.
pub struct Dice<'a> {
    source: Source<'a>,
}

enum Source<'a> {
    Random { stream: Box<Stream>, steps: u32 },
    Bytes(&'a [u8]),
}

impl<'a> Dice<'a> {
    /// Random decisions for `steps` steps.
    pub fn random(seed: u64, steps: u32) -> Self {
        let stream = Box::new(Stream::new(seed, "conformance"));
        Dice {
            source: Source::Random { stream, steps },
        }
    }

    /// Decisions taken from `bytes`, until they are used up.
    pub fn bytes(bytes: &'a [u8]) -> Self {
        Dice {
            source: Source::Bytes(bytes),
        }
    }

    /// True if there is another step to make.
    pub fn step(&mut self) -> bool {
        match &mut self.source {
            Source::Random { steps, .. } => {
                let more = *steps > 0;
                *steps = steps.saturating_sub(1);
                more
            }
            Source::Bytes(bytes) => !bytes.is_empty(),
        }
    }

    /// A number below `bound`, which is at most 2^16 where bytes decide.
    pub fn below(&mut self, bound: u64) -> u64 {
        match &mut self.source {
            Source::Random { stream, .. } => stream.below(bound),
            Source::Bytes(bytes) => {
                let count = bytes.len().min(if bound > 256 { 2 } else { 1 });
                let (taken, rest) = bytes.split_at(count);
                *bytes = rest;
                let number = taken
                    .iter()
                    .fold(0, |sum, byte| sum * 256 + u64::from(*byte));
                number % bound.max(1)
            }
        }
    }

    /// True in `share` of 100 cases.
    pub fn percent(&mut self, share: u64) -> bool {
        self.below(100) < share
    }

    /// One of `list`, which is not empty.
    pub fn pick<'b, T>(&mut self, list: &'b [T]) -> &'b T {
        &list[self.below(list.len() as u64) as usize]
    }

    /// A packet with the number `uid`.
    pub fn packet(&mut self, uid: u64) -> TestPacket {
        let flow = self.below(5) as u16;
        TestPacket {
            uid,
            size: *self.pick(&[40, 52, 576, 1280, 1500, 9000]),
            flow,
            ecn: Ecn::from_bits(self.below(4) as u8),
            dscp: *self.pick(&[0, 8, 10, 34, 46]),
            connection: u32::from(flow) * 10 + self.below(3) as u32,
            ack: self.percent(20),
            ..TestPacket::default()
        }
    }
}
