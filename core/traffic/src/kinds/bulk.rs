//! Bulk transfer: there is always more to send.

use super::ten_seconds;
use crate::{TrafficAction, Application, Built, Class, TrafficEvent, TrafficSetup, Traffic, Transfer};
use narrows_units::{Entry, Params, Time};

/// Registry entry.
pub const TRAFFIC: Traffic = Traffic {
    entry: Entry {
        name: "bulk",
        summary: "Sends without end over one connection or several",
        source: "the long-lived flow of every comparison; iperf -P n",
        params: &[],
        shorthand: &[],
        example: ten_seconds("bulk", "Arrivals through 20 Mbit/s: as much as the scheme allows."),
    },
    class: Class::Push,
    parallel: true,
    whole: false,
    build,
};

fn build(_: &Params, setup: &TrafficSetup) -> Built {
    Ok(Box::new(Bulk {
        connections: setup.connections,
    }))
}

struct Bulk {
    connections: u32,
}

impl Application for Bulk {
    fn on(&mut self, _: Time, event: TrafficEvent, actions: &mut Vec<TrafficAction>) {
        if event != TrafficEvent::Start {
            return;
        }
        for connection in 0..self.connections {
            actions.push(TrafficAction::Open { connection });
            actions.push(TrafficAction::upload(connection, Transfer::OPEN));
            actions.push(TrafficAction::Grant {
                connection,
                bytes: u64::MAX,
            });
        }
    }

    fn next_wakeup(&self) -> Time {
        Time::FAR
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_connection_sends_without_end() {
        let setup = TrafficSetup {
            seed: 1,
            flow: 1,
            connections: 3,
        };
        let mut bulk = TRAFFIC.build(&Params::default(), &setup).unwrap();
        let mut actions = Vec::new();
        bulk.on(Time::ZERO, TrafficEvent::Start, &mut actions);
        assert_eq!(actions.len(), 9);
        assert!(matches!(actions[7], TrafficAction::Transfer(transfer) if transfer.is_open()));
        assert_eq!(bulk.next_wakeup(), Time::FAR);
    }
}
