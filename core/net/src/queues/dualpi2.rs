//! DualPI2: a low-latency queue for scalable traffic and a classic queue, with coupled signals.
//!
//! Source: RFC 9332, appendix A: classification by the ECN field, base probability p' from a PI controller, classic
//! signals with p'^2, low-latency ones with max(native, k p') (A.1), and the overload variant (A.2): the controller
//! follows the longer of both waiting times; from p_Cmax on the classic queue drops packets that it could mark; once k
//! p' reaches 1 the low-latency queue drops with p'^2 as well.
//!
//! Choices: the scheduler, which the RFC leaves open, is a weighted round robin by bytes that serves the low-latency
//! queue unless the classic one is owed its `classic_share`. The native AQM is a step at `step`, or with `ramp` the
//! linear ramp of A.1 around it (`ramp: 400 us`); it does not mark while no other packet waits behind the one that
//! leaves (Th_len of A.1). `signals: regular` picks packets by the recurrence of A.1 (`recur`), `random` at random: p'
//! must exceed two random numbers for classic signals, one for others. The timer needs no wake-ups: between two packets
//! only the waiting times grow, and an update uses their values at its scheduled time, so that overdue updates are
//! carried out first.

use crate::aqm::{Stamped, can_be_marked, mark};
use crate::fifo::{QueueLimit, OPTIONAL_LIMIT, QUEUE_FULL};
use crate::{Backlog, Ecn, Entry, Example, Outcomes, Packet, Queue, QueueEffects, DropReason};
use narrows_units::{ParamError, ParamSpec, Params, Span, Stream, Time, choice, params};

const DUALPI2: DropReason = DropReason("dualpi2");

/// Registry entry.
pub const ENTRY: Entry = Entry {
    name: "dualpi2",
    summary: "Coupled dual queue (L4S): ECT(1) and CE in a low-latency queue, the rest in a classic one",
    source: "RFC 9332, appendix A",
    params: &ParamSpec::join::<12>(&[DualPi2Params::PARAMS, &OPTIONAL_LIMIT]),
    shorthand: &["target", "packets", "bytes"],
    example: Example::new(
        "{dualpi2: {packets: 100 packets}}",
        "Flow 1 is L4S traffic (ECT(1)): it has a separate shallow queue and is marked in proportion to the drops of flow 2.",
    )
    .picture(r#"{"load": [{"every_us": 6000, "spans_s": [[0, 3.2]], "ecn": "ECT(1)"}, {"every_us": 857, "spans_s":
               [[0.2, 1.2], [1.8, 2.8]]}]}"#),
};

/// Effects on packets.
pub const EFFECTS: QueueEffects = QueueEffects::ANY;

crate::registry::build!(dyn Queue<P>: |params, setup| {
    let set = DualPi2Settings::new(params)?;
    DualPi2 {
        low: DualPi2Queue::new(),
        classic: DualPi2Queue::new(),
        stream: setup.stream(),
        credit: 0.0,
        base: 0.0,
        old_delay: Span::ZERO,
        next_update: Time::ZERO + set.params.tupdate,
        set,
    }
});

choice! {
    /// Choice of the packets that carry a signal.
    enum Signals { Regular = "regular", Random = "random" }
}

params! {
    /// Parameters besides the limit.
    struct DualPi2Params {
        /// Waiting time to hold in the classic queue.
        target: Span(1.0..=1e10) = "15 ms", "RFC 9332, appendix A.1";
        /// Time between updates of the probability.
        tupdate: Span(1e5..=1e10) = "16 ms",
            "RFC 9332, appendix A.1: not above the target or a third of 100 ms; 16 ms as in Linux";
        /// Gain for the distance from the target, in Hz.
        alpha: Number(0.0..=1e6) = 0.16, "RFC 9332, appendix A.1: 0.1 tupdate / (100 ms)^2";
        /// Gain for the change of the waiting time, in Hz.
        beta: Number(0.0..=1e6) = 3.2, "RFC 9332, appendix A.1: about 0.3 / 100 ms; 3.2 as in Linux";
        /// k: signals to scalable traffic are k p'.
        coupling: Number(0.01..=100.0) = 2, "RFC 9332, appendix A.1";
        /// Waiting time above which the low-latency queue marks by its native AQM.
        step: Span(0.0..=1e10) = "1 ms", "RFC 9332, appendix A.1: middle of its ramp from 0.8 to 1.2 ms";
        /// Width of the ramp around the step; zero: a step.
        ramp: Span(0.0..=1e10) = 0, "the step of Linux and of DCTCP; RFC 9332, appendix A.1: 400 us";
        /// p_Cmax: from this probability on classic packets are dropped even if they could be marked; absent: 1 /
        /// coupling^2, that is 25 %.
        classic_max: Option<Ratio>, "RFC 9332, appendix A.1";
        /// Share of the bytes reserved for the classic queue while both have packets.
        classic_share: Ratio = 0.1, "RFC 9332 leaves it open; Linux sch_dualpi2: 10 %";
        /// How packets are selected: at regular intervals or at random.
        signals: Signals = "regular", "RFC 9332, appendix A.1: recur()";
    }
}

