//! A path on which a native scheme runs while all its events are recorded, in the form that `host/kernel.c` reads.

use narrows_cc::{
    AckEvent, AckedPacket, CaState, CongestionControl, EcnEvent, LossCause, LossEvent, LostPacket,
    RateSample, SendEvent, SpuriousLossEvent,
};
use narrows_units::{Bytes, Rate, Span, Stream, Time};
use std::collections::VecDeque;
use std::fmt::Write;

/// Payload of a packet.
pub(crate) const MSS: u64 = 1000;
/// A packet is lost when one that was sent this many packets later has arrived.
const REORDERING: u64 = 3;
/// Time that a retransmission timer waits beyond the RTT.
const TIMEOUT: Span = Span::from_ms(300);

/// Treatment of packets by the path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Path {
    /// Its name in messages.
    pub(crate) name: &'static str,
    /// Time between two packets at the bottleneck, in us.
    pub(crate) spacing: u64,
    /// RTT of an empty path, in us.
    pub(crate) rtt: u64,
    /// Packets that fit into the queue.
    pub(crate) buffer: u64,
    /// Number of packets in the queue above which packets are marked.
    pub(crate) mark: u64,
    /// Share of packets lost at random.
    pub(crate) loss: f64,
    /// Packets that share an acknowledgement.
    pub(crate) thinning: usize,
    /// Maximum extra delay of a packet, in us; packets stay in order.
    pub(crate) jitter: u64,
    /// Probability per packet that the application pauses, limits itself, or a timeout happens.
    pub(crate) trouble: f64,
}

struct Packet {
    number: u64,
    sent: Time,
    /// When its acknowledgement arrives, unless it is lost.
    back: Option<Time>,
    marked: bool,
    delivered_before: u64,
    delivered_time: Time,
    in_flight: u64,
    lost_before: u64,
    app_limited: bool,
}

impl Packet {
    fn lost(&self) -> LostPacket {
        LostPacket {
            number: self.number,
            bytes: MSS as u32,
            sent: self.sent,
            in_flight_at_send: Bytes::new(self.in_flight * MSS),
            delivered_before: Bytes::new(self.delivered_before * MSS),
            lost_before: Bytes::new(self.lost_before * MSS),
            app_limited: self.app_limited,
        }
    }
}

/// Allowance of the native scheme, in the units of the programs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Expected {
    /// Packets.
    pub(crate) window: f64,
    /// Packets.
    pub(crate) threshold: Option<f64>,
    /// Bytes per second.
    pub(crate) pacing: Option<f64>,
}

/// One connection on a [`Path`].
pub(crate) struct Connection<'a> {
    path: Path,
    random: Stream,
    scheme: &'a mut dyn CongestionControl,
    /// Packets leave at the scheme's pacing rate; without, as soon as the window lets them.
    paced: bool,
    /// When the next one may leave.
    departure: Time,
    now: Time,
    link_free: Time,
    last_back: Time,
    next: u64,
    flying: VecDeque<Packet>,
    in_flight: u64,
    /// Maximum number of packets in flight allowed by the application, while it is the limit.
    own_limit: Option<(u64, u64)>,
    limited: bool,
    delivered: u64,
    delivered_time: Time,
    ce: u64,
    lost: u64,
    phase: CaState,
    epoch_end: u64,
    round: u64,
    round_end: u64,
    srtt: u64,
    min_rtt: u64,
    /// A reduction was undone and none followed. The kernel then keeps the larger of the thresholds before and after
    /// the reduction, so thresholds are not compared.
    undone: bool,
    /// The losses of the current epoch are spurious, which is not known yet.
    spurious: bool,
    /// Events as text.
    pub(crate) lines: String,
    /// Allowance of the native scheme after each line; `None` if they are not compared.
    pub(crate) expected: Vec<Option<Expected>>,
}

impl<'a> Connection<'a> {
    /// A connection that begins now.
    pub(crate) fn new(
        path: Path,
        scheme: &'a mut dyn CongestionControl,
        paced: bool,
        seed: u64,
    ) -> Self {
        let now = Time::from_ns(1_000_000_000);
        let mut connection = Connection {
            path,
            random: Stream::new(seed, path.name),
            scheme,
            paced,
            departure: now,
            now,
            link_free: now,
            last_back: now,
            next: 0,
            flying: VecDeque::new(),
            in_flight: 0,
            own_limit: None,
            limited: true,
            delivered: 0,
            delivered_time: now,
            ce: 0,
            lost: 0,
            phase: CaState::Open,
            epoch_end: 0,
            round: 0,
            round_end: 0,
            srtt: path.rtt,
            min_rtt: u64::MAX,
            undone: false,
            spurious: false,
            lines: String::new(),
            expected: Vec::new(),
        };
        connection.line(&format!("i {} 10 {MSS} 1", us(now)), true);
        connection
    }

