//! PIE: drops arriving packets with a probability that a controller adjusts to keep the waiting time at a target.
//!
//! Source: RFC 8033: sections 4.1 to 4.4 and appendix A, and from section 5 the ECN support (5.1), the derandomisation
//! (5.4) and the cap on steps of the probability (5.5). The waiting time is measured from time stamps (section 4.3): it
//! is that of the packet that left last, and zero when none waits behind it; the departure rate (5.2) is therefore not
//! estimated. PIE is always active (5.3 is not implemented).
//!
//! The RFC's timer needs no wake-ups here: between two packets the inputs of an update cannot change, so overdue
//! updates are carried out, one by one, before a packet is considered. When an update changes nothing, the next would
//! not either, and the rest are skipped.

use crate::aqm::{AqmLaw, ArrivingPacket, Departure, LawQueue, AqmVerdict};
use crate::fifo::{QueueLimit, OPTIONAL_LIMIT};
use crate::{Entry, Example, Queue, QueueDrops, QueueEffects, DropReason};
use narrows_units::{ParamError, ParamSpec, Params, Span, Stream, Time, params};

const PIE_EARLY: DropReason = DropReason("pie_early");

/// Registry entry.
pub const ENTRY: Entry = Entry {
    name: "pie",
    summary: "Proportional integral controller enhanced: drops or marks arrivals at random so that \
              the waiting time stays at a target",
    source: "RFC 8033",
    params: &ParamSpec::join::<11>(&[PieParams::PARAMS, &OPTIONAL_LIMIT]),
    shorthand: &["target", "packets", "bytes"],
    example: Example::new(
        "{pie: {packets: 100 packets}}",
        "The first 150 ms of a burst pass; then the share of drops grows until the delay falls. In the second burst it does not have to start from zero.",
    ),
};

/// Effects on packets.
pub const EFFECTS: QueueEffects = QueueEffects::fifo(QueueDrops::Arriving);

crate::registry::build!(dyn Queue<P>: |params, setup| {
    let law = Pie::new(PieParams::read(params), setup.stream());
    LawQueue::new(QueueLimit::optional(params), law)
});

params! {
    /// Parameters.
    struct PieParams {
        /// Waiting time to hold.
        target: Span(1.0..=1e10) = "15 ms", "RFC 8033, section 4.2: QDELAY_REF";
        /// Time between updates of the probability.
        tupdate: Span(1e5..=1e10) = "15 ms", "RFC 8033, section 4.2: T_UPDATE";
        /// Gain on the distance from the target, in Hz.
        alpha: Number(0.0..=1e6) = 0.125, "RFC 8033, section 4.2: 1/8";
        /// Gain on the change of the waiting time, in Hz.
        beta: Number(0.0..=1e6) = 1.25, "RFC 8033, section 4.2: 1 + 1/4";
        /// Time after a quiet period during which no packet is dropped.
        burst: Span(0.0..=1e12) = "150 ms", "RFC 8033, section 4.4: MAX_BURST";
        /// No packet is dropped while the backlog is at most two packets of this size.
        mean_packet: Bytes(0.0..=1e6) = 1500, "RFC 8033, section 4.1: MEAN_PKTSIZE";
        /// Whether drops are derandomised, so that they neither cluster nor are far apart.
        derandomize: Flag = true, "RFC 8033, section 5.4";
        /// Whether packets that can be marked are marked in place of dropped.
        ecn: Flag = true, "RFC 8033, section 5.1";
        /// Above this probability, packets that could be marked are dropped as well.
        mark_ecnth: Ratio = 0.1, "RFC 8033, section 5.1: 10 %";
    }
}

/// RFC 8033, section 4.2: below each probability, steps are divided by this. A fixed step would be
/// far too large for small probabilities.
const TUNING: [(f64, f64); 6] = [
    (0.000_001, 2048.0),
    (0.000_01, 512.0),
    (0.000_1, 128.0),
    (0.001, 32.0),
    (0.01, 8.0),
    (0.1, 2.0),
];

struct Pie {
    set: PieParams,
    stream: Stream,
    probability: f64,
    /// Sum of the probabilities since the last drop (derandomisation).
    accumulated: f64,
    /// Waiting time now, and at the last update.
    delay: Span,
    old_delay: Span,
    burst: Span,
    next_update: Time,
}

impl Pie {
    fn new(set: PieParams, stream: Stream) -> Self {
        Pie {
            stream,
            probability: 0.0,
            accumulated: 0.0,
            delay: Span::ZERO,
            old_delay: Span::ZERO,
            burst: set.burst,
            next_update: Time::ZERO + set.tupdate,
            set,
        }
    }

    fn quiet(&self) -> bool {
        let half = self.set.target.scale(1, 2);
        self.delay < half && self.old_delay < half
    }

    /// The updates that were due up to `now`.
    fn catch_up(&mut self, now: Time) {
        while self.next_update <= now {
            let before = (self.probability, self.old_delay, self.burst);
            self.update();
            self.next_update += self.set.tupdate;
            if before == (self.probability, self.old_delay, self.burst) && self.next_update <= now {
                let step = self.set.tupdate.ns();
                let missed = now.since(self.next_update).ns() / step + 1;
                self.next_update += self.set.tupdate * missed;
            }
        }
    }

