//! Flows of real-time schemes over UDP: one machine at each end of a pair of ports.

use super::clock::{EventLoop, RunClock};
use super::receiver::{DatagramReceiver, ReceiveResult};
use super::sender::{DatagramSender, Sending};
use super::{Channel, EndpointOutcome, EndpointTask, Role, SentFrame, StateSample};
use narrows_cell::{Context, RunError};
use narrows_cell::{
    SchemeRef, media_receiver, media_sender, receiver_counters, sender_counters, state_row,
    trace_rows,
};
use narrows_media::{MediaReceiver, MediaSender};
use narrows_sys::socket;
use narrows_transport::{Body, Endpoint, Header, wire};
use narrows_units::{Ecn, Span, Time};
use std::os::fd::{AsFd, OwnedFd};

/// Wanted size of the socket's buffers: 50 ms at 1 Gbit/s, with the kernel's overhead.
const SOCKET_BUFFER: i32 = 16 << 20;
/// When to try again where the interface was full, or the scheme wanted to act and had nothing to send.
const BREATH: Span = Span::from_us(50);
/// Key of the socket among the things waited for.
const SOCKET: u64 = 0;

/// The machine of one end.
enum End {
    Sender(Box<dyn MediaSender>),
    Receiver(Box<dyn MediaReceiver>),
}

impl End {
    fn endpoint(&mut self) -> &mut dyn Endpoint {
        match self {
            End::Sender(sender) => &mut **sender,
            End::Receiver(receiver) => &mut **receiver,
        }
    }

    fn next_wakeup(&self) -> Time {
        match self {
            End::Sender(sender) => sender.next_wakeup(),
            End::Receiver(receiver) => receiver.next_wakeup(),
        }
    }
}

/// One end of a flow.
pub(super) struct Node<'a> {
    task: &'a EndpointTask<'a>,
    end: End,
    line: Line,
    outcome: EndpointOutcome,
}

impl<'a> Node<'a> {
    /// An end with its socket. What the scheme calculates beforehand is calculated now.
    pub(super) fn prepare(task: &'a EndpointTask<'a>) -> Result<Self, RunError> {
        let EndpointTask { cell, flow, .. } = *task;
        let refused = |error: narrows_cell::CellError| RunError::Input(error.to_string());
        let (end, own, peer) = match task.role {
            Role::Sender => {
                let sender = media_sender(cell, flow).map_err(refused)?;
                (End::Sender(sender), flow.from, flow.to)
            }
            Role::Receiver => {
                let receiver = media_receiver(cell, flow).map_err(refused)?;
                (End::Receiver(receiver), flow.to, flow.from)
            }
        };
        let fd = socket::udp_any().could_not("open a UDP socket")?;
        socket::bind(fd.as_fd(), task.port_at(own)).could_not("bind the flow's port")?;
        socket::connect(fd.as_fd(), task.port_at(peer)).could_not("connect a UDP socket")?;
        Ok(Node {
            task,
            end,
            line: Line::new(fd, flow.flow, flow.dscp, task.end())?,
            outcome: EndpointOutcome::default(),
        })
    }

    /// Plays its part until the flow stops (the sender) or the run ends. After the stop, a receiver only
    /// listens.
    pub(super) fn run(
        mut self,
        clock: &RunClock,
        channel: &mut Channel,
    ) -> Result<EndpointOutcome, RunError> {
        let EndpointTask { cell, flow, .. } = *self.task;
        let stop = self.task.stop();
        let end = self.task.end();
        let mut sleeper = EventLoop::new(channel)?;
        sleeper.wait_until(clock, flow.start.min(cell.duration), channel)?;
        sleeper.until_readable(self.line.fd.as_fd(), SOCKET)?;
        let mut next_sample = Time::from_ns(flow.start.ns().next_multiple_of(cell.sample.ns()));
        let mut now = clock.now();
        while now < end {
            let more = now < stop && self.line.transmit(&mut self.end, now)?;
            if now >= next_sample {
                self.sample(now);
                let passed = now.since(next_sample).ns() / cell.sample.ns() + 1;
                next_sample += Span::from_ns(cell.sample.ns() * passed);
            }
            let mut until = if more { now } else { end.min(next_sample) };
            if now < stop {
                until = until.min(self.line.next_wakeup(&self.end, now));
            }
            sleeper.wait(clock, until, channel)?;
            // Read only if there is something, and once: what is left is reported again.
            if sleeper.ready().next().is_some() {
                self.line.receive(&mut self.end, clock)?;
            }
            now = clock.now();
        }
        // What has arrived in time and was not looked at.
        while self.line.receive(&mut self.end, clock)?.more {}
        if let End::Sender(sender) = &mut self.end {
            sender.stop();
            // The socket stays: late feedback would otherwise be answered with ICMP.
            sleeper.forget(self.line.fd.as_fd())?;
            sleeper.wait_until(clock, cell.duration, channel)?;
        }
        Ok(self.finish())
    }

