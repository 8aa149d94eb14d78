//! Cost of a scheme's own work, apart from transport and network.

use crate::{Spread, cycles_per_ns, repeat};
use narrows_cc::testing::{example_files, example_params};
use narrows_cc::{
    AckEvent, AckedPacket, Allowance, CongestionControl, LossCause, LossEvent, LostPacket,
    RateSample, Scheme, SendEvent, Setup, schemes,
};
use narrows_media::{Media, MediaReceiver, MediaSender};
use narrows_transport::{Body, Header};
use narrows_units::{Bytes, Ecn, Params, Rate, Span, Stream, Time};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Payload of a packet.
const MSS: u64 = 1448;
/// Acknowledgements in one measurement.
const ACKS: u64 = 400_000;
/// One packet in so many is lost.
const LOSS_EVERY: u64 = 4_001;
/// RTT without a queue, and the longest queue, through which the RTT rises and falls.
const RTT: Span = Span::from_ms(40);
const QUEUE: Span = Span::from_ms(8);
const SWING: Span = Span::from_ms(250);
/// Times of media that are measured, and their way.
const MEDIA_TIME: Span = Span::from_ms(60_000);
const MEDIA_WAY: Span = Span::from_ms(20);

/// Prints time and cycles of every scheme, models that schemes need being examples.
pub fn table(runs: usize) {
    let cycles = cycles_per_ns();
    println!(
        "{:.2} cycles per ns (a chain of operations of one cycle each)\n",
        cycles.median
    );
    println!(
        "{:18} {:>24} {:>8} {:>24} {:>8}",
        "scheme, per ack", "ns at 100 Mbit/s", "cycles", "ns at 1 Mbit/s", "cycles"
    );
    for scheme in schemes::ALL {
        print!("{:18}", scheme.name);
        for mbps in [100.0, 1.0] {
            let spread = per_ack(scheme, mbps, runs);
            print!(
                " {:>24} {:8.0}",
                spread.show(1),
                spread.median * cycles.median
            );
        }
        println!();
    }
    println!();
    if narrows_media::schemes::ALL.is_empty() {
        return;
    }
    println!(
        "{:18} {:>24} {:>8}   both ends together",
        "scheme, per packet", "ns", "cycles"
    );
    for scheme in narrows_media::schemes::ALL {
        let spread = per_packet(scheme, runs);
        println!(
            "{:18} {:>24} {:8.0}",
            scheme.name,
            spread.show(0),
            spread.median * cycles.median
        );
    }
    println!();
}

/// An endless connection whose path is decided beforehand: as much is sent as is acknowledged.
struct Connection {
    scheme: Box<dyn CongestionControl>,
    gap: Span,
    now: Time,
    sent: u64,
    acked: u64,
    delivered: u64,
    lost: u64,
    round: u64,
    round_end: u64,
}

impl Connection {
    fn new(scheme: &Scheme, mbps: f64) -> Self {
        let setup = Setup {
            mss: Bytes::new(MSS),
            initial_window: 10,
            ecn: false,
            files: example_files(),
            now: Time::ZERO,
            random: Stream::new(1, "bench"),
        };
        let gap = Rate::from_mbps(mbps).time_for(Bytes::new(MSS + 52));
        let mut connection = Connection {
            scheme: (scheme.build)(&example_params(scheme), setup).expect("defaults build"),
            gap,
            now: Time::ZERO,
            sent: 0,
            acked: 0,
            delivered: 0,
            lost: 0,
            round: 0,
            round_end: 0,
        };
        for _ in 0..RTT.ns().div_ceil(gap.ns()).max(1) {
            connection.send();
        }
        connection
    }

    fn in_flight(&self) -> Bytes {
        Bytes::new((self.sent - self.acked) * MSS)
    }

    fn send(&mut self) {
        self.sent += 1;
        let mut send = SendEvent::new(self.now, self.sent, Bytes::new(MSS));
        send.in_flight = self.in_flight();
        send.idle = (self.sent == self.acked + 1).then_some(Span::ZERO);
        self.scheme.on_send(&send);
    }

    /// Queueing delay now: up and down in a triangle.
    fn queue(&self) -> Span {
        let phase = self.now.ns() % SWING.ns();
        QUEUE.scale(phase.min(SWING.ns() - phase) * 2, SWING.ns())
    }

    /// One packet is acknowledged, and one sent; returns what the scheme allows.
    fn step(&mut self) -> Allowance {
        self.now += self.gap;
        let before = self.in_flight();
        let rtt = RTT + self.queue();
        if self.acked % LOSS_EVERY == LOSS_EVERY - 1 {
            self.lose(before, rtt);
        }
        self.acked += 1;
        self.delivered += MSS;
        let packet = AckedPacket {
            number: self.acked,
            bytes: MSS as u32,
            sent: self.now - rtt,
            arrived: Some(self.now - RTT.scale(1, 2)),
        };
        let packets = [packet];
        let mut ack = AckEvent::new(self.now);
        ack.packets = &packets;
        ack.bytes = Bytes::new(MSS);
        ack.latest_rtt = Some(rtt);
        ack.smoothed_rtt = rtt;
        ack.min_rtt = RTT;
        ack.delivered = Bytes::new(self.delivered);
        ack.lost_total = Bytes::new(self.lost);
        if self.acked >= self.round_end {
            ack.round_start = true;
            self.round += 1;
            self.round_end = self.sent;
        }
        ack.round = self.round;
        ack.in_flight_before = before;
        ack.in_flight = self.in_flight();
        let flight = before.get().min(self.delivered);
        ack.rate = Some(RateSample {
            rate: Rate::of(Bytes::new(MSS), self.gap),
            delivered: Bytes::new(flight),
            interval: rtt,
            app_limited: false,
            prior_delivered: Bytes::new(self.delivered - flight),
            in_flight_at_send: before,
            lost: Bytes::ZERO,
        });
        self.scheme.on_ack(&ack);
        if self
            .scheme
            .next_timer()
            .is_some_and(|timer| timer <= self.now)
        {
            self.scheme.on_timer(self.now);
        }
        let allowance = self.scheme.allowance();
        self.send();
        allowance
    }

