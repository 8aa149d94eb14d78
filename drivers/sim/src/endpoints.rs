//! Both ends of pipes: what they hear, and what they do then.

use crate::packet::{SimPacket, SimPacketKind};
use crate::scheduling_noise::Wants;
use crate::world::{ENDPOINTS, World};
use narrows_transport::{Endpoint, Header};
use narrows_units::Time;

impl World {
    /// Shows a packet that has arrived to the end it is for; says who may have to act now.
    #[inline]
    pub(crate) fn on_packet(&mut self, at: Time, packet: SimPacket) -> Option<Wants> {
        let index = packet.pipe as usize;
        if self
            .pipes
            .get(index)
            .is_none_or(|pipe| pipe.serial != packet.serial)
        {
            return self.on_datagram(at, packet);
        }
        let (pipe, serial) = (packet.pipe, packet.serial);
        match packet.kind {
            SimPacketKind::Data => {
                self.totals.data_delivered += 1;
                let header = Header::Data(*self.contents.data.get(packet.slot));
                self.contents.data.free(packet.slot);
                let receiver = &mut self.pipes[index].receiver;
                receiver.receive(at, packet.ecn, &header, &self.empty);
                Some(Wants::Receiver { pipe, serial })
            }
            SimPacketKind::Ack => {
                if !self.pipes[index].is_data {
                    self.count_orphan(packet, true);
                }
                let message = self.contents.acks.get(packet.slot);
                let (header, body) = (&message.header, &message.body);
                let sender = &mut self.pipes[index].sender;
                sender.receive(at, packet.ecn, header, body);
                self.contents.acks.free(packet.slot);
                Some(Wants::Sender { pipe, serial })
            }
            // Those belong to no pipe.
            SimPacketKind::Datagram | SimPacketKind::Media | SimPacketKind::Feedback => {
                self.contents.free(&packet);
                None
            }
        }
    }

    /// Lets one end act on what it has heard, or because its time has come.
    #[inline]
    pub(crate) fn run_endpoint(&mut self, now: Time, whose: Wants) {
        match whose {
            Wants::Receiver { pipe, .. } => {
                let index = pipe as usize;
                let pipe = &self.pipes[index];
                let awaited = pipe.receiver.rcv_nxt() >= pipe.watch;
                self.run_receiver(now, index);
                if awaited {
                    self.on_watched(now, index);
                }
            }
            Wants::Sender { pipe, .. } => {
                let index = pipe as usize;
                let (closing, connection) =
                    (self.pipes[index].closing, self.pipes[index].connection);
                self.run_sender(now, index);
                if closing {
                    self.retire_if_done(connection);
                }
            }
            Wants::Media { flow, part } => {
                self.run_media_end(now, usize::from(flow), usize::from(part));
                self.schedule_sampler();
            }
        }
    }

    /// The time of one end of a pipe has come.
    #[inline]
    pub(crate) fn run_end(&mut self, now: Time, pipe: usize, sends: bool) {
        if self.delayed_processes.is_some()
            && self.wait_for_processor(now, self.end_of(pipe, sends))
        {
            return;
        }
        if sends {
            self.run_sender(now, pipe);
        } else {
            self.run_receiver(now, pipe);
        }
    }

    /// One end of the pipe with index `pipe`.
    fn end_of(&self, pipe: usize, sends: bool) -> Wants {
        let (serial, pipe) = (self.pipes[pipe].serial, pipe as u32);
        if sends {
            Wants::Sender { pipe, serial }
        } else {
            Wants::Receiver { pipe, serial }
        }
    }

    /// A datagram, a message of a real-time scheme, or what arrives after its connection has ended.
    #[cold]
    fn on_datagram(&mut self, at: Time, packet: SimPacket) -> Option<Wants> {
        if matches!(packet.kind, SimPacketKind::Media | SimPacketKind::Feedback) {
            return self.hear_media(at, packet);
        }
        if packet.kind == SimPacketKind::Datagram {
            self.totals.data_delivered += 1;
            let stamp = *self.contents.stamps.get(packet.slot);
            let flow = usize::from(self.index[usize::from(packet.flow)]);
            if let Some(sink) = &mut self.flows[flow].datagrams.sink {
                sink.receive(at, stamp, u32::from(packet.size));
            }
        } else {
            self.count_orphan(packet, true);
        }
        self.contents.free(&packet);
        None
    }

    /// Counts a packet that travels in the direction of its flow's data and that no data pipe
    /// counts: the acknowledgement of a request, or what comes after the end of its connection.
    pub(crate) fn count_orphan(&mut self, packet: SimPacket, arrived: bool) {
        let flow = &mut self.flows[usize::from(self.index[usize::from(packet.flow)])];
        if packet.route != flow.routes[0] {
            return;
        }
        let size = u64::from(packet.size);
        if arrived {
            flow.past.receiver.received_packets += 1;
            flow.past.receiver.received_bytes += size;
        } else {
            flow.past.sender.sent_packets += 1;
            flow.past.sender.sent_bytes += size;
        }
    }

    /// Lets a sender send all it may.
    #[inline]
    pub(crate) fn run_sender(&mut self, now: Time, index: usize) {
        let pipe = &mut self.pipes[index];
        if now >= pipe.stop && !pipe.stopped {
            pipe.stopped = true;
            pipe.sender.stop();
        }
        let (direction, template) = (pipe.direction, pipe.packets[0]);
        while let Some(out) = self.pipes[index].sender.transmit(now, &mut self.body) {
            if let Header::Data(data) = out.header {
                let packet = SimPacket {
                    slot: self.contents.data.put(data),
                    size: out.size as u16,
                    ecn: out.ecn,
                    ..template
                };
                self.enter(now, direction, packet);
            }
        }
        let wakeup = self.sender_wakeup(index);
        self.wakeups
            .bring_forward(ENDPOINTS + 2 * index, wakeup, now);
    }

    /// When a sender wants to act, or its flow stops.
    #[inline]
    pub(crate) fn sender_wakeup(&self, index: usize) -> Time {
        let pipe = &self.pipes[index];
        let wakeup = pipe.sender.next_wakeup();
        if pipe.stopped {
            wakeup
        } else {
            wakeup.min(pipe.stop).max(pipe.start)
        }
    }

    /// Lets a receiver acknowledge what is due.
    #[inline]
    pub(crate) fn run_receiver(&mut self, now: Time, index: usize) {
        let pipe = &self.pipes[index];
        let (direction, is_data) = (pipe.direction.reverse(), pipe.is_data);
        let template = pipe.packets[1];
        while let Some(out) = self.pipes[index].receiver.transmit(now, &mut self.body) {
            let packet = SimPacket {
                slot: self.contents.put_ack(out.header, &mut self.body),
                size: out.size as u16,
                ecn: out.ecn,
                ..template
            };
            if !is_data {
                self.count_orphan(packet, false);
            }
            self.enter(now, direction, packet);
        }
        let wakeup = self.pipes[index].receiver.next_wakeup();
        self.wakeups
            .bring_forward(ENDPOINTS + 2 * index + 1, wakeup, now);
    }
}