#[derive(Clone, Debug)]
struct DualPi2Settings {
    limit: QueueLimit,
    /// Where the ramp begins.
    ramp_from: Span,
    classic_max: f64,
    params: DualPi2Params,
}

impl DualPi2Settings {
    fn new(params: &Params) -> Result<Self, ParamError> {
        let limit = QueueLimit::optional(params);
        let params = DualPi2Params::read(params);
        let half = params.ramp.scale(1, 2);
        if half > params.step {
            return Err(ParamError::Conflict(
                "the ramp would begin below zero: it must be at most twice the step".into(),
            ));
        }
        let coupled = (params.coupling * params.coupling).recip().min(1.0);
        Ok(DualPi2Settings {
            limit,
            ramp_from: params.step.saturating_sub(half),
            classic_max: params.classic_max.unwrap_or(coupled),
            params,
        })
    }

    /// The native marking probability of the low-latency queue for a waiting time.
    fn native(&self, sojourn: Span) -> f64 {
        let above = sojourn.saturating_sub(self.ramp_from);
        if sojourn < self.ramp_from {
            0.0
        } else if above >= self.params.ramp {
            1.0
        } else {
            above.secs() / self.params.ramp.secs()
        }
    }
}

/// One of the two queues.
struct DualPi2Queue<P> {
    store: Stamped<P>,
    /// Accumulated likelihood that has not been signalled yet.
    sum: f64,
}

impl<P: Packet> DualPi2Queue<P> {
    fn new() -> Self {
        DualPi2Queue {
            store: Stamped::new(),
            sum: 0.0,
        }
    }

    fn is_empty(&self) -> bool {
        self.store.backlog().packets == 0
    }

    /// RFC 9332's recur(): selects one packet in 1/likelihood, evenly spaced.
    fn recur(&mut self, likelihood: f64) -> bool {
        self.sum += likelihood;
        let picks = self.sum > 1.0;
        if picks {
            self.sum -= 1.0;
        }
        picks
    }
}

struct DualPi2<P> {
    low: DualPi2Queue<P>,
    classic: DualPi2Queue<P>,
    stream: Stream,
    /// Bytes that the classic queue is owed (above zero) or has overdrawn.
    credit: f64,
    /// The base probability p'.
    base: f64,
    old_delay: Span,
    next_update: Time,
    set: DualPi2Settings,
}

impl<P: Packet> DualPi2<P> {
    fn catch_up(&mut self, now: Time) {
        while self.next_update <= now {
            self.update(self.next_update);
            self.next_update += self.set.params.tupdate;
            if self.next_update <= now && self.is_settled() {
                let step = self.set.params.tupdate;
                let missed = now.since(self.next_update).ns() / step.ns() + 1;
                self.next_update += step * missed;
                self.old_delay = self.delay(self.next_update - step);
            }
        }
    }

    /// True if no update can change p' before another packet arrives or leaves: the queues are empty and it is zero, or
    /// packets wait and it is one.
    fn is_settled(&self) -> bool {
        let empty = self.low.is_empty() && self.classic.is_empty();
        if empty {
            self.base == 0.0 && self.old_delay.is_zero()
        } else {
            self.base == 1.0 && self.old_delay >= self.set.params.target
        }
    }

    /// The longer of both waiting times.
    fn delay(&self, now: Time) -> Span {
        self.low.store.age(now).max(self.classic.store.age(now))
    }

