//! Requests of applications, carried out in the world.

use crate::endpoints::SimEndpoint;
use crate::flow::{NONE, PendingTransfer, SimConnection};
use crate::world::{Parts, World};
use narrows_cell::Machine;
use narrows_record::TransferRow;
use narrows_traffic::{Class, TrafficAction, TrafficEvent, Transfer};
use narrows_transport::Sender;
use narrows_units::Time;

impl World {
    /// Notifies the application of flow `index` and carries out its requests.
    pub(crate) fn notify(&mut self, now: Time, index: usize, event: TrafficEvent) {
        let part = Parts::application(index);
        let flow = &mut self.flows[index];
        if now >= flow.stop {
            self.wakeups.set(part, Time::FAR);
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
        self.wakeups.set(part, wakeup);
        for action in actions.drain(..) {
            self.flows[index].offered.note(&action);
            self.perform(now, index, action);
        }
        self.actions = actions;
    }

    /// Wakes the application of flow `index`.
    pub(crate) fn wake_application(&mut self, now: Time, index: usize) {
        let event = match self.flows[index].sender {
            Some(sender) if self.endpoints[sender as usize].serial == 0 => {
                self.identify(sender);
                TrafficEvent::Start
            }
            _ => TrafficEvent::Wakeup,
        };
        self.notify(now, index, event);
    }

    fn perform(&mut self, now: Time, index: usize, action: TrafficAction) {
        match action {
            TrafficAction::Open { connection } => self.open(now, index, connection),
            TrafficAction::Transfer(transfer) => self.begin(now, index, transfer),
            TrafficAction::Grant { connection, bytes } => {
                if let Some(up) = self.up(index, connection) {
                    self.write(now, up, |sender| sender.write_seq().saturating_add(bytes));
                }
            }
            TrafficAction::Hold { connection } => {
                if let Some(up) = self.up(index, connection)
                    && let Machine::Sender(sender) = &mut self.endpoints[up as usize].machine
                {
                    sender.set_write_seq(sender.snd_nxt());
                }
            }
            TrafficAction::Close { connection } => {
                if let Some(&slot) = self.flows[index].connections.get(&connection) {
                    let connection = &mut self.connections[slot as usize];
                    connection.closing = true;
                    for sender in [connection.up, connection.down] {
                        if sender != NONE {
                            self.endpoints[sender as usize].closing = true;
                        }
                    }
                    self.retire_if_done(slot);
                }
            }
            TrafficAction::Datagram { size } => {
                if let Some(sender) = self.flows[index].sender
                    && let Machine::DatagramSource(source) =
                        &mut self.endpoints[sender as usize].machine
                {
                    source.push(size);
                    self.act(now, sender as usize);
                }
            }
        }
    }

    /// The sender of the client's stream of a connection.
    fn up(&self, flow: usize, connection: u32) -> Option<u32> {
        let slot = self.flows[flow].connections.get(&connection)?;
        Some(self.connections[*slot as usize].up)
    }

    /// Moves the end of a sender's stream as `end` specifies, and lets it react.
    fn write(&mut self, now: Time, index: u32, end: impl FnOnce(&Sender) -> u64) {
        let endpoint = &mut self.endpoints[index as usize];
        if let Machine::Sender(sender) = &mut endpoint.machine {
            let end = end(sender);
            sender.set_write_seq(end);
        }
        endpoint.poked = true;
        self.wakeups.set(self.parts.endpoint(index as usize), now);
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
        self.connections[slot as usize].up = self.add_pair(now, slot, false);
    }

    fn add_pair(&mut self, now: Time, slot: u32, down: bool) -> u32 {
        let connection = &self.connections[slot as usize];
        let free = self.free_pairs.pop();
        let index = free.unwrap_or(self.endpoints.len() as u32);
        let mut pair = self.flows[usize::from(connection.flow)]
            .connection_pair(index, connection.number, down, now)
            .expect("the parameters of the scheme were accepted at the start");
        for endpoint in &mut pair {
            endpoint.connection = slot;
        }
        if free.is_some() {
            for (place, endpoint) in (index as usize..).zip(pair) {
                self.endpoints[place] = endpoint;
            }
        } else {
            self.endpoints.extend(pair);
            let parts = self.parts.endpoint(self.endpoints.len());
            self.wakeups.grow(parts);
        }
        self.identify(index);
        index
    }

    /// Assigns a serial number to a pair.
    pub(crate) fn identify(&mut self, sender: u32) {
        self.serials += 1;
        for endpoint in &mut self.endpoints[sender as usize..][..2] {
            endpoint.serial = self.serials;
            endpoint.packet.set_serial(self.serials);
        }
    }

    fn begin(&mut self, now: Time, index: usize, transfer: Transfer) {
        let flow = &mut self.flows[index];
        let Some(&slot) = flow.connections.get(&transfer.connection) else {
            return;
        };
        // An endless transfer cannot complete.
        if transfer.is_open() {
            return;
        }
        let row = flow.transfers.begin(TransferRow {
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
        let (up, end) = (connection.up, connection.up_end);
        self.write(now, up, |_| end);
        self.await_next(slot);
    }

    /// Sets the next position in the streams of a connection that is waited for.
    fn await_next(&mut self, slot: u32) {
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
        self.endpoints[connection.up as usize + 1].awaited = up;
        if connection.down != NONE {
            self.endpoints[connection.down as usize + 1].awaited = down;
        }
    }

    /// The receiver at `receiver` has received the position that its connection waits for.
    #[cold]
    pub(crate) fn on_awaited(&mut self, now: Time, receiver: usize) {
        let SimEndpoint {
            serial, connection, ..
        } = self.endpoints[receiver];
        let slot = connection;
        let arrived = self.endpoints[receiver].rcv_nxt();
        let is_up = self.connections[slot as usize].up as usize + 1 == receiver;
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
            self.flows[index].transfers.end(pending.row, now);
            if !is_up {
                let Transfer {
                    connection,
                    transfer,
                    ..
                } = pending.transfer;
                self.notify(
                    now,
                    index,
                    TrafficEvent::Completed {
                        connection,
                        transfer,
                    },
                );
                // The application may have closed the connection and opened another in its place.
                if self.endpoints[receiver].serial != serial {
                    return;
                }
            }
        }
        self.await_next(slot);
        self.retire_if_done(slot);
    }

    /// The server sends all data up to `end`.
    fn answer(&mut self, now: Time, slot: u32, end: u64) {
        if self.connections[slot as usize].down == NONE {
            let down = self.add_pair(now, slot, true);
            let connection = &mut self.connections[slot as usize];
            connection.down = down;
            self.endpoints[down as usize].closing = connection.closing;
        }
        let down = self.connections[slot as usize].down;
        self.write(now, down, |_| end);
    }

    /// Ends a closing connection if all its data are delivered and acknowledged.
    pub(crate) fn retire_if_done(&mut self, slot: u32) {
        let connection = &self.connections[slot as usize];
        if connection.up == NONE || !connection.closing || !connection.pending.is_empty() {
            return;
        }
        let senders = [connection.up, connection.down];
        let senders = senders.into_iter().filter(|&sender| sender != NONE);
        let complete = |index: u32| match &self.endpoints[index as usize].machine {
            Machine::Sender(sender) => sender.is_complete(),
            _ => true,
        };
        if !senders.clone().all(complete) {
            return;
        }
        let (index, number) = (usize::from(connection.flow), connection.number);
        for sender in senders {
            for place in [sender as usize, sender as usize + 1] {
                let endpoint = &mut self.endpoints[place];
                if endpoint.is_data {
                    endpoint.machine.count(&mut self.flows[index].past);
                }
                // Packets still in flight no longer belong to a pair.
                endpoint.serial = 0;
                self.wakeups.set(self.parts.endpoint(place), Time::FAR);
            }
            self.free_pairs.push(sender);
        }
        self.connections[slot as usize].up = NONE;
        self.flows[index].connections.remove(&number);
        self.free_connections.push(slot);
    }
}