    /// When a connection begins.
    pub(crate) fn birth() -> Time {
        Time::from_ns(1_000_000_000)
    }

    /// Plays until `packets` packets have been sent.
    pub(crate) fn play(&mut self, packets: u64) {
        while self.next < packets {
            self.send();
            self.receive();
        }
    }

    fn window(&self) -> u64 {
        let cwnd = self.scheme.allowance().cwnd.expect("a window");
        cwnd.get() / MSS
    }

    fn line(&mut self, text: &str, compare: bool) {
        self.lines.push_str(text);
        self.lines.push('\n');
        let mut fields = narrows_cc::Fields::default();
        self.scheme.trace(&mut fields);
        let allowed = self.scheme.allowance();
        let packets = |bytes: Bytes| bytes.get() as f64 / MSS as f64;
        self.undone = text.starts_with('u') || (self.undone && !text.starts_with(['l', 'e', 't']));
        let threshold = fields.ssthresh.filter(|_| !self.undone).map(packets);
        let pacing = allowed.pacing.filter(|_| self.paced);
        let expected = Expected {
            window: packets(allowed.cwnd.expect("a window")),
            threshold,
            pacing: pacing.map(|rate| rate.bps() as f64 / 8.0),
        };
        self.expected.push(compare.then_some(expected));
    }

    fn send(&mut self) {
        let window = self.window();
        if self.own_limit.is_none() && self.random.chance(self.path.trouble) {
            let rest = 1 + self.random.below(200);
            self.own_limit = Some((self.in_flight / 2, self.next + rest));
        }
        let own = match self.own_limit {
            Some((_, until)) if self.next >= until => {
                self.own_limit = None;
                u64::MAX
            }
            Some((limit, _)) => limit.max(1),
            None => u64::MAX,
        };
        let app_limited = own < window || self.scheme.holds_back();
        while self.in_flight < window.min(own).max(1) {
            if self.paced && self.departure > self.now {
                if self.next_back().is_some_and(|back| back < self.departure) {
                    break;
                }
                self.now = self.departure;
            }
            self.send_one(app_limited);
        }
        self.limited = self.in_flight >= window;
    }

    /// When the next acknowledgement arrives.
    fn next_back(&self) -> Option<Time> {
        let arrive = self.flying.iter().filter_map(|packet| packet.back);
        arrive.take(self.path.thinning).last()
    }

    fn send_one(&mut self, app_limited: bool) {
        let path = self.path;
        if self.in_flight == 0 {
            self.delivered_time = self.now;
            let text = format!("s {} {}", us(self.now), u64::from(app_limited));
            let mut send = SendEvent::new(self.now, self.next, Bytes::new(MSS));
            send.idle = Some(Span::from_us(1));
            send.app_limited = app_limited;
            self.scheme.on_send(&send);
            self.line(&text, false);
        } else {
            let mut send = SendEvent::new(self.now, self.next, Bytes::new(MSS));
            send.in_flight = Bytes::new((self.in_flight + 1) * MSS);
            send.app_limited = app_limited;
            self.scheme.on_send(&send);
        }
        if let Some(rate) = self.scheme.allowance().pacing {
            self.departure = self.departure.max(self.now) + rate.time_for(Bytes::new(MSS));
        }
        self.in_flight += 1;
        let arrival = self.now + Span::from_us(path.rtt / 2);
        let start = self.link_free.max(arrival);
        let queued = us(start).saturating_sub(us(arrival)) / path.spacing;
        let lost = queued > path.buffer || self.random.chance(path.loss);
        let back = (!lost).then(|| {
            self.link_free = start + Span::from_us(path.spacing);
            let jitter = Span::from_us(self.random.below(path.jitter + 1));
            let back = self.link_free + Span::from_us(path.rtt - path.rtt / 2) + jitter;
            self.last_back = self.last_back.max(back);
            self.last_back
        });
        self.flying.push_back(Packet {
            number: self.next,
            sent: self.now,
            back,
            marked: queued > path.mark,
            delivered_before: self.delivered,
            delivered_time: self.delivered_time,
            in_flight: self.in_flight,
            lost_before: self.lost,
            app_limited,
        });
        self.next += 1;
    }

