//! Applications and their connections: requests are carried out by endpoints.

use crate::endpoint_state::SimEndpoint;
use crate::flow::{FlowState, Flows, NONE, PendingTransfer, SimConnection};
use crate::packet_exchange::PacketExchange;
use narrows_cell::Machine;
use narrows_record::TransferRow;
use narrows_record::completions::Completions;
use narrows_traffic::{Class, TrafficAction, TrafficEvent, Transfer};
use narrows_units::Time;

pub(crate) struct Applications {
    pub(crate) flows: Flows,
    /// Slots of ended ones are reused.
    connections: Vec<SimConnection>,
    free_connections: Vec<u32>,
    /// Room for the requests of an application.
    actions: Vec<TrafficAction>,
}

impl Applications {
    pub(crate) fn new(flows: Flows) -> Self {
        Applications {
            flows,
            connections: Vec::new(),
            free_connections: Vec::new(),
            actions: Vec::new(),
        }
    }

    /// Indices of the current senders of a flow's data.
    pub(crate) fn data_senders(&self, flow: &FlowState) -> impl Iterator<Item = usize> {
        let connections = flow.connections.values().map(|&slot| {
            let connection = &self.connections[slot as usize];
            match flow.class {
                Class::Pull => connection.down,
                Class::Push | Class::Datagrams => connection.up,
            }
        });
        let senders = flow.sender.into_iter().chain(connections);
        senders.map(|index| index as usize)
    }

    /// The transfers that applications have begun, flow by flow: those that are not in the histograms, and the
    /// histograms.
    pub(crate) fn take_transfers(&mut self) -> (Vec<TransferRow>, Completions) {
        let (mut rows, mut counted) = (Vec::new(), Completions::default());
        for flow in &mut self.flows.all {
            let (each, done) = flow.transfers.take();
            rows.extend(each);
            counted.join(done);
        }
        (rows, counted)
    }

