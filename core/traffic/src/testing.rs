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
    use serde_json::json;

    #[test]
    fn kinds_without_required_parameters_conform() {
        let mut checked = 0;
        for traffic in kinds::ALL {
            if traffic.entry.params.iter().all(|spec| !spec.required) {
                (1..5).for_each(|seed| check(traffic, &json!({}), seed, 500));
                checked += 1;
            }
        }
        assert!(checked > 0);
        for name in ["cbr", "poisson"] {
            let traffic = kinds::find(name).unwrap();
            check(traffic, &json!({"rate": 1_000_000}), 1, 500);
        }
    }
}
