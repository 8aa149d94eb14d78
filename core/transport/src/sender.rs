//! The sending end of a bulk flow.

mod ack;
mod non_sack;
mod recovery;
mod stats;
#[cfg(test)]
mod tests;
mod timer;
mod transmit;

pub use stats::{SenderCounters, SenderProgress, SenderSnapshot};

use crate::config::PacingChoice;
use crate::delivery_rate::RateEstimator;
use crate::pacing::Pacer;
use crate::prr::Prr;
use crate::rack::Rack;
use crate::sent_packets::SentPackets;
use crate::{Body, Config, Endpoint, Header, Outgoing, RangeSet, RttEstimator};
use narrows_cc::parts::CoarseClock;
use narrows_cc::{
    AckedPacket, Allowance, CongestionControl, EcnUse, Fields, HeardSends, LossCause, LostPacket,
    Recovery, Scheme, Setup,
};
use narrows_units::{Bytes, Ecn, Files, ParamError, Params, Rate, Stream, Time};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// State of congestion control (Linux: tcp_ca_state).
#[derive(Clone, Debug)]
enum CongestionState {
    /// Normal operation.
    Open,
    /// Losses or marks: until all data sent before is acknowledged, with a reduction in progress if the scheme leaves
    /// that to the transport.
    Recovery(Option<Prr>),
    /// After a timeout: the scheme grows its window again while lost data is retransmitted.
    Loss,
}

/// Forward RTO-Recovery (RFC 5682, section 2.1): new data reveals whether a timeout was spurious.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FrtoState {
    /// No timeout, or F-RTO has ended.
    Inactive,
    /// Step 1: the next acknowledgement that advances SND.UNA allows new data.
    AwaitsFirstAck,
    /// Step 2: new data is sent before retransmissions, until the next acknowledgement.
    SendsNewData,
}

/// Data to retransmit, the oldest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Retransmission {
    /// Its first stream byte.
    offset: u64,
    /// Payload bytes.
    length: u16,
    /// Number of the lost packet: if it arrives after all, the retransmission is cancelled.
    number: u64,
}

/// The sending state machine: one stream, one congestion control.
pub struct Sender {
    config: Config,
    /// Payload of a full packet.
    mss: u64,
    scheme: Box<dyn CongestionControl>,
    recovery_rule: Recovery,
    ecn: Ecn,
    allowance: Allowance,
    hears_all_sends: bool,
    /// When the scheme wants to act.
    scheme_timer: Time,
    /// The pacing rate in force.
    pacing_rate: Option<Rate>,
    /// Values that the scheme traces; kept for its capacity.
    fields: Fields,

    sent: SentPackets,
    /// Acknowledged numbers above the lowest outstanding one.
    acked_numbers: RangeSet,
    /// Acknowledged stream bytes above `snd_una`.
    sacked_data: RangeSet,
    /// SND.UNA (RFC 9293): every stream byte below this is acknowledged.
    snd_una: u64,
    /// RACK.fack (RFC 8985): every acknowledged stream byte lies below this.
    fack: u64,
    /// SND.NXT (RFC 9293): first stream byte that has never been sent.
    snd_nxt: u64,
    /// End of the data that the application has written (Linux: write_seq), in stream bytes.
    write_seq: u64,
    stopped: bool,
    /// The scheme's decisions are made by the caller.
    decided_outside: bool,
    /// Payload bytes in flight.
    in_flight: u64,
    retransmit_queue: BinaryHeap<Reverse<Retransmission>>,

    rtt: RttEstimator,
    rate: RateEstimator,
    pacer: Pacer,
    rack: Rack,

    state: CongestionState,
    /// The state ends when `snd_una` reaches this: the value of `snd_nxt` when it began (Linux: high_seq).
    high_seq: u64,
    /// Number of the current recovery epoch, packets lost in it that still count as lost, and its cause.
    epoch: u32,
    epoch_losses: u64,
    epoch_cause: LossCause,
    /// The epoch was opened by marks.
    epoch_by_mark: bool,
    /// A timeout expired in an epoch opened by losses or marks, or again without progress since the last timeout: the
    /// scheme has already reduced its window for it.
    timeout_in_epoch: bool,
    /// Stream byte of `snd_una` at the last timeout.
    snd_una_at_timeout: u64,
    /// The scheme has been notified that the losses of the epoch were spurious.
    epoch_undone: bool,
    /// Round trip in which a spurious loss last widened the reordering window.
    spurious_round: u64,
    /// Number of the first retransmission of the epoch.
    first_retransmission: Option<u64>,

