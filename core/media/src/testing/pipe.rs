//! Two ends and a simple path between them, in virtual time.

use crate::{FrameArrived, FrameSent, Media, MediaReceiver, MediaSender, MediaSetup};
use narrows_transport::{Body, Endpoint, Header, Outgoing, wire};
use narrows_units::{Ecn, Params, Rate, Span, Stream, Time};
use std::collections::BTreeMap;

/// Maximum number of messages that an end may send at one instant: more is an endless loop.
const AT_ONCE: u32 = 100_000;

/// One direction of the path. All of it may be changed while the pipe runs.
#[derive(Clone, Debug)]
pub struct Way {
    /// Rate of the bottleneck; zero lets nothing pass.
    pub rate: Rate,
    /// Delay after the bottleneck.
    pub delay: Span,
    /// Maximum random additional delay; packets may be reordered.
    pub jitter: Span,
    /// Capacity of the queue in bytes.
    pub buffer: u64,
    /// Probability of loss.
    pub loss: f64,
    /// Probability of duplication.
    pub duplicates: f64,
}

impl Way {
    /// A rate in Mbit/s and a delay in ms, with an unlimited queue and no randomness.
    pub fn new(mbps: f64, delay_ms: u64) -> Self {
        Way {
            rate: Rate::from_mbps(mbps),
            delay: Span::from_ms(delay_ms),
            jitter: Span::ZERO,
            buffer: u64::MAX,
            loss: 0.0,
            duplicates: 0.0,
        }
    }

    /// The same with a queue that holds the rate of `ms` milliseconds.
    #[must_use]
    pub fn queue_ms(mut self, ms: u64) -> Self {
        self.buffer = self.rate.bytes_in(Span::from_ms(ms)).get();
        self
    }

    /// The same with random losses.
    #[must_use]
    pub fn lossy(mut self, share: f64) -> Self {
        self.loss = share;
        self
    }
}

/// A packet that has arrived.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Passed {
    /// When it was sent.
    pub sent: Time,
    /// When it arrived.
    pub arrived: Time,
    /// Time it waited for others.
    pub queued: Span,
    /// Its IP size.
    pub size: u32,
}

struct Flying {
    header: Header,
    bytes: Vec<u8>,
    passed: Passed,
}

struct Direction {
    way: Way,
    random: Stream,
    busy: Time,
    flying: BTreeMap<(Time, u64), Flying>,
    count: u64,
    lost: u64,
    passed: Vec<Passed>,
}

impl Direction {
    fn new(way: Way, random: Stream) -> Self {
        Direction {
            way,
            random,
            busy: Time::ZERO,
            flying: BTreeMap::new(),
            count: 0,
            lost: 0,
            passed: Vec::new(),
        }
    }

    fn push(&mut self, now: Time, packet: &Outgoing, body: &Body) {
        assert_eq!(
            packet.size,
            wire::size(&packet.header, body),
            "a wrong size"
        );
        let queued = self.busy - now;
        // The same random numbers are drawn whatever happens to the packet, so that histories stay comparable.
        let (lost, twice) = (
            self.random.chance(self.way.loss),
            self.random.chance(self.way.duplicates),
        );
        let full = self.way.rate.bytes_in(queued).get() + u64::from(packet.size) > self.way.buffer;
        if lost || full || self.way.rate.bps() == 0 {
            self.lost += 1;
            return;
        }
        self.busy = self.busy.max(now)
            + self
                .way
                .rate
                .time_for(narrows_units::Bytes::new(u64::from(packet.size)));
        for _ in 0..=u32::from(twice) {
            let arrived =
                self.busy + self.way.delay + self.random.span(Span::ZERO, self.way.jitter);
            let passed = Passed {
                sent: now,
                arrived,
                queued,
                size: packet.size,
            };
            let flying = Flying {
                header: packet.header,
                bytes: body.bytes.clone(),
                passed,
            };
            self.flying.insert((arrived, self.count), flying);
            self.count += 1;
        }
    }

    fn next(&self) -> Time {
        self.flying
            .first_key_value()
            .map_or(Time::FAR, |((at, _), _)| *at)
    }

    fn pop(&mut self, now: Time) -> Option<Flying> {
        let entry = self
            .flying
            .first_entry()
            .filter(|entry| entry.key().0 <= now)?;
        Some(entry.remove())
    }
}

/// A flow of a real-time scheme through two [`Way`]s.
pub struct Pipe {
    /// The sending end.
    pub sender: Box<dyn MediaSender>,
    /// The receiving end.
    pub receiver: Box<dyn MediaReceiver>,
    /// Frames settled at the sender.
    pub frames_sent: Vec<FrameSent>,
    /// Frames complete at the receiver.
    pub frames_arrived: Vec<FrameArrived>,
    now: Time,
    forward: Direction,
    backward: Direction,
    body: Body,
}

impl Pipe {
    /// A flow of `scheme` that starts at time zero.
    ///
    /// # Panics
    /// If the scheme cannot be built with these parameters.
    pub fn new(scheme: &Media, params: &Params, seed: u64, forward: Way, backward: Way) -> Self {
        let setup = |name| MediaSetup {
            random: Stream::new(seed, name),
            ..super::setup(seed)
        };
        Pipe {
            sender: (scheme.sender)(params, setup("sender")).expect("a sender"),
            receiver: (scheme.receiver)(params, setup("receiver")).expect("a receiver"),
            frames_sent: Vec::new(),
            frames_arrived: Vec::new(),
            now: Time::ZERO,
            forward: Direction::new(forward, Stream::new(seed, "forward")),
            backward: Direction::new(backward, Stream::new(seed, "backward")),
            body: Body::default(),
        }
    }

