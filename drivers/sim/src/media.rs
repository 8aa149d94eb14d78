//! Flows of real-time schemes: two machines that exchange messages of their own, without connections, each with
//! a wake-up.
//!
//! Both ends are born with the flow and fall silent when it stops; what is under way then still arrives and counts.

use crate::flow::NONE;
use crate::packet::{SimPacket, SimPacketKind};
use crate::scheduling_noise::Wants;
use crate::world::World;
use narrows_cell::{Cell, CellError, Flow, SchemeRef, media_receiver, media_sender, merge_frames};
use narrows_media::{FrameArrived, FrameSent, MediaReceiver, MediaSender};
use narrows_record::FrameRow;
use narrows_transport::{Outgoing, ReceiverCounters, SenderCounters, SenderSnapshot};
use narrows_units::{Span, Time};

/// An end that had nothing to send is not asked again before this, whatever it wants.
const BREATH: Span = Span::from_us(1);

/// Both ends of a flow.
pub(crate) struct MediaEnds {
    sender: Box<dyn MediaSender>,
    receiver: Box<dyn MediaReceiver>,
    /// Unique among all connections of the run.
    serial: u32,
    stopped: bool,
    sent: Vec<FrameSent>,
    arrived: Vec<FrameArrived>,
}

impl MediaEnds {
    /// The ends of `flow`, if it is one of a real-time scheme.
    pub(crate) fn of(cell: &Cell, flow: &Flow) -> Result<Option<Box<Self>>, CellError> {
        if !matches!(flow.scheme, SchemeRef::Media(..)) {
            return Ok(None);
        }
        Ok(Some(Box::new(MediaEnds {
            sender: media_sender(cell, flow)?,
            receiver: media_receiver(cell, flow)?,
            serial: 0,
            stopped: false,
            sent: Vec::new(),
            arrived: Vec::new(),
        })))
    }

    /// The sender's state; the frames that are settled by now are taken on the way.
    pub(crate) fn sample(&mut self) -> SenderSnapshot {
        self.collect();
        self.sender.snapshot()
    }

    fn collect(&mut self) {
        self.sender.take_frames(&mut self.sent);
        self.receiver.take_frames(&mut self.arrived);
    }

    /// Counters of both ends.
    pub(crate) fn counters(&self) -> (SenderCounters, ReceiverCounters) {
        (self.sender.counters(), self.receiver.counters())
    }

    /// The frames of `flow`, and how many arrived that were never sent.
    pub(crate) fn frames(&self, flow: u16) -> (Vec<FrameRow>, u64) {
        merge_frames(flow, &self.sent, &self.arrived)
    }
}

// The parts of a flow in the tree of wake-ups.
const SENDER: usize = 0;
const RECEIVER: usize = 1;

impl World {
    /// Lets the flow act from its start on.
    pub(crate) fn begin_media(&mut self, index: usize) {
        self.serials += 1;
        let (start, serial) = (self.flows[index].start, self.serials);
        if let Some(ends) = &mut self.flows[index].media {
            ends.serial = serial;
        }
        self.media.set(2 * index + SENDER, start);
        self.media.set(2 * index + RECEIVER, start);
    }

    /// Lets the ends act that wanted to by now.
    pub(crate) fn run_media(&mut self, now: Time) {
        loop {
            let (at, part) = self.media.earliest();
            if at > now {
                return;
            }
            let (flow, end) = (part / 2, part % 2);
            let whose = Wants::Media {
                flow: flow as u16,
                part: end as u8,
            };
            if self.delayed_processes.is_some() && self.wait_for_processor(now, whose) {
                continue;
            }
            self.run_media_end(now, flow, end);
        }
    }

    /// Takes the last frames.
    pub(crate) fn end_media(&mut self) {
        let flows = self.flows.iter_mut();
        flows
            .filter_map(|flow| flow.media.as_deref_mut())
            .for_each(MediaEnds::collect);
    }

    /// A message of a real-time scheme has arrived; says whose it is.
    pub(crate) fn hear_media(&mut self, at: Time, packet: SimPacket) -> Option<Wants> {
        let flow = self.index[usize::from(packet.flow)];
        let message = self.contents.media.get(packet.slot);
        let (header, body) = (&message.header, &message.body);
        let mut part = None;
        if let Some(ends) = &mut self.flows[usize::from(flow)].media {
            if packet.kind == SimPacketKind::Media {
                self.totals.data_delivered += 1;
                ends.receiver.receive(at, packet.ecn, header, body);
                part = Some(RECEIVER);
            } else {
                ends.sender.receive(at, packet.ecn, header, body);
                part = Some(SENDER);
            }
        }
        self.contents.free(&packet);
        part.map(|part| Wants::Media {
            flow,
            part: part as u8,
        })
    }

    /// Lets one end send all it may.
    pub(crate) fn run_media_end(&mut self, now: Time, index: usize, part: usize) {
        let flow = &mut self.flows[index];
        let stop = flow.stop;
        let Some(mut ends) = flow.media.take() else {
            return;
        };
        if now >= stop && part == SENDER && !ends.stopped {
            ends.stopped = true;
            ends.sender.stop();
        }
        let mut wakeup = Time::FAR;
        if now < stop {
            loop {
                let out = match part {
                    SENDER => ends.sender.transmit(now, &mut self.body),
                    _ => ends.receiver.transmit(now, &mut self.body),
                };
                let Some(out) = out else { break };
                self.enter_media(now, index, part, (ends.serial, out));
            }
            wakeup = match part {
                SENDER => ends.sender.next_wakeup().min(stop),
                _ => ends.receiver.next_wakeup(),
            };
            if wakeup <= now {
                wakeup = now + BREATH;
            }
        }
        self.flows[index].media = Some(ends);
        self.media.set(2 * index + part, wakeup);
    }

    /// Puts a message of a real-time scheme into the network.
    fn enter_media(
        &mut self,
        now: Time,
        index: usize,
        part: usize,
        (serial, out): (u32, Outgoing),
    ) {
        let flow = &self.flows[index];
        let (direction, kind, route) = match part {
            SENDER => (flow.direction, SimPacketKind::Media, flow.routes[0]),
            _ => (
                flow.direction.reverse(),
                SimPacketKind::Feedback,
                flow.routes[1],
            ),
        };
        let packet = SimPacket {
            uid: 0,
            slot: 0,
            kind,
            size: out.size as u16,
            pipe: NONE,
            serial,
            flow: flow.number,
            route,
            ecn: out.ecn,
            dscp: flow.dscp,
            corrupt: false,
        };
        let slot = self.contents.put_media(out.header, &mut self.body);
        self.enter(now, direction, SimPacket { slot, ..packet });
    }
}