    /// Round trips so far, and the value of `delivered` (bytes) at which the current one ends.
    round: u64,
    round_end: u64,
    /// The window held a packet back in this round trip, and in the last one (Linux: is_cwnd_limited).
    cwnd_limited: bool,
    cwnd_limited_last_round: bool,

    /// Expiry of the retransmission or probe timer, and of the reordering timer.
    retransmit_timer: Time,
    timer_is_tlp: bool,
    reordering_timer: Time,
    /// Timeouts in a row without an acknowledgement; each doubles the next (Linux: icsk_backoff).
    rto_backoff: u32,
    /// A probe was sent and no RTT sample was taken since.
    tlp_unanswered: bool,
    tlp_due: bool,
    last_activity: Time,

    /// Without RACK: packets below this number have been examined for losses (Linux: lost_skb_hint).
    lost_hint: u64,
    /// Without SACK: bytes taken out of flight for duplicate acknowledgements (Linux: sacked_out).
    sacked_out: u64,
    frto: FrtoState,

    /// Packets with CE marks counted by the receiver.
    ce_packets_seen: u64,
    /// Marked packets that no acknowledgement event has reported yet.
    ce_packets_unreported: u64,
    last_delivery_rate: Option<Rate>,
    /// The packets of the current acknowledgement; kept for its capacity.
    newly_acked: Vec<AckedPacket>,
    /// The packets just declared lost; kept for its capacity.
    newly_lost: Vec<LostPacket>,
    counters: SenderCounters,
}

