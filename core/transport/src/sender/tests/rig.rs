//! A sender and a receiver over a small scripted network, with a scheme that logs its events.

use super::*;
use narrows_cc::{AckEvent, EcnEvent, LossEvent, SpuriousLossEvent};
use narrows_units::{Files, ParamSpec};
use std::sync::{Arc, Mutex};

pub(super) const OWD: Span = Span::from_ms(20);
pub(super) const MSS: u64 = 1448;

pub(super) fn without_sack() -> Config {
    Config {
        sack: false,
        ..Config::default()
    }
}

/// Events of a scheme.
#[derive(Clone, Debug, Default)]
pub(super) struct Heard {
    pub(super) acks: u64,
    pub(super) acked_bytes: u64,
    /// Bytes reported by duplicates.
    pub(super) told: u64,
    pub(super) epochs: Vec<LossCause>,
    pub(super) losses: u64,
    pub(super) marks: u64,
    pub(super) spurious: u64,
    pub(super) exits: u64,
    pub(super) limited: u64,
    /// Acknowledgements that must not grow the window.
    pub(super) still: u64,
    pub(super) pacing: Option<Rate>,
    /// True if a new pacing rate applies from the last packet on.
    pub(super) at_once: bool,
    /// True if the transmission time of a packet held back by a full window begins when there is room.
    pub(super) anew: bool,
    pub(super) rates: Vec<(u64, bool)>,
    /// The transit time of each packet by both clocks, if the peer reported it.
    pub(super) delays: Vec<Option<Span>>,
    /// Bytes reported as marked.
    pub(super) ce_bytes: u64,
}

static HEARD: Mutex<Option<Arc<Mutex<Heard>>>> = Mutex::new(None);

/// A scheme with a fixed window that logs its events.
struct Fixed {
    window: u64,
    heard: Arc<Mutex<Heard>>,
}

impl CongestionControl for Fixed {
    fn on_ack(&mut self, ack: &AckEvent<'_>) {
        let mut heard = self.heard.lock().unwrap();
        heard.acks += 1;
        heard.acked_bytes += ack.bytes.get();
        heard.limited += u64::from(ack.cwnd_limited);
        heard.still += u64::from(!ack.may_grow);
        heard.ce_bytes += ack.ce_bytes.get();
        let delays = ack.packets.iter();
        let delays = delays.map(|packet| packet.arrived.map(|at| at.since(packet.sent)));
        heard.delays.extend(delays);
        assert_eq!(
            ack.packets.iter().map(|p| u64::from(p.bytes)).sum::<u64>(),
            ack.bytes.get()
        );
        assert!(
            ack.packets
                .windows(2)
                .all(|pair| pair[0].number < pair[1].number)
        );
        if let Some(sample) = ack.rate {
            // The data delivered meanwhile is the rate times the interval, to within a bit/s.
            assert_eq!(ack.delivered, sample.prior_delivered + sample.delivered);
            let (seconds, bits) = (sample.interval.secs(), sample.delivered.get() as f64 * 8.0);
            let off = (sample.rate.bps() as f64 * seconds - bits).abs();
            assert!(off <= seconds.max(1e-6), "{sample:?}");
            heard.rates.push((sample.rate.bps(), sample.app_limited));
        }
    }
    fn on_duplicate(&mut self, ack: &AckEvent<'_>) {
        assert!(ack.packets.is_empty() && ack.rate.is_none() && !ack.may_grow);
        self.heard.lock().unwrap().told += ack.bytes.get();
    }
    fn on_loss(&mut self, loss: &LossEvent<'_>) {
        let mut heard = self.heard.lock().unwrap();
        heard.losses += loss.packets;
        if loss.new_epoch {
            heard.epochs.push(loss.cause);
        }
    }
    fn on_ecn(&mut self, ecn: &EcnEvent) {
        self.heard.lock().unwrap().marks += ecn.packets;
    }
    fn on_spurious_loss(&mut self, _: &SpuriousLossEvent) {
        self.heard.lock().unwrap().spurious += 1;
    }
    fn on_recovery_exit(&mut self, _: Time) {
        self.heard.lock().unwrap().exits += 1;
    }
    fn allowance(&self) -> Allowance {
        let heard = self.heard.lock().unwrap();
        Allowance {
            cwnd: Some(Bytes::new(self.window * MSS)),
            pacing: heard.pacing,
            reschedule_pacing: heard.at_once,
            restart_pacing_when_open: heard.anew,
            ..Allowance::default()
        }
    }
}

