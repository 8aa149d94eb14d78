//! Actions of applications on a flow's connections: transfers, and answers to them.

use super::connection::Connection;
use super::{Node, open};
use crate::clock::{EventLoop, RunClock};
use crate::link::Link;
use crate::{EndpointOutcome, EndpointTask};
use narrows_cell::SchemeRef;
use narrows_cell::{Context, RunError};
use narrows_sys::socket;
use narrows_traffic::{TrafficAction, TransferHeader};
use narrows_transport::{Config, Receiver, Sender};
use narrows_units::{Stream, Time};
use std::os::fd::AsFd;

impl Node<'_> {
    /// Carries out an action that the application requested at `at`; returns the connection that it
    /// concerns.
    pub(super) fn perform(
        &mut self,
        at: Time,
        action: TrafficAction,
        sleeper: &mut EventLoop,
    ) -> Result<Option<u64>, RunError> {
        let key = match action {
            TrafficAction::Open { connection }
            | TrafficAction::Grant { connection, .. }
            | TrafficAction::Hold { connection }
            | TrafficAction::Close { connection } => u64::from(connection),
            TrafficAction::Transfer(transfer) => u64::from(transfer.connection),
            TrafficAction::Datagram { .. } => return Ok(None),
        };
        if let TrafficAction::Open { connection } = action {
            let fd = if let Some(fd) = self.first.take() {
                fd
            } else {
                let fd = open(self.task)?;
                let connected = socket::connect(fd.as_fd(), self.task.server());
                connected.could_not("connect a UDP socket")?;
                fd
            };
            self.opened += 1;
            let receiver = Receiver::new(&self.configs[1]);
            let mut endpoint = Connection::new(Some(connection), receiver, false);
            let mut sender = sender(self.task, &self.configs[0], connection, false, at)?;
            sender.set_write_seq(0);
            endpoint.sender = Some(sender);
            let link = Link::new(fd, endpoint);
            sleeper.until_readable(link.socket(), key)?;
            self.links.insert(key, link);
            return Ok(Some(key));
        }
        let Some(link) = self.links.get_mut(&key) else {
            return Ok(None);
        };
        let connection = &mut link.endpoint;
        let Some(sender) = &mut connection.sender else {
            return Ok(None);
        };
        match action {
            TrafficAction::Transfer(transfer) => {
                let header = TransferHeader {
                    transfer,
                    started: at,
                };
                connection.written.push(connection.end, &header);
                if !transfer.is_open() {
                    connection.end += transfer.up;
                    sender.set_write_seq(connection.end);
                }
                if transfer.down > 0 {
                    connection.awaited_end += transfer.down;
                    connection
                        .awaited
                        .push_back((transfer.transfer, connection.awaited_end));
                }
            }
            TrafficAction::Grant { bytes, .. } => {
                sender.set_write_seq(sender.write_seq().saturating_add(bytes));
            }
            TrafficAction::Hold { .. } => sender.set_write_seq(sender.snd_nxt()),
            TrafficAction::Close { .. } => connection.closing = true,
            TrafficAction::Open { .. } | TrafficAction::Datagram { .. } => {}
        }
        Ok(Some(key))
    }
}

/// The server has received all of a transfer: it is complete, or is answered.
pub(super) fn answer(
    connection: &mut Connection,
    header: &TransferHeader,
    task: &EndpointTask,
    config: &Config,
    clock: &RunClock,
    outcome: &mut EndpointOutcome,
) -> Result<(), RunError> {
    let transfer = &header.transfer;
    connection.number = Some(transfer.connection);
    let now = clock.now();
    if transfer.down == 0 {
        outcome.ended.push((transfer.transfer, now.ns()));
        return Ok(());
    }
    connection.end += transfer.down;
    if connection.sender.is_none() {
        connection.sender = Some(sender(task, config, transfer.connection, true, now)?);
    }
    if let Some(sender) = &mut connection.sender {
        sender.set_write_seq(connection.end);
    }
    Ok(())
}

/// The sender of one stream. Its random numbers are those of the same stream in the simulator.
fn sender(
    task: &EndpointTask,
    config: &Config,
    connection: u32,
    down: bool,
    now: Time,
) -> Result<Sender, RunError> {
    let flow = task.flow.flow;
    let name = match (connection, down) {
        (0, false) => format!("flow/{flow}"),
        (_, false) => format!("flow/{flow}/{connection}"),
        (_, true) => format!("flow/{flow}/{connection}/down"),
    };
    let SchemeRef::Native(scheme, params) = &task.flow.scheme else {
        return Err(RunError::Internal("this scheme is not a native one".into()));
    };
    #[cfg(feature = "event-log")]
    let scheme = &super::event_log::log_events(scheme);
    let random = Stream::new(task.cell.seed, &name);
    let refused = |error| RunError::Input(format!("flow {flow}: {error}"));
    let files = &task.cell.files;
    let sender =
        Sender::new(config.clone(), scheme, params, now, random, files).map_err(refused)?;
    sender.expect_own_decisions(scheme.name).map_err(refused)?;
    Ok(sender)
}
