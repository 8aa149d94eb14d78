//! The conformance kit: the contract of every kind of traffic.

use crate::{Class, Traffic, TrafficAction, TrafficEvent, TrafficSetup};
use narrows_units::{Params, Span, Stream, Time};
use std::collections::BTreeSet;

/// Plays `steps` events to an application with the defaults of its kind and these parameters (base units), and checks
/// that time advances, that it takes actions of its class only, and that connections exist while it uses them.
/// Transfers are completed after a random time.
///
/// # Panics
/// When the application breaks the contract of [`Application`](crate::Application).
pub fn check(traffic: &Traffic, params: &serde_json::Value, seed: u64, steps: u32) {
    let name = traffic.entry.name;
    let given = params.as_object().expect("parameters are an object");
    let params = Params::from_json(traffic.entry.params, given)
        .unwrap_or_else(|error| panic!("{name}: {error}"));
    let setup = TrafficSetup {
        seed,
        flow: 1,
        connections: 1,
    };
    let mut application = traffic
        .build(&params, &setup)
        .unwrap_or_else(|error| panic!("{name}: {error}"));
    let mut chance = Stream::new(seed, "testing");
    let (mut now, mut event) = (Time::ZERO, TrafficEvent::Start);
    let (mut open, mut opened) = (BTreeSet::new(), 0);
    // Transfers with an answer, with the times at which that has arrived.
    let mut answers: Vec<(Time, u32, u32)> = Vec::new();
    for _ in 0..steps {
        let mut actions = Vec::new();
        application.on(now, event, &mut actions);
        for action in actions {
            let of_connections = !matches!(action, TrafficAction::Datagram { .. });
            assert_eq!(
                of_connections,
                traffic.class != Class::Datagrams,
                "{name}: {action:?} is not an action of its class"
            );
            match action {
                TrafficAction::Open { connection } => {
                    assert_eq!(
                        connection, opened,
                        "{name}: connections are numbered in order"
                    );
                    opened += 1;
                    open.insert(connection);
                }
                TrafficAction::Transfer(transfer) => {
                    let connection = transfer.connection;
                    assert!(
                        open.contains(&connection),
                        "{name}: {connection} is not open"
                    );
                    if transfer.down > 0 {
                        let took = Span::from_us(1_000 + chance.below(100_000));
                        answers.push((now + took, connection, transfer.transfer));
                    }
                }
                TrafficAction::Grant { connection, .. } | TrafficAction::Hold { connection } => {
                    assert!(
                        open.contains(&connection),
                        "{name}: {connection} is not open"
                    );
                }
                TrafficAction::Close { connection } => {
                    assert!(open.remove(&connection), "{name}: {connection} is not open");
                }
                TrafficAction::Datagram { size } => {
                    assert!(size > 0, "{name}: a datagram has a size");
                }
            }
        }
        let wakeup = application.next_wakeup();
        assert!(
            wakeup > now,
            "{name}: the wake-up {wakeup:?} is not after {now:?}"
        );
        let first = answers
            .iter()
            .map(|answer| answer.0)
            .min()
            .unwrap_or(Time::FAR);
        if wakeup == Time::FAR && first == Time::FAR {
            return;
        }
        now = wakeup.min(first);
        event = if first <= wakeup {
            let at = answers.iter().position(|answer| answer.0 == first);
            let (_, connection, transfer) = answers.swap_remove(at.expect("it is among them"));
            TrafficEvent::Completed {
                connection,
                transfer,
            }
        } else {
            TrafficEvent::Wakeup
        };
    }
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::kinds;

    /// Parameters of kinds that need some.
    const NEEDED: &[(&str, &str)] = &[
        ("transfer", r#"{"bytes": 30000}"#),
        ("onoff", r#"{"on": 1000000000, "off": 500000000}"#),
        ("requests", r#"{"response": 30000}"#),
        ("cbr", r#"{"rate": 1000000}"#),
        ("poisson", r#"{"rate": 1000000}"#),
        ("arrivals", r#"{"size": 30000, "rate": 10.0}"#),
        ("web", r#"{"users": 3}"#),
    ];

    #[test]
    fn all_kinds_conform() {
        for traffic in kinds::ALL {
            let needed = NEEDED.iter().find(|(name, _)| *name == traffic.entry.name);
            let params = serde_json::from_str(needed.map_or("{}", |(_, text)| text)).unwrap();
            (1..5).for_each(|seed| check(traffic, &params, seed, 500));
        }
    }
}