    fn update(&mut self, now: Time) {
        let delay = self.delay(now);
        let error = delay.secs() - self.set.params.target.secs();
        let change = delay.secs() - self.old_delay.secs();
        let base = self.base + self.set.params.alpha * error + self.set.params.beta * change;
        self.base = base.clamp(0.0, 1.0);
        self.old_delay = delay;
    }

    /// True if the low-latency queue is served next.
    fn chooses_low(&self) -> bool {
        !self.low.is_empty() && (self.classic.is_empty() || self.credit <= 0.0)
    }

    /// True if a classic signal (p'^2) is due for a packet of the given side.
    fn squared(&mut self, low: bool) -> bool {
        if self.set.params.signals == Signals::Regular {
            let side = if low { &mut self.low } else { &mut self.classic };
            return side.recur(self.base * self.base);
        }
        let (one, other) = (self.stream.uniform(), self.stream.uniform());
        one.max(other) < self.base
    }

    fn linear(&mut self, probability: f64) -> bool {
        if self.set.params.signals == Signals::Regular {
            return self.low.recur(probability);
        }
        self.stream.chance(probability)
    }

    /// The next packet of the low-latency queue, or `None` if it was dropped.
    fn serve_low(&mut self, now: Time, outcomes: &mut Outcomes<P>) -> Option<P> {
        let (at, mut packet) = self.low.store.pop()?;
        if !self.classic.is_empty() {
            self.credit += self.set.params.classic_share * f64::from(packet.size());
        }
        let coupled = (self.set.params.coupling * self.base).min(1.0);
        let picked = if coupled < 1.0 {
            let native = if self.low.is_empty() {
                0.0
            } else {
                self.set.native(now.since(at))
            };
            self.linear(native.max(coupled))
        } else {
            if self.squared(true) {
                outcomes.drop(now, packet, DUALPI2);
                return None;
            }
            self.linear(coupled)
        };
        if picked {
            mark(&mut packet, outcomes);
        }
        Some(packet)
    }

    /// The next packet of the classic queue, or `None` if it was dropped.
    fn serve_classic(&mut self, now: Time, outcomes: &mut Outcomes<P>) -> Option<P> {
        let (_, mut packet) = self.classic.store.pop()?;
        if self.squared(false) {
            if !can_be_marked(&packet) || self.base * self.base >= self.set.classic_max {
                outcomes.drop(now, packet, DUALPI2);
                return None;
            }
            mark(&mut packet, outcomes);
        }
        if !self.low.is_empty() {
            self.credit -= (1.0 - self.set.params.classic_share) * f64::from(packet.size());
        }
        Some(packet)
    }
}

impl<P: Packet> Queue<P> for DualPi2<P> {
    fn enqueue(&mut self, now: Time, packet: P, outcomes: &mut Outcomes<P>) {
        self.catch_up(now);
        if !self.set.limit.admits(self.backlog(), packet.size()) {
            return outcomes.drop(now, packet, QUEUE_FULL);
        }
        let low = matches!(packet.ecn(), Ecn::Ect1 | Ecn::Ce);
        let side = if low { &mut self.low } else { &mut self.classic };
        side.store.push(now, packet);
    }

    fn dequeue(&mut self, now: Time, outcomes: &mut Outcomes<P>) -> Option<P> {
        self.catch_up(now);
        while !(self.low.is_empty() && self.classic.is_empty()) {
            if self.low.is_empty() || self.classic.is_empty() {
                // Shares refer to the time in which both compete.
                self.credit = 0.0;
            }
            let packet = if self.chooses_low() {
                self.serve_low(now, outcomes)
            } else {
                self.serve_classic(now, outcomes)
            };
            if packet.is_some() {
                return packet;
            }
        }
        None
    }

    fn backlog(&self) -> Backlog {
        self.low.store.backlog() + self.classic.store.backlog()
    }

    fn visit(&self, visit: &mut dyn FnMut(&P)) {
        self.low.store.visit(visit);
        self.classic.store.visit(visit);
    }

    fn change(
        &mut self,
        now: Time,
        params: &Params,
        _: &mut Outcomes<P>,
    ) -> Result<(), ParamError> {
        let set = DualPi2Settings::new(params)?;
        self.catch_up(now);
        self.set = set;
        Ok(())
    }
}
