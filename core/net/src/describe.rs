//! Builds elements from their descriptions, and changes from pairs of descriptions.

use crate::bottleneck::Framing;
use crate::fifo::QueueLimit;
use crate::pipe::PipePart;
use crate::rates::constant::Constant;
use crate::{
    BOTTLENECK_PARAMS, Bottleneck, BuildError, Change, Element, ElementSetup, NetworkError, Packet,
    links, queues, rates,
};
use narrows_units::Params;
use serde_json::{Map, Value};

/// The kind of elements that are a queue before a rate server.
const BOTTLENECK: &str = "bottleneck";

/// True if one element can be built from `{"kind": ..., "name": ..., parameters...}`: parameters may be valid
/// individually but not in combination.
///
/// # Errors
/// The errors of [`Network::new`](crate::Network::new).
pub fn check_element(
    object: &Map<String, Value>,
    setup: &ElementSetup,
) -> Result<(), NetworkError> {
    build_element::<crate::testing::TestPacket>(object, setup).map(|_| ())
}

/// Builds one element from `{"kind": ..., "name": ..., parameters...}`; also returns its kind.
pub(crate) fn build_element<P: Packet + 'static>(
    object: &Map<String, Value>,
    setup: &ElementSetup,
) -> Result<(String, Box<dyn Element<P>>), NetworkError> {
    let name = &setup.name;
    let wrap = |error| NetworkError::Build {
        at: name.clone(),
        error,
    };
    let (kind, mut params) = split(name, object)?;
    params.remove("name");
    if kind != BOTTLENECK {
        let element = links::build(&kind, &params, setup).map_err(wrap)?;
        return Ok((kind, element));
    }
    let (rate, rate_params) = part(name, object, "rate")?;
    let (queue, queue_params) = part(name, object, "queue")?;
    let server = rates::build(&rate, &rate_params, setup).map_err(wrap)?;
    let queue = queues::build(&queue, &queue_params, setup).map_err(wrap)?;
    params.remove("rate");
    params.remove("queue");
    let own = own_params(&params).map_err(wrap)?;
    Ok((kind, Box::new(Bottleneck::new(queue, server, &own))))
}

/// The pipe part for the valid element described by `object`, if it can be part of a pipe.
pub(crate) fn pipe_part(object: &Map<String, Value>, setup: &ElementSetup) -> Option<PipePart> {
    let (kind, mut params) = split(&setup.name, object).ok()?;
    params.remove("name");
    if kind == links::delay::ENTRY.name {
        let params = links::params(&kind, &params).ok()?;
        return links::delay::unlimited(&params).map(PipePart::Delay);
    }
    if kind != BOTTLENECK {
        return None;
    }
    let (rate, rate_params) = part(&setup.name, object, "rate").ok()?;
    let (queue, queue_params) = part(&setup.name, object, "queue").ok()?;
    if rate != rates::constant::ENTRY.name {
        return None;
    }
    let queue_params = queues::params(&queue, &queue_params).ok()?;
    let limit = if queue == queues::droptail::ENTRY.name {
        QueueLimit::new(&queue_params).ok()?
    } else if queue == queues::unlimited::ENTRY.name {
        QueueLimit::optional(&queue_params)
    } else {
        return None;
    };
    params.remove("rate");
    params.remove("queue");
    Some(PipePart::Bottleneck {
        limit,
        server: Constant::new(&rates::params(&rate, &rate_params).ok()?),
        framing: Framing::read(&own_params(&params).ok()?),
    })
}

/// The changes that turn the element described by `object` into the one described by `object` with the members of
/// `set`; `object` is updated.
pub(crate) fn plan_changes(
    object: &mut Map<String, Value>,
    set: &Map<String, Value>,
    setup: &ElementSetup,
) -> Result<Vec<Change>, NetworkError> {
    let name = setup.name.clone();
    let wrap = |error| NetworkError::Build {
        at: name.clone(),
        error,
    };
    let (kind, before) = split(&name, object)?;
    for (key, value) in set {
        match (object.get_mut(key), value) {
            // For a queue, unmentioned parameters keep their values; a rate is specified completely.
            (Some(Value::Object(old)), Value::Object(new)) if key == "queue" => {
                old.extend(new.clone());
            }
            _ => {
                object.insert(key.clone(), value.clone());
            }
        }
    }
    // The values must be valid in combination as well.
    check_element(object, setup)?;
    if kind != BOTTLENECK {
        let (_, mut params) = split(&name, object)?;
        params.remove("name");
        return Ok(vec![Change::Params(
            links::params(&kind, &params).map_err(wrap)?,
        )]);
    }
    let mut changes = Vec::new();
    let mut own = object.clone();
    for key in ["kind", "name", "rate", "queue"] {
        own.remove(key);
    }
    if set.keys().any(|key| own.contains_key(key)) {
        changes.push(Change::Params(own_params(&own).map_err(wrap)?));
    }
    if set.contains_key("rate") {
        let (rate, params) = part(&name, object, "rate")?;
        changes.push(Change::Rate(
            rates::build(&rate, &params, setup).map_err(wrap)?,
        ));
    }
    if set.contains_key("queue") {
        let (queue, params) = part(&name, object, "queue")?;
        if Some(queue.as_str()) != before["queue"].get("kind").and_then(Value::as_str) {
            return Err(NetworkError::shape(
                &name,
                "the discipline of a queue cannot change while it holds packets",
            ));
        }
        changes.push(Change::Queue(
            queues::params(&queue, &params).map_err(wrap)?,
        ));
    }
    Ok(changes)
}

fn own_params(params: &Map<String, Value>) -> Result<Params, BuildError> {
    Params::from_json(BOTTLENECK_PARAMS, params).map_err(|error| BuildError::Params {
        name: BOTTLENECK.to_owned(),
        error,
    })
}

/// The rate or the queue of a bottleneck.
fn part(
    name: &str,
    object: &Map<String, Value>,
    key: &str,
) -> Result<(String, Map<String, Value>), NetworkError> {
    let value = object.get(key).and_then(Value::as_object);
    let object =
        value.ok_or_else(|| NetworkError::shape(name, format!("'{key}' must be an object")))?;
    split(&format!("{name}.{key}"), object)
}

/// Separates the registry name from the parameters.
fn split(
    at: &str,
    object: &Map<String, Value>,
) -> Result<(String, Map<String, Value>), NetworkError> {
    let mut params = object.clone();
    match params.remove("kind") {
        Some(Value::String(kind)) => Ok((kind, params)),
        _ => Err(NetworkError::shape(at, "'kind' must name a registry entry")),
    }
}
