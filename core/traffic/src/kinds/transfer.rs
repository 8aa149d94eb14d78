//! Sized transfer: a fixed number of bytes over each connection.

use super::ten_seconds;
use crate::{TrafficAction, Application, Built, TrafficEvent, TrafficSetup, Traffic, TransferHeader};
use narrows_units::{Entry, Params, Time, params};

/// Registry entry.
pub const TRAFFIC: Traffic = Traffic {
    entry: Entry {
        name: "transfer",
        summary: "Sends a given number of bytes over each connection, once",
        source: "flow completion time, RFC 5166, section 2.4",
        params: TransferParams::PARAMS,
        shorthand: &["bytes"],
        example: ten_seconds("{transfer: 10 MB}", "Arrivals through 20 Mbit/s: 10 MB, then nothing."),
    },
    whole: true,
    build,
    ..super::bulk::TRAFFIC
};

params! {
    /// Parameters.
    struct TransferParams {
        /// Payload bytes that each connection sends.
        bytes: Bytes(TransferHeader::LENGTH as f64..=1e15);
    }
}

fn build(params: &Params, setup: &TrafficSetup) -> Built {
    Ok(Box::new(OneTransfer {
        connections: setup.connections,
        bytes: TransferParams::read(params).bytes.get(),
    }))
}

struct OneTransfer {
    connections: u32,
    bytes: u64,
}

impl Application for OneTransfer {
    fn on(&mut self, _: Time, event: TrafficEvent, actions: &mut Vec<TrafficAction>) {
        if event != TrafficEvent::Start {
            return;
        }
        for connection in 0..self.connections {
            actions.push(TrafficAction::Open { connection });
            actions.push(TrafficAction::upload(connection, self.bytes));
            actions.push(TrafficAction::Close { connection });
        }
    }

    fn next_wakeup(&self) -> Time {
        Time::FAR
    }
}