const FIXED: Scheme = Scheme {
    name: "fixed",
    summary: "",
    source: "",
    recovery: Recovery::Direct,
    ecn: EcnUse::Classic,
    loss_based: false,
    transport: &[],
    profiles: &[],
    params: &[ParamSpec::new("window", narrows_units::Kind::Packets, "")],
    build: |params, _| {
        let heard = HEARD.lock().unwrap().clone().unwrap();
        Ok(Box::new(Fixed {
            window: params.integer("window").unwrap(),
            heard,
        }))
    },
};

/// Fate of the n-th data packet (0, 1, 2...) on its way.
pub(super) type Fault = dyn Fn(u64) -> Option<Span>;

pub(super) struct Rig {
    pub(super) sender: Sender,
    pub(super) receiver: Receiver,
    pub(super) now: Time,
    pub(super) heard: Arc<Mutex<Heard>>,
    /// In the air: arrival time, order, message.
    pub(super) data: Vec<(Time, u64, Header, Ecn)>,
    pub(super) acks: Vec<(Time, u64, Header, Body)>,
    pub(super) order: u64,
    pub(super) fault: Box<Fault>,
    pub(super) ack_fault: Box<Fault>,
    pub(super) mark: Box<dyn Fn(u64) -> bool>,
    pub(super) sends: Vec<(Time, Data)>,
    pub(super) body: Body,
    /// All acknowledgements of an instant are processed together, and those that arrive at most this long before a
    /// packet that waits only for the pacer are deferred.
    pub(super) patience: Option<Span>,
    /// Number of deferred acknowledgements.
    pub(super) waited: usize,
}

impl Rig {
    pub(super) fn new(window: u64) -> Self {
        Rig::with(window, &Config::default())
    }

    pub(super) fn with(window: u64, config: &Config) -> Self {
        let heard = Arc::new(Mutex::new(Heard::default()));
        let given = [("window".to_owned(), narrows_units::Value::Integer(window))];
        let params = Params::resolve(FIXED.params, given).unwrap();
        // Tests run in parallel: hand over the log under a lock.
        static BIRTH: Mutex<()> = Mutex::new(());
        let guard = BIRTH.lock().unwrap();
        *HEARD.lock().unwrap() = Some(heard.clone());
        let sender = Sender::new(
            config.clone(),
            &FIXED,
            &params,
            Time::ZERO,
            Stream::new(1, "t"),
            &Files::default(),
        )
        .unwrap();
        drop(guard);
        Rig::around(sender, config, heard)
    }

    pub(super) fn for_scheme(scheme: &str) -> Self {
        Rig::with_config(scheme, &Config::default())
    }

    pub(super) fn with_config(scheme: &str, config: &Config) -> Self {
        let scheme = narrows_cc::schemes::find(scheme).unwrap();
        let params = Params::resolve(scheme.params, []).unwrap();
        let sender = Sender::new(
            config.clone(),
            scheme,
            &params,
            Time::ZERO,
            Stream::new(1, "t"),
            &Files::default(),
        )
        .unwrap();
        Rig::around(sender, config, Arc::default())
    }

    fn around(sender: Sender, config: &Config, heard: Arc<Mutex<Heard>>) -> Self {
        Rig {
            sender,
            receiver: Receiver::new(config),
            now: Time::ZERO,
            heard,
            data: Vec::new(),
            acks: Vec::new(),
            order: 0,
            fault: Box::new(|_| Some(Span::ZERO)),
            ack_fault: Box::new(|_| Some(Span::ZERO)),
            mark: Box::new(|_| false),
            sends: Vec::new(),
            body: Body::default(),
            patience: None,
            waited: 0,
        }
    }

    /// Data packets with these indices are lost.
    pub(super) fn losing(mut self, lost: &'static [u64]) -> Self {
        self.fault = Box::new(|index| (!lost.contains(&index)).then_some(Span::ZERO));
        self
    }

