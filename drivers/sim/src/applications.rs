//! Requests of applications, carried out in the world.

use crate::flow::{NONE, PendingTransfer, SimConnection, SimPipe};
use crate::packet::{SimPacket, SimPacketKind};
use crate::world::{ENDPOINTS, World};
use narrows_record::TransferRow;
use narrows_traffic::{Class, Stamp, TrafficAction, TrafficEvent, Transfer};
use narrows_units::{Ecn, Time};

impl World {
    /// Tells the application of flow `index` something and does what it asks for.
    pub(crate) fn tell(&mut self, now: Time, index: usize, event: TrafficEvent) {
        let flow = &mut self.flows[index];
        if now >= flow.stop {
            self.applications.set(index, Time::FAR);
            return;
        }
        let mut actions = std::mem::take(&mut self.actions);
        flow.application.on(now, event, &mut actions);
        let wakeup = flow.application.next_wakeup();
        let wakeup = if wakeup < flow.stop {
            wakeup
        } else {
            Time::FAR
        };
        self.applications.set(index, wakeup);
        for action in actions.drain(..) {
            self.flows[index].offered.note(&action);
            self.perform(now, index, action);
        }
        self.actions = actions;
        self.schedule_sampler();
    }

    /// Lets the applications act that wanted to by now.
    pub(crate) fn run_applications(&mut self, now: Time) {
        loop {
            let (at, index) = self.applications.earliest();
            if at > now {
                return;
            }
            let flow = &self.flows[index];
            let first = flow.class == Class::Datagrams && flow.datagrams.serial == 0;
            if first {
                self.serials += 1;
                self.flows[index].datagrams.serial = self.serials;
            }
            self.tell(
                now,
                index,
                if first {
                    TrafficEvent::Start
                } else {
                    TrafficEvent::Wakeup
                },
            );
        }
    }

    fn perform(&mut self, now: Time, index: usize, action: TrafficAction) {
        match action {
            TrafficAction::Open { connection } => self.open(now, index, connection),
            TrafficAction::Transfer(transfer) => self.begin(now, index, transfer),
            TrafficAction::Grant { connection, bytes } => {
                if let Some(pipe) = self.up_pipe(index, connection) {
                    let sender = &mut self.pipes[pipe].sender;
                    sender.set_write_seq(sender.write_seq().saturating_add(bytes));
                    self.poke(now, pipe);
                }
            }
            TrafficAction::Hold { connection } => {
                if let Some(pipe) = self.up_pipe(index, connection) {
                    let sender = &mut self.pipes[pipe].sender;
                    sender.set_write_seq(sender.snd_nxt());
                }
            }
            TrafficAction::Close { connection } => {
                if let Some(&slot) = self.flows[index].connections.get(&connection) {
                    let connection = &mut self.connections[slot as usize];
                    connection.closing = true;
                    for pipe in [connection.up, connection.down] {
                        if pipe != NONE {
                            self.pipes[pipe as usize].closing = true;
                        }
                    }
                    self.retire_if_done(slot);
                }
            }
            TrafficAction::Datagram { size } => self.send_datagram(now, index, size),
        }
    }

    fn up_pipe(&self, index: usize, connection: u32) -> Option<usize> {
        let slot = *self.flows[index].connections.get(&connection)?;
        Some(self.connections[slot as usize].up as usize)
    }

    /// The sender of `pipe` has something new to think about.
    fn poke(&mut self, now: Time, pipe: usize) {
        self.pipes[pipe].poked = true;
        self.wakeups.set(ENDPOINTS + 2 * pipe, now);
    }

    fn open(&mut self, now: Time, index: usize, number: u32) {
        let connection = SimConnection {
            flow: index as u16,
            number,
            up: NONE,
            down: NONE,
            closing: false,
            up_end: 0,
            down_end: 0,
            pending: std::collections::VecDeque::new(),
        };
        let slot = if let Some(slot) = self.free_connections.pop() {
            self.connections[slot as usize] = connection;
            slot
        } else {
            self.connections.push(connection);
            (self.connections.len() - 1) as u32
        };
        let flow = &mut self.flows[index];
        flow.connections.insert(number, slot);
        flow.opened += 1;
        let pipe = self.add_pipe(now, slot, false);
        self.connections[slot as usize].up = pipe;
    }

    fn add_pipe(&mut self, now: Time, slot: u32, down: bool) -> u32 {
        let connection = &self.connections[slot as usize];
        let (flow, number) = (connection.flow, connection.number);
        self.serials += 1;
        let free = self.free_pipes.pop();
        let place = free.unwrap_or(self.pipes.len() as u32);
        let pipe: SimPipe = self.flows[usize::from(flow)]
            .pipe(slot, place, number, self.serials, down, now)
            .expect("the parameters of the scheme were accepted at the start");
        if free.is_some() {
            self.pipes[place as usize] = pipe;
        } else {
            self.pipes.push(pipe);
            self.wakeups.grow(ENDPOINTS + 2 * self.pipes.len());
        }
        place
    }

