//! Everything that scenarios may name, as one JSON document.

use crate::hosts::host_settings_json;
use narrows_bpf_programs::Program;
use narrows_cc::{Profile, Scheme, schemes};
use narrows_media::Media;
use narrows_net::{BOTTLENECK_PARAMS, Entry, links, queues, rates};
use narrows_traffic::{Traffic, kinds};
use narrows_units::ParamSpec;
use serde_json::{Value, json};

fn params(specs: &[ParamSpec]) -> Vec<Value> {
    specs.iter().map(ParamSpec::to_json).collect()
}

fn scheme(scheme: &Scheme) -> Value {
    let mut object = words(scheme.words());
    object.insert("page".into(), schemes::page(scheme.name).into());
    let settings = scheme.transport.iter();
    let settings = settings.map(|(name, value)| ((*name).to_owned(), Value::from(*value)));
    object.insert("transport".into(), Value::Object(settings.collect()));
    object.insert("profiles".into(), profiles(scheme.profiles, scheme.params));
    object.insert("params".into(), params(scheme.params).into());
    Value::Object(object)
}

/// A real-time scheme is listed among the others, with its kind.
fn media(scheme: &Media) -> Value {
    let mut object = words(scheme.words());
    let page = narrows_media::schemes::page(scheme.name);
    object.insert("page".into(), page.into());
    object.insert("media".into(), true.into());
    object.insert("frames".into(), scheme.frames.into());
    object.insert("transport".into(), json!({}));
    object.insert("profiles".into(), profiles(scheme.profiles, scheme.params));
    object.insert("params".into(), params(scheme.params).into());
    Value::Object(object)
}

fn words(words: Vec<(&'static str, String)>) -> serde_json::Map<String, Value> {
    let words = words.into_iter();
    words
        .map(|(name, word)| (name.to_owned(), Value::from(word)))
        .collect()
}

fn profiles(profiles: &[Profile], specs: &[ParamSpec]) -> Value {
    profiles.iter().map(|one| profile(one, specs)).collect()
}

/// A profile with its values in base units.
fn profile(profile: &Profile, specs: &[ParamSpec]) -> Value {
    let values = |settings: &[(&str, &str)], specs: &[ParamSpec]| {
        let value = |(name, text): &(&str, &str)| {
            let spec = specs.iter().find(|spec| spec.name == *name);
            let value = spec.expect("a setting that exists").parse(text);
            (
                (*name).to_owned(),
                value.expect("an allowed value").to_json(),
            )
        };
        Value::Object(settings.iter().map(value).collect())
    };
    json!({
        "name": profile.name,
        "doc": profile.doc,
        "params": values(profile.params, specs),
        "transport": values(profile.transport, narrows_transport::PARAMS),
    })
}

/// Schemes, BPF programs, queues, link elements, rate servers, the transport, kinds of traffic and settings of hosts,
/// with their parameters, and the crates of users that some of them come from. Scenario validation, the schema, the command line and the reference are derived from it.
pub fn registry() -> Value {
    let entries = |all: &[Entry]| all.iter().map(Entry::to_json).collect::<Vec<_>>();
    json!({
        "schemes": schemes::ALL
            .iter()
            .map(scheme)
            .chain(narrows_media::schemes::ALL.iter().map(media))
            .collect::<Vec<_>>(),
        "bpf": narrows_bpf_programs::ALL.iter().map(Program::to_json).collect::<Vec<_>>(),
        "queues": entries(queues::ALL),
        "links": entries(links::ALL),
        "rates": entries(rates::ALL),
        "bottleneck": params(BOTTLENECK_PARAMS),
        "transport": params(narrows_transport::PARAMS),
        "traffic": kinds::ALL.iter().map(Traffic::to_json).collect::<Vec<_>>(),
        "host_settings": host_settings_json(),
        "extensions": crate::extensions(),
    })
}
