//! RED: drops arriving packets at random, more often the longer the average queue.
//!
//! Source: Floyd and Jacobson, Random Early Detection Gateways for Congestion Avoidance, IEEE/ACM Transactions on
//! Networking 1(4), 1993, figure 2 (average, idle time, probability with the count since the last drop). `gentle`:
//! Floyd, Recommendation on using the "gentle_" variant of RED, 2000. `adaptive`: Floyd, Gummadi and Shenker, Adaptive
//! RED, 2001, with its constants: every 0.5 s the maximum probability is adjusted to keep the average in the middle
//! fifth between the thresholds, up by min(0.01, a quarter of itself) and down by a tenth, within 1 % and 50 %.
//!
//! Deviations: the average counts waiting packets, not the packet in service. Packets that can be marked are marked
//! whatever the average is (RFC 3168 would drop above the upper threshold) and dropped only where there is no room. The
//! timer of `adaptive` needs no wake-ups: the average moves only with arrivals, so that overdue steps are carried out
//! at the next arrival.

use crate::aqm::{AqmLaw, ArrivingPacket, LawQueue, AqmVerdict};
use crate::fifo::QueueLimit;
use crate::{Entry, Example, Queue, QueueDrops, QueueEffects, DropReason};
use narrows_units::{Bytes, ParamError, ParamSpec, Params, Span, Stream, Time, params};

const RED_EARLY: DropReason = DropReason("red_early");

/// Registry entry.
pub const ENTRY: Entry = Entry {
    name: "red",
    summary: "Random early detection: drops or marks arrivals at random, more often the longer the average queue",
    source: "Floyd and Jacobson 1993; gentle: Floyd 2000; adaptive: Floyd, Gummadi and Shenker 2001",
    params: &ParamSpec::join::<13>(&[super::droptail::ENTRY.params, RedParams::PARAMS]),
    shorthand: &["packets", "bytes"],
    example: Example::new(
        "{red: {packets: 100 packets, min_threshold: 10 packets, max_threshold: 30 packets}}",
        "Between the thresholds (12 and 36 ms) the share of packets that are dropped, or marked if the sender supports ECN, grows with the mean queue; the mean lags behind the queue.",
    ),
};

/// Effects on packets.
pub const EFFECTS: QueueEffects = QueueEffects::fifo(QueueDrops::Arriving);

crate::registry::build!(dyn Queue<P>: |params, setup| {
    let limit = QueueLimit::new(params)?;
    let law = Red::new(RedSettings::new(params)?, setup.stream());
    LawQueue::new(limit, law)
});

params! {
    /// Parameters besides the limit.
    struct RedParams {
        /// Average number of packets below which no packet is dropped early; absent: a third of the upper threshold.
        #[trial("2")]
        min_threshold: Option<Packets>,
            "Floyd, RED: Discussions of Setting Parameters, 1997: max_th three times min_th";
        /// Average number of packets at which the probability reaches max_p; absent: a quarter of the limit.
        #[trial("6")]
        max_threshold: Option<Packets>(1.0..=4e9);
        /// The lower threshold in bytes; the average then counts bytes.
        #[trial("2000")]
        min_bytes: Option<Bytes>;
        /// The upper threshold in bytes; the average then counts bytes.
        #[trial("9000")]
        max_bytes: Option<Bytes>(1.0..=1e15);
        /// Probability at the upper threshold.
        max_p: Ratio = 0.1, "Floyd, RED: Discussions of Setting Parameters, 1997";
        /// Weight of a new length in the average; absent: 0.002, or with adaptive 1 - exp(-1 / packets per second) by
        /// packet_time.
        weight: Option<Ratio>, "Floyd and Jacobson 1993; Floyd, Gummadi and Shenker 2001";
        /// Whether the probability rises from max_p to 1 between the upper threshold and twice that, instead of
        /// jumping.
        gentle: Flag = true, "Floyd 2000";
        /// Whether max_p follows the average (ARED).
        adaptive: Flag = false;
        /// Whether packets that can be marked are marked instead of dropped.
        ecn: Flag = true, "RFC 3168";
        /// Time that a typical packet takes at the rate of the link, by which the average decays while the link is
        /// idle.
        packet_time: Span(1.0..=1e12) = "1.2 ms", "1500 bytes at 10 Mbit/s";
        /// Size of a packet to which the unscaled probability applies if bytes are counted.
        mean_packet: Bytes(1.0..=1e6) = 1500, "Floyd and Jacobson 1993, where it is the maximum packet size";
    }
}

#[derive(Clone, Debug)]
struct RedSettings {
    count_bytes: bool,
    min: f64,
    max: f64,
    weight: f64,
    params: RedParams,
}

