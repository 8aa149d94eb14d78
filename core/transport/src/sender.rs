//! The sending end of a bulk flow.

mod ack;
mod cumulative;
#[cfg(test)]
mod tests;
mod timer;

use crate::loss::LossDetector;
use crate::pacing::Pacer;
use crate::prr::Reduction;
use crate::rate::RateEstimator;
use crate::sent::{Sent, SentPackets, State};
use crate::{Body, Config, Data, Endpoint, Header, Outgoing, RangeSet, RttEstimator, wire};
use narrows_cc::parts::CoarseClock;
use narrows_cc::{
    AckedPacket, Allowance, CongestionControl, EcnUse, Fields, LossCause, LostPacket, Recovery,
    Scheme, SendEvent, Setup,
};
use narrows_units::{Bytes, Ecn, Files, ParamError, Params, Rate, Span, Stream, Time};
use std::collections::VecDeque;

/// What a sender has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SenderCounters {
    /// Data packets sent, and their IP sizes.
    pub sent_packets: u64,
    /// See `sent_packets`.
    pub sent_bytes: u64,
    /// Packets that repeated data, and their IP sizes.
    pub retransmitted_packets: u64,
    /// See `retransmitted_packets`.
    pub retransmitted_bytes: u64,
    /// Packets acknowledged.
    pub acked_packets: u64,
    /// Packets declared lost (some of them wrongly, see below).
    pub lost_packets: u64,
    /// Packets declared lost that arrived after all.
    pub spurious_losses: u64,
    /// Expiries of the retransmission timer.
    pub timeouts: u64,
    /// Tail-loss probes sent.
    pub tail_probes: u64,
    /// Recovery epochs begun (losses, marks and timeouts).
    pub recoveries: u64,
}

/// What a sender shows for plots and audits.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// Window in force (that of the reduction while one is running).
    pub cwnd: Option<Bytes>,
    /// Pacing rate in force.
    pub pacing: Option<Rate>,
    /// Last RTT sample; `None` before any.
    pub latest_rtt: Option<Span>,
    /// Smoothed RTT.
    pub smoothed_rtt: Option<Span>,
    /// Smallest RTT.
    pub min_rtt: Option<Span>,
    /// Payload bytes in flight.
    pub in_flight: Bytes,
    /// Payload bytes delivered.
    pub delivered: Bytes,
    /// Last valid delivery-rate sample.
    pub delivery_rate: Option<Rate>,
    /// IP bytes of packets that repeated data.
    pub retransmitted: Bytes,
    /// Packets declared lost.
    pub lost_packets: u64,
    /// What the scheme shows.
    pub scheme: Fields,
}

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