impl Sender {
    /// A sender with unlimited data.
    ///
    /// # Errors
    /// Contradictory scheme parameters.
    pub fn new(
        config: Config,
        scheme: &Scheme,
        params: &Params,
        now: Time,
        random: Stream,
        files: &Files,
    ) -> Result<Self, ParamError> {
        let mss = Bytes::new(config.mss());
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
            mss: mss.get(),
            hears_all_sends: built.heard_sends() == HeardSends::All,
            scheme_timer: built.next_timer().unwrap_or(Time::FAR),
            scheme: built,
            recovery_rule: scheme.recovery,
            ecn,
            pacing_rate: allowance.pacing,
            allowance,
            fields: Fields::default(),
            sent: SentPackets::default(),
            acked_numbers: RangeSet::default(),
            sacked_data: RangeSet::default(),
            snd_una: 0,
            fack: 0,
            snd_nxt: 0,
            write_seq: u64::MAX,
            stopped: false,
            decided_outside: false,
            in_flight: 0,
            retransmit_queue: BinaryHeap::new(),
            rtt: RttEstimator::new(config.rto_rule, config.min_rto, Config::MAX_RTO),
            rate: RateEstimator::default(),
            pacer: Pacer::new(config.pacing_burst, mss * 2),
            rack: Rack::new(config.packet_threshold, config.max_packet_threshold),
            state: CongestionState::Open,
            high_seq: 0,
            epoch: 0,
            epoch_losses: 0,
            epoch_cause: LossCause::Reordering,
            epoch_by_mark: false,
            timeout_in_epoch: false,
            snd_una_at_timeout: 0,
            epoch_undone: false,
            spurious_round: u64::MAX,
            first_retransmission: None,
            round: 0,
            round_end: 0,
            cwnd_limited: false,
            cwnd_limited_last_round: false,
            retransmit_timer: Time::FAR,
            timer_is_tlp: false,
            reordering_timer: Time::FAR,
            rto_backoff: 0,
            tlp_unanswered: false,
            tlp_due: false,
            last_activity: now,
            lost_hint: 0,
            sacked_out: 0,
            frto: FrtoState::Inactive,
            ce_packets_seen: 0,
            ce_packets_unreported: 0,
            last_delivery_rate: None,
            newly_acked: Vec::new(),
            newly_lost: Vec::new(),
            counters: SenderCounters::default(),
            config,
        })
    }

    /// Sets the total bytes written by the application; unlimited unless called.
    pub fn set_write_seq(&mut self, bytes: u64) {
        self.write_seq = bytes;
    }

    /// Total bytes written by the application.
    pub fn write_seq(&self) -> u64 {
        self.write_seq
    }

    /// Bytes of them that have been sent at least once.
    pub fn snd_nxt(&self) -> u64 {
        self.snd_nxt
    }

    /// Stops the flow: nothing more is sent, not even retransmissions.
    pub fn stop(&mut self) {
        self.stopped = true;
    }

    /// Leaves the decisions of the scheme to the caller; returns false if it makes none that can be left.
    pub fn decide_outside(&mut self) -> bool {
        self.decided_outside = self.scheme.decide_outside();
        self.decided_outside
    }

    /// True if the caller makes the decisions of the scheme.
    pub fn is_decided_outside(&self) -> bool {
        self.decided_outside
    }

    /// Checks that the scheme, registered as `name`, makes its decisions itself.
    ///
    /// # Errors
    /// If its caller has to.
    pub fn expect_own_decisions(&self, name: &str) -> Result<(), ParamError> {
        narrows_cc::schemes::expect_own_decisions(&*self.scheme, name)
    }

    /// The inputs of the decision for which the scheme waits, if it does. Until [`Sender::take_action`] nothing is sent.
    #[inline]
    pub fn observation(&self) -> Option<&[f32]> {
        if self.decided_outside {
            self.scheme.observation()
        } else {
            None
        }
    }

    /// Passes the caller's decision to the scheme.
    pub fn take_action(&mut self, action: &[f32]) {
        self.scheme.take_action(action);
        self.read_allowance();
    }

    /// True if every byte that the application has written is acknowledged.
    pub fn is_complete(&self) -> bool {
        self.snd_una >= self.write_seq
    }

    /// True if the next packet waits only for the pacer: window and application allow it, and acknowledgements can
    /// delay it, but not advance it.
    pub fn is_pacing_limited(&self) -> bool {
        self.pacer.is_pacing_limited()
    }

    /// Counters so far.
    pub fn counters(&self) -> &SenderCounters {
        &self.counters
    }

    /// Payload bytes in flight.
    pub fn in_flight(&self) -> Bytes {
        Bytes::new(self.in_flight)
    }

    /// The window in force in bytes: at least one packet, or a flow with nothing in flight and hence no timer would
    /// stall for ever.
    #[inline]
    fn cwnd(&self) -> u64 {
        let window = match &self.state {
            CongestionState::Recovery(Some(reduction)) => reduction.cwnd(),
            _ => self.allowance.cwnd.map_or(u64::MAX, Bytes::get),
        };
        window.max(self.mss)
    }

    /// Stream byte at which the peer's window or the send buffer ends (RFC 9293: SND.UNA + SND.WND).
    #[inline]
    fn snd_wnd_end(&self) -> u64 {
        self.snd_una.saturating_add(self.config.window)
    }

    /// Reads the scheme's limits after each event that may have changed them, and computes the pacing rate.
    #[inline]
    fn read_allowance(&mut self) {
        self.allowance = self.scheme.allowance();
        self.read_scheme_timer();
        if self.allowance.reschedule_pacing
            && let Some(rate) = self.allowance.pacing
            && self.pacing_rate.is_some_and(|before| before != rate)
        {
            self.pacer.apply_rate_now(rate);
        }
        self.pacing_rate = self.allowance.pacing;
        if self.pacing_rate.is_none() && self.config.pacing == PacingChoice::Window {
            self.pacing_rate = self.pacing_rate_from_cwnd();
        }
    }

    #[inline]
    fn read_scheme_timer(&mut self) {
        self.scheme_timer = self.scheme.next_timer().unwrap_or(Time::FAR);
    }

    /// Further losses or marks within an epoch made the scheme reduce its window again.
    pub(super) fn lower_reduction(&mut self) {
        if let (CongestionState::Recovery(Some(reduction)), Some(cwnd)) =
            (&mut self.state, self.allowance.cwnd)
        {
            reduction.lower_ssthresh(cwnd.get());
        }
    }

    /// The rate derived from window and RTT: 200 % in slow start, 120 % otherwise, as in Linux.
    fn pacing_rate_from_cwnd(&mut self) -> Option<Rate> {
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

    /// True if events are reported to the scheme as part of a recovery.
    #[inline]
    fn in_recovery(&self) -> bool {
        matches!(self.state, CongestionState::Recovery(_))
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
        if self.observation().is_some() {
            return None;
        }
        if self.tlp_due {
            return self.transmit_tail_loss_probe(now);
        }
        self.transmit_data(now)
    }

    #[inline]
    fn next_wakeup(&self) -> Time {
        if self.stopped {
            return Time::FAR;
        }
        let mut wakeup = self
            .retransmit_timer
            .min(self.reordering_timer)
            .min(self.scheme_timer);
        // Waits for the pacer only if the window allows a packet.
        if self.pacing_rate.is_some() {
            let retransmission = self
                .retransmit_queue
                .peek()
                .filter(|_| !self.frto_sends_now());
            let length = retransmission.map_or(self.next_new_data(), |Reverse(retransmission)| {
                u64::from(retransmission.length)
            });
            let retransmission = retransmission.is_some();
            let room = retransmission || self.snd_nxt + length <= self.snd_wnd_end();
            if length > 0 && room && self.cwnd_allows(length, retransmission) {
                wakeup = wakeup.min(self.pacer.next_send());
            }
        }
        wakeup
    }
}