    fn lose(&mut self, before: Bytes, rtt: Span) {
        self.acked += 1;
        let sent = self.now - rtt;
        let lost = [LostPacket {
            number: self.acked,
            bytes: MSS as u32,
            sent,
            in_flight_at_send: before,
            delivered_before: Bytes::new(self.delivered.saturating_sub(before.get())),
            lost_before: Bytes::new(self.lost),
            app_limited: false,
        }];
        self.lost += MSS;
        let mut loss = LossEvent::new(self.now, LossCause::Reordering, Bytes::new(MSS));
        loss.lost = &lost;
        loss.lost_total = Bytes::new(self.lost);
        loss.delivered = Bytes::new(self.delivered);
        loss.newest_sent = sent;
        loss.in_flight = before;
        loss.smoothed_rtt = rtt;
        self.scheme.on_loss(&loss);
        self.scheme.on_recovery_exit(self.now);
        self.send();
    }
}

/// Time of one acknowledgement with what belongs to it: the packet that is sent for it, timers, one loss in some
/// thousands. At a low rate a scheme that decides at intervals decides with each.
fn per_ack(scheme: &Scheme, mbps: f64, runs: usize) -> Spread {
    repeat(
        runs,
        || {
            let mut connection = Connection::new(scheme, mbps);
            let mut sum = 0;
            for _ in 0..ACKS {
                sum += connection.step().cwnd.map_or(0, Bytes::get) & 1;
            }
            std::hint::black_box(sum)
        },
        |_, seconds| seconds * 1e9 / ACKS as f64,
    )
}

/// A message under way.
struct Flight {
    to_receiver: bool,
    header: Header,
    body: Body,
}

/// Both ends of a real-time scheme with a way of 20 ms between them that loses nothing.
struct Call {
    sender: Box<dyn MediaSender>,
    receiver: Box<dyn MediaReceiver>,
    flights: Vec<Option<Flight>>,
    due: BinaryHeap<Reverse<(Time, usize)>>,
    free: Vec<usize>,
    bodies: Vec<Body>,
    packets: u64,
}

impl Call {
    fn new(scheme: &Media) -> Call {
        let params = Params::resolve(scheme.params, []).expect("defaults resolve");
        let setup = |name| narrows_media::MediaSetup {
            now: Time::ZERO,
            packet_size: 1500,
            random: Stream::new(1, name),
        };
        Call {
            sender: (scheme.sender)(&params, setup("sender")).expect("defaults build"),
            receiver: (scheme.receiver)(&params, setup("receiver")).expect("defaults build"),
            flights: Vec::new(),
            due: BinaryHeap::new(),
            free: Vec::new(),
            bodies: Vec::new(),
            packets: 0,
        }
    }

    fn launch(&mut self, now: Time, flight: Flight) {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.flights.push(None);
            self.flights.len() - 1
        });
        self.flights[slot] = Some(flight);
        self.due.push(Reverse((now + MEDIA_WAY, slot)));
    }

    /// Everything that is due at `now`.
    fn run(&mut self, now: Time) {
        while let Some(&Reverse((due, slot))) = self.due.peek()
            && due <= now
        {
            self.due.pop();
            let Some(flight) = self.flights[slot].take() else {
                continue;
            };
            self.free.push(slot);
            if flight.to_receiver {
                self.receiver
                    .receive(now, Ecn::NotEct, &flight.header, &flight.body);
            } else {
                self.sender
                    .receive(now, Ecn::NotEct, &flight.header, &flight.body);
            }
            self.bodies.push(flight.body);
        }
        for to_receiver in [true, false] {
            loop {
                let mut body = self.bodies.pop().unwrap_or_default();
                let sent = if to_receiver {
                    self.sender.transmit(now, &mut body)
                } else {
                    self.receiver.transmit(now, &mut body)
                };
                let Some(outgoing) = sent else {
                    self.bodies.push(body);
                    break;
                };
                self.packets += u64::from(to_receiver);
                self.launch(
                    now,
                    Flight {
                        to_receiver,
                        header: outgoing.header,
                        body,
                    },
                );
            }
        }
    }

    fn next(&self) -> Time {
        let arrival = self.due.peek().map_or(Time::FAR, |Reverse((due, _))| *due);
        arrival
            .min(self.sender.next_wakeup())
            .min(self.receiver.next_wakeup())
    }
}

/// Time of one packet of media, with all reports and timers of both ends and the encoder.
fn per_packet(scheme: &Media, runs: usize) -> Spread {
    repeat(
        runs,
        || {
            let mut call = Call::new(scheme);
            let mut now = Time::ZERO;
            while now < Time::ZERO + MEDIA_TIME {
                call.run(now);
                // A wake-up in the past means now.
                now = call.next().max(now + Span::from_ns(1));
            }
            call.packets
        },
        |packets, seconds| seconds * 1e9 / (*packets).max(1) as f64,
    )
}