impl RedSettings {
    fn new(params: &Params) -> Result<Self, ParamError> {
        let own = RedParams::read(params);
        let real = |bytes: Option<Bytes>| bytes.map(|bytes| bytes.get() as f64);
        let packets = (own.min_threshold, own.max_threshold);
        let bytes = (real(own.min_bytes), real(own.max_bytes));
        let given = |pair: (Option<f64>, Option<f64>)| pair.0.is_some() || pair.1.is_some();
        if given(packets) && given(bytes) {
            return Err(ParamError::Conflict(
                "thresholds count packets or bytes: specify min_threshold and max_threshold, or min_bytes and max_bytes"
                    .into(),
            ));
        }
        let limit = params.real("packets");
        let count_bytes = given(bytes) || (limit.is_none() && !given(packets));
        let (pair, limit) = if count_bytes {
            (bytes, params.real("bytes"))
        } else {
            (packets, limit)
        };
        let Some(max) = pair.1.or(limit.map(|limit| limit / 4.0)) else {
            return Err(ParamError::Conflict(
                "the upper threshold is missing: specify it, or a limit in the same unit".into(),
            ));
        };
        let min = pair.0.unwrap_or(max / 3.0);
        if min >= max {
            return Err(ParamError::Conflict(format!(
                "the lower threshold ({min}) must be below the upper one ({max})"
            )));
        }
        let weight = if own.adaptive {
            1.0 - (-own.packet_time.secs()).exp()
        } else {
            0.002
        };
        Ok(RedSettings {
            count_bytes,
            min,
            max,
            weight: own.weight.unwrap_or(weight),
            params: own,
        })
    }
}

/// Constants of Adaptive RED.
const INTERVAL: Span = Span::from_ms(500);
const MAX_MAX_P: f64 = 0.5;
const MIN_MAX_P: f64 = 0.01;

struct Red {
    set: RedSettings,
    stream: Stream,
    average: f64,
    /// Packets since the last drop while the average was between the thresholds; `None` below.
    count: Option<f64>,
    /// When the link became idle, if it is.
    idle_since: Option<Time>,
    max_p: f64,
    next_step: Time,
}

impl Red {
    fn new(set: RedSettings, stream: Stream) -> Self {
        Red {
            stream,
            average: 0.0,
            count: None,
            idle_since: Some(Time::ZERO),
            max_p: set.params.max_p,
            next_step: Time::ZERO + INTERVAL,
            set,
        }
    }

    /// The steps of `max_p` that were due up to `now`.
    fn adapt(&mut self, now: Time) {
        let third = 0.4 * (self.set.max - self.set.min);
        let (low, high) = (self.set.min + third, self.set.max - third);
        while self.next_step <= now {
            let before = self.max_p;
            if self.average > high && self.max_p <= MAX_MAX_P {
                self.max_p += (self.max_p / 4.0).min(0.01);
            } else if self.average < low && self.max_p >= MIN_MAX_P {
                self.max_p *= 0.9;
            }
            self.next_step += INTERVAL;
            if before == self.max_p && self.next_step <= now {
                // Further steps would change nothing either.
                let missed = now.since(self.next_step).ns() / INTERVAL.ns() + 1;
                self.next_step += INTERVAL * missed;
            }
        }
    }

    /// Updates the average with the queue length at an arrival.
    fn average(&mut self, now: Time, packet: &ArrivingPacket) {
        let length = if self.set.count_bytes {
            packet.backlog.bytes as f64
        } else {
            f64::from(packet.backlog.packets)
        };
        match self.idle_since.take() {
            // As if this many packets had arrived at an empty queue.
            Some(since) if length == 0.0 => {
                let missed = now.since(since).secs() / self.set.params.packet_time.secs();
                self.average *= (1.0 - self.set.weight).powf(missed);
            }
            _ => self.average += self.set.weight * (length - self.average),
        }
    }

    /// The probability for the average, before the count is considered.
    fn base(&self) -> f64 {
        let (min, max) = (self.set.min, self.set.max);
        if self.average < max {
            self.max_p * (self.average - min) / (max - min)
        } else {
            self.max_p + (1.0 - self.max_p) * (self.average - max) / max
        }
    }

    fn picks(&mut self, packet: &ArrivingPacket) -> bool {
        let certain = if self.set.params.gentle {
            2.0 * self.set.max
        } else {
            self.set.max
        };
        if self.average < self.set.min {
            self.count = None;
            return false;
        }
        if self.average >= certain {
            self.count = Some(0.0);
            return true;
        }
        let count = self.count.map_or(0.0, |count| count + 1.0);
        let mut base = self.base();
        if self.set.count_bytes {
            base *= f64::from(packet.size) / self.set.params.mean_packet.get() as f64;
        }
        let room = 1.0 - count * base;
        let picked = room <= 0.0 || self.stream.chance(base / room);
        self.count = Some(if picked { 0.0 } else { count });
        picked
    }
}

