//! The sending end of a bulk flow.

mod ack;
mod cumulative;
mod epochs;
mod seen;
#[cfg(test)]
mod tests;
mod timer;
mod transmit;

pub use seen::{SenderCounters, Snapshot};

use crate::loss::LossDetector;
use crate::pacing::Pacer;
use crate::prr::Reduction;
use crate::rate::RateEstimator;
use crate::sent::SentPackets;
use crate::{Body, Config, Endpoint, Header, Outgoing, RangeSet, RttEstimator};
use narrows_cc::parts::CoarseClock;
use narrows_cc::{
    AckedPacket, Allowance, CongestionControl, EcnUse, Fields, LossCause, LostPacket, Recovery,
    Scheme, Setup,
};
use narrows_units::{Bytes, Ecn, Files, ParamError, Params, Rate, Stream, Time};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Why the window is not the scheme's to grow.
#[derive(Clone, Debug)]
enum Phase {
    /// Nothing is wrong.
    Open,
    /// Losses or marks: until all data sent before is settled. With a reduction in progress if
    /// the scheme leaves that to the transport.
    Recovery(Option<Reduction>),
    /// After a timeout: the scheme grows its window again while lost data is repeated.
    Timeout,
}

/// Whether new data is to tell if all was lost that a timeout has taken to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Question {
    /// No, or it has.
    Settled,
    /// As soon as the first gap is closed.
    Due,
    /// It goes out before what is to be repeated, until the next acknowledgement.
    Asked,
}

/// Data that must be sent again, in the order in which they are: the oldest data first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Repair {
    offset: u64,
    length: u16,
    /// Number of the lost packet: if it turns up after all, nothing needs to be repaired.
    number: u64,
}

/// The sending state machine: one stream, one congestion control.
pub struct Sender {
    config: Config,
    scheme: Box<dyn CongestionControl>,
    recovery: Recovery,
    ecn: Ecn,
    allowance: Allowance,
    /// The pacing rate in force.
    pacing: Option<Rate>,
    /// What the scheme shows; kept for its capacity.
    fields: Fields,

    sent: SentPackets,
    /// Acknowledged numbers above the lowest outstanding one.
    acked: RangeSet,
    /// Acknowledged stream bytes above `settled`.
    stream: RangeSet,
    /// Every stream byte below this is acknowledged.
    settled: u64,
    /// Every acknowledged stream byte lies below this.
    highest: u64,
    /// First stream byte that has never been sent.
    fresh: u64,
    /// The application has given bytes up to here.
    supply: u64,
    stopped: bool,
    in_flight: u64,
    repairs: BinaryHeap<Reverse<Repair>>,

    rtt: RttEstimator,
    rate: RateEstimator,
    pacer: Pacer,
    loss: LossDetector,

    phase: Phase,
    /// The phase ends when `settled` reaches this.
    phase_end: u64,
    /// Losses of the current epoch that are still believed in, and its number and cause.
    epoch: u32,
    epoch_losses: u64,
    epoch_cause: LossCause,
    /// The epoch was opened by marks.
    epoch_by_mark: bool,
    /// A timeout has come into an epoch that losses or marks had opened, or into one of its own that nothing has
    /// moved on from: the scheme has reduced its window for it already.
    epoch_goes_on: bool,
    /// Where the first gap was at the last timeout.
    timeout_gap: u64,
    /// The scheme has been told that the losses of the epoch were none.
    epoch_undone: bool,
    spurious_round: u64,
    /// The first packet of the epoch that repeated data.
    first_repair: Option<u64>,

    round: u64,
    round_end: u64,
    limited: bool,
    limited_before: bool,

    /// When the retransmission timer or the probe runs out, and the reordering timer.
    timer: Time,
    timer_is_probe: bool,
    reordering_timer: Time,
    backoffs: u32,
    /// A probe was sent and no RTT sample has come since.
    probed: bool,
    send_probe: bool,
    last_activity: Time,