    /// Now.
    pub fn now(&self) -> Time {
        self.now
    }

    /// The direction of the media.
    pub fn forward(&mut self) -> &mut Way {
        &mut self.forward.way
    }

    /// The direction of the reports.
    pub fn backward(&mut self) -> &mut Way {
        &mut self.backward.way
    }

    /// True if the media path has been blocked for a second (it is free while the sender is silent), or the report path
    /// will be for another.
    pub fn is_blocked(&self) -> bool {
        let wait = Span::from_ms(1000);
        self.forward.busy + wait > self.now || self.backward.busy > self.now + wait
    }

    /// Media packets that were lost.
    pub fn forward_lost(&self) -> u64 {
        self.forward.lost
    }

    /// Media packets that arrived.
    pub fn passed(&self) -> &[Passed] {
        &self.forward.passed
    }

    /// Runs up to `end`.
    ///
    /// # Panics
    /// If an end never stops sending or asks to be woken without need.
    pub fn run_until(&mut self, end: Time) {
        self.drain();
        loop {
            let ends = self.sender.next_wakeup().min(self.receiver.next_wakeup());
            let next = ends.min(self.forward.next()).min(self.backward.next());
            if next > end {
                break;
            }
            self.now = self.now.max(next);
            while let Some(flying) = self.forward.pop(self.now) {
                self.forward.passed.push(flying.passed);
                self.deliver(&flying.header, &flying.bytes);
            }
            while let Some(flying) = self.backward.pop(self.now) {
                self.deliver(&flying.header, &flying.bytes);
            }
            self.drain();
        }
        self.now = end;
    }

    /// A message arrives, from the path or forged: reports at the sender, media at the receiver.
    pub fn deliver(&mut self, header: &Header, bytes: &[u8]) {
        self.body.clear();
        self.body.bytes.extend_from_slice(bytes);
        let Header::Media(media) = header else { return };
        let end: &mut dyn Endpoint = if media.feedback {
            &mut *self.sender
        } else {
            &mut *self.receiver
        };
        end.receive(self.now, Ecn::NotEct, header, &self.body);
    }

    /// Both ends send all they are allowed to.
    fn drain(&mut self) {
        let mut body = std::mem::take(&mut self.body);
        let mut count = 0;
        while let Some(packet) = self.sender.transmit(self.now, &mut body) {
            assert!(
                matches!(packet.header, Header::Media(media) if !media.feedback),
                "media is not feedback"
            );
            self.forward.push(self.now, &packet, &body);
            count += 1;
            assert!(count < AT_ONCE, "the sender never stops sending");
        }
        while let Some(packet) = self.receiver.transmit(self.now, &mut body) {
            assert!(
                matches!(packet.header, Header::Media(media) if media.feedback),
                "reports are feedback"
            );
            self.backward.push(self.now, &packet, &body);
            count += 1;
            assert!(count < AT_ONCE, "the receiver never stops sending");
        }
        assert!(
            self.sender.next_wakeup() > self.now,
            "the sender asks to be woken and does nothing"
        );
        assert!(
            self.receiver.next_wakeup() > self.now,
            "the receiver asks to be woken and does nothing"
        );
        self.sender.take_frames(&mut self.frames_sent);
        self.receiver.take_frames(&mut self.frames_arrived);
        self.body = body;
    }

    /// A value that the sender shows.
    pub fn value(&self, name: &str) -> Option<f64> {
        let values = self.sender.snapshot().scheme.values;
        values
            .iter()
            .find(|(other, _)| *other == name)
            .map(|(_, value)| *value)
    }

    /// The target of the encoder in bit/s, or zero.
    pub fn target(&self) -> f64 {
        self.value("target_bps").unwrap_or(0.0)
    }

    /// The sender's window in bytes, or infinity.
    pub fn cwnd(&self) -> f64 {
        self.sender
            .snapshot()
            .cwnd
            .map_or(f64::INFINITY, |cwnd| cwnd.get() as f64)
    }

    fn between(&self, from: Time, to: Time) -> impl Iterator<Item = &Passed> {
        self.forward
            .passed
            .iter()
            .filter(move |passed| passed.arrived >= from && passed.arrived < to)
    }

    /// Arrival rate between two times in bit/s, as RTP counts it: without IP and UDP.
    pub fn rtp_bps(&self, from: Time, to: Time) -> f64 {
        let bytes: u32 = self
            .between(from, to)
            .map(|passed| passed.size - wire::IP_UDP)
            .sum();
        f64::from(bytes) * 8.0 / (to - from).secs()
    }

    /// Waiting time at the bottleneck in ms that `share` of the packets that arrived between two times did not
    /// exceed.
    pub fn queueing_between_ms(&self, from: Time, to: Time, share: f64) -> f64 {
        let mut list: Vec<_> = self.between(from, to).map(|passed| passed.queued).collect();
        list.sort_unstable();
        let rank = ((list.len() as f64 * share).ceil() as usize).clamp(1, list.len().max(1));
        list.get(rank - 1).map_or(0.0, |span| span.secs() * 1e3)
    }

    /// The same from a time on.
    pub fn queueing_ms(&self, from: Time, share: f64) -> f64 {
        self.queueing_between_ms(from, Time::FAR, share)
    }

    /// Mean waiting time at the bottleneck in ms from a time on.
    pub fn mean_queueing_ms(&self, from: Time) -> f64 {
        let (sum, count) = self
            .between(from, Time::FAR)
            .fold((0.0, 0u32), |(sum, count), passed| {
                (sum + passed.queued.secs(), count + 1)
            });
        sum * 1e3 / f64::from(count.max(1))
    }
}