impl AqmLaw for Red {
    fn arriving(&mut self, now: Time, packet: &ArrivingPacket) -> AqmVerdict {
        if self.set.params.adaptive {
            self.adapt(now);
        }
        self.average(now, packet);
        if !self.picks(packet) {
            return AqmVerdict::Pass;
        }
        if self.set.params.ecn && packet.ect {
            AqmVerdict::Mark
        } else {
            AqmVerdict::Drop(RED_EARLY)
        }
    }

    fn drained(&mut self, now: Time) {
        // Servers may ask again without new arrivals; the time of the first call counts.
        self.idle_since = self.idle_since.or(Some(now));
    }

    fn change(&mut self, now: Time, params: &Params) -> Result<(), ParamError> {
        let set = RedSettings::new(params)?;
        if set.params.adaptive && self.set.params.adaptive {
            self.adapt(now);
        } else {
            self.next_step = now + INTERVAL;
        }
        // The adapted value stays unless the scenario changes it.
        if set.params.max_p != self.set.params.max_p || !set.params.adaptive {
            self.max_p = set.params.max_p;
        }
        self.set = set;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Backlog;
    use serde_json::json;

    fn red(params: &serde_json::Value) -> Red {
        let params = Params::from_json(ENTRY.params, params.as_object().unwrap()).unwrap();
        Red::new(RedSettings::new(&params).unwrap(), Stream::new(1, "red"))
    }

    fn behind(packets: u32) -> ArrivingPacket {
        ArrivingPacket {
            size: 1500,
            ect: false,
            backlog: Backlog {
                bytes: u64::from(packets) * 1500,
                packets,
            },
            room: true,
        }
    }

    fn close(got: f64, expected: f64) {
        assert!((got - expected).abs() < 1e-12, "{got}, not {expected}");
    }

    #[test]
    fn the_average_is_the_one_worked_out_by_hand() {
        let mut red = red(&json!({"packets": 100, "weight": 0.25}));
        let now = Time::from_ns(1_000_000_000);
        red.average(now, &behind(0));
        close(red.average, 0.0);
        // 0.25 x 4 = 1; 0.75 x 1 + 0.25 x 8 = 2.75; 0.75 x 2.75 + 0 = 2.0625.
        for (length, expected) in [(4, 1.0), (8, 2.75), (0, 2.0625)] {
            red.average(now, &behind(length));
            close(red.average, expected);
        }
        // Idle for 2.4 ms, that is two packets: 0.75^2.
        red.drained(now);
        red.drained(now + Span::from_ms(1));
        red.average(now + Span::from_us(2_400), &behind(0));
        close(red.average, 2.0625 * 0.5625);
    }

    /// Thresholds 5 and 15, max_p 0.1: a tenth of the way up per packet, then gently to 1 at 30.
    #[test]
    fn the_probability_follows_the_average() {
        let mut red = red(&json!({"packets": 100, "min_threshold": 5, "max_threshold": 15}));
        for (average, expected) in [(5.0, 0.0), (10.0, 0.05), (15.0, 0.1), (22.5, 0.55)] {
            red.average = average;
            close(red.base(), expected);
        }
        red.average = 30.0;
        assert!(red.picks(&behind(30)));
        red.average = 4.9;
        assert!(!red.picks(&behind(5)));
        assert_eq!(red.count, None);
        // At 0.05 the packet after 19 that passed is certain to be selected: 1 - 20 x 0.05 = 0.
        red.average = 10.0;
        red.count = Some(19.0);
        assert!(red.picks(&behind(10)));
    }

    #[test]
    fn max_p_adapts_every_half_second() {
        let spec = json!({"packets": 100, "min_threshold": 5, "max_threshold": 15, "adaptive": true});
        let mut red = red(&spec);
        close(red.set.weight, 1.0 - (-0.0012_f64).exp());
        red.average = 12.0;
        red.adapt(Time::from_ns(1_000_000_000));
        close(red.max_p, 0.12);
        red.average = 10.0;
        red.adapt(Time::from_ns(5_000_000_000));
        close(red.max_p, 0.12);
        red.average = 8.0;
        red.adapt(Time::from_ns(5_500_000_000));
        close(red.max_p, 0.108);
        // A long time below the middle: reduced until the last step above 1 %.
        red.adapt(Time::from_ns(u64::MAX / 2));
        assert!(red.max_p < 0.01 && red.max_p >= 0.009);
        assert!(red.next_step > Time::from_ns(u64::MAX / 2));
        red.average = 14.0;
        red.adapt(Time::from_ns(u64::MAX / 2 + u64::MAX / 4));
        assert!(red.max_p > 0.5 && red.max_p <= 0.51);
    }
}