    /// Without a clock for each packet: below this number enough packets have overtaken those that were missing.
    judged: u64,
    /// Without selective acknowledgements: the bytes that are taken out of flight for duplicates although nobody said
    /// which they were, and whether new data is to tell if a timeout was right.
    assumed: u64,
    asks: Question,

    marked_seen: u64,
    /// Marks of which no acknowledgement event has told yet.
    marks_untold: u64,
    last_rate: Option<Rate>,
    /// The packets of the acknowledgement at hand; kept for its capacity.
    newly: Vec<AckedPacket>,
    /// The packets just declared lost; kept for its capacity.
    losses: Vec<LostPacket>,
    counters: SenderCounters,
}

impl Sender {
    /// A sender with unlimited data.
    ///
    /// # Errors
    /// Scheme parameters that contradict each other.
    pub fn new(
        config: Config,
        scheme: &Scheme,
        params: &Params,
        now: Time,
        random: Stream,
        files: &Files,
    ) -> Result<Self, ParamError> {
        let mss = Bytes::new(u64::from(config.mss));
        let setup = Setup {
            mss,
            initial_window: config.initial_window,
            now,
            random,
            ecn: config.ecn && scheme.ecn != EcnUse::None,
            files: files.clone(),
        };
        let mut built = (scheme.build)(params, setup)?;
        if !config.clock.is_zero() {
            built = Box::new(CoarseClock::new(built, config.clock));
        }
        let allowance = built.allowance();
        let ecn = match (config.ecn, scheme.ecn) {
            (false, _) | (true, EcnUse::None) => Ecn::NotEct,
            (true, EcnUse::Classic) => Ecn::Ect0,
            (true, EcnUse::Scalable) => Ecn::Ect1,
        };
        Ok(Sender {
            scheme: built,
            recovery: scheme.recovery,
            ecn,
            pacing: allowance.pacing,
            allowance,
            fields: Fields::default(),
            sent: SentPackets::default(),
            acked: RangeSet::default(),
            stream: RangeSet::default(),
            settled: 0,
            highest: 0,
            fresh: 0,
            supply: u64::MAX,
            stopped: false,
            in_flight: 0,
            repairs: BinaryHeap::new(),
            rtt: RttEstimator::new(config.rto_rule, config.min_rto, Config::MAX_RTO),
            rate: RateEstimator::default(),
            pacer: Pacer::new(config.pacing_burst, mss * 2),
            loss: LossDetector::new(config.packet_threshold, config.max_packet_threshold),
            phase: Phase::Open,
            phase_end: 0,
            epoch: 0,
            epoch_losses: 0,
            epoch_cause: LossCause::Reordering,
            epoch_by_mark: false,
            epoch_goes_on: false,
            timeout_gap: 0,
            epoch_undone: false,
            spurious_round: u64::MAX,
            first_repair: None,
            round: 0,
            round_end: 0,
            limited: false,
            limited_before: false,
            timer: Time::FAR,
            timer_is_probe: false,
            reordering_timer: Time::FAR,
            backoffs: 0,
            probed: false,
            send_probe: false,
            last_activity: now,
            judged: 0,
            assumed: 0,
            asks: Question::Settled,
            marked_seen: 0,
            marks_untold: 0,
            last_rate: None,
            newly: Vec::with_capacity(64),
            losses: Vec::with_capacity(64),
            counters: SenderCounters::default(),
            config,
        })
    }

    /// Sets how many bytes the application has given in all; unlimited unless called.
    pub fn set_supply(&mut self, bytes: u64) {
        self.supply = bytes;
    }

    /// How many bytes the application has given in all.
    pub fn supply(&self) -> u64 {
        self.supply
    }

    /// How many of them have been sent at least once.
    pub fn taken(&self) -> u64 {
        self.fresh
    }

    /// The flow is stopped: nothing is sent any more, not even repairs.
    pub fn stop(&mut self) {
        self.stopped = true;
    }

    /// Whether every byte that the application has given is acknowledged.
    pub fn is_complete(&self) -> bool {
        self.settled >= self.supply
    }

    /// Whether the next packet waits for its time and for nothing else: window and application would let it go, and
    /// acknowledgements can put it off, but not make it earlier.
    pub fn is_held(&self) -> bool {
        self.pacer.is_held()
    }

