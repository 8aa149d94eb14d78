//! A shaper: a token bucket in front of the line.
//!
//! The bucket holds `burst` bytes, is full at the start of the run and fills at `rate`. A packet leaves when the bucket
//! holds as many bytes as the packet, and removes them. With `peak` it also takes its transmission time at that rate,
//! during which the bucket continues to fill. A packet that is larger than the bucket leaves when the bucket is full
//! and causes a debt, so that no packet waits for ever and the long-term rate is kept.

use crate::token_bucket::TokenBucket;
use crate::{Entry, Example, RateServer};
use narrows_units::{Bytes, ParamError, Rate, RateClock, Time, params};

/// Registry entry.
pub const ENTRY: Entry = Entry {
    name: "tokenbucket",
    summary: "Shapes to a mean rate but passes bursts of a given size immediately",
    source: "the token bucket of RFC 3290, section 5.1.3, and RFC 2697, as a shaper; tc-tbf's burst and peakrate",
    params: TokenBucketParams::PARAMS,
    shorthand: &[],
    example: Example::new(
        "{tokenbucket: {rate: 4 Mbit/s, burst: 200 kB, peak: 20 Mbit/s}}",
        "200 kB pass at the peak rate, then the bucket is empty and packets leave at the token rate.",
    )
    .picture(r#"{"bin_ms": 20}"#),
};

params! {
    /// Parameters.
    struct TokenBucketParams {
        /// Rate at which the bucket fills, in IP bits per second.
        rate: Rate(1.0..=1e13);
        /// Size of the bucket; it is full at the start.
        burst: Bytes(1.0..=1e12);
        /// Rate of the line behind the bucket; without it a burst leaves at one instant.
        #[trial("20000000")]
        peak: Option<Rate>(1.0..=1e13);
    }
}

crate::registry::build!(dyn RateServer: |params, _| {
    let TokenBucketParams { rate, burst, peak } = TokenBucketParams::read(params);
    if peak.is_some_and(|peak| peak < rate) {
        return Err(ParamError::Conflict(
            "the peak rate must not be below the rate at which the bucket fills".into(),
        ));
    }
    Shaper {
        bucket: TokenBucket::new(rate.bps(), burst.get()),
        peak: peak.map(RateClock::new),
    }
});

struct Shaper {
    bucket: TokenBucket,
    peak: Option<RateClock>,
}

impl RateServer for Shaper {
    fn serve(&mut self, now: Time, bytes: u32) -> Time {
        self.bucket.fill(now);
        let sent = match &mut self.peak {
            Some(line) => now + line.serve(u64::from(bytes)),
            None => now,
        };
        let end = sent.max(now + self.bucket.wait(bytes));
        self.bucket.fill(end);
        self.bucket.take(bytes);
        end
    }

    fn rest(&mut self) {
        if let Some(line) = &mut self.peak {
            line.rest();
        }
    }

    fn served(&self, _: Time, _: Time) -> Bytes {
        // A packet leaves the bucket as a whole.
        Bytes::ZERO
    }

    /// The capacity for a sender that has had data to send since the start of the run: first the content of the bucket,
    /// limited by the rate of the line, then its fill rate. Parts of a span add up to the whole.
    fn capacity(&self, from: Time, to: Time) -> Bytes {
        let until = |time: Time| {
            let all = self.bucket.burst() + self.bucket.rate().bytes_in(time.since(Time::ZERO));
            match &self.peak {
                _ if time == Time::ZERO => Bytes::ZERO,
                Some(line) => all.min(line.rate().bytes_in(time.since(Time::ZERO))),
                None => all,
            }
        };
        until(to.max(from)).saturating_sub(until(from))
    }

    fn rate(&self, _: Time) -> Rate {
        self.bucket.rate()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ElementSetup;
    use narrows_units::Params;
    use narrows_units::Span;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    fn server(json: &Value) -> Box<dyn RateServer> {
        let params = Params::from_json(ENTRY.params, json.as_object().unwrap()).unwrap();
        build(&params, &ElementSetup::default()).unwrap()
    }

    #[test]
    fn a_burst_passes_at_once_and_the_rest_at_the_rate() {
        // A bucket of ten packets at one packet per millisecond.
        let mut server = server(&json!({"rate": 12_000_000, "burst": 15_000}));
        let mut at = Time::ZERO;
        let times: Vec<u64> = (0..13)
            .map(|_| {
                at = server.serve(at, 1_500);
                at.ns() / 1_000_000
            })
            .collect();
        assert_eq!(times, [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3]);
        // After a pause of 4 ms the bucket holds four packets again.
        let at = Time::from_ns(7_000_000);
        server.rest();
        assert!((0..4).all(|_| server.serve(at, 1_500) == at));
        assert_eq!(server.serve(at, 1_500).ns(), 8_000_000);
    }

    #[test]
    fn the_line_behind_the_bucket_has_its_own_rate() {
        // Ten packets at the peak of 120 Mbit/s take 100 us each, while the bucket fills; the first finds it full, so
        // that the tokens of its transmission time are lost.
        let mut server = server(&json!({"rate": 12_000_000, "burst": 15_000, "peak": 120_000_000}));
        let mut at = Time::ZERO;
        let times: Vec<u64> = (0..13)
            .map(|_| {
                at = server.serve(at, 1_500);
                at.ns() / 1_000
            })
            .collect();
        let expected = [100, 200, 300, 400, 500, 600, 700, 800, 900, 1000, 1100, 2100, 3100];
        assert_eq!(times, expected);
    }

    #[test]
    fn a_packet_larger_than_the_bucket_leaves_a_debt() {
        let mut server = server(&json!({"rate": 8_000_000, "burst": 500}));
        assert_eq!(server.serve(Time::ZERO, 1_500), Time::ZERO);
        // 1000 bytes of debt and 500 more to be full: a byte per microsecond.
        assert_eq!(server.serve(Time::ZERO, 1_500).ns(), 1_500_000);
    }

    proptest! {
        /// The traffic of a sender that always has data to send equals the capacity of all bins until then.
        #[test]
        fn capacities_of_bins_add_up_to_what_a_busy_sender_carries(
            rate in 1_000_000u64..100_000_000,
            burst in 1_500u64..200_000,
            faster in prop::option::of(1u64..40),
            bin in 10_000u64..20_000_000,
        ) {
            let peak = faster.map(|times| rate * times);
            let mut server = server(&json!({"rate": rate, "burst": burst, "peak": peak}));
            let mut at = Time::ZERO;
            let left: Vec<Time> = (0..300)
                .map(|_| {
                    at = server.serve(at, 1_500);
                    at
                })
                .collect();
            let mut sum = 0;
            let mut from = Time::ZERO;
            while from < at {
                let to = from + Span::from_ns(bin);
                sum += server.capacity(from, to).get();
                from = to;
                let carried = 1_500 * left.partition_point(|&time| time <= to) as u64;
                if to < at {
                    // A packet is in flight, and the transmission time of the first at the peak rate adds no tokens.
                    prop_assert!((carried..carried + 3_001).contains(&(sum + 1)), "{carried} of {sum}");
                }
            }
            prop_assert_eq!(sum, server.capacity(Time::ZERO, from).get());
        }

        /// In no interval does more leave than the content of the bucket and its fill (RFC 2697's definition).
        #[test]
        fn departures_conform_to_the_bucket(
            rate in 1_000u64..100_000_000,
            burst in 1_500u64..30_000,
            peak in prop::option::of(100_000_000u64..1_000_000_000),
            arrivals in prop::collection::vec((0u64..3_000_000, 40u32..1_500), 2..80),
        ) {
            let mut server = server(&json!({"rate": rate, "burst": burst, "peak": peak}));
            let (mut now, mut free) = (Time::ZERO, Time::ZERO);
            let mut left: Vec<(u64, u128)> = Vec::new();
            for (gap, size) in arrivals {
                now += Span::from_ns(gap);
                if now > free {
                    server.rest();
                }
                free = server.serve(now.max(free), size);
                left.push((free.ns(), u128::from(size) * 8_000_000_000));
            }
            for first in 0..left.len() {
                let mut sum = 0;
                for (at, size) in &left[first..] {
                    sum += size;
                    let maximum = u128::from(burst) * 8_000_000_000
                        + u128::from(at - left[first].0) * u128::from(rate);
                    prop_assert!(sum <= maximum);
                }
            }
        }
    }
}