    /// The next acknowledgement arrives, or the timer expires.
    fn receive(&mut self) {
        let expire = self.random.chance(self.path.trouble / 4.0);
        let mut taken: Vec<Packet> = Vec::new();
        let mut at = 0;
        while taken.len() < self.path.thinning && at < self.flying.len() {
            if self.flying[at].back.is_some() {
                taken.push(self.flying.remove(at).expect("in range"));
            } else {
                at += 1;
            }
        }
        if taken.is_empty() || (expire && self.phase == CaState::Open) {
            self.expire();
            return;
        }
        let newest = taken.last().expect("not empty");
        let (newest_number, back) = (newest.number, newest.back.expect("it arrives"));
        self.now = self.now.max(back);
        let before = self.in_flight;
        self.in_flight -= taken.len() as u64;
        self.delivered += taken.len() as u64;
        self.delivered_time = self.now;
        self.undo();
        let lost_before = self.lost;
        self.lose(newest_number);
        let marks = taken.iter().filter(|packet| packet.marked).count() as u64;
        self.mark(marks, before);
        self.settle();
        self.acknowledge(&taken, before, marks, lost_before);
    }

    fn expire(&mut self) {
        self.now += Span::from_us(self.srtt) + TIMEOUT;
        self.last_back = self.last_back.max(self.now);
        let in_flight = self.in_flight;
        let packets: Vec<LostPacket> = self.flying.drain(..).map(|packet| packet.lost()).collect();
        let lost = packets.len() as u64;
        self.lost += lost;
        let mut loss = LossEvent::new(self.now, LossCause::Timeout, Bytes::new(lost * MSS));
        loss.in_flight = Bytes::new(in_flight * MSS);
        loss.packets = lost;
        loss.lost = &packets;
        loss.delivered = Bytes::new(self.delivered * MSS);
        loss.lost_total = Bytes::new(self.lost * MSS);
        loss.smoothed_rtt = Span::from_us(self.srtt);
        self.scheme.on_loss(&loss);
        if self
            .scheme
            .next_timer()
            .is_some_and(|timer| timer <= self.now)
        {
            self.scheme.on_timer(self.now);
        }
        self.in_flight = 0;
        self.phase = CaState::Loss;
        self.epoch_end = self.next;
        let app_limited = packets.iter().any(|packet| packet.app_limited);
        let text = format!(
            "t {} {in_flight} {} {}",
            us(self.now),
            self.lost,
            u64::from(app_limited)
        );
        self.line(&text, false);
    }

    fn lose(&mut self, newest: u64) {
        let in_flight = self.in_flight;
        let gone = |packet: &Packet| packet.back.is_none() && packet.number + REORDERING <= newest;
        let packets: Vec<LostPacket> = (self.flying.iter())
            .filter(|packet| gone(packet))
            .map(Packet::lost)
            .collect();
        let lost = packets.len() as u64;
        if lost == 0 {
            return;
        }
        self.flying.retain(|packet| !gone(packet));
        self.in_flight -= lost;
        self.lost += lost;
        let new_epoch = self.phase == CaState::Open;
        let mut loss = LossEvent::new(self.now, LossCause::Reordering, Bytes::new(lost * MSS));
        loss.packets = lost;
        loss.lost = &packets;
        loss.delivered = Bytes::new(self.delivered * MSS);
        loss.in_flight = Bytes::new(in_flight * MSS);
        loss.new_epoch = new_epoch;
        loss.lost_total = Bytes::new(self.lost * MSS);
        loss.smoothed_rtt = Span::from_us(self.srtt);
        self.scheme.on_loss(&loss);
        if !new_epoch {
            return;
        }
        self.phase = CaState::Recovery;
        self.epoch_end = self.next;
        self.line(&format!("l {} {in_flight}", us(self.now)), false);
        self.spurious = self.random.chance(20.0 * self.path.trouble);
    }

    /// The losses that opened the epoch turn out to be spurious, an acknowledgement later.
    fn undo(&mut self) {
        if !std::mem::take(&mut self.spurious) || self.phase != CaState::Recovery {
            return;
        }
        let cause = LossCause::Reordering;
        self.scheme
            .on_spurious_loss(&SpuriousLossEvent::new(self.now, cause));
        self.phase = CaState::Open;
        self.line(&format!("u {}", us(self.now)), true);
    }