    /// What has been counted so far.
    pub fn counters(&self) -> &SenderCounters {
        &self.counters
    }

    /// Payload bytes in flight.
    pub fn in_flight(&self) -> Bytes {
        Bytes::new(self.in_flight)
    }

    /// The window in force in bytes: at least one packet, or a flow with nothing in flight and
    /// hence no timer would stand still for ever.
    #[inline]
    fn window(&self) -> u64 {
        let window = match &self.phase {
            Phase::Recovery(Some(reduction)) => reduction.cwnd(),
            _ => self.allowance.cwnd.map_or(u64::MAX, Bytes::get),
        };
        window.max(u64::from(self.config.mss))
    }

    /// Where the peer's window and the send buffer end in the stream.
    #[inline]
    fn end_of_window(&self) -> u64 {
        self.settled.saturating_add(self.config.window)
    }

    /// Asks the scheme what it allows, after each event that may have changed its mind, and works
    /// out the pacing rate from it.
    #[inline]
    fn read_allowance(&mut self) {
        self.allowance = self.scheme.allowance();
        if self.allowance.at_once
            && let Some(rate) = self.allowance.pacing
            && self.pacing.is_some_and(|before| before != rate)
        {
            self.pacer.hasten(rate);
        }
        self.pacing = self.allowance.pacing;
        if self.pacing.is_none() && self.config.pace_by_window {
            self.pacing = self.window_rate();
        }
    }

    /// Further losses or marks within an epoch have made the scheme reduce its window again.
    pub(super) fn lower_reduction(&mut self) {
        if let (Phase::Recovery(Some(reduction)), Some(cwnd)) =
            (&mut self.phase, self.allowance.cwnd)
        {
            reduction.lower(cwnd.get());
        }
    }

    /// A rate from window and RTT: 200 % in slow start, 120 % otherwise, as in Linux.
    fn window_rate(&mut self) -> Option<Rate> {
        let window = self.allowance.cwnd?.get();
        self.fields.ssthresh = None;
        self.fields.values.clear();
        self.scheme.trace(&mut self.fields);
        let threshold = self.fields.ssthresh;
        let slow_start = threshold.is_none_or(|ssthresh| window < ssthresh.get() / 2);
        let percent = if slow_start { 200 } else { 120 };
        let srtt = self.rtt.smoothed();
        (!srtt.is_zero()).then(|| Rate::of(Bytes::new(window * percent / 100), srtt))
    }

    /// Whether the scheme's events count as within a recovery.
    #[inline]
    fn in_recovery(&self) -> bool {
        matches!(self.phase, Phase::Recovery(_))
    }
}

impl Endpoint for Sender {
    #[inline]
    fn receive(&mut self, now: Time, _: Ecn, header: &Header, body: &Body) {
        if let Header::Ack(ack) = header {
            self.on_ack(now, ack, body);
        }
    }

    #[inline]
    fn transmit(&mut self, now: Time, _: &mut Body) -> Option<Outgoing> {
        if self.stopped {
            return None;
        }
        self.run_timers(now);
        if self.send_probe {
            return self.transmit_probe(now);
        }
        self.transmit_data(now)
    }

    #[inline]
    fn next_wakeup(&self) -> Time {
        if self.stopped {
            return Time::FAR;
        }
        let mut wakeup = self.timer.min(self.reordering_timer);
        if let Some(timer) = self.scheme.next_timer() {
            wakeup = wakeup.min(timer);
        }
        // Waiting for the pacer only if the window would let a packet go.
        if self.pacing.is_some() {
            let repair = self.repairs.peek().filter(|_| !self.asks_now());
            let length = repair.map_or(self.next_fresh(), |Reverse(repair)| {
                u64::from(repair.length)
            });
            let repair = repair.is_some();
            let room = repair || self.fresh + length <= self.end_of_window();
            if length > 0 && room && self.has_room(length, repair) {
                wakeup = wakeup.min(self.pacer.due());
            }
        }
        wakeup
    }
}
