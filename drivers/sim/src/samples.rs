//! Samples of senders and queues, at regular intervals.

use crate::applications::Applications;
use crate::packet_exchange::PacketExchange;
use narrows_cell::{state_row, trace_rows};
use narrows_record::{QueueRow, StateRow, TraceRow};
use narrows_traffic::Class;
use narrows_units::{Span, Time};

pub(crate) struct Samples {
    pub(crate) states: Vec<StateRow>,
    pub(crate) traces: Vec<TraceRow>,
    pub(crate) queues: Vec<QueueRow>,
    interval: Span,
}

impl Samples {
    pub(crate) fn new(interval: Span) -> Self {
        Samples {
            states: Vec::new(),
            traces: Vec::new(),
            queues: Vec::new(),
            interval,
        }
    }

    /// Number of rows.
    pub(crate) fn len(&self) -> usize {
        self.states.len() + self.traces.len() + self.queues.len()
    }

    /// Samples all flows and bottlenecks, and returns when to do so next.
    pub(crate) fn take(
        &mut self,
        now: Time,
        applications: &Applications,
        exchange: &mut PacketExchange,
    ) -> Time {
        for flow in &applications.flows.all {
            if now < flow.start || now > flow.stop || flow.class == Class::Datagrams {
                continue;
            }
            let senders = applications.data_senders(flow);
            let senders = senders.filter_map(|index| exchange.endpoints.get(index));
            let mut snapshots = senders.filter_map(|sender| sender.machine.snapshot());
            let (number, time) = (flow.number, now.ns());
            let alone = flow.sender.is_some() || flow.opened == 1;
            let only = if alone { snapshots.next() } else { None };
            let snapshot = only.unwrap_or_else(|| flow.past.together(snapshots));
            self.states.push(state_row(number, time, &snapshot));
            self.traces.extend(trace_rows(number, time, &snapshot));
        }
        let network = &mut exchange.transit.network;
        network.catch_up(now);
        for stage in network.stages() {
            if stage.element.server().is_some() {
                let backlog = stage.element.queued();
                self.queues.push(QueueRow {
                    element: stage.name.to_owned(),
                    time_ns: now.ns(),
                    backlog_bytes: backlog.bytes,
                    backlog_packets: backlog.packets,
                });
            }
        }
        now + self.interval
    }
}
