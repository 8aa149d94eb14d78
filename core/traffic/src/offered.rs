//! Load offered by an application.

use crate::{TrafficAction, Transfer};

/// Counts the requests of an application, for the record: the load actually offered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Offered {
    /// Bytes: payload of transfers (of the answers, where the server answers), IP bytes of datagrams.
    pub bytes: u64,
    /// Transfers begun.
    pub transfers: u64,
    /// Connections opened.
    pub connections: u64,
    /// Datagrams sent.
    pub datagrams: u64,
    /// True if an unlimited supply was granted, so that the load is undefined.
    pub unlimited: bool,
}

impl Offered {
    /// Counts an action.
    #[inline]
    pub fn note(&mut self, action: &TrafficAction) {
        match *action {
            TrafficAction::Open { .. } => self.connections += 1,
            TrafficAction::Transfer(Transfer { up, down, .. }) => {
                self.transfers += 1;
                if up != Transfer::OPEN {
                    self.bytes += if down > 0 { down } else { up };
                }
            }
            TrafficAction::Grant { bytes, .. } if bytes == u64::MAX => self.unlimited = true,
            TrafficAction::Grant { bytes, .. } => self.bytes += bytes,
            TrafficAction::Datagram { size } => {
                self.datagrams += 1;
                self.bytes += u64::from(size);
            }
            TrafficAction::Hold { .. } | TrafficAction::Close { .. } => {}
        }
    }

    /// The bytes and their mean rate over `seconds`; `None` for an unlimited supply.
    pub fn load(&self, seconds: f64) -> Option<(u64, f64)> {
        let bps = self.bytes as f64 * 8.0 / seconds;
        (!self.unlimited && seconds > 0.0).then_some((self.bytes, bps))
    }
}
