//! Flows without connections, over UDP: real-time schemes and datagrams. One endpoint at each end of a pair of ports.

use super::clock::{EventLoop, RunClock, SampleTimes};
use super::link::{Link, RETRY, SocketBuffers, SocketEndpoint, open};
use super::live::LiveStates;
use super::source::Source;
use super::{Channel, EndpointOutcome, EndpointTask, Role, SentFrame};
use narrows_cell::{Context, RunError};
use narrows_cell::{Machine, SchemeRef, receiver_counters, sender_counters, sink_counters};
use narrows_record::SenderCounters;
use narrows_sys::socket;
use narrows_traffic::{TrafficAction, TrafficEvent};
use narrows_transport::Header;
use narrows_units::Time;
use std::os::fd::AsFd;

/// Key of the socket among the awaited events.
const SOCKET: u64 = 0;

impl SocketEndpoint for Machine {
    fn accepts(&self, header: &Header) -> bool {
        matches!(header, Header::Media(message) if message.feedback == self.is_sender())
    }
}

/// One end of a flow.
pub(super) struct Node<'a> {
    task: &'a EndpointTask<'a>,
    link: Link<Machine>,
    buffers: SocketBuffers,
    outcome: EndpointOutcome,
}

impl<'a> Node<'a> {
    /// An end with its socket. Precomputations of the scheme are done here.
    pub(super) fn prepare(task: &'a EndpointTask<'a>) -> Result<Self, RunError> {
        let EndpointTask { cell, flow, .. } = *task;
        let refused = |error: narrows_cell::CellError| RunError::Input(error.to_string());
        let [sender, receiver] = Machine::pair(cell, flow)
            .map_err(refused)?
            .ok_or_else(|| RunError::Internal(format!("flow {} has connections", flow.flow)))?;
        let (machine, own, peer) = match task.role {
            Role::Sender => (sender, flow.from, flow.to),
            Role::Receiver => (receiver, flow.to, flow.from),
        };
        let fd = open(task)?;
        socket::bind(fd.as_fd(), task.port_at(own)).could_not("bind the flow's port")?;
        socket::connect(fd.as_fd(), task.port_at(peer)).could_not("connect a UDP socket")?;
        Ok(Node {
            task,
            link: Link::new(fd, machine),
            buffers: SocketBuffers::new(flow.flow, flow.dscp, task.end()),
            outcome: EndpointOutcome::default(),
        })
    }

    /// Runs until the flow stops (the sender) or the run ends. After the stop, a receiver only listens.
    pub(super) fn run(
        mut self,
        clock: &RunClock,
        channel: &mut Channel,
    ) -> Result<EndpointOutcome, RunError> {
        let EndpointTask { cell, flow, .. } = *self.task;
        let mut sleeper = EventLoop::new(channel)?;
        let mut source = match &self.link.endpoint {
            Machine::DatagramSource(_) => Some(Source::new(cell, flow)?),
            _ => None,
        };
        sleeper.wait_for_start(clock, cell.duration, channel)?;
        sleeper.until_readable(self.link.socket(), SOCKET)?;
        if let Some(source) = &mut source {
            source.notify(clock.start(), TrafficEvent::Start);
        }
        let mut samples = SampleTimes::new(clock.start(), cell.sample);
        let mut live = LiveStates::new(self.task);
        if let SchemeRef::Datagrams = flow.scheme {
            samples.next = Time::FAR;
        }
        let mut now = clock.now();
        while now < clock.end(self.task) {
            let (stop, end) = (clock.stop(), clock.end(self.task));
            if let Some(source) = &mut source {
                source.stop_at(stop);
                source.wake(now);
                while let Some((_, action)) = source.next() {
                    if let TrafficAction::Datagram { size } = action
                        && let Machine::DatagramSource(datagrams) = &mut self.link.endpoint
                    {
                        datagrams.push(size);
                    }
                }
            }
            let more = now < stop && self.link.transmit(&mut self.buffers, now)?;
            if samples.is_due(now) {
                self.sample(now);
                live.report(now, &self.outcome.states, channel);
            }
            let mut until = if more { now } else { end.min(samples.next) };
            if now < stop {
                let wakeup = self.link.next_wakeup(now);
                // An endpoint that asks to act but has nothing to send is not called again immediately.
                until = until.min(if wakeup <= now { now + RETRY } else { wakeup });
            }
            if let Some(source) = &source {
                until = until.min(source.next_wakeup());
            }
            sleeper.wait(clock, until, channel)?;
            // Read only if there are data, and once: remaining data are reported again.
            if sleeper.ready().next().is_some() {
                self.link.receive(&mut self.buffers, clock)?;
            }
            now = clock.now();
        }
        // Datagrams that arrived in time but were not read.
        while self.link.receive(&mut self.buffers, clock)?.more {}
        if self.task.role == Role::Sender {
            self.link.endpoint.stop();
            // The socket stays open: late feedback would otherwise be answered with ICMP.
            sleeper.forget(self.link.socket())?;
            sleeper.wait_until(clock, cell.duration, channel)?;
        }
        self.outcome.offer = source.map(Source::report);
        Ok(self.finish())
    }

    /// Takes the settled frames and, from a sender, its state.
    fn sample(&mut self, now: Time) {
        self.take_frames();
        if let Some(snapshot) = self.link.endpoint.snapshot() {
            self.outcome.add_state(now, &snapshot);
        }
    }

    fn take_frames(&mut self) {
        let (mut sent, mut arrived) = (Vec::new(), Vec::new());
        self.link.endpoint.take_frames(&mut sent, &mut arrived);
        let sent = sent.into_iter().map(SentFrame::from);
        self.outcome.frames.extend(sent);
        let arrived = arrived
            .into_iter()
            .map(|frame| (frame.number, frame.at.ns()));
        self.outcome.whole.extend(arrived);
    }

    fn finish(mut self) -> EndpointOutcome {
        self.take_frames();
        let (sent, received) = (self.buffers.sending.sent, self.buffers.received);
        let mut outcome = self.outcome;
        match &self.link.endpoint {
            Machine::MediaSender(sender) => {
                // Packets that left the socket.
                let mut counters = sender.counters();
                [counters.sent_packets, counters.sent_bytes] = sent;
                outcome.sender = sender_counters(&counters);
                if let SchemeRef::Media(scheme, _) = &self.task.flow.scheme {
                    outcome.read_back = Some(scheme.name.to_owned());
                }
            }
            Machine::MediaReceiver(receiver) => {
                let mut counters = receiver.counters();
                [counters.received_packets, counters.received_bytes] = received;
                outcome.receiver = receiver_counters(&counters);
            }
            Machine::DatagramSource(_) => {
                outcome.sender = SenderCounters {
                    sent_packets: Some(sent[0]),
                    sent_bytes: Some(sent[1]),
                    ..SenderCounters::default()
                }
            }
            Machine::DatagramSink(sink) => outcome.receiver = sink_counters(&sink.report()),
            Machine::Sender(_) | Machine::Receiver(_) => {}
        }
        outcome.socket_drops = u64::from(self.link.dropped);
        outcome.problem = outcome.problem.or(self.buffers.problem());
        outcome
    }
}

#[cfg(test)]
mod tests;