    /// Notifies the application of flow `index` and carries out its requests.
    pub(crate) fn notify(
        &mut self,
        now: Time,
        index: usize,
        event: TrafficEvent,
        exchange: &mut PacketExchange,
    ) {
        let flow = &mut self.flows.all[index];
        if now >= flow.stop {
            exchange.clock.wake_application(index, Time::FAR);
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
        exchange.clock.wake_application(index, wakeup);
        for action in actions.drain(..) {
            self.flows.all[index].offered.note(&action);
            self.perform(now, index, action, exchange);
        }
        self.actions = actions;
    }

    /// Wakes the application of flow `index`.
    pub(crate) fn wake(&mut self, now: Time, index: usize, exchange: &mut PacketExchange) {
        let event = match self.flows.all[index].sender {
            Some(sender) if exchange.endpoints[sender as usize].serial == 0 => {
                exchange.identify(sender);
                TrafficEvent::Start
            }
            _ => TrafficEvent::Wakeup,
        };
        self.notify(now, index, event, exchange);
    }

    fn perform(
        &mut self,
        now: Time,
        index: usize,
        action: TrafficAction,
        exchange: &mut PacketExchange,
    ) {
        match action {
            TrafficAction::Open { connection } => self.open(now, index, connection, exchange),
            TrafficAction::Transfer(transfer) => self.begin(now, index, transfer, exchange),
            TrafficAction::Grant { connection, bytes } => {
                if let Some(up) = self.up(index, connection) {
                    exchange.write(now, up, |sender| sender.write_seq().saturating_add(bytes));
                }
            }
            TrafficAction::Hold { connection } => {
                if let Some(up) = self.up(index, connection)
                    && let Machine::Sender(sender) = &mut exchange.endpoints[up as usize].machine
                {
                    sender.set_write_seq(sender.snd_nxt());
                }
            }
            TrafficAction::Close { connection } => {
                if let Some(&slot) = self.flows.all[index].connections.get(&connection) {
                    let connection = &mut self.connections[slot as usize];
                    connection.closing = true;
                    for sender in [connection.up, connection.down] {
                        if sender != NONE {
                            exchange.endpoints[sender as usize].closing = true;
                        }
                    }
                    self.retire_if_done(slot, exchange);
                }
            }
            TrafficAction::Datagram { size } => {
                if let Some(sender) = self.flows.all[index].sender
                    && let Machine::DatagramSource(source) =
                        &mut exchange.endpoints[sender as usize].machine
                {
                    source.push(size);
                    exchange.act(now, sender as usize, &mut self.flows);
                }
            }
        }
    }

    /// The sender of the client's stream of a connection.
    fn up(&self, flow: usize, connection: u32) -> Option<u32> {
        let slot = self.flows.all[flow].connections.get(&connection)?;
        Some(self.connections[*slot as usize].up)
    }

    fn open(&mut self, now: Time, index: usize, number: u32, exchange: &mut PacketExchange) {
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
        let flow = &mut self.flows.all[index];
        flow.connections.insert(number, slot);
        flow.opened += 1;
        self.connections[slot as usize].up = self.add_pair(now, slot, false, exchange);
    }

    fn add_pair(&mut self, now: Time, slot: u32, down: bool, exchange: &mut PacketExchange) -> u32 {
        let connection = &self.connections[slot as usize];
        let mut pair = self.flows.all[usize::from(connection.flow)]
            .connection_pair(exchange.next_pair(), connection.number, down, now)
            .expect("the parameters of the scheme were accepted at the start");
        for endpoint in &mut pair {
            endpoint.connection = slot;
        }
        exchange.add_pair(pair)
    }

    fn begin(
        &mut self,
        now: Time,
        index: usize,
        transfer: Transfer,
        exchange: &mut PacketExchange,
    ) {
        let flow = &mut self.flows.all[index];
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
        exchange.write(now, up, |_| end);
        self.await_next(slot, exchange);
    }

    /// Sets the next position in the streams of a connection that is waited for.
    fn await_next(&mut self, slot: u32, exchange: &mut PacketExchange) {
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
        exchange.endpoints[connection.up as usize + 1].awaited = up;
        if connection.down != NONE {
            exchange.endpoints[connection.down as usize + 1].awaited = down;
        }
    }

    /// Called when the receiver with the index `receiver` has data up to the position that its connection waits for.
    #[cold]
    pub(crate) fn on_awaited(&mut self, now: Time, receiver: usize, exchange: &mut PacketExchange) {
        let SimEndpoint {
            serial, connection, ..
        } = exchange.endpoints[receiver];
        let slot = connection;
        let arrived = exchange.endpoints[receiver].rcv_nxt();
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
                self.answer(now, slot, pending.down_end, exchange);
                continue;
            }
            connection.pending.remove(position);
            self.flows.all[index].transfers.end(pending.row, now);
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
                    exchange,
                );
                // The application may have closed the connection and opened another in its place.
                if exchange.endpoints[receiver].serial != serial {
                    return;
                }
            }
        }
        self.await_next(slot, exchange);
        self.retire_if_done(slot, exchange);
    }

    /// The server sends all data up to `end`.
    fn answer(&mut self, now: Time, slot: u32, end: u64, exchange: &mut PacketExchange) {
        if self.connections[slot as usize].down == NONE {
            let down = self.add_pair(now, slot, true, exchange);
            let connection = &mut self.connections[slot as usize];
            connection.down = down;
            exchange.endpoints[down as usize].closing = connection.closing;
        }
        let down = self.connections[slot as usize].down;
        exchange.write(now, down, |_| end);
    }

    /// Ends a closing connection if all its data are delivered and acknowledged.
    pub(crate) fn retire_if_done(&mut self, slot: u32, exchange: &mut PacketExchange) {
        let connection = &self.connections[slot as usize];
        if connection.up == NONE || !connection.closing || !connection.pending.is_empty() {
            return;
        }
        let senders = [connection.up, connection.down];
        let senders = senders.into_iter().filter(|&sender| sender != NONE);
        let complete = |index: u32| match &exchange.endpoints[index as usize].machine {
            Machine::Sender(sender) => sender.is_complete(),
            _ => true,
        };
        if !senders.clone().all(complete) {
            return;
        }
        let (index, number) = (usize::from(connection.flow), connection.number);
        for sender in senders {
            for endpoint in &exchange.endpoints[sender as usize..][..2] {
                if endpoint.is_data {
                    endpoint.machine.count(&mut self.flows.all[index].past);
                }
            }
            exchange.retire_pair(sender);
        }
        self.connections[slot as usize].up = NONE;
        self.flows.all[index].connections.remove(&number);
        self.free_connections.push(slot);
    }
}