    fn mark(&mut self, marks: u64, in_flight: u64) {
        self.ce += marks;
        if marks == 0 {
            return;
        }
        let new_epoch = self.phase == CaState::Open;
        let mut ecn = EcnEvent::new(self.now, Bytes::new(in_flight * MSS));
        ecn.packets = marks;
        ecn.new_epoch = new_epoch;
        self.scheme.on_ecn(&ecn);
        if new_epoch {
            self.phase = CaState::Cwr;
            self.epoch_end = self.next;
            self.line(&format!("e {} {in_flight}", us(self.now)), false);
        }
    }

    fn unsettled(&self) -> u64 {
        self.flying
            .front()
            .map_or(self.next, |packet| packet.number)
    }

    fn settle(&mut self) {
        if self.phase != CaState::Open && self.unsettled() >= self.epoch_end {
            self.phase = CaState::Open;
            self.scheme.on_recovery_exit(self.now);
            self.line(&format!("x {}", us(self.now)), false);
        }
    }

    fn acknowledge(&mut self, taken: &[Packet], before: u64, marks: u64, lost_before: u64) {
        let newest = taken.last().expect("not empty");
        let rtt = us(self.now) - us(newest.sent);
        self.min_rtt = self.min_rtt.min(rtt);
        self.srtt = (7 * self.srtt + rtt) / 8;
        let round_start = newest.number >= self.round_end;
        if round_start {
            self.round += 1;
            self.round_end = self.next;
        }
        let interval = us(self.now) - us(newest.delivered_time);
        let rate_delivered = self.delivered - newest.delivered_before;
        let packets: Vec<AckedPacket> = taken
            .iter()
            .map(|packet| AckedPacket {
                number: packet.number,
                bytes: MSS as u32,
                // The kernel passes one RTT, that of the newest packet, to programs that set the window themselves.
                sent: if self.paced { newest.sent } else { packet.sent },
                arrived: packet.back,
            })
            .collect();
        let mut ack = AckEvent::new(self.now);
        ack.packets = &packets;
        ack.bytes = Bytes::new(taken.len() as u64 * MSS);
        ack.ce_bytes = Bytes::new(marks * MSS);
        ack.latest_rtt = Some(Span::from_us(rtt));
        ack.smoothed_rtt = Span::from_us(self.srtt);
        ack.min_rtt = Span::from_us(self.min_rtt);
        ack.rate = (interval > 0).then(|| RateSample {
            rate: Rate::of(Bytes::new(rate_delivered * MSS), Span::from_us(interval)),
            delivered: Bytes::new(rate_delivered * MSS),
            interval: Span::from_us(interval),
            app_limited: newest.app_limited,
            prior_delivered: Bytes::new(newest.delivered_before * MSS),
            in_flight_at_send: Bytes::new(newest.in_flight * MSS),
            lost: Bytes::new((lost_before - newest.lost_before) * MSS),
        });
        ack.delivered = Bytes::new(self.delivered * MSS);
        ack.lost = Bytes::new((self.lost - lost_before) * MSS);
        ack.lost_total = Bytes::new(self.lost * MSS);
        ack.round = self.round;
        ack.round_start = round_start;
        ack.in_flight_before = Bytes::new(before * MSS);
        ack.in_flight = Bytes::new(self.in_flight * MSS);
        ack.cwnd_limited = self.limited;
        ack.phase = self.phase;
        ack.in_recovery = matches!(self.phase, CaState::Cwr | CaState::Recovery);
        let mut text = format!(
            "k {} {} {rtt} {} {before} {} {}",
            us(self.now),
            taken.len(),
            u64::from(self.limited),
            self.in_flight,
            self.srtt,
        );
        let una = self.unsettled().max(newest.number + 1) * MSS;
        write!(
            text,
            " {una} {} {} {} {} {rate_delivered} {interval} {} {} {}",
            self.next * MSS,
            self.delivered,
            self.ce,
            self.lost,
            newest.delivered_before,
            u64::from(newest.app_limited),
            self.departure.ns(),
        )
        .expect("writing to a string cannot fail");
        self.scheme.on_ack(&ack);
        let compare = !ack.in_recovery;
        self.line(&text, compare);
    }
}

fn us(time: Time) -> u64 {
    time.ns() / 1000
}
