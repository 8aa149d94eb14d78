//! Numbers of connections, by which a record distinguishes them.

use super::packet::Tuple;
use narrows_net::Direction;
use narrows_units::Time;
use serde_json::{Value, json};
use std::collections::HashMap;

/// Connections beyond this number share the number 0 ("no flow"): cells have no more flows.
pub(super) const MAX_CONNECTIONS: usize = 10_000;

/// All connections in the order of their first packets.
#[derive(Debug, Default)]
pub(super) struct Connections {
    numbers: HashMap<Tuple, u16>,
    all: Vec<Connection>,
}

/// One connection: all packets between two ports, or between two addresses without ports.
#[derive(Clone, Debug)]
pub(super) struct Connection {
    /// As seen from the program.
    pub(super) tuple: Tuple,
    pub(super) first: Time,
    pub(super) last: Time,
    /// Packets and bytes, by direction.
    pub(super) traffic: [(u64, u64); 2],
}

impl Connection {
    /// The direction that carried more bytes: that of the data.
    pub(super) fn data_direction(&self) -> &'static str {
        if self.traffic[1].1 > self.traffic[0].1 {
            "backward"
        } else {
            "forward"
        }
    }

    /// Its protocol and destination, for people.
    pub(super) fn label(&self) -> String {
        let peer = match self.tuple.to.port() {
            0 => self.tuple.to.ip().to_string(),
            _ => self.tuple.to.to_string(),
        };
        format!("{} to {peer}", self.tuple.protocol_name())
    }
}

impl Connections {
    /// The number of the connection of a packet; `tuple` is in the direction of the program's
    /// packets.
    #[inline]
    pub(super) fn note(&mut self, tuple: Tuple, direction: Direction, at: Time, size: u32) -> u16 {
        let number = match self.numbers.get(&tuple) {
            Some(&number) => number,
            None if self.all.len() < MAX_CONNECTIONS => self.add(tuple, at),
            None => return 0,
        };
        let connection = &mut self.all[usize::from(number) - 1];
        connection.last = at;
        let traffic = &mut connection.traffic[direction as usize];
        traffic.0 += 1;
        traffic.1 += u64::from(size);
        number
    }

    #[cold]
    fn add(&mut self, tuple: Tuple, at: Time) -> u16 {
        self.all.push(Connection {
            tuple,
            first: at,
            last: at,
            traffic: [(0, 0); 2],
        });
        let number = self.all.len() as u16;
        self.numbers.insert(tuple, number);
        number
    }

    /// Number and connection, in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u16, &Connection)> {
        (1..).zip(&self.all)
    }

    /// The table of a record.
    pub(super) fn table(&self) -> Value {
        let rows = self.iter().map(|(number, connection)| {
            let [up, down] = connection.traffic;
            json!({
                "flow": number,
                "protocol": connection.tuple.protocol_name(),
                "inside": connection.tuple.from.to_string(),
                "outside": connection.tuple.to.to_string(),
                "first_ns": connection.first.ns(),
                "last_ns": connection.last.ns(),
                "up_packets": up.0, "up_bytes": up.1,
                "down_packets": down.0, "down_bytes": down.1,
            })
        });
        json!({"format": "narrows/connections/1", "connections": rows.collect::<Vec<_>>()})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_are_numbered_in_order() {
        let mut connections = Connections::default();
        let tuple = |port: u16| Tuple {
            protocol: 6,
            from: format!("198.18.0.2:{port}").parse().unwrap(),
            to: "198.18.0.1:80".parse().unwrap(),
        };
        let at = Time::from_ns;
        assert_eq!(connections.note(tuple(7), Direction::Forward, at(1), 60), 1);
        assert_eq!(connections.note(tuple(8), Direction::Forward, at(2), 60), 2);
        assert_eq!(
            connections.note(tuple(7), Direction::Backward, at(3), 1500),
            1
        );
        let first = connections.iter().next().unwrap().1.clone();
        assert_eq!((first.first, first.last), (at(1), at(3)));
        assert_eq!(first.traffic, [(1, 60), (1, 1500)]);
        assert_eq!(first.data_direction(), "backward");
        assert_eq!(first.label(), "tcp to 198.18.0.1:80");
        let row = &connections.table()["connections"][0];
        assert_eq!(
            (row["up_bytes"].as_u64(), row["flow"].as_u64()),
            (Some(60), Some(1))
        );
        for port in 0..MAX_CONNECTIONS as u16 + 5 {
            connections.note(tuple(port), Direction::Forward, at(4), 1);
        }
        assert_eq!(
            connections.note(tuple(60_000), Direction::Forward, at(5), 1),
            0
        );
    }
}
