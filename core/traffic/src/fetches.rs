//! Requests for data: what applications of the class pull have in common.

use crate::{TrafficAction, Transfer};

/// Connections opened and transfers begun so far.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Fetches {
    connections: u32,
    transfers: u32,
}

impl Fetches {
    /// Sends `up` bytes that ask for `down` bytes, over `open` if that is a connection, else over a new one, which ends
    /// with the answer unless it is `kept`. Returns the connection.
    pub(crate) fn ask(
        &mut self,
        open: Option<u32>,
        (up, down): (u64, u64),
        kept: bool,
        actions: &mut Vec<TrafficAction>,
    ) -> u32 {
        let connection = open.unwrap_or_else(|| {
            let connection = self.connections;
            actions.push(TrafficAction::Open { connection });
            self.connections += 1;
            connection
        });
        actions.push(TrafficAction::Transfer(Transfer {
            connection,
            transfer: self.transfers,
            up,
            down,
        }));
        self.transfers += 1;
        if !kept {
            actions.push(TrafficAction::Close { connection });
        }
        connection
    }
}
