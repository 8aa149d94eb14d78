//! Samples of the round-trip time of a sender, in memory that grows with the number of changes.
//!
//! States are sampled at fixed intervals, however rarely an acknowledgement brings a new round-trip time: a day at
//! intervals of 10 ms has 8.6 million samples. Consecutive samples of the same value are kept once, with their number.

/// The samples of one flow.
#[derive(Clone, Debug, Default)]
pub struct RttSamples {
    runs: Vec<SampleRun>,
    /// Time of the last sample.
    last_ns: u64,
    /// True if a sample was earlier than the one before it.
    unordered: bool,
}

/// Consecutive samples of the same value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SampleRun {
    /// Time of the first sample.
    from_ns: u64,
    rtt_ns: u64,
    /// Number of samples in the part of the run that is measured.
    counted: u32,
}

impl RttSamples {
    /// Adds a sample; `counts` if it lies in the part of the run that is measured.
    pub fn push(&mut self, time_ns: u64, rtt_ns: u64, counts: bool) {
        self.unordered |= time_ns < self.last_ns;
        self.last_ns = time_ns;
        let counted = u32::from(counts);
        match self.runs.last_mut() {
            Some(run) if run.rtt_ns == rtt_ns && !self.unordered && run.counted < u32::MAX => {
                run.counted += counted;
            }
            _ => self.runs.push(SampleRun {
                from_ns: time_ns,
                rtt_ns,
                counted,
            }),
        }
    }

    /// Puts the samples in the order of time, after the last.
    pub fn settle(&mut self) {
        if self.unordered {
            self.runs.sort_by_key(|run| run.from_ns);
        }
    }

    /// The last sample up to `time`, or else the first.
    pub fn at(&self, time: u64) -> Option<u64> {
        let after = self.runs.partition_point(|run| run.from_ns <= time);
        let run = self.runs.get(after.saturating_sub(1))?;
        Some(run.rtt_ns)
    }

    /// The values between two times, each with the nanoseconds for which it was the latest. The last value lasts until
    /// the end.
    pub fn within(&self, from: u64, to: u64) -> impl Iterator<Item = (u64, u64)> + '_ {
        let ends = self.runs.iter().skip(1).map(|run| run.from_ns);
        let spans = self.runs.iter().zip(ends.chain([u64::MAX]));
        spans.filter_map(move |(run, end)| {
            let lasted = end.min(to).saturating_sub(run.from_ns.max(from));
            (lasted > 0).then_some((run.rtt_ns, lasted))
        })
    }

    /// The values of all samples that count, in order, each with how often it was sampled.
    pub fn counted<'a>(all: impl Iterator<Item = &'a RttSamples>) -> Vec<(u64, u64)> {
        let runs = all.flat_map(|samples| &samples.runs);
        let counted = runs.filter(|run| run.counted > 0);
        let mut counts: Vec<(u64, u64)> = counted
            .map(|run| (run.rtt_ns, u64::from(run.counted)))
            .collect();
        counts.sort_unstable();
        counts.dedup_by(|later, kept| {
            let same = later.0 == kept.0;
            kept.1 += if same { later.1 } else { 0 };
            same
        });
        counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn runs_of_samples_answer_like_all_samples(
            samples in prop::collection::vec((0u64..5, 1u64..4, any::<bool>()), 0..80),
            asked in 0u64..200,
        ) {
            let mut time = 0;
            let (mut packed, mut plain) = (RttSamples::default(), Vec::new());
            for (step, rtt, counts) in samples {
                time += step;
                packed.push(time, rtt, counts);
                plain.push((time, rtt, counts));
            }
            packed.settle();
            let before = plain.iter().rposition(|sample| sample.0 <= asked).unwrap_or(0);
            prop_assert_eq!(packed.at(asked), plain.get(before).map(|sample| sample.1));
            let mut rtts: Vec<u64> = plain.iter().filter(|s| s.2).map(|s| s.1).collect();
            rtts.sort_unstable();
            let counted = RttSamples::counted([&packed].into_iter());
            let all: Vec<u64> = (counted.iter())
                .flat_map(|&(rtt, count)| std::iter::repeat_n(rtt, count as usize))
                .collect();
            prop_assert_eq!(all, rtts);
        }
    }

    #[test]
    fn a_day_of_samples_takes_the_memory_of_what_is_new() {
        let mut samples = RttSamples::default();
        for index in 0..8_640_000 {
            samples.push(index * 10_000_000, index / 1_000, true);
        }
        assert_eq!(samples.runs.len(), 8_640);
    }
}
