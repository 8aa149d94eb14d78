//! Requests for data, shared by the applications of class pull.

use crate::{TrafficAction, Transfer};

/// Connections opened and transfers begun so far.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Fetches {
    connections: u32,
    transfers: u32,
}

impl Fetches {
    /// Sends a request of `up` bytes for `down` bytes over the connection `open`, or over a new one if that is `None`,
    /// which closes after the answer unless it is `kept`. Returns the connection.
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