/// Data that must be sent again.
#[derive(Clone, Copy, Debug)]
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
    /// First stream byte that has never been sent.
    fresh: u64,
    /// The application has given bytes up to here.
    supply: u64,
    stopped: bool,
    in_flight: u64,
    repairs: VecDeque<Repair>,

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
    /// The scheme has been told that the losses of the epoch were none.
    epoch_undone: bool,
    spurious_round: u64,

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
    /// Without selective acknowledgements: duplicates since the last advance, and the bytes that are
    /// taken out of flight for them although nobody said which they were.
    duplicates: u64,
    assumed: u64,
    /// Bytes that duplicates have told of as delivered and that lie beyond the gap still, also after `assumed` was
    /// forgotten: they must not be told of again.
    told: u64,

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
            fresh: 0,
            supply: u64::MAX,
            stopped: false,
            in_flight: 0,
            repairs: VecDeque::new(),
            rtt: RttEstimator::new(config.rto_rule, config.min_rto, Config::MAX_RTO),
            rate: RateEstimator::default(),
            pacer: Pacer::new(config.pacing_burst, mss * 2),
            loss: LossDetector::new(config.packet_threshold),
            phase: Phase::Open,
            phase_end: 0,
            epoch: 0,
            epoch_losses: 0,
            epoch_cause: LossCause::Reordering,
            epoch_by_mark: false,
            epoch_undone: false,
            spurious_round: u64::MAX,
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
            duplicates: 0,
            assumed: 0,
            told: 0,
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

    /// The state for plots and audits.
    pub fn snapshot(&self) -> Snapshot {
        let mut scheme = Fields::default();
        self.scheme.trace(&mut scheme);
        // A scheme that is its own master during recoveries goes on doing what it says.
        match (&self.phase, self.recovery) {
            (Phase::Open, _) | (_, Recovery::Direct | Recovery::Restart) => {}
            (Phase::Recovery(_), Recovery::Proportional) => scheme.mode = "recovery",
            (Phase::Timeout, Recovery::Proportional) => scheme.mode = "loss",
        }
        let known = self.rtt.is_known();
        Snapshot {
            cwnd: self.allowance.cwnd.map(|_| Bytes::new(self.window())),
            pacing: self.pacing,
            latest_rtt: known.then(|| self.rtt.latest()),
            smoothed_rtt: known.then(|| self.rtt.smoothed()),
            min_rtt: known.then(|| self.rtt.min()),
            in_flight: self.in_flight(),
            delivered: Bytes::new(self.rate.delivered),
            delivery_rate: self.last_rate,
            retransmitted: Bytes::new(self.counters.retransmitted_bytes),
            lost_packets: self.counters.lost_packets,
            scheme,
        }
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

    /// Drops repairs whose packets turned up after all; whether one is left.
    #[inline]
    fn has_repair(&mut self) -> bool {
        while let Some(repair) = self.repairs.front() {
            let moot = repair.offset + u64::from(repair.length) <= self.settled
                || self
                    .sent
                    .get(repair.number)
                    .is_some_and(|sent| sent.state != State::Lost);
            if !moot {
                return true;
            }
            self.repairs.pop_front();
        }
        false
    }

    /// Bytes of the next new packet.
    #[inline]
    fn next_fresh(&self) -> u64 {
        u64::from(self.config.mss).min(self.supply - self.fresh)
    }

    /// What the receiver is told about the time between acknowledgements.
    #[inline]
    fn ack_interval(&self) -> Option<Span> {
        if self.config.acks_per_rtt == 0 || !self.config.sack {
            return None;
        }
        if !self.rtt.is_known() {
            return Some(Span::ZERO);
        }
        let us = self.rtt.min().ns() / (1000 * self.config.acks_per_rtt);
        Some(Span::from_us(us.min(u64::from(u32::MAX))))
    }

    /// Sends one packet with data from `offset`.
    #[inline]
    fn send(&mut self, now: Time, offset: u64, length: u16, retransmission: bool) -> Outgoing {
        let idle = (self.in_flight == 0).then(|| now.since(self.last_activity));
        self.rate.on_send(now, idle.is_some());
        let number = self.sent.next_number();
        let data = Data {
            number,
            offset,
            floor: self.sent.base(),
            length,
            retransmission,
            ack_interval: self.ack_interval(),
        };
        let bytes = u64::from(length);
        self.sent.push(Sent {
            offset,
            at: now,
            delivered: self.rate.delivered,
            delivered_at: self.rate.delivered_at,
            first_sent_at: self.rate.first_sent_at,
            length,
            state: State::Outstanding,
            retransmission,
            app_limited: self.rate.is_app_limited(),
            lost_in: 0,
            in_flight: self.in_flight + bytes,
            lost_before: self.rate.lost,
        });
        self.in_flight += bytes;
        self.last_activity = now;
        if let Phase::Recovery(Some(reduction)) = &mut self.phase {
            reduction.on_sent(bytes);
        }
        let size = wire::IP_UDP + wire::data_header(&data) + u32::from(length);
        self.counters.sent_packets += 1;
        self.counters.sent_bytes += u64::from(size);
        if retransmission {
            self.counters.retransmitted_packets += 1;
            self.counters.retransmitted_bytes += u64::from(size);
        }
        let mut event = SendEvent::new(now, number, Bytes::new(bytes));
        event.in_flight = Bytes::new(self.in_flight);
        event.idle = idle;
        event.retransmission = retransmission;
        event.app_limited = self.rate.is_app_limited();
        self.scheme.on_send(&event);
        if idle.is_some() || self.scheme.allowance() != self.allowance {
            // After a pause a scheme may want another rate, also for this packet; and some change their minds
            // with the last packet of an interval.
            self.read_allowance();
        }
        if let Some(rate) = self.pacing {
            self.pacer
                .sent(now, Bytes::new(bytes), rate, self.allowance.quantum);
        }
        if self.timer == Time::FAR || !(retransmission || self.awaits_repair()) {
            self.arm_timer(now);
        }
        Outgoing {
            header: Header::Data(data),
            size,
            ecn: self.ecn,
        }
    }

    /// Bytes of the next packet that window and application allow, and whether it is a repair.
    #[inline]
    fn next_packet(&mut self) -> Option<(u64, bool)> {
        let repair = !self.repairs.is_empty() && self.has_repair();
        let length = if repair {
            u64::from(self.repairs[0].length)
        } else {
            self.next_fresh()
        };
        if length == 0 {
            if self.in_flight < self.window() {
                self.rate.set_app_limited(self.in_flight);
            }
            return None;
        }
        if self.in_flight + length > self.window() {
            self.limited = true;
            return None;
        }
        let fits = repair || self.fresh + length <= self.end_of_window();
        fits.then_some((length, repair))
    }

    /// The next packet that window and pacing allow.
    #[inline]
    fn transmit_data(&mut self, now: Time) -> Option<Outgoing> {
        let Some((length, repair)) = self.next_packet() else {
            self.pacer.hold(false);
            return None;
        };
        if self.pacing.is_some() && self.pacer.due() > now {
            self.pacer.hold(true);
            return None;
        }
        if repair {
            let repair = self.repairs.pop_front()?;
            return Some(self.send(now, repair.offset, repair.length, true));
        }
        let offset = self.fresh;
        self.fresh += length;
        Some(self.send(now, offset, length as u16, false))
    }

    /// One packet beyond the window that asks whether the tail of the flight was lost: new data if
    /// there is some, else the newest outstanding data again (RFC 8985, section 7.3), if data is ever repeated.
    fn transmit_probe(&mut self, now: Time) -> Option<Outgoing> {
        self.send_probe = false;
        self.probed = true;
        self.counters.tail_probes += 1;
        let length = self.next_fresh();
        if length > 0 && self.fresh + length <= self.end_of_window() {
            let offset = self.fresh;
            self.fresh += length;
            return Some(self.send(now, offset, length as u16, false));
        }
        if !self.config.reliable {
            return None;
        }
        let newest = self.sent.next_number().checked_sub(1)?;
        let (offset, length) = {
            let packet = self.sent.get(newest)?;
            (packet.offset, packet.length)
        };
        Some(self.send(now, offset, length, true))
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
            let length = self
                .repairs
                .front()
                .map_or(self.next_fresh(), |r| u64::from(r.length));
            let room = !self.repairs.is_empty() || self.fresh + length <= self.end_of_window();
            if length > 0 && room && self.in_flight + length <= self.window() {
                wakeup = wakeup.min(self.pacer.due());
            }
        }
        wakeup
    }
}