    fn update(&mut self) {
        let (delay, old) = (self.delay.secs(), self.old_delay.secs());
        let mut step =
            self.set.alpha * (delay - self.set.target.secs()) + self.set.beta * (delay - old);
        let range = TUNING.iter().find(|(below, _)| self.probability < *below);
        if let Some((_, divisor)) = range {
            step /= divisor;
        }
        if self.probability >= 0.1 && step > 0.02 {
            step = 0.02;
        }
        self.probability += step;
        if self.quiet() {
            self.probability *= 0.98;
        }
        self.probability = self.probability.clamp(0.0, 1.0);
        self.old_delay = self.delay;
        self.burst = self.burst.saturating_sub(self.set.tupdate);
    }

    /// True if a packet that arrives behind `waiting` bytes is selected at random.
    fn picks(&mut self, waiting: u64) -> bool {
        let half = self.set.target.scale(1, 2);
        if (self.old_delay < half && self.probability < 0.2) || waiting <= 2 * self.set.mean_packet.get()
        {
            return false;
        }
        if self.set.derandomize {
            if self.probability == 0.0 {
                self.accumulated = 0.0;
            }
            self.accumulated += self.probability;
            if self.accumulated < 0.85 {
                return false;
            }
            if self.accumulated >= 8.5 {
                return true;
            }
        }
        self.stream.chance(self.probability)
    }
}

impl AqmLaw for Pie {
    fn arriving(&mut self, now: Time, packet: &ArrivingPacket) -> AqmVerdict {
        self.catch_up(now);
        if !packet.room {
            self.accumulated = 0.0;
            return AqmVerdict::Pass;
        }
        if self.probability == 0.0 && self.quiet() {
            self.burst = self.set.burst;
        }
        if !self.burst.is_zero() || !self.picks(packet.backlog.bytes) {
            return AqmVerdict::Pass;
        }
        self.accumulated = 0.0;
        if self.set.ecn && packet.ect && self.probability <= self.set.mark_ecnth {
            AqmVerdict::Mark
        } else {
            AqmVerdict::Drop(PIE_EARLY)
        }
    }

    fn leaving(&mut self, now: Time, packet: &Departure) -> AqmVerdict {
        self.catch_up(now);
        self.delay = if packet.left.packets == 0 {
            Span::ZERO
        } else {
            packet.sojourn
        };
        AqmVerdict::Pass
    }

    fn change(&mut self, now: Time, params: &Params) -> Result<(), ParamError> {
        self.catch_up(now);
        self.set = PieParams::read(params);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Map;

    fn pie() -> Pie {
        let params = Params::from_json(ENTRY.params, &Map::new()).unwrap();
        Pie::new(PieParams::read(&params), Stream::new(1, "pie"))
    }

    fn close(got: f64, expected: f64) {
        assert!((got - expected).abs() < 1e-12, "{got}, not {expected}");
    }

    /// One packet has waited 35 ms: 20 ms above the target and 35 ms more than before.
    #[test]
    fn the_first_updates_are_those_worked_out_by_hand() {
        let mut pie = pie();
        pie.delay = Span::from_ms(35);
        let step = 0.125 * 0.020 + 1.25 * 0.035;
        close(step, 0.046_25);
        // Probability 0: a 2048th of the step.
        pie.catch_up(Time::from_ns(15_000_000));
        close(pie.probability, 0.046_25 / 2048.0);
        // 2.26e-5 is below 1e-4: a 128th; the delay has not changed since.
        pie.catch_up(Time::from_ns(30_000_000));
        close(pie.probability, 0.046_25 / 2048.0 + 0.0025 / 128.0);
        assert_eq!(pie.burst, Span::from_ms(120));
    }

    #[test]
    fn large_steps_are_capped_and_quiet_times_decay() {
        let mut pie = pie();
        pie.probability = 0.3;
        pie.delay = Span::from_ms(215);
        // 0.125 x 0.2 + 1.25 x 0.215 = 0.29: at most 0.02.
        pie.update();
        close(pie.probability, 0.32);
        pie.delay = Span::ZERO;
        pie.old_delay = Span::ZERO;
        pie.update();
        close(pie.probability, (0.32 - 0.125 * 0.015) * 0.98);
    }

    #[test]
    fn ranges_divide_as_in_the_rfc() {
        for (probability, divisor) in [
            (0.000_000_5, 2048.0),
            (0.000_005, 512.0),
            (0.000_05, 128.0),
            (0.000_5, 32.0),
            (0.005, 8.0),
            (0.05, 2.0),
            (0.5, 1.0),
        ] {
            let mut pie = pie();
            pie.probability = probability;
            pie.delay = Span::from_ms(25);
            pie.old_delay = Span::from_ms(25);
            pie.update();
            close(pie.probability, probability + 0.125 * 0.010 / divisor);
        }
    }
}