    /// Takes the frames that are settled, and from a sender its state.
    fn sample(&mut self, now: Time) {
        let (flow, time) = (self.task.flow.flow, now.ns());
        self.collect();
        let End::Sender(sender) = &self.end else {
            return;
        };
        let snapshot = sender.snapshot();
        let state = state_row(flow, time, &snapshot);
        self.outcome.states.push(StateSample::from(state));
        let rows = trace_rows(flow, time, &snapshot);
        let traces = rows.map(|row| (row.time_ns, row.name, row.value));
        self.outcome.traces.extend(traces);
    }

    fn collect(&mut self) {
        match &mut self.end {
            End::Sender(sender) => {
                let mut frames = Vec::new();
                sender.take_frames(&mut frames);
                let frames = frames.into_iter().map(SentFrame::from);
                self.outcome.frames.extend(frames);
            }
            End::Receiver(receiver) => {
                let mut frames = Vec::new();
                receiver.take_frames(&mut frames);
                let frames = frames
                    .into_iter()
                    .map(|frame| (frame.number, frame.at.ns()));
                self.outcome.whole.extend(frames);
            }
        }
    }

    fn finish(mut self) -> EndpointOutcome {
        self.collect();
        let (sent, received) = (self.line.sending.sent, self.line.received);
        let mut outcome = self.outcome;
        match &self.end {
            End::Sender(sender) => {
                // What left the socket.
                let mut counters = sender.counters();
                [counters.sent_packets, counters.sent_bytes] = sent;
                outcome.sender = sender_counters(&counters);
                if let SchemeRef::Media(scheme, _) = &self.task.flow.scheme {
                    outcome.read_back = Some(scheme.name.to_owned());
                }
            }
            End::Receiver(receiver) => {
                let mut counters = receiver.counters();
                [counters.received_packets, counters.received_bytes] = received;
                outcome.receiver = receiver_counters(&counters);
            }
        }
        outcome.socket_drops = u64::from(self.line.receiver.dropped());
        if self.line.garbage > 0 {
            let text = format!("{} datagrams were no messages of ours", self.line.garbage);
            outcome.problem.get_or_insert(text);
        }
        outcome
    }
}

/// A socket with what is needed to exchange messages over it.
struct Line {
    fd: OwnedFd,
    flow: u16,
    receiver: DatagramReceiver,
    sending: Sending,
    sender: DatagramSender,
    body: Body,
    /// Latest time that the machine has seen.
    latest: Time,
    /// Datagrams that were none of the peer's messages.
    garbage: u64,
    /// Datagrams and their IP bytes, received.
    received: [u64; 2],
}

impl Line {
    /// Over a connected socket, for what arrives before `end`.
    fn new(fd: OwnedFd, flow: u16, dscp: u8, end: Time) -> Result<Self, RunError> {
        socket::prepare_udp(fd.as_fd(), SOCKET_BUFFER).could_not("prepare a UDP socket")?;
        socket::never_fragment(fd.as_fd()).could_not("prepare a UDP socket")?;
        socket::set_tos(fd.as_fd(), dscp << 2).could_not("set the code point")?;
        Ok(Line {
            fd,
            flow,
            receiver: DatagramReceiver::new(end),
            sending: Sending::new(dscp),
            sender: DatagramSender::default(),
            body: Body::default(),
            latest: Time::ZERO,
            garbage: 0,
            received: [0; 2],
        })
    }

    /// Takes one batch of what has arrived, at the times at which the kernel saw it.
    fn receive(&mut self, end: &mut End, clock: &RunClock) -> Result<ReceiveResult, RunError> {
        let wanted = matches!(end, End::Sender(_));
        let (body, latest) = (&mut self.body, &mut self.latest);
        let (garbage, received) = (&mut self.garbage, &mut self.received);
        self.receiver
            .receive(self.fd.as_fd(), clock, |at, datagram| {
                received[0] += 1;
                received[1] += datagram.bytes.len() as u64 + u64::from(wire::IP_UDP);
                // Times never decrease; what arrived while we sent is seen a moment later.
                *latest = at.max(*latest);
                match wire::decode(datagram.bytes, body) {
                    Ok(header @ Header::Media(media)) if media.feedback == wanted => {
                        let ecn = Ecn::from_bits(datagram.ecn());
                        end.endpoint().receive(*latest, ecn, &header, body);
                    }
                    _ => *garbage += 1,
                }
            })
    }

    /// Sends what the machine wants to send, up to one batch; returns whether there may be more at once.
    fn transmit(&mut self, end: &mut End, now: Time) -> Result<bool, RunError> {
        self.latest = now.max(self.latest);
        let (body, latest, flow) = (&mut self.body, self.latest, self.flow);
        self.sender
            .send(self.fd.as_fd(), &mut self.sending, |bytes| {
                let out = end.endpoint().transmit(latest, body)?;
                wire::encode(flow, &out.header, body, bytes);
                Some(out.ecn)
            })
    }

    /// When [`Line::transmit`] is needed next.
    fn next_wakeup(&self, end: &End, now: Time) -> Time {
        if !self.sender.is_empty() {
            // The interface was full a moment ago, and says nothing when it is not any more.
            return now + BREATH;
        }
        let wakeup = end.next_wakeup();
        if wakeup <= now { now + BREATH } else { wakeup }
    }
}

#[cfg(test)]
mod tests;