    fn begin(&mut self, now: Time, index: usize, transfer: Transfer) {
        let flow = &mut self.flows[index];
        let Some(&slot) = flow.connections.get(&transfer.connection) else {
            return;
        };
        // What has no end cannot complete.
        if transfer.is_open() {
            return;
        }
        let row = flow.transfers.len();
        flow.transfers.push(TransferRow {
            flow: flow.number,
            connection: transfer.connection,
            transfer: transfer.transfer,
            bytes: match flow.class {
                Class::Pull => transfer.down,
                Class::Push | Class::Datagrams => transfer.up,
            },
            started_ns: now.ns(),
            ended_ns: None,
        });
        let connection = &mut self.connections[slot as usize];
        connection.up_end += transfer.up;
        connection.down_end += transfer.down;
        connection.pending.push_back(PendingTransfer {
            transfer,
            row,
            up_end: connection.up_end,
            down_end: connection.down_end,
            answered: false,
        });
        let (up, supply) = (connection.up as usize, connection.up_end);
        self.pipes[up].sender.set_write_seq(supply);
        self.poke(now, up);
        self.watch(slot);
    }

    /// Tells the pipes of a connection which position in their streams matters next.
    fn watch(&mut self, slot: u32) {
        let connection = &self.connections[slot as usize];
        if connection.up == NONE {
            return;
        }
        let pending = &connection.pending;
        let up = pending.iter().find(|transfer| !transfer.answered);
        let down = pending.iter().find(|transfer| transfer.answered);
        let (up, down) = (
            up.map_or(u64::MAX, |transfer| transfer.up_end),
            down.map_or(u64::MAX, |transfer| transfer.down_end),
        );
        self.pipes[connection.up as usize].watch = up;
        if connection.down != NONE {
            self.pipes[connection.down as usize].watch = down;
        }
    }

    /// The receiver of `pipe` has got what its connection waits for.
    #[cold]
    pub(crate) fn on_watched(&mut self, now: Time, pipe: usize) {
        let (slot, serial) = (self.pipes[pipe].connection, self.pipes[pipe].serial);
        let arrived = self.pipes[pipe].receiver.rcv_nxt();
        let is_up = self.connections[slot as usize].up as usize == pipe;
        let index = usize::from(self.connections[slot as usize].flow);
        loop {
            let connection = &mut self.connections[slot as usize];
            let due = connection.pending.iter_mut().position(|transfer| {
                transfer.answered != is_up
                    && arrived
                        >= if is_up {
                            transfer.up_end
                        } else {
                            transfer.down_end
                        }
            });
            let Some(position) = due else { break };
            let pending = connection.pending[position];
            if is_up && pending.transfer.down > 0 {
                connection.pending[position].answered = true;
                self.answer(now, slot, pending.down_end);
                continue;
            }
            connection.pending.remove(position);
            self.flows[index].transfers[pending.row].ended_ns = Some(now.ns());
            if !is_up {
                let Transfer {
                    connection,
                    transfer,
                    ..
                } = pending.transfer;
                self.tell(
                    now,
                    index,
                    TrafficEvent::Completed {
                        connection,
                        transfer,
                    },
                );
                // The application may have closed the connection and opened another in its place.
                if self.pipes[pipe].serial != serial {
                    return;
                }
            }
        }
        self.watch(slot);
        self.retire_if_done(slot);
    }

    /// The server sends everything up to `end`.
    fn answer(&mut self, now: Time, slot: u32, end: u64) {
        if self.connections[slot as usize].down == NONE {
            let pipe = self.add_pipe(now, slot, true);
            self.pipes[pipe as usize].closing = self.connections[slot as usize].closing;
            self.connections[slot as usize].down = pipe;
        }
        let pipe = self.connections[slot as usize].down as usize;
        self.pipes[pipe].sender.set_write_seq(end);
        self.poke(now, pipe);
    }

    /// Ends a connection that is to be closed if everything on it is through and acknowledged.
    pub(crate) fn retire_if_done(&mut self, slot: u32) {
        let connection = &self.connections[slot as usize];
        if connection.up == NONE || !connection.closing || !connection.pending.is_empty() {
            return;
        }
        let pipes = [connection.up, connection.down];
        let mut each = pipes.iter().filter(|&&pipe| pipe != NONE);
        if !each.all(|&pipe| self.pipes[pipe as usize].sender.is_complete()) {
            return;
        }
        let (index, number) = (usize::from(connection.flow), connection.number);
        for place in pipes.into_iter().filter(|&pipe| pipe != NONE) {
            let pipe = &mut self.pipes[place as usize];
            self.flows[index].retire(pipe);
            // What is still under way belongs to nobody from here on.
            pipe.serial = 0;
            let part = ENDPOINTS + 2 * place as usize;
            self.wakeups.set(part, Time::FAR);
            self.wakeups.set(part + 1, Time::FAR);
            self.free_pipes.push(place);
        }
        self.connections[slot as usize].up = NONE;
        self.flows[index].connections.remove(&number);
        self.free_connections.push(slot);
    }

    fn send_datagram(&mut self, now: Time, index: usize, size: u32) {
        let flow = &mut self.flows[index];
        let stamp = Stamp {
            sequence: flow.datagrams.sequence,
            sent: now,
        };
        flow.datagrams.sequence += 1;
        flow.datagrams.bytes += u64::from(size);
        let packet = SimPacket {
            uid: 0,
            slot: self.contents.stamps.put(stamp),
            kind: SimPacketKind::Datagram,
            size: size as u16,
            pipe: NONE,
            serial: flow.datagrams.serial,
            flow: flow.number,
            route: flow.routes[0],
            ecn: Ecn::NotEct,
            dscp: flow.dscp,
            corrupt: false,
        };
        let direction = flow.direction;
        self.enter(now, direction, packet);
    }
}