    /// Processes all acknowledgements that have arrived, each at its arrival time.
    fn hear(&mut self) {
        self.acks.sort_by_key(|ack| (ack.0, ack.1));
        let due = self.acks.partition_point(|ack| ack.0 <= self.now);
        for (at, _, header, body) in self.acks.drain(..due) {
            self.waited += usize::from(at < self.now);
            self.sender.receive(at, Ecn::NotEct, &header, &body);
        }
    }

    /// True if acknowledgements are not processed now.
    fn naps(&self) -> bool {
        let due = self.sender.next_wakeup();
        let near = |patience| self.now < due && due.since(self.now) <= patience;
        self.patience.is_some_and(near) && self.sender.is_pacing_limited()
    }

    pub(super) fn pump(&mut self) {
        if !self.naps() {
            if self.patience.is_some() {
                self.hear();
            }
            self.transmit_data();
        }
        self.transmit_acks();
    }

    fn transmit_data(&mut self) {
        while let Some(out) = self.sender.transmit(self.now, &mut self.body) {
            let Header::Data(data) = out.header else {
                panic!("a sender sends data")
            };
            let index = self.sends.len() as u64;
            self.sends.push((self.now, data));
            if let Some(late) = (self.fault)(index) {
                let ecn = if (self.mark)(index) { Ecn::Ce } else { out.ecn };
                self.order += 1;
                self.data
                    .push((self.now + OWD + late, self.order, out.header, ecn));
            }
        }
    }

    fn transmit_acks(&mut self) {
        while let Some(out) = self.receiver.transmit(self.now, &mut self.body) {
            self.order += 1;
            if let Some(late) = (self.ack_fault)(self.order) {
                self.acks.push((
                    self.now + OWD + late,
                    self.order,
                    out.header,
                    self.body.clone(),
                ));
            }
        }
    }

    /// Runs until `ms` milliseconds after the start.
    pub(super) fn run(&mut self, ms: u64) {
        let until = Time::from_ns(ms * 1_000_000);
        self.pump();
        loop {
            let next_data = self.data.iter().map(|x| (x.0, x.1)).min();
            let next_ack = self.acks.iter().map(|x| (x.0, x.1)).min();
            let next_ack = next_ack.filter(|_| !self.naps());
            let air = next_data
                .map_or(Time::FAR, |x| x.0)
                .min(next_ack.map_or(Time::FAR, |x| x.0));
            let timers = self.sender.next_wakeup().min(self.receiver.next_wakeup());
            let next = air.min(timers).max(self.now);
            if next > until {
                self.now = until;
                return;
            }
            self.now = next;
            if let Some(best) = next_data.filter(|best| best.0 <= next) {
                let at = self.data.iter().position(|x| (x.0, x.1) == best).unwrap();
                let (_, _, header, ecn) = self.data.swap_remove(at);
                self.receiver
                    .receive(self.now, ecn, &header, &Body::default());
            } else if let Some(best) = next_ack.filter(|best| best.0 <= next) {
                let at = self.acks.iter().position(|x| (x.0, x.1) == best).unwrap();
                let (_, _, header, body) = self.acks.swap_remove(at);
                self.sender.receive(self.now, Ecn::NotEct, &header, &body);
            }
            self.pump();
            self.check_books();
        }
    }

    /// Every packet sent is acknowledged, lost or in flight.
    fn check_books(&self) {
        let counters = self.sender.counters();
        let lost = counters.lost_packets;
        let settled = counters.acked_packets + lost;
        let (flying, bytes) = self.sender.sent.outstanding();
        assert_eq!(
            bytes,
            self.sender.in_flight().get() + self.sender.sacked_out
        );
        // A late packet counts as lost and then as acknowledged; a revived one as lost and in flight.
        assert!(
            counters.sent_packets <= settled + flying,
            "{counters:?} {flying}"
        );
        assert!(
            settled + flying <= counters.sent_packets + lost,
            "{counters:?} {flying}"
        );
        // The first data missing at the receiver is sent first, even if it is lost for the second time.
        let repairs = &self.sender.retransmit_queue;
        let least = repairs.iter().map(|repair| repair.0.offset).min();
        assert_eq!(repairs.peek().map(|repair| repair.0.offset), least);
    }

    pub(super) fn heard(&self) -> Heard {
        self.heard.lock().unwrap().clone()
    }

    pub(super) fn goodput(&self) -> u64 {
        self.receiver.counters().goodput_bytes
    }
}
